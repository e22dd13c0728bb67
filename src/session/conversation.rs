//! A conversation: its exchanges, and the rules for sending, counting and dropping them (pure).

use std::sync::Arc;

use serde::Serialize;

use super::entry::{Entry, StoredEntry, UnknownFields};
use super::timestamp::Timestamp;
use crate::message::Role;

/// The version of the format that q reads and writes.
pub const VERSION: u64 = 1;

/// The content of a conversation's file, in the order of its fields but for the unknown ones, which come before the messages.
/// [`super::format`] reads and writes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conversation {
    pub version: u64,
    /// The provider and the model of the last exchange.
    pub provider: String,
    pub model: String,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// The system prompt that was given for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The tools that its questions may use, as `-t` names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Whether a user chose its provider or its model for it, so that a follow-up keeps them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Oldest first. The file has a list of messages.
    #[serde(skip)]
    pub exchanges: Vec<Exchange>,
    #[serde(skip)]
    pub unknown_fields: UnknownFields,
    /// The text of the file that it was read from, whatever has changed in it since; `None` if it was not read.
    #[serde(skip)]
    pub source: Option<Arc<String>>,
}

/// A question and its answer. In a file that another program wrote, the first question may be missing, and a question
/// may have several answers or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Never empty.
    pub entries: Vec<StoredEntry>,
}

impl Exchange {
    /// Returns a question and its answer, which are in no file yet.
    pub fn new(question: &Entry, answer: &Entry) -> serde_json::Result<Exchange> {
        Ok(Exchange {
            entries: vec![StoredEntry::new(question)?, StoredEntry::new(answer)?],
        })
    }

    /// Returns the question, if there is one.
    pub fn question(&self) -> Option<&StoredEntry> {
        let first = self.entries.first();
        first.filter(|entry| entry.facts.role == Role::User)
    }

    /// Whether its question came with files or input.
    pub fn brings_input(&self) -> bool {
        self.question()
            .is_some_and(|question| question.facts.brings_input)
    }

    /// Returns the last answer, if there is one.
    pub fn answer(&self) -> Option<&StoredEntry> {
        let last = self.entries.last();
        last.filter(|entry| entry.facts.role == Role::Assistant)
    }

    /// Whether its last answer is complete.
    pub fn is_complete(&self) -> bool {
        self.answer()
            .is_some_and(|answer| !answer.facts.interrupted && !answer.facts.has_finish)
    }

    /// Whether the provider blocked the answer: it broke off, with a finish reason.
    pub fn is_blocked(&self) -> bool {
        self.answer()
            .is_some_and(|answer| answer.facts.interrupted && answer.facts.has_finish)
    }
}

impl Conversation {
    /// Returns a conversation without messages, which no model has answered yet.
    pub fn new(created: Timestamp) -> Conversation {
        Conversation {
            version: VERSION,
            provider: String::new(),
            model: String::new(),
            created,
            updated: created,
            system: None,
            tools: Vec::new(),
            pinned: false,
            exchanges: Vec::new(),
            unknown_fields: UnknownFields::default(),
            source: None,
        }
    }

    /// Returns all messages, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &StoredEntry> {
        self.exchanges.iter().flat_map(|exchange| &exchange.entries)
    }

    pub fn message_count(&self) -> usize {
        self.entries().count()
    }

    /// Cuts the results of tool calls, which only the newest exchange has complete.
    pub fn cut_results(&mut self) {
        for exchange in &mut self.exchanges {
            for entry in &mut exchange.entries {
                entry.cut_results();
            }
        }
    }

    /// Adds an exchange to the end.
    pub fn add(&mut self, exchange: Exchange) {
        if let Some(entry) = exchange.entries.last()
            && let Some(updated) = entry.timestamp()
        {
            // A clock that was behind for a moment must not make the conversation look idle.
            self.updated = updated.max(self.updated);
        }
        self.exchanges.push(exchange);
    }

    /// Removes the oldest exchanges until at most this many remain.
    pub fn keep_last(&mut self, most: usize) {
        let surplus = self.exchanges.len().saturating_sub(most);
        self.exchanges.drain(..surplus);
    }
}

/// Groups messages: each question begins an exchange.
pub(super) fn grouped(entries: impl Iterator<Item = StoredEntry>) -> Vec<Exchange> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    for entry in entries {
        match exchanges.last_mut() {
            Some(exchange) if entry.facts.role == Role::Assistant => exchange.entries.push(entry),
            _ => exchanges.push(Exchange {
                entries: vec![entry],
            }),
        }
    }
    exchanges
}

#[cfg(test)]
pub mod tests {
    use time::OffsetDateTime;

    use super::*;
    use crate::message::Message;

    pub fn moment(second: i64) -> Timestamp {
        Timestamp::new(OffsetDateTime::from_unix_timestamp(1_790_000_000 + second).expect("a time"))
    }

    pub fn exchange(question: &str, answer: &str, second: i64) -> Exchange {
        let question = Entry::new(Message::text(Role::User, question), moment(second));
        let answer = Entry::new(Message::text(Role::Assistant, answer), moment(second + 1));
        Exchange::new(&question, &answer).expect("JSON")
    }

    /// Changes a message.
    pub fn change(stored: &mut StoredEntry, change: impl FnOnce(&mut Entry)) {
        let mut entry = stored.entry();
        change(&mut entry);
        *stored = StoredEntry::new(&entry).expect("JSON");
    }

    /// A conversation with these exchanges, begun at moment 0.
    pub fn conversation(exchanges: &[(&str, &str)]) -> Conversation {
        let mut conversation = Conversation {
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            ..Conversation::new(moment(0))
        };
        for (second, (question, answer)) in exchanges.iter().enumerate() {
            conversation.add(exchange(question, answer, second as i64));
        }
        conversation
    }

    #[test]
    fn a_clock_that_goes_back_leaves_the_time_of_the_last_change() {
        let mut conversation = conversation(&[("one", "1")]);
        let before = conversation.updated;
        conversation.add(exchange("two", "2", -60));
        assert_eq!(conversation.updated, before);
    }
}
