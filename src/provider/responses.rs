//! Makes requests for OpenAI's Responses API, which other servers have as well, and reads the replies (pure).

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::attachment;
use super::dialect::Dialect;
use super::failure::{self, ServerError};
use super::lenient::{self, Count, IfReadable, ReplyError, Text, elements, text_field};
use super::reply::Reply;
use super::request::{self, AnswerForm, Extra, Prompt, SHAPE_NAME};
use super::{openai, schema};
use crate::message::{Attachment, AttachmentKind, Message, Role, Tool, ToolRun, Usage};
use crate::text::surrogates;

pub static DIALECT: Dialect = Dialect {
    name: "responses",
    chat: |prompt, _| ("/responses".to_owned(), body(prompt)),
    event: read_event,
    whole: read_whole,
    ends_with_done: false,
    extras: &[
        (Extra::Effort, "/reasoning/effort"),
        (Extra::Form, "/text/format"),
        (Extra::Store, "/store"),
    ],
    searches: true,
    ..openai::DIALECT
};

/// The type of an item that calls a tool of q.
const FUNCTION_CALL: &str = "function_call";

/// The type of an item that calls a custom tool. xAI's own searches have it, too.
const CUSTOM_CALL: &str = "custom_tool_call";

/// The type of an item that searches the web.
const WEB_SEARCH_CALL: &str = "web_search_call";

/// The types of items with calls that the client must run. The provider runs every other call.
const CLIENT_CALLS: &[&str] = &[
    FUNCTION_CALL,
    CUSTOM_CALL,
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];

/// The type of an item with text of the model.
const MESSAGE: &str = "message";

fn body(prompt: &Prompt) -> Value {
    let has_tools = !prompt.tools.is_empty();
    let forbids_calls = prompt.forbids_calls && has_tools;
    // Reasoning is sent back with the results of calls. If the provider does not store it, it must come with the reply.
    let needs_reasoning = prompt.refuses_storage && has_tools;
    let effort = json!({"effort": prompt.effort});
    let format = json!({"format": format_of(prompt.form)});
    request::without_empty(json!({
        "model": prompt.model,
        "stream": prompt.stream,
        "store": prompt.refuses_storage.then_some(false),
        "instructions": (!prompt.system.is_empty()).then_some(prompt.system),
        "input": input(prompt),
        "max_output_tokens": prompt.max_tokens,
        "reasoning": request::without_empty(effort),
        "text": request::without_empty(format),
        "tools": tools(prompt),
        "tool_choice": forbids_calls.then_some("none"),
        "include": needs_reasoning.then_some(["reasoning.encrypted_content"]),
    }))
}

/// The messages, then the calls of this question with their results.
fn input(prompt: &Prompt) -> Vec<Value> {
    let mut input = Vec::from_iter(prompt.messages.iter().map(turn));
    for step in prompt.steps {
        // The model's turn goes back as it came.
        input.extend_from_slice(&step.echo);
        input.extend(step.calls.iter().map(result_of));
    }
    input
}

fn turn(message: &Message) -> Value {
    match message.role {
        Role::User => json!({"role": "user", "content": content_of(message, "input_text")}),
        Role::Assistant => json!({
            // llama.cpp refuses a message of the model without this type.
            "type": MESSAGE,
            "role": "assistant",
            "content": content_of(message, "output_text"),
        }),
    }
}

/// The attachments of a message, then its text.
fn content_of(message: &Message, kind_of_text: &str) -> Vec<Value> {
    let mut content = Vec::from_iter(message.attachments.iter().map(part_of));
    if content.is_empty() || !message.text.is_empty() {
        content.push(json!({"type": kind_of_text, "text": &*message.text}));
    }
    content
}

fn part_of(attachment: &Attachment) -> Value {
    let url = attachment::url(attachment);
    match attachment.kind() {
        AttachmentKind::Image => json!({
            "type": "input_image",
            "detail": "auto",
            "image_url": url,
        }),
        AttachmentKind::Pdf => json!({
            "type": "input_file",
            "filename": attachment::file_name(attachment),
            "file_data": url,
        }),
    }
}

