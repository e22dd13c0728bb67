//! Makes requests for OpenAI's Responses API, which other servers have as well, and reads the replies (pure).

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::attachment;
use super::calls;
use super::counts::Counts;
use super::dialect::Dialect;
use super::failure::{self, ReplyResult};
use super::lenient::{Content, Index, Json, Object, Text, text_field};
use super::openai;
use super::reply::{
    Added, CallItem, CallRef, CompleteMessage, Reply, TextPlace, call_pairs, repeated_call_pairs,
};
use super::request::{self, AnswerForm, OptionalField, Prompt, SHAPE_NAME};
use super::tool_schema::ToolSchemas;
use crate::message::{Attachment, Message, Role, Source, Tool, ToolCall, ToolRun};

pub static DIALECT: Dialect = Dialect {
    name: "responses",
    chat: |prompt, _| ("/responses".to_owned(), body(prompt)),
    event: read_event,
    whole: read_whole,
    ends_with_done: false,
    optional_fields: &[
        (OptionalField::Effort, "/reasoning/effort"),
        (OptionalField::Form, "/text/format"),
        (OptionalField::Store, "/store"),
        (OptionalField::Encrypted, "/include"),
        (OptionalField::System, "/instructions"),
        (OptionalField::ToolChoice, "/tool_choice"),
    ],
    searches: true,
    tool_schemas: ToolSchemas::Any,
    ..openai::DIALECT
};

/// The type of an item that calls a tool of q.
const FUNCTION_CALL: &str = "function_call";

/// The type of an item with the output of such a call.
const CALL_OUTPUT: &str = "function_call_output";

/// The type of an item that searches the web.
const WEB_SEARCH_CALL: &str = "web_search_call";

/// The type of an item with reasoning.
const REASONING: &str = "reasoning";

/// The type of an item with text of the model.
const MESSAGE: &str = "message";

fn body(prompt: &Prompt) -> Value {
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

/// What an increment has. Nearly all events are increments, and reading no more of them makes long streams fast.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    delta: Content<'a>,
    output_index: Index,
    content_index: Index,
    error: Json<'a>,
}

impl Event<'_> {
    fn place(&self) -> TextPlace {
        TextPlace {
            message: self.output_index.0,
            part: self.content_index.0,
        }
    }
}

/// What the other events of a stream have, each of them a part of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EventDetails<'a> {
    /// A text that is finished.
    #[serde(borrow)]
    text: Text<'a>,
    /// Likewise a refusal.
    refusal: Text<'a>,
    /// A part of a message that is finished.
    part: Json<'a>,
    /// All arguments of a call.
    arguments: Text<'a>,
    /// The item that arguments belong to.
    item_id: Text<'a>,
    item: Json<'a>,
    response: Json<'a>,
    annotation: Json<'a>,
}

impl EventDetails<'_> {
    fn call_ref(&self, index: Option<u64>) -> CallRef<'_> {
        CallRef {
            index,
            item_id: &self.item_id,
        }
    }
}

/// A complete response, or what is known of it at its end.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WholeResponse<'a> {
    #[serde(borrow)]
    incomplete_details: Object<IncompleteDetails<'a>>,
    status: Text<'a>,
    usage: Json<'a>,
    error: Json<'a>,
    output: Json<'a>,
    /// All text of the answer. The libraries of OpenAI add it, and some servers send nothing else.
    output_text: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct IncompleteDetails<'a> {
    #[serde(borrow)]
    reason: Text<'a>,
}

/// An item of any type, as far as q reads it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    phase: Text<'a>,
    status: Text<'a>,
    content: Json<'a>,
    /// Of a call.
    arguments: Json<'a>,
    call_id: Text<'a>,
    id: Text<'a>,
    name: Text<'a>,
    /// Of a part of a message.
    text: Text<'a>,
    /// A list of parts with reasoning.
    summary: Json<'a>,
    encrypted_content: Json<'a>,
}

/// A part of reasoning, whatever its type.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReasoningPart<'a> {
    #[serde(borrow)]
    text: Content<'a>,
}

impl Item<'_> {
    /// Whether a message is a comment of the model before its answer.
    fn is_commentary(&self) -> bool {
        &*self.phase == "commentary"
    }

    fn call(&self) -> CallItem {
        CallItem {
            call_id: self.call_id.to_string(),
            id: self.id.to_string(),
            name: self.name.to_string(),
            arguments: self.arguments.as_text(),
        }
    }
}

fn read_event(data: &str, reply: &mut Reply) -> ReplyResult {
    let event: Event = serde_json::from_str(data)?;
    let kind = &*event.kind;
    if !event.error.is_null() || !kind.starts_with("response.") {
        failure::check(data)?;
    }
    let delta = &*event.delta.text;
    match kind {
        "response.output_text.delta" => reply.add_increment(event.place(), delta),
        "response.refusal.delta" => reply.refuse_further(event.place(), delta),
        "response.function_call_arguments.delta" => {
            let details: EventDetails = serde_json::from_str(data)?;
            let of = details.call_ref(event.output_index.0);
            reply.reading.begun_calls.add(&of, delta);
        }
        kind if kind.starts_with("response.reasoning") => {
            reply.think(delta);
            reply.reading.has_streamed_reasoning |= !delta.is_empty();
            // The next part is a paragraph of its own.
            if kind.ends_with("text.done") {
                reply.think("\n");
            }
        }
        kind if kind.starts_with("response.web_search_call") => reply.activity.search(),
        _ => read_details(kind, event.place(), serde_json::from_str(data)?, reply)?,
    }
    Ok(())
}

