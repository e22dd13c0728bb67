//! The conversation with a tool server over HTTP: each message is a request, and its answer is JSON or a stream of
//! events (Model Context Protocol, streamable HTTP).

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::failure::{self, Failure, Lost};
use super::process::Report;
use super::protocol::{About, Event, Protocol};
use super::result::{self, Outcome};
use crate::address::Endpoint;
use crate::one_line::on_one_line;
use crate::provider;
use crate::secret::{self, Secret};
use crate::server::client::{self, COMPRESSED, Client, GZIP, Limits, Method, Response, TransportError};
use crate::server::retry;
use crate::server::stream::{self, BYTE_ORDER_MARK};
use crate::unix;

/// How much of an answer is read at once.
const READ_SIZE: usize = 64 << 10;

/// The most that an error quotes of an answer.
const LONGEST_QUOTE: usize = 200;

/// The headers that name the session, and the version of the protocol.
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// How long the server may take for a message that it does not answer.
const NOTICE: Duration = Duration::from_secs(10);

/// The same where q has nothing to gain from it.
const COURTESY: Duration = Duration::from_secs(2);

/// How long the end of a session may take.
pub(super) const GOODBYE: Duration = Duration::from_millis(200);

/// A server over HTTP, ready to be asked.
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) url: Endpoint,
    /// The headers of every request, with the key.
    pub(crate) headers: Vec<(String, Secret)>,
    /// What nobody else must see, even if the server repeats it.
    pub(crate) keys: Vec<Secret>,
    /// What to do if the server refuses the key, or the lack of one.
    pub(crate) key_advice: String,
}

impl Server {
    fn send(&self, method: Method, headers: &[(String, Secret)], limits: Limits) -> Result<Response, TransportError> {
        self.client.exchange(method, self.url.path_and_query(), headers, limits, &self.keys)
    }
}

/// A conversation. Servers start side by side, each on a thread.
pub(crate) struct Conversation {
    opening: Receiver<Result<Opened, Failure>>,
    since: Instant,
    session: Option<Session>,
}

/// A server that has listed its tools.
struct Opened {
    session: Session,
    about: About,
    at: Instant,
}

