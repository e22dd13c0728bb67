//! Reads JSON that servers write in more than one way: a field of the wrong type is a field that is missing (pure).
//!
//! What a stream sends in every event is read into structs of these types. The rest stays the JSON that it is ([`Json`]), and
//! is read where it is needed. In an object that is read, the same field twice is an error, see [`REPEATED_FIELD`].

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::kept::{self, MAX_KEPT};
use crate::message::Source;
use crate::text::json::compact;

/// The most elements of a list. Many small ones would take much more memory than their JSON.
const MAX_ELEMENTS: usize = 10_000;

/// How the error begins of an object that has the same field twice.
pub const REPEATED_FIELD: &str = "duplicate field";

/// Whether a part of this type has text; some servers name none.
pub fn is_text_type(kind: &str) -> bool {
    matches!(kind, "" | "text" | "output_text")
}

/// Whether a part of this type is an image.
fn is_image_type(kind: &str) -> bool {
    matches!(kind, "image" | "image_url" | "output_image")
}

/// What reads some types of JSON values, and stays as it is where the value has another one. It reads in its place, because
/// events are large to move.
trait Lenient<'de>: Sized {
    fn read_text(&mut self, _: Cow<'de, str>) {}

    fn read_list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn read_object<A: MapAccess<'de>>(&mut self, mut object: A) -> Result<(), A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Reads any JSON value as a lenient type.
fn read_any<'de, T: Lenient<'de> + Default, D: Deserializer<'de>>(value: D) -> Result<T, D::Error> {
    let mut target = T::default();
    value.deserialize_any(AnyValue(&mut target))?;
    Ok(target)
}

/// A visitor that reads any JSON value into a lenient one.
struct AnyValue<'t, T>(&'t mut T);

impl<'de, T: Lenient<'de>> DeserializeSeed<'de> for AnyValue<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de, T: Lenient<'de>> Visitor<'de> for AnyValue<'_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        self.0.read_text(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.read_text(Cow::Owned(text.to_owned()));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.read_list(list)
    }

    // A number that is not a plain integer comes as an object, too, because serde_json keeps its digits.
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        self.0.read_object(object)
    }
}

/// A text; empty if the value is none.
#[derive(Debug, Default)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Text<'a> {
    fn read_text(&mut self, text: Cow<'de, str>) {
        self.0 = text;
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Text<'a>, D::Error> {
        read_any(value)
    }
}

/// The content of a message: a text, or a list of texts and parts. A part has text unless it names another type.
#[derive(Debug, Default)]
pub struct Content<'a> {
    pub text: Cow<'a, str>,
    /// What its parts have besides text. Most content has no parts.
    pub rest: Option<Box<OfParts<'a>>>,
}

/// What the parts of a content have besides text.
#[derive(Debug, Default)]
pub struct OfParts<'a> {
    /// Mistral's reasoning.
    pub thinking: String,
    pub refusal: String,
    /// A list of sources for each part.
    pub annotations: Vec<Json<'a>>,
    /// How many parts are images.
    pub images: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContentPart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    text: Content<'a>,
    thinking: Content<'a>,
    refusal: Text<'a>,
    annotations: Json<'a>,
}

impl<'de: 'a, 'a> Lenient<'de> for Content<'a> {
    fn read_text(&mut self, text: Cow<'de, str>) {
        self.text = text;
    }

    fn read_list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(part) = list.next_element::<Content>()? {
            self.text.to_mut().push_str(&part.text);
            if let Some(part) = part.rest {
                let rest = self.rest.get_or_insert_default();
                rest.thinking.push_str(&part.thinking);
                rest.refusal.push_str(&part.refusal);
                rest.images += part.images;
                rest.annotations.extend(part.annotations);
                check_count(rest.annotations.len())?;
            }
        }
        Ok(())
    }

    fn read_object<A: MapAccess<'de>>(&mut self, object: A) -> Result<(), A::Error> {
        let part = ContentPart::deserialize(MapAccessDeserializer::new(object))?;
        if is_text_type(&part.kind) {
            self.text = part.text.text;
        }
        let mut rest = OfParts {
            thinking: part.thinking.text.into_owned(),
            refusal: part.refusal.0.into_owned(),
            images: usize::from(is_image_type(&part.kind)),
            ..OfParts::default()
        };
        if !part.annotations.is_null() {
            rest.annotations.push(part.annotations);
        }
        let is_empty = rest.thinking.is_empty()
            && rest.refusal.is_empty()
            && rest.annotations.is_empty()
            && rest.images == 0;
        if !is_empty {
            self.rest = Some(Box::new(rest));
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Content<'a>, D::Error> {
        read_any(value)
    }
}

impl Content<'_> {
    /// Returns how many of its parts are images.
    pub fn images(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.images)
    }
}

