//! The lock on conversations: its holder first undoes what a killed run left half done, and gives each conversation a
//! unique `created`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::format;
use super::timestamp::Timestamp;
use crate::unix;

/// How long to wait for the lock if nothing makes it urgent.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait between two looks at a lock that another process holds.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// A `created` further ahead of the clock was given while the clock was wrong.
const FURTHEST_AHEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// The most that q reads of the lock's file; its one line is far shorter.
const LONGEST_JOURNAL: u64 = 64 << 10;

/// Held while conversations are read, changed and written; dropping it releases it.
#[derive(Debug)]
pub(crate) struct Lock {
    /// The lock of the state folder; `None` if only a file elsewhere is written and the state folder cannot be used, or
    /// if there are no locks.
    state: Option<StateLock>,
    may_change_state: bool,
    /// The folder of the file that is written. Another user, or a q with another state folder, locks it as well.
    _folder: Option<File>,
}

/// Why there is no lock.
#[derive(Debug)]
pub(crate) enum NoLock {
    /// Another process has it, and the time to wait for it is over.
    Busy,
    /// This file system has no locks.
    Unsupported,
    /// The file or folder to lock cannot be opened.
    Failed(io::Error),
}

#[derive(Debug)]
struct StateLock {
    file: File,
    journal: Journal,
}

/// The content of the lock's file, as one line of JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    /// The last `created` that was given to a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archiving: Option<Archiving>,
}

/// A file that is being archived. It is archived once another file has replaced it, or it is gone.
#[derive(Debug, Serialize, Deserialize)]
struct Archiving {
    from: PathBuf,
    to: PathBuf,
}

impl Lock {
    /// Takes the lock in the state folder, and the one on the folder of conversations. While another process has one,
    /// `give_up` is asked from time to time, with the time waited.
    pub(super) fn of_state(file: &Path, sessions: &Path, give_up: &dyn Fn(Duration) -> bool) -> Result<Lock, NoLock> {
        let began = Instant::now();
        let state = StateLock::acquire(file, &|| give_up(began.elapsed()))?;
        let folder = match lock_folder(sessions, &|| give_up(began.elapsed())) {
            Err(NoLock::Busy) => return Err(NoLock::Busy),
            // The first lock is enough for all that share the state folder.
            folder => folder.ok(),
        };
        Ok(Lock { state: Some(state), may_change_state: true, _folder: folder })
    }

    /// Takes the lock on the folder of a file elsewhere and, if possible, the one in the state folder.
    pub(super) fn of_file(file: &Path, folder: &Path, give_up: &dyn Fn(Duration) -> bool) -> Result<Lock, NoLock> {
        let began = Instant::now();
        let folder = lock_folder(folder, &|| give_up(began.elapsed()))?;
        let state = match StateLock::acquire(file, &|| give_up(began.elapsed())) {
            Err(NoLock::Busy) => return Err(NoLock::Busy),
            state => state.ok(),
        };
        Ok(Lock { may_change_state: state.is_some(), state, _folder: Some(folder) })
    }

    /// Whether the state folder may be changed, too.
    pub(super) fn may_change_state(&self) -> bool {
        self.may_change_state
    }

    /// A substitute on file systems without locks, for an action that must work anyway.
    pub(crate) fn nowhere() -> Lock {
        Lock { state: None, may_change_state: true, _folder: None }
    }

    /// Undoes what a killed run began: the second name or copy that it gave a file before another file had taken the
    /// place of the first.
    pub(super) fn recover(&mut self) {
        let Some(state) = &mut self.state else { return };
        let Some(Archiving { from, to }) = state.journal.archiving.take() else { return };
        if is_unfinished(&from, &to) {
            let _ = fs::remove_file(&to);
        }
        state.write();
    }

    /// Notes that a file is about to be archived, until [`Lock::archived`].
    pub(super) fn archiving(&mut self, from: &Path, to: &Path) {
        if let Some(state) = &mut self.state {
            state.journal.archiving = Some(Archiving { from: from.to_owned(), to: to.to_owned() });
            state.write();
        }
    }

    /// Notes that the file is archived, or will not be.
    pub(super) fn archived(&mut self) {
        if let Some(state) = &mut self.state {
            state.journal.archiving = None;
            state.write();
        }
    }

    /// A `created` for a new conversation: now, or the first moment after all that were given, and after `after`, that of
    /// the conversation that it replaces or comes from. One more than [`FURTHEST_AHEAD`] of `now` does not count.
    pub(crate) fn unique(&mut self, now: Timestamp, after: Option<Timestamp>) -> Timestamp {
        let believed = after.filter(|after| now.elapsed_until(*after) <= FURTHEST_AHEAD);
        self.unique_from(now, believed.map_or(now, |after| now.max(after.next())), after)
    }

    /// The same for the rest of another conversation: its moment stays close to the other's.
    pub(super) fn unique_after(&mut self, now: Timestamp, other: Timestamp) -> Timestamp {
        self.unique_from(now, other.next(), Some(other))
    }

