//! Reads the short form of fields, such as `name, age int, mood good|bad: how they feel`, which is short for a JSON Schema
//! (pure).

use serde_json::{Map, Value, json};

use super::list;
use super::number::integer_text;

/// The types and their names. `path` is one of arguments alone: no field of an answer has it.
const KINDS: [(&str, FieldKind); 6] = [
    ("str", FieldKind::Text),
    ("int", FieldKind::Integer),
    ("float", FieldKind::Number),
    ("bool", FieldKind::Boolean),
    ("list", FieldKind::List),
    ("path", FieldKind::Path),
];

/// The form of the names of a command's arguments.
pub const ARGUMENT_NAME: &str = "[a-z_][a-z0-9_-]*";

/// The purpose of a short form: what its fields describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormPurpose {
    /// The answer of a model.
    Answer,
    /// The arguments of a command. They may be paths, and have defaults.
    Arguments,
}

impl FormPurpose {
    fn check_name(self, name: &str) -> Result<(), String> {
        match self {
            FormPurpose::Answer if !is_field_name(name) => Err(format!(
                "“{name}” is not the name of a field, which has letters, digits, _ and -"
            )),
            FormPurpose::Arguments if !is_argument_name(name) => Err(format!(
                "“{name}” is not the name of an argument, which has the form {ARGUMENT_NAME}"
            )),
            FormPurpose::Answer | FormPurpose::Arguments => Ok(()),
        }
    }
}

/// A field: `NAME TYPE`, and what else is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortField {
    pub name: String,
    pub kind: FieldKind,
    /// Whether the field may be missing, as `NAME?` says.
    pub is_optional: bool,
    /// `= VALUE`: what a missing field counts as.
    pub default: Option<Value>,
    /// Empty if there is none.
    description: String,
}

/// The kind of a field's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
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

impl ShortField {
    /// Returns a text that must be given.
    pub fn text(name: &str) -> ShortField {
        ShortField {
            name: name.to_owned(),
            kind: FieldKind::Text,
            is_optional: false,
            default: None,
            description: String::new(),
        }
    }

    /// Reads a field such as `tags list: what they like`.
    fn parse(text: &str, purpose: FormPurpose) -> Result<ShortField, String> {
        let (head, default, description) = parts(text, purpose);
        let head = head.trim();
        let (word, kind) = head.split_once(' ').unwrap_or((head, "str"));
        let name = word.strip_suffix('?').unwrap_or(word);
        purpose.check_name(name)?;
        if word == head
            && let Some(meant) = kind_named(description.trim(), purpose)
        {
            return Err(format!(
                "the field “{name}” is described as “{}”; a type comes before the colon: {word} {meant}",
                description.trim()
            ));
        }
        // A value that the field may have can end in a question mark, so only a type is looked for.
        if let Some(kind) = kind.trim().strip_suffix('?')
            && let Some(meant) = kind_named(kind.trim_end(), purpose)
        {
            return Err(format!(
                "the field “{name}” has a question mark after its type; it comes after the name: {name}? {meant}"
            ));
        }
        let mut field = ShortField {
            kind: FieldKind::parse(name, kind.trim(), purpose)?,
            is_optional: word.ends_with('?'),
            description: description.trim().to_owned(),
            ..ShortField::text(name)
        };
        if let Some(default) = default {
            field.default = field.kind.read(default);
            if field.default.is_none() {
                let wanted = field.kind;
                return Err(format!(
                    "the default “{default}” of “{name}” is not {wanted}"
                ));
            }
        }
        Ok(field)
    }

    /// Whether it must be given.
    fn is_required(&self) -> bool {
        !self.is_optional && self.default.is_none()
    }

