//! Reads the shape of JSON that an answer must have from `--schema`, and compares an answer with it (pure).

mod comparison;
mod forms;
mod items;
mod keywords;
mod spec;
mod splitter;
mod subschemas;
mod well_formed;

use std::collections::HashSet;

use serde_json::Value;

pub use comparison::{ListPlace, Misfit};
use comparison::{MAX_STEPS, compare, parse_answer};
pub use items::{ItemFault, ItemReader};
pub use keywords::{TYPES, elements, is_of_object, named, referred};
use keywords::{has_any, required, types_in};
pub use spec::SchemaSpec;
use subschemas::subschemas;

use crate::text::json;
use crate::text::reasoning_end::{Extent, split_at_end};
use crate::text::short_form::{self, FormPurpose};

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

/// A JSON Schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// A JSON object.
    pub schema: Value,
    /// Whether null counts as a missing field, as it does where the short form has a field that may be missing.
    takes_null: bool,
}

impl Shape {
    /// Returns the shape of this schema, which is an object.
    pub fn new(schema: Value) -> Shape {
        Shape {
            schema,
            takes_null: false,
        }
    }

    /// Returns the shape of a schema that an earlier question had. Only the schema is saved, so one that the short form can have
    /// made counts as made by it.
    pub fn repeated(schema: Value) -> Shape {
        Shape {
            takes_null: short_form::may_have_made(&schema),
            schema,
        }
    }

    /// Reads a JSON Schema, which must be an object, also within what APIs wrap around it.
    pub fn from_json(text: &str) -> Result<Shape, String> {
        let schema: Value = json::parse(text).map_err(not_json)?;
        if !schema.is_object() {
            return Err("it is JSON, but not an object".to_owned());
        }
        let schema = forms::unwrapped(schema)?;
        well_formed::check_keywords(&schema)?;
        Ok(Shape::new(schema))
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
        let fields = short_form::parse(text, FormPurpose::Answer)?;
        let mut schema = short_form::schema_of(&fields);
        if is_list {
            schema = short_form::list_of(schema);
        }
        Ok(Shape {
            schema,
            takes_null: true,
        })
    }

    /// Returns the schema that an answer is compared with.
    pub fn checked_schema(&self) -> Value {
        let mut checked = self.schema.clone();
        if self.takes_null {
            forms::allow_null_for_missing(&mut checked);
        }
        checked
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

    /// Returns where its list is. If it has not exactly one, the error has the names of all.
    pub fn list(&self) -> Result<ListPlace, Vec<String>> {
        ListPlace::find(&self.schema)
    }

    /// Returns the JSON of this shape in an answer, without a code fence around it. What is no JSON may begin with reasoning.
    pub fn find_in<'a>(&self, answer: &'a str) -> Result<&'a str, Misfit> {
        let mut text = without_fence(answer);
        let mut parsed = parse_answer(text);
        if parsed.is_err()
            && let Some((_, rest)) = split_at_end(answer, Extent::Whole)
            && let Ok(value) = parse_answer(without_fence(rest))
        {
            text = without_fence(rest);
            parsed = Ok(value);
        }
        let value = parsed.map_err(unreadable)?;
        json::check_names(text).map_err(|error| Misfit::Differs(error.to_string()))?;
        compare(&value, &self.checked_schema(), MAX_STEPS)?;
        Ok(text)
    }
}

fn without_fence(answer: &str) -> &str {
    let answer = answer.trim();
    inside_fence(answer).unwrap_or(answer).trim()
}

/// Returns why an answer cannot be parsed.
fn unreadable(error: serde_json::Error) -> Misfit {
    if error.to_string() == json::TOO_MANY_VALUES {
        Misfit::TooLarge
    } else {
        Misfit::Differs(not_json(error))
    }
}

fn not_json(error: serde_json::Error) -> String {
    let reason = json::parse_failure(&error);
    // The parser allows 127 levels.
    if reason.starts_with("recursion limit") {
        return "it has more than 127 lists and objects within each other".to_owned();
    }
    if reason == json::TOO_MANY_VALUES {
        return reason;
    }
    format!("it is not JSON ({reason})")
}

fn obeys_strict_rules(schema: &Value) -> bool {
    if has_any(schema, NOT_STRICT) || !has_any(schema, SAY_WHAT) {
        return false;
    }
    // In older drafts, a list in `items` is what `prefixItems` is.
    let may_lack_items = !types_in(schema).contains(&"array");
    if schema["items"].is_array() || !(may_lack_items || has_any(schema, &["items"])) {
        return false;
    }
    if is_of_object(schema) && !requires_its_fields_only(schema) {
        return false;
    }

    let mut parts = subschemas(schema).into_iter();
    // That of an object is `false`, as checked above. For any other value it says nothing.
    parts.all(|(word, part)| word == "additionalProperties" || obeys_strict_rules(part))
}

