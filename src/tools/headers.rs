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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_tool_whose_headers_cannot_be_sent_is_not_called() {
        // The properties of a schema, and whether their headers can be sent.
        let table = r#"
            {} | yes
            {"a": {"type": "object"}} | yes
            {"a": {"type": "string", "x-mcp-header": "A"}} | yes
            {"a": {"type": "integer", "x-mcp-header": "A"}, "b": {"type": "boolean", "x-mcp-header": "B"}} | yes
            {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}} | no
            {"a": {"type": "object", "x-mcp-header": "A"}} | no
            {"a": {"type": "array", "x-mcp-header": "A"}} | no
            {"a": {"type": "number", "x-mcp-header": "A"}} | no
            {"a": {"x-mcp-header": "A"}} | no
            {"a": {"type": "string", "x-mcp-header": ""}} | no
            {"a": {"type": "string", "x-mcp-header": "a b"}} | no
            {"a": {"type": "string", "x-mcp-header": "a\nb"}} | no
            {"a": {"type": "string", "x-mcp-header": "a:b"}} | no
            {"a": {"type": "string", "x-mcp-header": "é"}} | no
            {"x-mcp-header": {"type": "string"}} | yes
            {"a": {"type": "string", "x-mcp-header": 7}} | no
            {"a": {"type": "object", "properties": {"b": {"type": "array", "x-mcp-header": "B"}}}} | no
            {"a": {"type": "string", "x-mcp-header": "A", "properties": {"b": {"type": "string", "x-mcp-header": "A"}}}} | no
        "#;
        for [properties, valid] in rows(table) {
            let properties: Value = serde_json::from_str(properties).expect("JSON");
            let schema = json!({"properties": properties});
            assert_eq!(are_valid(&schema), valid == "yes", "{schema}");
        }
    }

    #[test]
    fn arguments_that_a_schema_wants_in_headers_are_there_as_text() {
        let schema = json!({"properties": {
            "a": {"type": "string", "x-mcp-header": "A"},
            "b": {"type": "integer", "x-mcp-header": "B"},
            "c": {"type": "object", "properties": {"d": {"type": "boolean", "x-mcp-header": "D"}}},
            "e": {"type": "string"},
        }});
        let table = r#"
            {} | -
            {"e": "x"} | -
            {"a": null, "b": [1], "c": "x"} | -
            {"a": "x"} | mcp-param-A: x
            {"a": "x\ny"} | mcp-param-A: =?base64?eAp5?=
            {"a": "x", "b": -7, "c": {"d": true}} | mcp-param-A: x, mcp-param-B: -7, mcp-param-D: true
        "#;
        for [arguments, expected] in rows(table) {
            let arguments: Value = serde_json::from_str(arguments).expect("JSON");
            let headers = mirrored(&schema, &arguments);
            let pairs = headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}"));
            assert_eq!(Vec::from_iter(pairs).join(", "), expected, "{arguments}");
        }
    }

    #[test]
    fn a_text_that_a_header_cannot_have_is_encoded() {
        for (text, expected) in [
            ("", ""),
            ("a b~", "a b~"),
            (" a", "=?base64?IGE=?="),
            ("a ", "=?base64?YSA=?="),
            ("a\tb", "=?base64?YQli?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
            ("a =?base64?x?=", "a =?base64?x?="),
        ] {
            assert_eq!(value(text), expected, "{text:?}");
        }
    }
}
