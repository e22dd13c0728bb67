//! A conversation: what its file says, read and written without losing what q does not know.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::timestamp::Timestamp;
use crate::message::{Role, Said};

/// The version of the format that q reads and writes.
const VERSION: u64 = 1;

const BETWEEN_MESSAGES: &str = ",\n";

/// What stands behind the last message.
const TAIL: &str = "\n]}\n";

/// The most bytes that a file of a conversation may have.
pub(crate) const LARGEST: usize = 10_000_000;

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) question: String,
    pub(crate) asked: Timestamp,
    pub(crate) answer: String,
    pub(crate) answered: Timestamp,
    /// The answer broke off.
    pub(crate) interrupted: bool,
}

/// What a file holds. Messages stay as they were written; so do fields that q does not know.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) provider: String,
    pub(crate) model: String,
    /// Tells this conversation from all others.
    pub(crate) created: Timestamp,
    pub(crate) updated: Timestamp,
    messages: Vec<Text>,
    unknown: Vec<(String, Box<RawValue>)>,
    /// What it was read from; empty for a new one.
    source: String,
}

/// The JSON of a message. A large conversation is not copied for the sake of the few messages that are looked at.
#[derive(Debug, Clone)]
enum Text {
    /// It stands here in the conversation's source.
    Read(Range<usize>),
    New(Box<RawValue>),
}

impl Text {
    fn json<'a>(&'a self, source: &'a str) -> &'a str {
        match self {
            Text::Read(range) => &source[range.clone()],
            Text::New(json) => json.get(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Text::Read(range) => range.len(),
            Text::New(json) => json.get().len(),
        }
    }
}

/// Why a file is no conversation that q can use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// In the parser's words.
    Malformed(String),
    Version(u64),
    /// Bytes.
    TooLarge(u64),
}

impl fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Malformed(reason) => write!(formatter, "it cannot be parsed ({reason})"),
            Unusable::Version(version) => write!(formatter, "it is of version {version}, not of version {VERSION}"),
            Unusable::TooLarge(bytes) => write!(formatter, "it has {bytes} bytes, more than {LARGEST}"),
        }
    }
}

/// A message as it is read; other fields of it stay where they are, in the file's own text.
#[derive(Debug, Deserialize)]
pub(crate) struct MessageRead<'a> {
    pub(crate) role: Role,
    #[serde(borrow, deserialize_with = "lossy_text")]
    pub(crate) content: Cow<'a, str>,
    /// Files of other hands may lack it, or write the time in another form.
    #[serde(default, deserialize_with = "time_if_readable")]
    pub(crate) timestamp: Option<Timestamp>,
    #[serde(default)]
    interrupted: Option<bool>,
}

impl MessageRead<'_> {
    /// The answer broke off.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted == Some(true)
    }
}

/// A message as it is written.
#[derive(Serialize)]
struct MessageWritten<'a> {
    role: Role,
    content: &'a str,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
}

