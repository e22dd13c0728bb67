//! The keywords of a schema by themselves: which values they may have, which ones are missing, and which ones an API does not
//! take (pure).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::shape::TYPES;

/// The keywords that Gemini knows.
const GEMINI_KEYWORDS: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "default",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
];

/// The limits from here on become words, because llama.cpp repeats a rule of its grammar as often, and rejects the request.
const MANY: u64 = 2_000;

/// The keywords of a schema that is being made.
pub type Keywords = Map<String, Value>;

/// Returns the value of a keyword that has no schemas, if it is one that it may have. Other keywords may have any.
pub fn checked(name: &str, value: &Value) -> Option<Value> {
    let is_valid = match name {
        "type" => return types(value),
        "enum" => {
            let values = without_twins(value.as_array()?.clone());
            return (!values.is_empty()).then_some(values.into());
        }
        "required" => {
            let names = value.as_array()?.iter();
            return Some(names.filter(|one| one.is_string()).cloned().collect());
        }
        "title" | "description" | "format" | "pattern" | "contentEncoding" | "contentMediaType" => {
            value.is_string()
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => value.is_u64(),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "nullable" => value.is_boolean(),
        "examples" => value.is_array(),
        "dependentRequired" | "dependencies" => value.is_object(),
        _ => true,
    };
    is_valid.then(|| value.clone())
}

/// Returns values, each only once.
pub fn without_twins(mut values: Vec<Value>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    values.retain(|value| seen.insert(value.to_string()));
    values
}

/// Returns the types that JSON Schema knows. Some servers write them in capitals, and some have `any` among them.
pub fn types(value: &Value) -> Option<Value> {
    let known = |kind: &Value| {
        let name = kind.as_str()?.to_ascii_lowercase();
        TYPES.contains(&name.as_str()).then_some(name)
    };
    let Value::Array(list) = value else {
        return known(value).map(Value::from);
    };
    let mut kinds = Vec::new();
    for one in list {
        // Next to an unknown one, the others say nothing.
        let kind = known(one)?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    match kinds.len() {
        0 => None,
        1 => kinds.pop().map(Value::from),
        _ => Some(kinds.into()),
    }
}

/// Returns a value, if it is a number.
pub fn number(value: &Value) -> Option<Value> {
    value.is_number().then(|| value.clone())
}

/// Adds the type and the items that a schema lacks, and removes from `required` what is no property.
pub fn complete(schema: &mut Keywords) {
    if !schema.contains_key("type")
        && !schema.contains_key("anyOf")
        && !schema.contains_key("oneOf")
        && let Some(kind) = type_by_keywords(schema)
    {
        schema.insert("type".into(), kind.into());
    }
    if has_type(schema, "array") && !schema.contains_key("items") {
        schema.insert("items".into(), json!({}));
    }
    let Some(Value::Array(mut required)) = schema.shift_remove("required") else {
        return;
    };
    let mut seen = BTreeSet::new();
    required.retain(|name| {
        let name = name.as_str().unwrap_or_default();
        let properties = schema.get("properties");
        let is_property = properties.is_some_and(|known| known.get(name).is_some());
        is_property && seen.insert(name.to_owned())
    });
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
}

/// Returns the type that other keywords show.
pub fn type_by_keywords(schema: &Keywords) -> Option<&'static str> {
    let constant = schema.get("const").map(std::slice::from_ref);
    let values = schema
        .get("enum")
        .and_then(Value::as_array)
        .map(Vec::as_slice);
    let has_text = |all: &[Value]| all.iter().all(Value::is_string);
    if schema.contains_key("properties") {
        Some("object")
    } else if schema.contains_key("items") || schema.contains_key("prefixItems") {
        Some("array")
    } else if constant.or(values).is_some_and(has_text) {
        Some("string")
    } else {
        None
    }
}

fn has_type(schema: &Keywords, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == wanted,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
        _ => false,
    }
}

/// Removes the keywords that an API does not take, and returns them; `few_keywords`: it takes only those that Gemini knows.
pub fn take_refused(schema: &mut Keywords, few_keywords: bool) -> Vec<(String, Value)> {
    let mut refused = Vec::new();
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && (few_keywords || !is_plain_pattern(pattern))
    {
        refused.extend(schema.shift_remove_entry("pattern"));
    }
    for name in ["minLength", "maxLength", "minItems", "maxItems"] {
        let limit = schema.get(name).and_then(Value::as_u64);
        if limit.is_some_and(|limit| limit >= MANY) {
            refused.extend(schema.shift_remove_entry(name));
        }
    }
    if few_keywords {
        refused.extend(keep_few(schema));
    }
    refused
}

/// Whether every API takes a pattern: llama.cpp wants its ends and does not repeat often, and none of the others takes everything.
fn is_plain_pattern(pattern: &str) -> bool {
    let has_ends = pattern.starts_with('^') && pattern.ends_with('$');
    let is_odd = |after: &str| {
        after.starts_with(|next: char| next.is_ascii_digit() || "pPbBAzZkuG".contains(next))
    };
    let has_odd_escape = pattern.split('\\').skip(1).any(is_odd);
    let mut numbers = pattern.split(['{', ',', '}']);
    let repeats_often =
        numbers.any(|number| number.parse().is_ok_and(|number: u64| number >= MANY));
    has_ends && !pattern.contains("(?") && !has_odd_escape && !repeats_often
}

/// Leaves the keywords that Gemini knows, and returns the others.
fn keep_few(schema: &mut Keywords) -> Vec<(String, Value)> {
    if let Some(value) = schema.shift_remove("const") {
        schema.insert("enum".into(), json!([value]));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| {
            value.is_number() || value.as_str().is_some_and(|text| !text.is_empty())
        });
        if values.is_empty() {
            schema.shift_remove("enum");
        }
    }
    let mut others = Vec::new();
    schema.retain(|name, value| {
        let is_known = GEMINI_KEYWORDS.contains(&name.as_str());
        if !is_known {
            others.push((name.clone(), value.take()));
        }
        is_known
    });
    others
}
