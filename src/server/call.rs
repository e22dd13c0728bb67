//! One call of a provider: the request goes out, pieces of the answer come in, and every failure is put into words.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use super::client::{Client, Failure, Response, Retry};
use super::stream::{self, TooLong};
use crate::address::Address;
use crate::error::{Error, Kind};
use crate::output::{Broken, Notes};
use crate::provider::failure::{self, Failure as Told};
use crate::provider::reply::{Finish, Reply};
use crate::provider::request::Request;
use crate::provider::{Api, Malformed};
use crate::secret::{self, Secret};

/// How long the end of a stream may stay away once the model has said that it is done.
const TAIL: Duration = Duration::from_secs(2);

/// How much is read at once; one write to standard output follows each read.
const READ_SIZE: usize = 64 << 10;

/// The most bytes that an answer in one piece may have.
const LONGEST_WHOLE: usize = stream::LONGEST;

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
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// The prompt is longer than the model's context.
    pub(crate) too_long: bool,
}

/// Why a call ended without a whole answer.
#[derive(Debug)]
pub(crate) enum Ended {
    Failed(Failed),
    /// Nobody takes the answer any more.
    Output(Broken),
}

impl From<Failed> for Ended {
    fn from(failed: Failed) -> Ended {
        Ended::Failed(failed)
    }
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Ended {
        Ended::Output(broken)
    }
}

impl Failed {
    fn advise(mut self, advice: Option<String>) -> Failed {
        self.error.advice = advice.or(self.error.advice);
        self
    }
}

