//! Saves an exchange under the lock: no exchange that another q has saved in the meantime is lost.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::conversation::{Conversation, Exchange};
use super::files::{self, ReplaceError};
use super::folder::{ConversationLocation, Folder};
use super::format::{self, MAX_SIZE};
use super::lock::Lock;
use super::rules::{self, Decision, FileContent, Intent, Responder, Rules};
use super::timestamp::Timestamp;

/// Where and how an exchange is saved.
#[derive(Debug, Clone)]
pub struct Committer {
    pub folder: Folder,
    pub location: ConversationLocation,
    pub intent: Intent,
    /// The link that must lead to this conversation once the exchange is saved.
    pub becomes_current: Option<PathBuf>,
    /// Which provider and which model answer.
    pub provider: String,
    pub model: String,
    /// A user chose the provider or the model for this conversation.
    pub pins: bool,
    /// A system prompt that comes with this exchange and stays with the conversation.
    pub system: Option<String>,
    /// The tools that come with this exchange and stay with the conversation; an empty list removes the earlier ones.
    pub tools: Option<Vec<String>>,
    pub asked: Timestamp,
    pub rules: Rules,
    /// The conversation as it was read before the question was asked.
    pub known: Option<Arc<Conversation>>,
}

/// What became of an exchange: where it was saved, or why it was not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SaveReport {
    /// The file that contains it; `None` if it was not saved.
    pub path: Option<PathBuf>,
    /// The value for `-s` that names its conversation.
    pub id: Option<String>,
    /// It was saved in a conversation of its own.
    pub saved_separately: bool,
    /// What did not go as planned, in words for the user.
    pub note: Option<String>,
}

impl SaveReport {
    /// It was not saved, for this reason.
    pub fn unsaved(reason: &dyn Display) -> SaveReport {
        SaveReport {
            note: Some(format!("this exchange was not saved: {reason}")),
            ..SaveReport::default()
        }
    }
}

impl Committer {
    /// Saves an exchange. While another process has the lock, calls `give_up` from time to time with the time waited.
    pub fn commit(&self, exchange: &Exchange, give_up: &dyn Fn(Duration) -> bool) -> SaveReport {
        let prepared = self.folder.prepare();
        let may_sweep = prepared.is_ok();
        let saved = match prepared {
            // A file elsewhere can be saved without the folder.
            Err(error) if self.folder.has(&self.location.path) => Err(error),
            _ => self.save(exchange, give_up),
        };
        if may_sweep {
            self.folder.sweep_if_due(&self.rules, SystemTime::now());
        }
        saved.unwrap_or_else(|error| SaveReport::unsaved(&error))
    }

    fn save(
        &self,
        exchange: &Exchange,
        give_up: &dyn Fn(Duration) -> bool,
    ) -> io::Result<SaveReport> {
        if self.intent == Intent::New
            && self.rules.keeps()
            && let Some(link) = &self.location.link
            && (link.is_symlink() || !link.exists())
        {
            // Nothing is moved or removed, so no lock is needed.
            return self.begin_current(exchange, link, None);
        }
        // The lock is that of the folder in which something changes. A new conversation changes the link.
        let changed = match (&self.intent, &self.location.link) {
            (Intent::New | Intent::FollowOrNew, Some(link)) => link,
            _ => &self.location.path,
        };
        let lock = match self.folder.lock(changed, give_up) {
            Ok(lock) => lock,
            Err(no_lock) => return self.save_separately(exchange, None, &no_lock.to_string()),
        };
        let applied = self.apply(exchange, &lock);
        Ok(applied.unwrap_or_else(|failed| self.save_after_failure(exchange, &lock, failed)))
    }

    fn save_after_failure(
        &self,
        exchange: &Exchange,
        lock: &Lock,
        failed: ReplaceError,
    ) -> SaveReport {
        let mut saved = self
            .save_separately(exchange, Some(lock), &failed.error.to_string())
            .unwrap_or_else(|error| SaveReport::unsaved(&error));
        if failed.may_be_replaced {
            let note = saved.note.get_or_insert_default();
            note.push_str("\nit is not certain whether the conversation has changed");
            if let Some(state) = failed.state {
                note.push_str("; ");
                note.push_str(&state);
            }
        }
        saved
    }

