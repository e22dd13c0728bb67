//! Finds the message and other details in the body of an error (pure).

use std::fmt;
use std::time::Duration;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::provider::kept;
use crate::provider::lenient::{List, Text};
use crate::secret::{self, Secrets};
use crate::shape::elements;
use crate::text::byte_order_mark::text_after_mark;
use crate::text::digits::is_digits;
use crate::text::json;
use crate::text::not_a_number;
use crate::text::one_line::on_one_line;
use crate::text::surrogates;
use crate::text::whole_name::has_name;

/// How much is shown of a body that is not a known form of error.
const SHOWN_CHARACTERS: usize = 200;

/// The message of an error that has none.
const NO_REASON: &str = "the server gives no reason";

/// An error that a server reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    pub message: String,
    /// The server's code and type for it, such as `model_not_found`; empty if it has none.
    pub(super) code: String,
    /// The field of the request that it is about, such as `text.format.schema`; empty if the server names none.
    pub(super) field: String,
    /// The status given in the error itself.
    pub(super) status: Option<u16>,
    /// How long the server asks to wait before the next try.
    pub retry_after: Option<Duration>,
    /// How long its words say to wait (`try again in 8s`). They may quote somebody else's.
    pub(super) mentioned_wait: Option<Duration>,
    /// Whether the server asks for another try, or for none: the header that the libraries of OpenAI and Anthropic obey.
    pub should_retry: Option<bool>,
    /// Whether the server sent an HTML page, or what Cloudflare sends in the place of one, which no API does.
    pub(super) is_page: bool,
    /// Whether its body could not be read, so that its message is not the server's.
    pub(super) is_unread: bool,
}

impl ServerError {
    /// Returns how long to wait before the next try of a request that failed in passing with this status. Of what the words say,
    /// only the end of a limit for the rate of requests counts.
    pub fn wait(&self, status: Option<u16>) -> Option<Duration> {
        let is_of_rate = status.or(self.status) == Some(429) || self.code.contains("rate_limit");
        let mentioned = self.mentioned_wait.filter(|_| is_of_rate);
        self.retry_after.or(mentioned)
    }

    pub fn new(message: impl Into<String>) -> ServerError {
        ServerError {
            message: message.into(),
            ..ServerError::default()
        }
    }

    /// Returns the error for a body that could not be read, with the reason.
    pub fn unread(reason: impl Into<String>) -> ServerError {
        ServerError {
            is_unread: true,
            ..ServerError::new(reason)
        }
    }

    /// Whether one of its codes is one of these, in any case.
    pub(super) fn has_code(&self, codes: &[&str]) -> bool {
        let code = self.code.to_lowercase();
        code.split(' ').any(|one| codes.contains(&one))
    }

    /// Whether it comes from something between q and the server, such as a firewall, which has let nothing through.
    pub fn is_of_firewall(&self, status: u16) -> bool {
        self.is_page && status == 403
    }

    /// Returns the server's message, and before it the field that the error is about, unless the message names that itself.
    pub fn words(&self) -> String {
        let field = self.field.trim().trim_end_matches('.');
        let last = field.rsplit('.').next().unwrap_or_default();
        if last.is_empty() || has_name(&self.message, last) {
            return self.message.clone();
        }
        // Some servers say here, and only here, what is wrong.
        if field.contains(char::is_whitespace) {
            return format!("{}: {}", self.message, on_one_line(&self.field));
        }
        format!("{field}: {}", self.message)
    }
}

/// A reason why data from a server is not a part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// It does not fit the dialect.
    Malformed(String),
    /// It is an error.
    Server(ServerError),
    /// It is in the form of the API with this name, and another one was asked for.
    OtherApi(&'static str),
    /// It is in the form of no API that q speaks. The names of its first fields.
    UnknownForm(String),
    /// With it the reply, which calls tools, is longer than q keeps.
    TooLong,
}

/// What reading a part of a reply comes to.
pub type ReplyResult<T = ()> = Result<T, ReplyError>;

impl From<serde_json::Error> for ReplyError {
    fn from(error: serde_json::Error) -> ReplyError {
        ReplyError::Malformed(json::parse_failure(&error))
    }
}

impl From<ServerError> for ReplyError {
    fn from(error: ServerError) -> ReplyError {
        ReplyError::Server(error)
    }
}

/// The fields that may have an object with the error. Apigee has `fault`, MiniMax `base_resp`.
const INNER: &[&str] = &["error", "errors", "fault", "base_resp"];

