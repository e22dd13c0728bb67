//! Puts the schemas of tools into Gemini's older form, for servers that do not know the field for JSON Schema (pure).

use serde_json::{Map, Value, json};

use crate::provider::schema::add_rules;

/// Returns a schema in the keywords that the field `parameters` takes, which are a part of those of OpenAPI. Rules in other keywords
/// move into the description, where the model at least reads them.
pub fn older_schema(schema: &Value) -> Value {
    let mut older = Map::new();
    let mut rules = Vec::new();
    for (name, value) in schema.as_object().into_iter().flatten() {
        match name.as_str() {
            "type" => add_types(value, &mut older),
            "anyOf" | "oneOf" => add_choices(value, &mut older),
            "items" => {
                older.insert("items".to_owned(), older_schema(value));
            }
            "properties" => add_properties(value, &mut older),
            "enum" if are_texts(value) => {
                older.insert("enum".to_owned(), value.clone());
            }
            "description" | "required" | "minItems" | "maxItems" | "minimum" | "maximum" => {
                older.insert(name.clone(), value.clone());
            }
            // They say nothing to the model.
            "title" => {}
            "additionalProperties" if value.is_boolean() => {}
            _ => rules.push((name.clone(), value.clone())),
        }
    }
    add_rules(&mut older, &rules);
    Value::Object(older)
}

fn are_texts(values: &Value) -> bool {
    let mut values = values.as_array().into_iter().flatten();
    values.all(Value::is_string)
}

/// Adds the properties of an object. The API rejects an empty list of them.
fn add_properties(properties: &Value, older: &mut Map<String, Value>) {
    let mut added = Map::new();
    for (name, property) in properties.as_object().into_iter().flatten() {
        added.insert(name.clone(), older_schema(property));
    }
    if !added.is_empty() {
        older.insert("properties".to_owned(), added.into());
    }
}

/// Adds the types. The API takes one, and has another keyword for null.
fn add_types(types: &Value, older: &mut Map<String, Value>) {
    match types {
        Value::Array(types) => {
            let choices = types.iter().map(|kind| json!({"type": kind}));
            add_choices(&choices.collect(), older);
        }
        kind => {
            older.insert("type".to_owned(), kind.clone());
        }
    }
}

/// Adds the schemas of which one holds. That of null becomes a keyword, and one that is left alone needs no choice.
fn add_choices(choices: &Value, older: &mut Map<String, Value>) {
    let mut added = Vec::new();
    for choice in choices.as_array().into_iter().flatten() {
        if choice["type"] == "null" {
            older.insert("nullable".to_owned(), true.into());
        } else {
            added.push(older_schema(choice));
        }
    }
    if let [Value::Object(only)] = added.as_slice() {
        for (name, value) in only {
            // What is said around the choice comes first.
            older.entry(name.clone()).or_insert_with(|| value.clone());
        }
    } else if !added.is_empty() {
        older.insert("anyOf".to_owned(), added.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_has_only_the_keywords_of_the_older_form() {
        for (schema, expected) in [
            (
                json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "title": "N"}}, "required": ["n"], "additionalProperties": false}),
                json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}),
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                json!({"type": "object", "description": "Rules: additionalProperties {\"type\":\"string\"}"}),
            ),
            (
                json!({"type": ["string", "null"], "format": "date", "description": "a day"}),
                json!({"type": "string", "nullable": true, "description": "a day\n\nRules: format \"date\""}),
            ),
            (
                json!({"type": ["string", "integer"]}),
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            ),
            (
                json!({"anyOf": [{"type": "string", "description": "inner"}, {"type": "null"}], "description": "outer"}),
                json!({"type": "string", "nullable": true, "description": "outer"}),
            ),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]}),
                json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]}),
            ),
            (
                json!({"type": "string", "enum": ["a", "b"]}),
                json!({"type": "string", "enum": ["a", "b"]}),
            ),
            (
                json!({"type": "integer", "enum": [1, 2], "default": 1}),
                json!({"type": "integer", "description": "Rules: enum [1,2]; default 1"}),
            ),
            (
                json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {}}),
                json!({"type": "array", "items": {}, "description": "Rules: prefixItems [{\"type\":\"string\"}]"}),
            ),
            (
                json!({"type": "object", "properties": {}}),
                json!({"type": "object"}),
            ),
            (json!(true), json!({})),
        ] {
            assert_eq!(older_schema(&schema), expected, "{schema}");
        }
    }
}
