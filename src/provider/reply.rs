//! The reply as it grows: the answer's text without the reasoning, how it ended, and what it used.

use super::failure::Failure;
use super::template::Template;

const THINK_OPEN: &str = "<think>";
const THINK_CLOSE: &str = "</think>";

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It had said everything.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The provider held the answer, or its rest, back; its own word for why.
    Blocked(String),
    /// Some other reason, in the provider's word.
    Other(String),
}

impl Finish {
    /// `stop`, `length` or the provider's word.
    pub(crate) fn word(&self) -> &str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::Blocked(word) | Finish::Other(word) => word,
        }
    }
}

/// Tokens, as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Usage {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
}

/// Where in an answer the text stands that comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing yet but white space and what may become `<think>`; it is held back.
    #[default]
    Start,
    /// Between `<think>` and `</think>`; what may be part of the closing tag is held back.
    Thinking,
    /// Behind `</think>`: white space is dropped.
    Thought,
    /// In the answer.
    Answer,
}

/// What has arrived so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    text: String,
    taken: usize,
    place: Place,
    held: String,
    finish: Option<Finish>,
    ended: bool,
    usage: Usage,
    failure: Option<Failure>,
    /// The form of the last event that had text and nothing else.
    pub(super) template: Template,
}

impl Reply {
    /// Adds to the answer. A leading `<think>…</think>` is reasoning and is left out.
    pub(crate) fn add_text(&mut self, piece: &str) {
        if self.place == Place::Answer {
            self.text.push_str(piece);
            return;
        }
        self.held.push_str(piece);
        if self.place == Place::Start {
            let begin = self.held.trim_start();
            if let Some(thought) = begin.strip_prefix(THINK_OPEN) {
                self.held = thought.to_owned();
                self.place = Place::Thinking;
            } else if !THINK_OPEN.starts_with(begin) {
                self.release();
            }
        }
        if self.place == Place::Thinking {
            match self.held.find(THINK_CLOSE) {
                Some(at) => {
                    self.held.drain(..at + THINK_CLOSE.len());
                    self.place = Place::Thought;
                }
                None => {
                    let keep = self.held.len().saturating_sub(THINK_CLOSE.len());
                    let keep = (0..=keep).rev().find(|at| self.held.is_char_boundary(*at)).unwrap_or(0);
                    self.held.drain(..keep);
                }
            }
        }
        if self.place == Place::Thought {
            self.held = self.held.trim_start().to_owned();
            if !self.held.is_empty() {
                self.release();
            }
        }
    }

    fn release(&mut self) {
        self.text.push_str(&self.held);
        self.held = String::new();
        self.place = Place::Answer;
    }

    /// The model has stopped. More may come: usage, and the end.
    pub(crate) fn finish(&mut self, finish: Finish) {
        self.finish = Some(finish);
    }

    /// Nothing more will come.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        // An answer may be shorter than `<think>` and begin like it.
        if self.place == Place::Start && !self.held.trim().is_empty() {
            self.release();
        }
    }

    /// The server said that it failed.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }

    /// Takes over the counts that are told; a later count replaces an earlier one.
    pub(crate) fn add_usage(&mut self, input_tokens: Option<u64>, output_tokens: Option<u64>) {
        self.usage.input_tokens = input_tokens.or(self.usage.input_tokens);
        self.usage.output_tokens = output_tokens.or(self.usage.output_tokens);
    }

    /// The answer so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What has been added to the answer since the last call.
    pub(crate) fn take_fresh(&mut self) -> &str {
        let from = std::mem::replace(&mut self.taken, self.text.len());
        &self.text[from..]
    }

    pub(crate) fn finished(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// The terminal event has come.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Nothing of the answer is missing, though more of the stream may come.
    pub(crate) fn is_whole(&self) -> bool {
        let blocked = matches!(self.finish, Some(Finish::Blocked(_)));
        (self.ended || self.finish.is_some()) && !blocked && self.failure.is_none()
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        (self.usage != Usage::default()).then_some(self.usage)
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(pieces: &[&str]) -> String {
        let mut reply = Reply::default();
        let mut shown = String::new();
        for piece in pieces {
            reply.add_text(piece);
            shown.push_str(reply.take_fresh());
        }
        reply.end();
        shown.push_str(reply.take_fresh());
        assert_eq!(shown, reply.text());
        shown
    }

    #[test]
    fn leading_reasoning_is_left_out() {
        for (whole, answer) in [
            ("plain", "plain"),
            ("  indented", "  indented"),
            ("<think>let me see</think>\n\n42", "42"),
            ("\n<think>\nso\n</think>42", "42"),
            ("<think></think>42", "42"),
            ("<think>never closed", ""),
            ("<thin", "<thin"),
            ("<thinking> is a tag", "<thinking> is a tag"),
            ("see <think>this</think>", "see <think>this</think>"),
            ("<think>ä</thinkö</think>ü", "ü"),
            ("", ""),
        ] {
            assert_eq!(text_of(&[whole]), answer, "{whole}");
            let characters: Vec<String> = whole.chars().map(String::from).collect();
            let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
            assert_eq!(text_of(&characters), answer, "{whole}, by character");
        }
    }

    proptest! {
        #[test]
        fn where_an_answer_is_split_does_not_matter(
            thought in "[a-z<>/ ]{0,12}", answer in "[a-z<>/ ]{0,12}", at in 0usize..48,
        ) {
            let whole = format!("<think>{thought}</think>{answer}");
            let at = at.min(whole.len());
            prop_assert_eq!(text_of(&[&whole[..at], &whole[at..]]), text_of(&[&whole]));
        }
    }
}