/// The fields that may have the message, best first. Apigee has `faultstring`, AWS Lambda `errorMessage`, Baidu `error_msg`,
/// MiniMax `status_msg`. If there is another, `error` only names the error.
const MESSAGES: &[&str] = &[
    "message",
    "faultstring",
    "detail",
    "msg",
    "error_description",
    "Message",
    "title",
    "errorMessage",
    "error_message",
    "error_msg",
    "details",
    "description",
    "reason",
    "status_msg",
    "error",
    "exception",
];

/// The other fields that may be in an error.
const ABOUT: &[&str] = &[
    "object",
    "type",
    "code",
    "status",
    "success",
    "error_type",
    "error_code",
    "status_code",
    "metadata",
    "param",
    "loc",
];

/// Those of them whose words may follow the message.
const FOLLOWING: &[&str] = &["metadata", "param", "loc"];

/// The fields that may have a code or a type.
const CODES: &[&str] = &[
    "code",
    "type",
    "status",
    "error_type",
    "error_code",
    "error",
];

/// The words of codes, in small letters, for what went well or still goes on: some servers tell about their progress in events
/// with a message.
const SUCCESS_WORDS: &[&str] = &[
    "ok",
    "success",
    "successful",
    "succeeded",
    "true",
    "done",
    "complete",
    "completed",
    "finished",
    "connected",
    "ready",
    "accepted",
    "created",
    "pending",
    "queued",
    "started",
    "running",
    "processing",
    "in_progress",
    "in progress",
    "loading",
    "searching",
    "thinking",
    "generating",
    "streaming",
    "working",
];

/// How much memory the value of a field may take.
const MAX_WEIGHT: usize = 1_000_000;

/// Reads the body of a response that failed, without secrets.
pub fn read_redacted(body: &str, secrets: &Secrets) -> ServerError {
    let body = event_data(text_after_mark(body));
    let found = match errors_in(body) {
        Some(value) => from_value(&value),
        // Of a text only the beginning is shown, so secrets are removed before a part of one is cut off.
        None => from_text(&secret::redact(body, secrets)),
    };
    let mut error = found.unwrap_or_else(|| ServerError::new(NO_REASON));
    for words in [&mut error.message, &mut error.field] {
        *words = secret::redact(words, secrets);
    }
    error
}

/// Returns the data of the first event that has some, if the body is a stream, which may begin with comments; else all of it.
fn event_data(body: &str) -> &str {
    let mut lines = body.lines();
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(':'));
    let is_field = |line: &str| {
        ["data:", "event:"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    let is_stream = first.is_some_and(is_field);
    let mut data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    match data.next() {
        Some(data) if is_stream => data.trim(),
        _ => body,
    }
}

/// Returns what may be an error, in JSON that may have anything next to it; `None` if it is no JSON. Of a list, that is its first
/// element.
fn errors_in(json: &str) -> Option<Value> {
    let read = |text: &str| serde_json::from_str(text).map(what_may_be_error);
    let json = surrogates::replaced(json);
    not_a_number::read_with(&json, |_| true, read).ok()?
}

fn what_may_be_error(mut json: &RawValue) -> Option<Value> {
    if json.get().starts_with('[') {
        let list: List<&RawValue> = serde_json::from_str(json.get()).ok()?;
        json = list.0.first().copied().unwrap_or(json);
    }
    if !json.get().starts_with('{') {
        let value = light_value(json).or_else(|| cut_value("", json));
        return Some(value.unwrap_or_default());
    }
    let fields: ErrorFields = serde_json::from_str(json.get()).ok()?;
    Some(Value::Object(fields.0))
}

/// Returns the value of a field, if it is not too large.
fn light_value(json: &RawValue) -> Option<Value> {
    let json = json.get();
    let is_light = kept::weight(json) <= MAX_WEIGHT;
    is_light.then(|| serde_json::from_str(json).unwrap_or_default())
}

/// Returns the beginning of a large text, or of a large error. It is cut before secrets are removed; where it ends within one,
/// `redact` finds what is left of it, unless that is too short for a secret or more text follows it.
fn cut_value(name: &str, json: &RawValue) -> Option<Value> {
    let json = json.get();
    let is_said = !ABOUT.contains(&name) && (name == "error" || json.starts_with('"'));
    let beginning = || String::from_iter(json.chars().take(SHOWN_CHARACTERS));
    is_said.then(|| beginning().into())
}

/// The fields of an object in which an error may be. In place of all others is one without a name.
struct ErrorFields(Map<String, Value>);

impl<'de> Deserialize<'de> for ErrorFields {
    fn deserialize<D: Deserializer<'de>>(object: D) -> Result<ErrorFields, D::Error> {
        object.deserialize_map(ErrorFieldsVisitor)
    }
}

