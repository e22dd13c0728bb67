//! A tool server over HTTP: each message is a request, and its answer is JSON or a stream of events (Model Context
//! Protocol, streamable HTTP).

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;

use super::batch;
use super::events::{EventSender, reporting_strays};
use super::failure::{Evidence, Failure, FailureCause, Retry};
use super::lines::ReportLine;
use super::protocol::{Protocol, ServerEvent};
use super::revision::Revision;
use super::rpc::{INVALID_PARAMS, Id, MAX_MESSAGE, METHOD_NOT_FOUND};
use crate::provider::failure::{ErrorClass, judge};
use crate::provider::request::Request;
use crate::secret::{Secret, Secrets};
use crate::server::advice::INTERCEPTED;
use crate::server::body::ForeignBody;
use crate::server::client::{
    self, Client, Method, Response, StatusFailure, Timeouts, TransportError,
};
use crate::server::sse::SseParser;
use crate::server_url::Endpoint;
use crate::settings::ServerOrigin;
use crate::text::json;
use crate::text::size::in_units;
use crate::threads::{self, lock};

/// How much of an answer is read at once.
const READ_SIZE: usize = 64 << 10;

/// The header that names the session.
const SESSION: &str = "mcp-session-id";

/// How long the server may take for a message that it does not answer.
const NOTICE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the end of a session may take.
const SESSION_END_TIMEOUT: Duration = Duration::from_millis(200);

/// Entire error messages, lowercase, for an unknown session. Some that are no HTTP errors may be about another session, that of
/// a browser in a tool, so a message may say nothing more.
const LOST_SESSION: &[&str] = &[
    "session not found",
    "session expired",
    "session has expired",
    "session terminated",
    "session does not exist",
    "session id not found",
    "unknown session",
    "unknown session id",
    "invalid session",
    "invalid session id",
    "invalid or expired session",
    "invalid or missing session id",
    "no valid session id provided",
];

/// Substrings that mean an unknown session.
const LOST_MCP_SESSION: &[&str] = &["mcp-session-id", "mcp session"];

/// The message of a restarted server, which waits for the first request of a session.
const NOT_INITIALIZED: &str = "server not initialized";

/// Prefixes removed before the comparison.
const BEFORE_LOST_SESSION: &[&str] = &["bad request:", "not found:", "forbidden:", "error:"];

/// The longest error in a response without an error's status that is looked at for these, in bytes.
const MAX_SESSION_ERROR: usize = 4 << 10;

/// How much later than a call its connection times out, so that the message about the call is shown.
const CLOSED_AFTER: Duration = Duration::from_secs(1);

/// A server over HTTP, with all that a request to it needs.
pub struct Site {
    pub client: Client,
    pub url: Endpoint,
    pub origin: ServerOrigin,
    /// The headers of every request, with the key.
    pub headers: Vec<(String, Secret)>,
    /// Values that must not be shown, even if the server repeats them.
    pub keys: Secrets,
    /// How often a request that calls nothing is sent again.
    pub retries: u32,
}

/// How many answers to requests of a server wait to be sent.
const MAX_ANSWERS: usize = 64;

/// How many requests may have a thread at the same time: the one that q waits for, and those that it has given up and
/// whose connection has not ended yet.
const MAX_EXCHANGES: usize = 8;

/// A client of one server. Each request has a thread of its own, because bytes other than progress must not extend the
/// wait for its answer. One thread reads what the server asks, and one sends the answers.
#[derive(Clone)]
pub struct Http {
    sender: MessageSender,
    events: EventSender,
    report: ReportLine,
    /// The way to the thread that sends the answers, once there are any; `None` if it could not be started.
    answers: Arc<OnceLock<Option<SyncSender<Value>>>>,
    /// How many requests have a thread.
    exchanges: Arc<AtomicUsize>,
}

/// The way to send a message to the server.
#[derive(Clone)]
struct MessageSender {
    site: Arc<Site>,
    protocol: Arc<Mutex<Protocol>>,
    /// The server's name for the session, if it has sessions.
    session: Arc<OnceLock<Secret>>,
    /// Whether the server no longer knows it.
    is_session_lost: Arc<AtomicBool>,
}

