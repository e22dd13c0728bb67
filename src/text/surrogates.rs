//! Reads JSON in which servers have cut surrogates apart: `\ud83d\ude00` is one character, and half of it is no text (pure).

use std::borrow::Cow;

use memchr::memchr_iter;
use serde::de::DeserializeOwned;
use serde_json::Result;

/// How many bytes an escaped surrogate takes.
const ESCAPE: usize = "\\u0000".len();

/// The first low surrogate. A low surrogate is the second half of a character.
const LOW: u32 = 0xDC00;

/// Returns the value of JSON in which lone surrogates become U+FFFD, or nothing at the end of a string.
pub fn lossy<T: DeserializeOwned>(json: &str) -> Result<T> {
    match serde_json::from_str(json) {
        Ok(value) => Ok(value),
        Err(_) => serde_json::from_str(&repaired(json, &mut String::new())),
    }
}

/// Returns the same for JSON that comes in several values, as JSON. `half` has the high surrogate that was left out at the end of
/// a string, still escaped, until the next value with half a character.
pub fn joined<'a>(json: &'a str, half: &mut String) -> Cow<'a, str> {
    let bytes = json.as_bytes();
    let begins_surrogate = |at: usize| matches!(bytes.get(at + 1..at + 3), Some(b"ud" | b"uD"));
    if memchr_iter(b'\\', bytes).any(begins_surrogate) {
        repaired(json, half).into()
    } else {
        json.into()
    }
}

/// Returns JSON without lone surrogates. See [`joined`] for `half`.
fn repaired(json: &str, half: &mut String) -> String {
    // Servers may send the same text in several strings.
    let waiting = std::mem::take(half);
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        let unit = surrogate(rest, 0);
        let has_second = surrogate(rest, ESCAPE).is_some_and(|second| second >= LOW);
        if unit.is_some_and(|unit| unit < LOW) && has_second {
            length = 2 * ESCAPE;
        } else if let Some(unit) = unit {
            let (escape, after) = rest.split_at(ESCAPE);
            if unit < LOW && after.starts_with('"') {
                escape.clone_into(half);
            } else if unit >= LOW && repaired.ends_with('"') && !waiting.is_empty() {
                repaired += &waiting;
                repaired += escape;
            } else {
                repaired += "\\ufffd";
            }
            rest = after;
            continue;
        } else if first == '\\' {
            // An escaped backslash begins no other escape.
            let escaped = rest[1..].chars().next();
            length += escaped.map_or(0, char::len_utf8);
        }
        repaired.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    repaired
}

/// Returns the surrogate that is escaped at this place.
fn surrogate(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    let unit = u32::from_str_radix(digits, 16).ok()?;
    if (0xD800..0xE000).contains(&unit) {
        Some(unit)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogate_halves_are_joined_and_lone_ones_replaced() {
        // The half that waits before a string, the string, its text, and the half that waits then.
        for (before, string, text, half) in [
            ("", r#""one \"two\" \u00e4""#, "one \"two\" ä", ""),
            ("", r#""a\ud83d""#, "a", r"\ud83d"),
            (r"\ud83d", r#""\ude00b""#, "😀b", ""),
            ("", r#""\ud83db""#, "\u{FFFD}b", ""),
            ("", r#""\ude00b""#, "\u{FFFD}b", ""),
            ("", r#""a\udc00""#, "a\u{FFFD}", ""),
            ("", r#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀", ""),
            ("", r#""ä\ud83d\ude00€""#, "ä😀€", ""),
            ("", r#""\\\ud83d""#, "\\", r"\ud83d"),
            ("", r#""\ude00\\ud83d""#, "\u{FFFD}\\ud83d", ""),
            ("", r#""""#, "", ""),
        ] {
            let mut waiting = before.to_owned();
            let found = joined(string, &mut waiting);
            let found: String = serde_json::from_str(&found).expect(string);
            assert_eq!((&*found, &*waiting), (text, half), "{string}");
        }
        let twice = joined(r#"["\ude00","\ude00b"]"#, &mut r"\ud83d".to_owned());
        assert_eq!(twice, r#"["\ud83d\ude00","\ud83d\ude00b"]"#);
        assert!(lossy::<String>("\"").is_err());
    }
}
