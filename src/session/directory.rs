//! The directory of conversations: what a file in it is, which file a conversation has, and how it is named to users.

use std::fs::{self, Metadata};
use std::io;
use std::io::ErrorKind::{InvalidInput, NotADirectory, NotFound, PermissionDenied};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::name::{self, CURRENT, SLOT};
use super::rules::{FileKind, Owner, of_file};
use super::timestamp::ID_PREFIX;
use crate::text::digits::whole_number;
use crate::unix;
use crate::whole_file::{
    OrCannot, PRIVATE, TEMPORARY, broken_link, is_missing, make_directory, names_in,
};

pub(super) const ENDING: &str = ".json";

/// Why there is no place for q's files.
pub const NO_HOME: &str = "there is no home directory";

/// The root of a directory that is nowhere. Nothing can ever be made there, because it is below a device.
const NOWHERE: &str = "/dev/null/q";

/// The rights in the mode of a directory.
const RIGHTS: u32 = 0o777;

/// The ending of a file that could not be read as a conversation.
pub(super) const UNREADABLE: &str = ".json.unreadable";

/// The next backup gets a number above the highest below this one.
const TOO_HIGH: u64 = 1_000_000_000;

/// The directory `q` among the user's state. It need not exist yet.
#[derive(Clone)]
pub struct StateDirectory {
    pub(super) root: PathBuf,
    /// Where the conversations are.
    pub sessions: PathBuf,
}

/// A file that contains a conversation, or should, as a list shows it.
pub struct ConversationFile {
    pub path: PathBuf,
    /// Its size; 0 if it leads to where the user may not look. Then it cannot be read, either.
    pub bytes: u64,
    /// Whether it is a backup, which has no number.
    pub is_backup: bool,
    modified: SystemTime,
}

impl StateDirectory {
    /// Returns the directory below `$XDG_STATE_HOME`, if that is set, else below the platform's directory for state, or for local
    /// data if it has none. `None` without a home directory.
    pub fn find(state_home: Option<PathBuf>) -> Option<StateDirectory> {
        let home = if let Some(home) = state_home {
            home
        } else {
            let directories = directories::BaseDirs::new()?;
            let home = directories
                .state_dir()
                .unwrap_or(directories.data_local_dir());
            home.to_owned()
        };
        // A relative path would mean a different directory in each place where q is started.
        if !home.is_absolute() {
            return None;
        }
        Some(StateDirectory::with_root(home.join("q")))
    }

    /// Returns a directory that has nothing and takes nothing, for a conversation whose file is elsewhere.
    pub fn nowhere() -> StateDirectory {
        StateDirectory::with_root(NOWHERE.into())
    }

    fn with_root(root: PathBuf) -> StateDirectory {
        StateDirectory {
            sessions: root.join("sessions"),
            root,
        }
    }

    fn is_nowhere(&self) -> bool {
        self.root == Path::new(NOWHERE)
    }

    /// Returns the path of the conversation with this name or id, which need not exist.
    pub fn path_of(&self, stem: &str) -> PathBuf {
        self.sessions.join(format!("{stem}{ENDING}"))
    }

    /// Returns what a file is.
    pub fn kind(&self, path: &Path) -> FileKind {
        if path.parent() != Some(&self.sessions) {
            return FileKind::External;
        }
        if let Some(numbers) = file_name_of(path).strip_prefix(TEMPORARY) {
            let is_own = |byte: u8| byte.is_ascii_digit() || byte == b'-';
            if numbers.bytes().all(is_own) {
                return FileKind::Temporary;
            }
        }
        let Some(stem) = stem_of(path) else {
            return FileKind::External;
        };
        if name::is_plain(&stem) && (stem == CURRENT || stem.starts_with(SLOT)) {
            return FileKind::Link;
        }
        let base = name::base(&stem);
        let is_generated = base.starts_with(ID_PREFIX);
        // What is named a little otherwise, such as an editor's backup, is not q's: no `-s` takes it.
        if !name::is_allowed(base) || is_generated && !name::is_id(base) {
            FileKind::External
        } else if base != stem {
            FileKind::Backup
        } else if is_generated {
            FileKind::AutoNamed
        } else {
            FileKind::Named
        }
    }

