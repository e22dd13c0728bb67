//! Makes the paths and the bodies of requests for Google's Gemini API (pure).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::older_schema::older_schema;
use crate::message::{Attachment, Message, Role, Step, Tool, ToolRun};
use crate::provider::lenient::text_field;
use crate::provider::request::{self, AnswerForm, OptionalField, Prompt, Quirks};

/// What a path may contain unescaped (RFC 3986, unreserved).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The field with what continues an answer that is longer than one reply, in the reply and in the request.
pub const TOKEN: &str = "continuationToken";

/// The field that makes a part a call.
pub const FUNCTION_CALL: &str = "functionCall";

/// The field of a part with its signature.
pub const SIGNATURE: &str = "thoughtSignature";

/// Returns the path of the request for a prompt.
pub fn path(prompt: &Prompt) -> String {
    let name = prompt.model.trim_start_matches("models/");
    let model = utf8_percent_encode(name, UNRESERVED);
    if prompt.stream {
        format!("/v1beta/models/{model}:streamGenerateContent?alt=sse")
    } else {
        format!("/v1beta/models/{model}:generateContent")
    }
}

/// Returns its body.
pub fn body(prompt: &Prompt, quirks: Quirks) -> Value {
    let system = json!({"parts": [{"text": prompt.system}]});
    // The same request continues the answer, with the latest token.
    let mut paused = prompt.paused_turn.items().iter().rev();
    let token = paused.find_map(|value| value.get(TOKEN));
    let no_storage = prompt.sends(OptionalField::Store) && quirks.stores;
    let mut body = json!({
        "contents": null,
        "systemInstruction": (!prompt.system.is_empty()).then_some(system),
        "generationConfig": generation_config(prompt),
        "store": no_storage.then_some(false),
        "tools": tools(prompt),
        "toolConfig": tool_config(prompt),
        (TOKEN): token,
    });
    body["contents"] = contents(prompt).into();
    request::without_empty(body)
}

/// Returns the messages, then the calls of this question with their results.
fn contents(prompt: &Prompt) -> Vec<Value> {
    let mut contents = Vec::from_iter(prompt.messages.iter().map(turn));
    for step in prompt.steps {
        // The model's turn goes back as it came, because each signature must stay with its part.
        let parts = step
            .echo
            .items()
            .iter()
            .filter(|part| part.get(TOKEN).is_none());
        let mut parts = Vec::from_iter(parts.cloned());
        if !prompt.sends(OptionalField::SealedReasoning) {
            leave_out_signatures(&mut parts);
        }
        contents.push(json!({"role": "model", "parts": parts}));
        contents.push(results_of(step));
    }
    contents
}

/// Leaves out the signatures of the parts, and the reasoning, which the API takes only with them.
fn leave_out_signatures(parts: &mut Vec<Value>) {
    parts.retain(|part| part["thought"] != true);
    for part in parts {
        if let Some(fields) = part.as_object_mut() {
            fields.shift_remove(SIGNATURE);
        }
    }
}

/// Returns the attachments of a message, then its text.
fn turn(message: &Message) -> Value {
    let mut parts = Vec::from_iter(message.attachments.iter().map(part_of));
    if parts.is_empty() || !message.text.is_empty() {
        parts.push(json!({"text": &*message.text}));
    }
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "model",
    };
    request::object([("role", role.into()), ("parts", parts.into())])
}

fn part_of(attachment: &Attachment) -> Value {
    let data = json!({
        "mimeType": attachment.media,
        "data": &*attachment.data,
    });
    request::object([("inlineData", data)])
}

/// Returns all results of a turn, in the order of the calls. Their images follow, because not every model accepts images within a
/// result.
fn results_of(step: &Step) -> Value {
    let mut calls = step
        .echo
        .items()
        .iter()
        .filter_map(|part| part.get(FUNCTION_CALL));
    let mut parts = Vec::new();
    for run in &step.calls {
        parts.push(result_of(run, calls.next()));
    }
    for run in &step.calls {
        parts.extend(run.images.iter().map(part_of));
    }
    json!({"role": "user", "parts": parts})
}

/// Returns the result of a call, which `call` has as the model wrote it.
fn result_of(run: &ToolRun, call: Option<&Value>) -> Value {
    let kind = if run.is_error { "error" } else { "result" };
    let result = json!({kind: run.result});
    // The model knows only the ids that it gave.
    let id = call.map(|call| text_field(call, "id"));
    let response = request::without_empty(json!({
        "name": run.name,
        "response": result,
        "id": id,
    }));
    json!({"functionResponse": response})
}

fn generation_config(prompt: &Prompt) -> Value {
    let schema = match prompt.form {
        AnswerForm::Any | AnswerForm::Object => None,
        AnswerForm::Shaped(shape) => Some(&shape.schema),
    };
    let is_json = prompt.form != AnswerForm::Any;
    let thinking = json!({"thinkingLevel": prompt.effort});
    request::without_empty(json!({
        "maxOutputTokens": prompt.max_tokens,
        "thinkingConfig": request::without_empty(thinking),
        "responseMimeType": is_json.then_some("application/json"),
        "responseJsonSchema": schema,
    }))
}

fn tools(prompt: &Prompt) -> Vec<Value> {
    let mut tools = Vec::new();
    let declarations = Vec::from_iter(prompt.tools.iter().map(|tool| declaration(tool, prompt)));
    if !declarations.is_empty() {
        tools.push(json!({"functionDeclarations": declarations}));
    }
    if prompt.web {
        tools.push(json!({"google_search": {}}));
    }
    tools
}

/// Declares a tool. `parametersJsonSchema` accepts JSON Schema with its references. `parameters` accepts so little that it is only
/// for servers that have rejected the other field. It is left out for a tool without parameters.
fn declaration(tool: &Tool, prompt: &Prompt) -> Value {
    let mut declaration = json!({
        "name": tool.name,
        "description": tool.description,
    });
    if prompt.sends(OptionalField::JsonSchemas) {
        declaration["parametersJsonSchema"] = (*tool.schema).clone();
        return declaration;
    }
    let schema = older_schema(&tool.schema);
    if schema.get("properties").is_some() {
        declaration["parameters"] = schema;
    }
    declaration
}

/// Returns what Gemini may do with the tools. It does not search in a request with other tools, unless it may show the calls of
/// its search.
fn tool_config(prompt: &Prompt) -> Option<Value> {
    if prompt.tools.is_empty() {
        return None;
    }
    let mode = prompt.says_no_calls().then_some("NONE");
    let calling = json!({"mode": mode});
    Some(request::without_empty(json!({
        "functionCallingConfig": request::without_empty(calling),
        "includeServerSideToolInvocations": prompt.web.then_some(true),
    })))
}
