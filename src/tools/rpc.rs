//! The messages of JSON-RPC, in which tool servers speak: answers, errors and ids (pure).

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::text::json::{compact, parse_failure};
use crate::text::number::integer_text;
use crate::text::size::in_units;
use crate::text::surrogates;

/// The most bytes of a message that are read: those of the largest images that q keeps, and of a long text.
pub const MAX_MESSAGE: usize = 10_000_000;

/// The most bytes of an id: that of a server's request, which its answer repeats, and that of an answer.
pub const MAX_ID: usize = 1_000;

/// The codes of errors that are about a request and not about its session.
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;

/// The number of a request; each request has its own.
pub type Id = u64;

/// The answer to a request.
pub type RpcAnswer = Result<RpcResult, RpcError>;

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcResult {
    /// It is not parsed before it is known what of it is needed: its values may take a hundred times the memory of its text.
    pub json: String,
    /// Whether something in its message was replaced: bytes that are not UTF-8, or numbers that JSON does not have.
    pub is_repaired: bool,
}

/// Why a request that was answered has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcError {
    Refused(RpcRefusal),
    /// What the server did instead of an answer that can be read, to follow its name.
    Unreadable(String),
}

/// A server's refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcRefusal {
    pub code: Option<i64>,
    /// What the server says, with the code.
    pub words: String,
}

impl RpcRefusal {
    /// Reads an error. Its words are its message, code and data. An error without words is shown as JSON.
    pub fn read(error: &RawValue) -> RpcRefusal {
        let error = error.get();
        let mut read = RefusalFields::default();
        if error.starts_with('{') {
            read = serde_json::from_str(error).unwrap_or_default();
        }
        let code = read.code.and_then(|code| code.get().parse().ok());
        let message = read.message.and_then(string);
        let message = message.filter(|message| !message.trim().is_empty());
        let words = match message {
            Some(message) => words(message, code, read.data),
            None => compact(error),
        };
        RpcRefusal { code, words }
    }

    /// Whether the server does not have the method.
    pub fn is_unknown_method(&self) -> bool {
        self.code == Some(METHOD_NOT_FOUND)
    }
}

/// A message of a server.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct RpcMessage<'m> {
    #[serde(borrow)]
    pub id: Option<&'m RawValue>,
    #[serde(borrow)]
    pub method: Option<&'m RawValue>,
    #[serde(borrow)]
    pub params: Option<&'m RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub result: Option<&'m RawValue>,
    #[serde(borrow)]
    pub error: Option<&'m RawValue>,
}

/// Reads a field that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(field: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(field).map(Some)
}

/// An error that a server answers with.
#[derive(Deserialize, Default)]
#[serde(default)]
struct RefusalFields<'m> {
    #[serde(borrow)]
    message: Option<&'m RawValue>,
    #[serde(borrow)]
    code: Option<&'m RawValue>,
    #[serde(borrow)]
    data: Option<&'m RawValue>,
}

/// Whether a text that cannot be parsed may have been meant as a message, or as a batch of them: it begins with the name of a field.
pub fn begins_message(text: &str) -> bool {
    let object = text.strip_prefix('[').unwrap_or(text).trim_ascii_start();
    let fields = object.strip_prefix('{').unwrap_or_default();
    fields.trim_ascii_start().starts_with('"')
}

pub fn notification(method: &str, parameters: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": parameters})
}

fn words(message: String, code: Option<i64>, data: Option<&RawValue>) -> String {
    let mut words = message;
    if let Some(code) = code {
        words += &format!(" ({code})");
    }
    if let Some(data) = data {
        let data = string(data).unwrap_or_else(|| compact(data.get()));
        words += &format!(": {data}");
    }
    words
}

/// Returns the number of the request that an id means. Some servers send it back as a floating-point number, or as text.
pub fn number_of(id: &RawValue) -> Option<Id> {
    if id.get().len() > MAX_ID {
        return None;
    }
    let digits = match serde_json::from_str(id.get()).ok()? {
        Value::Number(number) => integer_text(&number)?,
        Value::String(text) => text,
        _ => return None,
    };
    let number: Id = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// Returns the text of a string. Lone surrogates become U+FFFD.
pub fn string(json: &RawValue) -> Option<String> {
    surrogates::lossy(json.get()).ok()
}

/// Returns what a server did whose message cannot be parsed, to follow its name.
pub fn unreadable(error: &serde_json::Error) -> String {
    format!(
        "sent a message that cannot be parsed, or has more than {size} ({reason})",
        size = in_units(MAX_MESSAGE),
        reason = parse_failure(error)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn an_error_of_a_server_is_reported_with_its_code_and_data() {
        for [expected, error] in rows(
            r#"
            Unknown tool (-32602) | {"code": -32602, "message": "Unknown tool"}
            no (-1): disk full | {"code": -1, "message": "no", "data": "disk full"}
            no: {"row":1} | {"message": "no", "data": {"row": 1}}
            no | {"message": "no", "data": null}
            {"code":-1} | {"code": -1}
            {"code":-1,"message":" "} | {"code": -1, "message": " "}
        "#,
        ) {
            let error: &RawValue = serde_json::from_str(error).expect("JSON");
            assert_eq!(RpcRefusal::read(error).words, expected);
        }
    }
}