/// Reads an event that is no increment.
fn read_details(
    kind: &str,
    place: TextPlace,
    event: EventDetails,
    reply: &mut Reply,
) -> ReplyResult {
    let index = place.message;
    match kind {
        "response.output_text.done" => reply.finish_text(place, &event.text),
        "response.refusal.done" => reply.finish_refusal(&event.refusal),
        "response.output_item.added" => begin_item(event.item, index, reply)?,
        "response.function_call_arguments.done" => {
            let calls = &mut reply.reading.begun_calls;
            calls.complete(&event.call_ref(index), &event.arguments);
        }
        "response.content_part.done" => {
            let part: Item = event.part.object()?;
            if &*part.kind == "output_text" {
                reply.finish_text(place, &part.text);
            }
        }
        "response.output_item.done" => read_done_item(event.item, index, reply)?,
        // xAI calls the end `response.done`.
        "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
            let word = kind.trim_start_matches("response.");
            read_response(event.response.object()?, word, reply)?;
            reply.close();
        }
        "response.output_text.annotation.added" => {
            let pages = json!([event.annotation.value()]);
            reply.answer.add_sources(Source::all_in(&pages));
        }
        _ => {}
    }
    Ok(())
}

/// Reads an item that has begun.
fn begin_item(json: Json, index: Option<u64>, reply: &mut Reply) -> ReplyResult {
    let item: Item = json.object()?;
    match &*item.kind {
        FUNCTION_CALL => {
            let calls = &mut reply.reading.begun_calls;
            calls.begin(index, item.call(), json.get());
        }
        MESSAGE => reply.answer.begin_message(item.is_commentary()),
        REASONING => reply.think(""),
        WEB_SEARCH_CALL => reply.activity.search(),
        _ => {}
    }
    Ok(())
}

/// Reads an item that is complete. If it is a message, its text may have arrived in increments.
fn read_done_item(json: Json, index: Option<u64>, reply: &mut Reply) -> ReplyResult {
    let item: Item = json.object()?;
    if &*item.kind == MESSAGE {
        let content = item.content.content()?;
        reply.finish_message(index, &content.text, item.is_commentary());
        finish_refusal(&content, reply);
        reply.end_message();
    }
    if &*item.kind == FUNCTION_CALL {
        reply.reading.begun_calls.end(index, &item.call());
    }
    read_item(json, &item, reply)
}

fn read_whole(body: &str, reply: &mut Reply) -> ReplyResult {
    let response: Object<WholeResponse> = serde_json::from_str(body)?;
    read_response(response.0.unwrap_or_default(), "", reply)
}

/// Reads a complete response. `word` says how it ended, if it does not say so itself.
fn read_response(response: WholeResponse, word: &str, reply: &mut Reply) -> ReplyResult {
    let output = response.output.entries()?;
    let details = response.incomplete_details.0.unwrap_or_default();
    let words = [&*details.reason, &*response.status, word];
    let given = words.into_iter().find(|text| !text.is_empty());
    reply.end.read(given.unwrap_or_default());
    reply.add_usage(Counts::read(response.usage).usage());
    failure::check_field(&response.error.value())?;
    read_items(&output, reply)?;
    let messages = read_messages(&output, reply)?;
    reply.add_held_texts(None);
    if !reply.answer.has_text() && !response.output_text.is_empty() {
        reply.add_whole_message(&response.output_text, false);
    }
    reply.add_missing_messages(&messages);
    read_calls(reply);
    Ok(())
}

/// Reads the items of a complete response: all if none has come before, else the calls that have not. Then reads the calls that
/// have only begun.
fn read_items(output: &[Json], reply: &mut Reply) -> ReplyResult {
    let kept = kept_calls(reply);
    let is_first = reply.turn.items.is_empty();
    let ids_with_output = ids_with_output(output)?;
    let mut calls = Vec::new();
    for json in output {
        let item: Item = json.object()?;
        if is_first {
            if !reply.reading.has_streamed_reasoning {
                read_reasoning(&item, reply)?;
            }
            read_item(*json, &item, reply)?;
        } else {
            // Some sources have their titles only here.
            read_sources(&item, reply)?;
        }
        // Otherwise the provider has run it.
        if &*item.kind == FUNCTION_CALL && !ids_with_output.contains(&*item.call_id) {
            calls.push((*json, item));
        }
    }
    let found = Vec::from_iter(calls.iter().map(|(_, item)| item.call()));
    let pairs = repeated_call_pairs(&found, &kept);
    // The calls that have come with this response alone.
    let mut new = Vec::new();
    for (((json, item), call), pair) in calls.iter().zip(found).zip(pairs) {
        let is_complete = pair.is_some_and(|place| !kept[place].is_completed_by(&call));
        if !is_complete && !is_first {
            read_item(*json, item, reply)?;
        }
        if pair.is_none() {
            new.push(call);
        }
    }
    read_begun_calls(&kept, &new, &ids_with_output, reply)
}

