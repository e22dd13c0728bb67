//! The outcome of a call: text and images for the model, within limits, or why there is no answer (pure).

use std::ops::Range;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::rpc::{self, RpcAnswer, RpcError, RpcResult};
use crate::error::Error;
use crate::message::{Attachment, MAX_ATTACHMENT, MAX_ATTACHMENTS, ResultRoom, ToolCall, ToolRun};
use crate::text::media::{PDF, media_type};
use crate::text::size::in_bytes;
use crate::text::{json, surrogates};

/// The most bytes of one complete result, and of those of a question together.
const MAX_COMPLETE: usize = 1_000_000;
const MAX_ALL_COMPLETE: usize = 4_000_000;

/// What the model reads of a call that failed if the server says no more.
const NO_REASON: &str = "the call failed, and the server gives no reason";

/// How many characters of base64 have the first bytes of an image.
const BEGINNING: usize = 16;

/// The result of a call: what the model gets, and what only the user learns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    pub text: String,
    /// What follows the text of a command: marks of q's own, and why it failed. The text may be cut within a key, so the
    /// two are searched for keys apart.
    pub remarks: String,
    /// The text mentions them, too.
    pub images: Vec<Attachment>,
    /// How many images are too large. The text mentions them, too.
    pub large_images: usize,
    pub is_error: bool,
    /// Whether the text is not all that the tool gave, or not as it gave it.
    pub is_changed: bool,
    /// Whether the tool gave no result, and the text says why.
    pub no_result: bool,
    /// Why the server cannot continue, with its last lines, for the user alone.
    pub server_failed: Option<Error>,
    pub took: Duration,
}

impl Outcome {
    /// Returns the text and the remarks.
    pub fn all(&self) -> String {
        format!("{}{}", self.text, self.remarks)
    }

    /// Returns a call that failed, for this reason.
    pub fn failed(reason: impl Into<String>) -> Outcome {
        Outcome {
            text: reason.into(),
            is_error: true,
            ..Outcome::default()
        }
    }

    /// Returns a call that has no result, for this reason.
    pub fn without_result(reason: impl Into<String>) -> Outcome {
        Outcome {
            no_result: true,
            ..Outcome::failed(reason)
        }
    }

    /// Returns the outcome that an answer to `tools/call` means.
    pub fn read(answer: RpcAnswer) -> Outcome {
        let result = match answer {
            Ok(result) => result,
            Err(RpcError::Refused(refusal)) => return Outcome::failed(refusal.words),
            Err(RpcError::Unreadable(what)) => return unreadable(&what),
        };
        let json = &result.json;
        if !json.starts_with('{') {
            // Whether the tool has run, nobody knows.
            return Outcome::without_result(format!(
                "the server's result is not an object: {json}"
            ));
        }
        let read: CallResult<'_> = match serde_json::from_str(json) {
            Ok(read) => read,
            Err(error) => return unreadable(&rpc::unreadable(&error)),
        };
        let kind = read.kind.map_or("null", RawValue::get);
        let is_complete = ["null", "\"complete\""].contains(&kind);
        if !is_complete {
            return Outcome::without_result(format!(
                "the tool did not finish: its resultType is {kind}"
            ));
        }
        let is_error = read.is_error.is_some_and(|error| error.get() == "true");
        let outcome = content_of(&read, &result);
        // Some APIs have no mark for a failure, so its text has to say it.
        if is_error && outcome.text.trim().is_empty() {
            return Outcome::without_result(NO_REASON);
        }
        Outcome {
            is_error,
            ..outcome
        }
    }
}

/// The room that is left for the results of a question.
pub struct Room {
    /// For what the model gets of them.
    results: ResultRoom,
    /// For what the file gets of them.
    complete: ResultRoom,
    /// Bytes of images in base64.
    images: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            results: ResultRoom::of_model(),
            complete: ResultRoom::new(MAX_COMPLETE, MAX_ALL_COMPLETE),
            images: MAX_ATTACHMENTS,
        }
    }
}