impl MessageSender {
    /// Sends a message that the server does not answer. If that fails, the next request shows whether it matters.
    fn notify(&self, message: &Value) {
        let _ = self.post(message, within(NOTICE_TIMEOUT));
    }

    fn post(&self, message: &Value, limits: Timeouts) -> Result<Response, TransportError> {
        let body = message.to_string();
        self.request(Method::Post(body.as_bytes()), message, limits)
    }

    /// Sends a request. One without a message has null.
    fn request(
        &self,
        method: Method,
        message: &Value,
        limits: Timeouts,
    ) -> Result<Response, TransportError> {
        let site = &self.site;
        let path = site.url.path_and_query();
        let headers = self.headers(message);
        let client = &site.client;
        client.exchange(method, path, &headers, limits, &site.keys)
    }

    fn headers(&self, message: &Value) -> Vec<(String, Secret)> {
        let mut headers = self.site.headers.clone();
        let accepted = Secret::new("application/json, text/event-stream");
        headers.push(("accept".to_owned(), accepted));
        if let Some(id) = self.session.get() {
            headers.push((SESSION.to_owned(), id.clone()));
        }
        for (name, value) in lock(&self.protocol).headers(message) {
            headers.push((name, Secret::new(value)));
        }
        headers
    }
}

impl Http {
    /// Sends nothing yet.
    pub fn new(
        site: &Arc<Site>,
        protocol: &Arc<Mutex<Protocol>>,
        events: EventSender,
        report: &ReportLine,
    ) -> Http {
        Http {
            sender: MessageSender {
                site: Arc::clone(site),
                protocol: Arc::clone(protocol),
                session: Arc::default(),
                is_session_lost: Arc::default(),
            },
            events,
            report: Arc::clone(report),
            answers: Arc::default(),
            exchanges: Arc::default(),
        }
    }

    /// Returns a client of the same server that has no session yet.
    pub fn without_session(&self, protocol: &Arc<Mutex<Protocol>>, events: EventSender) -> Http {
        Http::new(&self.sender.site, protocol, events, &self.report)
    }

    /// How often a request that calls nothing is sent again.
    pub fn retries(&self) -> u32 {
        self.sender.site.retries
    }

    /// Says for `-v` that a request is sent again after this failure.
    pub fn report_retry(&self, failure: &Failure, wait: Duration) {
        let what = failure.cause.words();
        let seconds = wait.as_secs_f64();
        (self.report)(&format!("{what}; retrying in {seconds:.1} s"));
    }

    /// Whether the server no longer knows the session, so that another has to be begun before the next request.
    pub fn has_lost_session(&self) -> bool {
        self.sender.is_session_lost.load(Ordering::SeqCst)
    }

    /// Sends a message. The answer to a request is not waited for; it may take as long as `timeout`.
    pub fn send(&self, message: Value, timeout: Option<Duration>) -> Result<(), Failure> {
        let Some(id) = message["id"].as_u64() else {
            self.sender.notify(&message);
            return Ok(());
        };
        let Some(exchange) = OpenExchange::begin(&self.exchanges) else {
            return Err(Failure {
                has_ended_server: true,
                ..self.failure_of_server("keeps too many connections of earlier requests open")
            });
        };
        let this = self.clone();
        let started = threads::start(move || {
            let _counted = exchange;
            if let Err(failure) = this.exchange(&message, id, timeout) {
                this.events.fail_request(id, failure);
            }
        });
        started.map_err(|error| self.failure(FailureCause::Happened(error.to_string())))
    }

    /// Reads what the server of a session asks outside of its answers, so that it is refused at once. Many servers have no
    /// such stream.
    pub fn listen(&self) {
        if self.sender.session.get().is_none() {
            return;
        }
        let this = self.clone();
        // Without a thread, such a question takes as long as the server waits for its answer.
        let _ = threads::start(move || {
            let response = this
                .sender
                .request(Method::Get, &Value::Null, Timeouts::default());
            if let Ok(response) = response
                && is_stream(&response)
            {
                let _ = this.read_stream(response, None);
            }
        });
    }

    /// Ends the session, unless the server has. It may reject that.
    pub fn end(&self) {
        lock(&self.sender.protocol).close();
        if self.sender.session.get().is_some() && !self.has_lost_session() {
            let limits = within(SESSION_END_TIMEOUT);
            let _ = self.sender.request(Method::Delete, &Value::Null, limits);
        }
    }

