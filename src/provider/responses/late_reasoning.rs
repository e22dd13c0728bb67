//! Keeps reasoning that only the complete response has, to send it back before the call that it has led to (pure).

use serde_json::Value;

use super::item::{OutputItem, REASONING};
use crate::provider::lenient::text_field;
use crate::provider::reply::{ItemIds, Reply};

/// The most items that are compared, each with all others.
const MAX_COMPARED: usize = 1_000;

/// Keeps the items with reasoning of a complete response that go back and have not come before, each before the item that follows
/// it. The API rejects reasoning without that.
pub fn keep_late_reasoning(output: &[OutputItem], reply: &mut Reply) {
    let has_any = output
        .iter()
        .any(|item| item.returned_reasoning().is_some());
    if !has_any || output.len().max(reply.turn.items.len()) > MAX_COMPARED {
        return;
    }
    let mut kept = Vec::from_iter(std::mem::take(&mut reply.turn.items).into_values());
    let mut late = Vec::new();
    for item in output {
        let reasoning = item.returned_reasoning();
        let reasoning = reasoning.map(|(field, json)| (field, json.value()));
        let mut known = kept.iter();
        let place = known.position(|other| is_same(other, item, reasoning.as_ref()));
        if let Some(place) = place {
            // Some servers give the same reasoning another id in each event.
            if place > 0 && is_reasoning(&kept[place - 1]) {
                late.clear();
            }
            kept.splice(place..place, late.drain(..));
        } else if reasoning.is_some()
            && reply.turn.has_room_for(item.json())
            && let Ok(value) = serde_json::from_str(item.json())
        {
            late.push(value);
        }
    }
    reply.turn.items = (0..).zip(kept).collect();
}

fn is_reasoning(kept: &Value) -> bool {
    text_field(kept, "type") == REASONING
}

/// Whether an item that is kept is this one, which may have `reasoning` in this field. Not every server gives reasoning an id.
fn is_same(kept: &Value, item: &OutputItem, reasoning: Option<&(&str, Value)>) -> bool {
    if text_field(kept, "type") != item.kind() {
        return false;
    }
    let is_of_ids = ItemIds::of(kept).are_those_of(item.ids());
    is_of_ids.unwrap_or_else(|| reasoning.is_some_and(|(field, text)| kept[field] == *text))
}
