//! `q --undo`, `--copy` and `--clear`: the actions that change what is kept.

use std::io::{self, IsTerminal, Write};

use serde_json::{Value, json};

use crate::context::{Context, number_note};
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::print_report;
use crate::session::StoredEntry;
use crate::session::directory::StateDirectory;
use crate::session::edit::{self, Cleared};
use crate::session::name::{ConversationRef, option_of};
use crate::session::rules::FileKind;
use crate::session::store::{self, Purpose};
use crate::text::yes_or_no::is_yes;
use crate::whole_file::broken_link;

/// Drops the last exchange and prints its question. Unless `keep` is 0, a backup keeps it.
pub fn undo(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    refuse_number("--undo", context)?;
    let (handle, _) = context.open_existing(Purpose::Change)?;
    let undone = edit::undo(&handle, &context.load_values().rules);
    let undone = undone.map_err(|error| Error::file(format!("undo failed: {error}")))?;
    let Some(undone) = undone else {
        return Err(Error::nothing("there is nothing to undo"));
    };
    let question = undone.exchange.question().map(StoredEntry::text);
    let question = question.unwrap_or_default();
    let report = json!({"id": undone.id, "question": question});
    let mut done = "the last exchange was removed".to_owned();
    if let Some(backup) = undone.backup {
        let option = option_of(&backup);
        done += &format!(" (q{option} still has it)");
    }
    print_done(&done, &report, &question, arguments, context)
}

/// Prints the report of a change. If that fails, the error says that the change was made anyway.
fn print_done(
    done: &str,
    report: &Value,
    text: &str,
    arguments: &Arguments,
    context: &Context,
) -> Result<(), Error> {
    let printed = print_report(arguments.json, report, text, context.notes.terminal());
    printed.map_err(|error| Error {
        message: format!("{done}, but {}", error.message),
        ..error
    })
}

/// Refuses a number of the list, because the numbers move and another conversation could be changed. The advice names the one
/// that it means now, and what to type for it.
fn refuse_number(action: &str, context: &Context) -> Result<(), Error> {
    let which = context.conversation()?;
    let ConversationRef::Number(number) = which else {
        return Ok(());
    };
    let message = format!("{action} does not accept %N, because list numbers change");
    let error = Error::usage(message);
    let found = store::find(context.directory()?, which, Purpose::Look);
    Err(match found {
        Ok(handle) => error
            .advise(format!("type q {action}{}", handle.which.option()))
            .advise_also(number_note(*number, &handle)),
        Err(_) => error,
    })
}

/// Copies the conversation under another name. The original stays.
pub fn copy(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let name = arguments.copy.as_deref().unwrap_or_default();
    let which = ConversationRef::for_copy(name)?;
    let (handle, _) = context.open_existing(Purpose::Look)?;
    let target = store::find(&handle.directory, &which, Purpose::Look)?;
    let name = name.display();
    match edit::copy(&handle, &target) {
        Ok(()) => {
            let text = format!("Conversation copied to {name}");
            let report = json!({"id": target.id()});
            let done = format!("the conversation was copied to {name}");
            print_done(&done, &report, &text, arguments, context)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let taken = match broken_link(&target.path) {
                Some(link) => format!("{path} is {link}", path = target.path.display()),
                None => format!("there is already a conversation {name}"),
            };
            Err(Error::nothing(taken).advise("choose a new name for --copy"))
        }
        Err(error) => Err(Error::file(format!("nothing was copied: {error}"))),
    }
}

/// Deletes the conversation, or all of them.
pub fn clear(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    if arguments.all {
        return clear_all(arguments, context);
    }
    refuse_number("--clear", context)?;
    let handle = context.find_quietly()?;
    if let ConversationRef::File(_) = handle.which {
        // A path may be mistyped, so a file that is not a conversation is not deleted.
        handle.open_named_or_current()?;
    }
    let cleared = edit::clear(&handle).map_err(Error::file)?;
    if matches!(cleared, Cleared::Nothing) && !handle.which.is_current() {
        return Err(handle.missing());
    }
    let (count, done) = match cleared {
        Cleared::Nothing => (0, "there was no conversation"),
        Cleared::LinkToNothing(_) => (0, "the link was removed"),
        Cleared::Conversation | Cleared::Link(_) => (1, "the conversation was cleared"),
    };
    let report = json!({"cleared": count});
    let mut text = "Conversation cleared";
    if count == 0 && io::stdout().is_terminal() {
        // A person reads the note, and a script looks for these words.
        text = "";
    }
    print_done(done, &report, text, arguments, context)?;
    match cleared {
        Cleared::Nothing => context.notes.note("there was no conversation"),
        Cleared::Conversation => {}
        // What it led to may be there again, once a disk is mounted.
        Cleared::LinkToNothing(target) => context.notes.note(&format!(
            "there was no conversation: only a link was removed, which led to {}",
            target.display()
        )),
        Cleared::Link(path) => {
            let option = option_of(&handle.directory.id(&path));
            context.notes.note(&format!(
                "only the link to the conversation was removed: q{option} continues it"
            ));
        }
    }
    // What was deleted stays deleted, even if the others cannot be counted.
    if let Ok(others) = count_own(&handle.directory)
        && others > 0
    {
        context.notes.note(&format!(
            "other conversations kept: {others}; q --list shows them, q --clear --all deletes them"
        ));
    }
    Ok(())
}

/// Deletes all conversations. Without `--yes` it asks first, which needs a terminal.
fn clear_all(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let asks = !arguments.yes;
    if asks {
        check_terminal("input", io::stdin().is_terminal())?;
        check_terminal("error", io::stderr().is_terminal())?;
    }
    let directory = context.directory()?;
    directory.check().map_err(Error::file)?;
    let count = count_own(directory)?;
    if asks && !confirmed(count) {
        return Err(Error::nothing("nothing was deleted"));
    }
    let deleted = edit::clear_all(directory).map_err(Error::file)?;
    let text = format!("Conversations cleared: {deleted}");
    let done = format!("all conversations were cleared ({deleted})");
    let report = json!({"cleared": deleted});
    print_done(&done, &report, &text, arguments, context)?;
    if let Some(answers) = context.answers(&context.load_values())
        && answers.size().files > 0
    {
        let place = answers.directory.display();
        let note = format!("cached answers were not deleted: {place}");
        context.notes.note(&note);
    }
    Ok(())
}

/// Returns how many conversations `--clear --all` deletes; files that other programs have put into the directory stay.
fn count_own(directory: &StateDirectory) -> Result<usize, Error> {
    let mut files = directory.files(false).map_err(Error::file)?;
    files.retain(|file| directory.kind(&file.path) != FileKind::External);
    Ok(files.len())
}

/// Refuses to ask where nobody would see the question, or could answer it.
fn check_terminal(stream: &str, is_terminal: bool) -> Result<(), Error> {
    if is_terminal {
        return Ok(());
    }
    let error = format!(
        "--clear --all asks first, but standard {stream} is not a terminal; nothing was deleted"
    );
    Err(Error::usage(error).advise("use --yes to delete all conversations without asking"))
}

/// Asks for confirmation on the terminal.
fn confirmed(count: usize) -> bool {
    let question = format!("q: delete all conversations ({count}) for good? [y/N] ");
    let _ = io::stderr().write_all(question.as_bytes());
    let mut answer = String::new();
    let _ = io::stdin().read_line(&mut answer);
    if !answer.ends_with('\n') {
        // The end of the input, as by Ctrl-D, ends no line.
        let _ = io::stderr().write_all(b"\n");
    }
    is_yes(&answer)
}
