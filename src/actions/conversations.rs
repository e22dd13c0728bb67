//! What q does with conversations without asking a model. Nothing is sent, and only a confirmation is read.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, BufRead, IsTerminal, Write};
use std::slice;

use serde_json::json;
use time::OffsetDateTime;

use crate::context::{Context, Place};
use crate::error::{Error, Kind};
use crate::fence;
use crate::message::{Attachment, Message, Step};
use crate::one_line::on_one_line;
use crate::output::{OutputError, Stdout, code, print, print_prose};
use crate::session::commit;
use crate::session::folder;
use crate::session::format::{self, LARGEST};
use crate::session::lock::{LOCK_PATIENCE, Lock, NoLock};
use crate::session::name::Which;
use crate::session::rules::{self, Found};
use crate::session::timestamp::Timestamp;
use crate::session::{Conversation, Exchange};
use crate::settings::Settings;

impl Place<'_> {
    /// The conversation. `None`: the current one does not exist, which is no error.
    fn read(&self) -> Result<Option<Conversation>, Error> {
        Ok(self.read_with_source()?.map(|(conversation, _)| conversation))
    }

    /// The same, with the bytes of its file.
    fn read_with_source(&self) -> Result<Option<(Conversation, Vec<u8>)>, Error> {
        // Naming a file that cannot be used is a usage error.
        let kind = if matches!(self.which, Which::File(_)) { Kind::Session } else { Kind::File };
        match folder::read_with_source(&self.path) {
            Ok((Found::Conversation(conversation), source)) => Ok(Some((conversation, source))),
            Ok((Found::Nothing, _)) if self.which.is_current() => Ok(None),
            Ok((Found::Nothing, _)) => Err(self.missing()),
            Ok((Found::Unusable(unusable), _)) => {
                let error = Error::new(kind, format!("{}: {unusable}", self.path.display()));
                Err(match self.which.is_current() {
                    true => error.advise("the next question archives this file and starts a new conversation"),
                    false => error,
                })
            }
            Err(error) => Err(Error::new(kind, error.to_string())),
        }
    }

    /// Without a folder there is nothing to lock.
    fn lock(&self) -> Result<Lock, Error> {
        match self.folder.lock(&self.path, &|waited| waited >= LOCK_PATIENCE) {
            Ok(lock) => Ok(lock),
            Err(NoLock::Unsupported) => Ok(Lock::nowhere()),
            Err(NoLock::Busy) => Err(Error::file("another q holds the lock of the conversations").advise("try again")),
            Err(NoLock::Failed(error)) => Err(state(error)),
        }
    }
}

/// State that cannot be read or written is an error with its cause; it never counts as missing.
fn state(error: io::Error) -> Error {
    Error::file(error.to_string())
}

