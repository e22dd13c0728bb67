//! Changes, copies and deletes conversations without a question.

use std::io;
use std::path::Path;

use super::conversation::Exchange;
use super::folder::{self, Folder, Kind};
use super::lock::{self, PATIENTLY};
use super::rules::Rules;
use super::store::Handle;
use super::timestamp::Timestamp;
use super::{disk, format, name};

/// Removes the last exchange of a conversation; an earlier state keeps it, if the rules do. Returns the conversation's id
/// and the exchange. `None`: there was none.
pub fn undo(handle: &Handle, rules: &Rules) -> io::Result<Option<(String, Exchange)>> {
    let folder = &handle.folder;
    let _lock = handle.lock(PATIENTLY)?;
    if folder.kind(&handle.path) == Kind::Link {
        // An earlier state needs an id to be named by. Without symbolic links the file stays.
        let _ = disk::adopt(folder, &handle.path);
    }
    let path = folder.follow(&handle.path)?;
    let Some(mut conversation) = disk::read(&path)? else {
        return Ok(None);
    };
    let exchanges = &mut conversation.exchanges;
    let Some(undone) = exchanges.pop_if(|last| last.question().is_some()) else {
        return Ok(None);
    };
    disk::rewrite(folder, &path, &conversation, rules.keeps())?;
    Ok(Some((folder.id(&path), undone)))
}

/// Copies a conversation to another place, which must be free, else the error is `AlreadyExists`.
pub fn copy(from: &Handle, to: &Handle) -> io::Result<()> {
    to.folder.prepare()?;
    let _lock = to.lock(PATIENTLY)?;
    let path = from.folder.follow(&from.path)?;
    let Some(mut conversation) = disk::read(&path)? else {
        return Err(io::Error::other("it was cleared in the meantime"));
    };
    conversation.created = Timestamp::now();
    if from.folder.kind(&path) == Kind::Foreign {
        // Somebody else may have chosen them, and the copy is the user's own.
        conversation.tools.clear();
    }
    disk::create(&to.path, &format::to_bytes(&conversation)?)
}

/// Deletes a conversation and the link to it. If the link of a current conversation leads to one that the user has named,
/// only the link is deleted. Returns whether there was a conversation.
pub fn clear(handle: &Handle) -> io::Result<bool> {
    let folder = &handle.folder;
    let link = &handle.link;
    if !link.is_symlink() && folder::metadata(link)?.is_none() {
        return Ok(false);
    }
    let _lock = handle.lock(PATIENTLY)?;
    // Before the lock was held, another q may have made another conversation the current one.
    let path = folder.follow(link)?;
    let metadata = folder::metadata(&path)?;
    if let Some(metadata) = &metadata
        && !metadata.is_file()
    {
        return Err(disk::not_regular(&path));
    }
    if folder.kind(&path).is_auto_named() || !handle.which.is_current() {
        remove(folder, &path)?;
    }
    if *link != path {
        disk::remove(link)?;
    }
    Ok(metadata.is_some())
}

/// Deletes every conversation, and returns their number, without earlier states. One that cannot be deleted is an error
/// once the others are gone.
pub fn clear_all(folder: &Folder) -> io::Result<usize> {
    if folder::metadata(&folder.sessions)?.is_none() {
        return Ok(0);
    }
    let _lock = lock::acquire(&[&folder.sessions], PATIENTLY)?;
    let mut deleted = 0;
    let mut result = Ok(());
    for path in folder.paths()? {
        let kind = folder.kind(&path);
        if kind == Kind::Foreign {
            continue;
        }
        let counts = kind.is_conversation() && kind != Kind::State;
        match disk::remove(&path) {
            Ok(was_file) => deleted += usize::from(was_file && counts),
            Err(error) => result = Err(error),
        }
    }
    result.map(|()| deleted)
}

/// Removes a conversation that is not current any more, unless it is current elsewhere. The caller has the lock.
pub(super) fn remove_left(folder: &Folder, path: &Path) -> io::Result<()> {
    for other in folder.paths()? {
        let is_link = other != path && folder.kind(&other).is_conversation();
        if is_link && folder.follow(&other)? == path {
            return Ok(());
        }
    }
    remove(folder, path)
}

/// Removes a conversation, its earlier states and the links to them.
fn remove(folder: &Folder, path: &Path) -> io::Result<()> {
    disk::remove(path)?;
    if folder.kind(path) == Kind::Foreign {
        return Ok(());
    }
    remove_dependents(folder, path)
}

/// Removes the earlier states of a conversation that was removed, and the links to it and to them. Its name is free, so
/// another q, which saves without the lock, may have given it to a new conversation. That one stays.
fn remove_dependents(folder: &Folder, path: &Path) -> io::Result<()> {
    for other in folder.paths()? {
        if other == path || !folder.kind(&other).is_conversation() {
            continue;
        }
        let file = folder.follow(&other)?;
        let id = folder.id(&file);
        if file == path || folder.file(name::base(&id)) == path {
            disk::remove(&other)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_has_taken_the_name_of_a_removed_one_stays() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::find(Some(root.path().to_owned())).expect("a folder");
        folder.prepare().expect("a folder");
        let id = "session_20261121100000000";
        let (taken, state) = (folder.file(id), folder.file(&format!("{id}~1")));
        for path in [&taken, &state] {
            disk::create(path, b"{}").expect("a file");
        }
        remove_dependents(&folder, &taken).expect("a removal");
        assert_eq!(folder.paths().expect("files"), [taken]);
    }
}
