//! The reply as it is read: what it adds to the answer, how it ends, the model's turn, and its usage (pure).

mod activity;
mod answer;
mod arrived_text;
mod begun_calls;
mod call_items;
mod end;
mod held_texts;
mod missing_messages;
mod piece;
mod snapshot_reader;
mod spelling;
mod texts_by_place;
mod turn;

use std::borrow::Cow;

pub use self::activity::note_of_images;
use self::activity::{Activity, THINKING};
use self::answer::AnswerPart;
pub use self::answer::AnswerTail;
use self::arrived_text::{ArrivedText, FinishedMessage, FinishedText};
use self::begun_calls::BegunCalls;
pub(super) use self::begun_calls::CallRef;
pub(super) use self::call_items::{CallItem, ItemIds, call_pairs, repeated_call_pairs};
use self::end::ReplyEnd;
pub use self::end::shown_word;
use self::held_texts::{HeldText, is_same_message};
pub(super) use self::missing_messages::CompleteMessage;
use self::missing_messages::MissingMessages;
pub use self::piece::Piece;
use self::texts_by_place::MissingText;
pub(super) use self::texts_by_place::TextPlace;
pub(super) use self::turn::ModelTurn;
pub(super) use super::calls::Added;
use super::calls::FragmentPlace;
use super::failure::{self, ReplyError, ReplyResult};
use super::kept::ITEM;
use super::request::Request;
use crate::message::{ToolCall, Usage};
use crate::secret::Secrets;
use crate::text::surrogates::{self, TextHalves};

/// What is in the text in place of half a character (U+FFFD).
const BROKEN: &str = "\u{fffd}";

/// A reply as far as it has been read.
#[derive(Debug, Default)]
pub struct Reply {
    pub answer: AnswerPart,
    pub end: ReplyEnd,
    pub turn: ModelTurn,
    pub activity: Activity,
    usage: Usage,
    arrived: ArrivedText,
    pub(super) reading: ReadingState,
}

/// What is remembered of the parts of a reply that have been read, to read the next one.
#[derive(Debug, Default)]
pub struct ReadingState {
    /// The name of the API in whose form the reply has come, if it is not the one that was asked for.
    pub(super) other_api: Option<&'static str>,
    /// The first fields of a whole reply that is in the form of no API.
    pub(super) unknown_fields: Option<String>,
    /// How many events of the reply have been looked at for its API.
    pub(super) looks_at_api: usize,
    /// The last event, if it was a sentence instead of JSON: some servers report errors like this.
    pub(super) plain_line: String,
    /// The first half of the character with which the text ends, until more of the text comes, see [`surrogates::joined`].
    text_half: String,
    /// The same of something else, such as reasoning or the arguments of a call.
    pub(super) other_half: String,
    /// Whether calls have come as increments, so that a message would repeat them.
    pub(super) has_streamed_calls: bool,
    /// Likewise of reasoning.
    pub(super) has_streamed_reasoning: bool,
    pub(super) reasoning_arrival: ReasoningArrival,
    /// The calls whose items have begun and have not come again as complete ones.
    pub(super) begun_calls: BegunCalls,
    pub(super) items: ItemProgress,
    /// The last message that the server has said to begin, until it ends.
    begun_message: Option<BegunMessage>,
}

/// How far the items have come of which a reply of the Responses API consists.
#[derive(Debug, Default)]
pub(super) struct ItemProgress {
    /// The indexes of those that have begun, and not ended.
    open: Vec<Option<u64>>,
    /// Whether nothing has to follow the last one that has ended.
    may_be_over: bool,
}

impl ItemProgress {
    /// Records that an item begins.
    pub fn begin(&mut self, index: Option<u64>) {
        self.open.push(index);
    }

    /// Records that a part of an item has come. Not every server says when one begins.
    pub fn go_on(&mut self) {
        self.may_be_over = false;
    }

    /// Records that the item with this index has ended.
    pub fn end(&mut self, index: Option<u64>, may_be_last: bool) {
        let mut open = self.open.iter();
        if let Some(begun) = open.position(|begun| *begun == index) {
            self.open.remove(begun);
        }
        self.may_be_over = may_be_last;
    }

    /// Whether all items that have begun have ended, and nothing has to follow.
    pub fn are_complete(&self) -> bool {
        self.open.is_empty() && self.may_be_over
    }
}

/// What the server says of a message that begins.
#[derive(Debug)]
struct BegunMessage {
    index: Option<u64>,
    /// Empty if there is none.
    id: String,
}

