//! Splits the JSON of a list into its items while it arrives, in pieces of any size (pure).

/// A thing that a piece of JSON completes.
#[derive(Debug, PartialEq, Eq)]
pub enum ListEvent {
    /// The JSON of an item, as it came.
    Item(String),
    /// The object has the field of the list a second time.
    Repeated,
    /// What came cannot be the JSON that was asked for. The rest of it is not looked at.
    Broken,
}

/// A splitter of one text, which should be JSON with a list, perhaps within a code fence.
///
/// It only finds where values end. Whether they, and the JSON around them, are valid is for others to check.
#[derive(Debug)]
pub struct ListSplitter {
    /// The field that has the list; `None` if the list is all of the JSON.
    field: Option<String>,
    expected: Expected,
    /// The value that has begun and whose end has not come.
    value: Option<OpenValue>,
    /// Whether the field has come.
    has_field: bool,
}

/// The token that is expected next, except for whitespace.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// The JSON, or the mark of a code fence.
    Json,
    /// The JSON within a code fence.
    JsonInFence,
    /// More of the mark that opens a code fence: this character, which has come so often.
    FenceMark(char, usize),
    /// The rest of the line that opens a code fence.
    FenceLine,
    /// The name of a field, or the end of the object.
    Name,
    /// The colon after the name of a field, which may be that of the list.
    Colon { of_list: bool },
    /// The value of a field.
    Field { of_list: bool },
    /// A comma, or the end of the object.
    NextField,
    /// An item, or the end of the list.
    Item,
    /// A comma, or the end of the list.
    NextItem,
    /// Nothing that matters: the JSON has ended, or this is none.
    Rest,
}

/// What becomes of a character between two values.
enum SplitStep {
    /// It is read, and this is expected next.
    Over(Expected),
    /// It is the first one of a value, or of the name of a field.
    IntoValue,
    /// It cannot be there.
    Break,
}

/// How many marks open a code fence.
const FENCE: usize = 3;

impl ListSplitter {
    /// Returns a splitter of an object with the list in this field, or of a list.
    pub fn new(field: Option<String>) -> ListSplitter {
        ListSplitter {
            field,
            expected: Expected::Json,
            value: None,
            has_field: false,
        }
    }

    /// Begins with another text.
    pub fn restart(&mut self) {
        *self = ListSplitter::new(self.field.take());
    }

    /// Whether the JSON has not begun, or has ended, or is none.
    pub fn is_outside_json(&self) -> bool {
        matches!(self.expected, Expected::Json | Expected::Rest)
    }

    /// Leaves the rest of the text alone.
    pub fn give_up(&mut self) {
        self.expected = Expected::Rest;
    }

    /// Reads on to the next event; `None` once all of `rest` is read. Afterwards `rest` is what has not been read.
    pub fn next(&mut self, rest: &mut &str) -> Option<ListEvent> {
        loop {
            if let Some(value) = &mut self.value {
                if !value.read(rest) {
                    return None;
                }
                let text = std::mem::take(&mut value.text);
                self.value = None;
                let event = self.end_value(text);
                if event.is_some() {
                    return event;
                }
                continue;
            }
            let next = rest.chars().next()?;
            let event = self.step(next, rest);
            if event.is_some() {
                return event;
            }
        }
    }

    /// Reads a character between two values.
    fn step(&mut self, next: char, rest: &mut &str) -> Option<ListEvent> {
        if let Expected::Rest = self.expected {
            *rest = "";
            return None;
        }
        match self.expected.step(next, self.field.is_none()) {
            SplitStep::Over(expected) => {
                self.expected = expected;
                *rest = &rest[next.len_utf8()..];
                None
            }
            SplitStep::IntoValue => {
                self.begin_value(next);
                None
            }
            SplitStep::Break => {
                self.expected = Expected::Rest;
                Some(ListEvent::Broken)
            }
        }
    }

    /// Begins a value with this character, which is read together with the rest of it.
    fn begin_value(&mut self, first: char) {
        let part = match first {
            '"' | '[' | '{' => ValuePart::Structure,
            _ => ValuePart::Scalar,
        };
        self.value = Some(OpenValue {
            text: String::new(),
            part,
            depth: 0,
        });
    }

    /// Ends a value with this JSON.
    fn end_value(&mut self, text: String) -> Option<ListEvent> {
        match self.expected {
            Expected::Item => {
                self.expected = Expected::NextItem;
                Some(ListEvent::Item(text))
            }
            Expected::Name => self.end_name(&text),
            _ => {
                self.expected = Expected::NextField;
                None
            }
        }
    }

