//! Reads the files of conversations, writes and removes them, and makes the link to the current one.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::conversation::Conversation;
use super::folder::{self, ENDING, Folder, Kind, UNREADABLE, is_missing};
use super::format::{self, MAX_SIZE};
use super::name::{self, STATE, Which};
use super::rules::{self, Found};
use super::timestamp::Timestamp;
use crate::text::search::Word;
use crate::whole_file::{self, MAX_FILE, OrCannot, PRIVATE, Temporary, rename_new};

/// Reads what is at a path. A link that leads nowhere is nothing.
pub fn read(path: &Path) -> Found {
    read_again(path, None)
}

/// Reads what is at a path. A file that still has the bytes of a known conversation is not parsed again.
pub fn read_again(path: &Path, known: Option<&Conversation>) -> Found {
    if let Some(known) = known
        && let Some(source) = &known.source
        && whole_file::has(path, source.as_bytes())
    {
        return Ok(Some(known.clone()));
    }
    let Some(bytes) = read_bytes(path)? else {
        return Ok(None);
    };
    let conversation = format::read(bytes).map_err(io::Error::other)?;
    Ok(Some(conversation))
}

/// Reads what is at a path, if it may have all of these words. A file that lacks one is parsed only if it does not look like
/// one of q's.
pub fn read_if_it_may_have(path: &Path, words: &[Word]) -> Found {
    let Some(bytes) = read_bytes(path)? else {
        return Ok(None);
    };
    format::read_if_it_may_have(bytes, words).map_err(io::Error::other)
}

/// The bytes of a conversation's file, if there is one.
fn read_bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match whole_file::read(path, MAX_SIZE as u64) {
        Err(error) if is_missing(&error) => Ok(None),
        // It is not a regular file, or too large.
        Err(error) if rules::is_unusable(&error) => Err(error),
        read => read.or_cannot("read", path).map(Some),
    }
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
    /// Writes a conversation. Needs no lock.
    pub fn write(folder: &Folder, conversation: Conversation) -> io::Result<Draft> {
        // Its name is not known yet, but its folder is.
        let path = folder.file(&conversation.created.id());
        let write = |file: &mut dyn Write| format::write(&conversation, file);
        Ok(Draft {
            temporary: Temporary::stream_beside(&path, write, PRIVATE)?,
            conversation,
        })
    }

    /// Gives it the name of its id. If that is taken, `created` is counted up. The caller has the lock, if there is one.
    pub fn create(mut self, folder: &Folder) -> io::Result<PathBuf> {
        loop {
            let created = self.conversation.created;
            let path = folder.file(&created.id());
            match self.temporary.create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                done => return done.map(|()| path),
            }
            self.conversation.created = first_free(folder, created, ENDING)?;
            self = Draft::write(folder, self.conversation)?;
        }
    }
}

/// The first moment from this one on whose id no file has.
fn first_free(folder: &Folder, mut moment: Timestamp, ending: &str) -> io::Result<Timestamp> {
    loop {
        let path = folder.sessions.join(moment.id() + ending);
        if path.symlink_metadata().is_err() {
            return Ok(moment);
        }
        let next = moment.next();
        if next == moment {
            return Err(io::Error::other("there is no id left for a conversation"));
        }
        moment = next;
    }
}

/// Writes a file that must not exist yet, else the error is `AlreadyExists`. The caller has the lock.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Temporary::write_beside(path, bytes, PRIVATE)?.create(path)
}

