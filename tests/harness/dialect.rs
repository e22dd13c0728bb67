//! The four dialects as servers of models speak them: one value each, with its replies, its errors, and where its requests
//! have what tests look for. A fifth dialect is a fifth value.

use serde_json::{Value, json};

use super::server::{Gate, Recorded, Reply};

/// A call of a tool: id, name and arguments.
pub type Call<'a> = (&'a str, &'a str, Value);

/// What a server of a dialect says, and how its requests are read.
pub struct Dialect {
    /// The built-in provider that speaks it, or the section of the configuration file that does.
    pub provider: &'static str,
    /// What the base URL has after the server's address.
    pub base: &'static str,
    /// Whether the provider needs a section in the configuration file to be sent elsewhere.
    pub needs_section: bool,
    /// A whole answer, or a stream where the request asks for one.
    pub reply: fn(&Recorded, &str) -> Reply,
    /// The events of an answer; the last one is the terminal event.
    pub stream: fn(&[&str]) -> Vec<Vec<u8>>,
    /// What ends an answer but for its terminal event: the number of events at the end of `stream`.
    pub after_finish: usize,
    /// The events of an answer that has a text and calls tools.
    pub calls: fn(&str, &[Call]) -> Vec<Vec<u8>>,
    /// An error in a body, and as the data of an event: status and message.
    pub error: fn(u16, &str) -> Value,
    /// The role of the model's messages.
    pub assistant: &'static str,
    /// Where a request has its messages, and a message its text.
    pub messages: &'static str,
    pub text: &'static str,
    /// Where a request has its system prompt; in a message of its own unless given.
    system: Option<&'static str>,
    /// Where a request has its tools, and a tool its name.
    tools: &'static str,
    tool_name: &'static str,
}

pub static DIALECTS: [Dialect; 4] = [
    Dialect {
        provider: "openai",
        base: "/v1",
        needs_section: false,
        reply: openai_reply,
        stream: |words| openai_stream(words),
        after_finish: 2,
        calls: openai_calls,
        error: openai_error,
        assistant: "assistant",
        messages: "messages",
        text: "/content",
        system: None,
        tools: "/tools",
        tool_name: "/function/name",
    },
    Dialect {
        provider: "anthropic",
        base: "",
        needs_section: false,
        reply: anthropic_reply,
        stream: |words| anthropic_stream(words),
        after_finish: 1,
        calls: anthropic_calls,
        error: anthropic_error,
        assistant: "assistant",
        messages: "messages",
        text: "/content",
        system: Some("/system"),
        tools: "/tools",
        tool_name: "/name",
    },
    Dialect {
        provider: "gemini",
        base: "",
        needs_section: false,
        reply: gemini_reply,
        stream: |words| gemini_stream(words),
        after_finish: 0,
        calls: gemini_calls,
        error: gemini_error,
        assistant: "model",
        messages: "contents",
        text: "/parts/0/text",
        system: Some("/systemInstruction/parts/0/text"),
        tools: "/tools/0/functionDeclarations",
        tool_name: "/name",
    },
    Dialect {
        provider: "responses",
        base: "/v1",
        needs_section: true,
        reply: responses_reply,
        stream: |words| responses_stream(words),
        after_finish: 0,
        calls: responses_calls,
        error: openai_error,
        assistant: "assistant",
        messages: "input",
        text: "/content/0/text",
        system: Some("/instructions"),
        tools: "/tools",
        tool_name: "/name",
    },
];