/// An object; nothing if the value is null, a text or a list.
#[derive(Debug)]
pub struct Object<T>(pub Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Object<T> {
        Object(None)
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for Object<T> {
    fn read_object<A: MapAccess<'de>>(&mut self, object: A) -> Result<(), A::Error> {
        self.0 = Some(T::deserialize(MapAccessDeserializer::new(object))?);
        Ok(())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Object<T>, D::Error> {
        read_any(value)
    }
}

/// A list; empty if the value is none.
#[derive(Debug)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for List<T> {
    fn read_list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            self.0.push(element);
            check_count(self.0.len())?;
        }
        Ok(())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<List<T>, D::Error> {
        read_any(value)
    }
}

/// Why the entries of a list cannot be read.
pub const NO_ENTRIES: &str = "a text or a list stands in place of an object";

/// A list of objects in one of which the answer is. One object may be in its place.
#[derive(Debug)]
pub struct Entries<T> {
    /// Most lists have one object.
    first: Option<Box<T>>,
    others: Vec<T>,
    /// Whether something other than objects is there, so that a part of the answer may be lost.
    lacks_some: bool,
}

impl<T> Default for Entries<T> {
    fn default() -> Entries<T> {
        Entries {
            first: None,
            others: Vec::new(),
            lacks_some: false,
        }
    }
}

impl<T> Entries<T> {
    /// Leaves only those of the objects that belong to the first choice, of several answers that a server may make at once. An
    /// event may have several of them. Where one says its index, a missing index is 0, which some servers leave out; where none
    /// does, they are in order. What is null, empty or a number is left out.
    ///
    /// # Errors
    ///
    /// A text or a list is in place of an object.
    pub fn of_first_choice(mut self, index: fn(&T) -> Index) -> serde_json::Result<Entries<T>> {
        if self.lacks_some {
            return Err(Error::custom(NO_ENTRIES));
        }
        if self.iter().all(|entry| index(entry).0.is_none()) {
            self.others.clear();
        }
        let is_of_first = |entry: &T| index(entry).0.unwrap_or(0) == 0;
        self.first.take_if(|entry| !is_of_first(entry));
        self.others.retain(is_of_first);
        Ok(self)
    }

    /// Returns the objects in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.as_deref().into_iter().chain(&self.others)
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    fn push(&mut self, entry: T) {
        if self.first.is_none() {
            self.first = Some(Box::new(entry));
        } else {
            self.others.push(entry);
        }
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for Entries<T> {
    fn read_text(&mut self, text: Cow<'de, str>) {
        self.lacks_some = !text.is_empty();
    }

    fn read_list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while list
            .next_element_seed(AnyValue(&mut ListEntry(self)))?
            .is_some()
        {
            check_count(self.count())?;
        }
        Ok(())
    }

    fn read_object<A: MapAccess<'de>>(&mut self, object: A) -> Result<(), A::Error> {
        self.push(T::deserialize(MapAccessDeserializer::new(object))?);
        Ok(())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Entries<T>, D::Error> {
        read_any(value)
    }
}

/// The next element of a list of entries, which gets it if it is an object. Null, a number and what is empty are nothing.
struct ListEntry<'e, T>(&'e mut Entries<T>);

impl<'de, T: Deserialize<'de>> Lenient<'de> for ListEntry<'_, T> {
    fn read_text(&mut self, text: Cow<'de, str>) {
        self.0.lacks_some |= !text.is_empty();
    }

    fn read_list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {
            self.0.lacks_some = true;
        }
        Ok(())
    }

    fn read_object<A: MapAccess<'de>>(&mut self, object: A) -> Result<(), A::Error> {
        self.0
            .push(T::deserialize(MapAccessDeserializer::new(object))?);
        Ok(())
    }
}

fn check_count<E: Error>(count: usize) -> Result<(), E> {
    if count > MAX_ELEMENTS {
        let reason = format!("a list has more than {MAX_ELEMENTS} elements");
        return Err(E::custom(reason));
    }
    Ok(())
}

/// A number, or true or false, perhaps as text; nothing if the value is no such one.
#[derive(Debug, Default, Clone, Copy)]
pub struct Scalar<T>(pub Option<T>);

impl<'de, T: FromStr> Deserialize<'de> for Scalar<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Scalar<T>, D::Error> {
        let json = <&RawValue>::deserialize(value)?.get();
        Ok(Scalar(scalar_of(json)))
    }
}

/// A place in a list, as a number or as the text of one; nothing if the value is no such one.
#[derive(Debug, Default, Clone, Copy)]
pub struct Index(pub Option<u64>);

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Index, D::Error> {
        let json = <&RawValue>::deserialize(value)?.get();
        let index: Option<u32> = scalar_of(json);
        Ok(Index(index.map(u64::from)))
    }
}

