//! The reply as it is read: the answer's text without the reasoning, how it ended, and its usage.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::calls::Calls;
use super::finish::Finish;
use super::lenient::ReplyError;
use super::reasoning::Filter;
use crate::message::{Call, Source, Usage};
use crate::secret::{self, Secret};
use crate::surrogates;

/// How an answer ended with a call of a tool that was not offered, if the provider calls this a normal end.
const UNOFFERED: &str = "tool_calls";

/// What the waiting sign says while reasoning comes.
const THINKING: &str = "thinking";

/// What has come of a reply since the piece before.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// No more text will come.
    pub(crate) is_last: bool,
    pub(crate) sources: Vec<Source>,
    /// What the model or its provider does, unless that is answering.
    pub(crate) sign: Option<&'static str>,
}

/// What has to stand before the text after a search or a pause. A fence or a heading needs a line of its own; otherwise a
/// fence would be text, and its end would begin a block.
pub(crate) fn separator(begins_line: bool, text: &str) -> &'static str {
    let after = text.trim_start_matches('#');
    // The blank of a heading may come later.
    let is_heading = (1..=6).contains(&(text.len() - after.len())) && (after.is_empty() || after.starts_with(' '));
    let is_fence = text.starts_with("```") || text.starts_with("~~~");
    if !begins_line && (is_heading || is_fence) { "\n\n" } else { "" }
}

