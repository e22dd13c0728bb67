//! Makes one schema of two that both hold, such as those of `allOf`, or what a reference means and what is next to it (pure).

use serde_json::Value;

use super::keywords::{Keywords, complete, types, without_twins};
use crate::provider::schema::add_words;

/// Keywords that mean something only together. Those of two schemas are never mixed: that could demand more than both.
const GROUPS: &[&[&str]] = &[
    &["if", "then", "else"],
    &["contains", "minContains", "maxContains"],
    ITEMS,
    &["patternProperties", "additionalProperties"],
];

const ITEMS: &[&str] = &["prefixItems", "items"];

/// The limits of which the larger one demands more.
const LOWER_LIMITS: &[&str] = &[
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "minItems",
    "minProperties",
];

/// The limits of which the smaller one demands more.
const UPPER_LIMITS: &[&str] = &[
    "maximum",
    "exclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
];

/// The words for a choice between branches.
pub const CHOICES: [&str; 2] = ["anyOf", "oneOf"];

/// The most comparisons for the values that two lists have in common. Longer lists stay as they are.
const MAX_COMPARED: usize = 4_000;

/// A description that is longer than this gets no other one after it.
const MAX_DESCRIPTION: usize = 2_000;

/// Adds the keywords of another schema that holds, too. Where both have a keyword, and no value of it says both, that of the
/// schema itself stays.
pub fn merge(schema: &mut Keywords, mut more: Keywords) {
    for group in GROUPS {
        let has_own = group.iter().any(|word| schema.contains_key(*word));
        let is_mixed = *group != ITEMS || [&*schema, &more].iter().any(has_first_items);
        if has_own && is_mixed {
            more.retain(|name, _| !group.contains(&name.as_str()));
        }
    }
    for (name, value) in more {
        match schema.get_mut(&name) {
            Some(own) => narrow_keyword(&name, own, value),
            None => {
                schema.insert(name, value);
            }
        }
    }
}

fn has_first_items(schema: &&Keywords) -> bool {
    schema.contains_key("prefixItems")
}

/// Narrows the value of a keyword by that of another schema, if one value can say both.
fn narrow_keyword(keyword: &str, own: &mut Value, more: Value) {
    match (keyword, own, more) {
        ("properties", Value::Object(own), Value::Object(more)) => {
            for (name, property) in more {
                match own.get_mut(&name) {
                    Some(own) => narrow(own, property),
                    None => {
                        own.insert(name, property);
                    }
                }
            }
        }
        ("required", Value::Array(own), Value::Array(more)) => own.extend(more),
        ("items", own, more) => narrow(own, more),
        ("enum", Value::Array(own), Value::Array(more)) => {
            if own.len() * more.len() <= MAX_COMPARED {
                keep_if_any(own, |value| more.contains(value));
            }
        }
        ("type", own, more) => {
            let common = common_types(own, &more);
            if let Some(common) = types(&common.into()) {
                *own = common;
            }
        }
        (_, own, more) => {
            if let (Some(limit), Some(other)) = (own.as_f64(), more.as_f64())
                && (LOWER_LIMITS.contains(&keyword) && other > limit
                    || UPPER_LIMITS.contains(&keyword) && other < limit)
            {
                *own = more;
            }
        }
    }
}

/// Keeps the values that are allowed. If none is, two schemas contradict each other, and all stay.
fn keep_if_any(values: &mut Vec<Value>, is_allowed: impl Fn(&Value) -> bool) {
    if values.iter().any(&is_allowed) {
        values.retain(is_allowed);
    }
}

/// Returns the types of values that fit both `type` keywords.
fn common_types(one: &Value, other: &Value) -> Vec<String> {
    let mut common = Vec::new();
    for kind in names_in(one) {
        let has = |wanted: &str| names_in(other).any(|other| other == wanted);
        // Every integer is a number.
        if has(kind) || kind == "integer" && has("number") {
            common.push(kind.to_owned());
        } else if kind == "number" && has("integer") {
            common.push("integer".to_owned());
        }
    }
    common
}

/// Returns the names in a keyword: one, or those of a list.
fn names_in(value: &Value) -> impl Iterator<Item = &str> {
    let names = match value {
        Value::Array(names) => names,
        name => std::slice::from_ref(name),
    };
    names.iter().filter_map(Value::as_str)
}

/// Narrows a complete schema by another one that holds, too. The descriptions of both stay. A choice has neither members nor
/// another choice next to it, so the first of these stays.
pub fn narrow(schema: &mut Value, more: Value) {
    let (Value::Object(own), Value::Object(mut more)) = (schema, more) else {
        return;
    };
    if let Some(Value::String(text)) = more.shift_remove("description") {
        add_description(own, &text);
    }
    if has_choice(own) {
        more.retain(|name, _| !CHOICES.contains(&&**name) && !is_of_members(name));
    } else if own.keys().any(|name| is_of_members(name)) {
        more.retain(|name, _| !CHOICES.contains(&&**name));
    }
    merge(own, more);
    move_type_into_choice(own);
    complete(own);
}

fn has_choice(schema: &Keywords) -> bool {
    CHOICES.iter().any(|word| schema.contains_key(*word))
}

fn is_of_members(keyword: &str) -> bool {
    keyword == "properties" || ITEMS.contains(&keyword)
}

fn add_description(schema: &mut Keywords, text: &str) {
    let own = schema.get("description").and_then(Value::as_str);
    let own = own.unwrap_or_default();
    if own.len() <= MAX_DESCRIPTION && !own.contains(text) {
        add_words(schema, text);
    }
}

/// Gives the type next to a choice to its branches, since not every API takes both. A branch of another type is left out.
fn move_type_into_choice(schema: &mut Keywords) {
    if !has_choice(schema) {
        return;
    }
    let Some(kind) = schema.shift_remove("type") else {
        return;
    };
    for word in CHOICES {
        let Some(Value::Array(branches)) = schema.get_mut(word) else {
            continue;
        };
        keep_if_any(branches, |branch| {
            let own = branch.get("type");
            own.is_none_or(|own| !common_types(own, &kind).is_empty())
        });
        for branch in branches.iter_mut() {
            if let Value::Object(branch) = branch
                && !branch.contains_key("type")
                && !has_choice(branch)
            {
                branch.insert("type".into(), kind.clone());
                complete(branch);
            }
        }
        *branches = without_twins(std::mem::take(branches));
    }
}
