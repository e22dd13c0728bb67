//! Finished texts that have come without increments. They are held back, because a message may come that has them, too (pure).

use super::streamed::TextPlace;

/// The finished texts that have had no increments.
#[derive(Debug)]
pub enum UnstreamedTexts {
    /// They wait for the message that has them, or for the end.
    Held(Vec<UnstreamedText>),
    /// The server sends messages in one piece, which have them all.
    InMessages,
}

/// A finished text that has had no increments.
#[derive(Debug, PartialEq, Eq)]
pub struct UnstreamedText {
    pub text: String,
    pub place: TextPlace,
    /// Whether it is commentary.
    pub is_commentary: bool,
}

impl Default for UnstreamedTexts {
    fn default() -> UnstreamedTexts {
        UnstreamedTexts::Held(Vec::new())
    }
}

impl UnstreamedTexts {
    /// Whether messages have them.
    pub fn are_in_messages(&self) -> bool {
        matches!(self, UnstreamedTexts::InMessages)
    }

    /// Holds a text back, unless a message has it, or it has come just before: as a text, and as a part of a message.
    pub fn hold(&mut self, text: UnstreamedText) {
        if let UnstreamedTexts::Held(texts) = self
            && texts.last() != Some(&text)
        {
            texts.push(text);
        }
    }

    /// Drops the texts because a message has come in one piece: it has them.
    pub fn give_way_to_messages(&mut self) {
        *self = UnstreamedTexts::InMessages;
    }

    /// Drops the texts that a finished message has.
    pub fn give_way_to(&mut self, finished: &str) {
        if let UnstreamedTexts::Held(texts) = self {
            texts.retain(|held| !finished.contains(held.text.trim()));
        }
    }

    /// Takes the texts that no message has.
    pub fn take(&mut self) -> Vec<UnstreamedText> {
        match self {
            UnstreamedTexts::Held(texts) => std::mem::take(texts),
            UnstreamedTexts::InMessages => Vec::new(),
        }
    }
}

/// Whether a text belongs to the same message as the text before it. Some servers give each message the same index.
pub fn is_same_message(before: Option<TextPlace>, next: Option<TextPlace>) -> bool {
    match (before, next) {
        (Some(before), Some(next)) => before.message == next.message && before.part != next.part,
        _ => false,
    }
}
