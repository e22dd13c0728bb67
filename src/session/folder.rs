//! The folder of conversations: what a file in it is, which file a conversation has, and how it is named to users.

use std::fs::{self, Metadata};
use std::io;
use std::io::ErrorKind::{InvalidInput, NotFound};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::name::{self, CURRENT, SLOT, STATE, Which};
use super::timestamp::ID_PREFIX;
use crate::unix;
use crate::whole_file::{OrCannot, PRIVATE, TEMPORARY, make_folder};

pub(super) const ENDING: &str = ".json";

/// The ending of a file that could not be read as a conversation.
pub(super) const UNREADABLE: &str = ".json.unreadable";

/// Numbers of earlier states from here on are not counted with.
const TOO_HIGH: u64 = 1_000_000_000;

/// What a file is, by its name and its folder alone.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// `current.json` or `current-NAME.json`: a link to a current conversation, or a file in its place.
    Link,
    /// A conversation that q has named.
    Unnamed,
    /// An earlier state of any conversation.
    State,
    /// A conversation that the user has named.
    Named,
    /// A file that has no other name yet.
    Temporary,
    /// What others have made, in the folder or elsewhere, is theirs.
    Foreign,
}

impl Kind {
    /// Whether q has given a conversation its name, so q may trim, sweep and remove it.
    pub fn is_auto_named(self) -> bool {
        matches!(self, Kind::Link | Kind::Unnamed | Kind::State)
    }

    /// Whether it is a conversation of the folder, or a link to one.
    pub(super) fn is_conversation(self) -> bool {
        self == Kind::Named || self.is_auto_named()
    }
}

/// The folder `q` among the user's state. It need not exist yet.
#[derive(Clone)]
pub struct Folder {
    pub(super) root: PathBuf,
    /// Where the conversations are.
    pub sessions: PathBuf,
}