    /// Returns the number after this prefix in the name of a file; 0 if the name is another one, or the number has more than nine
    /// digits.
    pub(super) fn number_of(&self, path: &Path, prefix: &str) -> u64 {
        let name = self.name_of(path).unwrap_or_default();
        let number = name.strip_prefix(prefix);
        match number.and_then(whole_number) {
            Some(number) if number < TOO_HIGH => number,
            _ => 0,
        }
    }

    /// Whether a file is a backup of the conversation in another one.
    pub(super) fn is_backup_of(&self, backup: &Path, path: &Path) -> bool {
        let Some(name) = self.name_of(backup) else {
            return false;
        };
        match self.kind(path) {
            FileKind::External => name::is_backup_of_external(name::base(&name), path),
            _ => name::base(&name) != name && self.path_of(name::base(&name)) == path,
        }
    }

    /// Whether a file is where a link to a current conversation should be.
    pub(super) fn is_in_place_of_link(&self, path: &Path) -> bool {
        let is_file = |found: Metadata| found.is_file();
        self.kind(path) == FileKind::Link && path.symlink_metadata().is_ok_and(is_file)
    }

    /// Returns the name or id of the conversation in a file; `None` for one that only its path names.
    pub fn name_of(&self, path: &Path) -> Option<String> {
        match self.kind(path) {
            FileKind::AutoNamed | FileKind::Backup | FileKind::Named => stem_of(path),
            FileKind::Link | FileKind::Temporary | FileKind::External => None,
        }
    }

    /// Returns the value for `-s` that names the conversation in a file.
    pub fn id(&self, path: &Path) -> String {
        let by_path = || path.to_string_lossy().into_owned();
        self.name_of(path).unwrap_or_else(by_path)
    }

    /// Starts the time for which a conversation is kept: its file's time is set to now, but never backwards.
    pub fn touch(&self, path: &Path) {
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
        let is_earlier = modified.is_ok_and(|modified| modified < SystemTime::now());
        if is_earlier && of_file(self.kind(path)).owner == Owner::Q {
            unix::touch(path);
        }
    }

