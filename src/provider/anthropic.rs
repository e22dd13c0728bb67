//! Makes requests for Anthropic's Messages API, and reads its replies (pure).

use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value, json};

use super::attachment;
use super::counts::Counts;
use super::dialect::Dialect;
use super::failure::{self, ReplyResult};
use super::lenient::{self, Index, Json, Object, Text, text_field};
use super::reply::{Added, Reply};
use super::request::{self, AnswerForm, OptionalField, Prompt};
use super::tool_schema::ToolSchemas;
use super::{calls, schema};
use crate::message::{Attachment, Message, Source, Step, Tool, ToolCall, ToolRun, Usage};
use crate::server_url::Version;
use crate::text::fence;

pub static DIALECT: Dialect = Dialect {
    name: "anthropic",
    version: Version::InPaths(&["/v1"]),
    models_path: "/v1/models?limit=1000",
    fixed_headers: &[("anthropic-version", "2023-06-01")],
    key_header: ("x-api-key", ""),
    takes_bearer: true,
    chat: |prompt, _| ("/v1/messages".to_owned(), body(prompt)),
    event: read_event,
    whole: read_whole,
    reply_fields: &["type", "role", "stop_reason"],
    ends_with_done: false,
    optional_fields: &[
        (OptionalField::Effort, "/output_config/effort"),
        (OptionalField::Form, "/output_config/format"),
        (OptionalField::Cache, "/cache_control"),
        (OptionalField::System, "/system"),
        (OptionalField::ToolChoice, "/tool_choice"),
    ],
    enforces_maps: false,
    searches: true,
    groups_tools: false,
    tool_schemas: ToolSchemas::PlainArguments,
};

/// The limit that is sent unless the user sets one, because the API demands a limit.
const MAX_TOKENS: u64 = 16_384;

/// How often the provider may search for one answer; each search costs extra.
const MAX_SEARCHES: u64 = 5;

/// The most blocks with one index that are told apart.
const BLOCKS_AT_INDEX: u64 = 1 << 16;

/// The field of a block with the arguments of a call.
const INPUT: &str = "input";

/// The type of a block that calls a tool of q. The types of the provider's own calls end like this, too.
const TOOL_USE: &str = "tool_use";

/// The types of the blocks with reasoning, which are signed or encrypted.
const SEALED: &[&str] = &["thinking", "redacted_thinking"];

fn body(prompt: &Prompt) -> Value {
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

/// Returns the usage. The API's count of the input leaves out what was read from a cache or written into one, so these are added.
fn usage_of(counts: &Counts) -> Usage {
    let mut usage = counts.usage();
    let written = counts.cache_creation_input_tokens.0.map_or(0, u64::from);
    let cached = usage.cached_tokens.unwrap_or(0) + written;
    usage.input_tokens = usage.input_tokens.map(|tokens| tokens + cached);
    usage
}

/// An event of a stream, of any type, as far as q reads it. Skipping the rest makes long streams fast.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    index: Index,
    delta: Object<BlockDelta<'a>>,
    error: Json<'a>,
    content_block: Json<'a>,
    message: Json<'a>,
    usage: Json<'a>,
}

/// A part of a block, or how the message ended.
#[derive(Default, Deserialize)]
#[serde(default)]
struct BlockDelta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    text: Text<'a>,
    thinking: Text<'a>,
    signature: Text<'a>,
    /// Text, though a server may send the object itself.
    partial_json: Json<'a>,
    citation: Json<'a>,
    stop_reason: Text<'a>,
    stop_details: Json<'a>,
}

/// A complete message.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WholeMessage<'a> {
    #[serde(borrow)]
    content: Json<'a>,
    stop_reason: Text<'a>,
    stop_details: Json<'a>,
    usage: Json<'a>,
}

/// The reason why the model refused to answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StopDetails<'a> {
    #[serde(borrow)]
    explanation: Text<'a>,
    category: Text<'a>,
}

/// The beginning of a block of any type, as far as q reads it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ContentBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    id: Text<'a>,
    name: Text<'a>,
    text: Text<'a>,
    thinking: Text<'a>,
    citations: Json<'a>,
    /// See [`INPUT`].
    input: Json<'a>,
    /// Of a search.
    content: Object<SearchResult<'a>>,
}

