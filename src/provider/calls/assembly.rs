//! Puts the fragments of a call together, and leaves out what a server repeats in them (pure).

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::notation::{is_extended_by, plain_json};
use crate::message::MAX_TOOL_NAME;
use crate::text::json;

/// Arguments with fewer bytes than this may be a number or a word of JSON.
const MAX_SCALAR: usize = 40;

/// The way in which the arguments of a call have been put together.
#[derive(Debug, Default)]
pub struct Assembly {
    /// Where the last fragment begins.
    last: usize,
    /// Whether some fragment does not begin with all of the one before it.
    goes_on: bool,
    /// The names of the fragments, if there are several.
    pub names: NameFragments,
    /// Whether the call has come in the place of another one with its id and name.
    pub shares_place: bool,
    /// Whether the arguments so far are complete.
    pub scan: JsonScan,
}

impl Assembly {
    /// Forgets the arguments so far, because those that come replace them.
    pub fn start_again(&mut self) {
        self.last = 0;
        self.goes_on = false;
        self.scan = JsonScan::default();
    }

    /// Appends what a further fragment has to the `arguments` so far.
    pub fn append(&mut self, arguments: &mut String, fragment: &str) {
        if !fragment.trim().is_empty() {
            self.goes_on = self.goes_on || !fragment.starts_with(&arguments[self.last..]);
            self.last = arguments.len();
        }
        arguments.push_str(fragment);
    }

    /// Returns the arguments without what a server has sent more than once: each fragment from the beginning again, or all of it
    /// again, or an empty object or one with less fields before it. Two other objects may be two calls, so they stay.
    pub fn without_repeats(&self, arguments: String) -> String {
        if json::is_object(&arguments) {
            return arguments;
        }
        let last = arguments[self.last..].trim_end();
        if !self.goes_on && json::is_object(last) {
            return last.to_owned();
        }
        let mut values = serde_json::Deserializer::from_str(&arguments).into_iter::<&RawValue>();
        // One of them, and its plain notation, so that each is parsed once.
        let (mut found, mut plain) = ("", String::new());
        for value in values.by_ref().map_while(Result::ok) {
            let value = value.get();
            let next = plain_json(value);
            if next == plain {
                continue;
            }
            let says_nothing = plain.is_empty() || plain == "{}";
            if !says_nothing && !is_extended_by(found, value) {
                return arguments;
            }
            (found, plain) = (value, next);
        }
        let is_all = values.byte_offset() >= arguments.trim_end().len();
        if is_all && found.starts_with('{') {
            return found.to_owned();
        }
        arguments
    }
}

/// The names of the fragments of a call, put together in each way that servers split a name or repeat it.
#[derive(Debug, Default)]
pub struct NameFragments {
    /// All of them, one after the other.
    joined: String,
    /// The same, but one that begins with all before it takes their place, because the server sends the name from its beginning
    /// again.
    latest: String,
}

impl NameFragments {
    /// Adds the name that a further fragment has. `first` is the name so far.
    pub fn add(&mut self, first: &str, next: &str) {
        if self.joined.is_empty() {
            first.clone_into(&mut self.joined);
            first.clone_into(&mut self.latest);
        }
        // No tool has a longer one.
        if self.joined.len() < MAX_TOOL_NAME {
            self.joined.push_str(next);
        }
        if next.starts_with(&self.latest) {
            next.clone_into(&mut self.latest);
        } else if self.latest.len() < MAX_TOOL_NAME {
            self.latest.push_str(next);
        }
    }

    /// Returns the name that they make, if it is that of a tool. It counts even where the first fragment is a tool's name, too.
    pub fn tool_name(&self, is_offered: impl Fn(&str) -> bool) -> Option<&str> {
        let mut names = [&self.latest, &self.joined].into_iter();
        let found = names.find(|name| is_offered(name));
        found.map(String::as_str)
    }
}

/// A search for the end of JSON that grows. It reads each byte once.
#[derive(Debug, Default)]
pub struct JsonScan {
    /// Up to where it has been read.
    at: usize,
    /// Where it begins, after whitespace.
    start: Option<usize>,
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// Once the list, object or text has ended: whether it is JSON.
    is_valid: Option<bool>,
}

impl JsonScan {
    /// Whether the text is one value of JSON. It only grows between calls.
    pub fn is_complete(&mut self, json: &str) -> bool {
        let bytes = json.as_bytes();
        if self.start.is_none() {
            self.skip_white_space(bytes);
            self.start = (self.at < bytes.len()).then_some(self.at);
        }
        let Some(start) = self.start else {
            return false;
        };
        if !matches!(bytes[start], b'{' | b'[' | b'"') {
            let scalar = &bytes[start..];
            return scalar.len() < MAX_SCALAR && is_json(scalar);
        }
        while self.is_valid.is_none() && self.at < bytes.len() {
            self.read(bytes[self.at]);
            self.at += 1;
            if self.depth == 0 && !self.in_text {
                self.is_valid = Some(is_json(&bytes[start..self.at]));
            }
        }
        self.skip_white_space(bytes);
        self.is_valid == Some(true) && self.at == bytes.len()
    }

    fn skip_white_space(&mut self, bytes: &[u8]) {
        while !self.in_text && bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn read(&mut self, byte: u8) {
        if std::mem::take(&mut self.is_escaped) {
            return;
        }
        match byte {
            b'"' => self.in_text = !self.in_text,
            b'\\' => self.is_escaped = self.in_text,
            b'{' | b'[' if !self.in_text => self.depth += 1,
            b'}' | b']' if !self.in_text => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Whether arguments are an object without fields.
pub fn is_empty(arguments: &str) -> bool {
    let inside = arguments.trim().strip_prefix('{');
    inside.is_some_and(|rest| rest.trim_start() == "}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn objects_that_repeat_a_long_one_are_each_parsed_once() {
        let long = format!("{{\"a\":1{}}}", " ".repeat(1_000_000));
        let arguments = long.clone() + &"{\"a\":1}".repeat(100_000);
        assert_eq!(Assembly::default().without_repeats(arguments), long);
    }

    proptest! {
        #[test]
        fn a_scan_in_pieces_says_exactly_when_the_text_is_complete_json(pieces in prop::collection::vec("[\\[\\]{}\",: \\\\1a]{0,3}", 0..9)) {
            let (mut text, mut scan) = (String::new(), JsonScan::default());
            for piece in pieces {
                text.push_str(&piece);
                prop_assert_eq!(scan.is_complete(&text), is_json(text.as_bytes()), "{}", text);
            }
        }
    }
}
