//! Committing an exchange: under the lock, to the end of what is there by then, and never at the cost of another one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::conversation::{Conversation, Exchange};
use super::folder::{self, Folder, NoLock};
use super::format::{self, LARGEST};
use super::rules::{self, Found, Wanted};
use super::timestamp::Timestamp;

/// What remains of a conversation that would grow too large: less than the most, so that not every further exchange sets
/// the whole conversation aside again.
const SHRUNK: usize = LARGEST / 10 * 9;

/// Which conversation an exchange belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Intent {
    /// A new one takes the current one's place.
    New,
    /// The one that was created then, wherever it lies by now.
    Follow { created: Timestamp },
    /// A follow-up that found nothing to go on with: a new one, unless another follow-up has begun it by now.
    FollowAnew,
    /// The one that has this name, or is this file: it is begun where it is missing, and keeps all pairs.
    Named,
}

/// Where and how exchanges are committed.
#[derive(Debug)]
pub(crate) struct Committer {
    pub(crate) folder: Folder,
    /// The file of the conversation.
    pub(crate) path: PathBuf,
    /// Which provider and which model answer.
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) asked: Timestamp,
    pub(crate) intent: Intent,
    /// The most pairs that the conversation keeps.
    pub(crate) pairs: usize,
    /// How long conversations set aside are kept; zero sets none aside.
    pub(crate) keep: Option<Duration>,
    pub(crate) expire: Option<Duration>,
}

/// Where an exchange went.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The file that has it; `None` if it was not saved.
    pub(crate) path: Option<PathBuf>,
    /// What was not as asked.
    pub(crate) note: Option<String>,
}

impl Committed {
    fn to(path: PathBuf) -> Committed {
        Committed { path: Some(path), note: None }
    }

    fn with_note(path: PathBuf, note: String) -> Committed {
        Committed { path: Some(path), note: Some(note) }
    }

    fn not_saved(reason: impl std::fmt::Display) -> Committed {
        Committed { path: None, note: Some(format!("this exchange was not saved: {reason}")) }
    }
}

impl Committer {
    /// Saves an exchange. While the lock is another's, `give_up` is asked from time to time, with the time waited.
    pub(crate) fn commit(&self, exchange: &Exchange, give_up: &dyn Fn(Duration) -> bool) -> Committed {
        if format::size(&self.alone(exchange, self.asked)) > LARGEST {
            return Committed::not_saved(format!("it has more than {LARGEST} bytes"));
        }
        if let Err(error) = self.folder.prepare() {
            return Committed::not_saved(error);
        }
        let saved = match self.folder.lock(give_up) {
            Ok(_lock) => {
                let saved = self.commit_locked(exchange);
                self.folder.sweep(self.keep, SystemTime::now());
                saved
            }
            Err(NoLock::Failed(error)) => self.commit_aside(exchange, &error.to_string()),
            Err(NoLock::Busy) => self.commit_aside(exchange, "another q holds the lock"),
            Err(NoLock::Unsupported) => self.commit_aside(exchange, "files cannot be locked there"),
        };
        saved.unwrap_or_else(Committed::not_saved)
    }

    fn commit_locked(&self, exchange: &Exchange) -> io::Result<Committed> {
        self.folder.undo_unfinished(&self.path);
        let found = folder::read(&self.path)?;
        match &self.intent {
            Intent::New => self.begin(found, exchange),
            Intent::FollowAnew => {
                let wanted = Wanted { provider: &self.provider, model: Some(&self.model), expire: self.expire };
                match (rules::obstacle(&found, &wanted, self.asked), found) {
                    (None, Found::Conversation(conversation)) => {
                        self.extend(&self.path, conversation, exchange, self.pairs)
                    }
                    (_, found) => self.begin(found, exchange),
                }
            }
            Intent::Named => match found {
                Found::Nothing => self.begin(found, exchange),
                Found::Conversation(conversation) => self.extend(&self.path, conversation, exchange, usize::MAX),
                Found::Unusable(unusable) => Ok(Committed::not_saved(format!("{}: {unusable}", self.path.display()))),
            },
            Intent::Follow { created } => match found {
                Found::Conversation(conversation) if conversation.created == *created => {
                    self.extend(&self.path, conversation, exchange, self.pairs)
                }
                _ => match self.folder.find_aside(*created)? {
                    // What is set aside is kept as it is, so nothing is cut off at its beginning.
                    Some((path, conversation)) => self.extend(&path, conversation, exchange, usize::MAX),
                    None => self.commit_aside(exchange, "the conversation was cleared or displaced meanwhile"),
                },
            },
        }
    }

    /// A new conversation, in place of what was found.
    fn begin(&self, found: Found, exchange: &Exchange) -> io::Result<Committed> {
        match found {
            Found::Nothing => self.folder.replace(&self.path, &self.alone(exchange, self.asked))?,
            Found::Conversation(displaced) => {
                let begun = self.alone(exchange, self.asked.max(displaced.created.next()));
                if self.keep.is_some_and(|keep| keep.is_zero()) {
                    self.folder.replace(&self.path, &begun)?;
                } else {
                    self.folder.displace(&self.path, &begun, &displaced.created.stamp(), folder::ENDING)?;
                }
            }
            Found::Unusable(_) => {
                let (stamp, ending) = folder::unreadable_name(&self.path);
                self.folder.displace(&self.path, &self.alone(exchange, self.asked), &stamp, ending)?;
            }
        }
        Ok(Committed::to(self.path.clone()))
    }

    fn extend(
        &self,
        path: &Path,
        mut conversation: Conversation,
        exchange: &Exchange,
        pairs: usize,
    ) -> io::Result<Committed> {
        let created = conversation.created;
        conversation.add(exchange.clone(), &self.provider, &self.model);
        conversation.keep_last(pairs);
        if format::size(&conversation) <= LARGEST {
            self.folder.replace(path, &conversation)?;
            return Ok(Committed::to(path.to_owned()));
        }
        conversation.created = created.next();
        format::shrink(&mut conversation, SHRUNK);
        let aside = self.folder.displace(path, &conversation, &created.stamp(), folder::ENDING)?;
        let note = format!(
            "the conversation would have more than {LARGEST} bytes: it goes on with its newest {} messages; all of it is in {}",
            conversation.message_count(),
            aside.display()
        );
        Ok(Committed::with_note(path.to_owned(), note))
    }

    /// A conversation of its own, set aside at once.
    fn commit_aside(&self, exchange: &Exchange, reason: &str) -> io::Result<Committed> {
        let begun = self.alone(exchange, self.asked);
        let path = self.folder.write_aside(&self.asked.stamp(), &begun)?;
        let note = format!("{reason}: this exchange is saved on its own, in {}", path.display());
        Ok(Committed::with_note(path, note))
    }

    /// A conversation of one exchange.
    fn alone(&self, exchange: &Exchange, created: Timestamp) -> Conversation {
        let mut conversation = Conversation::new(&self.provider, &self.model, created);
        conversation.add(exchange.clone(), &self.provider, &self.model);
        conversation
    }
}