impl BegunMessage {
    /// Whether the message with this index and id is another one. Some servers give all messages one index, and not all of these
    /// give them ids: then it is another one after a finished text.
    fn is_another(&self, index: Option<u64>, id: &str, after_finished_text: bool) -> bool {
        if self.id.is_empty() || id.is_empty() {
            return index.is_none() || self.index != index || after_finished_text;
        }
        self.id != id
    }
}

/// How much has come of the item of reasoning that is coming, in the Responses API.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasoningArrival {
    #[default]
    Nothing,
    /// Increments of its parts.
    Increments,
    /// Parts in one piece.
    WholeParts,
}

impl Reply {
    /// Returns an empty reply. Calls count only if tools were offered.
    pub fn new(offers_tools: bool) -> Reply {
        Reply {
            turn: ModelTurn::new(offers_tools),
            ..Reply::default()
        }
    }

    /// Returns the reply of a cached answer with that many bytes, which ended with this word.
    pub fn of_cached(length: usize, word: &str) -> Reply {
        let mut reply = Reply {
            answer: AnswerPart::of_length(length),
            ..Reply::default()
        };
        reply.end.read(word);
        reply.close();
        reply
    }

    /// Returns an empty reply to a request. It continues an answer that ends with `tail`.
    pub fn to(request: &Request, tail: AnswerTail) -> Reply {
        let mut reply = Reply::new(request.offers_tools);
        reply.answer.tail = tail;
        reply.turn.follow(request);
        reply
    }

    /// Adds a call, or a fragment of one, see [`ModelTurn::add_call`].
    pub(super) fn add_call(&mut self, at: FragmentPlace, call: ToolCall) -> Option<usize> {
        let place = self.turn.add_call(at, call)?;
        self.end.go_on();
        self.activity.end();
        Some(place)
    }

    /// Adds a call in one piece, see [`ModelTurn::add_whole_call`].
    pub(super) fn add_whole_call(&mut self, call: ToolCall) -> Option<Added> {
        let added = self.turn.add_whole_call(call)?;
        self.end.go_on();
        self.activity.end();
        Some(added)
    }

    /// Adds an increment of the text at this place.
    pub(super) fn add_increment(&mut self, place: TextPlace, increment: &str) {
        if increment.is_empty() {
            return;
        }
        if self.end_half() && self.arrived.is_open(place.message) {
            self.arrived.push(place, BROKEN);
        }
        self.open_message(place);
        self.arrived.push(place, increment);
        self.add_text(increment);
    }

    /// Records that the model says this in a message at this place instead of an answer, after what it has said so far.
    pub(super) fn refuse_further(&mut self, place: TextPlace, words: &str) {
        if !words.is_empty() {
            self.open_message(place);
            self.refuse(words);
        }
    }

    /// Records that increments of the message at this place come, if it is not known. After a finished text, it is a paragraph of
    /// its own; else the server may count its increments otherwise.
    fn open_message(&mut self, place: TextPlace) {
        if !self.arrived.is_open(place.message) {
            if self.arrived.take_finished() {
                let is_commentary = self.answer.is_in_commentary();
                self.answer.begin_message(is_commentary);
            }
            self.add_held_texts(Some(place));
            let held = self.arrived.open(place);
            self.add_text(&held);
        }
    }

    /// Whether increments have come since the last message ended.
    pub(super) fn has_open_message(&self) -> bool {
        self.arrived.has_open_message()
    }

    /// Adds what is new in a message of a stream that has had no increments, and that may have all of the text so far.
    pub(super) fn add_snapshot(&mut self, place: TextPlace, message: &str) {
        // It has the whole character.
        self.reading.text_half.clear();
        let new = self.arrived.add_snapshot(place, message);
        self.end.lacks_text |= self.arrived.is_revised();
        self.add_text(&new);
    }

    /// Adds what is new in the finished text at this place, or holds it back until its message comes.
    pub(super) fn finish_text(&mut self, place: TextPlace, finished: &str) {
        match self.arrived.judge_text(place, finished) {
            // A place may have had increments although the server sends messages in one piece.
            FinishedText::RepeatsIncrements | FinishedText::IsInMessage => {
                let missing = self.arrived.complete_text(place, finished);
                self.add_missing(&missing);
            }
            FinishedText::IsNextPart => self.add_increment(place, finished),
            FinishedText::AwaitsMessage => self.hold(place, finished),
        }
    }

