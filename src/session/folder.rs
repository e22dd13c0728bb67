//! The folder of conversations: finds, names, lists, writes and removes them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::conversation::Conversation;
use super::files::{
    self, ReplaceError, check_dangling_link, exists, named, read, remove, second_name,
};
use super::format;
use super::lock::{LOCK_PATIENCE, Lock, NoLock};
use super::name::{self, STATE, Which};
use super::rules::FileContent;
use super::timestamp::{Timestamp, UNNAMED};
use crate::unix;

const PRIVATE_FOLDER: u32 = 0o700;

/// The beginning of the names of temporary files. One that a killed run has left does no harm.
pub(super) const TEMPORARY: &str = ".tmp";

pub(super) const ENDING: &str = ".json";

/// The beginning of the names of links to current conversations other than the plain one.
pub(super) const SLOT: &str = "current-";

/// The ending of a file that could not be read as a conversation.
pub(super) const UNREADABLE: &str = ".json.unreadable";

/// The folder `q` among the user's state. It need not exist yet.
#[derive(Debug, Clone)]
pub struct Folder {
    pub(super) root: PathBuf,
    pub(super) sessions: PathBuf,
}

/// Where a conversation is, or will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationLocation {
    /// Its file, without links at its end.
    pub path: PathBuf,
    /// The link that makes it the current one. The link need not exist yet.
    pub link: Option<PathBuf>,
    /// q has chosen the file's name, so q may trim, sweep and remove it.
    pub is_auto_named: bool,
}

/// A file that contains a conversation, or should, as a list shows it.
#[derive(Debug)]
pub struct ConversationFile {
    pub path: PathBuf,
    pub bytes: u64,
    /// An earlier state, which has no number.
    pub is_state: bool,
    modified: SystemTime,
}

impl Folder {
    /// The folder below `$XDG_STATE_HOME`, if that is set, else below the platform's folder for state, or for local
    /// data if it has none. `None` without a home folder.
    pub fn find(state_home: Option<PathBuf>) -> Option<Folder> {
        let home = if let Some(home) = state_home {
            home
        } else {
            let folders = directories::BaseDirs::new()?;
            let home = folders.state_dir().unwrap_or(folders.data_local_dir());
            home.to_owned()
        };
        // A relative path would mean a different folder in each place where q is started.
        if !home.is_absolute() {
            return None;
        }
        let root = home.join("q");
        Some(Folder {
            sessions: root.join("sessions"),
            root,
        })
    }

    /// Where the conversations are.
    pub fn sessions(&self) -> &Path {
        &self.sessions
    }

    /// Finds the file of a conversation. It need not exist. `NotFound`: the list has no such number.
    pub fn locate(&self, which: &Which) -> io::Result<ConversationLocation> {
        let mut link = None;
        let path = match which {
            Which::Current { slot } => {
                let current = self.link(slot.as_deref());
                let path = self.resolve(&current)?;
                link = Some(current);
                path
            }
            Which::Named(name) => self.resolve(&self.file(name))?,
            Which::Id(id) => self.find_id(id)?,
            Which::Number(number) => self.resolve(&self.find_number(*number)?)?,
            Which::File(path) => self.as_written(path),
        };
        let is_in_place_of_link = link.as_ref() == Some(&path);
        Ok(ConversationLocation {
            is_auto_named: is_in_place_of_link || self.is_auto_named(&path),
            path,
            link,
        })
    }

    /// How users name the conversation in a file.
    pub fn which(&self, path: &Path) -> Which {
        match path.file_stem().and_then(OsStr::to_str) {
            Some(stem) if self.has(path) && !is_current(path) => Which::from_stem(stem),
            _ => Which::File(path.to_owned()),
        }
    }

    /// The value for `-s` that names the conversation in a file.
    pub fn id(&self, path: &Path, created: Timestamp) -> String {
        match self.which(path) {
            Which::Named(name) | Which::Id(name) => name,
            _ if self.has(path) && is_current(path) => created.id(),
            _ => path.to_string_lossy().into_owned(),
        }
    }

    /// The file `current.json`, or that of a slot.
    pub fn link(&self, slot: Option<&str>) -> PathBuf {
        match slot {
            Some(slot) => self.file(&format!("{SLOT}{slot}")),
            None => self.file("current"),
        }
    }

