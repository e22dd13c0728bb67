//! OpenAI's chat completions, and what the many servers that speak like it do otherwise.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure;
use super::lenient::{self, Count, IfReadable, Malformed, Text};
use super::reply::{Reply, Usage};
use super::request::{self, Habits, Listed, Prompt, TokenLimit};
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
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
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
        reasoning_effort: prompt.effort,
        messages: system.into_iter().chain(turns).collect(),
    })
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    /// `error` in the errors of vLLM and Mistral.
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    /// In a stream.
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    /// In a whole answer. Perplexity sends both.
    #[serde(borrow, default)]
    message: Option<Delta<'a>>,
    #[serde(default)]
    finish_reason: IfReadable<String>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    /// Moonshot has the usage here.
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

/// Reasoning comes in fields of its own, `reasoning_content` or `reasoning`, which are not read.
#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Text<'a>,
    /// What the model says in place of an answer that it will not give.
    #[serde(borrow, default)]
    refusal: Text<'a>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
    #[serde(default)]
    prompt_tokens_details: IfReadable<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: IfReadable<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Count,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

impl Counts {
    fn usage(&self) -> Usage {
        let reasoning = self.completion_tokens_details.0.as_ref().and_then(|details| details.reasoning_tokens.0);
        let (input, output) = (self.prompt_tokens.0, self.completion_tokens.0);
        // xAI counts reasoning beside the answer, which only the total tells.
        let beside = reasoning.filter(|reasoning| {
            *reasoning > 0 && self.total_tokens.0 == input.zip(output).map(|(input, output)| input + output + reasoning)
        });
        Usage {
            input_tokens: input,
            output_tokens: output.map(|output| output + beside.unwrap_or(0)),
            cached: self.prompt_tokens_details.0.as_ref().and_then(|details| details.cached_tokens.0),
            reasoning,
        }
    }
}

pub(super) fn read_event(data: &str, reply: &mut Reply) -> Result<(), Malformed> {
    read(data, reply, |choice| choice.delta.or(choice.message))
}

pub(super) fn read_whole(body: &str, reply: &mut Reply) -> Result<(), Malformed> {
    read(body, reply, |choice| choice.message.or(choice.delta))?;
    reply.end();
    Ok(())
}

fn read(
    data: &str,
    reply: &mut Reply,
    said: impl for<'a> FnOnce(Choice<'a>) -> Option<Delta<'a>>,
) -> Result<(), Malformed> {
    let Some(chunk) = lenient::event::<Chunk>(data)? else { return Ok(()) };
    let is_error = chunk.object.is_some_and(|object| object.get() == "\"error\"");
    if (chunk.error.is_some() || is_error)
        && let Some(error) = failure::error_in(data)
    {
        reply.fail(error);
        return Ok(());
    }
    if let Some(counts) = lenient::if_readable::<Counts>(chunk.usage) {
        reply.add_usage(counts.usage());
    }
    // Only one answer was asked for.
    let Some(choice) = chunk.choices.into_iter().flatten().next() else { return Ok(()) };
    if let Some(counts) = lenient::if_readable::<Counts>(choice.usage) {
        reply.add_usage(counts.usage());
    }
    let error = lenient::if_readable::<Value>(choice.error).filter(failure::is_something);
    let finish = choice.finish_reason.0.clone();
    if let Some(delta) = said(choice) {
        reply.add(&delta.content.wtf8()?);
        let refusal = delta.refusal.wtf8()?;
        if !refusal.is_empty() {
            reply.refuse(&refusal);
        }
    }
    if let Some(error) = error.as_ref().and_then(failure::from_value) {
        reply.fail(error);
    } else if let Some(word) = finish.filter(|word| !word.is_empty()) {
        reply.finish(&word);
    }
    Ok(())
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
    #[serde(default)]
    created: Count,
    /// Anthropic's list is alike but for this.
    #[serde(default)]
    created_at: IfReadable<String>,
}

pub(super) fn read_models(body: &str) -> Result<Vec<Listed>, Malformed> {
    let models: Models = serde_json::from_str(body)?;
    // With leading zeroes numbers compare like text.
    let created = |model: &Model| model.created.0.map(|seconds| format!("{seconds:012}"));
    let listed = |model: Model| Listed { created: created(&model).or(model.created_at.0), id: model.id };
    Ok(models.data.into_iter().map(listed).collect())
}

#[cfg(test)]
mod tests {
    use super::super::api::Api;
    use super::super::api::tests::{prompt, replied};
    use super::super::finish::Finish;
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
        assert_eq!(reply.finished(), Some(&Finish::Complete));
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
        assert_eq!((reply.take_text().as_str(), reply.finished()), ("hi", Some(&Finish::Limit("length".into()))));
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        assert!(read_event("{", &mut Reply::default()).is_err());
    }

    #[test]
    fn models_are_listed_in_order() {
        let listed = read_models(r#"{"object":"list","data":[{"id":"b","created":7},{"id":"a","created":"odd"}]}"#);
        let model = |id: &str, created: Option<&str>| Listed { id: id.into(), created: created.map(str::to_owned) };
        assert_eq!(listed, Ok(vec![model("b", Some("000000000007")), model("a", None)]));
    }
}