impl Room {
    /// Returns the run of a call. `text` is all that the outcome says, without keys.
    pub fn run_of(&mut self, call: &ToolCall, outcome: Outcome, text: &str) -> ToolRun {
        let result = self.results.take(text);
        let complete = self.complete.take(text);
        let is_whole = complete.strip_prefix(&outcome.text) == Some(&outcome.remarks);
        let changed = outcome.is_changed || !is_whole;
        ToolRun {
            images: outcome.images,
            changed,
            no_result: outcome.no_result,
            complete: Some(complete),
            ..ToolRun::new(call, result, outcome.is_error)
        }
    }

    /// Leaves out the images for which there is no room besides the earlier ones. Returns how many the model does not get, with
    /// those that are too large in any case.
    pub fn leave_out_images(&mut self, outcome: &mut Outcome) -> usize {
        let count = outcome.large_images + outcome.images.len();
        outcome.images.retain(|image| {
            let size = image.data.len();
            let fits = size <= self.images;
            if fits {
                self.images -= size;
            }
            fits
        });
        count - outcome.images.len()
    }
}

/// The result of a call. Its parts are parsed one after another, because their values may take a hundred times the memory
/// of their text.
#[derive(Deserialize, Default)]
#[serde(default)]
struct CallResult<'r> {
    #[serde(borrow)]
    content: Option<&'r RawValue>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'r RawValue>,
    #[serde(borrow, rename = "isError")]
    is_error: Option<&'r RawValue>,
    #[serde(borrow, rename = "resultType")]
    kind: Option<&'r RawValue>,
}

/// The fields that the result of a call has in the protocol. A result with others instead of content is what some servers give as
/// it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the names count")]
struct KnownFields {
    content: Option<IgnoredAny>,
    #[serde(rename = "structuredContent")]
    structured: Option<IgnoredAny>,
    #[serde(rename = "isError")]
    is_error: Option<IgnoredAny>,
    #[serde(rename = "resultType")]
    kind: Option<IgnoredAny>,
    #[serde(rename = "_meta")]
    meta: Option<IgnoredAny>,
}

/// Returns the outcome of a call whose answer cannot be read. Whether the tool has run, nobody knows.
fn unreadable(what: &str) -> Outcome {
    Outcome::without_result(format!("the tool server {what}"))
}

/// What a piece of content says to the model.
enum PieceText {
    Plain(String),
    /// A text that is not a string, as JSON.
    NoString(String),
    /// A piece that is neither text nor data, or that q does not know, as JSON.
    Unknown(String),
    /// A note of what the data are that the piece has.
    Note(String),
}

/// The content of a result, as far as its pieces have been read.
#[derive(Default)]
struct ReadContent {
    text: String,
    /// Where the texts of pieces are in it that are not empty.
    texts: Vec<Range<usize>>,
    /// Whether JSON of the server's is in the text.
    has_json: bool,
    /// Whether halves of characters were left out.
    is_changed: bool,
    images: Vec<Attachment>,
    large_images: usize,
}

impl ReadContent {
    /// Adds a piece on a line of its own.
    fn add(&mut self, json: &RawValue) {
        let (mut piece, is_cut) = content(json);
        self.is_changed |= is_cut;
        let image = image(&piece);
        let has_image = image.is_some();
        match image {
            Some(FoundImage::Fits(image)) => self.images.push(image),
            Some(FoundImage::TooLarge) => self.large_images += 1,
            None => {}
        }
        let said = text_of(&mut piece, json, has_image);
        self.has_json |= matches!(said, PieceText::NoString(_) | PieceText::Unknown(_));
        match said {
            PieceText::Plain(own) | PieceText::NoString(own) => {
                let begin = self.text.len();
                append(&mut self.text, own);
                if begin < self.text.len() {
                    self.texts.push(begin..self.text.len());
                }
            }
            PieceText::Unknown(words) | PieceText::Note(words) => append(&mut self.text, words),
        }
    }

    /// Adds structured content after what the pieces say, on a line of its own.
    fn add_structured(&mut self, structured: &RawValue) {
        let structured = json::compact(structured.get());
        if self.texts.is_empty() {
            let mut lines = Vec::from_iter(self.text.split('\n').filter(|line| !line.is_empty()));
            lines.push(&structured);
            self.text = lines.join("\n");
        } else {
            if !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text.push_str(&structured);
        }
        self.has_json = true;
    }