    /// Whether no `created` was given yet under this lock.
    pub(super) fn is_new(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.journal.created.is_none())
    }

    /// Notes that a conversation has this `created`, so that no other one gets it.
    pub(super) fn taken(&mut self, created: Timestamp) {
        if let Some(state) = &mut self.state {
            state.journal.created = state.journal.created.max(Some(created));
            state.write();
        }
    }

    fn unique_from(&mut self, now: Timestamp, wanted: Timestamp, other: Option<Timestamp>) -> Timestamp {
        // At the end of time there is no next moment.
        let wanted = if other == Some(wanted) { now } else { wanted };
        let last = self.state.as_ref().and_then(|state| state.journal.created);
        let believed = last.filter(|last| now.elapsed_until(*last) <= FURTHEST_AHEAD);
        let unique = believed.map_or(wanted, |last| wanted.max(last.next()));
        if let Some(state) = &mut self.state {
            state.journal.created = Some(unique);
            state.write();
        }
        unique
    }
}

impl StateLock {
    fn acquire(path: &Path, give_up: &dyn Fn() -> bool) -> Result<StateLock, NoLock> {
        loop {
            let file = open(path).map_err(|error| NoLock::Failed(named(error, path)))?;
            wait_for(&file, give_up)?;
            // If the file was deleted or replaced, two runs could hold a lock at once.
            let same = |held: fs::Metadata, there: fs::Metadata| (held.dev(), held.ino()) == (there.dev(), there.ino());
            if let (Ok(held), Ok(there)) = (file.metadata(), fs::metadata(path))
                && same(held, there)
            {
                let mut lock = StateLock { file, journal: Journal::default() };
                lock.read();
                return Ok(lock);
            }
            if give_up() {
                return Err(NoLock::Busy);
            }
        }
    }

    /// A file that cannot be read counts as empty.
    fn read(&mut self) {
        let mut text = String::new();
        let read = self.file.rewind().and_then(|()| (&self.file).take(LONGEST_JOURNAL).read_to_string(&mut text));
        let line = text.lines().next().filter(|_| read.is_ok()).unwrap_or_default();
        self.journal = serde_json::from_str(line).unwrap_or_default();
    }

    /// One write, and then the rest of a longer line is cut off: a run killed in between leaves a complete first
    /// line. If this file cannot be written, killed runs may leave more behind.
    fn write(&mut self) {
        // A path that is not UTF-8 cannot be noted.
        let Ok(mut line) = serde_json::to_string(&self.journal) else { return };
        line.push('\n');
        let written = self.file.rewind().and_then(|()| self.file.write_all(line.as_bytes()));
        let _ = written.and_then(|()| self.file.set_len(line.len() as u64));
    }
}

/// Whether a run was killed after it had made a second name or a copy, but before another file had taken the place:
/// everything archived is still in the original. A q with another state folder may have added to it.
fn is_unfinished(from: &Path, to: &Path) -> bool {
    let (Ok(from_metadata), Ok(to_metadata)) = (fs::symlink_metadata(from), fs::symlink_metadata(to)) else {
        return false;
    };
    if (from_metadata.dev(), from_metadata.ino()) == (to_metadata.dev(), to_metadata.ino()) {
        return true;
    }
    let exchanges = |path| format::read(&fs::read(path).ok()?).ok().map(|conversation| conversation.exchanges);
    match (exchanges(from), exchanges(to)) {
        (Some(from), Some(to)) => from.starts_with(&to),
        // If a file cannot be used, only its bytes can be compared.
        _ => fs::read(from).ok() == fs::read(to).ok(),
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    // Opening a pipe in its place would wait for a reader.
    options.custom_flags(libc::O_NONBLOCK);
    options.open(path).or_else(|error| {
        // A umask that removes all permissions has made it unusable even for its owner.
        let Ok(metadata) = fs::metadata(path) else { return Err(error) };
        if error.kind() != io::ErrorKind::PermissionDenied || metadata.uid() != unix::effective_user() {
            return Err(error);
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        options.open(path)
    })
}

fn lock_folder(folder: &Path, give_up: &dyn Fn() -> bool) -> Result<File, NoLock> {
    let file = File::open(folder).map_err(|error| NoLock::Failed(named(error, folder)))?;
    wait_for(&file, give_up)?;
    Ok(file)
}

fn wait_for(file: &File, give_up: &dyn Fn() -> bool) -> Result<(), NoLock> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if give_up() => return Err(NoLock::Busy),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_POLL),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(_)) => return Err(NoLock::Unsupported),
        }
    }
}

fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("cannot open {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::conversation::tests::{conversation, moment};
    use super::*;

    const AT_ONCE: &dyn Fn(Duration) -> bool = &|_| true;

    fn locked(folder: &Path) -> Lock {
        Lock::of_state(&folder.join("lock"), folder, AT_ONCE).expect("the lock")
    }

    fn write(path: &Path, text: &str) {
        fs::write(path, text).expect("a file");
    }

    #[test]
    fn every_conversation_gets_a_moment_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        assert_eq!(locked(folder).unique(moment(0), None), moment(0));
        // The clock stands still, goes back, moves on.
        assert_eq!(locked(folder).unique(moment(0), None), moment(0).next());
        assert_eq!(locked(folder).unique(moment(-9), None), moment(0).next().next());
        assert_eq!(locked(folder).unique(moment(5), None), moment(5));
        // A file from another program has that moment, or a later one.
        assert_eq!(locked(folder).unique(moment(6), Some(moment(6))), moment(6).next());
        assert_eq!(locked(folder).unique(moment(6), Some(moment(8))), moment(8).next());
        assert_eq!(locked(folder).unique_after(moment(9), moment(2)), moment(8).next().next());
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        assert_eq!(locked(folder).unique_after(moment(9), moment(2)), moment(2).next());
        // The clock was wrong by more than a day.
        let far = 60 * 60 * 24 * 365;
        assert_eq!(locked(folder).unique(moment(far), None), moment(far));
        assert_eq!(locked(folder).unique(moment(7), None), moment(7));
        assert_eq!(locked(folder).unique(moment(7), None), moment(7).next());
        // The conversation that it replaces was made while the clock was wrong.
        assert_eq!(locked(folder).unique(moment(8), Some(moment(far))), moment(8));
        // There is no moment after the last one.
        let last = Timestamp::from_id("session_99991231235959999").expect("an id");
        assert_eq!(locked(folder).unique(moment(9), Some(last)), moment(9));
        // A moment that came from elsewhere is not given again.
        locked(folder).taken(moment(20));
        assert_eq!(locked(folder).unique(moment(20), None), moment(20).next());
        locked(folder).taken(moment(3));
        assert_eq!(locked(folder).unique(moment(20), None), moment(20).next().next());
    }

    #[test]
    fn a_lock_is_held_by_one_and_given_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let (folder, file) = (folder.path(), folder.path().join("lock"));
        let held = locked(folder);
        assert!(matches!(Lock::of_state(&file, folder, AT_ONCE), Err(NoLock::Busy)));
        assert!(matches!(Lock::of_file(&file, folder, AT_ONCE), Err(NoLock::Busy)));
        drop(held);
        let elsewhere = Lock::of_file(&folder.join("no/lock"), folder, AT_ONCE).expect("the lock on the folder alone");
        assert!(matches!(Lock::of_state(&file, folder, AT_ONCE), Err(NoLock::Busy)));
        drop(elsewhere);
        drop(locked(folder));
    }

    #[test]
    fn a_lock_on_a_file_that_was_replaced_does_not_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let first = open(&path).expect("a file");
        first.lock().expect("a lock");
        // Replaced while the second run waits for the lock on the first file.
        let tries = std::cell::Cell::new(0);
        let lock = StateLock::acquire(&path, &|| {
            tries.set(tries.get() + 1);
            if tries.get() == 1 {
                fs::remove_file(&path).expect("a file to remove");
                first.unlock().expect("a lock to give back");
            }
            tries.get() > 2
        });
        let held = lock.expect("the lock").file.metadata().expect("a file").ino();
        assert_eq!(held, fs::metadata(&path).expect("a file").ino());
    }

    #[test]
    fn what_a_killed_run_left_is_undone_and_what_it_finished_stays() {
        let text = |exchanges: &[(&str, &str)]| {
            let mut bytes = Vec::new();
            format::write(&conversation(exchanges), &mut bytes).expect("memory takes everything");
            String::from_utf8(bytes).expect("text")
        };
        let (old, copy) = (text(&[("one", "1"), ("two", "2")]), text(&[("one", "1")]));
        let other = copy.replace("2026", "2025");
        for (what, from, to, stays) in [
            ("a link", Some(old.as_str()), None, false),
            ("a copy", Some(&old), Some(copy.as_str()), false),
            ("a copy of what cannot be used", Some("{"), Some("{"), false),
            ("another conversation has taken the place", Some(&other), Some(&old), true),
            ("the file is gone", None, Some(&old), true),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let (from_path, to_path) = (folder.path().join("current.json"), folder.path().join("session_1.json"));
            if let Some(from) = from {
                write(&from_path, from);
            }
            match to {
                Some(to) => write(&to_path, to),
                None => fs::hard_link(&from_path, &to_path).expect("a link"),
            }
            locked(folder.path()).archiving(&from_path, &to_path);
            locked(folder.path()).recover();
            assert_eq!(to_path.exists(), stays, "{what}");
            assert_eq!(from_path.exists(), from.is_some(), "{what}");
            // It is forgotten then.
            write(&to_path, "{");
            write(&from_path, "{");
            locked(folder.path()).recover();
            assert!(to_path.exists(), "{what}");
        }
    }

    #[test]
    fn a_journal_that_makes_no_sense_says_nothing() {
        for text in ["", "x", "{\"created\":\"yesterday\"}", "[]", "{\"archiving\":7}\n", "\u{0}\u{0}"] {
            let folder = tempfile::tempdir().expect("a folder");
            write(&folder.path().join("lock"), text);
            let mut lock = locked(folder.path());
            lock.recover();
            assert_eq!(lock.unique(moment(1), None), moment(1), "{text}");
        }
    }
}