/// Whether the schema of an object requires all its properties, and allows no others.
fn requires_its_fields_only(schema: &Value) -> bool {
    let required: HashSet<&str> = required(schema).collect();
    let names = named(&schema["properties"]).map(|(name, _)| name.as_str());
    schema["additionalProperties"] == false && required == names.collect()
}

fn has_maps(schema: &Value) -> bool {
    let others = schema.get("additionalProperties");
    let takes_others = others.is_some_and(|others| *others != false);
    let has_free_names = takes_others || !has_any(schema, &["properties"]);
    let is_map = has_free_names && is_of_object(schema);
    let mut parts = subschemas(schema).into_iter();
    is_map || parts.any(|(_, part)| has_maps(part))
}

/// Returns the text inside a code fence around all of it, if there is one.
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

    use serde_json::json;

    use super::*;
    use crate::text::table::rows;

    fn short(text: &str) -> Shape {
        Shape::from_short(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Why an answer is not of a shape; empty if it is.
    fn reason_against(shape: &Shape, answer: &str) -> String {
        match shape.find_in(answer) {
            Ok(_) => String::new(),
            Err(Misfit::Differs(reason)) => reason,
            Err(Misfit::Undecided) => "undecided".to_owned(),
            Err(Misfit::TooLarge) => "too large".to_owned(),
        }
    }

    /// The shape of a schema, whatever that is.
    fn shape(schema: &str) -> Shape {
        let schema =
            serde_json::from_str(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        Shape::new(schema)
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
    fn an_invalid_short_form_is_refused_with_a_reason() {
        for [text, reason] in rows(
            "
            -               | it is empty
            ,               | there is nothing before a comma
            name,, age      | there is nothing before a comma
            name, name int  | “name” is given twice
            age integer     | the types are str, int, float, bool, list
            name str not null | the type “str not null”
            name, age int?  | the field “age” has a question mark after its type; it comes after the name: age? int
            age? int?       | it comes after the name: age? int
            l list?: what   | it comes after the name: l? list
            age integer?    | it comes after the name: age? int
            age numbr?      | the types are str, int, float, bool, list
            a/b             | “a/b” is not the name
            name, -         | “-” is not the name
            : what          | “” is not the name
            [name, age int  | not closed
            []              | it is empty
            [[name]]        | “[name]” is not the name",
        ) {
            let error = Shape::from_short(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(Shape::from_short("  ").is_err());
    }

    #[test]
    fn null_counts_as_a_missing_field_only_where_the_short_form_lets_it_be_missing() {
        // A shape, an answer, and what is wrong with it.
        let table = r#"
            name, note?        | {"name":"a"}                       | -
            name, note?        | {"name":"a","note":null}           | -
            name, note?        | {"name":"a","note":1}              | note is not of type string or null
            name, note?        | {"name":null}                      | name is not of type string
            n? int, m? a|b, l? list, f? float, b? bool | {"n":null,"m":null,"l":null,"f":null,"b":null} | -
            m? a|b           | {"m":"c"}                          | m is not one of "a", "b", null
            l? list            | {"l":[null]}                       | l.0 is not of type string
            [name, note?]      | {"items":[{"name":"a","note":null}]} | -
            [name, note?]      | {"items":null}                     | items is not of type array
            [name, note?]      | {"items":[{"name":null}]}          | items.0.name is not of type string
            {"properties":{"note":{"type":"string"}}} | {"note":null} | note is not of type string
            {"type":"object","properties":{"note":{"type":"string"}},"required":[],"additionalProperties":false} | {"note":null} | note is not of type string
        "#;
        for [spec, answer, fault] in rows(table) {
            let shape = if spec.starts_with('{') {
                Shape::from_json(spec).expect("a schema")
            } else {
                let shape = short(spec);
                // What is sent does not say so.
                assert!(!shape.schema.to_string().contains("null"), "{spec}");
                let again = Shape::repeated(shape.schema.clone());
                assert_eq!(again, shape, "{spec}");
                shape
            };
            assert_eq!(reason_against(&shape, answer), fault, "{spec}: {answer}");
        }
        // None of these has the form of a schema that the short form makes.
        for schema in [
            r#"{"properties":{"note":{"type":"string"}}}"#,
            r#"{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":[],"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":["string"]}},"required":[],"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{}},"required":[],"additionalProperties":false}"#,
            r#"{"type":"object","properties":{"a":{"type":"object"}},"required":[],"additionalProperties":false}"#,
            r#"{"type":"object","properties":{},"required":[]}"#,
            "true",
        ] {
            let schema: Value = serde_json::from_str(schema).expect("JSON");
            assert_eq!(Shape::repeated(schema.clone()), Shape::new(schema));
        }
    }

    #[test]
    fn a_schema_must_be_a_json_object() {
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
            r#"
            -                               | not JSON
            {                               | not JSON
            [1]                             | not an object
            7                               | not an object
            {"name":"Ann","age":5}          | it has no keyword that says what an answer is
            {"type":"objekt"}               | type: there is no type “objekt”; did you mean object?
            {"type":"list"}                 | type: there is no type “list”; did you mean array?
            {"type":["strng"]}              | type: there is no type “strng”; did you mean string?
            {"type":["strng",1]}            | type: there is no type “strng”; did you mean string?
            {"type":"dog","name":"Rex"}     | type: there is no type “dog”
            {"type":"json_schema"}          | type: there is no type “json_schema”
            {"type":5}                      | type: must be the name of a type
            {"type":[]}                     | type: must be the name of a type
            {"type":null,"name":"Ann"}      | type: must be the name of a type
            {"schema":{"type":"objekt"}}    | type: there is no type “objekt”; did you mean object?
            {"type":"json_schema","json_schema":{"schema":{"type":"Str"}}} | type: there is no type “Str”; did you mean string?
"#,
        ) {
            let error = Shape::from_json(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_schema_is_strict_if_every_object_requires_all_its_fields_and_no_others() {
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
            properties           | {"a":{"type":"string","definitions":{"A":LOOSE}}} | false
            properties           | {"a":{"type":"string","additionalProperties":LOOSE}} | true
            properties           | {"a":{"type":"string","unevaluatedItems":LOOSE}} | false
            properties           | {"a":{"enum":[{"oneOf":[]}]}}                 | true
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
    fn a_schema_has_maps_if_an_object_in_it_allows_fields_without_given_names() {
        for [schema, has_maps] in rows(
            r#"
            {"type":"object","properties":{"a":{}}} | false
            {"type":"object","properties":{"a":{}},"additionalProperties":false} | false
            {"type":"object","properties":{"a":{}},"additionalProperties":true} | true
            {"type":"object"} | true
            {"type":"object","additionalProperties":{"type":"number"}} | true
            {"properties":{"a":{"type":"object","additionalProperties":{"type":"number"}}}} | true
            {"properties":{"a":{"items":{"anyOf":[{"type":"object"}]}}}} | true
            {"properties":{"required":{"type":"string"}}} | false
            {"properties":{"properties":{"type":"string"},"type":{"enum":["object"]}}} | false
            {"properties":{"additionalProperties":{"type":"string"}}} | false
            {"$defs":{"properties":{"type":"string"}},"properties":{"a":{}}} | false
            {"properties":{"a":{"enum":[{"type":"object"}]}}} | false
            {"properties":{"a":{"const":{"type":"object"},"default":{"required":[]}}}} | false
            {"properties":{"a":{"examples":[{"type":"object"}]}}} | false
            {"properties":{"required":{"type":"object"}}} | true
            {"$defs":{"A":{"type":"object"}},"properties":{"a":{}}} | true
            {"properties":{"a":{"items":{"if":{"type":"object"}}}}} | true
            {"properties":{"a":{"unevaluatedItems":{"type":"object"}}}} | true"#,
        ) {
            assert_eq!(shape(schema).has_maps().to_string(), has_maps, "{schema}");
        }
    }

    #[test]
    fn an_answer_is_accepted_if_it_is_json_that_matches_the_schema() {
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
            let error = reason_against(&short(person), &answer);
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
            let error = reason_against(&short(shape), answer);
            assert!(error.contains(fault), "{answer}: {error}");
        }
    }

    #[test]
    fn an_answer_must_have_the_types_and_values_of_its_schema() {
        for [schema, value, fault] in rows(
            r#"
            {"type":"string"}          | 7       | a is not of type string
            {"type":"string"}          | "7"     |
            {"additionalProperties":{"type":"number"}} | {"b":"7"} | a.b is not of type number
            {"additionalProperties":{"type":"number"}} | {"b":7} |
            {"additionalProperties":{"type":"number"},"properties":{"b":{"type":"string"}}} | {"b":"7","c":7} |
            {"additionalProperties":{"type":"number"},"properties":{"b":{"type":"string"}}} | {"b":"7","c":"7"} | a.c is not of type number
            {"additionalProperties":{"type":"number"},"patternProperties":{"^b":{}}} | {"b":"7"} |
            {"additionalProperties":false,"properties":{}} | {"b":"7"} |
            {"anyOf":[{"type":"object","additionalProperties":{"type":"number"}},{"type":"null"}]} | {"b":"7"} | a matches no alternative
            {"type":"number"}          | "7"     | a is not of type number
            {"type":"integer"}         | 5.5     | a is not of type integer
            {"type":"integer"}         | 5.0     |
            {"type":"integer"}         | 5.00    |
            {"type":"integer"}         | 1e2     |
            {"type":"integer"}         | 15e-1   | a is not of type integer
            {"type":"integer"}         | 1e999999999999 |
            {"type":"integer"}         | 1e-999999999999 | a is not of type integer
            {"type":"integer"}         | 18446744073709551615 |
            {"type":"integer"}         | 1844674407370955161500000000001.0 |
            {"enum":[1,2.50]}          | 1.0     |
            {"enum":[1,2.50]}          | 25e-1   |
            {"enum":[1,2.50]}          | 10      | a is not one of 1, 2.50
            {"enum":[[1],{"b":1}]}     | {"b":1.0} |
            {"const":1e2}              | 100     |
            {"const":100}              | 1e999999999999 | a is not 100
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
            {"anyOf":NULLABLE} | "x" | a matches no alternative
            {"oneOf":PETS}             | {"kind":"dog","age":7} |
            {"oneOf":PETS}             | {"kind":"cat","age":7} |
            {"oneOf":PETS} | {"kind":"dog","age":"x"} | a matches no alternative
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
            let found = reason_against(&shape, &answer);
            let is_as_given = found.contains(fault) && found.is_empty() == fault.is_empty();
            assert!(is_as_given, "{schema} {answer}: {found}");
            // A field that is not required may be left out.
            assert_eq!(shape.find_in("{}"), Ok("{}"));
        }
    }

    #[test]
    fn an_answer_is_compared_with_the_definitions_that_its_schema_refers_to() {
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
            {"anyOf":[{"$ref":"#/$defs/Pet"}]}         | {}        | pet matches no alternative
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
            let found = reason_against(&shape(&schema), &answer);
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
            let found = reason_against(&shape(&schema), answer);
            assert_eq!(found, fault, "{schema} {answer}");
        }
    }

    /// A schema that refers to the first of these definitions; `ALL` in one of them means a list of references to each.
    fn circular(definitions: &[String]) -> Shape {
        let names = 0..definitions.len();
        let all = names.map(|at| format!(r##"{{"$ref":"#/$defs/{at}"}}"##));
        let all = Vec::from_iter(all).join(",");
        let named = definitions.iter().enumerate();
        let named = named.map(|(at, definition)| format!(r#""{at}":{definition}"#));
        let named = Vec::from_iter(named)
            .join(",")
            .replace("ALL", &format!("[{all}]"));
        shape(&format!(r##"{{"$ref":"#/$defs/0","$defs":{{{named}}}}}"##))
    }

    /// An object with an object in its field `n`, and so on, around a value.
    fn nested(levels: usize, value: &str) -> String {
        "{\"n\":".repeat(levels) + value + &"}".repeat(levels)
    }

    #[test]
    fn circular_schemas_are_compared_in_bounded_time() {
        let eight = |word: &str| {
            let all = [r##"{"$ref":"#"}"##; 8].join(",");
            shape(&format!(r#"{{"{word}":[{all}],"required":["n"]}}"#))
        };
        for word in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(reason_against(&eight(word), "{\"n\":1}"), "", "{word}");
            assert_eq!(reason_against(&eight(word), "{}"), "n is missing", "{word}");
        }
        // Each of them refers to each of them, also for the fields.
        let many = |definition: &str| circular(&vec![definition.to_owned(); 20]);
        for (definition, value, fault) in [
            (r#"{"allOf":ALL,"type":"integer"}"#, "7", ""),
            (
                r#"{"allOf":ALL,"type":"integer"}"#,
                "[]",
                "it is not of type integer",
            ),
            (
                r#"{"properties":{"n":{"allOf":ALL}},"type":"object"}"#,
                &nested(120, "{}"),
                "",
            ),
            (
                r#"{"properties":{"n":{"allOf":ALL}},"type":"object"}"#,
                "{\"n\":7}",
                "n is not of type object",
            ),
            (
                r#"{"properties":{"n":{"anyOf":ALL}},"type":"object"}"#,
                &nested(120, "{}"),
                "",
            ),
            (
                r#"{"properties":{"n":{"anyOf":ALL}},"type":"object"}"#,
                &nested(100, "7"),
                "n matches no alternative",
            ),
            (
                r#"{"anyOf":[{"properties":{"n":{"anyOf":ALL}},"required":["n"]},{"type":"null"}]}"#,
                &nested(100, "null"),
                "",
            ),
            (
                r#"{"anyOf":[{"properties":{"n":{"anyOf":ALL}},"required":["n"]},{"type":"null"}]}"#,
                &nested(100, "{}"),
                "it matches no alternative",
            ),
            (r#"{"anyOf":ALL,"type":"integer"}"#, "7", ""),
        ] {
            assert_eq!(
                reason_against(&many(definition), value),
                fault,
                "{definition}"
            );
        }
    }

    #[test]
    fn an_alternative_that_refers_back_to_its_own_schema_is_ignored() {
        for [schema, value, fault] in rows(
            r##"
            {"anyOf":[{"$ref":"#"},{"type":"string"}]} | "x" |
            {"anyOf":[{"$ref":"#"},{"type":"string"}]} | 7   | it matches no alternative
            {"anyOf":[{"$ref":"#/$defs/A"},{"type":"string"}],"$defs":{"A":{"anyOf":[{"$ref":"#"}]}}} | 7 | it matches no alternative
            {"anyOf":[{"$ref":"#/$defs/A"},{"type":"string"}],"$defs":{"A":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}} | null |
            {"anyOf":[{"$ref":"#/$defs/A"},{"type":"string"}],"$defs":{"A":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}} | "x" |
            {"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}],"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"}],"required":["n"]}}} | {"n":1} |
            {"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}],"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"}],"required":["n"]}}} | {} | it matches no alternative
            {"anyOf":[{"$ref":"#"}]} | 7 |
            {"$ref":"#","allOf":[{"$ref":"#"}]} | 7 | "##,
        ) {
            assert_eq!(
                reason_against(&shape(schema), value),
                fault,
                "{schema} {value}"
            );
        }
    }

    #[test]
    fn an_answer_with_too_many_values_is_not_said_to_be_no_json() {
        let many = format!("[{}0]", "0,".repeat(500_000));
        let misfit = shape("{}").find_in(&many).expect_err("too many");
        let words = "the answer cannot be checked against the schema: it has too many values";
        assert_eq!(misfit.to_string(), words);
    }

    #[test]
    fn a_comparison_that_takes_too_many_steps_or_goes_too_deep_is_given_up() {
        let definition = r#"{"anyOf":[{"anyOf":ALL},{"type":"null"}]}"#;
        let many = circular(&vec![definition.to_owned(); 100]);
        for steps in [0, 1, 10, 10_000] {
            let compared = compare(&json!(7), &many.schema, steps);
            assert_eq!(compared, Err(Misfit::Undecided), "{steps}");
        }
        assert!(
            Misfit::Undecided
                .to_string()
                .contains("too many comparisons")
        );
        let chain = Vec::from_iter(
            (1..=2_000).map(|at| format!(r##"{{"anyOf":[{{"$ref":"#/$defs/{at}"}}]}}"##)),
        );
        assert_eq!(circular(&chain).find_in("7"), Ok("7"));
        let chain = Vec::from_iter((1..=2_000).map(|at| format!(r##"{{"$ref":"#/$defs/{at}"}}"##)));
        assert_eq!(circular(&chain).find_in("7"), Ok("7"));
        let levels = |count: usize| "[".repeat(count) + &"]".repeat(count);
        assert_eq!(reason_against(&shape("{}"), &levels(127)), "");
        let fault = reason_against(&shape("{}"), &levels(128));
        assert!(fault.contains("more than 127"), "{fault}");
        let fault = Shape::from_json(&nested(128, "{}")).expect_err("a deep schema");
        assert!(fault.contains("more than 127"), "{fault}");
    }

    #[test]
    fn the_schema_of_an_object_is_distinguished_from_others() {
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
        fn a_value_matches_its_schema_until_a_part_of_it_has_another_type(
            (schema, mut value) in schemas(),
            place in any::<prop::sample::Index>(),
            other in prop::sample::select(vec![json!("other"), json!(7), json!(false), json!([]), json!({})]),
        ) {
            let shape = Shape::new(schema);
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
        fn the_text_that_is_taken_from_an_answer_is_json(answer in "(```(json)?\n)?[\\{\\}\\[\\]\":a1, ]{0,20}(\n?```)?") {
            if let Ok(json) = Shape::new(json!({})).find_in(&answer) {
                prop_assert!(serde_json::from_str::<Value>(json).is_ok() && answer.contains(json));
            }
        }
    }
}
