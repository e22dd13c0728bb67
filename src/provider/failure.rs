//! What servers say when they fail: the message inside an error's body, and what the error means.

use std::time::Duration;

use serde_json::{Map, Value};

/// How much of a body that is no known form of error is shown.
const SHOWN_CHARACTERS: usize = 200;

/// The statuses of errors that may be gone at the next try.
pub(crate) const PASSING_STATUSES: &[u16] = &[429, 500, 502, 503, 504, 529];

/// Types and codes of such errors, where they are reported without a status.
const PASSING_CODES: &[&str] = &[
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "api_error",
    "server_error",
    "timeout_error",
    "unavailable",
    "resource_exhausted",
    "internal",
    "deadline_exceeded",
];

/// An error that a server reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerError {
    pub(crate) message: String,
    /// The server's code for it and its type, such as `model_not_found`; empty where it has none.
    code: String,
    /// The status that stands in the error itself.
    status: Option<u16>,
    /// How long the server asks to wait before the next try.
    pub(crate) retry_after: Option<Duration>,
}

impl ServerError {
    pub(crate) fn new(message: impl Into<String>) -> ServerError {
        ServerError { message: message.into(), ..ServerError::default() }
    }

    /// Whether the model that was asked for is none that the server knows.
    pub(crate) fn unknown_model(&self, status: u16) -> bool {
        let message = self.message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
        self.code.contains("model_not_found")
            || says(&["invalid model", "not a valid model", "supported api model names"])
            || (status == 404 && message.contains("model"))
            || (status == 400 && message.contains("model") && says(&["not found", "does not exist", "not exist"]))
    }

    /// Whether the key was refused.
    pub(crate) fn wrong_key(&self, status: u16) -> bool {
        let message = self.message.to_lowercase();
        let says_so = ["api key not valid", "incorrect api key", "invalid api key", "api_key_invalid"];
        matches!(status, 401 | 403) || says_so.iter().any(|words| message.contains(words) || self.code.contains(words))
    }

    /// Whether the prompt is longer than the model's context, in the words of OpenAI, llama.cpp, vLLM, Anthropic, Gemini,
    /// Vertex, Ollama, OpenRouter, xAI, LM Studio, Perplexity, SGLang, TGI, Together, Moonshot, Zhipu, DashScope and GitHub.
    pub(crate) fn too_long(&self) -> bool {
        const CODES: &[&str] = &[
            "context_length_exceeded",
            "exceed_context_size_error",
            "too_many_prompt_tokens",
            "tokens_limit_reached",
            "request_too_large",
        ];
        const WORDS: &[&str] = &[
            "maximum context length",
            "maximum prompt length",
            "maximum model length",
            "context length exceeded",
            "greater than the context length",
            "longer than the model's context length",
            "context length of only",
            "exceeds the available context size",
            "exceed context limit",
            "exceeds the context length",
            "exceeds the context window",
            "exceeds the maximum number of tokens",
            "exceeds max length",
            "exceeded model token limit",
            "prompt is too long",
            "prompt too long",
            "input is too long",
            "input length exceeds",
            "range of input length",
            "`inputs` must have less than",
            "`inputs` tokens + `max_new_tokens` must be",
            "but model only supports",
            "context window",
            "contextwindowexceeded",
        ];
        let message = self.message.to_lowercase();
        CODES.iter().any(|known| self.code.contains(known)) || WORDS.iter().any(|known| message.contains(known))
    }

    /// Whether the next try may succeed, for an error that came without a status of its own.
    pub(crate) fn may_pass(&self) -> bool {
        let code = self.code.to_lowercase();
        let known = PASSING_CODES.iter().any(|known| code.split(' ').any(|word| word == *known));
        self.status.map_or(known, |status| PASSING_STATUSES.contains(&status))
    }

    /// The same with what an end of an answer says about it.
    pub(crate) fn with_code(mut self, code: &str) -> ServerError {
        self.code = format!("{} {code}", self.code).trim().to_owned();
        self
    }
}

/// Reads the body of an error in any of the forms that servers are known to use; else the title of a page for browsers, or
/// the text itself, if it is text.
pub(crate) fn read(body: &str) -> Option<ServerError> {
    match serde_json::from_str::<Value>(body) {
        Ok(value) => from_value(&value),
        Err(_) => from_text(body),
    }
}

