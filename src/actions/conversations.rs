//! The actions on conversations: print one, its last answer, undo, copy, delete. Nothing is sent to a model.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::slice;

use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::context::{Context, Place, rules};
use crate::error::{Error, ErrorKind};
use crate::fence;
use crate::message::{Attachment, Role, Source, Sources, Step};
use crate::one_line::on_one_line;
use crate::output::{Look, code, print, print_texts, source_lines};
use crate::session::commit;
use crate::session::files;
use crate::session::lock::{LOCK_PATIENCE, Lock, NoLock};
use crate::session::name::Which;
use crate::session::rules::FileContent;
use crate::session::timestamp::Timestamp;
use crate::session::{Conversation, Entry, Exchange};
use crate::settings::{Settings, Values};

impl Place {
    /// The link that the user names the conversation by, if it is a link.
    fn link(&self) -> Option<PathBuf> {
        let Which::Named(name) = &self.which else {
            return self.location.link.clone();
        };
        let path = self.folder.file(name);
        if path.is_symlink() { Some(path) } else { None }
    }

    /// Reads the conversation. `None`: there is no current one, which is no error.
    fn read(&self) -> Result<Option<Conversation>, Error> {
        let path = &self.location.path;
        let reason = match files::read(path) {
            Ok(FileContent::Conversation(conversation)) => return Ok(Some(conversation)),
            Ok(FileContent::Nothing) => {
                if self.which.is_current() {
                    return Ok(None);
                }
                return Err(self.missing());
            }
            Ok(FileContent::Unusable(reason)) => format!("{}: {reason}", path.display()),
            Err(error) => error.to_string(),
        };
        // Naming a file that cannot be used is a usage error.
        let kind = match self.which {
            Which::File(_) => ErrorKind::Session,
            _ => ErrorKind::File,
        };
        Err(Error::new(kind, reason))
    }

    /// Locks a file to change it. `None`: the file system has no locks.
    fn lock(&self, path: &Path) -> Result<Option<Lock>, Error> {
        match self.folder.lock(path, &|waited| waited >= LOCK_PATIENCE) {
            Ok(lock) => Ok(Some(lock)),
            Err(NoLock::Unsupported) => Ok(None),
            Err(busy @ NoLock::Busy) => {
                let error = Error::file(busy.to_string());
                Err(error.advise("try again"))
            }
            Err(NoLock::Failed(error)) => Err(state(error)),
        }
    }
}

/// The error for conversations that cannot be read or written. They never count as missing.
fn state(error: io::Error) -> Error {
    Error::file(error.to_string())
}

/// Prints the conversation; as JSON, its file.
pub fn history(context: &Context, json: bool) -> Result<(), Error> {
    let place = context.place()?;
    let Some(conversation) = place.read()? else {
        context.notes.note("there is no conversation");
        return Ok(());
    };
    if json && let Some(source) = &conversation.source {
        return print(&String::from_utf8_lossy(source));
    }
    let mut passages = Vec::new();
    for entry in conversation.entries() {
        if !passages.is_empty() {
            passages.push(Passage::plain("\n"));
        }
        passages.push(Passage::plain(heading(entry, &conversation)));
        for attachment in &entry.attachments {
            passages.push(Passage::plain(attached(attachment)));
        }
        let steps = steps_as_text(&entry.steps);
        if !steps.is_empty() {
            passages.push(Passage::plain(steps + "\n\n"));
        }
        let mut text = entry.text.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        passages.push(Passage {
            text,
            is_answer: entry.role == Role::Assistant,
        });
        let sources = sources(entry);
        passages.push(Passage::plain(source_lines(sources.list())));
    }
    if passages.is_empty() {
        context.notes.note("the conversation has no messages");
    }

    let look = look(context);
    // Only answers are known to be Markdown.
    let plain = Look {
        styles: false,
        ..look
    };
    let mut texts = Vec::new();
    for passage in &passages {
        let look = if passage.is_answer { look } else { plain };
        texts.push((passage.text.as_str(), look));
    }
    print_texts(&texts)
}

/// A part of the history, as it is printed.
struct Passage {
    text: String,
    is_answer: bool,
}

impl Passage {
    fn plain(text: impl Into<String>) -> Passage {
        Passage {
            text: text.into(),
            is_answer: false,
        }
    }
}

/// The line before a message: its role and time; for an answer also its model, and how it ended.
fn heading(entry: &Entry, conversation: &Conversation) -> String {
    let mut heading = format!("[{}", entry.role);
    if let Some(time) = entry.timestamp() {
        heading.push(' ');
        if io::stdout().is_terminal() {
            heading.push_str(&time.local());
        } else {
            heading.push_str(&time.to_string());
        }
    }
    if entry.role == Role::Assistant {
        let provider = entry.provider.as_ref().unwrap_or(&conversation.provider);
        let model = entry.model.as_ref().unwrap_or(&conversation.model);
        heading.push_str(&format!(
            " {}/{}",
            on_one_line(provider),
            on_one_line(model)
        ));
    }
    if entry.interrupted {
        heading.push_str(" interrupted");
    }
    if let Some(word) = &entry.finish {
        heading.push_str(&format!(" {word}"));
    }
    heading.push_str("]\n");
    heading
}

