//! Text files that settings and options name: the configuration, system prompts, schemas, shared tool servers.

use std::fmt::Display;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The most bytes of a file that is written for q.
pub const MAX_TEXT: u64 = 1_000_000;

/// The most bytes of a file that other programs write into, too.
pub const MAX_SHARED: u64 = 100_000_000;

/// The text of a regular file. Anything else is refused: opening a pipe would wait for a writer.
pub fn read_regular(path: &Path, limit: u64) -> Result<String, String> {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => read_text(path, limit),
        Ok(_) => Err(unreadable(path, "it is not a regular file")),
        Err(error) => Err(unreadable(path, error)),
    }
}

fn unreadable(path: &Path, why: impl Display) -> String {
    format!("cannot read {}: {why}", path.display())
}

/// The text of a file of at most `limit` bytes, without a byte order mark.
pub fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| {
        // One byte more shows that the file is too long.
        let mut limited = file.take(limit + 1);
        limited.read_to_string(&mut text)
    });
    let why = match read {
        Ok(length) if length as u64 > limit => format!("it has more than {limit} bytes"),
        Ok(_) if text.contains('\0') => "it has a NUL byte".to_owned(),
        Ok(_) => return Ok(text.trim_start_matches('\u{feff}').to_owned()),
        Err(error) if error.kind() == ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(unreadable(path, why))
}
