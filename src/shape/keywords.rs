//! Reads keywords of a JSON Schema (pure).

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The types of JSON Schema.
pub const TYPES: &[&str] = &[
    "object", "array", "string", "integer", "number", "boolean", "null",
];

/// Whether a schema has any of these keywords.
pub fn has_any(schema: &Value, words: &[&str]) -> bool {
    words.iter().any(|word| schema.get(word).is_some())
}

/// Returns the names in `required`.
pub fn required(schema: &Value) -> impl Iterator<Item = &str> {
    elements(&schema["required"])
        .iter()
        .filter_map(Value::as_str)
}

/// Returns the fields of an object, such as the schemas in `properties`; none if the value is not an object.
pub fn named(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

/// Returns the elements of a list; none if the value is not a list.
pub fn elements(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Returns what the reference of a schema refers to, if it is one within the same document.
pub fn referred<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    referred_by(root, schema["$ref"].as_str()?)
}

/// Returns what a reference refers to, if it is one within the same document by its place, such as `#/$defs/Pet`. An empty one
/// leads to all of it.
pub fn referred_by<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let encoded = if reference.is_empty() {
        reference
    } else {
        reference.strip_prefix('#')?
    };
    let pointer = percent_decode_str(encoded).decode_utf8().ok()?;
    root.pointer(&pointer)
}

/// Returns the types that a value of this schema may have; none if it may have any.
pub fn types_in(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if has_any(schema, &["properties", "required"]) => vec!["object"],
        _ => Vec::new(),
    }
}

/// Whether a schema is that of an object.
pub fn is_of_object(schema: &Value) -> bool {
    types_in(schema).contains(&"object")
}
