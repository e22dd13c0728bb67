//! Reads the events of a stream of the Responses API (pure).

use serde::Deserialize;
use serde_json::json;

use super::item::{
    FUNCTION_CALL, MESSAGE, OutputItem, REASONING, WEB_SEARCH_CALL, finish_refusal, read_item,
    read_reasoning,
};
use super::output::{WholeResponse, read_response};
use crate::message::Source;
use crate::provider::failure::{self, ReplyResult};
use crate::provider::lenient::{Content, Index, Json, Text};
use crate::provider::reply::{CallRef, ReasoningArrival, Reply, TextPlace};

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
    /// See [`FinishedPart`].
    part: Json<'a>,
    /// All arguments of a call.
    arguments: Text<'a>,
    /// The item that arguments belong to.
    item_id: Text<'a>,
    item: Json<'a>,
    response: Json<'a>,
    annotation: Json<'a>,
}

/// A part of a message that is finished.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FinishedPart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    text: Text<'a>,
}

impl EventDetails<'_> {
    fn call_ref(&self, index: Option<u64>) -> CallRef<'_> {
        CallRef {
            index,
            item_id: &self.item_id,
        }
    }
}

/// Adds an event to the reply, unless it is an error.
pub fn read_event(data: &str, reply: &mut Reply) -> ReplyResult {
    let event: Event = serde_json::from_str(data)?;
    let kind = &*event.kind;
    if !event.error.is_null() || !kind.starts_with("response.") {
        failure::check(data)?;
    }
    let delta = &*event.delta.text;
    if !delta.is_empty() {
        reply.reading.items.go_on();
    }
    match kind {
        "response.output_text.delta" => reply.add_increment(event.place(), delta),
        "response.refusal.delta" => reply.refuse_further(event.place(), delta),
        "response.function_call_arguments.delta" => {
            let details: EventDetails = serde_json::from_str(data)?;
            let of = details.call_ref(event.output_index.0);
            reply.reading.begun_calls.add(&of, delta);
        }
        kind if kind.starts_with("response.reasoning") => {
            if kind.ends_with("text.done") {
                let details: EventDetails = serde_json::from_str(data)?;
                finish_reasoning(&details.text, reply);
            } else {
                add_reasoning(delta, ReasoningArrival::Increments, reply);
            }
        }
        kind if kind.starts_with("response.web_search_call") => reply.activity.search(),
        _ => read_details(kind, event.place(), serde_json::from_str(data)?, reply)?,
    }
    Ok(())
}

/// Adds an increment of reasoning, or a part of it, if that has any text.
fn add_reasoning(text: &str, arrival: ReasoningArrival, reply: &mut Reply) {
    reply.think(text);
    if !text.is_empty() {
        reply.reading.has_streamed_reasoning = true;
        reply.reading.reasoning_arrival = arrival;
    }
}

/// Ends a part of reasoning, whose text is new if no increment of its item has come. The next part is a paragraph of its own.
fn finish_reasoning(text: &str, reply: &mut Reply) {
    if reply.reading.reasoning_arrival != ReasoningArrival::Increments {
        add_reasoning(text, ReasoningArrival::WholeParts, reply);
    }
    reply.think("\n");
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
            let part: FinishedPart = event.part.object()?;
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

/// Ends a reply whose items are all complete, where `[DONE]` has come instead of the complete response. Returns whether they are.
/// Proxies send it after whatever has come.
pub fn end_with_done(reply: &mut Reply) -> ReplyResult<bool> {
    let is_complete = reply.reading.items.are_complete() && !reply.has_open_message();
    if is_complete {
        reply.check_plain_line()?;
        read_response(WholeResponse::default(), "completed", reply)?;
    }
    Ok(is_complete)
}

/// Reads an item that has begun.
fn begin_item(json: Json, index: Option<u64>, reply: &mut Reply) -> ReplyResult {
    let item = OutputItem::read(json)?;
    reply.reading.items.begin(index);
    match item.kind() {
        FUNCTION_CALL => {
            let calls = &mut reply.reading.begun_calls;
            calls.begin(index, item.call(), item.json());
        }
        MESSAGE => reply.begin_message(index, item.id(), item.is_commentary()),
        REASONING => reply.think(""),
        WEB_SEARCH_CALL => reply.activity.search(),
        _ => {}
    }
    Ok(())
}

/// Reads an item that is complete. If it is a message, its text may have arrived in increments.
fn read_done_item(json: Json, index: Option<u64>, reply: &mut Reply) -> ReplyResult {
    let item = OutputItem::read(json)?;
    reply.end.has_cut_part = item.is_cut().unwrap_or(reply.end.has_cut_part);
    reply.activity.images += item.images();
    reply.reading.items.end(index, item.may_end_reply());
    match item.kind() {
        MESSAGE => {
            reply.finish_message(index, &item.content.text, item.is_commentary());
            finish_refusal(&item.content, reply);
            reply.end_message();
        }
        FUNCTION_CALL => reply.reading.begun_calls.end(index, &item.call()),
        REASONING => {
            let arrival = std::mem::take(&mut reply.reading.reasoning_arrival);
            if arrival == ReasoningArrival::Nothing {
                read_reasoning(&item, reply)?;
            }
        }
        _ => {}
    }
    read_item(&item, reply);
    Ok(())
}
