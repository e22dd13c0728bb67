//! Makes the bodies of requests for chat completions (pure).

use serde_json::{Value, json};

use crate::message::{self, Attachment, Message, Role, Step, Tool, ToolRun};
use crate::provider::attachment;
use crate::provider::calls;
use crate::provider::request::{self, AnswerForm, OptionalField, Prompt, Quirks, SHAPE_NAME};

/// DeepSeek's field for reasoning, which others use too.
pub const REASONING: &str = "reasoning_content";

/// The field of Groq, vLLM, Ollama, Cerebras, LocalAI and OpenRouter for the same. Each takes back its own, and some reject
/// the other.
pub const PLAIN_REASONING: &str = "reasoning";

/// The field of a call in which Google sends a signature, and wants it back.
pub const EXTRA_CONTENT: &str = "extra_content";

/// The field of a call in which LiteLLM sends such a signature, and wants it back.
pub const PROVIDER_FIELDS: &str = "provider_specific_fields";

/// The field of a call, or of its function, in which Portkey and others send such a signature, and want it back.
pub const SIGNATURE: &str = "thought_signature";

/// What a call's data calls this field if it is one of the function.
pub const FUNCTION_SIGNATURE: &str = "function.thought_signature";

/// OpenRouter's field for reasoning: a list, with signatures.
pub const REASONING_DETAILS: &str = "reasoning_details";

/// LiteLLM's field for Anthropic's blocks with reasoning, which have signatures.
pub const THINKING_BLOCKS: &str = "thinking_blocks";

/// The web search of OpenRouter, the only server with this dialect for which q knows one.
const WEB_SEARCH: &str = "openrouter:web_search";

/// A name of the limit of tokens.
#[derive(Clone, Copy, PartialEq)]
enum LimitName {
    /// `max_tokens`
    Old,
    /// `max_completion_tokens`
    New,
}

impl LimitName {
    /// Returns the provider's usual one, or the other one once it has rejected that.
    fn new(prompt: &Prompt, quirks: Quirks) -> LimitName {
        let mut usual = LimitName::Old;
        if quirks.max_completion_tokens {
            usual = LimitName::New;
        }
        if prompt.sends(OptionalField::Limit) {
            usual
        } else {
            usual.other()
        }
    }

    fn other(self) -> LimitName {
        match self {
            LimitName::Old => LimitName::New,
            LimitName::New => LimitName::Old,
        }
    }
}

/// Returns the body of the request for a prompt.
pub fn body(prompt: &Prompt, quirks: Quirks) -> Value {
    let usage = json!({"include_usage": true});
    let asks_for_usage = prompt.stream && quirks.stream_usage && prompt.sends(OptionalField::Usage);
    let limit_name = LimitName::new(prompt, quirks);
    let limit_as = |name| prompt.max_tokens.filter(|_| limit_name == name);
    let mut body = json!({
        "model": prompt.model,
        "stream": prompt.stream,
        "stream_options": asks_for_usage.then_some(usage),
        "max_tokens": limit_as(LimitName::Old),
        "max_completion_tokens": limit_as(LimitName::New),
        "reasoning_effort": prompt.effort,
        "response_format": format_of(prompt.form),
        "messages": null,
        "tools": tools(prompt),
    });
    body["messages"] = messages(prompt, quirks).into();
    request::without_empty(body)
}

/// Returns the tools that are offered. Some servers ignore `tool_choice`, so no tools are offered where calls are forbidden.
fn tools(prompt: &Prompt) -> Vec<Value> {
    if prompt.forbids_calls {
        return Vec::new();
    }
    let mut tools = Vec::from_iter(prompt.tools.iter().map(offer));
    if prompt.web {
        tools.push(json!({"type": WEB_SEARCH}));
    }
    tools
}

fn offer(tool: &Tool) -> Value {
    let function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
    });
    json!({"type": "function", "function": function})
}

/// Returns the system prompt, the messages, and the calls of this question with their results.
fn messages(prompt: &Prompt, quirks: Quirks) -> Vec<Value> {
    let mut messages = Vec::new();
    if !prompt.system.is_empty() {
        messages.push(json!({"role": "system", "content": prompt.system}));
    }
    for message in &prompt.messages {
        messages.push(turn(message, prompt, quirks));
    }
    if !prompt.forbids_calls {
        for step in prompt.steps {
            messages.extend(elements_of(step, prompt, quirks));
        }
    } else if let Some(question) = prompt.messages.last() {
        // Some servers reject calls in a request without tools, so the calls become text.
        messages.pop();
        let question = with_calls(question, prompt.steps);
        messages.push(turn(&question, prompt, quirks));
    }
    messages
}

