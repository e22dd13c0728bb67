//! Finds what is wrong in a JSON Schema itself, because a keyword that cannot be read would check nothing (pure).

use std::collections::HashSet;
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

/// What references of a schema may lead to.
#[derive(Default)]
struct Targets<'s> {
    /// The schema, and those within it that have an address of their own.
    documents: Vec<&'s Value>,
    /// These addresses.
    addresses: Vec<&'s str>,
    /// The names that schemas have instead of their place.
    anchors: HashSet<&'s str>,
}

/// Checks that the keywords of a schema, and of all schemas within it, have values of the right kind, that its types exist, and
/// that its references may lead to a part of it. Unknown keywords may have any values.
///
/// # Errors
///
/// The place of the first fault, such as `properties.age.type`, and what is wrong there.
pub fn check_keywords(root: &Value) -> Result<(), String> {
    let mut targets = Targets::default();
    targets.documents.push(root);
    targets.take(root);
    check_schema(&targets, root, "")
}

fn check_schema(targets: &Targets, schema: &Value, place: &str) -> Result<(), String> {
    match schema {
        Value::Bool(_) => Ok(()),
        Value::Object(words) => words.iter().try_for_each(|(word, value)| {
            let place = within(place, word);
            check_keyword(targets, word, value, &place)
        }),
        _ => Err(format!("{place}: a schema is an object, true or false")),
    }
}

fn check_keyword(targets: &Targets, word: &str, value: &Value, place: &str) -> Result<(), String> {
    let fault = match word {
        "type" => fault_of_types(value),
        "required" => fault_of_names(value),
        "$ref" => fault_of_reference(targets, value),
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
            part => check_schema(targets, part, &within(place, name)),
        })
    } else if !INNER.contains(&word) {
        Ok(())
    } else if let Value::Array(parts) = value {
        let mut parts = parts.iter().enumerate();
        parts
            .try_for_each(|(at, part)| check_schema(targets, part, &within(place, &at.to_string())))
    } else {
        check_schema(targets, value, place)
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

impl<'s> Targets<'s> {
    /// Takes the addresses and names in all of a value.
    fn take(&mut self, value: &'s Value) {
        for (word, part) in value.as_object().into_iter().flatten() {
            match (word.as_str(), part) {
                ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                    self.anchors.insert(name);
                }
                ("$id" | "id", Value::String(address)) => {
                    // So names are written in older schemas.
                    if let Some(name) = address.strip_prefix('#') {
                        self.anchors.insert(name);
                    } else {
                        self.addresses.push(address);
                        self.documents.push(value);
                    }
                }
                _ => self.take(part),
            }
        }
        for part in elements(value) {
            self.take(part);
        }
    }

    /// Whether a reference may lead to a part of the schema, also where q does not follow it.
    fn may_have(&self, reference: &str) -> bool {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let mut addresses = self.addresses.iter();
        let is_here = address.is_empty() || addresses.any(|known| may_be_same(known, address));
        let pointer = format!("#{fragment}");
        let mut documents = self.documents.iter();
        is_here
            && (self.anchors.contains(fragment)
                || documents.any(|document| referred_by(document, &pointer).is_some()))
    }
}

/// Whether two addresses may be the same, each of which may be relative to another one.
fn may_be_same(known: &str, address: &str) -> bool {
    last_name(known) == last_name(address)
}

fn last_name(address: &str) -> &str {
    let address = address.trim_end_matches('#');
    address.rsplit('/').next().unwrap_or_default()
}

fn fault_of_reference(targets: &Targets, value: &Value) -> Option<String> {
    let Some(reference) = value.as_str() else {
        return Some("must be a text".to_owned());
    };
    if targets.may_have(reference) {
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
            {"items":{"$ref":""}}                             | -
            {"$ref":"#A","$defs":{"B":{"$anchor":"A"}}}       | -
            {"$ref":"#A","$defs":{"B":{"items":[{"$dynamicAnchor":"A"}]}}} | -
            {"$ref":"#A","definitions":{"B":{"id":"#A"}}}     | -
            {"$ref":"#A","definitions":{"B":{"$id":"#A"}}}    | -
            {"$ref":"#A","definitions":{"A":{}}}              | $ref: “#A” is no part of the schema; only references such as #/$defs/NAME are followed
            {"$id":"https://e.org/s.json","$ref":"https://e.org/s.json#/$defs/A","$defs":{"A":{}}} | -
            {"$id":"https://e.org/s.json","$ref":"s.json#/$defs/B","$defs":{"A":{}}} | $ref: “s.json#/$defs/B” is no part of the schema; only references such as #/$defs/NAME are followed
            {"$id":"https://e.org/s.json","$ref":"a.json","$defs":{"A":{"$id":"a.json"}}} | -
            {"$id":"https://e.org/s.json#","$ref":"https://e.org/s.json#"} | -
            {"$ref":"/schemas/a","$defs":{"A":{"$id":"/schemas/a","items":{"$ref":"#/$defs/B"},"$defs":{"B":{}}}}} | -
            {"$id":"https://e.org/s.json","$ref":"b.json","$defs":{"A":{"$id":"a.json"}}} | $ref: “b.json” is no part of the schema; only references such as #/$defs/NAME are followed
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
            {"$ref":5}                                        | $ref: must be a text"##,
        ) {
            let value: Value = serde_json::from_str(schema).expect(schema);
            let found = check_keywords(&value).err().unwrap_or_default();
            assert_eq!(found, fault, "{schema}");
        }
    }
}
