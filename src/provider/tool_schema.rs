//! Completes the JSON Schemas of tools, so that no API rejects a request for one of them (pure).
//!
//! One schema that an API rejects takes down the whole request. These are the kinds, with those who reject them:
//!
//! | kind | rejected by |
//! |---|---|
//! | an array without `items`, with `true` or a list for them | OpenAI; the list Anthropic and Moonshot, too |
//! | `required` that is null or `true`, or that names what is no property | all that know draft 2020-12; Moonshot |
//! | `properties` that is null, a property that is null or text | all |
//! | a property that is `true` | Fireworks |
//! | another type than `object` at the top, or no `properties` there | OpenAI |
//! | `anyOf`, `oneOf`, `allOf`, `enum` or `not` at the top | OpenAI; the first three Anthropic and Moonshot, too |
//! | `type` next to `anyOf` | Moonshot |
//! | a type such as `any`, `unknown` or null | all |
//! | `exclusiveMinimum` that is true, a number as text: keywords of older drafts or of the wrong type | Anthropic, OpenAI |
//! | an empty `enum`, or one with a value twice | OpenAI |
//! | a reference that leads nowhere, elsewhere or has other keywords next to it | Gemini, Moonshot |
//! | a pattern with lookaround or classes of Unicode, or without its ends | OpenAI, Anthropic; llama.cpp |
//! | a limit of the length of a text or list that is 2,000 or more, in a pattern, too | llama.cpp |
//! | keywords that are not in its list, values in `enum` that are empty or true | Gemini |
//! | arguments whose names have other characters than most, or more than 64 | Anthropic |

mod keywords;
mod merging;
mod narrowing;

use std::sync::Arc;

use serde_json::{Value, json};

use self::keywords::{Keywords, checked, number, without_twins};
use self::merging::{Unfinished, Variants, require, unite};
use self::narrowing::{CHOICES, merge};
use super::kept::{ByteBudget, ITEM, weight};
use super::schema::add_rules;
use crate::message::Tool;
use crate::shape::{named, referred};

/// What must not be at the top.
const NOT_AT_TOP: &[&str] = &["anyOf", "oneOf", "enum", "const", "not", "items"];

/// How deep schemas may be. What is deeper may be anything.
const MAX_DEPTH: usize = 50;

/// How many schemas may take the place of references, in all tools of a request.
const MAX_REFERRED: usize = 20_000;

/// The longest name of an argument that Anthropic takes.
const MAX_ARGUMENT: usize = 64;

/// The keywords that an API takes in the schemas of tools, besides what all of them take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSchemas {
    /// Any schema.
    Any,
    /// The names of arguments have few characters.
    PlainArguments,
    /// Only the keywords of a list.
    FewKeywords,
}

/// A tool that an API does not take.
#[derive(Debug, PartialEq, Eq)]
pub struct RejectedTool {
    pub name: String,
    /// The name of an argument, for which the API would reject the request.
    pub argument: String,
}

/// Returns the tools with schemas that the API takes, and those that have none.
pub fn fit(tools: &[Tool], accepted: ToolSchemas) -> (Vec<Tool>, Vec<RejectedTool>) {
    let mut room = ReferenceRoom::default();
    let mut fitting = Vec::new();
    let mut refused = Vec::new();
    for tool in tools {
        let mut builder = SchemaBuilder {
            root: &tool.schema,
            few_keywords: accepted == ToolSchemas::FewKeywords,
            room: &mut room,
            open: Vec::new(),
        };
        let schema = builder.whole();
        if accepted == ToolSchemas::PlainArguments
            && let Some(argument) = unusual_argument(&schema)
        {
            refused.push(RejectedTool {
                name: tool.name.clone(),
                argument,
            });
            continue;
        }
        let mut tool = tool.clone();
        // Large ones are shared as long as they are right.
        if *tool.schema != schema {
            tool.schema = Arc::new(schema);
        }
        fitting.push(tool);
    }
    (fitting, refused)
}

/// Returns an argument with a name that Anthropic rejects. It does not look deeper.
fn unusual_argument(schema: &Value) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let mut names = schema["properties"].as_object()?.keys();
    let name = names
        .find(|name| !(1..=MAX_ARGUMENT).contains(&name.len()) || !name.bytes().all(is_plain))?;
    Some(name.clone())
}

/// Returns a schema with nothing but its type.
fn bare(schema: &Value) -> Unfinished {
    let mut bare = Unfinished::default();
    if let Some(kind) = checked("type", &schema["type"]) {
        bare.keywords.insert("type".into(), kind);
    }
    bare
}

/// Whether two choices have the same word.
fn has_twice_a_word(choices: &[Variants]) -> bool {
    let mut words = Vec::from_iter(choices.iter().map(|choice| &choice.word));
    words.sort();
    words.windows(2).any(|two| two[0] == two[1])
}

/// The room for schemas that take the place of references, in all tools of a request.
#[derive(Default)]
struct ReferenceRoom {
    schemas: usize,
    bytes: ByteBudget,
}

impl ReferenceRoom {
    /// Counts one more schema without those within it, which are counted themselves. Returns whether there is room for it.
    fn spend(&mut self, schema: &Keywords) -> bool {
        self.schemas += 1;
        // What is large is not weighed again and again.
        self.schemas <= MAX_REFERRED
            && !self.bytes.is_exhausted()
            && self.bytes.spend(weight_alone(schema))
    }
}

/// Estimates how many bytes of memory a schema takes without those within it.
fn weight_alone(schema: &Keywords) -> usize {
    let weights = schema.iter().map(|(name, value)| {
        let within = match (name.as_str(), value) {
            ("$defs" | "definitions", _) => 0,
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(schemas)) => {
                schemas.keys().map(|key| key.len() + ITEM).sum()
            }
            ("items" | "prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.len() * ITEM
            }
            ("items" | "additionalProperties", Value::Object(_)) => ITEM,
            _ => weight(&value.to_string()),
        };
        name.len() + within
    });
    weights.sum()
}

/// A builder that completes one schema.
struct SchemaBuilder<'c> {
    root: &'c Value,
    few_keywords: bool,
    room: &'c mut ReferenceRoom,
    /// The references whose place is being filled.
    open: Vec<&'c str>,
}

