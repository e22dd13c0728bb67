//! Changes, copies and deletes conversations without a question.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::conversation::Exchange;
use super::directory::{self, StateDirectory};
use super::lock::{self, AT_TIMEOUT};
use super::rules::{FileKind, Owner, Rules, of_file};
use super::store::Handle;
use super::timestamp::Timestamp;
use super::{disk, format};

/// An exchange that was removed.
pub struct Undone {
    /// The value for `-s` that names its conversation.
    pub id: String,
    pub exchange: Exchange,
    /// The value for `-s` that names the backup that still has the exchange, if there is one.
    pub backup: Option<String>,
}

/// Removes the last exchange of a conversation; a backup keeps it, if the rules do. `None`: there was none.
pub fn undo(handle: &Handle, rules: &Rules) -> io::Result<Option<Undone>> {
    let directory = &handle.directory;
    let _lock = handle.lock(AT_TIMEOUT)?;
    if directory.kind(&handle.path) == FileKind::Link {
        // A backup needs an id to be named by. Without symbolic links the file stays.
        let _ = disk::migrate_to_link(directory, &handle.path);
    }
    let path = directory.read_link(&handle.path)?;
    let Some(mut conversation) = disk::read(&path)? else {
        return Ok(None);
    };
    let exchanges = &mut conversation.exchanges;
    let Some(exchange) = exchanges.pop_if(|last| last.question().is_some()) else {
        return Ok(None);
    };
    let backup = disk::rewrite(directory, &path, &conversation, rules.keeps())?;
    Ok(Some(Undone {
        id: directory.id(&path),
        exchange,
        backup: backup.map(|backup| directory.id(&backup)),
    }))
}

/// Copies a conversation to another place, which must be free, else the error is `AlreadyExists`.
pub fn copy(from: &Handle, to: &Handle) -> io::Result<()> {
    to.prepare_directory()?;
    let _lock = to.lock(AT_TIMEOUT)?;
    let path = from.directory.read_link(&from.path)?;
    let Some(mut conversation) = disk::read(&path)? else {
        return Err(io::Error::other("it was cleared in the meantime"));
    };
    conversation.created = Timestamp::now();
    if from.directory.kind(&path) == FileKind::External {
        // Somebody else may have chosen them, and the copy is the user's own.
        conversation.tools.clear();
    }
    disk::create(&to.path, &format::to_bytes(&conversation)?)
}

/// What was deleted by [`clear`].
pub enum Cleared {
    Nothing,
    Conversation,
    /// The link to the current conversation alone. The user has named that, and its file is still there.
    Link(PathBuf),
    /// The user's own link with the name of a conversation. It led to this path, where nothing is.
    LinkToNothing(PathBuf),
}

/// Deletes a conversation and the link to it. If the link of a current conversation leads to one that the user has named,
/// only the link is deleted.
pub fn clear(handle: &Handle) -> io::Result<Cleared> {
    let directory = &handle.directory;
    let link = &handle.link;
    if !link.is_symlink() && directory::metadata(link)?.is_none() {
        return Ok(Cleared::Nothing);
    }
    let _lock = handle.lock(AT_TIMEOUT)?;
    // Before the lock was held, another q may have made another conversation the current one.
    let path = directory.read_link(link)?;
    let metadata = directory::metadata(&path)?;
    let is_current = handle.which.is_current();
    if metadata.is_none() && !is_current {
        if directory.has_conversation(link)
            && let Ok(target) = fs::read_link(link)
        {
            disk::remove(link)?;
            return Ok(Cleared::LinkToNothing(target));
        }
        return Ok(Cleared::Nothing);
    }
    if let Some(metadata) = &metadata
        && !metadata.is_file()
    {
        return Err(disk::not_regular(&path));
    }
    let is_deleted = !is_current || of_file(directory.kind(&path)).owner == Owner::Q;
    if is_deleted {
        remove(directory, &path)?;
    }
    if *link != path {
        disk::remove(link)?;
    }
    Ok(match metadata {
        None => Cleared::Nothing,
        Some(_) if is_deleted => Cleared::Conversation,
        Some(_) => Cleared::Link(path),
    })
}