    /// Its JSON Schema.
    fn schema(&self) -> Value {
        let mut schema = json!({"type": self.kind.json_type()});
        match &self.kind {
            FieldKind::List => schema["items"] = json!({"type": "string"}),
            FieldKind::Choice(values) => schema["enum"] = json!(values),
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

/// Returns the name of a type, which somebody may call by its name in JSON Schema.
fn kind_named(word: &str, purpose: FormPurpose) -> Option<&'static str> {
    let others = [
        ("string", "str"),
        ("integer", "int"),
        ("number", "float"),
        ("boolean", "bool"),
        ("array", "list"),
    ];
    let is_known = |kind: &FieldKind| purpose == FormPurpose::Arguments || *kind != FieldKind::Path;
    let own = KINDS.into_iter().filter(|(_, kind)| is_known(kind));
    let mut names = own.map(|(name, _)| (name, name)).chain(others);
    names
        .find(|(name, _)| *name == word)
        .map(|(_, meant)| meant)
}

impl FieldKind {
    /// Reads the type of a field: its name, or the values that it may have, such as `good|bad`.
    fn parse(field: &str, text: &str, purpose: FormPurpose) -> Result<FieldKind, String> {
        let mut known = Vec::new();
        for (name, kind) in KINDS {
            if purpose == FormPurpose::Answer && kind == FieldKind::Path {
                continue;
            }
            if name == text {
                return Ok(kind);
            }
            known.push(name);
        }
        let values = Vec::from_iter(text.split('|').map(|value| value.trim().to_owned()));
        if values.len() > 1 && values.iter().all(|value| !value.is_empty()) {
            return Ok(FieldKind::Choice(values));
        }
        let known = known.join(", ");
        let there_are = format!("the types are {known}, or values such as good|bad");
        Err(match kind_named(text, purpose) {
            Some(meant) => format!(
                "the field “{field}” has the type “{text}”; did you mean {meant}? {there_are}"
            ),
            None => format!("the field “{field}” has the type “{text}”; {there_are}"),
        })
    }

    /// Reads the value that a text means, if it can be one of this kind. A list is one item.
    fn read(&self, text: &str) -> Option<Value> {
        let fits = match self {
            FieldKind::Text | FieldKind::Path => return Some(text.into()),
            FieldKind::List => return Some(json!([text])),
            FieldKind::Choice(values) => {
                let is_known = values.iter().any(|value| value == text);
                return is_known.then(|| text.into());
            }
            FieldKind::Integer => {
                let digits = integer_text(&serde_json::from_str(text).ok()?)?;
                return serde_json::from_str(&digits).ok();
            }
            FieldKind::Number => Value::is_number,
            FieldKind::Boolean => Value::is_boolean,
        };
        serde_json::from_str(text).ok().filter(fits)
    }

    /// Returns the name of the type in JSON Schema.
    fn json_type(&self) -> &'static str {
        match self {
            FieldKind::Text | FieldKind::Path | FieldKind::Choice(_) => "string",
            FieldKind::Integer => "integer",
            FieldKind::Number => "number",
            FieldKind::Boolean => "boolean",
            FieldKind::List => "array",
        }
    }
}

/// What errors call a value of this kind.
impl std::fmt::Display for FieldKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FieldKind::Text | FieldKind::Path => formatter.write_str("a string"),
            FieldKind::Integer => formatter.write_str("an integer"),
            FieldKind::Number => formatter.write_str("a number"),
            FieldKind::Boolean => formatter.write_str("true or false"),
            FieldKind::List => formatter.write_str("a list of strings"),
            FieldKind::Choice(values) => write!(formatter, "one of {}", values.join(", ")),
        }
    }
}

/// Reads fields. They are separated by commas. If the text has several lines, a field is a line, and a description may have
/// commas.
pub fn parse(text: &str, purpose: FormPurpose) -> Result<Vec<ShortField>, String> {
    let text = text.trim();
    let parts = if text.contains('\n') {
        // Blank lines make a list easier to read.
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        Vec::from_iter(lines)
    } else {
        list::items(text)?
    };
    let mut fields: Vec<ShortField> = Vec::new();
    for part in parts {
        let field = ShortField::parse(part, purpose)?;
        if fields.iter().any(|other| other.name == field.name) {
            return Err(format!("the field “{}” is given twice", field.name));
        }
        fields.push(field);
    }
    Ok(fields)
}