impl<'c> SchemaBuilder<'c> {
    /// Returns the schema of all arguments.
    fn whole(&mut self) -> Value {
        let Unfinished {
            mut keywords,
            choices,
        } = self.unfinished(self.root, 0);
        unite(&mut keywords, choices);
        keywords.insert("type".into(), "object".into());
        if !keywords.contains_key("properties") {
            keywords.insert("properties".into(), json!({}));
        }
        keywords.retain(|name, _| !NOT_AT_TOP.contains(&name.as_str()));
        self.finish(&mut keywords);
        Value::Object(keywords)
    }

    /// Returns a schema within another one.
    fn part(&mut self, schema: &'c Value, depth: usize) -> Value {
        let unfinished = self.unfinished(schema, depth);
        let mut part = self.with_choices(unfinished);
        self.finish(&mut part);
        Value::Object(part)
    }

    /// Returns the keywords of a schema with its choices. A choice in a schema that names its own properties or items becomes a
    /// part of these, and so do several choices between properties.
    fn with_choices(&self, schema: Unfinished) -> Keywords {
        let Unfinished {
            mut keywords,
            choices,
        } = schema;
        let has_own_members = keywords.contains_key("properties") || keywords.contains_key("items");
        // There is room for one choice of each word.
        let names_members = choices.iter().any(Variants::names_properties);
        if has_own_members || (names_members && has_twice_a_word(&choices)) {
            unite(&mut keywords, choices);
            return keywords;
        }
        for choice in choices {
            let kind = keywords.shift_remove("type");
            let mut list = Vec::new();
            for branch in choice.branches {
                let mut branch = self.with_choices(branch);
                let has_choice = CHOICES.iter().any(|word| branch.contains_key(*word));
                if let Some(kind) = &kind
                    && !has_choice
                    && !branch.contains_key("type")
                {
                    branch.insert("type".into(), kind.clone());
                }
                self.finish(&mut branch);
                list.push(Value::Object(branch));
            }
            // Without the keywords that no API takes, two may be the same, and then nothing would fit only one of them.
            keywords.insert(choice.word, without_twins(list).into());
        }
        keywords
    }

    /// Returns the keywords of a schema, with those of what it refers to and of `allOf`.
    fn unfinished(&mut self, schema: &'c Value, depth: usize) -> Unfinished {
        let mut found = Unfinished::default();
        let Value::Object(fields) = schema else {
            return found;
        };
        if depth > MAX_DEPTH {
            return found;
        }
        if !self.open.is_empty() && !self.room.spend(fields) {
            return bare(schema);
        }
        let mut merged = Vec::new();
        for (name, value) in fields {
            let list = value.as_array().into_iter().flatten();
            match name.as_str() {
                "$ref" => merged.extend(self.referred(schema, depth)),
                "allOf" => merged.extend(list.map(|branch| self.unfinished(branch, depth + 1))),
                "anyOf" | "oneOf" => {
                    // Nothing fits a branch that is false.
                    let branches = list.filter(|branch| **branch != false);
                    let branches = branches.map(|branch| self.unfinished(branch, depth + 1));
                    let branches = Vec::from_iter(branches);
                    if !branches.is_empty() {
                        let word = name.clone();
                        found.choices.push(Variants { word, branches });
                    }
                }
                _ => {
                    if let Some(value) = self.keyword(name, value, fields, depth) {
                        found.keywords.insert(name.clone(), value);
                    }
                }
            }
        }
        // In older drafts, a property says itself that it is required.
        for (name, property) in named(&schema["properties"]) {
            if property["required"] == true {
                require(&mut found.keywords, [name.as_str().into()]);
            }
        }
        for more in merged {
            merge(&mut found.keywords, more.keywords);
            found.choices.extend(more.choices);
        }
        found
    }

    /// Returns what a schema refers to, but only its type where that leads back to it.
    fn referred(&mut self, schema: &'c Value, depth: usize) -> Option<Unfinished> {
        let reference = schema["$ref"].as_str()?;
        let target = referred(self.root, schema)?;
        if self.open.contains(&reference) {
            return Some(bare(target));
        }
        self.open.push(reference);
        let found = self.unfinished(target, depth + 1);
        self.open.pop();
        Some(found)
    }

    /// Returns the value of a keyword, if it is one that it may have.
    fn keyword(
        &mut self,
        name: &str,
        value: &'c Value,
        fields: &Keywords,
        depth: usize,
    ) -> Option<Value> {
        let below = depth + 1;
        match name {
            // They say nothing about arguments, or their place is filled.
            "$schema" | "$id" | "$comment" | "$anchor" | "$defs" | "definitions"
            | "additionalItems" => None,
            "properties" => Some(self.properties(value.as_object()?, below)),
            "patternProperties" | "dependentSchemas" => {
                // Where they become words, the words within them would be quoted once more at each level, and grow twofold.
                let few_keywords = std::mem::take(&mut self.few_keywords);
                let schemas = value.as_object().map(|all| self.properties(all, below));
                self.few_keywords = few_keywords;
                schemas
            }
            "items" => Some(match value {
                Value::Array(first) => self.one_of_items(first, below),
                _ => self.part(value, below),
            }),
            "prefixItems" => {
                let list = value.as_array()?.iter();
                let list = Vec::from_iter(list.map(|item| self.part(item, below)));
                (!list.is_empty()).then_some(list.into())
            }
            "additionalProperties" if value.is_boolean() => Some(value.clone()),
            "additionalProperties" => value.is_object().then(|| self.part(value, below)),
            // A condition with something left out would be another one.
            "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames"
            | "unevaluatedItems"
            | "unevaluatedProperties" => {
                let is_right = value.is_boolean() || self.part(value, below) == *value;
                is_right.then(|| value.clone())
            }
            // In older drafts, a switch next to the limit.
            "exclusiveMinimum" if value == true => fields.get("minimum").and_then(number),
            "exclusiveMaximum" if value == true => fields.get("maximum").and_then(number),
            "minimum" if fields.get("exclusiveMinimum") == Some(&Value::Bool(true)) => None,
            "maximum" if fields.get("exclusiveMaximum") == Some(&Value::Bool(true)) => None,
            _ => checked(name, value),
        }
    }