impl Dialect {
    /// The dialect of this name.
    #[track_caller]
    pub fn named(name: &str) -> &'static Dialect {
        let found = DIALECTS.iter().find(|dialect| dialect.provider == name);
        found.unwrap_or_else(|| panic!("{name} is no dialect"))
    }

    /// A reply that has a text and calls tools, streamed in fragments where the dialect has them.
    pub fn calling(&self, text: &str, calls: &[Call]) -> Reply {
        Reply::sse((self.calls)(text, calls))
    }

    /// The events of an answer that breaks off: neither the terminal event nor the finish reason before it.
    pub fn unfinished(&self, words: &[&str]) -> Vec<Vec<u8>> {
        let mut events = (self.stream)(words);
        events.truncate(events.len() - 1 - self.after_finish);
        events
    }

    /// The system prompt of a request, and its messages as role and text.
    pub fn sent(&self, request: &Recorded) -> (Option<String>, Vec<(String, String)>) {
        let body = request.json();
        let mut messages = Vec::new();
        for message in body[self.messages].as_array().expect("messages") {
            let role = message["role"].as_str().expect("a role").to_owned();
            let text = match message.pointer(self.text) {
                Some(Value::String(text)) => text.clone(),
                // The parts of a text, joined.
                Some(Value::Array(parts)) => parts
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .collect(),
                _ => panic!("a message without text"),
            };
            messages.push((role, text));
        }
        let system = match self.system {
            Some(place) => {
                let system = body.pointer(place).and_then(Value::as_str);
                system.map(str::to_owned)
            }
            None if messages[0].0 == "system" => Some(messages.remove(0).1),
            None => None,
        };
        (system, messages)
    }

    /// The names of the tools in the body of a request.
    pub fn offered(&self, body: &Value) -> Vec<String> {
        let tools = body.pointer(self.tools).and_then(Value::as_array);
        let mut names = Vec::new();
        for tool in tools.into_iter().flatten() {
            let name = tool.pointer(self.tool_name).and_then(Value::as_str);
            names.push(name.expect("a name").to_owned());
        }
        names
    }
}

fn openai_error(_: u16, message: &str) -> Value {
    json!({"error": {"message": message, "type": "some_error", "code": null}})
}

fn anthropic_error(_: u16, message: &str) -> Value {
    json!({"type": "error", "error": {"type": "some_error", "message": message}})
}

fn gemini_error(status: u16, message: &str) -> Value {
    json!({"error": {"code": status, "message": message, "status": "SOME_ERROR"}})
}

/// The model of the conversations that tests write, and of sections that need one.
pub const STORED_MODEL: &str = "stored-model";

/// What the ready-made answers report as the size of the question.
pub const INPUT_TOKENS: u64 = 11;
/// What the ready-made answers report as the size of the answer.
pub const OUTPUT_TOKENS: u64 = 7;
/// The only model that the ready-made servers list.
pub const LISTED_MODEL: &str = "test-model";

/// What ends an OpenAI-like stream.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// One event of an OpenAI-like stream: more of the answer.
pub fn word(text: &str) -> Vec<u8> {
    openai_event(json!({"content": text}), None)
}

/// One event of an OpenAI-like stream: why the answer ends.
pub fn finish(reason: &str) -> Vec<u8> {
    openai_event(json!({}), Some(reason))
}

/// One event of a stream that has any other JSON.
pub fn data(event: &Value) -> Vec<u8> {
    format!("data: {event}\n\n").into_bytes()
}

/// An error as OpenAI-like servers report it.
pub fn failure(status: u16, message: &str) -> Reply {
    Reply::json(status, json!({"error": {"message": message}}))
}

/// The first part of an answer at once, the rest when the gate opens.
pub fn in_two_parts(first: &str, gate: &Gate, rest: &str) -> Reply {
    Reply::sse([word(first)])
        .wait_for(gate)
        .pieces(openai_stream(&[rest]))
}

/// An answer of which nothing comes until the gate opens.
pub fn held_back(gate: &Gate, answer: &str) -> Reply {
    Reply::sse([""; 0])
        .wait_for(gate)
        .pieces(openai_stream(&[answer]))
}

/// The first part of an answer, and nothing more.
pub fn first_word_then_silence() -> Reply {
    Reply::sse([word("first ")]).hang()
}

/// The reply of an OpenAI-like server: a stream or whole, as the request asks.
pub fn openai_reply(request: &Recorded, answer: &str) -> Reply {
    if wants_stream(request) {
        return Reply::sse(openai_stream(&deltas(answer)));
    }
    let message = json!({"role": "assistant", "content": answer});
    Reply::json(
        200,
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "model": LISTED_MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": openai_usage(),
        }),
    )
}

/// The reply of an Anthropic-like server: a stream or whole, as the request asks.
pub fn anthropic_reply(request: &Recorded, answer: &str) -> Reply {
    if wants_stream(request) {
        return Reply::sse(anthropic_stream(&deltas(answer)));
    }
    Reply::json(
        200,
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": LISTED_MODEL,
            "content": [{"type": "text", "text": answer}],
            "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
        }),
    )
}

/// The reply of a server with the Responses API: a stream or whole, as the request asks.
pub fn responses_reply(request: &Recorded, answer: &str) -> Reply {
    if wants_stream(request) {
        return Reply::sse(responses_stream(&deltas(answer)));
    }
    Reply::json(200, response(answer))
}

