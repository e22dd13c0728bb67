//! The files of conversations: finds, reads, writes, links and removes them.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::conversation::Conversation;
use super::format::{self, MAX_SIZE, Unusable};
use super::lock::{Lock, NoLock};
use super::name::{self, STATE, Which};
use super::rules::Found;
use super::timestamp::{Timestamp, UNNAMED};
use crate::unix;

/// Files that nobody else may read.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

/// The name of a file that is being written, or the beginning or end of its name. What a killed run left does no harm.
const TEMPORARY: &str = ".tmp";

/// After a longer time without a sweep the clock may be wrong, so nothing is removed until the next one.
const MAX_ABSENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How often q looks for conversations to remove.
const SWEEP_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// A file dated before this was written while the clock was wrong: 2026-01-01, in seconds since 1970.
const FIRST_BELIEVED: Duration = Duration::from_secs(1_767_225_600);

/// The most bytes of a file's name.
const MAX_NAME: usize = 255;

/// How often a link is tried to be replaced while others replace it, too.
const LINK_ATTEMPTS: usize = 100;

const ENDING: &str = ".json";

/// What follows the name of a file that could not be read as a conversation.
const UNREADABLE: &str = ".json.unreadable";

/// The kind of the error if a pipe, a device or a folder is in a conversation's place.
pub(crate) const NOT_REGULAR: io::ErrorKind = io::ErrorKind::InvalidInput;

/// The folder `q` among the user's state. It need not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
    sessions: PathBuf,
}

/// Where a conversation is, or will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// Its file, without links at its end.
    pub(crate) path: PathBuf,
    /// The `current.json` that leads to it, or will.
    pub(crate) link: Option<PathBuf>,
    /// q gave the file its name, or will: it may be trimmed, swept and removed by q.
    pub(crate) is_unnamed: bool,
}

