//! Saves an exchange under the lock: no exchange that another q has saved in the meantime is lost.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use super::conversation::{Conversation, Exchange};
use super::disk;
use super::edit;
use super::format::{self, MAX_SIZE};
use super::lock::{GiveUp, Lock};
use super::pointer;
use super::rules::{self, Decision, FileContent, Intent, Responder, Rules};
use super::store::Handle;
use super::sweep;
use super::write::{self, Draft};

/// Where and how an exchange is saved.
#[derive(Debug, Clone)]
pub struct Saver {
    pub handle: Handle,
    pub intent: Intent,
    /// The link that must lead to this conversation once the exchange is saved; one that begins is current.
    pub becomes_current: Option<PathBuf>,
    pub responder: Responder,
    /// A user chose the provider or the model for this conversation.
    pub pins: bool,
    /// A system prompt that comes with this exchange and stays with the conversation.
    pub system: Option<String>,
    /// The tools that come with this exchange and stay with the conversation; an empty list removes the earlier ones.
    pub tools: Option<Vec<String>>,
    pub rules: Rules,
}

/// What became of an exchange: where it was saved, or why it was not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The file that contains it; `None` if it was not saved.
    pub path: Option<PathBuf>,
    /// The value for `-s` that names its conversation.
    pub id: Option<String>,
    /// The option that names its conversation; empty for the current one.
    pub option: String,
    /// What did not go as planned, in words for the user.
    pub note: Option<String>,
}

impl Saved {
    /// It was not saved, for this reason.
    pub fn unsaved(reason: &dyn Display) -> Saved {
        Saved {
            note: Some(format!("this exchange was not saved: {reason}")),
            ..Saved::default()
        }
    }
}

impl Saver {
    /// Saves an exchange.
    pub fn save(&self, exchange: &Exchange, give_up: GiveUp) -> Saved {
        let folder = &self.handle.folder;
        let prepared = folder.prepare();
        // A file elsewhere can be saved without the folder.
        if let Err(error) = &prepared
            && folder.has(&self.handle.path)
        {
            return Saved::unsaved(error);
        }
        let saved = self.save_locked(exchange, give_up);
        let saved = saved.or_else(|error| self.save_separately(exchange, &error));
        if prepared.is_ok() {
            sweep::sweep_if_due(folder, &self.rules);
        }
        saved.unwrap_or_else(|error| Saved::unsaved(&error))
    }

    /// Reads the conversation again under the lock, and saves the exchange where it belongs now.
    fn save_locked(&self, exchange: &Exchange, give_up: GiveUp) -> io::Result<Saved> {
        let folder = &self.handle.folder;
        let mut draft = None;
        let _lock = if matches!(self.intent, Intent::New | Intent::FollowOrNew) {
            // The others should not wait until it is on the disk.
            draft = Some(self.draft(exchange)?);
            Lock::acquire(&folder.sessions, give_up)?
        } else {
            self.handle.lock(give_up)?
        };
        // In the meantime another q may have begun a conversation, or put a link in the place of a file.
        let path = match &self.becomes_current {
            Some(link) if self.intent == Intent::FollowOrNew => folder.follow(link)?,
            _ => folder.follow(&self.handle.path)?,
        };
        let mut found = FileContent::Nothing;
        // A new question does not need what another one has left.
        if self.intent != Intent::New {
            found = disk::read_again(&path, self.intent.read())?;
        }
        match rules::decide(&self.intent, found, exchange, &self.responder, &self.rules) {
            Decision::Begin => {
                let draft = draft.map_or_else(|| self.draft(exchange), Ok)?;
                Ok(self.saved(draft.create(folder)?))
            }
            Decision::Extend(conversation) => self.extend(path, conversation, exchange, false),
            Decision::Replace(conversation) => self.extend(path, conversation, exchange, true),
            Decision::Separate(reason) => Err(io::Error::other(reason)),
        }
    }

    /// Adds an exchange to a conversation, or puts it in the place of the last one.
    fn extend(
        &self,
        path: PathBuf,
        mut conversation: Conversation,
        exchange: &Exchange,
        replaces: bool,
    ) -> io::Result<Saved> {
        // One that has more already was continued by its id, and keeps them all.
        let is_trimmed = conversation.exchanges.len() <= self.rules.pairs;
        if replaces {
            conversation.exchanges.pop();
        }
        self.add(&mut conversation, exchange);
        if is_trimmed {
            conversation.keep_last(self.rules.pairs);
        }
        let wanted = conversation.exchanges.len();
        let bytes = format::to_fitting_bytes(&mut conversation)?;
        let is_shrunk = conversation.exchanges.len() < wanted;
        let keeps_state = (replaces || is_shrunk) && self.rules.keeps();
        let state = write::rewrite(&self.handle.folder, &path, &bytes, keeps_state)?;
        let mut saved = self.saved(path);
        if is_shrunk && saved.note.is_none() {
            saved.note = Some(note_too_large(&conversation, state.as_deref()));
        }
        Ok(saved)
    }

    /// Makes the conversation in which the exchange was saved the current one, if it is to be that.
    fn saved(&self, path: PathBuf) -> Saved {
        let id = self.handle.folder.id(&path);
        let mut note = None;
        if let Some(link) = &self.becomes_current
            && *link != path
        {
            note = self.make_current(link, &path, &id);
        }
        Saved {
            id: Some(id),
            path: Some(path),
            option: self.handle.which.option(),
            note,
        }
    }

    /// Makes the link lead to a conversation. The one that it leaves is removed if the settings say so. Returns a note if that
    /// cannot be done: the exchange is saved.
    fn make_current(&self, link: &Path, path: &Path, id: &str) -> Option<String> {
        let folder = &self.handle.folder;
        let left = match pointer::set(folder, link, path) {
            Ok(left) => left,
            Err(error) => {
                return Some(format!(
                    "{error}; -f does not continue this conversation, but q -s {id} does"
                ));
            }
        };
        let is_kept = self.rules.keeps() || left == path || left == link;
        if is_kept || !folder.is_auto_named(&left) {
            return None;
        }
        let error = edit::remove_left(folder, &left).err()?;
        Some(format!(
            "the conversation before this one is still there: {error}"
        ))
    }

    /// Saves in a conversation of its own, even if the lock cannot be had.
    fn save_separately(&self, exchange: &Exchange, reason: &dyn Display) -> io::Result<Saved> {
        let folder = &self.handle.folder;
        folder.prepare()?;
        let draft = self.draft(exchange)?;
        let _lock = Lock::acquire(&folder.sessions, &|_| true);
        let path = draft.create(folder)?;
        let id = folder.id(&path);
        let place = path.display();
        Ok(Saved {
            note: Some(format!(
                "{reason}: this exchange is saved on its own, in {place}"
            )),
            option: format!(" -s {id}"),
            id: Some(id),
            path: Some(path),
        })
    }

    /// A conversation of this exchange alone, on the disk.
    fn draft(&self, exchange: &Exchange) -> io::Result<Draft> {
        let mut conversation = self.responder.conversation();
        self.add(&mut conversation, exchange);
        let bytes = format::to_fitting_bytes(&mut conversation)?;
        Draft::write(&self.handle.folder, conversation, &bytes)
    }

    fn add(&self, conversation: &mut Conversation, exchange: &Exchange) {
        conversation.cut_results();
        conversation.provider.clone_from(&self.responder.provider);
        conversation.model = self.responder.model();
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
