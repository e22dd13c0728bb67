//! A conversation: its exchanges, and the rules for sending, counting and dropping them (pure).

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::timestamp::Timestamp;
use crate::message::{self, Attachment, Message, Role, Step, Unknown, cut_results, or_default};

/// The version of the format that q reads and writes.
pub const VERSION: u64 = 1;

/// Sent instead of an answer that broke off before its first word.
const INTERRUPTED: &str = "(interrupted)";

/// The content of a conversation's file, in the order of its fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a conversation")]
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
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tools: Vec<String>,
    /// A user chose its provider or its model for it, so a follow-up keeps them.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub pinned: bool,
    /// Oldest first. The file has a list of messages, which [`super::format`] writes.
    #[serde(rename = "messages", deserialize_with = "grouped", skip_serializing)]
    pub exchanges: Vec<Exchange>,
    #[serde(flatten)]
    pub unknown: Unknown,
    /// The bytes of the file that it was read from, whatever has changed in it since; `None` if it was not read.
    #[serde(skip)]
    pub source: Option<Arc<Vec<u8>>>,
}

/// A question and its answer. In a file that another program wrote, the first question may be missing, and a question
/// may have several answers or none.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Never empty.
    pub entries: Vec<Entry>,
}

/// A message, and what its file says about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a message")]
pub struct Entry {
    pub role: Role,
    #[serde(rename = "content")]
    pub text: Arc<str>,
    /// RFC 3339, but files from other programs may lack it or write it differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    /// Requests have them before the text.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub attachments: Vec<Attachment>,
    /// See [`Message::input_alone`]. Questions of q 0.3.0 lack it.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    input_alone: bool,
    /// The answer broke off.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub interrupted: bool,
    /// The provider's finish reason, if the answer is incomplete or was blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// The provider and the model that answered. Files of q 0.2 may lack them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the answer used, see [`crate::message::Usage`]; `--history` shows its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// The pages that the answer names, see [`crate::message::Source`]. Another program may write them in another form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Value>,
    /// The tool calls that led to the answer.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub steps: Vec<Step>,
    #[serde(flatten)]
    pub unknown: Unknown,
}

impl Entry {
    /// A message that is in no file yet.
    pub fn new(message: Message, timestamp: Timestamp) -> Entry {
        Entry {
            role: message.role,
            text: message.text,
            timestamp: Some(timestamp.to_string()),
            attachments: message.attachments,
            input_alone: message.input_alone,
            ..Entry::default()
        }
    }

    /// When it was written, if the file says so in a form that q reads.
    pub fn timestamp(&self) -> Option<Timestamp> {
        Timestamp::parse(self.timestamp.as_deref()?)
    }

    /// The message as it is sent with a follow-up: its calls become text before the answer.
    pub fn to_message(&self) -> Message {
        let mut text = Arc::clone(&self.text);
        if !self.steps.is_empty() {
            let answer = if text.is_empty() { INTERRUPTED } else { &text };
            let mut steps = self.steps.clone();
            cut_results(&mut steps);
            text = format!("{}\n\n{answer}", message::calls_as_text(&steps)).into();
        }
        let mut attachments = self.attachments.clone();
        // Those of q 0.2 may have been lost. No provider takes those that another program gave to an answer.
        attachments.retain(|attachment| self.role == Role::User && !attachment.data.is_empty());
        Message {
            input_alone: self.input_alone,
            ..Message::with_attachments(self.role, attachments, text)
        }
    }
}

impl Exchange {
    /// The question, if there is one.
    pub fn question(&self) -> Option<&Entry> {
        let first = self.entries.first();
        first.filter(|entry| entry.role == Role::User)
    }

    /// The last answer, if there is one.
    pub fn answer(&self) -> Option<&Entry> {
        let last = self.entries.last();
        last.filter(|entry| entry.role == Role::Assistant)
    }

    /// Whether its last answer is complete.
    pub fn is_complete(&self) -> bool {
        self.answer()
            .is_some_and(|answer| !answer.interrupted && answer.finish.is_none())
    }

    /// Whether the provider blocked the answer: it broke off, with a finish reason.
    pub fn is_blocked(&self) -> bool {
        self.answer()
            .is_some_and(|answer| answer.interrupted && answer.finish.is_some())
    }
}

impl Conversation {
    /// A conversation without messages, which no model has answered yet.
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
            unknown: Unknown::new(),
            source: None,
        }
    }

    /// All messages, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.exchanges.iter().flat_map(|exchange| &exchange.entries)
    }

    pub fn message_count(&self) -> usize {
        self.entries().count()
    }

    /// Cuts the results of tool calls, which only the newest exchange has complete.
    pub fn cut_results(&mut self) {
        for exchange in &mut self.exchanges {
            for entry in &mut exchange.entries {
                cut_results(&mut entry.steps);
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
fn grouped<'de, D: Deserializer<'de>>(field: D) -> Result<Vec<Exchange>, D::Error> {
    let mut exchanges: Vec<Exchange> = Vec::new();
    for entry in Vec::<Entry>::deserialize(field)? {
        match exchanges.last_mut() {
            Some(exchange) if entry.role == Role::Assistant => exchange.entries.push(entry),
            _ => exchanges.push(Exchange {
                entries: vec![entry],
            }),
        }
    }
    Ok(exchanges)
}

#[cfg(test)]
pub mod tests {
    use time::OffsetDateTime;

    use super::*;

    pub fn moment(second: i64) -> Timestamp {
        Timestamp::new(OffsetDateTime::from_unix_timestamp(1_790_000_000 + second).expect("a time"))
    }

    pub fn exchange(question: &str, answer: &str, second: i64) -> Exchange {
        let question = Entry::new(Message::text(Role::User, question), moment(second));
        let answer = Entry::new(Message::text(Role::Assistant, answer), moment(second + 1));
        Exchange {
            entries: vec![question, answer],
        }
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
