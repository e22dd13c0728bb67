//! Writes conversations: a new one under an id of its own, a changed one in place of what it was.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::conversation::Conversation;
use super::disk::{self, PRIVATE_FILE, ReplaceError, Temporary, named};
use super::folder::{ENDING, Folder};
use super::format;
use super::name::{self, STATE};
use super::rules::FileContent;

/// A new conversation that is on the disk, but has no name yet.
#[derive(Debug)]
pub(super) struct Draft {
    conversation: Conversation,
    temporary: Temporary,
}

impl Draft {
    /// Needs no lock.
    pub fn write(folder: &Folder, mut conversation: Conversation) -> io::Result<Draft> {
        let bytes = format::to_fitting_bytes(&mut conversation)?;
        let temporary = Temporary::write(&folder.sessions, bytes, PRIVATE_FILE)?;
        Ok(Draft {
            conversation,
            temporary,
        })
    }

    /// Gives it the name of its id. If that is taken, `created` is counted up.
    pub fn create(self, folder: &Folder) -> io::Result<PathBuf> {
        let Draft {
            mut conversation,
            mut temporary,
        } = self;
        let created = folder.reserve_id(conversation.created, ENDING)?;
        let path = folder.file(&created.id());
        if created != conversation.created {
            conversation.created = created;
            let bytes = format::to_bytes(&conversation)?;
            temporary = Temporary::write(&folder.sessions, bytes, PRIVATE_FILE)?;
        }
        temporary.create(&path)?;
        Ok(path)
    }
}

/// Writes a conversation into a file that must not exist yet, else the error is `AlreadyExists`. The caller has the lock.
pub(super) fn create(path: &Path, mut conversation: Conversation) -> io::Result<()> {
    create_file(path, format::to_fitting_bytes(&mut conversation)?)
}

fn create_file(path: &Path, bytes: Vec<u8>) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(named(io::ErrorKind::AlreadyExists.into(), "write", path));
    }
    Temporary::write(folder_of(path), bytes, PRIVATE_FILE)?.create(path)
}

/// Replaces a file. One that the user has made elsewhere keeps its mode.
fn replace(folder: &Folder, path: &Path, bytes: Vec<u8>) -> Result<(), ReplaceError> {
    let mut mode = PRIVATE_FILE;
    if !folder.has(path)
        && let Some(metadata) = disk::metadata(path)?
    {
        mode = metadata.permissions().mode() & 0o777;
    }
    Temporary::write(folder_of(path), bytes, mode)?.replace(path)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Replaces a conversation. With `keeps_state`, the file as it was becomes an earlier state, whose path is returned. The
/// caller has the lock.
pub(super) fn rewrite(
    folder: &Folder,
    path: &Path,
    bytes: Vec<u8>,
    keeps_state: bool,
) -> io::Result<Option<PathBuf>> {
    let mut state = None;
    if keeps_state {
        state = Some(keep_state(folder, path)?);
    }
    let Err(failed) = replace(folder, path, bytes) else {
        return Ok(state);
    };
    if failed.is_unchanged {
        if let Some(state) = state {
            let _ = fs::remove_file(state);
        }
        return Err(failed.error);
    }
    let mut reason = format!(
        "it is not certain whether the conversation has changed: {}",
        failed.error
    );
    if let Some(state) = state {
        let option = folder.which(&state).option();
        reason += &format!("; q{option} has the state before");
    }
    Err(io::Error::other(reason))
}

/// Copies a conversation before more than its end changes: in the folder to `ID~1.json` or the next free number. A file
/// elsewhere is copied into the folder, as a conversation with an id of its own.
fn keep_state(folder: &Folder, path: &Path) -> io::Result<PathBuf> {
    if !folder.has(path) {
        folder.prepare()?;
        let FileContent::Conversation(conversation) = disk::read(path)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        return Draft::write(folder, conversation)?.create(folder);
    }
    let bytes = fs::read(path)?;
    let id = folder.id(path);
    let mut number = 1;
    loop {
        let state = folder.file(&format!("{}{STATE}{number}", name::base(&id)));
        if fs::symlink_metadata(&state).is_err() {
            create_file(&state, bytes)?;
            return Ok(state);
        }
        number += 1;
    }
}
