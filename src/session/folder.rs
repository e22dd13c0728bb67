//! The names in the folder of conversations: which file a conversation has, and how a file is named to users.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::io::ErrorKind::{InvalidInput, NotFound};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::disk;
use super::name::{self, SLOT, Which};
use super::timestamp::{Timestamp, UNNAMED};
use crate::unix;
use crate::whole_file::{OrCannot, PRIVATE};

pub(super) const ENDING: &str = ".json";

/// The ending of a file that could not be read as a conversation.
pub(super) const UNREADABLE: &str = ".json.unreadable";

/// The folder `q` among the user's state. It need not exist yet.
#[derive(Debug, Clone)]
pub struct Folder {
    pub(super) root: PathBuf,
    /// Where the conversations are.
    pub sessions: PathBuf,
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

    /// The file of a name or an id.
    pub fn file(&self, stem: &str) -> PathBuf {
        self.sessions.join(format!("{stem}{ENDING}"))
    }

    /// The file of an id. The states of a name that is a link are those of what it leads to.
    pub fn file_of_id(&self, id: &str) -> PathBuf {
        let base = name::base(id);
        let real = self.resolve(&self.file(base));
        if !self.has(&real) {
            return self.file(id);
        }
        self.file(&id.replacen(base, &self.id(&real), 1))
    }

    /// How users name the conversation in a file.
    pub fn which(&self, path: &Path) -> Which {
        match path.file_stem().and_then(OsStr::to_str) {
            Some(stem) if self.has(path) && !is_current(path) => Which::from_stem(stem),
            _ => Which::File(path.to_owned()),
        }
    }

    /// The value for `-s` that names the conversation in a file. A file in place of the link is named by its time, as it
    /// will be once a question has continued it.
    pub fn id(&self, path: &Path) -> String {
        if let Which::Named(name) | Which::Id(name) = self.which(path) {
            return name;
        }
        if self.has(path)
            && is_current(path)
            && let Ok(changed) = fs::metadata(path).and_then(|metadata| metadata.modified())
        {
            return Timestamp::from_mtime(changed).id();
        }
        path.to_string_lossy().into_owned()
    }

    /// Whether a file is directly in the folder.
    pub(super) fn has(&self, path: &Path) -> bool {
        path.parent() == Some(&self.sessions)
    }

    /// Whether q has given a conversation its name, so q may trim, sweep and remove it.
    pub fn is_auto_named(&self, path: &Path) -> bool {
        self.has(path) && (is_current(path) || name_of(path).starts_with(UNNAMED) || is_state(path))
    }

    /// Starts the time for which a conversation is kept: its file's time is set to now, but never backwards.
    pub fn touch(&self, path: &Path) {
        let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
        let is_earlier = modified.is_ok_and(|modified| modified < SystemTime::now());
        if is_earlier && self.is_auto_named(path) {
            unix::touch(path);
        }
    }

    /// Follows a link as [`Folder::follow`] does; one that cannot be followed stays as it is.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        self.follow(path).unwrap_or_else(|_| path.to_owned())
    }

    /// Follows a link; any other path stays as it is, and a link that leads nowhere, too. A file of the folder gets its
    /// path as q writes it. An error means that it is unknown where a link leads.
    pub(super) fn follow(&self, path: &Path) -> io::Result<PathBuf> {
        let target = match fs::read_link(path) {
            Err(error) if matches!(error.kind(), InvalidInput | NotFound) => {
                return Ok(path.to_owned());
            }
            link => self.sessions.join(link.or_cannot("follow", path)?),
        };
        // q's own links name a file beside them, so nothing but the link itself needs to be read.
        if self.has(path) && self.has(&target) && !target.is_symlink() {
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

    /// The first id from a moment on that is free: its moment, and its file. The caller has the lock.
    pub(super) fn free(&self, mut moment: Timestamp, ending: &str) -> (Timestamp, PathBuf) {
        loop {
            let path = self.sessions.join(moment.id() + ending);
            if fs::symlink_metadata(&path).is_err() {
                return (moment, path);
            }
            moment = moment.next();
        }
    }

    /// What is in the folder; nothing if there is no folder.
    pub(super) fn paths(&self) -> io::Result<Vec<PathBuf>> {
        let entries = self.entries()?;
        Ok(entries.iter().map(DirEntry::path).collect())
    }

    /// The same, with what the folder itself says about each file.
    pub(super) fn entries(&self) -> io::Result<Vec<DirEntry>> {
        match fs::read_dir(&self.sessions) {
            Ok(entries) => entries.collect(),
            Err(error) if error.kind() == NotFound => Ok(Vec::new()),
            Err(error) => Err(error).or_cannot("list", &self.sessions),
        }
    }

    /// Refuses folders of another user, who could read the conversations or add some, and links to a disk that is not
    /// mounted. Missing folders are accepted.
    pub fn check(&self) -> io::Result<()> {
        for folder in [&self.root, &self.sessions] {
            if let Some(metadata) = disk::metadata(folder)?
                && metadata.uid() != unix::effective_user()
            {
                let folder = folder.display();
                return Err(io::Error::other(format!(
                    "{folder} belongs to another user; sudo chown -R \"$(id -un)\" {folder} makes it yours"
                )));
            }
        }
        for folder in self.sessions.ancestors() {
            if folder.is_symlink() && disk::metadata(folder)?.is_none() {
                return Err(io::Error::other(format!(
                    "{} is a link to something that does not exist",
                    folder.display()
                )));
            }
        }
        Ok(())
    }

    /// Makes the folders, unless there are some, and corrects their modes.
    pub(super) fn prepare(&self) -> io::Result<()> {
        self.check()?;
        for folder in [&self.root, &self.sessions] {
            let mut builder = fs::DirBuilder::new();
            let made = builder.recursive(true).mode(PRIVATE).create(folder);
            made.or_cannot("make the folder", folder)?;
            // Some file systems have no modes.
            let _ = fs::set_permissions(folder, fs::Permissions::from_mode(PRIVATE));
        }
        Ok(())
    }
}

/// Whether a name is that of a current conversation.
pub(super) fn is_current(path: &Path) -> bool {
    let name = name_of(path);
    name == "current.json" || name.starts_with(SLOT)
}

/// Whether a file is named like an earlier state.
pub(super) fn is_state(path: &Path) -> bool {
    stem_of(path).is_some_and(|stem| name::base(&stem) != stem)
}

/// Whether q can have made a file of this name. What others have put into the folder is theirs.
pub(super) fn is_own(path: &Path) -> bool {
    let Some(stem) = stem_of(path) else {
        return false;
    };
    let name = name::base(&stem);
    name::is_plain(name) && (!name.starts_with(UNNAMED) || name::is_id(name))
}

pub(super) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The name of a conversation's file without its ending; `None` if it has no ending of a conversation, or is hidden.
pub(super) fn stem_of(path: &Path) -> Option<String> {
    let name = name_of(path);
    let stem = name
        .strip_suffix(ENDING)
        .or_else(|| name.strip_suffix(UNREADABLE))?;
    if stem.starts_with('.') {
        return None;
    }
    Some(stem.to_owned())
}
