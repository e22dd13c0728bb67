//! What a server says about itself and its tools (pure).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::headers;
use crate::secret::{self, Secrets};
use crate::text::one_line::beginning;

/// The most characters of a tool's description.
const MAX_DESCRIPTION: usize = 4_000;

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedTool {
    /// The server's own name for it.
    pub name: String,
    pub description: String,
    /// A JSON Schema of an object. It is shared, because its values may take much memory.
    pub schema: Arc<Value>,
    /// Whether a call changes nothing: a command's section says so, or a server of its own tool.
    pub reads: bool,
}

/// What a server does so that some of its tools are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeftOutTools {
    TooManyTools,
    TooManyPages,
    RepeatedPage,
}

/// A server's description of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
    /// The revision of the protocol.
    pub revision: String,
    /// How a model should use the server.
    pub instructions: String,
    pub tools: Vec<ListedTool>,
    /// What the server does so that some of its tools are not among these, for a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOutTools>,
}

impl ServerInfo {
    /// Returns a server without tools so far, from its answer to the handshake or to the question what it is.
    pub fn new(revision: &str, answer: &Value) -> ServerInfo {
        let mut server = &answer["serverInfo"];
        if server.is_null() {
            server = &answer["_meta"]["io.modelcontextprotocol/serverInfo"];
        }
        ServerInfo {
            name: string(&server["name"]),
            version: string(&server["version"]),
            revision: revision.to_owned(),
            instructions: string(&answer["instructions"]),
            tools: Vec::new(),
            left_out: None,
        }
    }

    /// Removes the keys that the server knows. Neither the model nor a file gets them.
    pub fn redact(&mut self, keys: &Secrets) {
        let ServerInfo {
            name,
            version,
            revision,
            instructions,
            tools,
            left_out: _,
        } = self;
        for text in [name, version, revision, instructions] {
            *text = secret::redact(text, keys);
        }
        for tool in tools {
            // Its name and those of its arguments stay: a call needs them. Tools with a key there are renamed or omitted later.
            tool.description = redact_description(&tool.description, keys);
            redact_schema(Arc::make_mut(&mut tool.schema), SchemaPlace::Schema, keys);
        }
    }

    /// Cuts long descriptions of tools. Keys are removed before: the beginning of one that is cut is only found at the very end of
    /// a text, where the ellipsis would be.
    pub fn cut_descriptions(&mut self) {
        for tool in &mut self.tools {
            tool.description = beginning(&tool.description, MAX_DESCRIPTION);
        }
    }
}

impl ListedTool {
    /// Returns the tool that an entry of a list means, if it is one that q can call.
    pub fn read(mut entry: Value) -> Option<ListedTool> {
        let name = string(&entry["name"]);
        let needs_task = entry["execution"]["taskSupport"] == "required";
        let mut schema = json!({"type": "object"});
        if entry["inputSchema"].is_object() {
            schema = entry["inputSchema"].take();
        }
        if name.is_empty() || needs_task || !headers::are_valid(&schema) {
            return None;
        }
        let mut description = string(&entry["description"]);
        if description.is_empty() {
            description = string(&entry["title"]);
        }
        Some(ListedTool {
            name,
            description,
            schema: Arc::new(schema),
            // By default, a tool may change anything.
            reads: entry["annotations"]["readOnlyHint"] == true,
        })
    }
}

/// Removes keys from a description. One from a list that was kept has been cut, and what is a key now may have been none then.
fn redact_description(description: &str, keys: &Secrets) -> String {
    match description.strip_suffix('…') {
        Some(beginning) => secret::redact(beginning, keys) + "…",
        None => secret::redact(description, keys),
    }
}

/// The meaning of a value in a schema, by where it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPlace {
    /// A schema, or what one of its keywords says.
    Schema,
    /// Schemas by their names, which are no keywords.
    Named,
    /// A value that an argument may have, or a part of one.
    Argument,
}

impl SchemaPlace {
    /// Returns what the value of this field means.
    fn of_field(self, name: &str) -> SchemaPlace {
        match (self, name) {
            (SchemaPlace::Argument, _) | (SchemaPlace::Schema, "enum" | "const" | "default") => {
                SchemaPlace::Argument
            }
            (
                SchemaPlace::Schema,
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
            ) => SchemaPlace::Named,
            _ => SchemaPlace::Schema,
        }
    }
}

/// Removes keys from what a schema says. The names of properties stay, also in the list of those that are required. Of the values
/// that an argument may have only what is clearly a key goes: a call needs the others.
fn redact_schema(schema: &mut Value, place: SchemaPlace, keys: &Secrets) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name != "required" || !value.is_array() {
                    redact_schema(value, place.of_field(name), keys);
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                redact_schema(value, place, keys);
            }
        }
        Value::String(text) if place == SchemaPlace::Argument => {
            *text = secret::redact_name(text, keys);
        }
        Value::String(text) => *text = secret::redact(text, keys),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a schema has a name of this kind: of a property, or of one that is required.
pub fn has_name(schema: &Value, is_of_kind: &dyn Fn(&str) -> bool) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let mut required = value.as_array().into_iter().flatten();
            let is_required = |one: &Value| one.as_str().is_some_and(is_of_kind);
            let requires = name == "required" && required.any(is_required);
            is_of_kind(name) || requires || has_name(value, is_of_kind)
        }),
        Value::Array(values) => values.iter().any(|value| has_name(value, is_of_kind)),
        _ => false,
    }
}

