//! Recognizes the API in whose form a reply has come (pure).

use serde::Deserialize;

use super::lenient::{Json, Text};

/// The fields by which the replies of the APIs differ.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReplyFields<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    object: Text<'a>,
    choices: Json<'a>,
    candidates: Json<'a>,
    output: Json<'a>,
    content: Json<'a>,
}

/// The types of Anthropic's events that no other API has.
const ANTHROPIC_EVENTS: &[&str] = &[
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
];

/// Returns the name of the dialect in which an event or a complete answer is, if its fields say so.
pub fn api_of(json: &str) -> Option<&'static str> {
    let fields: ReplyFields = serde_json::from_str(json).ok()?;
    let is_list = |field: Json| field.get().starts_with('[');
    let kind = &*fields.kind;
    if is_list(fields.choices) {
        Some("openai")
    } else if is_list(fields.candidates) {
        Some("gemini")
    } else if kind.starts_with("response.")
        || (&*fields.object == "response" && is_list(fields.output))
    {
        Some("responses")
    } else if ANTHROPIC_EVENTS.contains(&kind) || (kind == "message" && is_list(fields.content)) {
        Some("anthropic")
    } else {
        None
    }
}
