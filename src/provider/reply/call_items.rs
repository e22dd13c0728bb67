//! Compares calls as items have them, which a server may send several times with other ids (pure).

use serde_json::Value;

use crate::provider::calls::{is_part, without_white_space};
use crate::provider::lenient::{self, text_field};

/// The ids of an item with a call, each empty if it is missing.
#[derive(Debug, Clone, Copy)]
pub struct ItemIds<'a> {
    /// See [`CallItem::call_id`].
    pub call_id: &'a str,
    /// See [`CallItem::id`].
    pub id: &'a str,
}

impl<'a> ItemIds<'a> {
    /// Reads the ids of an item that is kept.
    pub fn of(item: &'a Value) -> ItemIds<'a> {
        ItemIds {
            call_id: text_field(item, "call_id"),
            id: text_field(item, "id"),
        }
    }

    /// Whether two items have the ids of one call; `None` if that cannot be told.
    pub fn are_those_of(self, other: ItemIds) -> Option<bool> {
        let mut pairs = [(self.call_id, other.call_id), (self.id, other.id)].into_iter();
        let (own, others) = pairs.find(|(own, others)| !own.is_empty() && !others.is_empty())?;
        Some(own == others)
    }
}

/// A call as an item has it. Not every server gives both ids, or gives them each time.
#[derive(Debug, Default)]
pub struct CallItem {
    /// The id by which the result is sent.
    pub call_id: String,
    /// The id of the item.
    pub id: String,
    pub name: String,
    pub arguments: String,
}

impl CallItem {
    /// Reads an item that is kept.
    pub fn of(item: &Value) -> CallItem {
        let text = |name: &str| text_field(item, name).to_owned();
        CallItem {
            call_id: text("call_id"),
            id: text("id"),
            name: text("name"),
            arguments: lenient::arguments(&item["arguments"]),
        }
    }

    /// Returns the id of the call. Some servers send only that of the item.
    pub fn own_id(&self) -> &str {
        if self.call_id.is_empty() {
            &self.id
        } else {
            &self.call_id
        }
    }

    fn ids(&self) -> ItemIds<'_> {
        ItemIds {
            call_id: &self.call_id,
            id: &self.id,
        }
    }

    /// See [`ItemIds::are_those_of`].
    pub fn has_ids_of(&self, other: &CallItem) -> Option<bool> {
        self.ids().are_those_of(other.ids())
    }

    /// Whether two items have the same arguments, however they are written.
    pub fn has_arguments_of(&self, other: &CallItem) -> bool {
        without_white_space(&self.arguments) == without_white_space(&other.arguments)
    }

    /// Whether another item has all arguments of a call of which this one has none, or only their beginning.
    pub fn is_completed_by(&self, other: &CallItem) -> bool {
        is_part(&self.arguments, &other.arguments) && !is_part(&other.arguments, &self.arguments)
    }

    /// Whether this one has the same arguments, or another item has only their beginning.
    pub fn has_all_of(&self, other: &CallItem) -> bool {
        self.has_arguments_of(other) || is_part(&other.arguments, &self.arguments)
    }

    /// Whether two items have an id in common. A server may have made the other one again.
    fn shares_id(&self, other: &CallItem) -> bool {
        let mut pairs = [(&self.call_id, &other.call_id), (&self.id, &other.id)].into_iter();
        pairs.any(|(own, others)| !own.is_empty() && own == others)
    }
}

/// The most calls that are compared, each with all others. q runs far fewer of a reply.
const MAX_COMPARED: usize = 1_000;

/// A call with its arguments without whitespace, which are compared often.
struct ComparedCall<'a> {
    item: &'a CallItem,
    arguments: String,
}