/// Reads the calls that have only begun, unless they are among those that have come complete. A call that is `kept` has had an item
/// of its own, so that only its id tells that it has begun twice.
fn read_begun_calls(
    kept: &[CallItem],
    new: &[CallItem],
    ids_with_output: &HashSet<String>,
    reply: &mut Reply,
) -> ReplyResult {
    let begun = reply.reading.begun_calls.take();
    let calls = Vec::from_iter(begun.iter().map(CallItem::of));
    let pairs = call_pairs(&calls, new);
    for ((item, call), pair) in begun.iter().zip(&calls).zip(pairs) {
        // Some servers give all calls one id.
        let is_again =
            |known: &CallItem| known.has_ids_of(call) == Some(true) && known.has_all_of(call);
        let has_run = ids_with_output.contains(&call.call_id);
        if pair.is_none() && !has_run && !kept.iter().any(is_again) {
            let json = item.to_string();
            let json: Json = serde_json::from_str(&json)?;
            read_item(json, &json.object()?, reply)?;
        }
    }
    Ok(())
}

/// Returns the calls whose items are kept.
fn kept_calls(reply: &Reply) -> Vec<CallItem> {
    let items = reply.turn.items.values();
    let calls = items.filter(|item| item["type"] == FUNCTION_CALL);
    calls.map(CallItem::of).collect()
}

/// Returns the ids of the calls whose output is among these items.
fn ids_with_output(output: &[Json]) -> ReplyResult<HashSet<String>> {
    let mut ids = HashSet::new();
    for json in output {
        let item: Item = json.object()?;
        if &*item.kind == CALL_OUTPUT {
            ids.insert(item.call_id.to_string());
        }
    }
    Ok(ids)
}

/// Adds what is missing of the messages of a complete response. Returns those that may have arrived in pieces.
fn read_messages(output: &[Json], reply: &mut Reply) -> ReplyResult<Vec<CompleteMessage>> {
    let mut messages = Vec::new();
    if reply.answer.has_begun() {
        messages = complete_messages(output, reply)?;
    } else {
        let has_commentary = reply.answer.has_text();
        for json in output {
            let item: Item = json.object()?;
            if !(has_commentary && item.is_commentary()) {
                add_message(&item, reply)?;
            }
        }
    }
    // Its items can have come without it.
    if !reply.answer.has_text() {
        for kept in reply.turn.echo().items() {
            let json = kept.to_string();
            let item: Object<Item> = serde_json::from_str(&json)?;
            add_message(&item.0.unwrap_or_default(), reply)?;
        }
    }
    Ok(messages)
}

/// Reads the parts of an item with reasoning, each as a paragraph of its own.
fn read_reasoning(item: &Item, reply: &mut Reply) -> ReplyResult {
    if &*item.kind != REASONING {
        return Ok(());
    }
    for parts in [item.summary, item.content] {
        for part in parts.list::<Object<ReasoningPart>>()? {
            reply.think(&part.0.unwrap_or_default().text.text);
            reply.think("\n");
        }
    }
    Ok(())
}

/// Adds the text of an item that is a message. In most streams it has arrived in pieces before.
fn add_message(item: &Item, reply: &mut Reply) -> ReplyResult {
    if &*item.kind == MESSAGE {
        let content = item.content.content()?;
        reply.add_whole_message(&content.text, item.is_commentary());
        finish_refusal(&content, reply);
    }
    Ok(())
}

/// Adds what is missing of the messages of a complete response, if they have arrived in pieces. Returns the messages.
fn complete_messages(output: &[Json], reply: &mut Reply) -> ReplyResult<Vec<CompleteMessage>> {
    let mut contents = Vec::new();
    let mut messages = Vec::new();
    for (index, json) in (0..).zip(output) {
        let item: Item = json.object()?;
        if &*item.kind == MESSAGE {
            let content = item.content.content()?;
            messages.push(CompleteMessage {
                text: content.text.to_string(),
                is_commentary: item.is_commentary(),
            });
            contents.push((index, content));
        }
    }
    let is_alone = contents.len() == 1;
    for (index, content) in contents {
        let index = (!is_alone).then_some(index);
        reply.complete_message(index, &content.text);
        finish_refusal(&content, reply);
    }
    Ok(messages)
}

/// Adds what is missing of the refusal in a message.
fn finish_refusal(content: &Content, reply: &mut Reply) {
    if let Some(rest) = &content.rest {
        reply.finish_refusal(&rest.refusal);
    }
}