/// Prints the conversation; as JSON, its file.
pub(crate) fn history(context: &Context, json: bool) -> Result<(), Error> {
    let place = context.place()?;
    let Some((conversation, source)) = place.read_with_source()? else {
        context.notes.note("there is no conversation");
        return Ok(());
    };
    if json {
        return print(&String::from_utf8_lossy(&source));
    }
    let mut texts = Vec::new();
    for (index, entry) in conversation.entries().enumerate() {
        let time = entry.timestamp.map_or_else(String::new, |time| format!(" {time}"));
        let mark = if entry.interrupted { " interrupted" } else { "" };
        let finish = entry.finish.as_ref().map_or_else(String::new, |word| format!(" {word}"));
        let begin = if index == 0 { "" } else { "\n" };
        let attached: String = entry.message.attachments.iter().map(attached).collect();
        let steps = steps_as_text(&entry.steps);
        let steps = if steps.is_empty() { steps } else { steps + "\n\n" };
        let said = &entry.message.text;
        let end = if said.ends_with('\n') { "" } else { "\n" };
        texts.push(format!("{begin}[{}{time}{mark}{finish}]\n{attached}{steps}", entry.role()));
        texts.push(format!("{said}{end}"));
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    if texts.is_empty() {
        context.notes.note("the conversation has no messages");
    }
    print_prose(&texts, wraps(context))
}

/// What the model said before its calls, and the calls, in order.
fn steps_as_text(steps: &[Step]) -> String {
    let parts: Vec<String> = steps
        .iter()
        .flat_map(|step| [step.text.trim().to_owned(), fence::calls_as_text(slice::from_ref(step))])
        .collect();
    fence::join(parts.iter().map(String::as_str))
}

/// Whether messages are wrapped.
fn wraps(context: &Context) -> bool {
    io::stdout().is_terminal() && context.wraps(&Settings::of_actions(&context.environment, &context.configuration))
}

/// The line that names an attachment, with the size of its file.
fn attached(attachment: &Attachment) -> String {
    let kept = attachment.data.as_ref().map_or_else(
        || "no longer kept".to_owned(),
        // Four characters of base64 are three bytes.
        |data| format!("{} kB", (data.len() / 4 * 3).div_ceil(1000)),
    );
    format!("[attached: {}, {}, {kept}]\n", on_one_line(&attachment.name), on_one_line(&attachment.media))
}

/// Prints the last answer again; with `extract` only its code, which goes to a pipe or file only if the answer
/// is complete.
pub(crate) fn last(context: &Context, extract: bool, json: bool) -> Result<(), Error> {
    let place = context.place()?;
    let conversation = place.read()?.ok_or_else(|| Error::nothing("there is no conversation"))?;
    let answer = conversation.exchanges.iter().rev().find_map(Exchange::answer);
    let answer = answer.ok_or_else(|| Error::nothing("there is no answer in the conversation"))?;
    let ended = match (answer.interrupted, &answer.finish) {
        (true, _) => Some("this answer was interrupted".to_owned()),
        (false, Some(word)) => Some(format!("this answer may be incomplete: it ended with “{word}”")),
        (false, None) => None,
    };
    if let Some(ended) = ended {
        if extract && !io::stdout().is_terminal() {
            return Err(Error::nothing(format!("{ended}: its code may be incomplete, so it is not printed"))
                .advise(format!("q --last{} prints the incomplete answer", place.which.option())));
        }
        context.notes.note(&ended);
    }
    let mut text = Cow::Borrowed(&*answer.message.text);
    if extract {
        let code = code::extract(&text);
        text = code.ok_or_else(|| Error::new(Kind::NoCode, "there is no code block in the answer"))?.into();
    }
    if !json {
        return print_prose(&[&text], !extract && wraps(context));
    }
    let report = json!({
        "id": place.which.id(conversation.created),
        "provider": answer.provider.as_ref().unwrap_or(&conversation.provider),
        "model": answer.model.as_ref().unwrap_or(&conversation.model),
        "answer": text,
        // Nobody has said how one that broke off would have ended.
        "finish": answer.finish.as_deref().or((!answer.interrupted).then_some("stop")),
        "interrupted": answer.interrupted,
    });
    print(&report.to_string())
}

/// Prints the question of the last exchange and drops the exchange; the conversation as it was is archived. Nothing is
/// dropped if the question cannot be printed.
pub(crate) fn undo(context: &Context, json: bool) -> Result<(), Error> {
    let place = context.place()?;
    let nothing = || Error::nothing("there is nothing to undo");
    if place.which.is_current() && !place.folder.exists().map_err(state)? {
        return Err(nothing());
    }
    place.spare_owner()?;
    let mut rest = place.read()?.ok_or_else(nothing)?;
    let undone = rest.undo().ok_or_else(nothing)?;
    let note = undone.question().and_then(|question| attached_note(&question.message));
    let question = undone.question().map_or_else(String::new, |question| question.message.text.to_string());
    let failed = |error: io::Error| Error::file(format!("nothing was undone: {error}"));
    if matches!(place.which, Which::File(_)) {
        place.folder.prepare().map_err(failed)?;
    }
    // Without the lock, nothing is printed either.
    drop(place.lock()?);
    print_to_reader(&if json { json!({"question": question}).to_string() } else { question })?;
    let mut lock = place.lock()?;
    let now = match place.read()? {
        Some(conversation) if conversation.created == rest.created => Some((place.path.clone(), conversation)),
        // Another q has undone it.
        Some(conversation) if conversation.exchanges == rest.exchanges => None,
        None if rest.exchanges.is_empty() => None,
        // It may have been displaced while its question was read.
        _ => place.folder.find_archived(rest.created).map_err(failed)?,
    };
    let unchanged = now.filter(|(_, conversation)| conversation.exchanges.last() == Some(&undone));
    let (path, mut conversation) = unchanged.ok_or_else(|| {
        Error::file("nothing was undone: the conversation has changed in the meantime")
            .advise(format!("q --last{} shows what it says now", place.which.option()))
    })?;
    conversation.undo();
    let keep = Settings::of_actions(&context.environment, &context.configuration).keep;
    let now = Timestamp::new(OffsetDateTime::now_utc());
    commit::revise(place.folder, &mut lock, &path, conversation, now, rules::archives(keep)).map_err(failed)?;
    if let Some(note) = note {
        context.notes.note(&note);
    }
    Ok(())
}

/// Reports the question's attachments, because only its text is printed.
fn attached_note(question: &Message) -> Option<String> {
    let names: Vec<String> = question.attachments.iter().map(|attachment| on_one_line(&attachment.name)).collect();
    let (last, others) = names.split_last()?;
    Some(match others {
        [] => format!("the question had {last} attached, which is not printed"),
        others => format!("the question had {} and {last} attached, which are not printed", others.join(", ")),
    })
}

/// Prints a text. Here, it is an error if the reader has gone away.
fn print_to_reader(text: &str) -> Result<(), Error> {
    let printed = Stdout::open().and_then(|mut stdout| {
        stdout.write(text, &mut |_| {})?;
        stdout.end_line(&mut |_| {})
    });
    printed.map_err(|error: OutputError| Error::new(Kind::Output, format!("nothing was undone: {error}")))
}

/// Copies the conversation under another name. The original stays.
pub(crate) fn copy(context: &Context, name: &OsStr, json: bool) -> Result<(), Error> {
    let which = Which::for_copy(name)?;
    let place = context.place()?;
    let nothing = || Error::nothing("there is no conversation to copy");
    place.read()?.ok_or_else(nothing)?;
    let path = place.folder.path(&which).map_err(state)?;
    let target = Place { folder: place.folder, which: &which, path };
    place.folder.prepare().map_err(state)?;
    let mut lock = target.lock()?;
    // A conversation that an undo has emptied counts as new.
    let is_free = match folder::read(&target.path).map_err(state)? {
        Found::Nothing => !folder::is_there(&target.path).map_err(state)?,
        Found::Conversation(there) => there.exchanges.is_empty(),
        Found::Unusable(_) => false,
    };
    if !is_free {
        return Err(Error::nothing(format!("there is already a conversation {}", name.display()))
            .advise("--copy needs a new name"));
    }
    // The file of an id may have changed before the lock was held.
    let mut conversation = context.place()?.read()?.ok_or_else(nothing)?;
    conversation.created = lock.unique(Timestamp::new(OffsetDateTime::now_utc()), Some(conversation.created));
    if format::size(&conversation) > LARGEST {
        return Err(Error::file(format!("nothing was copied: the copy would have more than {LARGEST} bytes")));
    }
    target.folder.replace(&target.path, &conversation).map_err(state)?;
    if json {
        return print(&json!({"id": which.id(conversation.created)}).to_string());
    }
    print(&format!("Conversation copied to {}", name.display()))
}

/// Deletes the conversation.
pub(crate) fn clear(context: &Context, json: bool) -> Result<(), Error> {
    let place = context.place()?;
    let there = folder::is_there(&place.path).map_err(state)?;
    if !there && !place.which.is_current() {
        return Err(place.missing());
    }
    if let Which::File(_) = place.which {
        // A path may be mistyped, so a file that is not a conversation is not deleted.
        place.read()?;
    }
    if there {
        let _lock = place.lock()?;
        // The file of an id may have changed before the lock was held.
        folder::remove(&context.place()?.path).map_err(state)?;
    }
    match json {
        true => print(&json!({"cleared": usize::from(there)}).to_string())?,
        false => print("Conversation cleared")?,
    }
    if !there {
        context.notes.note("there was no conversation");
    }
    let others = place.folder.all().map_err(state)?.len();
    if others > 0 {
        let kept = if others == 1 { "another one is".to_owned() } else { format!("{others} others are") };
        context.notes.note(&format!("{kept} kept: q --list lists them, q --clear --all deletes them"));
    }
    Ok(())
}

/// Deletes all conversations. On a terminal it asks first.
pub(crate) fn clear_all(context: &Context, yes: bool, json: bool) -> Result<(), Error> {
    let place = context.place()?;
    let list = || place.folder.all().map_err(state);
    let there = list()?.len();
    if there > 0 && !yes && !confirmed(there) {
        return Err(Error::nothing("nothing was deleted"));
    }
    let mut deleted = 0;
    if place.folder.exists().map_err(state)? {
        let _lock = place.lock()?;
        place.folder.remove_leftovers();
        let mut failed = None;
        for path in list()? {
            match folder::remove(&path) {
                Ok(was_there) => deleted += usize::from(was_there),
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            context.notes.note(&format!("Conversations cleared: {deleted}"));
            return Err(state(error));
        }
    }
    if json {
        return print(&json!({"cleared": deleted}).to_string());
    }
    print(&format!("Conversations cleared: {deleted}"))
}

/// Asks for confirmation on a terminal; a script is taken at its word.
fn confirmed(count: usize) -> bool {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return true;
    }
    let what = if count == 1 { "the only conversation" } else { &format!("all {count} conversations") };
    let _ = write!(io::stderr(), "q: delete {what} for good? [y/N] ");
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
