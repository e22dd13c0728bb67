//! Compares a value with a JSON Schema, in bounded time whatever its references lead to (pure).

use std::cell::OnceCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display, Formatter};
use std::ptr;
use std::rc::Rc;

use serde_json::{Number, Value};

use super::keywords::{elements, named, referred, required, types_in};
use crate::text::json;
use crate::text::number::Decimal;

/// The most memory, by an estimate, that the values of an answer may take: several times as many as a model writes.
const MAX_ANSWER_WEIGHT: usize = 30_000_000;

/// The most steps of a comparison. References may lead to the same schemas again and again.
pub const MAX_STEPS: usize = 4_000_000;

/// How many bytes of texts one step reads.
const BYTES_OF_STEP: usize = 100;

/// How many comparisons with lists of alternatives are remembered at once.
const MAX_KNOWN: usize = 100_000;

/// A reason why a value does not fit a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// It differs, in words that follow a colon.
    Differs(String),
    /// It is not known: the comparison takes too many steps.
    Undecided,
    /// It is not known: the value would take too much memory.
    TooLarge,
}

impl Display for Misfit {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        match self {
            Misfit::Differs(reason) => write!(
                formatter,
                "the answer does not match the schema: {reason}"
            ),
            Misfit::TooLarge => write!(
                formatter,
                "the answer cannot be checked against the schema: {}",
                json::TOO_MANY_VALUES
            ),
            Misfit::Undecided => formatter.write_str(
                "the answer cannot be checked against the schema: its references and alternatives need too many comparisons",
            ),
        }
    }
}

fn differs(words: String) -> Misfit {
    Misfit::Differs(words)
}

/// Compares a value with a schema in at most this many steps, except for the keywords that are not read here. The error is the
/// first difference.
pub fn compare(value: &Value, schema: &Value, max_steps: usize) -> Result<(), Misfit> {
    Comparison::new(schema, max_steps).check(&Part::new(value), vec![schema])
}

/// Parses the JSON of an answer, or of a part of it.
pub fn parse_answer(text: &str) -> serde_json::Result<Value> {
    json::check_weight(text, MAX_ANSWER_WEIGHT)?;
    serde_json::from_str(text)
}

/// The place of the list in JSON that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListPlace {
    /// The JSON is a list.
    Top,
    /// The JSON is an object, and the list is in this field.
    Field(String),
}

impl ListPlace {
    /// Returns the name of the field with the list, if it is in one.
    pub fn field(&self) -> Option<&str> {
        match self {
            ListPlace::Top => None,
            ListPlace::Field(name) => Some(name),
        }
    }

    /// Finds the list that a schema asks for. If it does not ask for exactly one, the error has the names of all.
    pub fn find(root: &Value) -> Result<ListPlace, Vec<String>> {
        let mut comparison = Comparison::new(root, MAX_STEPS);
        if comparison.asks_for_list(&ListPlace::Top) {
            return Ok(ListPlace::Top);
        }
        let schemas = comparison.with_implied_schemas(vec![root]);
        let mut seen = HashSet::new();
        let mut names = Vec::new();
        for schema in schemas.unwrap_or_default() {
            for (name, _) in named(&schema["properties"]) {
                let place = ListPlace::Field(name.clone());
                if seen.insert(name) && comparison.asks_for_list(&place) {
                    names.push(name.clone());
                }
            }
        }
        if names.len() == 1 {
            return Ok(ListPlace::Field(names.remove(0)));
        }
        Err(names)
    }
}

/// The steps that are left of a comparison.
struct Steps {
    left: usize,
}

impl Steps {
    fn take(&mut self, count: usize) -> Result<(), Misfit> {
        self.left = self.left.checked_sub(count).ok_or(Misfit::Undecided)?;
        Ok(())
    }

    /// Takes the steps for reading texts with this many bytes together.
    fn take_for_bytes(&mut self, count: usize) -> Result<(), Misfit> {
        self.take(count / BYTES_OF_STEP)
    }

    /// Returns the value of a number.
    fn decimal(&mut self, number: &Number) -> Result<Decimal, Misfit> {
        self.take_for_bytes(number.as_str().len())?;
        Ok(Decimal::new(number))
    }