impl Conversation {
    /// One without messages, for an exchange to be added.
    pub(crate) fn new(provider: &str, model: &str, created: Timestamp) -> Conversation {
        Conversation {
            provider: provider.to_owned(),
            model: model.to_owned(),
            created,
            updated: created,
            messages: Vec::new(),
            unknown: Vec::new(),
            source: String::new(),
        }
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// Why it is no conversation that can be used.
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Conversation, Unusable> {
        if bytes.len() > LARGEST {
            return Err(Unusable::TooLarge(bytes.len() as u64));
        }
        let source = String::from_utf8(bytes).map_err(|_| Unusable::Malformed("it is not UTF-8".to_owned()))?;
        let Parsed { version, conversation, messages } = serde_json::from_str(&source).map_err(|error| {
            // Another version may have another shape.
            match serde_json::from_str::<Versioned>(&source) {
                Ok(Versioned { version }) if version != VERSION => Unusable::Version(version),
                _ => Unusable::Malformed(error.to_string()),
            }
        })?;
        if version != VERSION {
            return Err(Unusable::Version(version));
        }
        let place = |json: &str| {
            let begin = json.as_ptr() as usize - source.as_ptr() as usize;
            Text::Read(begin..begin + json.len())
        };
        let messages = messages.into_iter().map(|message| place(message.0)).collect();
        Ok(Conversation { messages, source, ..conversation })
    }

    /// What it was read from.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Writes the file: JSON, one message a line.
    ///
    /// # Errors
    /// What the writer fails with.
    pub(crate) fn write_to(&self, file: &mut impl Write) -> io::Result<()> {
        file.write_all(self.head().as_bytes())?;
        for (index, message) in self.messages.iter().enumerate() {
            file.write_all(if index == 0 { b"\n" } else { BETWEEN_MESSAGES.as_bytes() })?;
            file.write_all(message.json(&self.source).as_bytes())?;
        }
        file.write_all(TAIL.as_bytes())
    }

    /// How many bytes the file has; one or two more where there are hardly any messages.
    pub(crate) fn size(&self) -> usize {
        let messages: usize = self.messages.iter().map(|message| message.len() + BETWEEN_MESSAGES.len()).sum();
        self.head().len() + messages + TAIL.len()
    }

    /// All that stands before the first message.
    fn head(&self) -> String {
        let quoted = |value: &str| serde_json::Value::from(value).to_string();
        let mut head = format!(
            "{{\"version\":{VERSION},\"provider\":{},\"model\":{},\"created\":\"{}\",\"updated\":\"{}\"",
            quoted(&self.provider),
            quoted(&self.model),
            self.created,
            self.updated
        );
        for (name, value) in &self.unknown {
            head.push_str(&format!(",{}:{}", quoted(name), value.get()));
        }
        head.push_str(",\"messages\":[");
        head
    }

    /// Adds an exchange to the end; its provider and model become the conversation's.
    pub(crate) fn add(&mut self, exchange: &Exchange) {
        self.provider.clone_from(&exchange.provider);
        self.model.clone_from(&exchange.model);
        self.updated = exchange.answered;
        let question = MessageWritten {
            role: Role::User,
            content: &exchange.question,
            timestamp: exchange.asked,
            interrupted: false,
        };
        let answer = MessageWritten {
            role: Role::Assistant,
            content: &exchange.answer,
            timestamp: exchange.answered,
            interrupted: exchange.interrupted,
        };
        // Text can always be written as JSON.
        let written = [question, answer];
        self.messages.extend(written.iter().filter_map(|message| to_raw_value(message).ok()).map(Text::New));
    }

    pub(crate) fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// The last messages, oldest first.
    pub(crate) fn window(&self, most: usize) -> Vec<Said> {
        let first = self.messages.len().saturating_sub(most);
        self.read(first).map(|message| Said { role: message.role, text: message.content.into_owned() }).collect()
    }

    /// All messages, oldest first.
    pub(crate) fn messages(&self) -> impl DoubleEndedIterator<Item = MessageRead<'_>> {
        self.read(0)
    }

    /// The messages from an index on. Each was read whole when the file was read, so none is missing here.
    fn read(&self, first: usize) -> impl DoubleEndedIterator<Item = MessageRead<'_>> {
        self.messages[first..].iter().filter_map(|message| serde_json::from_str(message.json(&self.source)).ok())
    }

    /// Takes the last question away, and whatever came after it; the rest is another conversation from now on. `None`
    /// where there is no question.
    pub(crate) fn undo(&mut self) -> Option<String> {
        let messages: Vec<MessageRead> = self.messages().collect();
        let last = messages.iter().rposition(|message| message.role == Role::User)?;
        let question = messages[last].content.clone().into_owned();
        drop(messages);
        self.messages.truncate(last);
        self.created = self.created.next();
        Some(question)
    }

    /// Keeps the last pairs of question and answer.
    pub(crate) fn keep_pairs(&mut self, pairs: usize) {
        let first = self.messages.len().saturating_sub(pairs.saturating_mul(2));
        self.messages.drain(..first);
    }

    /// Leaves out the oldest pairs until the file has no more bytes than this; the last pair stays in any case.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let mut size = self.size();
        let mut first = 0;
        while size > bytes && first + 2 < self.messages.len() {
            let pair = &self.messages[first..first + 2];
            size -= pair.iter().map(|message| message.len() + BETWEEN_MESSAGES.len()).sum::<usize>();
            first += 2;
        }
        self.messages.drain(..first);
    }
}

/// A text that is not a time as q writes it counts for no time.
fn time_if_readable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| serde_json::from_value(serde_json::Value::from(text)).ok()))
}

/// Text of which other tools may have escaped halves of a character (lone surrogates); they become U+FFFD.
fn lossy_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    struct LossyVisitor;

    impl<'de> Visitor<'de> for LossyVisitor {
        type Value = Cow<'de, str>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("text")
        }

        fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
            Ok(String::from_utf8_lossy(bytes))
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
            Ok(Cow::Owned(String::from_utf8_lossy(bytes).into_owned()))
        }
    }

    deserializer.deserialize_bytes(LossyVisitor)
}

#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

struct Parsed<'a> {
    version: u64,
    /// Still without its messages.
    conversation: Conversation,
    messages: Vec<Message<'a>>,
}

