//! Reads the body of a response as it arrives: hands on the pieces of the answer, and finds out how it ends.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use super::client::Response;
use super::stream::{self, MAX_EVENT, TooLong};
use crate::output::OutputError;
use crate::provider::failure;
use crate::provider::reply::{Piece, Reply};
use crate::provider::{Dialect, ReplyError};
use crate::threads::lock;

/// The silence after which a stream has ended, once the model has said that it is done.
const END_SILENCE: Duration = Duration::from_secs(10);

/// How long the rest of a body may take after the terminal event: no longer than another connection would.
const REST: Duration = Duration::from_millis(100);

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
    Output(OutputError),
}

impl From<OutputError> for ReadError {
    fn from(error: OutputError) -> ReadError {
        ReadError::Output(error)
    }
}

impl<E: Into<ReplyError>> From<E> for ReadError {
    fn from(error: E) -> ReadError {
        ReadError::Reply(error.into())
    }
}

/// Takes each piece of the answer as it comes.
pub type TakePiece<'a> = &'a mut dyn FnMut(Piece) -> Result<(), OutputError>;

/// Reads a reply to its end, streamed or in one piece. `reply` has what was read so far, even on failure.
pub fn read_reply(
    api: &Dialect,
    response: Response,
    reply: &mut Reply,
    take: TakePiece,
) -> Result<(), ReadError> {
    let mut body = Body {
        response,
        buffer: vec![0; READ_SIZE],
        filled: 0,
    };
    // Servers that are busy send blank lines to keep the connection alive.
    let mut first = None;
    while first.is_none() && body.fill(None).map_err(ReadError::Connection)? > 0 {
        first = body.bytes().trim_ascii_start().first().copied();
    }
    // Some servers answer in one piece though q asked for a stream. No stream begins with these bytes.
    if matches!(first, Some(b'{' | b'[')) {
        let text = read_text(body.bytes().to_vec(), body.response, MAX_EVENT)?;
        let read = api.read_whole(&text, reply);
        let is_empty = reply.answer.is_blank() && reply.turn.calls().is_empty();
        if is_empty || read.is_err() {
            failure::check(&text)?;
        }
        // What follows needs memory, too.
        drop(text);
        take(reply.take_piece(read.is_ok()))?;
        return Ok(read?);
    }
    read_stream(api, body, reply, take)
}

/// Reads a body of at most `limit` bytes to its end, after the bytes that have come of it already.
pub fn read_text(
    mut bytes: Vec<u8>,
    response: Response,
    limit: usize,
) -> Result<String, ReadError> {
    let mut rest = response.body.take(limit as u64 + 1);
    let read = rest.read_to_end(&mut bytes);
    read.map_err(ReadError::Connection)?;
    if bytes.len() > limit {
        return Err(too_long("the response", limit));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => match stream::lossy(error.as_bytes(), limit) {
            Ok(text) => Ok(text.into_owned()),
            Err(TooLong) => Err(too_long("the response", limit)),
        },
    }
}

fn too_long(what: &str, limit: usize) -> ReadError {
    ReadError::Broken(format!("{what} has more than {limit} bytes"))
}

fn read_stream(
    api: &Dialect,
    mut body: Body,
    reply: &mut Reply,
    take: TakePiece,
) -> Result<(), ReadError> {
    let mut events = EventStream {
        api,
        parser: stream::Parser::default(),
        has_events: false,
    };
    events.feed(body.bytes(), reply, take)?;
    while !reply.end.is_over() {
        let mut limit = None;
        if reply.end.is_finished() {
            limit = Some(END_SILENCE);
        }
        match body.fill(limit) {
            Ok(0) => return events.finish(Ok(()), &body.response, reply, take),
            Ok(_) => events.feed(body.bytes(), reply, take)?,
            Err(lost) => return events.finish(Err(lost), &body.response, reply, take),
        }
    }
    body.read_rest(reply);
    Ok(())
}

/// A stream of events that become a reply.
struct EventStream<'a> {
    api: &'a Dialect,
    parser: stream::Parser,
    has_events: bool,
}

impl EventStream<'_> {
    /// Reads the events that end in these bytes.
    fn feed(&mut self, bytes: &[u8], reply: &mut Reply, take: TakePiece) -> Result<(), ReadError> {
        self.read_events(Some(bytes), reply, take)??;
        if reply.end.is_over() {
            failure::check(self.parser.stray_json())?;
        }
        Ok(())
    }

    /// Reads what is left once the body has ended, or the connection is lost, and says whether the answer is complete.
    fn finish(
        &mut self,
        end: io::Result<()>,
        response: &Response,
        reply: &mut Reply,
        take: TakePiece,
    ) -> Result<(), ReadError> {
        let read = self.read_events(None, reply, take)?;
        // An event that cannot be read may have been cut off. Why it was is reported below.
        if !matches!(read, Err(ReplyError::Malformed(_))) {
            read?;
        }
        failure::check(self.parser.stray_json())?;
        if reply.end.is_over() {
            return Ok(());
        }
        // Where text has followed a finish reason, more of it may have been lost.
        let ended_well = reply.end.finish().is_some() && end.is_ok();
        if ended_well || reply.end.is_finished() {
            reply.close();
            return Ok(take(reply.take_piece(true))?);
        }
        end.map_err(ReadError::Connection)?;
        Err(why_incomplete(self.has_events, &self.parser, response))
    }

    /// Reads the events that end in these bytes, or without bytes the last one, and hands on what they add to the answer.
    /// Returns how the events could be read.
    fn read_events(
        &mut self,
        bytes: Option<&[u8]>,
        reply: &mut Reply,
        take: TakePiece,
    ) -> Result<Result<(), ReplyError>, ReadError> {
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
        take(reply.take_piece(parsed.is_ok() && read.is_ok()))?;
        parsed.map_err(|TooLong| too_long("a line of the stream", MAX_EVENT))?;
        Ok(read)
    }
}

/// Why a stream that has ended is not a complete answer.
fn why_incomplete(has_events: bool, parser: &stream::Parser, response: &Response) -> ReadError {
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
    fn fill(&mut self, limit: Option<Duration>) -> io::Result<usize> {
        lock(&self.response.connection).patience = limit;
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
        while began.elapsed() < REST && matches!(self.fill(Some(REST)), Ok(1..)) {}
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
    use crate::server::client::State;

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

    fn reads_of(body: Box<dyn Read + Send>, connection: Arc<Mutex<State>>) -> Reads {
        let mut headers = http::HeaderMap::new();
        let content_type = http::HeaderValue::from_static("text/plain");
        headers.insert("content-type", content_type);
        let mut pieces = Vec::new();
        let ended = read_reply(
            OPENAI_LIKE.api,
            Response {
                headers,
                body,
                connection,
            },
            &mut Reply::default(),
            &mut |piece| {
                pieces.push((piece.text, piece.is_last));
                Ok(())
            },
        );
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
    struct Pausing(BodyParts, Arc<Mutex<State>>);

    impl Read for Pausing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let parts = &mut self.0.0;
            if matches!(parts.first(), Some(Ok(""))) {
                drop(parts.remove(0));
                if lock(&self.1).patience.is_some() {
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