/// Parses a value, or the text of one.
fn scalar_of<T: FromStr>(json: &str) -> Option<T> {
    if let Ok(value) = json.parse() {
        return Some(value);
    }
    let text = json.trim_matches('"');
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    // Some servers write 1.0, which is 1 in Rust's words.
    let number: f64 = text.parse().ok()?;
    number.to_string().parse().ok()
}

/// The JSON of a field, which is read later or only sent back; nothing if it is missing or null.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub struct Json<'a>(#[serde(borrow)] Option<&'a RawValue>);

impl<'a> Json<'a> {
    pub fn is_null(self) -> bool {
        self.0.is_none()
    }

    pub fn is_text(self) -> bool {
        self.get().starts_with('"')
    }

    pub fn is_object(self) -> bool {
        self.get().starts_with('{')
    }

    /// Returns the JSON.
    pub fn get(self) -> &'a str {
        self.0.map_or("null", RawValue::get)
    }

    /// Whether it would take more memory as a tree than what q keeps of a reply.
    pub fn is_too_heavy(self) -> bool {
        kept::weight(self.get()) > MAX_KEPT
    }

    /// Returns the fields of an object; none if it is another value.
    ///
    /// # Errors
    ///
    /// A field is there twice, or a list in it is too long. All else has been read before.
    pub fn object<T: Default + Deserialize<'a>>(self) -> serde_json::Result<T> {
        if self.is_object() {
            serde_json::from_str(self.get())
        } else {
            Ok(T::default())
        }
    }

    /// Returns the elements of a list; none if it is another value.
    ///
    /// # Errors
    ///
    /// See [`Json::object`].
    pub fn list<T: Deserialize<'a>>(self) -> serde_json::Result<Vec<T>> {
        // Another value need not be read again.
        if !self.get().starts_with('[') {
            return Ok(Vec::new());
        }
        let list: List<T> = serde_json::from_str(self.get())?;
        Ok(list.0)
    }

    /// Returns the elements of a list, in whose place one object may be; none if it is null, empty or a number.
    ///
    /// # Errors
    ///
    /// It is a text, or see [`Json::object`].
    pub fn entries(self) -> serde_json::Result<Vec<Json<'a>>> {
        if self.is_object() {
            return Ok(vec![self]);
        }
        if self.is_text() && self.get() != "\"\"" {
            return Err(Error::custom(NO_ENTRIES));
        }
        self.list()
    }

    /// Returns the value as a tree; null if it would take too much memory.
    pub fn value(self) -> Value {
        let value = self.0.and_then(|json| value(json.get()));
        value.unwrap_or_default()
    }

    /// Returns the content of a message.
    ///
    /// # Errors
    ///
    /// See [`Json::object`].
    pub fn content(self) -> serde_json::Result<Content<'a>> {
        match self.0 {
            Some(json) => serde_json::from_str(json.get()),
            None => Ok(Content::default()),
        }
    }

    /// Returns the sources in a list.
    pub fn sources(self) -> Vec<Source> {
        if self.is_null() {
            return Vec::new();
        }
        Source::all_in(&self.value())
    }

    /// Returns a text, or JSON itself, which becomes compact text; empty if there is none.
    pub fn as_text(self) -> String {
        match self.0.map(RawValue::get) {
            None => String::new(),
            Some(json) if self.is_text() => serde_json::from_str(json).unwrap_or_default(),
            Some(json) => compact(json),
        }
    }
}

/// Returns the value of JSON as a tree, unless it would take more memory than what q keeps of a reply.
pub fn value(json: &str) -> Option<Value> {
    if kept::weight(json) > MAX_KEPT {
        return None;
    }
    serde_json::from_str(json).ok()
}

/// Returns the arguments of a call: JSON as text, or JSON itself, which becomes compact text.
pub fn arguments(json: &Value) -> String {
    match json {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        json => json.to_string(),
    }
}