    /// Whether two values are the same, with numbers compared by their values.
    fn is_same(&mut self, one: &Value, other: &Value) -> Result<bool, Misfit> {
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => {
                Ok(self.decimal(one)? == self.decimal(other)?)
            }
            (Value::String(one), Value::String(other)) => {
                self.take_for_bytes(one.len().min(other.len()))?;
                Ok(one == other)
            }
            (Value::Array(one), Value::Array(other)) => {
                if one.len() != other.len() {
                    return Ok(false);
                }
                for (item, counterpart) in one.iter().zip(other) {
                    self.take(1)?;
                    if !self.is_same(item, counterpart)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Object(one), Value::Object(other)) => {
                if one.len() != other.len() {
                    return Ok(false);
                }
                for (name, field) in one {
                    self.take(1)?;
                    self.take_for_bytes(name.len())?;
                    let Some(counterpart) = other.get(name) else {
                        return Ok(false);
                    };
                    if !self.is_same(field, counterpart)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(one == other),
        }
    }
}

/// A value in an answer, to be compared with schemas.
struct Part<'a> {
    value: &'a Value,
    /// The value of a number, once it is known: a long one is compared with many.
    decimal: OnceCell<Decimal>,
}

impl<'a> Part<'a> {
    fn new(value: &'a Value) -> Part<'a> {
        Part {
            value,
            decimal: OnceCell::new(),
        }
    }

    /// Returns the value of a number; `None` if it is something else.
    fn decimal(&self, steps: &mut Steps) -> Result<Option<&Decimal>, Misfit> {
        let Value::Number(number) = self.value else {
            return Ok(None);
        };
        if self.decimal.get().is_none() {
            let _ = self.decimal.set(steps.decimal(number)?);
        }
        Ok(self.decimal.get())
    }

    fn is_of_type(&self, kind: &str, steps: &mut Steps) -> Result<bool, Misfit> {
        let value = self.value;
        Ok(match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => self.decimal(steps)?.is_some_and(Decimal::is_integer),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            _ => true,
        })
    }

    fn is_same(&self, other: &Value, steps: &mut Steps) -> Result<bool, Misfit> {
        match (self.decimal(steps)?, other) {
            (Some(decimal), Value::Number(number)) => Ok(*decimal == steps.decimal(number)?),
            _ => steps.is_same(self.value, other),
        }
    }
}

/// A step on the path from an answer to a part of it.
#[derive(Clone, Copy)]
enum PathStep<'a> {
    Field(&'a str),
    Item(usize),
}

impl Display for PathStep<'_> {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        match self {
            PathStep::Field(name) => formatter.write_str(name),
            PathStep::Item(at) => at.fmt(formatter),
        }
    }
}

/// Returns the schema of a field with this name, if there is one. Whether a pattern of `patternProperties` fits the name is not
/// known.
fn of_field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let others = schema.get("additionalProperties");
    let others = others.filter(|others| others.is_object());
    let own = schema["properties"].get(name);
    own.or(others.filter(|_| schema.get("patternProperties").is_none()))
}

/// Returns the schemas of the item in this place. The first items may have schemas of their own.
fn schemas_of_item<'a>(schemas: &[&'a Value], at: usize) -> Vec<&'a Value> {
    let of_item = |schema: &&'a Value| {
        let first = elements(&schema["prefixItems"]);
        first.get(at).or(schema.get("items"))
    };
    schemas.iter().filter_map(of_item).collect()
}

/// Returns how many alternatives there are, with the lists that they ask for.
fn count(alternatives: &[Rc<DemandedLists>]) -> usize {
    let mut count = alternatives.len();
    for alternative in alternatives {
        count += match alternative.as_ref() {
            DemandedLists::Unmeetable => 0,
            DemandedLists::AllOf(places) => places.len(),
        };
    }
    count
}

/// The comparison of an answer with a schema.
///
/// References may lead back to where they came from. So each value is compared with a set of schemas at once, in which each is
/// once, and with each list of alternatives once.
pub struct Comparison<'a> {
    /// The complete schema, because references refer to parts of it.
    root: &'a Value,
    /// Where the value is that is compared, such as `items.0.age`; empty for the answer itself. It becomes a text only for a
    /// difference: a name may be as long as the answer, and have many values below it.
    path: Vec<PathStep<'a>>,
    /// The steps that are left.
    steps: Steps,
    /// Whether a value fits a list of alternatives, by the addresses of both.
    known: HashMap<(*const Value, *const Value), bool>,
}

