//! Cached answers: each is a file named by the hash of its request.

mod cache_entry;
mod nearest;
mod request_parts;

use std::path::PathBuf;

use serde_json::Value;

pub use cache_entry::{AnswerSubject, CacheEntry, CachedAnswer, Sharing, VERSION};
pub use request_parts::{RequestParts, WholeRequest};

use crate::text::digest::sha256_hex;
use crate::whole_file::names_in;
use cache_entry::ENDING;
use request_parts::OF_ARRIVAL;

/// The directory of cached answers, which need not exist.
pub struct AnswerCache {
    pub directory: PathBuf,
    pub sharing: Sharing,
}

/// The number of files in a directory, and their size.
#[derive(Default)]
pub struct CacheSize {
    pub files: usize,
    pub bytes: u64,
}

/// Returns the SHA-256, in hexadecimal digits, of a base URL, the name of a dialect, a model and the body of a request.
pub fn key(base_url: &str, dialect: &str, model: &str, mut body: Value) -> String {
    if let Some(fields) = body.as_object_mut() {
        // How the answer arrives does not change what it says.
        for name in OF_ARRIVAL {
            fields.shift_remove(*name);
        }
    }
    sha256_hex(&serde_json::json!([base_url, dialect, model, body]).to_string())
}

impl AnswerCache {
    /// Returns the place of the answer with this key.
    pub fn file(&self, key: &str, subject: AnswerSubject) -> CacheEntry {
        CacheEntry {
            path: self.directory.join(format!("{key}{ENDING}")),
            sharing: self.sharing,
            subject,
        }
    }

    /// Returns how many answers there are, and their bytes. What cannot be looked at does not count.
    pub fn size(&self) -> CacheSize {
        let mut size = CacheSize::default();
        let names = names_in(&self.directory, usize::MAX);
        for name in names.unwrap_or_default() {
            if nearest::is_name_of_answer(&name)
                && let Ok(metadata) = self.directory.join(&name).symlink_metadata()
            {
                size.files += 1;
                size.bytes += metadata.len();
            }
        }
        size
    }
}
