//! Parses an event stream by the WHATWG rules (HTML, 9.2.6): bytes go in, the data of events comes out (pure).
//!
//! Servers also send what these rules have not, and mean something by it. So the last event needs no empty line after it, nor do
//! events whose lines are JSON by themselves, a field `error` is an event, lines that are not fields are kept, and a byte order mark
//! before any line counts for nothing. An event whose data has nothing but line ends is left out, because it says nothing.

use std::borrow::Cow;
use std::mem;

use memchr::memchr2;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::text::byte_order_mark::after_mark;

/// The most bytes that a line, or the data of one event, may have.
pub const MAX_EVENT: usize = 16_000_000;

/// The most bytes kept of text that is not an event.
const MAX_STRAY: usize = 64 << 10;

/// A line or an event was longer than the parser's limit.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// A parser of one stream.
#[derive(Debug)]
pub struct SseParser {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The lines of data of the event that is not complete yet, joined by LF.
    data: Vec<u8>,
    /// How many lines these are. They may be empty.
    data_lines: usize,
    /// Whether the event is named `error`.
    is_error: bool,
    /// Lines that are not fields: some servers report errors like this, or send a page.
    stray: String,
    /// Whether the last line ended in CR, so that an LF next to it belongs to it.
    after_carriage_return: bool,
    /// The most bytes of a line, or of the data of one event.
    limit: usize,
}

impl Default for SseParser {
    fn default() -> SseParser {
        SseParser::with_limit(MAX_EVENT)
    }
}

impl SseParser {
    /// Returns a parser of events of at most this many bytes.
    pub fn with_limit(limit: usize) -> SseParser {
        SseParser {
            line: Vec::new(),
            data: Vec::new(),
            data_lines: 0,
            is_error: false,
            stray: String::new(),
            after_carriage_return: false,
            limit,
        }
    }

    /// Takes the next bytes and calls `event` with the data of each event that they complete. The data of an event named
    /// `error`, or the value of a field of this name, comes inside an object, as its field `error`. Bytes that are not UTF-8
    /// become U+FFFD, as the rules demand.
    pub fn feed(&mut self, mut bytes: &[u8], event: &mut impl FnMut(&str)) -> Result<(), TooLong> {
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (rest, ending) = (&bytes[..end], bytes[end]);
            bytes = &bytes[end + 1..];
            let is_empty = self.line.is_empty() && rest.is_empty();
            let follows_carriage_return =
                mem::replace(&mut self.after_carriage_return, ending == b'\r');
            // CR and LF together end one line, which the CR has ended already.
            if follows_carriage_return && is_empty && ending == b'\n' {
                continue;
            }
            if self.line.is_empty() {
                // Most lines come whole, and need no copy.
                self.read_line(rest, event)?;
            } else {
                self.extend(rest)?;
                self.end_line(event)?;
            }
        }
        self.extend(bytes)
    }

    /// Ends the stream. The rules discard an event without an empty line after it, but servers that leave out the last line
    /// end still mean it, so it is dispatched.
    pub fn finish(&mut self, event: &mut impl FnMut(&str)) -> Result<(), TooLong> {
        self.end_line(event)?;
        self.end_event(event)
    }

    /// Lines in the stream that are not fields, as far as they were kept.
    pub(super) fn stray(&self) -> &str {
        &self.stray
    }

    /// Returns the part of these lines that may be JSON.
    pub(super) fn stray_json(&self) -> &str {
        let begin = self.stray.find(['{', '[']);
        begin.map_or("", |begin| &self.stray[begin..])
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > self.limit {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, event: &mut impl FnMut(&str)) -> Result<(), TooLong> {
        let mut line = mem::take(&mut self.line);
        // A long line becomes the data without a copy.
        if self.data_lines == 0
            && line.len() > MAX_STRAY
            && let Some(value) = line.strip_prefix(b"data:")
        {
            let value = value.strip_prefix(b" ").unwrap_or(value).len();
            line.drain(..line.len() - value);
            self.data = line;
            self.data_lines = 1;
            return Ok(());
        }
        self.read_line(&line, event)?;
        self.line = emptied(line);
        Ok(())
    }

    fn read_line(&mut self, line: &[u8], event: &mut impl FnMut(&str)) -> Result<(), TooLong> {
        let line = after_mark(line);
        if line.is_empty() {
            self.end_event(event)?;
        } else if let Some(name) = value_of(line, b"event") {
            self.is_error = name.trim_ascii() == b"error";
        } else if let Some(value) = value_of(line, b"data") {
            self.add_data(value)?;
        } else if let Some(value) = line.strip_prefix(b"error:") {
            // llama.cpp before October 2025 reports an error like this.
            event(&as_error(&lossy(value, self.limit)?));
        } else if !adds_nothing(line) && self.stray.len() < MAX_STRAY {
            let room = MAX_STRAY - self.stray.len();
            let kept = &line[..line.len().min(room)];
            self.stray.push_str(&String::from_utf8_lossy(kept));
            self.stray.push('\n');
        }
        Ok(())
    }

    /// Dispatches the event, if its data says anything.
    fn end_event(&mut self, event: &mut impl FnMut(&str)) -> Result<(), TooLong> {
        let is_error = mem::take(&mut self.is_error);
        let lines = mem::take(&mut self.data_lines);
        if self.data.iter().all(|byte| *byte == b'\n') {
            self.data.clear();
            return Ok(());
        }
        let data = lossy(&self.data, self.limit)?;
        let (first, glued) = if lines > 1 {
            split_glued(&data)
        } else {
            (&*data, "")
        };
        if is_error {
            event(&as_error(first));
        } else {
            event(first);
        }
        // Looking for lines takes its time even in nothing.
        if !glued.is_empty() {
            for line in glued.lines().filter(|line| !line.is_empty()) {
                event(line);
            }
        }
        self.data = emptied(mem::take(&mut self.data));
        Ok(())
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), TooLong> {
        if self.data.len() + value.len() > self.limit {
            return Err(TooLong);
        }
        if self.data_lines > 0 {
            self.data.push(b'\n');
        }
        self.data_lines += 1;
        self.data.extend_from_slice(value);
        Ok(())
    }
}

