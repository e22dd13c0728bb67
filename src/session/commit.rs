//! Commits an exchange: under the lock, to the end of the conversation as it is then, and without losing another one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::conversation::{Conversation, Exchange};
use super::folder::{self, Folder};
use super::format::{self, LARGEST, Loss};
use super::lock::{Lock, NoLock};
use super::rules::{self, Found, Wanted};
use super::timestamp::Timestamp;

/// What remains of a conversation that would grow too large: less than the limit, so that not every further exchange
/// archives the conversation again.
const SHRUNK: usize = LARGEST / 10 * 9;

/// Which conversation an exchange belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Intent {
    /// A new one, which replaces the current one.
    New,
    /// The one created at this time, wherever it is by now.
    Follow { created: Timestamp },
    /// A follow-up that found nothing to continue: a new one, unless another follow-up has begun it by now.
    FollowOrNew,
    /// The one with this name, or in this file. It is created if it is missing, and keeps all exchanges.
    Named,
    /// The one created at this time, in place of its last exchange, if that is still the last.
    Again { created: Timestamp, last: Exchange },
}

/// Where and how exchanges are committed.
#[derive(Debug, Clone)]
pub(crate) struct Committer {
    pub(crate) folder: Folder,
    /// The file of the conversation.
    pub(crate) path: PathBuf,
    /// Which provider and which model answer.
    pub(crate) provider: String,
    pub(crate) model: String,
    /// The conversation keeps its own provider and model, and the answer names those that gave it.
    pub(crate) keeps_own: bool,
    /// A system prompt that comes with this exchange and stays with the conversation.
    pub(crate) system: Option<String>,
    /// The tools that come with this exchange and stay with the conversation; an empty list removes the earlier ones.
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) asked: Timestamp,
    pub(crate) intent: Intent,
    /// The most exchanges that the conversation keeps.
    pub(crate) pairs: usize,
    /// How long archived conversations are kept; `None` is for ever, zero archives none.
    pub(crate) keep: Option<Duration>,
    /// See [`Wanted::expire`].
    pub(crate) expire: Option<Duration>,
    /// See [`Wanted::hands_over`].
    pub(crate) hands_over: bool,
}

/// Where an exchange went.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The file that contains it; `None` if it was not saved.
    pub(crate) path: Option<PathBuf>,
    /// When its conversation was created.
    pub(crate) created: Option<Timestamp>,
    /// It was saved in a conversation of its own.
    pub(crate) alone: bool,
    /// What did not go as asked.
    pub(crate) note: Option<String>,
}

impl Committed {
    fn to(path: PathBuf, created: Timestamp) -> Committed {
        Committed { path: Some(path), created: Some(created), ..Committed::default() }
    }

    fn not_saved(reason: impl std::fmt::Display) -> Committed {
        Committed { note: Some(format!("this exchange was not saved: {reason}")), ..Committed::default() }
    }

    /// Adds another note first, unless nothing was saved.
    fn after(self, note: String) -> Committed {
        match (&self.path, &self.note) {
            (None, _) => self,
            (_, None) => Committed { note: Some(note), ..self },
            (_, Some(further)) => Committed { note: Some(format!("{note}\n{further}")), ..self },
        }
    }
}

impl Committer {
    /// Saves an exchange. `model` is the one that answered, if not the chosen one. While another process has the lock, `give_up` is
    /// asked from time to time, with the time waited.
    pub(crate) fn commit(
        &self,
        exchange: &Exchange,
        model: Option<&str>,
        give_up: &dyn Fn(Duration) -> bool,
    ) -> Committed {
        match model {
            Some(model) => Committer { model: model.to_owned(), ..self.clone() }.commit_as_chosen(exchange, give_up),
            None => self.commit_as_chosen(exchange, give_up),
        }
    }

    fn commit_as_chosen(&self, exchange: &Exchange, give_up: &dyn Fn(Duration) -> bool) -> Committed {
        let mut alone = self.alone(exchange, self.asked);
        if format::size(&alone) <= LARGEST {
            return self.commit_fitting(exchange, give_up);
        }
        let lost = format::shrink(&mut alone, LARGEST);
        match &alone.exchanges[..] {
            [shrunk] if format::size(&alone) <= LARGEST => {
                let first = match lost.attachments {
                    1 => "its first attachment".to_owned(),
                    count => format!("its first {count} attachments"),
                };
                let note =
                    format!("this exchange has more than {LARGEST} bytes: it is saved without the contents of {first}");
                self.commit_fitting(shrunk, give_up).after(note)
            }
            _ => Committed::not_saved(format!("it has more than {LARGEST} bytes")),
        }
    }

