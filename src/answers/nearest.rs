//! Finds the cached answer to the same question whose request differs least, and says in what.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::cache_entry::{AnswerSubject, CacheEntry, CachedAnswer, ENDING};
use crate::session::timestamp::Timestamp;
use crate::text::one_line::{beginning, on_one_line};
use crate::whole_file::{self, MAX_FILE, directory_of, names_in};

/// At most this many files of a directory are looked at.
const MAX_FILES: usize = 20_000;

/// At most this many bytes are read of all files: the beginning of each, and all of those that may be about the same question.
const MAX_READ: u64 = 5 * MAX_FILE;

/// q writes the question, or the hash that stands for it, within this many bytes of the start of a file.
const BEFORE_QUESTION: u64 = 1_000;

/// The digits of a SHA-256.
const KEY_LENGTH: usize = 64;

/// At most this many characters of a name from a file are shown.
const MAX_NAME: usize = 100;

/// The difference between two requests with the same question.
#[derive(Debug, PartialEq, Eq)]
enum Difference {
    /// Each part that is not the same, in words for the user.
    Parts(Vec<String>),
    /// The file has no hashes of parts, such as an older one. It tells only whether the model, which is given, is another one.
    Unknown(Option<String>),
}

impl Difference {
    fn new(subject: &AnswerSubject, cached: &CachedAnswer) -> Difference {
        let shown = |name: &str| beginning(&on_one_line(name), MAX_NAME);
        let mut found = Vec::new();
        if cached.asked != subject.asked {
            found.push(format!("another model ({})", shown(&cached.asked)));
        }
        let Some(parts) = &cached.parts else {
            return Difference::Unknown(found.pop());
        };
        let own = &subject.parts;
        let is_of_provider = cached.provider == subject.provider;
        if parts.server != own.server && is_of_provider {
            found.insert(0, "another base URL".to_owned());
        } else if parts.server != own.server {
            let provider = shown(&cached.provider);
            found.insert(0, format!("another provider ({provider})"));
        }
        // Another provider gets other fields for the same options.
        let has_other_options = parts.options != own.options;
        let is_comparable = is_of_provider || parts.server == own.server;
        for (differs, words) in [
            (parts.system != own.system, "another system prompt"),
            (parts.input != own.input, "other input or files"),
            (parts.earlier != own.earlier, "other earlier messages"),
            (has_other_options && is_comparable, "other options"),
        ] {
            if differs {
                found.push(words.to_owned());
            }
        }
        Difference::Parts(found)
    }

    /// Returns how far the requests are from each other: how many parts differ, and before that whether the file tells.
    fn distance(&self) -> (bool, usize) {
        match self {
            Difference::Parts(parts) => (false, parts.len()),
            Difference::Unknown(part) => (true, part.iter().len()),
        }
    }

    fn in_words(&self) -> String {
        let known = "the same question is known";
        match self {
            Difference::Parts(parts) => match parts.split_last() {
                None => format!("{known}, but under another name"),
                Some((last, [])) => format!("{known} with {last}"),
                Some((last, others)) => format!("{known} with {} and {last}", others.join(", ")),
            },
            Difference::Unknown(None) => {
                format!("{known}, but its file does not tell what differs")
            }
            Difference::Unknown(Some(part)) => {
                format!("{known} with {part}, and its file does not tell what else differs")
            }
        }
    }
}

/// What the beginning of a file shows.
struct FileBeginning {
    /// How many bytes were read.
    read: u64,
    /// How many bytes the file has, if it may be about the same question.
    size_if_about_question: Option<u64>,
}

/// An answer to the same question.
struct NearAnswer {
    name: OsString,
    difference: Difference,
    created: Timestamp,
}

impl NearAnswer {
    /// Whether it is nearer than another one, or as near and newer.
    fn is_before(&self, other: &NearAnswer) -> bool {
        let rank = |one: &NearAnswer| (one.difference.distance(), Reverse(one.created));
        rank(self) < rank(other)
    }
}

impl FileBeginning {
    /// Reads the beginning of a file, and looks for this mark of the question in it.
    fn read(path: &Path, mark: &str) -> Option<FileBeginning> {
        let count = BEFORE_QUESTION + mark.len() as u64;
        let (bytes, size) = whole_file::read_beginning(path, count).ok()?;
        let read = bytes.len() as u64;
        // The system may report less than there is.
        let size = size.max(read);
        let is_about_it = String::from_utf8_lossy(&bytes).contains(mark) && size <= MAX_FILE;
        Some(FileBeginning {
            read,
            size_if_about_question: is_about_it.then_some(size),
        })
    }
}

impl CacheEntry {
    /// Returns what differs in the request of the nearest cached answer to the same question, in a sentence with the name of its
    /// file. Of those that are equally near it is the newest.
    pub fn nearest(&self) -> Option<String> {
        let mark = self.mark_of_question()?;
        let mut room = MAX_READ;
        let mut nearest: Option<NearAnswer> = None;
        for name in self.names_of_others() {
            let path = self.path.with_file_name(&name);
            let Some(beginning) = FileBeginning::read(&path, &mark) else {
                continue;
            };
            let size = beginning.size_if_about_question;
            let Some(rest) = room.checked_sub(beginning.read + size.unwrap_or_default()) else {
                break;
            };
            room = rest;
            if size.is_none() {
                continue;
            }
            let Ok(cached) = CachedAnswer::read(&path, self.sharing) else {
                continue;
            };
            if !self.is_same_question(&cached) {
                continue;
            }
            let found = NearAnswer {
                name,
                difference: Difference::new(&self.subject, &cached),
                created: cached.created,
            };
            if nearest.as_ref().is_none_or(|least| found.is_before(least)) {
                nearest = Some(found);
            }
        }
        let nearest = nearest?;
        let words = nearest.difference.in_words();
        Some(format!("{words}: {}", nearest.name.display()))
    }

    /// Returns the names of the other cached answers in the directory, sorted. Files of other programs are not among them.
    fn names_of_others(&self) -> Vec<OsString> {
        let names = names_in(directory_of(&self.path), MAX_FILES);
        let mut names = names.unwrap_or_default();
        names.retain(|name| is_name_of_answer(name) && self.path.file_name() != Some(name));
        names.sort_unstable();
        names
    }

    /// Returns what the beginning of each file about the same question has.
    fn mark_of_question(&self) -> Option<String> {
        let subject = &self.subject;
        if subject.question.is_empty() {
            // Without words, the input is the question.
            return Some(format!("\"{}\"", subject.parts.input));
        }
        serde_json::to_string(&subject.question).ok()
    }

    fn is_same_question(&self, cached: &CachedAnswer) -> bool {
        let subject = &self.subject;
        let has_words = !subject.question.is_empty();
        let input = cached.parts.as_ref().map(|parts| &parts.input);
        let is_same = has_words || input == Some(&subject.parts.input);
        cached.answers(&subject.question) && is_same
    }
}

/// Whether a file's name is the key of an answer.
pub(super) fn is_name_of_answer(name: &OsStr) -> bool {
    let key = name.to_str().and_then(|name| name.strip_suffix(ENDING));
    key.is_some_and(|key| {
        key.len() == KEY_LENGTH && key.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