    /// Returns why the server failed, and where it is.
    pub fn failure(&self, cause: FailureCause) -> Failure {
        Failure {
            evidence: self.address(),
            ..Failure::new(cause)
        }
    }

    fn failure_of_server(&self, what: impl Into<String>) -> Failure {
        self.failure(FailureCause::ServerDid(what.into()))
    }

    fn address(&self) -> Evidence {
        Evidence::Address(self.sender.site.url.to_string())
    }

    fn awaits(&self, id: Id) -> bool {
        lock(&self.sender.protocol).awaits(id)
    }

    /// Takes a message, or a batch of them, that came in the response to this request, or without one in a stream.
    fn receive(&self, received: &[u8], request: Option<Id>) {
        let Some(messages) = batch::messages_of(received) else {
            return self.receive_message(received, request);
        };
        for message in messages {
            self.receive_message(message.as_bytes(), request);
        }
    }

    /// Takes one message. A request of the server is answered on a thread, because the answer to q's own may have arrived already.
    fn receive_message(&self, message: &[u8], request: Option<Id>) {
        if request.is_some() && reports_lost_session(message) {
            self.note_lost_session();
        }
        let event = reporting_strays(&self.sender.protocol, &self.report, |protocol| {
            protocol.receive_over_http(message, request)
        });
        let is_flood = match event {
            Some(ServerEvent::Reply(answer)) => !self.answer(answer),
            Some(ServerEvent::Flood) => true,
            Some(event) => {
                self.events.pass(event);
                false
            }
            None => false,
        };
        if is_flood {
            lock(&self.sender.protocol).close();
            self.events.fail(Failure {
                evidence: self.address(),
                ..Failure::flood()
            });
        }
    }

    fn note_lost_session(&self) {
        if self.sender.session.get().is_some() {
            self.sender.is_session_lost.store(true, Ordering::SeqCst);
        }
    }

    /// Sends the answer to a request of the server. Returns false if too many wait already. Without a thread, the server
    /// gets no answer.
    fn answer(&self, answer: Value) -> bool {
        let start = || {
            let (queue, waiting) = mpsc::sync_channel(MAX_ANSWERS);
            let sender = self.sender.clone();
            let started = threads::start(move || {
                for next in waiting {
                    if lock(&sender.protocol).is_closed() {
                        return;
                    }
                    sender.notify(&next);
                }
            });
            started.is_ok().then_some(queue)
        };
        let queue = self.answers.get_or_init(start).as_ref();
        let sent = queue.map(|queue| queue.try_send(answer));
        !matches!(sent, Some(Err(TrySendError::Full(_))))
    }

    /// Sends a request, and passes on what the server answers.
    fn exchange(&self, message: &Value, id: Id, timeout: Option<Duration>) -> Result<(), Failure> {
        let limits = Timeouts {
            read: timeout.map(|timeout| timeout.saturating_add(CLOSED_AFTER)),
            ..Timeouts::default()
        };
        let response = match self.sender.post(message, limits) {
            Ok(response) => response,
            Err(error) => {
                if let TransportError::Status(failure) = &error {
                    if status_reports_lost_session(failure) {
                        self.note_lost_session();
                    }
                    // It may have the answer. If not, its status says what has failed.
                    if is_answer(failure) {
                        self.receive(failure.body.as_bytes(), Some(id));
                    }
                }
                return Err(self.explain(error));
            }
        };
        let session = response.header(SESSION);
        if !session.is_empty() {
            let _ = self.sender.session.set(Secret::new(session));
        }
        if is_stream(&response) {
            self.read_stream(response, Some(id))
        } else {
            self.read_json(response, id)
        }
    }

    fn read_json(&self, response: Response, id: Id) -> Result<(), Failure> {
        let content_type = response.content_type().to_owned();
        let is_json = response.media_type().contains("json");
        let mut body = Vec::new();
        let mut limited = response.body.take(MAX_MESSAGE as u64 + 1);
        let read = limited.read_to_end(&mut body);
        read.map_err(|error| self.read_failure(error))?;
        if body.len() > MAX_MESSAGE {
            return Err(self.too_long());
        }
        self.receive(&body, Some(id));
        if !self.awaits(id) {
            return Ok(());
        }
        let mut cause = FailureCause::ServerDid("sent no answer".to_owned());
        if !body.is_empty() && !is_json {
            let body = ForeignBody::of(&String::from_utf8_lossy(&body), &content_type);
            cause = FailureCause::Happened(body.words(&self.sender.site.keys));
        }
        Err(self.unanswered(cause, is_json))
    }

