//! Which conversation to use: the current one, one by its name or id, or a file by its path.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::timestamp::{ARCHIVED, Timestamp};
use crate::error::Error;

/// The most characters of a name.
const LONGEST: usize = 100;

/// A conversation, as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// The current one, or that of the slot that `Q_SESSION` names.
    Current { slot: Option<String> },
    /// One that has a name, and never expires.
    Named(String),
    /// The one created at this time, wherever it is.
    Id(Timestamp),
    /// A file anywhere, by its resolved path. It never expires either.
    File(PathBuf),
}

impl Which {
    /// The conversation that the option names, else that of the slot that `Q_SESSION` names, else the current one.
    ///
    /// # Errors
    /// `Usage` or `Settings`: a value that cannot be a name.
    pub(crate) fn find(option: Option<&OsStr>, slot: Option<&str>) -> Result<Which, Error> {
        match (option, slot) {
            (Some(value), _) => Which::parse(value).map_err(|reason| {
                let error = Error::usage(format!("--session: {reason}"));
                match value.to_str().and_then(way_to_current) {
                    Some(way) => error.advise(way),
                    None => error,
                }
            }),
            (None, Some(name)) => Which::slot(name).map_err(|reason| Error::settings(format!("Q_SESSION: {reason}"))),
            (None, None) => Ok(Which::Current { slot: None }),
        }
    }

    /// Reads the value of `-s`: a name, or, where it ends in `.json`, the path of a file.
    ///
    /// # Errors
    /// Why it is neither.
    fn parse(value: &OsStr) -> Result<Which, String> {
        if value.as_encoded_bytes().ends_with(b".json") {
            return resolve(Path::new(value)).map(Which::File);
        }
        let name =
            value.to_str().ok_or_else(|| format!("“{}” is not a valid name: it is not UTF-8", value.display()))?;
        check(name)?;
        Ok(Timestamp::from_id(name).map_or_else(|| Which::Named(name.to_owned()), Which::Id))
    }

    /// Reads the value of `Q_SESSION`.
    ///
    /// # Errors
    /// Why it is not a valid name.
    fn slot(name: &str) -> Result<Which, String> {
        check(name)?;
        Ok(Which::Current { slot: Some(name.to_owned()) })
    }

    /// The option that names it for an action, with a blank before it; nothing for a current one.
    pub(crate) fn option(&self) -> String {
        match self {
            Which::Current { .. } => String::new(),
            Which::Named(name) => format!(" -s {name}"),
            Which::Id(created) => format!(" -s {}", created.id()),
            Which::File(path) => format!(" -s {}", path.display()),
        }
    }

    /// The value for `-s` that names the conversation created at this time: it stays valid when that is displaced.
    pub(crate) fn id(&self, created: Timestamp) -> String {
        match self {
            Which::Named(name) if !self.is_given_by_q() => name.clone(),
            Which::File(path) => path.to_string_lossy().into_owned(),
            Which::Current { .. } | Which::Id(_) | Which::Named(_) => created.id(),
        }
    }

    /// Reads the name for a copy, which must be one that users may give.
    ///
    /// # Errors
    /// `Usage`: a value that cannot be such a name.
    pub(crate) fn for_copy(value: &OsStr) -> Result<Which, Error> {
        let which = Which::parse(value).map_err(|reason| Error::usage(format!("--copy: {reason}")))?;
        match &which {
            Which::Id(_) => {}
            Which::Named(name) if !Which::is_name(name) => {}
            _ => return Ok(which),
        }
        Err(Error::usage(format!("--copy: only q itself gives names that begin with {ARCHIVED}")))
    }

    /// Whether users may give this name to a conversation.
    pub(crate) fn is_name(name: &str) -> bool {
        check(name).is_ok() && !name.starts_with(ARCHIVED)
    }

    /// Whether the user names it as q does: by its id, or by the name of its archived file.
    pub(crate) fn is_given_by_q(&self) -> bool {
        match self {
            Which::Id(_) => true,
            Which::Named(name) => !Which::is_name(name),
            Which::Current { .. } | Which::File(_) => false,
        }
    }

    /// Whether it is a current conversation, which a new one displaces and which may expire.
    pub(crate) fn is_current(&self) -> bool {
        matches!(self, Which::Current { .. })
    }
}

fn check(name: &str) -> Result<(), String> {
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    if name.is_empty() || name.len() > LONGEST || !name.chars().all(allowed) {
        return Err(format!("“{name}” is not a valid name: it must have 1 to {LONGEST} characters: A-Z a-z 0-9 . _ -"));
    }
    if name.starts_with('.') || name.starts_with("current") {
        return Err(format!("“{name}” is not a valid name: it must not begin with a dot or with “current”"));
    }
    Ok(())
}

/// How to name a current conversation that is called so by a list.
fn way_to_current(listed: &str) -> Option<String> {
    match listed.strip_prefix("current")? {
        "" => Some("without -s, q uses the current conversation".to_owned()),
        rest => {
            let slot = rest.strip_prefix('-').filter(|slot| check(slot).is_ok())?;
            Some(format!("Q_SESSION={slot} in place of -s names this conversation"))
        }
    }
}

/// The path without links. The file need not exist yet, but its folder must.
fn resolve(path: &Path) -> Result<PathBuf, String> {
    match std::fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // A link to a file that does not exist yet; a link to itself is another error.
            if let Ok(target) = std::fs::read_link(path) {
                return resolve(&path.with_file_name("").join(target));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let folder = std::fs::canonicalize(folder)
                .map_err(|error| format!("{}: its folder cannot be used: {error}", path.display()))?;
            let name = path.file_name().ok_or_else(|| format!("{} is not the path of a file", path.display()))?;
            Ok(folder.join(name))
        }
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_folder() {
        for name in ["work", "a", "A-Z_0.9", &"x".repeat(100), "session_20261121100000", "-x"] {
            assert_eq!(Which::parse(OsStr::new(name)), Ok(Which::Named(name.to_owned())), "{name}");
        }
        for name in
            ["", ".", "..", ".hidden", "a/b", "../x", "a b", "ä", "current", "current-1", "a\n", &"x".repeat(101)]
        {
            assert!(Which::parse(OsStr::new(name)).is_err(), "{name}");
            assert!(Which::slot(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_copy_gets_a_name_that_a_user_may_give() {
        for (name, allowed) in [
            ("work", true),
            ("session_20261121100000", false),
            ("session_20261121100000123", false),
            ("session_x", false),
            ("current", false),
            ("a/b", false),
        ] {
            assert_eq!(Which::for_copy(OsStr::new(name)).is_ok(), allowed, "{name}");
            assert_eq!(Which::is_name(name), allowed, "{name}");
        }
    }

    #[test]
    fn files_are_resolved() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("a path");
        fs_err::write(folder.join("real.json"), "{}").expect("a file");
        std::os::unix::fs::symlink("real.json", folder.join("link.json")).expect("a link");
        std::os::unix::fs::symlink("nothing", folder.join("broken.json")).expect("a link");
        std::os::unix::fs::symlink("loop.json", folder.join("loop.json")).expect("a link");
        for (name, real) in [
            ("real.json", "real.json"),
            ("link.json", "real.json"),
            ("new.json", "new.json"),
            ("broken.json", "nothing"),
        ] {
            assert_eq!(Which::parse(folder.join(name).as_os_str()), Ok(Which::File(folder.join(real))), "{name}");
        }
        for name in ["loop.json", "no-folder/x.json"] {
            assert!(Which::parse(folder.join(name).as_os_str()).is_err(), "{name}");
        }
    }
}
