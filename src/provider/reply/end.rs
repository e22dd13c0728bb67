//! How a reply ends: what the provider says of it, and whether more may come (pure).

use std::mem;

use crate::provider::finish::{Finish, FinishKind, INCOMPLETE};
use crate::secret::{self, Secrets};
use crate::text::one_line::{beginning, on_one_line};

/// The finish reason of a reply with calls that q cannot run, if the provider said `stop`.
const CALLS_THAT_CANNOT_RUN: &str = "tool_calls";

/// Why an answer may be incomplete whose finished text has more than what was streamed of it.
const LACKS_TEXT: &str = "its finished text has more than what was streamed";

/// The most characters of a word of the server's.
pub const MAX_WORD: usize = 200;

/// The end of a reply.
#[derive(Debug, Default)]
pub struct ReplyEnd {
    finish: Option<Finish>,
    reason: EndReason,
    /// Whether the finished text has a part that did not arrive in its place.
    pub lacks_text: bool,
    /// Whether the provider says of the last message or call that it is cut. It may not say so of the reply.
    pub has_cut_part: bool,
    empty_word: EmptyWord,
    /// Whether more has arrived after a finish reason, or will come.
    more_after_finish: bool,
    /// Whether the last event has arrived.
    is_over: bool,
}

/// Why a reply ended so.
#[derive(Debug, Default)]
enum EndReason {
    /// Nobody has said it.
    #[default]
    None,
    /// In the provider's words.
    Provider(String),
    /// The blanks with which a refusal may begin.
    Blanks(String),
    /// What the model says instead of an answer. No other reason replaces it. It is empty if there was no room for it.
    Refusal(String),
}

impl EndReason {
    fn words(&self) -> &str {
        match self {
            EndReason::None => "",
            EndReason::Provider(words) | EndReason::Blanks(words) | EndReason::Refusal(words) => {
                words
            }
        }
    }
}

/// What an empty finish reason says, in an API that has no event after the last one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EmptyWord {
    /// None has come.
    #[default]
    Absent,
    /// The answer is complete if nothing more comes.
    MayBeEnd,
    /// The answer went on after one, so the server writes it into its events whether the answer ends or not.
    SaysNothing,
}

/// Returns what is shown and saved of a word of the server's, which may be any text. It is cut after secrets are removed, so that
/// no part of one stays.
pub fn shown_word(word: &str, secrets: &Secrets) -> String {
    beginning(&secret::redact(word, secrets), MAX_WORD)
}

impl ReplyEnd {
    /// Reads why the model has stopped. More may come: text, usage, the end. Another finish reason replaces only
    /// a normal end.
    pub fn read(&mut self, word: &str) {
        let finish = Finish::read(word);
        if finish.is_some() && self.is_normal() {
            self.finish = finish;
        }
    }

    /// Records whether an event has an empty finish reason, which no event follows in this API if it stands for the end.
    pub fn read_empty_word(&mut self, is_there: bool) {
        self.empty_word = match (self.empty_word, is_there) {
            (EmptyWord::Absent, true) => EmptyWord::MayBeEnd,
            (EmptyWord::MayBeEnd, false) => EmptyWord::SaysNothing,
            (known, _) => known,
        };
    }

    /// Whether an empty finish reason says that the answer is complete if nothing more comes.
    pub fn may_be_over(&self) -> bool {
        self.empty_word == EmptyWord::MayBeEnd
    }

    /// Records a pause: the provider continues the answer when it is asked to, and says so with this word.
    pub fn pause(&mut self, word: &str) {
        if self.is_normal() {
            self.finish = Some(Finish::new(FinishKind::Paused, word));
        }
    }

    /// Records that the provider has blocked the prompt, so there is no answer, whatever it has said of one.
    pub fn block(&mut self, word: &str) {
        self.finish = Some(Finish::new(FinishKind::Blocked, word));
    }

