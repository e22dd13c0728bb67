//! Reads text files: the configuration, prompts, schemas and lists of tool servers.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::text::byte_order_mark::remove_mark;
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
    text_of(whole_file::read(path, limit)?)
}

/// Returns the text of at most `limit` bytes that comes through a pipe, which is read to its end, without a byte order mark.
pub fn read_pipe(path: &Path, limit: u64) -> Result<String, String> {
    try_read_pipe(path, limit).map_err(|error| unreadable(path, &error))
}

fn try_read_pipe(path: &Path, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let size = in_units(limit);
        return Err(io::Error::other(format!("it has more than {size}")));
    }
    text_of(bytes)
}

/// Returns the text in these bytes without a byte order mark.
fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    let text = String::from_utf8(bytes);
    let mut text = text.map_err(|_| io::Error::other("it is not UTF-8"))?;
    if text.contains('\0') {
        return Err(io::Error::other("it has a NUL byte, so it is no text"));
    }
    remove_mark(&mut text);
    Ok(text)
}

/// Returns the error for a file that cannot be read. The system would say of a broken link that there is nothing.
pub fn unreadable(path: &Path, reason: &dyn Display) -> String {
    let path_shown = path.display();
    match whole_file::broken_link(path) {
        Some(link) => format!("cannot read {path_shown}: it is {link}"),
        None => format!("cannot read {path_shown}: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_pipe_is_read_as_a_file_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("text");
        for (bytes, expected) in [
            (&b"\xef\xbb\xbf{}"[..], Ok("{}")),
            ("é".repeat(5).as_bytes(), Ok("ééééé")),
            // The limit is in the middle of a character.
            ("é".repeat(6).as_bytes(), Err("it has more than")),
            (b"\xff", Err("it is not UTF-8")),
            (b"a\0b", Err("it has a NUL byte")),
            (b"", Ok("")),
        ] {
            fs::write(&path, bytes).expect("a file");
            for found in [read_text(&path, 10), read_pipe(&path, 10)] {
                match (found, expected) {
                    (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                    (Err(error), Err(reason)) => assert!(error.contains(reason), "{error}"),
                    (found, _) => panic!("{found:?} is not {expected:?}"),
                }
            }
        }
    }
}