/// By hand, since serde cannot keep raw values in a flattened map.
impl<'de> Deserialize<'de> for Parsed<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parsed<'de>, D::Error> {
        deserializer.deserialize_map(FileVisitor)
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = Parsed<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a conversation")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed<'de>, A::Error> {
        let (mut version, mut provider, mut model, mut created, mut updated, mut messages) =
            (None, None, None, None, None, None);
        let mut unknown = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "version" => set_once("version", &mut version, map.next_value()?)?,
                "provider" => set_once("provider", &mut provider, map.next_value()?)?,
                "model" => set_once("model", &mut model, map.next_value()?)?,
                "created" => set_once("created", &mut created, map.next_value()?)?,
                "updated" => set_once("updated", &mut updated, map.next_value()?)?,
                "messages" => set_once("messages", &mut messages, map.next_value::<Vec<Message>>()?)?,
                _ => unknown.push((key, map.next_value()?)),
            }
        }
        let missing = |name| serde::de::Error::missing_field(name);
        let conversation = Conversation {
            provider: provider.ok_or_else(|| missing("provider"))?,
            model: model.ok_or_else(|| missing("model"))?,
            created: created.ok_or_else(|| missing("created"))?,
            updated: updated.ok_or_else(|| missing("updated"))?,
            messages: Vec::new(),
            unknown,
            source: String::new(),
        };
        Ok(Parsed {
            version: version.ok_or_else(|| missing("version"))?,
            conversation,
            messages: messages.ok_or_else(|| missing("messages"))?,
        })
    }
}

/// Fails for a field that is there twice: nobody can say which of the two counts.
fn set_once<T, E: serde::de::Error>(name: &'static str, field: &mut Option<T>, value: T) -> Result<(), E> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

/// The text of a message that can be read.
struct Message<'a>(&'a str);

