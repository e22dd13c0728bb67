//! The state folder: the only code that reads and writes files of conversations.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::conversation::Conversation;
use super::format::{self, LARGEST, Unusable};
use super::name::Which;
use super::rules::Found;
use super::timestamp::Timestamp;
use crate::unix;

/// Files that nobody else may read.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

/// The name of the file that is being written, in the folder of the one that it will replace. Only the holder of the
/// lock writes, so one name is enough, and what a killed run left behind is in nobody's way.
const TEMPORARY: &str = ".tmp";

/// How often conversations are looked for that are to be removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// How long to wait for the lock, where nothing makes it urgent.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait between two looks at a lock that another process holds.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// How much of a file is written at once.
const WRITTEN_AT_ONCE: usize = 256 << 10;

/// How the names of conversations set aside begin.
const ASIDE: &str = "session_";

/// What follows the name of a conversation.
pub(crate) const ENDING: &str = ".json";

/// The kind of the error where a pipe, a device or a folder stands in a conversation's place.
pub(crate) const NOT_REGULAR: io::ErrorKind = io::ErrorKind::InvalidInput;

/// What follows the name of a file set aside that could not be read.
const UNREADABLE: &str = ".json.unreadable";

/// The folder `q` among the user's state, of which nothing needs to exist yet.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
    sessions: PathBuf,
}

/// Held while a conversation is read, changed and written; closing the file gives it back.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held for its drop")] File);

/// Why there is no lock.
#[derive(Debug)]
pub(crate) enum NoLock {
    /// Another process has it, and whoever waited gave up.
    Busy,
    /// This file system has no locks.
    Unsupported,
    /// The lock's file cannot be opened.
    Failed(io::Error),
}

impl Folder {
    /// The folder below `$XDG_STATE_HOME`, where that is set, else below the platform's folder for state, or for local data
    /// where it has none. `None` without a home.
    pub(crate) fn find(state_home: Option<PathBuf>) -> Option<Folder> {
        let home = state_home.or_else(|| {
            let folders = directories::BaseDirs::new()?;
            Some(folders.state_dir().unwrap_or_else(|| folders.data_local_dir()).to_owned())
        })?;
        let root = home.join("q");
        Some(Folder { sessions: root.join("sessions"), root })
    }

    /// The file of a conversation.
    pub(crate) fn path(&self, which: &Which) -> PathBuf {
        match which {
            Which::Current { slot: None } => self.sessions.join("current.json"),
            Which::Current { slot: Some(slot) } => self.sessions.join(format!("current-{slot}.json")),
            Which::Named(name) => self.sessions.join(format!("{name}.json")),
            Which::File(path) => path.clone(),
        }
    }

    /// Where the conversations are.
    pub(crate) fn sessions(&self) -> &Path {
        &self.sessions
    }