/// Reads the sources of an item, and keeps it, to send it back with the results of the calls. Reasoning that is not encrypted
/// is not kept, because the API would look for it in its store.
fn read_item(json: Json, item: &Item, reply: &mut Reply) -> ReplyResult {
    if &*item.kind == WEB_SEARCH_CALL && &*item.status == "failed" {
        reply.fail_search("");
    }
    read_sources(item, reply)?;
    let is_secret = item.encrypted_content.is_text();
    if json.is_object() && (&*item.kind != REASONING || is_secret) {
        let mut text = String::new();
        if item.arguments.is_too_heavy() {
            text = json!(item.arguments.as_text()).to_string();
        }
        reply
            .turn
            .keep_call(None, json.get(), item.arguments, &text);
    }
    // A call for which there is no room cannot run.
    reply.turn.has_called |= &*item.kind == FUNCTION_CALL && reply.turn.is_too_long();
    Ok(())
}

/// Reads the sources of an item.
fn read_sources(item: &Item, reply: &mut Reply) -> ReplyResult {
    if let Some(rest) = item.content.content()?.rest {
        for pages in rest.annotations {
            reply.answer.add_sources(pages.sources());
        }
    }
    Ok(())
}

/// Finds the calls among the items of a complete response. If the output of a call is there, the provider has run it. A call
/// of another kind at the end waits for its result if it has an id for one, which a search of the provider's has not.
fn read_calls(reply: &mut Reply) {
    let items = std::mem::take(&mut reply.turn.items);
    if let Some(last) = items.values().next_back()
        && last["call_id"].is_string()
    {
        let kind = text_field(last, "type");
        reply.turn.has_called |= kind.ends_with("_call") && kind != FUNCTION_CALL;
    }
    let mut ids_with_output = Vec::new();
    for item in items.values() {
        if item["type"] == CALL_OUTPUT {
            ids_with_output.push(item["call_id"].clone());
        }
    }
    for (place, mut item) in items {
        let has_run = ids_with_output.contains(&item["call_id"]);
        let is_call = item["type"] == FUNCTION_CALL && !has_run;
        let known = if is_call {
            add_call(&mut item, reply)
        } else {
            None
        };
        match known {
            // It was sent again.
            Some(Added::Again(_)) => {}
            Some(Added::Completed(known)) => complete_item(&item, known, reply),
            Some(Added::New(_)) | None => {
                reply.turn.items.insert(place, item);
            }
        }
    }
}

/// Adds the call of an item. Returns what became of it. Servers parse the arguments that they get back, so these become the text
/// of an object.
fn add_call(item: &mut Value, reply: &mut Reply) -> Option<Added> {
    let found = CallItem::of(item);
    let call = ToolCall {
        id: found.own_id().to_owned(),
        name: found.name,
        arguments: found.arguments.clone(),
        api_data: Value::Null,
    };
    let added = reply.add_whole_call(call)?;
    let known = &reply.turn.calls()[added.place()];
    item["call_id"] = known.id.as_str().into();
    let is_object = calls::text(&found.arguments) == found.arguments;
    item["arguments"] = if is_object {
        found.arguments.into()
    } else {
        calls::text(&known.arguments).into()
    };
    Some(added)
}

/// Completes the item of the call at this place, whose arguments a later `item` has.
fn complete_item(item: &Value, place: usize, reply: &mut Reply) {
    let arguments = calls::text(&reply.turn.calls()[place].arguments).into();
    let is_same = |known: &&mut Value| {
        known["type"] == FUNCTION_CALL
            && known["call_id"] == item["call_id"]
            && known["name"] == item["name"]
    };
    if let Some(known) = reply.turn.items.values_mut().rev().find(is_same) {
        known["arguments"] = arguments;
    }
}

