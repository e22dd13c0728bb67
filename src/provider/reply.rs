//! The reply as it is read: the answer's text without the reasoning, how it ended, and its usage.

use std::collections::BTreeMap;

use serde_json::Value;

use super::calls::Calls;
use super::failure::ServerError;
use super::finish::Finish;
use super::lenient;
use crate::message::{Call, Usage};
use crate::secret::{self, Secret};

/// The tags around the reasoning that some models put before the answer.
const TAGS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
];

/// The end of reasoning whose opening tag the server's template has swallowed. It is recognized only if it comes
/// before any text was handed on: at the very beginning, or at the end of a line in an answer that comes in one piece.
const CLOSE_ALONE: &str = "</think>";

/// How an answer ended with a call of a tool that was not offered, if the provider calls this a normal end.
const UNOFFERED: &str = "tool_calls";

/// Where in a reply the next text belongs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// So far only white space and perhaps the beginning of an opening tag; it is held back.
    #[default]
    Start,
    /// Between the tags of reasoning; what may begin this closing tag is held back.
    Thinking(&'static str),
    /// After the closing tag: white space is dropped.
    Thought,
    /// In the answer.
    Answer,
}

/// What has been read so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Text of the answer that nobody has taken yet.
    text: String,
    /// The answer has more than white space.
    says_something: bool,
    stage: Stage,
    held: String,
    /// How much white space the held text begins with.
    held_blanks: usize,
    /// The first half of a character whose second half has not come (WTF-8).
    half: Vec<u8>,
    /// Texts that came complete: the answer, if it comes in no other way (WTF-8).
    late: Vec<u8>,
    refusal: String,
    finish: Option<Finish>,
    /// Why the provider blocked the answer, or what failed, in its own words.
    reason: Option<String>,
    /// More has come after a finish reason, or will come.
    more_after_finish: bool,
    ended: bool,
    usage: Usage,
    failure: Option<ServerError>,
    /// Tools were offered.
    offers_tools: bool,
    /// The model has called a tool though none was offered.
    called_unoffered: bool,
    calls: Calls,
    /// The model's turn as the API wants it back, by the provider's index or by position.
    echo: BTreeMap<u64, Value>,
}

impl Reply {
    /// An empty reply. Calls count only if tools were offered.
    pub(crate) fn new(offers_tools: bool) -> Reply {
        Reply { offers_tools, ..Reply::default() }
    }

    /// The calls that the model asks for, in order. Each has an id.
    pub(crate) fn calls(&self) -> &[Call] {
        self.calls.list()
    }

    /// The model's turn as the API wants it back, see [`crate::message::Step::echo`].
    pub(crate) fn echo(&self) -> Vec<Value> {
        self.echo.values().cloned().collect()
    }

    /// Whether tools were offered. If not, calls are not read.
    pub(super) fn offers_tools(&self) -> bool {
        self.offers_tools
    }

    /// The model calls a tool though none was offered. This is no normal end, whatever the provider calls it.
    pub(super) fn call_unoffered(&mut self) {
        self.called_unoffered = true;
    }

    /// Adds a fragment of the call with this index of the provider's, and returns the call's position. Each of the texts
    /// may be empty.
    pub(super) fn call_fragment(&mut self, index: u64, id: &str, name: &str, arguments: &str) -> Option<usize> {
        self.more_after_finish |= self.finish.is_some();
        self.calls.add(index, id, name, arguments)
    }

    /// Adds a call that came in one piece. Returns it with its id, which q may have made up.
    pub(super) fn add_call(&mut self, id: &str, name: &str, arguments: &str) -> &Call {
        self.calls.add_whole(id, name, arguments)
    }

    /// What the API wants back, so far.
    pub(super) fn echo_mut(&mut self) -> &mut BTreeMap<u64, Value> {
        &mut self.echo
    }

    /// Adds to what the API wants back.
    pub(super) fn keep(&mut self, item: Value) {
        self.echo.insert(self.echo.len() as u64, item);
    }

