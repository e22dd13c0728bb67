//! Changes, copies and deletes conversations without a question.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::conversation::Exchange;
use super::disk;
use super::folder::{Folder, is_current, is_own, is_state, name_of, stem_of};
use super::format;
use super::lock::{Lock, PATIENTLY};
use super::name::{self, Which};
use super::pointer;
use super::rules::{FileContent, Rules};
use super::store::Handle;
use super::timestamp::Timestamp;
use super::write;
use crate::whole_file::OrCannot;

/// Removes the last exchange of a conversation; an earlier state keeps it. Returns the conversation's id and the exchange.
/// `None`: there was none.
pub fn undo(handle: &Handle, rules: &Rules) -> io::Result<Option<(String, Exchange)>> {
    let _lock = handle.lock(PATIENTLY)?;
    if let Some(link) = handle.link() {
        // An earlier state needs an id to be named by. Without symbolic links the file stays.
        let _ = pointer::adopt(&handle.folder, &link);
    }
    let path = handle.folder.follow(&handle.path)?;
    let FileContent::Conversation(mut conversation) = disk::read(&path)? else {
        return Ok(None);
    };
    let Some(undone) = conversation.undo() else {
        return Ok(None);
    };
    let bytes = format::to_bytes(&conversation)?;
    write::rewrite(&handle.folder, &path, &bytes, rules.keeps())?;
    Ok(Some((handle.folder.id(&path), undone)))
}

/// Copies a conversation to another place, which must be free, else the error is `AlreadyExists`. `NotFound`: the
/// conversation is gone.
pub fn copy(from: &Handle, to: &Handle) -> io::Result<()> {
    to.folder.prepare()?;
    let _lock = to.lock(PATIENTLY)?;
    let path = from.folder.follow(&from.path)?;
    let FileContent::Conversation(mut conversation) = disk::read(&path)? else {
        return Err(io::ErrorKind::NotFound.into());
    };
    conversation.created = Timestamp::now();
    write::create(&to.path, &format::to_bytes(&conversation)?)
}

/// Deletes a conversation and the link to it. If the link of a current conversation leads to one that the user has named,
/// only the link is deleted. Returns whether there was a conversation.
pub fn clear(handle: &Handle) -> io::Result<bool> {
    let folder = &handle.folder;
    let link = match &handle.which {
        Which::Current(name) | Which::Named(name) => folder.file(name),
        _ => handle.path.clone(),
    };
    if !link.is_symlink() && disk::metadata(&link)?.is_none() {
        return Ok(false);
    }
    let _lock = handle.lock(PATIENTLY)?;
    let mut _lock_of_link = None;
    if folder.has(&link) && !folder.has(&handle.path) {
        _lock_of_link = Some(Lock::acquire(&folder.sessions, PATIENTLY)?);
    }
    // Before the lock was held, another q may have made another conversation the current one.
    let path = folder.follow(&link)?;
    let metadata = disk::metadata(&path)?;
    if let Some(metadata) = &metadata
        && !metadata.is_file()
    {
        return Err(disk::not_regular(&path));
    }
    if folder.is_auto_named(&path) || !handle.which.is_current() {
        remove(folder, &path)?;
    }
    disk::remove(&link)?;
    Ok(metadata.is_some())
}

/// Deletes every conversation, and returns their number, without earlier states. One that cannot be deleted is an error
/// once the others are gone.
pub fn clear_all(folder: &Folder) -> io::Result<usize> {
    if disk::metadata(&folder.sessions)?.is_none() {
        return Ok(0);
    }
    let _lock = Lock::acquire(&folder.sessions, PATIENTLY)?;
    let mut deleted = 0;
    let mut result = Ok(());
    for path in folder.paths()? {
        let is_conversation = is_own(&path);
        if !is_conversation && !disk::is_temporary(&name_of(&path)) {
            continue;
        }
        let kind = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                result = Err(error).or_cannot("look at", &path);
                continue;
            }
        };
        if !kind.is_file() && !kind.is_symlink() {
            continue;
        }
        let is_mere_link = kind.is_symlink() && (is_current(&path) || !path.exists());
        let counts = is_conversation && !is_mere_link && !is_state(&path);
        match disk::remove(&path) {
            Ok(existed) => deleted += usize::from(existed && counts),
            Err(error) => result = Err(error),
        }
    }
    result.map(|()| deleted)
}

/// Removes a conversation that is not current any more, unless it is current elsewhere. The caller has the lock.
pub(super) fn remove_left(folder: &Folder, path: &Path) -> io::Result<()> {
    if links_to(folder, path)?.is_empty() {
        remove(folder, path)?;
    }
    Ok(())
}

/// Removes a conversation, its earlier states and the links to it.
fn remove(folder: &Folder, path: &Path) -> io::Result<()> {
    disk::remove(path)?;
    if !folder.has(path) {
        return Ok(());
    }
    for link in links_to(folder, path)? {
        disk::remove(&link)?;
    }
    let id = folder.id(path);
    for other in folder.paths()? {
        if stem_of(&other).is_some_and(|stem| stem != id && name::base(&stem) == id) {
            remove(folder, &other)?;
        }
    }
    Ok(())
}

/// The links that lead to a conversation.
fn links_to(folder: &Folder, path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut links = Vec::new();
    for other in folder.paths()? {
        if other != path && is_own(&other) && folder.follow(&other)? == path {
            links.push(other);
        }
    }
    Ok(links)
}
