//! Errors from servers: the message inside an error's body, and what the error means.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::one_line::on_one_line;

/// How much is shown of a body that is not a known form of error.
const SHOWN_CHARACTERS: usize = 200;

/// The statuses of errors after which another try may succeed.
pub(crate) const PASSING_STATUSES: &[u16] = &[429, 500, 502, 503, 504, 529];

/// Types and codes of such errors, for errors reported without a status.
const PASSING_CODES: &[&str] = &[
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "api_error",
    "server_error",
    "internal_server_error",
    "service_unavailable",
    "service_unavailable_error",
    "server_is_overloaded",
    "slow_down",
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
    /// The server's code and type for it, such as `model_not_found`; empty if it has none.
    code: String,
    /// The field of the request that it is about, such as `text.format.schema`; empty if the server names none.
    field: String,
    /// The status given in the error itself.
    status: Option<u16>,
    /// How long the server asks to wait before the next try.
    pub(crate) retry_after: Option<Duration>,
}

impl ServerError {
    pub(crate) fn new(message: impl Into<String>) -> ServerError {
        ServerError { message: message.into(), ..ServerError::default() }
    }

    /// The server's message, with the field of the request that it is about, if it does not name that itself.
    pub(crate) fn words(&self) -> Cow<'_, str> {
        let last = self.field.rsplit('.').next().unwrap_or_default();
        match self.message.contains(last) {
            true => Cow::Borrowed(&self.message),
            false => Cow::Owned(format!("{}: {}", self.field, self.message)),
        }
    }

    /// Whether the server does not know the model. Here and below, `status` is that of the response; it is `None` for
    /// an error inside a reply, whose own status then counts.
    pub(crate) fn unknown_model(&self, status: Option<u16>) -> bool {
        let status = status.or(self.status);
        let message = self.message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
        self.code.contains("model_not_found")
            || self.code.contains("model_decommissioned")
            || says(&["invalid model", "not a valid model", "supported api model names"])
            // Zhipu, Groq.
            || says(&["unknown model", "模型不存在", "has been decommissioned"])
            || ((matches!(status, Some(404 | 410)) || self.code.contains("not_found_error")) && message.contains("model"))
            || (matches!(status, Some(400) | None) && message.contains("model") && says(&["not found", "does not exist", "not exist"]))
    }

    /// Whether the key was refused.
    pub(crate) fn wrong_key(&self, status: Option<u16>) -> bool {
        let message = self.message.to_lowercase();
        let says_so =
            ["api key not valid", "incorrect api key", "invalid api key", "api_key_invalid", "authentication_error"];
        matches!(status.or(self.status), Some(401 | 403))
            || says_so.iter().any(|words| message.contains(words) || self.code.contains(words))
    }

    /// Whether a shorter prompt may be accepted: it is longer than the model's context, or than what may be sent in a
    /// minute, in the words of OpenAI, llama.cpp, vLLM, Anthropic, Gemini, Vertex, Ollama, OpenRouter, Groq, xAI, LM
    /// Studio, Perplexity, SGLang, TGI, Together, Moonshot, Zhipu, DashScope and GitHub.
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
            "reduce your message size",
            "tokens must be reduced",
        ];
        let message = self.message.to_lowercase();
        CODES.iter().any(|known| self.code.contains(known)) || WORDS.iter().any(|known| message.contains(known))
    }

    /// Whether the server refuses the requested form of the answer: it has no such field, does not accept the schema,
    /// or demands something else with it.
    pub(crate) fn refuses_form(&self, status: Option<u16>) -> bool {
        const WORDS: &[&str] = &[
            "response_format",
            "response format",
            "json_object",
            "json mode",
            "text.format",
            "output_config",
            "output_format",
            "structured output",
            "responsemimetype",
            "response_mime_type",
            "schema",
            // What llama.cpp turns a schema into.
            "grammar",
        ];
        let status = status.or(self.status);
        let said = format!("{} {} {}", self.message, self.code, self.field).to_lowercase();
        matches!(status, Some(400 | 422))
            && WORDS.iter().any(|known| said.contains(known))
            && !self.unknown_model(status)
            && !self.too_long()
    }

    /// Whether the server refuses the field that asks it not to store the request.
    pub(crate) fn refuses_store(&self, status: Option<u16>) -> bool {
        let status = status.or(self.status);
        matches!(status, Some(400 | 422)) && self.names("store")
    }

    /// Whether the server may refuse the images or PDFs that went with the request.
    pub(crate) fn may_refuse_attachments(&self, status: Option<u16>) -> bool {
        let status = status.or(self.status);
        let is_something_else = self.unknown_model(status) || self.wrong_key(status);
        match status {
            _ if self.too_long() || is_something_else => false,
            Some(400 | 422) => self.names_attachments() || self.may_be_about_messages(),
            Some(415) => true,
            // A request that is too large, too many requests, or overload; a model's name may well contain “vision”.
            Some(413 | 429 | 503 | 529) => false,
            // A 404 may also come from a wrong address.
            Some(400..) | None => self.names_attachments(),
            Some(_) => false,
        }
    }

    /// Whether the request has more bytes than the server accepts.
    pub(crate) fn too_large(&self, status: Option<u16>) -> bool {
        status.or(self.status) == Some(413)
    }

    /// Whether the error is about the field of the messages, if it names a field below the body at all.
    fn may_be_about_messages(&self) -> bool {
        matches!(self.field.as_str(), "" | "body")
            || ["messages", "input", "contents"].iter().any(|field| self.is_about(field))
    }

    fn names_attachments(&self) -> bool {
        const WORDS: &[&str] = &[
            "image",
            "images",
            "vision",
            "multimodal",
            "mmproj",
            "pdf",
            "pdfs",
            "document",
            "documents",
            "attachment",
            "attachments",
            "modality",
            "modalities",
        ];
        let message = self.message.to_lowercase();
        let mut words = message.split(|char: char| !char.is_alphanumeric());
        words.any(|word| WORDS.contains(&word))
    }

    /// Whether the error names this field of the request, in its message or separately.
    fn names(&self, field: &str) -> bool {
        has_name(&self.message, field) || self.is_about(field)
    }

    /// Whether the error names this field separately.
    fn is_about(&self, field: &str) -> bool {
        has_name(&self.field, field)
    }

    /// Whether another try may succeed, for an error that came without a status of its own.
    pub(crate) fn may_pass(&self) -> bool {
        let code = self.code.to_lowercase();
        // Some servers write the status as text.
        let is_status = |word: &str| word.parse().is_ok_and(|status| PASSING_STATUSES.contains(&status));
        let known = code.split(' ').any(|word| PASSING_CODES.contains(&word) || is_status(word));
        self.status.map_or(known, |status| PASSING_STATUSES.contains(&status))
    }

    /// Adds another code or type to those that it has.
    fn with_code(mut self, code: &str) -> ServerError {
        self.code = format!("{} {code}", self.code).trim().to_owned();
        self
    }
}