/// Replaces a conversation. With `keeps_state`, the file as it was becomes an earlier state, whose path is returned. The
/// caller has the lock.
pub fn rewrite(
    folder: &Folder,
    path: &Path,
    conversation: &Conversation,
    keeps_state: bool,
) -> io::Result<Option<PathBuf>> {
    let write = |file: &mut dyn Write| format::write(conversation, file);
    let temporary = Temporary::stream_beside(path, write, PRIVATE)?;
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

/// Copies a conversation before more than its end changes: in the folder to `ID~1.json`, `ID~2.json` and so on, always above
/// the highest number there is, so that the highest is the newest. A file elsewhere is copied into the folder, under an id of
/// its own.
fn keep_state(folder: &Folder, path: &Path) -> io::Result<PathBuf> {
    let bytes = whole_file::read(path, MAX_FILE)?;
    let Which::Named(id) = folder.which(path) else {
        return keep_state_of_file(folder, bytes);
    };
    let id = name::base(&id);
    let mut highest = 0;
    for other in folder.paths()? {
        highest = highest.max(folder.state_number(&other, id));
    }
    let temporary = Temporary::write_beside(path, &bytes, PRIVATE)?;
    loop {
        highest += 1;
        let state = folder.file(&format!("{id}{STATE}{highest}"));
        match temporary.create(&state) {
            // Another q, which has no lock, may have made it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|()| state),
        }
    }
}

/// Copies a file elsewhere. Somebody else may have chosen the tools that it names, so the copy, which is the user's own,
/// has none.
fn keep_state_of_file(folder: &Folder, bytes: Vec<u8>) -> io::Result<PathBuf> {
    folder.prepare()?;
    let mut conversation = format::read(bytes.clone()).map_err(io::Error::other)?;
    if !conversation.tools.is_empty() {
        conversation.tools.clear();
        return Draft::write(folder, conversation)?.create(folder);
    }
    let beside = folder.file(&conversation.created.id());
    let draft = Draft {
        temporary: Temporary::write_beside(&beside, &bytes, PRIVATE)?,
        conversation,
    };
    draft.create(folder)
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
    let moment = first_free(folder, moment, ending)?;
    let path = folder.sessions.join(moment.id() + ending);
    // Where there are no symbolic links, the file stays where it is.
    let temporary = Temporary::link(link, &path)?;
    rename_new(link, &path).or_cannot("rename", link)?;
    temporary.replace(link)
}

#[cfg(test)]
mod tests {
    use super::super::conversation::tests::{conversation, moment};
    use super::*;

    fn empty_folder() -> (tempfile::TempDir, Folder) {
        let root = tempfile::tempdir().expect("a folder");
        let folder = Folder::find(Some(root.path().to_owned())).expect("a folder");
        folder.prepare().expect("a folder");
        (root, folder)
    }

    #[test]
    fn conversations_of_one_moment_get_ids_of_their_own_without_a_lock() {
        let (_root, folder) = empty_folder();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let folder = &folder;
                scope.spawn(move || {
                    let talk = conversation(&[("question", &*number.to_string())]);
                    let draft = Draft::write(folder, talk).expect("a draft");
                    draft.create(folder).expect("an id");
                });
            }
        });
        let mut answers = Vec::new();
        for path in folder.paths().expect("files") {
            let found = read(&path).expect("a conversation").expect("a file");
            assert_eq!(folder.id(&path), found.created.id());
            answers.extend(found.entries().last().map(|entry| entry.text().to_string()));
        }
        answers.sort_by_key(|answer| answer.parse::<u32>().ok());
        assert_eq!(answers.join(" "), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
    }

    #[test]
    fn an_earlier_state_gets_a_number_above_the_highest() {
        for (there, next) in [
            ("", "work~1"),
            ("work~1", "work~2"),
            ("work~2", "work~3"),
            ("work~9 work~10", "work~11"),
            ("work~007", "work~8"),
            ("other~5 work~x work~ worker~6", "work~1"),
            // It has more digits than q counts with.
            ("work~99999999999999999999", "work~1"),
        ] {
            let (_root, folder) = empty_folder();
            for name in there.split(' ').filter(|name| !name.is_empty()) {
                create(&folder.file(name), b"{}").expect("a file");
            }
            create(&folder.file("work"), b"{}").expect("a file");
            let state = keep_state(&folder, &folder.file("work")).expect("a copy");
            assert_eq!(folder.id(&state), next, "{there}");
            // A state of a state is one of the same conversation.
            let state = keep_state(&folder, &state).expect("a copy");
            assert_ne!(folder.id(&state), next, "{there}");
            assert_eq!(name::base(&folder.id(&state)), "work", "{there}");
        }
    }

    #[test]
    fn the_last_moment_of_the_calendar_has_one_id() {
        let (_root, folder) = empty_folder();
        let last = "9999-12-31T23:59:59.999Z".to_owned();
        let last = Timestamp::try_from(last).expect("a time");
        create(&folder.file(&last.id()), b"{}").expect("a file");
        assert!(first_free(&folder, last, ENDING).is_err());
        assert_eq!(first_free(&folder, last, UNREADABLE).ok(), Some(last));
    }

    #[test]
    fn an_id_is_the_moment_of_the_conversation() {
        let (_root, folder) = empty_folder();
        let talk = Conversation::new(moment(0));
        let id = talk.created.id();
        let bytes = format::to_bytes(&talk).expect("bytes");
        let draft = Draft::write(&folder, talk).expect("a draft");
        let path = draft.create(&folder).expect("an id");
        assert_eq!(path, folder.file(&id));
        assert_eq!(fs::read(path).expect("a file"), bytes);
    }
}
