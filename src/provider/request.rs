//! What a model is asked, in no dialect yet, and the HTTP request that a dialect makes of it.

use crate::message::Message;
use crate::secret::Secret;

/// What the model is asked, in no dialect yet.
#[derive(Debug)]
pub(crate) struct Prompt<'a> {
    pub(crate) model: &'a str,
    /// No system prompt is sent where this is empty.
    pub(crate) system: &'a str,
    /// Begins and ends with the user, and the roles alternate.
    pub(crate) messages: Vec<Message>,
    /// The most tokens that the answer may have; `None` leaves it to the API where the API allows that.
    pub(crate) max_tokens: Option<u64>,
    pub(crate) stream: bool,
}

/// How a server differs from others that speak its dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    /// Takes `stream_options`, and then tells the usage in a stream.
    pub(crate) stream_usage: bool,
    pub(crate) token_limit: TokenLimit,
}

/// The name of the field that limits an answer's tokens in the OpenAI dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenLimit {
    /// What most servers know.
    MaxTokens,
    /// What OpenAI's newer models demand in its place, and Mistral refuses.
    MaxCompletionTokens,
}

/// A request to a path below the client's address.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, Secret)>,
    /// JSON to be posted; `None` is a GET.
    pub(crate) body: Option<Vec<u8>>,
}

impl Request {
    /// The request with these headers too, in place of those that have the same name.
    pub(crate) fn with_headers(mut self, headers: &[(String, Secret)]) -> Request {
        self.headers.retain(|(name, _)| !headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        self.headers.extend_from_slice(headers);
        self
    }
}

/// The JSON of a request body.
pub(super) fn to_json(body: &impl serde::Serialize) -> Vec<u8> {
    // Fails only for maps whose keys are not text and for floats that are not numbers; bodies have neither.
    serde_json::to_vec(body).unwrap_or_default()
}
