//! The text of a reply that has arrived, and what a finished text or message is next to it: a repetition, or new (pure).
//!
//! A server may send a text in increments, once more when it is finished, again in its message, and again in the complete reply;
//! or only in one of these. A finished text is judged by [`ArrivedText::judge_text`], and a finished message by
//! [`ArrivedText::judge_message`]. These are the habits of servers, with the decision about each:
//!
//! | habit | decision | what is done |
//! |---|---|---|
//! | increments, then the same text finished | [`FinishedText::RepeatsIncrements`] | what is missing at its end is added |
//! | a part of a message in increments, the next one only finished | [`FinishedText::IsNextPart`] | it is added at once |
//! | a finished text without increments, then its message | [`FinishedText::AwaitsMessage`] | it is held back, and dropped for the message |
//! | a finished text without increments and without a message | [`FinishedText::AwaitsMessage`] | it is held back, and added before what follows, or at the end |
//! | messages in one piece, each after its finished texts | [`FinishedText::IsInMessage`] | from the second message on, it is left to the message |
//! | increments, then their message | [`FinishedMessage::RepeatsIncrements`] | what is missing at its end is added |
//! | increments with other indexes than their message, or with none | [`FinishedMessage::RepeatsIncrements`] | the same |
//! | a message in one piece | [`FinishedMessage::IsNew`] | it is added as a paragraph |
//! | a message in one piece while the increments of another one come | [`FinishedMessage::IsNew`] | the same |
//! | the same index for each message | [`FinishedMessage::IsNew`] | the same, unless it repeats the message before it |
//! | messages without increments that each have all of the text so far | [`SnapshotReader`] | what is new in each is added |
//! | a message that only the complete reply has | [`MissingMessages::From`] | it is added, if all before it has arrived |
//!
//! Each may be a wrong guess about some server. So the complete reply is compared with everything that has arrived, whatever was
//! guessed before ([`ArrivedText::missing_messages`]): a wrong guess becomes a note, and never a loss.

use std::collections::BTreeSet;

use super::held_texts::{HeldText, HeldTexts};
use super::missing_messages::{CompleteMessage, MissingMessages};
use super::snapshot_reader::SnapshotReader;
use super::texts_by_place::{MissingText, TextPlace, TextsByPlace};

/// The most messages whose increments are told apart.
pub const MAX_MESSAGES: usize = 1_000;

/// What a finished text is next to what has arrived. The habits above say what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishedText {
    /// Increments of it have arrived, or may have: not every server says what its increments belong to.
    RepeatsIncrements,
    /// It has had no increments, and is the next part of the message whose increments come.
    IsNextPart,
    /// It has had no increments. A message may come that has it.
    AwaitsMessage,
    /// It has had no increments, and the server sends messages in one piece, which have it.
    IsInMessage,
}

/// What a finished message is next to what has arrived. The habits above say what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishedMessage {
    /// Increments of it have arrived, or may have.
    RepeatsIncrements {
        /// The index with which they came; `None` if it is another one than that of the message, or unknown.
        index: Option<u64>,
    },
    /// No increment of it has arrived.
    IsNew,
}

/// The text that has arrived of a reply.
#[derive(Debug, Default)]
pub struct ArrivedText {
    texts: TextsByPlace,
    held: HeldTexts,
    snapshots: SnapshotReader,
    /// The message that the last increment belongs to; `None` if none has come since a message ended.
    open: Option<OpenMessage>,
    /// The indexes of all messages that have had increments.
    indexes: BTreeSet<u64>,
}

/// A message whose increments come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenMessage {
    /// Not every server says it.
    index: Option<u64>,
    /// Whether the server has said that a text of it is finished.
    has_finished_text: bool,
}

impl ArrivedText {
    /// Whether the last increment belongs to the message with this index.
    pub fn is_open(&self, index: Option<u64>) -> bool {
        self.open.is_some_and(|open| open.index == index)
    }

    /// Whether increments have come since the last message ended.
    pub fn has_open_message(&self) -> bool {
        self.open.is_some()
    }

    /// Begins increments of the message at this place. Returns what was held back of snapshots before them.
    #[cold]
    pub fn open(&mut self, place: TextPlace) -> String {
        let index = place.message;
        self.open = Some(OpenMessage {
            index,
            has_finished_text: false,
        });
        self.note_index(index);
        let held = self.snapshots.end();
        self.texts.push(place, &held);
        held
    }

    /// Adds an increment of the text at this place. Its message is open.
    pub fn push(&mut self, place: TextPlace, increment: &str) {
        self.texts.push(place, increment);
    }

    /// Whether a text of the message is finished whose increments came last. Says so once.
    pub fn take_finished(&mut self) -> bool {
        let open = self.open.as_mut();
        open.is_some_and(|open| std::mem::take(&mut open.has_finished_text))
    }