    /// Returns the file that a link leads to; any other path stays as it is, and a link into a directory that is missing, too. An
    /// error means that it is unknown where a link leads.
    pub(super) fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let target = match fs::read_link(path) {
            Err(error) if matches!(error.kind(), InvalidInput | NotFound) => {
                return Ok(path.to_owned());
            }
            link => self.sessions.join(link.or_cannot("follow", path)?),
        };
        // q's own links name a file next to them, so nothing but the link itself needs to be read, which may fail.
        let are_beside = self.has_conversation(path) && self.has_conversation(&target);
        if are_beside && !target.is_symlink() {
            return Ok(target);
        }
        let real = name::canonicalize(path);
        Ok(real.map_or_else(|_| path.to_owned(), |real| self.normalize(&real)))
    }

    /// Returns a path without links, as q writes it if it is in the directory.
    pub(super) fn normalize(&self, real: &Path) -> PathBuf {
        if let Ok(sessions) = fs::canonicalize(&self.sessions)
            && let Ok(below) = real.strip_prefix(sessions)
        {
            return self.sessions.join(below);
        }
        real.to_owned()
    }

    /// Whether a path is that of a conversation in the directory, or of a link to one.
    pub(super) fn has_conversation(&self, path: &Path) -> bool {
        of_file(self.kind(path)).is_conversation
    }

    /// Returns what is in the directory; nothing if there is no directory.
    pub(super) fn paths(&self) -> io::Result<Vec<PathBuf>> {
        if self.is_nowhere() {
            return Ok(Vec::new());
        }
        let names = match names_in(&self.sessions, usize::MAX) {
            Err(error) if error.kind() == NotFound => return Ok(Vec::new()),
            names => names.or_cannot("list", &self.sessions)?,
        };
        let paths = names.iter().map(|name| self.sessions.join(name));
        Ok(paths.collect())
    }

    /// Returns the files of conversations, newest first. Backups are listed if `all`, or if they are current.
    pub fn files(&self, all: bool) -> io::Result<Vec<ConversationFile>> {
        let current = self.read_link(&self.path_of(CURRENT)).ok();
        let mut files = Vec::new();
        for path in self.paths()? {
            let kind = self.kind(&path);
            let is_backup = kind == FileKind::Backup && Some(&path) != current.as_ref();
            // Files from other programs may be conversations, too.
            let is_other = !of_file(kind).is_conversation && stem_of(&path).is_none();
            if is_other || is_backup && !all {
                continue;
            }
            // Such a link is a second name of a conversation, which is listed by its first.
            let is_external = |target: PathBuf| self.kind(&target) == FileKind::External;
            if kind == FileKind::Link
                && path.is_symlink()
                && !self.read_link(&path).is_ok_and(is_external)
            {
                continue;
            }
            let (bytes, modified) = match metadata(&path) {
                Ok(Some(metadata)) if metadata.is_file() => (metadata.len(), metadata.modified()?),
                // It is no file, was removed in the meantime, or is a dangling link.
                Ok(_) => continue,
                // Nothing in the directory may be looked at.
                Err(error) if error.kind() == PermissionDenied && !path.is_symlink() => {
                    return Err(error);
                }
                // This one alone fails, once it is read.
                Err(_) => (0, modified_of_link(&path)),
            };
            files.push(ConversationFile {
                path,
                bytes,
                is_backup,
                modified,
            });
        }
        files.sort_by(|a, b| (b.modified, &b.path).cmp(&(a.modified, &a.path)));
        Ok(files)
    }

    /// Refuses directories of another user, who could read the conversations or add some, and links to a disk that is not
    /// mounted. Missing directories are accepted.
    pub fn check(&self) -> io::Result<()> {
        if self.is_nowhere() {
            let reason = format!("{NO_HOME}; set HOME or XDG_STATE_HOME");
            return Err(io::Error::other(reason));
        }
        let directories = Vec::from_iter(self.sessions.ancestors());
        for directory in directories.into_iter().rev() {
            let metadata = metadata(directory)?;
            let place = directory.display();
            if metadata.is_none()
                && let Some(link) = broken_link(directory)
            {
                let reason = format!("{place} is {link}");
                return Err(io::Error::other(reason));
            }
            let is_own = |found: Metadata| found.uid() == unix::effective_user();
            if directory.starts_with(&self.root) && !metadata.is_none_or(is_own) {
                return Err(io::Error::other(format!(
                    "{place} belongs to another user; sudo chown -R \"$(id -un)\" {place} makes it yours"
                )));
            }
        }
        Ok(())
    }

    /// Makes the directories, unless there are some, and takes the rights of others away. What their owner may not do there, q does
    /// not do either.
    pub(super) fn prepare(&self) -> io::Result<()> {
        self.check()?;
        for directory in [&self.root, &self.sessions] {
            make_directory(directory, PRIVATE)?;
            let mode = fs::metadata(directory).or_cannot("read", directory)?.mode();
            if mode & !PRIVATE & RIGHTS != 0 {
                // Some file systems have no modes.
                let private = fs::Permissions::from_mode(mode & PRIVATE);
                let _ = fs::set_permissions(directory, private);
            }
        }
        Ok(())
    }
}

/// Returns the metadata of what a path leads to; `None` if there is nothing.
pub fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if leads_nowhere(path, &error) => Ok(None),
        found => found.or_cannot("read", path).map(Some),
    }
}

/// Whether an error means that there is nothing at a path, or a link there that leads to nothing. Such a link may also lead below a
/// file; a path without a link does not, because it is below q's directory or one that the user has named.
pub(super) fn leads_nowhere(path: &Path, error: &io::Error) -> bool {
    is_missing(error) || error.kind() == NotADirectory && path.is_symlink()
}

/// Returns when a link was made; the beginning of time if that is unknown, too.
fn modified_of_link(link: &Path) -> SystemTime {
    let modified = fs::symlink_metadata(link).and_then(|metadata| metadata.modified());
    modified.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn file_name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the name of a conversation's file without its ending; `None` if it has no ending of a conversation, or is hidden.
fn stem_of(path: &Path) -> Option<String> {
    let name = file_name_of(path);
    let readable = name.strip_suffix(ENDING);
    let stem = readable.or_else(|| name.strip_suffix(UNREADABLE))?;
    (!stem.starts_with('.')).then(|| stem.to_owned())
}
