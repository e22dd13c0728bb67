//! A tool server over HTTP: each message is a request, and its answer is JSON or a stream of events (Model Context
//! Protocol, streamable HTTP).

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::listener::Listener;
use super::outcome::{Failure, FailureScope};
use crate::address::Endpoint;
use crate::one_line::on_one_line;
use crate::provider;
use crate::secret::{self, Secret};
use crate::server::client::{
    self, COMPRESSED, Client, GZIP, Limits, Method, Response, TransportError,
};
use crate::server::retry;
use crate::server::stream::{self, BYTE_ORDER_MARK, TooLong};
use crate::threads::{self, lock};

/// How much of an answer is read at once.
const READ_SIZE: usize = 64 << 10;

/// The most that an error quotes of an answer.
const MAX_QUOTE: usize = 200;

/// The header that names the session.
const SESSION: &str = "mcp-session-id";

/// The method that is not tried again, because the server may have run it.
const CALL: &str = "tools/call";

/// How long the server may take for a message that it does not answer.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the end of a session may take.
const SESSION_END_TIMEOUT: Duration = Duration::from_millis(200);

/// How much later than a call its connection times out, so that the message about the call is shown.
const CLOSED_AFTER: Duration = Duration::from_secs(1);

/// A server over HTTP, ready to be asked.
pub(crate) struct Site {
    pub(crate) client: Client,
    pub(crate) url: Endpoint,
    /// The headers of every request, with the key.
    pub(crate) headers: Vec<(String, Secret)>,
    /// Values that must not be shown, even if the server repeats them.
    pub(crate) keys: Vec<Secret>,
    /// What to do if the server refuses the key, or the lack of one.
    pub(crate) key_advice: String,
}

/// The way to a server. Each request has a thread, because bytes other than progress must not extend the wait for its
/// answer.
#[derive(Clone)]
pub(super) struct Http {
    site: Arc<Site>,
    listener: Listener,
    /// The server's name for the session, if it has sessions.
    session: Arc<Mutex<Option<Secret>>>,
    /// Until then the tools must be listed.
    deadline: Option<Instant>,
    start: Option<Duration>,
    timeout: Option<Duration>,
}

impl Http {
    /// The way to a server. Nothing is sent yet.
    pub(super) fn new(
        site: Arc<Site>,
        listener: Listener,
        [start, timeout]: [Option<Duration>; 2],
    ) -> Http {
        let deadline = start.and_then(|start| Instant::now().checked_add(start));
        Http {
            site,
            listener,
            session: Arc::default(),
            deadline,
            start,
            timeout,
        }
    }

    /// Sends a message. The answer to a request is not waited for.
    pub(super) fn send(&self, message: Value) {
        if message["id"].is_null() {
            return self.notify(&message);
        }
        let this = self.clone();
        let asked = threads::start(move || {
            let error = this.exchange(&message).err();
            // A session that the server has forgotten need not be ended.
            if error
                .as_ref()
                .is_some_and(|error| error.scope == FailureScope::Session)
            {
                lock(&this.session).take();
            }
            if let Some(error) = error.filter(|_| this.listener.protocol().awaits(&message["id"])) {
                let _ = this.listener.events.send(Err(error));
            }
        });
        if let Err(error) = asked {
            let _ = self
                .listener
                .events
                .send(Err(Failure::new(error.to_string())));
        }
    }

    /// Sends a message that the server does not answer. If that fails, the next request shows whether it matters.
    fn notify(&self, message: &Value) {
        if let Err(error) = self.post(
            message,
            Limits {
                silence: None,
                total: Some(NOTICE_TIMEOUT),
            },
        ) {
            (self.listener.report)(&self.explain(error).to_string());
        }
    }

    /// Ends the session; a server may refuse that, or have ended it before.
    pub(super) fn end(&self) {
        let headers = self.headers(&Value::Null);
        if lock(&self.session).take().is_some() {
            let limits = Limits {
                silence: None,
                total: Some(SESSION_END_TIMEOUT),
            };
            let path = self.site.url.path_and_query();
            let _ =
                self.site
                    .client
                    .exchange(Method::Delete, path, &headers, limits, &self.site.keys);
        }
    }

