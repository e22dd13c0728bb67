//! Which conversation is meant: the current one, one by its name, id or number in the list, or a file by its path.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::timestamp::ID_PREFIX;
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
#[derive(Debug, Clone, PartialEq)]
pub enum Which {
    /// The current one, by the name of the link to it: `current`, or `current-NAME` with the name in `Q_SESSION`.
    Current(String),
    /// One that has a name, and never expires; or one by the id that q has given it.
    Named(String),
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
        Ok(Which::Named(name.to_owned()))
    }

    /// The option that names it for an action, with a blank before it; nothing for a current one.
    pub fn option(&self) -> String {
        match self {
            Which::Current(_) => String::new(),
            Which::Named(name) => format!(" -s {name}"),
            Which::Number(number) => format!(" -s %{number}"),
            Which::File(path) => format!(" -s {}", quoted(&path.to_string_lossy())),
        }
    }

    /// Reads the name for a copy, which must be one that users may give.
    pub fn for_copy(value: &OsStr) -> Result<Which, Error> {
        let reason = match Which::parse(value) {
            Ok(which) if !which.is_generated() => return Ok(which),
            Ok(_) => format!("“{}” is not a name that users may give", value.display()),
            Err(reason) => reason,
        };
        Err(Error::usage(format!("--copy: {reason}")))
    }

    /// Whether it is a current conversation, which may expire.
    pub fn is_current(&self) -> bool {
        matches!(self, Which::Current(_))
    }

    /// Whether q has named it, as a conversation, an earlier state or a number of the list, so a user cannot begin it.
    pub fn is_generated(&self) -> bool {
        match self {
            Which::Named(name) => name.starts_with(ID_PREFIX) || base(name) != name,
            Which::Number(_) => true,
            _ => false,
        }
    }
}

/// The name of the conversation whose earlier state this is; any other name as it is.
pub fn base(name: &str) -> &str {
    match name.rsplit_once(STATE) {
        Some((base, number)) if !base.is_empty() && is_number(number, 1) => base,
        _ => name,
    }
}

/// Whether a name begins as those of conversations do, and has only their characters.
pub(super) fn is_plain(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.starts_with(['.', '-']) && name.bytes().all(is_allowed)
}

/// Whether a name is an id, which is a time.
pub(super) fn is_id(name: &str) -> bool {
    let digits = name.strip_prefix(ID_PREFIX);
    digits.is_some_and(|digits| is_number(digits, DIGITS_OF_ID))
}

fn is_number(text: &str, least: usize) -> bool {
    text.len() >= least && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn check(name: &str) -> Result<(), String> {
    let is_length_allowed = (1..=MAX_LENGTH).contains(&name.len());
    if is_length_allowed && is_plain(name) && !name.starts_with(CURRENT) {
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
            assert!(found.is_ok_and(|which| which.is_generated()), "{id}");
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