/// Deletes every conversation, and returns their number, without backups. One that cannot be deleted is an error
/// once the others are gone.
pub fn clear_all(directory: &StateDirectory) -> io::Result<usize> {
    if directory::metadata(&directory.sessions)?.is_none() {
        return Ok(0);
    }
    let _lock = lock::acquire(&[&directory.sessions], AT_TIMEOUT)?;
    let mut deleted = 0;
    let mut result = Ok(());
    for path in directory.paths()? {
        let kind = directory.kind(&path);
        if kind == FileKind::External {
            continue;
        }
        let counts = of_file(kind).is_conversation && kind != FileKind::Backup;
        match disk::remove(&path) {
            Ok(was_file) => deleted += usize::from(was_file && counts),
            Err(error) => result = Err(error),
        }
    }
    result.map(|()| deleted)
}

/// Removes a conversation that is not current any more, unless it is current elsewhere. The caller has the lock.
pub(super) fn remove_left(directory: &StateDirectory, path: &Path) -> io::Result<()> {
    for other in directory.paths()? {
        let is_link = other != path && directory.has_conversation(&other);
        if is_link && directory.read_link(&other)? == path {
            return Ok(());
        }
    }
    remove(directory, path)
}

/// Removes a conversation, its backups and the links to them.
fn remove(directory: &StateDirectory, path: &Path) -> io::Result<()> {
    disk::remove(path)?;
    remove_dependents(directory, path).map_err(|error| {
        let reason = format!("the conversation was removed, but perhaps not its backups: {error}");
        io::Error::other(reason)
    })
}

/// Removes the backups of a conversation that was removed, and the links to it and to them. Its name is free, so another q,
/// which saves without the lock, may have given it to a new conversation. That one stays, and so does the user's link to a
/// file elsewhere.
fn remove_dependents(directory: &StateDirectory, path: &Path) -> io::Result<()> {
    for other in directory.paths()? {
        if other == path || !directory.has_conversation(&other) {
            continue;
        }
        let file = directory.read_link(&other)?;
        let is_link_to_it = file == path && directory.has_conversation(path);
        if is_link_to_it || directory.is_backup_of(&file, path) {
            disk::remove(&other)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::conversation::tests::conversation;
    use super::super::disk::Draft;
    use super::super::disk::tests::empty_directory;
    use super::*;
    use crate::whole_file;

    #[test]
    fn a_question_that_waits_for_the_lock_is_saved_after_all_conversations_were_cleared() {
        let (_root, directory) = empty_directory();
        let draft = |question| {
            let conversation = conversation(&[(question, "answer")]);
            Draft::write(&directory, conversation).expect("a draft")
        };
        let (first, second) = (draft("one"), draft("two"));
        let first = first.create(&directory).expect("a conversation");
        let files = || whole_file::names_in(&directory.sessions, 9).expect("names");
        assert_eq!(files().len(), 2);
        assert_eq!(clear_all(&directory).expect("a removal"), 1);
        assert_eq!(files().len(), 0, "drafts have the words of a conversation");
        let second = second.create(&directory).expect("a conversation");
        assert_eq!(first, second, "they are of one moment");
        assert_eq!(files().len(), 1);
        let found = disk::read(&second).expect("a conversation");
        let last = found.and_then(|found| found.exchanges.last().cloned());
        let question = last.as_ref().and_then(Exchange::question);
        assert!(question.is_some_and(|question| question.text() == "two"));
        // Nothing is written where the directory is gone.
        let third = draft("three");
        std::fs::remove_dir_all(&directory.sessions).expect("a removal");
        let error = third.create(&directory).expect_err("there is no directory");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_conversation_that_has_taken_the_name_of_a_removed_one_stays() {
        let (_root, directory) = empty_directory();
        let id = "session_20261121100000000";
        let (taken, backup) = (directory.path_of(id), directory.path_of(&format!("{id}~1")));
        for path in [&taken, &backup] {
            disk::create(path, b"{}").expect("a file");
        }
        remove_dependents(&directory, &taken).expect("a removal");
        assert_eq!(directory.paths().expect("files"), [taken]);
    }
}
