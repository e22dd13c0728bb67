//! Reads the body of a response as it arrives: hands on the pieces of the answer, and finds out how it ends.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use super::stream::{self, MAX_EVENT, TooLong};
use crate::output::OutputError;
use crate::provider::failure;
use crate::provider::reply::{Piece, Reply};
use crate::provider::{Dialect, ReplyError};
use crate::threads;

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

impl From<TooLong> for ReadError {
    fn from(_: TooLong) -> ReadError {
        ReadError::Broken(format!(
            "a line of the stream has more than {MAX_EVENT} bytes"
        ))
    }
}

/// Takes each piece of the answer as it comes.
pub type TakePiece<'a> = &'a mut dyn FnMut(Piece) -> Result<(), OutputError>;

/// Reads a reply to its end, streamed or in one piece. `reply` has what was read so far, even on failure.
pub fn read_reply(
    api: &Dialect,
    content_type: &str,
    body: Box<dyn Read + Send>,
    reply: &mut Reply,
    take: TakePiece,
) -> Result<(), ReadError> {
    let mut body = Body::new(body);
    // Servers that are busy send blank lines to keep the connection alive.
    let mut first = None;
    while first.is_none() && body.fill(None).map_err(ReadError::Connection)? > 0 {
        first = body.bytes().trim_ascii_start().first().copied();
    }
    // Some servers answer in one piece though q asked for a stream. No stream begins with these bytes.
    if matches!(first, Some(b'{' | b'[')) {
        let text = collect(body)?;
        let read = api.read_whole(&text, reply);
        let is_empty = reply.is_blank() && reply.calls().is_empty();
        if is_empty || read.is_err() {
            failure::check(&text)?;
        }
        take(reply.take_piece(read.is_ok()))?;
        return Ok(read?);
    }
    read_stream(api, content_type, body, reply, take)
}

/// Reads a body that is not a reply to its end.
pub fn read_text(body: Box<dyn Read + Send>) -> Result<String, ReadError> {
    collect(Body::new(body))
}

