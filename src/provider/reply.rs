//! The reply as it is read: the answer's text without the reasoning, how it ended, and what it used.

use super::failure::ServerError;

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

/// Where in a reply the text stands that comes next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing yet but white space and what may become `<think>`; it is held back.
    #[default]
    Start,
    /// Between `<think>` and `</think>`; what may be part of the closing tag is held back.
    Thinking,
    /// After `</think>`: white space is dropped.
    Thought,
    /// In the answer.
    Answer,
}

/// What has been read so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Text of the answer that nobody has taken.
    text: String,
    /// The answer has more than white space.
    says_something: bool,
    stage: Stage,
    held: String,
    /// How much of what is held is white space that it begins with.
    held_blanks: usize,
    finish: Option<Finish>,
    ended: bool,
    usage: Usage,
    failure: Option<ServerError>,
}

impl Reply {
    /// Adds to the answer. A leading `<think>…</think>` is reasoning and is left out.
    pub(crate) fn add_text(&mut self, piece: &str) {
        match self.stage {
            Stage::Answer => self.release(piece),
            Stage::Start => self.add_at_start(piece),
            Stage::Thinking => {
                self.held.push_str(piece);
                self.look_for_the_end_of_reasoning();
            }
            Stage::Thought => self.add_after_reasoning(piece),
        }
    }

    fn add_at_start(&mut self, piece: &str) {
        // Only what is new is looked at, so that blanks without end take no longer than other text.
        if self.held.len() == self.held_blanks {
            self.held_blanks += piece.len() - piece.trim_start().len();
        }
        self.held.push_str(piece);
        let begin = &self.held[self.held_blanks..];
        if let Some(thought) = begin.strip_prefix(THINK_OPEN) {
            self.held = thought.to_owned();
            self.stage = Stage::Thinking;
            self.look_for_the_end_of_reasoning();
        } else if !THINK_OPEN.starts_with(begin) {
            self.begin_answer();
        }
    }

    fn look_for_the_end_of_reasoning(&mut self) {
        if let Some(at) = self.held.find(THINK_CLOSE) {
            let rest = self.held.split_off(at + THINK_CLOSE.len());
            self.held.clear();
            self.stage = Stage::Thought;
            self.add_after_reasoning(&rest);
        } else {
            let most = self.held.len().saturating_sub(THINK_CLOSE.len());
            let keep = (0..=most).rev().find(|at| self.held.is_char_boundary(*at)).unwrap_or(0);
            self.held.drain(..keep);
        }
    }

    fn add_after_reasoning(&mut self, piece: &str) {
        let piece = piece.trim_start();
        if !piece.is_empty() {
            self.stage = Stage::Answer;
            self.release(piece);
        }
    }

    /// What was held back is the beginning of the answer.
    fn begin_answer(&mut self) {
        self.stage = Stage::Answer;
        let held = std::mem::take(&mut self.held);
        self.release(&held);
    }

    fn release(&mut self, text: &str) {
        self.says_something = self.says_something || !text.trim().is_empty();
        self.text.push_str(text);
    }

    /// The model has stopped. More may come: usage, and the end.
    pub(crate) fn finish(&mut self, finish: Finish) {
        self.finish = Some(finish);
    }

    /// Nothing more will come.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        // An answer may be shorter than `<think>` and begin like it.
        if self.stage == Stage::Start && self.held.len() > self.held_blanks {
            self.begin_answer();
        }
    }

    /// The server said that it failed.
    pub(crate) fn fail(&mut self, failure: ServerError) {
        self.failure = Some(failure);
    }

    /// Takes over the counts that are reported; a later count replaces an earlier one.
    pub(crate) fn add_usage(&mut self, input_tokens: Option<u64>, output_tokens: Option<u64>) {
        self.usage.input_tokens = input_tokens.or(self.usage.input_tokens);
        self.usage.output_tokens = output_tokens.or(self.usage.output_tokens);
    }

    /// The text of the answer that has come since the last call.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Whether no text has come but white space.
    pub(crate) fn is_blank(&self) -> bool {
        !self.says_something
    }

    pub(crate) fn finished(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// The terminal event has come.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Nothing of the answer is missing, though more of the stream may come.
    pub(crate) fn is_complete(&self) -> bool {
        let blocked = matches!(self.finish, Some(Finish::Blocked(_)));
        (self.ended || self.finish.is_some()) && !blocked && self.failure.is_none()
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        (self.usage != Usage::default()).then_some(self.usage)
    }

    pub(crate) fn failure(&self) -> Option<&ServerError> {
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
            shown.push_str(&reply.take_text());
        }
        reply.end();
        shown.push_str(&reply.take_text());
        assert_eq!(reply.is_blank(), shown.trim().is_empty());
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