    /// Records why the provider blocked the answer, or what failed, in its own words; empty if it says nothing.
    pub fn explain(&mut self, reason: &str) {
        if !reason.is_empty() && !self.has_refused() {
            self.reason = EndReason::Provider(reason.to_owned());
        }
    }

    /// Records what the model says instead of an answer, after what it has said so far. Without room, only that it does.
    pub fn refuse(&mut self, words: &str, has_room: bool) {
        let is_blank = words.trim().is_empty();
        let kept = if has_room { words } else { "" };
        self.reason = match mem::take(&mut self.reason) {
            EndReason::Refusal(said) => EndReason::Refusal(said + kept),
            EndReason::Blanks(said) if is_blank => EndReason::Blanks(said + kept),
            EndReason::Blanks(said) => EndReason::Refusal(said + kept),
            EndReason::None if is_blank => EndReason::Blanks(kept.to_owned()),
            EndReason::Provider(reason) if is_blank => EndReason::Provider(reason),
            EndReason::None | EndReason::Provider(_) => EndReason::Refusal(kept.to_owned()),
        };
    }

    /// Whether the model says something instead of an answer.
    pub fn has_refused(&self) -> bool {
        matches!(self.reason, EndReason::Refusal(_))
    }

    /// Returns what the model has said instead of an answer.
    pub fn refusal(&self) -> &str {
        match &self.reason {
            EndReason::Refusal(words) => words,
            _ => "",
        }
    }

    /// Records that a part of the answer comes. After a finish reason, still more may follow.
    pub fn go_on(&mut self) {
        self.more_after_finish |= self.finish.is_some();
        if self.empty_word == EmptyWord::MayBeEnd {
            self.empty_word = EmptyWord::SaysNothing;
        }
    }

    /// Records that more will come, whatever the provider says of the end.
    pub fn expect_more(&mut self) {
        self.more_after_finish = true;
    }

    /// Records that the last event has arrived.
    pub fn close(&mut self) {
        self.is_over = true;
        // Another end says more than that something is missing.
        if !self.is_normal() {
            return;
        }
        if self.has_cut_part {
            self.finish = Finish::read(INCOMPLETE);
        } else if self.lacks_text {
            self.finish = Some(Finish::new(FinishKind::Other, INCOMPLETE));
            self.explain(LACKS_TEXT);
        }
    }

    /// Records that the model has called tools that q can run. Whatever the provider says, they have ended the reply.
    pub fn end_with_calls(&mut self) {
        if let Some(finish) = &mut self.finish
            && matches!(finish.kind, FinishKind::Other | FinishKind::Paused)
        {
            finish.kind = FinishKind::Complete;
        }
    }

    /// Records that the model has called tools, and none that q can run: they were not offered, or the calls came as text.
    pub fn end_with_calls_that_cannot_run(&mut self) {
        if self.is_normal() {
            self.finish = Some(Finish::new(FinishKind::Other, CALLS_THAT_CANNOT_RUN));
        }
    }

    /// Whether the provider has given no finish reason other than a normal end.
    pub fn is_normal(&self) -> bool {
        matches!(self.kind(), None | Some(FinishKind::Complete))
    }

    /// Returns the provider's word, if it has blocked the answer, or the rest of it.
    pub fn blocked(&self) -> Option<&str> {
        let finish = self.finish.as_ref()?;
        (finish.kind == FinishKind::Blocked).then_some(&*finish.word)
    }

    fn kind(&self) -> Option<FinishKind> {
        self.finish.as_ref().map(|finish| finish.kind)
    }

    /// Returns how the answer ended, if the provider has said so.
    pub fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// Returns the provider's word for an answer that is or may be incomplete, or that was blocked.
    pub fn incomplete_reason(&self) -> Option<&str> {
        let finish = self.finish.as_ref()?;
        match finish.kind {
            FinishKind::Complete | FinishKind::Failed => None,
            _ => Some(&finish.word),
        }
    }