impl Conversation {
    /// Begins a conversation and does not wait for the server. It has `patience` to list its tools; `None` is for ever.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn open(server: &Arc<Server>, patience: Option<Duration>, report: Report) -> io::Result<Conversation> {
        let (sender, opening) = mpsc::channel();
        let since = Instant::now();
        let server = Arc::clone(server);
        unix::start_thread(move || {
            let opened = match Session::open(server, since, patience, report) {
                Err(Failed { cause: Cause::Silence, .. }) => return,
                opened => opened.map_err(|failed| failed.failure),
            };
            // Nobody waits any more.
            if let Err(SendError(Ok(opened))) = sender.send(opened) {
                opened.session.end();
            }
        })?;
        Ok(Conversation { opening, since, session: None })
    }

    /// What the server says about itself once its tools are listed, and when it had said it; `None` if that takes
    /// longer than `slice`.
    ///
    /// # Errors
    /// The server is too slow, refuses, or does not speak the protocol.
    pub(crate) fn wait(
        &mut self,
        name: &str,
        patience: Option<Duration>,
        slice: Duration,
    ) -> Option<Result<(About, Instant), Failure>> {
        let left = patience.map_or(Duration::MAX, |patience| patience.saturating_sub(self.since.elapsed()));
        let opened = match self.opening.recv_timeout(left.min(slice)) {
            Err(RecvTimeoutError::Timeout) if left > slice => return None,
            Err(_) => Err(Failure::too_slow(name, patience)),
            Ok(opened) => opened,
        };
        Some(opened.map(|Opened { session, about, at }| {
            self.session = Some(session);
            (about, at)
        }))
    }

    /// The outcome of a call, which may take `patience` until its answer, or from one report of progress to the next.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn call(
        &mut self,
        tool: &str,
        arguments: &Map<String, Value>,
        patience: Option<Duration>,
    ) -> Result<Outcome, Lost> {
        let Some(session) = &mut self.session else { return Err(Lost::Server(Failure::not_started())) };
        let (id, line) = session.protocol.call(tool, arguments);
        // On a thread, because other bytes than progress must not prolong the wait.
        let (sender, events) = mpsc::channel();
        let mut asking = Session { progress: Some(sender.clone()), ..session.clone() };
        let started = unix::start_thread(move || _ = sender.send(Some(asking.ask(&line, patience))));
        started.map_err(|error| Lost::Call(error.to_string().into()))?;
        loop {
            match events.recv_timeout(patience.unwrap_or(Duration::MAX)) {
                Ok(None) => (),
                Ok(Some(Ok(Event::Answer(_, answer)))) => return Ok(result::read(&answer)),
                // The protocol answers a call with nothing else.
                Ok(Some(Ok(_))) => return Err(Lost::Call("there is no result".to_owned().into())),
                Err(_) | Ok(Some(Err(Failed { cause: Cause::Silence, .. }))) => {
                    let line = session.protocol.cancel(id);
                    session.notify(&line, COURTESY);
                    return Ok(Outcome::failed(failure::no_answer(patience)));
                }
                Ok(Some(Err(Failed { cause: Cause::Forgotten, failure }))) => return Err(Lost::Session(failure)),
                Ok(Some(Err(Failed { failure, .. }))) => return Err(Lost::Call(failure)),
            }
        }
    }

    /// Ends the session, if there is one, on a thread that drops `is_open` when it has done so.
    pub(crate) fn end(&mut self, is_open: mpsc::Sender<()>) {
        let opened = || self.opening.try_recv().ok()?.ok();
        if let Some(session) = self.session.take().or_else(|| Some(opened()?.session)) {
            // Without a thread the server has to notice by itself.
            let _ = unix::start_thread(move || {
                session.end();
                drop(is_open);
            });
        }
    }
}

/// Why a message has no answer.
struct Failed {
    failure: Failure,
    cause: Cause,
}

enum Cause {
    /// Another try may succeed; the server may have said when.
    Passing(Option<Duration>),
    /// Nothing came for too long.
    Silence,
    /// The server does not know the session any more.
    Forgotten,
    Other,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Failed {
        Failed { failure, cause: Cause::Other }
    }
}

/// A session with a server, or only the way to it if it has no sessions.
#[derive(Clone)]
struct Session {
    server: Arc<Server>,
    protocol: Protocol,
    /// The server's name for the session.
    id: Option<Secret>,
    report: Report,
    /// Gets `None` for each report of progress.
    progress: Option<mpsc::Sender<Option<Result<Event, Failed>>>>,
}

impl Session {
    /// Starts a session and lists the tools.
    fn open(server: Arc<Server>, since: Instant, patience: Option<Duration>, report: Report) -> Result<Opened, Failed> {
        let (protocol, line) = Protocol::open(true);
        let mut session = Session { server, protocol, id: None, report, progress: None };
        let deadline = patience.and_then(|patience| since.checked_add(patience));
        match session.list(line, deadline, patience) {
            Ok(about) => Ok(Opened { session, about, at: Instant::now() }),
            Err(failed) => {
                // The server must not keep a session that nobody uses.
                session.end();
                Err(failed)
            }
        }
    }

    fn list(&mut self, first: String, deadline: Option<Instant>, silence: Option<Duration>) -> Result<About, Failed> {
        let mut line = first;
        loop {
            match self.ask_patiently(&line, deadline, silence)? {
                Event::Ask(next) => line = next,
                Event::Ready(about) => return Ok(about),
                Event::Unusable(reason) => return Err(self.failure(&reason).into()),
                // The protocol continues with nothing else.
                Event::Notify(_) | Event::Reply(_) | Event::Progress | Event::Answer(..) | Event::Detail(_) => {
                    return Err(self.failure("it did not list its tools").into());
                }
            }
        }
    }

