//! Surrogates in JSON: two escapes such as `\ud83d\ude00` are one character. Servers cut text between the two, and a lone
//! surrogate is not text (pure).

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Result;

const ESCAPE: usize = "\\u0000".len();

/// The first of the low surrogates, which come second.
const LOW: u32 = 0xDC00;

/// The text of a JSON string. A high surrogate at its end is handed back as JSON has it, because the low one may come next;
/// other lone surrogates become U+FFFD.
///
/// # Errors
/// It is not a JSON string.
pub(crate) fn text_of(string: &str) -> Result<(Cow<'_, str>, &str)> {
    // Most pieces of an answer have no escapes, and need not be parsed.
    let between = string
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    if let Some(text) = between.filter(|text| !text.contains('\\')) {
        return Ok((text.into(), ""));
    }
    let end = string.len().saturating_sub(ESCAPE + "\"".len());
    // An escaped backslash begins no other escape.
    let backslashes = string
        .bytes()
        .rev()
        .skip(string.len() - end - 1)
        .take_while(|byte| *byte == b'\\')
        .count();
    let is_high = backslashes % 2 == 1 && surrogate(string, end).is_some_and(|unit| unit < LOW);
    match is_high {
        true => Ok((
            lossy::<String>(&format!("{}\"", &string[..end]))?.into(),
            &string[end..end + ESCAPE],
        )),
        false => Ok((lossy::<String>(string)?.into(), "")),
    }
}

/// The value of JSON in which lone surrogates become U+FFFD.
///
/// # Errors
/// It is not JSON, or it has another type.
pub(crate) fn lossy<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).or_else(|_| serde_json::from_str(&without_lone(json)))
}

/// JSON in which each lone surrogate is replaced by U+FFFD.
fn without_lone(json: &str) -> String {
    let (mut repaired, mut at) = (String::with_capacity(json.len()), 0);
    while let Some(rest) = json.get(at..).filter(|rest| !rest.is_empty()) {
        let length = match (surrogate(json, at), surrogate(json, at + ESCAPE)) {
            (Some(first), Some(second)) if first < LOW && second >= LOW => 2 * ESCAPE,
            (Some(_), _) => {
                repaired.push_str("\\ufffd");
                at += ESCAPE;
                continue;
            }
            // An escaped backslash begins no other escape.
            _ if rest.starts_with('\\') => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        repaired.push_str(&json[at..at + length]);
        at += length;
    }
    repaired
}

/// The surrogate that is escaped at this place.
fn surrogate(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16)
        .ok()
        .filter(|unit| (0xD800..0xE000).contains(unit))
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
            (r#""a\ude00""#, "a\u{FFFD}", ""),
            (r#""a\udc00""#, "a\u{FFFD}", ""),
            (r#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀", ""),
            (r#""\ud83d\ud83d""#, "\u{FFFD}", r"\ud83d"),
            (r#""ä\ud83d\ude00€""#, "ä😀€", ""),
            (r#""\\\ud83d""#, "\\", r"\ud83d"),
            (r#""\ude00\\ud83d""#, "\u{FFFD}\\ud83d", ""),
            (r#""\ud83d""#, "", r"\ud83d"),
            (r#""""#, "", ""),
        ] {
            assert_eq!(
                text_of(string).expect(string),
                (text.into(), half),
                "{string}"
            );
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