/// Returns the value of a line if it is the field of this name. Without a colon, the whole line is the name.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

/// The data of one event, and the lines of others: some servers leave out the empty lines between events. Where the first line
/// that is not empty is JSON by itself, the next one cannot belong to it.
fn split_glued(data: &str) -> (&str, &str) {
    match data.trim_start_matches('\n').split_once('\n') {
        Some((first, rest)) if serde_json::from_str::<IgnoredAny>(first).is_ok() => (first, rest),
        _ => (data, ""),
    }
}

/// Whether a line is a field that adds nothing to the data. A comment begins with a colon: its field has the empty name.
fn adds_nothing(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next();
    matches!(name, Some(b"" | b"data" | b"event" | b"id" | b"retry"))
}

/// Decodes bytes as text, in which U+FFFD replaces those that are not UTF-8. That makes it longer, but at most this many
/// bytes.
pub(super) fn lossy(bytes: &[u8], limit: usize) -> Result<Cow<'_, str>, TooLong> {
    // Most data is valid, and for valid data the plain check is much faster than a lossy one.
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Cow::Borrowed(text));
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        if text.len() > limit {
            return Err(TooLong);
        }
    }
    Ok(Cow::Owned(text))
}

/// Returns a buffer without its content. Its memory is kept for what comes next, unless it is much.
fn emptied(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > MAX_STRAY {
        return Vec::new();
    }
    buffer.clear();
    buffer
}

