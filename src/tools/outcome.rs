//! The outcome of a call: text and images for the model, within limits, or why there is no answer (pure).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::protocol::{self, RpcAnswer, RpcError};
use crate::error::Error;
use crate::message::{
    Attachment, MAX_ATTACHMENT, MAX_ATTACHMENTS, MAX_RESULT, MAX_RESULTS, ToolCall, ToolRun,
    shortened,
};
use crate::text::media::{PDF, media_type};
use crate::text::size::in_bytes;
use crate::text::{json, surrogates};

/// The most bytes of one complete result, and of those of a question together.
const MAX_COMPLETE: usize = 1_000_000;
const MAX_ALL_COMPLETE: usize = 4_000_000;

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
            Err(RpcError::Refused(words)) => return Outcome::failed(words),
            Err(RpcError::Unreadable(what)) => return unreadable(&what),
        };
        if !result.starts_with('{') {
            // Whether the tool has run, nobody knows.
            return Outcome::without_result(format!(
                "the server's result is not an object: {result}"
            ));
        }
        let read: CallResult<'_> = match serde_json::from_str(&result) {
            Ok(read) => read,
            Err(error) => return unreadable(&protocol::unreadable(&error)),
        };
        let kind = read.kind.map_or("null", RawValue::get);
        let is_complete = ["null", "\"complete\""].contains(&kind);
        if !is_complete {
            return Outcome::without_result(format!(
                "the tool did not finish: its resultType is {kind}"
            ));
        }
        let is_error = read.is_error.is_some_and(|error| error.get() == "true");
        Outcome {
            is_error,
            ..content_of(&read)
        }
    }
}

/// The room that is left for the results of a question.
pub struct Room {
    /// Bytes that the model may get.
    results: usize,
    /// Bytes of complete results.
    complete: usize,
    /// Bytes of images in base64.
    images: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            results: MAX_RESULTS,
            complete: MAX_ALL_COMPLETE,
            images: MAX_ATTACHMENTS,
        }
    }
}