    /// Saves an exchange that is not too large for a conversation of its own.
    fn commit_fitting(&self, exchange: &Exchange, give_up: &dyn Fn(Duration) -> bool) -> Committed {
        let prepared = self.folder.prepare();
        let saved = match (self.folder.lock(&self.path, give_up), prepared) {
            (Ok(mut lock), _) => {
                let saved = self.commit_locked(exchange, &mut lock);
                self.folder.sweep(self.keep, SystemTime::now());
                saved
            }
            (Err(_), Err(error)) => Err(error),
            (Err(NoLock::Failed(error)), _) => self.commit_alone(exchange, None, &error.to_string()),
            (Err(NoLock::Busy), _) => self.commit_alone(exchange, None, "another q holds the lock"),
            (Err(NoLock::Unsupported), _) => self.commit_alone(exchange, None, "this file system has no locks"),
        };
        saved.unwrap_or_else(Committed::not_saved)
    }

    fn commit_locked(&self, exchange: &Exchange, lock: &mut Lock) -> io::Result<Committed> {
        let found = folder::read(&self.path)?;
        match &self.intent {
            Intent::New => self.begin(found, exchange, lock),
            Intent::FollowOrNew => {
                let wanted = Wanted {
                    provider: &self.provider,
                    model: Some(&self.model),
                    expire: self.expire,
                    hands_over: self.hands_over,
                };
                match (rules::obstacle(&found, &wanted, self.asked), found) {
                    (None, Found::Conversation(conversation)) => {
                        self.extend(&self.path, conversation, exchange, self.pairs, lock)
                    }
                    (_, found) => self.begin(found, exchange, lock),
                }
            }
            Intent::Named => match found {
                Found::Nothing => self.begin(found, exchange, lock),
                Found::Conversation(conversation) => self.extend(&self.path, conversation, exchange, usize::MAX, lock),
                Found::Unusable(unusable) => Ok(Committed::not_saved(format!("{}: {unusable}", self.path.display()))),
            },
            Intent::Again { created, last } => {
                if !exchange.is_complete() {
                    return self.commit_alone(exchange, Some(lock), "the new answer is not complete");
                }
                let there = match found {
                    Found::Conversation(conversation) if conversation.created == *created => {
                        Some((self.path.clone(), conversation))
                    }
                    _ => self.folder.find_archived(*created)?,
                };
                match there.filter(|(_, conversation)| conversation.exchanges.last() == Some(last)) {
                    Some((path, conversation)) => {
                        let committed = self.replace_last(&path, conversation, exchange, lock)?;
                        Ok(match committed.created {
                            Some(created) if path != self.path => committed.after(archived_meanwhile(&path, created)),
                            _ => committed,
                        })
                    }
                    None => self.commit_alone(exchange, Some(lock), "the conversation has changed in the meantime"),
                }
            }
            Intent::Follow { created } => match found {
                Found::Conversation(conversation) if conversation.created == *created => {
                    // An archived conversation keeps all its exchanges.
                    let archived = self.path.file_name().is_some_and(folder::is_archived);
                    let pairs = if archived { usize::MAX } else { self.pairs };
                    self.extend(&self.path, conversation, exchange, pairs, lock)
                }
                _ => match self.folder.find_archived(*created)? {
                    Some((path, conversation)) => self.extend(&path, conversation, exchange, usize::MAX, lock),
                    None => {
                        let reason = "the conversation was cleared or displaced in the meantime";
                        self.commit_alone(exchange, Some(lock), reason)
                    }
                },
            },
        }
    }

    /// A new conversation, in place of what was found.
    fn begin(&self, found: Found, exchange: &Exchange, lock: &mut Lock) -> io::Result<Committed> {
        let displaced = match &found {
            Found::Conversation(displaced) => Some(displaced.created),
            Found::Nothing | Found::Unusable(_) => None,
        };
        let created = lock.unique(self.asked, displaced);
        let begun = self.alone(exchange, created);
        match found {
            // A conversation that an undo has emptied is not worth keeping.
            Found::Conversation(displaced) if rules::archives(self.keep) && !displaced.exchanges.is_empty() => {
                self.folder.displace(lock, &self.path, &begun, &displaced.created.stamp(), folder::ENDING)?;
            }
            Found::Unusable(_) => {
                let (stamp, ending) = folder::unreadable_name(&self.path);
                self.folder.displace(lock, &self.path, &begun, &stamp, ending)?;
            }
            Found::Nothing | Found::Conversation(_) => self.folder.replace(&self.path, &begun)?,
        }
        Ok(Committed::to(self.path.clone(), created))
    }

