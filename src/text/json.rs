//! Parses JSON from elsewhere within bounds: values take up to a hundred times the memory of their text (pure).

use std::collections::HashSet;
use std::fmt::{self, Formatter};

use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use serde_json::Result;
use serde_json::error::Category;

use super::one_line::beginning;

/// The most memory, by an estimate, that the values of one JSON text may take.
pub const MAX_WEIGHT: usize = 12_000_000;

/// About how many bytes of memory a value takes, and what an array and an object take besides their elements.
pub const VALUE: usize = 110;
pub const ARRAY: usize = 300;
pub const OBJECT: usize = 500;

/// Texts of this length cannot weigh too much.
const SMALL: usize = 20_000;

/// Parses JSON whose values may take as much memory as [`MAX_WEIGHT`] says.
pub fn parse<T: DeserializeOwned>(json: &str) -> Result<T> {
    check_weight(json, MAX_WEIGHT)?;
    serde_json::from_str(json)
}

/// Parses JSON bytes within [`MAX_WEIGHT`].
pub fn parse_bytes<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    check_weight(&String::from_utf8_lossy(json), MAX_WEIGHT)?;
    serde_json::from_slice(json)
}

/// Says why JSON cannot be parsed.
pub fn parse_failure(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Eof if (line, column) == (1, 0) => "it is empty".to_owned(),
        Category::Eof => format!("it ends early, at line {line} column {column}"),
        _ => error.to_string(),
    }
}

/// Checks that the values of a text, which need not be JSON, do not take more memory than this.
pub fn check_weight(json: &str, limit: usize) -> Result<()> {
    if json.len() > SMALL && weight(json) > limit {
        return Err(too_many_values());
    }
    Ok(())
}

/// The most characters of a field's name in an error.
const MAX_NAME: usize = 100;

/// Checks that no object in JSON has a field twice. Programs differ in which of the two they read, so nobody can say what such
/// an object means.
pub fn check_names(json: &str) -> Result<()> {
    serde_json::from_str::<UniqueNames>(json).map(|_| ())
}

/// A value in which no object has a field twice.
struct UniqueNames;

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(value: D) -> std::result::Result<Self, D::Error> {
        value.deserialize_any(UniqueNames)
    }
}

impl<'de> Visitor<'de> for UniqueNames {
    type Value = UniqueNames;

    fn expecting(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> std::result::Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Self, A::Error> {
        while list.next_element::<UniqueNames>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> std::result::Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = object.next_key::<String>()? {
            if names.contains(&name) {
                let name = beginning(&name, MAX_NAME);
                return Err(Error::custom(format!("it has “{name}” twice")));
            }
            names.insert(name);
            object.next_value::<UniqueNames>()?;
        }
        Ok(self)
    }
}

/// The error for JSON whose values would take too much memory.
pub const TOO_MANY_VALUES: &str = "it has too many values";

/// Returns the error [`TOO_MANY_VALUES`].
pub fn too_many_values() -> serde_json::Error {
    Error::custom(TOO_MANY_VALUES)
}

/// Estimates how many bytes of memory the values of a text take besides its strings.
pub fn weight(json: &str) -> usize {
    let mut weight = VALUE;
    outside_strings(json, |byte| {
        weight += match byte {
            b',' | b':' => VALUE,
            b'[' => ARRAY,
            b'{' => OBJECT,
            _ => 0,
        };
    });
    weight
}

/// Estimates how many bytes of memory one JSON value takes besides its strings. A string is not looked through.
pub fn weight_of_value(json: &str) -> usize {
    if json.starts_with('"') {
        return VALUE;
    }
    weight(json)
}

/// Whether a text is a JSON object, of any size and depth.
pub fn is_object(json: &str) -> bool {
    let is_valid = serde_json::from_str::<&serde_json::value::RawValue>(json).is_ok();
    is_valid && json.trim_ascii_start().starts_with('{')
}

/// Returns JSON without whitespace between its values.
pub fn compact(json: &str) -> String {
    into_compact(json.to_owned())
}

/// Removes whitespace between values, in place, because a copy could have megabytes.
pub fn into_compact(json: String) -> String {
    let mut bytes = json.into_bytes();
    let mut kept = 0;
    let mut at = 0;
    while at < bytes.len() {
        let mut end = at + 1;
        if bytes[at] == b'"' {
            end = bytes.len().min(end_of_string(&bytes, at) + 1);
        }
        if !bytes[at].is_ascii_whitespace() {
            bytes.copy_within(at..end, kept);
            kept += end - at;
        }
        at = end;
    }
    bytes.truncate(kept);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Calls `take` with each byte that is in no string.
fn outside_strings(json: &str, mut take: impl FnMut(u8)) {
    let bytes = json.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            byte => take(byte),
        }
        at += 1;
    }
}

