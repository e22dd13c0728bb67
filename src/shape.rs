//! The shape of JSON that an answer must have: read from `--schema`, and compared with an answer.

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

/// The types of the short form, and their names in JSON Schema.
const TYPES: &[(&str, &str)] =
    &[("str", "string"), ("int", "integer"), ("float", "number"), ("bool", "boolean"), ("list", "array")];

/// One more type for the arguments of commands: the name of a file, which is a string for the model.
const PATH: (&str, &str) = ("path", "path");

/// The words of JSON Schema that OpenAI refuses in a strict schema (its guide to structured outputs, November 2026).
const NOT_STRICT: &str = "\
    oneOf allOf not if then else patternProperties dependentRequired dependentSchemas propertyNames prefixItems \
    contains default minLength maxLength";

/// The words of JSON Schema whose values are checked.
const CHECKED: &[&str] = &["type", "required", "properties", "$defs", "definitions", "anyOf", "oneOf", "allOf"];

/// The types of JSON Schema.
const JSON_TYPES: &[&str] = &["object", "array", "string", "integer", "number", "boolean", "null"];

/// The byte order mark, which some editors put at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// How many references in a row are followed, because they may lead back to themselves.
const MAX_REFERENCES: usize = 200;

/// The values that have parts.
const OBJECT: &str = "an object";
const LIST: &str = "a list";

/// A JSON Schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    schema: Value,
}

impl Shape {
    /// Reads a JSON Schema, which must be an object.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn from_json(text: &str) -> Result<Shape, String> {
        match serde_json::from_str(text) {
            Ok(schema @ Value::Object(_)) => match fault_in(&schema) {
                Some(fault) => Err(format!("it is not a JSON Schema: {fault}")),
                None => Ok(Shape { schema }),
            },
            Ok(_) => Err("it is JSON, but not an object".to_owned()),
            Err(error) => Err(format!("it is not JSON ({error})")),
        }
    }

    /// Reads the short form: `name, age int, tags list: what they like`, in brackets for a list of such objects. Fields are
    /// separated by commas, or by line ends if there are any; then a description may hold commas.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn from_short(text: &str) -> Result<Shape, String> {
        let text = text.trim();
        match text.strip_prefix('[') {
            Some(fields) => {
                let fields = fields.strip_suffix(']').ok_or("the bracket is not closed")?;
                let items = json!({"type": "array", "items": object_of(properties(fields, &[])?)});
                Ok(Shape { schema: object_of(Map::from_iter([("items".to_owned(), items)])) })
            }
            None => Ok(Shape { schema: object_of(properties(text, &[])?) }),
        }
    }

    /// Reads either form, but not the path of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn from_spec(spec: &str) -> Result<Shape, String> {
        if spec.trim_start().starts_with('{') { Shape::from_json(spec) } else { Shape::from_short(spec) }
    }

    /// The schema, a JSON object.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Whether the schema obeys the rules under which APIs guarantee it: an object in which each object takes no other
    /// properties than its own and requires all of them.
    pub(crate) fn is_strict(&self) -> bool {
        self.schema["type"] == "object" && obeys_strict_rules(&self.schema)
    }

    /// Whether it has objects whose fields have no fixed names, such as a number for each word.
    pub(crate) fn has_maps(&self) -> bool {
        has_maps(&self.schema)
    }

    /// Whether it is the shape of an object, and nothing else.
    pub(crate) fn is_object(&self) -> bool {
        resolved(&self.schema, &self.schema).as_object().and_then(container) == Some(OBJECT)
    }

    /// The JSON of this shape in an answer, without a code fence around it.
    ///
    /// # Errors
    /// Why the answer does not have this shape.
    pub(crate) fn find_in<'a>(&self, answer: &'a str) -> Result<&'a str, String> {
        let text = unfenced(answer.trim_start_matches(BYTE_ORDER_MARK).trim());
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
        lacking(&self.schema, &self.schema, &value, "").map_or(Ok(text), Err)
    }
}

