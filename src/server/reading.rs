//! Reads the body of a response as it arrives, piece by piece, and finds out how the answer ends.

use std::io::{self, Read};
use std::mem;
use std::time::{Duration, Instant};

use super::client::Response;
use super::sse::{self, MAX_EVENT, SseParser, TooLong};
use crate::provider::failure;
use crate::provider::reply::{Piece, Reply};
use crate::provider::{Dialect, ReplyError};
use crate::threads::lock;

/// How long no data may come once the model has said that it is done: after that the stream has ended.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the rest of a body may take after the terminal event: no longer than another connection would.
const REST_TIMEOUT: Duration = Duration::from_millis(100);

/// How much is read at once; one write to standard output follows each read.
const READ_SIZE: usize = 16 << 10;

/// Why there is no complete answer.
#[derive(Debug)]
pub enum ReadError {
    Connection(io::Error),
    /// What came is an error, or cannot be read.
    Reply(ReplyError),
    /// What is wrong with a body that is not an answer.
    Broken(String),
    /// What is wrong with a body that does not come from an API. The address may be wrong.
    NotFromApi(String),
}

impl<E: Into<ReplyError>> From<E> for ReadError {
    fn from(error: E) -> ReadError {
        ReadError::Reply(error.into())
    }
}

/// A reader of one reply, streamed or in one piece.
pub struct ReplyReader<'a> {
    api: &'a Dialect,
    body: Body,
    parser: SseParser,
    has_events: bool,
    stage: ReadingStage,
}

/// How far a reply has been read.
enum ReadingStage {
    Beginning,
    Streaming,
    /// The body has ended, or the connection is lost: how its last event could be read, and how the body ended.
    BodyOver(Result<(), ReadError>, io::Result<()>),
    /// All pieces have been handed on.
    Ended(Result<(), ReadError>),
}