impl<'de> Deserialize<'de> for Message<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Message<'de>, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        let _: MessageRead = serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Message(raw.get()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use time::OffsetDateTime;

    pub(crate) fn moment(second: i64) -> Timestamp {
        Timestamp::new(OffsetDateTime::from_unix_timestamp(1_790_000_000 + second).expect("a time"))
    }

    pub(crate) fn exchange(question: &str, answer: &str, second: i64) -> Exchange {
        Exchange {
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            question: question.to_owned(),
            asked: moment(second),
            answer: answer.to_owned(),
            answered: moment(second + 1),
            interrupted: false,
        }
    }

    impl Conversation {
        fn to_bytes(&self) -> Vec<u8> {
            let mut bytes = Vec::new();
            self.write_to(&mut bytes).expect("memory takes everything");
            assert!((bytes.len()..bytes.len() + 3).contains(&self.size()));
            bytes
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut conversation = Conversation::new("openai", "a \"model\"", moment(0));
        conversation.add(&exchange("one\n\u{1b}", "\"two\"", 0));
        conversation.add(&Exchange { interrupted: true, ..exchange("three", "fo", 2) });
        let bytes = conversation.to_bytes();
        let read = Conversation::parse(bytes.clone()).expect("a conversation");
        assert_eq!(read.to_bytes(), bytes);
        assert_eq!((read.created, read.updated), (moment(0), moment(3)));
        let texts: Vec<String> = read.window(10).into_iter().map(|said| said.text).collect();
        assert_eq!(texts, ["one\n\u{1b}", "\"two\"", "three", "fo"]);
        let value: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(value["messages"][3]["interrupted"], true);
        assert!(value["messages"][1].get("interrupted").is_none());
        assert_eq!(value["messages"][0]["timestamp"], moment(0).to_string());
    }

    #[test]
    fn unknown_fields_stay_as_they_are() {
        let file = r#"{"x-title": {"b": 1.50, "a": [ null ]}, "version": 1, "provider": "p", "model": "m",
            "created": "2026-11-21T10:00:00.000Z", "updated": "2026-11-21T10:00:00.000Z", "big": 12345678901234567890123,
            "messages": [{"role": "user", "content": "q", "stars": 1e2}, {"role": "assistant", "content": "a", "timestamp": "2026-11-21T10:00:00.000Z"}]}"#;
        let mut conversation = Conversation::parse(file.into()).expect("a conversation");
        conversation.add(&exchange("more", "yes", 0));
        let written = String::from_utf8(conversation.to_bytes()).expect("text");
        for kept in [r#""x-title":{"b": 1.50, "a": [ null ]}"#, r#""big":12345678901234567890123"#, r#""stars": 1e2"#] {
            assert!(written.contains(kept), "{kept} is missing in {written}");
        }
        assert_eq!(conversation.message_count(), 4);
    }

    #[test]
    fn odd_times_and_what_is_left_out_cost_no_message() {
        let file = r#"{"version":1,"provider":"p","model":"m","created":"2026-11-21T10:00:00.000Z","updated":"2026-11-21T10:00:00.000Z",
            "messages":[{"role":"user","content":"a","timestamp":"2026-11-21T10:00:00"},{"role":"assistant","content":"b","timestamp":null,"interrupted":null},
            {"role":"user","content":"c","timestamp":"","interrupted":false},{"role":"assistant","content":"d"}]}"#;
        let mut conversation = Conversation::parse(file.into()).expect("a conversation");
        let texts: Vec<String> = conversation.window(9).into_iter().map(|said| said.text).collect();
        assert_eq!(texts, ["a", "b", "c", "d"]);
        assert!(conversation.messages().all(|message| message.timestamp.is_none() && !message.interrupted()));
        assert_eq!((conversation.undo().as_deref(), conversation.message_count()), (Some("c"), 2));
    }

    #[test]
    fn halves_of_characters_that_other_tools_wrote_cost_no_message() {
        let file = r#"{"version":1,"provider":"p","model":"m","created":"2026-11-21T10:00:00.000Z","updated":"2026-11-21T10:00:00.000Z",
            "messages":[{"role":"user","content":"a\ud83db \ud83d\ude00"}]}"#;
        let conversation = Conversation::parse(file.into()).expect("a conversation");
        let texts: Vec<String> = conversation.window(1).into_iter().map(|said| said.text).collect();
        assert_eq!(texts, ["a\u{fffd}\u{fffd}\u{fffd}b 😀"]);
    }

    #[test]
    fn what_is_no_conversation_is_told_apart() {
        let sound = String::from_utf8(Conversation::new("p", "m", moment(0)).to_bytes()).expect("text");
        for (file, words) in [
            (String::new(), "cannot be parsed"),
            ("{".to_owned(), "cannot be parsed"),
            ("[]".to_owned(), "cannot be parsed"),
            ("{}".to_owned(), "missing field"),
            ("{\"version\":2,\"messages\":{}}".to_owned(), "of version 2"),
            (sound.replace("\"version\":1", "\"version\":7"), "of version 7"),
            (sound.replace("[\n]", "[{\"role\":\"system\",\"content\":\"x\"}]"), "unknown variant"),
            (sound.replace("[\n]", "[{\"role\":\"user\"}]"), "missing field"),
            (sound.replace("[\n]", "[{\"role\":\"user\",\"content\":null}]"), "expected text"),
            (sound.replace("[\n]", r#"[{"role":"user","content":"a","content":"b"}]"#), "duplicate field `content`"),
            (sound.replace("[\n]", r#"[{"role":"user","content":"a","role":"user"}]"#), "duplicate field `role`"),
            (sound.replace("[\n]", r#"[{"role":"user","content":"a","role":5}]"#), "duplicate field `role`"),
            (
                sound.replace("[\n]", r#"[{"role":"user","content":"a","timestamp":"","timestamp":""}]"#),
                "duplicate field",
            ),
            (sound.replace("[\n]", r#"[{"role":"user","content":"a","timestamp":7}]"#), "invalid type"),
            (sound.replace("[\n]", r#"[{"role":"user","content":"a","interrupted":"yes"}]"#), "invalid type"),
            (sound.replace("\"version\":1", "\"version\":1,\"model\":\"m\""), "duplicate field `model`"),
            (sound.replace("\n]", "\n],\"messages\":[]"), "duplicate field `messages`"),
            (format!("{sound}x"), "trailing"),
            (" ".repeat(LARGEST + 1), "more than"),
        ] {
            let unusable = Conversation::parse(file.into_bytes()).expect_err("no conversation");
            assert!(unusable.to_string().contains(words), "{unusable}");
        }
        assert!(Conversation::parse(sound.into_bytes()).is_ok());
    }

    #[test]
    fn undoing_takes_the_last_question_and_what_came_after_it() {
        let mut conversation = Conversation::new("openai", "m", moment(0));
        conversation.add(&exchange("one", "two", 0));
        conversation.add(&exchange("three", "four", 1));
        assert_eq!(conversation.undo().as_deref(), Some("three"));
        assert_eq!((conversation.message_count(), conversation.created), (2, moment(0).next()));
        assert_eq!(conversation.undo().as_deref(), Some("one"));
        assert_eq!((conversation.message_count(), conversation.undo()), (0, None));
    }

    #[test]
    fn pairs_and_bytes_are_bounded_from_the_old_end() {
        let mut conversation = Conversation::new("openai", "m", moment(0));
        for number in 0..10 {
            conversation.add(&exchange(&format!("q{number}"), "a", number));
        }
        conversation.keep_pairs(4);
        assert_eq!(conversation.window(99).first().map(|said| said.text.clone()).as_deref(), Some("q6"));
        let bytes = conversation.to_bytes().len();
        conversation.shrink_to(bytes - 1);
        assert_eq!(conversation.window(99).first().map(|said| said.text.clone()).as_deref(), Some("q7"));
        conversation.shrink_to(0);
        assert_eq!(conversation.message_count(), 2);
    }
}
