//! Finds what is wrong in a JSON Schema itself, because a keyword that cannot be read would check nothing (pure).

use std::collections::HashSet;
use std::{ptr, slice};

use serde_json::Value;

use super::keywords::{TYPES, elements, named, referred_by};
use super::subschemas::{INNER, NAMED, subschemas};
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

/// What the references of a schema lead into.
#[derive(Clone, Copy)]
struct Documents<'s> {
    /// The values that are no schemas: maps of schemas by name, and values that an answer may have.
    others: &'s HashSet<*const Value>,
    /// All of the schema, in which they are looked up.
    root: &'s Value,
    /// The part around them that has an address of its own, from which they go out by the rules of JSON Schema.
    own: &'s Value,
}

/// Checks that the keywords of a schema, and of all schemas within it, have values of the right kind, that its types exist, and
/// that its references lead to a part of it. Unknown keywords may have any values.
///
/// # Errors
///
/// The place of the first fault, such as `properties.age.type`, and what is wrong there.
pub fn check_keywords(root: &Value) -> Result<(), String> {
    let mut others = HashSet::new();
    collect_others(root, &mut others);
    let documents = Documents {
        others: &others,
        root,
        own: root,
    };
    check_schema(documents, root, "")
}

/// Collects the values within a schema that are objects or lists, and no schemas.
fn collect_others(schema: &Value, others: &mut HashSet<*const Value>) {
    for (word, value) in named(schema) {
        let word = word.as_str();
        match word {
            "enum" | "examples" => others.extend(elements(value).iter().map(ptr::from_ref)),
            "const" | "default" | "example" => drop(others.insert(ptr::from_ref(value))),
            _ if NAMED.contains(&word) => drop(others.insert(ptr::from_ref(value))),
            _ => (),
        }
    }
    for (word, part) in subschemas(schema) {
        if !is_group(word, part) {
            collect_others(part, others);
        }
    }
}

/// Whether a part of `$defs` is no schema, but has more schemas by name, as `v1` in `#/$defs/v1/default`. Each of its values can
/// be a schema, and none has the name of a keyword with schemas.
fn is_group(word: &str, part: &Value) -> bool {
    let is_member = |(name, value): (&String, &Value)| {
        let is_keyword = INNER.contains(&name.as_str()) || NAMED.contains(&name.as_str());
        value.is_object() && !is_keyword
    };
    matches!(word, "$defs" | "definitions") && named(part).all(is_member)
}

fn check_schema<'s>(
    mut documents: Documents<'s>,
    schema: &'s Value,
    place: &str,
) -> Result<(), String> {
    match schema {
        Value::Bool(_) => Ok(()),
        Value::Object(words) => {
            let address = words.get("$id").and_then(Value::as_str);
            // So names are written in older schemas.
            if address.is_some_and(|address| !address.starts_with('#')) {
                documents.own = schema;
            }
            words.iter().try_for_each(|(word, value)| {
                let place = within(place, word);
                check_keyword(documents, word, value, &place)
            })
        }
        _ => Err(format!("{place}: a schema is an object, true or false")),
    }
}