/// The fields that may have the message, best first. Apigee has `faultstring`, AWS Lambda `errorMessage`, MiniMax
/// `status_msg`.
const MESSAGES: [&str; 12] = [
    "message",
    "faultstring",
    "detail",
    "msg",
    "error_description",
    "Message",
    "title",
    "errorMessage",
    "error_message",
    "details",
    "reason",
    "status_msg",
];

/// Whether a text contains the name of a field, not as a part of a longer name.
fn has_name(text: &str, field: &str) -> bool {
    text.split(|char: char| !char.is_alphanumeric() && char != '_').any(|word| word == field)
}

/// Reads the body of an error in any form that servers are known to use; else the title of a page for browsers, or
/// the text itself, if it is text.
pub(crate) fn read(body: &str) -> Option<ServerError> {
    let body = body.trim_start_matches('\u{feff}');
    match serde_json::from_str::<Value>(body) {
        Ok(value) => from_value(&value),
        Err(_) => from_text(body),
    }
}

/// Reads the error in JSON that should have been an answer, or a part of one; `None` if it has no error.
pub(crate) fn error_in(json: &str) -> Option<ServerError> {
    let value: Value = serde_json::from_str(json).ok()?;
    let fields = if let Value::Array(values) = &value { values.first()? } else { &value };
    let is_error = ["error", "errors", "detail", "Message"].iter().any(|name| fields.get(name).is_some_and(is_something))
            || fields.get("object").and_then(Value::as_str) == Some("error")
            || fields.get("type").and_then(Value::as_str) == Some("error")
            || is_a_bare_message(fields)
            // MiniMax has this field in answers, too, with a zero.
            || fields.pointer("/base_resp/status_code").and_then(Value::as_i64).is_some_and(|code| code != 0);
    is_error.then(|| from_value(&value))?
}

