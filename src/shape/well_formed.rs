//! Finds what is wrong in a JSON Schema itself, because a keyword that cannot be read would check nothing (pure).

use std::slice;

use serde_json::Value;

use super::keywords::{TYPES, elements, referred_by};
use super::subschemas::{INNER, NAMED};
use crate::text::nearest;
use crate::text::one_line::beginning;

/// The most characters that errors show of a text.
const MAX_SHOWN: usize = 80;

/// What types are called elsewhere, in the short form and in programming languages, with their names in JSON Schema.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("int", "integer"),
    ("int32", "integer"),
    ("int64", "integer"),
    ("long", "integer"),
    ("float", "number"),
    ("double", "number"),
    ("decimal", "number"),
    ("str", "string"),
    ("text", "string"),
    ("bool", "boolean"),
    ("list", "array"),
    ("dict", "object"),
    ("map", "object"),
    ("none", "null"),
];

/// Checks that the keywords of a schema, and of all schemas within it, have values of the right kind, that its types exist, and
/// that its references lead to a part of it. Unknown keywords may have any values.
///
/// # Errors
///
/// The place of the first fault, such as `properties.age.type`, and what is wrong there.
pub fn check_keywords(root: &Value) -> Result<(), String> {
    check_schema(root, root, "")
}

fn check_schema(root: &Value, schema: &Value, place: &str) -> Result<(), String> {
    match schema {
        Value::Bool(_) => Ok(()),
        Value::Object(words) => words.iter().try_for_each(|(word, value)| {
            let place = within(place, word);
            check_keyword(root, word, value, &place)
        }),
        _ => Err(format!("{place}: a schema is an object, true or false")),
    }
}

fn check_keyword(root: &Value, word: &str, value: &Value, place: &str) -> Result<(), String> {
    let fault = match word {
        "type" => fault_of_types(value),
        "required" => fault_of_names(value),
        "$ref" => fault_of_reference(root, value),
        "enum" => (!value.is_array()).then(|| "must be a list of values".to_owned()),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
            (!value.is_array()).then(|| "must be a list of schemas".to_owned())
        }
        _ if NAMED.contains(&word) => {
            (!value.is_object()).then(|| "must be an object with a schema for each name".to_owned())
        }
        _ => None,
    };
    if let Some(fault) = fault {
        return Err(format!("{place}: {fault}"));
    }
    if NAMED.contains(&word) {
        let mut parts = value.as_object().into_iter().flatten();
        // A list of `dependencies` has the names of other fields.
        parts.try_for_each(|(name, part)| match part {
            Value::Array(_) if word == "dependencies" => Ok(()),
            part => check_schema(root, part, &within(place, name)),
        })
    } else if let (true, Value::Array(parts)) = (INNER.contains(&word), value) {
        let mut parts = parts.iter().enumerate();
        parts.try_for_each(|(at, part)| check_schema(root, part, &within(place, &at.to_string())))
    } else if INNER.contains(&word) {
        check_schema(root, value, place)
    } else {
        Ok(())
    }
}

fn within(place: &str, word: &str) -> String {
    if place.is_empty() {
        word.to_owned()
    } else {
        format!("{place}.{word}")
    }
}

fn fault_of_types(value: &Value) -> Option<String> {
    let kinds = match value {
        Value::Array(kinds) if !kinds.is_empty() => kinds.as_slice(),
        kind => slice::from_ref(kind),
    };
    kinds.iter().find_map(|kind| {
        let Value::String(kind) = kind else {
            return Some("must be the name of a type, or a list of such names".to_owned());
        };
        (!TYPES.contains(&kind.as_str())).then(|| {
            let other_name = OTHER_NAMES
                .iter()
                .find(|(other, _)| *other == kind.to_lowercase());
            let advice = match other_name {
                Some((_, name)) => format!("did you mean {name}?"),
                None => nearest::choices(kind, TYPES, "the types are"),
            };
            format!(
                "there is no type “{}”; {advice}",
                beginning(kind, MAX_SHOWN)
            )
        })
    })
}