fn check_keyword<'s>(
    documents: Documents<'s>,
    word: &str,
    value: &'s Value,
    place: &str,
) -> Result<(), String> {
    let fault = match word {
        "type" => fault_of_types(value),
        "required" => fault_of_names(value),
        "$ref" => fault_of_reference(documents, value),
        "$dynamicRef" | "$recursiveRef" => {
            Some("is not followed; only a $ref such as #/$defs/NAME is".to_owned())
        }
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
            part if is_remark(word, name, part) => Ok(()),
            part => check_schema(documents, part, &within(place, name)),
        })
    } else if !INNER.contains(&word) {
        Ok(())
    } else if let Value::Array(parts) = value {
        let mut parts = parts.iter().enumerate();
        parts.try_for_each(|(at, part)| {
            check_schema(documents, part, &within(place, &at.to_string()))
        })
    } else {
        check_schema(documents, value, place)
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

/// Whether a part of `$defs` is no schema, but a remark on them, such as the text of `$comment`.
fn is_remark(word: &str, name: &str, part: &Value) -> bool {
    matches!(word, "$defs" | "definitions") && name.starts_with('$') && !part.is_object()
}

/// Says why a reference is not followed: it must lead to the same part by its place in all of the schema, which is sent as it is.
fn fault_of_reference(documents: Documents, value: &Value) -> Option<String> {
    let Some(reference) = value.as_str() else {
        return Some("must be a text".to_owned());
    };
    let Documents { others, root, own } = documents;
    let shown = beginning(reference, MAX_SHOWN);
    let Some(target) = referred_by(root, reference) else {
        return Some(format!(
            "“{shown}” is no part of the schema; only references such as #/$defs/NAME are followed"
        ));
    };
    let is_schema = target.is_object() || target.is_boolean();
    if !is_schema || others.contains(&ptr::from_ref(target)) {
        return Some(format!(
            "“{shown}” is a part of the schema, but no schema itself; a reference such as #/$defs/NAME leads to one"
        ));
    }
    let own_target = referred_by(own, reference);
    let is_other = own_target.is_some_and(|other| !ptr::eq(other, target));
    is_other.then(|| {
        format!("“{shown}” begins at the $id around it, but only references from the whole schema are followed; remove that $id")
    })
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
            {"items":{"$ref":""}}                             | -
            {"$ref":"#A","$defs":{"B":{"$anchor":"A"}}}       | $ref: “#A” UNFOLLOWED
            {"$ref":"#A","$defs":{"B":{"items":[{"$dynamicAnchor":"A"}]}}} | $ref: “#A” UNFOLLOWED
            {"$ref":"#A","definitions":{"B":{"id":"#A"}}}     | $ref: “#A” UNFOLLOWED
            {"$ref":"#A","definitions":{"B":{"$id":"#A"}}}    | $ref: “#A” UNFOLLOWED
            {"$ref":"#/definitions/B","definitions":{"B":{"$id":"#A","$anchor":"A"}}} | -
            {"items":{"$ref":"T"},"$defs":{"T":{"$id":"T"}}}  | items.$ref: “T” UNFOLLOWED
            {"items":{"$dynamicRef":"#A"},"$defs":{"T":{"$dynamicAnchor":"A"}}} | items.$dynamicRef: is not followed; only a $ref such as #/$defs/NAME is
            {"items":{"$recursiveRef":"#"}}                   | items.$recursiveRef: is not followed; only a $ref such as #/$defs/NAME is
            {"properties":{"$ref":{},"$dynamicRef":{}}}       | -
            {"$ref":"#A","definitions":{"A":{}}}              | $ref: “#A” is no part of the schema; only references such as #/$defs/NAME are followed
            {"$id":"https://e.org/s.json","$ref":"#/$defs/A","$defs":{"A":{}}} | -
            {"$id":"https://e.org/s.json","$ref":"https://e.org/s.json#/$defs/A","$defs":{"A":{}}} | $ref: “https://e.org/s.json#/$defs/A” UNFOLLOWED
            {"$id":"https://e.org/s.json","$ref":"s.json#/$defs/B","$defs":{"A":{}}} | $ref: “s.json#/$defs/B” UNFOLLOWED
            {"$id":"https://e.org/s.json","$ref":"a.json","$defs":{"A":{"$id":"a.json"}}} | $ref: “a.json” UNFOLLOWED
            {"$defs":{"A":{"$id":"a","items":{"$ref":"#/$defs/B"},"$defs":{"B":{}}}}} | $defs.A.items.$ref: “#/$defs/B” UNFOLLOWED
            {"$defs":{"A":{"$id":"a","items":{"$ref":"#/$defs/B"}},"B":{}}} | -
            {"$defs":{"A":{"$id":"a","items":{"$ref":"#/$defs/B"},"$defs":{"B":{}}},"B":{}}} | $defs.A.items.$ref: “#/$defs/B” begins at the $id around it, but only references from the whole schema are followed; remove that $id
            {"$defs":{"A":{"$id":"a","items":{"$ref":"#"}}}}  | $defs.A.items.$ref: “#” begins at the $id around it, but only references from the whole schema are followed; remove that $id
            {"$defs":{"$comment":"x","A":{}},"definitions":{"$comment":["x"]}} | -
            {"$defs":{"$a":{"type":"int"}}}                   | $defs.$a.type: there is no type “int”; did you mean integer?
            {"properties":{"$comment":"x"}}                   | properties.$comment: a schema is an object, true or false
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
            {"$ref":"#/properties/a/type","properties":{"a":{"type":"string"}}} | $ref: “#/properties/a/type” NO_SCHEMA
            {"properties":{"b":{"$ref":"#/$defs"}},"$defs":{"A":{}}} | properties.b.$ref: “#/$defs” NO_SCHEMA
            {"$ref":"#/properties","properties":{"a":{}}}     | $ref: “#/properties” NO_SCHEMA
            {"$ref":"#/properties/properties","properties":{"properties":{}}} | -
            {"$ref":"#/$defs/A/properties","$defs":{"A":{"properties":{}}}} | $ref: “#/$defs/A/properties” NO_SCHEMA
            {"$ref":"#/anyOf","anyOf":[{}]}                   | $ref: “#/anyOf” NO_SCHEMA
            {"$ref":"#/anyOf/0","anyOf":[{}]}                 | -
            {"$ref":"#/required/0","required":["a"]}          | $ref: “#/required/0” NO_SCHEMA
            {"$ref":"#/default","default":{"type":"string"}}  | $ref: “#/default” NO_SCHEMA
            {"$ref":"#/$defs/v1/default","$defs":{"v1":{"default":{"type":"string"}}}} | -
            {"$ref":"#/definitions/v1/const","definitions":{"v1":{"Pet":{"type":"object"},"const":{}}}} | -
            {"$ref":"#/$defs/A/default","$defs":{"A":{"type":"object","default":{"a":1}}}} | $ref: “#/$defs/A/default” NO_SCHEMA
            {"$ref":"#/$defs/A/default","$defs":{"A":{"properties":{},"default":{"a":1}}}} | $ref: “#/$defs/A/default” NO_SCHEMA
            {"$ref":"#/$defs/A/const","$defs":{"A":{"not":{},"const":{"a":1}}}} | $ref: “#/$defs/A/const” NO_SCHEMA
            {"$ref":"#/properties/a/default","properties":{"a":{"default":{"b":1}}}} | $ref: “#/properties/a/default” NO_SCHEMA
            {"$ref":"#/enum/0","enum":[{"a":1}]}              | $ref: “#/enum/0” NO_SCHEMA
            {"items":{"$ref":"#/items/examples/0","examples":[{"a":1}]}} | items.$ref: “#/items/examples/0” NO_SCHEMA
            {"$ref":"#/$defs/$comment","$defs":{"$comment":"x"}} | $ref: “#/$defs/$comment” NO_SCHEMA
            {"$ref":"#/maxLength","maxLength":5}              | $ref: “#/maxLength” NO_SCHEMA
            {"$ref":"#/$defs/A","$defs":{"A":false}}          | -
            {"$ref":"#/components/schemas/A","components":{"schemas":{"A":{}}}} | -
            {"$ref":5}                                        | $ref: must be a text"##,
        ) {
            let value: Value = serde_json::from_str(schema).expect(schema);
            let found = check_keywords(&value).err().unwrap_or_default();
            let unfollowed =
                "is no part of the schema; only references such as #/$defs/NAME are followed";
            let fault = fault.replace("UNFOLLOWED", unfollowed);
            let no_schema = "is a part of the schema, but no schema itself; a reference such as #/$defs/NAME leads to one";
            assert_eq!(found, fault.replace("NO_SCHEMA", no_schema), "{schema}");
        }
    }
}