impl<'a> ComparedCall<'a> {
    fn of(item: &'a CallItem) -> ComparedCall<'a> {
        ComparedCall {
            item,
            arguments: without_white_space(&item.arguments),
        }
    }
}

/// Tells whether two items are of one call.
type Sign = fn(&ComparedCall, &ComparedCall) -> bool;

/// What tells that two items are of one call, the surest first. vLLM makes other ids for the end of a reply.
const SIGNS: [Sign; 3] = [
    |one, other| one.item.shares_id(other.item) && one.arguments == other.arguments,
    |one, other| one.item.shares_id(other.item),
    |one, other| one.item.name == other.item.name && one.arguments == other.arguments,
];

/// A weak sign: servers may also write the arguments in another way.
const SAME_NAME: Sign = |one, other| one.item.name == other.item.name;

/// Returns for each call the place of the known one that it is, if there is one. Each known one is one of them at most: a reply
/// may have two calls that say the same.
pub fn call_pairs(calls: &[CallItem], known: &[CallItem]) -> Vec<Option<usize>> {
    pairs(calls, known, &SIGNS)
}

/// Does the same with calls that are all in a complete reply: one that is like none of the known ones is one of them anyway if it
/// has its name, because a call that runs twice is worse than one that does not run.
pub fn repeated_call_pairs(calls: &[CallItem], known: &[CallItem]) -> Vec<Option<usize>> {
    pairs(calls, known, &[&SIGNS[..], &[SAME_NAME]].concat())
}

fn pairs(calls: &[CallItem], known: &[CallItem], signs: &[Sign]) -> Vec<Option<usize>> {
    let mut pairs = vec![None; calls.len()];
    let calls = Vec::from_iter(calls.iter().take(MAX_COMPARED).map(ComparedCall::of));
    let known = known.iter().take(MAX_COMPARED).map(ComparedCall::of);
    let mut known = Vec::from_iter(known.enumerate());
    for is_same in signs {
        for (call, pair) in calls.iter().zip(&mut pairs) {
            if pair.is_none() {
                let place = known.iter().position(|(_, known)| is_same(call, known));
                *pair = place.map(|place| known.remove(place).0);
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    /// Reads calls such as `c1.f1:x:{"n":1}`, with the id of the call, that of the item, the name and the arguments.
    fn calls(text: &str) -> Vec<CallItem> {
        let call = |text: &str| {
            let (ids, rest) = text.split_once(':').expect(text);
            let (name, arguments) = rest.split_once(':').expect(text);
            let (call_id, id) = ids.split_once('.').unwrap_or((ids, ""));
            CallItem {
                call_id: call_id.to_owned(),
                id: id.to_owned(),
                name: name.to_owned(),
                arguments: arguments.replace('_', " "),
            }
        };
        let words = text.split(' ').filter(|text| !text.is_empty());
        words.map(call).collect()
    }

    #[test]
    fn calls_that_a_server_sends_again_are_known_by_their_ids_or_by_what_they_say() {
        // The calls, those that are known, and which of these each is; `~` is only before one whose name alone is the same.
        for [found, known, expected] in rows(
            r#"
            c1:x:{}                     | c1:x:{}                  | 0
            c1:x:{}                     | c2:y:{}                  | new
            c1:x:{} c2:x:{}             | c1:x:{}                  | 0 new
            c1:x:{} c2:x:{}             | c2:x:{} c1:x:{}          | 1 0
            c8:x:{} c9:x:{}             | c1:x:{} c2:x:{}          | 0 1
            c8:x:{"n":1} c9:x:{"n":2}   | c1:x:{"n":2} c2:x:{"n":1} | 1 0
            c9:x:{"n":_1}               | c1:x:{"n":1}             | 0
            c9:x:{"n":1.0}              | c1:x:{"n":1}             | ~0
            c9.f1:x:{}                  | c1.f1:x:{"n":1}          | 0
            .f1:x:{}                    | c1.f1:x:{}               | 0
            .f7:x:{} .f8:x:{}           | .f1:x:{}                 | 0 new
            c0:x:{"n":1} c0:x:{"n":2}   | c0:x:{"n":2}             | new 0
            c9:y:{}                     | c1:x:{}                  | new
            :x:{}                       | :x:{}                    | 0
            c1:x:{} c2:x:{"n":2}        | c1:x:                    | 0 new
        "#,
        ) {
            let (found, known) = (calls(found), calls(known));
            let repeated = repeated_call_pairs(&found, &known).into_iter();
            let shown = repeated
                .zip(call_pairs(&found, &known))
                .map(|both| match both {
                    (None, _) => "new".to_owned(),
                    (Some(place), None) => format!("~{place}"),
                    (Some(place), Some(_)) => place.to_string(),
                });
            assert_eq!(
                Vec::from_iter(shown).join(" "),
                expected,
                "{found:?} {known:?}"
            );
        }
    }

    #[test]
    fn the_work_for_many_calls_is_bounded() {
        let call = |id: String| CallItem {
            call_id: id,
            name: "x".repeat(100),
            ..CallItem::default()
        };
        let of = |letter: char| Vec::from_iter((0..30_000).map(|at| call(format!("{letter}{at}"))));
        let pairs = repeated_call_pairs(&of('c'), &of('d'));
        assert_eq!(
            (pairs[0], pairs[1_000], pairs.len()),
            (Some(0), None, 30_000)
        );
    }
}