/// The error that is in place of the pages if a search has failed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SearchResult<'a> {
    #[serde(borrow)]
    error_code: Text<'a>,
}

/// Reads an event of a stream. Unknown types are ignored, as the API's documents ask.
fn read_event(data: &str, reply: &mut Reply) -> ReplyResult {
    let event: MessageEvent = serde_json::from_str(data)?;
    let kind = &*event.kind;
    let delta = event.delta.0.unwrap_or_default();
    let is_delta = kind == "content_block_delta";
    if !is_delta || !event.error.is_null() {
        failure::check(data)?;
    }
    if is_delta {
        add_delta(event.index.0, &delta, reply);
        return Ok(());
    }
    if kind == "content_block_start" {
        add_block(event.index.0, event.content_block, reply)?;
    }
    let message: WholeMessage = event.message.object()?;
    reply.add_usage(usage_of(&Counts::read(message.usage)));
    if kind == "message_stop" || !delta.stop_reason.is_empty() {
        read_calls(reply);
    }
    finish(&delta.stop_reason, delta.stop_details, event.usage, reply)?;
    if kind == "message_stop" {
        reply.close();
    }
    Ok(())
}

fn read_whole(body: &str, reply: &mut Reply) -> ReplyResult {
    let message: Object<WholeMessage> = serde_json::from_str(body)?;
    let message = message.0.unwrap_or_default();
    for block in message.content.entries()? {
        add_block(None, block, reply)?;
    }
    read_calls(reply);
    finish(
        &message.stop_reason,
        message.stop_details,
        message.usage,
        reply,
    )
}

/// Reads how a message ended, why the model refused, and the usage.
fn finish(reason: &str, details: Json, usage: Json, reply: &mut Reply) -> ReplyResult {
    let details: StopDetails = details.object()?;
    reply.end.explain(&details.category);
    reply.end.explain(&details.explanation);
    reply.end.read(reason);
    reply.add_usage(usage_of(&Counts::read(usage)));
    Ok(())
}

fn add_block(index: Option<u64>, json: Json, reply: &mut Reply) -> ReplyResult {
    let block: ContentBlock = json.object()?;
    let kind = &*block.kind;
    if kind.is_empty() {
        return Ok(());
    }
    let place = index.map(|index| free_place(index, &block, reply));
    // The provider's own calls and their results have types like `server_tool_use` and `web_search_tool_result`.
    if kind.ends_with("_tool_use") || kind.ends_with("_tool_result") {
        reply.answer.begin_message(false);
    }
    if kind == "server_tool_use" && block.name.starts_with("web_") {
        reply.activity.search();
    }
    if kind == "text" {
        reply.add_text(&block.text);
    }
    if kind.ends_with("thinking") {
        reply.think("\n");
        reply.think(&block.thinking);
    }
    let result = block.content.0.unwrap_or_default();
    if kind.starts_with("web_") && !result.error_code.is_empty() {
        reply.fail_search(&result.error_code);
    }
    reply.answer.add_sources(block.citations.sources());
    reply.turn.has_called |= kind == TOOL_USE;

    // It is sent back after a pause or with the results of its calls. Until it is complete, its input is text.
    if let Some(kept) = reply.turn.keep_call(place, json.get(), block.input, "{}")
        && kind.ends_with(TOOL_USE)
    {
        let mut input = block.input.as_text();
        if ["{}", "[]"].contains(&&*input) {
            // It comes in fragments.
            input.clear();
        }
        kept[INPUT] = input.into();
    }
    Ok(())
}

/// Returns the places among the turn's items of the blocks with this index. Ollama, SGLang and gateways give an index again, and
/// so did the vendor where it searched.
fn places(index: u64) -> Range<u64> {
    let first = index.saturating_mul(BLOCKS_AT_INDEX);
    first..first.saturating_add(BLOCKS_AT_INDEX)
}

/// Returns the place of the latest block with this index.
fn latest_place(index: u64, reply: &Reply) -> Option<u64> {
    let (place, _) = reply.turn.items.range(places(index)).next_back()?;
    Some(*place)
}

