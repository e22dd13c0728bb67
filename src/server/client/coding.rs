//! Finds out whether a body is compressed, by a header and by its first bytes.

use std::fmt;
use std::io::{self, ErrorKind, Read};

/// How many bytes at the beginning of a body are enough to decide where a header names a format: the longest mark of one.
const ENOUGH: usize = 4;

/// The formats that are recognized where no header names one, each with the mark that no text begins with.
const MARKS: &[(&[u8], &str)] = &[(&[0x1f, 0x8b], "gzip"), (&[0x28, 0xb5, 0x2f, 0xfd], "zstd")];

/// How much is read until there are enough bytes.
const READ_SIZE: usize = 4 << 10;

/// A body that is compressed, which q did not ask for.
#[derive(Debug)]
pub struct CompressedBody {
    /// The name of the format, as the header has it if there is one.
    coding: String,
}

impl fmt::Display for CompressedBody {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let coding = &self.coding;
        write!(
            formatter,
            "the response is compressed ({coding}), which q did not ask for and cannot read"
        )
    }
}

impl std::error::Error for CompressedBody {}

/// Returns what an error of reading says of a compressed body, if it is about one.
pub fn of_error(error: &io::Error) -> Option<&CompressedBody> {
    error.get_ref()?.downcast_ref()
}

/// A body that may be compressed. Gateways that have unpacked it may leave the header as it was, and others compress without one,
/// so the first bytes decide.
pub struct CodedBody {
    /// The name of a format in the header; empty if there is none.
    coding: String,
    body: Box<dyn Read + Send>,
    /// The bytes that have been read to decide, and how many of them have been handed on.
    beginning: Vec<u8>,
    taken: usize,
    is_known: bool,
}

impl CodedBody {
    pub fn new(coding: String, body: Box<dyn Read + Send>) -> CodedBody {
        CodedBody {
            coding,
            body,
            beginning: Vec::new(),
            taken: 0,
            is_known: false,
        }
    }

    /// Reads until it is known whether the body is compressed. It is an error if it is.
    fn look(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_SIZE];
        while self.needs_more() {
            let count = self.body.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            self.beginning.extend_from_slice(&buffer[..count]);
        }
        self.is_known = true;
        let Some(coding) = self.found_coding() else {
            return Ok(());
        };
        self.beginning.clear();
        let compressed = CompressedBody { coding };
        Err(io::Error::new(ErrorKind::InvalidData, compressed))
    }

    /// Whether the bytes that have arrived do not yet decide.
    fn needs_more(&self) -> bool {
        let beginning = &self.beginning[..];
        if !self.coding.is_empty() {
            return beginning.len() < ENOUGH;
        }
        let may_be = |mark: &[u8]| beginning.len() < mark.len() && mark.starts_with(beginning);
        MARKS.iter().any(|(mark, _)| may_be(mark))
    }

    /// Returns the name of the format if the body is compressed.
    fn found_coding(&self) -> Option<String> {
        if !self.coding.is_empty() {
            return (!is_text(&self.beginning)).then(|| self.coding.clone());
        }
        let mut marks = MARKS.iter();
        let (_, name) = marks.find(|(mark, _)| self.beginning.starts_with(mark))?;
        Some((*name).to_owned())
    }
}

impl Read for CodedBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_known {
            self.look()?;
        }
        let mut waiting = &self.beginning[self.taken..];
        if waiting.is_empty() {
            return self.body.read(buffer);
        }
        let count = waiting.read(buffer)?;
        self.taken += count;
        Ok(count)
    }
}

