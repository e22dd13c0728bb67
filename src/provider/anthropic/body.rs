//! Makes the bodies of requests for Anthropic's Messages API (pure).

use serde_json::{Value, json};

use crate::message::{Attachment, Message, Step, Tool, ToolRun};
use crate::provider::attachment;
use crate::provider::lenient::text_field;
use crate::provider::request::{self, AnswerForm, OptionalField, Prompt};
use crate::provider::schema;
use crate::text::fence;

/// The limit that is sent unless the user sets one, because the API demands a limit.
const MAX_TOKENS: u64 = 16_384;

/// How often the provider may search for one answer; each search costs extra.
const MAX_SEARCHES: u64 = 5;

/// The types of the blocks with reasoning, which are signed or encrypted.
const SEALED: &[&str] = &["thinking", "redacted_thinking"];

/// Returns the body of the request for a prompt.
pub fn body(prompt: &Prompt) -> Value {
    let no_calls = json!({"type": "none"});
    let mut body = json!({
        "model": prompt.model,
        "max_tokens": prompt.max_tokens.unwrap_or(MAX_TOKENS),
        "stream": prompt.stream,
        "system": prompt.system,
        "messages": null,
        "output_config": output_config(prompt),
        "tools": tools(prompt),
        "tool_choice": prompt.says_no_calls().then_some(no_calls),
        "cache_control": caches(prompt).then(cache),
    });
    body["messages"] = messages(prompt).into();
    request::without_empty(body)
}

/// Returns the messages, the calls of this question with their results, and the turn that the provider paused.
fn messages(prompt: &Prompt) -> Vec<Value> {
    let mut messages = Vec::from_iter(prompt.messages.iter().map(turn));
    if caches(prompt)
        && let Some(last) = prompt.lasting.checked_sub(1)
    {
        mark_for_cache(&mut messages, last);
    }
    for step in prompt.steps {
        messages.push(answer_of(step.echo.items(), prompt));
        messages.push(results_of(step));
    }
    let paused = answer_of(prompt.paused_turn.items(), prompt);
    // The API rejects an empty one. Only reasoning may have come before the pause.
    if paused["content"] != json!([]) {
        messages.push(paused);
    }
    messages
}

/// Lets the provider keep what lasts while later messages are replaced: up to this message, or to this part of the text of a
/// flattened one.
fn mark_for_cache(messages: &mut [Value], last: usize) {
    let is_flattened = messages.len() == 1;
    let place = if is_flattened { 0 } else { last };
    let Some(content) = messages
        .get_mut(place)
        .map(|message| &mut message["content"])
    else {
        return;
    };
    if let Some(text) = content.as_str() {
        *content = json!([{"type": "text", "text": text}]);
    }
    let Some(parts) = content.as_array_mut() else {
        return;
    };
    let mut marked = parts.last_mut();
    if is_flattened {
        // Attachments are before the text.
        marked = parts
            .iter_mut()
            .filter(|part| part["type"] == "text")
            .nth(last);
    }
    if let Some(part) = marked {
        part["cache_control"] = cache();
    }
}

fn cache() -> Value {
    json!({"type": "ephemeral"})
}

/// Whether to ask for caching. It is worth its cost only if another request is likely to begin like this one, because
/// writing into the cache costs more than sending.
fn caches(prompt: &Prompt) -> bool {
    let mut messages = prompt.messages.iter();
    // Files go with follow-ups, too.
    let has_files = messages.any(|message| {
        !message.attachments.is_empty() || !fence::split_files(&message.text).0.is_empty()
    });
    let has_tools = prompt.web || !prompt.tools.is_empty();
    let is_flattened = prompt
        .messages
        .iter()
        .any(|message| !message.part_ends.is_empty());
    let is_continued = is_flattened || prompt.messages.len() > 1;
    prompt.sends(OptionalField::Cache) && (has_files || has_tools || is_continued)
}

fn turn(message: &Message) -> Value {
    let attachments = message.attachments.iter().map(part_of);
    let content = if message.part_ends.is_empty() {
        attachment::content(attachments, &message.text)
    } else {
        let texts = parts_of_text(message).map(|text| json!({"type": "text", "text": text}));
        attachments.chain(texts).collect()
    };
    request::object([("role", json!(message.role)), ("content", content)])
}

/// Returns the text of a flattened prompt, one part for each of its messages. What was sent before is the beginning of what is
/// sent next, part by part, and so the provider finds it in its cache.
fn parts_of_text(message: &Message) -> impl Iterator<Item = &str> {
    let ends = message
        .part_ends
        .iter()
        .copied()
        .chain([message.text.len()]);
    let mut begin = 0;
    ends.map(move |end| {
        let part = message.text.get(begin..end).unwrap_or_default();
        begin = end;
        part
    })
}

fn part_of(attachment: &Attachment) -> Value {
    let source = json!({
        "type": "base64",
        "media_type": attachment.media,
        "data": &*attachment.data,
    });
    if attachment.is_image() {
        return request::object([("type", "image".into()), ("source", source)]);
    }
    let title = attachment::title(attachment).into();
    let kind = ("type", "document".into());
    request::without_empty(request::object([
        kind,
        ("source", source),
        ("title", title),
    ]))
}

fn output_config(prompt: &Prompt) -> Value {
    let format = match prompt.form {
        // The API has no way to ask for an object without a schema.
        AnswerForm::Any | AnswerForm::Object => None,
        AnswerForm::Shaped(shape) => {
            let schema = schema::with_rules_in_words(&shape.schema);
            Some(json!({"type": "json_schema", "schema": schema}))
        }
    };
    request::without_empty(json!({"effort": prompt.effort, "format": format}))
}

/// Returns the tools. The API demands them if the messages have calls, even if the model must not call tools again.
fn tools(prompt: &Prompt) -> Vec<Value> {
    let mut tools = Vec::from_iter(prompt.tools.iter().map(offer));
    if prompt.web {
        tools.push(json!({
            // The version that every model supports.
            "type": "web_search_20250305",
            "name": "web_search",
            "max_uses": MAX_SEARCHES,
        }));
    }
    tools
}

fn offer(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.schema,
    })
}

/// Returns the model's turn as it came, because signatures are valid only for an unchanged turn. Where they have been rejected,
/// what is signed is left out.
fn answer_of(blocks: &[Value], prompt: &Prompt) -> Value {
    let sends_sealed = prompt.sends(OptionalField::SealedReasoning);
    let mut content = Vec::new();
    for block in blocks {
        let is_sealed = SEALED.contains(&text_field(block, "type"));
        // The API rejects text that is blank.
        let is_blank = block["type"] == "text" && text_field(block, "text").trim().is_empty();
        if !is_blank && (sends_sealed || !is_sealed) {
            content.push(block);
        }
    }
    json!({"role": "assistant", "content": content})
}

/// Returns all results of a turn, which must be in one message.
fn results_of(step: &Step) -> Value {
    let results = Vec::from_iter(step.calls.iter().map(result_of));
    json!({"role": "user", "content": results})
}

fn result_of(run: &ToolRun) -> Value {
    request::without_empty(json!({
        "type": "tool_result",
        "tool_use_id": run.id,
        "content": attachment::result(run, "text", part_of),
        "is_error": run.is_error.then_some(true),
    }))
}
