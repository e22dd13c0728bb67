//! Which conversation is meant: the current one, one by its name, id or number in the list, or a file by its path.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::timestamp::ID_PREFIX;
use crate::error::Error;
use crate::text::digest::sha256_hex;
use crate::text::digits::{is_digits, whole_number};
use crate::text::shell_words::quoted;

/// The fewest digits of an id: from the year to the second. Those of q itself go on to the millisecond.
const DIGITS_OF_ID: usize = 14;

/// How many digits the id of a moment has, and how many more tell a file elsewhere from others in the ids of its backups.
const DIGITS_OF_MOMENT: usize = 17;
const DIGITS_OF_FILE: usize = 10;

/// The most characters of a name.
const MAX_LENGTH: usize = 100;

/// What a name cannot begin with: that of a conversation, where q has ids, and that of a slot.
const NOT_FIRST_OF_NAME: &str = "a dot, a hyphen, “current” or “session_”";
const NOT_FIRST_OF_SLOT: &str = "a dot, a hyphen or “current”";

/// The name of the link to the current conversation.
pub const CURRENT: &str = "current";

/// The beginning of the names of links to other current conversations.
pub const SLOT: &str = "current-";

/// Separates the name of a conversation from the number of a backup.
pub const BEFORE_NUMBER: char = '~';

/// A conversation, as a user names it.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationRef {
    /// The current one, by the name of the link to it: `current`, or `current-NAME` with the name in `Q_SESSION`.
    Current(String),
    /// One that has a name, and never expires; or one by the id that q has given it.
    Named(String),
    /// The one with this number in the plain list, counted from 1.
    Number(usize),
    /// A file anywhere, by its path without links. It never expires either.
    File(PathBuf),
}

impl ConversationRef {
    /// Returns the conversation that the option names, else that of the slot that `Q_SESSION` names, else the current one.
    pub fn find(option: Option<&OsStr>, slot: Option<&str>) -> Result<ConversationRef, Error> {
        if let Some(value) = option {
            let which = ConversationRef::parse(value);
            return which.map_err(|reason| Error::usage(format!("--session: {reason}")));
        }
        let Some(slot) = slot else {
            return Ok(ConversationRef::Current(CURRENT.to_owned()));
        };
        check(slot, NOT_FIRST_OF_SLOT)
            .map_err(|reason| Error::settings(format!("Q_SESSION: {reason}")))?;
        Ok(ConversationRef::Current(format!("{SLOT}{slot}")))
    }

    /// Reads the value of `-s`. The error says why it names no conversation.
    fn parse(value: &OsStr) -> Result<ConversationRef, String> {
        if is_of_file(value) {
            return find_file(Path::new(value)).map(ConversationRef::File);
        }
        let name = &*value.to_string_lossy();
        if let Some(number) = name.strip_prefix('%') {
            return match whole_number(number) {
                Some(number) if number > 0 => Ok(ConversationRef::Number(number)),
                _ => Err(format!("“{name}” is not a number of the list, such as %1")),
            };
        }
        check(base(name), NOT_FIRST_OF_NAME)?;
        Ok(ConversationRef::Named(name.to_owned()))
    }

    /// Returns the option that names it for an action, with a blank before it; nothing for a current one.
    pub fn option(&self) -> String {
        match self {
            ConversationRef::Current(_) => String::new(),
            ConversationRef::Named(name) => option_of(name),
            ConversationRef::Number(number) => option_of(&format!("%{number}")),
            ConversationRef::File(path) => option_of(&path.to_string_lossy()),
        }
    }

    /// Reads the name for a copy, which must be one that users may give.
    pub fn for_copy(value: &OsStr) -> Result<ConversationRef, Error> {
        let reason = match ConversationRef::parse(value) {
            Ok(which) if which.is_generated() => {
                format!("“{}” is a name that only q gives", value.display())
            }
            Ok(which) if which.like_number().is_some() => {
                format!("“{}” would look like a number of the list", value.display())
            }
            Ok(which) => return Ok(which),
            Err(reason) => reason,
        };
        Err(Error::usage(format!("--copy: {reason}")))
    }

    /// Returns the number that its name looks like: it has one to three digits and nothing else.
    pub fn like_number(&self) -> Option<usize> {
        match self {
            ConversationRef::Named(name) if name.len() <= 3 => whole_number(name),
            _ => None,
        }
    }