/// The arguments of a command in the short form, in which they may have the type `path`, too.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    properties(text, &[PATH])
}

/// The fields of the short form, each with its schema.
fn properties(fields: &str, more_types: &[(&str, &str)]) -> Result<Map<String, Value>, String> {
    let separator = if fields.trim().contains('\n') { '\n' } else { ',' };
    let mut properties = Map::new();
    for field in fields.trim().split(separator).map(str::trim) {
        // A comma at the end of a line is ignored.
        let field = if separator == '\n' { field.strip_suffix(',').unwrap_or(field) } else { field };
        if field.is_empty() {
            // Blank lines make a list easier to read; two commas in a row are a slip.
            if separator == '\n' {
                continue;
            }
            return Err("a field is empty".to_owned());
        }
        let (name, schema) = property(field, more_types)?;
        if properties.insert(name.to_owned(), schema).is_some() {
            return Err(format!("the field “{name}” is given twice"));
        }
    }
    Ok(properties)
}

/// The schema of an object with these fields and no others.
pub(crate) fn object_of(properties: Map<String, Value>) -> Value {
    let required: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "properties": &properties, "required": required, "additionalProperties": false})
}

/// A field of the short form, such as `tags list: what they like`.
fn property<'a>(field: &'a str, more_types: &[(&str, &str)]) -> Result<(&'a str, Value), String> {
    let (named, description) = field.split_once(':').map_or((field, ""), |(named, said)| (named, said.trim()));
    let mut words = named.split_whitespace();
    let name = words.next().unwrap_or_default();
    let is_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-');
    if !name.chars().all(is_name) || !name.contains(char::is_alphanumeric) {
        return Err(format!("“{name}” is not the name of a field, which has letters, digits, _ and -"));
    }
    let kind = words.next().unwrap_or("str");
    let types = || TYPES.iter().chain(more_types);
    let Some((_, kind)) = types().find(|(short, _)| *short == kind) else {
        let types: Vec<&str> = types().map(|(short, _)| *short).collect();
        return Err(format!("the field “{name}” has the type “{kind}”; the types are {}", types.join(", ")));
    };
    if let Some(more) = words.next() {
        return Err(format!("“{more}” comes after the type of “{name}”; a description comes after a colon"));
    }
    let mut schema = json!({"type": kind});
    if *kind == "array" {
        schema["items"] = json!({"type": "string"});
    }
    if !description.is_empty() {
        schema["description"] = description.into();
    }
    Ok((name, schema))
}

fn obeys_strict_rules(schema: &Value) -> bool {
    let Value::Object(words) = schema else { return false };
    let says_what = ["type", "$ref", "anyOf", "enum", "const"].iter().any(|word| words.contains_key(*word));
    let is_list = words.get("type").is_some_and(|kind| names(kind, "array"));
    if !says_what || (is_list && !words.contains_key("items")) {
        return false;
    }
    if words.keys().any(|word| NOT_STRICT.split(' ').any(|refused| refused == word)) {
        return false;
    }
    let properties = words.get("properties").and_then(Value::as_object);
    if is_of_object(words) {
        let required: HashSet<&str> = required(words).collect();
        let named: HashSet<&str> = properties.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        if words.get("additionalProperties") != Some(&Value::Bool(false)) || required != named {
            return false;
        }
    }
    let definitions = ["$defs", "definitions"].iter().filter_map(|word| words.get(*word)?.as_object());
    let named = properties.into_iter().chain(definitions).flat_map(Map::values);
    let alternatives = words.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    named.chain(alternatives).chain(words.get("items")).all(obeys_strict_rules)
}

fn has_maps(schema: &Value) -> bool {
    match schema {
        Value::Object(words) => {
            let takes_others = words.get("additionalProperties").is_some_and(|others| *others != Value::Bool(false));
            let is_map = is_of_object(words) && (takes_others || !words.contains_key("properties"));
            is_map || words.values().any(has_maps)
        }
        Value::Array(schemas) => schemas.iter().any(has_maps),
        _ => false,
    }
}

