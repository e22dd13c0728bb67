//! A cached answer and its file, which is read and replaced whole.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request_parts::{self, RequestParts};
use crate::session::timestamp::Timestamp;
use crate::text::byte_order_mark::after_mark;
use crate::text::json;
use crate::whole_file::{self, Links, MAX_FILE, PRIVATE, ReadFailure, SHARED};

/// The version of the files.
pub const VERSION: u64 = 1;

/// Ends the names of the files.
pub(super) const ENDING: &str = ".json";

/// Whose answers a directory may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// The user's alone: it is in the cache.
    Private,
    /// Also those of other users: the user has named it, perhaps in a repository.
    Shared,
}

impl Sharing {
    /// Returns the mode of the directory.
    fn mode(self) -> u32 {
        match self {
            Sharing::Private => PRIVATE,
            Sharing::Shared => SHARED,
        }
    }

    /// Reads a file. One of another user cannot be used where only the user's count.
    fn read(self, path: &Path) -> Result<Vec<u8>, ReadFailure> {
        match self {
            Sharing::Private => whole_file::read_own(path, Links::Followed, MAX_FILE),
            Sharing::Shared => whole_file::read(path, MAX_FILE),
        }
    }
}

/// The place of one answer: its path, and what the file there must be about.
pub struct CacheEntry {
    pub path: PathBuf,
    pub(super) sharing: Sharing,
    pub subject: AnswerSubject,
}

/// The question that an answer is about, and the parts of its request.
pub struct AnswerSubject {
    /// The words of the question, without its input and files.
    pub question: String,
    /// The provider and the model that are asked.
    pub provider: String,
    pub asked: String,
    pub parts: RequestParts,
}

/// An answer that ended well, as a file has it.
#[derive(Serialize, Deserialize)]
pub struct CachedAnswer {
    pub version: u64,
    /// See [`AnswerSubject::question`].
    pub question: String,
    /// What the request had besides. Files of q 0.4 lack it.
    #[serde(
        default,
        deserialize_with = "request_parts::readable",
        skip_serializing_if = "Option::is_none"
    )]
    pub parts: Option<RequestParts>,
    pub answer: String,
    /// The provider and the model that gave it.
    pub provider: String,
    pub model: String,
    /// The model that was asked; a provider may replace one that it no longer has.
    pub asked: String,
    /// The provider's word for how it ended.
    pub finish: String,
    #[serde(default)]
    pub usage: Value,
    #[serde(default)]
    pub sources: Value,
    pub created: Timestamp,
}

impl CachedAnswer {
    /// Reads a file. A torn one or another program's, or one of another user where only the user's count, cannot be used.
    pub(super) fn read(path: &Path, sharing: Sharing) -> Result<CachedAnswer, ReadFailure> {
        let bytes = sharing.read(path)?;
        // Somebody may have edited it.
        json::parse_bytes(after_mark(&bytes)).map_err(|error| {
            let reason = json::parse_failure(&error);
            ReadFailure::Unusable(format!("it cannot be parsed ({reason})"))
        })
    }

    /// Whether it is an answer to a question with these words, which may have come with something else.
    pub(super) fn answers(&self, question: &str) -> bool {
        self.version == VERSION && self.question == question && !self.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.answer.trim().is_empty()
    }
}

impl CacheEntry {
    /// Reads the answer; `None` if there is no file.
    ///
    /// # Errors
    ///
    /// Says why the file cannot be used. To a question that is as good as no file.
    pub fn read(&self) -> Result<Option<CachedAnswer>, String> {
        let reason = match CachedAnswer::read(&self.path, self.sharing) {
            Ok(cached) => match self.obstacle(&cached) {
                None => return Ok(Some(cached)),
                Some(reason) => reason,
            },
            Err(ReadFailure::System(error)) if error.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(failure) => failure.to_string(),
        };
        let path = self.path.display();
        Err(format!("ignoring the cached answer {path}: {reason}"))
    }

    /// Says why this is not the answer of this file; `None` if it is. Somebody may have put another one in its place.
    fn obstacle(&self, cached: &CachedAnswer) -> Option<String> {
        if cached.version != VERSION {
            return Some(format!("its version is {}, not {VERSION}", cached.version));
        }
        let reason = if cached.question != self.subject.question {
            "it is for another question"
        } else if cached.asked != self.subject.asked {
            "it is for another model"
        } else if cached.is_empty() {
            "its answer is empty"
        } else {
            return None;
        };
        Some(reason.to_owned())
    }

    /// Writes the answer in the place of the file.
    pub fn write(&self, cached: &CachedAnswer) -> io::Result<()> {
        // In lines, so that a change can be reviewed.
        let mut bytes = serde_json::to_vec_pretty(cached)?;
        bytes.push(b'\n');
        whole_file::replace(&self.path, &bytes, self.sharing.mode())
    }
}
