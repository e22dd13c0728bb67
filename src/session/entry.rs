//! Messages of a conversation: as JSON while they are only carried along, and decoded where they are sent or shown (pure).

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::checked_entry::{CheckedEntry, EntryFacts, KNOWN_NAMES};
use super::timestamp::Timestamp;
use crate::message::{self, Attachment, MAX_RESULT, Message, Role, Step, cut_results, or_default};
use crate::text::search::Word;
use crate::text::size::in_units;
use crate::text::{json, surrogates};

/// Sent instead of an answer that broke off before its first word.
const INTERRUPTED: &str = "(interrupted)";

/// The most bytes of a conversation's file.
pub const MAX_SIZE: usize = 10_000_000;

/// The most bytes of a message's JSON. One that needs more fits into no file, and results that are cut need less.
const MAX_ENTRY: usize = MAX_SIZE + 1_000_000;

/// A message, and what its file says about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "a message")]
pub struct Entry {
    pub role: Role,
    #[serde(rename = "content")]
    pub text: Arc<str>,
    /// RFC 3339, but files from other programs may lack it or write it differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    /// Requests have them before the text.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub attachments: Vec<Attachment>,
    /// See [`Message::input_alone`]. Questions of q 0.3.0 lack it.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    input_alone: bool,
    /// The answer broke off.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub interrupted: bool,
    /// The provider's finish reason, if the answer is incomplete or was blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// The provider and the model that answered. Files of q 0.2 may lack them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the answer used, see [`crate::message::Usage`]; `--history` shows its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// The pages that the answer names, see [`crate::message::Source`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Value>,
    /// The tool calls that led to the answer.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub steps: Vec<Step>,
    #[serde(skip)]
    pub unknown_fields: UnknownFields,
}

impl Entry {
    /// Returns a message that is in no file yet.
    pub fn new(message: Message, timestamp: Timestamp) -> Entry {
        Entry {
            role: message.role,
            text: message.text,
            timestamp: Some(timestamp.to_string()),
            attachments: message.attachments,
            input_alone: message.input_alone,
            ..Entry::default()
        }
    }

    /// Returns when it was written, if the file says so in a form that q reads.
    pub fn timestamp(&self) -> Option<Timestamp> {
        Timestamp::parse(self.timestamp.as_deref()?)
    }

    /// Returns the message as it is sent with a follow-up: its calls become text before the answer.
    pub fn to_message(&self) -> Message {
        let mut text = Arc::clone(&self.text);
        if !self.steps.is_empty() {
            let answer = if text.is_empty() { INTERRUPTED } else { &text };
            let mut steps = self.steps.clone();
            cut_results(&mut steps);
            text = format!("{}\n\n{answer}", message::calls_as_text(&steps)).into();
        }
        let mut attachments = self.attachments.clone();
        // Those of q 0.2 may have been lost. No provider takes those that another program gave to an answer.
        attachments.retain(|attachment| self.role == Role::User && !attachment.data.is_empty());
        Message {
            input_alone: self.input_alone,
            ..Message::with_attachments(self.role, attachments, text)
        }
    }
}

/// The fields of a message or a conversation that q does not know. They stay as they are written, byte by byte: they may be of
/// any depth, have lone surrogates, or have a name twice.
#[derive(Debug, Clone, Default)]
pub struct UnknownFields {
    /// Their JSON, a comma before each.
    members: String,
}

impl UnknownFields {
    /// Adds a field with this name and value, both as JSON.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        self.members += &format!(",{name}:{value}");
    }

    /// Returns what an object that is not empty has for them before its last brace.
    pub(super) fn members(&self) -> &str {
        &self.members
    }
}

impl PartialEq for UnknownFields {
    fn eq(&self, other: &UnknownFields) -> bool {
        json::compact(&self.members) == json::compact(&other.members)
    }
}

/// Reads the unknown fields of a message.
impl<'de> Deserialize<'de> for UnknownFields {
    fn deserialize<D: Deserializer<'de>>(message: D) -> Result<Self, D::Error> {
        message.deserialize_map(UnknownFieldsVisitor)
    }
}

struct UnknownFieldsVisitor;

impl<'de> Visitor<'de> for UnknownFieldsVisitor {
    type Value = UnknownFields;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut unknown = UnknownFields::default();
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let decoded: String = surrogates::lossy(name.get()).map_err(A::Error::custom)?;
            if !KNOWN_NAMES.contains(&&*decoded) {
                unknown.add(name.get(), value.get());
            }
        }
        Ok(unknown)
    }
}