/// A file that contains a conversation, or should, as a list shows it.
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

    /// The file of this name.
    pub fn file(&self, stem: &str) -> PathBuf {
        self.sessions.join(format!("{stem}{ENDING}"))
    }

    /// The file of a name or an id. Names that are links in the folder have the file and the earlier states of what they
    /// lead to.
    pub(super) fn file_of(&self, name: &str) -> PathBuf {
        let base = name::base(name);
        let real = self.resolve(&self.file(base));
        if self.kind(&real) == Kind::Foreign {
            return self.file(name);
        }
        self.file(&name.replacen(base, &self.id(&real), 1))
    }

    /// What a file is.
    pub fn kind(&self, path: &Path) -> Kind {
        if path.parent() != Some(&self.sessions) {
            return Kind::Foreign;
        }
        if let Some(numbers) = name_of(path).strip_prefix(TEMPORARY) {
            let is_own = |byte: u8| byte.is_ascii_digit() || byte == b'-';
            if numbers.bytes().all(is_own) {
                return Kind::Temporary;
            }
        }
        let Some(stem) = stem_of(path) else {
            return Kind::Foreign;
        };
        let base = name::base(&stem);
        let is_generated = base.starts_with(ID_PREFIX);
        // What is named a little otherwise, such as an editor's backup, is not q's.
        if !name::is_plain(base) || is_generated && !name::is_id(base) {
            Kind::Foreign
        } else if base != stem {
            Kind::State
        } else if is_generated {
            Kind::Unnamed
        } else if base == CURRENT || base.starts_with(SLOT) {
            Kind::Link
        } else {
            Kind::Named
        }
    }

    /// The number of an earlier state of a conversation; 0 if the file is none of it, or if the number has more than nine
    /// digits.
    pub(super) fn state_number(&self, path: &Path, id: &str) -> u64 {
        let stem = stem_of(path).unwrap_or_default();
        let number = stem
            .strip_prefix(id)
            .and_then(|rest| rest.strip_prefix(STATE));
        match number.and_then(|number| number.parse().ok()) {
            Some(number) if self.kind(path) == Kind::State && number < TOO_HIGH => number,
            _ => 0,
        }
    }

    /// Whether a file is where a link to a current conversation should be.
    pub(super) fn is_in_place_of_link(&self, path: &Path) -> bool {
        let is_file = |found: Metadata| found.is_file();
        self.kind(path) == Kind::Link && path.symlink_metadata().is_ok_and(is_file)
    }

    /// How users name the conversation in a file.
    pub fn which(&self, path: &Path) -> Which {
        match (self.kind(path), stem_of(path)) {
            (Kind::Unnamed | Kind::State | Kind::Named, Some(stem)) => Which::Named(stem),
            _ => Which::File(path.to_owned()),
        }
    }

    /// The value for `-s` that names the conversation in a file.
    pub fn id(&self, path: &Path) -> String {
        match self.which(path) {
            Which::Named(name) => name,
            _ => path.to_string_lossy().into_owned(),
        }
    }

    /// Starts the time for which a conversation is kept: its file's time is set to now, but never backwards.
    pub fn touch(&self, path: &Path) {
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
        let is_earlier = modified.is_ok_and(|modified| modified < SystemTime::now());
        if is_earlier && self.kind(path).is_auto_named() {
            unix::touch(path);
        }
    }

    /// Follows a link as [`Folder::follow`] does; one that cannot be followed stays as it is.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        self.follow(path).unwrap_or_else(|_| path.to_owned())
    }

    /// Follows a link; any other path stays as it is, and a link into a folder that is missing, too. An error means that it
    /// is unknown where a link leads.
    pub(super) fn follow(&self, path: &Path) -> io::Result<PathBuf> {
        let target = match fs::read_link(path) {
            Err(error) if matches!(error.kind(), InvalidInput | NotFound) => {
                return Ok(path.to_owned());
            }
            link => self.sessions.join(link.or_cannot("follow", path)?),
        };
        // q's own links name a file beside them, so nothing but the link itself needs to be read, which may fail.
        let are_beside = self.kind(path).is_conversation() && self.kind(&target).is_conversation();
        if are_beside && !target.is_symlink() {
            return Ok(target);
        }
        let real = name::resolve(path);
        Ok(real.map_or_else(|_| path.to_owned(), |real| self.as_written(&real)))
    }

    /// A path without links, as q writes it if it is in the folder.
    pub(super) fn as_written(&self, real: &Path) -> PathBuf {
        if let Ok(sessions) = fs::canonicalize(&self.sessions)
            && let Ok(below) = real.strip_prefix(sessions)
        {
            return self.sessions.join(below);
        }
        real.to_owned()
    }

    /// What is in the folder; nothing if there is no folder.
    pub(super) fn paths(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.sessions) {
            Err(error) if error.kind() == NotFound => return Ok(Vec::new()),
            entries => entries.or_cannot("list", &self.sessions)?,
        };
        entries.map(|entry| Ok(entry?.path())).collect()
    }

    /// The files of conversations, newest first. Earlier states are listed if `all`, or if they are current.
    pub fn files(&self, all: bool) -> io::Result<Vec<ConversationFile>> {
        let current = self.resolve(&self.file(CURRENT));
        let mut files = Vec::new();
        for path in self.paths()? {
            let kind = self.kind(&path);
            let is_state = kind == Kind::State && path != current;
            // Those of others may be conversations, too.
            let is_other = !kind.is_conversation() && stem_of(&path).is_none();
            if is_other || is_state && !all {
                continue;
            }
            // Such a link is a second name of a conversation, which is listed by its first.
            if kind == Kind::Link
                && path.is_symlink()
                && self.kind(&self.resolve(&path)) != Kind::Foreign
            {
                continue;
            }
            // It may have been removed in the meantime, or be a link that leads nowhere.
            let Some(metadata) = metadata(&path)? else {
                continue;
            };
            if !metadata.is_file() {
                continue;
            }
            files.push(ConversationFile {
                bytes: metadata.len(),
                is_state,
                modified: metadata.modified()?,
                path,
            });
        }
        files.sort_by(|a, b| (b.modified, &b.path).cmp(&(a.modified, &a.path)));
        Ok(files)
    }

    /// Refuses folders of another user, who could read the conversations or add some, and links to a disk that is not
    /// mounted. Missing folders are accepted.
    pub fn check(&self) -> io::Result<()> {
        let folders = Vec::from_iter(self.sessions.ancestors());
        for folder in folders.into_iter().rev() {
            let metadata = metadata(folder)?;
            let place = folder.display();
            if metadata.is_none() && folder.is_symlink() {
                let reason = format!("{place} is a link to something that does not exist");
                return Err(io::Error::other(reason));
            }
            let is_own = |found: Metadata| found.uid() == unix::effective_user();
            if folder.starts_with(&self.root) && !metadata.is_none_or(is_own) {
                return Err(io::Error::other(format!(
                    "{place} belongs to another user; sudo chown -R \"$(id -un)\" {place} makes it yours"
                )));
            }
        }
        Ok(())
    }

    /// Makes the folders, unless there are some, and corrects their modes.
    pub(super) fn prepare(&self) -> io::Result<()> {
        self.check()?;
        for folder in [&self.root, &self.sessions] {
            make_folder(folder, PRIVATE)?;
            // Some file systems have no modes.
            let _ = fs::set_permissions(folder, fs::Permissions::from_mode(PRIVATE));
        }
        Ok(())
    }
}

/// The metadata of what a path leads to; `None` if there is nothing.
pub fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if is_missing(&error) => Ok(None),
        found => found.or_cannot("read", path).map(Some),
    }
}

/// Whether there is nothing at a path, or a link to itself.
pub fn is_missing(error: &io::Error) -> bool {
    error.kind() == NotFound || error.raw_os_error() == Some(libc::ELOOP)
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The name of a conversation's file without its ending; `None` if it has no ending of a conversation, or is hidden.
fn stem_of(path: &Path) -> Option<String> {
    let name = name_of(path);
    let readable = name.strip_suffix(ENDING);
    let stem = readable.or_else(|| name.strip_suffix(UNREADABLE))?;
    (!stem.starts_with('.')).then(|| stem.to_owned())
}
