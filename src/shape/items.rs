//! Reads the items of a list from an answer while it arrives, each once it is whole and fits the schema (pure).

use std::fmt::{self, Display, Formatter};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::comparison::{Comparison, ListPlace, MAX_STEPS, Misfit, parse_answer};
use super::splitter::{ListEvent, ListSplitter};
use crate::text::json;

/// A reader of the items of one answer.
///
/// An answer may begin again, for example after the calls of tools. Then its items must be those that have been read already,
/// perhaps with more after them: what was printed stays.
#[derive(Debug)]
pub struct ItemReader {
    schema: Value,
    place: ListPlace,
    splitter: ListSplitter,
    /// The steps that are left for comparisons.
    steps: usize,
    /// The items that have come since the answer has begun, perhaps again.
    items: Items,
    /// The items that have been handed on.
    known: Items,
}

/// The first items of a list. Their texts are not kept: they may have megabytes.
#[derive(Debug, Clone, Default)]
struct Items {
    count: usize,
    hash: DefaultHasher,
}

impl Items {
    fn add(&mut self, line: &str) {
        self.count += 1;
        line.hash(&mut self.hash);
    }

    fn is_same(&self, other: &Items) -> bool {
        self.count == other.count && self.hash.finish() == other.hash.finish()
    }
}

/// A reason why there are no further items.
#[derive(Debug, PartialEq, Eq)]
pub enum ItemFault {
    /// An item differs from the schema. It has this number.
    Misfit(usize, Misfit),
    /// What follows that many items is not JSON.
    NotJson(usize),
    /// The list comes twice, in a field of this name.
    Repeated(String),
    /// The answer has begun again after that many items, with others.
    Changed(usize),
}

impl Display for ItemFault {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        match self {
            ItemFault::Misfit(number, Misfit::Differs(reason)) => write!(
                formatter,
                "item {number} does not match the schema: {reason}"
            ),
            ItemFault::Misfit(_, undecided) => undecided.fmt(formatter),
            ItemFault::NotJson(count) => {
                write!(formatter, "what follows item {count} is not JSON")
            }
            ItemFault::Repeated(name) => write!(formatter, "the answer has “{name}” twice"),
            ItemFault::Changed(count) => write!(
                formatter,
                "the model has begun its list again, and not with the items that were printed ({count})"
            ),
        }
    }
}

impl ItemReader {
    pub fn new(schema: Value, place: ListPlace) -> ItemReader {
        let field = place.field().map(str::to_owned);
        ItemReader {
            schema,
            place,
            splitter: ListSplitter::new(field),
            steps: MAX_STEPS,
            items: Items::default(),
            known: Items::default(),
        }
    }

    /// Begins again, because the answer does.
    pub fn restart(&mut self) {
        self.splitter.restart();
        self.items = Items::default();
    }

    /// Reads no more items until the answer begins again, or is complete.
    pub fn give_up(&mut self) {
        self.splitter.give_up();
    }

    /// Begins a message, or another part of the answer. It may be all of it.
    pub fn begin_part(&mut self) {
        if self.splitter.is_outside_json() {
            self.restart();
        }
    }

