//! Reads the files of conversations, writes and removes them, and makes the link to the current one.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::conversation::Conversation;
use super::directory::{self, ENDING, StateDirectory, UNREADABLE};
use super::format::{self, MAX_SIZE};
use super::name::{self, BEFORE_NUMBER};
use super::rules::{FileKind, ReadOutcome};
use super::timestamp::Timestamp;
use crate::text::search::Word;
use crate::whole_file::{
    self, MAX_FILE, OrCannot, PRIVATE, ReadFailure, Temporary, is_missing, rename_new,
};

/// Reads what is at a path. A dangling link is nothing. A failure names the path.
pub fn read(path: &Path) -> ReadOutcome {
    read_again(path, None)
}

/// Reads what is at a path. A file that still has the bytes of a known conversation is not parsed again.
pub fn read_again(path: &Path, known: Option<&Conversation>) -> ReadOutcome {
    if let Some(known) = known
        && let Some(source) = &known.source
        && whole_file::has(path, source.as_bytes())
    {
        return Ok(Some(known.clone()));
    }
    let Some(bytes) = read_bytes(path)? else {
        return Ok(None);
    };
    let conversation = format::read(bytes).map_err(|reason| unusable(path, &reason))?;
    Ok(Some(conversation))
}

/// Reads what is at a path, if it may have all of these words. A file that lacks one is parsed only if it does not look like
/// one of q's.
pub fn read_if_it_may_have(path: &Path, words: &[Word]) -> ReadOutcome {
    let Some(bytes) = read_bytes(path)? else {
        return Ok(None);
    };
    format::read_if_it_may_have(bytes, words).map_err(|reason| unusable(path, &reason))
}

/// Returns the bytes of a conversation's file, if there is one.
fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>, ReadFailure> {
    match whole_file::read(path, MAX_SIZE as u64) {
        Err(ReadFailure::System(error)) if directory::leads_nowhere(path, &error) => Ok(None),
        Err(ReadFailure::System(error)) => Err(error).or_cannot("read", path)?,
        Err(ReadFailure::Unusable(reason)) => Err(unusable(path, &reason)),
        Ok(bytes) => Ok(Some(bytes)),
    }
}

/// Returns the failure for something in a conversation's place that is none.
pub fn unusable(path: &Path, reason: &str) -> ReadFailure {
    ReadFailure::Unusable(format!("{}: {reason}", path.display()))
}

/// Returns the error for a pipe, a device or a directory in a conversation's place.
pub fn not_regular(path: &Path) -> io::Error {
    let path = path.display();
    io::Error::other(format!("{path}: it is not a regular file"))
}

/// Deletes a file or a link; a pipe, a device or a directory stays. Returns whether it was a file.
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
    pub fn write(directory: &StateDirectory, conversation: Conversation) -> io::Result<Draft> {
        // Its name is not known yet, but its directory is.
        let path = directory.path_of(&conversation.created.id());
        let write = |file: &mut dyn Write| format::write(&conversation, file);
        Ok(Draft {
            temporary: Temporary::stream_beside(&path, write, PRIVATE)?,
            conversation,
        })
    }

    /// Gives it the name of its id. If that is taken, `created` is counted up. The caller has the lock, if there is one.
    pub fn create(mut self, directory: &StateDirectory) -> io::Result<PathBuf> {
        let mut was_removed = false;
        loop {
            let created = self.conversation.created;
            let path = directory.path_of(&created.id());
            match self.temporary.create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    self.conversation.created = first_free(directory, created, ENDING)?;
                }
                // Another q has cleared all conversations while this one waited for the lock.
                Err(error) if error.kind() == ErrorKind::NotFound && !was_removed => {
                    was_removed = true;
                }
                done => return done.map(|()| path),
            }
            self = Draft::write(directory, self.conversation)?;
        }
    }
}