    fn extend(
        &self,
        path: &Path,
        mut conversation: Conversation,
        exchange: &Exchange,
        pairs: usize,
        lock: &mut Lock,
    ) -> io::Result<Committed> {
        let created = conversation.created;
        self.add(&mut conversation, exchange);
        conversation.keep_last(pairs);
        if format::size(&conversation) <= LARGEST {
            self.folder.replace(path, &conversation)?;
            return Ok(Committed::to(path.to_owned(), created));
        }
        conversation.created = lock.unique_after(self.asked, created);
        let lost = format::shrink(&mut conversation, SHRUNK);
        let archived = self.folder.displace(lock, path, &conversation, &created.stamp(), folder::ENDING)?;
        let note = all_of_it_is_in(&too_large(&lost, &conversation), &archived);
        Ok(Committed { note: Some(note), ..Committed::to(path.to_owned(), conversation.created) })
    }

    /// The conversation with this exchange in place of its last one.
    fn replace_last(
        &self,
        path: &Path,
        mut conversation: Conversation,
        exchange: &Exchange,
        lock: &mut Lock,
    ) -> io::Result<Committed> {
        conversation.exchanges.pop();
        self.add(&mut conversation, exchange);
        if path.file_name().is_some_and(folder::is_current) {
            conversation.keep_last(self.pairs);
        }
        let mut lost = None;
        if format::size(&conversation) > LARGEST {
            let loss = format::shrink(&mut conversation, SHRUNK);
            lost = Some(too_large(&loss, &conversation));
        }
        // What does not fit any more is nowhere else.
        let archives = lost.is_some() || rules::archives(self.keep);
        let revised = revise(&self.folder, lock, path, conversation, self.asked, archives)?;
        let note = lost.zip(revised.archived).map(|(lost, archived)| all_of_it_is_in(&lost, &archived));
        Ok(Committed { note, ..Committed::to(path.to_owned(), revised.created) })
    }

    /// Saves in an archived conversation of its own, if necessary without the lock.
    fn commit_alone(&self, exchange: &Exchange, lock: Option<&mut Lock>, reason: &str) -> io::Result<Committed> {
        let created = match lock {
            Some(lock) => lock.unique(self.asked, None),
            None => {
                let mut created = self.asked;
                while self.folder.find_archived(created)?.is_some() {
                    created = created.next();
                }
                created
            }
        };
        let path = self.folder.write_archived(&created.stamp(), &self.alone(exchange, created))?;
        let note = format!("{reason}: this exchange is saved on its own, in {}", path.display());
        Ok(Committed { note: Some(note), alone: true, ..Committed::to(path, created) })
    }

    /// A conversation of one exchange.
    fn alone(&self, exchange: &Exchange, created: Timestamp) -> Conversation {
        let mut conversation = Conversation::new(&self.provider, &self.model, created);
        self.add(&mut conversation, exchange);
        conversation
    }

    fn add(&self, conversation: &mut Conversation, exchange: &Exchange) {
        conversation.add(exchange.clone(), &self.provider, &self.model, self.keeps_own);
        if self.system.is_some() {
            conversation.system.clone_from(&self.system);
        }
        if let Some(tools) = &self.tools {
            conversation.tools.clone_from(tools);
        }
    }
}

/// The note for a conversation that grew too large: what it continues with.
fn too_large(lost: &Loss, conversation: &Conversation) -> String {
    let newest = format!("with its newest {} messages", conversation.message_count());
    let without = match lost.attachments {
        1 => "without the contents of its oldest attachment".to_owned(),
        count => format!("without the contents of its {count} oldest attachments"),
    };
    let rest = match (lost.messages, lost.attachments) {
        (0, 1..) => without,
        (_, 0) => newest,
        (1.., 1..) => format!("{newest} and {without}"),
    };
    format!("the conversation would have more than {LARGEST} bytes: it continues {rest}")
}

/// The note for a question asked again whose conversation is not the current one any more.
fn archived_meanwhile(path: &Path, created: Timestamp) -> String {
    let (path, id) = (path.display(), created.id());
    format!("the conversation was archived in the meantime: the new answer is in {path}; this continues it: q -s {id}")
}

