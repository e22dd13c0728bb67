//! Chooses the messages of the conversation that go with the question, and fewer of them if they are too many. Puts them
//! together with the question.

use crate::message::{Message, Role};
use crate::output::Notes;
use crate::session::Exchange;
use crate::settings::{History, Values};

/// A conversation's newest messages.
pub struct Window {
    pub messages: Vec<Message>,
    form: History,
    /// How many older ones are left out, because `max_history` or the provider allows no more.
    left_out: usize,
}

impl Window {
    /// The newest messages of some exchanges, as many as the settings allow. Blocked exchanges are not sent again.
    pub fn new(exchanges: &[Exchange], values: &Values) -> Window {
        let sent = exchanges.iter().filter(|exchange| !exchange.is_blocked());
        let entries = Vec::from_iter(sent.flat_map(|exchange| &exchange.entries));
        let wanted = entries.len().min(values.messages);
        let mut messages = Vec::new();
        let mut bytes = 0;
        for entry in entries.iter().rev().take(wanted) {
            let message = entry.entry().to_message();
            bytes += message.text.len();
            if bytes > values.max_history {
                break;
            }
            messages.push(message);
        }
        let is_cut = messages.len() < wanted;
        messages.reverse();
        let mut window = Window {
            messages,
            form: values.history,
            left_out: 0,
        };
        window.drop_leading_answer();
        if is_cut {
            // The answer to a question over the limit is left out with it.
            window.left_out = wanted - window.messages.len();
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

    /// Notes that messages go to another provider or model than the one that answered them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Step, ToolCall, ToolRun};
    use crate::session::Conversation;
    use crate::session::conversation::tests::{change, conversation};

    fn newest(conversation: &Conversation, most: usize) -> Vec<Message> {
        let values = Values {
            messages: most,
            max_history: usize::MAX,
            ..Values::default()
        };
        Window::new(&conversation.exchanges, &values).messages
    }

    #[test]
    fn the_window_has_the_last_messages() {
        let conversation = conversation(&[("one", "1"), ("two", "2")]);
        for (most, expected) in [(0, ""), (1, "2"), (3, "1 two 2"), (9, "one 1 two 2")] {
            let window = newest(&conversation, most);
            let texts: Vec<_> = window.iter().map(|message| &*message.text).collect();
            assert_eq!(texts.join(" "), expected, "{most}");
        }
    }

    #[test]
    fn calls_go_along_as_text_and_a_missing_answer_is_marked() {
        for (text, expected) in [("yes", "\n\nyes"), ("", "\n\n(interrupted)")] {
            let mut conversation = conversation(&[("one", text)]);
            let run = ToolRun::new(&ToolCall::default(), "r", false);
            let calls = vec![run];
            change(&mut conversation.exchanges[0].entries[1], |answer| {
                answer.steps = vec![Step {
                    calls,
                    ..Step::default()
                }];
            });
            let window = newest(&conversation, 1);
            let sent = &window[0].text;
            let is_right = sent.starts_with("Tool ") && sent.ends_with(expected);
            assert!(is_right, "{sent}");
        }
    }

    #[test]
    fn a_blocked_exchange_is_not_sent_again() {
        for (interrupted, finish, sent) in [
            (true, Some("SAFETY"), 2),
            (true, None, 4),
            (false, Some("length"), 4),
            (false, None, 4),
        ] {
            let mut conversation = conversation(&[("one", "1"), ("two", "2")]);
            change(&mut conversation.exchanges[0].entries[1], |answer| {
                answer.interrupted = interrupted;
                answer.finish = finish.map(str::to_owned);
            });
            let found = newest(&conversation, 10).len();
            assert_eq!(found, sent, "{interrupted} {finish:?}");
        }
    }
}