    /// Whether the texts of the pieces are structured content in JSON, as the protocol asks of servers. What has too many values
    /// to be compared counts as different.
    fn repeats(&self, structured: &RawValue) -> bool {
        let texts = self.texts.iter();
        let texts = Vec::from_iter(texts.map(|place| &self.text[place.clone()]));
        let Ok(value) = json::parse::<Value>(structured.get()) else {
            return false;
        };
        !texts.is_empty() && are_values(&texts, &value)
    }
}

/// Whether one of these texts is a value, or they are the items of a list, or the value is an object without fields. Servers put
/// what is no object into one, FastMCP under `result` and the protocol's own file server under `content`, and FastMCP makes a text
/// of each item.
fn are_values(texts: &[&str], structured: &Value) -> bool {
    let mut wrapped = None;
    if let Value::Object(fields) = structured {
        if fields.is_empty() {
            return true;
        }
        if fields.len() == 1 {
            wrapped = fields.values().next();
        }
    }
    for value in [Some(structured), wrapped].into_iter().flatten() {
        if texts.iter().any(|text| is_value(text, value)) {
            return true;
        }
        if let Value::Array(items) = value
            && items.len() == texts.len()
            && texts
                .iter()
                .zip(items)
                .all(|(text, item)| is_value(text, item))
        {
            return true;
        }
    }
    false
}

/// Whether a text is a value: its JSON, or the text that it is.
fn is_value(text: &str, value: &Value) -> bool {
    if let Value::String(own) = value
        && own.trim() == text.trim()
    {
        return true;
    }
    json::parse::<Value>(text).is_ok_and(|said| said == *value)
}

/// Returns the text and the images of a result. Structured content is added unless the text repeats it.
fn content_of(read: &CallResult, result: &RpcResult) -> Outcome {
    let mut found = ReadContent::default();
    for (index, json) in pieces_of(read.content).into_iter().enumerate() {
        if index > 0 {
            found.text.push('\n');
        }
        found.add(json);
    }
    if let Some(structured) = read.structured
        && !found.repeats(structured)
    {
        found.add_structured(structured);
    }
    let has_nothing = read.content.is_none() && read.structured.is_none();
    if has_nothing && serde_json::from_str::<KnownFields>(&result.json).is_err() {
        found.text = json::compact(&result.json);
        found.has_json = true;
    }
    let has_replaced = found.has_json || found.text.contains(char::REPLACEMENT_CHARACTER);
    Outcome {
        is_changed: found.is_changed || (result.is_repaired && has_replaced),
        text: found.text,
        images: found.images,
        large_images: found.large_images,
        ..Outcome::default()
    }
}

/// Returns the pieces of a result. Some servers send one of them without a list around it.
fn pieces_of(content: Option<&RawValue>) -> Vec<&RawValue> {
    match content {
        Some(list) if list.get().starts_with('[') => {
            serde_json::from_str(list.get()).unwrap_or_default()
        }
        Some(piece) => vec![piece],
        None => Vec::new(),
    }
}

/// Returns a piece of content; null if it cannot be parsed. The second value is whether halves of characters were left out.
fn content(raw: &RawValue) -> (Value, bool) {
    let json = raw.get();
    if json::check_weight(json, json::MAX_WEIGHT).is_err() {
        return (Value::Null, false);
    }
    if let Ok(piece) = serde_json::from_str(json) {
        return (piece, false);
    }
    match surrogates::lossy(json) {
        Ok(piece) => (piece, true),
        Err(_) => (Value::Null, false),
    }
}

/// Appends a text, without a copy if it is the first.
fn append(text: &mut String, more: String) {
    if text.is_empty() {
        *text = more;
    } else {
        text.push_str(&more);
    }
}

/// Returns what a piece of content says. `json` is all of it.
fn text_of(piece: &mut Value, json: &RawValue, has_image: bool) -> PieceText {
    if let Some(text) = own_text(piece) {
        return text;
    }
    let (media, data) = binary(piece);
    let is_described = match piece["type"].as_str().unwrap_or_default() {
        "resource_link" => true,
        "image" | "audio" | "resource" => data.is_some(),
        _ => has_image || (media.is_some() && data.is_some()),
    };
    if is_described {
        PieceText::Note(describe(piece))
    } else {
        PieceText::Unknown(json::compact(json.get()))
    }
}

