//! Reads the files of conversations, and removes them.

use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::conversation::Conversation;
use super::format::{self, MAX_SIZE};
use super::rules::{self, Found};
use crate::whole_file::{self, OrCannot};

/// Reads what is at a path. A link that leads nowhere is nothing.
pub fn read(path: &Path) -> Found {
    read_again(path, None)
}

/// Reads what is at a path. A file that still has the bytes of a known conversation is not parsed again.
pub fn read_again(path: &Path, known: Option<&Conversation>) -> Found {
    let bytes = match whole_file::read(path, MAX_SIZE as u64) {
        Err(error) if is_missing(&error) => return Ok(None),
        // It is not a regular file, or too large.
        Err(error) if rules::is_unusable(&error) => return Err(error),
        read => read.or_cannot("read", path)?,
    };
    if let Some(known) = known
        && known.source.as_deref() == Some(&bytes)
    {
        return Ok(Some(known.clone()));
    }
    let mut conversation = format::read(&bytes).map_err(io::Error::other)?;
    conversation.source = Some(Arc::new(bytes));
    Ok(Some(conversation))
}

/// The metadata of what a path leads to; `None` if there is nothing.
pub fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if is_missing(&error) => Ok(None),
        found => found.or_cannot("read", path).map(Some),
    }
}

/// The error for a pipe, a device or a folder in a conversation's place.
pub fn not_regular(path: &Path) -> io::Error {
    let path = path.display();
    io::Error::other(format!("{path}: it is not a regular file"))
}

/// Whether there is nothing at a path, or a link to itself.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ELOOP)
}

/// Deletes a file or a link; a pipe, a device or a folder stays. Returns whether it was a file.
pub fn remove(path: &Path) -> io::Result<bool> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if is_missing(&error) => return Ok(false),
        found => found.or_cannot("look at", path)?.file_type(),
    };
    if kind.is_file() || kind.is_symlink() {
        fs::remove_file(path).or_cannot("remove", path)?;
    }
    Ok(kind.is_file())
}
