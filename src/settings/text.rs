//! Reads text files: the configuration, prompts, schemas and lists of tool servers.

use std::fs;
use std::io;
use std::path::Path;

/// The most bytes of a file that is written for q.
pub const MAX_TEXT: u64 = 1_000_000;

/// The most bytes of a file that other programs write into, too.
pub const MAX_SHARED: u64 = 100_000_000;

/// The text of a regular file of at most `limit` bytes, without a byte order mark.
pub fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    match read(path, limit) {
        Ok(text) => Ok(text.trim_start_matches('\u{feff}').to_owned()),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

fn read(path: &Path, limit: u64) -> io::Result<String> {
    let metadata = path.metadata()?;
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > limit {
        let reason = format!("it has more than {limit} bytes");
        return Err(io::Error::other(reason));
    }
    fs::read_to_string(path)
}
