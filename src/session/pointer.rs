//! The link that makes a conversation the current one: makes it, and puts it in the place of a file.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::disk::{self, named};
use super::folder::{ENDING, Folder, UNREADABLE};
use super::rules::FileContent;
use super::timestamp::Timestamp;

/// Makes a link lead to a file beside it. The caller has the lock.
pub(super) fn set(link: &Path, path: &Path) -> io::Result<()> {
    let temporary = make(link, path)?;
    place(&temporary, link)
}

/// A link with a name of its own, which can take the place of another.
fn make(link: &Path, path: &Path) -> io::Result<PathBuf> {
    let temporary = disk::temporary_path(link.parent().unwrap_or(link));
    let name = path.file_name().unwrap_or_default();
    match symlink(name, &temporary) {
        Ok(()) => Ok(temporary),
        Err(error) => Err(named(error, "make the link", link)),
    }
}

fn place(temporary: &Path, link: &Path) -> io::Result<()> {
    if let Err(error) = fs::rename(temporary, link) {
        let _ = fs::remove_file(temporary);
        return Err(named(error, "replace", link));
    }
    Ok(())
}

/// Gives a file that is in the place of the link the name of a conversation of its time, and makes the link lead there.
/// Where that cannot be done, the file stays. The caller has the lock.
pub(super) fn adopt(folder: &Folder, link: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(link) {
        Ok(metadata) if metadata.is_symlink() => return Ok(()),
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(named(error, "look at", link)),
    };
    // This fails for what is no file, such as a pipe.
    let ending = match disk::read(link)? {
        FileContent::Conversation(_) => ENDING,
        FileContent::Unusable(_) | FileContent::Nothing => UNREADABLE,
    };
    let changed = Timestamp::from_mtime(metadata.modified()?);
    let id = folder.reserve_id(changed, ending)?.id();
    let path = folder.file_with(&id, ending);
    let moved = make_room(link, &path);
    if moved.is_err() {
        disk::release(&path);
    }
    moved
}

fn make_room(link: &Path, path: &Path) -> io::Result<()> {
    let temporary = make(link, path)?;
    if let Err(error) = fs::rename(link, path) {
        let _ = fs::remove_file(&temporary);
        return Err(named(error, "rename", link));
    }
    place(&temporary, link)
}