/// The sources of an answer, as far as they are pages. Another program may have written them in another form.
fn sources(answer: &Entry) -> Sources {
    let mut sources = Sources::default();
    let Some(Value::Array(pages)) = &answer.sources else {
        return sources;
    };
    for page in pages {
        let url = page["url"].as_str().unwrap_or_default();
        let title = page["title"].as_str().unwrap_or_default();
        if let Some(source) = Source::new(url, title) {
            sources.add(source);
        }
    }
    sources
}

/// What the model said before its calls, and the calls, in order.
fn steps_as_text(steps: &[Step]) -> String {
    let mut parts = Vec::new();
    for step in steps {
        parts.push(step.text.trim().to_owned());
        parts.push(fence::calls_as_text(slice::from_ref(step)));
    }
    fence::join(parts.iter().map(String::as_str))
}

/// The settings, even if some are wrong.
fn settings(context: &Context) -> Values {
    Settings::for_actions(&context.environment, &context.configuration)
}

/// How messages look on a terminal.
fn look(context: &Context) -> Look {
    if io::stdout().is_terminal() {
        context.look(&settings(context))
    } else {
        Look::default()
    }
}

/// The line that names an attachment, with the size of its file.
fn attached(attachment: &Attachment) -> String {
    // Four characters of base64 are three bytes.
    let size = match attachment.data.len() / 4 * 3 {
        0 => "no longer kept".to_owned(),
        bytes => format!("{} kB", bytes.div_ceil(1000)),
    };
    format!(
        "[attached: {}, {}, {size}]\n",
        on_one_line(&attachment.name),
        on_one_line(&attachment.media)
    )
}

/// Prints the last answer again; with `extract` only its code, which goes to a pipe or file only if the answer
/// is complete.
pub fn last(context: &Context, extract: bool, json: bool) -> Result<(), Error> {
    let place = context.place()?;
    let Some(conversation) = place.read()? else {
        return Err(Error::nothing("there is no conversation"));
    };
    let mut newest_first = conversation.exchanges.iter().rev();
    let Some(answer) = newest_first.find_map(Exchange::answer) else {
        return Err(Error::nothing("there is no answer in the conversation"));
    };
    if let Some(incomplete) = incompleteness(answer) {
        if extract && !io::stdout().is_terminal() {
            let option = place.which.option();
            let error = Error::nothing(format!("{incomplete}, so its code is not printed"));
            return Err(error.advise(format!("q --last{option} prints the incomplete answer")));
        }
        context.notes.note(&incomplete);
    }
    let mut text = Cow::Borrowed(&*answer.text);
    if extract {
        match code::extract(&text) {
            Ok(code) => text = Cow::Owned(code),
            Err(reason) => return Err(Error::new(ErrorKind::NoCode, reason)),
        }
    }
    if !json {
        let look = if extract {
            Look::default()
        } else {
            look(context)
        };
        return print_texts(&[(&text, look)]);
    }
    let mut finish = answer.finish.as_deref();
    // How an interrupted answer would have ended is unknown.
    if finish.is_none() && !answer.interrupted {
        finish = Some("stop");
    }
    let report = json!({
        "id": place.folder.id(&place.location.path, conversation.created),
        "provider": answer.provider.as_ref().unwrap_or(&conversation.provider),
        "model": answer.model.as_ref().unwrap_or(&conversation.model),
        "answer": text,
        "finish": finish,
        "interrupted": answer.interrupted,
    });
    print(&report.to_string())
}

/// Says why an answer is or may be incomplete.
fn incompleteness(answer: &Entry) -> Option<String> {
    if answer.interrupted {
        return Some("this answer was interrupted".to_owned());
    }
    let word = answer.finish.as_ref()?;
    Some(format!(
        "this answer may be incomplete: it ended with “{word}”"
    ))
}

/// Drops the last exchange and prints its question; an earlier state keeps it.
pub fn undo(context: &Context, json: bool) -> Result<(), Error> {
    not_by_number(context, "--undo")?;
    let place = context.place()?;
    let nothing = || Error::nothing("there is nothing to undo");
    place.check_owner()?;
    place
        .read()?
        .and_then(|mut conversation| conversation.undo())
        .ok_or_else(nothing)?;
    let lock = place.lock(&place.location.path)?;
    let undone = commit::undo(
        &place.folder,
        &place.location.path,
        &rules(&settings(context)),
        lock.as_ref(),
    );
    // Printing may block, so other processes get the lock first.
    drop(lock);
    let undone = undone.map_err(|failed| {
        let outcome = if failed.may_be_replaced {
            "it is not certain whether the exchange was dropped"
        } else {
            "nothing was undone"
        };
        Error {
            advice: failed.state,
            ..Error::file(format!("{outcome}: {}", failed.error))
        }
    })?;
    let (id, exchange) = undone.ok_or_else(nothing)?;
    let question = exchange.question().ok_or_else(nothing)?;
    if json {
        print(&json!({"id": id, "question": question.text}).to_string())?;
    } else {
        print(&question.text)?;
    }
    if !question.attachments.is_empty() {
        context
            .notes
            .note("the images and PDFs of the question are not printed");
    }
    Ok(())
}

