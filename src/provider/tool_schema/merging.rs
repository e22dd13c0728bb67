//! Makes one schema of an object and of the branches of its `anyOf` and `oneOf` (pure).

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::keywords::{Keywords, type_by_keywords, types, without_twins};
use super::narrowing::narrow;
use crate::provider::schema::add_words;
use crate::shape::{elements, named};

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

    /// Whether every branch that an object may fit has a property, itself or in each branch of a choice of its own.
    fn always_names(&self, property: &str) -> bool {
        let branches = self.branches.iter();
        let mut branches = branches.filter(|branch| may_be_object(&branch.keywords));
        branches.all(|branch| {
            let properties = branch.keywords.get("properties");
            properties.is_some_and(|named| named.get(property).is_some())
                || branch
                    .choices
                    .iter()
                    .any(|choice| choice.always_names(property))
        })
    }
}

/// Adds names to what an object requires.
pub fn require(schema: &mut Keywords, names: impl IntoIterator<Item = Value>) {
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        required.extend(names);
    }
}

/// Adds the choices of an object to it. A property of several branches may have the values of each of them, and if the object
/// itself has it, only those that it allows. What every branch of a choice requires is required; what only some require becomes
/// words.
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
    if let Some(properties) = schema.get("properties") {
        let names = named(properties).map(|(name, _)| name);
        let always = names.filter(|name| choices.iter().any(|choice| choice.always_names(name)));
        members.always_named = always.cloned().collect();
    }
    for choice in choices {
        let sets = members.take_choice(choice);
        require_one_of(schema, &sets);
    }
    if !members.properties.is_empty() {
        members.add_to(schema);
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
    /// The properties of the object itself that every branch of a choice has.
    always_named: BTreeSet<String>,
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

    /// Adds the properties to an object. The schemas of one that it has itself narrow it.
    fn add_to(self, object: &mut Keywords) {
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        let Value::Object(properties) = properties else {
            return;
        };
        for (name, schemas) in self.properties {
            let Value::Array(mut schemas) = schemas else {
                continue;
            };
            let Some(own) = properties.get_mut(&name) else {
                properties.insert(name, any_of(schemas));
                continue;
            };
            if self.always_named.contains(&name) {
                narrow(
                    own,
                    values_of_all(&schemas).unwrap_or_else(|| any_of(schemas)),
                );
            } else if says_little(own) {
                // In the branches that do not have it, it may be anything.
                schemas.push(json!({}));
                narrow(own, any_of(schemas));
            } else {
                let first = schemas
                    .iter_mut()
                    .find_map(|schema| schema.get_mut("description"));
                if own.get("description").is_none()
                    && let Some(description) = first
                {
                    own["description"] = description.take();
                }
            }
        }
    }
}

/// Returns the schema of values that fit one of these.
fn any_of(schemas: Vec<Value>) -> Value {
    let mut schemas = without_twins(schemas);
    match schemas.len() {
        1 => schemas.pop().unwrap_or_default(),
        _ => json!({"anyOf": schemas}),
    }
}

/// Returns the schema of all values that these schemas have, if they have nothing but values.
fn values_of_all(schemas: &[Value]) -> Option<Value> {
    let mut values = Vec::new();
    for schema in schemas {
        let is_plain = |name: &String| ["type", "const", "enum"].contains(&name.as_str());
        if !schema.as_object()?.keys().all(is_plain) {
            return None;
        }
        match (schema.get("const"), schema.get("enum")) {
            (Some(value), None) => values.push(value.clone()),
            (None, Some(list)) => values.extend_from_slice(elements(list)),
            _ => return None,
        }
    }
    Some(json!({"enum": without_twins(values)}))
}

/// Whether a schema says no more than a type and what is for people.
fn says_little(schema: &Value) -> bool {
    let is_little = |name: &String| {
        ["type", "title", "description", "default", "examples"].contains(&name.as_str())
    };
    schema
        .as_object()
        .is_some_and(|schema| schema.keys().all(is_little))
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
