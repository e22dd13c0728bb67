//! Brings a JSON Schema into one form: takes it out of what APIs wrap around it, and turns the words of OpenAPI into its own
//! (pure).

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::keywords::{TYPES, has_any, required, types_in};
use super::subschemas::{INNER, NAMED, subschemas_mut};

/// The fields in which APIs want a schema, or an object with such a field: of OpenAI's two APIs, Anthropic and Gemini, for
/// answers and for tools.
const WRAPPERS: &[&str] = &[
    "json_schema",
    "schema",
    "response_format",
    "text",
    "format",
    "output_config",
    "output_format",
    "generationConfig",
    "generation_config",
    "responseJsonSchema",
    "response_json_schema",
    "responseSchema",
    "response_schema",
    "function",
    "parameters",
    "parametersJsonSchema",
    "input_schema",
    "inputSchema",
];

/// The words of JSON Schema that ask something of a value, besides `type`.
const WORDS: &[&str] = &[
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "required",
    "dependentRequired",
    "dependentSchemas",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "contains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "$ref",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
];

/// The words that null may fail and that cannot name it themselves, as `type`, `enum` and `anyOf` can.
const OTHERS: &[&str] = &[
    "$ref", "oneOf", "allOf", "not", "if", "then", "else", "const",
];

/// Returns the schema within what APIs wrap around it. Its keywords need not be right.
///
/// # Errors
///
/// Says that what is innermost asks nothing of a value: it is an example, or something else.
pub fn unwrapped(mut value: Value) -> Result<Value, String> {
    let mut place = Vec::new();
    while !is_schema(&value) {
        let mut wrappers = WRAPPERS.iter();
        if let Some(name) = wrappers.find(|name| value[**name].is_object()) {
            value = value[*name].take();
            place.push(*name);
        } else if value.get("type").is_some() {
            // It wraps nothing, so the type is wrong.
            break;
        } else {
            return Err(not_a_schema(&place));
        }
    }
    let mut moved = HashSet::new();
    normalize(&mut value, "", &mut moved);
    if !moved.is_empty() {
        follow(&mut value, &moved);
    }
    Ok(value)
}

/// Returns why what is at this place, below the fields with these names, is no schema.
fn not_a_schema(place: &[&str]) -> String {
    let what = match place {
        [] => "it".to_owned(),
        names => names.join("."),
    };
    format!("{what} has no keyword that says what an answer is, such as type or properties")
}

/// Whether an object asks something of a value in words of JSON Schema.
fn is_schema(value: &Value) -> bool {
    let mut types = types_in(value).into_iter();
    has_any(value, WORDS) || types.any(|kind| TYPES.contains(&&*kind.to_lowercase()))
}

/// Turns `nullable` of OpenAPI into a type, and types in capitals, as Gemini has them, into small letters. `place` is the JSON
/// pointer to the schema, and `moved` gets those to what moves.
fn normalize(schema: &mut Value, place: &str, moved: &mut HashSet<String>) {
    for (below, part) in subschemas_mut(schema) {
        normalize(part, &format!("{place}{below}"), moved);
    }
    let Value::Object(words) = schema else {
        return;
    };
    words.retain(|word, value| !(value.is_null() && is_unset_by_null(word)));
    match words.get_mut("type") {
        Some(Value::Array(kinds)) => kinds.iter_mut().for_each(lower_type),
        Some(kind) => lower_type(kind),
        None => {}
    }
    if words.get("nullable").is_some_and(Value::is_boolean)
        && words.shift_remove("nullable") == Some(Value::Bool(true))
    {
        let inner = allow_null(schema).into_iter();
        moved.extend(inner.map(|word| format!("{place}/{word}")));
    }
}

/// Whether null as the value of a word says that it is not there, as programs write that have a place for each word. To `const`,
/// null is a value, and as a type, it may be meant for `"null"`.
fn is_unset_by_null(word: &str) -> bool {
    let has = |words: &[&str]| words.contains(&word);
    word != "const" && (has(WORDS) || has(NAMED) || has(INNER))
}

