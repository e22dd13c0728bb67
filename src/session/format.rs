//! The JSON of a conversation's file, version 1: read completely, and written without losing what q does not know.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::conversation::{Conversation, Entry, Exchange};
use super::timestamp::Timestamp;
use crate::message::{Attachment, Call, Message, Ran, Role, Step};

/// The version of the format that q reads and writes.
const VERSION: u64 = 1;

/// The most bytes of a conversation's file.
pub(crate) const LARGEST: usize = 10_000_000;

/// Stands between two messages.
const SEPARATOR: &str = ",\n";

/// What comes after the last message.
const TAIL: &str = "\n]}\n";

/// Why q cannot use a file as a conversation.
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
            Unusable::Version(version) => write!(formatter, "it has version {version}, but q reads version {VERSION}"),
            Unusable::TooLarge(bytes) => write!(formatter, "it has {bytes} bytes, more than {LARGEST}"),
        }
    }
}

/// Reads a file's bytes.
///
/// # Errors
/// Why it cannot be used as a conversation.
pub(crate) fn read(bytes: &[u8]) -> Result<Conversation, Unusable> {
    if bytes.len() > LARGEST {
        return Err(Unusable::TooLarge(bytes.len() as u64));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Unusable::Malformed("it is not UTF-8".to_owned()))?;
    let file: File = serde_json::from_str(text).map_err(|error| match serde_json::from_str(text) {
        // Another version may have another form.
        Ok(Versioned { version }) if version != VERSION => Unusable::Version(version),
        _ => Unusable::Malformed(error.to_string()),
    })?;
    if file.version != VERSION {
        return Err(Unusable::Version(file.version));
    }
    Ok(file.conversation)
}

/// Writes the file: JSON, one message a line.
///
/// # Errors
/// The error of the writer.
pub(crate) fn write(conversation: &Conversation, file: &mut impl Write) -> io::Result<()> {
    file.write_all(head(conversation).as_bytes())?;
    for (index, entry) in conversation.entries().enumerate() {
        file.write_all(if index == 0 { "\n" } else { SEPARATOR }.as_bytes())?;
        write_entry(entry, file)?;
    }
    file.write_all(TAIL.as_bytes())
}

/// How many bytes the file has.
pub(crate) fn size(conversation: &Conversation) -> usize {
    bytes_of(|counter| write(conversation, counter))
}

fn size_of_exchange(exchange: &Exchange) -> usize {
    let sizes = exchange.entries.iter().map(|entry| bytes_of(|counter| write_entry(entry, counter)) + SEPARATOR.len());
    sizes.sum()
}

/// Counts the bytes written, without keeping them.
fn bytes_of(write: impl FnOnce(&mut Counter) -> io::Result<()>) -> usize {
    let mut counter = Counter(0);
    // Counting cannot fail.
    let _ = write(&mut counter);
    counter.0
}

struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a conversation has lost so that its file does not get too large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Loss {
    /// How many of the remaining attachments lost their data.
    pub(super) attachments: usize,
    /// How many of the oldest messages were removed.
    pub(super) messages: usize,
}

/// Makes a conversation smaller until its file fits into this many bytes: it loses the data of the oldest attachments,
/// then the oldest exchanges. The last exchange stays; it loses its data only if the file could not be read with it.
pub(super) fn shrink(conversation: &mut Conversation, bytes: usize) -> Loss {
    let mut total = size(conversation);
    let older = conversation.exchanges.len().saturating_sub(1);
    let mut without_data = Vec::new();
    for exchange in &mut conversation.exchanges[..older] {
        let before = size_of_exchange(exchange);
        without_data.push(drop_data(exchange, total.saturating_sub(bytes)));
        total -= before - size_of_exchange(exchange);
    }
    let mut left_out = 0;
    while total > bytes && left_out < older {
        total -= size_of_exchange(&conversation.exchanges[left_out]);
        left_out += 1;
    }
    let messages = conversation.exchanges.drain(..left_out).map(|exchange| exchange.entries.len()).sum();
    let mut attachments = without_data[left_out..].iter().sum();
    if let Some(last) = conversation.exchanges.last_mut() {
        attachments += drop_data(last, total.saturating_sub(LARGEST));
    }
    Loss { attachments, messages }
}

/// Removes the data of the first attachments until at least this many bytes are gone. Returns how many lost theirs.
fn drop_data(exchange: &mut Exchange, bytes: usize) -> usize {
    let (mut removed, mut attachments) = (0, 0);
    for entry in &mut exchange.entries {
        let before = attachments;
        for attachment in &mut entry.message.attachments {
            if removed < bytes
                && let Some(data) = attachment.data.take()
            {
                removed += data.len() + r#","data":"""#.len();
                attachments += 1;
            }
        }
        if attachments > before {
            // This was read as such objects, so it never fails; if it did, q would write the message itself.
            entry.json = entry.json.take().and_then(|json| without_data(&json, &entry.message).ok()).map(Arc::from);
        }
    }
    attachments
}

