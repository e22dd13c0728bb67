//! Reading JSON that servers write in more than one way: strict about an answer's text, lenient about everything else.

use std::borrow::Cow;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// What a server sent does not fit its dialect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl From<serde_json::Error> for Malformed {
    fn from(error: serde_json::Error) -> Malformed {
        Malformed(error.to_string())
    }
}

/// A value that counts as missing if it has the wrong form.
#[derive(Debug)]
pub(super) struct IfReadable<T>(pub(super) Option<T>);

impl<T> Default for IfReadable<T> {
    fn default() -> Self {
        IfReadable(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for IfReadable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Null is frequent; read as an option, it makes no error, whose words would take long to write.
        Option::<&RawValue>::deserialize(deserializer).map(|json| IfReadable(if_readable(json)))
    }
}

/// A count of tokens. Some servers write whole numbers as `9.0`; anything else counts as missing.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Count(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = IfReadable::<f64>::deserialize(deserializer)?.0;
        let whole = number.filter(|number| *number >= 0.0 && number.fract() == 0.0 && *number < 1e15);
        Ok(Count(whole.map(|number| number as u64)))
    }
}

/// Text of an answer: a string, or a list of strings and parts. A part counts unless it names a type
/// that is not text. Any other value has no text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Text<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|json| Text(Some(json)))
    }
}

impl Text<'_> {
    /// The text in WTF-8: UTF-8 that keeps halves of a character that were sent alone (as three bytes each), because
    /// the other half may come with the next event.
    ///
    /// # Errors
    /// A string that cannot be decoded.
    pub(super) fn wtf8(&self) -> Result<Cow<'_, [u8]>, Malformed> {
        let Some(json) = self.0.map(RawValue::get) else { return Ok(Cow::Borrowed(b"")) };
        match json.as_bytes().first() {
            Some(b'"') => Ok(serde_json::from_str::<Wtf8>(json)?.0),
            Some(b'[') => {
                let mut bytes = Vec::new();
                for part in serde_json::from_str::<Vec<&RawValue>>(json)? {
                    if part.get().starts_with('"') {
                        bytes.extend_from_slice(&serde_json::from_str::<Wtf8>(part.get())?.0);
                    } else if let Some(part) = serde_json::from_str::<IfReadable<Part>>(part.get())?.0
                        && matches!(part.kind.0.as_deref(), None | Some("text" | "output_text"))
                    {
                        bytes.extend_from_slice(&part.text.wtf8()?);
                    }
                }
                Ok(Cow::Owned(bytes))
            }
            _ => Ok(Cow::Borrowed(b"")),
        }
    }
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(default, rename = "type")]
    kind: IfReadable<String>,
    #[serde(borrow, default)]
    text: Text<'a>,
}

struct Wtf8<'a>(Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for Wtf8<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Wtf8Visitor)
    }
}

struct Wtf8Visitor;

impl<'de> Visitor<'de> for Wtf8Visitor {
    type Value = Wtf8<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Wtf8(Cow::Borrowed(bytes)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Wtf8(Cow::Owned(bytes.to_owned())))
    }
}

/// Decodes WTF-8: two halves of a character become one, a lone half becomes U+FFFD. Half a character at the end is
/// handed back, because the other half may come next.
pub(super) fn decode(bytes: &[u8]) -> (String, &[u8]) {
    const HALF: usize = 3;
    let is_half =
        |bytes: &[u8], from: u8, to: u8| bytes.len() >= HALF && bytes[0] == 0xED && (from..=to).contains(&bytes[1]);
    let value = |bytes: &[u8]| (u32::from(bytes[1] & 0x0F) << 6) | u32::from(bytes[2] & 0x3F);
    let mut text = String::with_capacity(bytes.len());
    let mut plain = 0;
    let mut at = 0;
    while at < bytes.len() {
        if !is_half(&bytes[at..], 0xA0, 0xBF) {
            at += 1;
            continue;
        }
        text.push_str(&String::from_utf8_lossy(&bytes[plain..at]));
        let (first, rest) = bytes[at..].split_at(HALF);
        if is_half(first, 0xA0, 0xAF) && rest.is_empty() {
            return (text, first);
        }
        if is_half(first, 0xA0, 0xAF) && is_half(rest, 0xB0, 0xBF) {
            // UTF-16: ten bits of each half.
            let low = value(rest) & 0x3FF;
            text.extend(char::from_u32(0x1_0000 + ((value(first) & 0x3FF) << 10) + low));
            at += 2 * HALF;
        } else {
            text.push(char::REPLACEMENT_CHARACTER);
            at += HALF;
        }
        plain = at;
    }
    text.push_str(&String::from_utf8_lossy(&bytes[plain..]));
    (text, b"")
}

