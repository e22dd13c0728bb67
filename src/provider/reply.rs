//! The reply as it is read: the answer's text without the reasoning, how it ended, and its usage (pure).

use std::collections::BTreeMap;

use serde_json::Value;

use super::calls::{self, Calls};
use super::finish::Finish;
use super::kept::{self, ITEM, Kept};
use super::lenient::Json;
use super::reasoning::Filter;
use super::request::Request;
use crate::message::{Source, Sources, ToolCall, Usage};
use crate::secret::{self, Secrets};
use crate::text::one_line::{beginning, on_one_line};

/// The finish reason of a reply that calls a tool that q cannot run, if the provider said `stop`.
const UNOFFERED: &str = "tool_calls";

/// The most characters of a word of the server's.
const MAX_WORD: usize = 200;

/// What stands between two paragraphs.
const PARAGRAPH: &str = "\n\n";

/// What the waiting sign says while reasoning comes.
const THINKING: &str = "thinking";

/// The part of a reply that has come since the piece before.
#[derive(Debug, Default)]
pub struct Piece {
    pub text: String,
    /// No more text will come.
    pub is_last: bool,
    /// See [`Reply::flaw`].
    pub flaw: Option<String>,
    pub sources: Vec<Source>,
    /// What the model thinks, and what it says on the way.
    pub thoughts: String,
    /// What the model or its provider does, unless that is answering.
    pub sign: Option<&'static str>,
}

impl Piece {
    /// Removes secrets from what comes with the text, and cuts the flaw if it is long.
    pub fn redact(&mut self, secrets: &Secrets) {
        for source in &mut self.sources {
            source.redact(secrets);
        }
        if let Some(flaw) = &mut self.flaw {
            *flaw = shown_word(flaw, secrets);
        }
    }
}

/// What is shown and saved of a word of the server's, which may be any text. It is cut after secrets are removed, so that no
/// part of one stays.
pub fn shown_word(word: &str, secrets: &Secrets) -> String {
    beginning(&secret::redact(word, secrets), MAX_WORD)
}

/// The end of the answer so far.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tail {
    /// The last character; `None` if nothing has come yet.
    last: Option<char>,
    /// The text that comes next is a paragraph of its own.
    ends_paragraph: bool,
}

/// A reply as far as it has been read.
#[derive(Debug, Default)]
pub struct Reply {
    /// Text of the answer that has not been taken yet.
    text: String,
    /// The answer has more than white space.
    says_something: bool,
    /// The end of the answer so far, which a continuation follows. If this reply has none yet, it is the end of the answer
    /// that the reply continues.
    pub tail: Tail,
    /// How many bytes of the answer have come since the last such paragraph began.
    length_of_last_part: usize,
    /// The message that is coming is commentary.
    in_commentary: bool,
    /// What the model says on the way. It is the answer only if nothing else comes.
    commentary: String,
    reasoning: Filter,
    /// The latest sign, see [`Piece::sign`].
    sign: Option<&'static str>,
    /// Sources that have not been taken yet, each once.
    sources: Sources,
    /// Counts them. Once they are too much, the rest is dropped.
    kept_sources: Kept,
    /// Why each search that has failed did so.
    pub failed_searches: Vec<String>,
    /// The first half of a character whose second one has not come, see [`crate::text::surrogates::joined`].
    pub(super) half: String,
    pub(super) finish: Option<Finish>,
    /// Why the answer ended so: what the model says instead of an answer, or the provider's words; empty if neither has said
    /// it.
    pub reason: String,
    /// More has come after a finish reason, or will come.
    pub(super) more_after_finish: bool,
    /// The last event has come.
    pub ended: bool,
    usage: Usage,
    /// Tools were offered. If not, calls are not read.
    pub(super) offers_tools: bool,
    /// The model has called a tool, perhaps one that was not offered, or with more arguments than q keeps.
    pub called: bool,
    calls: Calls,
    /// The size of what is kept here, and of the text, which the caller may keep.
    pub(super) kept: Kept,
    /// The model's turn as the API wants it back, by the provider's index or by position.
    pub(super) echo: BTreeMap<u64, Value>,
}

