//! The messages of the conversation that go with the question, and fewer of them where they are too many.

use crate::output::Notes;
use crate::prompt::{self, Said};

/// A conversation's newest messages.
pub(super) struct Window {
    pub(super) messages: Vec<Said>,
    /// How many the provider found too many.
    left_out: usize,
}

impl Window {
    /// Those that have at most so many bytes together; a note says how many do not go along.
    pub(super) fn new(messages: Vec<Said>, most_bytes: usize, notes: &Notes) -> Window {
        let (messages, left_out) = prompt::fit(messages, most_bytes);
        if left_out > 0 {
            notes.note(&format!(
                "{} not sent: together they have more than {most_bytes} bytes (max_history)",
                counted(left_out)
            ));
        }
        Window { messages, left_out: 0 }
    }

    /// Leaves out the older half. Returns whether there was one.
    pub(super) fn halve(&mut self) -> bool {
        let half = self.messages.len().div_ceil(2);
        self.messages.drain(..half);
        self.left_out += half;
        half > 0
    }

    /// Says how many messages the provider found too many, if it did.
    pub(super) fn tell(&self, notes: &Notes) {
        if self.left_out > 0 {
            notes.note(&format!("{} not sent: the conversation is too long for the model", counted(self.left_out)));
        }
    }
}

fn counted(messages: usize) -> String {
    if messages == 1 { "the oldest message was".to_owned() } else { format!("the {messages} oldest messages were") }
}