impl ReplyReader<'_> {
    pub fn new(api: &Dialect, response: Response) -> ReplyReader<'_> {
        ReplyReader {
            api,
            body: Body {
                response,
                buffer: vec![0; READ_SIZE],
                filled: 0,
            },
            parser: SseParser::default(),
            has_events: false,
            stage: ReadingStage::Beginning,
        }
    }

    /// Waits for the next piece of the answer; `None` once the reply has ended well. `reply` has what was read so far, even on
    /// failure.
    pub fn next(&mut self, reply: &mut Reply) -> Result<Option<Piece>, ReadError> {
        match mem::replace(&mut self.stage, ReadingStage::Ended(Ok(()))) {
            ReadingStage::Beginning => self.begin(reply).map(Some),
            ReadingStage::Streaming if reply.end.is_over() => {
                self.body.read_rest(reply);
                Ok(None)
            }
            ReadingStage::Streaming => {
                let read_timeout = reply.end.is_finished().then_some(END_TIMEOUT);
                let ended = match self.body.fill(read_timeout) {
                    Ok(0) => Ok(()),
                    Ok(_) => return Ok(Some(self.feed(reply))),
                    Err(lost) => Err(lost),
                };
                let (piece, read) = self.read_events(None, reply);
                self.stage = ReadingStage::BodyOver(read, ended);
                Ok(Some(piece))
            }
            ReadingStage::BodyOver(read, ended) => self.finish(read, ended, reply),
            ReadingStage::Ended(end) => end.map(|()| None),
        }
    }

    /// Reads the first piece, which shows whether the reply is a stream.
    fn begin(&mut self, reply: &mut Reply) -> Result<Piece, ReadError> {
        // Servers that are busy send blank lines to keep the connection alive.
        let mut first = None;
        while first.is_none() && self.body.fill(None).map_err(ReadError::Connection)? > 0 {
            first = self.body.bytes().trim_ascii_start().first().copied();
        }
        // Some servers answer in one piece though q asked for a stream. No stream begins with these bytes.
        if matches!(first, Some(b'{' | b'[')) {
            self.read_whole(reply)
        } else {
            Ok(self.feed(reply))
        }
    }

    fn read_whole(&mut self, reply: &mut Reply) -> Result<Piece, ReadError> {
        let bytes = self.body.bytes().to_vec();
        let text = read_text(bytes, &mut self.body.response, MAX_EVENT)?;
        let read = self.api.read_whole(&text, reply);
        let is_empty = reply.answer.is_blank() && reply.turn.calls().is_empty();
        if is_empty || read.is_err() {
            failure::check(&text)?;
        }
        let piece = reply.take_piece(read.is_ok());
        self.stage = ReadingStage::Ended(read.map_err(ReadError::from));
        Ok(piece)
    }

    /// Reads the events that end in the bytes that have come.
    fn feed(&mut self, reply: &mut Reply) -> Piece {
        let bytes = mem::take(&mut self.body.buffer);
        let (piece, mut read) = self.read_events(Some(&bytes[..self.body.filled]), reply);
        self.body.buffer = bytes;
        if read.is_ok() && reply.end.is_over() {
            read = failure::check(self.parser.stray_json()).map_err(ReadError::from);
        }
        self.stage = match read {
            Ok(()) => ReadingStage::Streaming,
            Err(error) => ReadingStage::Ended(Err(error)),
        };
        piece
    }

    /// Says whether the answer is complete, once the body is over.
    fn finish(
        &mut self,
        read: Result<(), ReadError>,
        ended: io::Result<()>,
        reply: &mut Reply,
    ) -> Result<Option<Piece>, ReadError> {
        // An event that cannot be read may have been cut off. Why it was is reported below.
        if !matches!(read, Err(ReadError::Reply(ReplyError::Malformed(_)))) {
            read?;
        }
        failure::check(self.parser.stray_json())?;
        if reply.end.is_over() {
            return Ok(None);
        }
        // Where text has followed a finish reason, more of it may have been lost.
        let ended_well = reply.end.finish().is_some() && ended.is_ok();
        if ended_well || reply.end.is_finished() {
            reply.close();
            return Ok(Some(reply.take_piece(true)));
        }
        ended.map_err(ReadError::Connection)?;
        Err(why_incomplete(
            self.has_events,
            &self.parser,
            &self.body.response,
        ))
    }

    /// Reads the events that end in these bytes, or without bytes the last one. Returns what they add to the answer, and how
    /// the events could be read.
    fn read_events(
        &mut self,
        bytes: Option<&[u8]>,
        reply: &mut Reply,
    ) -> (Piece, Result<(), ReadError>) {
        let mut read = Ok(());
        let mut event = |data: &str| {
            self.has_events = true;
            // An event after the end does not belong to the answer.
            if read.is_ok() && !reply.end.is_over() {
                read = self.api.read_event(data, reply);
            }
        };
        let parsed = match bytes {
            Some(bytes) => self.parser.feed(bytes, &mut event),
            None => self.parser.finish(&mut event),
        };
        let piece = reply.take_piece(parsed.is_ok() && read.is_ok());
        let read = match parsed {
            Ok(()) => read.map_err(ReadError::Reply),
            Err(TooLong) => Err(too_long("a line of the stream", MAX_EVENT)),
        };
        (piece, read)
    }
}

/// Reads a body of at most `limit` bytes to its end, after the bytes that have come of it already.
pub fn read_text(
    mut bytes: Vec<u8>,
    response: &mut Response,
    limit: usize,
) -> Result<String, ReadError> {
    let mut rest = (&mut response.body).take(limit as u64 + 1);
    let read = rest.read_to_end(&mut bytes);
    read.map_err(ReadError::Connection)?;
    if bytes.len() > limit {
        return Err(too_long("the response", limit));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => match sse::lossy(error.as_bytes(), limit) {
            Ok(text) => Ok(text.into_owned()),
            Err(TooLong) => Err(too_long("the response", limit)),
        },
    }
}