/// The arguments of a call: JSON as text, or JSON itself, which becomes compact text.
pub(super) fn arguments(json: Option<&RawValue>) -> String {
    let Some(json) = json.map(RawValue::get) else { return String::new() };
    if json.starts_with('"') {
        return serde_json::from_str::<Wtf8>(json).map(|text| decode(&text.0).0).unwrap_or_default();
    }
    match serde_json::from_str(json) {
        Ok(Value::Null) => String::new(),
        Ok(value) => value.to_string(),
        Err(_) => json.to_owned(),
    }
}

/// Reads an event: a JSON object. Anything else is no event; some servers send such things to keep a connection alive.
///
/// # Errors
/// It begins like an object or a list and is neither, or it does not fit the dialect.
pub(super) fn event<'a, T: Deserialize<'a>>(data: &'a str) -> Result<Option<T>, Malformed> {
    match data.trim_start().as_bytes().first() {
        Some(b'{') => Ok(Some(serde_json::from_str(data)?)),
        Some(b'[') => Ok(serde_json::from_str::<&RawValue>(data).map(|_| None)?),
        _ => Ok(None),
    }
}

/// Reads the JSON of a field whose form matters; `None` if the field is missing or null.
///
/// # Errors
/// It does not fit the dialect.
pub(super) fn in_field<'a, T: Deserialize<'a>>(json: Option<&'a RawValue>) -> Result<Option<T>, Malformed> {
    Ok(json.map_or(Ok(None), |json| serde_json::from_str(json.get()))?)
}

/// Reads the JSON of a field that counts as missing if it has an odd form.
pub(super) fn if_readable<'a, T: Deserialize<'a>>(json: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(json?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_as_a_string_as_null_or_in_parts() {
        for (json, text) in [
            (r#""one \"two\" \u00e4""#, "one \"two\" ä"),
            ("null", ""),
            ("7", ""),
            ("{}", ""),
            ("[]", ""),
            (
                r#"[{"type":"text","text":"a"},{"type":"thinking","text":"no"},"b",{"text":"c"},7,{"type":1,"text":"d"}]"#,
                "abcd",
            ),
            (r#"[{"type":"output_text","text":"a"}]"#, "a"),
            (r#""\ud83d\ude00""#, "😀"),
        ] {
            let text_of: Text = serde_json::from_str(json).expect(json);
            assert_eq!(String::from_utf8_lossy(&text_of.wtf8().expect(json)), text, "{json}");
        }
        let half: Text = serde_json::from_str(r#""a\ud83d""#).expect("half a character");
        assert_eq!(half.wtf8().expect("text").as_ref(), b"a\xED\xA0\xBD");
    }

    #[test]
    fn halves_of_characters_are_joined_and_those_alone_replaced() {
        let wtf8 = |json: &str| serde_json::from_str::<Text>(json).expect(json).wtf8().expect(json).into_owned();
        for (json, text, rest) in [
            (r#""a""#, "a", 0),
            (r#""a\ud83d""#, "a", 3),
            (r#""\ud83db""#, "\u{FFFD}b", 0),
            (r#""\ude00b""#, "\u{FFFD}b", 0),
            (r#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀", 0),
            (r#""ä\ud83d\ude00€""#, "ä😀€", 0),
        ] {
            let bytes = wtf8(json);
            let (decoded, left) = decode(&bytes);
            assert_eq!((decoded.as_str(), left.len()), (text, rest), "{json}");
        }
        let both = [wtf8(r#""\ud83d""#), wtf8(r#""\ude00!""#)].concat();
        assert_eq!(decode(&both).0, "😀!");
    }

    #[test]
    fn arguments_come_as_text_or_as_json() {
        for (json, text) in [
            (r#""{\"n\": 1}""#, "{\"n\": 1}"),
            (r#""{\"n\" ""#, "{\"n\" "),
            ("{ \"n\": [1, {}] }", "{\"n\":[1,{}]}"),
            ("[ 1 ]", "[1]"),
            ("null", ""),
            ("\"\"", ""),
        ] {
            let json: &RawValue = serde_json::from_str(json).expect(json);
            assert_eq!(arguments(Some(json)), text);
        }
        assert_eq!(arguments(None), "");
    }

    #[test]
    fn only_what_begins_like_an_event_must_be_one() {
        for (data, read) in [
            (r#"{"n":1}"#, Ok(true)),
            (" {} ", Ok(true)),
            ("[1]", Ok(false)),
            ("null", Ok(false)),
            ("ping", Ok(false)),
            (": keep-alive", Ok(false)),
            ("{", Err(())),
            ("[1", Err(())),
        ] {
            let event = event::<IfReadable<Value>>(data);
            assert_eq!(event.map(|event| event.is_some()).map_err(|_| ()), read, "{data}");
        }
    }

    #[test]
    fn counts_are_whole_numbers_in_whatever_form() {
        for (json, count) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("0", Some(0)),
            ("7.5", None),
            ("-1", None),
            ("\"7\"", None),
            ("null", None),
            ("{}", None),
            ("1e300", None),
        ] {
            assert_eq!(serde_json::from_str::<Count>(json).expect(json).0, count, "{json}");
        }
    }
}