    /// Whether it is a current conversation, which may expire.
    pub fn is_current(&self) -> bool {
        matches!(self, ConversationRef::Current(_))
    }

    /// Whether q has named it, as a conversation, a backup or a number of the list, so a user cannot begin it.
    pub fn is_generated(&self) -> bool {
        match self {
            ConversationRef::Named(name) => name.starts_with(ID_PREFIX) || base(name) != name,
            ConversationRef::Number(_) => true,
            _ => false,
        }
    }
}

/// Returns the option that names the conversation with this id, which may be the path of a file, for a shell and with a blank
/// before it.
pub fn option_of(id: &str) -> String {
    format!(" -s {}", quoted(id))
}

/// Returns the name of the conversation whose backup this is; any other name as it is.
pub fn base(name: &str) -> &str {
    match name.rsplit_once(BEFORE_NUMBER) {
        Some((base, number)) if !base.is_empty() && is_digits(number) => base,
        _ => name,
    }
}

/// Returns the digits that tell a file elsewhere from others. The ids of its backups have them after their moment.
pub(super) fn digits_of(path: &Path) -> String {
    let hash = sha256_hex(&path.to_string_lossy());
    let number = u32::from_str_radix(&hash[..8], 16);
    format!("{:0DIGITS_OF_FILE$}", number.unwrap_or_default())
}

/// Whether an id is that of a backup of this file elsewhere.
pub(super) fn is_backup_of_external(id: &str, path: &Path) -> bool {
    let after_moment = id.get(ID_PREFIX.len() + DIGITS_OF_MOMENT..);
    let number = after_moment.and_then(|digits| digits.strip_prefix(&*digits_of(path)));
    is_id(id) && number.is_some_and(is_digits)
}

/// Whether a name begins as those of conversations do, and has only their characters.
pub(super) fn is_plain(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.starts_with(['.', '-']) && name.bytes().all(is_allowed)
}

/// Whether `-s` takes a name, which may be an id.
pub(super) fn is_allowed(name: &str) -> bool {
    let is_length_allowed = (1..=MAX_LENGTH).contains(&name.len());
    is_length_allowed && is_plain(name) && !name.starts_with(CURRENT)
}

/// Whether a name is an id, which is a time.
pub(super) fn is_id(name: &str) -> bool {
    let digits = name.strip_prefix(ID_PREFIX);
    digits.is_some_and(|digits| digits.len() >= DIGITS_OF_ID && is_digits(digits))
}

/// Checks a name. `not_first` says in an error what it cannot begin with.
fn check(name: &str, not_first: &str) -> Result<(), String> {
    if is_allowed(name) {
        return Ok(());
    }
    Err(format!(
        "“{name}” is not a valid name: it must have 1 to {MAX_LENGTH} characters: A-Z a-z 0-9 . _ -, and not begin with {not_first}"
    ))
}

/// Whether a value of `-s` is the path of a session file.
fn is_of_file(value: &OsStr) -> bool {
    value.as_encoded_bytes().ends_with(b".json")
}

/// Finds the real path of a session file. A repository may hold a link to a file that does not exist yet, such as a startup file
/// of the user's shell, which would run what the model writes. So q creates no file of another name through it.
fn find_file(path: &Path) -> Result<PathBuf, String> {
    let real = canonicalize(path)?;
    if is_of_file(real.as_os_str()) || real.exists() {
        return Ok(real);
    }
    Err(format!(
        "{}: it is a symbolic link to {}, which does not exist and does not end in .json",
        path.display(),
        real.display()
    ))
}

