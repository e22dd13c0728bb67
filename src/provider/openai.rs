//! OpenAI's chat completions, and what the many servers that speak like it do otherwise.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure;
use super::lenient::{LenientText, Malformed};
use super::reply::{Finish, Reply};
use super::request::{self, Habits, Prompt, TokenLimit};
use crate::message::Role;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    messages: Vec<Turn<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// A message as the API has it.
#[derive(Serialize)]
struct Turn<'a> {
    role: &'a str,
    content: Cow<'a, str>,
}

pub(super) fn body(prompt: &Prompt, habits: Habits) -> Vec<u8> {
    let system = (!prompt.system.is_empty()).then_some(Turn { role: "system", content: prompt.system.into() });
    let turns = prompt.messages.iter().map(|message| Turn {
        role: match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        },
        content: message.to_text(),
    });
    let limit = |field| prompt.max_tokens.filter(|_| habits.token_limit == field);
    request::to_json(&Body {
        model: prompt.model,
        stream: prompt.stream,
        stream_options: (prompt.stream && habits.stream_usage).then_some(StreamOptions { include_usage: true }),
        max_tokens: limit(TokenLimit::MaxTokens),
        max_completion_tokens: limit(TokenLimit::MaxCompletionTokens),
        messages: system.into_iter().chain(turns).collect(),
    })
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    /// Read by itself, so that a count in an odd form costs no answer.
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    /// In a stream; in a whole answer it is `message`.
    #[serde(borrow, default, alias = "message")]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

/// Reasoning comes in fields of its own, `reasoning_content` or `reasoning`, which are not read.
#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: LenientText<'a>,
    /// What the model says in place of an answer that it will not give.
    #[serde(borrow, default)]
    refusal: LenientText<'a>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
}

pub(super) fn read_event(data: &str, reply: &mut Reply) -> Result<(), Malformed> {
    if data.trim() == "[DONE]" {
        reply.end();
        return Ok(());
    }
    read(data, reply)
}

pub(super) fn read_whole(body: &str, reply: &mut Reply) -> Result<(), Malformed> {
    read(body, reply)?;
    reply.end();
    Ok(())
}

fn read(data: &str, reply: &mut Reply) -> Result<(), Malformed> {
    let chunk: Chunk = serde_json::from_str(data)?;
    if let Some(told) = chunk.error.and_then(|error| failure::from_value(&error_value(error)?)) {
        reply.fail(told);
        return Ok(());
    }
    if let Some(usage) = chunk.usage.and_then(|usage| serde_json::from_str::<Usage>(usage.get()).ok()) {
        reply.add_usage(usage.prompt_tokens, usage.completion_tokens);
    }
    // Only one answer was asked for.
    if let Some(choice) = chunk.choices.into_iter().flatten().next() {
        if let Some(delta) = choice.delta {
            reply.add_text(&delta.content.0);
            reply.add_text(&delta.refusal.0);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            reply.finish(match &*reason {
                "stop" => Finish::Stop,
                "length" => Finish::Length,
                "content_filter" => Finish::Blocked(reason.into_owned()),
                _ => Finish::Other(reason.into_owned()),
            });
        }
    }
    Ok(())
}

/// Some servers send an empty error where there is none.
fn error_value(error: &RawValue) -> Option<Value> {
    let value: Value = serde_json::from_str(error.get()).ok()?;
    match &value {
        Value::Object(fields) if fields.is_empty() => None,
        Value::String(message) if message.is_empty() => None,
        _ => Some(value),
    }
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

pub(super) fn read_models(body: &str) -> Result<Vec<String>, Malformed> {
    let models: Models = serde_json::from_str(body)?;
    Ok(models.data.into_iter().map(|model| model.id).collect())
}

#[cfg(test)]
mod tests {
    use super::super::api::Api;
    use super::super::api::tests::{prompt, replied};
    use super::super::table;
    use super::*;

    fn json(prompt: &Prompt, habits: Habits) -> Value {
        serde_json::from_slice(&body(prompt, habits)).expect("a body is JSON")
    }

    #[test]
    fn the_body_has_what_the_server_takes_and_no_more() {
        let mut prompt = prompt();
        assert_eq!(
            json(&prompt, table::USUAL),
            serde_json::json!({
                "model": "m", "stream": true, "stream_options": {"include_usage": true},
                "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "one"},
                             {"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}],
            })
        );
        prompt.max_tokens = Some(9);
        prompt.system = "";
        prompt.stream = false;
        let body = json(&prompt, table::USUAL);
        assert_eq!(body["max_tokens"], 9);
        assert_eq!(body["messages"][0]["role"], "user");
        assert!(body.get("stream_options").is_none());
        let body = json(&prompt, Habits { stream_usage: false, token_limit: TokenLimit::MaxCompletionTokens });
        assert_eq!(body["max_completion_tokens"], 9);
        assert!(body.get("max_tokens").is_none());
    }

    #[test]
    fn a_stream_becomes_a_reply() {
        let mut reply = replied(
            Api::OpenAi,
            &[
                r#"{"choices":[{"delta":{"role":"assistant"},"finish_reason":null}]}"#,
                r#"{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"hm"}}]}"#,
                r#"{"choices":[{"delta":{"reasoning":"hm","content":""}}]}"#,
                r#"{"choices":[{"delta":{"content":"Hello \"you\""},"finish_reason":null}],"usage":null}"#,
                r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"no"}]},{"type":"text","text":"!"}]}}]}"#,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
                r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
                "[DONE]",
            ],
        );
        assert_eq!(reply.take_text().as_str(), "Hello \"you\"!");
        assert_eq!(reply.finished(), Some(&Finish::Stop));
        assert_eq!(reply.usage().and_then(|usage| usage.output_tokens), Some(4));
        assert!(reply.ended());
    }

    #[test]
    fn an_error_inside_the_stream_is_a_failure() {
        for data in [r#"{"error":{"message":"boom","code":500}}"#, r#"{"error":"boom"}"#] {
            let reply = replied(Api::OpenAi, &[data]);
            assert_eq!(reply.failure().map(|failure| failure.message.as_str()), Some("boom"));
        }
    }

    #[test]
    fn an_empty_error_is_none() {
        for error in ["{}", "\"\"", "null"] {
            let data = format!(r#"{{"error":{error},"choices":[{{"delta":{{"content":"hi"}}}}]}}"#);
            let mut reply = replied(Api::OpenAi, &[&data]);
            assert_eq!(reply.failure(), None, "{data}");
            assert_eq!(reply.take_text(), "hi", "{data}");
        }
    }

    #[test]
    fn a_whole_answer_is_read() {
        let mut reply = Reply::default();
        let body = r#"{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
        read_whole(body, &mut reply).expect("a whole answer");
        assert_eq!((reply.take_text().as_str(), reply.finished()), ("hi", Some(&Finish::Length)));
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        assert!(read_event("{", &mut Reply::default()).is_err());
    }

    #[test]
    fn models_are_listed_in_order() {
        assert_eq!(
            read_models(r#"{"object":"list","data":[{"id":"b"},{"id":"a"}]}"#),
            Ok(vec!["b".into(), "a".into()])
        );
    }
}