/// Lists of alternatives that one value is compared with, each once.
#[derive(Default)]
struct AlternativeLists<'a> {
    lists: Vec<&'a Value>,
    places: HashMap<*const Value, usize>,
}

/// The lists of alternatives that a value must fit, too, to fit a schema.
enum DemandedLists {
    /// The value differs from the schema, whatever else it fits.
    Unmeetable,
    /// The lists in these places of [`AlternativeLists`].
    AllOf(Vec<usize>),
}

impl DemandedLists {
    /// Whether a value that fits these lists fits the schema.
    fn are_met(&self, fits: impl Fn(usize) -> bool) -> bool {
        match self {
            DemandedLists::Unmeetable => false,
            DemandedLists::AllOf(places) => places.iter().all(|place| fits(*place)),
        }
    }
}

impl<'a> AlternativeLists<'a> {
    /// Returns the place of a list, which is added if it is new.
    fn place_of(&mut self, list: &'a Value) -> usize {
        let next = self.lists.len();
        let place = *self.places.entry(ptr::from_ref(list)).or_insert(next);
        if place == next {
            self.lists.push(list);
        }
        place
    }
}

impl<'a> Comparison<'a> {
    /// Returns a comparison with parts of this schema, in at most that many steps.
    pub fn new(root: &'a Value, max_steps: usize) -> Comparison<'a> {
        Comparison {
            root,
            path: Vec::new(),
            steps: Steps { left: max_steps },
            known: HashMap::new(),
        }
    }

    /// Returns how many steps are left.
    pub fn steps_left(&self) -> usize {
        self.steps.left
    }

    /// Compares an item of a list with the schemas for the item in this place, counted from zero.
    pub fn check_item(
        &mut self,
        list: &ListPlace,
        at: usize,
        item: &'a Value,
    ) -> Result<(), Misfit> {
        let schemas = self.schemas_of_list(list)?;
        let of_item = schemas_of_item(&schemas, at);
        self.check(&Part::new(item), of_item)
    }

    /// Whether the value in this place must be a list, or null.
    fn asks_for_list(&mut self, place: &ListPlace) -> bool {
        let schemas = self.schemas_of_list(place).unwrap_or_default();
        schemas.into_iter().any(|schema| {
            let types = types_in(schema);
            types.contains(&"array") && types.iter().all(|kind| matches!(*kind, "array" | "null"))
        })
    }

    /// Returns the schemas that a list must fit, and those that they ask for.
    fn schemas_of_list(&mut self, list: &ListPlace) -> Result<Vec<&'a Value>, Misfit> {
        let schemas = self.with_implied_schemas(vec![self.root])?;
        let Some(name) = list.field() else {
            return Ok(schemas);
        };
        let of_field = schemas.iter().filter_map(|schema| of_field(schema, name));
        self.with_implied_schemas(of_field.collect())
    }

    /// Compares a value with schemas, all of which it must fit.
    fn check(&mut self, part: &Part<'a>, schemas: Vec<&'a Value>) -> Result<(), Misfit> {
        let lists = self.check_all_but_alternatives(part, schemas)?;
        for list in lists {
            if !self.fits_alternative(part, list)? {
                return Err(self.difference("matches no alternative"));
            }
        }
        Ok(())
    }

    /// Returns a difference of the value that is compared, in the words that follow its name. The name takes steps, because it
    /// may be long, and each alternative may differ.
    fn difference(&mut self, words: &str) -> Misfit {
        let lengths = self.path.iter().map(|step| match step {
            PathStep::Field(name) => name.len(),
            PathStep::Item(_) => 1,
        });
        if let Err(undecided) = self.steps.take_for_bytes(lengths.sum()) {
            return undecided;
        }
        let names = Vec::from_iter(self.path.iter().map(PathStep::to_string));
        let place = names.join(".");
        let name = if place.is_empty() { "it" } else { &place };
        differs(format!("{name} {words}"))
    }

