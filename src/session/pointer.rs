//! The link that makes a conversation the current one: makes it, and puts it in the place of a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::disk;
use super::folder::{ENDING, Folder, UNREADABLE};
use super::rules::FileContent;
use super::timestamp::Timestamp;
use crate::whole_file::{OrCannot, Temporary};

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
        Ok(metadata) if !metadata.is_symlink() => metadata,
        _ => return Ok(()),
    };
    if !metadata.is_file() {
        return Err(disk::not_regular(link));
    }
    let ending = match disk::read(link)? {
        FileContent::Conversation(_) => ENDING,
        _ => UNREADABLE,
    };
    let (_, path) = folder.free(Timestamp::from_mtime(metadata.modified()?), ending);
    // Where there are no symbolic links, nothing has changed yet.
    let temporary = Temporary::link(link, &path)?;
    fs::rename(link, &path).or_cannot("rename", link)?;
    temporary.replace(link)
}