/// Returns an object whose error is this: JSON, or words.
fn as_error(data: &str) -> String {
    let words = data.trim();
    if serde_json::from_str::<IgnoredAny>(words).is_ok() {
        return format!("{{\"error\":{words}}}");
    }
    let beginning: String = words.chars().take(MAX_STRAY).collect();
    json!({"error": beginning}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        let mut collect = |data: &str| events.push(data.to_owned());
        for piece in pieces {
            parser.feed(piece, &mut collect).expect("short lines");
        }
        parser.finish(&mut collect).expect("short lines");
        events
    }

    #[test]
    fn event_streams_are_parsed_by_the_rules_of_their_specification() {
        for (stream, expected) in [
            ("data: a\n\n", &["a"][..]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
            ("data: a\r\rdata: b\r\r", &["a", "b"]),
            ("data: a\r\n\ndata: b\n\r\n", &["a", "b"]),
            ("\u{FEFF}data: a\n\n", &["a"]),
            (": comment\ndata: a\n\n: another\n\n", &["a"]),
            ("data:a\n\n", &["a"]),
            ("data:  a\n\n", &[" a"]),
            ("data: a\ndata: b\ndata:\n\n", &["a\nb\n"]),
            ("event: x\nid: 1\nretry: 2\ndata: a\n\n", &["a"]),
            ("database: a\n\ndata\n\n", &[]),
            ("data: whole but not finished", &["whole but not finished"]),
            ("data: a\n", &["a"]),
            ("\n\n\n", &[]),
            ("data:\ndata: a\n\n", &["\na"]),
            ("data\ndata:\ndata: a\n\n", &["\n\na"]),
            ("data: a\ndata\ndata: b\n\n", &["a\n\nb"]),
            ("data\n\ndata:\ndata\n\ndata: a\n\n", &["a"]),
            ("data:\ndata: {}\ndata: [1]\n\n", &["{}", "[1]"]),
            ("event: error\nevent\ndata: a\n\n", &["a"]),
            ("event: error\nevent:\ndata: a\n\n", &["a"]),
            (
                "event: error\n: comment\ndata: a\n\n",
                &["{\"error\":\"a\"}"],
            ),
            ("event: error\nevents\ndata: a\n\n", &["{\"error\":\"a\"}"]),
            ("errors: {}\nmy error: {}\n\n", &[]),
            (
                "data: a\nerror: {\"code\":500}\n\nerror:busy\n",
                &["{\"error\":{\"code\":500}}", "a", "{\"error\":\"busy\"}"],
            ),
            (
                "event: error\ndata: {\"code\":500}\n\ndata: b\n\n",
                &["{\"error\":{\"code\":500}}", "b"],
            ),
            (
                "data: too\ndata: \"busy\"\nevent:error\n\n",
                &["{\"error\":\"too\\n\\\"busy\\\"\"}"],
            ),
            ("event: error\n\ndata: a\n\n", &["a"]),
            ("data: {\ndata: \"a\": 1}\n\n", &["{\n\"a\": 1}"]),
            (
                "data: {}\ndata: [1]\ndata: [DONE]\n",
                &["{}", "[1]", "[DONE]"],
            ),
            ("data: {}\ndata: {\"cut", &["{}", "{\"cut"]),
            ("data: {}\ndata:\n\ndata: b\n\n", &["{}", "b"]),
            (
                "event: error\ndata: {\"code\":500}\ndata: [DONE]\n\n",
                &["{\"error\":{\"code\":500}}", "[DONE]"],
            ),
            ("event: error\nevent: x\ndata: a\n\n", &["a"]),
            ("event: errors\ndata: a\n\n", &["a"]),
        ] {
            assert_eq!(events(&[stream.as_bytes()]), expected, "{stream:?}");
        }
        let found = events(&[b"data: a\r", b"", b"\ndata: b\r", b"\n\r\n"]);
        assert_eq!(found, ["a\nb"]);
    }

    fn ignore(_: &str) {}

    /// A parser that was fed this.
    fn fed(stream: &str) -> SseParser {
        let mut parser = SseParser::default();
        let fed = parser.feed(stream.as_bytes(), &mut ignore);
        fed.expect("short lines");
        parser
    }

    #[test]
    fn lines_of_a_stream_that_are_not_fields_are_kept_apart() {
        let stream = ": comment\nevent: x\ndata: a\n\n{\n  \"error\": {\n\"b\": 1}\n}\nevent: y\n";
        assert_eq!(fed(stream).stray(), "{\n  \"error\": {\n\"b\": 1}\n}\n");
        assert_eq!(fed("event: x\nid: 1\n:c\ntext\n").stray(), "text\n");
    }

    #[test]
    fn lines_of_a_stream_that_are_not_fields_are_kept_up_to_a_limit() {
        let line = format!("idle {}\n", " ".repeat(MAX_STRAY / 2));
        assert_eq!(fed(&line).stray(), line);
        assert_eq!(fed(&line.repeat(3)).stray().len(), MAX_STRAY + 1);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced() {
        assert_eq!(events(&[b"data: a\xFFb\n\n"]), ["a\u{FFFD}b"]);
    }

    #[test]
    fn a_line_of_a_stream_that_is_too_long_fails() {
        let mut parser = SseParser::default();
        let piece = vec![b'x'; MAX_EVENT / 2];
        assert_eq!(parser.feed(&piece, &mut ignore), Ok(()));
        assert_eq!(parser.feed(&piece, &mut ignore), Ok(()));
        assert_eq!(parser.feed(b"x", &mut ignore), Err(TooLong));
    }

    #[test]
    fn lines_of_data_that_are_too_long_together_fail() {
        let mut parser = SseParser::default();
        let line = [b"data:", &*vec![b'x'; MAX_EVENT / 2], b"\n"].concat();
        assert_eq!(parser.feed(&line, &mut ignore), Ok(()));
        assert_eq!(parser.feed(&line[..line.len() / 2], &mut ignore), Ok(()));
        assert_eq!(parser.feed(b"\n", &mut ignore), Ok(()));
        assert_eq!(parser.feed(&line, &mut ignore), Err(TooLong));
    }

    #[test]
    fn bytes_that_are_not_utf8_count_with_the_length_of_their_replacement() {
        // Each byte that is no text becomes three.
        for (limit, expected) in [(29, Err(TooLong)), (30, Ok(()))] {
            let mut parser = SseParser::with_limit(limit);
            let line = [b"data:", &[0xff; 10][..], b"\n\n"].concat();
            assert_eq!(parser.feed(&line, &mut ignore), expected, "{limit}");
            assert_eq!(lossy(&[0xff; 10], limit).map(drop), expected, "{limit}");
        }
    }

    proptest! {
        #[test]
        fn events_are_the_same_wherever_the_stream_is_split(
            lines in proptest::collection::vec("(data: ?[aü€]{0,3}|data|event|event: ?error|:c|id: 1|)(\n|\r\n|\r)", 0..12), at in 0usize..100, next in 0usize..100,
        ) {
            let stream = lines.concat().into_bytes();
            let at = at.min(stream.len());
            let next = (at + next).min(stream.len());
            prop_assert_eq!(events(&[&stream[..at], &stream[at..next], &stream[next..]]), events(&[&stream]));
        }
    }
}
