//! Recognizes the API in whose form a reply has come (pure).

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::lenient::{Json, Text};
use crate::text::one_line::{beginning, on_one_line};

/// The most fields that are named of a reply in no known form, and the most characters of each name.
const MAX_SHOWN: usize = 5;
const MAX_NAME: usize = 40;

/// The most fields of a reply that are looked at.
const MAX_NAMES: usize = 100;

/// The form of a part of a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplyForm {
    /// That of the API that was asked for, or nothing that could tell.
    Expected,
    /// That of the API with this name.
    Other(&'static str),
    /// That of no API that q speaks. Its first fields, separated by commas.
    Unknown(String),
}

/// The fields by which the replies of the APIs differ.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReplyFields<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    object: Text<'a>,
    choices: Json<'a>,
    candidates: Json<'a>,
    output: Json<'a>,
    content: Json<'a>,
}

/// The types of Anthropic's events that no other API has.
const ANTHROPIC_EVENTS: &[&str] = &[
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
];

impl ReplyFields<'_> {
    /// Returns the name of the dialect that they are of, if they say so.
    fn api(&self) -> Option<&'static str> {
        let kind = &*self.kind;
        if is_list(self.choices) {
            Some("openai")
        } else if is_list(self.candidates) {
            Some("gemini")
        } else if kind.starts_with("response.")
            || (&*self.object == "response" && is_list(self.output))
        {
            Some("responses")
        } else if ANTHROPIC_EVENTS.contains(&kind) || (kind == "message" && is_list(self.content)) {
            Some("anthropic")
        } else {
            None
        }
    }
}

fn is_list(field: Json) -> bool {
    field.get().starts_with('[')
}

/// Returns the form of an event or a complete answer, where the dialect with the name `asked` was asked for, whose replies have
/// fields with these names. If it is a list of lines, that of the first.
pub fn form_of(json: &str, asked: &str, own: &[&str]) -> ReplyForm {
    let Some(fields) = first_value::<ReplyFields>(json) else {
        return ReplyForm::Expected;
    };
    match fields.api() {
        Some(api) if api == asked => ReplyForm::Expected,
        Some(api) => ReplyForm::Other(api),
        None => {
            first_value::<FieldNames>(json).map_or(ReplyForm::Expected, |names| names.form(own))
        }
    }
}

/// Reads the first of the values in a text.
fn first_value<'j, T: Deserialize<'j>>(json: &'j str) -> Option<T> {
    let mut values = serde_json::Deserializer::from_str(json).into_iter();
    values.next()?.ok()
}

/// Returns the names of the first fields of an object as an error shows them; empty for any other value.
pub fn first_fields(json: &str) -> String {
    first_value::<FieldNames>(json).map_or_else(String::new, |names| names.shown())
}

/// The names of the first fields of an object.
struct FieldNames(Vec<String>);

impl FieldNames {
    /// Returns the form that they are of, where they are not those of another API, and the API that was asked has these.
    fn form(&self, own: &[&str]) -> ReplyForm {
        if self.0.is_empty() || self.0.iter().any(|name| own.contains(&name.as_str())) {
            return ReplyForm::Expected;
        }
        ReplyForm::Unknown(self.shown())
    }

    fn shown(&self) -> String {
        let first = self.0.iter().take(MAX_SHOWN);
        let shown = first.map(|name| beginning(&on_one_line(name), MAX_NAME));
        Vec::from_iter(shown).join(", ")
    }
}

impl<'de> Deserialize<'de> for FieldNames {
    fn deserialize<D: Deserializer<'de>>(object: D) -> Result<FieldNames, D::Error> {
        object.deserialize_map(FieldNamesVisitor)
    }
}

struct FieldNamesVisitor;

impl<'de> Visitor<'de> for FieldNamesVisitor {
    type Value = FieldNames;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<FieldNames, A::Error> {
        let mut names = Vec::new();
        while let Some((name, _)) = object.next_entry::<Text, IgnoredAny>()? {
            if names.len() < MAX_NAMES {
                names.push(name.to_string());
            }
        }
        Ok(FieldNames(names))
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::DIALECTS;
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_reply_in_no_known_form_is_told_from_an_empty_one_of_each_api() {
        // The APIs that may answer so without a word; all others have an unknown form, with these fields.
        let table = r##"
            - | model, response, done | {"model":"m","response":"Because.","done":true}
            - | model, response | {"model":"m","response":"Be"}␊{"model":"m","response":"cause."}
            - | message, done | {"message":{"role":"assistant","content":"Because."},"done":true}
            - | text | {"text":"Because."}
            - | result | {"result":"Because."}
            - | content, stop | {"content":"Because.","stop":true}
            - | a, b, c, d, e | {"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}
            openai anthropic responses gemini | - | {}
            openai anthropic responses gemini | - | {"response":"Bec
            openai anthropic responses gemini | - | 7
            openai responses | id | {"id":"x"}
            openai responses | id, choices | {"id":"x","choices":null}
            openai responses | id, model, usage | {"id":"x","model":"m","usage":null}
            openai responses | id | {"id":"x"}␊{"choices":null}
            gemini | candidates, usageMetadata | {"candidates":null,"usageMetadata":null}
            gemini | modelVersion | {"modelVersion":"m"}
            anthropic responses | type | {"type":"ping"}
            openai anthropic responses | id, role, content, stop_reason | {"id":"x","role":"assistant","content":"","stop_reason":null}
            responses | output | {"output":"Because."}
            responses | status, output | {"status":"completed","output":null}
        "##;
        for [expected, names, json] in rows(table) {
            let json = &json.replace('␊', "\n");
            for dialect in DIALECTS {
                let api = dialect.name;
                let form = if expected.split(' ').any(|expected| expected == api) {
                    ReplyForm::Expected
                } else {
                    ReplyForm::Unknown(names.to_owned())
                };
                assert_eq!(
                    form_of(json, api, dialect.reply_fields),
                    form,
                    "{api}: {json}"
                );
            }
        }
        let long = format!("{{\"{}\\n\":1}}", "x".repeat(MAX_NAME + 1));
        let cut = format!("{}…", "x".repeat(MAX_NAME - 1));
        assert_eq!(form_of(&long, "openai", &["id"]), ReplyForm::Unknown(cut));
    }
}