    fn apply(&self, exchange: &Exchange, lock: &Lock) -> Result<SaveReport, ReplaceError> {
        let (path, intent) = self.path_now(lock)?;
        // If there was no link when the question was asked, another q may have made one since. Its conversation is not
        // extended, because the new file would replace the link.
        let is_link_path = self.location.link.as_ref() == Some(&path);
        let is_missing_or_link = match path.symlink_metadata() {
            Ok(metadata) => metadata.is_symlink(),
            Err(_) => true,
        };
        let had_no_link = is_link_path && is_missing_or_link;
        let found = if had_no_link {
            FileContent::Nothing
        } else {
            files::read_again(&path, self.known.as_deref())?
        };
        let responder = Responder {
            provider: self.provider.clone(),
            model: Some(self.model.clone()),
            at: self.asked,
        };
        match rules::decide(&intent, found, exchange, &responder, &self.rules) {
            Decision::Begin => {
                if let Some(link) = &self.location.link {
                    return Ok(self.begin_current(exchange, link, Some(lock))?);
                }
                let conversation = self.new_conversation(exchange);
                let bytes = format::to_bytes(&conversation)?;
                self.folder.write_new(&path, &bytes, Some(lock))?;
                Ok(self.saved(path, &conversation))
            }
            Decision::Extend(conversation) => {
                self.extend(&path, conversation, exchange, false, lock)
            }
            Decision::Replace(mut conversation) => {
                conversation.exchanges.pop();
                self.extend(&path, conversation, exchange, true, lock)
            }
            Decision::Separate(reason) => Ok(self.save_separately(exchange, Some(lock), reason)?),
            Decision::Refuse(reason) => Ok(SaveReport::unsaved(&format!(
                "{}: {reason}",
                path.display()
            ))),
        }
    }

    /// The file of the conversation now that q has the lock, and what to do with it.
    fn path_now(&self, lock: &Lock) -> io::Result<(PathBuf, Intent)> {
        let ConversationLocation { path, link, .. } = &self.location;
        let mut intent = self.intent.clone();
        // What stays with a conversation must not get into one that another q has begun.
        if intent == Intent::FollowOrNew && (self.system.is_some() || self.tools.is_some()) {
            intent = Intent::New;
        }
        let is_in_place_of_link = link.as_ref() == Some(path);
        let identity = match &mut intent {
            Intent::New | Intent::FollowOrNew => {
                let changed = link.as_ref().unwrap_or(path);
                return Ok((self.folder.settle(changed, lock)?, intent));
            }
            Intent::Follow(identity) | Intent::Again(identity, _) if is_in_place_of_link => {
                identity
            }
            _ => return Ok((self.folder.settle(path, lock)?, intent)),
        };
        let was_there = match files::read(path)? {
            FileContent::Conversation(now) => identity.matches(&now, self.rules.pairs),
            _ => false,
        };
        let settled = self.folder.settle(path, lock)?;
        if let FileContent::Conversation(now) = files::read(&settled)?
            && was_there
        {
            // It has got another id if its own was taken.
            identity.created = now.created;
            return Ok((settled, intent));
        }
        // Another q has moved it to the file of its id, and has begun a new conversation.
        Ok((self.folder.file(&identity.created.id()), intent))
    }

    /// A new conversation, which becomes the current one.
    fn begin_current(
        &self,
        exchange: &Exchange,
        link: &Path,
        lock: Option<&Lock>,
    ) -> io::Result<SaveReport> {
        let left = self.folder.leave(link, lock)?;
        let mut conversation = self.new_conversation(exchange);
        let path = self.folder.create(&mut conversation, lock)?;
        Ok(self.make_current(Some(link), left, self.saved(path, &conversation)))
    }

    /// Makes the link, if there is one, lead to a conversation that was saved. The one that was `left` is removed if
    /// the settings say so. A failure becomes a note, because the exchange is saved.
    fn make_current(
        &self,
        link: Option<&Path>,
        left: Option<PathBuf>,
        mut saved: SaveReport,
    ) -> SaveReport {
        let (Some(link), Some(path)) = (link, &saved.path) else {
            return saved;
        };
        match self.folder.point(link, path) {
            Ok(path) => saved.path = Some(path),
            Err(error) => {
                let id = saved.id.as_deref().unwrap_or_default();
                saved.note = Some(format!("{error}\nq -s {id} continues this conversation"));
                return saved;
            }
        }
        if !self.rules.keeps()
            && let Some(left) = left
            && saved.path.as_ref() != Some(&left)
            && let Err(error) = self.folder.remove_left(&left)
        {
            saved.note = Some(format!(
                "the conversation before this one is still there: {error}"
            ));
        }
        saved
    }

