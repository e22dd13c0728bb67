//! Reads and writes the file of one conversation; no other program ever sees half of it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::Arc;

use super::conversation::Conversation;
use super::format;
use super::rules::FileContent;
use crate::unix;

/// The mode of files that only their owner may read.
pub(super) const PRIVATE_FILE: u32 = 0o600;

/// The kind of the error if a pipe, a device or a folder is in a conversation's place.
pub const NOT_REGULAR: io::ErrorKind = io::ErrorKind::InvalidInput;

/// How much of a file is compared at once.
const COMPARED_AT_ONCE: usize = 64 << 10;

/// Reads what is at a path. An error means that the content is unknown.
pub fn read(path: &Path) -> io::Result<FileContent> {
    read_again(path, None)
}

/// Reads what is at a path. A file that still has the bytes of a known conversation is not parsed again.
pub(super) fn read_again(path: &Path, known: Option<&Conversation>) -> io::Result<FileContent> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => {
            check_missing(error, "read", path)?;
            return Ok(FileContent::Nothing);
        }
    };
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        let reason = format!("{} is not a regular file", path.display());
        return Err(io::Error::new(NOT_REGULAR, reason));
    }
    if let Err(too_large) = format::check_size(metadata.len()) {
        return Ok(FileContent::Unusable(too_large));
    }
    if let Some(known) = known
        && let Some(source) = &known.source
        && has_bytes(path, source)
    {
        return Ok(FileContent::Conversation(known.clone()));
    }
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        // Another q may have deleted it just now.
        Err(error) => {
            check_missing(error, "read", path)?;
            return Ok(FileContent::Nothing);
        }
    };
    match format::read(&bytes) {
        Ok(mut conversation) => {
            conversation.source = Some(Arc::new(bytes));
            Ok(FileContent::Conversation(conversation))
        }
        Err(reason) => Ok(FileContent::Unusable(reason)),
    }
}

/// Whether a file can be read and has exactly these bytes. It is read in parts, which saves memory.
fn has_bytes(path: &Path, bytes: &[u8]) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let mut file = BufReader::with_capacity(COMPARED_AT_ONCE, file);
    let mut left = bytes;
    loop {
        let Ok(part) = file.fill_buf() else {
            return false;
        };
        if part.is_empty() {
            return left.is_empty();
        }
        let Some(rest) = left.strip_prefix(part) else {
            return false;
        };
        let count = part.len();
        left = rest;
        file.consume(count);
    }
}

/// Whether there is anything at a path, even a link to nothing.
pub fn exists(path: &Path) -> io::Result<bool> {
    if let Err(error) = fs::symlink_metadata(path) {
        check_missing(error, "look at", path)?;
        return Ok(false);
    }
    Ok(true)
}

/// Accepts the error for a missing file, and returns any other.
fn check_missing(error: io::Error, action: &str, path: &Path) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        check_dangling_link(path.parent())
    } else {
        Err(named(error, action, path))
    }
}

/// Fails if a folder, or one above it, is a link to nothing: it is not missing, its disk is not mounted.
pub(super) fn check_dangling_link(folder: Option<&Path>) -> io::Result<()> {
    let Some(folder) = folder else {
        return Ok(());
    };
    for part in folder.ancestors() {
        if part.is_symlink() && matches!(part.try_exists(), Ok(false)) {
            return Err(io::Error::other(format!(
                "{} is a link to something that does not exist",
                part.display()
            )));
        }
    }
    Ok(())
}

/// Deletes a file. Returns whether it existed.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    if let Err(error) = fs::remove_file(path) {
        check_missing(error, "remove", path)?;
        return Ok(false);
    }
    Ok(true)
}

/// Writes a file that must not exist yet. Until it is complete it has no name, so nothing is left if q is killed. `None`:
/// the system has no files without names.
pub(super) fn create_unnamed(path: &Path, bytes: &[u8]) -> Option<io::Result<()>> {
    let file = unix::unnamed_file(path.parent()?, PRIVATE_FILE).ok()?;
    if let Err(error) = fill(&file, bytes, PRIVATE_FILE) {
        return Some(Err(named(error, "write", path)));
    }
    match unix::name_file(&file, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => None,
        result => Some(result),
    }
}

/// Writes a file that must not exist yet by way of a temporary file.
pub(super) fn create(path: &Path, bytes: &[u8], temporary: &Path) -> io::Result<()> {
    let created = write(temporary, bytes, None).and_then(|()| link_or_rename(temporary, path));
    let _ = fs_err::remove_file(temporary);
    created
}

