//! Reads JSON that servers write in more than one way: strict about an answer's text, lenient about the rest (pure).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::ServerError;
use crate::message::{Source, Usage};
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

/// What reading a part of a reply comes to.
pub type ReplyResult<T = ()> = Result<T, ReplyError>;

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

/// A value in an event, which is read when it is needed; a missing value is null. It borrows from the event, because copying
/// text takes time.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(transparent)]
pub struct Raw<'a>(#[serde(borrow)] Option<&'a RawValue>);

impl<'a> Raw<'a> {
    /// Whether it is not null.
    pub fn is_there(self) -> bool {
        self.0.is_some()
    }

    /// The value, or null if it has an odd form.
    pub fn value(self) -> Value {
        let json = self.0.map(RawValue::get);
        json.and_then(|json| surrogates::lossy(json).ok())
            .unwrap_or_default()
    }

    /// The value as this type, if it has its form.
    pub fn read<T: Deserialize<'a>>(self) -> Option<T> {
        serde_json::from_str(self.0?.get()).ok()
    }

    /// A word, which is empty if the value is no string.
    pub fn word(self) -> String {
        self.read().unwrap_or_default()
    }

    /// Text of an answer as one JSON string: from a string, or from a list of strings and parts. A part has text unless it
    /// names another type. Any other value has no text.
    pub fn json(self) -> ReplyResult<Cow<'a, str>> {
        let json = self.0.map_or("", RawValue::get);
        if json.starts_with('"') {
            return Ok(json.into());
        }
        if !json.starts_with('[') {
            return Ok("\"\"".into());
        }
        let parts: Vec<Raw> = self.read().unwrap_or_default();
        let mut joined = String::from("\"");
        for part in parts {
            joined.push_str(without_quotes(&part.json_of_part()?));
        }
        joined.push('"');
        Ok(joined.into())
    }

    /// The same of one part.
    pub fn json_of_part(self) -> ReplyResult<Cow<'a, str>> {
        match self.read::<Part>() {
            Some(part) if part.is_text() => part.text.json(),
            Some(_) => Ok("\"\"".into()),
            None => self.json(),
        }
    }

    /// The text itself, no longer JSON.
    pub fn text(self) -> ReplyResult<String> {
        Ok(surrogates::lossy(&self.json()?)?)
    }

    /// The reasoning in a list of parts, if it has any.
    pub fn thoughts(self) -> ReplyResult<Option<String>> {
        let json = self.0.map_or("", RawValue::get);
        if !json.starts_with('[') || !json.contains("\"thinking\"") {
            return Ok(None);
        }
        let mut thoughts = String::new();
        for part in elements(&self.value()) {
            thoughts += &text_in(&part["thinking"])?;
        }
        Ok(Some(thoughts))
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
    kind: Raw<'a>,
    text: Raw<'a>,
}

impl Part<'_> {
    fn is_text(&self) -> bool {
        matches!(self.kind.word().as_str(), "" | "text" | "output_text")
    }
}

/// The count at a place in JSON.
pub fn count(json: &Value, place: &str) -> Option<u64> {
    let count = json.pointer(place)?.as_u64()?;
    // Larger ones are no counts, and their sum might be too large.
    u32::try_from(count).ok().map(u64::from)
}

/// The tokens and the cost that an API reports, under whatever names.
pub fn usage(counts: &Value) -> Usage {
    let first = |places: &[&str]| places.iter().find_map(|place| count(counts, place));
    Usage {
        input_tokens: first(&["/input_tokens", "/prompt_tokens", "/promptTokenCount"]),
        output_tokens: first(&[
            "/output_tokens",
            "/completion_tokens",
            "/candidatesTokenCount",
        ]),
        cached_tokens: first(&[
            "/input_tokens_details/cached_tokens",
            "/prompt_tokens_details/cached_tokens",
            "/cache_read_input_tokens",
            "/cachedContentTokenCount",
            // DeepSeek's name for it.
            "/prompt_cache_hit_tokens",
        ]),
        reasoning_tokens: first(&[
            "/output_tokens_details/reasoning_tokens",
            "/completion_tokens_details/reasoning_tokens",
            "/output_tokens_details/thinking_tokens",
            "/thoughtsTokenCount",
        ]),
        // OpenRouter alone reports it.
        cost: counts["cost"].as_f64(),
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
pub fn text_in(json: &Value) -> ReplyResult<String> {
    Ok(surrogates::lossy(&json_in(json)?)?)
}

/// The same as a JSON string.
pub fn json_in(json: &Value) -> ReplyResult<String> {
    let json = json.to_string();
    let raw: Raw = serde_json::from_str(&json)?;
    Ok(raw.json()?.into_owned())
}

/// The pages of the web in a list, in which each element is an address or has one.
pub fn sources(list: &Value) -> Vec<Source> {
    let mut sources = Vec::new();
    for element in elements(list) {
        let cited = &element["url_citation"];
        let page = if cited.is_object() { cited } else { element };
        let addresses = [page, &page["url"], &page["uri"]];
        let url = addresses.iter().find_map(|address| address.as_str());
        sources.extend(Source::new(
            url.unwrap_or_default(),
            text_field(page, "title"),
        ));
    }
    sources
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
            let text_of: Raw = serde_json::from_str(json).expect(json);
            assert_eq!(text_of.text().expect(json), text, "{json}");
            assert_eq!(
                text_of.thoughts().expect(json).is_some(),
                json.contains(r#"{"type":"thinking""#),
                "{json}"
            );
        }
        let half: Raw =
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
    fn counts_are_whole_numbers() {
        for (json, count) in [
            ("7", Some(7)),
            ("0", Some(0)),
            ("7.5", None),
            ("-1", None),
            ("\"7\"", None),
            ("4294967295", Some(4_294_967_295)),
            ("4294967296", None),
        ] {
            let within = serde_json::from_str(&format!("{{\"a\":{{\"b\":{json}}}}}"));
            let found = super::count(&within.expect(json), "/a/b");
            assert_eq!(found, count, "{json}");
        }
    }
}