/// Returns the JSON Schema of an object with these fields and no others.
pub fn schema_of(fields: &[ShortField]) -> Value {
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

/// Returns the JSON Schema of an object with nothing but a list of such values.
pub fn list_of(schema: Value) -> Value {
    json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": schema}},
        "required": ["items"],
        "additionalProperties": false,
    })
}

/// Whether [`schema_of`] can have made a schema for an answer, alone or within [`list_of`].
pub fn may_have_made(schema: &Value) -> bool {
    let item = &schema["properties"]["items"]["items"];
    is_of_fields(schema) || is_of_fields(item) && *schema == list_of(item.clone())
}

/// Whether a schema is the one that its own fields make.
fn is_of_fields(schema: &Value) -> bool {
    fields_of(schema).is_some_and(|fields| schema_of(&fields) == *schema)
}

/// Returns the fields that a schema may have been made of, as far as they can be read in it.
fn fields_of(schema: &Value) -> Option<Vec<ShortField>> {
    let required = schema["required"].as_array()?;
    let mut fields = Vec::new();
    for (name, field) in schema["properties"].as_object()? {
        if !is_field_name(name) {
            return None;
        }
        let values = field["enum"].as_array().map(|values| {
            let texts = values.iter().filter_map(Value::as_str);
            FieldKind::Choice(texts.map(str::to_owned).collect())
        });
        let mut kinds = KINDS.into_iter().map(|(_, kind)| kind);
        let of_type = kinds.find(|kind| field["type"] == kind.json_type());
        let description = field["description"].as_str().unwrap_or_default();
        fields.push(ShortField {
            kind: values.or(of_type)?,
            is_optional: !required.iter().any(|required| required == name),
            description: description.to_owned(),
            ..ShortField::text(name)
        });
    }
    Some(fields)
}

/// Returns the parts of a field: its name and type, its default, and its description. A default may contain a colon, so the
/// description behind it begins at a colon and a blank.
fn parts(text: &str, purpose: FormPurpose) -> (&str, Option<&str>, &str) {
    let (before, after) = text.split_once(':').unwrap_or((text, ""));
    if purpose == FormPurpose::Answer || !before.contains('=') {
        return (before, None, after);
    }
    let (field, description) = text.split_once(": ").unwrap_or((text, ""));
    let (head, default) = field.split_once('=').unwrap_or((field, ""));
    (head, Some(default.trim()), description)
}

fn is_field_name(text: &str) -> bool {
    let is_allowed = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-');
    text.chars().all(is_allowed) && text.contains(char::is_alphanumeric)
}