/// Why JSON is not a schema, if it is not: a word of JSON Schema with an impossible value.
fn fault_in(schema: &Value) -> Option<String> {
    let Value::Object(words) = schema else {
        return (!schema.is_boolean()).then(|| format!("{schema} stands where a schema must stand"));
    };
    let is_type = |kind: &Value| kind.as_str().is_some_and(|kind| JSON_TYPES.contains(&kind));
    words.iter().find_map(|(word, value)| match (word.as_str(), value) {
        ("type", Value::Array(kinds)) if kinds.iter().all(is_type) => None,
        ("type", kind) if is_type(kind) => None,
        ("required", Value::Array(names)) if names.iter().all(Value::is_string) => None,
        ("properties" | "$defs" | "definitions", Value::Object(all)) => all.values().find_map(fault_in),
        ("anyOf" | "oneOf" | "allOf", Value::Array(all)) => all.iter().find_map(fault_in),
        ("items", Value::Array(_)) => None,
        ("items", schema) => fault_in(schema),
        // OpenAI's API has the schema within such an object.
        ("schema", _) if words.contains_key("strict") => Some("give the schema alone, without its name".to_owned()),
        (word, _) if CHECKED.contains(&word) => Some(format!("“{word}” cannot be {value}")),
        _ => None,
    })
}

/// Whether the value of `type`, a word or a list of them, has this word.
fn names(kind: &Value, word: &str) -> bool {
    kind == word || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == word))
}

fn required(words: &Map<String, Value>) -> impl Iterator<Item = &str> {
    words.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a schema is that of an object.
pub(crate) fn is_of_object(words: &Map<String, Value>) -> bool {
    words.get("type").map_or_else(|| words.contains_key("properties"), |kind| names(kind, "object"))
}

/// What a reference within the same document, such as `#/$defs/Pet`, refers to.
pub(crate) fn referred<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
    root.pointer(&pointer)
}

/// The schema that a reference leads to, else the schema itself.
fn resolved<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MAX_REFERENCES {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let Some(next) = reference.and_then(|reference| referred(root, reference)) else { break };
        schema = next;
    }
    schema
}

/// What a value of this schema must be, if that is an object or a list.
fn container(words: &Map<String, Value>) -> Option<&'static str> {
    match words.get("type") {
        Some(kind) if kind == "object" => Some(OBJECT),
        Some(kind) if kind == "array" => Some(LIST),
        None if words.contains_key("properties") || words.contains_key("required") => Some(OBJECT),
        _ => None,
    }
}

/// What a value lacks: a required field, or that it is the object or the list that it must be; within its fields and the
/// items of its lists, too. `place` is its place in the answer. Nothing else is compared.
fn lacking(root: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    let words = resolved(root, schema).as_object()?;
    match (value, container(words)) {
        (Value::Object(fields), None | Some(OBJECT)) => {
            if let Some(name) = required(words).find(|name| !fields.contains_key(*name)) {
                return Some(format!("the field “{place}{name}” is missing"));
            }
            let mut properties = words.get("properties")?.as_object()?.iter();
            properties.find_map(|(name, schema)| lacking(root, schema, fields.get(name)?, &format!("{place}{name}.")))
        }
        (Value::Array(items), None | Some(LIST)) => {
            let schema = words.get("items")?;
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| lacking(root, schema, item, &format!("{place}{at}.")))
        }
        (_, Some(kind)) if place.is_empty() => Some(format!("it is not {kind}")),
        (_, Some(kind)) => Some(format!("the field “{}” is not {kind}", place.trim_end_matches('.'))),
        (_, None) => None,
    }
}

