//! The conversation with a tool server over HTTP: each message is a request, and its answer is JSON or a stream of
//! events (Model Context Protocol, streamable HTTP).

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::failure::{self, Failure, Lost};
use super::process::Report;
use super::protocol::{About, Event, Protocol};
use super::result::{self, Outcome};
use crate::address::Endpoint;
use crate::provider;
use crate::secret::{self, Secret};
use crate::server::client::{self, Client, Limits, Method, Response, TransportError};
use crate::server::retry;
use crate::server::stream;
use crate::unix;

/// How much of an answer is read at once.
const READ_SIZE: usize = 64 << 10;

/// The headers that name the session, and the version of the protocol.
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// How long the server may take for a message whose answer does not matter.
const COURTESY: Limits = Limits { silence: None, total: Some(Duration::from_secs(2)) };

/// A server as it is configured.
pub(crate) struct Site {
    pub(crate) client: Client,
    pub(crate) url: Endpoint,
    /// The headers of every request, with the key.
    pub(crate) headers: Vec<(String, Secret)>,
    /// What must not be shown, even if the server repeats it.
    pub(crate) secrets: Vec<Secret>,
    /// What to do if the server refuses the key, or the lack of one.
    pub(crate) key_advice: String,
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
    /// Begins a conversation and does not wait for the server, which may be silent for `patience`.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn open(site: &Arc<Site>, patience: Option<Duration>, report: Report) -> std::io::Result<Conversation> {
        let (sender, opening) = mpsc::channel();
        let site = Arc::clone(site);
        unix::start_thread(move || _ = sender.send(Session::open(site, patience, report)))?;
        Ok(Conversation { opening, since: Instant::now(), session: None })
    }

    /// Waits until the tools are listed, and returns what the server says about itself, and when it had said it.
    ///
    /// # Errors
    /// The server is too slow, refuses, or does not speak the protocol.
    pub(crate) fn wait_until_ready(&mut self, patience: Option<Duration>) -> Result<(About, Instant), Failure> {
        let left = patience.map_or(Duration::MAX, |patience| patience.saturating_sub(self.since.elapsed()));
        let opened = self.opening.recv_timeout(left).map_err(|_| Failure::too_slow(patience))??;
        self.session = Some(opened.session);
        Ok((opened.about, opened.at))
    }

    /// The outcome of a call, during which the server may be silent for `patience`.
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
        match session.ask(&line, patience) {
            Ok(Event::Answer(_, answer)) => Ok(result::read(&answer)),
            Ok(_) => Err(Lost::Call("the server answered something else".to_owned().into())),
            Err(Failed { cause: Cause::Silence, .. }) => {
                let line = session.protocol.cancel(id);
                session.tell(&line, COURTESY);
                Ok(Outcome::failed(failure::no_answer(patience)))
            }
            Err(Failed { cause: Cause::Forgotten, failure }) => Err(Lost::Session(failure)),
            Err(Failed { failure, .. }) => Err(Lost::Call(failure)),
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

impl From<String> for Failed {
    fn from(what: String) -> Failed {
        Failed { failure: what.into(), cause: Cause::Other }
    }
}

/// A session with a server, or only its address if it has no sessions.
struct Session {
    site: Arc<Site>,
    protocol: Protocol,
    /// The server's name for the session.
    id: Option<Secret>,
    report: Report,
}

impl Session {
    /// Starts a session and lists the tools.
    fn open(site: Arc<Site>, patience: Option<Duration>, report: Report) -> Result<Opened, Failure> {
        let (protocol, mut line) = Protocol::open();
        let mut session = Session { site, protocol, id: None, report };
        loop {
            match session.ask_patiently(&line, patience).map_err(|failed| failed.failure)? {
                Event::Ask(next) => line = next,
                Event::Ready(about) => return Ok(Opened { session, about, at: Instant::now() }),
                Event::Unusable(reason) => return Err(reason.into()),
                Event::Tell(_) | Event::Answer(..) | Event::Detail(_) => {
                    return Err("did not say what it offers".to_owned().into());
                }
            }
        }
    }

    /// Asks, and asks again where another try may succeed. Not for calls, which a server may have run.
    fn ask_patiently(&mut self, line: &str, patience: Option<Duration>) -> Result<Event, Failed> {
        let mut tried = 0;
        loop {
            let failed = match self.ask(line, patience) {
                Err(failed) if tried < self.site.client.retries() => failed,
                asked => return asked,
            };
            let wait = match failed.cause {
                Cause::Passing(asked) => retry::wait(tried, asked),
                _ => None,
            };
            let Some(wait) = wait else { return Err(failed) };
            (self.report)(&format!("{}; retrying in {:.1} s", failed.failure, wait.as_secs_f64()));
            std::thread::sleep(wait);
            tried += 1;
        }
    }

    /// Sends a request, and returns the event that its answer is.
    fn ask(&mut self, line: &str, silence: Option<Duration>) -> Result<Event, Failed> {
        let sent = self.post(line, Limits { silence, total: None });
        let mut response = sent.map_err(|error| self.explain(error))?;
        let id = response.header(SESSION);
        if self.id.is_none() && !id.is_empty() {
            self.id = Some(Secret::new(id));
        }
        let content_type = response.content_type().to_ascii_lowercase();
        let is_stream = content_type.trim_start().starts_with("text/event-stream");
        let mut parser = stream::Parser::default();
        let mut whole = Vec::new();
        let mut buffer = vec![0; READ_SIZE];
        loop {
            let count = match response.body.read(&mut buffer) {
                Ok(count) => count,
                Err(error) => {
                    let failed = self.explain(self.site.client.read_failure(error));
                    // The headers have come, so the server may have done the work already.
                    return Err(match failed.cause {
                        Cause::Passing(_) => Failed { cause: Cause::Other, ..failed },
                        _ => failed,
                    });
                }
            };
            let ended = count == 0;
            let mut messages = Vec::new();
            let read = if is_stream {
                let mut message = |data: &str| {
                    messages.push(data.as_bytes().to_vec());
                    Ok(())
                };
                if ended { parser.finish(&mut message) } else { parser.feed(&buffer[..count], &mut message) }
            } else {
                whole.extend_from_slice(&buffer[..count]);
                if ended {
                    messages.push(std::mem::take(&mut whole));
                }
                if whole.len() > stream::LONGEST { Err(stream::TooLong) } else { Ok(()) }
            };
            for message in messages {
                let events = self.protocol.receive(&message);
                if let Some(event) = self.hear(events, silence) {
                    return Ok(event);
                }
                if !is_stream && !matches!(message.trim_ascii().first(), Some(b'{' | b'[')) {
                    return Err(self.unexpected(&content_type, &message));
                }
            }
            if read.is_err() {
                let events = self.protocol.receive_too_long(stream::LONGEST);
                if let Some(event) = self.hear(events, silence) {
                    return Ok(event);
                }
            }
            if ended {
                return Err(self.failed("the connection ended before the answer"));
            }
        }
    }

    /// Handles events, and returns the first that is an answer to what was asked.
    fn hear(&self, events: Vec<Event>, silence: Option<Duration>) -> Option<Event> {
        for event in events {
            match event {
                Event::Tell(line) => self.tell(&line, Limits { silence, total: None }),
                Event::Detail(text) => (self.report)(&text),
                event => return Some(event),
            }
        }
        None
    }

    /// Sends a message that the server does not answer. If it fails, the next request will say why.
    fn tell(&self, line: &str, limits: Limits) {
        if let Err(error) = self.post(line, limits) {
            (self.report)(&self.explain(error).failure.to_string());
        }
    }

    fn post(&self, line: &str, limits: Limits) -> Result<Response, TransportError> {
        let own = [("accept", Secret::new("application/json, text/event-stream"))];
        self.site.client.exchange(Method::Post(line.as_bytes()), self.path(), &self.headers(&own), limits)
    }

    /// Ends the session; a server may refuse that, or have ended it before.
    fn end(&self) {
        if self.id.is_some() {
            let _ = self.site.client.exchange(Method::Delete, self.path(), &self.headers(&[]), COURTESY);
        }
    }

    fn path(&self) -> &str {
        self.site.url.path_and_query()
    }

    /// The headers of a request; those of the configuration replace q's own.
    fn headers(&self, own: &[(&str, Secret)]) -> Vec<(String, Secret)> {
        let version = Some(self.protocol.version()).filter(|version| !version.is_empty());
        let of_session = self.id.iter().map(|id| (SESSION, id.clone()));
        let of_version = version.map(|version| (VERSION, Secret::new(version)));
        let is_replaced = |name: &str| self.site.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let own = own.iter().cloned().chain(of_session).chain(of_version).filter(|(name, _)| !is_replaced(name));
        own.map(|(name, value)| (name.to_owned(), value)).chain(self.site.headers.iter().cloned()).collect()
    }

    /// What is wrong with an answer that is not JSON.
    fn unexpected(&self, content_type: &str, body: &[u8]) -> Failed {
        if body.is_empty() {
            return self.failed("the connection ended before the answer");
        }
        self.failed(&match provider::failure::title(&String::from_utf8_lossy(body)) {
            Some(title) => format!("the server sent a page for browsers: “{title}”"),
            None => format!("what the server sent is neither JSON nor an event stream (its type is “{content_type}”)"),
        })
    }

    fn failed(&self, what: &str) -> Failed {
        let what = secret::redact(what, &self.site.secrets);
        format!("{what} ({})", self.site.url).into()
    }

    /// Describes a failure of the connection, or a status other than success.
    fn explain(&self, error: TransportError) -> Failed {
        let may_pass = error.may_pass();
        match error {
            TransportError::Connection { is_silence: true, cause, .. } => {
                Failed { cause: Cause::Silence, ..self.failed(&cause) }
            }
            TransportError::Connection { cause, advice, .. } => {
                let Failed { failure, .. } = self.failed(&cause);
                let cause = if may_pass { Cause::Passing(None) } else { Cause::Other };
                Failed { failure: Failure { advice, ..failure }, cause }
            }
            TransportError::Status { status, body, retry_after, location } => {
                // Redact before anything is cut off, so that no part of a secret is left.
                let said = provider::failure::read(&secret::redact(&body, &self.site.secrets));
                let said = said.map_or_else(|| "the server gives no reason".to_owned(), |error| error.message);
                let Failed { failure, .. } = self.failed(&format!("{}{said}", client::status_words(status)));
                let cause = match status {
                    404 if self.id.is_some() => Cause::Forgotten,
                    _ if may_pass => Cause::Passing(retry_after),
                    _ => Cause::Other,
                };
                let advice = self.advice(status, location, retry_after);
                Failed { failure: Failure { advice, ..failure }, cause }
            }
        }
    }

    /// What to do about a status.
    fn advice(&self, status: u16, location: Option<String>, retry_after: Option<Duration>) -> Option<String> {
        let bridge = format!("command = [\"npx\", \"mcp-remote\", \"{}\"]", self.site.url);
        match status {
            401 | 403 => {
                Some(format!("{}\nq cannot sign in by OAuth; in place of url, {bridge} can", self.site.key_advice))
            }
            404 | 405 => Some(format!(
                "check the url\nif the server only speaks the older HTTP with SSE: in place of url, {bridge}"
            )),
            300..=399 => Some(match location.as_deref().and_then(|location| location.split('?').next()) {
                Some(location) => format!("q does not follow redirects; set url to {location}"),
                None => "q does not follow redirects; set url to the new address".to_owned(),
            }),
            429 | 500..=599 => retry_after
                .filter(|wait| !wait.is_zero())
                .map(|wait| format!("the server asks to try again in {} s", wait.as_secs())),
            _ => None,
        }
    }
}