    /// Makes the folders, and puts their modes right where they are this user's.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        if let Some(parent) = self.root.parent() {
            fs_err::create_dir_all(parent)?;
        }
        for folder in [&self.root, &self.sessions] {
            match fs::DirBuilder::new().mode(PRIVATE_FOLDER).create(folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let metadata = fs_err::metadata(folder)?;
                    let open_to_others = metadata.mode() & 0o7777 != PRIVATE_FOLDER;
                    if metadata.is_dir() && open_to_others && metadata.uid() == unix::effective_user() {
                        fs_err::set_permissions(folder, fs::Permissions::from_mode(PRIVATE_FOLDER))?;
                    }
                }
                Err(error) => return Err(named(error, "make the folder", folder)),
            }
        }
        Ok(())
    }

    /// Whether there is anything at all.
    ///
    /// # Errors
    /// Nobody can say: a folder above cannot be entered.
    pub(crate) fn exists(&self) -> io::Result<bool> {
        is_there(&self.sessions)
    }

    /// Takes the lock. While another process has it, `give_up` is asked from time to time, with the time waited.
    pub(crate) fn lock(&self, give_up: &dyn Fn(Duration) -> bool) -> Result<Lock, NoLock> {
        let path = self.root.join("lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(PRIVATE_FILE)
            // Opening a pipe that somebody has put there would wait for a reader.
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .map_err(|error| NoLock::Failed(named(error, "open", &path)))?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(file)),
                Err(TryLockError::WouldBlock) if give_up(began.elapsed()) => return Err(NoLock::Busy),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_POLL),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(_)) => return Err(NoLock::Unsupported),
            }
        }
    }

    /// Writes a file in place of another, so that a reader finds either the old one or the new one, whole. The caller has
    /// the lock.
    pub(crate) fn replace(&self, path: &Path, conversation: &Conversation) -> io::Result<()> {
        self.replace_after(path, conversation, || Ok(None))
    }

    /// As [`Folder::replace`], for a file that holds another conversation: what is there gets a second name first, so
    /// that it is never missing. `aside` says by which stamp and ending.
    pub(crate) fn displace(
        &self,
        path: &Path,
        conversation: &Conversation,
        stamp: &str,
        ending: &str,
    ) -> io::Result<PathBuf> {
        let mut aside = PathBuf::new();
        self.replace_after(path, conversation, || {
            aside = self.link_aside(path, stamp, ending)?;
            Ok(Some(aside.clone()))
        })?;
        make_private(&aside);
        Ok(aside)
    }

    fn replace_after(
        &self,
        path: &Path,
        conversation: &Conversation,
        before_rename: impl FnOnce() -> io::Result<Option<PathBuf>>,
    ) -> io::Result<()> {
        let temporary = self.temporary_for(path);
        // Only a file of the user's own choice has a mode of the user's choice.
        let mode = if path.parent() == Some(&self.sessions) { PRIVATE_FILE } else { mode_of(path) };
        let written = write_new(&temporary, conversation, mode).and_then(|()| {
            let aside = before_rename()?;
            fs_err::rename(&temporary, path).inspect_err(|_| {
                if let Some(aside) = aside {
                    let _ = fs::remove_file(aside);
                }
            })
        });
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Among other people's files it has a name that tells whose it is.
    fn temporary_for(&self, path: &Path) -> PathBuf {
        match path.file_name() {
            Some(name) if path.parent() != Some(&self.sessions) => {
                path.with_file_name(format!(".{}{TEMPORARY}", name.to_string_lossy()))
            }
            _ => path.with_file_name(TEMPORARY),
        }
    }

    /// Takes away the second name that a run gave to a file which was killed before it had put another in its place. The
    /// caller has the lock.
    pub(crate) fn undo_unfinished(&self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if !metadata.is_file() || metadata.nlink() < 2 {
            return;
        }
        for entry in fs::read_dir(&self.sessions).into_iter().flatten().flatten() {
            let same =
                entry.metadata().is_ok_and(|other| (other.dev(), other.ino()) == (metadata.dev(), metadata.ino()));
            if same && is_aside(&entry.file_name()) && entry.path() != path {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Gives a file a second name among those set aside, the first that is free.
    fn link_aside(&self, path: &Path, stamp: &str, ending: &str) -> io::Result<PathBuf> {
        let aside = self.first_free(stamp, ending, |aside| match fs::hard_link(path, aside) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                // A file system without links.
                let bytes = fs_err::read(path)?;
                write_new_or_remove(aside, |file| file.write_all(&bytes))
            }
            done => done,
        })?;
        // It is kept from now on, however long it was left alone before. Where its time cannot be set it goes sooner.
        if is_plain_file(&aside) {
            let _ = File::options().append(true).open(&aside).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Ok(aside)
    }

    /// Writes a file of its own, set aside; needs no lock.
    pub(crate) fn write_aside(&self, stamp: &str, conversation: &Conversation) -> io::Result<PathBuf> {
        let temporary = self.sessions.join(format!("{TEMPORARY}-{}", std::process::id()));
        let written = write_new(&temporary, conversation, PRIVATE_FILE).and_then(|()| {
            self.first_free(stamp, ENDING, |aside| match fs::hard_link(&temporary, aside) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    write_new_or_remove(aside, |file| write_all(file, conversation))
                }
                done => done,
            })
        });
        let _ = fs::remove_file(&temporary);
        written
    }

    fn first_free(
        &self,
        stamp: &str,
        ending: &str,
        mut make: impl FnMut(&Path) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        let mut number = 1;
        loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = self.sessions.join(format!("{ASIDE}{stamp}{suffix}{ending}"));
            match make(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Ok(()) => return Ok(path),
                Err(error) => return Err(named(error, "set aside as", &path)),
            }
        }
    }

    /// The conversation that was set aside since, by its `created`, and where it lies.
    pub(crate) fn find_aside(&self, created: Timestamp) -> io::Result<Option<(PathBuf, Conversation)>> {
        let prefix = format!("{ASIDE}{}", created.stamp());
        for entry in fs_err::read_dir(&self.sessions)? {
            let entry = entry?;
            let name = entry.file_name();
            if !name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(ENDING)) {
                continue;
            }
            let path = entry.path();
            if let Ok(Found::Conversation(conversation)) = read(&path)
                && conversation.created == created
            {
                return Ok(Some((path, conversation)));
            }
        }
        Ok(None)
    }

    /// Removes a conversation's file, but keeps the conversation, set aside.
    pub(crate) fn retire(&self, path: &Path, stamp: &str) -> io::Result<PathBuf> {
        let aside = self.link_aside(path, stamp, ENDING)?;
        fs_err::remove_file(path)?;
        make_private(&aside);
        Ok(aside)
    }

    /// The files of all conversations, also of those that cannot be read; in no order.
    pub(crate) fn all(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs_err::read_dir(&self.sessions) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut paths = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if name.ends_with(ENDING.as_bytes()) || name.ends_with(UNREADABLE.as_bytes()) {
                paths.push(entry.path());
            }
        }
        Ok(paths)
    }

    /// Removes what killed runs have left behind. The caller has the lock.
    pub(crate) fn remove_leftovers(&self) {
        for entry in fs::read_dir(&self.sessions).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes what was set aside, and conversations of other terminals, that nobody has changed for longer than `keep`;
    /// once a day at most, and by their modification time alone. The caller has the lock.
    pub(crate) fn sweep(&self, keep: Option<Duration>, now: SystemTime) {
        let Some(keep) = keep.filter(|keep| !keep.is_zero()) else { return };
        let marker = self.root.join("swept");
        let age = |metadata: &Metadata| metadata.modified().ok().and_then(|modified| now.duration_since(modified).ok());
        if fs::metadata(&marker).is_ok_and(|metadata| age(&metadata).is_some_and(|age| age < SWEEP_INTERVAL)) {
            return;
        }
        let touched = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(PRIVATE_FILE)
            .custom_flags(libc::O_NONBLOCK)
            .open(&marker)
            .and_then(|marker| marker.set_modified(now));
        // Without the mark it would be done at every call.
        if touched.is_err() {
            return;
        }
        for entry in fs::read_dir(&self.sessions).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let limit = match &*name {
                name if name.starts_with(TEMPORARY) => SWEEP_INTERVAL,
                name if name.starts_with(ASIDE) || name.starts_with("current-") => keep,
                _ => continue,
            };
            let old = entry
                .metadata()
                .is_ok_and(|metadata| metadata.is_file() && age(&metadata).is_some_and(|age| age > limit));
            if old {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The ending and the stamp under which a file is set aside that holds no conversation that can be used.
pub(crate) fn unreadable_name(path: &Path) -> (String, &'static str) {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).unwrap_or_else(|_| SystemTime::now());
    (Timestamp::of_file(modified).stamp(), UNREADABLE)
}

/// Reads what stands at a path.
///
/// # Errors
/// It cannot be read, for a reason that says nothing about what it holds.
pub(crate) fn read(path: &Path) -> io::Result<Found> {
    read_with_source(path).map(|(found, _)| found)
}

/// As [`read`], with the bytes of the file.
///
/// # Errors
/// As for [`read`].
pub(crate) fn read_with_source(path: &Path) -> io::Result<(Found, Vec<u8>)> {
    let metadata = match fs_err::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Found::Nothing, Vec::new())),
        Err(error) => return Err(error),
    };
    // Opening a pipe would wait for somebody to write to it.
    if !metadata.is_file() {
        return Err(io::Error::new(NOT_REGULAR, format!("{} is not a regular file", path.display())));
    }
    if metadata.len() > LARGEST as u64 {
        return Ok((Found::Unusable(Unusable::TooLarge(metadata.len())), Vec::new()));
    }
    let bytes = fs_err::read(path)?;
    let found = format::read(&bytes).map_or_else(Found::Unusable, Found::Conversation);
    Ok((found, bytes))
}