fn too_long(what: &str, limit: usize) -> ReadError {
    ReadError::Broken(format!("{what} has more than {limit} bytes"))
}

/// Why a stream that has ended is not a complete answer.
fn why_incomplete(has_events: bool, parser: &SseParser, response: &Response) -> ReadError {
    let broken = |why: &str| ReadError::Broken(why.to_owned());
    if has_events {
        return broken("the stream ended before the answer did");
    }
    if parser.stray().is_empty() {
        return broken("the server accepted the question and sent nothing");
    }
    ReadError::NotFromApi(what_it_is(parser.stray(), response.content_type()))
}

/// What a response is that is not the API's.
pub fn what_it_is(body: &str, content_type: &str) -> String {
    match failure::title(body) {
        Some(title) => format!("the server sent an HTML page: “{title}”"),
        None => format!(
            "the response is neither JSON nor an event stream (content type “{content_type}”)"
        ),
    }
}

/// The body of a response, as it arrives.
struct Body {
    response: Response,
    buffer: Vec<u8>,
    filled: usize,
}

impl Body {
    /// Waits for more, at most this long. Returns how much has come: nothing at the end.
    fn fill(&mut self, read_timeout: Option<Duration>) -> io::Result<usize> {
        lock(&self.response.connection).read_timeout = read_timeout;
        self.filled = 0;
        self.filled = self.response.body.read(&mut self.buffer)?;
        Ok(self.filled)
    }

    /// Where another request follows, reads to the end if that comes at once: only then can it have the same connection.
    fn read_rest(&mut self, reply: &Reply) {
        if reply.turn.calls().is_empty() && !reply.is_paused() {
            return;
        }
        let began = Instant::now();
        while began.elapsed() < REST_TIMEOUT && matches!(self.fill(Some(REST_TIMEOUT)), Ok(1..)) {}
    }

    /// What the last call of `fill` brought.
    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::message::tests::rows;
    use crate::provider::table::OPENAI_LIKE;
    use crate::server::client::ConnectionState;

    const HELLO: &str = r#"data: {"choices":[{"delta":{"content":"Hello"}}]}"#;
    const STOP: &str = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