/// The JSON of a message, with data only in those attachments that have some in `message`. All else stays as it is.
fn without_data(json: &str, message: &Message) -> serde_json::Result<String> {
    let Members(mut members) = serde_json::from_str(json)?;
    for (_, value) in members.iter_mut().filter(|(name, _)| is_named(name, "attachments")) {
        let attachments: Vec<Members> = serde_json::from_str(value)?;
        let attachments =
            attachments.into_iter().zip(&message.attachments).map(|(Members(mut members), attachment)| {
                members.retain(|(name, _)| attachment.data.is_some() || !is_named(name, "data"));
                object(&members)
            });
        *value = format!("[{}]", attachments.collect::<Vec<_>>().join(",")).into();
    }
    Ok(object(&members))
}

/// The members of an object, each with its name and its value as written.
struct Members<'a>(Vec<(&'a str, Cow<'a, str>)>);

fn is_named(written: &str, name: &str) -> bool {
    serde_json::from_str(written).is_ok_and(|read: String| read == name)
}

fn object(members: &[(&str, Cow<str>)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    format!("{{{}}}", members.join(","))
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            members.push((name.get(), value.get().into()));
        }
        Ok(Members(members))
    }
}

/// Everything before the first message.
fn head(conversation: &Conversation) -> String {
    let mut head = format!(
        "{{\"version\":{VERSION},\"provider\":{},\"model\":{},\"created\":\"{}\",\"updated\":\"{}\"",
        quoted(&conversation.provider),
        quoted(&conversation.model),
        conversation.created,
        conversation.updated
    );
    if let Some(system) = &conversation.system {
        head.push_str(&format!(",\"system\":{}", quoted(system)));
    }
    if !conversation.tools.is_empty() {
        let names: Vec<String> = conversation.tools.iter().map(|name| quoted(name)).collect();
        head.push_str(&format!(",\"tools\":[{}]", names.join(",")));
    }
    for (name, value) in &conversation.unknown {
        head.push_str(&format!(",{}:{}", quoted(name), value.get()));
    }
    head.push_str(",\"messages\":[");
    head
}

/// Text as JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A message as q writes it.
#[derive(Serialize)]
struct Written<'a> {
    role: Role,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<WrittenAttachment<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<WrittenStep<'a>>,
}

#[derive(Serialize)]
struct WrittenAttachment<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    media: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a str>,
}

/// The calls of one round, and what the model said before them.
#[derive(Serialize)]
struct WrittenStep<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    calls: Vec<WrittenCall<'a>>,
}

#[derive(Serialize)]
struct WrittenCall<'a> {
    id: &'a str,
    name: &'a str,
    arguments: Value,
    result: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    error: bool,
}

fn written_attachment(attachment: &Attachment) -> WrittenAttachment<'_> {
    WrittenAttachment { name: &attachment.name, media: &attachment.media, data: attachment.data.as_deref() }
}

fn written_step(step: &Step) -> WrittenStep<'_> {
    WrittenStep { text: &step.text, calls: step.calls.iter().map(written_call).collect() }
}

fn written_call(ran: &Ran) -> WrittenCall<'_> {
    let Ran { call, result, is_error } = ran;
    // What the model wrote need not be JSON.
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.as_str().into());
    WrittenCall { id: &call.id, name: &call.name, arguments, result, error: *is_error }
}

/// Writes the JSON of a message: what it was read from, or what q makes of it.
fn write_entry(entry: &Entry, file: &mut impl Write) -> io::Result<()> {
    let Entry { message, timestamp, interrupted, finish, provider, model, steps, .. } = entry;
    if let Some(json) = &entry.json {
        return match (provider, model, json.strip_suffix('}')) {
            // A repeated field would make the file unusable.
            (Some(provider), Some(model), Some(fields))
                if entry.signed && !["\"provider\"", "\"model\""].iter().any(|name| fields.contains(name)) =>
            {
                write!(file, "{fields},\"provider\":{},\"model\":{}}}", quoted(provider), quoted(model))
            }
            _ => file.write_all(json.as_bytes()),
        };
    }
    let written = Written {
        role: message.role,
        content: &message.text,
        timestamp: *timestamp,
        attachments: message.attachments.iter().map(written_attachment).collect(),
        interrupted: *interrupted,
        finish: finish.as_deref(),
        provider: provider.as_deref(),
        model: model.as_deref(),
        steps: steps.iter().map(written_step).collect(),
    };
    serde_json::to_writer(file, &written).map_err(io::Error::from)
}

/// A message in a file; other fields stay in the JSON that is kept.
#[derive(Deserialize)]
struct Read<'a> {
    role: Role,
    #[serde(borrow, deserialize_with = "lossy_text")]
    content: Cow<'a, str>,
    #[serde(default, deserialize_with = "time_if_readable")]
    timestamp: Option<Timestamp>,
    /// Read for questions; on an answer, this is a field that q does not know.
    #[serde(borrow, default)]
    attachments: Option<&'a RawValue>,
    #[serde(default)]
    interrupted: Option<bool>,
    #[serde(default)]
    finish: Option<String>,
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    steps: Option<Vec<ReadStep<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename = "attachment")]
struct ReadAttachment<'a> {
    #[serde(borrow, deserialize_with = "lossy_text")]
    name: Cow<'a, str>,
    #[serde(rename = "type")]
    media: String,
    #[serde(borrow, default)]
    data: Option<ReadData<'a>>,
}

