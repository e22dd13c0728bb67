//! The files of conversations: finds, reads, replaces, archives and removes them.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::conversation::Conversation;
use super::format::{self, LARGEST, Unusable};
use super::lock::{Lock, NoLock};
use super::name::Which;
use super::rules::Found;
use super::timestamp::{ARCHIVED, Timestamp};
use crate::unix;

/// Files that nobody else may read.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

/// The name of a file that is being written, or the beginning or end of its name. What a killed run left does no harm.
const TEMPORARY: &str = ".tmp";

/// After a longer time without a search the clock may be wrong, so nothing is removed until the next one.
const LONGEST_ABSENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How often q looks for conversations to remove.
const SWEEP_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// How much of a file is written at once.
const WRITTEN_AT_ONCE: usize = 256 << 10;

/// The copy of a file that is being archived, on file systems without links.
const COPY: &str = ".tmp-copy";

/// The most bytes of a file's name.
const LONGEST_NAME: usize = 255;

/// What follows the name of a conversation.
pub(super) const ENDING: &str = ".json";

/// The kind of the error if a pipe, a device or a folder is in a conversation's place.
pub(crate) const NOT_REGULAR: io::ErrorKind = io::ErrorKind::InvalidInput;

/// What follows the name of an archived file that could not be read.
const UNREADABLE: &str = ".json.unreadable";

/// The folder `q` among the user's state. It need not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
    sessions: PathBuf,
}

impl Folder {
    /// The folder below `$XDG_STATE_HOME`, if that is set, else below the platform's folder for state, or for local
    /// data if it has none. `None` without a home folder.
    pub(crate) fn find(state_home: Option<PathBuf>) -> Option<Folder> {
        let home = state_home.or_else(|| {
            let folders = directories::BaseDirs::new()?;
            Some(folders.state_dir().unwrap_or_else(|| folders.data_local_dir()).to_owned())
        });
        // A relative path would mean another folder wherever q is started.
        let home = home.filter(|home| home.is_absolute())?;
        let root = home.join("q");
        Some(Folder { sessions: root.join("sessions"), root })
    }

    /// The file of a conversation. For an id, the file that has it now; if none has, one that does not exist.
    ///
    /// # Errors
    /// The search for an id failed, or a file that may have it cannot be read.
    pub(crate) fn path(&self, which: &Which) -> io::Result<PathBuf> {
        Ok(match which {
            Which::Current { slot: None } => self.sessions.join("current.json"),
            Which::Current { slot: Some(slot) } => self.sessions.join(format!("current-{slot}.json")),
            Which::Named(name) => self.sessions.join(format!("{name}.json")),
            Which::Id(created) => {
                let mut unread = None;
                // The last search finds a file that was renamed by hand.
                for beginning in ["current", ARCHIVED, ""] {
                    if let Some((path, _)) = self.find_created(*created, beginning, &mut unread)? {
                        return Ok(path);
                    }
                }
                // An unreadable file may be the right one.
                if let Some(error) = unread {
                    return Err(error);
                }
                self.sessions.join(format!("{}.json", created.id()))
            }
            Which::File(path) => path.clone(),
        })
    }

    /// Where the conversations are.
    pub(crate) fn sessions(&self) -> &Path {
        &self.sessions
    }

    /// Makes the folders, and corrects the modes of those that belong to this user.
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

    /// Whether the folder exists.
    ///
    /// # Errors
    /// It cannot be known, because a folder above it cannot be entered.
    pub(crate) fn exists(&self) -> io::Result<bool> {
        is_there(&self.sessions)
    }

    /// Takes the lock for writing a file, and undoes what a killed run left half done. While another process has the
    /// lock, `give_up` is asked from time to time, with the time waited.
    pub(crate) fn lock(&self, path: &Path, give_up: &dyn Fn(Duration) -> bool) -> Result<Lock, NoLock> {
        let file = self.root.join("lock");
        let mut lock = match self.folder_elsewhere(path) {
            Some(folder) => Lock::of_file(&file, folder, give_up)?,
            None => Lock::of_state(&file, &self.sessions, give_up)?,
        };
        lock.recover();
        if lock.is_new() {
            self.note_latest_created(&mut lock);
        }
        if lock.may_change_state() {
            self.undo_second_name(path);
            for leftover in [TEMPORARY, COPY] {
                let _ = fs::remove_file(self.sessions.join(leftover));
            }
        }
        if self.folder_elsewhere(path).is_some() {
            let _ = fs::remove_file(self.temporary_for(path));
        }
        Ok(lock)
    }

