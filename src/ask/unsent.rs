//! Names the earlier messages that are not sent with a question, for a note (pure).

use crate::message::{Message, Role};
use crate::text::fence;

/// The most files that a note names, unless there is only one more.
const MAX_NAMED: usize = 3;

/// The name of input in a note. It came with an earlier question.
const INPUT: &str = "earlier input";

/// Earlier messages that are not sent, and what their questions came with.
#[derive(Debug, Default)]
pub struct Unsent {
    /// How many they are.
    pub count: usize,
    /// How many bytes their texts have.
    pub bytes: usize,
    /// The files and the input, each once.
    attached: Vec<String>,
    /// How many belong to questions that came with neither.
    plain: usize,
    /// Whether the last question came with one.
    is_attached: bool,
}

impl Unsent {
    /// Adds a message, which comes after those that are there.
    pub fn add(&mut self, message: &Message) {
        self.count += 1;
        self.bytes += message.text.len();
        if message.role == Role::User {
            let names = attached_names(message);
            self.is_attached = !names.is_empty();
            for name in names {
                if !self.attached.contains(&name) {
                    self.attached.push(name);
                }
            }
        }
        if !self.is_attached {
            self.plain += 1;
        }
    }

    /// Returns the beginning of a note: what is not sent with this question; `None` if that is nothing. A file that it brings
    /// again is not named.
    pub fn in_words(&self, question: &Message) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        let mut again = attached_names(question);
        again.retain(|name| name != INPUT);
        let is_missing = |name: &&String| !again.contains(name);
        let mut named = Vec::from_iter(self.attached.iter().filter(is_missing).cloned());
        if named.is_empty() {
            return Some(format!("older messages not sent: {}", self.count));
        }
        let others = named.len() - MAX_NAMED.min(named.len());
        if others > 1 {
            named.truncate(MAX_NAMED);
            named.push(format!("{others} other files"));
        }
        match self.plain {
            0 => {}
            1 => named.push("1 older message".to_owned()),
            count => named.push(format!("{count} older messages")),
        }
        let is_one = named.len() == 1;
        let verb = if is_one { "is" } else { "are" };
        let last = named.pop().unwrap_or_default();
        let listed = if is_one {
            last
        } else {
            format!("{} and {last}", named.join(", "))
        };
        Some(format!("{listed} {verb} not sent again"))
    }
}

/// Returns the names of the files that a question came with, and a word for its input.
fn attached_names(question: &Message) -> Vec<String> {
    let mut names = fence::file_names(&question.text);
    for attachment in &question.attachments {
        names.push(attachment.name.clone());
    }
    if question.input_alone || !fence::split_input(&question.text).0.is_empty() {
        names.push(INPUT.to_owned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    /// A message: `?` begins a question, and `+NAME` before its end is a file or, as `+`, input.
    fn message(text: &str) -> Message {
        let Some(question) = text.strip_prefix('?') else {
            return Message::text(Role::Assistant, text);
        };
        let mut parts = Vec::new();
        for name in question.split('+').skip(1) {
            parts.push(match name {
                "" => fence::around_input("log"),
                name => fence::around_file(name, "text"),
            });
        }
        parts.push("why?".to_owned());
        Message::text(Role::User, fence::join(parts.iter().map(String::as_str)))
    }

    #[test]
    fn files_and_input_that_are_not_sent_are_named_unless_the_question_brings_them() {
        for [unsent, question, expected] in rows(
            "
            -           | ?    | -
            ? a         | ?    | older messages not sent: 2
            a           | ?    | older messages not sent: 1
            ?+f a       | ?    | f is not sent again
            ?+f         | ?    | f is not sent again
            ?+f&<\" a   | ?    | f&<\" is not sent again
            ?+ a        | ?    | earlier input is not sent again
            ?+ a        | ?+   | earlier input is not sent again
            ?+f a       | ?+f  | older messages not sent: 2
            ?+f+g a     | ?+f  | g is not sent again
            ?+f+ a      | ?    | f and earlier input are not sent again
            ?+f a ?+f a | ?    | f is not sent again
            ?+f a ? a   | ?    | f and 2 older messages are not sent again
            a ?+f a     | ?    | f and 1 older message are not sent again
            ?+e+f+g+h   | ?    | e, f, g and h are not sent again
            ?+e+f+g+h+i | ?    | e, f, g and 2 other files are not sent again",
        ) {
            let mut all = Unsent::default();
            for text in unsent.split_whitespace() {
                all.add(&message(text));
            }
            let found = all.in_words(&message(question)).unwrap_or_default();
            assert_eq!(found, expected, "{unsent}, {question}");
        }
    }
}