impl Reply {
    /// An empty reply. Calls count only if tools were offered.
    pub fn new(offers_tools: bool) -> Reply {
        Reply {
            offers_tools,
            ..Reply::default()
        }
    }

    /// The reply of a known answer with so many bytes, which ended with this word.
    pub fn of_known(length: usize, word: &str) -> Reply {
        let mut reply = Reply {
            length_of_last_part: length,
            ..Reply::default()
        };
        reply.finish(word);
        reply.end();
        reply
    }

    /// An empty reply to a request. It continues an answer that ends with `tail`.
    pub fn to(request: &Request, tail: Tail) -> Reply {
        Reply {
            tail,
            calls: Calls::after(request.calls_before),
            kept: request.kept_before,
            ..Reply::new(request.offers_tools)
        }
    }

    /// The calls that the model asks for, in order. Each has an id.
    pub fn calls(&self) -> &[ToolCall] {
        self.calls.list()
    }

    /// Leaves out the arguments of calls that need more bytes than there is `room`, also in what the API wants back.
    pub fn leave_out_arguments(&mut self, room: &mut usize) {
        let left_out = self.calls.leave_out_arguments(room);
        if !left_out.is_empty() {
            calls::empty_arguments(self.echo.values_mut(), &left_out);
        }
    }

    /// The model's turn as the API wants it back, see [`crate::message::Step::echo`].
    pub fn echo(&self) -> Vec<Value> {
        self.echo.values().cloned().collect()
    }

    /// Whether more has come than q keeps. Then the next request would lack a part of it.
    pub fn is_too_long(&self) -> bool {
        self.kept.is_too_much()
    }

    /// Whether a call that would run is not complete, because more has come than q keeps.
    pub fn has_cut_call(&self) -> bool {
        self.offers_tools && self.called && self.is_too_long()
    }

    /// Adds a call, or a fragment of the one with this index of the provider's. Each of the texts may be empty. Returns the
    /// call's position; `None` if no tools were offered, or if there is no room.
    pub(super) fn add_call(&mut self, index: Option<u64>, call: ToolCall) -> Option<usize> {
        // Some servers end with an empty fragment, which belongs to no call.
        self.called |= !self.offers_tools || !call.name.is_empty();
        let mut bytes = 0;
        // A call in one piece is also a part of `echo`, and has been counted there.
        if index.is_some() {
            bytes = call.id.len() + call.name.len() + call.arguments.len();
        }
        if !self.offers_tools || !self.kept.add(bytes) {
            return None;
        }
        self.more_after_finish |= self.finish.is_some();
        self.sign = None;
        let count = self.calls().len();
        let place = self.calls.add(index, call);
        if place == count {
            self.kept.add(ITEM);
        }
        Some(place)
    }

    /// Counts a value that the next request needs. Returns whether there is room for it.
    pub(super) fn has_room_for(&mut self, json: &str) -> bool {
        self.kept.add(kept::weight(json))
    }

    /// Adds to what the API wants back, if there is room: at this index of the provider's, or after the rest. Returns the
    /// value, which may need changes.
    pub(super) fn keep(&mut self, index: Option<u64>, json: &str) -> Option<&mut Value> {
        if !self.has_room_for(json) {
            return None;
        }
        let value = serde_json::from_str(json).ok()?;
        let last = self.echo.keys().next_back();
        let place = index.unwrap_or(last.map_or(0, |last| last + 1));
        self.echo.insert(place, value);
        self.echo.get_mut(&place)
    }

    /// The same for a call. If its `arguments`, which are a part of the JSON, have too many values to be kept, `instead` stands
    /// in their place: the tool does not run with them.
    pub(super) fn keep_call(
        &mut self,
        index: Option<u64>,
        json: &str,
        arguments: Json,
        instead: &str,
    ) -> Option<&mut Value> {
        if !arguments.is_too_heavy() {
            return self.keep(index, json);
        }
        let arguments = arguments.get();
        // They are kept as text elsewhere.
        self.kept.add(arguments.len().saturating_sub(instead.len()));
        self.keep(index, &json.replacen(arguments, instead, 1))
    }