/// Whether there is anything at a path, be it a link to nothing.
///
/// # Errors
/// Nobody can say: a folder above cannot be entered.
pub(crate) fn is_there(path: &Path) -> io::Result<bool> {
    match fs_err::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a name is one that q gives to conversations that it sets aside.
pub(crate) fn is_aside(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ASIDE.as_bytes())
}

/// Deletes a file. Returns whether there was one.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs_err::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_new(path: &Path, conversation: &Conversation, mode: u32) -> io::Result<()> {
    remove(path)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map_err(|error| named(error, "write", path))?;
    // The umask may have taken some of the mode.
    file.set_permissions(fs::Permissions::from_mode(mode))
        .and_then(|()| write_all(&mut file, conversation))
        .and_then(|()| file.sync_all())
        .map_err(|error| named(error, "write", path))
}

/// Writes in large parts, though a conversation has many small ones.
fn write_all(file: &mut File, conversation: &Conversation) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(WRITTEN_AT_ONCE, file);
    format::write(conversation, &mut writer)?;
    writer.flush()
}

/// Where there are no links, a file is written under its own name at once. It must not stay if it is not whole.
fn write_new_or_remove(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(path)?;
    write(&mut file).and_then(|()| file.sync_all()).inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}

/// Whether this is a file itself, and not a link to one, of which nothing must be changed.
fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// What is set aside may have been a file with a mode of its own.
fn make_private(path: &Path) {
    if is_plain_file(path) {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(PRIVATE_FILE));
    }
}

/// A file keeps its mode, but not that of a link's target, which is not replaced.
fn mode_of(path: &Path) -> u32 {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.mode() & 0o777,
        _ => PRIVATE_FILE,
    }
}

fn named(error: io::Error, action: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {action} {}: {error}", path.display()))
}