    /// Compares a value with schemas except for their lists of alternatives, which are returned.
    fn check_all_but_alternatives(
        &mut self,
        part: &Part<'a>,
        schemas: Vec<&'a Value>,
    ) -> Result<Vec<&'a Value>, Misfit> {
        let schemas = self.with_implied_schemas(schemas)?;
        for schema in &schemas {
            self.check_type(part, schema)?;
            self.check_value(part, schema)?;
            self.check_required(part, schema)?;
        }
        self.check_fields(part, &schemas)?;
        self.check_items(part, &schemas)?;
        // Of `oneOf` only one may fit, but to check that, q would have to read all the words that distinguish them.
        let lists = schemas
            .iter()
            .flat_map(|schema| [&schema["anyOf"], &schema["oneOf"]]);
        Ok(lists.filter(|list| !elements(list).is_empty()).collect())
    }

    fn check_type(&mut self, part: &Part<'a>, schema: &Value) -> Result<(), Misfit> {
        let types = types_in(schema);
        for kind in &types {
            if part.is_of_type(kind, &mut self.steps)? {
                return Ok(());
            }
        }
        if types.is_empty() {
            return Ok(());
        }
        let types = types.join(" or ");
        Err(self.difference(&format!("is not of type {types}")))
    }

    fn check_value(&mut self, part: &Part<'a>, schema: &Value) -> Result<(), Misfit> {
        if let Some(only) = schema.get("const")
            && !part.is_same(only, &mut self.steps)?
        {
            let only = only.to_string();
            self.steps.take_for_bytes(only.len())?;
            return Err(self.difference(&format!("is not {only}")));
        }
        let Value::Array(allowed) = &schema["enum"] else {
            return Ok(());
        };
        for value in allowed {
            if part.is_same(value, &mut self.steps)? {
                return Ok(());
            }
        }
        let texts = Vec::from_iter(allowed.iter().map(Value::to_string));
        let texts = texts.join(", ");
        self.steps.take_for_bytes(texts.len())?;
        Err(self.difference(&format!("is not one of {texts}")))
    }

    fn check_required(&mut self, part: &Part<'a>, schema: &'a Value) -> Result<(), Misfit> {
        let Value::Object(fields) = part.value else {
            return Ok(());
        };
        for name in required(schema) {
            if !fields.contains_key(name) {
                self.path.push(PathStep::Field(name));
                return Err(self.difference("is missing"));
            }
        }
        Ok(())
    }

    /// Returns the schemas, those that they refer to, and those in `allOf`, each once.
    fn with_implied_schemas(
        &mut self,
        mut schemas: Vec<&'a Value>,
    ) -> Result<Vec<&'a Value>, Misfit> {
        let mut seen = HashSet::new();
        schemas.retain(|schema| seen.insert(ptr::from_ref(*schema)));
        let mut at = 0;
        while let Some(&schema) = schemas.get(at) {
            at += 1;
            let lists = ["type", "enum", "required"].map(|word| elements(&schema[word]).len());
            self.steps.take(1 + lists.iter().sum::<usize>())?;
            let target = referred(self.root, schema).into_iter();
            for next in target.chain(elements(&schema["allOf"])) {
                if seen.insert(ptr::from_ref(next)) {
                    schemas.push(next);
                }
            }
        }
        Ok(schemas)
    }

    fn check_fields(&mut self, part: &Part<'a>, schemas: &[&'a Value]) -> Result<(), Misfit> {
        let Value::Object(fields) = part.value else {
            return Ok(());
        };
        for (name, value) in fields {
            self.steps.take(schemas.len())?;
            self.steps.take_for_bytes(schemas.len() * name.len())?;
            let of_field =
                Vec::from_iter(schemas.iter().filter_map(|schema| of_field(schema, name)));
            if !of_field.is_empty() {
                self.path.push(PathStep::Field(name));
                self.check(&Part::new(value), of_field)?;
                self.path.pop();
            }
        }
        Ok(())
    }

    fn check_items(&mut self, part: &Part<'a>, schemas: &[&'a Value]) -> Result<(), Misfit> {
        let Value::Array(items) = part.value else {
            return Ok(());
        };
        for (at, item) in items.iter().enumerate() {
            self.steps.take(schemas.len())?;
            let of_item = schemas_of_item(schemas, at);
            if !of_item.is_empty() {
                self.path.push(PathStep::Item(at));
                self.check(&Part::new(item), of_item)?;
                self.path.pop();
            }
        }
        Ok(())
    }

    /// Whether a value fits one of the alternatives in a list.
    fn fits_alternative(&mut self, part: &Part<'a>, list: &'a Value) -> Result<bool, Misfit> {
        let value = ptr::from_ref(part.value);
        if let Some(fits) = self.known.get(&(ptr::from_ref(list), value)) {
            return Ok(*fits);
        }
        // An alternative may lead to more lists, and back to this one.
        let mut lists = AlternativeLists::default();
        lists.place_of(list);
        let mut known = HashMap::new();
        let mut alternatives = Vec::new();
        while let Some(next) = lists.lists.get(alternatives.len()) {
            let mut of_list = Vec::new();
            for schema in elements(next) {
                self.steps.take(1)?;
                let target = self.target_of(schema);
                let demands = match known.entry(ptr::from_ref(target)) {
                    Entry::Occupied(entry) => Rc::clone(entry.get()),
                    Entry::Vacant(entry) => {
                        let demands = self.demands_of(part, target, &mut lists)?;
                        Rc::clone(entry.insert(Rc::new(demands)))
                    }
                };
                of_list.push(demands);
            }
            alternatives.push(of_list);
        }
        let solved = self.solve(&alternatives)?;
        if self.known.len() + solved.len() > MAX_KNOWN {
            self.known.clear();
        }
        for (other, fits) in lists.lists.iter().zip(&solved) {
            self.known.insert((ptr::from_ref(*other), value), *fits);
        }
        Ok(solved[0])
    }

    /// Returns what a schema refers to, if it does nothing else: several alternatives may be the same.
    fn target_of(&self, schema: &'a Value) -> &'a Value {
        let is_alone = schema.as_object().is_some_and(|words| words.len() == 1);
        let target = referred(self.root, schema).filter(|_| is_alone);
        target.unwrap_or(schema)
    }

    /// Returns what an alternative asks of a value besides what it is compared with here.
    fn demands_of(
        &mut self,
        part: &Part<'a>,
        schema: &'a Value,
        lists: &mut AlternativeLists<'a>,
    ) -> Result<DemandedLists, Misfit> {
        let depth = self.path.len();
        let found = self.check_all_but_alternatives(part, vec![schema]);
        // Where it differs, the path has gone on to that place.
        self.path.truncate(depth);
        match found {
            Ok(found) => {
                let places = found.into_iter().map(|list| lists.place_of(list));
                Ok(DemandedLists::AllOf(places.collect()))
            }
            Err(Misfit::Differs(_)) => Ok(DemandedLists::Unmeetable),
            Err(unknown) => Err(unknown),
        }
    }

    /// Returns which lists a value fits. Each list is given as what its alternatives ask for.
    fn solve(&mut self, lists: &[Vec<Rc<DemandedLists>>]) -> Result<Vec<bool>, Misfit> {
        let mut fits = vec![false; lists.len()];
        self.add_fitting(lists, &mut fits)?;
        // Lists whose alternatives only lead back to each other ask for nothing.
        let idle = self.idle(lists, &fits)?;
        for (place, is_idle) in idle.into_iter().enumerate() {
            fits[place] |= is_idle;
        }
        self.add_fitting(lists, &mut fits)?;
        Ok(fits)
    }

    /// Adds the lists with an alternative that asks only for lists that fit, until there are no more.
    fn add_fitting(
        &mut self,
        lists: &[Vec<Rc<DemandedLists>>],
        fits: &mut [bool],
    ) -> Result<(), Misfit> {
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            // Most lists lead to later ones.
            for (own, alternatives) in lists.iter().enumerate().rev() {
                self.steps.take(count(alternatives))?;
                let mut alternatives = alternatives.iter();
                if !fits[own] && alternatives.any(|demands| demands.are_met(|place| fits[place])) {
                    fits[own] = true;
                    has_changed = true;
                }
            }
        }
        Ok(())
    }

    /// Returns the lists that do not fit, though the value differs from none of their alternatives.
    fn idle(
        &mut self,
        lists: &[Vec<Rc<DemandedLists>>],
        fits: &[bool],
    ) -> Result<Vec<bool>, Misfit> {
        let mut idle = Vec::from_iter(fits.iter().map(|fits| !fits));
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for (own, alternatives) in lists.iter().enumerate().rev() {
                self.steps.take(count(alternatives))?;
                let may_fit = |place: usize| fits[place] || idle[place];
                let mut alternatives = alternatives.iter();
                if idle[own] && !alternatives.all(|demands| demands.are_met(may_fit)) {
                    idle[own] = false;
                    has_changed = true;
                }
            }
        }
        Ok(idle)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::table::rows;

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    #[test]
    fn values_are_equal_whatever_the_notation_of_their_numbers() {
        for [one, other, is_same] in rows(
            r#"
            1       | 1.0     | yes
            1       | 10e-1   | yes
            -0      | 0.0     | yes
            1       | -1      | no
            1       | 10      | no
            1       | "1"     | no
            1e400   | 1E+400  | yes
            1e400   | 1e401   | no
            1e9999999999999999999999 | 2e9999999999999999999999 | no
            [1,[2]] | [1.0,[2.00]] | yes
            [1]     | [1,1]   | no
            {"a":1,"b":[2]} | {"b":[2.0],"a":1.0} | yes
            {"a":1} | {"b":1} | no
            {"a":1} | {"a":1,"b":1} | no
            null    | false   | no
            "a"     | "a"     | yes"#,
        ) {
            let mut steps = Steps { left: 100 };
            let found = steps.is_same(&value(one), &value(other)) == Ok(true);
            assert_eq!(found, is_same == "yes", "{one} {other}");
        }
    }

    #[test]
    fn long_values_cost_steps_by_their_length_and_a_long_number_once() {
        let digits = "7".repeat(1_000_000);
        let long = value(&digits);
        let small = Vec::from_iter(0..1_000);
        // One for each hundred bytes of the long text and for each value, and those for the reason why it differs.
        let steps = 10_000 + 1_000 + 100;
        let not_one = |misfit: Result<(), Misfit>| matches!(misfit, Err(Misfit::Differs(_)));
        let found = compare(&long, &json!({"type": "integer", "enum": small}), steps);
        assert!(not_one(found));
        let other = json!({"const": digits});
        let many = json!({"anyOf": vec![&other; 1_000]});
        let found = compare(&json!(7), &many, steps);
        assert_eq!(found, Err(Misfit::Undecided), "each reason has the digits");
        let nested = Vec::from_iter(small.iter().map(|number| json!([number])));
        let found = compare(&json!([long]), &json!({"enum": nested}), steps);
        assert_eq!(found, Err(Misfit::Undecided));
        let text = json!(digits);
        for (answer, other) in [(&long, &long), (&text, &text), (&json!(7), &long)] {
            let schema = json!({"enum": [other, other, other], "type": "array"});
            let schema = json!({"anyOf": [{"const": other}, schema]});
            assert_ne!(compare(answer, &schema, steps * 2), Err(Misfit::Undecided));
            assert_eq!(compare(answer, &schema, 9_000), Err(Misfit::Undecided));
        }
    }

    #[test]
    fn a_difference_is_told_with_the_path_to_it_also_after_alternatives_that_differ_elsewhere() {
        let person = json!({"properties": {"age": {"type": "integer"}}, "required": ["name"]});
        let either = json!({"anyOf": [{"properties": {"a": {"type": "array", "items": {"type": "null"}}}}, {}]});
        let schema = json!({
            "additionalProperties": {"items": {"allOf": [either, person]}},
            "properties": {"": {"type": "null"}},
        });
        for [answer, reason] in rows(
            r#"
            7 | it is not of type object
            {"x": [{"name": 1}, {"a": [1], "age": "7", "name": 1}]} | x.1.age is not of type integer
            {"x": [{"a": [1], "name": 1}], "y": [{"a": [[]]}]} | y.0.name is missing
            {"x": [1]} | x.0 is not of type object
            {"": 7} | it is not of type null"#,
        ) {
            let found = compare(&value(answer), &schema, MAX_STEPS);
            assert_eq!(found, Err(differs(reason.to_owned())), "{answer}");
        }
        let nested = json!({"properties": {"x": {"anyOf": [{"items": {"const": 1}}, {"items": {"const": 2}}]}}});
        let found = compare(&json!({"x": [3]}), &nested, MAX_STEPS);
        assert_eq!(found, Err(differs("x matches no alternative".to_owned())));
    }

    #[test]
    fn the_name_of_a_part_costs_steps_where_an_alternative_differs_and_none_where_it_fits() {
        let schema = json!({"additionalProperties": {"items": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}});
        let name = "x".repeat(100_000);
        let answer = json!({name: vec![7; 100]});
        assert_eq!(compare(&answer, &schema, 200_000), Ok(()));
        assert_eq!(
            compare(&answer, &schema, 90_000),
            Err(Misfit::Undecided),
            "each item differs from null"
        );
        let schema = json!({"additionalProperties": {"items": {"type": "integer"}}});
        assert_eq!(compare(&answer, &schema, 2_000), Ok(()));
    }
}