impl Room {
    /// Returns the run of a call. `text` is all that the outcome says, without keys.
    pub fn run_of(&mut self, call: &ToolCall, outcome: Outcome, text: &str) -> ToolRun {
        let result = shortened(text, MAX_RESULT.min(self.results));
        self.results = self.results.saturating_sub(result.len());
        let complete = shortened(text, MAX_COMPLETE.min(self.complete));
        self.complete = self.complete.saturating_sub(complete.len());
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

/// Returns the outcome of a call whose answer cannot be read. Whether the tool has run, nobody knows.
fn unreadable(what: &str) -> Outcome {
    Outcome::without_result(format!("the tool server {what}"))
}

/// Returns the text and the images of a result. Structured content usually repeats the text, so it counts only where there is no
/// text.
fn content_of(result: &CallResult) -> Outcome {
    let pieces = pieces_of(result.content);
    let mut text = String::new();
    let mut has_text = false;
    let mut images = Vec::new();
    let mut large_images = 0;
    for (index, piece) in pieces.into_iter().enumerate() {
        let mut piece: Value = content(piece);
        if index > 0 {
            text.push('\n');
        }
        match image(&piece) {
            Some(FoundImage::Fits(image)) => images.push(image),
            Some(FoundImage::TooLarge) => large_images += 1,
            None => (),
        }
        if let Some(plain) = plain(&mut piece) {
            has_text |= !plain.is_empty();
            append(&mut text, plain);
        } else {
            text.push_str(&describe(&piece));
        }
    }
    if !has_text && let Some(structured) = result.structured {
        let mut lines = Vec::from_iter(text.split('\n').filter(|line| !line.is_empty()));
        let structured = json::compact(structured.get());
        lines.push(&structured);
        text = lines.join("\n");
    }
    Outcome {
        text,
        images,
        large_images,
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

/// Returns a piece of content; null if it cannot be parsed.
fn content(piece: &RawValue) -> Value {
    let is_small = json::check_weight(piece.get(), json::MAX_WEIGHT).is_ok();
    let piece = is_small.then(|| surrogates::lossy(piece.get()).ok());
    piece.flatten().unwrap_or_default()
}

/// Appends a text, without a copy if it is the first.
fn append(text: &mut String, more: String) {
    if text.is_empty() {
        *text = more;
    } else {
        text.push_str(&more);
    }
}

/// Returns the text of a piece of content, if it has one.
fn plain(content: &mut Value) -> Option<String> {
    if content.is_string() {
        // Some servers write it without the object around it.
        return content.as_str().map(str::to_owned);
    }
    let text = match content["type"].as_str()? {
        "text" => content.get_mut("text")?,
        "resource" => content.get_mut("resource")?.get_mut("text")?,
        _ => return None,
    };
    match text.take() {
        Value::String(text) => Some(text),
        _ => None,
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

/// Returns a note that says what a piece of content without a text is.
fn describe(content: &Value) -> String {
    let kind = content["type"].as_str().unwrap_or("content");
    let (media, data) = binary(content);
    let mut words = vec![kind];
    words.extend(content["uri"].as_str());
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
    use crate::text::table::rows;

    fn outcome(text: &str, is_error: bool) -> Outcome {
        Outcome {
            text: text.to_owned(),
            is_error,
            ..Outcome::default()
        }
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
            [resource a/b, 5 bytes] | {"content": [{"type": "resource", "resource": {"mimeType": "a/b", "blob": "aGVsbG8="}}]}
            [scent] | {"content": [{"type": "scent"}]}
            [content] | {"content": [7]}
            a | {"content": [{"type": "text", "text": "a"}], "structuredContent": {"a": 1}}
            {"a":[1,2]} | {"structuredContent": {"a": [1, 2]}}
            {"a":1} | {"content": [{"type": "text", "text": ""}], "structuredContent": {"a": 1}}
            [scent]␊{"a":1} | {"content": [{"type": "scent"}], "structuredContent": {"a": 1}}
            a | {"content": "a"}
            a␊b | {"content": ["a", "b"]}
            a | {"content": {"type": "text", "text": "a"}}
            - | {"content": null}
            - | {"content": []}
            - | {}
            a | {"content": [{"type": "text", "text": "a"}], "resultType": "complete"}
            a | {"content": [{"type": "text", "text": "a"}], "isError": false}
        "##,
        ) {
            let read = Outcome {
                images: Vec::new(),
                ..Outcome::read(Ok(result.to_owned()))
            };
            let expected = expected.replace('␊', "\n");
            assert_eq!(read, outcome(&expected, false), "{result}");
        }
    }

    #[test]
    fn a_failure_of_a_tool_is_reported_as_an_error() {
        let marked = r#"{"content": [{"type": "text", "text": "no such row"}], "isError": true}"#;
        for (name, answer, expected, no_result) in [
            ("marked", Ok(marked.to_owned()), "no such row", false),
            (
                "refused",
                Err(RpcError::Refused("Unknown tool (-32602)".to_owned())),
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
                Ok(r#"{"resultType": "input_required"}"#.to_owned()),
                "the tool did not finish: its resultType is \"input_required\"",
                true,
            ),
            (
                "no object",
                Ok("\"done\"".to_owned()),
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
            let images = Outcome::read(Ok(result)).images;
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
            let read = Outcome::read(Ok(format!(r#"{{"content":[{piece}]}}"#)));
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
        // The size of each result, what the model gets of it at most, and what is kept of it at most.
        for (size, sent, complete) in [
            (10, 10, 10),
            (MAX_RESULT + 1, MAX_RESULT, MAX_RESULT + 1),
            (MAX_COMPLETE + 1, MAX_RESULT, MAX_COMPLETE),
            (MAX_COMPLETE, MAX_RESULT, MAX_COMPLETE),
            (MAX_COMPLETE, MAX_RESULT, MAX_COMPLETE),
            (MAX_COMPLETE, MAX_RESULT, MAX_COMPLETE),
            (MAX_COMPLETE, MAX_RESULT, 0),
            (MAX_COMPLETE, MAX_RESULT, 0),
            (MAX_COMPLETE, MAX_RESULT, 0),
            (MAX_COMPLETE, 0, 0),
        ] {
            let text = "x".repeat(size);
            let outcome = Outcome {
                text: text.clone(),
                ..Outcome::default()
            };
            let run = room.run_of(&call, outcome, &text);
            let kept = run.complete.expect("what is kept");
            // The mark in the middle may take a few bytes where there is no room at all.
            assert!(
                run.result.len() <= sent.max(100),
                "{size}: {}",
                run.result.len()
            );
            assert!(kept.len() <= complete.max(100), "{size}: {}", kept.len());
            assert!(
                run.result.len() + 200 > sent,
                "{size}: {}",
                run.result.len()
            );
            assert_eq!(run.changed, kept.len() < size, "{size}");
        }
    }
}