/// Returns a string in a message; empty for any other value.
fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use crate::text::table::rows;

    /// A server whose only tool has this description, as its list has it.
    fn server(description: &str) -> ServerInfo {
        let entry = json!({"name": "a", "description": description});
        ServerInfo {
            tools: Vec::from_iter(ListedTool::read(entry)),
            ..ServerInfo::default()
        }
    }

    #[test]
    fn a_long_description_of_a_tool_is_cut() {
        for (length, expected) in [(4_000, 4_000), (4_001, 4_000), (9_000, 4_000)] {
            let mut about = server(&"ä".repeat(length));
            about.cut_descriptions();
            let description = &about.tools[0].description;
            assert_eq!(description.chars().count(), expected, "{length}");
            assert_eq!(description.ends_with('…'), length > 4_000, "{length}");
        }
    }

    #[test]
    fn a_key_is_removed_from_a_description_wherever_that_is_cut() {
        let key = "tk-0123456789-abcdefghij";
        let keys = Secrets::from_iter([&Secret::new(key)]);
        for length in [0, 3_970, 3_980, 3_990, 3_999, 4_000] {
            let words = "x".repeat(length);
            let mut about = server(&format!("{words} {key} {words}"));
            about.redact(&keys);
            about.cut_descriptions();
            let description = &about.tools[0].description;
            assert!(!description.contains("tk-"), "{length}");
        }
        // It was no key when the list was kept.
        let cut = format!("{} {}…", "x".repeat(3_980), &key[..18]);
        let mut kept = server(&cut);
        kept.redact(&keys);
        let description = &kept.tools[0].description;
        assert!(description.ends_with("x [redacted]…"), "{description}");
    }

    #[test]
    fn a_value_that_an_argument_may_have_is_removed_only_if_it_is_clearly_a_key() {
        // Of the field of an argument's schema, before and after. The keys are a word and one with digits.
        let table = r#"
            "enum": ["postgres", "template1"] | "enum": ["postgres", "template1"]
            "default": "postgres" | "default": "postgres"
            "const": "postgres" | "const": "postgres"
            "default": {"description": ["postgres"]} | "default": {"description": ["postgres"]}
            "items": {"enum": ["postgres"]} | "items": {"enum": ["postgres"]}
            "anyOf": [{"const": "postgres"}] | "anyOf": [{"const": "postgres"}]
            "enum": ["tk-0123456789", "a"] | "enum": ["[redacted]", "a"]
            "default": "tk-0123456789" | "default": "[redacted]"
            "description": "of postgres" | "description": "of [redacted]"
            "title": "postgres" | "title": "[redacted]"
            "properties": {"default": {"description": "postgres"}} | "properties": {"default": {"description": "[redacted]"}}
            "$defs": {"enum": {"title": "postgres"}} | "$defs": {"enum": {"title": "[redacted]"}}
            "required": ["postgres"] | "required": ["postgres"]
        "#;
        let keys = ["postgres", "tk-0123456789"].map(Secret::new);
        let keys = Secrets::from_iter(&keys);
        for [before, after] in rows(table) {
            let schema = |field: &str| -> Value {
                let schema = format!(r#"{{"properties": {{"a": {{{field}}}}}}}"#);
                serde_json::from_str(&schema).expect("JSON")
            };
            let entry = json!({"name": "a", "inputSchema": schema(before)});
            let mut about = ServerInfo {
                tools: Vec::from_iter(ListedTool::read(entry)),
                ..ServerInfo::default()
            };
            about.redact(&keys);
            assert_eq!(*about.tools[0].schema, schema(after), "{before}");
        }
    }

    #[test]
    fn a_tool_without_a_description_is_described_by_its_title() {
        for (description, expected) in [("It adds.", "It adds."), ("", "Sum")] {
            let entry = json!({"name": "a", "title": "Sum", "description": description});
            let tool = ListedTool::read(entry).expect("a tool");
            assert_eq!(tool.description, expected);
        }
    }

    #[test]
    fn tools_that_cannot_be_called_are_left_out() {
        let task = |support: &str| json!({"name": support, "execution": {"taskSupport": support}});
        let with_header = |name: &str| {
            let schema = json!({"properties": {"a": {"type": "string", "x-mcp-header": name}}});
            json!({"name": "a", "inputSchema": schema})
        };
        for (entry, is_listed) in [
            (task("required"), false),
            (task("optional"), true),
            (json!({"name": ""}), false),
            (json!({}), false),
            (json!(5), false),
            (json!({"name": "bare"}), true),
            (with_header("A"), true),
            (with_header("A B"), false),
        ] {
            assert_eq!(
                ListedTool::read(entry.clone()).is_some(),
                is_listed,
                "{entry}"
            );
        }
    }

    #[test]
    fn a_tool_counts_as_reading_only_if_its_read_only_hint_is_true() {
        for [reads, annotations] in rows(
            r#"
            yes | {"readOnlyHint": true}
            yes | {"readOnlyHint": true, "destructiveHint": true, "openWorldHint": true}
            no | {"readOnlyHint": "true"}
            no | {"readOnlyHint": false, "destructiveHint": false}
            no | {"openWorldHint": false}
            no | null
        "#,
        ) {
            let tool = format!(r#"{{"name": "a", "annotations": {annotations}}}"#);
            let tool: Value = serde_json::from_str(&tool).expect("JSON");
            let tool = ListedTool::read(tool).expect("a tool");
            assert_eq!(tool.reads, reads == "yes", "{annotations}");
        }
    }
}
