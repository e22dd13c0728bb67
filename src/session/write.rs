//! Writes conversations: a new one under an id of its own, a changed one in place of what it was.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::conversation::Conversation;
use super::disk;
use super::folder::{ENDING, Folder};
use super::format;
use super::lock::{Lock, PATIENTLY};
use super::name::{self, STATE};
use crate::whole_file::{OrCannot, PRIVATE, Temporary};

/// A new conversation that is on the disk, but has no name yet.
#[derive(Debug)]
pub(super) struct Draft {
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
pub(super) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(_) => return Err(ErrorKind::AlreadyExists.into()),
    }
    Temporary::write_beside(path, bytes, PRIVATE)?.create(path)
}

/// Replaces a conversation. With `keeps_state`, the file as it was becomes an earlier state, whose path is returned. The
/// caller has the lock.
pub(super) fn rewrite(
    folder: &Folder,
    path: &Path,
    bytes: &[u8],
    keeps_state: bool,
) -> io::Result<Option<PathBuf>> {
    let temporary = Temporary::write_beside(path, bytes, PRIVATE)?;
    if !folder.has(path)
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
    if !folder.has(path) {
        folder.prepare()?;
        let conversation = format::read(&bytes).map_err(io::Error::other)?;
        let draft = Draft::write(folder, conversation, &bytes)?;
        let _lock = Lock::acquire(&folder.sessions, PATIENTLY)?;
        return draft.create(folder);
    }
    let id = folder.id(path);
    let mut number = 1;
    loop {
        let state = folder.file(&format!("{}{STATE}{number}", name::base(&id)));
        match create(&state, &bytes) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            created => return created.map(|()| state),
        }
    }
}