/// Returns the text in a field of an object; empty if there is none.
pub fn text_field<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// Appends to a text that may not have begun.
pub fn append(text: &mut Value, piece: &str) {
    match text {
        Value::String(text) => text.push_str(piece),
        other => *other = piece.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_from_a_string_from_null_or_from_parts() {
        for (json, text) in [
            (r#""one \"two\" \u00e4""#, "one \"two\" ä"),
            ("null", ""),
            ("7", ""),
            ("{}", ""),
            ("[]", ""),
            (
                r#"[{"type":"text","text":"a"},{"type":"thinking","text":"no"},"b",{"text":"c"},7,{"type":1,"text":"d"}]"#,
                "abcd",
            ),
            (r#"[{"type":"output_text","text":"a"}]"#, "a"),
            (r#"{"text":["a",["b"]]}"#, "ab"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""thinking""#, "thinking"),
        ] {
            let content: Content = serde_json::from_str(json).expect(json);
            assert_eq!(content.text, text, "{json}");
        }
    }

    #[test]
    fn reasoning_refusals_and_sources_are_read_from_parts() {
        let json = r#"[{"type":"thinking","thinking":[{"text":"a"}]},{"thinking":"b","refusal":"c"},{"annotations":[1]},{"annotations":7}]"#;
        let content: Content = serde_json::from_str(json).expect(json);
        let rest = content.rest.expect("parts");
        assert_eq!((&*rest.thinking, &*rest.refusal), ("ab", "c"));
        let annotations: Vec<&str> = rest.annotations.iter().map(|json| json.get()).collect();
        assert_eq!(annotations, ["[1]", "7"]);
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Inner {
        number: Scalar<u64>,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Fields<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        content: Content<'a>,
        number: Scalar<u64>,
        flag: Scalar<bool>,
        list: List<Text<'a>>,
        object: Object<Inner>,
        json: Json<'a>,
    }

    #[test]
    fn a_field_of_the_wrong_type_counts_as_missing() {
        let empty = format!("{:?}", Fields::default());
        let values = [
            "null",
            "true",
            "-1",
            "1.5",
            "1e999",
            "123456789012345678901234567890",
            "\"a\"",
            "[[],{}]",
            "{\"a\":[{}]}",
        ];
        for (name, fitting) in [
            ("text", &["\"a\""][..]),
            ("content", &["\"a\""]),
            ("number", &[]),
            ("flag", &["true"]),
            ("list", &["[[],{}]"]),
            // Some numbers have the form of an object without known fields.
            (
                "object",
                &[
                    "1.5",
                    "1e999",
                    "123456789012345678901234567890",
                    "{\"a\":[{}]}",
                ],
            ),
            ("unknown", &[]),
        ] {
            for value in values {
                let json = format!("{{\"{name}\":{value}}}");
                let fields: Fields = serde_json::from_str(&json).expect(&json);
                let is_empty = format!("{fields:?}") == empty;
                assert_eq!(is_empty, !fitting.contains(&value), "{json}");
            }
        }
    }

    #[test]
    fn a_repeated_field_is_an_error_unless_q_does_not_read_it() {
        for (json, is_read) in [
            (r#"{"text":"a","text":"b"}"#, false),
            (r#"{"text":null,"text":"b"}"#, false),
            (r#"{"content":[{"text":"a","text":"b"}]}"#, false),
            (r#"{"object":{"number":1,"number":2}}"#, false),
            (r#"{"unknown":"a","unknown":"b"}"#, true),
            (r#"{"unknown":{"text":"a","text":"b"}}"#, true),
        ] {
            let fields = serde_json::from_str::<Fields>(json);
            assert_eq!(fields.is_ok(), is_read, "{json}");
        }
    }

    #[test]
    fn a_list_with_too_many_elements_is_refused_except_one_of_texts() {
        for (count, is_read) in [(MAX_ELEMENTS, true), (MAX_ELEMENTS + 1, false)] {
            let json = format!("[{}7]", "7,".repeat(count - 1));
            let list = serde_json::from_str::<List<Json>>(&json);
            assert_eq!(list.is_ok(), is_read, "{count}");
        }
        // Texts are joined, and take no more memory than their JSON.
        let many = format!("[{}\"\"]", "\"a\",".repeat(MAX_ELEMENTS * 2));
        let content: Content = serde_json::from_str(&many).expect("texts");
        assert_eq!(content.text.len(), MAX_ELEMENTS * 2);
    }

    #[test]
    fn a_value_that_would_take_too_much_memory_is_refused() {
        let numbers = |count: usize| format!("[{}0]", "0,".repeat(count));
        assert!(value(&numbers(MAX_KEPT / 1000)).is_some());
        assert!(value(&numbers(MAX_KEPT / 100)).is_none());
        let text = format!("\"{}\"", ",[".repeat(MAX_KEPT / 4));
        assert!(value(&text).is_some());
    }

    #[test]
    fn arguments_of_a_call_are_read_from_text_or_from_json() {
        for (json, text) in [
            (r#""{\"n\": 1}""#, "{\"n\": 1}"),
            (r#""{\"n\" ""#, "{\"n\" "),
            ("{ \"n\": [1, {}] }", "{\"n\":[1,{}]}"),
            (r#"{ "n": "a b\" c\\" }"#, r#"{"n":"a b\" c\\"}"#),
            ("[ 1 ]", "[1]"),
            ("null", ""),
            ("\"\"", ""),
        ] {
            let field: Json = serde_json::from_str(json).expect(json);
            assert_eq!(field.as_text(), text, "{json}");
            let value: Value = serde_json::from_str(json).expect(json);
            assert_eq!(arguments(&value), text, "{json}");
        }
    }
}
