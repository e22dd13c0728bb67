//! Reads the short form of fields, such as `name, age int, mood good|bad: how they feel`, which stands for a JSON Schema
//! (pure).

use serde_json::{Map, Value, json};

/// The types and their names. Of an answer, a field has no path.
const KINDS: [(&str, Kind); 6] = [
    ("str", Kind::Text),
    ("int", Kind::Integer),
    ("float", Kind::Number),
    ("bool", Kind::Boolean),
    ("list", Kind::List),
    ("path", Kind::Path),
];

/// What fields describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The answer of a model.
    Answer,
    /// The arguments of a command. They may be paths, and have defaults.
    Arguments,
}

/// A field: `NAME TYPE`, and what else is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    /// `NAME?`: the field may be missing.
    pub is_optional: bool,
    /// `= VALUE`: what a missing field counts as.
    pub default: Option<Value>,
    /// Empty if there is none.
    description: String,
}

/// What the value of a field is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    /// A list of texts.
    List,
    /// A file; for a model it is a text.
    Path,
    /// One of these texts.
    Choice(Vec<String>),
}

impl Field {
    /// A text that must be given.
    pub fn text(name: &str) -> Field {
        Field {
            name: name.to_owned(),
            kind: Kind::Text,
            is_optional: false,
            default: None,
            description: String::new(),
        }
    }

    /// Reads a field such as `tags list: what they like`.
    fn parse(text: &str, purpose: Purpose) -> Result<Field, String> {
        let (head, default, description) = parts(text);
        let mut words = head.split_whitespace();
        let word = words.next().unwrap_or_default();
        let (name, is_optional) = match word.strip_suffix('?') {
            Some(name) => (name, true),
            None => (word, false),
        };
        if !is_name(name) {
            return Err(format!(
                "“{name}” is not the name of a field, which has letters, digits, _ and -"
            ));
        }
        let kind = Kind::parse(name, words.next().unwrap_or("str"), purpose)?;
        if let Some(more) = words.next() {
            return Err(format!(
                "“{more}” comes after the type of “{name}”; a description comes after a colon"
            ));
        }
        let mut field = Field {
            kind,
            is_optional,
            description: description.trim().to_owned(),
            ..Field::text(name)
        };
        if let Some(default) = default {
            field.default = Some(field.read_default(default.trim(), purpose)?);
        }
        Ok(field)
    }

    fn read_default(&self, text: &str, purpose: Purpose) -> Result<Value, String> {
        let name = &self.name;
        if purpose == Purpose::Answer {
            return Err(format!(
                "“{name}” has a default, which only the arguments of commands may have"
            ));
        }
        if self.is_optional {
            return Err(format!("“{name}” has a default, so leave out its “?”"));
        }
        let value = self.kind.read(text);
        value.ok_or_else(|| format!("the default “{text}” of “{name}” is not {}", self.kind))
    }

    /// Whether it must be given.
    fn is_required(&self) -> bool {
        !self.is_optional && self.default.is_none()
    }

    /// Its JSON Schema.
    fn schema(&self) -> Value {
        let mut schema = json!({"type": self.kind.json_type()});
        match &self.kind {
            Kind::List => schema["items"] = json!({"type": "string"}),
            Kind::Choice(values) => schema["enum"] = json!(values),
            _ => (),
        }
        if let Some(default) = &self.default {
            schema["default"] = default.clone();
        }
        if !self.description.is_empty() {
            schema["description"] = self.description.as_str().into();
        }
        schema
    }
}

impl Kind {
    /// Reads the type of a field: its name, or the values that it may have, such as `good|bad`.
    fn parse(field: &str, text: &str, purpose: Purpose) -> Result<Kind, String> {
        let mut known = Vec::new();
        for (name, kind) in KINDS {
            if purpose == Purpose::Answer && kind == Kind::Path {
                continue;
            }
            if name == text {
                return Ok(kind);
            }
            known.push(name);
        }
        if !text.contains('|') {
            let known = known.join(", ");
            return Err(format!(
                "the field “{field}” has the type “{text}”; the types are {known}, or values such as good|bad"
            ));
        }
        let mut values: Vec<String> = Vec::new();
        for value in text.split('|') {
            if value.is_empty() || values.iter().any(|other| other == value) {
                return Err(format!(
                    "the values “{text}” of “{field}” must be different words"
                ));
            }
            values.push(value.to_owned());
        }
        Ok(Kind::Choice(values))
    }

    /// The value that a text stands for, if it can stand for one of this kind. A list is one item.
    fn read(&self, text: &str) -> Option<Value> {
        match self {
            Kind::Text | Kind::Path => Some(text.into()),
            Kind::Choice(values) => {
                let is_known = values.iter().any(|value| value == text);
                is_known.then(|| text.into())
            }
            Kind::Integer => text.parse::<i64>().ok().map(Value::from),
            Kind::Number => serde_json::from_str(text).ok().filter(Value::is_number),
            Kind::Boolean => text.parse::<bool>().ok().map(Value::from),
            Kind::List => Some(json!([text])),
        }
    }

    /// The name of the type in JSON Schema.
    fn json_type(&self) -> &'static str {
        match self {
            Kind::Text | Kind::Path | Kind::Choice(_) => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::List => "array",
        }
    }
}