/// Returns the path without links. The file need not exist yet, but its directory must.
pub(super) fn canonicalize(path: &Path) -> Result<PathBuf, String> {
    match fs::canonicalize(path) {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("{}: {error}", path.display())),
    }
    // A link to a file that does not exist yet; a link to itself is another error.
    let directory = Path::new(".").join(path).with_file_name("");
    if let Ok(target) = fs::read_link(path) {
        return canonicalize(&directory.join(target));
    }
    let directory = fs::canonicalize(directory)
        .map_err(|error| format!("{}: its directory cannot be used: {error}", path.display()))?;
    Ok(directory.join(path.file_name().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_conversations_that_could_leave_the_directory_are_refused() {
        for name in ["work", "a", "A-Z_0.9", &"x".repeat(100)] {
            let named = ConversationRef::parse(OsStr::new(name));
            assert_eq!(named, Ok(ConversationRef::Named(name.to_owned())), "{name}");
        }
        for name in
            "|.|..|.hidden|-x|--x|a/b|a/|../x|../../x|/tmp/x|a b|a\n|a\tb|ä|a\\b|a:b|~|a~|*|current|current-1|currently"
                .split('|')
                .chain([&*"x".repeat(101)])
        {
            assert!(ConversationRef::parse(OsStr::new(name)).is_err(), "{name}");
            assert!(ConversationRef::find(None, Some(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn ids_that_q_gives_are_recognized_and_percent_numbers_refer_to_the_list() {
        let ids = "session_20261121100000123 session_20261121100000-2 session_20261121100000123~1 \
            work~12";
        for id in ids.split(' ') {
            let found = ConversationRef::parse(OsStr::new(id));
            assert!(found.is_ok_and(|which| which.is_generated()), "{id}");
            assert!(ConversationRef::for_copy(OsStr::new(id)).is_err(), "{id}");
        }
        assert_eq!(
            ConversationRef::parse(OsStr::new("%12")),
            Ok(ConversationRef::Number(12))
        );
        for wrong in ["%", "%0", "%-1", "%+1", "%x", "~1", "current~1", "a/b~1"] {
            assert!(
                ConversationRef::parse(OsStr::new(wrong)).is_err(),
                "{wrong}"
            );
        }
        assert!(ConversationRef::for_copy(OsStr::new("%1")).is_err());
        let options = ["work", "work~1", "%12", "/a b/c.json"].map(option_of);
        assert_eq!(
            options,
            [" -s work", " -s work~1", " -s %12", " -s '/a b/c.json'"]
        );
        assert_eq!((base("work~1"), base("~1")), ("work", "~1"));
    }

    #[test]
    fn a_name_of_few_digits_looks_like_a_number_of_the_list() {
        for (name, number) in [
            ("3", Some(3)),
            ("012", Some(12)),
            ("000", Some(0)),
            ("999", Some(999)),
            ("1000", None),
            ("3a", None),
            ("-3", None),
            ("3~1", None),
            ("%3", None),
        ] {
            let found = ConversationRef::parse(OsStr::new(name)).ok();
            let found = found.and_then(|which| which.like_number());
            assert_eq!(found, number, "{name}");
        }
    }

    #[test]
    fn a_file_elsewhere_has_backups_with_ids_of_its_own() {
        let path = Path::new("/home/talk.json");
        let digits = digits_of(path);
        assert_eq!(digits.len(), DIGITS_OF_FILE);
        let id = "session_20261121100000123";
        for (id, is_backup) in [
            (format!("{id}{digits}1"), true),
            (format!("{id}{digits}12"), true),
            (format!("{id}{digits}"), false),
            (format!("{id}{digits}x"), false),
            (
                format!("{id}{}1", digits_of(Path::new("/home/other.json"))),
                false,
            ),
            (id.to_owned(), false),
            (format!("{id}~1"), false),
            ("work".to_owned(), false),
        ] {
            assert_eq!(is_backup_of_external(&id, path), is_backup, "{id}");
        }
    }

    #[test]
    fn a_path_of_a_conversation_is_resolved_through_symbolic_links() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().canonicalize().expect("a path");
        fs_err::write(directory.join("real.json"), "{}").expect("a file");
        std::os::unix::fs::symlink("real.json", directory.join("link.json")).expect("a link");
        std::os::unix::fs::symlink("nothing.json", directory.join("broken.json")).expect("a link");
        std::os::unix::fs::symlink("nothing", directory.join("other.json")).expect("a link");
        std::os::unix::fs::symlink("loop.json", directory.join("loop.json")).expect("a link");
        for (name, real) in [
            ("real.json", "real.json"),
            ("link.json", "real.json"),
            ("new.json", "new.json"),
            ("broken.json", "nothing.json"),
        ] {
            let found = ConversationRef::parse(directory.join(name).as_os_str());
            assert_eq!(
                found,
                Ok(ConversationRef::File(directory.join(real))),
                "{name}"
            );
        }
        for name in ["loop.json", "other.json", "no-directory/x.json"] {
            let is_right = ConversationRef::parse(directory.join(name).as_os_str()).is_err();
            assert!(is_right, "{name}");
        }
    }
}
