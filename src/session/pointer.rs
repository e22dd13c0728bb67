//! The link that makes a conversation the current one: makes it, and puts it in the place of a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::disk::{self, OrCannot, Temporary};
use super::folder::{ENDING, Folder, UNREADABLE};
use super::rules::FileContent;
use super::timestamp::Timestamp;

/// Makes a link lead to a conversation beside it. Returns what it led to before, whose time to be kept starts now. The
/// caller has the lock.
pub(super) fn set(folder: &Folder, link: &Path, path: &Path) -> io::Result<PathBuf> {
    adopt(folder, link)?;
    let left = folder.follow(link)?;
    folder.touch(&left);
    // Lists show it before the one that it leaves.
    folder.touch(path);
    if left != path {
        Temporary::link(link, path)?.replace(link)?;
    }
    Ok(left)
}

/// Gives a file that is in the place of the link the name of a conversation of its time, and makes the link lead there.
/// Where that cannot be done, the file stays. The caller has the lock.
pub(super) fn adopt(folder: &Folder, link: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(link) {
        Ok(metadata) if metadata.is_symlink() => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.or_cannot("look at", link)?,
    };
    // This fails for what is no file, such as a pipe.
    let ending = match disk::read(link)? {
        FileContent::Conversation(_) => ENDING,
        FileContent::Unusable(_) | FileContent::Nothing => UNREADABLE,
    };
    let changed = Timestamp::from_mtime(metadata.modified()?);
    let (_, path) = folder.reserve(changed, ending)?;
    let moved = make_room(link, &path);
    if moved.is_err() {
        disk::release(&path);
    }
    moved
}

fn make_room(link: &Path, path: &Path) -> io::Result<()> {
    // Where there are no symbolic links, the file stays.
    let temporary = Temporary::link(link, path)?;
    fs::rename(link, path).or_cannot("rename", link)?;
    temporary.replace(link)
}