/// Reads the error in JSON that should have been an answer, or a part of one; `None` where it holds none.
pub(crate) fn error_in(json: &str) -> Option<ServerError> {
    let value: Value = serde_json::from_str(json).ok()?;
    let fields = if let Value::Array(values) = &value { values.first()? } else { &value };
    let is_error =
        ["error", "errors", "detail", "Message"].iter().any(|name| fields.get(name).is_some_and(is_something))
            || fields.get("object").and_then(Value::as_str) == Some("error")
            || fields.get("type").and_then(Value::as_str) == Some("error");
    is_error.then(|| from_value(&value))?
}

/// Some servers send an empty error where there is none.
pub(crate) fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

/// Reads the value of an `error` field, or a whole body.
pub(crate) fn from_value(value: &Value) -> Option<ServerError> {
    match value {
        Value::Array(values) => values.first().and_then(from_value),
        Value::String(message) => Some(ServerError::new(on_one_line(message))),
        Value::Number(code) => Some(ServerError::new(code.to_string())),
        Value::Object(fields) => from_fields(fields),
        Value::Null | Value::Bool(_) => None,
    }
}

fn from_fields(fields: &Map<String, Value>) -> Option<ServerError> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let codes = ["code", "type", "status", "error_type"].into_iter().filter_map(text).collect::<Vec<_>>().join(" ");
    let inner = fields.get("error").or_else(|| fields.get("errors")).filter(|inner| is_something(inner));
    // Where the field has no more than a name for the error, the words stand beside it.
    let beside = ["message", "error_description", "detail"].into_iter().find_map(text);
    let error = match inner {
        Some(Value::String(name)) => {
            ServerError::new(on_one_line(beside.unwrap_or(name))).with_code(&format!("{codes} {name}"))
        }
        Some(inner) => from_value(inner)?,
        None => {
            let message = ["message", "detail", "msg", "error_description", "Message", "title"]
                .into_iter()
                .find_map(|name| fields.get(name).and_then(message_of));
            let message = message.or_else(|| Some(codes.clone()).filter(|codes| !codes.is_empty()))?;
            ServerError::new(on_one_line(&with_upstream(message, fields))).with_code(&codes)
        }
    };
    let number = |name: &str| fields.get(name).and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
    let status = error.status.or_else(|| ["code", "status", "status_code"].into_iter().find_map(number));
    Some(ServerError { status, retry_after: error.retry_after.or_else(|| retry_delay(fields)), ..error })
}

/// Gateways put what the provider behind them said into `metadata.raw`.
fn with_upstream(message: String, fields: &Map<String, Value>) -> String {
    match fields.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(Value::as_str) {
        Some(raw) => format!("{message}: {raw}"),
        None => message,
    }
}