    /// What went wrong, and where.
    pub(super) fn failure(&self, what: &str) -> Failure {
        let what = secret::redact(what, &self.site.keys);
        Failure {
            address: Some(self.site.url.to_string()),
            ..Failure::new(what)
        }
    }

    /// Takes a message, and returns whether it was the answer. A request of the server is answered on a thread, because the
    /// answer to q's own may have come already.
    fn receive(&self, message: Result<&[u8], TooLong>) -> bool {
        let events = match message {
            Ok(bytes) => self.listener.protocol().receive(bytes),
            Err(TooLong) => self.listener.protocol().receive_too_long(stream::MAX_EVENT),
        };
        self.listener.dispatch(events, |message| {
            let this = self.clone();
            // Without a thread, the server gets no answer.
            let _ = threads::start(move || this.notify(&message));
        })
    }

    /// Sends a request, and hands on what the server answers.
    fn exchange(&self, message: &Value) -> Result<(), Failure> {
        // A server that does not know a request may refuse it so; if there is a session, it may have forgotten the session,
        // unless it names the request.
        let refuses = |status: u16, body: &str| match error_for(body) {
            Some(id) => lock(&self.session).is_none() || (status == 400 && id == message["id"]),
            None => false,
        };
        let response = match self.post_patiently(message) {
            Err(TransportError {
                status: Some(status @ (400 | 404)),
                body,
                ..
            }) if refuses(status, &body) => {
                self.receive(Ok(body.as_bytes()));
                return Ok(());
            }
            posted => posted.map_err(|error| self.explain(error))?,
        };
        let id = response.header(SESSION);
        if !id.is_empty() {
            lock(&self.session).get_or_insert_with(|| Secret::new(id));
        }
        match response
            .content_type()
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("text/event-stream")
        {
            true => self.read_stream(response, &message["id"]),
            false => self.read_json(response),
        }
    }

    /// Sends a request, and again if another try may succeed in time; but not a call, which may have run.
    fn post_patiently(&self, message: &Value) -> Result<Response, TransportError> {
        let is_call = message["method"] == CALL;
        let patience = if is_call { self.timeout } else { self.start };
        let limits = Limits {
            silence: patience.map(|patience| patience.saturating_add(CLOSED_AFTER)),
            total: None,
        };
        let mut tried = 0;
        loop {
            let began = Instant::now();
            let error = match self.post(message, limits) {
                Err(error) if !is_call && error.may_pass && tried < self.site.client.retries() => {
                    error
                }
                posted => return posted,
            };
            // This failure says more than a time-out would.
            let took = began.elapsed();
            let is_in_time = |wait: &Duration| {
                self.deadline
                    .is_none_or(|end| Instant::now() + *wait + took < end)
            };
            let Some(wait) = retry::wait(tried, error.error.retry_after).filter(is_in_time) else {
                return Err(error);
            };
            let failure = self.failure(&client::with_status(error.status, &error.error.words()));
            (self.listener.report)(&format!(
                "{failure}; retrying in {:.1} s",
                wait.as_secs_f64()
            ));
            std::thread::sleep(wait);
            tried += 1;
        }
    }

    fn post(&self, message: &Value, limits: Limits) -> Result<Response, TransportError> {
        let (body, path) = (message.to_string(), self.site.url.path_and_query());
        self.site.client.exchange(
            Method::Post(body.as_bytes()),
            path,
            &self.headers(message),
            limits,
            &self.site.keys,
        )
    }

    /// The headers of a request; configured ones replace q's own. The end of a session has no message, which is null.
    fn headers(&self, message: &Value) -> Vec<(String, Secret)> {
        let accept = (
            "accept".to_owned(),
            Secret::new("application/json, text/event-stream"),
        );
        let session = lock(&self.session)
            .clone()
            .map(|id| (SESSION.to_owned(), id));
        let of_protocol = self.listener.protocol().headers(message).into_iter();
        let own = (!message.is_null())
            .then_some(accept)
            .into_iter()
            .chain(session);
        let own = own.chain(of_protocol.map(|(name, value)| (name, Secret::new(value))));
        let configured = &self.site.headers;
        let is_replaced = |name: &str| {
            configured
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        own.filter(|(name, _)| !is_replaced(name))
            .chain(configured.iter().cloned())
            .collect()
    }

    fn read_json(&self, response: Response) -> Result<(), Failure> {
        let content_type = response.content_type().to_owned();
        let mut body = Vec::new();
        let mut limited = response.body.take(stream::MAX_EVENT as u64 + 1);
        limited
            .read_to_end(&mut body)
            .map_err(|error| self.explain(self.site.client.read_failure(error)))?;
        let is_too_long = body.len() > stream::MAX_EVENT;
        let message = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&body);
        match self.receive(if is_too_long {
            Err(TooLong)
        } else {
            Ok(message)
        }) {
            true => Ok(()),
            false => Err(self.unexpected(&content_type, &body)),
        }
    }

