//! `q --undo`, `--copy` and `--clear`: the actions that change what is kept.

use std::io::{self, IsTerminal, Write};

use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::print_report;
use crate::session::StoredEntry;
use crate::session::edit;
use crate::session::folder::{Folder, Kind};
use crate::session::name::Which;
use crate::session::store::{self, Purpose};

/// Drops the last exchange and prints its question. Unless `keep` is 0, an earlier state keeps it.
pub fn undo(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    refuse_number("--undo", context)?;
    let (handle, _) = context.open_existing(Purpose::Change)?;
    let undone = edit::undo(&handle, &context.values().rules);
    let undone = undone.map_err(|error| Error::file(format!("undo failed: {error}")))?;
    let Some((id, exchange)) = undone else {
        return Err(Error::nothing("there is nothing to undo"));
    };
    let question = exchange.question().map(StoredEntry::text);
    let question = question.unwrap_or_default();
    print_report(
        arguments.json,
        &json!({"id": id, "question": question}),
        &question,
        context.notes.terminal(),
    )
}

/// Refuses a number of the list, because the numbers move and another conversation could be changed.
fn refuse_number(action: &str, context: &Context) -> Result<(), Error> {
    if let Which::Number(_) = context.which()? {
        let message = format!("{action} takes no number, because the numbers of the list move");
        return Err(Error::usage(message).advise("q --list shows names"));
    }
    Ok(())
}

/// Copies the conversation under another name. The original stays.
pub fn copy(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let name = arguments.copy.as_deref().unwrap_or_default();
    let which = Which::for_copy(name)?;
    let (handle, _) = context.open_existing(Purpose::Look)?;
    let target = store::find(&handle.folder, &which, Purpose::Look)?;
    let name = name.display();
    match edit::copy(&handle, &target) {
        Ok(()) => {
            let text = format!("Conversation copied to {name}");
            print_report(
                arguments.json,
                &json!({"id": target.id()}),
                &text,
                context.notes.terminal(),
            )
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let taken = Error::nothing(format!("there is already a conversation {name}"));
            Err(taken.advise("--copy needs a new name"))
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
    let handle = store::find(context.folder()?, context.which()?, Purpose::Look)?;
    if let Which::File(_) = handle.which {
        // A path may be mistyped, so a file that is not a conversation is not deleted.
        handle.open_existing()?;
    }
    let existed = edit::clear(&handle).map_err(Error::file)?;
    if !existed && !handle.which.is_current() {
        return Err(handle.missing());
    }
    let count = usize::from(existed);
    print_report(
        arguments.json,
        &json!({"cleared": count}),
        "Conversation cleared",
        context.notes.terminal(),
    )?;
    if !existed {
        context.notes.note("there was no conversation");
    }
    let others = count_own(&handle.folder)?;
    if others > 0 {
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
    let folder = context.folder()?;
    folder.check().map_err(Error::file)?;
    let count = count_own(folder)?;
    if asks && !confirmed(count) {
        return Err(Error::nothing("nothing was deleted"));
    }
    let deleted = edit::clear_all(folder).map_err(Error::file)?;
    let text = format!("Conversations cleared: {deleted}");
    print_report(
        arguments.json,
        &json!({"cleared": deleted}),
        &text,
        context.notes.terminal(),
    )?;
    if let Some(answers) = context.answers(&context.values())
        && answers.size().files > 0
    {
        let place = answers.folder.display();
        let note = format!("known answers are left in {place}");
        context.notes.note(&note);
    }
    Ok(())
}

/// How many conversations `--clear --all` deletes; files that others have put into the folder stay.
fn count_own(folder: &Folder) -> Result<usize, Error> {
    let mut files = folder.files(false).map_err(Error::file)?;
    files.retain(|file| folder.kind(&file.path) != Kind::Foreign);
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
    Err(Error::usage(error).advise("--yes deletes all conversations without asking"))
}

/// Asks for confirmation on the terminal.
fn confirmed(count: usize) -> bool {
    let question = format!("q: delete all conversations ({count}) for good? [y/N] ");
    let _ = io::stderr().write_all(question.as_bytes());
    let mut answer = String::new();
    let _ = io::stdin().read_line(&mut answer);
    matches!(answer.trim(), "y" | "Y" | "yes")
}
