//! Reads the files of conversations and replaces them, so that no other program ever sees half of one.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use super::conversation::Conversation;
use super::format;
use super::rules::FileContent;
use crate::whole_file::{OrCannot, TEMPORARY};

/// The most that is read of a file, which may grow meanwhile.
const MAX_READ: u64 = format::MAX_SIZE as u64 + 1;

/// What is wrong with a pipe, a device or a folder in a conversation's place.
const NOT_REGULAR: &str = "it is not a regular file";

/// Whether q has given a file this name for a moment.
pub(super) fn is_temporary(name: &str) -> bool {
    let numbers = name.strip_prefix(TEMPORARY);
    let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'-';
    numbers.is_some_and(|numbers| numbers.bytes().all(is_number))
}

/// Reads what is at a path. A link that leads nowhere is nothing. An error means that the content is unknown.
pub fn read(path: &Path) -> io::Result<FileContent> {
    read_again(path, None)
}

/// Reads what is at a path. A file that still has the bytes of a known conversation is not parsed again.
pub(super) fn read_again(path: &Path, known: Option<&Conversation>) -> io::Result<FileContent> {
    let mut options = OpenOptions::new();
    // Opening a pipe would wait for a writer.
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = match options.open(path) {
        Err(error) if is_missing(&error) => return Ok(FileContent::Nothing),
        opened => opened.or_cannot("read", path)?,
    };
    let metadata = file.metadata().or_cannot("read", path)?;
    if !metadata.is_file() {
        return Ok(FileContent::Unusable(NOT_REGULAR.to_owned()));
    }
    let size = metadata.len() + 1;
    let mut bytes = Vec::with_capacity(size.min(MAX_READ) as usize);
    let read = file.take(MAX_READ).read_to_end(&mut bytes);
    read.or_cannot("read", path)?;
    if let Some(known) = known
        && known.source.as_deref() == Some(&bytes)
    {
        return Ok(FileContent::Conversation(known.clone()));
    }
    match format::read(&bytes) {
        Ok(mut conversation) => {
            conversation.source = Some(Arc::new(bytes));
            Ok(FileContent::Conversation(conversation))
        }
        Err(reason) => Ok(FileContent::Unusable(reason)),
    }
}

/// The metadata of what a path leads to; `None` if there is nothing.
pub(super) fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if is_missing(&error) => Ok(None),
        found => found.or_cannot("read", path).map(Some),
    }
}

/// The error for a pipe, a device or a folder in a conversation's place.
pub(super) fn not_regular(path: &Path) -> io::Error {
    let path = path.display();
    io::Error::other(format!("{path}: {NOT_REGULAR}"))
}

/// Whether there is nothing at a path, or a link to itself.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ELOOP)
}

/// Deletes a file or a link. Returns whether it existed.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if is_missing(&error) => Ok(false),
        removed => removed.or_cannot("remove", path).map(|()| true),
    }
}