    /// Returns the failure of a response without the answer, and what it has instead.
    fn unanswered(&self, cause: FailureCause, shows_strays: bool) -> Failure {
        let mut failure = self.failure(cause);
        if shows_strays {
            failure.strays = lock(&self.sender.protocol).strays.full_summary(true);
        }
        failure
    }

    /// Reads a stream until the answer has arrived, or is no longer wanted; without a request to its end.
    fn read_stream(&self, mut response: Response, id: Option<Id>) -> Result<(), Failure> {
        let is_wanted = || match id {
            Some(id) => self.awaits(id),
            None => !lock(&self.sender.protocol).is_closed(),
        };
        let mut parser = SseParser::with_limit(MAX_MESSAGE);
        let mut buffer = vec![0; READ_SIZE];
        let mut has_ended = false;
        while is_wanted() {
            if has_ended {
                let what = "ended the stream before the answer".to_owned();
                return Err(self.unanswered(FailureCause::ServerDid(what), true));
            }
            let read = response.body.read(&mut buffer);
            let count = read.map_err(|error| self.read_failure(error))?;
            has_ended = count == 0;
            let mut message = |data: &str| self.receive(data.as_bytes(), id);
            let fed = if has_ended {
                parser.finish(&mut message)
            } else {
                parser.feed(&buffer[..count], &mut message)
            };
            if fed.is_err() {
                return Err(self.too_long());
            }
        }
        Ok(())
    }

    fn too_long(&self) -> Failure {
        self.failure_of_server(format!(
            "sent a message of more than {size}",
            size = in_units(MAX_MESSAGE)
        ))
    }

    fn read_failure(&self, error: std::io::Error) -> Failure {
        let failure = self.sender.site.client.connection_failure(error);
        Failure {
            // The headers have arrived, so the server may have done the work already.
            retry: None,
            ..self.explain(TransportError::Connection(failure))
        }
    }

    /// Returns the failure for a broken connection or a status other than success, with advice.
    fn explain(&self, error: TransportError) -> Failure {
        let (what, advice, retry) = match error {
            TransportError::Status(error) => {
                let words = error.error.words();
                (
                    client::with_status(Some(error.status), &words),
                    error.advice(self.advice(&error)),
                    retry_after(&error),
                )
            }
            TransportError::Connection(error) => {
                let retry = error.is_transient.then_some(Retry { asked: None });
                (error.cause, error.advice, retry)
            }
        };
        Failure {
            advice,
            retry,
            ..self.failure(FailureCause::Happened(what))
        }
    }

    /// Returns what to do about a status.
    fn advice(&self, error: &StatusFailure) -> Option<String> {
        let Site { url, origin, .. } = &*self.sender.site;
        let bridge = origin.bridge(&url.to_string());
        let url_key = origin.url_key();
        let check_url = format!("check {url_key}");
        if error.error.is_of_firewall(error.status) {
            return Some(format!("{INTERCEPTED}; {check_url}"));
        }
        Some(match error.status {
            401 | 403 => format!(
                "check the key: {}; to sign in by OAuth, which q cannot do, {bridge}",
                origin.credentials()
            ),
            404 | 405 if lock(&self.sender.protocol).revision == Revision::Unknown => {
                format!("{check_url}; if the server speaks only the older HTTP+SSE, {bridge}")
            }
            300..=399 => {
                let target = error.location.as_deref()?;
                format!("set {url_key} to {target}, because q does not follow redirects")
            }
            _ => return None,
        })
    }
}

/// A request that has a thread, or is about to get one. Dropping it makes room for another.
struct OpenExchange(Arc<AtomicUsize>);

