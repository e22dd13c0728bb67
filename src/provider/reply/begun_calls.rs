//! Calls whose items have begun in a stream. Not every server sends an item again once it is complete (pure).

use serde_json::Value;

use super::call_items::CallItem;
use crate::provider::calls::may_lack_arguments;
use crate::provider::kept::{ByteBudget, ITEM};

/// The most calls that are told apart. q runs far fewer of a reply.
const MAX_CALLS: usize = 1_000;

/// The calls that have begun, and of which no complete item has come.
#[derive(Debug, Default)]
pub struct BegunCalls {
    calls: Vec<BegunCall>,
    budget: ByteBudget,
    /// Whether arguments have come of which it cannot be told to which call they belong.
    has_stray_arguments: bool,
}

/// A call that has begun.
#[derive(Debug)]
struct BegunCall {
    /// The provider's index of the item; not every server gives one.
    index: Option<u64>,
    /// The index with which its arguments come, if it is another one.
    index_of_arguments: Option<u64>,
    /// The call, with what has come of its arguments since it began.
    call: CallItem,
    /// The item as it began, which is JSON.
    item: String,
}

/// What an event with arguments says of their call.
#[derive(Debug, Clone, Copy)]
pub struct CallRef<'a> {
    /// The provider's index of the item; not every server gives one.
    pub index: Option<u64>,
    /// The id of the item; empty if there is none.
    pub item_id: &'a str,
}

/// How sure it is that a complete item is of a call that has begun.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// The index is the same or there is no id to compare, and the item says nothing else than the call.
    Likely,
    /// The index is the same, and there is no id to compare.
    SameIndex,
    SameId,
    /// Some servers give all calls one id.
    SameIdAndIndex,
}

impl BegunCall {
    /// Compares it with the complete item of a call; `None` if that is another one.
    fn likeness(&self, index: Option<u64>, done: &CallItem) -> Option<Likeness> {
        let begun = &self.call;
        let has_index = index.is_some() && index == self.index;
        let says_same =
            begun.name == done.name && (begun.arguments.is_empty() || begun.has_arguments_of(done));
        match begun.has_ids_of(done) {
            Some(true) if has_index => Some(Likeness::SameIdAndIndex),
            Some(true) => Some(Likeness::SameId),
            None if has_index => Some(Likeness::SameIndex),
            None if says_same => Some(Likeness::Likely),
            // Some servers give each event another id.
            Some(false) if has_index && says_same => Some(Likeness::Likely),
            _ => None,
        }
    }
}

impl BegunCalls {
    /// Begins a call with this item, if there is room for it.
    pub fn begin(&mut self, index: Option<u64>, begun: CallItem, item: &str) {
        // The texts of the call are a part of the item.
        if self.calls.len() < MAX_CALLS && self.budget.spend(ITEM + 2 * item.len()) {
            let arguments = String::new();
            self.calls.push(BegunCall {
                index,
                index_of_arguments: None,
                call: CallItem { arguments, ..begun },
                item: item.to_owned(),
            });
        }
    }

    /// Adds to the arguments of a call. Without room for them they stay cut, and are no JSON.
    pub fn add(&mut self, of: &CallRef, arguments: &str) {
        if self.budget.spend(arguments.len())
            && let Some(place) = self.place_of_arguments(of, arguments)
        {
            self.calls[place].call.arguments.push_str(arguments);
        }
    }

    /// Completes the arguments of a call.
    pub fn complete(&mut self, of: &CallRef, arguments: &str) {
        if !arguments.is_empty()
            && self.budget.spend(arguments.len())
            && let Some(place) = self.place_of_arguments(of, arguments)
        {
            arguments.clone_into(&mut self.calls[place].call.arguments);
        }
    }

    /// Drops a call, because its complete item has come, unless that has no arguments and the call has some.
    pub fn end(&mut self, index: Option<u64>, done: &CallItem) {
        let begun = self.calls.iter().enumerate();
        let alike = begun.filter_map(|(place, call)| Some((call.likeness(index, done)?, place)));
        if let Some((_, place)) = alike.max()
            && !done.is_completed_by(&self.calls[place].call)
        {
            self.calls.remove(place);
        }
    }

    /// Takes the items of the calls that have not ended, with their arguments.
    pub fn take(&mut self) -> Vec<Value> {
        let calls = std::mem::take(&mut self.calls);
        let items = calls.into_iter().filter_map(|begun| {
            let mut item: Value = serde_json::from_str(&begun.item).ok()?;
            let arguments = begun.call.arguments;
            if !arguments.is_empty() {
                item.as_object_mut()?
                    .insert("arguments".to_owned(), arguments.into());
            }
            Some(item)
        });
        items.collect()
    }

    /// Whether the arguments of a call may be among those of which it cannot be told to which call they belong.
    pub fn may_have_lost_arguments(&self, call: &CallItem) -> bool {
        self.has_stray_arguments && may_lack_arguments(&call.arguments)
    }

    /// Returns the place of the call that has these arguments, see [`BegunCalls::place_of`], and notes if that cannot be told.
    fn place_of_arguments(&mut self, of: &CallRef, arguments: &str) -> Option<usize> {
        let place = self.place_of(of);
        self.has_stray_arguments |= place.is_none() && !arguments.trim().is_empty();
        place
    }