impl Call<'_> {
    /// Asks, and hands on each piece of the answer as it comes, with whether it is the last. The reply has what was read so
    /// far, also on failure.
    ///
    /// # Errors
    /// Why the answer is not whole, or what `piece` returned.
    pub(crate) fn ask(
        &self,
        request: &Request,
        reply: &mut Reply,
        piece: &mut dyn FnMut(&str, bool) -> Result<(), Broken>,
    ) -> Result<(), Ended> {
        let response = self.send(request)?;
        let mut body = Body::new(response.body);
        // Servers that are busy send blank lines to keep the connection alive.
        while body.fill(None).map_err(|error| self.explain(self.client.read_failure(error)))? > 0 {
            if !body.beginning().is_empty() {
                break;
            }
        }
        // Some servers answer in one piece though a stream was asked for; no stream begins like that.
        if matches!(body.beginning().first(), Some(b'{' | b'[')) {
            let text = self.collect(body)?;
            let text = text.trim_start_matches('\u{feff}');
            self.api.read_whole(text, reply).map_err(|error| match failure::told_in(text) {
                Some(told) => self.told(told, None),
                None => self.malformed(&error),
            })?;
            let whole = reply.is_whole();
            piece(reply.take_fresh(), whole)?;
        } else {
            self.read_stream(body, &response.content_type, reply, piece)?;
        }
        Ok(self.judge(reply)?)
    }

    /// Asks for something that is not an answer, and returns the body.
    pub(crate) fn fetch(&self, request: &Request) -> Result<String, Failed> {
        let response = self.send(request)?;
        self.collect(Body::new(response.body))
    }

    fn send(&self, request: &Request) -> Result<Response, Failed> {
        let sign = self.notes.sign();
        let waiting = format!("waiting for {}", self.provider);
        sign.wait_for(&waiting);
        let sent = self.client.send(request, |event| match event {
            Retry::Waits { failure, wait } => {
                let Failed { error, .. } = self.explain(failure.clone());
                self.notes.detail(|| format!("{error}; retrying in {:.1} s", wait.as_secs_f64()));
                sign.count_down("retrying", wait);
            }
            Retry::Sends => sign.wait_for(&waiting),
        });
        sent.map_err(|failure| self.explain(failure))
    }

    fn collect(&self, mut body: Body) -> Result<String, Failed> {
        let mut bytes = body.bytes().to_vec();
        while body.fill(None).map_err(|error| self.explain(self.client.read_failure(error)))? > 0 {
            bytes.extend_from_slice(body.bytes());
            if bytes.len() > LONGEST_WHOLE {
                return Err(self.failed(format!("what the server sent has more than {LONGEST_WHOLE} bytes")));
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn read_stream(
        &self,
        mut body: Body,
        content_type: &str,
        reply: &mut Reply,
        piece: &mut dyn FnMut(&str, bool) -> Result<(), Broken>,
    ) -> Result<(), Ended> {
        let mut parser = stream::Parser::default();
        let mut events = 0_usize;
        let mut over = None;
        loop {
            let mut event = |data: &str| {
                events += 1;
                // What follows the end is no part of the answer.
                if reply.ended() { Ok(()) } else { self.api.read_event(data, reply).map_err(Unreadable::Event) }
            };
            let read = match over {
                None => parser.feed(body.bytes(), &mut event),
                Some(_) => parser.finish(&mut event),
            };
            let whole = reply.is_whole();
            piece(reply.take_fresh(), whole)?;
            match read {
                Ok(()) => {}
                // Of an event that was cut off nothing is to be expected; why it was cut off is told below.
                Err(Unreadable::Event(_)) if over.is_some() => {}
                Err(Unreadable::Event(error)) => return Err(self.malformed(&error).into()),
                Err(Unreadable::TooLong) => {
                    return Err(self
                        .failed(format!("a line of the stream has more than {} bytes", stream::LONGEST))
                        .into());
                }
            }
            if reply.ended() || reply.failure().is_some() {
                return Ok(());
            }
            if let Some(over) = over {
                if reply.finished().is_some() {
                    reply.end();
                    return Ok(piece(reply.take_fresh(), true)?);
                }
                let failed = match over {
                    Err(error) => self.explain(self.client.read_failure(error)),
                    Ok(()) if events == 0 => {
                        self.failed(format!("what the server sent is no event stream (its type is “{content_type}”)"))
                    }
                    Ok(()) => self.failed("the stream ended before the answer did".to_owned()),
                };
                return Err(failed.into());
            }
            over = match body.fill(reply.finished().map(|_| TAIL)) {
                Ok(0) => Some(Ok(())),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            };
        }
    }

    /// Whether what has come is an answer.
    fn judge(&self, reply: &Reply) -> Result<(), Failed> {
        if let Some(told) = reply.failure() {
            return Err(self.told(told.clone(), None));
        }
        match reply.finished() {
            Some(Finish::Blocked(word)) => Err(self.failed(format!("the provider blocked the answer ({word})"))),
            Some(Finish::Length) if reply.text().trim().is_empty() => Err(self
                .failed("the limit of tokens was used up before the first word".to_owned())
                .advise(Some("the setting max_tokens (Q_MAX_TOKENS) raises it; reasoning counts too".to_owned()))),
            finish if reply.text().trim().is_empty() => {
                let reason = finish.map_or_else(String::new, |finish| format!(" ({})", finish.word()));
                Err(self.failed(format!("the answer is empty{reason}")))
            }
            _ => Ok(()),
        }
    }

    /// Puts it into words that what has come is not what the dialect says.
    pub(crate) fn malformed(&self, error: &Malformed) -> Failed {
        self.failed(format!("what the server sent cannot be read ({})", error.0))
    }

    fn failed(&self, message: String) -> Failed {
        self.told(Told { message, too_long: false, code: String::new() }, None)
    }

    fn told(&self, told: Told, status: Option<u16>) -> Failed {
        let phrase = status.map_or_else(String::new, |status| {
            let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
            format!("{status} {}: ", reason.unwrap_or_default()).replace(" :", ":")
        });
        let message = format!("{}: {phrase}{} ({})", self.provider, told.message, self.address);
        let message = secret::redact(&message, &self.secrets);
        Failed { error: Error::new(Kind::Provider { status }, message), too_long: told.too_long }
    }

    /// Puts a failure of the connection, or a status that is no success, into words.
    fn explain(&self, failed: Failure) -> Failed {
        match failed {
            Failure::Connection { cause, advice, .. } => self.failed(cause).advise(advice),
            Failure::Status { status, body, retry_after } => {
                // Before any of it is cut off, so that no part of a secret is left.
                let told = failure::read(&secret::redact(&body, &self.secrets));
                let told = told.unwrap_or_else(|| Told {
                    message: "the server says no more".to_owned(),
                    too_long: false,
                    code: String::new(),
                });
                let advice = match status {
                    _ if told.unknown_model(status) => {
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
                self.told(told, Some(status)).advise(advice)
            }
        }
    }
}

/// Why the events of a stream could not be read.
enum Unreadable {
    Event(Malformed),
    TooLong,
}

impl From<TooLong> for Unreadable {
    fn from(_: TooLong) -> Unreadable {
        Unreadable::TooLong
    }
}

/// The body of a response, as it arrives.
struct Body {
    source: Source,
    buffer: Vec<u8>,
    filled: usize,
}

enum Source {
    Direct(Box<dyn Read + Send>),
    /// Read by a thread of its own, so that waiting for it can be given up.
    Thread(Receiver<io::Result<Vec<u8>>>),
}

impl Body {
    fn new(reader: Box<dyn Read + Send>) -> Body {
        Body { source: Source::Direct(reader), buffer: vec![0; READ_SIZE], filled: 0 }
    }

    /// Waits for more. Returns how much has come: nothing at the end, nor where the limit passes before anything comes.
    fn fill(&mut self, limit: Option<Duration>) -> io::Result<usize> {
        self.filled = 0;
        if let (Source::Direct(_), Some(_)) = (&self.source, limit) {
            self.hand_over();
        }
        self.filled = match &mut self.source {
            Source::Direct(reader) => reader.read(&mut self.buffer)?,
            Source::Thread(arriving) => match arriving.recv_timeout(limit.unwrap_or(TAIL)) {
                Ok(bytes) => {
                    self.buffer = bytes?;
                    self.buffer.len()
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => 0,
            },
        };
        Ok(self.filled)
    }

    /// What the last call of `fill` brought.
    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// The same without what may stand before anything: a byte order mark and white space.
    fn beginning(&self) -> &[u8] {
        let bytes = self.bytes();
        bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start()
    }

    /// The client's time-outs cannot be changed on the way, but a thread can be left behind.
    fn hand_over(&mut self) {
        let (send, arriving) = mpsc::channel();
        let Source::Direct(mut reader) = std::mem::replace(&mut self.source, Source::Thread(arriving)) else { return };
        // Where there are no more threads the end is taken to have come.
        let _ = std::thread::Builder::new().spawn(move || {
            let mut buffer = vec![0; READ_SIZE];
            loop {
                let read = reader.read(&mut buffer).map(|count| buffer[..count].to_vec());
                let last = !matches!(&read, Ok(bytes) if !bytes.is_empty());
                if send.send(read).is_err() || last {
                    return;
                }
            }
        });
    }
}
