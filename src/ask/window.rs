//! The messages of the conversation that go with the question, and fewer of them where they are too many.

use super::prompt;
use crate::message::{Role, Said};
use crate::output::Notes;
use crate::settings::{History, Values};

/// A conversation's newest messages.
pub(super) struct Window {
    pub(super) messages: Vec<Said>,
    form: History,
    /// How many the provider found too many.
    left_out: usize,
}

impl Window {
    /// Those that have at most so many bytes together as the settings say; a note says how many do not go along.
    pub(super) fn new(messages: Vec<Said>, values: &Values, notes: &Notes) -> Window {
        let (messages, left_out) = prompt::fit(messages, values.max_history);
        if left_out > 0 {
            notes.note(&format!(
                "{} not sent: together they have more than {} bytes (max_history)",
                counted(left_out),
                values.max_history
            ));
        }
        let mut window = Window { messages, form: values.history, left_out: 0 };
        window.drop_leading_answer();
        window
    }

    /// Leaves out the older half. Returns whether there was one.
    pub(super) fn halve(&mut self) -> bool {
        let before = self.messages.len();
        self.messages.drain(..before.div_ceil(2));
        self.drop_leading_answer();
        self.left_out += before - self.messages.len();
        before > 0
    }

    /// Messages of their own must begin with a question.
    fn drop_leading_answer(&mut self) {
        if self.form == History::Messages && self.messages.first().is_some_and(|said| said.role == Role::Assistant) {
            self.messages.remove(0);
        }
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
