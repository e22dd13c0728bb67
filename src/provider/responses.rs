//! OpenAI's Responses API, which other servers speak as well.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::failure::{self, ServerError};
use super::lenient::{self, Count, IfReadable, Malformed, Text};
use super::reply::{Reply, Usage};
use super::request::{self, Prompt};
use crate::message::Role;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
}

/// A message as the API has it.
#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: [Content<'a>; 1],
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: Cow<'a, str>,
}

pub(super) fn body(prompt: &Prompt) -> Vec<u8> {
    let turn = |role, text| {
        let kind = match role {
            Role::User => "input_text",
            Role::Assistant => "output_text",
        };
        Turn { role, content: [Content { kind, text }] }
    };
    request::to_json(&Body {
        model: prompt.model,
        stream: prompt.stream,
        store: prompt.refuses_storage.then_some(false),
        instructions: prompt.system,
        input: prompt.messages.iter().map(|message| turn(message.role, message.to_text())).collect(),
        max_output_tokens: prompt.max_tokens,
        reasoning: prompt.effort.map(|effort| Reasoning { effort }),
    })
}

/// The fields of all events that matter here; other types are ignored.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(default, rename = "type")]
    kind: IfReadable<String>,
    #[serde(borrow, default)]
    delta: Text<'a>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
}

/// A response: whole, or in the last event of a stream.
#[derive(Deserialize)]
struct Response<'a> {
    #[serde(default)]
    status: IfReadable<String>,
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    incomplete_details: IfReadable<Incomplete>,
    #[serde(default)]
    usage: IfReadable<Counts>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: IfReadable<String>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(default, rename = "type")]
    kind: IfReadable<String>,
    #[serde(borrow, default)]
    content: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(default, rename = "type")]
    kind: IfReadable<String>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    input_tokens_details: IfReadable<InputDetails>,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    output_tokens_details: IfReadable<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Count,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

impl Counts {
    fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens.0,
            output_tokens: self.output_tokens.0,
            cached: self.input_tokens_details.0.as_ref().and_then(|details| details.cached_tokens.0),
            reasoning: self.output_tokens_details.0.as_ref().and_then(|details| details.reasoning_tokens.0),
        }
    }
}

pub(super) fn read_event(data: &str, reply: &mut Reply) -> Result<(), Malformed> {
    let Some(event) = lenient::event::<Event>(data)? else { return Ok(()) };
    match event.kind.0.as_deref().unwrap_or_default() {
        "response.output_text.delta" => reply.add(&event.delta.wtf8()?),
        "response.refusal.delta" => reply.refuse(&event.delta.wtf8()?),
        "response.output_item.added" => {
            // Nobody offered tools.
            let item = lenient::in_field::<Item>(event.item).unwrap_or_default();
            if let Some(kind) = item.and_then(|item| item.kind.0).filter(|kind| kind.ends_with("_call")) {
                reply.finish(&kind);
            }
        }
        // xAI closes with another word for it.
        "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
            if let Some(response) = event.response {
                read_response(response.get(), reply)?;
            }
            reply.end();
        }
        "error" => reply.fail(failure::read(data).unwrap_or_else(|| ServerError::new(data))),
        _ => {}
    }
    Ok(())
}

pub(super) fn read_whole(body: &str, reply: &mut Reply) -> Result<(), Malformed> {
    read_response(body, reply)?;
    reply.end();
    Ok(())
}

fn read_response(json: &str, reply: &mut Reply) -> Result<(), Malformed> {
    let response: Response = serde_json::from_str(json)?;
    if let Some(counts) = response.usage.0 {
        reply.add_usage(counts.usage());
    }
    if let Some(error) = failure::error_in(json) {
        reply.fail(error);
        return Ok(());
    }
    // In a stream the text has come already.
    let is_new = reply.is_blank();
    for item in response.output.into_iter().flatten() {
        let item: Item = serde_json::from_str(item.get())?;
        match item.kind.0.as_deref() {
            Some("message") if is_new => {
                for part in item.content.iter().flatten() {
                    match part.kind.0.as_deref() {
                        Some("refusal") => reply.refuse(&part.refusal.wtf8()?),
                        Some("output_text") => reply.add(&part.text.wtf8()?),
                        _ => {}
                    }
                }
            }
            Some(call) if call.ends_with("_call") => reply.finish(call),
            _ => {}
        }
    }
    let reason = response.incomplete_details.0.and_then(|details| details.reason.0);
    reply.finish(&reason.or(response.status.0).unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::api::Api;
    use super::super::api::tests::{prompt, replied};
    use super::super::finish::Finish;
    use super::*;

    #[test]
    fn the_body_has_typed_content_and_asks_not_to_be_stored() {
        let mut prompt = prompt();
        let sent = |prompt: &Prompt| -> Value { serde_json::from_slice(&body(prompt)).expect("a body is JSON") };
        let content = |kind: &str, text: &str| json!([{"type": kind, "text": text}]);
        assert_eq!(
            sent(&prompt),
            json!({
                "model": "m", "stream": true, "instructions": "s",
                "input": [{"role": "user", "content": content("input_text", "one")},
                          {"role": "assistant", "content": content("output_text", "two")},
                          {"role": "user", "content": content("input_text", "three")}],
            })
        );
        (prompt.system, prompt.max_tokens, prompt.effort, prompt.refuses_storage) = ("", Some(9), Some("low"), true);
        let body = sent(&prompt);
        assert_eq!((&body["max_output_tokens"], &body["reasoning"]["effort"]), (&json!(9), &json!("low")));
        assert_eq!((&body["store"], body.get("instructions")), (&json!(false), None));
    }

    #[test]
    fn what_a_stream_has_said_is_not_said_again_at_its_end() {
        let end = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}"#;
        for events in [&[r#"{"type":"response.output_text.delta","delta":"Hi"}"#, end][..], &[end]] {
            let mut reply = replied(Api::Responses, events);
            assert_eq!((reply.take_text().as_str(), reply.finished()), ("Hi", Some(&Finish::Complete)), "{events:?}");
            assert!(reply.ended());
        }
    }
}