/// What has been read so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Text of the answer that has not been taken yet.
    text: String,
    /// The answer has more than white space.
    says_something: bool,
    /// Its last character ends a line.
    ends_line: bool,
    /// The provider has searched since the last text.
    has_searched: bool,
    /// How many bytes of the answer have come after the last search.
    length_after_search: usize,
    reasoning: Filter,
    /// See [`Piece::sign`]: the latest one.
    sign: Option<&'static str>,
    /// Sources that have not been taken yet.
    sources: Vec<Source>,
    /// The searches that failed, each with the provider's reason if it gave one.
    failed_searches: Vec<Option<String>>,
    /// A high surrogate whose low one has not come, as JSON writes it.
    surrogate: String,
    /// Texts that came complete: the answer, if it comes in no other way.
    late: String,
    refusal: String,
    finish: Option<Finish>,
    /// Why the provider blocked the answer, or what failed, in its own words.
    reason: Option<String>,
    /// More has come after a finish reason, or will come.
    more_after_finish: bool,
    ended: bool,
    /// The provider continues the answer when it is asked to.
    paused: bool,
    usage: Usage,
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
        self.sign = None;
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

    /// Adds a JSON string to the answer. An event may end within a character.
    ///
    /// # Errors
    /// It is no JSON string.
    pub(super) fn add(&mut self, string: &str) -> Result<(), ReplyError> {
        let begun = std::mem::take(&mut self.surrogate);
        let joined = if begun.is_empty() { string.into() } else { Cow::from(format!("\"{begun}{}", &string[1..])) };
        let (text, surrogate) = surrogates::text_of(&joined)?;
        self.surrogate = surrogate.to_owned();
        self.add_text(&text);
        Ok(())
    }

    /// Adds a complete text. It may have come in pieces before, or once more as the end of a longer one.
    pub(super) fn add_late(&mut self, text: &str) {
        if !self.late.ends_with(text) {
            self.late.push_str(text);
        }
    }

    /// Whether more than white space has come, of the answer or of reasoning before it.
    pub(super) fn has_begun(&self) -> bool {
        self.reasoning.has_begun() || !self.surrogate.is_empty()
    }

    /// Reasoning has come, which is no part of the answer.
    pub(super) fn think(&mut self) {
        self.sign = Some(THINKING);
    }

    /// The provider searches the web.
    pub(super) fn search(&mut self) {
        self.sign = Some("searching the web");
        self.has_searched = true;
    }

    /// A search has failed, for this reason if the provider gives one.
    pub(super) fn fail_search(&mut self, reason: Option<&str>) {
        self.failed_searches.push(reason.map(str::to_owned));
    }

    pub(crate) fn failed_searches(&self) -> &[Option<String>] {
        &self.failed_searches
    }

    /// Adds the sources in a list. `url` and `title` are their places in each element.
    pub(super) fn add_sources(&mut self, list: &Value, url: &str, title: &str) {
        for element in list.as_array().into_iter().flatten() {
            let text = |place| element.pointer(place).and_then(Value::as_str).unwrap_or_default();
            self.sources.extend(Source::new(text(url), text(title)));
        }
    }

    /// Adds a JSON string that the model says instead of an answer.
    ///
    /// # Errors
    /// It is no JSON string.
    pub(super) fn refuse(&mut self, string: &str) -> Result<(), ReplyError> {
        // Nearly every event of some dialects has an empty one.
        if string == "\"\"" {
            return Ok(());
        }
        self.refusal.push_str(&surrogates::lossy::<String>(string)?);
        self.add(string)
    }

    fn add_text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.sign = None;
        }
        self.more_after_finish |= self.finish.is_some() && !piece.is_empty();
        if !piece.trim().is_empty() && std::mem::take(&mut self.has_searched) {
            self.text.push_str(separator(!self.says_something || self.ends_line, piece));
            self.length_after_search = 0;
        }
        let before = self.text.len();
        self.reasoning.add(piece, &mut self.text);
        let added = &self.text[before..];
        self.length_after_search += added.len();
        self.says_something = self.says_something || !added.trim().is_empty();
        self.ends_line = if added.is_empty() { self.ends_line } else { added.ends_with('\n') };
    }

    /// The provider says with this word that the model has stopped. More may come: text, usage, the end. A word that is
    /// not a normal end stays.
    pub(super) fn finish(&mut self, word: &str) {
        if matches!(self.finish, None | Some(Finish::Complete(_))) {
            self.finish = Some(Finish::new(word));
        }
    }

    /// The provider waits for a request to continue.
    pub(super) fn pause(&mut self) {
        self.paused = true;
    }

    /// Whether the provider continues the answer when it is asked to.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused
    }

    /// The prompt itself was blocked; the provider's word for why.
    pub(super) fn block(&mut self, word: &str) {
        self.finish = Some(Finish::Blocked(word.to_owned()));
    }

    /// Why the answer ended so, in the provider's words.
    pub(super) fn explain(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.reason = Some(reason.to_owned());
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
            self.add_text(&late);
        }
        if !std::mem::take(&mut self.surrogate).is_empty() {
            self.add_text("\u{FFFD}");
        }
        let before = self.text.len();
        self.reasoning.end(&mut self.text);
        self.length_after_search += self.text.len() - before;
        self.says_something |= !self.text[before..].trim().is_empty();
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

    /// What has come since the last call. `is_whole`: all that has arrived could be read.
    pub(crate) fn take_piece(&mut self, is_whole: bool) -> Piece {
        Piece {
            text: self.take_text(),
            is_last: is_whole && self.is_complete(),
            sources: std::mem::take(&mut self.sources),
            sign: self.sign.or(self.reasoning.is_within().then_some(THINKING)),
        }
    }

    /// The text of the answer that has come since the last call.
    pub(super) fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// The part of the answer after the last search, or all that this reply has added to it.
    pub(crate) fn after_search<'a>(&self, answer: &'a str) -> &'a str {
        answer.get(answer.len().saturating_sub(self.length_after_search)..).unwrap_or(answer)
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

    /// The model has stopped, and nothing failed, was blocked or waits. More of the stream may come, and the answer may have
    /// reached the token limit.
    pub(crate) fn is_complete(&self) -> bool {
        let failed = matches!(self.finish, Some(Finish::Blocked(_) | Finish::Failed(_)));
        (self.ended || self.finish.is_some()) && !failed && !self.paused
    }

    /// The counts reported so far; `None` if there are none.
    pub(crate) fn usage(&self) -> Option<Usage> {
        (self.usage != Usage::default()).then_some(self.usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