    /// A body that arrives in these parts; the last one may be an error.
    struct BodyParts(Vec<io::Result<&'static str>>);

    impl Read for BodyParts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let part = self.0.remove(0)?;
            let count = part.len().min(buffer.len());
            buffer[..count].copy_from_slice(&part.as_bytes()[..count]);
            if count < part.len() {
                self.0.insert(0, Ok(&part[count..]));
            }
            Ok(count)
        }
    }

    /// The pieces, each with whether it was the last, and how reading ended.
    type Reads = (Vec<(String, bool)>, Result<(), ReadError>);

    fn reads(parts: Vec<io::Result<&'static str>>) -> Reads {
        reads_of(Box::new(BodyParts(parts)), Arc::default())
    }

    fn reads_of(body: Box<dyn Read + Send>, connection: Arc<Mutex<ConnectionState>>) -> Reads {
        let mut headers = http::HeaderMap::new();
        let content_type = http::HeaderValue::from_static("text/plain");
        headers.insert("content-type", content_type);
        let mut pieces = Vec::new();
        let response = Response {
            headers,
            body,
            connection,
        };
        let mut reader = ReplyReader::new(OPENAI_LIKE.api, response);
        let mut reply = Reply::default();
        let ended = loop {
            match reader.next(&mut reply) {
                Ok(Some(piece)) => pieces.push((piece.text, piece.is_last)),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        pieces.retain(|(piece, last)| !piece.is_empty() || *last);
        (pieces, ended)
    }

    fn text(pieces: &[(String, bool)]) -> String {
        pieces.iter().map(|(piece, _)| piece.as_str()).collect()
    }

    #[test]
    fn a_stream_is_complete_with_its_terminal_event_or_a_finish_reason() {
        for parts in [
            vec![HELLO, "\n\n", STOP, "\n\ndata: [DONE]\n\n"],
            vec![HELLO, "\n\n", STOP, "\n\n"],
            vec!["\n\n", ": waiting\n\n", HELLO, "\n\ndata: [DONE]"],
            vec![r#" {"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#],
            vec![r#"{"choices":"#, r#"[{"message":{"content":"Hello"}}]}"#],
        ] {
            let (pieces, ended) = reads(parts.iter().map(|part| Ok(*part)).collect());
            assert!(ended.is_ok(), "{parts:?}: {ended:?}");
            assert_eq!(text(&pieces), "Hello", "{parts:?}");
            let is_right = pieces.last().is_some_and(|(_, last)| *last);
            assert!(is_right, "{parts:?}: {pieces:?}");
        }
    }

    #[test]
    fn what_ends_an_answer_early_is_distinguished() {
        let reset = || Err(io::ErrorKind::ConnectionReset.into());
        // What is read, the text of the answer, and how the error begins.
        let table = r##"
            HELLO; ␊␊ | Hello | Broken("the stream ended before the answer did
            HELLO; ␊␊; RESET | Hello | Connection
            HELLO; ␊␊data: {"choi; RESET | Hello | Connection
            RESET | - | Connection
            <html> | - | NotFromApi("the response is neither JSON nor an event stream (content type “text/plain”)
            - | - | Broken("the server accepted the question and sent nothing
            ␊␊ | - | Broken("the server accepted the question and sent nothing
            HELLO; ␊␊data: {␊␊ | Hello | Reply(Malformed
            HELLO; ␊␊data: {"error":"down"}␊␊ | Hello | Reply(Server
            {"error":"down"} | - | Reply(Server
            {"detail":"down"} | - | Reply(Server
            HELLO; ␊␊noise␊{"error":"down"}␊ | Hello | Reply(Server
            <html><title>Sign in</title> | - | NotFromApi("the server sent an HTML page: “Sign in”
        "##;
        for [parts, expected, kind] in rows(table) {
            let parts: &'static str = parts.replace('␊', "\n").leak();
            let parts = parts.split("; ").filter(|part| !part.is_empty());
            let parts = parts.map(|part| match part {
                "HELLO" => Ok(HELLO),
                "RESET" => reset(),
                text => Ok(text),
            });
            let parts: Vec<_> = parts.collect();
            let case = format!("{parts:?}");
            let (pieces, ended) = reads(parts);
            assert_eq!(text(&pieces), expected, "{case}");
            let error = ended
                .map(|()| String::new())
                .unwrap_or_else(|error| format!("{error:?}"));
            assert!(error.starts_with(kind), "{case}: {error}");
        }
    }

    /// A body that pauses for longer than any limit before each part that is empty.
    struct Pausing(BodyParts, Arc<Mutex<ConnectionState>>);

    impl Read for Pausing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let parts = &mut self.0.0;
            if matches!(parts.first(), Some(Ok(""))) {
                drop(parts.remove(0));
                if lock(&self.1).read_timeout.is_some() {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            self.0.read(buffer)
        }
    }

    #[test]
    fn a_pause_ends_an_answer_after_its_finish_reason_unless_text_has_followed() {
        let end = "\n\n";
        let done = "\n\ndata: [DONE]\n\n";
        for (parts, expected) in [
            (&[HELLO, end, STOP, end, "", HELLO, done][..], "Hello"),
            (
                &[HELLO, end, STOP, end, HELLO, end, "", HELLO, done],
                "HelloHelloHello",
            ),
        ] {
            let connection = Arc::default();
            let parts = BodyParts(parts.iter().map(|part| Ok(*part)).collect());
            let body = Pausing(parts, Arc::clone(&connection));
            let (pieces, ended) = reads_of(Box::new(body), connection);
            assert!(ended.is_ok(), "{ended:?}");
            assert_eq!(text(&pieces), expected);
        }
    }
}