    /// Whether the last event has arrived.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the provider has said that the answer ended, and no more of it should come.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some() && !self.more_after_finish
    }

    /// Whether the model has stopped, and nothing has failed, is blocked or waits. More of the stream may come, and the
    /// answer may have reached the token limit.
    pub fn is_complete(&self) -> bool {
        let failed = matches!(self.kind(), Some(FinishKind::Blocked | FinishKind::Failed));
        let has_stopped = self.is_over || self.finish.is_some();
        has_stopped && !failed && !self.has_paused()
    }

    /// Whether the answer was cut, at the token limit or for an unknown reason.
    pub fn is_cut(&self) -> bool {
        matches!(self.kind(), Some(FinishKind::Limit | FinishKind::Cut))
    }

    /// Whether the answer was cut at the token limit.
    pub fn has_reached_limit(&self) -> bool {
        self.kind() == Some(FinishKind::Limit)
    }

    /// Whether the provider continues the answer when it is asked to.
    pub fn has_paused(&self) -> bool {
        self.kind() == Some(FinishKind::Paused)
    }

    /// Returns why the answer ended so, in words that can be shown, after a colon; empty if nobody has said it.
    pub fn shown_reason(&self) -> String {
        match self.reason.words().trim() {
            "" => String::new(),
            reason => format!(": {}", on_one_line(reason)),
        }
    }

    /// Removes secrets from what the server says, and cuts its word if it is long.
    pub fn redact(&mut self, secrets: &Secrets) {
        if let EndReason::Provider(words) | EndReason::Blanks(words) | EndReason::Refusal(words) =
            &mut self.reason
        {
            *words = secret::redact(words, secrets);
        }
        if let Some(finish) = &mut self.finish {
            finish.word = shown_word(&finish.word, secrets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_finish_reason_is_not_replaced_by_a_later_good_one() {
        let mut end = ReplyEnd::default();
        for (word, finish) in [
            ("stop", Finish::new(FinishKind::Complete, "stop")),
            ("length", Finish::new(FinishKind::Limit, "length")),
            ("stop", Finish::new(FinishKind::Limit, "length")),
        ] {
            end.read(word);
            assert_eq!(end.finish(), Some(&finish), "{word}");
        }
        assert!(end.is_finished());
        end.go_on();
        assert!(!end.is_finished());
    }

    #[test]
    fn a_refusal_is_the_reason_whatever_else_is_said() {
        // What comes: words of the model (r), without room for them (n), words of the provider (p), and an end that lacks text
        // (l). Then the refusal, `None` if there is none, and the reason.
        for (events, refusal, reason) in [
            ("rI won't.|pPolicy.", Some("I won't."), ": I won't."),
            ("pPolicy.|rI won't.", Some("I won't."), ": I won't."),
            (
                "rI |rwon't.|pPolicy.|r Sorry.",
                Some("I won't. Sorry."),
                ": I won't. Sorry.",
            ),
            ("rI won't.|l", Some("I won't."), ": I won't."),
            ("r |rI won't.|r ", Some(" I won't. "), ": I won't."),
            ("r |nI won't.|pPolicy.", Some(" "), ""),
            ("nI won't.|pPolicy.", Some(""), ""),
            ("r |pPolicy.", None, ": Policy."),
            ("pPolicy.|r ", None, ": Policy."),
            ("n ", None, ""),
            (
                "l",
                None,
                ": its finished text has more than what was streamed",
            ),
        ] {
            let mut end = ReplyEnd::default();
            for event in events.split('|') {
                match event.split_at(1) {
                    ("r", words) => end.refuse(words, true),
                    ("n", words) => end.refuse(words, false),
                    ("p", words) => end.explain(words),
                    _ => {
                        end.lacks_text = true;
                        end.close();
                    }
                }
            }
            let found = end.has_refused().then(|| end.refusal());
            assert_eq!(found, refusal, "{events}");
            assert_eq!(end.shown_reason(), reason, "{events}");
        }
    }
}