    /// Holds a finished text back, if there is room for it.
    fn hold(&mut self, place: TextPlace, finished: &str) {
        if self.turn.budget.spend(ITEM + finished.len()) {
            self.arrived.hold(HeldText {
                text: finished.to_owned(),
                place,
                is_commentary: self.answer.is_in_commentary(),
            });
        } else {
            self.end.lacks_text = true;
        }
    }

    /// Adds the texts that were held back and that no message has, each message as a paragraph of its own. The text at the place
    /// `next` follows.
    pub(super) fn add_held_texts(&mut self, next: Option<TextPlace>) {
        let is_next_commentary = self.answer.is_in_commentary();
        let mut last = None;
        for held in self.arrived.take_held() {
            if !is_same_message(last, Some(held.place)) {
                self.answer.begin_message(held.is_commentary);
            }
            self.add_text(&held.text);
            last = Some(held.place);
        }
        if last.is_some() && !is_same_message(last, next) {
            self.answer.begin_message(is_next_commentary);
        }
    }

    /// Adds what is new in a finished message of a stream.
    pub(super) fn finish_message(
        &mut self,
        index: Option<u64>,
        finished: &str,
        is_commentary: bool,
    ) {
        match self.arrived.judge_message(index, finished) {
            FinishedMessage::RepeatsIncrements { index } => self.complete_message(index, finished),
            FinishedMessage::IsNew => self.add_whole_message(finished, is_commentary),
        }
    }

    /// Adds a message in one piece, of which no increment has come.
    pub(super) fn add_whole_message(&mut self, text: &str, is_commentary: bool) {
        self.answer.begin_message(is_commentary);
        if !text.is_empty() {
            self.arrived.add_message(text);
            self.add_text(text);
        }
    }

    /// Adds what is missing of a finished message whose increments came with this index.
    pub(super) fn complete_message(&mut self, index: Option<u64>, finished: &str) {
        let missing = self.arrived.complete_message(index, finished);
        self.add_missing(&missing);
    }

    /// Adds what is missing of the words of a model that it says instead of an answer.
    pub(super) fn finish_refusal(&mut self, words: &str) {
        let said = self.end.refusal();
        if words.trim().is_empty() || said.contains(words) || self.turn.budget.is_exhausted() {
            return;
        }
        let missing = words.strip_prefix(said).unwrap_or(words);
        if self.arrived.has_text(words) {
            self.end.refuse(words, true);
        } else {
            self.refuse(missing);
        }
    }

    /// Adds the messages of the complete reply that have not arrived, if everything before them has. If text is missing elsewhere,
    /// the end says so.
    pub(super) fn add_missing_messages(&mut self, messages: &[CompleteMessage]) {
        match self.arrived.missing_messages(messages) {
            MissingMessages::Nothing => {}
            MissingMessages::From(first) => {
                for message in &messages[first..] {
                    if !message.is_commentary {
                        self.add_whole_message(&message.text, false);
                    }
                }
            }
            MissingMessages::Elsewhere => self.end.lacks_text = true,
        }
    }

    /// Records that a message with this index and id has begun. Some servers say so only after its first increments, or twice.
    pub(super) fn begin_message(&mut self, index: Option<u64>, id: &str, is_commentary: bool) {
        let begun = BegunMessage {
            index,
            id: id.to_owned(),
        };
        let last = self.reading.begun_message.replace(begun);
        let after_finished_text = self.arrived.take_finished();
        let is_another = last.map_or(after_finished_text, |last| {
            last.is_another(index, id, after_finished_text)
        });
        let has_increments = self.arrived.is_open(index) || self.arrived.is_open(None);
        let is_known = has_increments && !is_another;
        if !is_known || is_commentary != self.answer.is_in_commentary() {
            self.answer.begin_message(is_commentary);
        }
    }

    /// Checks that a stream has not ended with a sentence instead of a finish reason.
    pub fn check_plain_line(&self) -> ReplyResult {
        let line = &self.reading.plain_line;
        if !line.is_empty() && self.end.finish().is_none() {
            failure::check_field(&line.as_str().into())?;
        }
        Ok(())
    }

    /// Records that a message has ended, and that what follows is another one; not every server says when one begins.
    pub(super) fn end_message(&mut self) {
        self.arrived.end_message();
        self.reading.begun_message = None;
        self.answer.begin_message(false);
    }