    /// The file of a name or an id.
    pub fn file(&self, stem: &str) -> PathBuf {
        self.sessions.join(format!("{stem}{ENDING}"))
    }

    /// Whether a file is directly in the folder.
    pub(super) fn has(&self, path: &Path) -> bool {
        path.parent() == Some(&self.sessions)
    }

    /// Whether q, not the user, has given a conversation its name.
    pub(super) fn is_auto_named(&self, path: &Path) -> bool {
        self.has(path) && matches!(self.which(path), Which::Id(_))
    }

    /// Follows a link; any other path stays as it is. A file of the folder gets its path as q writes it.
    pub(super) fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let is_link = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata.is_symlink(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(named(error, "look at", path)),
        };
        if !is_link {
            return Ok(path.to_owned());
        }
        // q's own links name a file beside them, so the folders above need not be resolved.
        if let Ok(target) = fs_err::read_link(path)
            && self.has(path)
            && target.file_name() == Some(target.as_os_str())
            && !self.sessions.join(&target).is_symlink()
        {
            return Ok(self.sessions.join(target));
        }
        let real = name::resolve(path).map_err(io::Error::other)?;
        Ok(self.as_written(&real))
    }

    /// A path without links, as q writes it if it is in the folder.
    fn as_written(&self, real: &Path) -> PathBuf {
        let sessions = fs::canonicalize(&self.sessions).unwrap_or_else(|_| self.sessions.clone());
        match real.strip_prefix(&sessions) {
            Ok(below) => self.sessions.join(below),
            Err(_) => real.to_owned(),
        }
    }

    fn find_id(&self, id: &str) -> io::Result<PathBuf> {
        let path = self.file(id);
        if exists(&path)? {
            return Ok(path);
        }
        match self.find_created(id)? {
            Some(found) => Ok(found),
            None => self.file_of_id(id),
        }
    }

    /// The file of an id. If NAME in NAME~1 is a link, the state belongs to the conversation that it leads to.
    fn file_of_id(&self, id: &str) -> io::Result<PathBuf> {
        let (base, number) = id.split_at(name::base(id).len());
        let real = self.resolve(&self.file(base))?;
        let mut stem = base;
        if self.has(&real)
            && let Some(of_real) = real.file_stem().and_then(OsStr::to_str)
        {
            stem = of_real;
        }
        Ok(self.file(&format!("{stem}{number}")))
    }

    /// The file of q 0.2 with this id: its name has only the second, or is that of a current conversation.
    fn find_created(&self, id: &str) -> io::Result<Option<PathBuf>> {
        let Some(to_the_second) = id.get(.."session_20261121100000".len()) else {
            return Ok(None);
        };
        for ConversationFile { path, .. } in self.list(false)? {
            let is_candidate = is_current(&path) || name_of(&path).starts_with(to_the_second);
            if is_candidate
                && let FileContent::Conversation(conversation) = read(&path)?
                && conversation.created.id() == id
            {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// The conversation with this number in the list, which leaves out files that cannot be used.
    fn find_number(&self, number: usize) -> io::Result<PathBuf> {
        let mut left = number;
        for ConversationFile { path, .. } in self.list(false)? {
            match read(&path) {
                Ok(FileContent::Conversation(_)) => left -= 1,
                Err(error) if error.kind() != files::NOT_REGULAR => return Err(error),
                _ => {}
            }
            if left == 0 {
                return Ok(path);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("there is no conversation %{number}"),
        ))
    }

    /// Refuses folders of another user, who could read the conversations or add some.
    pub fn check_owner(&self) -> io::Result<()> {
        for folder in [&self.root, &self.sessions] {
            match fs::metadata(folder) {
                Ok(metadata) if metadata.uid() != unix::effective_user() => {
                    let folder = folder.display();
                    return Err(io::Error::other(format!(
                        "{folder} belongs to another user; sudo chown -R \"$(id -un)\" {folder} makes it yours"
                    )));
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(named(error, "look at", folder));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the folders, and corrects the modes of q's own.
    pub fn prepare(&self) -> io::Result<()> {
        self.check_owner()?;
        for folder in [&self.root, &self.sessions] {
            if let Ok(metadata) = fs::metadata(folder)
                && metadata.is_dir()
                && metadata.mode() & 0o7777 != PRIVATE_FOLDER
            {
                fs_err::set_permissions(folder, fs::Permissions::from_mode(PRIVATE_FOLDER))?;
            }
        }
        // It nearly always exists, and then the folders above it need no check.
        if self.sessions.is_dir() {
            return Ok(());
        }
        check_dangling_link(Some(&self.sessions))?;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(PRIVATE_FOLDER);
        builder
            .create(&self.sessions)
            .map_err(|error| named(error, "make the folder", &self.sessions))
    }

    /// Takes the lock for writing a file. While another process has the lock, calls `give_up` from time to time with the
    /// time waited.
    pub fn lock(&self, path: &Path, give_up: &dyn Fn(Duration) -> bool) -> Result<Lock, NoLock> {
        let lock = Lock::acquire(path.parent().unwrap_or(&self.sessions), give_up)?;
        // A killed run may have left them.
        let _ = fs_err::remove_file(self.temporary(path));
        if self.has(path) {
            self.remove_temporary_link();
        }
        Ok(lock)
    }

    /// The file that is written before it replaces another. Only the holder of the lock writes it, so one name is enough.
    pub(super) fn temporary(&self, path: &Path) -> PathBuf {
        let name = if self.has(path) {
            TEMPORARY.to_owned()
        } else {
            format!("{TEMPORARY}-q")
        };
        path.with_file_name(name)
    }

    /// Writes a new conversation under its id. If the id is taken, `created` is counted up. Needs no lock.
    pub(super) fn create(
        &self,
        conversation: &mut Conversation,
        lock: Option<&Lock>,
    ) -> io::Result<PathBuf> {
        loop {
            let path = self.file(&conversation.created.id());
            let bytes = format::to_bytes(conversation)?;
            let Err(error) = self.write_new(&path, &bytes, lock) else {
                return Ok(path);
            };
            let next = conversation.created.next();
            let is_last = next == conversation.created;
            if error.kind() != io::ErrorKind::AlreadyExists || is_last {
                return Err(error);
            }
            conversation.created = next;
        }
    }

    /// Writes a file that must not exist yet, else the error is `AlreadyExists`.
    pub(super) fn write_new(
        &self,
        path: &Path,
        bytes: &[u8],
        lock: Option<&Lock>,
    ) -> io::Result<()> {
        let temporary = self.temporary(path);
        let has_lock = lock.is_some_and(|lock| path.parent() == Some(&lock.folder));
        if !has_lock && fs::symlink_metadata(&temporary).is_ok() {
            // If the writer of that file was killed, the lock is free, and taking it removes the file.
            let _ = self.lock(path, &|_| true);
        }
        if let Some(created) = files::create_unnamed(path, bytes) {
            return created;
        }
        let own_lock = if has_lock {
            None
        } else {
            self.lock(path, &|waited| waited >= LOCK_PATIENCE).ok()
        };
        let temporary = if has_lock || own_lock.is_some() {
            temporary
        } else {
            own_temporary(path)
        };
        files::create(path, bytes, &temporary)
    }

    /// Replaces a file. A reader finds either the complete old one or the complete new one. The caller has the lock.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), ReplaceError> {
        if path.is_symlink() {
            return Err(io::Error::other(format!("{} has become a link", path.display())).into());
        }
        // Files of the folder are private. A file elsewhere keeps the mode and the group that the user gave it.
        let like = if self.has(path) {
            None
        } else {
            fs::metadata(path).ok()
        };
        files::replace(path, bytes, &self.temporary(path), like.as_ref())
    }

    /// Keeps a copy of a conversation before more than its end changes. In the folder, the copy is `ID~1.json` or has the
    /// next free number. A file elsewhere is copied into the folder, as a conversation with its own id. The caller has
    /// the lock.
    pub(super) fn keep_state(&self, path: &Path) -> io::Result<PathBuf> {
        let FileContent::Conversation(mut conversation) = read(path)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if !self.has(path) {
            self.prepare()?;
            return self.create(&mut conversation, None);
        }
        let id = self.id(path, conversation.created);
        let names = (1..).map(|number| format!("{}{STATE}{number}{ENDING}", name::base(&id)));
        let state = self.link_first_free(path, names)?;
        let _ = fs::set_permissions(&state, fs::Permissions::from_mode(files::PRIVATE_FILE));
        Ok(state)
    }

    /// Gives a file the first of these names that is free. The time for which it is kept starts now.
    pub(super) fn link_first_free(
        &self,
        path: &Path,
        names: impl Iterator<Item = String>,
    ) -> io::Result<PathBuf> {
        for name in names {
            let name = self.sessions.join(name);
            match second_name(path, &name, &self.temporary(&name)) {
                Ok(()) => {
                    unix::touch(&name);
                    return Ok(name);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Whether a new file in place of this one would have another group, or lock its owner out.
    pub fn cannot_keep_owner(&self, path: &Path) -> bool {
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return false;
        };
        let user = unix::effective_user();
        if self.has(path) || !metadata.is_file() || user == 0 {
            return false;
        }
        let mode = metadata.mode();
        let is_shared = mode & 0o060 == 0o060 || mode & 0o006 == 0o006;
        let locks_owner_out = metadata.uid() != user && !is_shared;
        locks_owner_out || !unix::is_in_group(metadata.gid())
    }

    /// The files of conversations, newest first. Earlier states are listed if `all`, or if they are current.
    pub fn list(&self, all: bool) -> io::Result<Vec<ConversationFile>> {
        let current = self.resolve(&self.link(None)).unwrap_or_default();
        let mut files = Vec::new();
        for path in self.paths()? {
            let name = name_of(&path);
            let Some(stem) = stem_of(&name) else { continue };
            let is_link = (is_current(&path) || stem.starts_with(UNNAMED)) && path.is_symlink();
            let is_second_name = is_link && self.resolve(&path).is_ok_and(|real| self.has(&real));
            let is_state = name::base(stem) != stem && path != current;
            if name.starts_with('.') || is_second_name || (is_state && !all) {
                continue;
            }
            let metadata = match metadata_of(&path) {
                Ok(metadata) => metadata,
                // It was removed in the meantime, or is a link that leads nowhere.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(named(error, "look at", &path)),
            };
            if metadata.is_dir() {
                continue;
            }
            files.push(ConversationFile {
                bytes: metadata.len(),
                is_state,
                modified: metadata.modified()?,
                path,
            });
        }
        files.sort_by(|a, b| {
            let by_time = b.modified.cmp(&a.modified);
            by_time.then_with(|| b.path.cmp(&a.path))
        });
        Ok(files)
    }

    /// What is in the folder; nothing if there is no folder.
    pub(super) fn paths(&self) -> io::Result<Vec<PathBuf>> {
        match fs::read_dir(&self.sessions) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                check_dangling_link(Some(&self.sessions))?;
                Ok(Vec::new())
            }
            Err(error) => Err(named(error, "list", &self.sessions)),
        }
    }

    /// Deletes a conversation and the link to it. If the link of a current conversation leads to one that the user has
    /// named, only the link is deleted. `link` is the link by which the conversation is named. Returns whether anything
    /// was there. The caller has the lock.
    pub fn clear(&self, location: &ConversationLocation, link: Option<&Path>) -> io::Result<bool> {
        let is_own_link = location.link.is_some() && !location.is_auto_named;
        let mut existed = false;
        if !is_own_link {
            existed = self.remove(&location.path)?;
        }
        let Some(link) = link else {
            return Ok(existed);
        };
        if is_own_link || (location.link.is_none() && link.is_symlink()) {
            existed |= remove(link)?;
        }
        Ok(existed)
    }

    /// Deletes every conversation. Returns how many there were, not counting earlier states. An error comes with the number
    /// of those that were deleted nevertheless. The caller has the lock.
    pub fn clear_all(&self) -> Result<usize, (usize, io::Error)> {
        let mut deleted = 0;
        let mut failed = None;
        for path in self.paths().map_err(|error| (0, error))? {
            let name = name_of(&path);
            let mut stem = stem_of(&name);
            // Hidden files that are not q's are no conversations.
            if name.starts_with('.') {
                stem = None;
            }
            let is_folder = path.is_dir() && !path.is_symlink();
            if is_folder || (stem.is_none() && !name.starts_with(TEMPORARY)) {
                continue;
            }
            let is_link = path.is_symlink() && (is_current(&path) || !path.exists());
            let is_conversation = stem.is_some_and(|stem| name::base(stem) == stem);
            let counts = is_conversation && !is_link;
            match remove(&path) {
                Ok(existed) => deleted += usize::from(existed && counts),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err((deleted, error)),
            None => Ok(deleted),
        }
    }

    /// Removes a conversation, its earlier states and the links to it. Returns whether it existed.
    pub(super) fn remove(&self, path: &Path) -> io::Result<bool> {
        let mut states = Vec::new();
        let mut links = Vec::new();
        if self.has(path) {
            // A file in place of the link has states that are named by its id.
            let id = match read(path) {
                Ok(FileContent::Conversation(conversation)) => self.id(path, conversation.created),
                _ => stem_of(&name_of(path)).unwrap_or_default().to_owned(),
            };
            for other in self.paths()? {
                let name = name_of(&other);
                if self.leads_to(&other, path)? {
                    links.push(other);
                } else if let Some(stem) = stem_of(&name)
                    && stem != id
                    && name::base(stem) == id
                {
                    states.push(other);
                }
            }
        }
        let existed = remove(path)?;
        for link in links {
            self.remove_link(&link, path)?;
        }
        for state in states {
            self.remove(&state)?;
        }
        Ok(existed)
    }

    /// Removes a conversation that is not current any more, unless it is current elsewhere.
    pub(super) fn remove_left(&self, path: &Path) -> io::Result<()> {
        for other in self.paths()? {
            if self.leads_to(&other, path)? {
                return Ok(());
            }
        }
        self.remove(path)?;
        Ok(())
    }

    /// Whether this is a link to a conversation.
    pub(super) fn leads_to(&self, link: &Path, path: &Path) -> io::Result<bool> {
        match self.resolve(link) {
            Ok(real) => Ok(link != real && real == path),
            // A link of the user's own may lead to a disk that is not mounted.
            Err(_) if !is_current(link) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether a name is that of a current conversation.
pub(super) fn is_current(path: &Path) -> bool {
    let name = name_of(path);
    name == "current.json" || name.starts_with(SLOT)
}

pub(super) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The metadata of what a path leads to, or of the link itself if it cannot be followed.
fn metadata_of(path: &Path) -> io::Result<fs::Metadata> {
    match fs::metadata(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => fs::symlink_metadata(path),
        metadata => metadata,
    }
}

/// The name of a conversation's file without its ending; `None` if it has no ending of a conversation.
pub(super) fn stem_of(name: &str) -> Option<&str> {
    name.strip_suffix(ENDING)
        .or_else(|| name.strip_suffix(UNREADABLE))
}

/// A temporary file beside this one that no other process uses.
pub(super) fn own_temporary(path: &Path) -> PathBuf {
    path.with_file_name(format!("{TEMPORARY}-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_link_that_another_q_has_moved_stays() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = Folder::find(Some(home.path().to_owned())).expect("a folder");
        folder.prepare().expect("folders");
        let link = folder.link(None);
        symlink("session_2.json", &link).expect("a link");
        folder
            .remove_link(&link, &folder.file("session_1"))
            .expect("a look at the link");
        assert_eq!(
            fs::read_link(&link).expect("a link"),
            Path::new("session_2.json")
        );
        folder
            .remove_link(&link, &folder.file("session_2"))
            .expect("no link");
        assert!(!link.is_symlink() && folder.paths().expect("no files").is_empty());
    }

    #[test]
    fn two_links_made_at_once_are_both_made() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = Folder::find(Some(home.path().to_owned())).expect("a folder");
        folder.prepare().expect("folders");
        let (together, link) = (Barrier::new(2), folder.link(None));
        let point = |conversation: &str| {
            for number in 0..1000 {
                together.wait();
                let path = folder.file(&format!("{conversation}{number}"));
                assert_eq!(folder.point(&link, &path).expect("a link"), path);
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| point("session_1"));
            point("session_2");
        });
    }

    #[test]
    fn a_file_does_not_take_the_place_of_a_link() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = Folder::find(Some(home.path().to_owned())).expect("a folder");
        folder.prepare().expect("folders");
        let link = folder.link(None);
        symlink("session_1.json", &link).expect("a link");
        assert!(folder.replace(&link, b"{}").is_err() && link.is_symlink());
        fs::remove_file(&link).expect("no link");
        assert!(folder.replace(&link, b"{}").is_ok());
    }
}
