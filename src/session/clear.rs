//! Deletes conversations, with their earlier states and the links to them.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::{self, TEMPORARY};
use super::folder::{Folder, is_current, is_state, name_of, stem_of};
use super::lock::{Lock, PATIENTLY};
use super::name::{self, Which};
use super::store::Handle;

/// Deletes a conversation and the link to it. If the link of a current conversation leads to one that the user has named,
/// only the link is deleted. Returns whether there was a conversation.
pub fn clear(handle: &Handle) -> io::Result<bool> {
    let Handle {
        folder,
        which,
        path,
    } = handle;
    let link = match which {
        Which::Named(name) => Some(folder.file(name)),
        _ => handle.link(),
    };
    let is_link = link.as_ref().is_some_and(|link| link.is_symlink());
    if !is_link && disk::metadata(path)?.is_none() {
        return Ok(false);
    }
    // A link in the folder changes with the conversation, wherever that is.
    let _lock = handle.lock(PATIENTLY)?;
    let mut _lock_of_link = None;
    if link.is_some() && !folder.has(path) {
        let lock = Lock::acquire(&folder.sessions, PATIENTLY)?;
        _lock_of_link = Some(lock);
    }
    // Before the lock was held, another q may have made another conversation the current one.
    let path = match &link {
        Some(link) => folder.follow(link)?,
        None => path.clone(),
    };
    let metadata = disk::metadata(&path)?;
    // A pipe or a folder is no conversation.
    if let Some(metadata) = &metadata
        && !metadata.is_file()
    {
        return Err(disk::not_regular(&path));
    }
    let existed = if which.is_current() && !folder.is_auto_named(&path) {
        metadata.is_some()
    } else {
        remove(folder, &path)?
    };
    if let Some(link) = link
        && link.is_symlink()
    {
        disk::remove(&link)?;
    }
    Ok(existed)
}

/// Deletes every conversation. Returns how many there were, not counting earlier states. An error comes with the number
/// of those that were deleted nevertheless.
pub fn clear_all(folder: &Folder) -> Result<usize, (usize, io::Error)> {
    let none = |error| (0, error);
    if disk::metadata(&folder.sessions).map_err(none)?.is_none() {
        return Ok(0);
    }
    let lock = Lock::acquire(&folder.sessions, PATIENTLY);
    let _lock = lock.map_err(none)?;
    let mut deleted = 0;
    let mut failed = None;
    for path in folder.paths().map_err(none)? {
        let name = name_of(&path);
        let is_conversation = stem_of(&name).is_some();
        let is_file = path.is_file() || path.is_symlink();
        if !is_file || !(is_conversation || name.starts_with(TEMPORARY)) {
            continue;
        }
        let is_mere_link = path.is_symlink() && (is_current(&path) || !path.exists());
        let counts = is_conversation && !is_mere_link && !is_state(&path);
        match disk::remove(&path) {
            Ok(existed) => deleted += usize::from(existed && counts),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) => Err((deleted, error)),
        None => Ok(deleted),
    }
}

/// Removes a conversation that is not current any more, unless it is current elsewhere. The caller has the lock.
pub(super) fn remove_left(folder: &Folder, path: &Path) -> io::Result<()> {
    if links_to(folder, path)?.is_empty() {
        remove(folder, path)?;
    }
    Ok(())
}

/// Removes a conversation, its earlier states and the links to it. Returns whether it existed.
fn remove(folder: &Folder, path: &Path) -> io::Result<bool> {
    let id = folder.id(path);
    let existed = disk::remove(path)?;
    if !folder.has(path) {
        return Ok(existed);
    }
    for link in links_to(folder, path)? {
        disk::remove(&link)?;
    }
    for other in folder.paths()? {
        let name = name_of(&other);
        if is_state(&other)
            && stem_of(&name).is_some_and(|stem| stem != id && name::base(stem) == id)
        {
            remove(folder, &other)?;
        }
    }
    Ok(existed)
}

/// The links that lead to a conversation, but for those that a killed run was about to put in the place of another.
fn links_to(folder: &Folder, path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut links = Vec::new();
    for other in folder.paths()? {
        let is_temporary = name_of(&other).starts_with(TEMPORARY);
        if !is_temporary && other != path && folder.follow(&other)? == path {
            links.push(other);
        }
    }
    Ok(links)
}
