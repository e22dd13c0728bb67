//! Checks that a message of a file can be decoded, field by field, without decoding it (pure).

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2_iter;
use serde::de::{DeserializeOwned, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::{Role, UnknownValues};
use crate::text::{fence, json, surrogates};

/// The fields of a message in its file.
pub const KNOWN_NAMES: [&str; 12] = [
    "role",
    "content",
    "timestamp",
    "attachments",
    "input_alone",
    "interrupted",
    "finish",
    "provider",
    "model",
    "usage",
    "sources",
    "steps",
];

/// The fields of a [`Usage`](crate::message::Usage).
const USAGE_NAMES: [&str; 5] = [
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost",
];

const NULL: &str = "null";

/// Steps that weigh less are weighed with the arguments of their calls, because to find these costs more than it matters.
const LIGHT_STEPS: usize = json::MAX_WEIGHT / 10;

/// Values with fewer arrays and objects are never nested too deep to be decoded.
const FEW: usize = 100;

/// A message that can be decoded, but was not. Its texts are parts of the file's text.
pub struct CheckedEntry<'a> {
    /// The name of its first field and the value of its last one.
    pub first: &'a str,
    pub last: &'a str,
    pub text: &'a str,
    pub facts: EntryFacts,
}

/// What is known of a message that was not decoded.
#[derive(Debug, Clone, Copy, Default)]
pub struct EntryFacts {
    pub role: Role,
    /// Whether it is [`Entry::interrupted`](super::Entry::interrupted).
    pub interrupted: bool,
    /// Whether it has an [`Entry::finish`](super::Entry::finish).
    pub has_finish: bool,
    /// Whether it has [`Entry::steps`](super::Entry::steps).
    pub has_steps: bool,
    /// Whether a question came with files or input.
    pub brings_input: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for CheckedEntry<'a> {
    fn deserialize<D: Deserializer<'de>>(message: D) -> Result<Self, D::Error> {
        message.deserialize_map(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = CheckedEntry<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = CheckedFields::default();
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let added = fields.add(name.get(), value.get());
            added.map_err(|error| A::Error::custom(without_place(&error)))?;
        }
        fields.into_entry().map_err(A::Error::missing_field)
    }
}

/// Returns what an error says, but for its place in a part of the file.
pub fn without_place(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    error.to_string().replace(&place, "")
}

/// The fields of a message that have come, each checked for its type.
#[derive(Default)]
struct CheckedFields<'a> {
    /// The names of those that q knows. There are few, whatever else the message has.
    known_names: Vec<Cow<'a, str>>,
    /// About how much memory the message takes besides its strings.
    weight: usize,
    first: Option<&'a str>,
    last: &'a str,
    text: &'a str,
    facts: EntryFacts,
}

impl<'a> CheckedFields<'a> {
    fn add(&mut self, name: &'a str, value: &'a str) -> serde_json::Result<()> {
        self.first.get_or_insert(name);
        self.last = value;
        let name = decoded_name(name)?;
        // It stays as it is written, whatever it is.
        if !KNOWN_NAMES.contains(&&*name) {
            return Ok(());
        }
        self.weight += json::VALUE + weight_of_field(&name, value);
        if self.weight > json::MAX_WEIGHT {
            return Err(json::too_many_values());
        }
        let facts = &mut self.facts;
        match &*name {
            "role" => facts.role = serde_json::from_str(value)?,
            "content" => {
                self.text = undecoded(value)?;
                facts.brings_input |= fence::begins_json(value);
            }
            "timestamp" | "provider" | "model" => check_optional_text(value)?,
            "finish" => {
                check_optional_text(value)?;
                facts.has_finish = value != NULL;
            }
            "attachments" => {
                check_field::<Option<Vec<CheckedAttachment>>>(value)?;
                facts.brings_input |= value.contains('{');
            }
            "input_alone" => {
                check_field::<Option<bool>>(value)?;
                facts.brings_input |= value == "true";
            }
            "interrupted" => {
                let interrupted: Option<bool> = serde_json::from_str(value)?;
                facts.interrupted = interrupted.unwrap_or_default();
            }
            "usage" => {
                check_any(value)?;
                check_field::<Option<CheckedUsage>>(value)?;
            }
            "sources" => check_field::<Option<Vec<CheckedSource>>>(value)?,
            "steps" => {
                let steps: Option<Vec<CheckedStep>> = surrogates::lossy(value)?;
                facts.has_steps = steps.is_some_and(|steps| !steps.is_empty());
            }
            _ => return Ok(()),
        }
        if self.known_names.contains(&name) {
            return Err(Error::custom(format!("duplicate field `{name}`")));
        }
        self.known_names.push(name);
        Ok(())
    }

    /// Returns the message; the error is the name of a field that is missing.
    fn into_entry(self) -> Result<CheckedEntry<'a>, &'static str> {
        for required in ["role", "content"] {
            if !self.known_names.iter().any(|name| name == required) {
                return Err(required);
            }
        }
        Ok(CheckedEntry {
            first: self.first.unwrap_or_default(),
            last: self.last,
            text: self.text,
            facts: self.facts,
        })
    }
}

/// Estimates how much memory the value of a field takes besides its strings. The arguments of calls stay JSON, whatever they are.
fn weight_of_field(name: &str, value: &str) -> usize {
    let mut weight = json::weight_of_value(value);
    if name == "steps" && weight > LIGHT_STEPS {
        let steps: Vec<StepArguments> = serde_json::from_str(value).unwrap_or_default();
        for call in steps.iter().flat_map(|step| &step.calls) {
            weight = weight.saturating_sub(json::weight(call.arguments.get()));
        }
    }
    weight
}