/// The reply of a Gemini-like server: a stream or whole, as the path asks.
pub fn gemini_reply(request: &Recorded, answer: &str) -> Reply {
    if request.path.contains(":streamGenerateContent") {
        return Reply::sse(gemini_stream(&deltas(answer)));
    }
    let mut whole = gemini_event(answer, true);
    whole["modelVersion"] = json!(LISTED_MODEL);
    Reply::json(200, whole)
}

/// The list where a list of models was asked for, else 404.
pub fn models_reply(request: &Recorded, list: Value) -> Reply {
    let path = request.path.split('?').next().unwrap_or_default();
    if request.method == "GET" && path.ends_with("/models") {
        return Reply::json(200, list);
    }
    let message = format!("nothing at {} {}", request.method, request.path);
    Reply::json(404, json!({"error": {"message": message}}))
}

fn wants_stream(request: &Recorded) -> bool {
    serde_json::from_slice::<Value>(&request.body).is_ok_and(|body| body["stream"] == true)
}

/// An answer in pieces the size of words, as models send it.
fn deltas(answer: &str) -> Vec<&str> {
    answer.split_inclusive(' ').collect()
}

/// One event a piece: the role, each delta, the finish reason, the usage, `[DONE]`.
pub fn openai_stream<S: AsRef<str>>(deltas: &[S]) -> Vec<Vec<u8>> {
    let role = json!({"role": "assistant", "content": ""});
    let mut events = vec![openai_event(role, None)];
    for delta in deltas {
        events.push(openai_event(json!({"content": delta.as_ref()}), None));
    }
    events.push(openai_event(json!({}), Some("stop")));
    let usage = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": LISTED_MODEL,
        "choices": [], "usage": openai_usage(),
    });
    events.push(format!("data: {usage}\n\n").into_bytes());
    events.push(DONE.to_vec());
    events
}

/// One event of an OpenAI-like stream, for streams that are put together by hand.
pub fn openai_event(delta: Value, finish_reason: Option<&str>) -> Vec<u8> {
    let event = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": LISTED_MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    });
    format!("data: {event}\n\n").into_bytes()
}

fn openai_usage() -> Value {
    json!({
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    })
}

/// One event a piece: `message_start`, `content_block_start`, `ping`, each delta, `content_block_stop`,
/// `message_delta`, `message_stop`.
pub fn anthropic_stream<S: AsRef<str>>(deltas: &[S]) -> Vec<Vec<u8>> {
    let mut events = vec![
        typed_event(json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": LISTED_MODEL,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
        }})),
        typed_event(json!({
            "type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""},
        })),
        typed_event(json!({"type": "ping"})),
    ];
    for delta in deltas {
        events.push(typed_event(json!({
            "type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": delta.as_ref()},
        })));
    }
    events.extend([
        typed_event(json!({"type": "content_block_stop", "index": 0})),
        typed_event(json!({
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": OUTPUT_TOKENS},
        })),
        typed_event(json!({"type": "message_stop"})),
    ]);
    events
}

/// One event of a stream whose events are named by their own `type`.
pub fn typed_event(event: Value) -> Vec<u8> {
    let name = event["type"].as_str().expect("an event's type");
    format!("event: {name}\ndata: {event}\n\n").into_bytes()
}

/// One event a piece: `response.created`, each delta, and `response.completed`, which repeats the answer.
pub fn responses_stream<S: AsRef<str>>(deltas: &[S]) -> Vec<Vec<u8>> {
    let mut events = vec![
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
    ];
    let delta = |delta: &S| json!({"type": "response.output_text.delta", "delta": delta.as_ref()});
    events.extend(deltas.iter().map(delta));
    let answer: String = deltas.iter().map(AsRef::as_ref).collect();
    events.push(json!({"type": "response.completed", "response": response(&answer)}));
    events.into_iter().map(typed_event).collect()
}

fn response(answer: &str) -> Value {
    let content = json!([{"type": "output_text", "text": answer, "annotations": []}]);
    json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": LISTED_MODEL, "error": null,
        "output": [{"type": "message", "role": "assistant", "status": "completed", "content": content}],
        "usage": {
            "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    })
}

/// One event a piece: each delta, then the terminal event with an empty text, the finish reason and the usage.
pub fn gemini_stream<S: AsRef<str>>(deltas: &[S]) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    for delta in deltas {
        events.push(gemini_event(delta.as_ref(), false));
    }
    events.push(gemini_event("", true));
    let lines = events
        .iter()
        .map(|event| format!("data: {event}\r\n\r\n").into_bytes());
    lines.collect()
}