/// Returns the text of a piece of content, if it has one.
fn own_text(content: &mut Value) -> Option<PieceText> {
    if let Value::String(text) = content {
        // Some servers write it without the object around it.
        return Some(PieceText::Plain(std::mem::take(text)));
    }
    let text = match content["type"].as_str()? {
        "text" => content.get_mut("text")?,
        "resource" => content.get_mut("resource")?.get_mut("text")?,
        _ => return None,
    };
    match text.take() {
        Value::String(text) => Some(PieceText::Plain(text)),
        Value::Null => None,
        other => Some(PieceText::NoString(other.to_string())),
    }
}

/// Returns the media type that a piece of content states, and its data in base64.
fn binary(content: &Value) -> (Option<&str>, Option<&str>) {
    let resource = &content["resource"];
    if resource.is_object() {
        return (resource["mimeType"].as_str(), resource["blob"].as_str());
    }
    (content["mimeType"].as_str(), content["data"].as_str())
}

/// An image in a result.
enum FoundImage {
    Fits(Attachment),
    TooLarge,
}

/// Returns an image that models can see. Some servers state a wrong type, which no API accepts, so only the data count.
fn image(content: &Value) -> Option<FoundImage> {
    let (_, data) = binary(content);
    let data: String = data?.split_ascii_whitespace().collect();
    let beginning = data.get(..BEGINNING.min(data.len() / 4 * 4))?;
    let media = media_type(&STANDARD.decode(beginning).ok()?)?;
    if media == PDF {
        return None;
    }
    if data.len() > MAX_ATTACHMENT {
        return Some(FoundImage::TooLarge);
    }
    Some(FoundImage::Fits(Attachment {
        media: media.to_owned(),
        data: data.into(),
        ..Attachment::default()
    }))
}