/// Checks that a value can be decoded as this type.
fn check_field<T: DeserializeOwned>(json: &str) -> serde_json::Result<()> {
    surrogates::lossy::<T>(json).map(drop)
}

/// Checks that a value can be decoded, whatever it is. To take it apart costs more than all other fields of most messages.
fn check_any(json: &str) -> serde_json::Result<()> {
    // It is JSON. So only its depth can be wrong, or a name with a `$` that serde_json uses for itself.
    let nested = memchr2_iter(b'[', b'{', json.as_bytes());
    if nested.take(FEW).count() < FEW && !json.contains(['$', '\\']) {
        return Ok(());
    }
    check_field::<Value>(json)
}

/// Returns the text of a field's name.
pub fn decoded_name(json: &str) -> serde_json::Result<Cow<'_, str>> {
    if json.contains('\\') {
        return surrogates::lossy::<String>(json).map(Cow::from);
    }
    Ok(json.trim_matches('"').into())
}

/// Checks that a value is a string, or null.
fn check_optional_text(json: &str) -> serde_json::Result<()> {
    if json == NULL {
        return Ok(());
    }
    undecoded(json).map(drop)
}

/// Checks that a value is a string.
fn undecoded(json: &str) -> serde_json::Result<&str> {
    if !json.starts_with('"') {
        check_field::<String>(json)?;
    }
    Ok(json)
}

/// A string that is not decoded.
struct UndecodedText;

impl<'de> Deserialize<'de> for UndecodedText {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(value)?.get();
        let checked = undecoded(json).map_err(|error| D::Error::custom(without_place(&error)));
        checked.map(|_| UndecodedText)
    }
}

/// The numbers of a [`Usage`](crate::message::Usage). A provider counts them, so they may be of any size. Nearly every answer has
/// them, so nothing else is taken apart.
struct CheckedUsage;

impl<'de> Deserialize<'de> for CheckedUsage {
    fn deserialize<D: Deserializer<'de>>(usage: D) -> Result<Self, D::Error> {
        usage.deserialize_map(UsageVisitor)
    }
}

struct UsageVisitor;

impl<'de> Visitor<'de> for UsageVisitor {
    type Value = CheckedUsage;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the usage of an answer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CheckedUsage, A::Error> {
        let mut known_names = Vec::new();
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let name = decoded_name(name.get()).map_err(A::Error::custom)?;
            let Some(known) = USAGE_NAMES.into_iter().find(|known| *known == name) else {
                continue;
            };
            if known_names.contains(&known) {
                return Err(A::Error::duplicate_field(known));
            }
            known_names.push(known);
            // It is JSON, so its first character tells.
            let is_number = value
                .get()
                .starts_with(|first: char| first == '-' || first.is_ascii_digit());
            if !is_number && value.get() != NULL {
                return Err(A::Error::custom(format!("`{known}` is not a number")));
            }
        }
        Ok(CheckedUsage)
    }
}

/// The fields of a [`Source`](crate::message::Source).
#[derive(Deserialize)]
#[expect(dead_code, reason = "decoded only to check their types")]
#[serde(expecting = "a source")]
struct CheckedSource {
    url: UndecodedText,
    title: Option<UndecodedText>,
    #[serde(flatten)]
    unknown_fields: UnknownValues,
}

/// The arguments of the calls of a step.
#[derive(Deserialize)]
struct StepArguments<'a> {
    #[serde(borrow)]
    calls: Vec<CallArguments<'a>>,
}

#[derive(Deserialize)]
struct CallArguments<'a> {
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// The fields of an attachment.
#[derive(Deserialize)]
#[expect(dead_code, reason = "decoded only to check their types")]
#[serde(expecting = "an attachment")]
struct CheckedAttachment {
    name: UndecodedText,
    #[serde(rename = "type")]
    media: UndecodedText,
    data: Option<UndecodedText>,
    #[serde(flatten)]
    unknown_fields: UnknownValues,
}

/// The fields of a step.
#[derive(Deserialize)]
#[expect(dead_code, reason = "decoded only to check their types")]
#[serde(expecting = "a step")]
struct CheckedStep {
    text: Option<UndecodedText>,
    calls: Vec<CheckedRun>,
    #[serde(flatten)]
    unknown_fields: UnknownValues,
}

/// The fields of a [`ToolRun`](crate::message::ToolRun).
#[derive(Deserialize)]
#[expect(dead_code, reason = "decoded only to check their types")]
#[serde(expecting = "a call")]
struct CheckedRun {
    id: Option<UndecodedText>,
    name: UndecodedText,
    arguments: IgnoredAny,
    result: UndecodedText,
    changed: Option<bool>,
    #[serde(rename = "error")]
    is_error: Option<bool>,
    no_result: Option<bool>,
    #[serde(flatten)]
    unknown_fields: UnknownValues,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Usage;

    #[test]
    fn every_number_of_a_usage_is_checked() {
        let usage = Usage {
            cached_tokens: Some(1),
            reasoning_tokens: Some(1),
            cost: Some(1.0),
            ..Usage::default()
        };
        let written = serde_json::to_value(usage).expect("JSON");
        let names = written.as_object().expect("an object").keys();
        assert_eq!(Vec::from_iter(names), Vec::from_iter(USAGE_NAMES));
    }

    #[test]
    fn unknown_names_of_fields_of_a_message_are_not_kept() {
        let mut fields = CheckedFields::default();
        for name in [r#""role""#, r#""x""#, r#""x""#, r#""y""#] {
            let added = fields.add(name, r#""user""#);
            assert!(added.is_ok(), "{name}: {added:?}");
        }
        assert_eq!(fields.known_names, ["role"]);
    }
}
