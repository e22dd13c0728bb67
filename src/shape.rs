//! Reads the shape of JSON that an answer must have from `--schema`, and compares an answer with it (pure).

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::text::json;
use crate::text::short_form::{self, Purpose};

/// The words of JSON Schema that OpenAI refuses in a strict schema (its guide to structured outputs, November 2026).
const NOT_STRICT: &[&str] = &[
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "dependentRequired",
    "dependentSchemas",
    "propertyNames",
    "prefixItems",
    "contains",
    "default",
    "minLength",
    "maxLength",
];

/// The words of JSON Schema that say what a value is. A strict schema must have one of them.
const SAY_WHAT: &[&str] = &["type", "$ref", "anyOf", "enum", "const"];

/// How many schemas in a row a value is compared with. References may lead back to themselves, and each to several others.
const MAX_DEPTH: usize = 16;

/// The most memory, by an estimate, that the values of an answer may take: several times as many as a model writes.
const MAX_ANSWER_WEIGHT: usize = 30_000_000;

/// A JSON Schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// A JSON object.
    pub schema: Value,
}

impl Shape {
    /// Reads a JSON Schema, which must be an object.
    pub fn from_json(text: &str) -> Result<Shape, String> {
        let schema: Value = json::parse(text).map_err(not_json)?;
        if !schema.is_object() {
            return Err("it is JSON, but not an object".to_owned());
        }
        Ok(Shape { schema })
    }

    /// Reads the short form: `name, age int, mood good|bad, note?: what they say`. Brackets around it ask for a list of such
    /// objects.
    pub fn from_short(text: &str) -> Result<Shape, String> {
        let mut text = text.trim();
        let is_list = text.starts_with('[');
        if is_list {
            text = text[1..]
                .strip_suffix(']')
                .ok_or("the bracket is not closed")?;
        }
        let fields = short_form::parse(text, Purpose::Answer)?;
        let mut schema = short_form::schema_of(&fields);
        if is_list {
            schema = json!({
                "type": "object",
                "properties": {"items": {"type": "array", "items": schema}},
                "required": ["items"],
                "additionalProperties": false,
            });
        }
        Ok(Shape { schema })
    }

    /// Reads a JSON Schema or the short form, but not the path of a file.
    pub fn from_spec(spec: &str) -> Result<Shape, String> {
        if spec.trim_start().starts_with('{') {
            Shape::from_json(spec)
        } else {
            Shape::from_short(spec)
        }
    }

    /// Whether the schema obeys the rules under which APIs guarantee it: it is an object, and each object in it requires all
    /// its properties and allows no others.
    pub fn is_strict(&self) -> bool {
        self.schema["type"] == "object" && obeys_strict_rules(&self.schema)
    }

    /// Whether it has objects without fixed names for their fields, such as one with a number for each word.
    pub fn has_maps(&self) -> bool {
        has_maps(&self.schema)
    }

    /// Whether it is the shape of an object, and nothing else.
    pub fn is_object(&self) -> bool {
        types_in(&self.schema) == ["object"]
    }

    /// The JSON of this shape in an answer, without a code fence around it. The error says why the answer does not have this
    /// shape.
    pub fn find_in<'a>(&self, answer: &'a str) -> Result<&'a str, String> {
        let answer = answer.trim();
        let text = inside_fence(answer).unwrap_or(answer).trim();
        json::check(text, MAX_ANSWER_WEIGHT).map_err(not_json)?;
        let value = serde_json::from_str(text).map_err(not_json)?;
        let whole = Part {
            root: &self.schema,
            value: &value,
            place: String::new(),
        };
        whole.check(&self.schema, 0)?;
        Ok(text)
    }
}

fn not_json(error: serde_json::Error) -> String {
    format!("it is not JSON ({error})")
}

