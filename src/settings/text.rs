//! Reads text files: the configuration, prompts, schemas and lists of tool servers.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::text::size::in_units;
use crate::whole_file;

/// The most bytes of a file that is written for q.
pub const MAX_TEXT: u64 = 1_000_000;

/// The most bytes of a file that other programs write into, too.
pub const MAX_SHARED: u64 = 20_000_000;

/// Returns the text of a regular file of at most `limit` bytes, without a byte order mark.
pub fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    try_read(path, limit).map_err(|error| unreadable(path, &error))
}

/// Reads a file like `read_text`, with the kind of the error.
pub fn try_read(path: &Path, limit: u64) -> io::Result<String> {
    let bytes = whole_file::read(path, limit)?;
    let text = String::from_utf8(bytes);
    let mut text = text.map_err(|_| io::Error::other("it is not UTF-8"))?;
    let marks = text.len() - text.trim_start_matches('\u{feff}').len();
    text.drain(..marks);
    Ok(text)
}

/// Returns the text that comes through a pipe, which is read to its end.
pub fn read_pipe(path: &Path, limit: u64) -> Result<String, String> {
    let mut text = String::new();
    let pipe = File::open(path).map_err(|error| unreadable(path, &error))?;
    let read = pipe.take(limit + 1).read_to_string(&mut text);
    read.map_err(|error| unreadable(path, &error))?;
    if text.len() as u64 > limit {
        let reason = format!("it has more than {size}", size = in_units(limit));
        return Err(unreadable(path, &reason));
    }
    Ok(text)
}

/// Returns the error for a file that cannot be read.
pub fn unreadable(path: &Path, reason: &dyn Display) -> String {
    format!("cannot read {}: {reason}", path.display())
}
