//! Saves an exchange under the lock: no exchange that another q has saved in the meantime is lost.

use std::fmt::Display;
use std::io;
use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
use std::path::{Path, PathBuf};

use super::conversation::{Conversation, Exchange};
use super::disk::{self, Draft};
use super::format::{self, MAX_SIZE};
use super::lock::{GiveUp, Lock};
use super::name::option_of;
use super::rules::{self, AnsweredBy, Intent, Rules, is_removed_when_left};
use super::store::Handle;
use super::{edit, sweep};
use crate::scratch::ScratchPlaces;
use crate::text::size::in_units;

/// A saver of an exchange, which knows where and how.
#[derive(Clone)]
pub struct Saver {
    pub handle: Handle,
    pub intent: Intent,
    /// The link that must lead to this conversation once the exchange is saved; one that begins is current.
    pub becomes_current: Option<PathBuf>,
    pub responder: AnsweredBy,
    /// Whether a user chose the provider or the model for this conversation.
    pub pins: bool,
    /// A system prompt that comes with this exchange and stays with the conversation.
    pub system: Option<String>,
    /// The tools that come with this exchange and stay with the conversation; an empty list removes the earlier ones.
    pub tools: Option<Vec<String>>,
    pub rules: Rules,
    /// Where killed runs may have left temporary directories.
    pub scratch_places: ScratchPlaces,
}

/// The result of a save: where the exchange is, or why it is nowhere.
#[derive(Default)]
pub struct SaveOutcome {
    /// The file that contains it; `None` if it was not saved.
    pub path: Option<PathBuf>,
    /// The value for `-s` that names its conversation.
    pub id: Option<String>,
    /// The option that names its conversation; empty for the current one.
    pub option: String,
    /// What did not go as planned, in words for the user.
    pub note: Option<String>,
}

impl SaveOutcome {
    /// Returns the outcome of a save that failed, for this reason.
    pub fn unsaved(reason: &dyn Display) -> SaveOutcome {
        SaveOutcome {
            note: Some(format!("this exchange was not saved: {reason}")),
            ..SaveOutcome::default()
        }
    }
}

/// Adds to the reason why nothing was saved what to do about a directory that cannot be written. A full disk, or a file in the place
/// of the directory, can be corrected where it is.
fn advised(error: io::Error) -> io::Error {
    if !matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) {
        return error;
    }
    let advice = "set HOME or XDG_STATE_HOME to a directory that you can write in, or Q_SAVE=false to save nothing";
    io::Error::new(error.kind(), format!("{error}; {advice}"))
}

impl Saver {
    /// Saves an exchange.
    pub fn save(&self, exchange: &Exchange, give_up: GiveUp) -> SaveOutcome {
        let directory = &self.handle.directory;
        let (lock, saved) = match self.prepare(exchange, give_up) {
            Ok((lock, draft)) => (Some(lock), self.save_locked(exchange, draft)),
            Err(error) => (None, Err(error)),
        };
        let saved = saved.or_else(|error| self.save_separately(exchange, &error));
        drop(lock);
        // A file elsewhere can be saved without the directory.
        if directory.prepare().is_ok() {
            sweep::sweep_if_due(directory, &self.rules, &self.scratch_places);
        }
        saved.unwrap_or_else(|error| SaveOutcome::unsaved(&advised(error)))
    }

    /// Waits for the lock. Returns it, and the draft of a conversation that the exchange may begin.
    fn prepare(&self, exchange: &Exchange, give_up: GiveUp) -> io::Result<(Lock, Option<Draft>)> {
        self.handle.prepare_directory()?;
        let request = self.handle.prepare_lock();
        let mut draft = None;
        if matches!(self.intent, Intent::New | Intent::FollowOrNew) {
            // The others should not wait until it is on the disk.
            draft = Some(self.draft(exchange)?);
        }
        Ok((request.wait(give_up)?, draft))
    }

    /// Reads the conversation again, and saves the exchange where it belongs now. The caller holds the lock.
    fn save_locked(&self, exchange: &Exchange, draft: Option<Draft>) -> io::Result<SaveOutcome> {
        let directory = &self.handle.directory;
        // In the meantime another q may have begun a conversation, or put a link in the place of a file.
        let place = match self.intent {
            Intent::FollowOrNew => &self.handle.link,
            _ => &self.handle.path,
        };
        let path = directory.read_link(place)?;
        let mut found = Ok(None);
        // A new question does not need what another one has left.
        if self.intent != Intent::New {
            found = disk::read_again(&path, self.intent.continued());
        }
        let decided = rules::decide(&self.intent, found, exchange, &self.responder, &self.rules);
        if let Some(conversation) = decided.map_err(io::Error::other)? {
            return self.extend(path, conversation, exchange);
        }
        let draft = draft.map_or_else(|| self.draft(exchange), Ok)?;
        Ok(self.finish(draft.create(directory)?))
    }