    /// Writes a conversation with the exchange at its end. `drops`: another exchange was removed, which an earlier state
    /// keeps.
    fn extend(
        &self,
        path: &Path,
        mut conversation: Conversation,
        exchange: &Exchange,
        drops: bool,
        lock: &Lock,
    ) -> Result<SaveReport, ReplaceError> {
        self.add(&mut conversation, exchange);
        conversation.keep_last(self.rules.pairs);
        let mut bytes = format::to_bytes(&conversation);
        let is_too_large =
            matches!(&bytes, Err(error) if error.kind() == io::ErrorKind::FileTooLarge);
        if is_too_large {
            format::shrink(&mut conversation)?;
            bytes = format::to_bytes(&conversation);
        }
        let bytes = bytes?;
        let becomes_current = self.becomes_current.as_deref();
        let mut left = None;
        if let Some(link) = becomes_current {
            left = self.folder.leave(link, Some(lock))?;
        }
        let keeps_state = (drops || is_too_large) && self.rules.keeps();
        let state = rewrite(&self.folder, path, &bytes, keeps_state)?;
        let mut saved = self.saved(path.to_owned(), &conversation);
        if is_too_large {
            saved.note = Some(note_too_large(&conversation, state.as_deref()));
        }
        Ok(self.make_current(becomes_current, left, saved))
    }

    /// Saves in a conversation of its own, if necessary without the lock.
    fn save_separately(
        &self,
        exchange: &Exchange,
        lock: Option<&Lock>,
        reason: &str,
    ) -> io::Result<SaveReport> {
        self.folder.prepare()?;
        let mut conversation = self.new_conversation(exchange);
        let path = self.folder.create(&mut conversation, lock)?;
        let note = format!(
            "{reason}: this exchange is saved on its own, in {}",
            path.display()
        );
        let mut saved = self.saved(path, &conversation);
        saved.note = Some(note);
        saved.saved_separately = true;
        Ok(saved)
    }

    fn saved(&self, path: PathBuf, conversation: &Conversation) -> SaveReport {
        let id = self.folder.id(&path, conversation.created);
        SaveReport {
            path: Some(path),
            id: Some(id),
            ..SaveReport::default()
        }
    }

    /// A conversation of this exchange alone.
    fn new_conversation(&self, exchange: &Exchange) -> Conversation {
        let mut conversation = Conversation::new(&self.provider, &self.model, self.asked);
        self.add(&mut conversation, exchange);
        conversation
    }

    fn add(&self, conversation: &mut Conversation, exchange: &Exchange) {
        conversation.hand_over(&self.provider, &self.model);
        conversation.add(exchange.clone());
        conversation.pinned |= self.pins;
        if self.system.is_some() {
            conversation.system.clone_from(&self.system);
        }
        if let Some(tools) = &self.tools {
            conversation.tools.clone_from(tools);
        }
    }
}

/// Replaces a conversation. With `keeps_state`, the file as it was becomes an earlier state, whose path is returned.
fn rewrite(
    folder: &Folder,
    path: &Path,
    bytes: &[u8],
    keeps_state: bool,
) -> Result<Option<PathBuf>, ReplaceError> {
    let mut state = None;
    if keeps_state {
        state = Some(folder.keep_state(path)?);
    }
    let Err(mut failed) = folder.replace(path, bytes) else {
        return Ok(state);
    };
    if let Some(state) = state {
        if failed.may_be_replaced {
            let option = folder.which(&state).option();
            failed.state = Some(format!("q{option} has the state before"));
        } else {
            let _ = fs::remove_file(state);
        }
    }
    Err(failed)
}

/// The note for a conversation that lost its oldest exchanges; `state` has it as it was.
fn note_too_large(rest: &Conversation, state: Option<&Path>) -> String {
    let count = rest.message_count();
    let mut note = format!(
        "the conversation would have more than {MAX_SIZE} bytes: it continues with its newest {count} messages"
    );
    if let Some(state) = state {
        note += &format!("; the full conversation is in {}", state.display());
    }
    note
}

/// Removes the last exchange of a conversation; an earlier state keeps it. Returns the conversation's id and the
/// exchange, or `None` if there was none.
pub fn undo(
    folder: &Folder,
    path: &Path,
    rules: &Rules,
    lock: Option<&Lock>,
) -> Result<Option<(String, Exchange)>, ReplaceError> {
    let path = match lock {
        Some(lock) => folder.settle(path, lock)?,
        None => path.to_owned(),
    };
    let FileContent::Conversation(mut conversation) = files::read(&path)? else {
        return Ok(None);
    };
    let Some(undone) = conversation.undo() else {
        return Ok(None);
    };
    let bytes = format::to_bytes(&conversation)?;
    rewrite(folder, &path, &bytes, rules.keeps())?;
    Ok(Some((folder.id(&path, conversation.created), undone)))
}

/// Writes a conversation into a file that must not exist yet, else the error is `AlreadyExists`.
pub fn copy(
    folder: &Folder,
    path: &Path,
    conversation: &Conversation,
    lock: Option<&Lock>,
) -> io::Result<()> {
    folder.write_new(path, &format::to_bytes(conversation)?, lock)
}