    /// Asks, and asks again where another try may succeed in time. Not for calls, which a server may have run.
    fn ask_patiently(
        &mut self,
        line: &str,
        deadline: Option<Instant>,
        silence: Option<Duration>,
    ) -> Result<Event, Failed> {
        let mut tried = 0;
        loop {
            let began = Instant::now();
            let failed = match self.ask(line, silence) {
                Err(failed) if tried < self.server.client.retries() => failed,
                asked => return asked,
            };
            let wait = match failed.cause {
                Cause::Passing(asked) => retry::wait(tried, asked),
                _ => None,
            };
            // The user learns more from this failure than from one that the time cuts off.
            let took = began.elapsed();
            let is_in_time = |wait: &Duration| deadline.is_none_or(|deadline| Instant::now() + *wait + took < deadline);
            let Some(wait) = wait.filter(is_in_time) else { return Err(failed) };
            (self.report)(&format!("{}; retrying in {:.1} s", failed.failure, wait.as_secs_f64()));
            std::thread::sleep(wait);
            tried += 1;
        }
    }

    /// Sends a request, and returns the event in its answer.
    fn ask(&mut self, line: &str, silence: Option<Duration>) -> Result<Event, Failed> {
        let response = self.post(line, Limits { silence, total: None }).map_err(|error| self.explain(error))?;
        let id = response.header(SESSION);
        if self.id.is_none() && !id.is_empty() {
            self.id = Some(Secret::new(id));
        }
        if response.content_type().trim_start().to_ascii_lowercase().starts_with("text/event-stream") {
            self.read_stream(response)
        } else {
            self.read_json(response)
        }
    }

