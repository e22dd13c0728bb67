//! Cached answers: each is a file named by the hash of its request, which is read and replaced whole.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::timestamp::Timestamp;
use crate::text::json;
use crate::unix;
use crate::whole_file::{self, MAX_FILE, PRIVATE, ReadFailure, SHARED};

/// The version of the files.
pub const VERSION: u64 = 1;

const ENDING: &str = ".json";

/// The directory of cached answers, which need not exist.
pub struct AnswerCache {
    pub folder: PathBuf,
    pub sharing: Sharing,
}

/// Whose answers a directory may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// The user's alone: it is in the cache.
    Private,
    /// Those of others, too: the user has named it, perhaps in a repository.
    Shared,
}

impl Sharing {
    /// The mode of the directory.
    fn mode(self) -> u32 {
        match self {
            Sharing::Private => PRIVATE,
            Sharing::Shared => SHARED,
        }
    }
}

/// How much a directory has.
#[derive(Default)]
pub struct CacheSize {
    pub files: usize,
    pub bytes: u64,
}

/// The place of one answer: its path, and what the file there must be about.
pub struct CacheEntry {
    pub path: PathBuf,
    sharing: Sharing,
    /// The words of the question, without its input and files.
    pub question: String,
    /// The model that is asked.
    pub asked: String,
}

/// An answer that ended well, as a file has it.
#[derive(Serialize, Deserialize)]
pub struct CachedAnswer {
    pub version: u64,
    /// See [`CacheEntry::question`].
    pub question: String,
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

/// The SHA-256, in hexadecimal digits, of a base URL, the name of a dialect, a model and the body of a request.
pub fn key(base_url: &str, dialect: &str, model: &str, mut body: Value) -> String {
    if let Some(fields) = body.as_object_mut() {
        // How the answer arrives does not change what it says.
        fields.shift_remove("stream");
        fields.shift_remove("stream_options");
    }
    whole_file::name_of(&serde_json::json!([base_url, dialect, model, body]).to_string())
}

impl AnswerCache {
    /// The place of the answer with this key.
    pub fn file(&self, key: &str, question: String, asked: String) -> CacheEntry {
        CacheEntry {
            path: self.folder.join(format!("{key}{ENDING}")),
            sharing: self.sharing,
            question,
            asked,
        }
    }

    /// How many answers there are, and their bytes. What cannot be looked at does not count.
    pub fn size(&self) -> CacheSize {
        let mut size = CacheSize::default();
        let entries = fs::read_dir(&self.folder);
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().ends_with(ENDING.as_bytes())
                && let Ok(metadata) = entry.metadata()
            {
                size.files += 1;
                size.bytes += metadata.len();
            }
        }
        size
    }
}

impl CacheEntry {
    /// Reads the answer; `None` if there is no file.
    ///
    /// # Errors
    ///
    /// Says why the file cannot be used. To a question that is as good as no file.
    pub fn read(&self) -> Result<Option<CachedAnswer>, String> {
        let reason = match whole_file::read(&self.path, MAX_FILE) {
            Ok(_) if self.belongs_to_another_user() => "it belongs to another user".to_owned(),
            Ok(bytes) => match json::parse_bytes(&bytes) {
                Ok(cached) if self.accepts(&cached) => return Ok(Some(cached)),
                Ok(_) => "it does not answer this question".to_owned(),
                Err(error) => format!("it cannot be parsed ({error})"),
            },
            Err(ReadFailure::System(error)) if error.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(failure) => failure.to_string(),
        };
        let path = self.path.display();
        Err(format!("the known answer {path} is not used: {reason}"))
    }

    /// Whether another user has written the answer, where only the user should.
    fn belongs_to_another_user(&self) -> bool {
        let is_own = |file: Metadata| file.uid() == unix::effective_user();
        self.sharing == Sharing::Private && !fs::metadata(&self.path).is_ok_and(is_own)
    }

    /// Whether this is the answer of this file. Somebody may have put another one in its place.
    fn accepts(&self, cached: &CachedAnswer) -> bool {
        let is_empty = cached.answer.trim().is_empty();
        let is_of_version = cached.version == VERSION;
        let is_question = cached.question == self.question && cached.asked == self.asked;
        is_of_version && is_question && !is_empty
    }

    /// Writes the answer in the place of the file.
    pub fn write(&self, cached: &CachedAnswer) -> io::Result<()> {
        // In lines, so that a change can be reviewed.
        let mut bytes = serde_json::to_vec_pretty(cached)?;
        bytes.push(b'\n');
        whole_file::replace(&self.path, &bytes, self.sharing.mode())
    }
}
