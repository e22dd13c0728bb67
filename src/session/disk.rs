//! Reads the files of conversations, writes and removes them, and makes the link to the current one.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::conversation::Conversation;
use super::folder::{self, ENDING, Folder, Kind, UNREADABLE, is_missing};
use super::format::{self, MAX_SIZE};
use super::name::{self, STATE, Which};
use super::rules::{self, Found};
use super::timestamp::Timestamp;
use crate::whole_file::{self, OrCannot, PRIVATE, TakenName, Temporary};

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

/// The error for a pipe, a device or a folder in a conversation's place.
pub fn not_regular(path: &Path) -> io::Error {
    let path = path.display();
    io::Error::other(format!("{path}: it is not a regular file"))
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
        let (created, name) = reserve(folder, self.conversation.created, ENDING)?;
        if created != self.conversation.created {
            self.conversation.created = created;
            let bytes = format::to_bytes(&self.conversation)?;
            self = Draft::write(folder, self.conversation, &bytes)?;
        }
        self.temporary.create(&name.path)?;
        Ok(name.used())
    }
}

/// Takes the first free id from a moment on, which also keeps those away who have no lock.
fn reserve(
    folder: &Folder,
    mut moment: Timestamp,
    ending: &str,
) -> io::Result<(Timestamp, TakenName)> {
    loop {
        let path = folder.sessions.join(moment.id() + ending);
        match TakenName::take(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => moment = moment.next(),
            taken => return Ok((moment, taken?)),
        }
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
        && let Some(metadata) = folder::metadata(path)?
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
        return Err(not_regular(link));
    }
    let ending = match read(link) {
        Err(error) if rules::is_unusable(&error) => UNREADABLE,
        found => found.map(|_| ENDING)?,
    };
    let moment = Timestamp::from_mtime(metadata.modified()?);
    let (_, name) = reserve(folder, moment, ending)?;
    // Where there are no symbolic links, the file stays where it is.
    let temporary = Temporary::link(link, &name.path)?;
    fs::rename(link, &name.path).or_cannot("rename", link)?;
    name.used();
    temporary.replace(link)
}

#[cfg(test)]
mod tests {
    use super::super::conversation::tests::moment;
    use super::*;

    #[test]
    fn conversations_of_one_moment_get_ids_of_their_own_without_a_lock() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::find(Some(root.path().to_owned())).expect("a folder");
        folder.prepare().expect("a folder");
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| reserve(&folder, moment(0), ENDING).expect("an id").1.used());
            }
        });
        // One that is not used is given back.
        drop(reserve(&folder, moment(0), ENDING));
        assert_eq!(folder.paths().expect("files").len(), 16);
    }
}