struct ErrorFieldsVisitor;

impl<'de> Visitor<'de> for ErrorFieldsVisitor {
    type Value = ErrorFields;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<ErrorFields, A::Error> {
        let mut fields = Map::new();
        let mut is_cut = false;
        while let Some((name, json)) = object.next_entry::<Text, &RawValue>()? {
            if is_known(&name) {
                let mut value = light_value(json);
                if value.is_none() {
                    value = cut_value(&name, json);
                    is_cut |= value.is_some();
                }
                fields.insert(name.0.into_owned(), value.unwrap_or_default());
            } else {
                fields.insert(String::new(), Value::Null);
            }
        }
        if is_cut {
            for name in FOLLOWING {
                fields.remove(*name);
            }
        }
        Ok(ErrorFields(fields))
    }
}

/// Whether an error may be in a field of this name, or something about it.
fn is_known(name: &str) -> bool {
    let names = [INNER, MESSAGES, ABOUT];
    names.iter().any(|names| names.contains(&name))
}

fn is_error(json: &Value) -> bool {
    let is_named = json["object"] == "error" || json["type"] == "error";
    let mut errors = values(json, &["error", "errors"]);
    let is_alone = json.as_object().is_some_and(|fields| fields.len() == 1);
    // An error with nothing next to it is one, even if its code is that of the response that it came with.
    let has_error = errors
        .any(|error| check_field(error).is_err() || (is_alone && has_message_of_failure(error)));
    // MiniMax has this field in answers, too, with a zero.
    let code = json["base_resp"]["status_code"].as_i64();
    let has_failed = code.is_some_and(|code| code != 0);
    if is_named || has_error || has_failed {
        return true;
    }
    let said = outcome(json);
    if said == Some(StatedOutcome::Success) {
        return false;
    }
    let mut inner = values(json, &["detail", "Message"]);
    if inner.any(|value| from_value(value).is_some()) {
        return true;
    }
    // A gateway may have no field for errors, but a message alone or with a code.
    let mut messages = values(json, &["message", "msg"]).filter_map(Value::as_str);
    let has_message = messages.any(|message| !message.is_empty());
    has_message && (is_alone || said == Some(StatedOutcome::Failure))
}

/// Whether an error has a message that is no word of success.
fn has_message_of_failure(error: &Value) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    outcome_of(&message.into(), false) == Some(StatedOutcome::Failure)
}

/// The outcome that a code states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatedOutcome {
    /// It went well, or goes on.
    Success,
    Failure,
}

/// Returns the outcome that the codes of an object state. Where they differ, it has failed, unless one says `"success": true`:
/// some gateways have a number of their own for success.
fn outcome(json: &Value) -> Option<StatedOutcome> {
    if json["success"] == true {
        return Some(StatedOutcome::Success);
    }
    let mut stated = None;
    for name in ["code", "status", "success", "error"] {
        match outcome_of(&json[name], name == "error") {
            None => {}
            Some(StatedOutcome::Failure) => return Some(StatedOutcome::Failure),
            Some(StatedOutcome::Success) => stated = Some(StatedOutcome::Success),
        }
    }
    stated
}

/// Returns the outcome that the value of one code states. `is_for_error`: it says whether there is an error.
fn outcome_of(value: &Value, is_for_error: bool) -> Option<StatedOutcome> {
    let is_success = match value {
        Value::Null => return None,
        Value::Bool(said) => *said != is_for_error,
        Value::Number(code) => is_success_code(code.as_i64()),
        Value::String(word) if word.is_empty() => return None,
        Value::String(word) => {
            let word = word.to_lowercase();
            is_success_code(word.parse().ok()) || SUCCESS_WORDS.contains(&word.as_str())
        }
        Value::Array(values) if values.is_empty() => return None,
        Value::Object(fields) if fields.is_empty() => return None,
        Value::Array(_) => false,
        Value::Object(_) => outcome(value) == Some(StatedOutcome::Success),
    };
    if is_success {
        Some(StatedOutcome::Success)
    } else {
        Some(StatedOutcome::Failure)
    }
}

fn is_success_code(code: Option<i64>) -> bool {
    matches!(code, Some(0 | 200..=299))
}