/// Many bytes, which must not be copied while reading; an `Option<Cow<str>>` would be.
#[derive(Deserialize)]
struct ReadData<'a>(#[serde(borrow)] Cow<'a, str>);

impl From<ReadAttachment<'_>> for Attachment {
    fn from(read: ReadAttachment) -> Attachment {
        let data = read.data.map(|ReadData(data)| Arc::from(data));
        Attachment { name: read.name.into_owned(), media: read.media, data }
    }
}

/// A struct that is an object in the file. The code that serde derives would also accept a list of the values.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

#[derive(Deserialize)]
#[serde(rename = "step")]
struct ReadStep<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(borrow)]
    calls: Vec<ReadCall<'a>>,
}

#[derive(Deserialize)]
#[serde(rename = "call")]
struct ReadCall<'a> {
    #[serde(default)]
    id: Option<String>,
    name: String,
    /// Raw, because the parser's limit of depth counts from the beginning of what it parses.
    #[serde(borrow)]
    arguments: &'a RawValue,
    result: String,
    #[serde(default)]
    error: Option<bool>,
}

impl From<ReadStep<'_>> for Step {
    fn from(read: ReadStep) -> Step {
        let arguments = |json: &RawValue| match serde_json::from_str(json.get()) {
            // What the model wrote was not JSON.
            Ok(Value::String(text)) => text,
            Ok(json) => json.to_string(),
            Err(_) => json.get().to_owned(),
        };
        let ran = |read: ReadCall| Ran {
            call: Call { id: read.id.unwrap_or_default(), name: read.name, arguments: arguments(read.arguments) },
            result: read.result,
            is_error: read.error == Some(true),
        };
        Step { text: read.text.unwrap_or_default(), calls: read.calls.into_iter().map(ran).collect(), echo: Vec::new() }
    }
}

/// A message that cannot be read makes the file unusable; none is skipped.
impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?;
        let Object(read): Object<Read> = serde_json::from_str(json.get()).map_err(serde::de::Error::custom)?;
        let attachments: Option<Vec<Object<ReadAttachment>>> =
            match read.attachments.filter(|_| read.role == Role::User) {
                Some(attachments) => serde_json::from_str(attachments.get()).map_err(serde::de::Error::custom)?,
                None => None,
            };
        let attachments = attachments.unwrap_or_default().into_iter().map(|Object(read)| read.into()).collect();
        Ok(Entry {
            message: Message::with_attachments(read.role, attachments, read.content),
            timestamp: read.timestamp,
            interrupted: read.interrupted == Some(true),
            finish: read.finish,
            provider: read.provider,
            model: read.model,
            steps: read.steps.unwrap_or_default().into_iter().map(Step::from).collect(),
            json: Some(json.get().into()),
            signed: false,
        })
    }
}

/// Text that is not RFC 3339 counts as no time.
fn time_if_readable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Cow<str>>::deserialize(deserializer)?;
    Ok(text.and_then(|text| Timestamp::parse(&text)))
}

/// Text in which other tools may have escaped halves of a character (lone surrogates); they become U+FFFD.
fn lossy_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    struct LossyVisitor;

    impl<'de> Visitor<'de> for LossyVisitor {
        type Value = Cow<'de, str>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("text")
        }

        fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
            Ok(lossy(bytes))
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
            Ok(Cow::Owned(lossy(bytes).into_owned()))
        }
    }

    deserializer.deserialize_bytes(LossyVisitor)
}

/// Most text is valid, and for that the plain check is much faster than the lossy one.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

struct File {
    version: u64,
    conversation: Conversation,
}

/// By hand, because serde cannot keep raw values in a flattened map.
impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<File, D::Error> {
        deserializer.deserialize_map(FileVisitor)
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = File;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a conversation")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
        let (mut version, mut provider, mut model, mut created, mut updated) = (None, None, None, None, None);
        let (mut system, mut tools, mut messages) = (None, None, None);
        let mut unknown = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "version" => set_once("version", &mut version, map.next_value()?)?,
                "provider" => set_once("provider", &mut provider, map.next_value()?)?,
                "model" => set_once("model", &mut model, map.next_value()?)?,
                "created" => set_once("created", &mut created, map.next_value()?)?,
                "updated" => set_once("updated", &mut updated, map.next_value()?)?,
                "system" => set_once("system", &mut system, map.next_value::<Option<String>>()?)?,
                "tools" => set_once("tools", &mut tools, map.next_value::<Option<Vec<String>>>()?)?,
                "messages" => set_once("messages", &mut messages, map.next_value::<Vec<Entry>>()?)?,
                _ => unknown.push((key, map.next_value()?)),
            }
        }
        let missing = |name| serde::de::Error::missing_field(name);
        let conversation = Conversation {
            provider: provider.ok_or_else(|| missing("provider"))?,
            model: model.ok_or_else(|| missing("model"))?,
            created: created.ok_or_else(|| missing("created"))?,
            updated: updated.ok_or_else(|| missing("updated"))?,
            system: system.flatten(),
            tools: tools.flatten().unwrap_or_default(),
            exchanges: Exchange::group(messages.ok_or_else(|| missing("messages"))?),
            unknown,
        };
        Ok(File { version: version.ok_or_else(|| missing("version"))?, conversation })
    }
}