    fn read_json(&mut self, response: Response) -> Result<Event, Failed> {
        let content_type = response.content_type().to_owned();
        let mut body = Vec::new();
        let mut limited = response.body.take(stream::MAX_EVENT as u64 + 1);
        limited.read_to_end(&mut body).map_err(|error| self.cut_off(error))?;
        let events = match body.len() > stream::MAX_EVENT {
            true => self.protocol.receive_too_long(stream::MAX_EVENT),
            false => self.protocol.receive(body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&body)),
        };
        self.hear(events).ok_or_else(|| self.unexpected(&content_type, &body).into())
    }

    fn read_stream(&mut self, mut response: Response) -> Result<Event, Failed> {
        let mut parser = stream::Parser::default();
        let mut buffer = vec![0; READ_SIZE];
        loop {
            let count = response.body.read(&mut buffer).map_err(|error| self.cut_off(error))?;
            let mut events = Vec::new();
            let protocol = &mut self.protocol;
            let mut message = |data: &str| {
                events.extend(protocol.receive(data.as_bytes()));
                Ok(())
            };
            let read = match count {
                0 => parser.finish(&mut message),
                _ => parser.feed(&buffer[..count], &mut message),
            };
            if let Err(stream::TooLong) = read {
                events.extend(self.protocol.receive_too_long(stream::MAX_EVENT));
            }
            if let Some(event) = self.hear(events) {
                return Ok(event);
            }
            if count == 0 {
                return Err(self.failure("the stream ended before the answer").into());
            }
        }
    }

    /// Handles events up to the answer to what was asked, and returns that; events after it are dropped.
    fn hear(&self, events: Vec<Event>) -> Option<Event> {
        for event in events {
            match event {
                Event::Notify(line) => self.notify(&line, NOTICE),
                Event::Reply(line) => self.reply(line),
                Event::Detail(text) => (self.report)(&text),
                Event::Progress => _ = self.progress.as_ref().map(|progress| progress.send(None)),
                event => return Some(event),
            }
        }
        None
    }

    /// Sends a message that the server does not answer. If that fails, the next request shows whether it matters.
    fn notify(&self, line: &str, total: Duration) {
        if let Err(error) = self.post(line, Limits { silence: None, total: Some(total) }) {
            (self.report)(&self.explain(error).failure.to_string());
        }
    }

    /// Answers a request of the server on a thread, because the answer to q's own may have come already.
    fn reply(&self, line: String) {
        let (server, headers) = (Arc::clone(&self.server), self.headers(true));
        // Without a thread the server has to do without.
        let _ = unix::start_thread(move || {
            let limits = Limits { silence: None, total: Some(NOTICE) };
            let _ = server.send(Method::Post(line.as_bytes()), &headers, limits);
        });
    }

    fn post(&self, line: &str, limits: Limits) -> Result<Response, TransportError> {
        self.server.send(Method::Post(line.as_bytes()), &self.headers(true), limits)
    }

    /// Ends the session; a server may refuse that, or have ended it before.
    fn end(&self) {
        if self.id.is_some() {
            let limits = Limits { silence: None, total: Some(GOODBYE) };
            let _ = self.server.send(Method::Delete, &self.headers(false), limits);
        }
    }

    /// The headers of a request; those of the configuration replace q's own.
    fn headers(&self, is_post: bool) -> Vec<(String, Secret)> {
        let accept = is_post.then(|| ("accept", Secret::new("application/json, text/event-stream")));
        let version = Some(self.protocol.version()).filter(|version| !version.is_empty());
        let of_session = self.id.iter().map(|id| (SESSION, id.clone()));
        let of_version = version.map(|version| (VERSION, Secret::new(version)));
        let configured = &self.server.headers;
        let is_replaced = |name: &str| configured.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let own = accept.into_iter().chain(of_session).chain(of_version).filter(|(name, _)| !is_replaced(name));
        own.map(|(name, value)| (name.to_owned(), value)).chain(configured.iter().cloned()).collect()
    }

    /// What is wrong with JSON, or what should have been JSON, in which there is no answer.
    fn unexpected(&self, content_type: &str, body: &[u8]) -> Failure {
        let text = String::from_utf8_lossy(body);
        let beginning: String = text.trim().chars().take(LONGEST_QUOTE).collect();
        if body.starts_with(GZIP) {
            return self.failure(COMPRESSED);
        }
        self.failure(&match (body.trim_ascii().first(), provider::failure::title(&text)) {
            (None, _) => "the server sent no answer".to_owned(),
            (Some(b'{' | b'['), _) => format!("the server sent no answer, but {}", on_one_line(&beginning)),
            (_, Some(title)) => format!("the server sent an HTML page: “{title}”"),
            (_, None) => {
                format!("what the server sent is neither JSON nor an event stream (its type is “{content_type}”)")
            }
        })
    }

    /// Describes a failure while the body was read. The server may have done the work, so no other try may follow.
    fn cut_off(&self, error: io::Error) -> Failed {
        let failed = self.explain(self.server.client.read_failure(error));
        match failed.cause {
            Cause::Passing(_) => Failed { cause: Cause::Other, ..failed },
            _ => failed,
        }
    }

    fn failure(&self, what: &str) -> Failure {
        let what = secret::redact(what, &self.server.keys);
        Failure { address: Some(self.server.url.to_string()), ..what.into() }
    }

    /// Describes a failure of the connection, or a status other than success.
    fn explain(&self, error: TransportError) -> Failed {
        let TransportError { status, error, location, advice, may_pass, is_silence } = error;
        let failure = self.failure(&client::with_status(status, &error.words()));
        let cause = match status {
            None if is_silence => return Failed { failure, cause: Cause::Silence },
            Some(404) if self.id.is_some() => return Failed { failure, cause: Cause::Forgotten },
            _ if may_pass => Cause::Passing(error.retry_after),
            _ => Cause::Other,
        };
        let advice = advice.or_else(|| self.advice(status?, location, error.retry_after));
        Failed { failure: Failure { advice, ..failure }, cause }
    }

    /// What to do about a status.
    fn advice(&self, status: u16, location: Option<String>, retry_after: Option<Duration>) -> Option<String> {
        let bridge = format!("replace url with command = [\"npx\", \"mcp-remote\", \"{}\"]", self.server.url);
        Some(match status {
            401 | 403 => format!("{}\nq cannot sign in by OAuth; for that, {bridge}", self.server.key_advice),
            404 | 405 if self.protocol.version().is_empty() => {
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