/// Returns the first moment from this one on whose id no file has.
fn first_free(
    directory: &StateDirectory,
    mut moment: Timestamp,
    ending: &str,
) -> io::Result<Timestamp> {
    loop {
        let path = directory.sessions.join(moment.id() + ending);
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

/// Replaces a conversation. With `keeps_backup`, the file as it was is copied to a backup, whose path is returned. The
/// caller has the lock.
pub fn rewrite(
    directory: &StateDirectory,
    path: &Path,
    conversation: &Conversation,
    keeps_backup: bool,
) -> io::Result<Option<PathBuf>> {
    let write = |file: &mut dyn Write| format::write(conversation, file);
    let temporary = Temporary::stream_beside(path, write, PRIVATE)?;
    if directory.kind(path) == FileKind::External
        && let Some(metadata) = directory::metadata(path)?
    {
        // The user has made it.
        temporary.take_rights(path, &metadata)?;
    }
    let mut backup = None;
    if keeps_backup {
        backup = Some(back_up(directory, path)?);
    }
    let Err(error) = temporary.replace(path) else {
        return Ok(backup);
    };
    if temporary.discard() {
        if let Some(backup) = backup {
            let _ = fs::remove_file(backup);
        }
        return Err(error);
    }
    let mut reason = format!("it is not certain whether the conversation has changed: {error}");
    if let Some(backup) = backup {
        let option = name::option_of(&directory.id(&backup));
        reason += &format!("; q{option} has the state before");
    }
    Err(io::Error::other(reason))
}

/// Copies a conversation before more than its end changes: in the directory to `ID~1.json`, `ID~2.json` and so on. A file
/// elsewhere is copied into the directory, under an id of its own.
fn back_up(directory: &StateDirectory, path: &Path) -> io::Result<PathBuf> {
    let read = whole_file::read(path, MAX_FILE).map_err(io::Error::from);
    let bytes = read.or_cannot("read", path)?;
    let Some(id) = directory.name_of(path) else {
        return back_up_external(directory, path, bytes);
    };
    let prefix = format!("{}{BEFORE_NUMBER}", name::base(&id));
    create_numbered(directory, &prefix, &bytes)
}

/// Copies a file elsewhere. Its id has the moment when the conversation began, and digits that only this file's backups have.
/// Somebody else may have chosen the tools that the file names, so the copy, which is the user's own, has none.
fn back_up_external(
    directory: &StateDirectory,
    path: &Path,
    mut bytes: Vec<u8>,
) -> io::Result<PathBuf> {
    directory.prepare()?;
    let read = format::read(bytes.clone());
    let mut conversation = read.map_err(|reason| unusable(path, &reason))?;
    if !conversation.tools.is_empty() {
        conversation.tools.clear();
        bytes = format::to_bytes(&conversation)?;
    }
    let prefix = conversation.created.id() + &name::digits_of(path);
    create_numbered(directory, &prefix, &bytes)
}

/// Writes a file whose name is this prefix and a number above the highest there is, so that the highest is the newest.
fn create_numbered(directory: &StateDirectory, prefix: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut highest = 0;
    for other in directory.paths()? {
        highest = highest.max(directory.number_of(&other, prefix));
    }
    let temporary = Temporary::write_beside(&directory.path_of(prefix), bytes, PRIVATE)?;
    loop {
        highest += 1;
        let path = directory.path_of(&format!("{prefix}{highest}"));
        match temporary.create(&path) {
            // Another q, which has no lock, may have made it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|()| path),
        }
    }
}

/// Makes a link lead to a conversation next to it. Returns the one that it leaves, whose time to be kept starts now. The
/// caller has the lock.
pub fn set_link(
    directory: &StateDirectory,
    link: &Path,
    path: &Path,
) -> io::Result<Option<PathBuf>> {
    migrate_to_link(directory, link)?;
    let left = directory.read_link(link)?;
    directory.touch(&left);
    // Lists show it before the one that it leaves.
    directory.touch(path);
    if left != path {
        Temporary::link(link, path)?.replace(link)?;
    }
    let is_left = left != path && left != link;
    Ok(is_left.then_some(left))
}

/// Gives a file that is in the place of the link the name of a conversation of its time, and makes the link lead there.
/// Where that cannot be done, the file stays. The caller has the lock.
pub fn migrate_to_link(directory: &StateDirectory, link: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(link) {
        Ok(metadata) if !metadata.is_symlink() => metadata,
        _ => return Ok(()),
    };
    if !metadata.is_file() {
        return Err(not_regular(link));
    }
    let ending = match read(link) {
        Err(ReadFailure::Unusable(_)) => UNREADABLE,
        found => found.map(|_| ENDING)?,
    };
    let moment = Timestamp::from_mtime(metadata.modified()?);
    let moment = first_free(directory, moment, ending)?;
    let path = directory.sessions.join(moment.id() + ending);
    // Where there are no symbolic links, the file stays where it is.
    let temporary = Temporary::link(link, &path)?;
    rename_new(link, &path).or_cannot("rename", link)?;
    temporary.replace(link)
}

#[cfg(test)]
pub mod tests {
    use super::super::conversation::tests::{conversation, moment};
    use super::*;

    /// Makes a state directory without conversations.
    pub fn empty_directory() -> (tempfile::TempDir, StateDirectory) {
        let root = tempfile::tempdir().expect("a directory");
        let directory = StateDirectory::find(Some(root.path().to_owned())).expect("a directory");
        directory.prepare().expect("a directory");
        (root, directory)
    }

    #[test]
    fn whatever_is_wrong_with_a_file_the_failure_names_it() {
        let (_root, directory) = empty_directory();
        for (name, bytes, reason) in [
            ("torn", &b"{"[..], "it cannot be parsed (it ends early"),
            ("latin", b"\xe4", "it cannot be parsed (incomplete utf-8"),
            ("newer", b"{\"version\":2}", "it has version 2"),
            ("large", &vec![b' '; MAX_SIZE + 1], "it has more than 10 MB"),
        ] {
            let path = directory.path_of(name);
            fs::write(&path, bytes).expect("a file");
            let found = [
                read(&path),
                read_again(&path, Some(&conversation(&[("one", "1")]))),
                read_if_it_may_have(&path, &[]),
            ];
            let expected = format!("{}: {reason}", path.display());
            for found in found {
                let failure = found.expect_err(name).to_string();
                assert!(failure.starts_with(&expected), "{failure}");
            }
        }
        let failure = read(&directory.sessions).expect_err("a directory");
        let expected = format!("{}: it is not a regular", directory.sessions.display());
        assert!(failure.to_string().starts_with(&expected), "{failure}");
    }

    #[test]
    fn conversations_of_one_moment_get_different_ids_without_a_lock() {
        let (_root, directory) = empty_directory();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let directory = &directory;
                scope.spawn(move || {
                    let talk = conversation(&[("question", &*number.to_string())]);
                    let draft = Draft::write(directory, talk).expect("a draft");
                    draft.create(directory).expect("an id");
                });
            }
        });
        let mut answers = Vec::new();
        for path in directory.paths().expect("files") {
            let found = read(&path).expect("a conversation").expect("a file");
            assert_eq!(directory.id(&path), found.created.id());
            answers.extend(found.entries().last().map(|entry| entry.text().to_string()));
        }
        answers.sort_by_key(|answer| answer.parse::<u32>().ok());
        assert_eq!(answers.join(" "), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
    }

    #[test]
    fn a_backup_gets_a_number_above_the_highest() {
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
            let (_root, directory) = empty_directory();
            for name in there.split(' ').filter(|name| !name.is_empty()) {
                create(&directory.path_of(name), b"{}").expect("a file");
            }
            create(&directory.path_of("work"), b"{}").expect("a file");
            let backup = back_up(&directory, &directory.path_of("work")).expect("a copy");
            assert_eq!(directory.id(&backup), next, "{there}");
            // A backup of a backup is one of the same conversation.
            let backup = back_up(&directory, &backup).expect("a copy");
            assert_ne!(directory.id(&backup), next, "{there}");
            assert_eq!(name::base(&directory.id(&backup)), "work", "{there}");
        }
    }

    #[test]
    fn no_second_id_is_found_for_the_last_moment_of_the_calendar() {
        let (_root, directory) = empty_directory();
        let last = "9999-12-31T23:59:59.999Z".to_owned();
        let last = Timestamp::try_from(last).expect("a time");
        create(&directory.path_of(&last.id()), b"{}").expect("a file");
        assert!(first_free(&directory, last, ENDING).is_err());
        assert_eq!(first_free(&directory, last, UNREADABLE).ok(), Some(last));
    }

    #[test]
    fn the_id_of_a_conversation_is_the_time_of_its_creation() {
        let (_root, directory) = empty_directory();
        let talk = Conversation::new(moment(0));
        let id = talk.created.id();
        let bytes = format::to_bytes(&talk).expect("bytes");
        let draft = Draft::write(&directory, talk).expect("a draft");
        let path = draft.create(&directory).expect("an id");
        assert_eq!(path, directory.path_of(&id));
        assert_eq!(fs::read(path).expect("a file"), bytes);
    }
}
