//! Anthropic's messages API.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::{self, ServerError};
use super::lenient::{LenientText, Malformed};
use super::reply::{Finish, Reply};
use super::request::{self, Prompt};
use crate::message::Role;

/// The version of the API, sent with every request.
pub(super) const VERSION: &str = "2023-06-01";

/// The API demands a limit; this one is sent where the user sets none.
const MAX_TOKENS: u64 = 16_384;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    system: &'a str,
    messages: Vec<Turn<'a>>,
}

/// A message as the API has it.
#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Cow<'a, str>,
}

pub(super) fn body(prompt: &Prompt) -> Vec<u8> {
    request::to_json(&Body {
        model: prompt.model,
        max_tokens: prompt.max_tokens.unwrap_or(MAX_TOKENS),
        stream: prompt.stream,
        system: prompt.system,
        messages: prompt
            .messages
            .iter()
            .map(|message| Turn { role: message.role, content: message.to_text() })
            .collect(),
    })
}

/// The fields of all events that matter here. Types that are not known are ignored, as the API's documents ask.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    content_block: Option<Block<'a>>,
    #[serde(borrow, default)]
    message: Option<Answer<'a>>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: LenientText<'a>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// A message as it comes back: whole, or its beginning in `message_start`.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    content: Vec<Block<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<Usage>,
}

/// The count of the input leaves out what was read from a cache or written into one.
#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

impl Usage {
    fn add_to(&self, reply: &mut Reply) {
        let cached = self.cache_read_input_tokens.unwrap_or(0) + self.cache_creation_input_tokens.unwrap_or(0);
        reply.add_usage(self.input_tokens.map(|tokens| tokens + cached), self.output_tokens);
    }
}

pub(super) fn read_event(data: &str, reply: &mut Reply) -> Result<(), Malformed> {
    let event: Event = serde_json::from_str(data)?;
    if let Some(usage) = event.usage {
        usage.add_to(reply);
    }
    match &*event.kind {
        "content_block_delta" => {
            if let Some(delta) = event.delta.filter(|delta| delta.kind.as_deref() == Some("text_delta")) {
                reply.add_text(&delta.text.0);
            }
        }
        "content_block_start" => {
            if let Some(block) = &event.content_block {
                add_block(block, reply);
            }
        }
        "message_start" => {
            if let Some(usage) = event.message.and_then(|message| message.usage) {
                usage.add_to(reply);
            }
        }
        "message_delta" => {
            if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                reply.finish(finish(&reason));
            }
        }
        "message_stop" => reply.end(),
        "error" => fail(data, reply)?,
        _ => {}
    }
    Ok(())
}

pub(super) fn read_whole(body: &str, reply: &mut Reply) -> Result<(), Malformed> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Cow<'a, str>,
    }
    if serde_json::from_str::<Kind>(body)?.kind == "error" {
        return fail(body, reply);
    }
    let message: Answer = serde_json::from_str(body)?;
    for block in &message.content {
        add_block(block, reply);
    }
    if let Some(usage) = message.usage {
        usage.add_to(reply);
    }
    if let Some(reason) = message.stop_reason {
        reply.finish(finish(&reason));
    }
    reply.end();
    Ok(())
}

fn add_block(block: &Block, reply: &mut Reply) {
    if block.kind == "text" {
        reply.add_text(block.text.as_deref().unwrap_or_default());
    }
}

fn fail(data: &str, reply: &mut Reply) -> Result<(), Malformed> {
    let value: Value = serde_json::from_str(data)?;
    reply.fail(failure::from_value(&value).unwrap_or_else(|| ServerError {
        message: data.to_owned(),
        too_long: false,
        code: String::new(),
    }));
    Ok(())
}

fn finish(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Blocked(reason.to_owned()),
        _ => Finish::Other(reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::api::Api;
    use super::super::api::tests::{prompt, replied};
    use super::*;

    #[test]
    fn the_body_has_a_limit_always() {
        let mut prompt = prompt();
        let json: Value = serde_json::from_slice(&body(&prompt)).expect("a body is JSON");
        assert_eq!(
            json,
            serde_json::json!({
                "model": "m", "max_tokens": 16_384, "stream": true, "system": "s",
                "messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
                             {"role": "user", "content": "three"}],
            })
        );
        prompt.system = "";
        prompt.max_tokens = Some(5);
        let json: Value = serde_json::from_slice(&body(&prompt)).expect("a body is JSON");
        assert_eq!(json["max_tokens"], 5);
        assert!(json.get("system").is_none());
    }

    #[test]
    fn a_stream_becomes_a_reply() {
        let mut reply = replied(
            Api::Anthropic,
            &[
                r#"{"type":"message_start","message":{"id":"x","content":[],"usage":{"input_tokens":4,"cache_read_input_tokens":3,"cache_creation_input_tokens":null,"output_tokens":1}}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"ping"}"#,
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi"}}"#,
                r#"{"type":"something_new","data":{"x":[1]}}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}"#,
                r#"{"type":"message_stop"}"#,
            ],
        );
        assert_eq!((reply.take_text().as_str(), reply.finished()), ("Hi", Some(&Finish::Length)));
        assert_eq!(reply.usage().map(|usage| (usage.input_tokens, usage.output_tokens)), Some((Some(7), Some(9))));
        assert!(reply.ended());
    }

    #[test]
    fn text_at_the_start_of_a_block_is_part_of_the_answer() {
        let mut reply = replied(
            Api::Anthropic,
            &[
                r#"{"type":"content_block_start","content_block":{"type":"text","text":"Hel"}}"#,
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"lo"}}"#,
            ],
        );
        assert_eq!(reply.take_text().as_str(), "Hello");
    }

    #[test]
    fn input_counts_with_what_was_read_from_and_written_to_a_cache() {
        for (usage, input) in [
            (r#"{"input_tokens":4,"cache_read_input_tokens":3,"cache_creation_input_tokens":20}"#, Some(27)),
            (r#"{"input_tokens":4,"cache_read_input_tokens":3}"#, Some(7)),
            (r#"{"input_tokens":4,"cache_creation_input_tokens":20}"#, Some(24)),
            (r#"{"input_tokens":4}"#, Some(4)),
            (r#"{"output_tokens":1}"#, None),
        ] {
            let data = format!(r#"{{"type":"message_delta","delta":{{}},"usage":{usage}}}"#);
            let counted = replied(Api::Anthropic, &[&data]).usage().and_then(|usage| usage.input_tokens);
            assert_eq!(counted, input, "{usage}");
        }
    }

    #[test]
    fn an_error_inside_the_stream_is_a_failure() {
        let reply = replied(
            Api::Anthropic,
            &[r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#],
        );
        assert_eq!(reply.failure().map(|failure| failure.message.as_str()), Some("Overloaded"));
    }

    #[test]
    fn a_whole_answer_is_read() {
        let mut reply = Reply::default();
        let body = r#"{"type":"message","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}"#;
        read_whole(body, &mut reply).expect("a whole answer");
        assert_eq!((reply.take_text().as_str(), reply.finished()), ("hi", Some(&Finish::Stop)));
    }
}
