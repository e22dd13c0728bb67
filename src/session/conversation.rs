//! A conversation: its exchanges, and the rules for sending, counting and dropping them.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::timestamp::Timestamp;
use crate::fence;
use crate::message::{Message, Role, Step};

/// Sent instead of an answer that broke off before its first word.
const INTERRUPTED: &str = "(interrupted)";

/// The content of a conversation's file.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) provider: String,
    pub(crate) model: String,
    /// Identifies this conversation.
    pub(crate) created: Timestamp,
    pub(crate) updated: Timestamp,
    /// Its own system prompt.
    pub(crate) system: Option<String>,
    /// The tools that its questions may use, as `-t` names them.
    pub(crate) tools: Vec<String>,
    /// Oldest first.
    pub(crate) exchanges: Vec<Exchange>,
    /// Fields that q does not know, as the file has them.
    pub(super) unknown: Vec<(String, Box<RawValue>)>,
}

/// A question and its answer. In a file that another program wrote, the first question may be missing, and a question
/// may have several answers or none.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Exchange {
    /// Never empty.
    pub(crate) entries: Vec<Entry>,
}

/// A message, and what its file says about it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) message: Message,
    /// Files from other programs may lack it.
    pub(crate) timestamp: Option<Timestamp>,
    /// The answer broke off.
    pub(crate) interrupted: bool,
    /// The provider's word for how the answer ended, if it is incomplete or was blocked.
    pub(crate) finish: Option<String>,
    /// The provider and the model that answered, if not the conversation's.
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    /// The tool calls that led to the answer.
    pub(crate) steps: Vec<Step>,
    /// The JSON that it was read from, which is kept as it is; `None` for a new message.
    pub(super) json: Option<Arc<str>>,
    /// Provider and model are not in that JSON yet.
    pub(super) signed: bool,
}

/// Equal in everything that q reads; the JSON around it does not count.
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        let Entry { message, timestamp, interrupted, finish, provider, model, steps, json: _, signed: _ } = self;
        (message, timestamp, interrupted) == (&other.message, &other.timestamp, &other.interrupted)
            && (finish, provider, model, steps) == (&other.finish, &other.provider, &other.model, &other.steps)
    }
}

impl Entry {
    /// A message that is in no file yet.
    pub(crate) fn new(message: Message, timestamp: Timestamp) -> Entry {
        Entry {
            message,
            timestamp: Some(timestamp),
            interrupted: false,
            finish: None,
            provider: None,
            model: None,
            steps: Vec::new(),
            json: None,
            signed: false,
        }
    }

    pub(crate) fn role(&self) -> Role {
        self.message.role
    }

    /// The message as it is sent again: its calls become text before the answer.
    fn to_message(&self) -> Message {
        if self.steps.is_empty() {
            return self.message.clone();
        }
        let Message { role, attachments, text } = &self.message;
        let text = if text.is_empty() { INTERRUPTED } else { text };
        let text = format!("{}\n\n{text}", fence::calls_as_text(&self.steps));
        Message::with_attachments(*role, attachments.clone(), text)
    }
}

impl Exchange {
    /// A question with its answer.
    pub(crate) fn new(question: Entry, answer: Entry) -> Exchange {
        Exchange { entries: vec![question, answer] }
    }

    /// Groups messages: each question begins an exchange.
    pub(super) fn group(entries: Vec<Entry>) -> Vec<Exchange> {
        let mut exchanges: Vec<Exchange> = Vec::new();
        for entry in entries {
            match exchanges.last_mut().filter(|_| entry.role() == Role::Assistant) {
                Some(exchange) => exchange.entries.push(entry),
                None => exchanges.push(Exchange { entries: vec![entry] }),
            }
        }
        exchanges
    }

    /// The question, if there is one.
    pub(crate) fn question(&self) -> Option<&Entry> {
        self.entries.first().filter(|entry| entry.role() == Role::User)
    }

