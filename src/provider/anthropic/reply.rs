//! Reads the events and the whole answers of Anthropic's Messages API (pure).

use std::ops::Range;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::message::{Source, ToolCall, Usage};
use crate::provider::calls;
use crate::provider::counts::Counts;
use crate::provider::failure::{self, ReplyResult};
use crate::provider::lenient::{self, Index, Json, Object, Text, text_field};
use crate::provider::reply::{Added, Reply};

/// The most blocks with one index that are told apart.
const BLOCKS_AT_INDEX: u64 = 1 << 16;

/// The field of a block with the arguments of a call.
const INPUT: &str = "input";

/// The type of a block that calls a tool of q. The types of the provider's own calls end like this, too.
const TOOL_USE: &str = "tool_use";

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
pub fn read_event(data: &str, reply: &mut Reply) -> ReplyResult {
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

/// Adds an answer that came in one piece to the reply.
pub fn read_whole(body: &str, reply: &mut Reply) -> ReplyResult {
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