    /// Reads a stream up to the answer, or until that is no longer wanted.
    fn read_stream(&self, mut response: Response, id: &Value) -> Result<(), Failure> {
        let mut parser = stream::Parser::default();
        let mut buffer = vec![0; READ_SIZE];
        while self.listener.protocol().awaits(id) {
            let count = response.body.read(&mut buffer);
            let count =
                count.map_err(|error| self.explain(self.site.client.read_failure(error)))?;
            let mut is_answered = false;
            let mut message = |data: &str| {
                is_answered |= self.receive(Ok(data.as_bytes()));
                Ok(())
            };
            let read = match count {
                0 => parser.finish(&mut message),
                _ => parser.feed(&buffer[..count], &mut message),
            };
            if is_answered || read.is_err_and(|too_long| self.receive(Err(too_long))) {
                break;
            }
            if count == 0 {
                return Err(self.failure("the stream ended before the answer"));
            }
        }
        Ok(())
    }

    /// What is wrong with a body that contains no answer.
    fn unexpected(&self, content_type: &str, body: &[u8]) -> Failure {
        if body.starts_with(GZIP) {
            return self.failure(COMPRESSED);
        }
        // A key that was cut would not be recognized.
        let text = secret::redact(&String::from_utf8_lossy(body), &self.site.keys);
        let beginning: String = text.trim().chars().take(MAX_QUOTE).collect();
        self.failure(&match (body.trim_ascii().first(), provider::failure::title(&text)) {
            (None, _) => "the server sent no answer".to_owned(),
            (Some(b'{' | b'['), _) => format!("the server sent no answer, but {}", on_one_line(&beginning)),
            (_, Some(title)) => format!("the server sent an HTML page: “{title}”"),
            (_, None) => {
                format!("the response is neither JSON nor an event stream (content type “{content_type}”)")
            }
        })
    }

    /// Describes a failure of the connection, or a status other than success.
    fn explain(&self, error: TransportError) -> Failure {
        let TransportError {
            status,
            error,
            location,
            advice,
            ..
        } = error;
        let failure = self.failure(&client::with_status(status, &error.words()));
        if status == Some(404) && lock(&self.session).is_some() {
            return Failure {
                scope: FailureScope::Session,
                ..failure
            };
        }
        let advice = advice.or_else(|| self.advice(status?, location, error.retry_after));
        Failure { advice, ..failure }
    }

    /// What to do about a status.
    fn advice(
        &self,
        status: u16,
        location: Option<String>,
        retry_after: Option<Duration>,
    ) -> Option<String> {
        let bridge = format!(
            "replace url with command = [\"npx\", \"mcp-remote\", \"{}\"]",
            self.site.url
        );
        Some(match status {
            401 | 403 => format!(
                "{}\nq cannot sign in by OAuth; for that, {bridge}",
                self.site.key_advice
            ),
            404 | 405 if self.listener.protocol().revision().is_empty() => {
                format!("check the url\nif the server speaks only the older HTTP+SSE, {bridge}")
            }
            300..=399 => {
                let to = location.unwrap_or_else(|| "the new address".to_owned());
                format!("q does not follow redirects; set url to {to}")
            }
            429 | 500..=599 => retry::advice(retry_after)?,
            _ => return None,
        })
    }
}

/// Which request a body answers, if it is a JSON-RPC error, as servers of this protocol send it with a status.
fn error_for(body: &str) -> Option<Value> {
    let mut message: Value = serde_json::from_str(body).ok()?;
    message["error"]["code"]
        .is_i64()
        .then(|| message["id"].take())
}
