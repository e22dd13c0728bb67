//! The complete calls of a reply: which of them a server sends again, and the id of each (pure).

use std::collections::{HashMap, HashSet};

use super::assembly::is_empty;
use super::notation::{is_extended_by, plain_json};
use crate::message::ToolCall;
use crate::text::json;

/// What became of a call that came in one piece, and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    New(usize),
    /// A server has sent it before.
    Again(usize),
    /// A server has sent it before with no arguments or only their beginning. Now the call has all of them.
    Completed(usize),
}

impl Added {
    /// Returns the position of the call.
    pub fn place(self) -> usize {
        match self {
            Added::New(place) | Added::Again(place) | Added::Completed(place) => place,
        }
    }

    /// Returns the position of the call if it has come before.
    pub fn earlier(self) -> Option<usize> {
        (!matches!(self, Added::New(_))).then_some(self.place())
    }
}

/// The complete calls by id and name. Some servers send a call again: at the end, with another index, or once its arguments are
/// there. Others give several calls one id, so two calls with different arguments are two.
#[derive(Debug, Default)]
pub struct KnownCalls {
    calls: HashMap<(String, String), KnownCall>,
    /// The ids that calls of the question have.
    ids: HashSet<String>,
}

/// The calls with one id and name.
#[derive(Debug, Default)]
struct KnownCall {
    /// The position of the latest.
    latest: usize,
    /// The positions of all, by their arguments in the one notation of [`plain_json`].
    by_arguments: HashMap<String, usize>,
}

impl KnownCalls {
    /// Returns an empty list for calls that follow those with these ids.
    pub fn after(earlier_ids: &[String]) -> KnownCalls {
        KnownCalls {
            ids: earlier_ids.iter().cloned().collect(),
            ..KnownCalls::default()
        }
    }

    /// Adds a call that would be the next of `calls`, or completes the one of them that it is. A call without an id is new.
    /// `shares_place` says whether it has come in the place of another one with its id and name: then it is that one if it only
    /// has more fields.
    pub fn add(&mut self, call: &ToolCall, calls: &mut [ToolCall], shares_place: bool) -> Added {
        if call.id.is_empty() {
            return Added::New(calls.len());
        }
        let key = (call.id.clone(), call.name.clone());
        let arguments = plain_json(&call.arguments);
        let known = self.calls.entry(key).or_default();
        if let Some(&position) = known.by_arguments.get(&arguments) {
            return Added::Again(position);
        }
        let mut added = Added::New(calls.len());
        if !known.by_arguments.is_empty() {
            let latest = &mut calls[known.latest];
            if is_part(&call.arguments, &latest.arguments) {
                return Added::Again(known.latest);
            }
            let is_completed = is_part(&latest.arguments, &call.arguments)
                || shares_place && is_extended_by(&latest.arguments, &call.arguments);
            if is_completed {
                latest.arguments.clone_from(&call.arguments);
                added = Added::Completed(known.latest);
            }
        }
        known.latest = added.place();
        known.by_arguments.insert(arguments, added.place());
        added
    }

    /// Gives a new call an id of its own if it has none, or that of another call of the question: APIs reject a request in which
    /// two have the same, and some servers number the calls of each reply from 0. `number` is its place among the calls of the
    /// question.
    pub fn give_id(&mut self, call: &mut ToolCall, number: usize) {
        let mut unused = number;
        while call.id.is_empty() || self.ids.contains(&call.id) {
            call.id = made_up_id(unused);
            unused += 1;
        }
        self.ids.insert(call.id.clone());
    }
}

/// Whether arguments are none, or only the beginning of others.
pub fn is_part(arguments: &str, all: &str) -> bool {
    let is_beginning = || !json::is_object(arguments) && all.starts_with(arguments.trim());
    is_empty(arguments) || is_beginning()
}

/// Returns an id for a call. Mistral accepts only ids of nine letters and digits.
fn made_up_id(number: usize) -> String {
    format!("call{number:05}")
}