/// Google's `RetryInfo` among the details of an error: `"retryDelay": "34s"`, perhaps with a fraction.
fn retry_delay(fields: &Map<String, Value>) -> Option<Duration> {
    let details = fields.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

fn message_of(value: &Value) -> Option<String> {
    match value {
        Value::String(message) => Some(message.clone()).filter(|message| !message.is_empty()),
        Value::Array(_) | Value::Object(_) => {
            Some(from_value(value).map_or_else(|| value.to_string(), |inner| inner.message))
        }
        _ => None,
    }
}

fn from_text(body: &str) -> Option<ServerError> {
    let text = body.trim();
    if text.starts_with('<') {
        return title(text).map(ServerError::new);
    }
    let line: String = text.lines().next().unwrap_or_default().chars().take(SHOWN_CHARACTERS).collect();
    Some(ServerError::new(on_one_line(&line))).filter(|error| !error.message.is_empty())
}

/// The title of a page for browsers.
pub(crate) fn title(page: &str) -> Option<String> {
    let begin = page.to_ascii_lowercase().find("<title")?;
    let (_, after) = page[begin..].split_once('>')?;
    let (title, _) = after.split_once('<')?;
    let title: String = on_one_line(title).chars().take(SHOWN_CHARACTERS).collect();
    Some(title).filter(|title| !title.is_empty())
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_every_known_form() {
        for (body, message) in [
            (r#"{"error":{"message":"no key","type":"auth","code":null}}"#, "no key"),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"error":"Bad Request","message":"real words"}"#, "real words"),
            (r#"{"error":"invalid_token","error_description":"it has expired"}"#, "it has expired"),
            (r#"{"errors":[{"message":"one"},{"message":"two"}]}"#, "one"),
            (r#"{"errors":["plain"]}"#, "plain"),
            (r#"{"error":{"message":"","type":"insufficient_quota"}}"#, "insufficient_quota"),
            (r#"{"message":"unauthorised"}"#, "unauthorised"),
            (r#"{"Message":"denied"}"#, "denied"),
            (r#"{"detail":"not found"}"#, "not found"),
            (r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, "field required"),
            (r#"{"type":"about:blank","title":"rejected","status":422}"#, "rejected"),
            (r#"{"title":"rejected","detail":"too deep"}"#, "too deep"),
            (r#"{"object":"error","message":"dead","type":"x","code":400}"#, "dead"),
            (r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#, "bad"),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded"),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"busy"}}}"#,
                "Provider returned error: busy",
            ),
            ("upstream\nfailed", "upstream"),
            ("<html><head><TITLE>\n Sign in </TITLE>", "Sign in"),
            (r#"{"error":{"type":"server_error"}}"#, "server_error"),
            (r#"{"error":{"message":"two\nlines"}}"#, "two lines"),
        ] {
            assert_eq!(read(body).map(|error| error.message).as_deref(), Some(message), "{body}");
        }
        for body in ["", "<html>502</html>", "{}", "[]", "null"] {
            assert_eq!(read(body), None, "{body}");
        }
    }

    #[test]
    fn an_error_is_told_from_an_answer() {
        for json in [
            r#"{"error":{"message":"x"}}"#,
            r#"[{"error":"x"}]"#,
            r#"{"object":"error","message":"x"}"#,
            r#"{"type":"error","message":"x"}"#,
            r#"{"detail":"x"}"#,
        ] {
            assert_eq!(error_in(json).map(|error| error.message).as_deref(), Some("x"), "{json}");
        }
        for json in [r#"{"error":{}}"#, r#"{"error":null,"message":"x"}"#, r#"{"error":"","choices":[]}"#, "{", "7"] {
            assert_eq!(error_in(json), None, "{json}");
        }
    }

    #[test]
    fn a_model_that_the_server_does_not_know_is_told_from_other_failures() {
        for (status, code, message, unknown) in [
            (500, "model_not_found", "no", true),
            (422, "", "Invalid model: x", true),
            (400, "", "x is not a valid model ID", true),
            (400, "", "The supported API model names are a or b, but you passed x.", true),
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
            let error = ServerError::new(message).with_code(code);
            assert_eq!(error.unknown_model(status), unknown, "{status} {code} {message}");
        }
    }

    #[test]
    fn a_key_may_be_refused_with_any_status() {
        for (status, message, wrong) in [
            (401, "no", true),
            (403, "no", true),
            (400, "API key not valid. Please pass a valid API key.", true),
            (400, "Incorrect API key provided: x", true),
            (400, "no", false),
            (500, "no", false),
        ] {
            assert_eq!(ServerError::new(message).wrong_key(status), wrong, "{status} {message}");
        }
    }

    #[test]
    fn a_context_that_is_too_long_is_recognized_in_everyones_words() {
        // Every server's words are in the corpus of replies.
        for body in [
            r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#,
            r#"{"error":{"message":"no","type":"exceed_context_size_error"}}"#,
            r#"{"type":"error","error":{"type":"request_too_large","message":"no"}}"#,
            r#"{"error":"The INPUT length exceeds the context length"}"#,
        ] {
            assert!(read(body).expect(body).too_long(), "{body}");
        }
        for body in [r#"{"error":{"message":"max_tokens is too large"}}"#, r#"{"error":{"message":"rate limit"}}"#] {
            assert!(!read(body).expect(body).too_long(), "{body}");
        }
    }

    #[test]
    fn errors_that_may_pass_are_known_by_status_or_type() {
        for (body, passes) in [
            (r#"{"error":{"message":"x","code":502}}"#, true),
            (r#"{"error":{"message":"x","code":429}}"#, true),
            (r#"{"error":{"message":"x","code":400}}"#, false),
            (r#"{"error":{"message":"x","type":"server_error","code":400}}"#, false),
            (r#"{"error":{"message":"x","type":"overloaded_error"}}"#, true),
            (r#"{"error":{"message":"x","status":"UNAVAILABLE"}}"#, true),
            (r#"{"error":{"message":"x","type":"invalid_request_error"}}"#, false),
            (r#"{"error":"x"}"#, false),
        ] {
            assert_eq!(read(body).expect(body).may_pass(), passes, "{body}");
        }
    }

    #[test]
    fn google_says_in_the_body_how_long_to_wait() {
        let body = |delay: &str| {
            format!(
                r#"{{"error":{{"code":429,"message":"x","details":[{{"@type":"y"}},{{"retryDelay":"{delay}"}}]}}}}"#
            )
        };
        for (delay, wait) in [("34s", Some(34_000)), ("0.5s", Some(500)), ("soon", None), ("-1s", None), ("7", None)] {
            let found = read(&body(delay)).and_then(|error| error.retry_after);
            assert_eq!(found, wait.map(Duration::from_millis), "{delay}");
        }
    }
}
