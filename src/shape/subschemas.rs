//! Finds the schemas within a JSON Schema (pure). What it names, and the values of `enum`, `const` and `default`, are none.

use serde_json::Value;

/// The keywords whose values are schemas by name.
pub const NAMED: &[&str] = &[
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
];

/// The keywords whose values are a schema, or a list of schemas.
pub const INNER: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
];

/// Returns the schemas directly within a schema, each with the keyword that has it.
pub fn subschemas(schema: &Value) -> Vec<(&str, &Value)> {
    let mut found = Vec::new();
    for (word, value) in schema.as_object().into_iter().flatten() {
        let word = word.as_str();
        if NAMED.contains(&word) {
            let parts = value.as_object().into_iter().flatten();
            found.extend(parts.map(|(_, part)| (word, part)));
        } else if INNER.contains(&word) {
            match value {
                Value::Array(parts) => found.extend(parts.iter().map(|part| (word, part))),
                part => found.push((word, part)),
            }
        }
    }
    found
}

/// Returns the schemas directly within a schema, to be changed, each with the JSON pointer that leads to it from there.
pub fn subschemas_mut(schema: &mut Value) -> Vec<(String, &mut Value)> {
    let mut found = Vec::new();
    for (word, value) in schema.as_object_mut().into_iter().flatten() {
        let word = word.as_str();
        if NAMED.contains(&word) {
            let parts = value.as_object_mut().into_iter().flatten();
            found.extend(parts.map(|(name, part)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                (format!("/{word}/{name}"), part)
            }));
        } else if INNER.contains(&word) {
            match value {
                Value::Array(parts) => {
                    let parts = parts.iter_mut().enumerate();
                    found.extend(parts.map(|(at, part)| (format!("/{word}/{at}"), part)));
                }
                part => found.push((format!("/{word}"), part)),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn every_schema_within_a_schema_is_found_and_nothing_else() {
        for [schema, expected] in rows(
            r#"
            true                                              |
            {"type":"string"}                                 |
            {"properties":{"properties":{"a":1},"enum":true}} | properties {"a":1}, properties true
            {"patternProperties":{"^a":{}},"$defs":{"A":{}}}  | patternProperties {}, $defs {}
            {"properties":{"a/b~c":{"a":1},"a":{}}}           | properties {"a":1}, properties {}
            {"definitions":{"A":{}},"dependentSchemas":{"a":{}},"dependencies":{"b":{}}} | definitions {}, dependentSchemas {}, dependencies {}
            {"items":{"a":1},"additionalProperties":false}    | items {"a":1}, additionalProperties false
            {"items":[{"a":1},{}],"additionalItems":{}}       | items {"a":1}, items {}, additionalItems {}
            {"anyOf":[{"a":1}],"oneOf":[{}],"allOf":[{}]}     | anyOf {"a":1}, oneOf {}, allOf {}
            {"if":{},"then":{},"else":{},"not":{}}            | if {}, then {}, else {}, not {}
            {"prefixItems":[{}],"contains":{},"propertyNames":{}} | prefixItems {}, contains {}, propertyNames {}
            {"unevaluatedItems":{},"unevaluatedProperties":{}} | unevaluatedItems {}, unevaluatedProperties {}
            {"enum":[{}],"const":{},"default":{},"examples":[{}],"required":["a"],"x":{}} |"#,
        ) {
            let mut value: Value = serde_json::from_str(schema).expect(schema);
            let found = subschemas(&value).into_iter();
            let found = Vec::from_iter(found.map(|(word, part)| format!("{word} {part}")));
            assert_eq!(found.join(", "), expected, "{schema}");
            let parts = subschemas(&value).into_iter();
            let parts = Vec::from_iter(parts.map(|(_, part)| part.clone()));
            let original = value.clone();
            let mut found = Vec::new();
            for (pointer, part) in subschemas_mut(&mut value) {
                assert_eq!(original.pointer(&pointer), Some(&*part), "{pointer}");
                found.push(part.clone());
            }
            assert_eq!(found, parts);
        }
    }
}
