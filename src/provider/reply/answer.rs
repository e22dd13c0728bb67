//! What a reply adds to the answer: text without reasoning and commentary, and sources (pure).

use crate::message::{Source, Sources};
use crate::provider::commentary::{Commentary, PARAGRAPH};
use crate::provider::kept::{ByteBudget, ITEM};
use crate::provider::reasoning::Filter;

/// The end of the answer so far.
#[derive(Debug, Default, Clone, Copy)]
pub struct AnswerTail {
    /// The last character; `None` if nothing has arrived yet.
    last: Option<char>,
    /// Whether the text that comes next is a paragraph of its own.
    ends_paragraph: bool,
}

/// The part of the answer that one reply adds.
#[derive(Debug, Default)]
pub struct AnswerPart {
    /// Text that has not been taken yet.
    text: String,
    /// Where the last message begins that began in this text.
    part_begin: Option<usize>,
    /// Whether there is more than whitespace.
    says_something: bool,
    /// The end of the answer so far, which a continuation follows. If this reply has none yet, it is the end of the answer
    /// that the reply continues.
    pub tail: AnswerTail,
    /// How many bytes have arrived since the last message began.
    length_of_last_part: usize,
    reasoning_filter: Filter,
    commentary: Commentary,
    sources: WaitingSources,
}

/// Sources that have not been taken yet, each once.
#[derive(Debug, Default)]
struct WaitingSources {
    sources: Sources,
    /// Once it is exhausted, the rest is dropped.
    budget: ByteBudget,
}

impl AnswerPart {
    /// Returns a part with that many bytes, which have been taken.
    pub fn of_length(length: usize) -> AnswerPart {
        AnswerPart {
            length_of_last_part: length,
            ..AnswerPart::default()
        }
    }

    /// Begins a message. It is a paragraph of the answer, or commentary.
    pub fn begin_message(&mut self, is_commentary: bool) {
        if is_commentary {
            self.think("\n");
            self.commentary.begin_message();
        } else {
            self.commentary.end_message();
            self.tail.ends_paragraph = true;
            self.reasoning_filter.begin_paragraph();
        }
    }

    /// Whether the text that comes is commentary.
    pub fn is_in_commentary(&self) -> bool {
        self.commentary.is_coming()
    }

    /// Adds text.
    pub fn add(&mut self, piece: &str) {
        let before = self.text.len();
        self.reasoning_filter.add(piece, &mut self.text);
        self.join(before);
    }

    /// Adds text to the message that has come, also where another one has begun since.
    pub fn add_to_last_message(&mut self, piece: &str) {
        let ends_paragraph = std::mem::take(&mut self.tail.ends_paragraph);
        self.add(piece);
        self.tail.ends_paragraph = ends_paragraph;
    }

    /// Adds commentary, if there is room for it.
    pub fn add_commentary(&mut self, piece: &str, fits: bool) {
        self.commentary.push(piece, fits);
        self.think(piece);
    }

    /// Adds reasoning, which is no part of the text.
    pub fn think(&mut self, thought: &str) {
        self.reasoning_filter.think(thought);
    }

    /// Adds sources. They may wait long for the first word, so once there are too many of them, the rest is dropped.
    pub fn add_sources(&mut self, sources: impl IntoIterator<Item = Source>) {
        for source in sources {
            if self.sources.budget.is_exhausted() {
                return;
            }
            let bytes = self.sources.sources.add(source);
            if bytes > 0 {
                self.sources.budget.spend(ITEM + bytes);
            }
        }
    }

    /// Separates the text that was added at this place from the text before it.
    fn join(&mut self, at: usize) {
        let added = &self.text[at..];
        let length = added.len();
        let last = added.chars().next_back();
        // Otherwise it does not matter whether there is more than whitespace.
        let may_begin = self.tail.ends_paragraph || !self.says_something;
        if may_begin && !added.trim().is_empty() {
            self.says_something = true;
            if std::mem::take(&mut self.tail.ends_paragraph) {
                let runs_on = self.tail.last.is_some_and(|end| !end.is_whitespace());
                if runs_on && !added.starts_with(char::is_whitespace) {
                    self.text.insert_str(at, PARAGRAPH);
                }
                self.length_of_last_part = 0;
                self.part_begin = Some(at);
            }
        }
        self.length_of_last_part += length;
        self.tail.last = last.or(self.tail.last);
    }

    /// Ends the answer: nothing more will come, so what was held back belongs to the text, see [`Filter::end`].
    pub fn close(&mut self, is_answer: bool) {
        let before = self.text.len();
        self.reasoning_filter.end(is_answer, &mut self.text);
        self.join(before);
    }

    /// Takes the commentary, to make it the answer.
    pub fn take_commentary(&mut self) -> String {
        self.commentary.take()
    }

    /// Returns where the last message begins in the text that has come, if it began there. To be called before the text is taken.
    pub fn take_part_begin(&mut self) -> Option<usize> {
        self.part_begin.take()
    }

    /// Takes the text that has arrived since the last call.
    pub fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Takes the reasoning and commentary that have arrived since the last call.
    pub fn take_reasoning(&mut self) -> String {
        std::mem::take(&mut self.reasoning_filter.reasoning)
    }

    /// Takes the sources that have arrived since the last call.
    pub fn take_sources(&mut self) -> Vec<Source> {
        std::mem::take(&mut self.sources).sources.list
    }

    /// Whether more than whitespace has arrived, of the answer or of reasoning before it.
    pub fn has_begun(&self) -> bool {
        self.reasoning_filter.has_begun()
    }

    /// Whether more than whitespace has arrived, of the answer, of reasoning before it, or of commentary.
    pub fn has_text(&self) -> bool {
        self.has_begun() || self.commentary.has_words()
    }

    /// Whether reasoning between tags of the text is coming.
    pub fn is_within_reasoning(&self) -> bool {
        self.reasoning_filter.is_within()
    }

    /// Whether reasoning has ended at a tag of the text.
    pub fn has_ended_reasoning(&self) -> bool {
        self.reasoning_filter.has_ended
    }

    /// Whether the tag of reasoning has been opened again within it.
    pub fn has_nested_reasoning(&self) -> bool {
        self.reasoning_filter.is_nested
    }

    /// Whether no text but whitespace has arrived.
    pub fn is_blank(&self) -> bool {
        !self.says_something
    }

    /// Returns the last message of the answer. If it has only one, all that this reply has added to it.
    pub fn last_part<'a>(&self, answer: &'a str) -> &'a str {
        let begin = answer.len().saturating_sub(self.length_of_last_part);
        answer.get(begin..).unwrap_or(answer)
    }
}
