//! Makes the bodies of requests for the Responses API (pure).

use serde_json::{Value, json};

use super::item::{CALL_OUTPUT, MESSAGE, REASONING};
use crate::message::{Attachment, Message, Role, Tool, ToolRun};
use crate::provider::attachment;
use crate::provider::request::{self, AnswerForm, OptionalField, Prompt, SHAPE_NAME};

/// Returns the body of the request for a prompt.
pub fn body(prompt: &Prompt) -> Value {
    // Reasoning is sent back with the results of calls. If the provider does not store it, it must come with the reply.
    let refuses_storage = prompt.sends(OptionalField::Store);
    let needs_reasoning =
        refuses_storage && !prompt.tools.is_empty() && prompt.sends(OptionalField::Encrypted);
    let effort = json!({"effort": prompt.effort});
    let format = json!({"format": format_of(prompt.form)});
    let mut body = json!({
        "model": prompt.model,
        "stream": prompt.stream,
        "store": refuses_storage.then_some(false),
        "instructions": prompt.system,
        "input": null,
        "max_output_tokens": prompt.max_tokens,
        "reasoning": request::without_empty(effort),
        "text": request::without_empty(format),
        "tools": tools(prompt),
        "tool_choice": prompt.says_no_calls().then_some("none"),
        "include": needs_reasoning.then_some(["reasoning.encrypted_content"]),
    });
    body["input"] = input(prompt).into();
    request::without_empty(body)
}

/// Returns the messages, then the calls of this question with their results.
fn input(prompt: &Prompt) -> Vec<Value> {
    let mut input = Vec::from_iter(prompt.messages.iter().map(turn));
    for step in prompt.steps {
        // The model's turn goes back as it came.
        let items = step.echo.items();
        if prompt.sends(OptionalField::SealedReasoning) {
            input.extend_from_slice(items);
        } else {
            input.extend(items.iter().filter_map(without_reasoning));
        }
        input.extend(step.calls.iter().map(result_of));
    }
    input
}

/// Returns an item without its id, by which the API would look for the reasoning that it followed; `None` if it is reasoning.
fn without_reasoning(item: &Value) -> Option<Value> {
    if item["type"] == REASONING {
        return None;
    }
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        fields.shift_remove("id");
    }
    Some(item)
}

fn turn(message: &Message) -> Value {
    let role = ("role", json!(message.role));
    match message.role {
        Role::User => request::object([role, ("content", content_of(message, "input_text"))]),
        Role::Assistant => request::object([
            // llama.cpp rejects a message of the model without this type.
            ("type", MESSAGE.into()),
            role,
            ("content", content_of(message, "output_text")),
        ]),
    }
}

/// Returns the attachments of a message, then its text.
fn content_of(message: &Message, kind_of_text: &str) -> Value {
    let mut content = Vec::from_iter(message.attachments.iter().map(part_of));
    if content.is_empty() || !message.text.is_empty() {
        content.push(json!({"type": kind_of_text, "text": &*message.text}));
    }
    content.into()
}

fn part_of(attachment: &Attachment) -> Value {
    let url = attachment::url(attachment).into();
    if attachment.is_image() {
        let kind = ("type", "input_image".into());
        return request::object([kind, ("detail", "auto".into()), ("image_url", url)]);
    }
    let name = attachment::file_name(attachment).into();
    let kind = ("type", "input_file".into());
    request::object([kind, ("filename", name), ("file_data", url)])
}

fn format_of(form: AnswerForm) -> Option<Value> {
    match form {
        AnswerForm::Any => None,
        AnswerForm::Object => Some(json!({"type": "json_object"})),
        AnswerForm::Shaped(shape) => Some(json!({
            "type": "json_schema",
            "name": SHAPE_NAME,
            "schema": shape.schema,
            "strict": shape.is_strict(),
        })),
    }
}

fn tools(prompt: &Prompt) -> Vec<Value> {
    let mut tools = Vec::from_iter(prompt.tools.iter().map(offer));
    if prompt.web {
        tools.push(json!({"type": "web_search"}));
    }
    tools
}

/// Offers a tool. The API makes it strict by default, but schemas of MCP servers do not follow the rules of strict tools.
fn offer(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": false,
    })
}

fn result_of(run: &ToolRun) -> Value {
    json!({
        "type": CALL_OUTPUT,
        "call_id": run.id,
        "output": attachment::result(run, "input_text", part_of),
    })
}