/// Fails for a repeated field, because nobody can say which of the two counts.
fn set_once<T, E: serde::de::Error>(name: &'static str, field: &mut Option<T>, value: T) -> Result<(), E> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conversation::tests::{conversation, exchange, image, moment, texts, with_attachments};
    use super::*;
    use proptest::prelude::*;

    fn to_bytes(conversation: &Conversation) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(conversation, &mut bytes).expect("memory takes everything");
        assert_eq!(bytes.len(), size(conversation));
        bytes
    }

    #[test]
    fn a_file_may_have_ten_million_bytes() {
        let mut conversation = Conversation::new("openai", "m", moment(0));
        conversation.add(exchange("one", "1", 0), "openai", "m", false);
        let mut bytes = to_bytes(&conversation);
        bytes.resize(LARGEST, b' ');
        assert!(read(&bytes).is_ok());
        bytes.push(b' ');
        assert!(matches!(read(&bytes), Err(Unusable::TooLarge(_))));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut conversation = Conversation::new("openai", "a \"model\"", moment(0));
        conversation.add(exchange("one\n\u{1b}", "\"two\"", 0), "openai", "a \"model\"", false);
        conversation.system = Some("be \"brief\"".to_owned());
        let mut broken = exchange("three", "fo", 2);
        broken.entries[1].interrupted = true;
        conversation.add(broken, "openai", "a \"model\"", false);
        let bytes = to_bytes(&conversation);
        let again = read(&bytes).expect("a conversation");
        assert_eq!(to_bytes(&again), bytes);
        assert_eq!((again.created, again.updated), (moment(0), moment(3)));
        assert_eq!(again.system.as_deref(), Some("be \"brief\""));
        assert_eq!(texts(&again), ["one\n\u{1b}", "\"two\"", "three", "fo"]);
        let value: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(value["model"], "a \"model\"");
        assert_eq!(value["messages"][3]["interrupted"], true);
        assert!(value["messages"][1].get("interrupted").is_none());
        assert_eq!(value["messages"][0]["timestamp"], moment(0).to_string());
    }

    #[test]
    fn calls_are_written_after_the_text_and_read_again() {
        let ran = |arguments: &str, is_error| Ran {
            call: Call { id: "a1".to_owned(), name: "db__query".to_owned(), arguments: arguments.to_owned() },
            result: "two\nrows".to_owned(),
            is_error,
        };
        let mut one = exchange("one", "1", 0);
        let step = |text: &str, calls| Step { text: text.to_owned(), calls, echo: Vec::new() };
        one.entries[1].steps =
            vec![step("let me see", vec![ran("{\"sql\":\"x\"}", false), ran("{\"a\":1}", true)]), step("", vec![])];
        let mut conversation = Conversation::new("openai", "m", moment(0));
        conversation.tools = vec!["db".to_owned(), "time__*".to_owned()];
        conversation.add(one.clone(), "openai", "m", false);
        let bytes = to_bytes(&conversation);
        let again = read(&bytes).expect("a conversation");
        assert_eq!((&again.exchanges[0], &again.tools), (&one, &conversation.tools));
        assert_eq!(to_bytes(&again), bytes);
        let text = String::from_utf8(bytes).expect("text");
        let steps = r#""steps":[{"text":"let me see","calls":[{"id":"a1","name":"db__query","arguments":{"sql":"x"},"result":"two\nrows"},"#;
        assert!(text.contains(steps), "{text}");
        assert!(text.contains(r#""result":"two\nrows","error":true}]},{"calls":[]}]}"#), "{text}");
        assert!(text.contains(r#""tools":["db","time__*"],"messages""#), "{text}");
    }

    #[test]
    fn arguments_of_any_depth_and_with_any_digits_are_read_again() {
        let nested = (1..=140).map(|depth| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth)));
        for arguments in nested.chain(["{\"id\":98765432109876543210987,\"x\":1e+400}".to_owned()]) {
            let call = Call { id: "a1".to_owned(), name: "db__query".to_owned(), arguments };
            let calls = vec![Ran { call, result: "two".to_owned(), is_error: false }];
            let mut one = exchange("one", "1", 0);
            one.entries[1].steps = vec![Step { text: String::new(), calls, echo: Vec::new() }];
            let mut conversation = Conversation::new("openai", "m", moment(0));
            conversation.add(one.clone(), "openai", "m", false);
            let again = read(&to_bytes(&conversation)).expect("a conversation");
            assert_eq!(again.exchanges, [one]);
        }
        // What another program wrote may be deeper still.
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let file = CALLED.replace("ARGUMENTS", &deep);
        let again = read(file.as_bytes()).expect("a conversation");
        assert_eq!(again.exchanges[0].entries[1].steps[0].calls[0].call.arguments, deep);
    }

    /// A conversation with a call.
    const CALLED: &str = r#"{"version": 1, "provider": "p", "model": "m",
        "created": "2026-11-21T10:00:00.000Z", "updated": "2026-11-21T10:00:00.000Z", "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", "steps": [{"calls": [{"name": "t", "arguments": ARGUMENTS, "result": "r"}]}]}]}"#;

    #[test]
    fn unknown_fields_stay_as_they_are() {
        let file = r#"{"x-title": {"b": 1.50, "a": [ null ]}, "version": 1, "provider": "p", "model": "m",
            "created": "2026-11-21T10:00:00.000Z", "updated": "2026-11-21T10:00:00.000Z", "big": 12345678901234567890123,
            "messages": [{"role": "user", "content": "q", "stars": 1e2}, {"role": "assistant", "content": "a", "timestamp": "2026-11-21T10:00:00.000Z"}]}"#;
        let mut conversation = read(file.as_bytes()).expect("a conversation");
        conversation.add(exchange("more", "yes", 0), "p", "other", false);
        let written = String::from_utf8(to_bytes(&conversation)).expect("text");
        let signed = r#""timestamp": "2026-11-21T10:00:00.000Z","provider":"p","model":"m"}"#;
        for kept in
            [r#""x-title":{"b": 1.50, "a": [ null ]}"#, r#""big":12345678901234567890123"#, r#""stars": 1e2"#, signed]
        {
            assert!(written.contains(kept), "{kept} is missing in {written}");
        }
        assert_eq!(conversation.message_count(), 4);
    }

    #[test]
    fn an_answer_that_has_a_signature_of_another_hand_gets_no_second_one() {
        let file = r#"{"version":1,"provider":"p","model":"m","created":"2026-11-21T10:00:00.000Z","updated":"2026-11-21T10:00:00.000Z",
            "messages":[{"role":"user","content":"a"},{"role":"assistant","content":"\"model\"","provider":null}]}"#;
        let mut conversation = read(file.as_bytes()).expect("a conversation");
        conversation.add(exchange("more", "yes", 0), "p", "other", false);
        assert!(read(&to_bytes(&conversation)).is_ok());
    }

    #[test]
    fn odd_times_and_what_is_left_out_cost_no_message() {
        let file = r#"{"version":1,"provider":"p","model":"m","created":"2026-11-21T10:00:00.000Z","updated":"2026-11-21T10:00:00.000Z",
            "messages":[{"role":"user","content":"a","timestamp":"2026-11-21T10:00:00"},{"role":"assistant","content":"b","timestamp":null,"interrupted":null},
            {"role":"user","content":"c","timestamp":"","interrupted":false},{"role":"assistant","content":"d"}]}"#;
        let conversation = read(file.as_bytes()).expect("a conversation");
        assert_eq!(texts(&conversation), ["a", "b", "c", "d"]);
        assert!(conversation.entries().all(|entry| entry.timestamp.is_none() && !entry.interrupted));
    }

    #[test]
    fn halves_of_characters_that_other_tools_wrote_cost_no_message() {
        let file = r#"{"version":1,"provider":"p","model":"m","created":"2026-11-21T10:00:00.000Z","updated":"2026-11-21T10:00:00.000Z",
            "messages":[{"role":"user","content":"a\ud83db \ud83d\ude00"}]}"#;
        let conversation = read(file.as_bytes()).expect("a conversation");
        assert_eq!(texts(&conversation), ["a\u{fffd}\u{fffd}\u{fffd}b 😀"]);
    }

    #[test]
    fn what_is_no_conversation_is_distinguished() {
        let valid = String::from_utf8(to_bytes(&Conversation::new("p", "m", moment(0)))).expect("text");
        for (file, words) in [
            (String::new(), "cannot be parsed"),
            ("{".to_owned(), "cannot be parsed"),
            ("[]".to_owned(), "cannot be parsed"),
            ("{}".to_owned(), "missing field"),
            ("{\"version\":2,\"messages\":{}}".to_owned(), "has version 2"),
            (valid.replace("\"version\":1", "\"version\":7"), "has version 7"),
            (valid.replace("[\n]", "[{\"role\":\"system\",\"content\":\"x\"}]"), "unknown variant"),
            (valid.replace("[\n]", "[{\"role\":\"user\"}]"), "missing field"),
            (valid.replace("[\n]", "[[\"user\",\"a\"]]"), "invalid type: sequence"),
            (valid.replace("[\n]", "[{\"role\":\"user\",\"content\":null}]"), "expected text"),
            (valid.replace("[\n]", r#"[{"role":"user","content":"a","content":"b"}]"#), "duplicate field `content`"),
            (valid.replace("[\n]", r#"[{"role":"user","content":"a","role":"user"}]"#), "duplicate field `role`"),
            (valid.replace("[\n]", r#"[{"role":"user","content":"a","role":5}]"#), "duplicate field `role`"),
            (
                valid.replace("[\n]", r#"[{"role":"user","content":"a","timestamp":"","timestamp":""}]"#),
                "duplicate field",
            ),
            (valid.replace("[\n]", r#"[{"role":"user","content":"a","timestamp":7}]"#), "invalid type"),
            (valid.replace("[\n]", r#"[{"role":"user","content":"a","interrupted":"yes"}]"#), "invalid type"),
            (valid.replace("\"version\":1", "\"version\":1,\"model\":\"m\""), "duplicate field `model`"),
            (valid.replace("\n]", "\n],\"messages\":[]"), "duplicate field `messages`"),
            (valid.replace("\"version\":1", "\"version\":1,\"system\":7"), "invalid type"),
            (valid.replace("[\n]", r#"[{"role":"assistant","content":"a","model":7}]"#), "invalid type"),
            (format!("{valid}x"), "trailing"),
            (" ".repeat(LARGEST + 1), "more than"),
        ] {
            let unusable = read(file.as_bytes()).map(|_| ()).expect_err("no conversation");
            assert!(unusable.to_string().contains(words), "{unusable}");
        }
        assert!(read(valid.as_bytes()).is_ok());
    }

    #[test]
    fn the_oldest_exchanges_go_where_a_file_is_too_large() {
        let whole = conversation(&[("one", "1"), ("two", "2"), ("three", "3")]);
        for (bytes, expected) in [
            (size(&whole), &["one", "1", "two", "2", "three", "3"][..]),
            (size(&whole) - 1, &["two", "2", "three", "3"]),
            (size(&conversation(&[("two", "2"), ("three", "3")])), &["two", "2", "three", "3"]),
            (size(&conversation(&[("three", "3")])), &["three", "3"]),
            (1, &["three", "3"]),
            (0, &["three", "3"]),
        ] {
            let mut shrunk = whole.clone();
            let lost = shrink(&mut shrunk, bytes);
            assert_eq!(texts(&shrunk), expected, "{bytes}");
            assert_eq!(lost, Loss { attachments: 0, messages: 6 - expected.len() }, "{bytes}");
        }
    }

    /// A file with these messages, one after another.
    fn file_of(messages: &str) -> String {
        format!(
            r#"{{"version":1,"provider":"p","model":"m","created":"2026-11-21T10:00:00.000Z","updated":"2026-11-21T10:00:00.000Z","messages":[{messages}]}}"#
        )
    }

    fn attachments(conversation: &Conversation) -> Vec<Attachment> {
        conversation.entries().flat_map(|entry| entry.message.attachments.iter().cloned()).collect()
    }

    #[test]
    fn attachments_are_written_after_the_time_and_read_again() {
        let pdf = Attachment { name: "a \"b\".pdf".to_owned(), media: "application/pdf".to_owned(), data: None };
        let attached = vec![image("error.png", Some("iVBORw0KGgo+/w==")), pdf];
        let mut conversation = Conversation::new("openai", "m", moment(0));
        conversation.add(with_attachments(exchange("one", "1", 0), attached.clone()), "openai", "m", false);
        conversation.add(exchange("two", "2", 2), "openai", "m", false);
        let bytes = to_bytes(&conversation);
        let again = read(&bytes).expect("a conversation");
        assert_eq!(again.exchanges, conversation.exchanges);
        assert_eq!((attachments(&again), to_bytes(&again)), (attached, bytes.clone()));
        let text = String::from_utf8(bytes).expect("text");
        let time = moment(0);
        let message = format!(
            r#"{{"role":"user","content":"one","timestamp":"{time}","attachments":[{{"name":"error.png","type":"image/png","data":"iVBORw0KGgo+/w=="}},{{"name":"a \"b\".pdf","type":"application/pdf"}}]}},"#
        );
        assert!(text.contains(&message), "{text}");
        assert_eq!(text.matches("attachments").count(), 1, "{text}");
    }

    #[test]
    fn attachments_are_read_as_others_write_them() {
        for (member, expected) in [
            (r#""x":1"#, vec![]),
            (r#""attachments":null"#, vec![]),
            (r#""attachments": [ ]"#, vec![]),
            (r#""attachments":[{"type":"image/png","name":"a"}]"#, vec![image("a", None)]),
            (r#""attachments":[{"name":"a","type":"image/png","data":null}]"#, vec![image("a", None)]),
            (
                r#""attachments":[{"data":"+\/8=","name":"a\ud800","type":"image\/png","x":[1e2]}]"#,
                vec![image("a\u{fffd}\u{fffd}\u{fffd}", Some("+/8="))],
            ),
        ] {
            let file = file_of(&format!(r#"{{{member}, "content":"one","role":"user"}}"#));
            let conversation = read(file.as_bytes()).expect(member);
            assert_eq!(attachments(&conversation), expected, "{member}");
            assert_eq!(texts(&conversation), ["one"], "{member}");
            let written = String::from_utf8(to_bytes(&conversation)).expect("text");
            assert!(written.contains(member), "{written}");
        }
    }

    #[test]
    fn attachments_that_make_no_sense_make_the_file_unusable() {
        for (member, words) in [
            (r#""attachments":7"#, "invalid type"),
            (r#""attachments":"a.png""#, "invalid type"),
            (r#""attachments":{}"#, "invalid type"),
            (r#""attachments":[null]"#, "invalid type"),
            (r#""attachments":[["a","image/png","AAAA"]]"#, "invalid type: sequence"),
            (r#""attachments":[{"type":"image/png","data":"AAAA"}]"#, "missing field `name`"),
            (r#""attachments":[{"name":"a","data":"AAAA"}]"#, "missing field `type`"),
            (r#""attachments":[{"name":7,"type":"image/png"}]"#, "invalid type"),
            (r#""attachments":[{"name":"a","type":null}]"#, "invalid type"),
            (r#""attachments":[{"name":"a","type":"image/png","data":[]}]"#, "invalid type"),
            (r#""attachments":[{"name":"a","type":"image/png","data":"A","data":"B"}]"#, "duplicate field `data`"),
            (r#""attachments":[],"attachments":[]"#, "duplicate field `attachments`"),
        ] {
            let file = file_of(&format!(r#"{{"role":"user","content":"one",{member}}}"#));
            let unusable = read(file.as_bytes()).map(|_| ()).expect_err(member);
            assert!(unusable.to_string().contains(words), "{member}: {unusable}");
        }
    }

    #[test]
    fn attachments_of_an_answer_stay_in_the_file_and_are_not_read() {
        for member in [r#""attachments":[{"name":"a","type":"image/png","data":"AAAA"}]"#, r#""attachments":7"#] {
            let file = file_of(&format!(r#"{{"role":"assistant","content":"1",{member}}}"#));
            let conversation = read(file.as_bytes()).expect(member);
            assert_eq!(attachments(&conversation), [], "{member}");
            let written = String::from_utf8(to_bytes(&conversation)).expect("text");
            assert!(written.contains(member), "{written}");
        }
    }

    /// Three exchanges: two images of 1,000 bytes, another one, and a last one.
    fn illustrated() -> Conversation {
        let data = "A".repeat(1000);
        let names = [&["a", "b"][..], &["c"], &["d"]];
        let mut conversation = Conversation::new("openai", "m", moment(0));
        for (second, (names, question)) in names.iter().zip(["one", "two", "three"]).enumerate() {
            let images = names.iter().map(|name| image(name, Some(&data))).collect();
            let exchange = with_attachments(exchange(question, &"x".repeat(500), second as i64), images);
            conversation.add(exchange, "openai", "m", false);
        }
        conversation
    }

    #[test]
    fn the_data_of_the_oldest_attachments_goes_before_the_oldest_exchanges() {
        let whole = illustrated();
        let image = 1000 + r#","data":"""#.len();
        let bare = size(&whole) - 3 * image;
        let first = size_of_exchange(&whole.exchanges[0]) - 2 * image;
        for (bytes, messages, kept) in [
            (size(&whole), 6, "abcd"),
            (size(&whole) - 1, 6, "bcd"),
            (size(&whole) - image, 6, "bcd"),
            (size(&whole) - image - 1, 6, "cd"),
            (size(&whole) - 2 * image, 6, "cd"),
            (size(&whole) - 2 * image - 1, 6, "d"),
            (bare, 6, "d"),
            (bare - 1, 4, "d"),
            (bare - first, 4, "d"),
            (bare - first - 1, 2, "d"),
            // The last exchange stays as it is.
            (0, 2, "d"),
        ] {
            // New, and read from a file.
            for whole in [whole.clone(), read(&to_bytes(&whole)).expect("a conversation")] {
                let mut shrunk = whole.clone();
                let lost = shrink(&mut shrunk, bytes);
                let attached = attachments(&shrunk);
                let names = attached.iter().filter(|one| one.data.is_some()).map(|one| one.name.as_str());
                assert_eq!(names.collect::<String>(), kept, "{bytes}");
                assert_eq!(shrunk.message_count(), messages, "{bytes}");
                let gone = attached.iter().filter(|one| one.data.is_none()).count();
                assert_eq!(lost, Loss { attachments: gone, messages: 6 - messages }, "{bytes}");
                assert_eq!(read(&to_bytes(&shrunk)).expect("a conversation").exchanges, shrunk.exchanges, "{bytes}");
            }
        }
    }

    #[test]
    fn the_data_of_the_last_exchange_goes_only_where_the_file_could_not_be_read() {
        let data = "A".repeat(LARGEST / 3);
        for (count, longest, kept) in [(2, 0, 2), (3, 0, 2), (2, LARGEST / 2, 1), (1, LARGEST, 0)] {
            let images = (0..count).map(|number| image(&number.to_string(), Some(&data))).collect();
            let mut conversation = conversation(&[("one", "1"), ("two", "2")]);
            let last = with_attachments(exchange("three", &"x".repeat(longest), 4), images);
            conversation.add(last, "openai", "m", false);
            let lost = shrink(&mut conversation, 1000);
            assert_eq!(lost, Loss { attachments: count - kept, messages: 4 }, "{count} {longest}");
            let data: Vec<bool> = attachments(&conversation).iter().map(|one| one.data.is_some()).collect();
            assert_eq!(data, [vec![false; count - kept], vec![true; kept]].concat(), "{count} {longest}");
        }
    }

    #[test]
    fn only_the_data_goes_from_the_json_of_others() {
        let data = "A".repeat(99);
        let asked = format!(
            r#"{{ "stars": 1e2,"attachments" : [ {{"x":1.50,"d\u0061ta":"{data}","name":"a","type":"image/png"}}, {{"name":"b","type":"image/png","data":"{data}"}}],"role":"user","content":"\ud83d","big":12345678901234567890123,"data":"x" }}"#
        );
        let left = format!(
            r#"{{"stars":1e2,"attachments":[{{"x":1.50,"name":"a","type":"image/png"}},{{"name":"b","type":"image/png","data":"{data}"}}],"role":"user","content":"\ud83d","big":12345678901234567890123,"data":"x"}}"#
        );
        let file = file_of(&format!(r#"{asked},{{"role":"user","content":"two"}}"#));
        let mut conversation = read(file.as_bytes()).expect("a conversation");
        let bytes = size(&conversation) - 1;
        assert_eq!(shrink(&mut conversation, bytes), Loss { attachments: 1, messages: 0 });
        let written = String::from_utf8(to_bytes(&conversation)).expect("text");
        assert!(written.contains(&left), "{written}");
    }

    /// Conversations of up to five questions, with attachments and without, and their answers.
    fn conversations() -> impl Strategy<Value = Conversation> {
        let attached = ("[a-z\"\n]{1,9}", proptest::option::of("[A-Za-z0-9+/]{0,99}"));
        let exchanges = proptest::collection::vec(
            ("[a-z\"\u{e4}\n]{0,99}", proptest::collection::vec(attached, 0..4), "[a-z\n]{0,99}"),
            0..6,
        );
        exchanges.prop_map(|exchanges| {
            let mut conversation = Conversation::new("openai", "m", moment(0));
            for (second, (question, images, answer)) in exchanges.into_iter().enumerate() {
                let images = images.iter().map(|(name, data)| image(name, data.as_deref())).collect();
                let exchange = with_attachments(exchange(&question, &answer, second as i64), images);
                conversation.add(exchange, "openai", "m", false);
            }
            conversation
        })
    }

    proptest! {
        #[test]
        fn every_conversation_is_read_as_it_was_written(conversation in conversations()) {
            let bytes = to_bytes(&conversation);
            let again = read(&bytes).expect("a conversation");
            prop_assert_eq!(&again.exchanges, &conversation.exchanges);
            prop_assert_eq!(to_bytes(&again), bytes);
        }

        #[test]
        fn every_conversation_shrinks_from_its_beginning(
            conversation in conversations(), bytes in 0usize..3000, is_read: bool,
        ) {
            let mut shrunk = conversation.clone();
            if is_read {
                shrunk = read(&to_bytes(&conversation)).expect("a conversation");
            }
            let lost = shrink(&mut shrunk, bytes);
            let written = to_bytes(&shrunk);
            prop_assert_eq!(&read(&written).expect("a conversation").exchanges, &shrunk.exchanges);
            prop_assert!(written.len() <= bytes || shrunk.exchanges.len() < 2);
            prop_assert_eq!(shrunk.exchanges.last(), conversation.exchanges.last());
            let left: Vec<String> = texts(&conversation).split_off(lost.messages);
            prop_assert_eq!(texts(&shrunk), left);
            // The remaining attachments lose their data in order.
            let mut were = attachments(&conversation);
            let are = attachments(&shrunk);
            let were = were.split_off(were.len() - are.len());
            let had = were.iter().zip(&are).filter(|(was, _)| was.data.is_some());
            let kept: Vec<bool> = had.map(|(_, is)| is.data.is_some()).collect();
            prop_assert_eq!(kept.iter().position(|kept| *kept).unwrap_or(kept.len()), lost.attachments);
            prop_assert!(kept.is_sorted());
            // No message is removed while there is older data to remove.
            let newest = shrunk.exchanges.len().saturating_sub(1);
            let older = shrunk.exchanges[..newest].iter().flat_map(|exchange| &exchange.entries);
            prop_assert!(lost.messages == 0 || older.flat_map(|entry| &entry.message.attachments).all(|one| one.data.is_none()));
        }
    }
}
