//! How much q keeps of what a server sends (pure).

use serde_json::Value;

use crate::text::json::count_values;

/// The most bytes that q keeps of one reply: as many as a conversation's file may have.
pub const MAX_KEPT: usize = 10_000_000;

/// How many bytes of memory a value takes besides its text. Without them, many small values would count for too little.
pub const VALUE: usize = 300;

/// The same for a value within another one.
const INNER_VALUE: usize = VALUE / 2;

/// How many bytes of memory JSON takes as a tree of values, at most.
pub fn weight(json: &str) -> usize {
    json.len() + INNER_VALUE * count_values(json)
}

/// How many bytes of memory a tree of values takes, at most.
pub fn weight_of_value(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(weight_of_value).sum(),
        Value::Object(fields) => {
            let weight = |(name, field): (&String, &Value)| name.len() + weight_of_value(field);
            fields.iter().map(weight).sum()
        }
        _ => 0,
    };
    INNER_VALUE + content
}

/// How many bytes count for JSON that is kept as text until it is sent back.
pub fn weight_of_text(json: &str) -> usize {
    json.len() + INNER_VALUE / 6 * count_values(json)
}

/// How many bytes have come of what q keeps.
#[derive(Debug, Default, Clone, Copy)]
pub struct Kept(usize);

impl Kept {
    /// Counts more bytes. Returns whether they may be kept, too.
    pub fn add(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_add(bytes);
        !self.is_too_much()
    }

    /// Whether more has come than q keeps.
    pub fn is_too_much(self) -> bool {
        self.0 > MAX_KEPT
    }
}
