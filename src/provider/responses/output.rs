//! Reads a complete response of the Responses API, also the one at the end of a stream: only what has not arrived is new (pure).

use std::collections::HashSet;

use serde::Deserialize;

use super::item::{
    CALL_OUTPUT, FUNCTION_CALL, MESSAGE, OutputItem, finish_refusal, read_item, read_reasoning,
    read_sources,
};
use super::late_reasoning::keep_late_reasoning;
use super::output_calls::read_calls;
use crate::message::UNJOINED;
use crate::provider::counts::Counts;
use crate::provider::failure::{self, ReplyResult};
use crate::provider::lenient::{Json, Object, Text};
use crate::provider::reply::{CallItem, CompleteMessage, Reply, call_pairs, repeated_call_pairs};

/// A complete response, or what is known of it at its end.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WholeResponse<'a> {
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

/// Adds an answer that came in one piece to the reply.
pub fn read_whole(body: &str, reply: &mut Reply) -> ReplyResult {
    let response: Object<WholeResponse> = serde_json::from_str(body)?;
    read_response(response.0.unwrap_or_default(), "", reply)
}

/// Reads a complete response. `word` says how it ended, if it does not say so itself.
pub fn read_response(response: WholeResponse, word: &str, reply: &mut Reply) -> ReplyResult {
    let mut items = Vec::new();
    for json in response.output.entries()? {
        items.push(OutputItem::read(json)?);
    }
    let details = response.incomplete_details.0.unwrap_or_default();
    let words = [&*details.reason, &*response.status, word];
    let given = words.into_iter().find(|text| !text.is_empty());
    reply.end.read(given.unwrap_or_default());
    reply.add_usage(Counts::read(response.usage).usage());
    failure::check_field(&response.error.value())?;
    read_items(&items, reply)?;
    keep_late_reasoning(&items, reply);
    let messages = read_messages(&items, reply)?;
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
fn read_items(items: &[OutputItem], reply: &mut Reply) -> ReplyResult {
    let kept = kept_calls(reply);
    let is_first = reply.turn.items.is_empty();
    let ids_with_output = ids_with_output(items);
    let mut calls = Vec::new();
    let mut images = 0;
    let has_reasoning = reply.reading.has_streamed_reasoning;
    for item in items {
        reply.end.has_cut_part = item.is_cut().unwrap_or(reply.end.has_cut_part);
        images += item.images();
        if !has_reasoning {
            read_reasoning(item, reply)?;
        }
        if is_first {
            read_item(item, reply);
        } else {
            // Some sources have their titles only here.
            read_sources(item, reply);
        }
        // Otherwise the provider has run it.
        if item.kind() == FUNCTION_CALL && !ids_with_output.contains(item.call_id()) {
            calls.push(item);
        }
    }
    // Those of a stream have come with their items before.
    reply.activity.images = reply.activity.images.max(images);
    let found = Vec::from_iter(calls.iter().map(|item| item.call()));
    let pairs = repeated_call_pairs(&found, &kept);
    // The calls that have come with this response alone.
    let mut new = Vec::new();
    for ((item, call), pair) in calls.into_iter().zip(found).zip(pairs) {
        let is_complete = pair.is_some_and(|place| !kept[place].is_completed_by(&call));
        if !is_complete && !is_first {
            read_item(item, reply);
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
    ids_with_output: &HashSet<&str>,
    reply: &mut Reply,
) -> ReplyResult {
    let begun = reply.reading.begun_calls.take();
    let calls = Vec::from_iter(begun.iter().map(CallItem::of));
    let pairs = call_pairs(&calls, new);
    for ((mut item, call), pair) in begun.into_iter().zip(&calls).zip(pairs) {
        // Some servers give all calls one id.
        let is_again =
            |known: &CallItem| known.has_ids_of(call) == Some(true) && known.has_all_of(call);
        let has_run = ids_with_output.contains(&*call.call_id);
        if pair.is_none() && !has_run && !kept.iter().any(is_again) {
            if reply.reading.begun_calls.may_have_lost_arguments(call) {
                item["arguments"] = UNJOINED.into();
            }
            let json = item.to_string();
            read_item(&OutputItem::read(serde_json::from_str(&json)?)?, reply);
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
fn ids_with_output<'i>(items: &'i [OutputItem]) -> HashSet<&'i str> {
    let outputs = items.iter().filter(|item| item.kind() == CALL_OUTPUT);
    outputs.map(OutputItem::call_id).collect()
}

/// Adds what is missing of the messages of a complete response. Returns those that may have arrived in pieces.
fn read_messages(items: &[OutputItem], reply: &mut Reply) -> ReplyResult<Vec<CompleteMessage>> {
    let mut messages = Vec::new();
    if reply.answer.has_begun() {
        messages = complete_messages(items, reply);
    } else {
        let has_commentary = reply.answer.has_text();
        for item in items {
            if !(has_commentary && item.is_commentary()) {
                add_message(item, reply);
            }
        }
    }
    // Its items can have come without it.
    if !reply.answer.has_text() {
        for kept in reply.turn.echo().items() {
            let json = kept.to_string();
            add_message(&OutputItem::read(serde_json::from_str(&json)?)?, reply);
        }
    }
    Ok(messages)
}

/// Adds the text of an item that is a message. In most streams it has arrived in pieces before.
fn add_message(item: &OutputItem, reply: &mut Reply) {
    if item.kind() == MESSAGE {
        reply.add_whole_message(&item.content.text, item.is_commentary());
        finish_refusal(&item.content, reply);
    }
}

/// Adds what is missing of the messages of a complete response, if they have arrived in pieces. Returns the messages.
fn complete_messages(items: &[OutputItem], reply: &mut Reply) -> Vec<CompleteMessage> {
    let mut places = Vec::new();
    let mut messages = Vec::new();
    for (index, item) in (0..).zip(items) {
        if item.kind() == MESSAGE {
            places.push((index, &item.content));
            messages.push(CompleteMessage {
                text: item.content.text.to_string(),
                is_commentary: item.is_commentary(),
            });
        }
    }
    let is_alone = places.len() == 1;
    for (index, content) in places {
        let index = (!is_alone).then_some(index);
        reply.complete_message(index, &content.text);
        finish_refusal(content, reply);
    }
    messages
}