    /// Adds an exchange to a conversation, or puts it in the place of the last one.
    fn extend(
        &self,
        path: PathBuf,
        mut conversation: Conversation,
        exchange: &Exchange,
    ) -> io::Result<SaveOutcome> {
        // One that has more already was continued by its id, and keeps them all.
        let is_trimmed = conversation.exchanges.len() <= self.rules.pairs;
        let replaces = matches!(self.intent, Intent::Again(_));
        if replaces {
            conversation.exchanges.pop();
        }
        self.add(&mut conversation, exchange);
        if is_trimmed {
            conversation.keep_last(self.rules.pairs);
        }
        let wanted = conversation.exchanges.len();
        format::fit(&mut conversation)?;
        let is_shrunk = conversation.exchanges.len() < wanted;
        let keeps_backup = (replaces || is_shrunk) && self.rules.keeps();
        let backup = disk::rewrite(&self.handle.directory, &path, &conversation, keeps_backup)?;
        let mut saved = self.finish(path);
        if is_shrunk && saved.note.is_none() {
            let count = conversation.message_count();
            let mut note = format!(
                "the conversation would have more than {size}: it continues with its newest {count} messages",
                size = in_units(MAX_SIZE)
            );
            if let Some(backup) = backup {
                note += &format!("; the full conversation is in {}", backup.display());
            }
            saved.note = Some(note);
        }
        Ok(saved)
    }

    /// Says where the exchange is, after making that conversation the current one if it is to be. A note says what failed.
    fn finish(&self, path: PathBuf) -> SaveOutcome {
        let id = self.handle.directory.id(&path);
        let mut note = None;
        if let Some(link) = &self.becomes_current
            && *link != path
        {
            match disk::set_link(&self.handle.directory, link, &path) {
                Ok(Some(left)) => note = self.leave(&left).err(),
                Ok(None) => {}
                Err(error) => {
                    note = Some(format!(
                        "{error}; to continue this conversation, use q{} instead of -f",
                        option_of(&id)
                    ));
                }
            }
        }
        SaveOutcome {
            option: self.option_for(&path, &id),
            id: Some(id),
            path: Some(path),
            note,
        }
    }

    /// Returns the option that names the conversation in this file. The link to the current one may lead elsewhere by now, because
    /// another q has begun a conversation, or because it could not be set.
    fn option_for(&self, path: &Path, id: &str) -> String {
        let Handle {
            directory,
            which,
            link,
            ..
        } = &self.handle;
        let is_led_to = directory.read_link(link).is_ok_and(|led| led == path);
        if which.is_current() && !is_led_to {
            return option_of(id);
        }
        which.option()
    }

    /// Removes a conversation that is not current any more, if the settings say so.
    fn leave(&self, left: &Path) -> Result<(), String> {
        if self.rules.keeps() {
            return Ok(());
        }
        let directory = &self.handle.directory;
        let removed = match is_removed_when_left(directory.kind(left), disk::read(left)) {
            Ok(true) => edit::remove_left(directory, left),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(|error| format!("could not remove the previous conversation: {error}"))
    }

    /// Saves in a conversation of its own, even if the lock could not be had.
    fn save_separately(
        &self,
        exchange: &Exchange,
        reason: &dyn Display,
    ) -> io::Result<SaveOutcome> {
        let directory = &self.handle.directory;
        directory.prepare()?;
        let draft = self.draft(exchange)?;
        let path = draft.create(directory)?;
        let id = directory.id(&path);
        let place = path.display();
        Ok(SaveOutcome {
            note: Some(format!(
                "{reason}; saved as a separate conversation: {place}"
            )),
            option: option_of(&id),
            id: Some(id),
            path: Some(path),
        })
    }

    /// Returns a conversation of this exchange alone, on the disk.
    fn draft(&self, exchange: &Exchange) -> io::Result<Draft> {
        let mut conversation = Conversation::new(self.responder.at);
        self.add(&mut conversation, exchange);
        format::fit(&mut conversation)?;
        Draft::write(&self.handle.directory, conversation)
    }

    fn add(&self, conversation: &mut Conversation, exchange: &Exchange) {
        conversation.cut_results();
        conversation.provider.clone_from(&self.responder.provider);
        conversation.model = self.responder.model.clone().unwrap_or_default();
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
