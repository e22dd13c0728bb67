//! Makes one schema of several: of `allOf`, of references, and of the branches of `anyOf` and `oneOf` (pure).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::keywords::Keywords;
use crate::provider::schema::add_words;
use crate::shape::elements;

/// Adds keywords that a schema lacks, more properties, and more that is required.
pub fn merge(schema: &mut Keywords, more: Keywords) {
    for (name, value) in more {
        match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => add_properties(schema, properties),
            ("required", Value::Array(names)) => require(schema, names),
            (_, value) => {
                schema.entry(name).or_insert(value);
            }
        }
    }
}

fn add_properties(schema: &mut Keywords, more: Keywords) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        for (name, property) in more {
            properties.entry(name).or_insert(property);
        }
    }
}

/// Adds names to what an object requires.
pub fn require(schema: &mut Keywords, names: impl IntoIterator<Item = Value>) {
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        required.extend(names);
    }
}

/// Adds the properties of all branches to an object. What every branch requires is required; what only some require becomes
/// words.
pub fn unite(schema: &mut Keywords, branches: Vec<Keywords>) {
    let mut sets: Vec<BTreeSet<String>> = Vec::new();
    for mut branch in branches {
        if let Some(Value::Object(more)) = branch.shift_remove("properties") {
            add_properties(schema, more);
        } else if !branch.contains_key("required") {
            continue;
        }
        let required = branch.shift_remove("required").unwrap_or_default();
        let names = elements(&required).iter().filter_map(Value::as_str);
        sets.push(names.map(str::to_owned).collect());
    }
    let mut common = sets.first().cloned().unwrap_or_default();
    common.retain(|name| sets.iter().all(|set| set.contains(name)));
    if sets.iter().any(|set| set.len() > common.len()) {
        let sets = sets
            .iter()
            .map(|set| Vec::from_iter(set.iter().map(String::as_str)).join(", "));
        let sets = Vec::from_iter(sets).join("; ");
        add_words(schema, &format!("One of these sets is required: {sets}"));
    }
    if !common.is_empty() {
        require(schema, common.into_iter().map(Value::from));
    }
}