    fn add_missing(&mut self, missing: &MissingText) {
        match missing {
            MissingText::Nothing => {}
            MissingText::End(end) => {
                // What is missing begins with the whole character.
                self.reading.text_half.clear();
                self.add_text(end);
            }
            MissingText::Elsewhere => self.end.lacks_text = true,
        }
    }

    /// Adds text of the answer, or of commentary.
    pub(super) fn add_text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.end_half();
        let fits = self.turn.budget.spend(piece.len());
        if self.answer.is_in_commentary() {
            self.activity.think();
            self.answer.add_commentary(piece, fits);
        } else {
            self.activity.end();
            self.end.go_on();
            self.answer.add(piece);
        }
    }

    /// Records that the model says this instead of an answer.
    pub(super) fn refuse(&mut self, words: &str) {
        self.add_text(words);
        let fits = self.turn.budget.spend(words.len());
        self.end.refuse(words, fits);
    }

    /// Adds reasoning, which is no part of the answer. The provider may hide the text of it.
    pub(super) fn think(&mut self, thought: &str) {
        self.activity.think();
        self.answer.think(thought);
    }

    /// Records that a search has failed, for this reason; empty if the provider does not say it.
    pub(super) fn fail_search(&mut self, reason: &str) {
        if self.turn.budget.spend(ITEM + reason.len()) {
            self.activity.failed_searches.push(reason.to_owned());
        }
    }

    /// Stores the reported counts; a later count replaces an earlier one.
    pub(super) fn add_usage(&mut self, usage: Usage) {
        self.usage = self.usage.replaced_by(usage);
    }

    /// Ends the reply: nothing more will come.
    pub fn close(&mut self) {
        let held = self.arrived.end();
        self.add_text(&held);
        self.end_half();
        self.end.close();
        self.take_commentary_for_answer();
        let is_answer = self.end.is_complete() && self.end.is_normal() && !self.turn.has_called;
        self.answer.close(is_answer);
        self.turn.close();
        if !self.turn.calls().is_empty() {
            self.end.end_with_calls();
        } else if self.turn.has_called {
            self.end.end_with_calls_that_cannot_run();
        }
    }

    /// Joins the characters of an event that are apart. `halves` are those of its text, which continues no other string than the
    /// text before it.
    pub(super) fn join_halves<'d>(&mut self, data: &'d str, halves: &TextHalves) -> Cow<'d, str> {
        if halves.begins && !self.answer.is_in_commentary() {
            self.reading.other_half = std::mem::take(&mut self.reading.text_half);
        }
        surrogates::joined(data, &mut self.reading.other_half)
    }

    /// Records that the text ends with the first half of a character, if it does so with the event that has been read.
    pub(super) fn await_second_half(&mut self, halves: TextHalves) {
        if let Some(half) = halves.end
            && !self.answer.is_in_commentary()
        {
            self.reading.text_half = half;
        }
    }

    /// Replaces the first half of a character at the end of the text, because no second one has come. Returns whether there was one.
    fn end_half(&mut self) -> bool {
        if self.reading.text_half.is_empty() || self.answer.is_in_commentary() {
            return false;
        }
        self.reading.text_half.clear();
        self.activity.end();
        self.turn.budget.spend(BROKEN.len());
        self.answer.add_to_last_message(BROKEN);
        true
    }

    /// Makes the commentary the answer if nothing else has arrived: no text, and no calls that will be run.
    fn take_commentary_for_answer(&mut self) {
        let will_call = !self.turn.calls().is_empty() && !self.end.is_cut();
        if self.answer.has_begun() || will_call || !self.end.is_complete() {
            return;
        }
        let commentary = self.answer.take_commentary();
        self.add_text(commentary.trim());
    }

    /// Returns what has arrived since the last call. `is_whole` says that all that has arrived could be read.
    pub fn take_piece(&mut self, is_whole: bool) -> Piece {
        let mut sign = self.activity.sign;
        if sign.is_none() && self.answer.is_within_reasoning() {
            sign = Some(THINKING);
        }
        let is_last = is_whole && self.end.is_complete();
        let mut sources = Vec::new();
        // They wait for the first word, because without one the request may be sent again.
        if !self.answer.is_blank() || is_last || (is_whole && self.end.has_paused()) {
            sources = self.answer.take_sources();
        }
        Piece {
            part_begin: self.answer.take_part_begin(),
            text: self.answer.take_text(),
            is_last,
            incomplete_reason: self.end.incomplete_reason().map(str::to_owned),
            sources,
            reasoning: self.answer.take_reasoning(),
            has_ended_reasoning: self.answer.has_ended_reasoning(),
            may_reason_on: self.answer.has_nested_reasoning(),
            sign,
        }
    }

    /// Whether it has neither text nor a call that q can run so far.
    pub fn is_empty(&self) -> bool {
        self.answer.is_blank() && self.turn.calls().is_empty()
    }

    /// Checks that the reply is in the form of the API that was asked for, if nothing could be read of it.
    pub fn check_form(&self) -> Result<(), ReplyError> {
        let reading = &self.reading;
        if !self.is_empty() {
            return Ok(());
        }
        if let Some(api) = reading.other_api {
            return Err(ReplyError::OtherApi(api));
        }
        match &reading.unknown_fields {
            Some(fields) if self.end.finish().is_none() => {
                Err(ReplyError::UnknownForm(fields.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Whether the provider continues the answer when it is asked to, and q has kept all that this request needs.
    pub fn is_paused(&self) -> bool {
        self.end.has_paused() && !self.turn.is_too_long()
    }

    /// Removes secrets from what the server says of the answer, and cuts it if it is long.
    pub fn redact(&mut self, secrets: &Secrets) {
        self.end.redact(secrets);
        for reason in &mut self.activity.failed_searches {
            *reason = shown_word(reason, secrets);
        }
    }

    /// Returns the counts reported so far; `None` if there are none.
    pub fn usage(&self) -> Option<Usage> {
        let mut usage = self.usage;
        // Some servers count the tokens of reasoning besides those of the answer, though the API has them in one count.
        if let (Some(output), Some(reasoning)) = (usage.output_tokens, usage.reasoning_tokens)
            && reasoning > output
        {
            usage.output_tokens = Some(output + reasoning);
        }
        (usage != Usage::default()).then_some(usage)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finish::{Finish, FinishKind};
    use super::super::kept::MAX_KEPT;
    use super::arrived_text::MAX_MESSAGES;
    use super::end::MAX_WORD;
    use super::*;
    use crate::message::Source;
    use crate::secret::Secret;

    /// Adds a call of the tool `a`, or a part of it.
    fn call(reply: &mut Reply) {
        let call = ToolCall {
            id: "x".to_owned(),
            name: "a".to_owned(),
            ..ToolCall::default()
        };
        reply.add_call(FragmentPlace::Index(0), call);
    }

    #[test]
    fn words_of_a_server_are_cut_after_secrets_are_removed() {
        let mut secrets = Secrets::default();
        secrets.add(&Secret::new("sesame-sesame".to_owned()));
        // The secret would be cut in its middle.
        let word = format!(
            "{}sesame-sesame{}",
            "x".repeat(MAX_WORD - 5),
            "x".repeat(MAX_WORD)
        );
        let mut reply = Reply::default();
        reply.end.read(&word);
        reply.fail_search(&word);
        let mut piece = reply.take_piece(false);
        piece.redact(&secrets);
        reply.redact(&secrets);
        let found = reply.end.finish().map(|finish| &*finish.word);
        for word in [
            piece.incomplete_reason.as_deref(),
            found,
            Some(&reply.activity.failed_searches[0]),
        ] {
            let word = word.expect("a word");
            assert_eq!(word.chars().count(), MAX_WORD);
            assert!(word.ends_with('…') && !word.contains("ses"), "{word}");
        }
    }

    #[test]
    fn a_piece_says_where_its_last_message_begins() {
        let mut reply = Reply::default();
        // Each letter is a text, and each bar begins a message; the pieces are apart.
        for (events, text, part_begin) in [
            ("|a", "a", Some(0)),
            ("b", "b", None),
            ("c|d|e", "c\n\nd\n\ne", Some(4)),
            ("|", "", None),
            (" ", " ", None),
            ("f", "f", Some(0)),
            ("g ||h", "g h", Some(2)),
        ] {
            for event in events.chars() {
                match event {
                    '|' => reply.answer.begin_message(false),
                    _ => reply.add_text(&event.to_string()),
                }
            }
            let piece = reply.take_piece(true);
            let found = (piece.text.as_str(), piece.part_begin);
            assert_eq!(found, (text, part_begin), "{events}");
        }
    }

    #[test]
    fn the_texts_that_a_reply_keeps_are_bounded() {
        let long = "x".repeat(MAX_KEPT / 8);
        let mut reply = Reply::default();
        for _ in 0..9 {
            reply.fail_search(&long);
        }
        assert_eq!(reply.activity.failed_searches.len(), 7);
        let mut reply = Reply::default();
        for _ in 0..9 {
            reply.refuse(&long);
        }
        let text = reply.take_piece(false).text;
        assert!(
            reply.end.refusal().len() <= MAX_KEPT && text.len() == 9 * long.len(),
            "{}",
            reply.end.refusal().len()
        );
        let mut held = Reply::default();
        for index in 0..9 {
            let place = TextPlace {
                message: Some(index),
                part: None,
            };
            held.finish_text(place, &long);
        }
        held.add_held_texts(None);
        held.end.read("completed");
        held.close();
        let text = held.take_piece(true).text;
        assert_eq!(text.len(), 7 * long.len() + 6 * "\n\n".len());
        let incomplete = held.end.incomplete_reason();
        assert_eq!(incomplete, Some("incomplete"), "the rest is missing");
        reply.end.read("pause_turn");
        assert!(
            !reply.is_paused(),
            "what the provider wants back was not kept"
        );
    }

    #[test]
    fn a_finished_text_is_not_repeated_after_more_messages_than_are_told_apart() {
        let mut reply = Reply::default();
        let mut expected = Vec::new();
        for index in 0..=MAX_MESSAGES {
            let place = TextPlace {
                message: u64::try_from(index).ok(),
                part: None,
            };
            let text = format!("{index},");
            reply.add_increment(place, &text);
            reply.finish_text(place, &text);
            expected.push(text);
        }
        reply.add_held_texts(None);
        assert_eq!(reply.take_piece(false).text, expected.join("\n\n"));
    }

    #[test]
    fn a_source_that_is_repeated_takes_no_room_from_others() {
        let source = |name: &str| Source::new(&format!("https://a.example/{name}"), "");
        let mut reply = Reply::default();
        for _ in 0..=MAX_KEPT / ITEM {
            reply.answer.add_sources(source("one"));
        }
        reply.answer.add_sources(source("two"));
        reply.add_text("so");
        assert_eq!(reply.take_piece(true).sources.len(), 2);
    }

    #[test]
    fn a_cut_call_is_noticed_only_if_tools_were_offered() {
        let input = "x".repeat(MAX_KEPT * 2 / 3);
        let json = json!({"name": "a", "input": input});
        for offers_tools in [true, false] {
            let mut reply = Reply::new(offers_tools);
            reply.turn.keep(None, &json.to_string());
            let call = ToolCall {
                name: "a".to_owned(),
                arguments: input.clone(),
                ..ToolCall::default()
            };
            reply.add_whole_call(call);
            let is_right = reply.turn.calls().len() == usize::from(offers_tools);
            assert!(is_right && !reply.turn.has_cut_call());
            reply.add_text(&input);
            assert_eq!(reply.turn.has_cut_call(), offers_tools);
        }
        // An empty fragment is no call.
        let mut reply = Reply::new(true);
        reply.add_call(FragmentPlace::Index(0), ToolCall::default());
        reply.end.read("stop");
        reply.close();
        assert_eq!(
            reply.end.finish(),
            Some(&Finish::new(FinishKind::Complete, "stop"))
        );
    }

    #[test]
    fn a_call_after_the_finish_reason_leaves_the_reply_unfinished() {
        let mut reply = Reply::new(true);
        reply.end.read("stop");
        call(&mut reply);
        assert!(!reply.end.is_finished());
    }

    #[test]
    fn an_unknown_finish_reason_is_complete_if_tools_were_called() {
        for (word, has_calls, finish) in [
            (
                "tool_calls",
                true,
                Finish::new(FinishKind::Complete, "tool_calls"),
            ),
            ("stop", true, Finish::new(FinishKind::Complete, "stop")),
            ("length", true, Finish::new(FinishKind::Limit, "length")),
            ("odd", true, Finish::new(FinishKind::Complete, "odd")),
            (
                "tool_calls",
                false,
                Finish::new(FinishKind::Other, "tool_calls"),
            ),
        ] {
            let mut reply = Reply::new(true);
            if has_calls {
                call(&mut reply);
            }
            reply.end.read(word);
            reply.close();
            let found = (reply.end.finish(), reply.turn.calls().is_empty());
            assert_eq!(found, (Some(&finish), !has_calls), "{word}");
        }
    }
}
