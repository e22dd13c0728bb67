//! The headers in which a tool wants some of its arguments, too, so that proxies can see them (pure).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderName;
use serde_json::Value;

/// The key of a schema that names a header for its value.
const HEADER: &str = "x-mcp-header";

/// The beginning of a header's value that is encoded.
const ENCODED: &str = "=?base64?";

/// Whether the headers that a schema asks for can be sent: their names are valid and differ, and their values are no
/// objects, arrays or fractions. The specification forbids clients to call other tools.
pub fn are_valid(schema: &Value) -> bool {
    let mut names: Vec<HeaderName> = Vec::new();
    for property in mirrored_properties(schema) {
        let kind = property["type"].as_str().unwrap_or_default();
        let has_valid_type = ["string", "integer", "boolean"].contains(&kind);
        let name = property[HEADER].as_str().unwrap_or_default();
        match name.parse() {
            Ok(name) if has_valid_type && !names.contains(&name) => names.push(name),
            _ => return false,
        }
    }
    true
}

/// Returns the properties of a schema, at any depth, that name a header.
fn mirrored_properties(schema: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    for (_, property) in schema["properties"].as_object().into_iter().flatten() {
        if property.get(HEADER).is_some() {
            found.push(property);
        }
        found.extend(mirrored_properties(property));
    }
    found
}

/// Returns the arguments that a tool's schema wants in headers.
pub fn mirrored(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let argument = &arguments[name];
        let text = match argument {
            Value::String(text) => Some(value(text)),
            Value::Number(_) | Value::Bool(_) => Some(argument.to_string()),
            _ => None,
        };
        if let Some(header) = property[HEADER].as_str()
            && let Some(text) = text
        {
            headers.push((format!("mcp-param-{header}"), text));
        } else {
            headers.extend(mirrored(property, argument));
        }
    }
    headers
}

/// Returns a text as the value of a header, encoded if it cannot be there as it is.
pub fn value(text: &str) -> String {
    let mut bytes = text.bytes();
    let is_printable = bytes.all(|byte| matches!(byte, b' '..=b'~'));
    let is_trimmed = text.trim() == text;
    if is_printable && is_trimmed && !text.starts_with(ENCODED) {
        return text.to_owned();
    }
    let encoded = BASE64_STANDARD.encode(text);
    format!("{ENCODED}{encoded}?=")
}