    /// Returns the next item that ends in a piece of the answer, as a line; `None` once all of `rest` is read.
    pub fn next(&mut self, rest: &mut &str) -> Result<Option<String>, ItemFault> {
        while let Some(event) = self.splitter.next(rest) {
            let line = match event {
                ListEvent::Item(json) => self.checked(json)?,
                ListEvent::Broken => self.broken()?,
                ListEvent::Repeated => return Err(self.repeated()),
            };
            if let Some(line) = line
                && self.is_new(&line)?
            {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Returns the items of the complete answer that have not been read, as lines without the last newline. `json` is the part of
    /// it that fits the schema.
    pub fn remaining(&mut self, json: &str) -> Result<String, ItemFault> {
        self.restart();
        let mut lines = String::new();
        let mut rest = json;
        while let Some(event) = self.splitter.next(&mut rest) {
            match event {
                ListEvent::Item(item) => {
                    let line = json::into_compact(item);
                    if self.is_new(&line)? {
                        lines.push_str(if lines.is_empty() { "" } else { "\n" });
                        lines.push_str(&line);
                    }
                }
                ListEvent::Repeated => return Err(self.repeated()),
                // The schema allows null, too.
                ListEvent::Broken => {}
            }
        }
        if self.items.count < self.known.count {
            return Err(self.changed());
        }
        Ok(lines)
    }

    /// Returns an item as a line, if it fits the schema; `None` if it is no JSON.
    fn checked(&mut self, json: String) -> Result<Option<String>, ItemFault> {
        let Ok(item) = parse_answer(&json) else {
            return self.broken();
        };
        let misfit = |misfit| ItemFault::Misfit(self.items.count + 1, misfit);
        json::check_names(&json).map_err(|error| misfit(Misfit::Differs(error.to_string())))?;
        let mut comparison = Comparison::new(&self.schema, self.steps);
        let compared = comparison.check_item(&self.place, self.items.count, &item);
        self.steps = comparison.steps_left();
        compared.map_err(misfit)?;
        Ok(Some(json::into_compact(json)))
    }

    /// Takes what came for no JSON. Before the first item it may be words after which the answer follows.
    fn broken(&mut self) -> Result<Option<String>, ItemFault> {
        self.splitter.give_up();
        if self.items.count == 0 {
            Ok(None)
        } else {
            Err(ItemFault::NotJson(self.items.count))
        }
    }

    /// Adds an item. Returns whether it has not been read before. Whether the items before it are those that were read is known
    /// once all of them have come.
    fn is_new(&mut self, line: &str) -> Result<bool, ItemFault> {
        let is_new = self.items.count >= self.known.count;
        self.items.add(line);
        if is_new {
            self.known = self.items.clone();
        } else if self.items.count == self.known.count && !self.items.is_same(&self.known) {
            return Err(self.changed());
        }
        Ok(is_new)
    }

    fn changed(&self) -> ItemFault {
        ItemFault::Changed(self.known.count)
    }

    fn repeated(&self) -> ItemFault {
        ItemFault::Repeated(self.place.field().unwrap_or_default().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;
    use crate::text::table::rows;

    fn schema(json: &str) -> Value {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    /// A reader of lists in an object or at the top, whose items may be anything.
    fn reader(is_field: bool) -> ItemReader {
        let place = if is_field {
            ListPlace::Field("items".to_owned())
        } else {
            ListPlace::Top
        };
        ItemReader::new(schema("{}"), place)
    }

    /// Feeds a piece. Returns the lines that it completes, and perhaps why there are no more.
    fn fed(reader: &mut ItemReader, mut piece: &str) -> (Vec<String>, Option<ItemFault>) {
        let mut lines = Vec::new();
        loop {
            match reader.next(&mut piece) {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => return (lines, None),
                Err(fault) => return (lines, Some(fault)),
            }
        }
    }

    /// Which items come of an answer in one piece, and of one byte by byte, and why there are no more.
    fn read(schema_and_place: (&str, &str), answer: &str) -> String {
        let (json, name) = schema_and_place;
        let place = match name {
            "" => ListPlace::Top,
            _ => ListPlace::Field(name.to_owned()),
        };
        let mut found = Vec::new();
        for pieces in [
            vec![answer],
            answer.split_inclusive(|_: char| true).collect(),
        ] {
            let mut reader = ItemReader::new(schema(json), place.clone());
            let mut outcome = String::new();
            for piece in pieces {
                let (lines, fault) = fed(&mut reader, piece);
                for line in lines {
                    outcome += &format!("{line} ");
                }
                if let Some(fault) = fault {
                    outcome += &format!("! {fault}");
                    break;
                }
            }
            found.push(outcome.trim_end().to_owned());
        }
        assert_eq!(found[0], found[1], "{answer}");
        found.swap_remove(0)
    }

    const PEOPLE: &str = r##"{"properties":{"items":{"type":"array","items":{"$ref":"#/$defs/person"}}},
        "$defs":{"person":{"type":"object","properties":{"age":{"type":"integer"}},"required":["name"]}}}"##;

    #[test]
    fn items_are_read_one_by_one_until_one_does_not_match_the_schema() {
        for [answer, outcome] in rows(
            r#"
            {"items":[{"name":"Ann"},{"name":"Bob","age":7}]} | {"name":"Ann"} {"name":"Bob","age":7}
            {"items":[{"name":"Ann"},{"nam                    | {"name":"Ann"}
            {"items":[{"name":"Ann"},{"name":"Bob","age":"7"},{"name":"Cid"}]} | {"name":"Ann"} ! item 2 does not match the schema: age is not of type integer
            {"items":[{"name":"Ann"},{"age":7}]}  | {"name":"Ann"} ! item 2 does not match the schema: name is missing
            {"items":[7                                       | -
            {"items":[7,                                      | ! item 1 does not match the schema: it is not of type object
            {"items":[{"name":"Ann"}],"items":[]}             | {"name":"Ann"} ! the answer has “items” twice
            {"items":null,"it\u0065ms":[{"name":"Ann"}]}      | ! the answer has “items” twice
            {"items":[{"name":"Ann"} {"name":"Bob"}]}         | {"name":"Ann"} ! what follows item 1 is not JSON
            {"items":[{"name":"Ann"},{"name":Bob}]}           | {"name":"Ann"} ! what follows item 1 is not JSON
            {"items":[{"name":Ann},{"name":"Bob"}]}           | -
            {"items":[,{"name":"Bob"}]}                       | -
            {"items":{"name":"Ann"}}                          | -
            {"others":[{"name":"Ann"}]}                       | -
            [{"name":"Ann"}]                                  | -
            Here it is: {"items":[{"name":"Ann"}]}            | -
            `{"items":[{"name":"Ann"}]}`                      | -
            - Ann                                             | -
            -                                                 | -"#,
        ) {
            assert_eq!(read((PEOPLE, "items"), answer), outcome, "{answer}");
        }
    }

    #[test]
    fn each_item_has_its_own_schema_and_all_share_the_steps() {
        let tuple = r#"{"type":"array","prefixItems":[{"type":"string"}],"items":{"anyOf":[{"type":"integer"},{"type":"null"}]}}"#;
        for [answer, outcome] in rows(
            r#"
            ["a",1,null,2.0,"b"] | "a" 1 null 2.0 ! item 5 does not match the schema: it matches no alternative
            [1]                  | ! item 1 does not match the schema: it is not of type string"#,
        ) {
            assert_eq!(read((tuple, ""), answer), outcome, "{answer}");
        }
        let mut reader = ItemReader::new(schema(tuple), ListPlace::Top);
        reader.steps = 100;
        let (lines, fault) = fed(&mut reader, &format!("[\"a\"{}]", ",1".repeat(100)));
        let undecided = ItemFault::Misfit(lines.len() + 1, Misfit::Undecided);
        assert_eq!(fault, Some(undecided));
        assert!(lines.len() > 5, "{}", lines.len());
    }

    #[test]
    fn an_answer_that_begins_again_must_repeat_the_items_that_were_read() {
        for [first, second, outcome] in rows(
            r#"
            [1,2   | [1,2,3]  | 23
            [1,2,  | [1,2,3]  | 3
            [1,2,  | [1]      | changed 2
            [1,2,  | [1,3]    | changed 2
            [1,    | [10]     | changed 1
            [10,   | [1]      | changed 1
            [1,    | []       | changed 1
            words  | [1]      | 1
            [words | [1]      | 1
            []     | [1]      | 1
            [1,    | words    | changed 1"#,
        ) {
            let mut reader = reader(false);
            drop(fed(&mut reader, first));
            reader.restart();
            let mut lines = String::new();
            let mut piece = second;
            let fault = loop {
                match reader.next(&mut piece) {
                    Ok(Some(line)) => lines += &line,
                    Ok(None) => break reader.remaining(second).err(),
                    Err(fault) => break Some(fault),
                }
            };
            let found = match fault {
                Some(ItemFault::Changed(count)) => format!("changed {count}"),
                Some(other) => other.to_string(),
                None => lines,
            };
            assert_eq!(found, outcome, "{first} {second}");
        }
    }

    #[test]
    fn a_list_may_begin_or_continue_in_a_later_part_of_the_answer() {
        for [first, second, outcome] in rows(
            r"
            Let me see. | [1,2] | 1 2
            [See] this. | [1,2] | 1 2
            [1,         | 2,3]  | 1 2 3
            [           | 1,2]  | 1 2
            -           | [1,2] | 1 2
            [1,2]       | [1,2,3] | 1 2 3",
        ) {
            let mut reader = reader(false);
            let (mut lines, _) = fed(&mut reader, first);
            reader.begin_part();
            lines.extend(fed(&mut reader, second).0);
            assert_eq!(lines.join(" "), outcome, "{first} {second}");
        }
    }

    #[test]
    fn the_place_of_the_list_is_found_in_a_schema_with_exactly_one() {
        for [json, place] in rows(
            r##"
            {"type":"array"}                                           | top
            {"type":["array","null"]}                                  | top
            {"$ref":"#/$defs/L","$defs":{"L":{"type":"array"}}}        | top
            {"properties":{"a":{"type":"array"}}}                      | a
            {"properties":{"n":{"type":"integer"},"a":{"type":"array"}}} | a
            {"properties":{"a":{"$ref":"#/$defs/L"}},"$defs":{"L":{"type":["null","array"]}}} | a
            {"allOf":[{"properties":{"a":{"type":"array"}}},{"properties":{"b":{"type":"string"}}}]} | a
            {"allOf":[{"$ref":"#"},{"properties":{"a":{"type":"array"}}}]} | a
            {"properties":{"a":{"type":"array"},"b":{"type":"array"}}} | none of a b
            {"properties":{"a":{"properties":{"b":{"type":"array"}}}}} | none of
            {"properties":{"a":{"type":["array","string"]}}}           | none of
            {"type":"string"}                                          | none of
            {"items":{"type":"string"}}                                | none of
            {}                                                         | none of"##,
        ) {
            let found = match ListPlace::find(&schema(json)) {
                Ok(ListPlace::Top) => "top".to_owned(),
                Ok(ListPlace::Field(name)) => name,
                Err(names) => format!("none of {}", names.join(" ")),
            };
            assert_eq!(found.trim_end(), place, "{json}");
        }
    }

    /// JSON of any kind, with whitespace between its values.
    fn value() -> impl Strategy<Value = String> {
        let scalar = prop_oneof![
            Just("null".to_owned()),
            "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
            r#""([a-zä€😀 \[\]{},:`~]|\\\\|\\"|\\n|\\u00e4|\\ud83d\\ude00){0,8}""#,
        ];
        scalar.prop_recursive(3, 20, 4, |inner| {
            let list = (prop::collection::vec(inner.clone(), 0..4), space());
            let list = list.prop_map(|(items, space)| {
                format!("[{space}{}]", items.join(&format!("{space},")))
            });
            let object = (prop::collection::vec(inner, 0..4), space());
            let object = object.prop_map(|(values, space)| {
                let mut fields = Vec::new();
                for (number, value) in values.iter().enumerate() {
                    fields.push(format!("\"\\u0061{number}\"{space}:{value}{space}"));
                }
                format!("{{{}}}", fields.join(","))
            });
            prop_oneof![list, object]
        })
    }

    fn space() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["", "", " ", "\n", "\r\n", "\t\n  "]).prop_map(str::to_owned)
    }

    /// An answer, whether its list is in a field, and the items.
    fn answer() -> impl Strategy<Value = (String, bool, Vec<String>)> {
        let items = prop::collection::vec(value(), 0..5);
        let others = prop::collection::vec(value(), 0..3);
        let form = (
            any::<bool>(),
            prop::option::of(0..2_usize),
            space(),
            0..3_usize,
        );
        (items, others, form).prop_map(|(items, others, (is_field, fence, space, place))| {
            let list = items.join(&format!("{space},{space}"));
            let mut answer = format!("[{space}{list}{space}]");
            if is_field {
                let mut fields = Vec::new();
                for (number, value) in others.iter().enumerate() {
                    fields.push(format!("\"other{number}\":{space}{value}"));
                }
                fields.insert(
                    place.min(fields.len()),
                    format!("\"it\\u0065ms\"{space}:{answer}"),
                );
                answer = format!("{{{space}{}}}", fields.join(&format!("{space},")));
            }
            if let Some(kind) = fence {
                let mark = ["```", "~~~~"][kind];
                answer = format!("{space}{mark}json\n{space}{answer}\n{mark}\n");
            }
            (answer, is_field, items)
        })
    }

    proptest! {
        #[test]
        fn items_are_read_whole_and_in_order_however_the_answer_is_split(
            (answer, is_field, items) in answer(),
            cuts in prop::collection::vec(0..400_usize, 0..12),
            bytewise: bool,
        ) {
            let expected = Vec::from_iter(items.iter().map(|item| json::compact(item)));
            let mut reader = reader(is_field);
            let mut found = Vec::new();
            let mut cuts = cuts;
            if bytewise {
                cuts = Vec::from_iter(0..answer.len());
            }
            cuts.sort_unstable();
            let mut at = 0;
            for cut in cuts {
                let cut = cut.min(answer.len());
                if cut < at || !answer.is_char_boundary(cut) {
                    continue;
                }
                let (lines, fault) = fed(&mut reader, &answer[at..cut]);
                prop_assert_eq!(fault, None);
                found.extend(lines);
                prop_assert!(expected.starts_with(&found), "{:?} {:?}", found, expected);
                at = cut;
            }
            let (lines, fault) = fed(&mut reader, &answer[at..]);
            prop_assert_eq!(fault, None);
            found.extend(lines);
            prop_assert_eq!(&found, &expected);
            for line in &found {
                prop_assert!(!line.contains('\n') && serde_json::from_str::<&RawValue>(line).is_ok(), "{}", line);
            }
            // The complete answer has nothing else.
            let whole = answer.trim();
            let whole = whole.split_once('\n').filter(|_| whole.starts_with(['`', '~'])).map_or(whole, |(_, rest)| rest);
            let whole = whole.trim_end_matches(['`', '~']);
            prop_assert_eq!(reader.remaining(whole), Ok(String::new()));
            let mut unread = super::tests::reader(is_field);
            prop_assert_eq!(unread.remaining(whole), Ok(expected.join("\n")));
        }
    }
}