/// Gives a temporary file its name, if that is free, even where there are no hard links.
fn link_or_rename(temporary: &Path, path: &Path) -> io::Result<()> {
    let linked = fs_err::hard_link(temporary, path);
    let Err(error) = &linked else {
        return linked;
    };
    if error.kind() == io::ErrorKind::AlreadyExists || exists(path)? {
        return linked;
    }
    fs_err::rename(temporary, path)
}

/// Why a file was not replaced.
#[derive(Debug)]
pub struct ReplaceError {
    pub error: io::Error,
    /// On a network file system a rename may be done and still be reported as failed.
    pub may_be_replaced: bool,
    /// Where the conversation is as it was before, in words for the user.
    pub state: Option<String>,
}

impl From<io::Error> for ReplaceError {
    fn from(error: io::Error) -> ReplaceError {
        ReplaceError {
            error,
            may_be_replaced: false,
            state: None,
        }
    }
}

/// Replaces a file by way of a temporary one, which gets the mode, the owner and the group of `like`.
pub(super) fn replace(
    path: &Path,
    bytes: &[u8],
    temporary: &Path,
    like: Option<&Metadata>,
) -> Result<(), ReplaceError> {
    if let Err(error) = write(temporary, bytes, like) {
        let _ = fs_err::remove_file(temporary);
        return Err(error.into());
    }
    let Err(error) = fs::rename(temporary, path) else {
        return Ok(());
    };
    // If the temporary file is still there, it was certainly not renamed.
    let may_be_replaced = fs::remove_file(temporary).is_err();
    Err(ReplaceError {
        error: named(error, "replace", path),
        may_be_replaced,
        state: None,
    })
}

/// Gives a file a second name, if that is free. Where there are no hard links, makes a copy.
pub(super) fn second_name(path: &Path, name: &Path, temporary: &Path) -> io::Result<()> {
    match fs_err::hard_link(path, name) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            create(name, &fs_err::read(path)?, temporary)
        }
        linked => linked,
    }
}

/// Whether two names are of one file.
pub(super) fn are_same(a: &Path, b: &Path) -> bool {
    let Ok(a) = fs::symlink_metadata(a) else {
        return false;
    };
    let Ok(b) = fs::symlink_metadata(b) else {
        return false;
    };
    a.dev() == b.dev() && a.ino() == b.ino()
}

/// Writes a file with the mode, and as far as possible the owner and the group, of `like`.
fn write(path: &Path, bytes: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    // A killed run may have left it.
    let _ = fs::remove_file(path);
    write_new(path, bytes, like).map_err(|error| named(error, "write", path))
}

fn write_new(path: &Path, bytes: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    let mode = like.map_or(PRIVATE_FILE, |like| like.mode() & 0o777);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let file = options.open(path)?;
    if let Some(like) = like {
        keep_owner(&file, like)?;
    }
    fill(&file, bytes, mode)
}

fn fill(mut file: &File, bytes: &[u8], mode: u32) -> io::Result<()> {
    file.write_all(bytes)?;
    // The umask may have removed bits of the mode, and a new owner some more.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Only root may give a file to another user; others may give it only to their own groups.
fn keep_owner(file: &File, like: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    let user = Some(like.uid());
    let group = Some(like.gid());
    if own.uid() != like.uid() && fchown(file, user, group).is_ok() {
        return Ok(());
    }
    if own.gid() == like.gid() {
        return Ok(());
    }
    fchown(file, None, group)
}

/// An error that says what failed on which file.
pub(super) fn named(error: io::Error, action: &str, path: &Path) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("cannot {action} {}: {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_file_that_is_deleted_while_it_is_read_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("talk.json");
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for _ in 0..5000 {
                    fs::write(&path, "").expect("a file");
                    fs::remove_file(&path).expect("no file");
                }
            });
            while !writer.is_finished() {
                assert!(!matches!(
                    read(&path).expect("a look at the file"),
                    FileContent::Conversation(_)
                ));
            }
        });
    }

    #[test]
    fn a_file_is_the_same_only_if_all_of_its_bytes_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let bytes = vec![b'a'; COMPARED_AT_ONCE * 3 / 2];
        assert!(!has_bytes(&path, &bytes), "there is no file");
        let (shorter, other) = (&bytes[1..], [&bytes[1..], b"b"].concat());
        for (written, same) in [
            (&bytes[..], true),
            (shorter, false),
            (&other, false),
            (&[&bytes, shorter].concat(), false),
        ] {
            fs::write(&path, written).expect("a file");
            assert_eq!(has_bytes(&path, &bytes), same, "{}", written.len());
        }
    }
}