/// Some gateways report errors without an error field: a message alone, or with a code.
fn is_a_bare_message(fields: &Value) -> bool {
    let says = |name| fields.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let has = |name| fields.get(name).is_some();
    let is_alone = fields.as_object().is_some_and(|fields| fields.len() == 1);
    (says("message") || says("msg")) && (is_alone || has("code") || has("status") || has("success"))
}

/// The error in an event of a stream. Proxies and gateways report errors in forms of their own, so q looks for one
/// if the event has an error field, or lacks a field that every event of the dialect has.
pub(super) fn error_in_event(json: &str, may_be_error: bool) -> Option<ServerError> {
    may_be_error.then(|| error_in(json))?
}

/// Some servers send an empty error when nothing is wrong.
pub(super) fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

/// Reads the value of an `error` field, or a complete body.
pub(super) fn from_value(value: &Value) -> Option<ServerError> {
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
    // If the field only names the error, or says that there is one, the words are in a field beside it.
    let beside = ["message", "error_description", "detail"].into_iter().find_map(text);
    let says_nothing = |inner: &Value| beside.is_some() && (inner.is_boolean() || inner.is_number());
    let inner = ["error", "errors", "fault", "base_resp"].into_iter().find_map(|name| fields.get(name));
    let inner = inner.filter(|inner| is_something(inner) && !says_nothing(inner));
    let error = match inner {
        Some(Value::String(name)) => {
            ServerError::new(on_one_line(beside.unwrap_or(name))).with_code(&format!("{codes} {name}"))
        }
        Some(inner) => from_value(inner)?,
        None => {
            let found = MESSAGES.into_iter().find_map(|name| fields.get(name).and_then(message_of));
            let (message, field) = found.or_else(|| (!codes.is_empty()).then(|| (codes.clone(), String::new())))?;
            let message = on_one_line(&with_upstream(message, fields));
            ServerError { field, ..ServerError::new(message) }.with_code(&codes)
        }
    };
    let number = |name: &str| fields.get(name).and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
    let status = error.status.or_else(|| ["code", "status", "status_code"].into_iter().find_map(number));
    let field = Some(error.field).filter(|field| !field.is_empty()).or_else(|| refused_field(fields));
    let retry_after = error.retry_after.or_else(|| retry_delay(fields));
    Some(ServerError { status, retry_after, field: field.unwrap_or_default(), ..error })
}

/// The field of the request that an error is about: OpenAI's `param`, or the `loc` of servers in Python, a list of the
/// names on the path to it.
fn refused_field(fields: &Map<String, Value>) -> Option<String> {
    let names = |value: &Value| {
        let names: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        names.join(".")
    };
    let field = fields.get("param").and_then(Value::as_str).map(str::to_owned);
    field.or_else(|| fields.get("loc").map(names))
}

/// Gateways put the error of the provider behind them into `metadata.raw`.
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

/// The message, from one of the fields that may have it, and the field of the request that it is about.
fn message_of(value: &Value) -> Option<(String, String)> {
    match value {
        Value::String(message) => Some((message.clone(), String::new())).filter(|_| !message.is_empty()),
        Value::Array(_) | Value::Object(_) => Some(match from_value(value) {
            Some(inner) => (inner.message, inner.field),
            None => (value.to_string(), String::new()),
        }),
        _ => None,
    }
}

fn from_text(body: &str) -> Option<ServerError> {
    let text = body.trim();
    if text.starts_with('<') {
        // Amazon's storage and its copies answer in XML.
        return title(text).or_else(|| element(text, "message")).map(ServerError::new);
    }
    let line: String = text.lines().next().unwrap_or_default().chars().take(SHOWN_CHARACTERS).collect();
    Some(ServerError::new(on_one_line(&line))).filter(|error| !error.message.is_empty())
}

/// The title of a page for browsers.
pub(crate) fn title(page: &str) -> Option<String> {
    element(page, "title")
}