    /// The provider says why the model has stopped. More may come: text, usage, the end. Another finish reason replaces only
    /// a normal end.
    pub(super) fn finish(&mut self, word: &str) {
        let finish = Finish::read(word);
        if finish.is_some() && self.may_end_normally() {
            self.finish = finish;
        }
    }

    /// The provider continues the answer when it is asked to, and says so with this word.
    pub(super) fn pause(&mut self, word: &str) {
        if self.may_end_normally() {
            self.finish = Some(Finish::Paused(word.to_owned()));
        }
    }

    /// Why the provider blocked the answer, or what failed, in its own words; empty if it says nothing.
    pub(super) fn explain(&mut self, reason: &str) {
        if !reason.is_empty() {
            reason.clone_into(&mut self.reason);
        }
    }

    /// The model says this instead of an answer.
    pub(super) fn refuse(&mut self, words: &str) {
        self.add_text(words);
        if self.kept.add(words.len()) {
            self.reason.push_str(words);
        }
    }

    /// The provider searches the web.
    pub(super) fn search(&mut self) {
        self.sign = Some("searching the web");
    }

    /// A search has failed, for this reason; empty if the provider does not say it.
    pub(super) fn fail_search(&mut self, reason: &str) {
        if self.kept.add(ITEM + reason.len()) {
            self.failed_searches.push(reason.to_owned());
        }
    }

    /// Adds sources. They may wait long for the first word, so once there are too many of them, the rest is dropped.
    pub(super) fn add_sources(&mut self, sources: impl IntoIterator<Item = Source>) {
        for source in sources {
            if self.kept_sources.is_too_much() {
                return;
            }
            let bytes = self.sources.add(source);
            if bytes > 0 {
                self.kept_sources.add(ITEM + bytes);
            }
        }
    }

    /// A message begins. It is a paragraph of the answer, or commentary.
    pub(super) fn begin_message(&mut self, is_commentary: bool) {
        self.in_commentary = is_commentary;
        if is_commentary {
            self.reasoning.thoughts.push('\n');
            // Many messages may begin without a word.
            if !self.commentary.is_empty() && !self.commentary.ends_with(PARAGRAPH) {
                self.commentary.push_str(PARAGRAPH);
            }
        } else {
            self.tail.ends_paragraph = true;
        }
    }

    /// Whether more than white space has come, of the answer or of commentary.
    pub(super) fn has_text(&self) -> bool {
        self.reasoning.has_begun() || !self.commentary.trim().is_empty()
    }

    /// Reasoning has come, which is no part of the answer. The provider may hide the text of it.
    pub(super) fn think(&mut self, thought: &str) {
        self.sign = Some(THINKING);
        self.reasoning.thoughts.push_str(thought);
    }