    /// Completes the schemas of properties.
    fn properties(&mut self, schemas: &'c Keywords, depth: usize) -> Value {
        let mut properties = Keywords::new();
        for (name, property) in schemas {
            // A property that is false must be missing.
            if property != &Value::Bool(false) {
                properties.insert(name.clone(), self.part(property, depth));
            }
        }
        properties.into()
    }

    /// Makes one schema for all items of those that each of the first items has in older drafts.
    fn one_of_items(&mut self, first: &'c [Value], depth: usize) -> Value {
        let items = Vec::from_iter(first.iter().map(|item| self.part(item, depth)));
        let mut items = without_twins(items);
        match items.len() {
            0 | 1 => items.pop().unwrap_or(json!({})),
            _ => json!({"anyOf": items}),
        }
    }

    /// Adds to a schema what is missing, and turns into words what the API does not take.
    fn finish(&self, schema: &mut Keywords) {
        keywords::complete(schema);
        let rules = keywords::take_refused(schema, self.few_keywords);
        if !rules.is_empty() {
            add_rules(schema, &rules);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::keywords::types;
    use super::*;
    use crate::provider::kept::MAX_KEPT;
    use crate::shape::{Shape, elements, is_of_object};

    fn tool(name: &str, schema: Value) -> Tool {
        Tool {
            name: name.into(),
            description: String::new(),
            schema: schema.into(),
        }
    }

    /// What the schema of a tool becomes.
    fn completed(schema: &Value, accepted: ToolSchemas) -> Value {
        let (tools, refused) = fit(&[tool("t", schema.clone())], accepted);
        assert_eq!(refused, []);
        (*tools[0].schema).clone()
    }

    /// The cases of a table: what a case is, a schema, and what becomes of it, each on a line of its own. The schemas are
    /// those of an argument `a`, unless the case is about the top.
    fn check(table: &str, accepted: ToolSchemas) {
        let lines = Vec::from_iter(table.trim().lines().map(str::trim));
        let json = |line: &str| serde_json::from_str::<Value>(line).expect(line);
        for case in lines.chunks_exact(3) {
            let (schema, mut expected) = (json(case[1]), json(case[2]));
            let mut whole = schema.clone();
            if !case[0].starts_with("top:") {
                let within = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
                whole = within(schema);
                expected = within(expected);
            }
            let found = completed(&whole, accepted);
            assert_eq!(found, expected, "{}", case[0]);
            assert_eq!(completed(&found, accepted), found, "again: {}", case[0]);
        }
    }

    #[test]
    fn schema_parts_that_any_api_rejects_are_completed_or_left_out() {
        let table = r##"
            what is right
            {"type": "object", "description": "d", "properties": {"b": {"type": ["string", "null"], "enum": ["x", null], "minLength": 1, "format": "date"}}, "required": ["b"], "additionalProperties": false}
            {"type": "object", "description": "d", "properties": {"b": {"type": ["string", "null"], "enum": ["x", null], "minLength": 1, "format": "date"}}, "required": ["b"], "additionalProperties": false}
            several choices between properties
            {"allOf": [{"anyOf": [{"properties": {"id": {"type": "integer"}}, "required": ["id"]}, {"properties": {"name": {"type": "string"}}, "required": ["name"]}]}, {"anyOf": [{"properties": {"limit": {"type": "integer"}}}, {"properties": {"page": {"type": "integer"}}}]}]}
            {"type": "object", "description": "One of these sets is required: id; name", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "limit": {"type": "integer"}, "page": {"type": "integer"}}}
            several choices between texts
            {"allOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]}]}
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["b"]}]}
            what may be anything, and keywords of others
            {"description": "d", "default": null, "x-order": 1}
            {"description": "d", "default": null, "x-order": 1}
            an array without items
            {"type": "array"}
            {"type": "array", "items": {}}
            an array or nothing, without items
            {"type": ["array", "null"]}
            {"type": ["array", "null"], "items": {}}
            an array of anything
            {"type": "array", "items": true}
            {"type": "array", "items": {}}
            a list of items
            {"type": "array", "items": [{"type": "number"}, {"type": "string"}], "additionalItems": false}
            {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "string"}]}}
            a list of equal items
            {"type": "array", "items": [{"type": "number"}, {"type": "number"}]}
            {"type": "array", "items": {"type": "number"}}
            first items only
            {"type": "array", "prefixItems": [{"type": "array"}]}
            {"type": "array", "prefixItems": [{"type": "array", "items": {}}], "items": {}}
            an array in an array
            {"type": "array", "items": {"type": "array"}}
            {"type": "array", "items": {"type": "array", "items": {}}}
            other properties are arrays
            {"type": "object", "additionalProperties": {"type": "array"}}
            {"type": "object", "additionalProperties": {"type": "array", "items": {}}}
            other properties are no schema
            {"type": "object", "additionalProperties": null}
            {"type": "object"}
            required is null
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": null}
            {"type": "object", "properties": {"b": {"type": "string"}}}
            required has what is no property, no text, or a name twice
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b", "c", 5, "b"]}
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}
            required without properties
            {"type": "object", "required": ["b"]}
            {"type": "object"}
            a property that requires itself, as in draft 3
            {"type": "object", "properties": {"b": {"type": "string", "required": true}, "c": {"type": "string", "required": false}}}
            {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "string"}}, "required": ["b"]}
            properties are null
            {"type": "object", "properties": null}
            {"type": "object"}
            properties that are no schemas
            {"type": "object", "properties": {"b": null, "c": "object", "d": true, "e": false, "f": [1]}}
            {"type": "object", "properties": {"b": {}, "c": {}, "d": {}, "f": {}}}
            an object by its properties, an array by its items, a text by its values
            {"properties": {"b": {"items": {"enum": ["x"]}}, "c": {"const": "x"}, "d": {"enum": ["x", 1]}}}
            {"properties": {"b": {"items": {"enum": ["x"], "type": "string"}, "type": "array"}, "c": {"const": "x", "type": "string"}, "d": {"enum": ["x", 1]}}, "type": "object"}
            a type that there is not
            {"type": "any"}
            {}
            types with one that there is not
            {"type": ["string", "any"]}
            {}
            types in capitals, twice, and only one
            {"type": ["STRING", "string"]}
            {"type": "string"}
            no type
            {"type": null, "description": null, "title": 5, "format": false}
            {}
            an enum that is empty
            {"type": "string", "enum": []}
            {"type": "string"}
            an enum with values twice
            {"type": "string", "enum": ["x", "y", "x"]}
            {"type": "string", "enum": ["x", "y"]}
            limits of draft 4
            {"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}
            {"type": "number", "exclusiveMinimum": 1, "maximum": 9}
            limits of the wrong type
            {"type": "string", "minLength": "1", "maxLength": -1, "multipleOf": 0, "uniqueItems": "yes", "minimum": null}
            {"type": "string"}
            a plain pattern
            {"type": "string", "pattern": "^[a-z]+\\.\\w{2}$"}
            {"type": "string", "pattern": "^[a-z]+\\.\\w{2}$"}
            a pattern with lookaround
            {"type": "string", "pattern": "^(?!x).*$", "description": "d"}
            {"type": "string", "description": "d\n\nRules: pattern \"^(?!x).*$\""}
            a pattern without its ends
            {"type": "string", "pattern": "[a-z]"}
            {"type": "string", "description": "Rules: pattern \"[a-z]\""}
            a pattern with classes of Unicode
            {"type": "string", "pattern": "^\\p{L}$"}
            {"type": "string", "description": "Rules: pattern \"^\\\\p{L}$\""}
            a pattern that repeats often
            {"type": "string", "pattern": "^[a-z]{1,2000}$"}
            {"type": "string", "description": "Rules: pattern \"^[a-z]{1,2000}$\""}
            a long text
            {"type": "string", "minLength": 1, "maxLength": 2000, "description": "d"}
            {"type": "string", "minLength": 1, "description": "d\n\nRules: maxLength 2000"}
            a long list of long texts
            {"type": "array", "maxItems": 65536, "items": {"type": "string", "minLength": 3000}}
            {"type": "array", "items": {"type": "string", "description": "Rules: minLength 3000"}, "description": "Rules: maxItems 65536"}
            limits that are not long
            {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 1999}}
            {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 1999}}
            a type next to anyOf
            {"type": "string", "anyOf": [{"format": "date"}, {"type": "string", "enum": ["today"]}], "description": "d"}
            {"description": "d", "anyOf": [{"format": "date", "type": "string"}, {"type": "string", "enum": ["today"]}]}
            anyOf with null
            {"anyOf": [{"type": "array"}, {"type": "null"}], "default": null}
            {"default": null, "anyOf": [{"type": "array", "items": {}}, {"type": "null"}]}
            anyOf that is empty
            {"anyOf": [], "oneOf": null}
            {}
            anyOf that only requires
            {"type": "object", "properties": {"b": {}, "c": {}, "d": {}}, "anyOf": [{"required": ["b", "d"]}, {"required": ["c", "d"]}]}
            {"type": "object", "properties": {"b": {}, "c": {}, "d": {}}, "description": "One of these sets is required: b, d; c, d", "required": ["d"]}
            variants next to properties, with different values of one more
            {"type": "object", "properties": {"n": {"type": "integer"}}, "oneOf": [{"properties": {"k": {"enum": ["a"]}}}, {"properties": {"k": {"enum": ["b"]}}}, {"properties": {"k": {"enum": ["a"]}}}]}
            {"type": "object", "properties": {"n": {"type": "integer"}, "k": {"anyOf": [{"enum": ["a"], "type": "string"}, {"enum": ["b"], "type": "string"}]}}}
            variants of other types next to properties
            {"properties": {"b": {"type": "string"}}, "anyOf": [{"type": "object"}, {"anyOf": [{"type": "null"}, {"enum": ["x"]}]}]}
            {"properties": {"b": {"type": "string"}}, "type": ["object", "null", "string"]}
            variants that become the same, and one that nothing fits
            {"type": "object", "oneOf": [{"required": ["b"]}, {"required": ["c"]}, false]}
            {"oneOf": [{"type": "object"}]}
            keywords that belong together, in allOf
            {"type": "string", "allOf": [{"if": {"type": "string"}, "then": {"minLength": 1}}, {"if": {"type": "number"}, "else": {"maxLength": 9}}]}
            {"type": "string", "if": {"type": "string"}, "then": {"minLength": 1}}
            allOf
            {"description": "d", "allOf": [{"type": "object", "description": "e", "properties": {"b": {"type": "string"}}}, {"properties": {"c": {}}, "required": ["b", "c"]}]}
            {"description": "d", "type": "object", "properties": {"b": {"type": "string"}, "c": {}}, "required": ["b", "c"]}
        "##;
        for accepted in [ToolSchemas::Any, ToolSchemas::PlainArguments] {
            check(table, accepted);
        }
    }

    #[test]
    fn the_top_of_a_tool_schema_is_an_object_with_properties() {
        let table = r##"
            top: nothing
            null
            {"type": "object", "properties": {}}
            top: anything
            true
            {"type": "object", "properties": {}}
            top: an empty schema
            {}
            {"type": "object", "properties": {}}
            top: an object or nothing
            {"type": ["object", "null"], "properties": null, "required": null}
            {"type": "object", "properties": {}}
            top: no object
            {"type": "array", "items": {}, "enum": [1], "not": {}, "title": "t", "$schema": "x", "$id": "y"}
            {"type": "object", "title": "t", "properties": {}}
            top: only properties
            {"properties": {"b": {}}}
            {"properties": {"b": {}}, "type": "object"}
            top: several variants
            {"type": "object", "anyOf": [{"type": "object", "properties": {"b": {"type": "string"}, "c": {}}, "required": ["b", "c"]}, {"properties": {"b": {"type": "string"}, "d": {}}, "required": ["b", "d"]}, {"type": "null"}]}
            {"type": "object", "properties": {"b": {"type": "string"}, "c": {}, "d": {}}, "description": "One of these sets is required: b, c; b, d", "required": ["b"]}
            top: variants with different schemas of an argument
            {"type": "object", "oneOf": [{"properties": {"action": {"const": "get"}, "id": {"type": "string"}}, "required": ["action", "id"]}, {"properties": {"action": {"const": "set"}, "id": {"type": "integer"}, "value": {"type": "string"}}, "required": ["action", "id", "value"]}]}
            {"type": "object", "properties": {"action": {"anyOf": [{"const": "get", "type": "string"}, {"const": "set", "type": "string"}]}, "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "value": {"type": "string"}}, "description": "One of these sets is required: action, id; action, id, value", "required": ["action", "id"]}
            top: variants within variants
            {"anyOf": [{"oneOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"]}, {"properties": {"c": {"type": "string"}}, "required": ["c"]}]}, {"properties": {"d": {"type": "string"}}, "required": ["d"]}]}
            {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "string"}, "d": {"type": "string"}}, "description": "One of these sets is required: b; c; d"}
            top: a variant that requires something itself, and has variants
            {"anyOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"], "oneOf": [{"required": ["c"]}, {"properties": {"c": {"type": "null"}}}]}, {"properties": {"b": {"type": "null"}, "c": {"type": "string"}}, "required": ["b", "c"]}]}
            {"type": "object", "properties": {"b": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "c": {"anyOf": [{"type": "null"}, {"type": "string"}]}}, "description": "One of these sets is required: b; b, c", "required": ["b"]}
            top: a variant that asks for nothing, and one that is no object
            {"type": "object", "properties": {"b": {}}, "anyOf": [{"required": ["b"]}, {"type": "object"}, {"type": "string"}]}
            {"type": "object", "properties": {"b": {}}}
            top: an argument of two lists of variants
            {"allOf": [{"anyOf": [{"properties": {"b": {"type": "string"}}}, {"properties": {"c": {"type": "string"}}}]}, {"anyOf": [{"properties": {"b": {"type": "integer"}}}, {"properties": {"d": {"type": "string"}}}]}]}
            {"type": "object", "properties": {"b": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "c": {"type": "string"}, "d": {"type": "string"}}}
            top: all of several
            {"allOf": [{"$ref": "#/$defs/B"}, {"required": ["b"]}], "$defs": {"B": {"type": "object", "properties": {"b": {}}}}}
            {"type": "object", "properties": {"b": {}}, "required": ["b"]}
            top: a reference
            {"$ref": "#/definitions/B", "definitions": {"B": {"type": "object", "properties": {"b": {"type": "array"}}}}}
            {"type": "object", "properties": {"b": {"type": "array", "items": {}}}}
        "##;
        for accepted in [ToolSchemas::Any, ToolSchemas::PlainArguments] {
            check(table, accepted);
        }
    }

    #[test]
    fn a_property_that_is_declared_twice_keeps_what_both_declarations_say() {
        let table = r##"
            types, values and descriptions, in allOf
            {"allOf": [{"type": "object", "properties": {"b": {"type": ["string", "null"], "description": "d"}}}, {"properties": {"b": {"type": "string", "enum": ["x"], "description": "e"}}}]}
            {"type": "object", "properties": {"b": {"type": "string", "description": "d\n\ne", "enum": ["x"]}}}
            limits, and a number that is an integer
            {"allOf": [{"properties": {"b": {"type": "number", "minimum": 1, "maximum": 9}}}, {"properties": {"b": {"type": "integer", "minimum": 3, "maximum": 10}}}]}
            {"type": "object", "properties": {"b": {"type": "integer", "minimum": 3, "maximum": 9}}}
            members and items
            {"properties": {"b": {"properties": {"x": {"type": "string"}}}, "c": {"type": "array"}}, "allOf": [{"properties": {"b": {"properties": {"x": {"enum": ["v"]}, "y": {}}, "required": ["y"]}, "c": {"items": {"type": "string"}}}}]}
            {"type": "object", "properties": {"b": {"type": "object", "properties": {"x": {"type": "string", "enum": ["v"]}, "y": {}}, "required": ["y"]}, "c": {"type": "array", "items": {"type": "string"}}}}
            what contradicts itself
            {"properties": {"b": {"type": "string", "enum": ["x"]}}, "allOf": [{"properties": {"b": {"type": "integer", "enum": [1]}}}]}
            {"type": "object", "properties": {"b": {"type": "string", "enum": ["x"]}}}
            a choice, and a type
            {"properties": {"b": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"title": "t"}]}}, "allOf": [{"properties": {"b": {"type": "string"}}}]}
            {"type": "object", "properties": {"b": {"anyOf": [{"type": "string"}, {"title": "t", "type": "string"}]}}}
            a choice, and another one
            {"properties": {"b": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}, "allOf": [{"properties": {"b": {"oneOf": [{"title": "t"}], "description": "d"}}}]}
            {"type": "object", "properties": {"b": {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "d"}}}
            values in each branch
            {"properties": {"b": {"type": "string", "description": "d"}}, "oneOf": [{"properties": {"b": {"enum": ["x"]}}}, {"properties": {"b": {"enum": ["y", "z"]}}}]}
            {"type": "object", "properties": {"b": {"type": "string", "description": "d", "enum": ["x", "y", "z"]}}}
            values in each branch, of which the schema itself has some
            {"properties": {"b": {"enum": ["x", "y"]}}, "oneOf": [{"properties": {"b": {"enum": ["x"]}}}, {"properties": {"b": {"enum": ["z"]}}}]}
            {"type": "object", "properties": {"b": {"type": "string", "enum": ["x"]}}}
            forms in each branch
            {"properties": {"b": {"description": "d"}}, "anyOf": [{"properties": {"b": {"type": "string"}}}, {"properties": {"b": {"type": "integer"}}}]}
            {"type": "object", "properties": {"b": {"description": "d", "anyOf": [{"type": "string"}, {"type": "integer"}]}}}
            forms in each branch, next to a type
            {"properties": {"b": {"type": "string"}}, "anyOf": [{"properties": {"b": {"format": "date"}}}, {"properties": {"b": {"title": "t"}}}, {"properties": {"b": {"type": "integer"}}}]}
            {"type": "object", "properties": {"b": {"anyOf": [{"format": "date", "type": "string"}, {"title": "t", "type": "string"}]}}}
            values in the branches of a branch
            {"properties": {"b": {"type": "string"}}, "anyOf": [{"oneOf": [{"properties": {"b": {"enum": ["x"]}}}, {"properties": {"b": {"enum": ["y"]}}}]}, {"properties": {"b": {"enum": ["z"]}}}, {"type": "null"}]}
            {"type": ["object", "null"], "properties": {"b": {"type": "string", "enum": ["x", "y", "z"]}}}
            values in one branch alone
            {"properties": {"b": {"type": "string", "description": "d"}}, "oneOf": [{"properties": {"b": {"enum": ["x"]}}}, {"properties": {"c": {}}}]}
            {"type": "object", "properties": {"b": {"description": "d", "anyOf": [{"enum": ["x"], "type": "string"}, {"type": "string"}]}, "c": {}}}
            a description in one branch alone, next to values
            {"properties": {"b": {"enum": ["x", "y"]}}, "oneOf": [{"properties": {"b": {"enum": ["x"], "description": "e"}}}, {"properties": {"c": {}}}]}
            {"type": "object", "properties": {"b": {"type": "string", "enum": ["x", "y"], "description": "e"}, "c": {}}}
            what one branch alone requires
            {"properties": {"b": {}}, "oneOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"]}, {"properties": {"b": {"type": "null"}}}]}
            {"type": "object", "properties": {"b": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
        "##;
        for accepted in [
            ToolSchemas::Any,
            ToolSchemas::PlainArguments,
            ToolSchemas::FewKeywords,
        ] {
            check(table, accepted);
        }
    }

    #[test]
    fn references_are_replaced_by_the_definitions_that_they_refer_to() {
        let table = r##"
            top: a definition, with a description of its own
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/B", "description": "mine", "default": 1}}, "$defs": {"B": {"type": "array", "description": "its"}}}
            {"type": "object", "properties": {"a": {"description": "mine", "default": 1, "type": "array", "items": {}}}}
            top: another property
            {"type": "object", "properties": {"a": {"$ref": "#/properties/b/items"}, "b": {"type": "array", "items": {"type": "string"}}}}
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}}}
            top: nothing, another document, no text
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/C", "title": "t"}, "b": {"$ref": "https://x/y.json"}, "c": {"$ref": 5}}}
            {"type": "object", "properties": {"a": {"title": "t"}, "b": {}, "c": {}}}
            top: itself
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}}}
            {"type": "object", "properties": {"a": {"type": "object", "properties": {"left": {"type": "object"}}}}}
            top: in a circle
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}, "$defs": {"B": {"$ref": "#/$defs/C"}, "C": {"$ref": "#/$defs/B"}}}
            {"type": "object", "properties": {"a": {}}}
            top: variants
            {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}}, "$defs": {"B": {"type": "string", "enum": ["x"]}}}
            {"type": "object", "properties": {"a": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]}}}
        "##;
        for accepted in [ToolSchemas::Any, ToolSchemas::FewKeywords] {
            check(table, accepted);
        }
    }

    #[test]
    fn keywords_that_gemini_does_not_know_become_words_of_the_description() {
        check(
            r##"
            what it knows
            {"type": "string", "format": "date", "title": "t", "description": "d", "enum": ["x"], "default": "x"}
            {"type": "string", "format": "date", "title": "t", "description": "d", "enum": ["x"], "default": "x"}
            what it does not know
            {"type": "integer", "exclusiveMinimum": 1, "maximum": 9, "nullable": true, "x-order": 1}
            {"type": "integer", "maximum": 9, "description": "Rules: exclusiveMinimum 1; nullable true; x-order 1"}
            a pattern
            {"type": "string", "pattern": "^a$", "description": "d"}
            {"type": "string", "description": "d\n\nRules: pattern \"^a$\""}
            a constant
            {"const": "x"}
            {"type": "string", "enum": ["x"]}
            values that it refuses
            {"enum": ["x", "", 1, true, null]}
            {"enum": ["x", 1]}
            no value that it takes
            {"type": "boolean", "enum": [true]}
            {"type": "boolean"}
            conditions
            {"type": "object", "properties": {"b": {"type": "string"}}, "if": {"required": ["b"]}, "then": {"required": ["c"]}, "propertyNames": {"type": "string"}}
            {"type": "object", "properties": {"b": {"type": "string"}}, "description": "Rules: propertyNames {\"type\":\"string\"}"}
        "##,
            ToolSchemas::FewKeywords,
        );
    }

    #[test]
    fn anthropic_gets_no_tool_with_an_argument_of_an_unusual_name() {
        let with = |argument: &str| {
            let nested = json!({"type": "object", "properties": {"$.x": {"type": "string"}}});
            tool(
                argument,
                json!({"type": "object", "properties": {"b": nested, argument: {"type": "string"}}}),
            )
        };
        let long = "x".repeat(64);
        let too_long = "x".repeat(65);
        let arguments = [
            "a_B.1-",
            &long,
            "$.x",
            "Date<",
            "filter[id]",
            "größe",
            "",
            &too_long,
        ];
        let tools = arguments.map(with);
        let (fitting, refused) = fit(&tools, ToolSchemas::PlainArguments);
        assert_eq!(fitting, tools[..2]);
        let refused = Vec::from_iter(
            refused
                .iter()
                .map(|one| (one.name.as_str(), one.argument.as_str())),
        );
        assert_eq!(
            refused,
            Vec::from_iter(arguments[2..].iter().map(|name| (*name, *name)))
        );
        for accepted in [ToolSchemas::Any, ToolSchemas::FewKeywords] {
            assert_eq!(fit(&tools, accepted), (tools.to_vec(), Vec::new()));
        }
    }

    #[test]
    fn the_size_of_a_schema_with_replaced_references_is_bounded() {
        // Each definition has the next one twice.
        let mut definitions = Map::new();
        for number in 0..40 {
            let next = json!({"$ref": format!("#/$defs/{}", number + 1)});
            let pair = json!({"type": "object", "properties": {"l": next, "r": next}});
            definitions.insert(number.to_string(), pair);
        }
        let schema = json!({"properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": definitions});
        let tools = [tool("a", schema.clone()), tool("b", schema)];
        let (fitting, _) = fit(&tools, ToolSchemas::Any);
        let size: usize = fitting
            .iter()
            .map(|tool| tool.schema.to_string().len())
            .sum();
        assert!(size < 100 * MAX_REFERRED, "{size}");
        // Each definition is large in another way, and copied often.
        let text = "x".repeat(20_000);
        let names = Vec::from_iter((0..2_000).map(|number| number.to_string()));
        let properties = Map::from_iter(names.iter().map(|name| (name.clone(), json!(1))));
        for definition in [
            json!({"description": text}),
            json!({"default": text}),
            json!({"x-own": {"b": text}}),
            json!({"const": text}),
            json!({"pattern": text}),
            json!({"enum": names}),
            json!({"default": vec![json!([]); 5_000]}),
            json!({"not": {"type": "string", "description": text}}),
            json!({"prefixItems": vec![json!(1); 5_000]}),
            json!({"anyOf": vec![json!(1); 5_000]}),
            json!({"items": {"title": text}}),
            json!({"properties": properties}),
            json!({"patternProperties": properties}),
            json!({"properties": {&text: {}}}),
            json!({"additionalProperties": {"allOf": [{"description": text}]}}),
        ] {
            let mut definition = definition;
            definition["type"] = "object".into();
            let copies = (0..2_000).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/A"})));
            let copies = Map::from_iter(copies);
            let schema = json!({"properties": copies, "$defs": {"A": definition}});
            for accepted in [ToolSchemas::Any, ToolSchemas::FewKeywords] {
                let found = completed(&schema, accepted);
                let size = found.to_string().len();
                assert!(size < 2 * MAX_KEPT, "{size}: {definition}");
                // What is left out is anything of its type.
                let last = &found["properties"]["p1999"];
                assert_eq!(last, &json!({"type": "object"}), "{definition}");
            }
        }
        // A chain without end in sight.
        let mut chain = json!({"type": "array"});
        for _ in 0..100 {
            chain = json!({"type": "array", "items": chain});
        }
        let mut deepest =
            &completed(&json!({"properties": {"a": chain}}), ToolSchemas::Any)["properties"]["a"];
        let mut depth = 0;
        while deepest["items"].is_object() {
            deepest = &deepest["items"];
            depth += 1;
        }
        assert_eq!(depth, MAX_DEPTH);
    }

    #[test]
    fn a_deep_schema_of_a_tool_does_not_grow_where_it_becomes_words() {
        for keyword in [
            "properties",
            "patternProperties",
            "dependentSchemas",
            "items",
            "prefixItems",
            "additionalProperties",
            "not",
            "if",
            "then",
            "else",
            "contains",
            "propertyNames",
            "unevaluatedItems",
            "unevaluatedProperties",
            "anyOf",
            "oneOf",
            "allOf",
            "default",
            "x-own",
        ] {
            let mut schema = json!({"type": "string", "pattern": "\\p{L}", "maxLength": 5000});
            for _ in 0..20 {
                schema = around(keyword, schema);
            }
            check_size(&schema);
        }
    }

    /// Returns a schema that has another one in a keyword.
    fn around(keyword: &str, schema: Value) -> Value {
        match keyword {
            "properties" | "patternProperties" | "dependentSchemas" => {
                json!({"type": "object", keyword: {"^a": schema}})
            }
            "prefixItems" | "anyOf" | "oneOf" | "allOf" => json!({keyword: [schema]}),
            _ => json!({keyword: schema}),
        }
    }

    /// Checks that a schema without references does not become much larger.
    fn check_size(schema: &Value) {
        let whole = json!({"properties": {"a": schema}});
        for accepted in [ToolSchemas::Any, ToolSchemas::FewKeywords] {
            let (size, before) = (
                completed(&whole, accepted).to_string().len(),
                whole.to_string().len(),
            );
            assert!(size < 5 * before, "{before} bytes became {size}: {schema}");
        }
    }

    /// Schemas with keywords of any kind of value.
    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = prop::sample::select(vec![
            json!(null),
            json!(true),
            json!(1),
            json!("string"),
            json!("object"),
            json!("#/$defs/a"),
            json!("#"),
            json!(["a", "b"]),
            json!([]),
            json!({}),
        ]);
        leaf.prop_recursive(4, 40, 6, |inner| {
            let words = prop::sample::select(vec![
                "type", "properties", "items", "anyOf", "oneOf", "allOf", "required", "enum", "$ref", "$defs", "a", "b",
                "exclusiveMinimum", "pattern", "additionalProperties", "not", "prefixItems",
            ]);
            prop_oneof![
                3 => prop::collection::btree_map(words, inner.clone(), 0..5).prop_map(|fields| json!(fields)),
                1 => prop::collection::vec(inner, 0..3).prop_map(Value::from),
            ]
        })
    }

    /// Schemas of objects with choices between objects.
    fn object_schemas() -> impl Strategy<Value = Value> {
        let value = prop::sample::select(vec![
            json!({"type": "string"}),
            json!({"type": "integer"}),
            json!({"type": ["integer", "null"]}),
            json!({"enum": ["x", "y"]}),
            json!({"const": "z"}),
            json!({"type": "array", "items": {"enum": [1, 2]}}),
            json!({"anyOf": [{"const": 3}, {"$ref": "#/$defs/D"}]}),
            json!({"$ref": "#/$defs/D"}),
            json!({"allOf": [{"$ref": "#/$defs/D"}]}),
        ]);
        let name = || prop::sample::select(vec!["a", "b", "c"]);
        let plain = (
            prop::collection::btree_map(name(), value, 0..3),
            prop::collection::btree_set(name(), 0..2),
            any::<bool>(),
        );
        let plain = plain.prop_map(|(properties, required, is_typed)| {
            let mut schema = Map::new();
            if is_typed {
                schema.insert("type".into(), "object".into());
            }
            if !properties.is_empty() {
                schema.insert("properties".into(), json!(properties));
            }
            if !required.is_empty() {
                schema.insert("required".into(), json!(required));
            }
            Value::Object(schema)
        });
        let level = |inner: BoxedStrategy<Value>| {
            let branches = prop::collection::vec(inner.clone(), 1..4);
            let word = prop::sample::select(vec!["anyOf", "oneOf", "allOf"]);
            let within = prop::option::of((name(), inner.clone()));
            let parts = (inner, prop::option::of((word, branches)), within);
            let level = parts.prop_map(|(mut schema, choice, within)| {
                if let Some((word, branches)) = choice {
                    schema[word] = branches.into();
                }
                if let Some((name, property)) = within {
                    schema["properties"][name] = property;
                }
                schema
            });
            level.boxed()
        };
        level(level(plain.boxed()))
    }

    /// A source of decisions.
    struct Decisions(Vec<u8>);

    impl Decisions {
        /// Returns a number below the limit.
        fn next(&mut self, limit: usize) -> usize {
            usize::from(self.0.pop().unwrap_or_default()) % limit.max(1)
        }
    }

    /// Returns a value, with only the fields that are named by the schema and by one branch of each choice; `None` if it does not
    /// fit these.
    fn example(root: &Value, schema: &Value, decisions: &mut Decisions) -> Option<Value> {
        let mut found = Value::Null;
        if let Some(constant) = schema.get("const") {
            found = constant.clone();
        } else if let Some(values) = schema["enum"].as_array() {
            found = values[decisions.next(values.len())].clone();
        } else if schema["type"] == "string" {
            found = "any".into();
        } else if schema["type"] == "integer" {
            found = 7.into();
        } else if schema["type"] == "array" {
            found = json!([example(root, &schema["items"], decisions)?]);
        } else if schema["type"].is_array() && decisions.next(2) == 0 {
            found = 8.into();
        }
        let mut fields = Map::new();
        let mut has_fields = is_of_object(schema);
        for (name, property) in named(&schema["properties"]) {
            if decisions.next(8) > 0 {
                fields.insert(name.clone(), example(root, property, decisions)?);
            }
        }
        let mut parts = Vec::from_iter(referred(root, schema));
        for word in ["anyOf", "oneOf"] {
            let branches = elements(&schema[word]);
            parts.extend(branches.get(decisions.next(branches.len())));
        }
        parts.extend(elements(&schema["allOf"]));
        for part in &parts {
            match example(root, part, decisions)? {
                Value::Object(more) => {
                    has_fields = true;
                    for (name, value) in more {
                        fields.entry(name).or_insert(value);
                    }
                }
                Value::Null => {}
                other => found = other,
            }
        }
        if has_fields && found.is_null() {
            found = fields.into();
        }
        parts.push(schema);
        let fits_all = parts.iter().all(|part| {
            let mut part = (*part).clone();
            part["$defs"] = root["$defs"].clone();
            fits(&found, &part)
        });
        fits_all.then_some(found)
    }

    /// Whether a value fits a schema.
    fn fits(value: &Value, schema: &Value) -> bool {
        let schema = schema.clone();
        Shape::new(schema).find_in(&value.to_string()).is_ok()
    }

    /// The keywords of schemas within one another.
    fn nested() -> impl Strategy<Value = Vec<&'static str>> {
        let keyword = prop::sample::select(vec![
            "properties",
            "patternProperties",
            "dependentSchemas",
            "items",
            "prefixItems",
            "additionalProperties",
            "not",
            "anyOf",
            "allOf",
        ]);
        prop::collection::vec(keyword, 0..24)
    }

    /// Checks what every API wants of a schema.
    fn check_schema(schema: &Value) -> Result<(), TestCaseError> {
        let fields = schema.as_object();
        prop_assert!(fields.is_some(), "{schema}");
        for (name, value) in fields.into_iter().flatten() {
            match name.as_str() {
                "$ref" | "$defs" | "allOf" => prop_assert!(false, "{schema}"),
                "type" => prop_assert!(types(value).as_ref() == Some(value), "{schema}"),
                "properties" => {
                    prop_assert!(value.is_object(), "{schema}");
                    for (_, property) in named(value) {
                        check_schema(property)?;
                    }
                }
                "items" => check_schema(value)?,
                "anyOf" | "oneOf" => {
                    prop_assert!(!schema["type"].is_string(), "{schema}");
                    let branches = value.as_array().map_or(&[][..], Vec::as_slice);
                    prop_assert!(!branches.is_empty(), "{schema}");
                    for branch in branches {
                        check_schema(branch)?;
                    }
                }
                "required" => {
                    let names = value.as_array().map_or(&[][..], Vec::as_slice);
                    prop_assert!(!names.is_empty(), "{schema}");
                    for name in names {
                        prop_assert!(
                            schema["properties"]
                                .get(name.as_str().unwrap_or_default())
                                .is_some(),
                            "{schema}"
                        );
                    }
                }
                _ => (),
            }
        }
        let is_array = schema["type"] == "array";
        prop_assert!(!is_array || schema["items"].is_object(), "{schema}");
        Ok(())
    }

    proptest! {
        #[test]
        fn any_tool_schema_of_a_server_becomes_one_that_every_api_accepts(schema in schemas()) {
            for accepted in [ToolSchemas::Any, ToolSchemas::FewKeywords] {
                let found = completed(&schema, accepted);
                prop_assert!(is_of_object(&found) && found["properties"].is_object());
                check_schema(&found)?;
            }
        }

        #[test]
        fn arguments_that_fit_a_schema_fit_what_it_becomes(
            mut schema in object_schemas(),
            choices in prop::collection::vec(prop::collection::vec(any::<u8>(), 24), 6),
        ) {
            schema["$defs"] = json!({"D": {"type": "object", "properties": {"d": {"enum": ["v", "w"]}}, "required": ["d"]}});
            for choices in choices {
                let found = example(&schema, &schema, &mut Decisions(choices));
                let Some(arguments) = found.filter(Value::is_object) else {
                    continue;
                };
                for accepted in [ToolSchemas::Any, ToolSchemas::PlainArguments, ToolSchemas::FewKeywords] {
                    let found = completed(&schema, accepted);
                    prop_assert!(fits(&arguments, &found), "{arguments} fits {schema}, but not {found}");
                }
            }
        }

        #[test]
        fn no_nesting_of_keywords_makes_a_tool_schema_much_larger(keywords in nested()) {
            let mut schema = json!({"type": "string", "pattern": "\\p{L}", "description": "\"d\""});
            for keyword in keywords {
                schema = around(keyword, schema);
            }
            check_size(&schema);
        }
    }
}