fn collect(mut body: Body) -> Result<String, ReadError> {
    let mut bytes = body.bytes().to_vec();
    while body.fill(None).map_err(ReadError::Connection)? > 0 {
        bytes.extend_from_slice(body.bytes());
        if bytes.len() > MAX_EVENT {
            return Err(ReadError::Broken(format!(
                "the response has more than {MAX_EVENT} bytes"
            )));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read_stream(
    api: &Dialect,
    content_type: &str,
    mut body: Body,
    reply: &mut Reply,
    take: TakePiece,
) -> Result<(), ReadError> {
    let mut parser = stream::Parser::default();
    let mut has_events = false;
    // If it is not a stream, its beginning best says what it is.
    let mut beginning = Vec::new();
    // How the body ended, once it has.
    let mut end: Option<io::Result<()>> = None;
    loop {
        if !has_events && beginning.len() < READ_SIZE {
            beginning.extend_from_slice(body.bytes());
        }
        let mut event = |data: &str| {
            has_events = true;
            // An event after the end does not belong to the answer.
            if reply.ended {
                return Ok(());
            }
            api.read_event(data, reply).map_err(ReadError::Reply)
        };
        let read = match end {
            None => parser.feed(body.bytes(), &mut event),
            Some(_) => parser.finish(&mut event),
        };
        take(reply.take_piece(read.is_ok()))?;
        let is_malformed = matches!(read, Err(ReadError::Reply(ReplyError::Malformed(_))));
        // At the end, an event that cannot be read may have been cut off. The reason for that follows below.
        if end.is_none() || !is_malformed {
            read?;
        }
        if reply.ended {
            body.read_rest(reply);
            return Ok(());
        }
        if let Some(end) = end {
            failure::check(parser.stray())?;
            // Where text has followed a finish reason, more of it may have been lost.
            let ended_well = reply.finished().is_some() && end.is_ok();
            if ended_well || reply.is_finished() {
                reply.end();
                return Ok(take(reply.take_piece(true))?);
            }
            return Err(why_incomplete(end, has_events, &beginning, content_type));
        }
        let mut limit = None;
        if reply.is_finished() {
            limit = Some(END_SILENCE);
        }
        end = match body.fill(limit) {
            Ok(0) => Some(Ok(())),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        };
    }
}

/// Why a stream that has ended like this is not a complete answer.
fn why_incomplete(
    end: io::Result<()>,
    has_events: bool,
    beginning: &[u8],
    content_type: &str,
) -> ReadError {
    if let Err(error) = end {
        return ReadError::Connection(error);
    }
    let broken = |why: &str| ReadError::Broken(why.to_owned());
    if beginning.trim_ascii().is_empty() {
        return broken("the server accepted the question and sent nothing");
    }
    if has_events {
        return broken("the stream ended before the answer did");
    }
    ReadError::NotFromApi(what_it_is(beginning, content_type))
}

/// What a response is that is not the API's, by its beginning.
pub fn what_it_is(beginning: &[u8], content_type: &str) -> String {
    match failure::title(&String::from_utf8_lossy(beginning)) {
        Some(title) => format!("the server sent an HTML page: “{title}”"),
        None => format!(
            "the response is neither JSON nor an event stream (content type “{content_type}”)"
        ),
    }
}

/// The body of a response, as it arrives.
struct Body {
    reader: BodyReader,
    buffer: Vec<u8>,
    filled: usize,
}

/// Where the bytes of a body come from.
enum BodyReader {
    Direct(Box<dyn Read + Send>),
    /// A thread reads them, and q can stop waiting for it.
    Thread(Receiver<io::Result<Vec<u8>>>),
}

impl Body {
    fn new(reader: Box<dyn Read + Send>) -> Body {
        Body {
            reader: BodyReader::Direct(reader),
            buffer: vec![0; READ_SIZE],
            filled: 0,
        }
    }

    /// Waits for more. Returns how much has come: nothing at the end, or if nothing comes before the limit.
    fn fill(&mut self, limit: Option<Duration>) -> io::Result<usize> {
        self.filled = 0;
        if limit.is_some() && matches!(self.reader, BodyReader::Direct(_)) {
            self.hand_over();
        }
        match &mut self.reader {
            BodyReader::Direct(reader) => self.filled = reader.read(&mut self.buffer)?,
            BodyReader::Thread(arriving) => {
                let arrived = match limit {
                    Some(limit) => arriving.recv_timeout(limit).ok(),
                    None => arriving.recv().ok(),
                };
                if let Some(bytes) = arrived {
                    self.buffer = bytes?;
                    self.filled = self.buffer.len();
                }
            }
        }
        Ok(self.filled)
    }

    /// Where another request follows, reads to the end if that comes at once: only then can it have the same connection.
    fn read_rest(&mut self, reply: &Reply) {
        if reply.calls().is_empty() && !reply.is_paused() {
            return;
        }
        let began = Instant::now();
        while let Ok(1..) = self.fill(Some(REST.saturating_sub(began.elapsed()))) {}
    }

    /// What the last call of `fill` brought.
    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Lets a thread read the rest. The client's time-outs cannot be changed during a request, but q need not wait for a
    /// thread.
    fn hand_over(&mut self) {
        // The thread reads at most one piece ahead, however much the server sends.
        let (send, arriving) = mpsc::sync_channel(1);
        let BodyReader::Direct(mut reader) =
            std::mem::replace(&mut self.reader, BodyReader::Thread(arriving))
        else {
            return;
        };
        // If no thread can be started, the body counts as ended.
        let _ = threads::start(move || {
            let mut buffer = vec![0; READ_SIZE];
            loop {
                let count = reader.read(&mut buffer);
                let is_last = !matches!(count, Ok(1..));
                let read = count.map(|count| buffer[..count].to_vec());
                if send.send(read).is_err() || is_last {
                    return;
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::message::tests::rows;
    use crate::provider::table::OPENAI_LIKE;

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
            buffer[..part.len()].copy_from_slice(part.as_bytes());
            Ok(part.len())
        }
    }

    /// The pieces, each with whether it was the last, and how reading ended.
    fn reads(parts: Vec<io::Result<&'static str>>) -> (Vec<(String, bool)>, Result<(), ReadError>) {
        let mut pieces = Vec::new();
        let ended = read_reply(
            OPENAI_LIKE.api,
            "text/plain",
            Box::new(BodyParts(parts)),
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
            HELLO; ␊␊{"error":"down"}␊ | Hello | Reply(Server
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

    #[test]
    fn a_body_is_not_read_far_ahead() {
        /// A body that never ends, and counts how often it is read.
        struct Endless(Arc<AtomicUsize>);

        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.fetch_add(1, Ordering::Relaxed);
                Ok(buffer.len())
            }
        }

        let reads = Arc::new(AtomicUsize::new(0));
        let mut body = Body::new(Box::new(Endless(Arc::clone(&reads))));
        for taken in 1..1_000 {
            body.fill(Some(END_SILENCE)).expect("bytes");
            // One that waits to be taken, one that waits for its place, and one that is being read.
            assert!(reads.load(Ordering::Relaxed) <= taken + 3);
        }
    }

    /// A body that pauses for longer than [`END_SILENCE`] before each part that is empty.
    struct Pausing(BodyParts);

    impl Read for Pausing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if matches!(self.0.0.first(), Some(Ok(""))) {
                drop(self.0.0.remove(0));
                std::thread::sleep(END_SILENCE + Duration::from_millis(200));
            }
            self.0.read(buffer)
        }
    }

    /// The text of an answer that ends well, in which an empty part is a pause.
    fn with_pauses(parts: &[&'static str]) -> String {
        let mut answer = String::new();
        let body = Box::new(Pausing(BodyParts(
            parts.iter().map(|part| Ok(*part)).collect(),
        )));
        let ended = read_reply(
            OPENAI_LIKE.api,
            "text/plain",
            body,
            &mut Reply::default(),
            &mut |piece| {
                answer.push_str(&piece.text);
                Ok(())
            },
        );
        assert!(ended.is_ok(), "{ended:?}");
        answer
    }

    #[test]
    fn a_pause_ends_nothing_once_text_has_followed_the_finish_reason() {
        let end = "\n\n";
        let before = [HELLO, end, STOP, end, HELLO, end];
        let after = ["", HELLO, "\n\ndata: [DONE]\n\n"];
        assert_eq!(
            with_pauses(&[&before[..], &after].concat()),
            "HelloHelloHello"
        );
    }
}
