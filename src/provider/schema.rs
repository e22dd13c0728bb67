//! Puts the JSON Schemas of answers into the form that Anthropic accepts (pure).

use serde_json::{Map, Value};

use crate::shape;

/// The schemas that references refer to.
const DEFINITIONS: &[&str] = &["$defs", "definitions"];

/// The formats of text that Anthropic accepts in the schema of an answer.
const ACCEPTED_FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Returns the schema of an answer in the keywords that Anthropic accepts, as its own libraries send it. Rules in other keywords
/// move into the description, where the model at least reads them.
pub fn with_rules_in_words(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let is_reference = fields.contains_key("$ref");
    let mut words = Map::new();
    let mut rules = Vec::new();
    for (name, value) in fields {
        let mut name = name.as_str();
        // A reference may only be accompanied by definitions.
        if is_reference && name != "$ref" && !DEFINITIONS.contains(&name) {
            continue;
        }
        let value = match name {
            // The first is set below. The others say nothing about the answer.
            "additionalProperties" | "$schema" | "$id" | "$comment" => continue,
            "items" if value.is_object() => with_rules_in_words(value),
            "properties" | "$defs" | "definitions" | "anyOf" | "allOf" => {
                each_with_rules_in_words(value)
            }
            "oneOf" => {
                name = "anyOf";
                each_with_rules_in_words(value)
            }
            "type" | "enum" | "const" | "required" | "title" | "description" | "$ref" => {
                value.clone()
            }
            "format" if ACCEPTED_FORMATS.iter().any(|format| value == format) => value.clone(),
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => value.clone(),
            _ => {
                rules.push((name.to_owned(), value.clone()));
                continue;
            }
        };
        words.insert(name.to_owned(), value);
    }
    add_rules(&mut words, &rules);
    let mut words = Value::Object(words);
    // The API demands that an object forbids other properties.
    if shape::is_of_object(&words) {
        words["additionalProperties"] = false.into();
    }
    words
}

/// Adds keywords that an API does not know to the description of a schema.
pub fn add_rules(schema: &mut Map<String, Value>, rules: &[(String, Value)]) {
    let rules = rules.iter();
    let rules = Vec::from_iter(rules.map(|(name, value)| format!("{name} {value}")));
    if !rules.is_empty() {
        add_words(schema, &format!("Rules: {}", rules.join("; ")));
    }
}

/// Adds words to the description of a schema.
pub fn add_words(schema: &mut Map<String, Value>, words: &str) {
    let description = match schema.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text}\n\n{words}"),
        None => words.to_owned(),
    };
    schema.insert("description".into(), description.into());
}

/// Returns the schemas of a list, or under names, each with its rules in words.
fn each_with_rules_in_words(schemas: &Value) -> Value {
    match schemas {
        Value::Array(list) => list.iter().map(with_rules_in_words).collect(),
        Value::Object(named) => {
            let named = named.iter();
            named
                .map(|(name, schema)| (name.clone(), with_rules_in_words(schema)))
                .collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of a table: what a case is, a schema, and what becomes of it, each on a line of its own.
    fn cases(table: &str) -> Vec<(&str, Value, Value)> {
        let lines: Vec<&str> = table.trim().lines().map(str::trim).collect();
        let json = |line: &str| serde_json::from_str(line).expect(line);
        let cases = lines.chunks_exact(3);
        cases
            .map(|case| (case[0], json(case[1]), json(case[2])))
            .collect()
    }

    #[test]
    fn schema_rules_that_anthropic_rejects_become_words_of_the_description() {
        let table = r##"
            what is taken
            {"type": "string", "title": "T", "enum": ["a"], "const": "a", "format": "date"}
            {"type": "string", "title": "T", "enum": ["a"], "const": "a", "format": "date"}
            an object
            {"$schema": "x", "$id": "y", "$comment": "z", "type": "object", "required": ["a"], "properties": {"a": {"type": "object"}}, "additionalProperties": {"type": "string"}}
            {"type": "object", "required": ["a"], "additionalProperties": false, "properties": {"a": {"type": "object", "additionalProperties": false}}}
            an object or nothing
            {"type": ["object", "null"], "additionalProperties": true}
            {"type": ["object", "null"], "additionalProperties": false}
            numbers, after the description
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "description": "How many."}
            {"type": "integer", "description": "How many.\n\nRules: minimum 1; exclusiveMaximum 9"}
            text
            {"type": "string", "maxLength": 5, "pattern": "^a\"", "format": "regex"}
            {"type": "string", "description": "Rules: maxLength 5; pattern \"^a\\\"\"; format \"regex\""}
            a list that may be empty
            {"type": "array", "minItems": 0, "items": {"type": "object"}}
            {"type": "array", "minItems": 0, "items": {"type": "object", "additionalProperties": false}}
            a schema for each item
            {"type": "array", "items": [{"type": "string"}]}
            {"type": "array", "description": "Rules: items [{\"type\":\"string\"}]"}
            a list of at least two
            {"type": "array", "minItems": 2, "uniqueItems": true, "items": {"minLength": 1}}
            {"type": "array", "items": {"description": "Rules: minLength 1"}, "description": "Rules: minItems 2; uniqueItems true"}
            one of several
            {"oneOf": [{"type": "null"}, {"multipleOf": 2}]}
            {"anyOf": [{"type": "null"}, {"description": "Rules: multipleOf 2"}]}
            all of several
            {"allOf": [{"minimum": 1}]}
            {"allOf": [{"description": "Rules: minimum 1"}]}
            references, which stand alone
            {"$ref": "#/$defs/A", "title": "T", "type": "object", "$defs": {"A": {"minimum": 1}}, "definitions": {"$ref": {"$ref": "#"}}}
            {"$ref": "#/$defs/A", "$defs": {"A": {"description": "Rules: minimum 1"}}, "definitions": {"$ref": {"$ref": "#"}}}
            names that look like words of JSON Schema
            {"properties": {"minimum": {}, "$schema": true}, "default": {}}
            {"properties": {"minimum": {}, "$schema": true}, "additionalProperties": false, "description": "Rules: default {}"}
        "##;
        for (case, schema, cleaned) in cases(table) {
            assert_eq!(with_rules_in_words(&schema), cleaned, "{case}");
        }
    }
}
