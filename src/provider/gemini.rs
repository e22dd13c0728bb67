//! Google's Gemini API, generateContent.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure;
use super::lenient::Malformed;
use super::reply::{Finish, Reply};
use super::request::{self, Prompt};
use crate::message::Role;

/// What may stand in a path as it is (RFC 3986, unreserved).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Reasons to stop that mean: the answer, or its rest, was held back.
const BLOCKED: &[&str] =
    &["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: [TextPart<'a>; 1],
}

#[derive(Serialize)]
struct TextPart<'a> {
    text: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: u64,
}

pub(super) fn path(prompt: &Prompt) -> String {
    let model = prompt.model.strip_prefix("models/").unwrap_or(prompt.model);
    let model = utf8_percent_encode(model, UNRESERVED);
    match prompt.stream {
        true => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        false => format!("/v1beta/models/{model}:generateContent"),
    }
}

pub(super) fn body(prompt: &Prompt) -> Vec<u8> {
    request::to_json(&Body {
        contents: prompt
            .messages
            .iter()
            .map(|message| Content {
                role: Some(match message.role {
                    Role::User => "user",
                    Role::Assistant => "model",
                }),
                parts: [TextPart { text: message.to_text() }],
            })
            .collect(),
        system_instruction: (!prompt.system.is_empty())
            .then_some(Content { role: None, parts: [TextPart { text: prompt.system.into() }] }),
        generation_config: prompt.max_tokens.map(|max_output_tokens| GenerationConfig { max_output_tokens }),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
    #[serde(default)]
    usage_metadata: Option<Usage>,
    #[serde(borrow, default)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Parts<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Parts<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    /// True where the text is reasoning.
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: Option<Cow<'a, str>>,
}

pub(super) fn read_event(data: &str, reply: &mut Reply) -> Result<(), Malformed> {
    let event: Event = serde_json::from_str(data)?;
    if event.error.is_some() {
        let value: Value = serde_json::from_str(data)?;
        if let Some(failure) = failure::from_value(&value) {
            reply.fail(failure);
        }
        return Ok(());
    }
    if let Some(usage) = event.usage_metadata {
        reply.add_usage(usage.prompt_token_count, usage.candidates_token_count);
    }
    if let Some(reason) = event.prompt_feedback.and_then(|feedback| feedback.block_reason) {
        reply.finish(Finish::Blocked(reason.into_owned()));
    }
    if let Some(candidate) = event.candidates.into_iter().next() {
        for part in candidate.content.into_iter().flat_map(|content| content.parts.unwrap_or_default()) {
            if !part.thought {
                reply.add_text(part.text.as_deref().unwrap_or_default());
            }
        }
        if let Some(reason) = candidate.finish_reason {
            reply.finish(match &*reason {
                "STOP" => Finish::Stop,
                "MAX_TOKENS" => Finish::Length,
                blocked if BLOCKED.contains(&blocked) => Finish::Blocked(reason.into_owned()),
                _ => Finish::Other(reason.into_owned()),
            });
        }
    }
    Ok(())
}

pub(super) fn read_whole(body: &str, reply: &mut Reply) -> Result<(), Malformed> {
    read_event(body, reply)?;
    reply.end();
    Ok(())
}

#[derive(Deserialize)]
struct Models {
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    name: String,
}

pub(super) fn read_models(body: &str) -> Result<Vec<String>, Malformed> {
    let models: Models = serde_json::from_str(body)?;
    Ok(models
        .models
        .into_iter()
        .map(|model| model.name.strip_prefix("models/").map(str::to_owned).unwrap_or(model.name))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::super::api::Api;
    use super::super::api::tests::{prompt, replied};
    use super::*;

    #[test]
    fn the_path_names_the_model_and_cannot_be_left_by_it() {
        let mut prompt = prompt();
        assert_eq!(path(&prompt), "/v1beta/models/m:streamGenerateContent?alt=sse");
        prompt.stream = false;
        prompt.model = "models/gemini-2.5-flash";
        assert_eq!(path(&prompt), "/v1beta/models/gemini-2.5-flash:generateContent");
        prompt.model = "a/../b?c d";
        assert_eq!(path(&prompt), "/v1beta/models/a%2F..%2Fb%3Fc%20d:generateContent");
    }

    #[test]
    fn the_body_says_model_where_others_say_assistant() {
        let mut prompt = prompt();
        prompt.max_tokens = Some(5);
        let json: Value = serde_json::from_slice(&body(&prompt)).expect("a body is JSON");
        assert_eq!(
            json,
            serde_json::json!({
                "contents": [{"role": "user", "parts": [{"text": "one"}]}, {"role": "model", "parts": [{"text": "two"}]},
                             {"role": "user", "parts": [{"text": "three"}]}],
                "systemInstruction": {"parts": [{"text": "s"}]},
                "generationConfig": {"maxOutputTokens": 5},
            })
        );
    }

    #[test]
    fn a_stream_becomes_a_reply() {
        let mut reply = replied(
            Api::Gemini,
            &[
                r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true}]}}]}"#,
                r#"{"candidates":[{"content":{"parts":[{"text":"Hi"},{"text":"!"}]}}],"usageMetadata":{"promptTokenCount":3}}"#,
                r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}"#,
            ],
        );
        assert_eq!((reply.take_text().as_str(), reply.finished()), ("Hi!", Some(&Finish::Stop)));
        assert_eq!(reply.usage().and_then(|usage| usage.output_tokens), Some(2));
    }

    #[test]
    fn blocked_prompts_and_answers_are_told_apart_from_ends() {
        for data in [
            r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#,
            r#"{"candidates":[{"content":{"parts":[]},"finishReason":"SAFETY"}]}"#,
        ] {
            assert_eq!(replied(Api::Gemini, &[data]).finished(), Some(&Finish::Blocked("SAFETY".into())));
        }
    }

    #[test]
    fn each_reason_to_stop_is_read_for_what_it_means() {
        for (reason, finish) in [
            ("STOP", Finish::Stop),
            ("MAX_TOKENS", Finish::Length),
            ("RECITATION", Finish::Blocked("RECITATION".into())),
            ("PROHIBITED_CONTENT", Finish::Blocked("PROHIBITED_CONTENT".into())),
            ("SOMETHING_NEW", Finish::Other("SOMETHING_NEW".into())),
        ] {
            let data = format!(r#"{{"candidates":[{{"finishReason":"{reason}"}}]}}"#);
            assert_eq!(replied(Api::Gemini, &[&data]).finished(), Some(&finish));
        }
    }

    #[test]
    fn models_lose_their_prefix() {
        assert_eq!(read_models(r#"{"models":[{"name":"models/a"},{"name":"b"}]}"#), Ok(vec!["a".into(), "b".into()]));
    }
}
