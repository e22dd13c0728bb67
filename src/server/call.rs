//! One call of a provider: the request goes out, pieces of the answer come in, and every failure is put into words.

use super::client::{Client, Response, Retry, TransportError};
use super::reading::{self, LONGEST_WHOLE, ReadError};
use super::stream;
use crate::address::Address;
use crate::error::{Error, Kind};
use crate::output::{Notes, OutputError};
use crate::provider::failure::{self, ServerError};
use crate::provider::reply::Reply;
use crate::provider::request::Request;
use crate::provider::{Api, Malformed};
use crate::secret::{self, Secret};

/// Whom to call, and what must not be shown.
pub(crate) struct Call<'a> {
    pub(crate) client: &'a Client,
    pub(crate) provider: &'a str,
    pub(crate) api: Api,
    pub(crate) address: &'a Address,
    pub(crate) secrets: Vec<Secret>,
    /// What to do about a key that is refused.
    pub(crate) key_advice: Option<String>,
    pub(crate) notes: &'a Notes,
}

/// The network or the provider failed.
#[derive(Debug)]
pub(crate) struct CallError {
    pub(crate) error: Error,
    /// The prompt is longer than the model's context.
    pub(crate) too_long: bool,
}

/// Why a call ended without a whole answer.
#[derive(Debug)]
pub(crate) enum CallEnd {
    Failed(CallError),
    /// Nobody takes the answer any more.
    Output(OutputError),
}

impl From<CallError> for CallEnd {
    fn from(failed: CallError) -> CallEnd {
        CallEnd::Failed(failed)
    }
}

impl CallError {
    fn advise(mut self, advice: Option<String>) -> CallError {
        self.error.advice = advice.or(self.error.advice);
        self
    }
}

impl Call<'_> {
    /// Asks, and hands on each piece of the answer as it comes, with whether it is the last. The reply has what was read so
    /// far, also on failure.
    ///
    /// # Errors
    /// Why the answer is incomplete, or what `take` returned.
    pub(crate) fn stream(
        &self,
        request: &Request,
        reply: &mut Reply,
        take: &mut dyn FnMut(&str, bool) -> Result<(), OutputError>,
    ) -> Result<(), CallEnd> {
        let Response { body, content_type } = self.send(request)?;
        reading::read_reply(self.api, body, reply, take).map_err(|error| match error {
            ReadError::Output(error) => CallEnd::Output(error),
            error => CallEnd::Failed(self.explain_reading(error, &content_type)),
        })
    }

    /// Asks for something that is not an answer, and returns the body.
    pub(crate) fn fetch(&self, request: &Request) -> Result<String, CallError> {
        let Response { body, content_type } = self.send(request)?;
        reading::read_text(body).map_err(|error| self.explain_reading(error, &content_type))
    }

    fn send(&self, request: &Request) -> Result<Response, CallError> {
        let sign = self.notes.sign();
        let waiting = format!("waiting for {}", self.provider);
        sign.wait_for(&waiting);
        let sent = self.client.send(request, |event| match event {
            Retry::Waits { failure, wait } => {
                let CallError { error, .. } = self.explain(failure.clone());
                self.notes.detail(|| format!("{error}; retrying in {:.1} s", wait.as_secs_f64()));
                sign.count_down("retrying", wait);
            }
            Retry::Sends => sign.wait_for(&waiting),
        });
        sent.map_err(|failure| self.explain(failure))
    }

    /// Puts into words why there is no complete answer.
    fn explain_reading(&self, error: ReadError, content_type: &str) -> CallError {
        let longest = stream::LONGEST;
        self.failed(match error {
            ReadError::Connection(error) => return self.explain(self.client.read_failure(error)),
            ReadError::Server(error) => return self.reported(error, None),
            ReadError::Malformed(malformed) => return self.malformed(&malformed),
            ReadError::LineTooLong => format!("a line of the stream has more than {longest} bytes"),
            ReadError::WholeTooLong => format!("what the server sent has more than {LONGEST_WHOLE} bytes"),
            ReadError::NoStream => format!("what the server sent is no event stream (its type is “{content_type}”)"),
            ReadError::EndedEarly => "the stream ended before the answer did".to_owned(),
            ReadError::Blocked(word) => format!("the provider blocked the answer ({word})"),
            ReadError::LimitBeforeText => {
                let advice = "the setting max_tokens (Q_MAX_TOKENS) raises it; reasoning counts too".to_owned();
                return self
                    .failed("the limit of tokens was used up before the first word".to_owned())
                    .advise(Some(advice));
            }
            ReadError::Empty(None) => "the answer is empty".to_owned(),
            ReadError::Empty(Some(word)) => format!("the answer is empty ({word})"),
            ReadError::Output(_) => "nobody takes the answer".to_owned(),
        })
    }

    /// Puts it into words that what has come is not what the dialect says.
    pub(crate) fn malformed(&self, error: &Malformed) -> CallError {
        self.failed(format!("what the server sent cannot be read ({})", error.0))
    }

    fn failed(&self, message: String) -> CallError {
        self.reported(ServerError { message, too_long: false, code: String::new() }, None)
    }

    fn reported(&self, error: ServerError, status: Option<u16>) -> CallError {
        let phrase = status.map_or_else(String::new, |status| {
            let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
            format!("{status} {}: ", reason.unwrap_or_default()).replace(" :", ":")
        });
        let message = format!("{}: {phrase}{} ({})", self.provider, error.message, self.address);
        let message = secret::redact(&message, &self.secrets);
        CallError { error: Error::new(Kind::Provider { status }, message), too_long: error.too_long }
    }

    /// Puts a failure of the connection, or a status that is no success, into words.
    fn explain(&self, failed: TransportError) -> CallError {
        match failed {
            TransportError::Connection { cause, advice, .. } => self.failed(cause).advise(advice),
            TransportError::Status { status, body, retry_after } => {
                // Before any of it is cut off, so that no part of a secret is left.
                let error = failure::read(&secret::redact(&body, &self.secrets));
                let error = error.unwrap_or_else(|| ServerError {
                    message: "the server says no more".to_owned(),
                    too_long: false,
                    code: String::new(),
                });
                let advice = match status {
                    _ if error.unknown_model(status) => {
                        Some(format!("q --models -p {} lists the models that it has", self.provider))
                    }
                    404 => Some(format!("check the base URL; and the model, with q --models -p {}", self.provider)),
                    401 | 403 => self.key_advice.clone(),
                    300..=399 => Some("redirects are not followed; set the base URL to where it leads".to_owned()),
                    429 | 500..=599 => retry_after
                        .filter(|wait| !wait.is_zero())
                        .map(|wait| format!("the server asks to try again in {} s", wait.as_secs())),
                    _ => None,
                };
                self.reported(error, Some(status)).advise(advice)
            }
        }
    }
}