    /// Notes the latest `created` of all conversations in a new lock file, because the old one may have been deleted.
    fn note_latest_created(&self, lock: &mut Lock) {
        let conversations = self.all().into_iter().flatten().filter_map(|path| match read(&path) {
            Ok(Found::Conversation(conversation)) => Some(conversation.created),
            _ => None,
        });
        if let Some(latest) = conversations.max() {
            lock.taken(latest);
        }
    }

    /// Removes the archived name that a killed run gave to a file before it had put another file in its place; no
    /// other name, which may be the user's own.
    fn undo_second_name(&self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if !metadata.is_file() || metadata.nlink() < 2 {
            return;
        }
        let Ok(Found::Conversation(conversation)) = read(path) else { return };
        for archived in self.archived_names(&conversation.created.stamp(), ENDING) {
            let Ok(other) = fs::symlink_metadata(&archived) else { return };
            if archived != path && (other.dev(), other.ino()) == (metadata.dev(), metadata.ino()) {
                let _ = fs::remove_file(archived);
                return;
            }
        }
    }

    /// The names under which a conversation may be archived, in order.
    fn archived_names(&self, stamp: &str, ending: &str) -> impl Iterator<Item = PathBuf> {
        let suffix = |number: u32| if number == 1 { String::new() } else { format!("-{number}") };
        (1..).map(move |number| self.sessions.join(format!("{ARCHIVED}{stamp}{}{ending}", suffix(number))))
    }

