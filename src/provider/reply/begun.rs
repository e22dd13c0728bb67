//! Calls whose items have begun in a stream. Not every server sends an item again once it is complete (pure).

use serde_json::Value;

use crate::provider::kept::{ByteBudget, ITEM};

/// The calls that have begun, and of which no complete item has come.
#[derive(Debug, Default)]
pub struct BegunCalls {
    calls: Vec<BegunCall>,
    budget: ByteBudget,
}

/// A call that has begun.
#[derive(Debug)]
struct BegunCall {
    /// The provider's index of the item; not every server gives one.
    index: Option<u64>,
    /// The item as it began, which is JSON.
    item: String,
    /// What has come of the arguments.
    arguments: String,
}

impl BegunCalls {
    /// Begins a call with this item, if there is room for it.
    pub fn begin(&mut self, index: Option<u64>, item: &str) {
        if self.budget.spend(ITEM + item.len()) {
            self.calls.push(BegunCall {
                index,
                item: item.to_owned(),
                arguments: String::new(),
            });
        }
    }

    /// Adds to the arguments of a call. Without room for them they stay cut, and are no JSON.
    pub fn add(&mut self, index: Option<u64>, arguments: &str) {
        if self.budget.spend(arguments.len())
            && let Some(place) = self.place_of(index)
        {
            self.calls[place].arguments.push_str(arguments);
        }
    }

    /// Completes the arguments of a call.
    pub fn complete(&mut self, index: Option<u64>, arguments: &str) {
        if !arguments.is_empty()
            && self.budget.spend(arguments.len())
            && let Some(place) = self.place_of(index)
        {
            arguments.clone_into(&mut self.calls[place].arguments);
        }
    }

    /// Drops a call, because its complete item has come.
    pub fn end(&mut self, index: Option<u64>) {
        if let Some(place) = self.place_of(index) {
            self.calls.remove(place);
        }
    }

    /// Takes the items of the calls that have not ended, with their arguments.
    pub fn take(&mut self) -> Vec<Value> {
        let calls = std::mem::take(&mut self.calls);
        let items = calls.into_iter().filter_map(|call| {
            let mut item: Value = serde_json::from_str(&call.item).ok()?;
            if !call.arguments.is_empty() {
                item.as_object_mut()?
                    .insert("arguments".to_owned(), call.arguments.into());
            }
            Some(item)
        });
        items.collect()
    }

    /// Returns the place of the latest call with this index, or else of the latest one: not all servers count alike.
    fn place_of(&self, index: Option<u64>) -> Option<usize> {
        let own = self.calls.iter().rposition(|call| call.index == index);
        own.or_else(|| self.calls.len().checked_sub(1))
    }
}
