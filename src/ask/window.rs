//! Chooses the messages of the conversation that go with the question, and fewer of them if they are too many. Puts them
//! together with the question.

use crate::message::{Message, Role};
use crate::output::Notes;
use crate::settings::{History, Values};

/// A conversation's newest messages.
pub struct Window {
    pub messages: Vec<Message>,
    form: History,
    /// How many older ones are left out, because the settings or the provider do not take more.
    left_out: usize,
}

impl Window {
    /// The newest messages, as many as the settings' limit on bytes allows.
    pub fn new(mut messages: Vec<Message>, values: &Values) -> Window {
        let all = messages.len();
        let mut bytes = 0;
        let mut fitting = 0;
        for message in messages.iter().rev() {
            bytes += message.text.len();
            if bytes > values.max_history {
                break;
            }
            fitting += 1;
        }
        messages.drain(..all - fitting);
        let mut window = Window {
            messages,
            form: values.history,
            left_out: 0,
        };
        window.drop_leading_answer();
        if fitting < all {
            // The answer to a question over the limit is left out with it.
            window.left_out = all - window.messages.len();
        }
        window
    }

    /// The messages to send: these, oldest first, and the question.
    pub fn with(&self, question: Message) -> Vec<Message> {
        let mut messages = self.messages.clone();
        messages.push(question);
        if self.form == History::Prompt && messages.len() > 1 {
            messages = vec![flattened(&messages)];
        }
        messages
    }

    /// Leaves out the older half. Returns whether there was anything to leave out.
    pub fn halve(&mut self) -> bool {
        let before = self.messages.len();
        self.messages.drain(..before.div_ceil(2));
        self.drop_leading_answer();
        self.left_out += before - self.messages.len();
        before > 0
    }

    /// Native messages must begin with a question.
    fn drop_leading_answer(&mut self) {
        if self.form == History::Messages
            && let Some(first) = self.messages.first()
            && first.role == Role::Assistant
        {
            self.messages.remove(0);
        }
    }

    /// Notes which provider gets messages that another provider answered.
    pub fn report_hand_over(&self, to: &str, notes: &Notes) {
        match self.messages.len() {
            0 => {}
            1 => notes.note(&format!("1 message of this conversation goes to {to}")),
            count => notes.note(&format!("{count} messages of this conversation go to {to}")),
        }
    }

    /// Notes how many messages are left out.
    pub fn report_left_out(&self, notes: &Notes) {
        let count = self.left_out;
        if count > 0 {
            notes.note(&format!(
                "older messages not sent: {count}, because max_history or the model allows no more"
            ));
        }
    }
}

/// Messages as one, with all their attachments. The last one is the question.
fn flattened(messages: &[Message]) -> Message {
    let mut attachments = Vec::new();
    let mut parts = Vec::new();
    for message in messages {
        attachments.extend_from_slice(&message.attachments);
        let name = match message.role {
            Role::User => "Human",
            Role::Assistant => "Assistant",
        };
        let text = &message.text;
        parts.push(format!("{name}: {text}"));
    }
    let prompt = format!("Previous conversation:\n{}", parts.join("\n\n"));
    Message::with_attachments(Role::User, attachments, prompt)
}
