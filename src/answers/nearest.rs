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

/// At most this many bytes are read of the files that may be about the same question.
const MAX_READ: u64 = 5 * MAX_FILE;

/// The words of a question, or the hash of what it is instead, are so near to the beginning of a file that q has written.
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

impl CacheEntry {
    /// Returns what differs in the request of the nearest cached answer to the same question, in a sentence with the name of its
    /// file. Of those that are equally near it is the newest.
    pub fn nearest(&self) -> Option<String> {
        let mut room = MAX_READ;
        let mut nearest: Option<NearAnswer> = None;
        for name in self.names_of_others() {
            let path = self.path.with_file_name(&name);
            let Some(size) = self.size_if_about_question(&path) else {
                continue;
            };
            let Some(rest) = room.checked_sub(size) else {
                break;
            };
            room = rest;
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

    /// Returns the size of a file that may be about the same question. Only its beginning is read.
    fn size_if_about_question(&self, path: &Path) -> Option<u64> {
        let subject = &self.subject;
        // Without words, the input is the question.
        let mut mark = format!("\"{}\"", subject.parts.input);
        if !subject.question.is_empty() {
            mark = serde_json::to_string(&subject.question).ok()?;
        }
        let count = BEFORE_QUESTION + mark.len() as u64;
        let (bytes, size) = whole_file::read_beginning(path, count).ok()?;
        let is_about_it = String::from_utf8_lossy(&bytes).contains(&mark);
        // The system may report less than there is.
        let size = size.max(bytes.len() as u64);
        (is_about_it && size <= MAX_FILE).then_some(size)
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
