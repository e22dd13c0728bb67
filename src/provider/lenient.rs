//! Reads JSON that servers write in more than one way: strict about an answer's text, lenient about the rest (pure).

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::ServerError;
use crate::text::surrogates;

/// Why data from a server is not a part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// It does not fit the dialect.
    Malformed(String),
    /// It is an error.
    Server(ServerError),
    /// It is a part of a call, but the reply is already longer than q keeps.
    TooLong,
}

impl From<serde_json::Error> for ReplyError {
    fn from(error: serde_json::Error) -> ReplyError {
        ReplyError::Malformed(error.to_string())
    }
}

impl From<ServerError> for ReplyError {
    fn from(error: ServerError) -> ReplyError {
        ReplyError::Server(error)
    }
}

/// A value that counts as missing if it has the wrong form.
#[derive(Debug, Default)]
pub struct IfReadable<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for IfReadable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Null is frequent. Read as an option, it does not cost the time that the message of an error takes.
        let json = Option::<&RawValue>::deserialize(deserializer)?;
        Ok(IfReadable(if_readable(json)))
    }
}

/// A count of tokens. Some servers write whole numbers as `9.0`; anything else counts as missing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Count(pub Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Option::<&RawValue>::deserialize(deserializer)?;
        let Some(json) = json else {
            return Ok(Count(None));
        };
        let number = json.get().parse().ok();
        Ok(Count(number.and_then(whole)))
    }
}

/// The count of tokens at a place in JSON.
pub fn count(json: &Value, place: &str) -> Option<u64> {
    json.pointer(place)?.as_f64().and_then(whole)
}

fn whole(number: f64) -> Option<u64> {
    let is_whole = number.fract() == 0.0 && (0.0..1e15).contains(&number);
    is_whole.then_some(number as u64)
}

/// Text of an answer: a string, or a list of strings and parts. A part has text unless it names another type. Any other
/// value has no text. It borrows from the event, because copying text takes time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Text<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?;
        Ok(Text(Some(json)))
    }
}

impl Text<'_> {
    /// The text as one JSON string.
    pub fn json(&self) -> Result<Cow<'_, str>, ReplyError> {
        let json = self.0.map_or("", RawValue::get);
        if json.starts_with('"') {
            return Ok(json.into());
        }
        if !json.starts_with('[') {
            return Ok("\"\"".into());
        }
        let parts: Vec<&RawValue> = serde_json::from_str(json)?;
        let mut joined = String::from("\"");
        for part in parts {
            let string = part.get();
            if string.starts_with('"') {
                joined.push_str(without_quotes(string));
            } else if let Some(part) = if_readable::<Part>(Some(part))
                && part.is_text()
            {
                joined.push_str(without_quotes(&part.text.json()?));
            }
        }
        joined.push('"');
        Ok(joined.into())
    }

    /// Whether it is a list that has reasoning.
    pub fn has_thinking(&self) -> bool {
        let json = self.0.map_or("", RawValue::get);
        json.starts_with('[') && json.contains("\"thinking\"")
    }

    /// The reasoning in it.
    pub fn thoughts(&self) -> Result<String, ReplyError> {
        let mut thoughts = String::new();
        for part in elements(&value(self.0)) {
            thoughts += &text_in(&part["thinking"])?;
        }
        Ok(thoughts)
    }

    /// The text itself, no longer JSON.
    pub fn text(&self) -> Result<String, ReplyError> {
        Ok(surrogates::lossy(&self.json()?)?)
    }
}

fn without_quotes(string: &str) -> &str {
    &string[1..string.len() - 1]
}

/// An element of a text that is a list.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Part<'a> {
    #[serde(rename = "type")]
    kind: IfReadable<String>,
    text: Text<'a>,
}

impl Part<'_> {
    fn is_text(&self) -> bool {
        matches!(self.kind.0.as_deref(), None | Some("text" | "output_text"))
    }
}

/// The arguments of a call: JSON as text, or JSON itself, which becomes compact text.
pub fn arguments(json: &Value) -> String {
    match json {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        json => json.to_string(),
    }
}

/// The text in a field of an object; empty if there is none.
pub fn text_field<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// The elements of a list; none if the value is not a list.
pub fn elements(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The text of an answer in a value.
pub fn text_in(json: &Value) -> Result<String, ReplyError> {
    serde_json::from_str::<Text>(&json.to_string())?.text()
}

/// Reads an event: a JSON object. Some servers send other things to keep a connection alive, which are no events.
pub fn event<'a, T>(data: &'a str) -> Result<Option<T>, ReplyError>
where
    T: Deserialize<'a>,
{
    let text = data.trim_start();
    if text.starts_with('{') {
        return Ok(Some(serde_json::from_str(data)?));
    }
    if text.starts_with('[') {
        // A list is no event, but one that is cut off is an error.
        let _: &RawValue = serde_json::from_str(data)?;
    }
    Ok(None)
}

/// The list in a field of a body, or the body itself, as Together sends it. Null is an empty list: Ollama sends it if it has
/// no models.
pub fn list_in(body: &str, field: &str) -> Result<Vec<Value>, ReplyError> {
    let body: Value = serde_json::from_str(body)?;
    let list = body.get(field).cloned().unwrap_or(body);
    let values: Option<Vec<Value>> = serde_json::from_value(list)?;
    Ok(values.unwrap_or_default())
}

/// The JSON of a field as a value; null if there is none.
pub fn value(json: Option<&RawValue>) -> Value {
    let Some(json) = json else {
        return Value::Null;
    };
    surrogates::lossy(json.get()).unwrap_or_default()
}

/// Reads the JSON of a field that must have the right form. `None` if the field is missing or null.
pub fn in_field<'a, T>(json: Option<&'a RawValue>) -> Result<Option<T>, ReplyError>
where
    T: Deserialize<'a>,
{
    let Some(json) = json else {
        return Ok(None);
    };
    Ok(serde_json::from_str(json.get())?)
}

/// Reads the JSON of a field that counts as missing if it has an odd form.
pub fn if_readable<'a, T>(json: Option<&'a RawValue>) -> Option<T>
where
    T: Deserialize<'a>,
{
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
            (r#""thinking""#, "thinking"),
        ] {
            let text_of: Text = serde_json::from_str(json).expect(json);
            assert_eq!(text_of.text().expect(json), text, "{json}");
            let found = text_of.has_thinking();
            assert_eq!(found, json.contains(r#"{"type":"thinking""#), "{json}");
        }
        let half: Text =
            serde_json::from_str(r#"["a", {"text": "\ud83d"}]"#).expect("half a character");
        assert_eq!(half.json().expect("text"), r#""a\ud83d""#);
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
            let value: Value = serde_json::from_str(json).expect(json);
            assert_eq!(arguments(&value), text, "{json}");
        }
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
            let found = event.map(|event| event.is_some()).map_err(|_| ());
            assert_eq!(found, read, "{data}");
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
            ("999999999999999", Some(999_999_999_999_999)),
            ("1e15", None),
        ] {
            let found = serde_json::from_str::<Count>(json).expect(json).0;
            assert_eq!(found, count, "{json}");
            let within: Value =
                serde_json::from_str(&format!("{{\"a\":{{\"b\":{json}}}}}")).expect(json);
            assert_eq!(super::count(&within, "/a/b"), count, "{json}");
        }
    }
}