fn all_of_it_is_in(note: &str, archived: &Path) -> String {
    format!("{note}; all of it is in {}", archived.display())
}

/// What became of a conversation whose end has changed.
pub(crate) struct Revised {
    /// Its own `created`, other than that of the old one.
    pub(crate) created: Timestamp,
    /// Where the old one is, if it was archived.
    pub(crate) archived: Option<PathBuf>,
}

/// Replaces a conversation whose end has changed; `archives` keeps the old one. An empty one is removed.
///
/// # Errors
/// A file could not be read, written or removed.
pub(crate) fn revise(
    folder: &Folder,
    lock: &mut Lock,
    path: &Path,
    mut conversation: Conversation,
    now: Timestamp,
    archives: bool,
) -> io::Result<Revised> {
    let was = conversation.created;
    conversation.created = lock.unique_after(now, was);
    let archived = match (conversation.is_empty(), archives) {
        (true, true) => folder.retire(lock, path, &was.stamp()).map(Some),
        (true, false) => folder::remove(path).map(|_| None),
        (false, true) => folder.displace(lock, path, &conversation, &was.stamp(), folder::ENDING).map(Some),
        (false, false) => folder.replace(path, &conversation).map(|()| None),
    }?;
    Ok(Revised { created: conversation.created, archived })
}

#[cfg(test)]
mod tests {
    use super::super::conversation::tests::{exchange, image, moment, with_attachments};
    use super::*;

    /// Commits one exchange with two images of this size; returns the outcome and the file.
    fn commit_with_images(size: usize, question: usize) -> (Committed, Found) {
        let home = tempfile::tempdir().expect("a folder");
        let folder = Folder::find(Some(home.path().to_owned())).expect("a folder");
        let committer = Committer {
            path: folder.sessions().join("work.json"),
            folder,
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            keeps_own: false,
            system: None,
            tools: None,
            asked: moment(0),
            intent: Intent::Named,
            pairs: usize::MAX,
            keep: None,
            expire: None,
            hands_over: false,
        };
        let data = "A".repeat(size);
        let images = vec![image("a", Some(&data)), image("b", Some(&data))];
        let asked = with_attachments(exchange(&"x".repeat(question), "1", 0), images);
        let committed = committer.commit(&asked, None, &|_| true);
        (committed, folder::read(&committer.path).expect("a file, or none"))
    }

    #[test]
    fn an_exchange_that_is_too_large_is_saved_without_the_contents_of_its_attachments() {
        for (size, question, kept, words) in [
            (LARGEST / 2, 1000, 1, "it is saved without the contents of its first attachment"),
            (100_000, LARGEST - 50_000, 0, "it is saved without the contents of its first 2 attachments"),
        ] {
            let (committed, found) = commit_with_images(size, question);
            let note = committed.note.unwrap_or_default();
            assert!(note.ends_with(words) && committed.path.is_some(), "{note}");
            let Found::Conversation(saved) = found else { panic!("{note}: {found:?}") };
            let attached: Vec<_> = saved.entries().flat_map(|entry| &entry.message.attachments).collect();
            let has_data: Vec<bool> = attached.iter().map(|one| one.data.is_some()).collect();
            assert_eq!(has_data, [vec![false; 2 - kept], vec![true; kept]].concat(), "{note}");
        }
    }

    #[test]
    fn an_exchange_that_is_too_large_without_them_is_not_saved() {
        let (committed, found) = commit_with_images(100_000, LARGEST);
        let note = committed.note.unwrap_or_default();
        assert!(note.ends_with("not saved: it has more than 10000000 bytes"), "{note}");
        assert!(committed.path.is_none() && matches!(found, Found::Nothing), "{found:?}");
    }

    #[test]
    fn a_note_says_what_a_large_conversation_continues_with() {
        let mut conversation = Conversation::new("openai", "m", moment(0));
        conversation.add(exchange("one", "1", 0), "openai", "m", false);
        for (attachments, messages, words) in [
            (1, 0, "continues without the contents of its oldest attachment"),
            (2, 0, "continues without the contents of its 2 oldest attachments"),
            (0, 4, "continues with its newest 2 messages"),
            (1, 4, "continues with its newest 2 messages and without the contents of its oldest attachment"),
        ] {
            let note = too_large(&Loss { attachments, messages }, &conversation);
            assert!(note.ends_with(words), "{note}");
        }
    }
}