/// Looks for an error in what should have been an answer, or a part of one. Proxies and gateways report errors in forms of
/// their own. So an event may be an error if it has an error field, or if it lacks a field that every event of the dialect has.
pub fn check(json: &str) -> Result<(), ServerError> {
    let value = errors_in(json).unwrap_or_default();
    if is_error(&value) {
        report(&value)
    } else {
        Ok(())
    }
}

/// Looks for an error in a field for one. Some servers send an empty error, or one that states success, when nothing is wrong.
pub fn check_field(error: &Value) -> Result<(), ServerError> {
    if outcome(error) == Some(StatedOutcome::Success) {
        return Ok(());
    }
    report(error)
}

/// Returns what is found of an error as a failure.
fn report(error: &Value) -> Result<(), ServerError> {
    match from_value(error) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Reads the value of an `error` field, or a complete body.
fn from_value(value: &Value) -> Option<ServerError> {
    match value {
        Value::Array(values) => from_value(values.first()?),
        Value::String(message) => from_words(message),
        Value::Object(_) => from_fields(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Reads a message, which may be the JSON of another server's error.
fn from_words(words: &str) -> Option<ServerError> {
    if words.trim_start().starts_with(['{', '['])
        && let Ok(value) = json::parse(words)
        && let Some(error) = from_value(&value)
    {
        return Some(error);
    }
    from_plain(words)
}

/// Returns an error with this message, unless it is empty.
fn from_plain(message: &str) -> Option<ServerError> {
    let message = on_one_line(message);
    if message.is_empty() {
        return None;
    }
    Some(ServerError {
        retry_after: wait_after(BEFORE_RESET, &message),
        mentioned_wait: wait_after(BEFORE_NEXT_TRY, &message),
        ..ServerError::new(message)
    })
}

/// What is before the wait in messages of Gemini's gateways.
const BEFORE_RESET: &str = "reset after ";

/// What is before it in those of OpenAI and Groq, which some gateways pass on without the headers.
const BEFORE_NEXT_TRY: &str = "try again in ";

/// The names of the units of such a time, and their seconds.
const WAIT_UNITS: &[(&[&str], f64)] = &[
    (&["ms", "millisecond", "milliseconds"], 0.001),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600.0),
    (&["d", "day", "days"], 86_400.0),
];

/// Returns the time after these words of a message, such as `3h12m5s`, `2m 30s` or `1.242s`. `None` if there is none, or if it is
/// too long for a number.
fn wait_after(words: &str, message: &str) -> Option<Duration> {
    let (_, time) = message.split_once(words)?;
    duration_at_start(time)
}

/// Reads a time in numbers and units from the start of a text.
fn duration_at_start(mut rest: &str) -> Option<Duration> {
    let mut total: Option<Duration> = None;
    while let Some((digits, after)) = split_after(rest, |char| char.is_ascii_digit() || char == '.')
        && let Some((unit, after)) = split_after(after.trim_start(), char::is_alphabetic)
        && let Some((_, seconds)) = WAIT_UNITS.iter().find(|(names, _)| names.contains(&unit))
    {
        let part = Duration::try_from_secs_f64(digits.parse::<f64>().ok()? * seconds).ok()?;
        total = Some(total.unwrap_or_default().checked_add(part)?);
        rest = after.trim_start();
    }
    total
}

/// Returns the characters at the start of a text for which this is true, and what follows them; `None` if there are none.
fn split_after(text: &str, is_part: fn(char) -> bool) -> Option<(&str, &str)> {
    let end = text.find(|char: char| !is_part(char)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Reads the error that an object describes: in an object inside it, or in a field for the message. If there is neither, the
/// codes say what is wrong.
fn from_fields(json: &Value) -> Option<ServerError> {
    let codes = codes(json);
    let inner = values(json, INNER).filter(|value| !value.is_string());
    // Clarifai has the error in its status. Others have a message next to that.
    let status_object = json.get("status").filter(|status| status.is_object());
    // An object is read once, because each may have another one in it.
    let inner_error = &json["error"];
    let is_inner = |value: &Value| std::ptr::eq(value, inner_error) && !value.is_string();
    let messages = values(json, MESSAGES).filter(|value| !is_inner(value));
    let words = inner.chain(messages).chain(status_object);
    let mut found = words.filter_map(from_value);
    let found = found.next().or_else(|| from_named(&json["errors"]));
    let mut error = found.or_else(|| from_plain(&codes))?;

    // Gateways put the provider's error here: its body as a text, or as JSON.
    if let Some(upstream) = from_value(&json["metadata"]["raw"]) {
        error.message = format!("{}: {}", error.message, upstream.message);
        error.code = format!("{} {}", error.code, upstream.code);
    }
    error.code = format!("{} {codes}", error.code).trim().to_owned();
    if error.status.is_none() {
        error.status = status(json);
    }
    if error.field.is_empty() {
        error.field = refused_field(json);
    }
    if error.retry_after.is_none() {
        error.retry_after = retry_delay(json);
    }
    Some(error)
}

/// Reads an error from an object that has a message, or a list of them, under the name of each field that is wrong.
fn from_named(errors: &Value) -> Option<ServerError> {
    let mut fields = errors.as_object()?.iter();
    fields.find_map(|(name, messages)| {
        let message = messages.get(0).unwrap_or(messages).as_str()?;
        Some(ServerError {
            field: name.clone(),
            ..from_plain(message)?
        })
    })
}

/// Returns the values of those of these fields that are there.
fn values<'j>(json: &'j Value, names: &'j [&str]) -> impl Iterator<Item = &'j Value> {
    names.iter().filter_map(|name| json.get(name))
}

fn codes(json: &Value) -> String {
    let mut codes = Vec::new();
    let details = json
        .get("details")
        .into_iter()
        .flat_map(|details| values(details, &["error_code"]));
    // Anthropic's details have the code that tells errors of one type apart.
    for value in values(json, CODES).chain(details) {
        match value {
            Value::String(code) => codes.push(code.clone()),
            // As Z.ai has it.
            Value::Number(code) => codes.push(code.to_string()),
            _ => {}
        }
    }
    codes.join(" ")
}

fn status(json: &Value) -> Option<u16> {
    let mut numbers = values(json, &["code", "status", "status_code"]).filter_map(Value::as_u64);
    // Others are codes of the vendor's own, such as 1302 or 50001.
    let status = numbers.find(|number| (100..=599).contains(number));
    status.and_then(|number| u16::try_from(number).ok())
}

/// Returns the field of the request that an error is about: OpenAI's `param`, or the `loc` of servers in Python, a list of the
/// names and the places in lists on the path to it. Empty if there is none.
fn refused_field(json: &Value) -> String {
    if let Some(name) = json["param"].as_str() {
        return name.to_owned();
    }
    let mut path = Vec::new();
    for component in elements(&json["loc"]) {
        match component {
            Value::String(name) => path.push(name.clone()),
            Value::Number(place) => path.push(place.to_string()),
            _ => {}
        }
    }
    path.join(".")
}

/// Returns Google's `RetryInfo` among the details of an error: `"retryDelay": "34s"`, perhaps with a fraction; or a number of
/// OpenRouter's.
fn retry_delay(json: &Value) -> Option<Duration> {
    if let Some(seconds) = json["metadata"]["retry_after_seconds"].as_f64() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut details = elements(&json["details"]).iter();
    let delay = details.find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Reads a body that is not JSON. Of an HTML page, the title is the message, and of XML the element for it; other text is the
/// message itself, also where it begins with Go's `<nil>`.
fn from_text(body: &str) -> Option<ServerError> {
    let text = body.trim();
    if text.starts_with('<') && !text.starts_with("<nil>") {
        let page = title(text).map(|title| ServerError {
            is_page: true,
            ..ServerError::new(shown(&title))
        });
        return page
            .or_else(|| element(text, "message").map(|text| ServerError::new(shown(&text))));
    }
    let beginning = shown(text);
    let is_page = is_code_of_cloudflare(text);
    from_plain(&beginning).map(|error| ServerError { is_page, ..error })
}

/// Returns as much of a text without secrets as is shown.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARACTERS).collect()
}

/// Whether a text is the short form of a page of Cloudflare's: `error code: 1020`. Those of its firewall have four digits.
fn is_code_of_cloudflare(text: &str) -> bool {
    let code = text.strip_prefix("error code: 1").unwrap_or_default();
    code.len() == 3 && is_digits(code)
}

/// Returns the title of an HTML page, or its first heading, however long it is; `None` for any other text, even if that speaks of
/// headings.
pub fn title(body: &str) -> Option<String> {
    let page = text_after_mark(body).trim_ascii_start();
    if !page.starts_with('<') {
        return None;
    }
    element(page, "title").or_else(|| element(page, "h1"))
}

/// Returns the text of the first element of this name, if it has any.
fn element(page: &str, name: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let opening = format!("<{name}");
    let mut places = lower
        .match_indices(&opening)
        .map(|(at, _)| at + opening.len());
    let begin = places.find(|at| lower[*at..].starts_with(['>', ' ', '\n', '\t', '\r']))?;
    let (_, after) = page[begin..].split_once('>')?;
    let (text, _) = after.split_once('<')?;
    let text = on_one_line(&without_entities(text));
    Some(text).filter(|text| !text.is_empty())
}

/// Replaces the entities of HTML that are common in titles.
fn without_entities(text: &str) -> String {
    let mut text = text.to_owned();
    // The ampersand comes last, because what follows it is no entity then.
    for (entity, character) in [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&#34;", "\""),
        ("&ndash;", "–"),
        ("&mdash;", "—"),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, character);
    }
    text
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;
    use crate::secret::Secret;
    use crate::text::table::rows;

    /// Reads the body of an error that names no secret; `None` if it gives no reason.
    pub fn read(body: &str) -> Option<ServerError> {
        Some(read_redacted(body, &Secrets::default())).filter(|error| error.message != NO_REASON)
    }

    #[test]
    fn the_message_of_an_error_is_found_in_every_known_form() {
        let table = r##"
            no key | {"error":{"message":"no key","type":"auth","code":null}}
            model not found | {"error":"model not found"}
            real words | {"error":"Bad Request","message":"real words"}
            real words | {"error":true,"message":"real words"}
            real words | {"error":500,"message":"real words"}
            real words | {"error":{"message":null},"detail":"real words"}
            it has expired | {"error":"invalid_token","error_description":"it has expired"}
            one | {"errors":[{"message":"one"},{"message":"two"}]}
            insufficient_quota | {"error":{"message":"","type":"insufficient_quota"}}
            not found | {"detail":"not found"}
            no key | {"error":{"message":"no key","zz":"\ud83d"}}
            no key | {"zz":"\ud83d","z\ude00":1,"error":{"message":"no key"}}
            no key | {"fault":{"faultstring":"no key","detail":{"errorcode":"x"}}}
            timed out | {"errorMessage":"timed out","errorType":"x"}
            the words | {"error":{"message":"","code":7,"details":"the words"}}
            INVALID | {"code":400,"reason":"INVALID","message":""}
            field required | {"detail":[{"loc":["body"],"msg":"field required"}]}
            rejected | {"type":"about:blank","title":"rejected","status":422}
            too deep | {"title":"rejected","detail":"too deep"}
            dead | {"object":"error","message":"dead","type":"x","code":400}
            bad | [{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]
            Overloaded | {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}
            Provider returned error: busy | {"error":{"message":"Provider returned error","metadata":{"raw":"busy"}}}
            Provider returned error: busy | {"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"busy\"}}"}}}
            no money | {"error":{"message":"{\"error\":{\"message\":\"no\\nmoney\"}}"}}
            bad | {"error":"{\"detail\":\"bad\"}"}
            {"a": 1} | {"message":"{\"a\":\n1}"}
            [1] is wrong | {"message":"[1] is wrong"}
            upstream failed | upstream␊failed
            Sign in | <html><head><TITLE>␊ Sign in </TITLE>
            server_error | {"error":{"type":"server_error"}}
            two lines | {"error":{"message":"two\nlines"}}
            real words | {"error_code":17,"error_msg":"real words"}
            real words | {"errors":{"model":["real words"]}}
            real words | {"errors":{"model":"real words"}}
            real words | {"status":{"code":400,"message":"real words"}}
            model is away | {"message":"model is away","status":{"code":400}}
            real words | {"status":400,"description":"real words"}
            real words | {"error":"Bad Request","description":"real words"}
            real words | {"exception":"real words"}
            real words | <Error><Code>Bad</Code><Message>real words</Message></Error>
            real words | <?xml version="1.0"?>␊<Error>␊<Message>real␊words</Message></Error>
            real words | <html><header></header><body><h1 class="a">real words</h1></body></html>
            it's “real” & <whole> | <title>it&#39;s “real” &amp; &lt;whole&gt;</title>
            real words | data: {"error":{"message":"real words"}}
            real words | event: error␊data: {"error":{"message":"real words"}}␊␊
            real words | : ping␊␊data: {"error":{"message":"real words"}}␊␊
            <nil>: real words | <nil>: real words
            Provider returned error: busy | {"error":{"message":"Provider returned error","metadata":{"raw":{"error":{"message":"busy"}}}}}
        "##;
        for [message, body] in rows(table) {
            let body = &body.replace('␊', "\n");
            assert_eq!(
                read(body).map(|error| error.message).as_deref(),
                Some(message),
                "{body}"
            );
        }
        let marked = read("\u{feff}{\"error\":{\"message\":\"no\"}}");
        assert!(marked.is_some_and(|error| error.message == "no"));
        let long = read(&"ü".repeat(SHOWN_CHARACTERS + 1)).expect("words");
        assert_eq!(long.message, "ü".repeat(SHOWN_CHARACTERS));
        for body in ["", "<html>502</html>", "{}", "[]", "null"] {
            assert_eq!(read(body), None, "{body}");
        }
    }

    #[test]
    fn an_error_that_is_nested_deep_is_read_in_time() {
        for (inner, said) in [("{}", None), (r#""no credits""#, Some("no credits"))] {
            let json = r#"{"error":"#.repeat(100) + inner + &"}".repeat(100);
            let value: Value = serde_json::from_str(&json).expect(inner);
            let found = from_value(&value).map(|error| error.message);
            assert_eq!(found.as_deref(), said, "{inner}");
        }
    }

    #[test]
    fn only_a_page_has_a_title() {
        let table = r#"
            <html><title>Sign in</title> | Sign in
            ␊ <!DOCTYPE html>␊<TITLE lang="en">Sign in</TITLE> | Sign in
            <h1>Bad Gateway</h1> | Bad Gateway
            <html><title></title><h1>Bad Gateway</h1> | Bad Gateway
            <html>502</html> | -
            {"data":[{"id":"m","description":"writes a <title>page</title>"}]} | -
            ["<h1>page</h1>"] | -
            see <h1>page</h1> | -
        "#;
        for [body, expected] in rows(table) {
            let body = &body.replace('␊', "\n");
            assert_eq!(title(body).unwrap_or_default(), expected, "{body}");
            assert_eq!(
                title(&format!("\u{feff}{body}")).unwrap_or_default(),
                expected,
                "{body}"
            );
        }
    }

    #[test]
    fn nothing_follows_a_message_that_is_cut_within_a_secret() {
        let key = Secret::new("sk-0123456789abcdef");
        let secrets = Secrets::from_iter([&key]);
        // The quotation mark counts, and the key is cut after this many characters.
        for left in [9, 18] {
            let said = "x".repeat(SHOWN_CHARACTERS - 1 - left);
            let long = format!("{said}{}{}", key.expose(), "y".repeat(MAX_WEIGHT));
            for body in [
                json!({"message": long}),
                json!({"message": long, "metadata": {"raw": "busy"}}),
                json!({"message": long, "param": "must be a number"}),
                json!({"detail": long, "loc": ["a field"]}),
                json!({"code": long, "type": "bad"}),
                json!({"error": long, "param": long}),
            ] {
                let body = body.to_string();
                let found = check(&body).err().unwrap_or_default();
                for error in [found, read_redacted(&body, &secrets)] {
                    let shown = secret::redact(&error.words(), &secrets);
                    assert!(!shown.contains("sk-01234"), "{shown}");
                }
            }
        }
    }

    #[test]
    fn an_error_of_another_server_inside_the_message_is_read() {
        let inner = r#"{"error":{"message":"no","code":429,"type":"rate_limit","param":"p"}}"#;
        let body = json!({"error": {"message": inner, "code": "upstream"}});
        let expected = ServerError {
            message: "no".to_owned(),
            code: "429 rate_limit upstream".to_owned(),
            field: "p".to_owned(),
            status: Some(429),
            ..ServerError::default()
        };
        assert_eq!(read(&body.to_string()), Some(expected));
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
            r#"{"success":false,"code":0,"message":"x"}"#,
            r#"{"code":"200 x","message":"x"}"#,
            r#"{"code":"1113","message":"x"}"#,
            r#"{"status":"failed","message":"x"}"#,
            r#"{"status":false,"msg":"x"}"#,
            r#"{"status":{"code":400},"message":"x"}"#,
            r#"{"error":true,"code":200,"message":"x"}"#,
            r#"{"error":500,"message":"x"}"#,
            r#"{"error":{"code":0,"success":false,"message":"x"}}"#,
            r#"{"error":{"code":200,"message":"x"}}"#,
            r#"{"success":true,"error":{"message":"x"}}"#,
            r#"{"code":0,"status":500,"detail":"x"}"#,
        ] {
            let error = check(json).expect_err(json);
            assert_eq!(error.message, "x", "{json}");
        }
        for json in [
            r#"{"error":{}}"#,
            r#"{"error":"","choices":[]}"#,
            r#"{"message":"","code":1}"#,
            r#"{"choices":[],"base_resp":{"status_code":0,"status_msg":"success"}}"#,
            r#"{"message":{"role":"assistant"},"code":1}"#,
            r#"{"code":0,"message":"Success","choices":[],"usage":{}}"#,
            r#"{"success":true,"message":"connected"}"#,
            r#"{"success":true,"code":1000,"message":"x"}"#,
            r#"{"success":true,"detail":"x"}"#,
            r#"{"choices":[],"code":200,"msg":"ok"}"#,
            r#"{"code":"0","error":null,"msg":"x"}"#,
            r#"{"code":"OK","message":"x"}"#,
            r#"{"status":"processing","message":"Searching the web"}"#,
            r#"{"status":"in_progress","message":"x"}"#,
            r#"{"status":true,"message":"x"}"#,
            r#"{"status":{"code":200},"message":"x"}"#,
            r#"{"error":false,"message":"x"}"#,
            r#"{"error":{"code":0,"message":"Success"}}"#,
            r#"{"error":{"code":0,"message":"x"},"choices":[]}"#,
            r#"{"code":null,"message":"x"}"#,
            "{",
            "7",
        ] {
            assert_eq!(check(json), Ok(()), "{json}");
        }
    }

    #[test]
    fn the_words_of_an_error_name_the_field_that_it_is_about() {
        let table = r##"
            body.stream_options: Extra inputs are not permitted | {"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}
            Unknown parameter: 'top_k' | {"error":{"message":"Unknown parameter: 'top_k'","param":"top_k"}}
            Unsupported value: 'effort' | {"error":{"message":"Unsupported value: 'effort'","param":"reasoning.effort"}}
            no | {"error":{"message":"no"}}
            body.n: Input should be valid | {"detail":[{"loc":["body","n"],"msg":"Input should be valid"}]}
            body.tools.1.type: no | {"detail":[{"loc":["body","tools",1,"type"],"msg":"no"}]}
            Request Error: "max_tokens" must be at most 4096. | {"message":"Request Error","param":"\"max_tokens\" must be at most 4096."}
            top_k: no | {"message":"no","param":"top_k."}
        "##;
        for [words, body] in rows(table) {
            assert_eq!(read(body).expect(body).words(), words);
        }
    }

    #[test]
    fn the_time_until_a_quota_is_there_again_is_read_from_the_message() {
        let table = r##"
            3h12m5s | 11525000
            2m 30s | 150000
            140h 21m 10s. | 505270000
            1d 1h | 90000000
            1 hour 5 minutes | 3900000
            90s | 90000
            5s (request 7) | 5000
            1s 500ms | 1500
            1.242s. Visit https://example.com/limits to learn more. | 1242
            7m12.5s | 432500
            8s. | 8000
            a few minutes | -
            1.2.3s | -
            2 months | -
            30 requests | -
            soon | -
            99999999999999999h | -
            99999999999999999999s | -
        "##;
        for [time, wait] in rows(table) {
            for before in [BEFORE_RESET, BEFORE_NEXT_TRY] {
                let found = wait_after(before, &format!("Please {before}{time}"));
                let found = found.map(|wait| wait.as_millis().to_string());
                assert_eq!(found.unwrap_or_default(), wait, "{before} {time}");
            }
        }
    }

    #[test]
    fn the_retry_delay_in_the_body_of_googles_errors_is_read() {
        let body = |delay: &str| {
            format!(
                r#"{{"error":{{"code":429,"message":"x","details":[{{"@type":"y"}},{{"retryDelay":"{delay}"}}]}}}}"#
            )
        };
        for (delay, wait) in [
            ("34s", Some(34_000)),
            ("0.5s", Some(500)),
            ("soon", None),
            ("-1s", None),
            ("7", None),
        ] {
            let found = read(&body(delay)).and_then(|error| error.retry_after);
            assert_eq!(found, wait.map(Duration::from_millis), "{delay}");
        }
        // OpenRouter.
        let body = r#"{"error":{"message":"x","code":429,"metadata":{"raw":"y","retry_after_seconds":2.5}}}"#;
        let found = read(body).and_then(|error| error.retry_after);
        assert_eq!(found, Some(Duration::from_millis(2_500)));
    }
}