    /// Adds bytes of WTF-8 to the answer. An event may end within a character.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        if self.half.is_empty()
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return self.add_text(text);
        }
        let mut joined = std::mem::take(&mut self.half);
        joined.extend_from_slice(bytes);
        let (text, half) = lenient::decode(&joined);
        self.half = half.to_owned();
        self.add_text(&text);
    }

    /// Adds a complete text. It may have come in pieces before, or once more as the end of a longer one.
    pub(super) fn add_late(&mut self, bytes: &[u8]) {
        if !self.late.ends_with(bytes) {
            self.late.extend_from_slice(bytes);
        }
    }

    /// Whether more than white space has come, of the answer or of reasoning before it.
    pub(super) fn has_begun(&self) -> bool {
        self.stage != Stage::Start || self.held.len() > self.held_blanks || !self.half.is_empty()
    }

    /// Adds what the model says instead of an answer.
    pub(super) fn refuse(&mut self, bytes: &[u8]) {
        self.refusal.push_str(&String::from_utf8_lossy(bytes));
        self.add(bytes);
    }

    /// Adds to the answer. Reasoning between tags at the beginning is left out.
    fn add_text(&mut self, piece: &str) {
        self.more_after_finish |= self.finish.is_some() && !piece.is_empty();
        match self.stage {
            Stage::Answer => self.release(piece),
            Stage::Start => self.add_at_start(piece),
            Stage::Thinking(close) => {
                self.held.push_str(piece);
                self.look_for_the_end_of_reasoning(close);
            }
            Stage::Thought => self.add_after_reasoning(piece),
        }
    }

    fn add_at_start(&mut self, piece: &str) {
        // Only new text is examined, so that endless blanks take no longer than other text.
        if self.held.len() == self.held_blanks {
            self.held_blanks += piece.len() - piece.trim_start().len();
        }
        self.held.push_str(piece);
        let begin = &self.held[self.held_blanks..];
        let opened = TAGS.iter().find_map(|(open, close)| Some((begin.strip_prefix(open)?, *close)));
        if let Some((thought, close)) = opened {
            self.held = thought.to_owned();
            self.stage = Stage::Thinking(close);
            self.look_for_the_end_of_reasoning(close);
        } else if let Some(rest) = after_close_alone(begin) {
            let rest = rest.to_owned();
            self.held.clear();
            self.stage = Stage::Thought;
            self.add_after_reasoning(&rest);
        } else if !TAGS.iter().map(|(open, _)| *open).chain([CLOSE_ALONE]).any(|tag| tag.starts_with(begin)) {
            self.begin_answer();
        }
    }

    fn look_for_the_end_of_reasoning(&mut self, close: &str) {
        if let Some(at) = self.held.find(close) {
            let rest = self.held.split_off(at + close.len());
            self.held.clear();
            self.stage = Stage::Thought;
            self.add_after_reasoning(&rest);
        } else {
            let most = self.held.len().saturating_sub(close.len());
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

    /// The text held back is the beginning of the answer.
    fn begin_answer(&mut self) {
        self.stage = Stage::Answer;
        let held = std::mem::take(&mut self.held);
        self.release(&held);
    }

    fn release(&mut self, text: &str) {
        self.says_something = self.says_something || !text.trim().is_empty();
        self.text.push_str(text);
    }

    /// The provider says with this word that the model has stopped. More may come: text, usage, the end. A word that is
    /// not a normal end stays.
    pub(super) fn finish(&mut self, word: &str) {
        if matches!(self.finish, None | Some(Finish::Complete(_))) {
            self.finish = Some(Finish::of(word));
        }
    }

    /// The prompt itself was blocked; the provider's word for why.
    pub(super) fn block(&mut self, word: String) {
        self.finish = Some(Finish::Blocked(word));
    }

    /// Why the answer ended so, in the provider's words.
    pub(super) fn explain(&mut self, reason: String) {
        if !reason.is_empty() {
            self.reason = Some(reason);
        }
    }

    /// The server runs a call of its own, so more will come even after a finish reason.
    pub(super) fn server_calls(&mut self) {
        self.more_after_finish = true;
    }

    /// Nothing more will come.
    pub(crate) fn end(&mut self) {
        if !self.has_begun() {
            let late = std::mem::take(&mut self.late);
            self.add(&late);
        }
        if !std::mem::take(&mut self.half).is_empty() {
            self.add_text("\u{FFFD}");
        }
        self.ended = true;
        self.calls.settle();
        if !self.calls().is_empty()
            && let Some(finish) = self.finish.take_if(|finish| finish.is_for_calls())
        {
            self.finish = Some(Finish::Complete(finish.word().to_owned()));
        }
        if self.called_unoffered && matches!(self.finish, None | Some(Finish::Complete(_))) {
            self.finish = Some(Finish::Other(UNOFFERED.to_owned()));
        }
        // An answer may be shorter than a tag and begin like it.
        if self.stage == Stage::Start && self.held.len() > self.held_blanks {
            self.begin_answer();
        }
    }

    /// The server said that it failed.
    pub(super) fn fail(&mut self, failure: ServerError) {
        self.failure = Some(failure);
    }

    /// Stores the reported counts; a later count replaces an earlier one.
    pub(super) fn add_usage(&mut self, usage: Usage) {
        self.usage = Usage {
            input_tokens: usage.input_tokens.or(self.usage.input_tokens),
            output_tokens: usage.output_tokens.or(self.usage.output_tokens),
            cached_tokens: usage.cached_tokens.or(self.usage.cached_tokens),
            reasoning_tokens: usage.reasoning_tokens.or(self.usage.reasoning_tokens),
            cost: usage.cost.or(self.usage.cost),
        };
    }

    /// The text of the answer that has come since the last call.
    pub(crate) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Whether no text has come but white space.
    pub(crate) fn is_blank(&self) -> bool {
        !self.says_something
    }

    /// Removes secrets from the word for the end, which may be anything.
    pub(crate) fn redact(&mut self, secrets: &[Secret]) {
        if let Some(finish) = &mut self.finish {
            let word = finish.word_mut();
            *word = secret::redact(word, secrets);
        }
    }

    /// How the answer ended, if the provider has said so.
    pub(crate) fn finished(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// Why it ended so, in the provider's words: its reason, or what the model said instead of an answer.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref().or(Some(self.refusal.as_str())).filter(|reason| !reason.is_empty())
    }

    /// The provider has said that the answer ended, and no more of it is to be expected.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some() && !self.more_after_finish
    }

    /// The terminal event has come.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// The model has stopped, and nothing failed or was blocked. More of the stream may come, and the answer may have
    /// reached the token limit.
    pub(crate) fn is_complete(&self) -> bool {
        let failed = matches!(self.finish, Some(Finish::Blocked(_) | Finish::Failed(_)));
        (self.ended || self.finish.is_some()) && !failed && self.failure.is_none()
    }

    /// The counts reported so far; `None` if there are none.
    pub(crate) fn usage(&self) -> Option<Usage> {
        (self.usage != Usage::default()).then_some(self.usage)
    }

    /// The error that the server reported inside the reply.
    pub(crate) fn failure(&self) -> Option<&ServerError> {
        self.failure.as_ref()
    }
}