/// Whether a body that begins like this is text, such as JSON and streams are. No compressed format is for long: gzip begins with
/// `1f 8b`, and zstd with `28 b5 2f fd`. Brotli has no mark, but soon bytes that are no text.
fn is_text(beginning: &[u8]) -> bool {
    // Some marks of zlib could begin a text.
    if matches!(beginning, [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..]) {
        return false;
    }
    let text = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        // A character may be cut at the end.
        Err(error) if error.error_len().is_none() => {
            let valid = &beginning[..error.valid_up_to()];
            std::str::from_utf8(valid).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.contains(|char: char| char.is_control() && !char.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    /// A body of which each read brings one of these parts.
    struct BodyParts(Vec<Vec<u8>>);

    impl Read for BodyParts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let part = self.0.remove(0);
            buffer[..part.len()].copy_from_slice(&part);
            Ok(part.len())
        }
    }

    /// The bytes of a text, or those that the digits between angle brackets stand for.
    fn bytes_of(words: &str) -> Vec<u8> {
        let Some(digits) = words.strip_prefix('<') else {
            return words.replace('␊', "\n").into_bytes();
        };
        let digits = digits.trim_end_matches('>').split(' ');
        Vec::from_iter(digits.map(|byte| u8::from_str_radix(byte, 16).expect(words)))
    }

    #[test]
    fn the_first_bytes_of_a_body_tell_whether_it_is_compressed() {
        let table = r##"
            compressed | gzip | <1f 8b 08 00 00 00 00 00>
            compressed | zstd | <28 b5 2f fd 04 58>
            compressed | zlib | <78 9c ab 56 4a>
            compressed | zlib, fast | <78 01 ab 56 4a>
            compressed | zlib, low | <78 5e ab 56 4a>
            compressed | zlib, best | <78 da ab 56 4a>
            compressed | raw deflate | <ab 56 4a 2d 2a>
            compressed | brotli | <0b 02 80 7b 7d 0a 03>
            compressed | brotli, longer | <1b 2a 00 f8 8d 94 6e de>
            plain | JSON | {"choices":[]}
            plain | JSON after whitespace | ␊␊  []
            plain | a byte order mark | <ef bb bf 7b 7d>
            plain | a cut character | <7b 22 61 e2 82>
            plain | a stream | data: {}␊␊
            plain | a comment of a stream | : waiting␊
            plain | a page | <3c 68 74 6d 6c 3e>
            plain | a word | xy
            plain | nothing | -
        "##;
        check("gzip", "gzip", table);
    }

    #[test]
    fn a_body_without_the_header_is_compressed_if_it_begins_with_a_mark_that_no_text_has() {
        let table = r##"
            compressed | gzip | <1f 8b 08 00 00 00 00 00>
            compressed | gzip, cut | <1f 8b>
            plain | a part of the mark | <1f>
            plain | another control character | <1f 7b 7d>
            plain | what begins like zstd | <28 b5 2f>
            plain | a parenthesis | (x)
            plain | JSON | {"choices":[]}
            plain | one byte | {
            plain | brotli | <0b 02 80 7b 7d 0a 03>
            plain | nothing | -
        "##;
        check("", "gzip", table);
        check("", "zstd", "compressed | zstd | <28 b5 2f fd 04 58>");
    }

    /// Checks a table: whether a body with this coding in its header is read or is an error that names this format, what it is, and
    /// its bytes.
    #[track_caller]
    fn check(coding: &str, format: &str, table: &str) {
        for [expected, what, words] in rows(table) {
            let whole = bytes_of(words);
            let bytewise = whole.iter().map(|byte| vec![*byte]).collect();
            for parts in [vec![whole.clone()], bytewise] {
                let parts = Vec::from_iter(parts.into_iter().filter(|part| !part.is_empty()));
                let mut body = CodedBody::new(coding.to_owned(), Box::new(BodyParts(parts)));
                let mut read = Vec::new();
                match body.read_to_end(&mut read) {
                    Ok(_) => assert!(expected == "plain" && read == whole, "{what}"),
                    Err(error) => {
                        let words = of_error(&error).map(ToString::to_string);
                        let is_said =
                            words.is_some_and(|words| words.contains(&format!("({format})")));
                        assert!(expected == "compressed" && is_said, "{what}");
                    }
                }
            }
        }
    }
}
