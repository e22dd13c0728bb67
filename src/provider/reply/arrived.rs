//! The text of a reply that has arrived, which tells what a message or a finished text repeats of it, and what is held back until
//! that can be told (pure).
//!
//! A server may send a text in increments, once more when it is finished, again in its message, and again in the complete reply;
//! or only in one of these. These are the habits of servers, with the function that decides in [`ArrivedText`]:
//!
//! | habit | decided by | what is done |
//! |---|---|---|
//! | increments, then the same finished | `finished_text`, `finished_message` | what is missing at its end is added |
//! | a finished text without increments, then its message | `is_unstreamed` | it is held back, and dropped for the message |
//! | a finished text without increments and without a message | `take_unstreamed` | it is added before what follows, or at the end |
//! | a part of a message in increments, the next one only finished | `is_next_part` | it is added at once |
//! | increments with other indexes than their message, or with none | `has_part_of` | any message repeats what came since the last |
//! | a message in one piece while the increments of another one come | `has_part_of` | it is added, if no increments are like it |
//! | the same index for each message | `has_part_of` | another text than that which is over is another message |
//! | messages in one piece | `complete_message` | they are added, and finished texts are dropped from then on |
//! | messages that each have all of the text so far | `message` | what is new in them is added |
//! | a message that only the complete reply has | `unarrived` | it is added, if all before it has arrived |
//!
//! Each may be a wrong guess about some server. So the complete reply is compared with everything that has arrived, whatever was
//! guessed before ([`ArrivedText::unarrived`]): a wrong guess becomes a note, and never a loss.

use std::collections::BTreeSet;

use super::retold::RetoldText;
use super::streamed::{Missing, StreamedTexts, TextPlace};
use super::unarrived::{CompleteMessage, Unarrived};
use super::unstreamed::{UnstreamedText, UnstreamedTexts};

/// The most messages whose increments are told apart.
const MAX_MESSAGES: usize = 1_000;

/// The text that has arrived of a reply.
#[derive(Debug, Default)]
pub struct ArrivedText {
    streamed: StreamedTexts,
    /// The messages that have arrived in a stream without increments.
    retold: RetoldText,
    unstreamed: UnstreamedTexts,
    /// The message that the last increment belongs to; `None` if none has come since a message ended.
    open: Option<OpenMessage>,
    /// The indexes of all messages that have had increments.
    messages: BTreeSet<u64>,
}

/// A message whose increments come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenMessage {
    /// Not every server says it.
    index: Option<u64>,
}

impl ArrivedText {
    /// Whether the last increment belongs to the message with this index.
    pub fn is_open(&self, index: Option<u64>) -> bool {
        self.open == Some(OpenMessage { index })
    }

    /// Begins increments of the message at this place. Returns what was held back of messages before them.
    #[cold]
    pub fn open(&mut self, place: TextPlace) -> String {
        let index = place.message;
        self.open = Some(OpenMessage { index });
        if self.messages.len() < MAX_MESSAGES {
            self.messages.extend(index);
        }
        let held = self.retold.end();
        self.streamed.push(place, &held);
        held
    }

    /// Adds an increment of the text at this place. Its message is open.
    pub fn push(&mut self, place: TextPlace, increment: &str) {
        self.streamed.push(place, increment);
    }

    /// Whether increments have come since the last message ended.
    pub fn has_open_message(&self) -> bool {
        self.open.is_some()
    }

    /// Whether increments of the message with this index have come.
    pub fn has_increments_at(&self, index: u64) -> bool {
        self.messages.contains(&index) || self.is_open(Some(index))
    }

    /// Whether some increment of this finished message has come. Not all servers count alike, so one of any message since the
    /// last one ended counts, too, unless the index and the text say that it is another message.
    pub fn has_part_of(&mut self, index: Option<u64>, finished: &str) -> bool {
        let has_own = index.is_some_and(|index| self.has_increments_at(index));
        let Some(open) = self.open else {
            return has_own && !self.streamed.is_another_message(index, finished);
        };
        let is_unknown = index.is_none() || open.index.is_none();
        has_own || is_unknown || self.streamed.may_be_message(finished)
    }

