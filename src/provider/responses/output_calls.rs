//! Finds the calls among the items of a complete response, and makes the items ready to go back with the results (pure).

use std::collections::HashSet;

use serde_json::Value;

use super::item::{CALL_OUTPUT, FUNCTION_CALL};
use crate::message::ToolCall;
use crate::provider::calls;
use crate::provider::lenient::text_field;
use crate::provider::reply::{Added, CallItem, Reply};

/// Finds the calls among the items of a complete response. If the output of a call is there, the provider has run it. A call
/// of another kind at the end waits for its result if it has an id for one, which a search of the provider's has not.
pub fn read_calls(reply: &mut Reply) {
    let items = std::mem::take(&mut reply.turn.items);
    if let Some(last) = items.values().next_back()
        && last["call_id"].is_string()
    {
        let kind = text_field(last, "type");
        reply.turn.has_called |= kind.ends_with("_call") && kind != FUNCTION_CALL;
    }
    let mut ids_with_output = HashSet::new();
    for item in items.values() {
        if item["type"] == CALL_OUTPUT {
            ids_with_output.insert(text_field(item, "call_id").to_owned());
        }
    }
    for (place, mut item) in items {
        let has_run = ids_with_output.contains(text_field(&item, "call_id"));
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
    calls::add_missing_name(item);
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