    /// Adds text of the answer, or of commentary.
    pub(super) fn add_text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let fits = self.kept.add(piece.len());
        if self.in_commentary {
            if fits {
                self.commentary.push_str(piece);
            } else {
                // A part of it must not become the answer.
                self.commentary.clear();
            }
            self.think(piece);
            return;
        }
        self.sign = None;
        self.more_after_finish |= self.finish.is_some();
        let before = self.text.len();
        self.reasoning.add(piece, &mut self.text);
        self.join(before);
    }

    /// Separates the text that was added at this place from the text before it.
    fn join(&mut self, at: usize) {
        let added = &self.text[at..];
        let length = added.len();
        let last = added.chars().next_back();
        if !added.trim().is_empty() {
            self.says_something = true;
            if std::mem::take(&mut self.tail.ends_paragraph) {
                let runs_on = self.tail.last.is_some_and(|end| !end.is_whitespace());
                if runs_on && !added.starts_with(char::is_whitespace) {
                    self.text.insert_str(at, PARAGRAPH);
                }
                self.length_of_last_part = 0;
            }
        }
        self.length_of_last_part += length;
        self.tail.last = last.or(self.tail.last);
    }

    /// Whether the provider has given no finish reason other than a normal end.
    fn may_end_normally(&self) -> bool {
        matches!(self.finish, None | Some(Finish::Complete(_)))
    }

    /// Whether the provider continues the answer when it is asked to, and q has kept all that this request needs.
    pub fn is_paused(&self) -> bool {
        self.has_paused() && !self.is_too_long()
    }

    fn has_paused(&self) -> bool {
        matches!(self.finish, Some(Finish::Paused(_)))
    }

    /// Nothing more will come.
    pub fn end(&mut self) {
        self.ended = true;
        self.take_commentary_for_answer();
        let before = self.text.len();
        self.reasoning.end(&mut self.text);
        self.join(before);
        self.calls.settle();
        // Whatever the provider says, its calls have ended it.
        if !self.calls().is_empty()
            && let Some(Finish::Other(word) | Finish::Paused(word)) = &self.finish
        {
            self.finish = Some(Finish::Complete(word.clone()));
        }
        if self.called && self.calls().is_empty() && self.may_end_normally() {
            self.finish = Some(Finish::Other(UNOFFERED.to_owned()));
        }
    }

    /// Makes the commentary the answer if nothing else has come: no text, and no calls that will be run.
    fn take_commentary_for_answer(&mut self) {
        let is_cut = matches!(self.finish, Some(Finish::Limit(_)));
        let will_call = !self.calls().is_empty() && !is_cut;
        if self.reasoning.has_begun() || will_call || !self.is_complete() {
            return;
        }
        self.in_commentary = false;
        let commentary = std::mem::take(&mut self.commentary);
        self.add_text(commentary.trim());
    }

    /// Stores the reported counts; a later count replaces an earlier one.
    pub(super) fn add_usage(&mut self, usage: Usage) {
        self.usage = self.usage.replaced_by(usage);
    }

    /// What has come since the last call. `is_whole` says that all that has arrived could be read.
    pub fn take_piece(&mut self, is_whole: bool) -> Piece {
        let mut sign = self.sign;
        if sign.is_none() && self.reasoning.is_within() {
            sign = Some(THINKING);
        }
        let is_last = is_whole && self.is_complete();
        let mut sources = Vec::new();
        // They wait for the first word, because without one the request may be sent again.
        if self.says_something || is_last || (is_whole && self.has_paused()) {
            sources = std::mem::take(&mut self.sources).list;
            self.kept_sources = Kept::default();
        }
        Piece {
            text: std::mem::take(&mut self.text),
            is_last,
            flaw: self.flaw().map(str::to_owned),
            sources,
            thoughts: std::mem::take(&mut self.reasoning.thoughts),
            sign,
        }
    }

    /// The last message of the answer. If it has only one, all that this reply has added to it.
    pub fn last_part<'a>(&self, answer: &'a str) -> &'a str {
        let begin = answer.len().saturating_sub(self.length_of_last_part);
        answer.get(begin..).unwrap_or(answer)
    }

    /// Whether no text has come but white space.
    pub fn is_blank(&self) -> bool {
        !self.says_something
    }

    /// Why the answer ended so, in words that can be shown, after a colon; empty if nobody has said it.
    pub fn shown_reason(&self) -> String {
        match self.reason.trim() {
            "" => String::new(),
            reason => format!(": {}", on_one_line(reason)),
        }
    }

    /// Removes secrets from what the server says of the answer, and cuts it if it is long.
    pub fn redact(&mut self, secrets: &Secrets) {
        self.reason = secret::redact(&self.reason, secrets);
        if let Some(finish) = &mut self.finish {
            let word = finish.word_mut();
            *word = shown_word(word, secrets);
        }
        for reason in &mut self.failed_searches {
            *reason = shown_word(reason, secrets);
        }
    }

    /// How the answer ended, if the provider has said so.
    pub fn finished(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// The provider's word for an answer that is or may be incomplete, or that was blocked.
    pub fn flaw(&self) -> Option<&str> {
        match self.finished()? {
            Finish::Complete(_) | Finish::Failed(_) => None,
            other => Some(other.word()),
        }
    }

    /// Whether the provider has said that the answer ended, and no more of it should come.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some() && !self.more_after_finish
    }

    /// Whether the model has stopped, and nothing has failed, is blocked or waits. More of the stream may come, and the
    /// answer may have reached the token limit.
    pub fn is_complete(&self) -> bool {
        let failed = matches!(self.finish, Some(Finish::Blocked(_) | Finish::Failed(_)));
        let has_stopped = self.ended || self.finish.is_some();
        has_stopped && !failed && !self.has_paused()
    }

    /// The counts reported so far; `None` if there are none.
    pub fn usage(&self) -> Option<Usage> {
        if self.usage == Usage::default() {
            return None;
        }
        Some(self.usage)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::kept::MAX_KEPT;
    use super::*;
    use crate::secret::Secret;

    /// Adds a call of the tool `a`, or a part of it.
    fn call(reply: &mut Reply) {
        let call = ToolCall {
            id: "x".to_owned(),
            name: "a".to_owned(),
            ..ToolCall::default()
        };
        reply.add_call(Some(0), call);
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
        reply.finish(&word);
        reply.fail_search(&word);
        let mut piece = reply.take_piece(false);
        piece.redact(&secrets);
        reply.redact(&secrets);
        let found = reply.finished().map(Finish::word);
        for word in [
            piece.flaw.as_deref(),
            found,
            Some(&reply.failed_searches[0]),
        ] {
            let word = word.expect("a word");
            assert_eq!(word.chars().count(), MAX_WORD);
            assert!(word.ends_with('…') && !word.contains("ses"), "{word}");
        }
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
    fn texts_that_are_kept_are_bounded() {
        let long = "x".repeat(MAX_KEPT / 8);
        let mut reply = Reply::default();
        for _ in 0..9 {
            reply.fail_search(&long);
        }
        assert_eq!(reply.failed_searches.len(), 7);
        let mut reply = Reply::default();
        for _ in 0..9 {
            reply.refuse(&long);
        }
        assert!(
            reply.reason.len() <= MAX_KEPT && reply.text.len() == 9 * long.len(),
            "{}",
            reply.reason.len()
        );
        reply.finish("pause_turn");
        assert!(
            !reply.is_paused(),
            "what the provider wants back was not kept"
        );
    }

    #[test]
    fn only_a_call_that_would_run_must_be_complete() {
        let input = "x".repeat(MAX_KEPT * 2 / 3);
        let json = json!({"name": "a", "input": input});
        for offers_tools in [true, false] {
            let mut reply = Reply::new(offers_tools);
            reply.keep(None, &json.to_string());
            let call = ToolCall {
                name: "a".to_owned(),
                arguments: input.clone(),
                ..ToolCall::default()
            };
            reply.add_call(None, call);
            let is_right = reply.calls().len() == usize::from(offers_tools);
            assert!(is_right && !reply.has_cut_call());
            reply.add_text(&input);
            assert_eq!(reply.has_cut_call(), offers_tools);
        }
        // A fragment without a name is no call.
        let mut reply = Reply::new(true);
        reply.add_call(Some(0), ToolCall::default());
        reply.finish("stop");
        reply.end();
        assert_eq!(reply.finished(), Some(&Finish::Complete("stop".into())));
    }

    #[test]
    fn a_call_after_the_end_means_that_more_may_come() {
        let mut reply = Reply::new(true);
        reply.finish("stop");
        call(&mut reply);
        assert!(!reply.is_finished());
    }

    #[test]
    fn calls_make_a_normal_end_of_a_word_that_says_so() {
        for (word, has_calls, finish) in [
            ("tool_calls", true, Finish::Complete("tool_calls".into())),
            ("stop", true, Finish::Complete("stop".into())),
            ("length", true, Finish::Limit("length".into())),
            ("odd", true, Finish::Complete("odd".into())),
            ("tool_calls", false, Finish::Other("tool_calls".into())),
        ] {
            let mut reply = Reply::new(true);
            if has_calls {
                call(&mut reply);
            }
            reply.finish(word);
            reply.end();
            let found = (reply.finished(), reply.calls().is_empty());
            assert_eq!(found, (Some(&finish), !has_calls), "{word}");
        }
    }
}
