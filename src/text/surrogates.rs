//! Reads JSON in which servers have cut surrogates apart: `\ud83d\ude00` is one character, and half of it is no text (pure).

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Result;

/// How many bytes an escaped surrogate takes.
const ESCAPE: usize = "\\u0000".len();

/// The first low surrogate. A low surrogate is the second half of a character.
const LOW: u32 = 0xDC00;

/// The text of a JSON string, and separately a high surrogate at its end, still escaped. The next string may begin with the
/// low one. Other lone surrogates become U+FFFD.
pub fn text_of(string: &str) -> Result<(Cow<'_, str>, &str)> {
    let text = string
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    // Most pieces of an answer have no escapes, and need not be parsed.
    if let Some(text) = text
        && !text.contains('\\')
    {
        return Ok((text.into(), ""));
    }
    let end = string.len().saturating_sub(ESCAPE + "\"".len());
    if !ends_in_high(string, end) {
        let all: String = lossy(string)?;
        return Ok((all.into(), ""));
    }
    let before: String = lossy(&format!("{}\"", &string[..end]))?;
    let half = &string[end..end + ESCAPE];
    Ok((before.into(), half))
}

/// Whether an escaped high surrogate begins at `end` in a string.
fn ends_in_high(string: &str, end: usize) -> bool {
    let Some(unit) = surrogate(string, end) else {
        return false;
    };
    // After an escaped backslash, `u` is just a letter.
    let before = &string[..end];
    let backslashes = before.len() - before.trim_end_matches('\\').len();
    unit < LOW && backslashes.is_multiple_of(2)
}

/// The value of JSON in which lone surrogates become U+FFFD.
pub fn lossy<T: DeserializeOwned>(json: &str) -> Result<T> {
    match serde_json::from_str(json) {
        Ok(value) => Ok(value),
        Err(_) => serde_json::from_str(&without_lone(json)),
    }
}

/// JSON in which each lone surrogate is replaced by U+FFFD.
fn without_lone(json: &str) -> String {
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        if let Some(unit) = surrogate(rest, 0) {
            let has_second = surrogate(rest, ESCAPE).is_some_and(|second| second >= LOW);
            if unit >= LOW || !has_second {
                repaired.push_str("\\ufffd");
                rest = &rest[ESCAPE..];
                continue;
            }
            length = 2 * ESCAPE;
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

/// The surrogate that is escaped at this place.
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
    fn halves_are_joined_and_those_alone_replaced() {
        for (string, text, half) in [
            (r#""one \"two\" \u00e4""#, "one \"two\" ä", ""),
            (r#""a\ud83d""#, "a", r"\ud83d"),
            (r#""\ud83db""#, "\u{FFFD}b", ""),
            (r#""\ude00b""#, "\u{FFFD}b", ""),
            (r#""a\udc00""#, "a\u{FFFD}", ""),
            (r#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀", ""),
            (r#""ä\ud83d\ude00€""#, "ä😀€", ""),
            (r#""\\\ud83d""#, "\\", r"\ud83d"),
            (r#""\ude00\\ud83d""#, "\u{FFFD}\\ud83d", ""),
            (r#""""#, "", ""),
        ] {
            let found = text_of(string).expect(string);
            assert_eq!(found, (text.into(), half), "{string}");
            let whole = if half.is_empty() {
                text.to_owned()
            } else {
                format!("{text}\u{FFFD}")
            };
            assert_eq!(lossy::<String>(string).expect(string), whole, "{string}");
        }
        assert!(text_of("7").is_err() && text_of("\"").is_err() && lossy::<String>("").is_err());
    }
}
