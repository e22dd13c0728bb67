//! Writes conversations, new and changed ones, and the link to the current one.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::conversation::Conversation;
use super::disk;
use super::folder::{ENDING, Folder, Kind, UNREADABLE};
use super::format;
use super::name::{self, STATE, Which};
use super::rules;
use super::timestamp::Timestamp;
use crate::whole_file::{OrCannot, PRIVATE, Temporary};

/// A new conversation that is on the disk, but has no name yet.
pub struct Draft {
    conversation: Conversation,
    temporary: Temporary,
}

impl Draft {
    /// Writes a conversation, whose file is to have these bytes. Needs no lock.
    pub fn write(folder: &Folder, conversation: Conversation, bytes: &[u8]) -> io::Result<Draft> {
        // Its name is not known yet, but its folder is.
        let path = folder.file(&conversation.created.id());
        Ok(Draft {
            temporary: Temporary::write_beside(&path, bytes, PRIVATE)?,
            conversation,
        })
    }

    /// Gives it the name of its id. If that is taken, `created` is counted up.
    pub fn create(mut self, folder: &Folder) -> io::Result<PathBuf> {
        let (created, path) = folder.free(self.conversation.created, ENDING);
        if created != self.conversation.created {
            self.conversation.created = created;
            let bytes = format::to_bytes(&self.conversation)?;
            self = Draft::write(folder, self.conversation, &bytes)?;
        }
        // The empty file keeps others away who have no lock.
        File::create_new(&path).or_cannot("write", &path)?;
        let named = self.temporary.create(&path);
        if named.is_err() {
            let _ = fs::remove_file(&path);
        }
        named.map(|()| path)
    }
}

/// Writes a file that must not exist yet, else the error is `AlreadyExists`. The caller has the lock.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.try_exists()? {
        return Err(ErrorKind::AlreadyExists.into());
    }
    Temporary::write_beside(path, bytes, PRIVATE)?.create(path)
}

/// Replaces a conversation. With `keeps_state`, the file as it was becomes an earlier state, whose path is returned. The
/// caller has the lock.
pub fn rewrite(
    folder: &Folder,
    path: &Path,
    bytes: &[u8],
    keeps_state: bool,
) -> io::Result<Option<PathBuf>> {
    let temporary = Temporary::write_beside(path, bytes, PRIVATE)?;
    if folder.kind(path) == Kind::Foreign
        && let Some(metadata) = disk::metadata(path)?
    {
        // The user has made it.
        temporary.set_mode(metadata.permissions())?;
    }
    let mut state = None;
    if keeps_state {
        state = Some(keep_state(folder, path)?);
    }
    let Err(error) = temporary.replace(path) else {
        return Ok(state);
    };
    if temporary.discard() {
        if let Some(state) = state {
            let _ = fs::remove_file(state);
        }
        return Err(error);
    }
    let mut reason = format!("it is not certain whether the conversation has changed: {error}");
    if let Some(state) = state {
        let option = folder.which(&state).option();
        reason += &format!("; q{option} has the state before");
    }
    Err(io::Error::other(reason))
}

/// Copies a conversation before more than its end changes: in the folder to `ID~1.json` or the next free number. A file
/// elsewhere is copied into the folder, under an id of its own.
fn keep_state(folder: &Folder, path: &Path) -> io::Result<PathBuf> {
    let bytes = fs::read(path)?;
    let Which::Named(id) = folder.which(path) else {
        folder.prepare()?;
        let conversation = format::read(&bytes).map_err(io::Error::other)?;
        return Draft::write(folder, conversation, &bytes)?.create(folder);
    };
    let mut number = 1;
    loop {
        let state = folder.file(&format!("{}{STATE}{number}", name::base(&id)));
        match create(&state, &bytes) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            created => return created.map(|()| state),
        }
    }
}

/// Makes a link lead to a conversation beside it. Returns the one that it leaves, whose time to be kept starts now. The
/// caller has the lock.
pub fn point(folder: &Folder, link: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    adopt(folder, link)?;
    let left = folder.follow(link)?;
    folder.touch(&left);
    // Lists show it before the one that it leaves.
    folder.touch(path);
    if left != path {
        Temporary::link(link, path)?.replace(link)?;
    }
    let is_left = left != path && left != link;
    Ok(is_left.then_some(left))
}

/// Gives a file that is in the place of the link the name of a conversation of its time, and makes the link lead there.
/// Where that cannot be done, the file stays. The caller has the lock.
pub fn adopt(folder: &Folder, link: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(link) {
        Ok(metadata) if !metadata.is_symlink() => metadata,
        _ => return Ok(()),
    };
    if !metadata.is_file() {
        return Err(disk::not_regular(link));
    }
    let ending = match disk::read(link) {
        Err(error) if rules::is_unusable(&error) => UNREADABLE,
        found => found.map(|_| ENDING)?,
    };
    let (_, path) = folder.free(Timestamp::from_mtime(metadata.modified()?), ending);
    // Where there are no symbolic links, nothing has changed yet.
    let temporary = Temporary::link(link, &path)?;
    fs::rename(link, &path).or_cannot("rename", link)?;
    temporary.replace(link)
}