/// What errors call a value of this kind.
impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Text | Kind::Path => formatter.write_str("a string"),
            Kind::Integer => formatter.write_str("an integer"),
            Kind::Number => formatter.write_str("a number"),
            Kind::Boolean => formatter.write_str("true or false"),
            Kind::List => formatter.write_str("a list of strings"),
            Kind::Choice(values) => write!(formatter, "one of {}", values.join(", ")),
        }
    }
}

/// Reads fields. They are separated by commas. If the text has several lines, a field is a line, and a description may have
/// commas.
pub fn parse(text: &str, purpose: Purpose) -> Result<Vec<Field>, String> {
    let text = text.trim();
    let has_lines = text.contains('\n');
    let separator = if has_lines { '\n' } else { ',' };
    let mut fields: Vec<Field> = Vec::new();
    for part in text.split(separator) {
        let mut part = part.trim();
        // A line may end with a comma.
        if has_lines {
            part = part.strip_suffix(',').unwrap_or(part);
        }
        if part.is_empty() {
            // A blank line makes a list easier to read. Two commas in a row are a slip.
            if has_lines {
                continue;
            }
            return Err("a field is empty".to_owned());
        }
        let field = Field::parse(part, purpose)?;
        if fields.iter().any(|other| other.name == field.name) {
            return Err(format!("the field “{}” is given twice", field.name));
        }
        fields.push(field);
    }
    Ok(fields)
}

/// The JSON Schema of an object with these fields and no others.
pub fn schema_of(fields: &[Field]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        properties.insert(field.name.clone(), field.schema());
        if field.is_required() {
            required.push(field.name.as_str());
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The parts of a field: its name and type, its default, and its description. A default may contain a colon, so the
/// description behind it begins at a colon and a blank.
fn parts(text: &str) -> (&str, Option<&str>, &str) {
    let (before, after) = text.split_once(':').unwrap_or((text, ""));
    if !before.contains('=') {
        return (before, None, after);
    }
    let (field, description) = text.split_once(": ").unwrap_or((text, ""));
    let (head, default) = field.split_once('=').unwrap_or((field, ""));
    (head, Some(default), description)
}

fn is_name(text: &str) -> bool {
    let is_allowed = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-');
    text.chars().all(is_allowed) && text.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::one_line::tests::rows;

    #[test]
    fn fields_have_a_type_and_may_be_missing() {
        for [text, schema, required] in rows(
            r#"
            a              | {"type":"string"}                                        | ["a"]
            a int          | {"type":"integer"}                                       | ["a"]
            a?             | {"type":"string"}                                        | []
            a? list: b: c  | {"type":"array","items":{"type":"string"},"description":"b: c"} | []
            a path         | {"type":"string"}                                        | ["a"]
            a int = 20     | {"type":"integer","default":20}                          | []
            a int=-1: b    | {"type":"integer","default":-1,"description":"b"}        | []
            a float = 1.5  | {"type":"number","default":1.5}                          | []
            a bool = true  | {"type":"boolean","default":true}                        | []
            a list = x     | {"type":"array","items":{"type":"string"},"default":["x"]} | []
            a = 12:30 h: b | {"type":"string","default":"12:30 h","description":"b"}  | []
            a: b = c       | {"type":"string","description":"b = c"}                  | ["a"]
            a =            | {"type":"string","default":""}                           | []"#,
        ) {
            let fields = parse(text, Purpose::Arguments).expect(text);
            let schema_of = schema_of(&fields);
            assert_eq!(schema_of["properties"]["a"].to_string(), schema, "{text}");
            assert_eq!(schema_of["required"].to_string(), required, "{text}");
        }
        // A table cannot hold bars.
        let moods = parse("a? good|bad|so-so = bad", Purpose::Arguments);
        assert!(moods.is_err());
        let moods = parse("a good|bad = bad: how", Purpose::Arguments).expect("a choice");
        let expected = json!({"type": "string", "enum": ["good", "bad"], "default": "bad", "description": "how"});
        assert_eq!(schema_of(&moods)["properties"]["a"], expected);
    }

    #[test]
    fn what_is_wrong_with_a_field_is_said() {
        for (text, purpose, reason) in [
            (
                "a path",
                Purpose::Answer,
                "the types are str, int, float, bool, list, or values",
            ),
            (
                "a integer",
                Purpose::Arguments,
                "list, path, or values such as good|bad",
            ),
            (
                "a int = 5",
                Purpose::Answer,
                "only the arguments of commands",
            ),
            ("a? int = 5", Purpose::Arguments, "so leave out its “?”"),
            (
                "a int = x",
                Purpose::Arguments,
                "the default “x” of “a” is not an integer",
            ),
            ("a float = NaN", Purpose::Arguments, "is not a number"),
            ("a bool = 1", Purpose::Arguments, "is not true or false"),
            ("a b|c = d", Purpose::Arguments, "is not one of b, c"),
            ("a b|b", Purpose::Answer, "must be different words"),
            ("a b|", Purpose::Answer, "must be different words"),
            ("a b | c", Purpose::Answer, "the field “a” has the type “b”"),
            ("a?b", Purpose::Answer, "“a?b” is not the name"),
            ("?", Purpose::Answer, "“” is not the name"),
        ] {
            let error = parse(text, purpose).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