/// A file of the folder, in a list.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    pub(crate) modified: SystemTime,
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

    /// Where the conversations are.
    pub(crate) fn sessions(&self) -> &Path {
        &self.sessions
    }

    /// Finds the file of a conversation. It need not exist.
    ///
    /// # Errors
    /// A link leads to a folder that is not there, or the search for an old id failed. `NotFound`: the list has no such
    /// number.
    pub(crate) fn locate(&self, which: &Which) -> io::Result<Location> {
        match which {
            Which::Current { slot } => {
                let link = self.link(slot.as_deref());
                let path = self.resolve(&link)?;
                let is_unnamed = path == link || self.is_unnamed(&path);
                Ok(Location { path, link: Some(link), is_unnamed })
            }
            Which::Named(name) => {
                let path = self.resolve(&self.file(name))?;
                Ok(Location { path, link: None, is_unnamed: false })
            }
            Which::Id(id) => {
                let path = self.file(id);
                let old = if exists(&path)? { None } else { self.find_created(id)? };
                Ok(Location { path: old.unwrap_or(path), link: None, is_unnamed: true })
            }
            Which::Number(number) => {
                let mut listed = self.list(false)?;
                if *number > listed.len() {
                    let message = format!("there is no conversation %{number}: there are {}", listed.len());
                    return Err(io::Error::new(io::ErrorKind::NotFound, message));
                }
                let path = self.resolve(&listed.swap_remove(number - 1).path)?;
                let is_unnamed = self.is_unnamed(&path);
                Ok(Location { path, link: None, is_unnamed })
            }
            Which::File(path) => Ok(Location { path: path.clone(), link: None, is_unnamed: false }),
        }
    }

    /// The file `current.json`, or that of a slot.
    pub(crate) fn link(&self, slot: Option<&str>) -> PathBuf {
        self.file(&slot.map_or_else(|| "current".to_owned(), |slot| format!("current-{slot}")))
    }

    /// How users name the conversation in a file.
    pub(crate) fn which(&self, location: &Location) -> Which {
        match location.path.file_stem().and_then(OsStr::to_str) {
            Some(stem) if self.has(&location.path) && !is_current(&location.path) => Which::of_stem(stem),
            _ => Which::File(location.path.clone()),
        }
    }

    /// The value for `-s` that names the conversation in a file.
    pub(crate) fn id(&self, path: &Path, created: Timestamp) -> String {
        match path.file_stem().and_then(OsStr::to_str) {
            Some(stem) if self.has(path) && is_current(path) => match self.file(&created.id()) {
                // Another conversation has this id.
                taken if taken.exists() => stem.to_owned(),
                _ => created.id(),
            },
            Some(stem) if self.has(path) => stem.to_owned(),
            _ => path.to_string_lossy().into_owned(),
        }
    }

    pub(crate) fn file(&self, stem: &str) -> PathBuf {
        self.sessions.join(format!("{stem}{ENDING}"))
    }

    /// Whether a file is directly in the folder of conversations.
    fn has(&self, path: &Path) -> bool {
        path.parent() == Some(&self.sessions)
    }

    fn is_unnamed(&self, path: &Path) -> bool {
        self.has(path) && path.file_stem().and_then(OsStr::to_str).is_some_and(is_given_by_q)
    }

    /// Where a link leads; any other path as it is. What is in the folder itself gets its path as q has it.
    pub(super) fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        if !path.is_symlink() {
            return Ok(path.to_owned());
        }
        let real = name::resolve(path).map_err(io::Error::other)?;
        let sessions = fs_err::canonicalize(&self.sessions)?;
        Ok(real.strip_prefix(&sessions).map_or_else(|_| real.clone(), |below| self.sessions.join(below)))
    }

    /// The file of q 0.2 that has the conversation with this id: its name has the second only, or is that of a current one.
    fn find_created(&self, id: &str) -> io::Result<Option<PathBuf>> {
        let Some(created) = Timestamp::from_id(id) else { return Ok(None) };
        let old_name = format!("{UNNAMED}{}", created.stamp());
        for Listed { path, .. } in self.list(false)? {
            let name = path.file_name().map_or_else(Default::default, OsStr::to_string_lossy);
            if (name.starts_with(&old_name) || is_current(&path))
                && matches!(read(&path)?, Found::Conversation(conversation) if conversation.created == created)
            {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Refuses folders of another user, who could read what is in them, or put a conversation there.
    ///
    /// # Errors
    /// There is such a folder, or it cannot be looked at.
    pub(crate) fn check_owner(&self) -> io::Result<()> {
        for folder in [&self.root, &self.sessions] {
            match fs_err::metadata(folder) {
                Ok(metadata) if metadata.uid() != unix::effective_user() => {
                    let folder = folder.display();
                    return Err(io::Error::other(format!(
                        "{folder} belongs to another user; sudo chown -R \"$(id -un)\" {folder} makes it yours"
                    )));
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the folders, and corrects the modes of q's own.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(PRIVATE_FOLDER);
        let made = builder.create(&self.sessions);
        self.check_owner()?;
        for folder in [&self.root, &self.sessions] {
            if fs_err::metadata(folder).is_ok_and(|metadata| metadata.mode() & 0o7777 != PRIVATE_FOLDER) {
                fs_err::set_permissions(folder, fs::Permissions::from_mode(PRIVATE_FOLDER))?;
            }
        }
        made.or_else(|_| builder.create(&self.sessions))
            .map_err(|error| named(error, "make the folder", &self.sessions))
    }

    /// Whether the folder exists.
    ///
    /// # Errors
    /// It cannot be known, because a folder above it cannot be entered.
    pub(crate) fn exists(&self) -> io::Result<bool> {
        exists(&self.sessions)
    }

    /// Takes the lock for writing a file. While another process has the lock, `give_up` is asked from time to time, with
    /// the time waited.
    pub(crate) fn lock(&self, path: &Path, give_up: &dyn Fn(Duration) -> bool) -> Result<Lock, NoLock> {
        let lock = Lock::acquire(path.parent().unwrap_or(&self.sessions), give_up)?;
        // A killed run may have left it.
        let _ = fs::remove_file(self.temporary_for(path));
        if self.has(path) {
            let _ = fs::remove_file(temporary_link(&self.link(None)));
        }
        Ok(lock)
    }

    /// Writes a new conversation under its id. If the id is taken, `created` is counted up. Needs no lock, but without one
    /// it is taken where the system has no files without a name.
    pub(super) fn create(&self, conversation: &mut Conversation, lock: Option<&Lock>) -> io::Result<PathBuf> {
        let lock = lock.filter(|lock| lock.folder == self.sessions);
        let leftover = self.sessions.join(TEMPORARY);
        if lock.is_none() && leftover.exists() {
            // Its writer has the lock, unless it was killed.
            let _ = self.lock(&leftover, &|_| true);
        }
        loop {
            let path = self.file(&conversation.created.id());
            let next = conversation.created.next();
            match self.write_new(&path, &format::to_bytes(conversation)?, lock) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && next != conversation.created => {
                    conversation.created = next;
                }
                done => return done.map(|()| path),
            }
        }
    }

    /// Writes a file that must not exist yet.
    ///
    /// # Errors
    /// `AlreadyExists`, or it cannot be written.
    pub(super) fn write_new(&self, path: &Path, bytes: &[u8], lock: Option<&Lock>) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.sessions);
        // A file without a name disappears with its process.
        if let Ok(mut file) = unix::unnamed_file(folder, PRIVATE_FILE) {
            let written = file.write_all(bytes).and_then(|()| file.sync_all());
            written.map_err(|error| named(error, "write", path))?;
            match unix::name_file(&file, path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {}
                done => return done,
            }
        }
        let own_lock =
            if lock.is_none() { self.lock(path, &|waited| waited >= super::lock::LOCK_PATIENCE).ok() } else { None };
        let temporary = match (lock, &own_lock) {
            (None, None) => folder.join(format!("{TEMPORARY}-{}", std::process::id())),
            _ => self.temporary_for(path),
        };
        let written = write_temporary(&temporary, bytes, None).and_then(|()| second_name(&temporary, path));
        let _ = fs::remove_file(&temporary);
        written
    }

    /// Replaces a file, so that a reader finds either the complete old one or the complete new one. The caller has
    /// the lock.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.temporary_for(path);
        // Only a file that the user chose may have a mode and a group that the user chose.
        let like = if self.has(path) { None } else { fs::symlink_metadata(path).ok().filter(Metadata::is_file) };
        let written = write_temporary(&temporary, bytes, like.as_ref()).and_then(|()| fs_err::rename(&temporary, path));
        written.inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    }

    /// The file that is written before it replaces another. Only the holder of the lock writes it, so one name is
    /// enough; among a user's other files, the name says what it belongs to.
    fn temporary_for(&self, path: &Path) -> PathBuf {
        let Some(name) = path.file_name().filter(|_| !self.has(path)) else {
            return self.sessions.join(TEMPORARY);
        };
        let name = name.to_string_lossy();
        let longest = MAX_NAME - TEMPORARY.len() - 1;
        let end = (0..=longest.min(name.len())).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        path.with_file_name(format!(".{}{TEMPORARY}", &name[..end]))
    }

    /// The conversation that is current and will not be any more: a file in place of the link gets the name of its id,
    /// and the time to keep it starts now. `None`: there is none, or it is not q's to change.
    pub(super) fn leave(&self, link: &Path, lock: Option<&Lock>) -> io::Result<Option<PathBuf>> {
        let path = match lock {
            Some(lock) => self.settle(link, lock)?,
            None => self.resolve(link).unwrap_or_default(),
        };
        if !self.is_unnamed(&path) || !path.exists() {
            return Ok(None);
        }
        touch(&path);
        Ok(Some(path))
    }

    /// Where a conversation is from now on: a file in place of a link gets the name of its id.
    pub(super) fn settle(&self, path: &Path, lock: &Lock) -> io::Result<PathBuf> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() && self.has(path) && is_current(path) => self.adopt(path, lock),
            Ok(metadata) if metadata.is_symlink() => self.resolve(path),
            _ => Ok(path.to_owned()),
        }
    }

    /// Gives a file in place of a link, as q before 0.3 and other tools write it, the name of its id, and puts the link in
    /// its place. Returns where the conversation is then.
    fn adopt(&self, link: &Path, lock: &Lock) -> io::Result<PathBuf> {
        let temporary = temporary_link(link);
        let _ = fs::remove_file(&temporary);
        // Where there are no links, the file stays.
        if symlink("-", &temporary).is_err() {
            return Ok(link.to_owned());
        }
        let _ = fs::remove_file(&temporary);
        let path = match read(link)? {
            Found::Conversation(conversation) => self.adopted(link, conversation, lock)?,
            Found::Unusable(_) | Found::Nothing => {
                let modified = fs_err::metadata(link).and_then(|metadata| metadata.modified());
                let mut moment = Timestamp::of_file(modified?);
                loop {
                    let path = self.sessions.join(format!("{}{UNREADABLE}", moment.id()));
                    match second_name(link, &path) {
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !same_file(link, &path) => {
                            moment = moment.next();
                        }
                        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                        _ => break path,
                    }
                }
            }
        };
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(PRIVATE_FILE));
        self.point(link, &path)?;
        Ok(path)
    }

    /// Gives a conversation that can be read the name of its id.
    fn adopted(&self, link: &Path, mut conversation: Conversation, lock: &Lock) -> io::Result<PathBuf> {
        let path = self.file(&conversation.created.id());
        match second_name(link, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !same_file(link, &path) => {}
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => return Ok(path),
        }
        // An older q has continued it in place of the link.
        match read(&path)? {
            Found::Conversation(old) if conversation.exchanges.starts_with(&old.exchanges) => {
                self.replace(&path, &format::to_bytes(&conversation)?)?;
                Ok(path)
            }
            _ => {
                conversation.created = conversation.created.next();
                self.create(&mut conversation, Some(lock))
            }
        }
    }

    /// Makes a link lead to a conversation. Where there are no links, the conversation's file takes its place. Returns
    /// where the conversation is then.
    pub(super) fn point(&self, link: &Path, path: &Path) -> io::Result<PathBuf> {
        let (temporary, name) = (temporary_link(link), path.file_name().unwrap_or_default());
        if fs::read_link(link).is_ok_and(|target| target == Path::new(name)) {
            return Ok(path.to_owned());
        }
        for _ in 0..LINK_ATTEMPTS {
            match symlink(name, &temporary) {
                Ok(()) => {}
                // Another q is about to replace the link, or was killed before it did.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let _ = fs::remove_file(&temporary);
                    continue;
                }
                Err(_) if !link.is_symlink() => return fs_err::rename(path, link).map(|()| link.to_owned()),
                Err(error) => return Err(named(error, "make the link", link)),
            }
            match fs::rename(&temporary, link) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(named(error, "replace the link", link)),
                Ok(()) => return Ok(path.to_owned()),
            }
        }
        Err(named(io::ErrorKind::ResourceBusy.into(), "replace the link", link))
    }

    /// Keeps a conversation as it is, before it changes at another place than its end: as `ID~1.json`, or the next free
    /// number; for a file elsewhere, as a conversation of its own. The caller has the lock.
    pub(super) fn keep_state(&self, path: &Path) -> io::Result<PathBuf> {
        if !self.has(path) {
            let Found::Conversation(mut conversation) = read(path)? else { return Err(io::ErrorKind::NotFound.into()) };
            self.prepare()?;
            return self.create(&mut conversation, None);
        }
        let stem = path.file_stem().map_or_else(Default::default, OsStr::to_string_lossy);
        let mut number = 1;
        loop {
            let state = self.file(&format!("{}{STATE}{number}", name::base(&stem)));
            match second_name(path, &state) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
                Ok(()) => {
                    // The time to keep it starts now.
                    touch(&state);
                    return Ok(state);
                }
            }
        }
    }

    /// Marks a conversation as used, so that it is kept.
    pub(crate) fn touch(&self, location: &Location) {
        if location.is_unnamed {
            touch(&location.path);
        }
    }

    /// Removes a conversation, its earlier states and the links to it. Returns whether it existed. The caller has the lock.
    ///
    /// # Errors
    /// Something could not be removed.
    fn remove(&self, path: &Path) -> io::Result<bool> {
        let existed = remove(path)?;
        let Some(stem) = path.file_stem().and_then(OsStr::to_str).filter(|_| self.has(path)) else {
            return Ok(existed);
        };
        for entry in self.entries()? {
            let other = entry?.path();
            let Some(other_stem) = other.file_stem().and_then(OsStr::to_str) else { continue };
            let is_state = other_stem != stem && name::base(other_stem) == stem;
            let is_link = || fs::read_link(&other).is_ok_and(|target| Some(target.as_os_str()) == path.file_name());
            if is_state || is_link() {
                remove(&other)?;
            }
        }
        Ok(existed)
    }

    /// The same, unless another current conversation is the same one.
    pub(super) fn remove_left(&self, path: &Path) -> io::Result<()> {
        let is_current = self.targets()?.iter().any(|target| Some(target.as_os_str()) == path.file_name());
        if is_current { Ok(()) } else { self.remove(path).map(drop) }
    }

    /// Where the current ones lead.
    fn targets(&self) -> io::Result<Vec<PathBuf>> {
        let entries = self.entries()?.map(|entry| entry.map(|entry| entry.path()));
        let links = entries.filter(|path| path.as_ref().map_or(true, |path| is_current(path)));
        links.map(|link| link.map(|link| fs::read_link(link).unwrap_or_default())).collect()
    }

    /// Whether a new file in place of this one would have another group, or lock its owner out.
    pub(crate) fn cannot_keep_owner(&self, path: &Path) -> bool {
        let Ok(metadata) = fs::symlink_metadata(path) else { return false };
        let user = unix::effective_user();
        if self.has(path) || !metadata.is_file() || user == 0 {
            return false;
        }
        let shared = [0o060, 0o006].iter().any(|both| metadata.mode() & both == *both);
        !unix::is_in_group(metadata.gid()) || (metadata.uid() != user && !shared)
    }

    /// The files of conversations, newest first; earlier states only if `all`.
    pub(crate) fn list(&self, all: bool) -> io::Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for entry in self.entries()? {
            let path = entry?.path();
            let name = path.file_name().map_or_else(Default::default, OsStr::to_string_lossy).into_owned();
            let Some(stem) = name.strip_suffix(ENDING).or_else(|| name.strip_suffix(UNREADABLE)) else { continue };
            let is_q_link = || fs::read_link(&path).is_ok_and(|target| target.components().count() == 1);
            let is_state = name::base(stem) != stem;
            let is_second_name = (is_current(&path) || stem.starts_with(UNNAMED)) && is_q_link();
            if !name.starts_with('.') && !is_second_name && (all || !is_state) {
                listed.extend(listing(path)?);
            }
        }
        listed.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.path.cmp(&a.path)));
        Ok(listed)
    }

    /// What is in the folder; nothing if there is no folder.
    fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<fs_err::DirEntry>>> {
        let entries = match fs_err::read_dir(&self.sessions) {
            Ok(entries) => Some(entries),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                check_dangling_link(Some(&self.sessions)).map(|()| None)?
            }
            Err(error) => return Err(error),
        };
        Ok(entries.into_iter().flatten())
    }

    /// Deletes a conversation and the link to it; of a link of the user's own to the current one, only the link. `link` is
    /// the link by which the conversation is named. Returns whether there was one. The caller has the lock.
    pub(crate) fn clear(&self, location: &Location, link: Option<&Path>) -> io::Result<bool> {
        let is_own_link = location.link.is_some() && !location.is_unnamed;
        let existed = !is_own_link && self.remove(&location.path)?;
        match link.filter(|link| is_own_link || location.link.is_none() && link.is_symlink()) {
            Some(link) => Ok(remove(link)? || existed),
            None => Ok(existed),
        }
    }

    /// Deletes every conversation. Returns how many there were, without earlier states. The caller has the lock.
    ///
    /// # Errors
    /// How many were deleted, and why one could not be.
    pub(crate) fn clear_all(&self) -> Result<usize, (usize, io::Error)> {
        let (mut deleted, mut failed) = (0, None);
        for entry in self.entries().map_err(|error| (0, error))? {
            let Ok(path) = entry.map(|entry| entry.path()) else { continue };
            let name = path.file_name().map_or_else(Default::default, OsStr::to_string_lossy);
            let stem = name.strip_suffix(ENDING).or_else(|| name.strip_suffix(UNREADABLE));
            let is_temporary = name.starts_with(TEMPORARY);
            if !(is_temporary || stem.is_some()) || fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir()) {
                continue;
            }
            let counts = stem.is_some_and(|stem| name::base(stem) == stem) && !(is_current(&path) && path.is_symlink());
            match remove(&path) {
                Ok(existed) => deleted += usize::from(existed && counts && !is_temporary),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(deleted), |error| Err((deleted, error)))
    }

    /// Sweeps, at most once a day, unless another q has the lock. Without `keep`, or if it is zero, removes nothing.
    pub(super) fn sweep_if_due(&self, keep: Option<Duration>, now: SystemTime) {
        let Some(keep) = keep.filter(|keep| !keep.is_zero()) else { return };
        let is_due = self.swept(now).is_none_or(|since| since >= SWEEP_INTERVAL);
        if is_due && let Ok(_lock) = self.lock(&self.link(None), &|_| true) {
            self.sweep(keep, now);
        }
    }

    /// How long ago the last sweep was.
    fn swept(&self, now: SystemTime) -> Option<Duration> {
        age(&fs::metadata(self.root.join("swept")).ok()?, now)
    }

    /// Removes conversations without a name that nobody has changed for longer than `keep`, earlier states too, unless
    /// `current.json` leads to them; and links that lead nowhere. The caller has the lock.
    fn sweep(&self, keep: Duration, now: SystemTime) {
        let since = self.swept(now);
        let marker = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(PRIVATE_FILE)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
            .open(self.root.join("swept"))
            .and_then(|marker| marker.set_modified(now));
        // Without the mark, every run would do this.
        if marker.is_err() || since.is_some_and(|since| since > MAX_ABSENCE) {
            return;
        }
        let current = fs::read_link(self.link(None)).unwrap_or_default();
        let (mut links, mut old) = (Vec::new(), Vec::new());
        for path in self.entries().into_iter().flatten().flatten().map(|entry| entry.path()) {
            let name = path.file_name().map_or_else(Default::default, OsStr::to_string_lossy);
            let stem = name.split_once(ENDING).map_or("", |(stem, _)| stem);
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if metadata.is_symlink() && is_current(&path) {
                links.push(path);
                continue;
            }
            let limit = match () {
                () if name.starts_with(TEMPORARY) => SWEEP_INTERVAL,
                () if is_given_by_q(stem) || name.starts_with("current-") => keep,
                () => continue,
            };
            if !metadata.is_file() || current.as_os_str() == path.file_name().unwrap_or_default() {
                continue;
            }
            if metadata.modified().is_ok_and(|modified| modified < SystemTime::UNIX_EPOCH + FIRST_BELIEVED) {
                touch(&path);
            } else if age(&metadata, now).is_some_and(|age| age > limit) {
                old.push(path);
            }
        }
        for path in old {
            let _ = fs::remove_file(path);
        }
        for link in links.iter().filter(|link| self.resolve(link).is_ok_and(|path| self.is_unnamed(&path))) {
            if matches!(link.try_exists(), Ok(false)) {
                let _ = fs::remove_file(link);
            }
        }
    }
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
            return check_dangling_link(path.parent()).map(|()| (Found::Nothing, Vec::new()));
        }
        Err(error) => return Err(error),
    };
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(io::Error::new(NOT_REGULAR, format!("{} is not a regular file", path.display())));
    }
    if metadata.len() > MAX_SIZE as u64 {
        return Ok((Err(Unusable::TooLarge(metadata.len())).into(), Vec::new()));
    }
    let bytes = fs_err::read(path)?;
    Ok((format::read(&bytes).into(), bytes))
}