/// Returns a note that says what the data of a piece of content are, or where they are.
fn describe(content: &Value) -> String {
    let kind = content["type"].as_str().unwrap_or("content");
    let (media, data) = binary(content);
    let mut words = vec![kind];
    words.extend(
        content["uri"]
            .as_str()
            .or(content["resource"]["uri"].as_str()),
    );
    words.extend(content["name"].as_str());
    words.extend(media);
    let words = words.join(" ");
    let Some(data) = data else {
        return format!("[{words}]");
    };
    let digits = data.trim_end_matches('=').len();
    let size = in_bytes(digits * 3 / 4);
    format!("[{words}, {size}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MAX_RESULT;
    use crate::text::table::rows;

    fn outcome(text: &str, is_error: bool) -> Outcome {
        Outcome {
            text: text.to_owned(),
            is_error,
            ..Outcome::default()
        }
    }

    fn given(json: &str) -> RpcAnswer {
        Ok(RpcResult {
            json: json.to_owned(),
            is_repaired: false,
        })
    }

    #[test]
    fn a_result_of_a_tool_is_reported_as_text() {
        for [expected, result] in rows(
            r##"
            a | {"content": [{"type": "text", "text": "a"}]}
            a␊␊b | {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": ""}, {"type": "text", "text": "b"}]}
            inside | {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]}
            [resource_link file:///a a.txt] | {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a.txt"}]}
            [image image/png, 6 bytes] | {"content": [{"type": "image", "mimeType": "image/png", "data": "aGVsbG8h"}]}
            [audio audio/wav, 1 byte] | {"content": [{"type": "audio", "mimeType": "audio/wav", "data": "YQ=="}]}
            [resource file:///a a/b, 5 bytes] | {"content": [{"type": "resource", "resource": {"uri": "file:///a", "mimeType": "a/b", "blob": "aGVsbG8="}}]}
            [resource a/b, 5 bytes] | {"content": [{"type": "resource", "resource": {"mimeType": "a/b", "blob": "aGVsbG8="}}]}
            {"type":"scent","of":"rose"} | {"content": [{"type": "scent", "of": "rose"}]}
            {"type":"image","url":"a"} | {"content": [{"type": "image", "url": "a"}]}
            {"rows":[1,2],"data":"x"} | {"content": [{"rows": [1, 2], "data": "x"}]}
            {"text":"a"}␊b | {"content": [{"text": "a"}, {"type": "text", "text": "b"}]}
            7␊null␊[1] | {"content": [7, null, [1]]}
            [content a/b, 1 byte] | {"content": [{"mimeType": "a/b", "data": "YQ=="}]}
            {"rows":[1,2.50]} | {"content": [{"type": "text", "text": {"rows": [1, 2.50]}}]}
            42␊{"a":1} | {"content": [{"type": "text", "text": 42}], "structuredContent": {"a": 1}}
            {"a":1} | {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": {"a": 1}}}]}
            {"type":"text","text":null} | {"content": [{"type": "text", "text": null}]}
            {"type":"text"}␊{"a":1} | {"content": [{"type": "text"}], "structuredContent": {"a": 1}}
            {"rows":[1,2]} | {"rows": [1, 2]}
            {"content":null,"rows":[]} | {"content": null, "rows": []}
            {"rows":[1],"isError":false} | {"rows": [1], "isError": false}
            - | {"content": [], "rows": [1]}
            a␊{"a":1} | {"content": [{"type": "text", "text": "a"}], "structuredContent": {"a": 1}}
            2 rows␊{"rows":[1,2]} | {"content": [{"type": "text", "text": "2 rows\n"}], "structuredContent": {"rows": [1, 2]}}
            a␊b␊{"a":1} | {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "structuredContent": {"a": 1}}
            1 row␊[image, 6 bytes]␊{"a":1} | {"content": [{"type": "text", "text": "1 row"}, {"type": "image", "data": "aGVsbG8h"}], "structuredContent": {"a": 1}}
            {"a": 1} | {"content": [{"type": "text", "text": "{\"a\": 1}"}], "structuredContent": {"a": 1}}
            {"b": "\u00e9", "a": 1} | {"content": [{"type": "text", "text": "{\"b\": \"\\u00e9\", \"a\": 1}"}], "structuredContent": {"a": 1, "b": "é"}}
            here␊{"a":1} | {"content": [{"type": "text", "text": "here"}, {"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1}}
            {"a":1}␊{"a":2} | {"content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 2}}
            42 | {"content": [{"type": "text", "text": "42"}], "structuredContent": {"result": 42}}
            42 | {"content": [{"type": "text", "text": "42"}], "structuredContent": {"result": "42"}}
            a b␊ | {"content": [{"type": "text", "text": "a b\n"}], "structuredContent": {"result": "a b"}}
            a␊{"b":1} | {"content": ["a", "{\"b\":1}"], "structuredContent": {"result": ["a", {"b": 1}]}}
            a␊b␊{"result":["a","c"]} | {"content": ["a", "b"], "structuredContent": {"result": ["a", "c"]}}
            a␊{"result":["a","b"]} | {"content": ["a"], "structuredContent": {"result": ["a", "b"]}}
            a␊{"result":"a","at":1} | {"content": ["a"], "structuredContent": {"result": "a", "at": 1}}
            42 | {"content": ["42"], "structuredContent": {"count": 42}}
            a file␊ | {"content": ["a file\n"], "structuredContent": {"content": "a file\n"}}
            {"a":1}␊{"b":2} | {"content": ["{\"a\":1}", "{\"b\":2}"], "structuredContent": {"items": [{"a": 1}, {"b": 2}]}}
            a | {"content": ["a"], "structuredContent": {}}
            [1,2] | {"content": ["[1,2]"], "structuredContent": [1, 2]}
            a | {"content": ["a"], "structuredContent": null}
            {"a":[1,2]} | {"structuredContent": {"a": [1, 2]}}
            {"a":1} | {"content": [{"type": "text", "text": ""}], "structuredContent": {"a": 1}}
            [audio, 1 byte]␊{"a":1} | {"content": [{"type": "audio", "data": "YQ=="}], "structuredContent": {"a": 1}}
            a | {"content": "a"}
            a␊b | {"content": ["a", "b"]}
            a | {"content": {"type": "text", "text": "a"}}
            - | {"content": null}
            - | {"content": []}
            - | {}
            - | {"isError": false, "resultType": "complete", "_meta": {"a": 1}}
            a | {"content": [{"type": "text", "text": "a"}], "resultType": "complete"}
            a | {"content": [{"type": "text", "text": "a"}], "isError": false}
        "##,
        ) {
            let read = Outcome {
                images: Vec::new(),
                ..Outcome::read(given(result))
            };
            let expected = expected.replace('␊', "\n");
            assert_eq!(read, outcome(&expected, false), "{result}");
        }
    }

    #[test]
    fn a_text_in_which_something_was_replaced_is_a_changed_one() {
        // Whether something was replaced in the message, its result, the text, and whether this is changed.
        let table = r#"
            no | {"content": "a", "structuredContent": {"x": null}} | a␊{"x":null} | no
            yes | {"content": "a", "structuredContent": {"x": null}} | a␊{"x":null} | yes
            yes | {"content": "{\"x\":null}", "structuredContent": {"x": null}} | {"x":null} | no
            no | {"structuredContent": {"x": null}} | {"x":null} | no
            yes | {"structuredContent": {"x": null}} | {"x":null} | yes
            yes | {"content": [{"type": "text", "text": {"x": null}}]} | {"x":null} | yes
            yes | {"content": [{"x": null}]} | {"x":null} | yes
            yes | {"x": null} | {"x":null} | yes
            yes | {"content": "a�"} | a� | yes
            no | {"content": "a�"} | a� | no
            no | {"content": ["a\ud83d", "b"]} | a�␊b | yes
        "#;
        for [is_repaired, json, text, is_changed] in rows(table) {
            let read = Outcome::read(Ok(RpcResult {
                json: json.to_owned(),
                is_repaired: is_repaired == "yes",
            }));
            assert_eq!(read.text, text.replace('␊', "\n"), "{json}");
            assert_eq!(read.is_changed, is_changed == "yes", "{json}");
        }
    }

    #[test]
    fn a_failure_of_a_tool_is_reported_as_an_error() {
        let marked = r#"{"content": [{"type": "text", "text": "no such row"}], "isError": true}"#;
        for (name, answer, expected, no_result) in [
            ("marked", given(marked), "no such row", false),
            ("empty", given(r#"{"isError": true}"#), NO_REASON, true),
            (
                "no text",
                given(r#"{"content": [{"type": "text", "text": " "}], "isError": true}"#),
                NO_REASON,
                true,
            ),
            (
                "no pieces",
                given(r#"{"content": [], "isError": true}"#),
                NO_REASON,
                true,
            ),
            (
                "structured alone",
                given(r#"{"content": [], "structuredContent": {"a": 1}, "isError": true}"#),
                "{\"a\":1}",
                false,
            ),
            (
                "refused",
                Err(RpcError::Refused(rpc::RpcRefusal {
                    code: Some(-32602),
                    words: "Unknown tool (-32602)".to_owned(),
                })),
                "Unknown tool (-32602)",
                false,
            ),
            (
                "unreadable",
                Err(RpcError::Unreadable("sent nonsense".to_owned())),
                "the tool server sent nonsense",
                true,
            ),
            (
                "not complete",
                given(r#"{"resultType": "input_required"}"#),
                "the tool did not finish: its resultType is \"input_required\"",
                true,
            ),
            (
                "no object",
                given("\"done\""),
                "the server's result is not an object: \"done\"",
                true,
            ),
        ] {
            let expected = Outcome {
                no_result,
                ..outcome(expected, true)
            };
            assert_eq!(Outcome::read(answer), expected, "{name}");
        }
    }

    #[test]
    fn the_type_of_an_image_in_a_result_is_recognized_by_its_data() {
        for [content, media, data] in rows(
            r#"
            {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAA="} | image/png | iVBORw0KGgoAAAA=
            {"type": "image", "mimeType": "image/png", "data": "/9j/\n4AA="} | image/jpeg | /9j/4AA=
            {"type": "image", "mimeType": "image/gif", "data": "aGk="} | - | -
            {"type": "image", "data": "UklGRiQAAABXRUJQVlA4"} | image/webp | UklGRiQAAABXRUJQVlA4
            {"type": "resource", "resource": {"mimeType": "image/png", "blob": "iVBORw0KGgo="}} | image/png | iVBORw0KGgo=
            {"type": "image", "mimeType": "image/png"} | - | -
            {"type": "text", "text": "hi"} | - | -
        "#,
        ) {
            let result = format!(r#"{{"content": [{content}]}}"#);
            let images = Outcome::read(given(&result)).images;
            let image = images.first().cloned().unwrap_or_default();
            let found = (image.media.as_str(), image.data.as_str());
            assert_eq!(found, (media, data), "{content}");
        }
    }

    #[test]
    fn images_of_all_results_together_have_a_limit() {
        let mut room = Room::default();
        let image = |size| Attachment {
            data: "x".repeat(size).into(),
            ..Attachment::default()
        };
        let rest = MAX_ATTACHMENTS - MAX_ATTACHMENT;
        // Images that come together, how many of them are kept, and how many are left out.
        for (sizes, kept, left_out) in [
            (&[MAX_ATTACHMENT][..], 1, 0),
            (&[rest + 1], 0, 1),
            (&[rest + 1, rest, 1], 1, 2),
            (&[1, 1], 0, 2),
            (&[], 0, 0),
        ] {
            let mut outcome = Outcome {
                images: sizes.iter().map(|size| image(*size)).collect(),
                ..Outcome::default()
            };
            assert_eq!(room.leave_out_images(&mut outcome), left_out, "{sizes:?}");
            assert_eq!(outcome.images.len(), kept, "{sizes:?}");
        }
    }

    #[test]
    fn an_image_that_is_too_large_is_counted_and_named_in_the_text() {
        // Four characters of base64 are three bytes.
        for (size, images, large_images) in [(MAX_ATTACHMENT, 1, 0), (MAX_ATTACHMENT + 4, 0, 1)] {
            let data = format!("iVBORw0KGgoA{}", "A".repeat(size - 12));
            let piece = format!(r#"{{"type":"image","mimeType":"image/png","data":"{data}"}}"#);
            let read = Outcome::read(given(&format!(r#"{{"content":[{piece}]}}"#)));
            assert_eq!(
                (read.images.len(), read.large_images),
                (images, large_images)
            );
            assert_eq!(
                read.text,
                format!("[image image/png, {} bytes]", size / 4 * 3)
            );
            let mut room = Room::default();
            let mut read = read;
            assert_eq!(room.leave_out_images(&mut read), large_images);
        }
    }

    #[test]
    fn results_have_a_limit_each_and_all_together() {
        let call = ToolCall {
            id: "c".to_owned(),
            name: "db__a".to_owned(),
            arguments: "{}".to_owned(),
            ..ToolCall::default()
        };
        let mut room = Room::default();
        let (mut sent, mut kept) = (0, 0);
        for size in [
            &[
                10,
                MAX_RESULT,
                MAX_RESULT + 1,
                MAX_COMPLETE,
                MAX_COMPLETE + 1,
            ][..],
            &[MAX_COMPLETE; 100],
        ]
        .concat()
        {
            let text = "x".repeat(size);
            let outcome = Outcome {
                text: text.clone(),
                ..Outcome::default()
            };
            let run = room.run_of(&call, outcome, &text);
            let complete = run.complete.expect("what is kept");
            assert_eq!(run.changed, complete.len() < size, "{size}");
            for (part, limit, all) in [
                (&run.result, MAX_RESULT, &mut sent),
                (&complete, MAX_COMPLETE, &mut kept),
            ] {
                assert!(part.len() <= limit, "{size}: {}", part.len());
                *all += part.len();
                let is_marked = part.contains(" left out]\n");
                assert_eq!(is_marked, part.len() < size, "{size}: {}", part.len());
            }
        }
        // The marks of results that are left out take the rest.
        for (all, limit) in [(sent, 400_000), (kept, MAX_ALL_COMPLETE)] {
            assert!(all <= limit && all > limit - 10_000, "{all}");
        }
    }
}
