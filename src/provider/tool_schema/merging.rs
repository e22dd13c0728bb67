//! Makes one schema of several: of `allOf`, of references, and of the branches of `anyOf` and `oneOf` (pure).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::keywords::{Keywords, type_by_keywords, types, without_twins};
use crate::provider::schema::add_words;
use crate::shape::elements;

/// A schema that is being made. It is not finished: what it requires may be properties of the schema around it.
#[derive(Default)]
pub struct Unfinished {
    pub keywords: Keywords,
    pub choices: Vec<Variants>,
}

/// The branches of `anyOf` or `oneOf`.
pub struct Variants {
    pub word: String,
    pub branches: Vec<Unfinished>,
}

impl Variants {
    /// Whether a branch, or one within it, names properties.
    pub fn names_properties(&self) -> bool {
        let mut branches = self.branches.iter();
        branches.any(|branch| {
            branch.keywords.contains_key("properties")
                || branch.choices.iter().any(Variants::names_properties)
        })
    }
}

/// Keywords that mean something only together. Those of two schemas are never mixed: that could demand more than both.
const GROUPS: &[&[&str]] = &[
    &["if", "then", "else"],
    &["contains", "minContains", "maxContains"],
    &["prefixItems", "items"],
    &["patternProperties", "additionalProperties"],
];

/// Adds keywords that a schema lacks, more properties, and more that is required.
pub fn merge(schema: &mut Keywords, mut more: Keywords) {
    for group in GROUPS {
        if group.iter().any(|word| schema.contains_key(*word)) {
            more.retain(|name, _| !group.contains(&name.as_str()));
        }
    }
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

/// Adds the choices of an object to it. A property of several branches may have the values of each of them. What every branch of
/// a choice requires is required; what only some require becomes words.
pub fn unite(schema: &mut Keywords, choices: Vec<Variants>) {
    if !schema.contains_key("type")
        && let Some(kinds) = kinds_of_choices(&choices)
    {
        let own = type_by_keywords(schema);
        if kinds.iter().any(|kind| Some(kind.as_str()) != own) {
            let kinds = types(&kinds.into()).unwrap_or_default();
            schema.insert("type".into(), kinds);
        }
    }
    let mut members = Members::default();
    for choice in choices {
        let sets = members.take_choice(choice);
        require_one_of(schema, &sets);
    }
    if !members.properties.is_empty() {
        add_properties(schema, members.into_properties());
    }
}

/// The names that an object of some kind must have.
type RequiredSet = BTreeSet<String>;

/// Requires what each of the sets has, and says in words that one set is required.
fn require_one_of(schema: &mut Keywords, sets: &[RequiredSet]) {
    let common = common_of(sets);
    let has_more = sets.iter().any(|set| set.len() > common.len());
    // Next to one that asks for nothing, the others are no demand.
    if has_more && sets.iter().all(|set| !set.is_empty()) {
        let sets = sets.iter();
        let sets = sets.map(|set| Vec::from_iter(set.iter().map(String::as_str)).join(", "));
        let sets = Vec::from_iter(sets).join("; ");
        add_words(schema, &format!("One of these sets is required: {sets}"));
    }
    if !common.is_empty() {
        require(schema, common.into_iter().map(Value::from));
    }
}

/// Returns what is in each of the sets.
fn common_of(sets: &[RequiredSet]) -> RequiredSet {
    let mut common = sets.first().cloned().unwrap_or_default();
    common.retain(|name| sets.iter().all(|set| set.contains(name)));
    common
}

/// The properties of all branches of some choices, and of the choices within these.
#[derive(Default)]
struct Members {
    /// The schemas of each property, in the order in which they came.
    properties: Map<String, Value>,
}

impl Members {
    /// Takes the properties of the branches of a choice. Returns for each branch that an object may fit what it requires.
    fn take_choice(&mut self, choice: Variants) -> Vec<RequiredSet> {
        let mut sets = Vec::new();
        for branch in choice.branches {
            if may_be_object(&branch.keywords) {
                sets.extend(self.take_branch(branch));
            }
        }
        sets
    }

    /// Takes the properties of a branch. Returns what it requires: one set, or those of its choice.
    fn take_branch(&mut self, mut branch: Unfinished) -> Vec<RequiredSet> {
        if let Some(Value::Object(properties)) = branch.keywords.shift_remove("properties") {
            for (name, schema) in properties {
                let schemas = self.properties.entry(name).or_insert_with(|| json!([]));
                if let Value::Array(schemas) = schemas {
                    schemas.extend(alternatives(schema));
                }
            }
        }
        let list = branch.keywords.shift_remove("required");
        let list = list.unwrap_or_default();
        let names = elements(&list).iter().filter_map(Value::as_str);
        let mut required = RequiredSet::from_iter(names.map(str::to_owned));
        let mut choices = branch.choices;
        if required.is_empty() && choices.len() == 1 {
            return choices
                .pop()
                .map_or_else(Vec::new, |choice| self.take_choice(choice));
        }
        // To name all sets with what the branch itself requires would take much room.
        for choice in choices {
            required.extend(common_of(&self.take_choice(choice)));
        }
        vec![required]
    }

    /// Returns the properties, each with one schema.
    fn into_properties(self) -> Keywords {
        let mut properties = self.properties;
        for schemas in properties.values_mut() {
            let mut list = match schemas.take() {
                Value::Array(list) => without_twins(list),
                other => vec![other],
            };
            *schemas = match list.len() {
                1 => list.pop().unwrap_or_default(),
                _ => json!({"anyOf": list}),
            };
        }
        properties
    }
}

/// Returns the alternatives of a schema that is nothing but a list of these, else the schema itself.
fn alternatives(schema: Value) -> Vec<Value> {
    match schema {
        Value::Object(mut words) if words.len() == 1 && words.contains_key("anyOf") => {
            match words.shift_remove("anyOf") {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            }
        }
        other => vec![other],
    }
}

/// Whether an object may fit the keywords of a schema.
fn may_be_object(schema: &Keywords) -> bool {
    let values = schema.get("enum").map_or(&[][..], elements);
    let has_scalars = !values.is_empty() && values.iter().all(|value| !value.is_object());
    let is_scalar = schema.get("const").is_some_and(|value| !value.is_object());
    let has_kind = kinds(schema).is_none_or(|kinds| kinds.iter().any(|kind| kind == "object"));
    has_kind && !has_scalars && !is_scalar
}

/// Returns the types that a schema names or shows; `None` if it does neither.
fn kinds(schema: &Keywords) -> Option<Vec<String>> {
    let own = match schema.get("type") {
        Some(Value::String(kind)) => return Some(vec![kind.clone()]),
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            return Some(kinds.map(str::to_owned).collect());
        }
        _ => type_by_keywords(schema),
    };
    own.map(|kind| vec![kind.to_owned()])
}

/// Returns the types of all branches of the first choice that tells the type of each.
fn kinds_of_choices(choices: &[Variants]) -> Option<Vec<String>> {
    choices.iter().find_map(|choice| {
        let mut found: Vec<String> = Vec::new();
        for branch in &choice.branches {
            let own = kinds(&branch.keywords);
            for kind in own.or_else(|| kinds_of_choices(&branch.choices))? {
                if !found.contains(&kind) {
                    found.push(kind);
                }
            }
        }
        (!found.is_empty()).then_some(found)
    })
}