/// Whether a text can be the name of a command's argument, and so a placeholder: `ARGUMENT_NAME`.
pub fn is_argument_name(text: &str) -> bool {
    let is_allowed = |char: char| {
        char.is_ascii_lowercase() || char.is_ascii_digit() || matches!(char, '_' | '-')
    };
    let begins_well = text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    begins_well && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn only_a_schema_as_of_the_short_form_counts_as_made_by_it() {
        let object = |text: &str| schema_of(&parse(text, FormPurpose::Answer).expect("fields"));
        for text in [
            "a",
            "a, b int, c? list: some words, mood good|bad",
            "items",
            "items list",
        ] {
            assert!(may_have_made(&object(text)), "{text}");
            assert!(may_have_made(&list_of(object(text))), "{text}");
        }
        // What no short form says, in an object and in a list of it.
        for (place, value) in [
            ("/additionalProperties", json!(true)),
            ("/required", json!(["b"])),
            ("/required", json!([])),
            ("/type", json!("array")),
            ("/properties/a/type", json!("null")),
            ("/properties/a/items", json!({"type": "integer"})),
            ("/properties/a/enum", json!(["x", 1])),
            ("/properties/a/minLength", json!(1)),
        ] {
            let mut changed = object("a");
            let (parent, name) = place.rsplit_once('/').expect("a place");
            let parent = changed.pointer_mut(parent).expect("an object");
            parent[name] = value.clone();
            let is_optional = value == json!([]);
            assert_eq!(may_have_made(&changed), is_optional, "{place} {value}");
            assert_eq!(may_have_made(&list_of(changed)), is_optional, "{place}");
        }
        let mut bounded = list_of(object("a"));
        bounded["properties"]["items"]["minItems"] = json!(1);
        assert!(!may_have_made(&bounded));
        assert!(!may_have_made(&list_of(list_of(object("a")))));
        assert!(!may_have_made(&json!({"type": "object"})));
    }

    #[test]
    fn fields_of_the_short_form_have_a_type_and_may_be_optional() {
        for [text, schema, required] in rows(
            r#"
            a              | {"type":"string"}                                        | ["a"]
            a int          | {"type":"integer"}                                       | ["a"]
            a?             | {"type":"string"}                                        | []
            a? list: b: c  | {"type":"array","items":{"type":"string"},"description":"b: c"} | []
            a path         | {"type":"string"}                                        | ["a"]
            a int = 20     | {"type":"integer","default":20}                          | []
            a int=-1: b    | {"type":"integer","default":-1,"description":"b"}        | []
            a int = 5.0    | {"type":"integer","default":5}                           | []
            a int = 12345678901234567890 | {"type":"integer","default":12345678901234567890} | []
            a float = 1.5  | {"type":"number","default":1.5}                          | []
            a bool = true  | {"type":"boolean","default":true}                        | []
            a list = x     | {"type":"array","items":{"type":"string"},"default":["x"]} | []
            a = 12:30 h: b | {"type":"string","default":"12:30 h","description":"b"}  | []
            a: b = c       | {"type":"string","description":"b = c"}                  | ["a"]
            a =            | {"type":"string","default":""}                           | []"#,
        ) {
            let fields = parse(text, FormPurpose::Arguments).expect(text);
            let schema_of = schema_of(&fields);
            assert_eq!(schema_of["properties"]["a"].to_string(), schema, "{text}");
            assert_eq!(schema_of["required"].to_string(), required, "{text}");
        }
        let moods = parse("a good|bad = bad: how", FormPurpose::Arguments).expect("a choice");
        let expected = json!({"type": "string", "enum": ["good", "bad"], "default": "bad", "description": "how"});
        assert_eq!(schema_of(&moods)["properties"]["a"], expected);
    }

    #[test]
    fn an_invalid_field_of_the_short_form_is_refused_with_its_reason() {
        for [text, reason] in rows(
            r#"
            a integer    | list, path, or values such as good|bad
            a int big    | the field “a” has the type “int big”
            a int = 5.5  | the default “5.5” of “a” is not an integer
            a int = 1e999999 | is not an integer
            a int = "5"  | is not an integer
            a int = x    | the default “x” of “a” is not an integer
            a float = NaN | is not a number
            a bool = 1   | is not true or false
            a: int       | the field “a” is described as “int”; a type comes before the colon: a int
            a?: string   | the field “a” is described as “string”; a type comes before the colon: a? str
            a: number    | the colon: a float
            a?b          | “a?b” is not the name
            ?            | “” is not the name"#,
        ) {
            let error = parse(text, FormPurpose::Arguments).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        // A table cannot hold bars.
        for (text, reason) in [
            ("a b|c = d", "is not one of b, c"),
            ("a b|", "the field “a” has the type “b|”"),
        ] {
            let error = parse(text, FormPurpose::Arguments).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        // No field of an answer is a path, so this is a description.
        assert!(parse("a: path", FormPurpose::Answer).is_ok());
        for text in ["a path", "a int = 5"] {
            let error = parse(text, FormPurpose::Answer).expect_err(text);
            assert!(
                error.contains("the types are str, int, float, bool, list, or"),
                "{error}"
            );
        }
    }
}