    /// Whether a finished text that has had no increments is the next part of the message whose increments come.
    pub fn is_next_part(&mut self, place: TextPlace, finished: &str) -> bool {
        self.is_open(place.message)
            && self.streamed.is_next_part(place)
            && !self.streamed.may_have(finished)
    }

    /// Whether a finished text has to wait for the message that has it: no message comes in one piece so far, and no increment of
    /// the text has come, or may have come, because the server does not say what it belongs to.
    pub fn is_unstreamed(&mut self, place: TextPlace, finished: &str) -> bool {
        let index = place.message;
        let is_unknown = match self.open {
            Some(open) => index.is_none() || open.index.is_none(),
            None => false,
        };
        let has_own = index.is_some_and(|index| self.messages.contains(&index));
        if finished.is_empty() || is_unknown || has_own || self.unstreamed.are_in_messages() {
            return false;
        }
        // Not all servers count alike.
        !self.streamed.may_have(finished)
    }

    /// Holds back a finished text that has had no increments.
    pub fn hold(&mut self, text: UnstreamedText) {
        self.unstreamed.hold(text);
    }

    /// Takes the finished texts that have had no increments, and that no message has.
    pub fn take_unstreamed(&mut self) -> Vec<UnstreamedText> {
        let texts = self.unstreamed.take();
        for text in &texts {
            if self.messages.len() < MAX_MESSAGES {
                self.messages.extend(text.place.message);
            }
            self.streamed.push(text.place, &text.text);
        }
        texts
    }

    /// Records that a message has come in one piece, which has its finished texts.
    pub fn complete_message(&mut self, message: &str) {
        self.unstreamed.give_way_to_messages();
        self.streamed.push_message(message);
    }

    /// Compares the messages of the complete reply with all that has arrived.
    pub fn unarrived(&mut self, messages: &[CompleteMessage]) -> Unarrived {
        match self.streamed.all() {
            Some(arrived) => Unarrived::find(arrived, messages),
            None => Unarrived::Nothing,
        }
    }

    /// Whether this has come as text.
    pub fn has_text(&mut self, words: &str) -> bool {
        self.streamed.all().is_some_and(|all| all.contains(words))
    }

    /// Takes a message of a stream that has had no increments. Returns what is new in it.
    pub fn message(&mut self, place: TextPlace, message: &str) -> String {
        let new = self.retold.next(message);
        // Increments may follow, and all of it once more.
        self.streamed.push(place, &new);
        new
    }

    /// Whether a message has taken back a part of the text.
    pub fn is_revised(&self) -> bool {
        self.retold.is_revised
    }

    /// Compares the finished text at a place with what has arrived of it. What is missing at its end counts as arrived.
    pub fn finished_text<'t>(&mut self, place: TextPlace, finished: &'t str) -> Missing<'t> {
        let missing = self.streamed.missing_of_text(place, finished);
        if let Missing::End(end) = missing {
            self.streamed.push(place, end);
        }
        missing
    }

    /// Compares the finished text of a message with what has arrived of it. After that, nothing more of it should come.
    pub fn finished_message<'t>(&mut self, index: Option<u64>, finished: &'t str) -> Missing<'t> {
        let missing = self.streamed.missing_of_message(index, finished);
        if let Missing::End(end) = missing {
            self.streamed.push_end(end);
            self.unstreamed.give_way_to(end);
        }
        missing
    }

    /// Ends the message that has come: the next increment belongs to another one, whatever its index.
    pub fn end_message(&mut self) {
        self.open = None;
    }

    /// Returns what was held back of messages, because no more come.
    pub fn end(&mut self) -> String {
        self.retold.end()
    }
}