#[cfg(test)]
mod tests {
    use super::super::dialect::tests::{calls_of, replied, replied_with_tools};
    use super::super::finish::{Finish, FinishKind};
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn text_of_a_stream_is_not_repeated_at_its_end() {
        let end = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}"#;
        let done = r#"{"type":"response.output_text.done","text":"Hi"}"#;
        let delta = r#"{"type":"response.output_text.delta","delta":"Hi"}"#;
        let item = r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#;
        let bare = r#"{"type":"response.completed","response":{"status":"completed"}}"#;
        for events in [
            &[delta, end][..],
            &[delta, done, item, end],
            &[done, item, end],
            &[end],
            &[delta, done, item, bare],
            &[done, item, bare],
            &[item, bare],
            &[done, bare],
        ] {
            let mut reply = replied(&DIALECT, events);
            assert_eq!(
                (reply.take_piece(false).text.as_str(), reply.end.finish()),
                ("Hi", Some(&Finish::new(FinishKind::Complete, "completed"))),
                "{events:?}"
            );
            assert!(reply.end.is_over());
        }
    }

    /// Returns an event in short: `d0.1 text` is an increment of the text of the message 0 with the index 1, `t0.1 text` is that
    /// text when it is finished, `i0 text` the message, and `e one/two` the end with messages, or `e` without any. After `^` in a
    /// message comes a refusal, and `~` begins commentary.
    fn event(short: &str) -> String {
        let (place, text) = short.split_once(' ').unwrap_or((short, ""));
        let (kind, place) = place.split_at(1);
        let mut numbers = place.split('.').map(|number| number.parse::<u64>().ok());
        let (message, part) = (numbers.next().flatten(), numbers.next().flatten());
        let item = |text: &str| {
            let phase = if text.starts_with('~') {
                "commentary"
            } else {
                "final_answer"
            };
            let text = text.trim_start_matches('~');
            let (text, refusal) = text.split_once('^').unwrap_or((text, ""));
            let mut content = vec![json!({"type": "output_text", "text": text})];
            if !refusal.is_empty() {
                content.push(json!({"type": "refusal", "refusal": refusal}));
            }
            json!({"type": "message", "phase": phase, "content": content})
        };
        let mut event = json!({"output_index": message, "content_index": part});
        let kind = match kind {
            "d" => {
                event["delta"] = text.into();
                "output_text.delta"
            }
            "r" => {
                event["delta"] = text.into();
                "refusal.delta"
            }
            "t" => {
                event["text"] = text.into();
                "output_text.done"
            }
            "f" => {
                event["refusal"] = text.into();
                "refusal.done"
            }
            "i" => {
                event["item"] = item(text);
                "output_item.done"
            }
            _ => {
                let texts = text.split('/').filter(|text| !text.is_empty());
                let output = Vec::from_iter(texts.map(item));
                event["response"] = json!({"status": "completed", "output": output});
                "completed"
            }
        };
        event["type"] = format!("response.{kind}").into();
        event.to_string()
    }

    #[test]
    fn text_that_was_not_streamed_is_added_where_its_place_is_known_and_never_lost_without_a_note()
    {
        // The events; the answer, in which a bar begins a paragraph; whether it lacks text.
        let table = r##"
            d0.0 One. ; t0.0 One. ; e One./Two. | One.│Two. | no
            d0.0 One. ; e Zero./One. | One. | yes
            d0.0 One. ; e One./Two./Three. | One.│Two.│Three. | no
            d0.0 One. ; e ~Hm/One./~Hm | One. | no
            d0.0 One. ; d1.0 Tw ; e One./Two./Three. | One.Two.│Three. | no
            d0.0 Yesterday ; i0 Yesterday ; e Yesterday/Yes | Yesterday│Yes | no
            d1.0 Two. ; d0.0 One. ; e One./Two. | Two.One. | no
            d0.0 Be ; d1.0 Li ; d0.0 cause ; d1.0 ght ; e Because/Light | BeLicauseght | no
            d0.0 One ; e one | One | no
            d0.0 One. ; i0 One. ; i0 Two. ; e One./Two. | One.│Two. | no
            d0.0 One. ; i0 One. ; i0 Two. ; e | One.│Two. | no
            d0.0 One. ; i0 One. ; i0 One. ; e One. | One. | no
            d0.0 One. ; d1.0 Two. ; i0 One. ; i1 Two. ; e | One.Two. | no
            i0 One. ; i1 Two. ; e One./Two. | One.│Two. | no
            i0 One. ; i1 Two. ; e One./Two./Three. | One.│Two.│Three. | no
            t0.0 One. ; t1.0 Two. ; e One./Two./Three. | One.│Two.│Three. | no
            d0.0 Let_me_think. ; e 42. | Let_me_think. | yes
            d0.0 Let_me_think. ; d0.1 _No: ; e “let_me_think”_no | Let_me_think._No: | no
            d0.0 One. ; i1 Two. ; e | One.│Two. | no
            d0.0 One. ; i1 Two. ; e One./Two. | One.│Two. | no
            d0.0 One. ; i1 Two. ; i0 One._ ; e | One.│Two. | no
            d0.0 One. ; i1 Two. ; d0.0 _More. ; i0 One._More. ; e | One.│Two._More. | no
            d0.0 One. ; i0 One. ; d1.0 Hm ; i2 One,_too. ; e | One.│Hm│One,_too. | no
            d0.0 One. ; d1.0 Two. ; i2 Three. ; i0 One. ; i1 Two. ; e | One.Two.│Three. | no
            d0.0 One._ ; i1 one ; e | One._ | no
            d0.0 One. ; d0.1 _Two. ; i1 One._Two. ; e | One._Two. | no
            d0.0 One. ; i1 👍 ; e | One.│👍 | no
            d0.0 One. ; i1 One._Two. ; e | One._Two. | no
            d0.0 One. ; i1 One._Two. ; i2 Three. ; e | One._Two.│Three. | no
            d0.0 Two. ; i1 One._Two. ; e | Two.│One._Two. | no
            d0.0 Hello ; t0.0 Hello ; t0.1 _world ; e | Hello_world | no
            d0.0 Hello ; t0.0 Hello ; t0.1 _world ; i0 Hello_world ; e Hello_world | Hello_world | no
            d0.0 Hello ; t0.1 Hello ; e Hello | Hello | no
            d0.0 Hello ; t0.1 Hello_world ; e Hello_world | Hello_world | no
            d0.0 Hello ; t1.0 Hello ; t1.1 _world ; e Hello_world | Hello_world | no
            d0.0 One. ; i0 One.^I_won't. ; e | One.I_won't. | no
            d0.0 One. ; i0 One.^I_won't. ; e One.^I_won't. | One.I_won't. | no
            d0.0 One. ; e One.^I_won't. | One.I_won't. | no
            r0.0 I_won ; f0.0 I_won't. ; e ^I_won't. | I_won't. | no
            f0.0 I_won't. ; i0 ^I_won't. ; e ^I_won't. | I_won't. | no
            d0.0 I_won't. ; e ^I_won't. | I_won't. | no
        "##;
        for [events, text, lacks] in rows(table) {
            let events = Vec::from_iter(events.replace('_', " ").split(" ; ").map(event));
            let events = Vec::from_iter(events.iter().map(String::as_str));
            let mut reply = replied(&DIALECT, &events);
            let found = reply.take_piece(false).text.replace("\n\n", "│");
            assert_eq!(found.replace(' ', "_"), text, "{events:?}");
            let has_refused = text.contains("won't");
            assert_eq!(reply.end.has_refused, has_refused, "{events:?}");
            let kind = reply.end.finish().map(|finish| finish.kind);
            assert_eq!(
                kind == Some(FinishKind::Other),
                lacks == "yes",
                "{events:?}"
            );
        }
    }

    /// Returns an item of a call in short: its ids, and its arguments if it has some. `x.f` are its own id and that of the item;
    /// either may be missing, and `-` stands for none. `=x` is the output of the call x.
    fn item_of_call(short: &str) -> Value {
        let (ids, arguments) = short.split_once(' ').unwrap_or((short, ""));
        if let Some(id) = ids.strip_prefix('=') {
            return result(id, "found");
        }
        let (own, of_item) = ids.split_once('.').unwrap_or((ids, ""));
        let mut item = json!({"type": FUNCTION_CALL, "name": "get", "arguments": arguments});
        for (field, id) in [("call_id", own), ("id", of_item)] {
            if !id.is_empty() && id != "-" {
                item[field] = id.into();
            }
        }
        item
    }

    /// Returns an event in short, with its index or `-`: `a0 x` begins the item of a call, `g0 text` is an increment of the
    /// arguments, `c0 text` has all of them, `e0 x text` is the complete item, `m0` a message, and `z` the end, perhaps with items
    /// between slashes.
    fn event_of_call(short: &str) -> String {
        let (place, rest) = short.split_once(' ').unwrap_or((short, ""));
        let (kind, index) = place.split_at(1);
        let (kind, field, value) = match kind {
            "a" => ("output_item.added", "item", item_of_call(rest)),
            "g" => ("function_call_arguments.delta", "delta", rest.into()),
            "c" => ("function_call_arguments.done", "arguments", rest.into()),
            "e" => ("output_item.done", "item", item_of_call(rest)),
            "m" => {
                let content = json!([{"type": "output_text", "text": "I look."}]);
                let message = json!({"type": "message", "content": content});
                ("output_item.done", "item", message)
            }
            _ => {
                let items = rest.split(" / ").filter(|item| !item.is_empty());
                let output = Vec::from_iter(items.map(item_of_call));
                let response = json!({"status": "completed", "output": output});
                ("completed", "response", response)
            }
        };
        let mut event = json!({"type": format!("response.{kind}"), field: value});
        if let Ok(index) = index.parse::<u64>() {
            event["output_index"] = index.into();
        }
        event.to_string()
    }

    #[test]
    fn calls_run_once_and_with_their_own_arguments_wherever_the_server_sends_them() {
        // The events, and the calls with id and arguments; a dash stands for an id that q makes up.
        let table = r##"
            increments | a0 x ; g0 {"n ; g0 ":1} ; z | x {"n":1}
            increments without an index | a- x ; g- {"n ; g- ":1} ; z | x {"n":1}
            increments that count otherwise | a0 x ; g5 {"n ; g5 ":1} ; z | x {"n":1}
            increments with an index, items without | a- x ; g0 {"n":1} ; a- y ; g1 {"n" ; g1 :2} ; z | x {"n":1} ; y {"n":2}
            increments by turns | a0 x ; a1 y ; g0 {"n ; g1 {"n ; g0 ":1} ; g1 ":2} ; z | x {"n":1} ; y {"n":2}
            all arguments | a0 x ; c0 {"n":1} ; z | x {"n":1}
            the item | a0 x ; g0 {"n":1} ; e0 x {"n":1} ; z | x {"n":1}
            the item without its beginning | e0 x {"n":1} ; z | x {"n":1}
            the item and the output | a0 x ; g0 {"n":1} ; e0 x {"n":1} ; z x { "n":1} | x {"n":1}
            the output | z x {"n":1} / y {"n":2} | x {"n":1} ; y {"n":2}
            the beginning and the output | a0 x ; z x {"n":1} | x {"n":1}
            a message, then an item with its own id alone | m0 ; a1 .f ; g1 {"n":1} ; z | f {"n":1}
            a message, then an item without an id | m0 ; a1 - ; g1 {"n":1} ; z | - {"n":1}
            a message, then the output | m0 ; z x {"n":1} | x {"n":1}
            a message, then an output that the provider has run | m0 ; z x {"n":1} / =x | -
            an item, and another in the output | a0 x ; e0 x {"n":1} ; z x {"n":1} / y {"n":2} | x {"n":1} ; y {"n":2}
            a beginning, and another in the output | m0 ; a1 x ; g1 {"n":1} ; z y {"n":2} | y {"n":2} ; x {"n":1}
            an item that has not begun, next to one that has | a0 x ; g0 {"n":1} ; e1 y {"n":2} ; z | y {"n":2} ; x {"n":1}
            the same without ids | a0 - ; g0 {"n":1} ; e1 - {"n":2} ; z | - {"n":2} ; - {"n":1}
            the same at one index | a0 x ; g0 {"n":1} ; e0 y {"n":2} ; z | y {"n":2} ; x {"n":1}
            the same without an index | a- x ; g- {"n":1} ; e- y {"n":2} ; z | y {"n":2} ; x {"n":1}
            all arguments of a call that has not begun | a0 x ; g0 {"n":1} ; c1 {"n":2} ; e1 y {"n":2} ; z | y {"n":2} ; x {"n":1}
            an item at another index | a0 x ; a1 y ; g1 {"n":2} ; e5 x {"n":1} ; z | x {"n":1} ; y {"n":2}
            items whose indexes are exchanged | a0 x ; a1 y ; e1 x {"n":1} ; e0 y {"n":2} ; z | x {"n":1} ; y {"n":2}
            one index for all | a0 x ; a0 y ; e0 x {"n":1} ; e0 y {"n":2} ; z | x {"n":1} ; y {"n":2}
            no index | a- x ; a- y ; e- x {"n":1} ; e- y {"n":2} ; z | x {"n":1} ; y {"n":2}
            no ids | a0 - ; g0 {"n":1} ; e0 - {"n":1} ; z - {"n":1} | - {"n":1}
            no ids and no indexes | a- - ; e- - {"n":1} ; z - {"n":1} | - {"n":1}
            an id of each event's own | a0 .e ; g0 {"n":1} ; e0 .f {"n":1} ; z | f {"n":1}
            the id of the call comes late | a0 .f ; g0 {"n":1} ; e0 x.f {"n":1} ; z x.f {"n":1} | x {"n":1}
            it comes with the output | a0 .f ; g0 {"n":1} ; e0 .f {"n":1} ; z x.f {"n":1} | f {"n":1}
            other ids at the end | a0 x.f ; g0 {"n":1} ; e0 x.f {"n":1} ; z y.g {"n":1} | x {"n":1}
            two calls with other ids at the end | e0 x {"n":1} ; e1 y {"n":1} ; z v {"n":1} / w {"n":1} | x {"n":1} ; y {"n":1}
            another id of the call, that of the item | e0 x.f {"n":1} ; z y.f {"n":1} | x {"n":1}
            the id of the item, then other ids | e0 .f {"n":1} ; z x.g {"n":1} | f {"n":1}
            other ids and other blanks | e0 x.f {"n":1} ; z y.g {"n": 1} | x {"n":1}
            no ids and other blanks | e0 - {"n":1} ; z - {"n": 1} | - {"n":1}
            a message, a beginning and other ids | m0 ; a1 x.f ; g1 {"n":1} ; z y.g {"n":1} | y {"n":1}
            the arguments come last | a0 x ; e0 x ; z x {"n":1} | x {"n":1}
            the item has no arguments | a0 x ; g0 {"n":1} ; e0 x ; z | x {"n":1}
            one id for all calls | a0 x ; g0 {"n":1} ; a1 x ; g1 {"n":2} ; z | x {"n":1} ; - {"n":2}
            one id for an item and for the output | e0 x {"n":1} ; z x {"n":1} / x {"n":2} | x {"n":1} ; - {"n":2}
            one id for all items | a0 x.f ; g0 {"n":1} ; a1 y.f ; g1 {"n":2} ; z | x {"n":1} ; y {"n":2}
        "##;
        for [case, events, expected] in rows(table) {
            let events = Vec::from_iter(events.split(" ; ").map(event_of_call));
            let events = Vec::from_iter(events.iter().map(String::as_str));
            let reply = replied_with_tools(&DIALECT, &events);
            let mut found = Vec::new();
            for (id, _, arguments) in calls_of(&reply) {
                let id = if id.is_empty() { "-" } else { id };
                found.push(format!("{id} {arguments}"));
            }
            assert_eq!(found.join(" ; "), expected, "{case}");
        }
    }

    #[test]
    fn arguments_that_are_sent_back_are_the_text_of_an_object() {
        for (arguments, sent) in [
            (json!("{ \"n\": 1 }"), "{ \"n\": 1 }"),
            (json!({"n": 1}), "{\"n\":1}"),
            (json!("\"{\\\"n\\\":1}\""), "{\"n\":1}"),
            (json!("{\"n"), "{}"),
            (json!("{\"n\":\"\n\"}"), "{}"),
            (json!("[1]"), "{}"),
            (json!(""), "{}"),
            (Value::Null, "{}"),
        ] {
            let item =
                json!({"type": FUNCTION_CALL, "call_id": "x", "name": "a", "arguments": arguments});
            let mut missing = item.clone();
            if arguments.is_null() {
                missing = json!({"type": FUNCTION_CALL, "call_id": "x", "name": "a"});
            }
            let mut begun = item.clone();
            begun["arguments"] = "".into();
            for items in [json!([item]), json!([missing]), json!([begun, item])] {
                let body = json!({"status": "completed", "output": items}).to_string();
                let mut reply = Reply::new(true);
                DIALECT.read_whole(&body, &mut reply).expect(&body);
                let echo = reply.turn.echo();
                let found = Vec::from_iter(echo.items().iter().map(|item| &item["arguments"]));
                assert_eq!(found, [sent], "{items}");
            }
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
            json!([reasoning, message, one, call("y", "{}")]),
        )
    }

    #[test]
    fn output_items_are_kept_for_the_echo_and_calls_are_read_from_them() {
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
            assert_eq!(reply.take_piece(false).text, "Hi", "{case}");
            assert_eq!(
                calls_of(&reply),
                [("x", "db__get", "{\"n\":1}"), ("y", "db__get", "{}")],
                "{case}"
            );
            assert_eq!(
                reply.end.finish(),
                Some(&Finish::new(FinishKind::Complete, "completed")),
                "{case}"
            );
            assert_eq!(Value::from(reply.turn.echo().items()), kept, "{case}");
        }
        let begun: Vec<&str> = streamed.iter().map(String::as_str).collect();
        assert_eq!(replied_with_tools(&DIALECT, &begun).end.finish(), None);
    }

    #[test]
    fn messages_become_paragraphs_and_a_custom_call_is_not_run() {
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
            DIALECT
                .read_whole(
                    &json!({"status": "completed", "output": output}).to_string(),
                    &mut reply,
                )
                .expect("an answer");
            assert_eq!(
                reply.take_piece(false).text,
                "I look.\n\nFound",
                "{between}"
            );
            assert_eq!(calls_of(&reply), [("fc", "a", "{}")]);
        }
    }

    #[test]
    fn a_call_without_an_id_gets_that_of_its_item_or_a_made_up_one() {
        let made_up = json!({"type": "function_call", "name": "a", "arguments": {"n": 1}});
        let own =
            json!({"type": "function_call", "id": "fc", "name": "a", "arguments": "{\"n\":1}"});
        for (item, id) in [(made_up, ""), (own, "fc")] {
            let done = json!({"type": "response.output_item.done", "item": item}).to_string();
            let reply = replied_with_tools(&DIALECT, &[&done, r#"{"type":"response.completed"}"#]);
            assert_eq!(calls_of(&reply), [(id, "a", "{\"n\":1}")], "{item}");
            assert_eq!(
                reply.turn.echo().items()[0]["call_id"],
                *reply.turn.calls()[0].id,
                "{item}"
            );
        }
    }

    #[test]
    fn a_call_without_a_name_is_dropped_however_often_the_reply_ends() {
        let item = json!({"type": "function_call", "id": "i", "call_id": "x", "arguments": "{}"});
        let end = json!({"type": "response.completed", "response": {"output": [item]}}).to_string();
        let reply = replied_with_tools(&DIALECT, &[&end, &end]);
        assert_eq!(calls_of(&reply), []);
    }

    #[test]
    fn an_unanswered_call_without_offered_tools_ends_with_tool_calls() {
        let item = json!({"type": "function_call", "id": "i", "call_id": "x", "name": "a"});
        let other = |kind: &str, id: &str| json!([{"type": kind, id: "x"}]);
        for (items, word) in [
            (json!([item]), "tool_calls"),
            (json!([item, result("y", "")]), "tool_calls"),
            (json!([item, result("x", "")]), "completed"),
            (other("shell_call", "call_id"), "tool_calls"),
            (other("image_generation_call", "id"), "completed"),
        ] {
            let mut reply = Reply::default();
            let body = json!({"status": "completed", "output": items}).to_string();
            DIALECT.read_whole(&body, &mut reply).expect(&body);
            let found = reply.end.finish().map(|finish| &*finish.word);
            assert_eq!(
                (reply.turn.calls(), found),
                (&[][..], Some(word)),
                "{items}"
            );
        }
    }

    #[test]
    fn a_call_that_the_provider_has_run_is_sent_back_and_not_run_again() {
        let (one, two, output) = (call("x", "{}"), call("y", "{}"), result("x", "found"));
        let custom = json!({"type": "custom_tool_call", "call_id": "z", "name": "a", "input": ""});
        let called = [("y", "db__get", "{}")];
        let complete = Finish::new(FinishKind::Complete, "completed");
        for (items, calls, finish) in [
            (json!([one, output, two]), &called[..], &complete),
            (json!([one, output]), &[], &complete),
            (json!([one, custom, output]), &[], &complete),
        ] {
            let mut reply = Reply::new(true);
            let body = json!({"status": "completed", "output": items}).to_string();
            DIALECT
                .read_whole(&body, &mut reply)
                .expect("a whole answer");
            assert_eq!(
                (calls_of(&reply).as_slice(), reply.end.finish()),
                (calls, Some(finish)),
                "{items}"
            );
            assert_eq!(Value::from(reply.turn.echo().items()), items);
        }
    }
}
