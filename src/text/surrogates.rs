//! Reads JSON in which surrogates are apart: `\ud83d\ude00` is one character, and half of it is no text (pure).

use std::borrow::Cow;

use memchr::memchr_iter;
use serde::de::DeserializeOwned;
use serde_json::Result;

/// How many bytes an escaped surrogate takes.
const ESCAPE: usize = "\\u0000".len();

/// The first low surrogate. A low surrogate is the second half of a character.
const LOW: u32 = 0xDC00;

/// What is before a first half in [`marked`] JSON. It is no character that a text may have.
const FIRST_MARK: char = '\u{FDD0}';

/// What is in the place of a second half in [`marked`] JSON.
const SECOND_MARK: char = '\u{FDD1}';

/// A surrogate without its other half.
struct LoneHalf<'a> {
    /// As it is in JSON.
    escape: &'a str,
    /// Whether it is a first half at the end of a string, whose second one another string may have.
    may_begin: bool,
    /// Whether it is a second half at the beginning of a string.
    may_end: bool,
}

/// The halves at the ends of a text, by its [`marked`] JSON.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TextHalves {
    /// Whether the text begins with a second half.
    pub begins: bool,
    /// The first half with which it ends, as it is in JSON.
    pub end: Option<String>,
}

/// Returns the value of JSON in which lone surrogates become U+FFFD.
pub fn lossy<T: DeserializeOwned>(json: &str) -> Result<T> {
    match serde_json::from_str(json) {
        Ok(value) => Ok(value),
        Err(_) => serde_json::from_str(&replaced(json)),
    }
}

/// Returns JSON in which lone surrogates are U+FFFD.
pub fn replaced(json: &str) -> Cow<'_, str> {
    let rewritten = with_lone(json, |_| "\\ufffd".to_owned());
    rewritten.map_or(json.into(), Cow::from)
}

/// Returns the same for JSON that comes in several values. `half` has the first half that was left out at the end of a string,
/// still escaped, until the next value with half a character.
pub fn joined<'a>(json: &'a str, half: &mut String) -> Cow<'a, str> {
    // Servers may send the same text in several strings.
    let mut waiting = None;
    let rewritten = with_lone(json, |lone| {
        let waiting = waiting.get_or_insert_with(|| std::mem::take(half));
        if lone.may_begin {
            lone.escape.clone_into(half);
            String::new()
        } else if lone.may_end && !waiting.is_empty() {
            format!("{waiting}{}", lone.escape)
        } else {
            "\\ufffd".to_owned()
        }
    });
    rewritten.map_or(json.into(), Cow::from)
}

/// Returns JSON in which halves at the ends of strings are marked, to find out which of the strings is a text, see [`TextHalves`];
/// `None` if there is no lone surrogate.
pub fn marked(json: &str) -> Option<String> {
    with_lone(json, |lone| {
        if lone.may_begin {
            format!("{FIRST_MARK}{}", &lone.escape["\\u".len()..])
        } else if lone.may_end {
            SECOND_MARK.to_string()
        } else {
            "\\ufffd".to_owned()
        }
    })
}

impl TextHalves {
    /// Finds the halves in a text that was read from [`marked`] JSON.
    pub fn of(text: &str) -> TextHalves {
        let digits = text.rsplit_once(FIRST_MARK).map(|(_, digits)| digits);
        let digits = digits.filter(|digits| digits.len() == ESCAPE - "\\u".len());
        TextHalves {
            begins: text.starts_with(SECOND_MARK),
            end: digits.map(|digits| format!("\\u{digits}")),
        }
    }
}

/// Returns JSON with something else in place of each lone surrogate; `None` if there is none.
fn with_lone(json: &str, mut other: impl FnMut(LoneHalf) -> String) -> Option<String> {
    let bytes = json.as_bytes();
    let begins_surrogate = |at: usize| matches!(bytes.get(at + 1..at + 3), Some(b"ud" | b"uD"));
    if !memchr_iter(b'\\', bytes).any(begins_surrogate) {
        return None;
    }
    let mut rewritten = String::with_capacity(json.len());
    let mut is_any_lone = false;
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        let unit = surrogate(rest, 0);
        let has_second = surrogate(rest, ESCAPE).is_some_and(|second| second >= LOW);
        if unit.is_some_and(|unit| unit < LOW) && has_second {
            length = 2 * ESCAPE;
        } else if let Some(unit) = unit {
            let (escape, after) = rest.split_at(ESCAPE);
            let is_at_begin = rewritten.ends_with('"') && !rewritten.ends_with("\\\"");
            rewritten += &other(LoneHalf {
                escape,
                may_begin: unit < LOW && after.starts_with('"'),
                may_end: unit >= LOW && is_at_begin,
            });
            is_any_lone = true;
            rest = after;
            continue;
        } else if first == '\\' {
            // An escaped backslash begins no other escape.
            let escaped = rest[1..].chars().next();
            length += escaped.map_or(0, char::len_utf8);
        }
        rewritten.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    is_any_lone.then_some(rewritten)
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
        let quoted = joined(r#""a\"\ude00""#, &mut r"\ud83d".to_owned());
        assert_eq!(quoted, r#""a\"\ufffd""#);
        let twice = joined(r#"["\ude00","\ude00b"]"#, &mut r"\ud83d".to_owned());
        assert_eq!(twice, r#"["\ud83d\ude00","\ud83d\ude00b"]"#);
        assert!(lossy::<String>("\"").is_err());
    }

    #[test]
    fn lone_surrogates_of_a_single_value_are_replaced() {
        for (string, text) in [
            (r#""a\ud83d""#, "a\u{FFFD}"),
            (r#""\ude00b""#, "\u{FFFD}b"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""a\ud83db\ud83d""#, "a\u{FFFD}b\u{FFFD}"),
        ] {
            assert_eq!(lossy::<String>(string).expect(string), text, "{string}");
            let replaced = replaced(string);
            assert_eq!(
                serde_json::from_str::<String>(&replaced).expect(string),
                text
            );
        }
    }

    #[test]
    fn the_halves_at_the_ends_of_a_text_are_found_by_their_marks() {
        for (string, begins, end) in [
            (r#""a\ud83d""#, false, Some(r"\ud83d")),
            (r#""\ude00b\uD83D""#, true, Some(r"\uD83D")),
            (r#""\ude00""#, true, None),
            (r#""a\ud83db""#, false, None),
            (r#""a\ude00""#, false, None),
        ] {
            let marked = marked(string).expect(string);
            let text: String = serde_json::from_str(&marked).expect(string);
            let end = end.map(str::to_owned);
            assert_eq!(
                TextHalves::of(&text),
                TextHalves { begins, end },
                "{string}"
            );
        }
        assert_eq!(marked(r#""\ud83d\ude00 \ufffd""#), None);
        assert_eq!(TextHalves::of("a"), TextHalves::default());
    }
}