fn turn(message: &Message, prompt: &Prompt, quirks: Quirks) -> Value {
    let attachments = message.attachments.iter();
    let parts = attachments.map(|attachment| part_of(attachment, quirks));
    let content = attachment::content(parts, &message.text);
    let mut turn = request::object([("role", json!(message.role)), ("content", content)]);
    if message.role == Role::Assistant && !prompt.sends(OptionalField::UnreasonedTurns) {
        turn[REASONING] = "".into();
    }
    turn
}

/// Returns the question with its calls as text after it, and with their images.
fn with_calls(question: &Message, steps: &[Step]) -> Message {
    let mut question = question.clone();
    if steps.is_empty() {
        return question;
    }
    let calls = message::calls_as_text(steps);
    if question.text.is_empty() {
        question.text = calls.into();
    } else {
        question.text = format!("{}\n\n{calls}", question.text).into();
    }
    for step in steps {
        question.attachments.extend(images_of(step).cloned());
    }
    question
}

fn part_of(attachment: &Attachment, quirks: Quirks) -> Value {
    let url = attachment::url(attachment).into();
    if attachment.is_image() {
        let image = request::object([("url", url)]);
        return request::object([("type", "image_url".into()), ("image_url", image)]);
    }
    if quirks.document_url {
        return request::object([("type", "document_url".into()), ("document_url", url)]);
    }
    let name = attachment::file_name(attachment).into();
    let file = request::object([("filename", name), ("file_data", url)]);
    request::object([("type", "file".into()), ("file", file)])
}

fn format_of(form: AnswerForm) -> Option<Value> {
    match form {
        AnswerForm::Any => None,
        AnswerForm::Object => Some(json!({"type": "json_object"})),
        AnswerForm::Shaped(shape) => {
            let schema = json!({
                "name": SHAPE_NAME,
                "schema": shape.schema,
                "strict": shape.is_strict(),
            });
            Some(json!({"type": "json_schema", "json_schema": schema}))
        }
    }
}

/// Returns the model's turn, and a message for the result of each call.
fn elements_of(step: &Step, prompt: &Prompt, quirks: Quirks) -> Vec<Value> {
    let mut elements = vec![answer_of(step, prompt, quirks)];
    for run in &step.calls {
        elements.push(json!({
            "role": "tool",
            "tool_call_id": run.id,
            "content": run.result,
        }));
    }
    let images = Vec::from_iter(images_of(step).map(|image| part_of(image, quirks)));
    // A result can have only text, so the images follow in a message of the user.
    if !images.is_empty() {
        elements.push(json!({"role": "user", "content": images}));
    }
    elements
}

/// Returns the model's turn, with the fields that came with its calls, unless they have been rejected.
pub fn answer_of(step: &Step, prompt: &Prompt, quirks: Quirks) -> Value {
    let sends_sealed = prompt.sends(OptionalField::SealedReasoning);
    let fields = step.echo.fields();
    let mut calls = Vec::from_iter(step.calls.iter().map(call_of));
    if sends_sealed {
        for (call, run) in calls.iter_mut().zip(&step.calls) {
            add_fields(call, &run.api_data);
        }
    }
    let mut turn = json!({
        "role": "assistant",
        "content": step.text,
        "tool_calls": calls,
    });
    if quirks.returns_reasoning || !prompt.sends(OptionalField::UnreasonedTurns) {
        turn[REASONING] = "".into();
    }
    if let Some(fields) = fields {
        for (name, text) in [
            (REASONING, &fields.reasoning),
            (PLAIN_REASONING, &fields.plain),
        ] {
            if !text.is_empty() && prompt.sends(OptionalField::ReasonedTurns) {
                turn[name] = text.as_str().into();
            }
        }
        if sends_sealed && !fields.details.is_empty() {
            turn[REASONING_DETAILS] = fields.details.value();
        }
        let blocks = fields.blocks.iter().filter(|block| is_complete(block));
        let blocks = Vec::from_iter(blocks.cloned());
        if sends_sealed && !blocks.is_empty() {
            turn[THINKING_BLOCKS] = blocks.into();
        }
    }
    turn
}

/// Whether a block with reasoning has what Anthropic demands of it: only a redacted one needs no signature.
fn is_complete(block: &Value) -> bool {
    block["type"] != "thinking"
        || block["signature"]
            .as_str()
            .is_some_and(|seal| !seal.is_empty())
}

fn call_of(run: &ToolRun) -> Value {
    let arguments = calls::text(&run.arguments);
    let function = json!({"name": run.name, "arguments": arguments});
    json!({"id": run.id, "type": "function", "function": function})
}

/// Adds the fields of an object to a call.
fn add_fields(call: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().into_iter().flatten() {
        if name == FUNCTION_SIGNATURE {
            call["function"][SIGNATURE] = value.clone();
        } else {
            call[name] = value.clone();
        }
    }
}

/// Returns the images in the results of a step.
fn images_of(step: &Step) -> impl Iterator<Item = &Attachment> {
    step.calls.iter().flat_map(|run| &run.images)
}