    /// Ends the name of a field. Its JSON may have escapes.
    fn end_name(&mut self, text: &str) -> Option<ListEvent> {
        let name = serde_json::from_str::<String>(text);
        let of_list = name.ok() == self.field;
        self.expected = Expected::Colon { of_list };
        if of_list && std::mem::replace(&mut self.has_field, true) {
            self.expected = Expected::Rest;
            return Some(ListEvent::Repeated);
        }
        None
    }
}

impl Expected {
    /// Says what becomes of a character. `is_list` says that the list is all of the JSON.
    fn step(self, next: char, is_list: bool) -> SplitStep {
        match self {
            Expected::FenceMark(mark, _) if next != mark => SplitStep::Break,
            Expected::FenceMark(mark, count) if count + 1 < FENCE => {
                SplitStep::Over(Expected::FenceMark(mark, count + 1))
            }
            Expected::FenceMark(..) => SplitStep::Over(Expected::FenceLine),
            Expected::FenceLine if next == '\n' => SplitStep::Over(Expected::JsonInFence),
            Expected::FenceLine => SplitStep::Over(self),
            Expected::Json | Expected::JsonInFence if next.is_whitespace() => SplitStep::Over(self),
            _ if matches!(next, ' ' | '\t' | '\r' | '\n') => SplitStep::Over(self),
            _ => self.step_at_token(next, is_list),
        }
    }

    /// Says what becomes of a character that is no whitespace.
    fn step_at_token(self, next: char, is_list: bool) -> SplitStep {
        let after_list = if is_list {
            Expected::Rest
        } else {
            Expected::NextField
        };
        SplitStep::Over(match (self, next) {
            (Expected::Json, '`' | '~') => Expected::FenceMark(next, 1),
            (Expected::Json | Expected::JsonInFence, '[') if is_list => Expected::Item,
            (Expected::Json | Expected::JsonInFence, '{') if !is_list => Expected::Name,
            (Expected::Name, '"') => return SplitStep::IntoValue,
            (Expected::Colon { of_list }, ':') => Expected::Field { of_list },
            (Expected::Field { of_list: true }, '[') => Expected::Item,
            (Expected::Item | Expected::NextItem, ']') => after_list,
            (Expected::Field { .. } | Expected::Item, _) if begins_value(next) => {
                return SplitStep::IntoValue;
            }
            (Expected::NextItem, ',') => Expected::Item,
            (Expected::NextField, ',') => Expected::Name,
            (Expected::Name | Expected::NextField, '}') => Expected::Rest,
            _ => return SplitStep::Break,
        })
    }
}

fn begins_value(first: char) -> bool {
    first.is_ascii_alphanumeric() || matches!(first, '"' | '[' | '{' | '-')
}

/// A value whose end has not come.
#[derive(Debug)]
struct OpenValue {
    text: String,
    part: ValuePart,
    /// How many lists and objects are open.
    depth: usize,
}

/// The part of a value that is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValuePart {
    /// A number or a word, which ends where something else begins.
    Scalar,
    /// Anything outside of strings, from the first byte on.
    Structure,
    String,
    /// The byte after a backslash in a string.
    Escaped,
}

impl OpenValue {
    /// Reads on to the end of the value. Returns whether it has come.
    fn read(&mut self, rest: &mut &str) -> bool {
        let mut end = None;
        for (at, byte) in rest.bytes().enumerate() {
            // These bytes are characters of their own, so the text can be split at them.
            let is_scalar = self.part == ValuePart::Scalar;
            if is_scalar && matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | b'}') {
                end = Some(at);
                break;
            }
            if !is_scalar && self.ends_with(byte) {
                end = Some(at + 1);
                break;
            }
        }
        let (read, left) = rest.split_at(end.unwrap_or(rest.len()));
        self.text.push_str(read);
        *rest = left;
        end.is_some()
    }

    /// Reads a byte of a string, list or object. Returns whether it is the last one.
    fn ends_with(&mut self, byte: u8) -> bool {
        match (self.part, byte) {
            (ValuePart::Escaped, _) => self.part = ValuePart::String,
            (ValuePart::String, b'\\') => self.part = ValuePart::Escaped,
            (ValuePart::String, b'"') => {
                self.part = ValuePart::Structure;
                return self.depth == 0;
            }
            (ValuePart::Structure, b'"') => self.part = ValuePart::String,
            (ValuePart::Structure, b'[' | b'{') => self.depth += 1,
            (ValuePart::Structure, b']' | b'}') => {
                self.depth -= 1;
                return self.depth == 0;
            }
            (ValuePart::Scalar | ValuePart::Structure | ValuePart::String, _) => {}
        }
        false
    }
}