    /// Records that the text at this place is finished, which may be one of the message whose increments came last.
    fn note_finished(&mut self, place: TextPlace) {
        let is_of_other = place
            .message
            .is_some_and(|index| self.has_increments_at(index));
        if let Some(open) = &mut self.open {
            open.has_finished_text |= open.index == place.message || !is_of_other;
        }
    }

    /// Ends the message that has come: the next increment belongs to another one, whatever its index.
    pub fn end_message(&mut self) {
        self.open = None;
    }

    /// Decides what the finished text at this place is.
    pub fn judge_text(&mut self, place: TextPlace, finished: &str) -> FinishedText {
        let is_known = self.texts.may_have(finished);
        if !is_known && self.is_open(place.message) && self.texts.is_next_part(place) {
            FinishedText::IsNextPart
        } else if is_known || finished.is_empty() || self.may_have_increments_at(place.message) {
            FinishedText::RepeatsIncrements
        } else if self.held.are_in_messages() {
            FinishedText::IsInMessage
        } else {
            FinishedText::AwaitsMessage
        }
    }

    /// Decides what the finished message with this index is. Not all servers count alike, so while increments come, only the
    /// index and the text together say that it is another message than theirs.
    pub fn judge_message(&mut self, index: Option<u64>, finished: &str) -> FinishedMessage {
        let may_have_own = self.may_have_increments_at(index);
        let is_repeated = if self.has_open_message() {
            may_have_own || self.texts.repeats_open_text(finished)
        } else {
            may_have_own && self.texts.repeats_message(index, finished)
        };
        if is_repeated {
            let index = index.filter(|index| self.has_increments_at(*index));
            FinishedMessage::RepeatsIncrements { index }
        } else {
            FinishedMessage::IsNew
        }
    }

    /// Whether increments of the message with this index have come, or may have, because either comes without an index.
    fn may_have_increments_at(&self, index: Option<u64>) -> bool {
        let Some(index) = index else {
            return self.has_open_message();
        };
        self.has_increments_at(index) || self.is_open(None)
    }

    fn has_increments_at(&self, index: u64) -> bool {
        self.indexes.contains(&index) || self.is_open(Some(index))
    }

    fn note_index(&mut self, index: Option<u64>) {
        if self.indexes.len() < MAX_MESSAGES {
            self.indexes.extend(index);
        }
    }

    /// Compares the finished text at a place with what has arrived of it. What is missing at its end counts as arrived.
    pub fn complete_text<'t>(&mut self, place: TextPlace, finished: &'t str) -> MissingText<'t> {
        self.note_finished(place);
        let missing = self.texts.missing_of_text(place, finished);
        if let MissingText::End(end) = missing {
            self.texts.push(place, end);
        }
        missing
    }

    /// Compares the finished text of a message with what has arrived of it, and with that of all messages if there is no index.
    /// What is missing at its end counts as arrived. After that, nothing more of it should come.
    pub fn complete_message<'t>(
        &mut self,
        index: Option<u64>,
        finished: &'t str,
    ) -> MissingText<'t> {
        let missing = self.texts.missing_of_message(index, finished);
        if let MissingText::End(end) = missing {
            self.texts.push_end(end);
            self.held.drop_those_in(end);
        }
        missing
    }

    /// Records that a new message has come in one piece, which has its finished texts.
    pub fn add_message(&mut self, message: &str) {
        self.held.drop_for_messages();
        self.texts.push_message(message);
    }

    /// Holds back a finished text until a message comes that has it.
    pub fn hold(&mut self, text: HeldText) {
        self.held.hold(text);
    }

    /// Takes the finished texts that no message has. They count as arrived.
    pub fn take_held(&mut self) -> Vec<HeldText> {
        let texts = self.held.take();
        for text in &texts {
            self.note_index(text.place.message);
            self.texts.push(text.place, &text.text);
        }
        texts
    }

    /// Takes a message of a stream that has had no increments. Returns what is new in it.
    pub fn add_snapshot(&mut self, place: TextPlace, message: &str) -> String {
        let new = self.snapshots.next(message);
        // Increments may follow, and all of it once more.
        self.texts.push(place, &new);
        new
    }

    /// Whether a snapshot has taken back a part of the text.
    pub fn is_revised(&self) -> bool {
        self.snapshots.is_revised
    }

    /// Returns what was held back of snapshots, because no more come.
    pub fn end(&mut self) -> String {
        self.snapshots.end()
    }

    /// Whether this has come as text.
    pub fn has_text(&mut self, words: &str) -> bool {
        self.texts.has(words)
    }

    /// Compares the messages of the complete reply with all that has arrived.
    pub fn missing_messages(&mut self, messages: &[CompleteMessage]) -> MissingMessages {
        match self.texts.all() {
            Some(arrived) => MissingMessages::find(arrived, messages),
            None => MissingMessages::Nothing,
        }
    }
}