fn gemini_event(text: &str, last: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": [{"text": text}]}});
    if last {
        candidate["finishReason"] = json!("STOP");
    }
    let mut usage = json!({"promptTokenCount": INPUT_TOKENS});
    if last {
        usage["candidatesTokenCount"] = json!(OUTPUT_TOKENS);
        usage["totalTokenCount"] = json!(INPUT_TOKENS + OUTPUT_TOKENS);
    }
    json!({"candidates": [candidate], "usageMetadata": usage})
}

/// The arguments come in pieces of three bytes.
fn openai_calls(text: &str, calls: &[(&str, &str, Value)]) -> Vec<Vec<u8>> {
    let said = json!({"role": "assistant", "content": text});
    let mut events = vec![openai_event(said, None)];
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        let first = json!({"index": index, "id": id, "type": "function", "function": function});
        events.push(openai_event(json!({"tool_calls": [first]}), None));
        for piece in arguments.to_string().as_bytes().chunks(3) {
            let piece = std::str::from_utf8(piece).expect("plain arguments");
            let fragment = json!({"index": index, "function": {"arguments": piece}});
            events.push(openai_event(json!({"tool_calls": [fragment]}), None));
        }
    }
    events.push(openai_event(json!({}), Some("tool_calls")));
    events.push(DONE.to_vec());
    events
}

/// With thinking and its signature before the text.
fn anthropic_calls(text: &str, calls: &[(&str, &str, Value)]) -> Vec<Vec<u8>> {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": LISTED_MODEL, "content": [],
        "stop_reason": null, "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
    }})];
    let mut index = 0;
    let mut block = |block: Value, deltas: Vec<Value>| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    let thinking = json!({"type": "thinking_delta", "thinking": "hm"});
    let signature = json!({"type": "signature_delta", "signature": "c2ln"});
    block(
        json!({"type": "thinking", "thinking": "", "signature": ""}),
        vec![thinking, signature],
    );
    if !text.is_empty() {
        block(
            json!({"type": "text", "text": ""}),
            vec![json!({"type": "text_delta", "text": text})],
        );
    }
    for (id, name, arguments) in calls {
        let arguments = arguments.to_string();
        let pieces = arguments.as_bytes().chunks(3);
        let pieces = pieces.map(|piece| std::str::from_utf8(piece).expect("plain arguments"));
        let deltas = pieces
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
            .collect();
        block(
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            deltas,
        );
    }
    let usage = json!({"output_tokens": OUTPUT_TOKENS});
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}),
    );
    events.push(json!({"type": "message_stop"}));
    events.into_iter().map(typed_event).collect()
}

/// With encrypted reasoning before the text.
fn responses_calls(text: &str, calls: &[(&str, &str, Value)]) -> Vec<Vec<u8>> {
    let mut items = vec![
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}),
    ];
    if !text.is_empty() {
        items.push(response(text)["output"][0].clone());
    }
    items.extend(calls.iter().map(|(id, name, arguments)| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
            "arguments": arguments.to_string(), "status": "completed"})
    }));
    let mut events = vec![
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
    ];
    for (index, item) in items.iter().enumerate() {
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": item}),
        );
        if item["type"] == "message" {
            events.push(json!({"type": "response.output_text.delta", "delta": text}));
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    let mut done = response("");
    done["output"] = json!(items);
    events.push(json!({"type": "response.completed", "response": done}));
    events.into_iter().map(typed_event).collect()
}

/// With a signature on the first call.
fn gemini_calls(text: &str, calls: &[(&str, &str, Value)]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(json!({"text": text}));
    }
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let mut part = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
        if index == 0 {
            part["thoughtSignature"] = json!("c2ln");
        }
        parts.push(part);
    }
    let events = parts.iter().enumerate().map(|(index, part)| {
        let mut candidate = json!({"content": {"role": "model", "parts": [part]}});
        if index + 1 == parts.len() {
            candidate["finishReason"] = json!("STOP");
        }
        data(&json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": INPUT_TOKENS}}))
    });
    events.collect()
}