fn fault_of_names(value: &Value) -> Option<String> {
    let is_list = value.is_array() && elements(value).iter().all(Value::is_string);
    (!is_list).then(|| "must be a list of names".to_owned())
}

fn fault_of_reference(root: &Value, value: &Value) -> Option<String> {
    let Some(reference) = value.as_str() else {
        return Some("must be a text".to_owned());
    };
    if referred_by(root, reference).is_some() {
        return None;
    }
    let reference = beginning(reference, MAX_SHOWN);
    Some(format!(
        "“{reference}” is no part of the schema; only references such as #/$defs/NAME are followed"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_schema_whose_keywords_cannot_be_read_is_refused_with_the_place() {
        for [schema, fault] in rows(
            r##"
            true                                              | -
            {"type":"object","properties":{"a":{"type":["string","null"]},"b":true},"required":["a"]} | -
            {"type":"array","items":false,"description":5}    | -
            {"items":[{"type":"string"}],"additionalItems":{}} | -
            {"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#"}}}   | -
            {"$ref":"#/$defs/a%20b","$defs":{"a b":{}}}       | -
            {"properties":{"type":{},"required":{},"enum":{}}} | -
            {"dependencies":{"a":["b"],"c":{"type":"object"}}} | -
            {"enum":[1,"int"],"const":{"type":"int"},"default":{"required":"a"}} | -
            {"type":"int"}                                    | type: there is no type “int”; did you mean integer?
            {"type":"Str"}                                    | type: there is no type “Str”; did you mean string?
            {"type":"integr"}                                 | type: there is no type “integr”; did you mean integer? the types are object, array, string, integer, number, boolean, null
            {"type":"date"}                                   | type: there is no type “date”; the types are object, array, string, integer, number, boolean, null
            {"type":["string","none"]}                        | type: there is no type “none”; did you mean null?
            {"type":[]}                                       | type: must be the name of a type, or a list of such names
            {"type":{"type":"string"}}                        | type: must be the name of a type, or a list of such names
            {"properties":{"age":{"type":"float"}}}           | properties.age.type: there is no type “float”; did you mean number?
            {"properties":["a"]}                              | properties: must be an object with a schema for each name
            {"properties":{"a":"string"}}                     | properties.a: a schema is an object, true or false
            {"$defs":[]}                                      | $defs: must be an object with a schema for each name
            {"required":"a"}                                  | required: must be a list of names
            {"properties":{"a":{"required":true}}}            | properties.a.required: must be a list of names
            {"required":[1]}                                  | required: must be a list of names
            {"enum":"good"}                                   | enum: must be a list of values
            {"anyOf":{"type":"string"}}                       | anyOf: must be a list of schemas
            {"allOf":[{"anyOf":[{},{"type":"list"}]}]}        | allOf.0.anyOf.1.type: there is no type “list”; did you mean array?
            {"oneOf":["string"]}                              | oneOf.0: a schema is an object, true or false
            {"type":"array","items":5}                        | items: a schema is an object, true or false
            {"items":[{},5]}                                  | items.1: a schema is an object, true or false
            {"additionalProperties":"string"}                 | additionalProperties: a schema is an object, true or false
            {"not":{"type":"bool"}}                           | not.type: there is no type “bool”; did you mean boolean?
            {"$ref":"#/$defs/missing"}                        | $ref: “#/$defs/missing” is no part of the schema; only references such as #/$defs/NAME are followed
            {"$ref":"https://example.com/s.json"}             | $ref: “https://example.com/s.json” is no part of the schema; only references such as #/$defs/NAME are followed
            {"$ref":5}                                        | $ref: must be a text"##,
        ) {
            let value: Value = serde_json::from_str(schema).expect(schema);
            let found = check_keywords(&value).err().unwrap_or_default();
            assert_eq!(found, fault, "{schema}");
        }
    }
}