/// Refuses a number of the list, because the numbers move and another conversation could be changed.
fn not_by_number(context: &Context, action: &str) -> Result<(), Error> {
    if let Which::Number(_) = context.which {
        let message = format!("{action} takes no number, because the numbers of the list move");
        return Err(Error::usage(message).advise("q --list shows names"));
    }
    Ok(())
}

/// Copies the conversation under another name. The original stays.
pub fn copy(context: &Context, name: &OsStr, json: bool) -> Result<(), Error> {
    let which = Which::for_copy(name)?;
    let place = context.place()?;
    let nothing = || Error::nothing("there is no conversation to copy");
    place.read()?.ok_or_else(nothing)?;
    let location = place.folder.locate(&which).map_err(state)?;
    place.folder.prepare().map_err(state)?;
    let target = Place {
        folder: place.folder.clone(),
        which,
        location,
    };
    let lock = target.lock(&target.location.path)?;
    // The conversation may have changed before the lock was held.
    let mut conversation = place.read()?.ok_or_else(nothing)?;
    conversation.created = Timestamp::new(OffsetDateTime::now_utc());
    let path = &target.location.path;
    if let Err(error) = commit::copy(&place.folder, path, &conversation, lock.as_ref()) {
        if error.kind() == io::ErrorKind::AlreadyExists {
            let message = format!("there is already a conversation {}", name.display());
            return Err(Error::nothing(message).advise("--copy needs a new name"));
        }
        return Err(Error::file(format!("nothing was copied: {error}")));
    }
    if json {
        let id = place.folder.id(path, conversation.created);
        return print(&json!({"id": id}).to_string());
    }
    print(&format!("Conversation copied to {}", name.display()))
}

/// Deletes the conversation.
pub fn clear(context: &Context, json: bool) -> Result<(), Error> {
    not_by_number(context, "--clear")?;
    let place = context.place()?;
    let link = place.link();
    let path = link.as_ref().unwrap_or(&place.location.path);
    let exists = files::exists(path).map_err(state)?;
    if !exists && !place.which.is_current() {
        return Err(place.missing());
    }
    if let Which::File(_) = place.which {
        // A path may be mistyped, so a file that is not a conversation is not deleted.
        place.read()?;
    }
    let mut existed = false;
    if exists {
        let _lock = place.lock(&place.location.path)?;
        // Before the lock was held, another process may have started a new current conversation.
        let location = context.place()?.location;
        let cleared = place.folder.clear(&location, link.as_deref());
        existed = cleared.map_err(state)?;
    }
    if json {
        print(&json!({"cleared": usize::from(existed)}).to_string())?;
    } else {
        print("Conversation cleared")?;
    }
    if !existed {
        context.notes.note("there was no conversation");
    }
    let others = place.folder.list(false).map_err(state)?.len();
    if others > 0 {
        let note = format!(
            "other conversations kept: {others}; q --list shows them, q --clear --all deletes them"
        );
        context.notes.note(&note);
    }
    Ok(())
}

/// Deletes all conversations. Without `yes` it asks first, which needs a terminal.
pub fn clear_all(context: &Context, yes: bool, json: bool) -> Result<(), Error> {
    if !yes && !io::stdin().is_terminal() {
        let error =
            "--clear --all asks first, but standard input is not a terminal; nothing was deleted";
        return Err(Error::usage(error).advise("--yes deletes all conversations without asking"));
    }
    let place = context.place()?;
    let files = place.folder.list(true).map_err(state)?;
    if !yes && !files.is_empty() {
        let conversations = files.iter().filter(|file| !file.is_state);
        if !confirmed(conversations.count()) {
            return Err(Error::nothing("nothing was deleted"));
        }
    }
    let mut deleted = 0;
    if files::exists(place.folder.sessions()).map_err(state)? {
        let _lock = place.lock(&place.folder.link(None))?;
        deleted = place.folder.clear_all().map_err(|(before, error)| {
            context
                .notes
                .note(&format!("Conversations cleared: {before}"));
            state(error)
        })?;
    }
    if json {
        return print(&json!({"cleared": deleted}).to_string());
    }
    print(&format!("Conversations cleared: {deleted}"))
}

/// Asks for confirmation on the terminal.
fn confirmed(count: usize) -> bool {
    let what = if count == 1 {
        "the only conversation"
    } else {
        &format!("all {count} conversations")
    };
    let _ = write!(io::stderr(), "q: delete {what} for good? [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
