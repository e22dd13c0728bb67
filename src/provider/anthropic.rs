//! Anthropic's messages API.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::failure::{self, ServerError};
use super::lenient::{self, Count, IfReadable, Malformed, Text};
use super::reply::{Reply, Usage};
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
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    effort: &'a str,
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
        output_config: prompt.effort.map(|effort| OutputConfig { effort }),
    })
}

/// The fields of all events that matter here. Types that are not known are ignored, as the API's documents ask.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(default, rename = "type")]
    kind: IfReadable<String>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(default)]
    usage: IfReadable<Counts>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default, rename = "type")]
    kind: IfReadable<String>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(default)]
    stop_reason: IfReadable<String>,
    #[serde(default)]
    stop_details: IfReadable<StopDetails>,
}

/// Why the model refused.
#[derive(Deserialize)]
struct StopDetails {
    #[serde(default)]
    category: IfReadable<String>,
    #[serde(default)]
    explanation: IfReadable<String>,
}

impl StopDetails {
    fn reason(self) -> String {
        self.explanation.0.or(self.category.0).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(default, rename = "type")]
    kind: IfReadable<String>,
    #[serde(borrow, default)]
    text: Text<'a>,
}

/// A message as it comes back: whole, or its beginning in `message_start`.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<Block<'a>>>,
    #[serde(default)]
    stop_reason: IfReadable<String>,
    #[serde(default)]
    stop_details: IfReadable<StopDetails>,
    #[serde(default)]
    usage: IfReadable<Counts>,
}

/// The count of the input leaves out what was read from a cache or written into one.
#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    cache_creation_input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
}

impl Counts {
    fn usage(&self) -> Usage {
        let cached = self.cache_read_input_tokens.0.unwrap_or(0) + self.cache_creation_input_tokens.0.unwrap_or(0);
        Usage {
            input_tokens: self.input_tokens.0.map(|tokens| tokens + cached),
            output_tokens: self.output_tokens.0,
            cached: self.cache_read_input_tokens.0,
            reasoning: None,
        }
    }
}

pub(super) fn read_event(data: &str, reply: &mut Reply) -> Result<(), Malformed> {
    let Some(event) = lenient::event::<Event>(data)? else { return Ok(()) };
    if let Some(counts) = event.usage.0 {
        reply.add_usage(counts.usage());
    }
    match event.kind.0.as_deref().unwrap_or_default() {
        "content_block_delta" => {
            let delta = lenient::in_field::<Delta>(event.delta)?;
            if let Some(delta) = delta.filter(|delta| delta.kind.0.as_deref() == Some("text_delta")) {
                reply.add(&delta.text.wtf8()?);
            }
        }
        "content_block_start" => {
            if let Some(block) = lenient::in_field(event.content_block)? {
                add_block(&block, reply)?;
            }
        }
        "message_start" => {
            let message = lenient::in_field::<Answer>(event.message).unwrap_or_default();
            if let Some(counts) = message.and_then(|message| message.usage.0) {
                reply.add_usage(counts.usage());
            }
        }
        "message_delta" => {
            if let Some(delta) = lenient::in_field::<Delta>(event.delta)? {
                finish(delta.stop_reason.0, delta.stop_details.0, reply);
            }
        }
        "message_stop" => reply.end(),
        "error" => fail(data, reply),
        _ => {}
    }
    Ok(())
}

pub(super) fn read_whole(body: &str, reply: &mut Reply) -> Result<(), Malformed> {
    if failure::error_in(body).is_some() {
        fail(body, reply);
        return Ok(());
    }
    let message: Answer = serde_json::from_str(body)?;
    for block in message.content.iter().flatten() {
        add_block(block, reply)?;
    }
    if let Some(counts) = message.usage.0 {
        reply.add_usage(counts.usage());
    }
    finish(message.stop_reason.0, message.stop_details.0, reply);
    reply.end();
    Ok(())
}

fn finish(word: Option<String>, details: Option<StopDetails>, reply: &mut Reply) {
    if let Some(word) = word {
        reply.finish(&word);
    }
    if let Some(details) = details {
        reply.explain(details.reason());
    }
}

fn add_block(block: &Block, reply: &mut Reply) -> Result<(), Malformed> {
    if block.kind.0.as_deref() == Some("text") {
        reply.add(&block.text.wtf8()?);
    }
    Ok(())
}

fn fail(data: &str, reply: &mut Reply) {
    reply.fail(failure::error_in(data).unwrap_or_else(|| ServerError::new(data)));
}

#[cfg(test)]
mod tests {
    use super::super::api::Api;
    use super::super::api::tests::{prompt, replied};
    use super::super::finish::Finish;
    use serde_json::Value;

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
        assert_eq!((reply.take_text().as_str(), reply.finished()), ("Hi", Some(&Finish::Limit("max_tokens".into()))));
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
        assert_eq!((reply.take_text().as_str(), reply.finished()), ("hi", Some(&Finish::Complete)));
    }
}