/// A message as its file has it. Its JSON is a part of the file's text, which all messages of a conversation share. Of a long
/// conversation most messages are only copied into the new file, byte by byte, so what another program has written stays.
#[derive(Debug, Clone)]
pub struct StoredEntry {
    file: Arc<String>,
    /// Where its JSON is in the file.
    place: Range<usize>,
    /// Where the JSON of its text is in the file.
    text: Range<usize>,
    pub facts: EntryFacts,
}

impl StoredEntry {
    /// Returns a message that is not in a file yet.
    ///
    /// # Errors
    ///
    /// It would be too large for a conversation's file.
    pub fn new(entry: &Entry) -> serde_json::Result<StoredEntry> {
        let mut json = Bounded::default();
        serde_json::to_writer(&mut json, entry)?;
        // In place of the last brace.
        json.0.pop();
        let rest = format!("{}}}", entry.unknown_fields.members());
        json.write_all(rest.as_bytes()).map_err(Error::custom)?;
        let json = String::from_utf8(json.0).map_err(Error::custom)?;
        let json = Arc::new(json);
        let checked: CheckedEntry = serde_json::from_str(&json)?;
        Ok(StoredEntry::of_file(&checked, &json))
    }

    /// Returns a message as a part of the file from which it was read.
    pub(super) fn of_file(checked: &CheckedEntry, file: &Arc<String>) -> StoredEntry {
        let text = place_of_part(file, checked.text);
        // Between the braces and these there is nothing but whitespace.
        let (first, last) = (
            place_of_part(file, checked.first),
            place_of_part(file, checked.last),
        );
        let begin = file[..first.start].rfind('{').unwrap_or(first.start);
        let after = file[last.end..].find('}').map_or(0, |place| place + 1);
        StoredEntry {
            file: Arc::clone(file),
            place: begin..last.end + after,
            text,
            facts: checked.facts,
        }
    }

    /// Returns the message as JSON.
    pub fn json(&self) -> &str {
        self.file.get(self.place.clone()).unwrap_or_default()
    }

    /// Returns the JSON of its text.
    fn text_json(&self) -> &str {
        self.file.get(self.text.clone()).unwrap_or_default()
    }

    /// Decodes the message.
    pub fn entry(&self) -> Entry {
        // It was checked before, field by field. Each field was one level less deep there than it is within the message, so a
        // value at the deepest level that is parsed makes this fail.
        let mut entry = surrogates::lossy(self.json()).unwrap_or_else(|_| Entry {
            role: self.facts.role,
            text: self.text().into(),
            interrupted: self.facts.interrupted,
            ..Entry::default()
        });
        entry.unknown_fields = serde_json::from_str(self.json()).unwrap_or_default();
        entry
    }

    /// Decodes the time when it was written alone, see [`Entry::timestamp`].
    pub(super) fn timestamp(&self) -> Option<Timestamp> {
        let moment: Moment = surrogates::lossy(self.json()).ok()?;
        Timestamp::parse(&moment.timestamp?)
    }

    /// Decodes its text alone.
    pub fn text(&self) -> String {
        surrogates::lossy(self.text_json()).unwrap_or_default()
    }

    /// Whether its text may have a word, as far as that can be said without decoding it.
    pub fn may_have(&self, word: &Word) -> bool {
        word.may_be_in(self.text_json())
    }

    /// Cuts the results of tool calls to what the model gets of them.
    pub(super) fn cut_results(&mut self) {
        // No result is longer than its JSON.
        if !self.facts.has_steps || self.place.len() <= MAX_RESULT {
            return;
        }
        let mut entry = self.entry();
        if cut_results(&mut entry.steps)
            && let Ok(cut) = StoredEntry::new(&entry)
        {
            *self = cut;
        }
    }
}

/// The JSON of a message while it is written. Escapes may make it six times as long as its text, so it stops where no file
/// could hold it.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_ENTRY {
            let reason = format!("it has more than {size}", size = in_units(MAX_SIZE));
            return Err(io::Error::other(reason));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PartialEq for StoredEntry {
    fn eq(&self, other: &StoredEntry) -> bool {
        self.json() == other.json() || self.entry() == other.entry()
    }
}

/// A message, decoded only as far as its time.
#[derive(Deserialize)]
struct Moment {
    timestamp: Option<String>,
}