/// Lets the references of a schema lead to where what they name has moved: into the first alternative of `anyOf`.
fn follow(schema: &mut Value, moved: &HashSet<String>) {
    for (_, part) in subschemas_mut(schema) {
        follow(part, moved);
    }
    if let Some(Value::String(reference)) = schema.get_mut("$ref")
        && let Some((address, pointer)) = reference.split_once("#/")
    {
        let mut place = String::new();
        let mut followed = format!("{address}#");
        for part in pointer.split('/') {
            place += &format!("/{}", percent_decode_str(part).decode_utf8_lossy());
            if moved.contains(&place) {
                followed += "/anyOf/0";
            }
            followed += &format!("/{part}");
        }
        *reference = followed;
    }
}

/// Turns the name of a type into small letters.
fn lower_type(kind: &mut Value) {
    let Value::String(name) = kind else {
        return;
    };
    let lower = name.to_lowercase();
    if TYPES.contains(&&*lower) {
        *name = lower;
    }
}

/// Lets each field that may be missing be null, too, in a schema and in those within it.
pub fn allow_null_for_missing(schema: &mut Value) {
    for (_, part) in subschemas_mut(schema) {
        allow_null_for_missing(part);
    }
    let needed = Vec::from_iter(required(schema).map(str::to_owned));
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, field) in fields.into_iter().flatten() {
        if !needed.contains(name) {
            allow_null(field);
        }
    }
}