impl OpenExchange {
    /// Counts a request, unless there are too many.
    fn begin(exchanges: &Arc<AtomicUsize>) -> Option<OpenExchange> {
        let before = exchanges.fetch_add(1, Ordering::Relaxed);
        let exchange = OpenExchange(Arc::clone(exchanges));
        (before < MAX_EXCHANGES).then_some(exchange)
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_stream(response: &Response) -> bool {
    response.media_type() == "text/event-stream"
}

/// Timeouts that give a request this long for everything.
fn within(time: Duration) -> Timeouts {
    Timeouts {
        total: Some(time),
        ..Timeouts::default()
    }
}

/// Returns whether the same request may succeed later. What holds for a request to a provider holds here, too.
fn retry_after(failure: &StatusFailure) -> Option<Retry> {
    let StatusFailure { status, error, .. } = failure;
    let meaning = judge(error, Some(*status), &Request::default());
    let may_pass = meaning == ErrorClass::Loading || meaning.may_pass(Some(*status));
    may_pass.then_some(Retry {
        asked: error.retry_after,
    })
}

/// Whether an HTTP error is the answer: a JSON-RPC error with a status.
fn is_answer(error: &StatusFailure) -> bool {
    let message: Value = json::parse(&error.body).unwrap_or_default();
    matches!(error.status, 400 | 404) && message["error"]["code"].is_i64()
}

/// Whether a response to a request of a session says that there is no such session. An unknown method, or a wrong parameter,
/// such as an unknown tool, may have the same status.
fn status_reports_lost_session(error: &StatusFailure) -> bool {
    let message: Value = json::parse(&error.body).unwrap_or_default();
    if is_about_request(&message) {
        return false;
    }
    match error.status {
        404 => true,
        400 | 403 => names_lost_session(&error.error.message),
        _ => false,
    }
}

/// Whether an error of JSON-RPC is about a request and not about its session.
fn is_about_request(message: &Value) -> bool {
    let code = message["error"]["code"].as_i64();
    matches!(code, Some(METHOD_NOT_FOUND | INVALID_PARAMS))
}

/// Whether a message is an error that says that there is no such session.
fn reports_lost_session(message: &[u8]) -> bool {
    if message.len() > MAX_SESSION_ERROR {
        return false;
    }
    let message: Value = json::parse(&String::from_utf8_lossy(message)).unwrap_or_default();
    let said = message["error"]["message"].as_str().unwrap_or_default();
    names_lost_session(said) && !is_about_request(&message)
}

/// Whether words say that there is no such session. Tools have sessions of their own, such as those of a browser, so nothing else
/// may be said.
fn names_lost_session(said: &str) -> bool {
    let said = said.to_lowercase();
    let mut words = said.trim();
    for beginning in BEFORE_LOST_SESSION {
        words = words.strip_prefix(beginning).unwrap_or(words).trim_start();
    }
    let words = words.trim_end_matches(['.', '!']);
    let names_session = LOST_MCP_SESSION.iter().any(|name| words.contains(name));
    LOST_SESSION.contains(&words) || words == NOT_INITIALIZED || names_session
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn an_error_about_the_session_is_distinguished_from_one_of_a_tool() {
        // What servers say in a response without an error's status.
        let table = r##"
            yes | {"jsonrpc":"2.0","id":3,"error":{"code":-32001,"message":"Session not found"}}
            yes | {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}
            yes | {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Unknown Mcp-Session-Id header"}}
            yes | {"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}
            yes | {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Session expired."}}
            no | {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Session not found"}}
            no | {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Session not found"}}
            no | {"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"browser session not found: tab 3"}}
            no | {"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"no"}}
            no | {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"Session not found"}],"isError":true}}
            no | {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"Session not found"}}
            no | Session not found
        "##;
        for [expected, message] in rows(table) {
            let found = reports_lost_session(message.as_bytes());
            assert_eq!(found, expected == "yes", "{message}");
        }
    }

    #[test]
    fn a_request_makes_room_for_another_however_it_ends() {
        let exchanges = Arc::default();
        let running: Vec<_> = (0..MAX_EXCHANGES)
            .map(|_| OpenExchange::begin(&exchanges).expect("room"))
            .collect();
        for _ in 0..2 {
            assert!(OpenExchange::begin(&exchanges).is_none());
        }
        drop(running);
        for _ in 0..=MAX_EXCHANGES {
            let exchange = OpenExchange::begin(&exchanges).expect("room");
            // As a thread that could not be started drops what it was to run.
            drop(move || drop(exchange));
        }
        assert_eq!(exchanges.load(Ordering::Relaxed), 0);
    }
}