/// Returns where a part is in the text from which it is borrowed. Their addresses tell, because the same words may be in the text
/// more than once.
fn place_of_part(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(file: &str) -> serde_json::Result<StoredEntry> {
        let file = Arc::new(file.to_owned());
        let checked: CheckedEntry = serde_json::from_str(&file)?;
        Ok(StoredEntry::of_file(&checked, &file))
    }

    #[test]
    fn a_message_with_too_many_values_is_refused_and_a_long_text_is_not() {
        let zeros = format!("[{}0]", "0,".repeat(50_000));
        let text = format!("\"{}\"", "[,".repeat(1_000_000));
        // What the arguments have is never taken apart.
        let call = |arguments: &str, other: &str| {
            format!(
                r#""steps":[{{"calls":[{{"name":"n","arguments":{arguments},"result":"r","x":{other}}}]}}]"#
            )
        };
        for (fields, is_taken) in [
            (format!(r#""x":{zeros}"#), true),
            (format!(r#""x":{zeros},"steps":{zeros}"#), false),
            (
                call(
                    &format!("{{\"x\":{zeros},\"y\":{zeros},\"z\":{zeros}}}"),
                    "0",
                ),
                true,
            ),
            (
                call(&format!("{{\"x\":{zeros},\"y\":{zeros}}}"), "0")
                    + &format!(r#","usage":{{"x":{zeros}}}"#),
                true,
            ),
            (call("{}", &format!("[{zeros},{zeros},{zeros}]")), false),
            // Nor is what q does not know.
            (format!(r#""x":{zeros},"y":{zeros},"z":{zeros}"#), true),
            (r#""x":0,"#.repeat(60_000) + r#""y":0"#, true),
            (format!(r#""x":{text},"finish":{text}"#), true),
        ] {
            let stored = read(&format!(r#"{{"role":"user","content":"a",{fields}}}"#));
            assert_eq!(stored.is_ok(), is_taken, "{stored:?}");
        }
    }

    const NAMES: [&str; 16] = [
        r#""role""#,
        r#""content""#,
        r#""\u0063ontent""#,
        r#""timestamp""#,
        r#""attachments""#,
        r#""input_alone""#,
        r#""interrupted""#,
        r#""finish""#,
        r#""provider""#,
        r#""model""#,
        r#""usage""#,
        r#""sources""#,
        r#""steps""#,
        r#""x""#,
        r#""{""#,
        r#""\ud800""#,
    ];

    fn value() -> impl Strategy<Value = String> {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let usual = prop::sample::select(vec![
            r#""user""#,
            r#""assistant""#,
            r#""a\ud800\n}""#,
            "null",
            "true",
            "3",
            "-1.50e+400",
            "[]",
            "{}",
            "[{}]",
            "[null]",
            r#"{"a":1,"a":{"$b":[0.10]}}"#,
            r#"{"$serde_json::private::Number":"x"}"#,
            r#"[{"\u0024serde_json::private::Number":"x"}]"#,
            r#"[{"name":"n","type":"t"}]"#,
            r#"[{"name":"n","type":"t","data":"\udc00","x":1}]"#,
            r#"[{"name":"n","type":"t","data":7}]"#,
            r#"[{"name":"n","name":"n","type":"t"}]"#,
            r#"[{"calls":[]}]"#,
            r#"[{"text":null,"calls":[{"name":"n","arguments":[[]],"result":"r","x":"\ud800"}],"y":0}]"#,
            r#"[{"calls":[{"name":"n","result":"r"}]}]"#,
            r#"[{"calls":[{"name":"n","arguments":1,"result":"r","error":"yes"}]}]"#,
            r#"[{"text":1,"calls":[]}]"#,
            r#"[["n","t"]]"#,
            r#"{"input_tokens":null,"cost":-1.50e+400,"x":"\ud800"}"#,
            r#"{"\u0063ost":"1"}"#,
            r#"{"cost":1,"\u0063ost":1}"#,
            r#"[{"url":"\ud800","title":null,"x":0.10}]"#,
            r#"[{"url":"u","title":7}]"#,
        ]);
        prop_oneof![20 => usual.prop_map(str::to_owned), 1 => Just(deep)]
    }

    proptest! {
        #[test]
        fn a_message_is_taken_if_all_of_it_can_be_decoded(
            fields in prop::collection::vec((prop::sample::select(&NAMES[..]), value()), 0..5),
            is_usual: bool,
            space in "[ \n]{0,2}",
        ) {
            let mut members = Vec::new();
            if is_usual {
                members.extend([r#""role":"assistant""#.to_owned(), r#""content":"a""#.to_owned()]);
            }
            for (name, value) in &fields {
                members.push(format!("{space}{name}:{space}{value}{space}"));
            }
            let json = format!("{{{}}}", members.join(","));
            let whole = surrogates::lossy::<Entry>(&json).map(|whole| Entry {
                unknown_fields: serde_json::from_str(&json).expect("an object"),
                ..whole
            });
            let stored = read(&format!("{space}{json}{space}"));
            // Of these more is checked than that they can be decoded.
            let is_special = json.contains("usage") || json.contains("sources");
            let is_right = stored.is_ok() == whole.is_ok() || (is_special && whole.is_ok());
            prop_assert!(is_right, "{} {:?} {:?}", json, stored, whole);
            if let (Ok(stored), Ok(whole)) = (stored, whole) {
                prop_assert_eq!(stored.json(), &json);
                prop_assert_eq!(&*stored.text(), &*whole.text);
                prop_assert_eq!(stored.facts.role, whole.role);
                prop_assert_eq!(stored.facts.interrupted, whole.interrupted);
                prop_assert_eq!(stored.facts.has_finish, whole.finish.is_some());
                prop_assert_eq!(stored.facts.has_steps, !whole.steps.is_empty());
                prop_assert_eq!(stored.entry(), whole);
            }
        }
    }

    #[test]
    fn a_message_with_a_value_that_is_almost_too_deep_keeps_its_text() {
        for depth in 120..128 {
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let json = format!(r#"{{"role":"assistant","x":{deep},"content":"a"}}"#);
            let Ok(stored) = read(&json) else {
                continue;
            };
            let entry = stored.entry();
            assert_eq!(
                (entry.role, &*entry.text),
                (Role::Assistant, "a"),
                "{depth}"
            );
        }
    }

    #[test]
    fn a_message_with_an_unknown_field_of_any_depth_is_decoded_as_a_whole() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let json =
            format!(r#"{{"role":"assistant","x":{deep},"content":"a","model":"m","x":"\ud800"}}"#);
        let stored = read(&json).expect("a message");
        let mut entry = stored.entry();
        assert_eq!(entry.model.as_deref(), Some("m"));
        entry.model = None;
        let written = StoredEntry::new(&entry).expect("JSON");
        let members = format!(r#","x":{deep},"x":"\ud800""#);
        let expected = format!(r#"{{"role":"assistant","content":"a"{members}}}"#);
        assert_eq!(written.json(), expected);
    }

    #[test]
    fn the_list_of_known_names_has_every_field_that_q_writes() {
        let entry = Entry {
            timestamp: Some(String::new()),
            attachments: vec![Attachment::default()],
            input_alone: true,
            interrupted: true,
            finish: Some(String::new()),
            provider: Some(String::new()),
            model: Some(String::new()),
            usage: Some(Value::Null),
            sources: Some(Value::Null),
            steps: vec![Step::default()],
            ..Entry::default()
        };
        let written = serde_json::to_value(&entry).expect("JSON");
        let names = written.as_object().expect("an object").keys();
        assert_eq!(Vec::from_iter(names), Vec::from_iter(KNOWN_NAMES));
    }

    #[test]
    fn long_results_are_cut_and_the_rest_of_their_message_keeps_its_values() {
        let long = "x".repeat(MAX_RESULT + 1);
        let message = |result: &str| {
            format!(
                r#"{{"z":1.50,"role":"assistant","content":"a","steps":[{{"calls":[{{"name":"n","arguments":{{"b":1.0}},"result":"{result}","x":1e+5}}],"y":2}}]}}"#
            )
        };
        let mut short = read(&message("r")).expect("a message");
        short.cut_results();
        assert_eq!(short.json(), message("r"));
        let mut stored = read(&message(&long)).expect("a message");
        stored.cut_results();
        let entry = stored.entry();
        let run = &entry.steps[0].calls[0];
        assert!(run.changed && run.result.len() <= MAX_RESULT);
        for kept in [
            r#""z":1.50"#,
            r#""arguments":{"b":1.0}"#,
            r#""x":1e+5"#,
            r#""y":2"#,
        ] {
            assert!(stored.json().contains(kept), "{kept}");
        }
    }
}