/// Lets a schema take null, too. Only words that null may fail, whatever its type, move into an alternative, the first one of
/// `anyOf`; they are returned.
fn allow_null(schema: &mut Value) -> Vec<&'static str> {
    let kinds = types_in(schema);
    if schema.get("type").is_none() && !kinds.is_empty() {
        // Other words imply it.
        schema["type"] = json!(kinds);
    }
    if let Value::String(kind) = &schema["type"] {
        schema["type"] = json!([kind, "null"]);
    }
    let Value::Object(words) = schema else {
        return Vec::new();
    };
    if !words.contains_key("enum")
        && let Some(value) = words.shift_remove("const")
    {
        words.insert("enum".to_owned(), json!([value]));
    }
    let mut others = Map::new();
    let mut moved = Vec::new();
    if OTHERS.iter().any(|word| words.contains_key(*word)) {
        for word in OTHERS.iter().chain(&["anyOf"]) {
            if let Some(value) = words.shift_remove(*word) {
                others.insert((*word).to_owned(), value);
                moved.push(*word);
            }
        }
        words.insert("anyOf".to_owned(), json!([others]));
    }
    for (word, value) in [
        ("type", json!("null")),
        ("enum", Value::Null),
        ("anyOf", json!({"type": "null"})),
    ] {
        if let Some(Value::Array(values)) = words.get_mut(word)
            && !values.contains(&value)
        {
            values.push(value);
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::super::comparison::{MAX_STEPS, compare};
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_schema_is_found_in_the_wrappers_of_every_api() {
        let schema = r#"{"type":"object","properties":{"schema":{"type":"string"}}}"#;
        for [wrapped] in rows(
            r#"
            SCHEMA
            {"name":"p","strict":true,"schema":SCHEMA}
            {"type":"json_schema","json_schema":{"name":"p","strict":true,"schema":SCHEMA}}
            {"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":SCHEMA}}}
            {"type":"json_schema","name":"p","schema":SCHEMA,"strict":true}
            {"text":{"format":{"type":"json_schema","name":"p","schema":SCHEMA}}}
            {"type":"json_schema","schema":SCHEMA}
            {"output_config":{"format":{"type":"json_schema","schema":SCHEMA}}}
            {"output_format":{"type":"json_schema","schema":SCHEMA}}
            {"responseMimeType":"application/json","responseJsonSchema":SCHEMA}
            {"generationConfig":{"responseMimeType":"application/json","responseSchema":SCHEMA}}
            {"type":"function","function":{"name":"p","description":"d","parameters":SCHEMA}}
            {"name":"p","description":"d","input_schema":SCHEMA}"#,
        ) {
            let value = serde_json::from_str(&wrapped.replace("SCHEMA", schema)).expect(wrapped);
            let found = unwrapped(value).expect(wrapped);
            assert_eq!(found.to_string(), schema, "{wrapped}");
        }
    }

    #[test]
    fn an_object_that_restricts_no_value_is_not_taken_for_a_schema() {
        // And the place in which the keyword is missing.
        for [text, place] in rows(
            r#"
            {} | it
            {"name":"Ann","age":5} | it
            {"title":"Dune","description":"a book"} | it
            {"$schema":"https://json-schema.org/draft/2020-12/schema"} | it
            {"openapi":"3.1.0","info":{"title":"t"},"paths":{"/a":{"get":{}}}} | it
            {"schema":"x"} | it
            {"name":"p","schema":{}} | schema
            {"type":"json_schema","json_schema":{"name":"p"}} | json_schema
            {"text":{"format":{"type":"json_schema","schema":{"title":"p"}}}} | text.format.schema"#,
        ) {
            let value = serde_json::from_str(text).expect(text);
            let reason = format!(
                "{place} has no keyword that says what an answer is, such as type or properties"
            );
            assert_eq!(unwrapped(value), Err(reason), "{text}");
        }
    }

    #[test]
    fn keywords_of_openapi_become_those_of_json_schema() {
        for [text, normal] in rows(
            r##"
            {"type":"string","nullable":true} | {"type":["string","null"]}
            {"type":"string","nullable":false} | {"type":"string"}
            {"type":"STRING","enum":["A"],"nullable":true} | {"type":["string","null"],"enum":["A",null]}
            {"properties":{"a":{"type":["STRING","NULL"]}}} | {"properties":{"a":{"type":["string","null"]}}}
            {"type":["STRING","Integer","X",7]} | {"type":["string","integer","X",7]}
            {"type":["STRING","INTEGER"],"nullable":true} | {"type":["string","integer","null"]}
            {"type":["string","null"],"nullable":true} | {"type":["string","null"]}
            {"type":"OBJECT","properties":{"nullable":{"type":"BOOLEAN"},"type":{"enum":["OBJECT"]}}} | {"type":"object","properties":{"nullable":{"type":"boolean"},"type":{"enum":["OBJECT"]}}}
            {"type":"array","items":{"$ref":"#/$defs/A","nullable":true}} | {"type":"array","items":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}}
            {"anyOf":[{"type":"string"},{"type":"INTEGER","nullable":true}],"nullable":true} | {"anyOf":[{"type":"string"},{"type":["integer","null"]},{"type":"null"}]}
            {"properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"string"}},"nullable":true} | {"properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"string"}},"type":["object","null"]}
            {"required":["p"],"anyOf":[{"type":"object"}],"nullable":true} | {"required":["p"],"anyOf":[{"type":"object"},{"type":"null"}],"type":["object","null"]}
            {"$ref":"#/definitions/P","definitions":{"P":{"enum":["a"]}},"$defs":{},"nullable":true} | {"definitions":{"P":{"enum":["a"]}},"$defs":{},"anyOf":[{"$ref":"#/definitions/P"},{"type":"null"}]}
            {"type":"string","not":{"type":"null"},"nullable":true} | {"type":["string","null"],"anyOf":[{"not":{"type":"null"}},{"type":"null"}]}
            {"properties":{"a":{"$ref":"#/$defs/S/oneOf/0"},"b":{"$ref":"#/$defs/S"}},"$defs":{"S":{"oneOf":[{"enum":["a"]}],"nullable":true}}} | {"properties":{"a":{"$ref":"#/$defs/S/anyOf/0/oneOf/0"},"b":{"$ref":"#/$defs/S"}},"$defs":{"S":{"anyOf":[{"oneOf":[{"enum":["a"]}]},{"type":"null"}]}}}
            {"properties":{"a/b":{"anyOf":[{},{"allOf":[{}],"nullable":true}],"allOf":[{}],"nullable":true},"b":{"items":{"$ref":"#/properties/a%7E1b/anyOf/1/allOf/0"}}}} | {"properties":{"a/b":{"anyOf":[{"allOf":[{}],"anyOf":[{},{"anyOf":[{"allOf":[{}]},{"type":"null"}]}]},{"type":"null"}]},"b":{"items":{"$ref":"#/properties/a%7E1b/anyOf/0/anyOf/1/anyOf/0/allOf/0"}}}}
            {"not":{"$ref":"#/allOf/0"},"allOf":[{"minimum":1}],"nullable":true} | {"anyOf":[{"allOf":[{"minimum":1}],"not":{"$ref":"#/anyOf/0/allOf/0"}},{"type":"null"}]}
            {"anyOf":[{"minimum":1}],"not":{"$ref":"#anyOf"},"nullable":true} | {"anyOf":[{"not":{"$ref":"#anyOf"},"anyOf":[{"minimum":1}]},{"type":"null"}]}
            {"type":"object","properties":null,"required":null,"additionalProperties":null,"$defs":null,"const":null,"default":null} | {"type":"object","const":null,"default":null}
            {"properties":{"a":{"type":"string","enum":null,"anyOf":null,"items":null,"$ref":null,"minLength":null},"required":null}} | {"properties":{"a":{"type":"string"},"required":null}}
            {"type":"string","anyOf":null,"oneOf":null,"nullable":true} | {"type":["string","null"]}
            {"if":{"type":"null"},"then":false,"else":{"minimum":1},"nullable":true} | {"anyOf":[{"if":{"type":"null"},"then":false,"else":{"minimum":1}},{"type":"null"}]}
            {"properties":{"a":{"default":{"type":"X","nullable":true}}},"additionalProperties":{"type":"NUMBER"}} | {"properties":{"a":{"default":{"type":"X","nullable":true}}},"additionalProperties":{"type":"number"}}"##,
        ) {
            let value = serde_json::from_str(text).expect(text);
            let found = unwrapped(value).expect(text);
            assert_eq!(found.to_string(), normal, "{text}");
        }
    }

    #[test]
    fn a_nullable_schema_takes_null_and_what_it_took_before() {
        // Without `nullable`; what it takes, and what neither takes.
        for [text, good, bad] in rows(
            r##"
            {"type":"string"} | "a" | 1
            {"type":"string","enum":["a"]} | "a" | "b"
            {"enum":["a"]} | "a" | "b"
            {"type":"string","const":"a"} | "a" | "b"
            {"const":"a"} | "a" | "b"
            {"enum":["a","b"],"const":"a"} | "a" | "b"
            {"properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]} | {"a":"x"} | {"c":1}
            {"oneOf":[{"type":"string"},{"type":"integer"}]} | 1 | true
            {"oneOf":[{"type":"string"},{"type":["null","integer"]},{"type":"null"}]} | 1 | true
            {"required":["a"],"allOf":[{"properties":{"a":{"type":"string"}}}]} | {"a":"x"} | {"a":1}
            {"type":"object","allOf":[{"required":["a"]}]} | {"a":1} | {}
            {"type":"object","allOf":[{"required":["a"]}],"anyOf":[{"required":["b"]}]} | {"a":1,"b":1} | {"a":1}
            {"anyOf":[{"type":"string"},{"type":"integer"}],"not":{"const":1}} | 2 | true
            {"not":{"type":"null"},"type":"string"} | "a" | 1
            {"$ref":"#/$defs/A","$defs":{"A":{"type":"string"}}} | "a" | 1
            {"type":"string","$ref":"#/$defs/A","$defs":{"A":{"enum":["a"]}}} | "a" | "b"
            {"properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}},"allOf":[{"required":["b"]}]} | {"b":"x"} | {"b":1}"##,
        ) {
            let mut schema: Value = serde_json::from_str(text).expect(text);
            let takes = |schema: &Value, value: &str| {
                let value = serde_json::from_str(value).expect(value);
                compare(&value, schema, MAX_STEPS).is_ok()
            };
            assert!(takes(&schema, good), "{text}");
            schema["nullable"] = json!(true);
            let normal = unwrapped(schema).expect(text);
            let found = [good, "null", bad].map(|value| takes(&normal, value));
            assert_eq!(found, [true, true, false], "{normal}");
        }
    }
}