/// Returns the place for a block that begins: after the latest with its index, or in the place of that one if it is the same and
/// nothing of it has arrived.
fn free_place(index: u64, block: &ContentBlock, reply: &Reply) -> u64 {
    let places = places(index);
    let Some(place) = latest_place(index, reply) else {
        return places.start;
    };
    let known = &reply.turn.items[&place];
    let is_same = text_field(known, "type") == &*block.kind
        && text_field(known, "id") == &*block.id
        && text_field(known, "text").is_empty()
        && text_field(known, "thinking").is_empty();
    if is_same || !places.contains(&(place + 1)) {
        return place;
    }
    place + 1
}

fn add_delta(index: Option<u64>, delta: &BlockDelta, reply: &mut Reply) {
    let last = reply.turn.items.keys().next_back().copied();
    let place = match index {
        Some(index) => latest_place(index, reply).unwrap_or(places(index).start),
        None => last.unwrap_or(0),
    };
    let mut text = &*delta.text;
    if !["text_delta", ""].contains(&&*delta.kind) {
        text = "";
    }
    // Some servers do not say that a text begins.
    if !text.is_empty() && !reply.turn.items.contains_key(&place) {
        reply.turn.keep(Some(place), r#"{"type":"text"}"#);
    }
    let input = delta.partial_json.as_text();
    for (field, piece) in [
        ("thinking", &*delta.thinking),
        ("signature", &*delta.signature),
        (INPUT, &*input),
        ("text", text),
    ] {
        append(place, field, piece, reply);
    }
    reply.add_text(text);
    // Its text may be hidden.
    if !delta.thinking.is_empty() || &*delta.kind == "thinking_delta" {
        reply.think(&delta.thinking);
    }
    if delta.citation.is_object() {
        let citation = delta.citation.value();
        reply.answer.add_sources(Source::all_in(&json!([citation])));
        keep_citation(place, delta.citation, reply);
    }
}

/// Appends text to a field of the block at this place, if there is room for it. What comes within a block of another type is
/// none of it, because the API rejects a field that it does not know.
fn append(place: u64, field: &str, piece: &str, reply: &mut Reply) {
    if !piece.is_empty()
        && reply.turn.budget.spend(piece.len())
        && let Some(block) = reply.turn.items.get_mut(&place)
        && has_field(text_field(block, "type"), field)
    {
        lenient::append(&mut block[field], piece);
    }
}

/// Whether blocks of this type have the field.
fn has_field(kind: &str, field: &str) -> bool {
    match field {
        "thinking" | "signature" => kind.ends_with("thinking"),
        INPUT => kind.ends_with(TOOL_USE),
        _ => kind == field,
    }
}

/// Keeps a citation with the text that it belongs to.
fn keep_citation(place: u64, citation: Json, reply: &mut Reply) {
    if reply.turn.has_room_for(citation.get())
        && let Some(block) = reply.turn.items.get_mut(&place)
    {
        match &mut block["citations"] {
            Value::Array(citations) => citations.push(citation.value()),
            none => *none = json!([citation.value()]),
        }
    }
}

/// Finds the calls in the complete blocks, and turns the inputs of blocks from text into JSON. A call that was sent again is
/// left out.
fn read_calls(reply: &mut Reply) {
    for (place, mut block) in std::mem::take(&mut reply.turn.items) {
        if block[INPUT].is_string() && read_input(&mut block, reply) == ReadBlock::SentAgain {
            continue;
        }
        reply.turn.items.insert(place, block);
    }
}

/// What becomes of a block whose input has been read.
#[derive(PartialEq, Eq)]
enum ReadBlock {
    Kept,
    /// An earlier block has its call.
    SentAgain,
}

fn read_input(block: &mut Value, reply: &mut Reply) -> ReadBlock {
    let input = text_field(block, INPUT);
    let mut fields = calls::object(input);
    let asked = ToolCall {
        id: text_field(block, "id").to_owned(),
        name: text_field(block, "name").to_owned(),
        arguments: input.to_owned(),
        api_data: Value::Null,
    };
    if block["type"] == TOOL_USE
        && let Some(added) = reply.add_whole_call(asked)
    {
        let call = &reply.turn.calls()[added.place()];
        fields = calls::object(&call.arguments);
        block["id"] = call.id.as_str().into();
        calls::add_missing_name(block);
        match added {
            Added::New(_) => {}
            Added::Again(_) => return ReadBlock::SentAgain,
            Added::Completed(_) => {
                let is_same = |known: &&mut Value| {
                    known["type"] == TOOL_USE
                        && known["id"] == block["id"]
                        && known["name"] == block["name"]
                };
                if let Some(known) = reply.turn.items.values_mut().rev().find(is_same) {
                    known[INPUT] = fields;
                }
                return ReadBlock::SentAgain;
            }
        }
    }
    block[INPUT] = fields;
    ReadBlock::Kept
}

#[cfg(test)]
mod tests {
    use super::super::dialect::tests::{calls_of, prompt, replied, replied_with_tools, shapes};
    use super::*;
    use crate::text::table::rows;

    fn sent(prompt: &Prompt) -> Value {
        body(prompt)
    }

    #[test]
    fn the_effort_is_sent_together_with_the_form_of_the_answer() {
        let [strict, _] = shapes();
        let format = json!({"type": "json_schema", "schema": strict.schema});
        for (form, config) in [
            (AnswerForm::Any, json!({"effort": "low"})),
            (AnswerForm::Object, json!({"effort": "low"})),
            (
                AnswerForm::Shaped(&strict),
                json!({"effort": "low", "format": format}),
            ),
        ] {
            assert_eq!(
                sent(&Prompt {
                    form,
                    effort: Some("low"),
                    ..prompt()
                })["output_config"],
                config,
                "{form:?}"
            );
        }
    }

    #[test]
    fn the_input_of_a_call_is_read_in_each_form_in_which_servers_send_it() {
        // What begins the block, the fragments that follow, and the arguments. Those that are no object are refused later.
        let table = r#"
            {"n":1} | - | {"n":1}
            {} | {"n":1} | {"n":1}
            {} | - | {}
            null | - | {}
            "" | - | {}
            [] | - | {}
            "{\"n\":1}" | - | {"n":1}
            "{\"n\"" | ":1}" | {"n":1}
            {} | "{\"n\"" ":1}" | {"n":1}
            "no" | - | no
            [1] | - | [1]
            5 | - | 5
        "#;
        for [input, fragments, arguments] in rows(table) {
            let block = format!(r#"{{"type":"tool_use","id":"x","name":"a","input":{input}}}"#);
            let mut events = vec![format!(
                r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#
            )];
            for piece in fragments.split_whitespace() {
                let delta = format!(r#"{{"type":"input_json_delta","partial_json":{piece}}}"#);
                events.push(format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#
                ));
            }
            events
                .push(r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#.to_owned());
            events.push(r#"{"type":"message_stop"}"#.to_owned());
            let events = Vec::from_iter(events.iter().map(String::as_str));
            let reply = replied_with_tools(&DIALECT, &events);
            assert_eq!(
                calls_of(&reply),
                [("x", "a", arguments)],
                "{input} {fragments}"
            );
            if fragments.is_empty() {
                let whole = format!(r#"{{"content":[{block}],"stop_reason":"tool_use"}}"#);
                let mut reply = Reply::new(true);
                read_whole(&whole, &mut reply).expect(&whole);
                assert_eq!(calls_of(&reply), [("x", "a", arguments)], "whole: {input}");
            }
        }
    }

    #[test]
    fn input_tokens_include_those_read_from_and_written_to_the_cache() {
        let table = r##"
            27 | {"input_tokens":4,"cache_read_input_tokens":3,"cache_creation_input_tokens":20}
            7 | {"input_tokens":4,"cache_read_input_tokens":3}
            24 | {"input_tokens":4,"cache_creation_input_tokens":20}
            4 | {"input_tokens":4}
            - | {"output_tokens":1}
        "##;
        for [input, usage] in rows(table) {
            let data = format!(r#"{{"type":"message_delta","delta":{{}},"usage":{usage}}}"#);
            let reply = replied(&DIALECT, &[&data]);
            let counted = reply.usage().and_then(|usage| usage.input_tokens);
            assert_eq!(counted, input.parse().ok(), "{usage}");
        }
    }
}
