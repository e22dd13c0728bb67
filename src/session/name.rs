//! Which conversation is meant: the current one, one by its name, id or number in the list, or a file by its path.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::timestamp::UNNAMED;
use crate::error::Error;
use crate::text::one_line::quoted;

/// The fewest digits of an id: from the year to the second. Those of q itself go on to the millisecond.
const DIGITS_OF_ID: usize = 14;

/// The most characters of a name.
const MAX_LENGTH: usize = 100;

/// The name of the link to the current conversation.
pub const CURRENT: &str = "current";

/// The beginning of the names of links to other current conversations.
pub const SLOT: &str = "current-";

/// Separates the name of a conversation from the number of an earlier state.
pub const STATE: char = '~';

/// A conversation, as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The current one, by the name of the link to it: `current`, or `current-NAME` with the name in `Q_SESSION`.
    Current(String),
    /// One that has a name, and never expires.
    Named(String),
    /// One that q has named: its id, or that of an earlier state.
    Id(String),
    /// The one with this number in the plain list, counted from 1.
    Number(usize),
    /// A file anywhere, by its path without links. It never expires either.
    File(PathBuf),
}

impl Which {
    /// The conversation that the option names, else that of the slot that `Q_SESSION` names, else the current one.
    pub fn find(option: Option<&OsStr>, slot: Option<&str>) -> Result<Which, Error> {
        if let Some(value) = option {
            let which = Which::parse(value);
            return which.map_err(|reason| Error::usage(format!("--session: {reason}")));
        }
        let Some(slot) = slot else {
            return Ok(Which::Current(CURRENT.to_owned()));
        };
        check(slot).map_err(|reason| Error::settings(format!("Q_SESSION: {reason}")))?;
        Ok(Which::Current(format!("{SLOT}{slot}")))
    }

    /// Reads the value of `-s`. The error says why it names no conversation.
    fn parse(value: &OsStr) -> Result<Which, String> {
        if value.as_encoded_bytes().ends_with(b".json") {
            return resolve(Path::new(value)).map(Which::File);
        }
        let name = &*value.to_string_lossy();
        if let Some(number) = name.strip_prefix('%') {
            return match number.parse() {
                Ok(number) if number > 0 => Ok(Which::Number(number)),
                _ => Err(format!("“{name}” is not a number of the list, such as %1")),
            };
        }
        check(base(name))?;
        Ok(Which::from_stem(name))
    }

    /// The conversation in a file of the folder, by the file's name without its ending.
    pub fn from_stem(stem: &str) -> Which {
        let is_generated = stem.starts_with(UNNAMED) || base(stem) != stem;
        if is_generated {
            Which::Id(stem.to_owned())
        } else {
            Which::Named(stem.to_owned())
        }
    }

    /// The option that names it for an action, with a blank before it; nothing for a current one.
    pub fn option(&self) -> String {
        match self {
            Which::Current(_) => String::new(),
            Which::Named(name) | Which::Id(name) => format!(" -s {name}"),
            Which::Number(number) => format!(" -s %{number}"),
            Which::File(path) => format!(" -s {}", quoted(&path.to_string_lossy())),
        }
    }

    /// Reads the name for a copy, which must be one that users may give.
    pub fn for_copy(value: &OsStr) -> Result<Which, Error> {
        let reason = match Which::parse(value) {
            Ok(which @ (Which::Named(_) | Which::File(_))) => return Ok(which),
            Ok(_) => format!("“{}” is not a name that users may give", value.display()),
            Err(reason) => reason,
        };
        Err(Error::usage(format!("--copy: {reason}")))
    }

    /// Whether it is a current conversation, which may expire.
    pub fn is_current(&self) -> bool {
        matches!(self, Which::Current(_))
    }

    /// Whether q has named it, so a user cannot begin it.
    pub fn is_id(&self) -> bool {
        matches!(self, Which::Id(_))
    }
}

/// The name of the conversation whose earlier state this is; any other name as it is.
pub fn base(name: &str) -> &str {
    let Some((base, number)) = name.rsplit_once(STATE) else {
        return name;
    };
    let has_digits_only = number.bytes().all(|byte| byte.is_ascii_digit());
    if base.is_empty() || number.is_empty() || !has_digits_only {
        return name;
    }
    base
}

/// Whether a name has only characters that names of conversations have.
pub(super) fn is_plain(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Whether a name is an id, which is a time.
pub(super) fn is_id(name: &str) -> bool {
    let Some(digits) = name.strip_prefix(UNNAMED) else {
        return false;
    };
    digits.len() >= DIGITS_OF_ID && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn check(name: &str) -> Result<(), String> {
    let is_length_allowed = (1..=MAX_LENGTH).contains(&name.len());
    let begins_otherwise = name.starts_with(['.', '-']) || name.starts_with(CURRENT);
    if is_length_allowed && is_plain(name) && !begins_otherwise {
        return Ok(());
    }
    Err(format!(
        "“{name}” is not a valid name: it must have 1 to {MAX_LENGTH} characters: A-Z a-z 0-9 . _ -, and not begin with a dot, a hyphen or “current”"
    ))
}

/// The path without links. The file need not exist yet, but its folder must.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, String> {
    match fs::canonicalize(path) {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{}: {error}", path.display())),
    }
    // A link to a file that does not exist yet; a link to itself is another error.
    let folder = Path::new(".").join(path).with_file_name("");
    if let Ok(target) = fs::read_link(path) {
        return resolve(&folder.join(target));
    }
    let folder = fs::canonicalize(folder)
        .map_err(|error| format!("{}: its folder cannot be used: {error}", path.display()))?;
    Ok(folder.join(path.file_name().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_folder() {
        for name in ["work", "a", "A-Z_0.9", &"x".repeat(100), "a~"] {
            let named = Which::parse(OsStr::new(name));
            assert_eq!(named.is_ok(), name != "a~", "{name}");
            let is_right = named.is_err() || named == Ok(Which::Named(name.to_owned()));
            assert!(is_right, "{name}");
        }
        for name in
            "|.|..|.hidden|-x|--x|a/b|a/|../x|../../x|/tmp/x|a b|a\n|a\tb|ä|a\\b|a:b|~|*|current|current-1|currently"
                .split('|')
                .chain([&*"x".repeat(101)])
        {
            assert!(Which::parse(OsStr::new(name)).is_err(), "{name}");
            assert!(Which::find(None, Some(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn names_that_q_gives_are_ids_and_numbers_are_those_of_the_list() {
        let ids = "session_20261121100000123 session_20261121100000-2 session_20261121100000123~1 \
            work~12";
        for id in ids.split(' ') {
            let found = Which::parse(OsStr::new(id));
            assert_eq!(found, Ok(Which::Id(id.to_owned())), "{id}");
            assert!(Which::for_copy(OsStr::new(id)).is_err(), "{id}");
        }
        assert_eq!(Which::parse(OsStr::new("%12")), Ok(Which::Number(12)));
        for wrong in ["%", "%0", "%-1", "%x", "~1", "current~1", "a/b~1"] {
            assert!(Which::parse(OsStr::new(wrong)).is_err(), "{wrong}");
        }
        assert!(Which::for_copy(OsStr::new("%1")).is_err());
        assert_eq!((base("work~1"), base("~1")), ("work", "~1"));
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
            let found = Which::parse(folder.join(name).as_os_str());
            assert_eq!(found, Ok(Which::File(folder.join(real))), "{name}");
        }
        for name in ["loop.json", "no-folder/x.json"] {
            let is_right = Which::parse(folder.join(name).as_os_str()).is_err();
            assert!(is_right, "{name}");
        }
    }
}
