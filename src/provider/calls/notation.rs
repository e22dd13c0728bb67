//! Compares the arguments of calls, however they are written (pure).

use serde_json::Value;

use crate::provider::lenient;
use crate::text::number::Decimal;

/// Whether the second one of two objects has all fields of the first, with the same values, and perhaps more.
pub fn is_extended_by(arguments: &str, all: &str) -> bool {
    let (Some(Value::Object(fields)), Some(all)) = (lenient::value(arguments), lenient::value(all))
    else {
        return false;
    };
    fields.iter().all(|(name, field)| {
        let other = all.get(name);
        other.is_some_and(|other| plain_text(field) == plain_text(other))
    })
}

/// Returns JSON in a notation that it shares with all JSON of the same value: that has other whitespace, escapes, numbers such as
/// 1.0 for 1, or fields in another order.
pub fn plain_json(json: &str) -> String {
    match lenient::value(json) {
        Some(value) => plain_text(&value),
        None => without_white_space(json),
    }
}

fn plain_text(value: &Value) -> String {
    let mut text = String::new();
    append_plain(value, &mut text);
    text
}

fn append_plain(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => text.push_str(&Decimal::new(number).to_json()),
        Value::Array(elements) => {
            text.push('[');
            for element in elements {
                append_plain(element, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields = Vec::from_iter(fields);
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, field) in fields {
                text.push_str(&Value::from(&**name).to_string());
                text.push(':');
                append_plain(field, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}

/// Returns JSON without the whitespace between its values.
pub fn without_white_space(json: &str) -> String {
    let (mut in_text, mut is_escaped) = (false, false);
    let mut dense = String::new();
    for char in json.chars() {
        if std::mem::take(&mut is_escaped) {
            dense.push(char);
            continue;
        }
        in_text ^= char == '"';
        is_escaped = in_text && char == '\\';
        if in_text || !char.is_ascii_whitespace() {
            dense.push(char);
        }
    }
    dense
}