/// Returns the place of the quotation mark that ends the string which begins here, or the end of the text.
pub(super) fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_with_too_many_values_is_refused_and_a_long_text_is_not() {
        let many = |value: &str| format!("[{}0]", format!("{value},").repeat(200_000));
        for (json, is_parsed) in [
            (many("0"), false),
            (many("[]"), false),
            (many("{}"), false),
            (many(r#"{"a":"\\"}"#), false),
            (json!("[,".repeat(1_000_000)).to_string(), true),
            (json!({"a": "\"[,\\".repeat(1_000_000)}).to_string(), true),
            ("[0,0]".to_owned(), true),
        ] {
            let shown = &json[..20.min(json.len())];
            assert_eq!(parse::<Value>(&json).is_ok(), is_parsed, "{shown}");
        }
    }

    #[test]
    fn a_repeated_field_is_found_at_any_depth() {
        for (json, name) in [
            (r#"{"a":1,"a":1}"#, "a"),
            (r#"{"a":1,"\u0061":2}"#, "a"),
            (r#"[0,{"x":{"b":[{"c":1e999,"c":null}]}}]"#, "c"),
            (r#"{"a":"","b":{"a":1},"b":0}"#, "b"),
            (r#"{"":1,"":1}"#, ""),
        ] {
            let error = check_names(json).expect_err(json).to_string();
            assert!(
                error.starts_with(&format!("it has “{name}” twice at line 1")),
                "{error}"
            );
        }
        for json in [
            r#"{"a":{"a":[{"a":1},{"a":-2.5e400}]},"A":true,"a ":null,"b":"{\"a\":1,\"a\":1}"}"#,
            "[1,1,\"a\",\"a\"]",
            "18446744073709551616",
        ] {
            assert!(check_names(json).is_ok(), "{json}");
        }
    }

    #[test]
    fn an_object_of_any_depth_is_recognized() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
        for (json, expected) in [
            (" {\"a\": 1}\n", true),
            (&deep, true),
            ("[1]", false),
            ("{} {}", false),
            ("{no", false),
            ("null", false),
            ("", false),
        ] {
            assert_eq!(is_object(json), expected, "{}", &json[..20.min(json.len())]);
        }
    }

    #[test]
    fn whitespace_is_removed_from_json_except_within_strings() {
        for (json, expected) in [
            ("{ \"a b\" : [ 1,\n2 ] }\n", "{\"a b\":[1,2]}"),
            (r#" "\" \\" "#, r#""\" \\""#),
            ("\"ä ", "\"ä "),
            ("", ""),
        ] {
            assert_eq!(compact(json), expected);
        }
    }
    #[test]
    fn each_value_list_and_object_of_a_text_has_its_weight() {
        for (json, expected) in [
            ("1", VALUE),
            ("[]", VALUE + ARRAY),
            ("[1,2]", 2 * VALUE + ARRAY),
            ("{}", VALUE + OBJECT),
            (r#"{"a":1}"#, 2 * VALUE + OBJECT),
            (r#"[{"a":[]},0]"#, 3 * VALUE + 2 * ARRAY + OBJECT),
            (r#""[,:{""#, VALUE),
            (r#"["\"[",1]"#, 2 * VALUE + ARRAY),
        ] {
            assert_eq!(weight(json), expected, "{json}");
            assert_eq!(weight_of_value(json), expected, "{json}");
        }
        assert_eq!(weight_of_value(r#""a",1"#), VALUE);
    }
}