fn obeys_strict_rules(schema: &Value) -> bool {
    if has_any(schema, NOT_STRICT) || !has_any(schema, SAY_WHAT) {
        return false;
    }
    if types_in(schema).contains(&"array") && !has_any(schema, &["items"]) {
        return false;
    }
    if is_of_object(schema) && !requires_its_fields_only(schema) {
        return false;
    }

    let mut parts = Vec::from_iter(elements(&schema["anyOf"]));
    for word in ["properties", "$defs", "definitions"] {
        parts.extend(named(&schema[word]).map(|(_, part)| part));
    }
    parts.extend(schema.get("items"));
    parts.into_iter().all(obeys_strict_rules)
}

/// Whether the schema of an object requires all its properties, and allows no others.
fn requires_its_fields_only(schema: &Value) -> bool {
    let required: HashSet<&str> = required(schema).collect();
    let names = named(&schema["properties"]).map(|(name, _)| name.as_str());
    schema["additionalProperties"] == false && required == names.collect()
}

fn has_any(schema: &Value, words: &[&str]) -> bool {
    words.iter().any(|word| schema.get(word).is_some())
}

fn has_maps(schema: &Value) -> bool {
    match schema {
        Value::Object(words) => {
            let others = words.get("additionalProperties");
            let takes_others = others.is_some_and(|others| *others != false);
            let has_free_names = takes_others || !words.contains_key("properties");
            let is_map = has_free_names && is_of_object(schema);
            is_map || words.values().any(has_maps)
        }
        Value::Array(schemas) => schemas.iter().any(has_maps),
        _ => false,
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    elements(&schema["required"])
        .iter()
        .filter_map(Value::as_str)
}

/// The fields of an object, such as the schemas in `properties`; none if the value is not an object.
fn named(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

/// The elements of a list; none if the value is not a list.
fn elements(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Whether a schema is that of an object.
pub fn is_of_object(schema: &Value) -> bool {
    types_in(schema).contains(&"object")
}

/// What the reference of a schema refers to, if it is one within the same document, such as `#/$defs/Pet`.
fn referred<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    let encoded = schema["$ref"].as_str()?.strip_prefix('#')?;
    let pointer = percent_decode_str(encoded).decode_utf8().ok()?;
    root.pointer(&pointer)
}

/// The types that a value of this schema may have; none if it may have any.
fn types_in(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if has_any(schema, &["properties", "required"]) => vec!["object"],
        _ => Vec::new(),
    }
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        // 5.0 is an integer, too.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// A value in an answer, to be compared with schemas.
struct Part<'a> {
    /// The complete schema, because references refer to parts of it.
    root: &'a Value,
    value: &'a Value,
    /// Where it is, such as `items.0.age`; empty for the answer itself.
    place: String,
}

impl<'a> Part<'a> {
    /// Compares the value with a schema, except for the words of JSON Schema that are not read here. `depth` is the number
    /// of schemas around this one that it is being compared with already. The error is the first difference.
    fn check(&self, schema: &Value, depth: usize) -> Result<(), String> {
        // A schema that leads back to itself asks for nothing more.
        if depth > MAX_DEPTH {
            return Ok(());
        }
        self.check_type(schema)?;
        self.check_value(schema)?;
        self.check_fields(schema)?;
        self.check_items(schema)?;
        let depth = depth + 1;
        if let Some(next) = referred(self.root, schema) {
            self.check(next, depth)?;
        }
        for part in elements(&schema["allOf"]) {
            self.check(part, depth)?;
        }
        self.check_alternatives(elements(&schema["anyOf"]), depth)?;
        // Only one may fit, but to check that, q would have to read all the words that distinguish them.
        self.check_alternatives(elements(&schema["oneOf"]), depth)
    }

    fn check_type(&self, schema: &Value) -> Result<(), String> {
        let types = types_in(schema);
        let fits = |kind: &&str| is_of_type(self.value, kind);
        if types.is_empty() || types.iter().any(fits) {
            return Ok(());
        }
        let types = types.join(" or ");
        Err(format!("{} is not of type {types}", self.name()))
    }

    fn check_value(&self, schema: &Value) -> Result<(), String> {
        if let Some(only) = schema.get("const")
            && self.value != only
        {
            return Err(format!("{} is not {only}", self.name()));
        }
        let Value::Array(allowed) = &schema["enum"] else {
            return Ok(());
        };
        if allowed.contains(self.value) {
            return Ok(());
        }
        let texts = Vec::from_iter(allowed.iter().map(Value::to_string));
        let name = self.name();
        Err(format!("{name} is not one of {}", texts.join(", ")))
    }

    fn check_fields(&self, schema: &Value) -> Result<(), String> {
        let Value::Object(fields) = self.value else {
            return Ok(());
        };
        for name in required(schema) {
            if !fields.contains_key(name) {
                return Err(format!("{} is missing", self.place_of(name)));
            }
        }
        for (name, part) in named(&schema["properties"]) {
            if let Some(value) = fields.get(name) {
                self.part(name, value).check(part, 0)?;
            }
        }
        Ok(())
    }

    fn check_items(&self, schema: &Value) -> Result<(), String> {
        let Value::Array(items) = self.value else {
            return Ok(());
        };
        // The first items may have schemas of their own.
        let first = elements(&schema["prefixItems"]);
        for (at, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(at).or(schema.get("items")) {
                let part = self.part(&at.to_string(), item);
                part.check(schema, 0)?;
            }
        }
        Ok(())
    }

    fn check_alternatives(&self, schemas: &[Value], depth: usize) -> Result<(), String> {
        let fits = |schema: &Value| self.check(schema, depth).is_ok();
        if schemas.is_empty() || schemas.iter().any(fits) {
            return Ok(());
        }
        Err(format!("{} fits no alternative", self.name()))
    }

    /// A field, or an item of a list.
    fn part(&self, name: &str, value: &'a Value) -> Part<'a> {
        Part {
            root: self.root,
            value,
            place: self.place_of(name),
        }
    }

    fn place_of(&self, name: &str) -> String {
        if self.place.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.place)
        }
    }

    /// What errors call this part.
    fn name(&self) -> &str {
        if self.place.is_empty() {
            "it"
        } else {
            &self.place
        }
    }
}