    /// Returns the place of the call whose arguments come: the latest one whose item has the id and the index, or else the id, or
    /// the index, or the latest of all if there is no index. Not all servers count alike, so it may be a call without an index or
    /// the only one, if no arguments have come for it: a call never gets those of another one.
    fn place_of(&mut self, of: &CallRef) -> Option<usize> {
        let index = of.index;
        let has_id = |begun: &BegunCall| !of.item_id.is_empty() && begun.call.id == of.item_id;
        let has_index = |begun: &BegunCall| {
            begun.index == index || (index.is_some() && begun.index_of_arguments == index)
        };
        // Some servers give all calls one id.
        let has_both = |begun: &BegunCall| index.is_some() && has_id(begun) && has_index(begun);
        let signs: [&dyn Fn(&BegunCall) -> bool; 3] = [&has_both, &has_id, &has_index];
        for is_same in signs {
            if let Some(place) = self.calls.iter().rposition(is_same) {
                return Some(place);
            }
        }
        let place = self.calls.len().checked_sub(1)?;
        let latest = &mut self.calls[place];
        if index.is_some() {
            let may_count_otherwise = place == 0 || latest.index.is_none();
            if !may_count_otherwise || !latest.call.arguments.is_empty() {
                return None;
            }
            latest.index_of_arguments = index;
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn each_call_that_has_begun_gets_its_own_arguments_and_ends_with_its_own_item() {
        // What comes: `b0 x` begins a call with the index 0 and the id x, `a0 1` adds to its arguments, `c0 1` has all of them,
        // `e0 x 1` is the complete item, and in `b0.f` and `a0.f` the item has the id f; then the calls that are left, with their
        // arguments. Dashes stand for what is missing.
        let table = r##"
            b0 x ; a0 1 ; a0 2 | x 12
            b0 x ; a0 1 ; c0 12 | x 12
            b0 x ; a- 1 ; a- 2 | x 12
            b- x ; a0 1 ; a0 2 | x 12
            b0 x ; a5 1 ; a5 2 ; c5 12 | x 12
            b0 x ; a5 1 ; a0 2 | x 12
            b0 x ; a0 1 ; a5 2 | x 1
            b0 x ; b1 y ; a5 1 | x - ; y -
            b0 x ; b1 y ; a- 1 | x - ; y 1
            b0 x ; b1 y ; a0 1 ; a1 2 ; a0 3 | x 13 ; y 2
            b- x ; a0 1 ; b- y ; a1 2 ; a1 3 | x 1 ; y 23
            b- x ; a- 1 ; b- y ; a- 2 | x 1 ; y 2
            a0 1 | -
            b0 x ; e0 x 1 | -
            b0 x ; e5 x 1 | -
            b0 x ; e- x 1 | -
            b- x ; e- x 1 | -
            b0 x ; a0 1 ; e0 x 2 | -
            b0 x ; e0 - 1 | -
            b0 - ; e0 x 1 | -
            b0 - ; a0 1 ; e0 - 2 | -
            b- - ; e- - 1 | -
            b0 - ; e5 - 1 | -
            b0 - ; a0 1 ; e5 - 1 | -
            b0 - ; a0 1 ; e5 - 2 | - 1
            b0 x ; e1 y 1 | x -
            b0 x ; e- y 1 | x -
            b0 x ; a0 1 ; e0 y 1 | -
            b0 x ; a0 1 ; e0 y 2 | x 1
            b0 x ; b1 y ; e1 x 1 | y -
            b0 x ; b0 y ; e0 x 1 | y -
            b0 x ; b1 y ; e0 - 1 | y -
            b0 x ; b1 y ; e- - 1 | x -
            b0.f x ; b0.g y ; a0.f 1 ; a0.g 2 ; a0.f 3 ; a0.h 4 | x 13 ; y 24
            b0.f x ; b1.g y ; a1.f 1 ; a0.g 2 | x 1 ; y 2
            b0.f x ; b1.f x ; a0.f 1 ; a1.f 2 ; a0.f 3 | x 13 ; x 2
            b0.f x ; b0.f x ; a0.f 1 ; a0.f 2 | x - ; x 12
            b0.f x ; b1.f x ; a-.f 1 | x - ; x 1
            b0 x ; a0 1 ; b1 x ; a1 2 ; e0 x 1 | x 2
            b0 x ; a0 1 ; b1 x ; a1 2 ; e1 x 2 | x 1
        "##;
        for [events, expected] in rows(table) {
            let mut begun = BegunCalls::default();
            for event in events.split(" ; ") {
                let mut words = event.split(' ');
                let mut next = || words.next().unwrap_or_default();
                let (kind, index) = next().split_at(1);
                let (index, item_id) = index.split_once('.').unwrap_or((index, ""));
                let (index, id) = (index.parse().ok(), next());
                let of = CallRef { index, item_id };
                let item = CallItem {
                    call_id: id.trim_matches('-').to_owned(),
                    id: item_id.to_owned(),
                    arguments: next().to_owned(),
                    ..CallItem::default()
                };
                match kind {
                    "b" => begun.begin(index, item, &format!("{{\"call_id\":\"{id}\"}}")),
                    "a" => begun.add(&of, id),
                    "c" => begun.complete(&of, id),
                    _ => begun.end(index, &item),
                }
            }
            let mut left = Vec::new();
            for item in begun.take() {
                let arguments = item["arguments"].as_str().unwrap_or("-");
                left.push(format!(
                    "{} {arguments}",
                    item["call_id"].as_str().expect(events)
                ));
            }
            assert_eq!(left.join(" ; "), expected, "{events}");
        }
    }
}