/// The text of the first element with this name in lower case.
fn element(page: &str, name: &str) -> Option<String> {
    let begin = page.to_ascii_lowercase().find(&format!("<{name}"))?;
    let (_, after) = page[begin..].split_once('>')?;
    let (text, _) = after.split_once('<')?;
    let text: String = on_one_line(text).chars().take(SHOWN_CHARACTERS).collect();
    Some(text).filter(|text| !text.is_empty())
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
            (r#"{"error":true,"message":"real words"}"#, "real words"),
            (r#"{"error":500,"message":"real words"}"#, "real words"),
            (r#"{"error":500}"#, "500"),
            (r#"{"error":"invalid_token","error_description":"it has expired"}"#, "it has expired"),
            (r#"{"errors":[{"message":"one"},{"message":"two"}]}"#, "one"),
            (r#"{"errors":["plain"]}"#, "plain"),
            (r#"{"error":{"message":"","type":"insufficient_quota"}}"#, "insufficient_quota"),
            (r#"{"message":"unauthorised"}"#, "unauthorised"),
            (r#"{"Message":"denied"}"#, "denied"),
            (r#"{"detail":"not found"}"#, "not found"),
            (r#"{"fault":{"faultstring":"no key","detail":{"errorcode":"x"}}}"#, "no key"),
            (r#"{"errorMessage":"timed out","errorType":"x"}"#, "timed out"),
            (r#"{"error_message":"no"}"#, "no"),
            (r#"{"error":{"message":"","code":7,"details":"the words"}}"#, "the words"),
            (r#"{"code":400,"reason":"INVALID","message":""}"#, "INVALID"),
            ("\u{feff}{\"error\":{\"message\":\"no\"}}", "no"),
            ("<?xml version=\"1.0\"?><Error><Code>X</Code><Message>Access denied</Message></Error>", "Access denied"),
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
    fn an_error_is_distinguished_from_an_answer() {
        for json in [
            r#"{"error":{"message":"x"}}"#,
            r#"[{"error":"x"}]"#,
            r#"{"object":"error","message":"x"}"#,
            r#"{"type":"error","message":"x"}"#,
            r#"{"detail":"x"}"#,
            r#"{"message":"x","code":400}"#,
            r#"{"message":"x"}"#,
            r#"{"code":20012,"message":"x","data":null}"#,
            r#"{"success":false,"msg":"x"}"#,
            r#"{"object":"error","error":null,"message":"x"}"#,
            r#"{"object":"error","error":{},"message":"x"}"#,
            r#"{"object":"error","error":[],"message":"x"}"#,
            r#"{"choices":null,"base_resp":{"status_code":1004,"status_msg":"x"}}"#,
        ] {
            assert_eq!(error_in(json).map(|error| error.message).as_deref(), Some("x"), "{json}");
        }
        for json in [
            r#"{"error":{}}"#,
            r#"{"error":null,"message":"x"}"#,
            r#"{"error":"","choices":[]}"#,
            r#"{"message":"","code":1}"#,
            r#"{"choices":[],"base_resp":{"status_code":0,"status_msg":"success"}}"#,
            r#"{"message":{"role":"assistant"},"code":1}"#,
            "{",
            "7",
        ] {
            assert_eq!(error_in(json), None, "{json}");
        }
    }

    #[test]
    fn the_field_that_an_error_is_about_is_named() {
        for (body, words) in [
            (
                r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
                "body.stream_options: Extra inputs are not permitted",
            ),
            (r#"{"error":{"message":"Unknown parameter: 'top_k'","param":"top_k"}}"#, "Unknown parameter: 'top_k'"),
            (r#"{"error":{"message":"no"}}"#, "no"),
        ] {
            assert_eq!(read(body).expect(body).words(), words);
        }
    }

    #[test]
    fn a_model_that_the_server_does_not_know_is_distinguished_from_other_failures() {
        for (status, code, message, unknown) in [
            (500, "model_not_found", "no", true),
            (422, "", "Invalid model: x", true),
            (400, "", "x is not a valid model ID", true),
            (400, "", "The supported API model names are a or b, but you passed x.", true),
            (404, "", "model 'x' not found", true),
            (404, "", "no such model: x", true),
            (400, "", "The model x does not exist", true),
            (400, "", "Model Not Exist", true),
            (400, "1211", "Unknown Model, please check the model code.", true),
            (400, "1211", "模型不存在，请检查模型代码。", true),
            (400, "model_decommissioned", "no", true),
            (400, "", "The model `x` has been decommissioned and is no longer supported.", true),
            (410, "", "The model x was retired", true),
            (410, "", "gone", false),
            (400, "", "the model is overloaded", false),
            (500, "", "model x not found", false),
            (404, "", "page not found", false),
            (400, "", "tool x not found", false),
            (404, "", "nothing here", false),
        ] {
            let error = ServerError::new(message).with_code(code);
            assert_eq!(error.unknown_model(Some(status)), unknown, "{status} {code} {message}");
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
            assert_eq!(ServerError::new(message).wrong_key(Some(status)), wrong, "{status} {message}");
        }
    }

    #[test]
    fn an_error_inside_a_reply_means_what_it_means_with_a_status() {
        for (body, unknown_model, wrong_key) in [
            (r#"{"error":"model 'x' not found"}"#, true, false),
            (r#"{"error":{"message":"no such model","code":404}}"#, true, false),
            (r#"{"error":{"type":"not_found_error","message":"model: x"}}"#, true, false),
            (r#"{"error":{"type":"not_found_error","message":"no"}}"#, false, false),
            (r#"{"error":{"message":"model x not found","code":500}}"#, false, false),
            (r#"{"error":{"message":"No auth credentials found","code":401}}"#, false, true),
            (r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#, false, true),
            (r#"{"error":{"message":"no","code":400}}"#, false, false),
        ] {
            let error = read(body).expect(body);
            assert_eq!((error.unknown_model(None), error.wrong_key(None)), (unknown_model, wrong_key), "{body}");
        }
    }

    #[test]
    fn a_context_that_is_too_long_is_recognized_in_everyones_words() {
        // The words of every server are in the corpus of replies.
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
    fn a_form_that_is_refused_is_known_by_any_of_its_names() {
        for (status, body, refuses) in [
            (400, r#"{"error":{"message":"This response_format type is unavailable now"}}"#, true),
            (400, r#"{"error":{"message":"This model does not support response format `json_schema`."}}"#, true),
            (400, r#"{"error":{"message":"Invalid value","param":"response_format"}}"#, true),
            (400, r#"{"error":{"message":"Invalid value","param":"text.format.schema"}}"#, true),
            (400, r#"{"error":{"message":"Invalid value","param":"text.verbosity"}}"#, false),
            (400, r#"{"error":{"message":"no","code":"invalid_json_schema"}}"#, true),
            (400, r#"{"error":{"message":"JSON mode is not enabled for this model"}}"#, true),
            (400, r#"{"error":{"message":"'messages' must contain the word 'json' for 'json_object'"}}"#, true),
            (400, r#"{"error":{"message":"output_config: Extra inputs are not permitted"}}"#, true),
            (400, r#"{"error":{"message":"output_format: no"}}"#, true),
            (400, r#"{"error":{"message":"Structured outputs are not supported by this model"}}"#, true),
            (400, r#"[{"error":{"code":400,"message":"Unknown name \"responseJsonSchema\""}}]"#, true),
            (400, r#"[{"error":{"code":400,"message":"Unknown name \"responseMimeType\""}}]"#, true),
            (400, r#"{"error":{"code":400,"message":"generation_config.response_mime_type: no"}}"#, true),
            (400, r#"{"error":{"code":400,"message":"Failed to parse grammar"}}"#, true),
            (422, r#"{"detail":[{"loc":["body","response_format"],"msg":"Extra inputs are not permitted"}]}"#, true),
            (422, r#"{"message":{"detail":[{"loc":["body","response_format",0],"msg":"no"}]}}"#, true),
            (422, r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#, false),
            (500, r#"{"error":{"message":"response_format is not supported"}}"#, false),
            (404, r#"{"error":{"message":"response_format is not supported"}}"#, false),
            (400, r#"{"error":{"message":"no"}}"#, false),
            (400, r#"{"error":{"message":"The model json_object does not exist"}}"#, false),
            (400, r#"{"error":{"message":"With this schema the prompt is too long"}}"#, false),
        ] {
            assert_eq!(read(body).expect(body).refuses_form(Some(status)), refuses, "{status} {body}");
        }
    }

    #[test]
    fn a_field_that_is_refused_inside_a_reply_is_known_by_the_status_in_the_error() {
        for (body, refuses_form, refuses_store) in [
            (r#"{"error":{"code":400,"message":"response_format is not supported"}}"#, true, false),
            (r#"{"error":{"code":422,"message":"Unknown parameter: 'store'."}}"#, false, true),
            (r#"{"error":{"code":500,"message":"response_format and store"}}"#, false, false),
            (r#"{"error":{"message":"response_format and store"}}"#, false, false),
        ] {
            let error = read(body).expect(body);
            assert_eq!((error.refuses_form(None), error.refuses_store(None)), (refuses_form, refuses_store), "{body}");
        }
    }

    #[test]
    fn images_and_pdfs_may_be_refused_with_any_status_that_speaks_of_them() {
        for (status, message, refuses) in [
            (Some(400), "no", true),
            (Some(413), "no", false),
            (Some(413), "no room for these images", false),
            (Some(415), "no", true),
            (Some(422), "no", true),
            (Some(404), "No endpoints found that support image input", true),
            (Some(404), "no", false),
            (Some(500), "image input is not supported - hint: you may need to provide the mmproj", true),
            (Some(500), "no", false),
            (Some(500), "no provision, no imagination, see the documentation", false),
            (Some(501), "This is no MULTIMODAL model", true),
            (Some(502), "unsupported part: image_url", true),
            (Some(503), "the model llama-vision is overloaded", false),
            (Some(429), "too many requests for llama-vision", false),
            (Some(529), "too many images at once", false),
            (Some(413), "with these images the prompt is too long", false),
            (Some(400), "The model llama-vision does not exist", false),
            (Some(403), "no key for images", false),
            (Some(302), "images have moved", false),
            (None, "cannot read the PDF", true),
            (None, "unknown modality", true),
            (None, "no", false),
        ] {
            let error = ServerError::new(message);
            assert_eq!(error.may_refuse_attachments(status), refuses, "{status:?} {message}");
        }
        for (body, refuses) in [
            (r#"{"error":{"code":400,"message":"no"}}"#, true),
            (r#"{"error":{"code":500,"message":"no vision"}}"#, true),
            (r#"{"error":{"code":503,"message":"no vision"}}"#, false),
            (r#"{"error":{"code":413,"message":"no vision"}}"#, false),
            (r#"{"error":{"code":400,"message":"no","param":"messages.[0].content.[1].type"}}"#, true),
            (r#"{"error":{"code":400,"message":"no","param":"input"}}"#, true),
            (r#"{"error":{"code":400,"message":"no","param":"temperature"}}"#, false),
            (r#"{"error":{"code":400,"message":"no images with it","param":"temperature"}}"#, true),
            (r#"{"code":422,"detail":[{"loc":["body","messages",0,"content"],"msg":"no"}]}"#, true),
            (r#"{"code":422,"detail":[{"loc":["body","stream_options"],"msg":"no"}]}"#, false),
            (r#"{"code":422,"detail":[{"loc":["body"],"msg":"no"}]}"#, true),
        ] {
            assert_eq!(read(body).expect(body).may_refuse_attachments(None), refuses, "{body}");
        }
    }

    #[test]
    fn an_error_names_fields_in_its_words_or_beside_them() {
        for (body, names) in [
            (r#"{"error":{"message":"Unknown parameter: 'store'."}}"#, true),
            (r#"{"error":{"message":"Unsupported parameter","param":"store"}}"#, true),
            (r#"{"error":"Bad Request","param":"store","message":"no"}"#, true),
            (r#"{"detail":[{"loc":["body","store"],"msg":"no"}]}"#, true),
            (r#"{"error":{"message":"no","param":"input[0].store"}}"#, true),
            (r#"{"error":{"message":"no","param":"stored"}}"#, false),
            (r#"{"error":{"message":"Unknown parameter: 'vector_store'.","param":null}}"#, false),
            (r#"{"detail":[{"loc":["body",0],"msg":"no"}]}"#, false),
        ] {
            assert_eq!(read(body).expect(body).names("store"), names, "{body}");
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
            (r#"{"error":{"message":"x","code":"server_is_overloaded"}}"#, true),
            (r#"{"error":{"message":"x","code":"slow_down"}}"#, true),
            (r#"{"error":{"message":"x","type":"service_unavailable_error"}}"#, true),
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
