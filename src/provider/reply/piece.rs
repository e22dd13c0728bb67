//! A piece of a reply, which is printed and recorded at once (pure).

use super::end::shown_word;
use crate::message::Source;
use crate::secret::Secrets;

/// The part of a reply that has arrived since the piece before.
#[derive(Debug, Default)]
pub struct Piece {
    pub text: String,
    /// Where the last message begins in the text, if one begins there.
    pub part_begin: Option<usize>,
    /// Whether no more text will come.
    pub is_last: bool,
    /// See [`super::end::ReplyEnd::incomplete_reason`].
    pub incomplete_reason: Option<String>,
    pub sources: Vec<Source>,
    /// What the model thinks, and what it says on the way.
    pub reasoning: String,
    /// Whether reasoning has ended at a tag that was before the text.
    pub has_ended_reasoning: bool,
    /// Whether the text may begin with reasoning, because its tag has been opened again within it.
    pub may_reason_on: bool,
    /// What the model or its provider does, unless that is answering.
    pub sign: Option<&'static str>,
}

impl Piece {
    /// Whether more than whitespace of reasoning has arrived.
    pub fn has_words_of_reasoning(&self) -> bool {
        !self.reasoning.trim().is_empty()
    }

    /// Removes secrets from what comes with the text, and cuts the reason if it is long.
    pub fn redact(&mut self, secrets: &Secrets) {
        for source in &mut self.sources {
            source.redact(secrets);
        }
        if let Some(reason) = &mut self.incomplete_reason {
            *reason = shown_word(reason, secrets);
        }
    }
}