/// Whether there is anything at a path, even a link to nothing.
///
/// # Errors
/// It cannot be known, because a folder above it cannot be entered.
pub(crate) fn exists(path: &Path) -> io::Result<bool> {
    match fs_err::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => check_dangling_link(path.parent()).map(|()| false),
        Err(error) => Err(error),
    }
}

/// Distinguishes a missing folder from one that is out of reach, because a link leads to a disk that is not mounted.
///
/// # Errors
/// The folder, or one above it, is a link to nothing.
fn check_dangling_link(folder: Option<&Path>) -> io::Result<()> {
    let mut parts = folder.into_iter().flat_map(Path::ancestors);
    match parts.find(|part| part.is_symlink() && matches!(part.try_exists(), Ok(false))) {
        Some(link) => Err(io::Error::other(format!("{} is a link to something that does not exist", link.display()))),
        None => Ok(()),
    }
}

/// Whether a name is that of a current conversation.
fn is_current(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name == "current.json" || name.as_encoded_bytes().starts_with(b"current-")
}

/// Whether q, not the user, has given a file its name.
fn is_given_by_q(stem: &str) -> bool {
    matches!(Which::of_stem(stem), Which::Id(_))
}

/// Deletes a file. Returns whether it existed.
fn remove(path: &Path) -> io::Result<bool> {
    match fs_err::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A file with the time when it was changed; `None` if it is a folder or is gone.
fn listing(path: PathBuf) -> io::Result<Option<Listed>> {
    // The time of a link that leads nowhere is its own.
    match fs::metadata(&path).or_else(|_| fs_err::symlink_metadata(&path)) {
        Ok(metadata) if metadata.is_dir() => Ok(None),
        Ok(metadata) => Ok(Some(Listed { path, modified: metadata.modified()? })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// How long ago a file was changed; `None` if that is yet to come.
fn age(metadata: &Metadata, now: SystemTime) -> Option<Duration> {
    now.duration_since(metadata.modified().ok()?).ok()
}

/// Sets the time of a file to now. If that fails, the file is removed sooner.
fn touch(path: &Path) {
    let open = File::options().append(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let _ = open.and_then(|file| file.set_modified(SystemTime::now()));
}

/// Gives a file a second name, if that is free. Where there are no hard links, makes a copy.
fn second_name(path: &Path, name: &Path) -> io::Result<()> {
    match fs::hard_link(path, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if exists(name)? => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => {
            let temporary = name.with_file_name(format!("{TEMPORARY}-copy"));
            write_temporary(&temporary, &fs_err::read(path)?, None)?;
            fs_err::rename(&temporary, name)
        }
        Ok(()) => Ok(()),
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    let identity = |path| fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    identity(a).is_some_and(|a| Some(a) == identity(b))
}

fn temporary_link(link: &Path) -> PathBuf {
    link.with_file_name(format!("{TEMPORARY}-{}", link.file_name().unwrap_or_default().display()))
}

/// Writes a file with the mode, and as far as possible the owner and the group, of `like`.
fn write_temporary(path: &Path, bytes: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    let mode = like.map_or(PRIVATE_FILE, |like| like.mode() & 0o777);
    let written = || {
        remove(path)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        if let Some(like) = like {
            keep_owner(&file, like)?;
        }
        file.write_all(bytes)?;
        // The umask may have removed bits of the mode, and a new owner some more.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()
    };
    written().map_err(|error| named(error, "write", path))
}

/// Only root may give a file to another user; others may give it only to their own groups.
fn keep_owner(file: &File, like: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if own.uid() != like.uid() && fchown(file, Some(like.uid()), Some(like.gid())).is_ok() {
        return Ok(());
    }
    if own.gid() == like.gid() { Ok(()) } else { fchown(file, None, Some(like.gid())) }
}

fn named(error: io::Error, action: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {action} {}: {error}", path.display()))
}
