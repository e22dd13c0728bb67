//! Saves an exchange under the lock: no exchange that another q has saved in the meantime is lost.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use super::clear;
use super::conversation::{Conversation, Exchange};
use super::disk;
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
    /// The link that must lead to this conversation once the exchange is saved.
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
        let is_prepared = prepared.is_ok();
        let saved = match prepared {
            // A file elsewhere can be saved without the folder.
            Err(error) if folder.has(&self.handle.path) => Err(error),
            _ => self.save_somewhere(exchange, give_up),
        };
        if is_prepared {
            sweep::sweep_if_due(folder, &self.rules);
        }
        saved.unwrap_or_else(|error| Saved::unsaved(&error))
    }

    fn save_somewhere(&self, exchange: &Exchange, give_up: GiveUp) -> io::Result<Saved> {
        let folder = &self.handle.folder;
        let mut draft = None;
        let lock = if matches!(self.intent, Intent::New | Intent::FollowOrNew) {
            // The others should not wait until it is on the disk.
            draft = Some(Draft::write(folder, self.new_conversation(exchange))?);
            Lock::acquire(&folder.sessions, give_up)
        } else {
            self.handle.lock(give_up)
        };
        let saved = match &lock {
            Ok(_) => self.save_locked(exchange, draft),
            Err(no_lock) => Err(io::Error::other(no_lock.to_string())),
        };
        saved.or_else(|error| self.save_separately(exchange, &error.to_string()))
    }

    /// Reads the conversation again, and saves the exchange where it belongs now.
    fn save_locked(&self, exchange: &Exchange, draft: Option<Draft>) -> io::Result<Saved> {
        let folder = &self.handle.folder;
        let path = match self.handle.link() {
            // Another q may have begun a conversation in the meantime.
            Some(link) if self.intent == Intent::FollowOrNew => folder.follow(&link)?,
            _ => self.handle.path_now()?,
        };
        let mut found = FileContent::Nothing;
        // A new question does not need what another one has left.
        if self.intent != Intent::New {
            found = disk::read_again(&path, self.intent.read())?;
        }
        match rules::decide(&self.intent, found, exchange, &self.responder, &self.rules) {
            Decision::Begin => {
                if let Some(draft) = draft {
                    return self.begin(draft);
                }
                write::create(&path, self.new_conversation(exchange))?;
                Ok(self.saved(path))
            }
            Decision::Extend(conversation) => self.extend(&path, conversation, exchange),
            Decision::Replace(conversation) => self.replace_last(&path, conversation, exchange),
            Decision::Separate(reason) => self.save_separately(exchange, reason),
            Decision::Refuse(reason) => {
                let path = path.display();
                Ok(Saved::unsaved(&format!("{path}: {reason}")))
            }
        }
    }

    /// Begins a conversation, which becomes the current one.
    fn begin(&self, draft: Draft) -> io::Result<Saved> {
        let saved = self.saved(draft.create(&self.handle.folder)?);
        Ok(match self.handle.link() {
            Some(link) => self.make_current(&link, saved),
            None => saved,
        })
    }

    fn extend(
        &self,
        path: &Path,
        mut conversation: Conversation,
        exchange: &Exchange,
    ) -> io::Result<Saved> {
        // One that has more already was continued by its id, and keeps them all.
        let is_trimmed = conversation.exchanges.len() <= self.rules.pairs;
        self.add(&mut conversation, exchange);
        if is_trimmed {
            conversation.keep_last(self.rules.pairs);
        }
        self.rewrite(path, conversation, false)
    }

    fn replace_last(
        &self,
        path: &Path,
        mut conversation: Conversation,
        exchange: &Exchange,
    ) -> io::Result<Saved> {
        conversation.exchanges.pop();
        self.add(&mut conversation, exchange);
        self.rewrite(path, conversation, true)
    }

    /// Writes a changed conversation. `drops`: an exchange was removed, which an earlier state keeps.
    fn rewrite(
        &self,
        path: &Path,
        mut conversation: Conversation,
        drops: bool,
    ) -> io::Result<Saved> {
        let mut bytes = format::to_fitting_bytes(&mut conversation);
        let is_too_large =
            matches!(&bytes, Err(error) if error.kind() == io::ErrorKind::FileTooLarge);
        if is_too_large {
            format::shrink(&mut conversation)?;
            bytes = format::to_bytes(&conversation);
        }
        let keeps_state = (drops || is_too_large) && self.rules.keeps();
        let state = write::rewrite(&self.handle.folder, path, bytes?, keeps_state)?;
        let mut saved = self.saved(path.to_owned());
        if is_too_large {
            saved.note = Some(note_too_large(&conversation, state.as_deref()));
        }
        if let Some(link) = &self.becomes_current {
            saved = self.make_current(link, saved);
        }
        Ok(saved)
    }

    /// Makes the link lead to a conversation that was saved. The one that it leaves is removed if the settings say so. A
    /// failure becomes a note, because the exchange is saved.
    fn make_current(&self, link: &Path, mut saved: Saved) -> Saved {
        let Some(path) = &saved.path else {
            return saved;
        };
        let left = match self.point(link, path) {
            Ok(left) => left,
            Err(error) => {
                let id = saved.id.as_deref().unwrap_or_default();
                saved.note = Some(format!(
                    "{error}; -f does not continue this conversation, but q -s {id} does"
                ));
                return saved;
            }
        };
        if let Some(left) = left
            && left != *path
            && !self.rules.keeps()
            && self.handle.folder.is_auto_named(&left)
            && let Err(error) = clear::remove_left(&self.handle.folder, &left)
        {
            saved.note = Some(format!(
                "the conversation before this one is still there: {error}"
            ));
        }
        saved
    }

    /// Makes the link lead to a conversation. Returns what it led to before, whose time to be kept starts now.
    fn point(&self, link: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
        let folder = &self.handle.folder;
        pointer::adopt(folder, link)?;
        let left = folder.target(link)?;
        if let Some(left) = &left
            && folder.is_auto_named(left)
        {
            disk::touch(left);
        }
        // Lists show it before the one that it leaves.
        disk::touch(path);
        if left.as_deref() != Some(path) {
            pointer::set(link, path)?;
        }
        Ok(left)
    }

    /// Saves in a conversation of its own, even if the lock cannot be had.
    fn save_separately(&self, exchange: &Exchange, reason: &str) -> io::Result<Saved> {
        let folder = &self.handle.folder;
        folder.prepare()?;
        let draft = Draft::write(folder, self.new_conversation(exchange))?;
        // It is free unless this run holds it already, or nobody can have it.
        let _lock = Lock::acquire(&folder.sessions, &|_| true);
        let mut saved = self.saved(draft.create(folder)?);
        if let Some(path) = &saved.path {
            saved.note = Some(format!(
                "{reason}: this exchange is saved on its own, in {}",
                path.display()
            ));
        }
        saved.option = format!(" -s {}", saved.id.as_deref().unwrap_or_default());
        Ok(saved)
    }

    fn saved(&self, path: PathBuf) -> Saved {
        Saved {
            id: Some(self.handle.folder.id(&path)),
            path: Some(path),
            option: self.handle.which.option(),
            note: None,
        }
    }

    fn model(&self) -> &str {
        self.responder.model.as_deref().unwrap_or_default()
    }

    /// A conversation of this exchange alone.
    fn new_conversation(&self, exchange: &Exchange) -> Conversation {
        let responder = &self.responder;
        let mut conversation = Conversation::new(&responder.provider, self.model(), responder.at);
        self.add(&mut conversation, exchange);
        conversation
    }

    fn add(&self, conversation: &mut Conversation, exchange: &Exchange) {
        conversation.cut_results();
        conversation.hand_over(&self.responder.provider, self.model());
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