/// What follows the end of reasoning that has no opening tag: the tag stands on a line of its own, or before a blank
/// line. Elsewhere the answer only mentions it.
fn after_close_alone(text: &str) -> Option<&str> {
    let (before, rest) = text.split_once(CLOSE_ALONE)?;
    let line_ends = rest.is_empty() || rest.starts_with(['\n', '\r']);
    let blank_follows = rest.starts_with("\n\n") || rest.starts_with("\r\n\r\n");
    let is_close = before.is_empty() || (before.ends_with('\n') && line_ends) || blank_follows;
    (is_close && !before.contains(TAGS[0].0)).then_some(rest)
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
            ("<thinking>so</thinking>42", "42"),
            ("<thought>so</thought>\n42", "42"),
            ("<reasoning>so</reasoning>\n42", "42"),
            ("[THINK]so[/THINK]42", "42"),
            ("[THIN", "[THIN"),
            ("<think>a</thinking>b</think>42", "42"),
            ("</think>\n42", "42"),
            ("<thinker> is no tag", "<thinker> is no tag"),
            ("see <think>this</think>", "see <think>this</think>"),
            ("<think>ä</thinkö</think>ü", "ü"),
            ("", ""),
            (" \n ", ""),
        ] {
            assert_eq!(text_of(&[whole]), answer, "{whole}");
            let characters: Vec<String> = whole.chars().map(String::from).collect();
            let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
            assert_eq!(text_of(&characters), answer, "{whole}, by character");
        }
    }

    #[test]
    fn reasoning_without_its_opening_tag_is_left_out_of_an_answer_in_one_piece() {
        assert_eq!(text_of(&["so I say\n</think>\n\n42"]), "42");
        assert_eq!(text_of(&["so I say\n</think>\r\n42"]), "42");
        assert_eq!(text_of(&["so I say</think>\n\n42"]), "42");
        assert_eq!(text_of(&["so I say\n</think>", "\n42"]), "42");
        // An answer about the tag.
        for answer in
            ["write </think> at the end", "like\n</think> so", "`a`</think>\nb", "x.split(\"</think>\")[-1]\n"]
        {
            assert_eq!(text_of(&[answer]), answer);
        }
        // Text that was handed on cannot be taken back.
        assert_eq!(text_of(&["so I say", "</think>42"]), "so I say</think>42");
    }

    #[test]
    fn a_character_whose_halves_come_apart_is_joined() {
        let mut reply = Reply::default();
        reply.add(b"a\xED\xA0\xBD");
        assert_eq!(reply.take_text(), "a");
        reply.add(b"\xED\xB8\x80b\xED\xA0\xBD");
        assert_eq!(reply.take_text(), "😀b");
        reply.end();
        assert_eq!(reply.take_text(), "\u{FFFD}");
    }

    #[test]
    fn a_bad_end_stays_whatever_follows() {
        let mut reply = Reply::default();
        for (word, finish) in [
            ("stop", Finish::Complete("stop".into())),
            ("length", Finish::Limit("length".into())),
            ("stop", Finish::Limit("length".into())),
        ] {
            reply.finish(word);
            assert_eq!(reply.finished(), Some(&finish), "{word}");
        }
        assert!(reply.is_finished());
        reply.add_text("more");
        assert!(!reply.is_finished());
    }

    #[test]
    fn a_call_after_the_end_means_that_more_may_come() {
        let mut reply = Reply::new(true);
        reply.finish("stop");
        reply.call_fragment(0, "x", "a", "{}");
        assert!(!reply.is_finished());
    }

    #[test]
    fn an_answer_that_was_blocked_or_failed_is_not_complete() {
        for (word, complete) in [("stop", true), ("length", true), ("odd", true), ("safety", false), ("error", false)] {
            let mut reply = Reply::default();
            reply.finish(word);
            assert_eq!(reply.is_complete(), complete, "{word}");
        }
    }

    #[test]
    fn calls_make_a_normal_end_of_a_word_that_says_so() {
        for (word, has_calls, finish) in [
            ("tool_calls", true, Finish::Complete("tool_calls".into())),
            ("stop", true, Finish::Complete("stop".into())),
            ("length", true, Finish::Limit("length".into())),
            ("odd", true, Finish::Other("odd".into())),
            ("tool_calls", false, Finish::Other("tool_calls".into())),
        ] {
            let mut reply = Reply::new(true);
            if has_calls {
                reply.call_fragment(0, "x", "a", "");
            }
            reply.finish(word);
            reply.end();
            assert_eq!((reply.finished(), reply.calls().is_empty()), (Some(&finish), !has_calls), "{word}");
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