/// The text inside a code fence that surrounds all of it; without one, the text itself. Trimmed.
fn unfenced(text: &str) -> &str {
    let inner = || {
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let fence = &text[..text.len() - text.trim_start_matches(mark).len()];
        let (_, inner) = text.split_once('\n').filter(|_| fence.len() >= 3)?;
        inner.trim_end().strip_suffix(fence)
    };
    inner().unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn short(text: &str) -> Shape {
        Shape::from_short(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_short_form_names_fields_with_types_and_descriptions() {
        let of = |properties: Value| {
            let names: Vec<&String> = properties.as_object().expect("an object").keys().collect();
            json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
        };
        let list = json!({"type": "array", "items": {"type": "string"}});
        let tags = json!({"type": "array", "items": {"type": "string"}, "description": "what they like"});
        let person = of(json!({"name": {"type": "string"}, "age": {"type": "integer"}}));
        for (text, schema) in [
            ("name", of(json!({"name": {"type": "string"}}))),
            ("name, age int", person.clone()),
            (" name ,age  int ", person.clone()),
            ("name str\nage int\n", person.clone()),
            ("\nname\n\n  age int\n", person.clone()),
            ("name,\nage int,\n", person.clone()),
            ("name, tags list: what they like", of(json!({"name": {"type": "string"}, "tags": tags}))),
            ("a float, b bool, c list", of(json!({"a": {"type": "number"}, "b": {"type": "boolean"}, "c": list}))),
            (
                "name: first, then last\nzip-code: of the house: five digits\n",
                of(json!({"name": {"type": "string", "description": "first, then last"},
                          "zip-code": {"type": "string", "description": "of the house: five digits"}})),
            ),
            ("größe_2 int", of(json!({"größe_2": {"type": "integer"}}))),
            ("[name, age int]", of(json!({"items": {"type": "array", "items": person}}))),
            ("[\nname\nage int\n]", of(json!({"items": {"type": "array", "items": person}}))),
        ] {
            let shape = short(text);
            assert_eq!(shape.schema, schema, "{text}");
            assert!(shape.is_strict(), "{text}");
        }
    }

    #[test]
    fn fields_stay_in_the_order_in_which_they_are_given() {
        let shape = short("zebra, ant, mole");
        let names: Vec<&String> = shape.schema["properties"].as_object().expect("an object").keys().collect();
        assert_eq!(names, ["zebra", "ant", "mole"]);
    }

    #[test]
    fn what_is_not_the_short_form_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "a field is empty"),
            ("  ", "a field is empty"),
            ("name,,age", "a field is empty"),
            ("name,", "a field is empty"),
            ("name, name int", "“name” is given twice"),
            ("age integer", "the types are str, int, float, bool, list"),
            ("name str not null", "“not” comes after the type"),
            ("a/b", "“a/b” is not the name"),
            ("-", "“-” is not the name"),
            (": what", "“” is not the name"),
            ("[name, age int", "not closed"),
            ("[]", "a field is empty"),
            ("[[name]]", "“[name]” is not the name"),
        ] {
            let error = Shape::from_short(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_schema_is_a_json_object() {
        assert_eq!(Shape::from_json("{\"type\":\"object\"}").expect("a schema").schema, json!({"type": "object"}));
        for text in [
            "{\"items\":[{\"type\":\"string\"}]}",
            "{\"schema\":{}}",
            "{\"anyOf\":[true]}",
            "{\"type\":[\"string\",\"null\"]}",
        ] {
            assert!(Shape::from_json(text).is_ok(), "{text}");
        }
        for (text, reason) in [
            ("{", "not JSON"),
            ("[1]", "not an object"),
            ("7", "not an object"),
            ("", "not JSON"),
            ("{\"type\":\"objekt\"}", "“type” cannot be \"objekt\""),
            ("{\"type\":[\"string\",5]}", "“type” cannot be [\"string\",5]"),
            ("{\"required\":\"a\"}", "“required” cannot be \"a\""),
            ("{\"required\":[\"a\",5]}", "“required” cannot be [\"a\",5]"),
            ("{\"properties\":[]}", "“properties” cannot be []"),
            ("{\"properties\":{\"a\":5}}", "5 stands where a schema must stand"),
            ("{\"items\":{\"type\":1}}", "“type” cannot be 1"),
            ("{\"anyOf\":{}}", "“anyOf” cannot be {}"),
            ("{\"anyOf\":[{\"type\":1}]}", "“type” cannot be 1"),
            ("{\"name\":\"a\",\"strict\":true,\"schema\":{}}", "give the schema alone"),
        ] {
            let error = Shape::from_json(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_schema_is_strict_where_every_object_requires_all_it_has_and_nothing_else() {
        let strict = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                            "additionalProperties": false});
        let with = |word: &str, value: Value| {
            let mut schema = strict.clone();
            schema[word] = value;
            schema
        };
        let loose = json!({"type": "object", "properties": {"b": {}}, "required": [], "additionalProperties": false});
        for (schema, is_strict) in [
            (strict.clone(), true),
            (with("required", json!([])), false),
            (with("additionalProperties", json!(true)), false),
            (with("type", json!("array")), false),
            (with("type", json!(["object", "null"])), false),
            (with("properties", json!({"a": strict})), true),
            (with("properties", json!({"a": loose})), false),
            (with("properties", json!({"a": {"type": "array", "items": strict}})), true),
            (with("properties", json!({"a": {"type": "array", "items": loose}})), false),
            (with("properties", json!({"a": {"anyOf": [strict, {"type": "null"}]}})), true),
            (with("properties", json!({"a": {"anyOf": [loose, {"type": "null"}]}})), false),
            (with("properties", json!({"a": {"type": ["object", "null"]}})), false),
            (with("properties", json!({"a": {"type": ["string", "null"]}})), true),
            (with("properties", json!({"a": {"oneOf": []}})), false),
            (with("properties", json!({"a": {"$ref": "#/$defs/A"}})), true),
            (with("$defs", json!({"A": strict})), true),
            (with("$defs", json!({"A": loose})), false),
            (with("allOf", json!([])), false),
            (with("required", json!(["a", "ghost"])), false),
            (with("properties", json!({"a": {}})), false),
            (with("properties", json!({"a": true})), false),
            (with("properties", json!({"a": {"type": "array"}})), false),
            (with("properties", json!({"a": {"type": "array", "items": [{"type": "string"}]}})), false),
            (with("properties", json!({"a": {"type": "string", "default": "x"}})), false),
            (with("properties", json!({"a": {"type": "string", "minLength": 1}})), false),
            (with("properties", json!({"a": {"enum": ["x", "y"]}})), true),
            (json!({}), false),
        ] {
            assert_eq!(Shape { schema: schema.clone() }.is_strict(), is_strict, "{schema}");
        }
    }

    #[test]
    fn objects_whose_fields_have_no_names_are_maps() {
        let number = json!({"type": "number"});
        for (schema, has_maps) in [
            (json!({"type": "object", "properties": {"a": number}}), false),
            (json!({"type": "object", "properties": {"a": number}, "additionalProperties": false}), false),
            (json!({"type": "object"}), true),
            (json!({"type": "object", "properties": {"a": number}, "additionalProperties": true}), true),
            (json!({"type": "object", "additionalProperties": number}), true),
            (json!({"properties": {"a": {"type": "object", "additionalProperties": number}}}), true),
            (json!({"properties": {"a": {"items": {"anyOf": [{"type": "object"}]}}}}), true),
        ] {
            assert_eq!(Shape { schema: schema.clone() }.has_maps(), has_maps, "{schema}");
        }
    }

    #[test]
    fn an_answer_is_taken_if_it_is_json_with_the_required_fields() {
        let person = "name, age int";
        let list = "[name, age int]";
        for (shape, answer, found) in [
            (person, "{\"name\":\"a\",\"age\":1}", Ok("{\"name\":\"a\",\"age\":1}")),
            (person, " {\"age\":\"x\",\"name\":null,\"more\":1}\n", Ok("{\"age\":\"x\",\"name\":null,\"more\":1}")),
            (person, "```json\n{\"name\":\"a\",\"age\":1}\n```", Ok("{\"name\":\"a\",\"age\":1}")),
            (person, "```\n\n{\"name\":\"a\",\"age\":1}```\n", Ok("{\"name\":\"a\",\"age\":1}")),
            (person, "{\"name\":\"a\"}", Err("“age” is missing")),
            (person, "{\"name\":\"a\",\"age\":1", Err("not JSON")),
            (person, "{\"name\":\"a\",\"age\":1} and more", Err("not JSON")),
            (person, "```json\n{\"name\":\"a\",\"age\":1}", Err("not JSON")),
            (person, "~~~~\n{\"name\":\"a\",\"age\":1}\n~~~~", Ok("{\"name\":\"a\",\"age\":1}")),
            (person, "````json\n{\"name\":\"a\",\"age\":1}\n````", Ok("{\"name\":\"a\",\"age\":1}")),
            (person, "``\n{\"name\":\"a\",\"age\":1}\n``", Err("not JSON")),
            (person, "\u{feff}{\"name\":\"a\",\"age\":1}", Ok("{\"name\":\"a\",\"age\":1}")),
            (list, "{\"items\":\"none\"}", Err("“items” is not a list")),
            (list, "{\"items\":null}", Err("“items” is not a list")),
            (list, "{\"items\":{\"a\":1}}", Err("“items” is not a list")),
            (person, "", Err("not JSON")),
            (person, "[]", Err("it is not an object")),
            (person, "[{\"name\":\"a\",\"age\":1}]", Err("it is not an object")),
            (person, "7", Err("it is not an object")),
            (person, "null", Err("it is not an object")),
            (list, "{\"items\":[]}", Ok("{\"items\":[]}")),
            (list, "{\"items\":[{\"name\":\"a\",\"age\":1}]}", Ok("{\"items\":[{\"name\":\"a\",\"age\":1}]}")),
            (list, "{\"items\":[{\"name\":\"a\",\"age\":1},{\"age\":1}]}", Err("“items.1.name” is missing")),
            (list, "[{\"name\":\"a\",\"age\":1}]", Err("it is not an object")),
        ] {
            let result = short(shape).find_in(answer);
            match (&result, found) {
                (Ok(json), Ok(expected)) => assert_eq!(*json, expected, "{answer}"),
                (Err(error), Err(reason)) => assert!(error.contains(reason), "{answer}: {error}"),
                _ => panic!("{shape}: {answer}: {result:?}"),
            }
        }
    }

    #[test]
    fn an_answer_may_be_null_where_the_schema_says_so() {
        let schema =
            json!({"properties": {"a": {"type": ["object", "null"], "properties": {"b": {}}, "required": ["b"]}}});
        let shape = Shape { schema };
        assert!(shape.find_in("{\"a\":null}").is_ok() && shape.find_in("{}").is_ok());
        assert_eq!(shape.find_in("{\"a\":{}}"), Err("the field “a.b” is missing".to_owned()));
    }

    #[test]
    fn an_answer_is_compared_with_what_its_schema_refers_to() {
        let pet = json!({"type": "object", "properties": {"n": {}}, "required": ["n"]});
        let of =
            |field: Value| json!({"type": "object", "properties": {"pet": field}, "$defs": {"Pet": pet, "a/b": pet}});
        let reference = json!({"$ref": "#/$defs/Pet"});
        let list = json!({"type": ["array", "object"], "items": pet, "required": ["n"]});
        let itself = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["n"]});
        let (missing_n, no_object) = ("the field “pet.n” is missing", "the field “pet” is not an object");
        for (case, schema, answer, lacks) in [
            ("a reference", of(reference.clone()), r#"{"pet":{"n":1}}"#, None),
            ("a field of a reference", of(reference.clone()), r#"{"pet":{}}"#, Some(missing_n)),
            ("no object for a reference", of(reference.clone()), r#"{"pet":"x"}"#, Some(no_object)),
            ("a name in percents", of(json!({"$ref": "#/$defs/a%7E1b"})), r#"{"pet":{}}"#, Some(missing_n)),
            (
                "a reference to a reference",
                json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": pet}}),
                "{}",
                Some("the field “n” is missing"),
            ),
            ("one that leads nowhere", of(json!({"$ref": "#/$defs/Cat"})), r#"{"pet":{}}"#, None),
            ("one elsewhere", of(json!({"$ref": "https://example.com/pet"})), r#"{"pet":{}}"#, None),
            ("one to the whole", itself.clone(), r#"{"n":1,"next":{"n":1}}"#, None),
            ("a field of the whole", itself, r#"{"n":1,"next":{}}"#, Some("the field “next.n” is missing")),
            ("one of several, which is not compared", of(json!({"anyOf": [reference]})), r#"{"pet":{}}"#, None),
            ("no object", of(pet.clone()), r#"{"pet":[]}"#, Some(no_object)),
            ("no object where there is no type", of(json!({"required": ["n"]})), r#"{"pet":7}"#, Some(no_object)),
            ("no object where none is wanted", of(json!({"type": "array", "required": ["n"]})), r#"{"pet":[]}"#, None),
            ("no list there", of(json!({"type": ["array", "null"], "required": ["n"]})), r#"{"pet":7}"#, None),
            ("the items of a list that may be an object", of(list.clone()), r#"{"pet":[{"n":1}]}"#, None),
            ("a field of its items", of(list.clone()), r#"{"pet":[{}]}"#, Some("the field “pet.0.n” is missing")),
            ("an object that may be a list", of(list.clone()), r#"{"pet":{}}"#, Some(missing_n)),
            ("neither, which is not compared", of(list), r#"{"pet":null}"#, None),
            ("a list at the top", json!({"type": "array"}), "[]", None),
            ("no list at the top", json!({"type": "array"}), "{}", Some("it is not a list")),
            ("no object at the top", json!({"type": "object"}), "7", Some("it is not an object")),
            ("null at the top", json!({"type": ["array", "null"]}), "null", None),
        ] {
            assert_eq!(Shape { schema }.find_in(answer).err().as_deref(), lacks, "{case}");
        }
    }

    #[test]
    fn the_shape_of_an_object_is_distinguished_from_others() {
        for (schema, is_object) in [
            (json!({"type": "object"}), true),
            (json!({"properties": {}}), true),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}}), true),
            (json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "array"}}}), false),
            (json!({"$ref": "#"}), false),
            (json!({"type": "array", "properties": {}}), false),
            (json!({"type": ["object", "null"]}), false),
            (json!({"anyOf": [{"type": "object"}, {"type": "array"}]}), false),
            (json!({}), false),
        ] {
            assert_eq!(Shape { schema: schema.clone() }.is_object(), is_object, "{schema}");
        }
    }

    proptest! {
        #[test]
        fn reading_the_short_form_never_panics(text in "[\\[\\]a-c ,:\nintstr]{0,30}") {
            if let Ok(shape) = Shape::from_short(&text) {
                prop_assert!(shape.is_strict());
            }
        }

        #[test]
        fn what_is_taken_from_an_answer_is_json(answer in "(```(json)?\n)?[\\{\\}\\[\\]\":a1, ]{0,20}(\n?```)?") {
            if let Ok(json) = (Shape { schema: json!({}) }).find_in(&answer) {
                prop_assert!(serde_json::from_str::<Value>(json).is_ok() && answer.contains(json));
            }
        }
    }
}