    /// Whether its last answer is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.answer().is_some_and(|answer| !answer.interrupted && answer.finish.is_none())
    }

    /// Whether the provider blocked the answer: it broke off with a word for why.
    fn is_blocked(&self) -> bool {
        self.answer().is_some_and(|answer| answer.interrupted && answer.finish.is_some())
    }

    /// Marks its answers with this provider and model, unless they are marked already.
    fn sign(&mut self, provider: &str, model: &str) {
        let answers = self.entries.iter_mut().filter(|entry| entry.role() == Role::Assistant);
        for answer in answers.filter(|answer| answer.provider.is_none() && answer.model.is_none()) {
            (answer.provider, answer.model) = (Some(provider.to_owned()), Some(model.to_owned()));
            answer.signed = true;
        }
    }

    /// The last answer, if there is one.
    pub(crate) fn answer(&self) -> Option<&Entry> {
        self.entries.last().filter(|entry| entry.role() == Role::Assistant)
    }
}

impl Conversation {
    /// One without messages.
    pub(crate) fn new(provider: &str, model: &str, created: Timestamp) -> Conversation {
        Conversation {
            provider: provider.to_owned(),
            model: model.to_owned(),
            created,
            updated: created,
            system: None,
            tools: Vec::new(),
            exchanges: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// All messages, oldest first.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.exchanges.iter().flat_map(|exchange| &exchange.entries)
    }

    pub(crate) fn message_count(&self) -> usize {
        self.exchanges.iter().map(|exchange| exchange.entries.len()).sum()
    }

    /// Whether there is nothing that a follow-up could continue.
    pub(crate) fn is_empty(&self) -> bool {
        self.exchanges.is_empty() && self.system.is_none() && self.tools.is_empty()
    }

    /// At most this many of the last messages, oldest first. Blocked exchanges are not sent again.
    pub(crate) fn window(&self, most: usize) -> Vec<Message> {
        let sent = self.exchanges.iter().filter(|exchange| !exchange.is_blocked());
        let mut window: Vec<Message> =
            sent.flat_map(|exchange| &exchange.entries).rev().take(most).map(Entry::to_message).collect();
        window.reverse();
        window
    }

    /// Adds an exchange to the end. If another provider or model answered, the conversation switches to it; the answers
    /// before it are marked with their own; if it `keeps_own`, only the new answer is marked.
    pub(crate) fn add(&mut self, mut exchange: Exchange, provider: &str, model: &str, keeps_own: bool) {
        if (self.provider.as_str(), self.model.as_str()) != (provider, model) {
            if keeps_own {
                exchange.sign(provider, model);
            } else {
                self.exchanges.iter_mut().for_each(|exchange| exchange.sign(&self.provider, &self.model));
                provider.clone_into(&mut self.provider);
                model.clone_into(&mut self.model);
            }
        }
        self.updated = exchange.entries.last().and_then(|entry| entry.timestamp).unwrap_or(self.updated);
        self.exchanges.push(exchange);
    }

    /// Removes the last exchange. `None` if it has no question.
    pub(crate) fn undo(&mut self) -> Option<Exchange> {
        self.exchanges.pop_if(|exchange| exchange.question().is_some())
    }

    /// Removes the oldest exchanges until at most this many remain.
    pub(super) fn keep_last(&mut self, most: usize) {
        let surplus = self.exchanges.len().saturating_sub(most);
        self.exchanges.drain(..surplus);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use time::OffsetDateTime;

    use super::*;
    use crate::message::{Attachment, Call, Ran};

    pub(in crate::session) fn moment(second: i64) -> Timestamp {
        Timestamp::new(OffsetDateTime::from_unix_timestamp(1_790_000_000 + second).expect("a time"))
    }

    pub(in crate::session) fn exchange(question: &str, answer: &str, second: i64) -> Exchange {
        Exchange::new(
            Entry::new(Message::text(Role::User, question), moment(second)),
            Entry::new(Message::text(Role::Assistant, answer), moment(second + 1)),
        )
    }

    /// An image with this data, if it has any.
    pub(in crate::session) fn image(name: &str, data: Option<&str>) -> Attachment {
        Attachment { name: name.to_owned(), media: "image/png".to_owned(), data: data.map(Arc::from) }
    }

    /// The same exchange, but its question has attachments.
    pub(in crate::session) fn with_attachments(mut exchange: Exchange, attachments: Vec<Attachment>) -> Exchange {
        exchange.entries[0].message.attachments = attachments;
        exchange
    }

    /// A conversation with these exchanges, begun at moment 0.
    pub(in crate::session) fn conversation(exchanges: &[(&str, &str)]) -> Conversation {
        let mut conversation = Conversation::new("openai", "m", moment(0));
        for (second, (question, answer)) in exchanges.iter().enumerate() {
            conversation.add(exchange(question, answer, second as i64), "openai", "m", false);
        }
        conversation
    }

    pub(in crate::session) fn texts(conversation: &Conversation) -> Vec<String> {
        conversation.entries().map(|entry| entry.message.text.to_string()).collect()
    }

    fn ran() -> Ran {
        Ran { call: Call { name: "t".to_owned(), ..Call::default() }, result: "r".to_owned(), is_error: false }
    }

    fn entry(role: Role, text: &str) -> Entry {
        Entry::new(Message::text(role, text), moment(0))
    }

    #[test]
    fn entries_are_the_same_only_if_all_that_is_known_of_them_is() {
        let one = entry(Role::Assistant, "a");
        let text = |text: &str| Some(text.to_owned());
        for (what, other) in [
            ("text", entry(Role::Assistant, "b")),
            ("role", entry(Role::User, "a")),
            (
                "attachments",
                Entry {
                    message: Message::with_attachments(Role::Assistant, vec![image("a.png", None)], "a"),
                    ..one.clone()
                },
            ),
            ("time", Entry { timestamp: None, ..one.clone() }),
            ("interrupted", Entry { interrupted: true, ..one.clone() }),
            ("finish", Entry { finish: text("length"), ..one.clone() }),
            ("provider", Entry { provider: text("p"), ..one.clone() }),
            ("model", Entry { model: text("m"), ..one.clone() }),
            ("steps", Entry { steps: vec![Step::default()], ..one.clone() }),
        ] {
            assert!(one != other, "{what}");
        }
        assert_eq!(one, Entry { signed: true, ..one.clone() });
    }

    #[test]
    fn an_answer_that_names_its_model_is_not_signed() {
        for (provider, model, signed) in [(None, None, true), (Some("p"), None, false), (None, Some("m"), false)] {
            let mut asked = exchange("one", "1", 0);
            for answer in asked.entries.iter_mut().filter(|entry| entry.role() == Role::Assistant) {
                (answer.provider, answer.model) = (provider.map(str::to_owned), model.map(str::to_owned));
            }
            asked.sign("groq", "big");
            let answer = asked.answer().expect("an answer");
            assert_eq!(answer.signed, signed, "{provider:?} {model:?}");
            assert_eq!(answer.model.as_deref(), if signed { Some("big") } else { model });
        }
    }

    #[test]
    fn each_question_begins_an_exchange() {
        use Role::{Assistant as A, User as U};
        for (roles, lengths) in [
            (&[][..], &[][..]),
            (&[U, A, U, A], &[2, 2]),
            (&[U, U, A], &[1, 2]),
            (&[A, U, A, A, U], &[1, 3, 1]),
            (&[A, A], &[2]),
        ] {
            let entries = roles.iter().map(|role| entry(*role, "x")).collect();
            let exchanges = Exchange::group(entries);
            let found: Vec<usize> = exchanges.iter().map(|exchange| exchange.entries.len()).collect();
            assert_eq!(found, lengths, "{roles:?}");
        }
    }

    #[test]
    fn the_window_has_the_last_messages() {
        let conversation = conversation(&[("one", "1"), ("two", "2")]);
        for (most, expected) in [
            (0, &[][..]),
            (1, &["2"]),
            (3, &["1", "two", "2"]),
            (4, &["one", "1", "two", "2"]),
            (usize::MAX, &["one", "1", "two", "2"]),
        ] {
            let window = conversation.window(most);
            let texts: Vec<_> = window.iter().map(|message| &*message.text).collect();
            assert_eq!(texts, expected, "{most}");
        }
    }

    #[test]
    fn the_window_has_attachments_with_their_data() {
        let attachments = vec![image("a.png", Some("AAAA")), image("b.png", None)];
        let mut conversation = Conversation::new("openai", "m", moment(0));
        let mut asked = with_attachments(exchange("one", "1", 0), attachments.clone());
        conversation.add(asked.clone(), "openai", "m", false);
        // No file that q wrote has this.
        asked.entries[0].steps = vec![Step { calls: vec![ran()], ..Step::default() }];
        conversation.add(asked, "openai", "m", false);
        let window = conversation.window(4);
        for (message, count) in window.iter().zip([2, 0, 2, 0]) {
            assert_eq!(message.attachments.to_vec(), attachments[..count]);
        }
        assert!(window[2].text.ends_with("\n\none") && window[2].text.starts_with("Tool t"));
    }

    #[test]
    fn undoing_takes_the_last_exchange() {
        let mut conversation = conversation(&[("one", "1"), ("two", "2")]);
        let mut undone = || {
            let question = conversation.undo()?.question()?.message.text.to_string();
            Some((question, conversation.message_count()))
        };
        assert_eq!(undone(), Some(("two".to_owned(), 2)));
        assert_eq!(undone(), Some(("one".to_owned(), 0)));
        assert_eq!(undone(), None);
        let mut answers = Conversation::new("openai", "m", moment(0));
        answers.exchanges = Exchange::group(vec![entry(Role::Assistant, "1")]);
        assert!(answers.undo().is_none());
        assert_eq!((answers.message_count(), answers.created), (1, moment(0)));
    }

    #[test]
    fn answers_say_whose_they_are_where_the_conversation_does_not() {
        let signatures = |conversation: &Conversation| -> Vec<Option<String>> {
            conversation.exchanges.iter().map(|exchange| exchange.answer().and_then(|one| one.model.clone())).collect()
        };
        let some = |model: &str| Some(model.to_owned());
        let mut kept = conversation(&[("one", "1")]);
        kept.add(exchange("two", "2", 2), "groq", "other", true);
        kept.add(exchange("three", "3", 4), "openai", "m", true);
        assert_eq!((kept.provider.as_str(), kept.model.as_str()), ("openai", "m"));
        assert_eq!(signatures(&kept), [None, some("other"), None]);
        let mut taken_over = conversation(&[("one", "1")]);
        taken_over.add(exchange("two", "2", 2), "openai", "newer", false);
        taken_over.add(exchange("three", "3", 4), "groq", "other", false);
        assert_eq!((taken_over.provider.as_str(), taken_over.model.as_str()), ("groq", "other"));
        assert_eq!(signatures(&taken_over), [some("m"), some("newer"), None]);
        assert!(taken_over.entries().filter(|entry| entry.role() == Role::User).all(|entry| entry.model.is_none()));
    }

    #[test]
    fn calls_go_along_as_text_and_a_missing_answer_is_marked() {
        for (text, expected) in [("yes", "\n\nyes"), ("", "\n\n(interrupted)")] {
            let mut conversation = conversation(&[("one", text)]);
            conversation.exchanges[0].entries[1].steps = vec![Step { calls: vec![ran()], ..Step::default() }];
            let window = conversation.window(1);
            let sent = &window[0].text;
            assert!(sent.starts_with("Tool t") && sent.ends_with(expected), "{sent}");
        }
    }

    #[test]
    fn a_blocked_exchange_is_not_sent_again() {
        for (interrupted, finish, sent) in
            [(true, Some("SAFETY"), 2), (true, None, 4), (false, Some("length"), 4), (false, None, 4)]
        {
            let mut conversation = conversation(&[("one", "1"), ("two", "2")]);
            let answer = &mut conversation.exchanges[0].entries[1];
            (answer.interrupted, answer.finish) = (interrupted, finish.map(str::to_owned));
            assert_eq!(conversation.window(10).len(), sent, "{interrupted} {finish:?}");
        }
    }

    #[test]
    fn the_last_exchanges_are_kept() {
        for (most, expected) in
            [(0, &[][..]), (1, &["two", "2"]), (2, &["one", "1", "two", "2"]), (usize::MAX, &["one", "1", "two", "2"])]
        {
            let mut conversation = conversation(&[("one", "1"), ("two", "2")]);
            conversation.keep_last(most);
            assert_eq!(texts(&conversation), expected, "{most}");
        }
    }
}