    /// The folder of a file that is not among the conversations of this state folder.
    fn folder_elsewhere<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.parent().filter(|folder| *folder != self.sessions)
    }

    /// Replaces a file, so that a reader finds either the complete old one or the complete new one. The caller has
    /// the lock.
    pub(crate) fn replace(&self, path: &Path, conversation: &Conversation) -> io::Result<()> {
        self.replace_after(path, conversation, || Ok(None))
    }

    /// As [`Folder::replace`], for a file with another conversation: the old file is archived first, so that it is
    /// never missing. `stamp` and `ending` make its new name.
    pub(super) fn displace(
        &self,
        lock: &mut Lock,
        path: &Path,
        conversation: &Conversation,
        stamp: &str,
        ending: &str,
    ) -> io::Result<PathBuf> {
        let mut archived = PathBuf::new();
        let done = self.replace_after(path, conversation, || {
            archived = self.archive(lock, path, stamp, ending)?;
            Ok(Some(archived.clone()))
        });
        lock.archived();
        done?;
        make_private(&archived);
        Ok(archived)
    }

    fn replace_after(
        &self,
        path: &Path,
        conversation: &Conversation,
        before_rename: impl FnOnce() -> io::Result<Option<PathBuf>>,
    ) -> io::Result<()> {
        let temporary = self.temporary_for(path);
        // Only a file that the user chose may have a mode and an owner that the user chose.
        let like = self.folder_elsewhere(path).and_then(|_| fs::symlink_metadata(path).ok()).filter(Metadata::is_file);
        let written = write_new(&temporary, conversation, like.as_ref()).and_then(|()| {
            let archived = before_rename()?;
            fs_err::rename(&temporary, path).inspect_err(|_| {
                if let Some(archived) = archived {
                    let _ = fs::remove_file(archived);
                }
            })
        });
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// The file that is written before it replaces another. Only the holder of the lock writes it, so one name is
    /// enough; among a user's other files, the name says what it belongs to.
    fn temporary_for(&self, path: &Path) -> PathBuf {
        let Some(name) = path.file_name().filter(|_| self.folder_elsewhere(path).is_some()) else {
            return self.sessions.join(TEMPORARY);
        };
        let name = name.to_string_lossy();
        let longest = LONGEST_NAME - TEMPORARY.len() - 1;
        let end = (0..=longest.min(name.len())).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        path.with_file_name(format!(".{}{TEMPORARY}", &name[..end]))
    }

    /// Gives a file a second name, the first free one for archived files; without links, makes a copy.
    fn archive(&self, lock: &mut Lock, path: &Path, stamp: &str, ending: &str) -> io::Result<PathBuf> {
        if !lock.may_change_state() {
            return Err(io::Error::other(format!("the state folder {} cannot be used", self.root.display())));
        }
        let moved = self.moved_from_taken_moment(lock, path)?;
        let stamp = moved.as_ref().map_or_else(|| stamp.to_owned(), |conversation| conversation.created.stamp());
        let archived = self.first_free(&stamp, ending, |archived| {
            if is_there(archived)? {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            lock.archiving(path, archived);
            let copy = self.sessions.join(COPY);
            if let Some(conversation) = &moved {
                write_new(&copy, conversation, None)?;
                return fs_err::rename(&copy, archived);
            }
            fs::hard_link(path, archived).or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Err(error),
                _ => {
                    let bytes = fs_err::read(path)?;
                    write_new_bytes(&copy, PRIVATE_FILE, |file| file.write_all(&bytes))?;
                    fs_err::rename(&copy, archived)
                }
            })
        })?;
        // The time to keep it starts now. If its time cannot be set, it is removed sooner.
        if is_plain_file(&archived) {
            let _ = File::options().append(true).open(&archived).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Ok(archived)
    }

    /// The conversation in a file elsewhere. It gets a new `created` if its own is taken here: a q with
    /// another state folder may have given it.
    fn moved_from_taken_moment(&self, lock: &mut Lock, path: &Path) -> io::Result<Option<Conversation>> {
        if self.folder_elsewhere(path).is_none() {
            return Ok(None);
        }
        let Found::Conversation(mut conversation) = read(path)? else { return Ok(None) };
        let created = conversation.created;
        if self.find_created(created, "", &mut None)?.is_none() {
            lock.taken(created);
            return Ok(None);
        }
        conversation.created = lock.unique_after(Timestamp::of_file(SystemTime::now()), created);
        Ok(Some(conversation))
    }

    /// Writes an archived conversation. Needs no lock.
    pub(super) fn write_archived(&self, stamp: &str, conversation: &Conversation) -> io::Result<PathBuf> {
        // A file without a name disappears with its process.
        if let Ok(mut file) = unix::unnamed_file(&self.sessions, PRIVATE_FILE) {
            write_all(&mut file, conversation).and_then(|()| file.sync_all())?;
            if let Ok(archived) = self.first_free(stamp, ENDING, |archived| unix::name_file(&file, archived)) {
                return Ok(archived);
            }
        }
        let temporary = self.sessions.join(format!("{TEMPORARY}-{}", std::process::id()));
        let written = write_new(&temporary, conversation, None).and_then(|()| {
            self.first_free(stamp, ENDING, |archived| match fs::hard_link(&temporary, archived) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !is_there(archived)? => {
                    fs::rename(&temporary, archived)
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
        for path in self.archived_names(stamp, ending) {
            match make(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Ok(()) => return Ok(path),
                Err(error) => return Err(named(error, "archive as", &path)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The archived conversation created at this time, and its file.
    pub(crate) fn find_archived(&self, created: Timestamp) -> io::Result<Option<(PathBuf, Conversation)>> {
        self.find_created(created, ARCHIVED, &mut None)
    }

    /// The conversation created at this time, in a file whose name begins like this. A file that cannot be read is
    /// skipped; `unread` gets the first error.
    fn find_created(
        &self,
        created: Timestamp,
        beginning: &str,
        unread: &mut Option<io::Error>,
    ) -> io::Result<Option<(PathBuf, Conversation)>> {
        // The name of an archived file contains the second.
        let stamp = if beginning == ARCHIVED { created.stamp() } else { String::new() };
        let prefix = format!("{beginning}{stamp}");
        for entry in self.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            if !name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(ENDING)) {
                continue;
            }
            let path = entry.path();
            match read(&path) {
                Ok(Found::Conversation(conversation)) if conversation.created == created => {
                    return Ok(Some((path, conversation)));
                }
                Err(error) if error.kind() != NOT_REGULAR => {
                    unread.get_or_insert(error);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Archives a conversation and removes its file.
    pub(super) fn retire(&self, lock: &mut Lock, path: &Path, stamp: &str) -> io::Result<PathBuf> {
        let archived = self.archive(lock, path, stamp, ENDING);
        let done = archived.and_then(|archived| {
            fs_err::remove_file(path).map(|()| archived.clone()).inspect_err(|_| {
                let _ = fs::remove_file(&archived);
            })
        });
        lock.archived();
        let archived = done?;
        make_private(&archived);
        Ok(archived)
    }

    /// Whether a new file in place of this one would lock its owner out: it belongs to another user, q cannot give the
    /// new file to that user, and not everybody may read and write it.
    pub(crate) fn locks_owner_out(&self, path: &Path) -> bool {
        let Ok(metadata) = fs::symlink_metadata(path) else { return false };
        let own = [0, metadata.uid()].contains(&unix::effective_user());
        metadata.is_file() && self.folder_elsewhere(path).is_some() && !own && metadata.mode() & 0o006 != 0o006
    }

    /// The files of all conversations, including those that cannot be read; in no order.
    pub(crate) fn all(&self) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in self.entries()? {
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

    /// What is in the folder; nothing if there is no folder.
    fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<fs_err::DirEntry>>> {
        let entries = match fs_err::read_dir(&self.sessions) {
            Ok(entries) => Some(entries),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                expect_nothing(Some(&self.sessions)).map(|()| None)?
            }
            Err(error) => return Err(error),
        };
        Ok(entries.into_iter().flatten())
    }

    /// Removes what killed runs have left behind. The caller has the lock.
    pub(crate) fn remove_leftovers(&self) {
        for entry in fs::read_dir(&self.sessions).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes archived conversations, and current ones of a `Q_SESSION`, whose files nobody has changed for longer than
    /// `keep`; at most once a day. Without `keep`, or if it is zero, removes none. The caller has the lock.
    pub(super) fn sweep(&self, keep: Option<Duration>, now: SystemTime) {
        let Some(keep) = keep.filter(|keep| !keep.is_zero()) else { return };
        let marker = self.root.join("swept");
        let age = |metadata: &Metadata| metadata.modified().ok().and_then(|modified| now.duration_since(modified).ok());
        let since = fs::metadata(&marker).ok().and_then(|metadata| age(&metadata));
        if since.is_some_and(|since| since < SWEEP_INTERVAL) {
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
        // Without the mark, every run would do this. A clock that has jumped so far may jump back.
        if touched.is_err() || since.is_some_and(|since| since > LONGEST_ABSENCE) {
            return;
        }
        for entry in fs::read_dir(&self.sessions).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let limit = match &*name {
                name if name.starts_with(TEMPORARY) => SWEEP_INTERVAL,
                name if name.starts_with(ARCHIVED) || name.starts_with("current-") => keep,
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

/// The stamp and the ending for archiving a file without a usable conversation.
pub(super) fn unreadable_name(path: &Path) -> (String, &'static str) {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).unwrap_or_else(|_| SystemTime::now());
    (Timestamp::of_file(modified).stamp(), UNREADABLE)
}

/// Reads what is at a path.
///
/// # Errors
/// It cannot be read, for a reason that says nothing about its content.
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return expect_nothing(path.parent()).map(|()| (Found::Nothing, Vec::new()));
        }
        Err(error) => return Err(error),
    };
    // Opening a pipe would wait for a writer.
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

/// Whether there is anything at a path, even a link to nothing.
///
/// # Errors
/// It cannot be known, because a folder above it cannot be entered.
pub(crate) fn is_there(path: &Path) -> io::Result<bool> {
    match fs_err::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => expect_nothing(path.parent()).map(|()| false),
        Err(error) => Err(error),
    }
}

/// Tells an empty or missing folder from one that is out of reach, because a link leads to a disk that is not mounted.
///
/// # Errors
/// The folder, or one above it, is a link to nothing.
fn expect_nothing(folder: Option<&Path>) -> io::Result<()> {
    let mut parts = folder.into_iter().flat_map(Path::ancestors);
    match parts.find(|part| part.is_symlink() && matches!(part.try_exists(), Ok(false))) {
        Some(link) => Err(io::Error::other(format!("{} is a link to something that does not exist", link.display()))),
        None => Ok(()),
    }
}

/// Whether a name is one that q gives to archived conversations.
pub(crate) fn is_archived(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(ARCHIVED.as_bytes())
}

/// Whether a name is that of a current conversation.
pub(crate) fn is_current(name: &OsStr) -> bool {
    name == "current.json" || name.as_encoded_bytes().starts_with(b"current-")
}

/// Deletes a file. Returns whether it existed.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs_err::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes a conversation into a new file with the mode, and as far as possible the owner and the group, of `like`.
fn write_new(path: &Path, conversation: &Conversation, like: Option<&Metadata>) -> io::Result<()> {
    let mode = like.map_or(PRIVATE_FILE, |like| like.mode() & 0o777);
    write_new_bytes(path, mode, |file| {
        if let Some(like) = like {
            keep_owner(file, like);
        }
        write_all(file, conversation)
    })
}

/// Only root may give a file to another user; others may give it only to their own groups.
fn keep_owner(file: &File, like: &Metadata) {
    let Ok(own) = file.metadata() else { return };
    if own.uid() != like.uid() && fchown(file, Some(like.uid()), Some(like.gid())).is_ok() {
        return;
    }
    if own.gid() != like.gid() {
        let _ = fchown(file, None, Some(like.gid()));
    }
}

fn write_new_bytes(path: &Path, mode: u32, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let written = || {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        write(&mut file)?;
        // The umask may have removed bits of the mode, and a new owner some more.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()
    };
    written().map_err(|error| named(error, "write", path))
}

/// Writes in large parts, because a conversation has many small ones.
fn write_all(file: &mut File, conversation: &Conversation) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(WRITTEN_AT_ONCE, file);
    format::write(conversation, &mut writer)?;
    writer.flush()
}

/// Whether this is a file itself, not a link; the target of a link must not be changed.
fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// The archived file may have had a mode of its own.
fn make_private(path: &Path) {
    if is_plain_file(path) {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(PRIVATE_FILE));
    }
}

fn named(error: io::Error, action: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {action} {}: {error}", path.display()))
}
