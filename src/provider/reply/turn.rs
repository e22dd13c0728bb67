//! The model's turn: its calls, and what goes back to the API with their results, within bounds (pure).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::message::ToolCall;
use crate::message::echo::{Echo, EchoFields};
use crate::provider::calls::{self, Added, Calls, FragmentPlace};
use crate::provider::kept::{self, ByteBudget, ITEM};
use crate::provider::lenient::Json;
use crate::provider::request::Request;

/// The turn of the model in a reply, as the next request needs it.
#[derive(Debug, Default)]
pub struct ModelTurn {
    /// Whether tools were offered. If not, calls are not read.
    pub offers_tools: bool,
    /// Whether the model has called a tool, perhaps one that was not offered, or with more arguments than q keeps.
    pub has_called: bool,
    calls: Calls,
    /// Whether the last event has arrived. Calls that still come could be ones that were dropped, because they say nothing.
    is_closed: bool,
    /// All of the turn as the API wants it back, by the provider's index or by position.
    pub items: BTreeMap<u64, Value>,
    /// What chat completions want back instead.
    pub fields: EchoFields,
    /// For what is kept of the reply, here and elsewhere, and for the text, which the caller may keep.
    pub budget: ByteBudget,
}

impl ModelTurn {
    /// Returns an empty turn. Calls count only if tools were offered.
    pub fn new(offers_tools: bool) -> ModelTurn {
        ModelTurn {
            offers_tools,
            ..ModelTurn::default()
        }
    }

    /// Follows the turns in a request.
    pub fn follow(&mut self, request: &Request) {
        self.calls = Calls::after(&request.earlier_call_ids, &request.tools.names);
        self.budget = request.budget;
    }

    /// Adds a call, or a fragment of the one at this place. Each of the texts may be empty. Returns the
    /// call's position; `None` if no tools were offered, the turn is over, or there is no room.
    pub fn add_call(&mut self, at: FragmentPlace, call: ToolCall) -> Option<usize> {
        let bytes = call.id.len() + call.name.len() + call.arguments.len();
        if !self.takes_call(&call, bytes) {
            return None;
        }
        let count = self.calls().len();
        let place = self.calls.add(at, call);
        if place == count {
            self.budget.spend(ITEM);
        }
        Some(place)
    }

    /// Adds a call in one piece. Returns what became of it; `None` if no tools were offered, the turn is over, or there is no room.
    pub fn add_whole_call(&mut self, call: ToolCall) -> Option<Added> {
        // It is also one of the items, and has been counted there.
        if !self.takes_call(&call, 0) {
            return None;
        }
        let added = self.calls.add_whole(call);
        if matches!(added, Added::New(_)) {
            self.budget.spend(ITEM);
        }
        Some(added)
    }

    /// Whether tools were offered, more may come, and there is room for that many bytes more of a call.
    fn takes_call(&mut self, call: &ToolCall, bytes: usize) -> bool {
        self.has_called |= !self.offers_tools || !calls::says_nothing(call);
        self.offers_tools && !self.is_closed && self.budget.spend(bytes)
    }

    /// Adds a field that has arrived with the call at this place, if there is room for it.
    pub fn add_api_data(&mut self, place: usize, name: &str, data: Json) {
        // A later fragment may have an empty one.
        let is_empty = matches!(data.get(), "null" | "\"\"");
        if !is_empty && self.has_room_for(data.get()) {
            self.calls.set_api_data(place, name, data.value());
        }
    }

    /// Counts a value that the next request needs. Returns whether there is room for it.
    pub fn has_room_for(&mut self, json: &str) -> bool {
        self.budget.spend(kept::weight(json))
    }

    /// Adds an item, if there is room: at this index of the provider's, or after the rest. Returns it, because it may need
    /// changes.
    pub fn keep(&mut self, index: Option<u64>, json: &str) -> Option<&mut Value> {
        if !self.has_room_for(json) {
            return None;
        }
        let value = serde_json::from_str(json).ok()?;
        let last = self.items.keys().next_back();
        let place = index.unwrap_or(last.map_or(0, |last| last + 1));
        self.items.insert(place, value);
        self.items.get_mut(&place)
    }

    /// Adds an item that is a call, if there is room. If its `arguments`, which are a part of the JSON, have too many values to be
    /// kept, `instead` is in their place: the tool does not run with them.
    pub fn keep_call(
        &mut self,
        index: Option<u64>,
        json: &str,
        arguments: Json,
        instead: &str,
    ) -> Option<&mut Value> {
        if !arguments.is_too_heavy() {
            return self.keep(index, json);
        }
        let arguments = arguments.get();
        // They are kept as text elsewhere.
        self.budget
            .spend(arguments.len().saturating_sub(instead.len()));
        self.keep(index, &json.replacen(arguments, instead, 1))
    }

    /// Completes the calls once the last event has arrived.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.calls.finish();
    }

    /// Returns the calls that the model asks for, in order. Each has an id.
    pub fn calls(&self) -> &[ToolCall] {
        self.calls.list()
    }

    /// Leaves out the arguments of calls that need more bytes than there is `room`, also in what the API wants back.
    pub fn leave_out_arguments(&mut self, room: &mut usize) {
        let too_long = self.calls.leave_out_arguments(room);
        if !too_long.is_empty() {
            calls::empty_arguments(self.items.values_mut(), &too_long);
        }
    }

    /// Returns what the API wants back.
    pub fn echo(&self) -> Echo {
        if self.fields.is_empty() {
            Echo::Items(self.items.values().cloned().collect())
        } else {
            Echo::Fields(self.fields.clone())
        }
    }

    /// Whether more has arrived than q keeps. Then the next request would lack a part of it.
    pub fn is_too_long(&self) -> bool {
        self.budget.is_exhausted()
    }

    /// Whether a call that would run is not complete, because more has arrived than q keeps.
    pub fn has_cut_call(&self) -> bool {
        self.offers_tools && self.has_called && self.is_too_long()
    }
}