fn format_of(form: AnswerForm) -> Option<Value> {
    match form {
        AnswerForm::Any => None,
        AnswerForm::Object => Some(json!({"type": "json_object"})),
        AnswerForm::Shaped(shape) => Some(json!({
            "type": "json_schema",
            "name": SHAPE_NAME,
            "schema": shape.schema(),
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

/// The API makes a tool strict by default, but schemas of MCP servers do not follow the rules of strict tools.
fn offer(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": schema::of_object(tool),
        "strict": false,
    })
}

fn result_of(run: &ToolRun) -> Value {
    let mut output = Value::from(run.result.as_str());
    if !run.images.is_empty() {
        let mut parts = vec![json!({"type": "input_text", "text": output})];
        parts.extend(run.images.iter().map(part_of));
        output = parts.into();
    }
    json!({
        "type": "function_call_output",
        "call_id": run.id,
        "output": output,
    })
}

/// An event of a stream, of any type. It borrows from the data, which saves a copy of the text.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: IfReadable<String>,
    /// The number of the item.
    output_index: Count,
    delta: Text<'a>,
    text: Text<'a>,
    item: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
    annotation: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

fn usage_of(counts: &Value) -> Usage {
    let count = |place| lenient::count(counts, place);
    Usage {
        input_tokens: count("/input_tokens"),
        output_tokens: count("/output_tokens"),
        cached_tokens: count("/input_tokens_details/cached_tokens"),
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        // OpenRouter alone reports it.
        cost: counts["cost"].as_f64(),
    }
}

fn read_event(data: &str, reply: &mut Reply) -> Result<(), ReplyError> {
    let Some(event) = lenient::event::<Event>(data)? else {
        return Ok(());
    };
    let may_be_error = event.error.is_some() || event.kind.0.is_none();
    failure::check(data, may_be_error)?;
    let kind = event.kind.0.unwrap_or_default();
    match kind.as_str() {
        "response.output_text.delta" => {
            reply.continue_message(event.output_index.0);
            reply.add(&event.delta.json()?)?;
        }
        "response.refusal.delta" => {
            reply.continue_message(event.output_index.0);
            reply.refuse(&event.delta.json()?)?;
        }
        "response.output_text.done" => {
            reply.continue_message(event.output_index.0);
            reply.add_late(&event.text.text()?);
        }
        "response.output_item.added" => {
            begin_item(&lenient::value(event.item), event.output_index.0, reply);
        }
        "response.output_item.done" => end_item(lenient::value(event.item), reply)?,
        // xAI calls the end `response.done`.
        "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
            end_response(&kind, event.response, reply)?;
        }
        "error" => {
            let error = failure::read(data);
            return Err(error.unwrap_or_else(|| ServerError::new(data)).into());
        }
        "response.output_text.annotation.added" => {
            let source = lenient::value(event.annotation);
            reply.add_sources(&json!([source]), "/url", "/title");
        }
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
            reply.think(&event.delta.text()?);
        }
        // The next part is a paragraph of its own.
        "response.reasoning_text.done" | "response.reasoning_summary_text.done" => {
            reply.think("\n");
        }
        kind if kind.starts_with("response.reasoning") => reply.think(""),
        kind if kind.starts_with("response.web_search_call") => reply.search(),
        _ => {}
    }
    Ok(())
}

/// Reads the beginning of an item in a stream.
fn begin_item(item: &Value, index: Option<u64>, reply: &mut Reply) {
    match item["type"].as_str() {
        Some(MESSAGE) => reply.begin_message(index, is_commentary(item)),
        Some("reasoning") => reply.think(""),
        Some(WEB_SEARCH_CALL) => reply.search(),
        _ => {}
    }
}

/// Reads a complete item of a stream.
fn end_item(item: Value, reply: &mut Reply) -> Result<(), ReplyError> {
    if item["type"] == MESSAGE {
        reply.end_message(is_commentary(&item));
    }
    if !item.is_null() {
        read_search(&item, reply);
        take_item(item, reply)?;
    }
    Ok(())
}

/// Reads the end of a stream.
fn end_response(
    kind: &str,
    response: Option<&RawValue>,
    reply: &mut Reply,
) -> Result<(), ReplyError> {
    if let Some(response) = response {
        read_response(response.get(), reply)?;
    }
    // The response may be missing, or may not say how it ended.
    match kind {
        "response.incomplete" => reply.finish("incomplete"),
        "response.failed" => reply.finish("failed"),
        _ => {}
    }
    let items = reply.echo();
    add_messages(&items, reply)?;
    read_calls(reply);
    reply.end();
    Ok(())
}

fn read_whole(body: &str, reply: &mut Reply) -> Result<(), ReplyError> {
    read_response(body, reply)?;
    read_calls(reply);
    reply.end();
    Ok(())
}

fn read_response(json: &str, reply: &mut Reply) -> Result<(), ReplyError> {
    let response = Value::Object(surrogates::lossy(json)?);
    reply.add_usage(usage_of(&response["usage"]));
    failure::check(json, true)?;
    let items = elements(&response["output"]);
    let keeps_items = reply.echo_mut().is_empty();
    if keeps_items {
        read_thoughts(items, reply)?;
    }
    add_messages(items, reply)?;
    for item in items {
        read_search(item, reply);
        if keeps_items {
            take_item(item.clone(), reply)?;
        }
    }
    let status = response["status"].as_str();
    let reason = response["incomplete_details"]["reason"].as_str();
    let word = reason.filter(|reason| !reason.is_empty()).or(status);
    reply.finish(word.unwrap_or_default());
    Ok(())
}

/// Reads the reasoning among these items, each part as a paragraph of its own.
fn read_thoughts(items: &[Value], reply: &mut Reply) -> Result<(), ReplyError> {
    for item in items {
        if item["type"] != "reasoning" {
            continue;
        }
        let parts = elements(&item["summary"])
            .iter()
            .chain(elements(&item["content"]));
        for part in parts {
            reply.think(&lenient::text_in(&part["text"])?);
            reply.think("\n");
        }
    }
    Ok(())
}

/// Adds the messages among these items, unless they have come in pieces, as they do in most streams.
fn add_messages(items: &[Value], reply: &mut Reply) -> Result<(), ReplyError> {
    let has_answer = reply.has_begun();
    let has_commentary = reply.has_commentary();
    for item in items {
        let is_commentary = is_commentary(item);
        let has_come = if is_commentary {
            has_commentary
        } else {
            has_answer
        };
        if item["type"] != MESSAGE || has_come {
            continue;
        }
        reply.begin_message(None, is_commentary);
        let text = lenient::text_in(&item["content"])?;
        reply.add(&json!(text).to_string())?;
        for part in elements(&item["content"]) {
            let refusal = lenient::text_in(&part["refusal"])?;
            reply.refuse(&json!(refusal).to_string())?;
        }
    }
    Ok(())
}

/// Whether a message is a comment of the model before its answer.
fn is_commentary(message: &Value) -> bool {
    message["phase"] == "commentary"
}

/// Reads the sources of an item, and whether it is a search.
fn read_search(item: &Value, reply: &mut Reply) {
    for part in elements(&item["content"]) {
        reply.add_sources(&part["annotations"], "/url", "/title");
    }
    if item["type"] == WEB_SEARCH_CALL || item["type"] == CUSTOM_CALL {
        reply.search();
    }
}

/// Notes a search that failed, and keeps the item, to send it back with the results of the calls. Reasoning that is not
/// encrypted is not kept, because the API would look for it in its store.
fn take_item(item: Value, reply: &mut Reply) -> Result<(), ReplyError> {
    if item["type"] == WEB_SEARCH_CALL && item["status"] == "failed" {
        reply.fail_search(false, None);
    }
    if item["type"] != "reasoning" || item["encrypted_content"].is_string() {
        let is_call = item["type"] == FUNCTION_CALL && reply.offers_tools();
        reply.keep(item, is_call)?;
    }
    Ok(())
}

/// Finds the calls among the items of a complete response. If the output of a call is there, the provider has run it. It has
/// also run a custom call that stands before a message: xAI sends these without their outputs.
fn read_calls(reply: &mut Reply) {
    let mut items = std::mem::take(reply.echo_mut());
    let mut last_message = 0;
    let mut ids_with_output = Vec::new();
    for (at, item) in items.values().enumerate() {
        let kind = text_field(item, "type");
        if kind == MESSAGE {
            last_message = at;
        } else if kind.ends_with("_output") {
            ids_with_output.extend(item.get("call_id").cloned());
        }
    }
    for (at, item) in items.values_mut().enumerate() {
        let kind = text_field(item, "type");
        let is_custom_and_over = kind == CUSTOM_CALL && at < last_message;
        let has_run = is_custom_and_over || ids_with_output.contains(&item["call_id"]);
        if has_run || !CLIENT_CALLS.contains(&kind) {
            continue;
        }
        if kind == FUNCTION_CALL && reply.offers_tools() {
            add_call(item, reply);
        } else {
            reply.finish(kind);
        }
    }
    *reply.echo_mut() = items;
}

fn add_call(item: &mut Value, reply: &mut Reply) {
    let mut id = text_field(item, "call_id");
    // Some servers send only the id of the item.
    if id.is_empty() {
        id = text_field(item, "id");
    }
    let arguments = lenient::arguments(&item["arguments"]);
    let call = reply.add_call(id, text_field(item, "name"), &arguments);
    item["call_id"] = call.id.as_str().into();
}

#[cfg(test)]
mod tests {
    use super::super::dialect::tests::{calls_of, replied, replied_with_tools};
    use super::super::finish::Finish;
    use super::*;

    #[test]
    fn what_a_stream_has_said_is_not_said_again_at_its_end() {
        let events = |word: &str| match word {
            "end" => {
                r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}"#
            }
            "done" => r#"{"type":"response.output_text.done","text":"Hi"}"#,
            "delta" => r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
            "item" => {
                r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#
            }
            _ => r#"{"type":"response.completed","response":{"status":"completed"}}"#,
        };
        let table = "delta end | delta done item end | done item end | end | delta done item bare | done item bare | done bare | item bare";
        for words in table.split(" | ") {
            let events: Vec<&str> = words.split(' ').map(events).collect();
            let mut reply = replied(&DIALECT, &events);
            assert_eq!(reply.take_text(), "Hi", "{words}");
            let expected = Finish::Complete("completed".into());
            assert_eq!(reply.finished(), Some(&expected), "{words}");
            assert!(reply.ended());
        }
    }

    fn call(id: &str, arguments: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": "db__get", "arguments": arguments})
    }

    fn result(id: &str, output: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": output})
    }

    /// Items that a model sends, and those that q sends back.
    fn items() -> (Value, Value) {
        let reasoning =
            json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "s"});
        let bare = json!({"type": "reasoning", "id": "r2", "summary": []});
        let message = json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}], "phase": "p"});
        let (one, two) = (call("x", "{\"n\":1}"), call("y", ""));
        (
            json!([reasoning, bare, message, one, two]),
            json!([reasoning, message, one, two]),
        )
    }

    #[test]
    fn items_are_kept_and_calls_taken_out_of_them() {
        let (items, kept) = items();
        let of_type = |kind: &str, item: &Value| json!({"type": kind, "item": item}).to_string();
        let list = items.as_array().expect("a list");
        let mut streamed =
            vec![json!({"type": "response.output_text.delta", "delta": "Hi"}).to_string()];
        for item in list {
            streamed.push(of_type("response.output_item.added", item));
            streamed
                .push(r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#.into());
            streamed.push(of_type("response.output_item.done", item));
        }
        let mut again = items.clone();
        again[0]["encrypted_content"] = "another".into();
        let end = |output: &Value| {
            json!({"type": "response.completed", "response": {"status": "completed", "output": output}}).to_string()
        };
        let with_end = |output: &Value| {
            streamed
                .iter()
                .cloned()
                .chain([end(output)])
                .collect::<Vec<String>>()
        };
        for (case, events) in [
            ("items by themselves", with_end(&json!([]))),
            ("items twice", with_end(&again)),
            ("items at the end only", vec![end(&items)]),
        ] {
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            let mut reply = replied_with_tools(&DIALECT, &events);
            assert_eq!(reply.take_text(), "Hi", "{case}");
            let expected = [("x", "db__get", "{\"n\":1}"), ("y", "db__get", "{}")];
            assert_eq!(calls_of(&reply), expected, "{case}");
            let found = reply.finished();
            assert_eq!(found, Some(&Finish::Complete("completed".into())), "{case}");
            assert_eq!(Value::from(reply.echo()), kept, "{case}");
        }
        let begun: Vec<&str> = streamed.iter().map(String::as_str).collect();
        assert_eq!(replied_with_tools(&DIALECT, &begun).finished(), None);
    }

    #[test]
    fn messages_are_paragraphs_and_a_custom_call_is_none_of_ours() {
        let message = |text: &str| json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
        let own = json!({"type": "function_call", "id": "fc", "name": "a", "arguments": "{}"});
        for between in [
            // Without a call_id, as some servers have it.
            json!({"type": "custom_tool_call", "id": "c", "name": "x_keyword_search"}),
            json!({"type": "web_search_call", "id": "ws"}),
            json!({"type": "reasoning", "id": "rs"}),
        ] {
            let output = json!([message("I look."), between, message("Found"), own]);
            let mut reply = Reply::new(true);
            read_whole(
                &json!({"status": "completed", "output": output}).to_string(),
                &mut reply,
            )
            .expect("an answer");
            assert_eq!(reply.take_text(), "I look.\n\nFound", "{between}");
            assert_eq!(calls_of(&reply), [("fc", "a", "{}")]);
        }
    }

    #[test]
    fn a_missing_id_is_made_up_or_the_items_own() {
        let made_up = json!({"type": "function_call", "name": "a", "arguments": {"n": 1}});
        let own =
            json!({"type": "function_call", "id": "fc", "name": "a", "arguments": "{\"n\":1}"});
        for (item, id) in [(made_up, ""), (own, "fc")] {
            let done = json!({"type": "response.output_item.done", "item": item}).to_string();
            let reply = replied_with_tools(&DIALECT, &[&done, r#"{"type":"response.completed"}"#]);
            assert_eq!(calls_of(&reply), [(id, "a", "{\"n\":1}")], "{item}");
            assert_eq!(reply.echo()[0]["call_id"], *reply.calls()[0].id, "{item}");
        }
    }

    #[test]
    fn calls_that_were_not_offered_are_an_odd_end() {
        for kind in CLIENT_CALLS {
            let item = json!({"type": kind, "id": "i", "call_id": "x", "name": "a"});
            let output = |id: &str| json!({"type": "any_call_output", "call_id": id});
            let end = |items: Value| json!({"status": "completed", "output": items}).to_string();
            for (items, is_odd) in [
                (json!([item]), true),
                (json!([item, output("y")]), true),
                (json!([item, output("x")]), false),
                (json!([{"type": "web_search_call", "call_id": "x"}]), false),
            ] {
                let mut reply = Reply::default();
                read_whole(&end(items.clone()), &mut reply).expect("a whole answer");
                let finish = if is_odd {
                    Finish::Other((*kind).to_owned())
                } else {
                    Finish::Complete("completed".into())
                };
                let found = (reply.calls(), reply.finished());
                assert_eq!(found, (&[][..], Some(&finish)), "{items}");
            }
        }
    }

    #[test]
    fn a_call_that_the_provider_has_run_is_sent_back_and_not_run_again() {
        let (one, two, output) = (call("x", "{}"), call("y", "{}"), result("x", "found"));
        let custom = json!({"type": "custom_tool_call", "call_id": "z", "name": "a", "input": ""});
        let called = [("y", "db__get", "{}")];
        let complete = Finish::Complete("completed".into());
        let odd = Finish::Other("custom_tool_call".into());
        for (items, calls, finish) in [
            (json!([one, output, two]), &called[..], &complete),
            (json!([one, output]), &[], &complete),
            (json!([one, output, custom]), &[], &odd),
        ] {
            let mut reply = Reply::new(true);
            let body = json!({"status": "completed", "output": items}).to_string();
            read_whole(&body, &mut reply).expect("a whole answer");
            assert_eq!(calls_of(&reply), calls, "{items}");
            assert_eq!(reply.finished(), Some(finish), "{items}");
            assert_eq!(Value::from(reply.echo()), items);
        }
    }
}
