//! What servers say when they fail: the message inside an error's body, and whether it means that the context is too long.

use serde_json::Value;

/// How much of a body that is no known form of error is shown.
const SHOWN_CHARACTERS: usize = 200;

/// An error that a server reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerError {
    pub(crate) message: String,
    /// The prompt is longer than the model's context.
    pub(crate) too_long: bool,
    /// The server's code for it or a type, such as `model_not_found`; empty where it has none.
    pub(crate) code: String,
}

impl ServerError {
    /// Whether the model that was asked for is none that the server knows.
    pub(crate) fn unknown_model(&self, status: u16) -> bool {
        let message = self.message.to_lowercase();
        let says_so = ["not found", "does not exist", "not exist"].iter().any(|words| message.contains(words));
        self.code.contains("model_not_found")
            || ["invalid model", "not a valid model"].iter().any(|words| message.contains(words))
            || (matches!(status, 400 | 404) && message.contains("model") && (status == 404 || says_so))
    }
}

/// Reads the body of an error in any of the forms that servers are known to use: `{"error":{"message"}}`,
/// `{"error":"…"}`, `{"message":"…"}`, `{"detail":…}`, each perhaps in an array; else the text itself, if it is text.
pub(crate) fn read(body: &str) -> Option<ServerError> {
    match serde_json::from_str::<Value>(body) {
        Ok(value) => from_value(&value),
        Err(_) => from_text(body),
    }
}

/// Reads the error in a body that should have been an answer; `None` where it holds none.
pub(crate) fn error_in(body: &str) -> Option<ServerError> {
    let value: Value = serde_json::from_str(body).ok()?;
    let fields = if let Value::Array(values) = &value { values.first()? } else { &value };
    ["error", "message", "detail"].iter().any(|name| fields.get(name).is_some()).then(|| from_value(&value))?
}

/// Reads the value of an `error` field, or of a whole body.
pub(crate) fn from_value(value: &Value) -> Option<ServerError> {
    match value {
        Value::Array(values) => values.first().and_then(from_value),
        Value::String(message) => Some(named(message, "")),
        Value::Object(fields) => {
            if let Some(inner) = fields.get("error").filter(|inner| inner.is_object() || inner.is_string()) {
                return from_value(inner);
            }
            let code = ["code", "type", "status"]
                .into_iter()
                .filter_map(|name| fields.get(name).and_then(Value::as_str))
                .collect::<Vec<_>>()
                .join(" ");
            let message = ["message", "detail", "msg", "error_description"]
                .into_iter()
                .find_map(|name| fields.get(name).and_then(message_of));
            match message {
                Some(message) => Some(named(&with_upstream(message, fields), &code)),
                None if !code.is_empty() => Some(named(&code, &code)),
                None => None,
            }
        }
        Value::Number(code) => Some(named(&code.to_string(), "")),
        _ => None,
    }
}

/// Gateways put what the provider behind them said into `metadata.raw`.
fn with_upstream(message: String, fields: &serde_json::Map<String, Value>) -> String {
    match fields.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(Value::as_str) {
        Some(raw) => format!("{message}: {raw}"),
        None => message,
    }
}

fn message_of(value: &Value) -> Option<String> {
    match value {
        Value::String(message) => Some(message.clone()),
        Value::Array(_) | Value::Object(_) => {
            Some(from_value(value).map_or_else(|| value.to_string(), |inner| inner.message))
        }
        _ => None,
    }
}

fn from_text(body: &str) -> Option<ServerError> {
    let text = body.trim();
    if text.is_empty() || text.starts_with('<') {
        return None;
    }
    let line: String = text.lines().next().unwrap_or_default().chars().take(SHOWN_CHARACTERS).collect();
    Some(named(&line, ""))
}

fn named(message: &str, code: &str) -> ServerError {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    ServerError { too_long: is_too_long(&message, code), message, code: code.to_owned() }
}

/// The words of OpenAI, llama.cpp, vLLM, Anthropic, Gemini, Ollama and OpenRouter for a prompt beyond the context.
fn is_too_long(message: &str, code: &str) -> bool {
    const CODES: &[&str] = &["context_length_exceeded", "exceed_context_size_error"];
    const WORDS: &[&str] = &[
        "maximum context length",
        "context length exceeded",
        "exceeds the available context size",
        "exceed context limit",
        "exceeds the context length",
        "exceeds the context window",
        "prompt is too long",
        "input is too long",
        "input length exceeds",
        "prompt too long",
        "exceeds the maximum number of tokens",
        "context window",
        "contextwindowexceeded",
    ];
    let message = message.to_lowercase();
    CODES.iter().any(|known| code.contains(known)) || WORDS.iter().any(|known| message.contains(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_every_known_form() {
        for (body, message) in [
            (r#"{"error":{"message":"no key","type":"auth","code":null}}"#, "no key"),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"message":"unauthorised"}"#, "unauthorised"),
            (r#"{"detail":"not found"}"#, "not found"),
            (r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, "field required"),
            (r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#, "bad"),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded"),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"busy"}}}"#,
                "Provider returned error: busy",
            ),
            ("upstream\nfailed", "upstream"),
            (r#"{"error":{"type":"server_error"}}"#, "server_error"),
            (r#"{"error":{"message":"two\nlines"}}"#, "two lines"),
        ] {
            assert_eq!(read(body).map(|failure| failure.message).as_deref(), Some(message), "{body}");
        }
        for body in ["", "<html>502</html>", "{}", "[]", "null"] {
            assert_eq!(read(body), None, "{body}");
        }
    }

    #[test]
    fn a_model_that_the_server_does_not_know_is_told_from_other_failures() {
        for (status, code, message, unknown) in [
            (500, "model_not_found", "no", true),
            (422, "", "Invalid model: x", true),
            (400, "", "x is not a valid model ID", true),
            (404, "", "model 'x' not found", true),
            (404, "", "no such model: x", true),
            (400, "", "The model x does not exist", true),
            (400, "", "Model Not Exist", true),
            (400, "", "the model is overloaded", false),
            (500, "", "model x not found", false),
            (404, "", "page not found", false),
            (400, "", "tool x not found", false),
            (404, "", "nothing here", false),
        ] {
            assert_eq!(named(message, code).unknown_model(status), unknown, "{status} {code} {message}");
        }
    }

    #[test]
    fn a_context_that_is_too_long_is_recognised_in_everyones_words() {
        for body in [
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            r#"{"error":{"code":400,"message":"request (5000 tokens) exceeds the available context size (4096 tokens)","type":"exceed_context_size_error"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"}}"#,
            r#"{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}"#,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            r#"{"error":"the input length exceeds the context length"}"#,
        ] {
            assert!(read(body).expect(body).too_long, "{body}");
        }
        for body in [r#"{"error":{"message":"max_tokens is too large"}}"#, r#"{"error":{"message":"rate limit"}}"#] {
            assert!(!read(body).expect(body).too_long, "{body}");
        }
    }
}
