//! Finished texts that have come without increments. They are held back, because a message may come that has them, too (pure).

use super::texts_by_place::TextPlace;

/// The finished texts that have had no increments.
#[derive(Debug)]
pub enum HeldTexts {
    /// They wait for the message that has them, or for the end.
    Waiting(Vec<HeldText>),
    /// None is held back anymore: the server sends messages in one piece, which have them all.
    InMessages,
}

/// A finished text that has had no increments.
#[derive(Debug, PartialEq, Eq)]
pub struct HeldText {
    pub text: String,
    pub place: TextPlace,
    /// Whether it is commentary.
    pub is_commentary: bool,
}

impl Default for HeldTexts {
    fn default() -> HeldTexts {
        HeldTexts::Waiting(Vec::new())
    }
}

impl HeldTexts {
    /// Whether messages have them.
    pub fn are_in_messages(&self) -> bool {
        matches!(self, HeldTexts::InMessages)
    }

    /// Holds a text back, unless a message has it, or it has come just before: as a text, and as a part of a message.
    pub fn hold(&mut self, text: HeldText) {
        if let HeldTexts::Waiting(texts) = self
            && texts.last() != Some(&text)
        {
            texts.push(text);
        }
    }

    /// Drops all texts, also those that come later, because a message has come in one piece: it has them.
    pub fn drop_for_messages(&mut self) {
        *self = HeldTexts::InMessages;
    }

    /// Drops the texts that this text has, because it is shown.
    pub fn drop_those_in(&mut self, shown: &str) {
        if let HeldTexts::Waiting(texts) = self {
            texts.retain(|held| !shown.contains(held.text.trim()));
        }
    }

    /// Takes the texts that no message has.
    pub fn take(&mut self) -> Vec<HeldText> {
        match self {
            HeldTexts::Waiting(texts) => std::mem::take(texts),
            HeldTexts::InMessages => Vec::new(),
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