/// The text inside a code fence around all of it, if there is one.
fn inside_fence(text: &str) -> Option<&str> {
    if !text.starts_with("```") && !text.starts_with("~~~") {
        return None;
    }
    let (_, inside) = text.split_once('\n')?;
    Some(inside.trim_end_matches(['`', '~']))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;
    use crate::text::one_line::tests::rows;

    fn short(text: &str) -> Shape {
        Shape::from_short(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The shape of a schema, whatever that is.
    fn shape(schema: &str) -> Shape {
        let schema =
            serde_json::from_str(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        Shape { schema }
    }

    #[test]
    fn the_short_form_names_fields_in_their_order_with_types_and_descriptions() {
        let of = |properties: &str| {
            let fields: Map<String, Value> = serde_json::from_str(properties).expect(properties);
            let names: Vec<&String> = fields.keys().collect();
            json!({"type": "object", "properties": fields, "required": names, "additionalProperties": false})
        };
        let person = r#"{"name": {"type": "string"}, "age": {"type": "integer"}}"#;
        let kinds = r#"{"a": {"type": "number"}, "b": {"type": "boolean"},
            "c": {"type": "array", "items": {"type": "string"}}}"#;
        let tags = r#"{"tags": {"type": "array", "items": {"type": "string"}, "description": "what they like"}}"#;
        let described = r#"{"name": {"type": "string", "description": "first, then last"},
            "zip-code": {"type": "string", "description": "of the house: five digits"}}"#;
        let lines = "name: first, then last\nzip-code: of the house: five digits\n";
        let people = json!({"items": {"type": "array", "items": of(person)}}).to_string();
        for (text, properties) in [
            ("name", r#"{"name": {"type": "string"}}"#),
            ("größe_2 int", r#"{"größe_2": {"type": "integer"}}"#),
            ("name, age int", person),
            (" name ,age  int ", person),
            ("name str\nage int\n", person),
            ("\nname\n\n  age int\n", person),
            ("a float, b bool, c list", kinds),
            ("tags list: what they like", tags),
            (lines, described),
            ("[name, age int]", &people),
            ("[\nname\nage int\n]", &people),
        ] {
            let shape = short(text);
            // As text, because the order of fields counts.
            assert_eq!(
                shape.schema.to_string(),
                of(properties).to_string(),
                "{text}"
            );
            assert!(shape.is_strict(), "{text}");
        }
    }

    #[test]
    fn what_is_not_the_short_form_is_refused_with_a_reason() {
        for [text, reason] in rows(
            "               | a field is empty
            name, name int  | “name” is given twice
            age integer     | the types are str, int, float, bool, list
            name str not null | the type “str not null”
            a/b             | “a/b” is not the name
            -               | “-” is not the name
            : what          | “” is not the name
            [name, age int  | not closed
            []              | a field is empty
            [[name]]        | “[name]” is not the name",
        ) {
            let error = Shape::from_short(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(Shape::from_short("  ").is_err());
    }

    #[test]
    fn a_schema_is_a_json_object() {
        for [text] in rows(
            r#"
            {"type":"object"}
            {"items":[{"type":"string"}]}
            {"anyOf":[true]}
            {"type":["string","null"]}"#,
        ) {
            assert_eq!(
                Shape::from_json(text).expect(text).schema,
                shape(text).schema
            );
        }
        for [text, reason] in rows(
            r#"                             | not JSON
            {                               | not JSON
            [1]                             | not an object
            7                               | not an object
"#,
        ) {
            let error = Shape::from_json(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_schema_is_strict_where_every_object_requires_all_it_has_and_nothing_else() {
        let strict = r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],
            "additionalProperties":false}"#;
        let loose =
            r#"{"type":"object","properties":{"b":{}},"required":[],"additionalProperties":false}"#;
        // What takes the place of a word of the strict one.
        for [word, value, is_strict] in rows(
            r##"
            type                 | "object"               | true
            type                 | "array"                | false
            type                 | ["object","null"]      | false
            required             | []                     | false
            required             | ["a","ghost"]          | false
            additionalProperties | true                   | false
            $defs                | {"A":STRICT}           | true
            $defs                | {"A":LOOSE}            | false
            allOf                | []                     | false
            properties           | {"a":STRICT}           | true
            properties           | {"a":LOOSE}            | false
            properties           | {"a":{"type":"array","items":STRICT}}         | true
            properties           | {"a":{"type":"array","items":LOOSE}}          | false
            properties           | {"a":{"type":"array","items":[{"type":"string"}]}} | false
            properties           | {"a":{"type":"array"}}                        | false
            properties           | {"a":{"anyOf":[STRICT,{"type":"null"}]}}      | true
            properties           | {"a":{"anyOf":[LOOSE,{"type":"null"}]}}       | false
            properties           | {"a":{"oneOf":[]}}                            | false
            properties           | {"a":{"type":["object","null"]}}              | false
            properties           | {"a":{"type":["string","null"]}}              | true
            properties           | {"a":{"type":"string","default":"x"}}         | false
            properties           | {"a":{"type":"string","minLength":1}}         | false
            properties           | {"a":{"enum":["x","y"]}}                      | true
            properties           | {"a":{"$ref":"#/$defs/A"}}                    | true
            properties           | {"a":{}}                                      | false
            properties           | {"a":true}                                    | false"##,
        ) {
            let mut schema = shape(strict);
            schema.schema[word] =
                shape(&value.replace("STRICT", strict).replace("LOOSE", loose)).schema;
            assert_eq!(schema.is_strict().to_string(), is_strict, "{word} {value}");
        }
        assert!(!shape("{}").is_strict());
    }

    #[test]
    fn objects_whose_fields_have_no_names_are_maps() {
        for [schema, has_maps] in rows(
            r#"
            {"type":"object","properties":{"a":{}}} | false
            {"type":"object","properties":{"a":{}},"additionalProperties":false} | false
            {"type":"object","properties":{"a":{}},"additionalProperties":true} | true
            {"type":"object"} | true
            {"type":"object","additionalProperties":{"type":"number"}} | true
            {"properties":{"a":{"type":"object","additionalProperties":{"type":"number"}}}} | true
            {"properties":{"a":{"items":{"anyOf":[{"type":"object"}]}}}} | true"#,
        ) {
            assert_eq!(shape(schema).has_maps().to_string(), has_maps, "{schema}");
        }
    }

    #[test]
    fn an_answer_is_taken_if_it_is_json_of_the_shape() {
        let [person, people] = ["name, age int", "[name, age int]"];
        let json = r#"{"name":"a","age":1}"#;
        for around in [
            "JSON",
            " JSON\n",
            "```json\nJSON\n```",
            "```\n\nJSON```\n",
            "~~~~\nJSON\n~~~~",
            "````json\nJSON\n````",
            "```json\nJSON",
        ] {
            let answer = around.replace("JSON", json);
            assert_eq!(short(person).find_in(&answer), Ok(json), "{answer}");
        }
        for around in ["``\nJSON\n``", "JSON and more"] {
            let answer = around.replace("JSON", json);
            let error = short(person).find_in(&answer).expect_err(&answer);
            assert!(error.contains("not JSON"), "{answer}: {error}");
        }
        for (shape, answers) in [
            (person, [json, r#"{"age":5.0,"name":"","more":1}"#]),
            (
                people,
                [r#"{"items":[]}"#, r#"{"items":[{"name":"a","age":1}]}"#],
            ),
        ] {
            for answer in answers {
                assert_eq!(short(shape).find_in(answer), Ok(answer));
            }
        }
        for [shape, answer, fault] in rows(
            r#"
            name, age int   |                            | not JSON
            name, age int   | {"name":"a","age":1        | not JSON
            name, age int   | {"name":"a"}               | age is missing
            name, age int   | {"name":"a","age":"forty"} | age is not of type integer
            name, age int   | {"name":null,"age":1}      | name is not of type string
            name, age int   | []                         | it is not of type object
            name, age int   | 7                          | it is not of type object
            [name, age int] | [{"name":"a","age":1}]     | it is not of type object
            [name, age int] | {"items":"none"}           | items is not of type array
            [name, age int] | {"items":{"a":1}}          | items is not of type array
            [name, age int] | {"items":[{"name":"a","age":1},{"age":1}]} | items.1.name is missing"#,
        ) {
            let error = short(shape).find_in(answer).expect_err(answer);
            assert!(error.contains(fault), "{answer}: {error}");
        }
    }

    #[test]
    fn an_answer_has_the_types_and_values_of_its_schema() {
        for [schema, value, fault] in rows(
            r#"
            {"type":"string"}          | 7       | a is not of type string
            {"type":"string"}          | "7"     |
            {"type":"number"}          | "7"     | a is not of type number
            {"type":"integer"}         | 5.5     | a is not of type integer
            {"type":"integer"}         | 5.0     |
            {"type":"integer"}         | 18446744073709551615 |
            {"type":"array"}           | {}      | a is not of type array
            {"type":["integer","null"]} | null   |
            {"type":["integer","null"]} | "x"    | a is not of type integer or null
            {"type":"word"}            | 7       |
            {"type":["object","null"],"required":["b"]} | null |
            {"type":["object","null"],"required":["b"]} | {} | a.b is missing
            {"enum":["good",5,null]}   | "good"  |
            {"enum":["good",5,null]}   | "5"     | a is not one of "good", 5, null
            {"enum":[]}                | "5"     | a is not one of
            {"const":{"b":1}}          | {"b":1} |
            {"const":"x"}              | "y"     | a is not "x"
            {"items":{"items":{"type":"string"}}} | [["x"],["y",7]] | a.1.1 is not of type string
            {"prefixItems":[{}],"items":{"type":"string"}} | [7,"x"] |
            {"prefixItems":[{}],"items":{"type":"string"}} | ["x",7] | a.1 is not of type string
            {"prefixItems":[{},{"type":"string"}]} | [7,7,7] | a.1 is not of type string
            {"items":[{"type":"string"}]} | [7]  |
            {"anyOf":NULLABLE} | null |
            {"anyOf":NULLABLE} | "x" | a fits no alternative
            {"oneOf":PETS}             | {"kind":"dog","age":7} |
            {"oneOf":PETS}             | {"kind":"cat","age":7} |
            {"oneOf":PETS} | {"kind":"dog","age":"x"} | a fits no alternative
            {"allOf":[{"type":"integer"},{"enum":[1,2]}]} | 2 |
            {"allOf":[{"type":"integer"},{"enum":[1,2]}]} | 3 | a is not one of 1, 2
            {"minimum":5,"pattern":"x","not":{},"additionalProperties":false} | {"b":1} |"#,
        ) {
            let nullable = r#"[{"type":"integer"},{"type":"null"}]"#;
            let pets = r#"[{"type":"object","properties":{"kind":{"const":"cat"}},"required":["kind"]},
                {"type":"object","properties":{"kind":{"const":"dog"},"age":{"type":"integer"}}}]"#;
            let schema = schema.replace("PETS", pets).replace("NULLABLE", nullable);
            let shape = shape(&format!(r#"{{"properties":{{"a":{schema}}}}}"#));
            let answer = format!(r#"{{"a":{value}}}"#);
            let found = shape.find_in(&answer).err().unwrap_or_default();
            let is_as_given = found.contains(fault) && found.is_empty() == fault.is_empty();
            assert!(is_as_given, "{schema} {answer}: {found}");
            // A field that is not required may be left out.
            assert_eq!(shape.find_in("{}"), Ok("{}"));
        }
    }

    #[test]
    fn an_answer_is_compared_with_what_its_schema_refers_to() {
        let pet = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
        // Of the field `pet`.
        for [field, value, fault] in rows(
            r##"
            {"$ref":"#/$defs/Pet"}                     | {"n":1}   |
            {"$ref":"#/$defs/Pet"}                     | {}        | pet.n is missing
            {"$ref":"#/$defs/Pet"}                     | {"n":"x"} | pet.n is not of type integer
            {"$ref":"#/$defs/Pet"}                     | []        | pet is not of type object
            {"$ref":"#/$defs/Pet","required":["name"]} | {"n":1}   | pet.name is missing
            {"$ref":"#/$defs/a%7E1b"}                  | {}        | pet.n is missing
            {"$ref":"#/$defs/Cat"}                     | {}        |
            {"$ref":"https://example.com/pet"}         | {}        |
            {"anyOf":[{"$ref":"#/$defs/Pet"}]}         | {}        | pet fits no alternative
            PET                                        | []        | pet is not of type object
            {"required":["n"]}                         | []        | pet is not of type object
            {"type":"array","required":["n"]}          | []        |
            {"type":["array","object"],"items":PET,"required":["n"]} | [{"n":1}] |
            {"type":["array","object"],"items":PET,"required":["n"]} | [{}]      | pet.0.n is missing
            {"type":["array","object"],"items":PET,"required":["n"]} | {}        | pet.n is missing
            {"type":["array","object"],"items":PET,"required":["n"]} | null | pet is not of type array or object"##,
        ) {
            let schema =
                r#"{"type":"object","properties":{"pet":FIELD},"$defs":{"Pet":PET,"a/b":PET}}"#;
            let schema = schema.replace("FIELD", field).replace("PET", pet);
            let answer = format!(r#"{{"pet":{value}}}"#);
            let found = shape(&schema).find_in(&answer).err().unwrap_or_default();
            assert_eq!(found, fault, "{field} {value}");
        }
        let turns = r##"{"$ref":"#/$defs/A","$defs":{
            "A":{"allOf":[{"$ref":"#/$defs/B"},{"$ref":"#/$defs/B"},{"$ref":"#"}]},
            "B":{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#"}],"required":["n"]}}}"##;
        for [schema, answer, fault] in rows(
            r##"
            {"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":PET}} | {} | n is missing
            {"$ref":"#"} | 7 |
            {"properties":{"next":{"$ref":"#"}},"required":["n"]} | {"n":1,"next":{"n":1}} |
            {"properties":{"next":{"$ref":"#"}},"required":["n"]} | {"n":1,"next":{}} | next.n is missing
            TURNS                    | {"n":1} |
            TURNS                    | {}      | n is missing
            {"type":"array"}         | []      |
            {"type":"array"}         | {}      | it is not of type array
            {"type":"object"}        | 7       | it is not of type object
            {"type":["array","null"]} | null   |"##,
        ) {
            let schema = schema.replace("TURNS", turns).replace("PET", pet);
            let found = shape(&schema).find_in(answer).err().unwrap_or_default();
            assert_eq!(found, fault, "{schema} {answer}");
        }
    }

    #[test]
    fn the_shape_of_an_object_is_distinguished_from_others() {
        for [schema, is_object] in rows(
            r##"
            {"type":"object"}                                      | true
            {"properties":{}}                                      | true
            {"$ref":"#/$defs/A","$defs":{"A":{"type":"object"}}}   | false
            {"$ref":"#"}                                           | false
            {"type":"array","properties":{}}                       | false
            {"type":["object","null"]}                             | false
            {"anyOf":[{"type":"object"},{"type":"array"}]}         | false
            {}                                                     | false"##,
        ) {
            assert_eq!(shape(schema).is_object().to_string(), is_object, "{schema}");
        }
    }

    /// A schema, and a value that fits it.
    fn schemas() -> impl Strategy<Value = (Value, Value)> {
        let leaf = prop_oneof![
            "[a-z]{0,3}".prop_map(|text| (json!({"type": "string"}), json!(text))),
            any::<i32>().prop_map(|number| (json!({"type": "integer"}), json!(number))),
            any::<i32>()
                .prop_map(|number| (json!({"type": ["number"]}), json!(f64::from(number) / 2.0))),
            any::<bool>().prop_map(|truth| (json!({"type": "boolean"}), json!(truth))),
            "[a-z]{0,3}".prop_map(|text| (json!({"enum": ["x", text]}), json!(text))),
            any::<i32>().prop_map(|number| (json!({"const": number}), json!(number))),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(|fields| {
                    let names = ["a", "b", "c"];
                    let pairs = || names.iter().map(|name| (*name).to_owned()).zip(&fields);
                    let schemas: Map<String, Value> = pairs()
                        .map(|(name, (schema, _))| (name, schema.clone()))
                        .collect();
                    let values: Map<String, Value> = pairs()
                        .map(|(name, (_, value))| (name, value.clone()))
                        .collect();
                    let required: Vec<&String> = schemas.keys().collect();
                    let schema = json!({
                        "type": "object",
                        "properties": schemas,
                        "required": required,
                        "additionalProperties": false,
                    });
                    (schema, Value::Object(values))
                }),
                (inner.clone(), 0..3_usize).prop_map(|((schema, value), count)| {
                    (
                        json!({"type": "array", "items": schema}),
                        json!(vec![value; count]),
                    )
                }),
                inner
                    .clone()
                    .prop_map(|(schema, value)| (json!({"allOf": [{}, schema]}), value)),
                inner.prop_map(|(schema, value)| (
                    json!({"anyOf": [{"type": "null"}, schema]}),
                    value
                )),
            ]
        })
    }

    /// The places of all values in a value, as JSON pointers.
    fn places(value: &Value) -> Vec<String> {
        let parts: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(name, field)| (name.clone(), field))
                .collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(at, item)| (at.to_string(), item))
                .collect(),
            _ => Vec::new(),
        };
        let mut all = vec![String::new()];
        for (name, part) in parts {
            all.extend(
                places(part)
                    .into_iter()
                    .map(|place| format!("/{name}{place}")),
            );
        }
        all
    }

    proptest! {
        #[test]
        fn a_value_of_a_schema_fits_until_a_part_of_it_has_another_type(
            (schema, mut value) in schemas(),
            place in any::<prop::sample::Index>(),
            other in prop::sample::select(vec![json!("other"), json!(7), json!(false), json!([]), json!({})]),
        ) {
            let shape = Shape { schema };
            prop_assert!(shape.find_in(&value.to_string()).is_ok(), "{} {}", shape.schema, value);
            let places = places(&value);
            let part = value.pointer_mut(place.get(&places).as_str()).expect("a part");
            prop_assume!(std::mem::discriminant(part) != std::mem::discriminant(&other));
            *part = other;
            prop_assert!(shape.find_in(&value.to_string()).is_err(), "{} {}", shape.schema, value);
        }

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
