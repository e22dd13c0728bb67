//! Reads a reply piece by piece, as it arrives, and finds out whether the answer is complete.

use std::io;
use std::mem;
use std::time::{Duration, Instant};

use super::body::{Body, ForeignBody, ReadError, read_text, too_long};
use super::client::Response;
use super::sse::{MAX_EVENT, SseParser, TooLong};
use crate::provider::failure;
use crate::provider::reply::{Piece, Reply};
use crate::provider::{Dialect, ReplyError};
use crate::text::byte_order_mark::after_mark;

/// How long nothing more of the answer may come once the model has said that it is done: after that the stream has ended.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The same while there is neither text nor a call. Gateways stamp the finish reason of a normal end on the pieces before the
/// answer, too, so the model may still be thinking.
const EMPTY_END_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// A reader of one reply, streamed or in one piece.
pub struct ReplyReader<'a> {
    body: Body,
    events: EventReader<'a>,
    stage: ReadingStage,
    /// When the model said that it is done, or thought for the last time after that, if no more of the answer has arrived since.
    finished: Option<Instant>,
}

/// The stage that the reading of a reply has reached.
enum ReadingStage {
    Beginning,
    Streaming,
    /// The body is over: how its last event could be read, and whether the connection was lost.
    BodyOver {
        last_event: Result<(), ReadError>,
        connection: io::Result<()>,
    },
    /// All pieces have been handed on.
    Ended(Result<(), ReadError>),
}

/// The end of a stream that sends no more, by how complete its answer is.
enum StreamEnd {
    /// The terminal event has arrived.
    Terminated,
    /// The model is done, and only the terminal event is missing.
    Finished,
    /// More of the answer may be missing.
    Truncated,
}

impl<'a> ReplyReader<'a> {
    pub fn new(api: &'a Dialect, response: Response) -> ReplyReader<'a> {
        ReplyReader {
            body: Body::new(response),
            events: EventReader {
                api,
                parser: SseParser::default(),
                has_events: false,
            },
            stage: ReadingStage::Beginning,
            finished: None,
        }
    }

    /// Waits for the next piece of the answer; `None` once the reply has ended well. `reply` has what was read so far, even on
    /// failure.
    pub fn next(&mut self, reply: &mut Reply) -> Result<Option<Piece>, ReadError> {
        match mem::replace(&mut self.stage, ReadingStage::Ended(Ok(()))) {
            ReadingStage::Beginning => self.begin(reply).map(Some),
            ReadingStage::Streaming if reply.end.is_over() => {
                reply.check_form()?;
                let is_continued = !reply.turn.calls().is_empty() || reply.is_paused();
                if is_continued {
                    self.body.read_rest();
                }
                Ok(None)
            }
            ReadingStage::Streaming => Ok(Some(self.read_on(reply))),
            ReadingStage::BodyOver {
                last_event,
                connection,
            } => self.finish(last_event, connection, reply),
            ReadingStage::Ended(end) => end.map(|()| None),
        }
    }

    /// Reads the first piece, which shows whether the reply is a stream.
    fn begin(&mut self, reply: &mut Reply) -> Result<Piece, ReadError> {
        // Servers that are busy send blank lines to keep the connection alive.
        let mut first = None;
        while first.is_none() && self.body.fill(None).map_err(ReadError::Connection)? > 0 {
            let bytes = after_mark(self.body.bytes());
            first = bytes.trim_ascii_start().first().copied();
        }
        // Some servers answer in one piece though q asked for a stream. No stream begins with these bytes.
        if matches!(first, Some(b'{' | b'[')) {
            self.read_whole(reply)
        } else {
            Ok(self.feed(reply))
        }
    }

    /// Reads a reply that is not streamed.
    fn read_whole(&mut self, reply: &mut Reply) -> Result<Piece, ReadError> {
        let bytes = after_mark(self.body.bytes()).to_vec();
        let text = read_text(bytes, &mut self.body.response, MAX_EVENT)?;
        let mut read = self.events.api.read_whole(&text, reply);
        if reply.is_empty() || read.is_err() {
            failure::check(&text)?;
        }
        if read.is_ok() {
            read = reply.check_form();
        }
        let piece = reply.take_piece(read.is_ok());
        self.stage = ReadingStage::Ended(read.map_err(ReadError::from));
        Ok(piece)
    }

    /// Reads what comes next of a stream, or its last event once no more comes.
    fn read_on(&mut self, reply: &mut Reply) -> Piece {
        let read = match self.left(end_timeout(reply)) {
            Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
            left => self.body.fill(left),
        };
        let connection = match read {
            Ok(1..) => return self.feed(reply),
            Ok(0) => Ok(()),
            Err(lost) => Err(lost),
        };
        let (piece, last_event) = self.events.read(None, reply);
        self.stage = ReadingStage::BodyOver {
            last_event,
            connection,
        };
        piece
    }

    /// Returns how long the stream may still take, of the `timeout` that began when the model was done; `None` before that. Some
    /// servers keep a connection alive for good that has nothing more to say, so only the answer counts here, not data as such.
    fn left(&mut self, timeout: Option<Duration>) -> Option<Duration> {
        if timeout.is_none() {
            self.finished = None;
        }
        let timeout = timeout?;
        let since = *self.finished.get_or_insert_with(Instant::now);
        Some(timeout.saturating_sub(since.elapsed()))
    }

    /// Reads the events that end in the bytes that have arrived.
    fn feed(&mut self, reply: &mut Reply) -> Piece {
        let (piece, mut read) = self.events.read(Some(self.body.bytes()), reply);
        if !piece.reasoning.is_empty() {
            self.finished = None;
        }
        if read.is_ok() && reply.end.is_over() {
            read = self.events.check_stray();
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
        last_event: Result<(), ReadError>,
        connection: io::Result<()>,
        reply: &mut Reply,
    ) -> Result<Option<Piece>, ReadError> {
        // An event that cannot be read may have been cut off. Why it was is reported below.
        if !matches!(last_event, Err(ReadError::Reply(ReplyError::Malformed(_)))) {
            last_event?;
        }
        self.events.check_stray()?;
        reply.check_form()?;
        match StreamEnd::of(reply, connection.is_ok()) {
            StreamEnd::Terminated => Ok(None),
            StreamEnd::Finished => {
                reply.close();
                Ok(Some(reply.take_piece(true)))
            }
            StreamEnd::Truncated => {
                connection.map_err(ReadError::Connection)?;
                reply.check_plain_line()?;
                Err(self.events.why_incomplete(&self.body.response))
            }
        }
    }
}

/// Returns how long the stream may take once the model is done; `None` before that.
fn end_timeout(reply: &Reply) -> Option<Duration> {
    if !reply.end.is_finished() {
        None
    } else if reply.is_empty() && reply.end.is_normal() {
        Some(EMPTY_END_TIMEOUT)
    } else {
        Some(END_TIMEOUT)
    }
}

impl StreamEnd {
    /// Decides how complete the answer is. `was_closed`: the server has ended the body. Otherwise the connection was lost, or
    /// nothing came for too long.
    fn of(reply: &Reply, was_closed: bool) -> StreamEnd {
        if reply.end.is_over() {
            return StreamEnd::Terminated;
        }
        // Where text has followed a finish reason, more of it may have been lost with the connection.
        let has_ended = reply.end.finish().is_some() || reply.end.may_be_over();
        if reply.end.is_finished() || (has_ended && was_closed) {
            return StreamEnd::Finished;
        }
        StreamEnd::Truncated
    }
}

/// A reader of the events of a stream in a dialect.
struct EventReader<'a> {
    api: &'a Dialect,
    parser: SseParser,
    has_events: bool,
}

impl EventReader<'_> {
    /// Reads the events that end in these bytes, or without bytes the last one. Returns what they add to the answer, and how
    /// the events could be read.
    fn read(&mut self, bytes: Option<&[u8]>, reply: &mut Reply) -> (Piece, Result<(), ReadError>) {
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

    /// Checks that no error came outside of the events.
    fn check_stray(&self) -> Result<(), ReadError> {
        failure::check(self.parser.stray_json()).map_err(ReadError::from)
    }

    /// Says why a stream that has ended is not a complete answer.
    fn why_incomplete(&self, response: &Response) -> ReadError {
        let broken = |why: &str| ReadError::Broken(why.to_owned());
        if self.has_events {
            return broken("the stream ended before the answer did");
        }
        let stray = self.parser.stray();
        if stray.is_empty() {
            return broken("the server accepted the question and sent nothing");
        }
        ReadError::NotFromApi(ForeignBody::of(stray, response.content_type()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::provider::table::OPENAI_LIKE;
    use crate::server::client::ConnectionState;
    use crate::text::table::rows;
    use crate::threads::lock;

    /// How long a pause lasts.
    const PAUSE: Duration = Duration::from_secs(60);

    /// A part of a body.
    enum Part {
        Bytes(Vec<u8>),
        /// The connection is lost.
        Reset,
        /// No data comes for [`PAUSE`].
        Pause,
    }

    impl Part {
        /// The part that a word of the table names.
        fn of(word: &str) -> Part {
            let text = match word {
                "RESET" => return Part::Reset,
                "PAUSE" => return Part::Pause,
                "HELLO" => "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n",
                "STOP" => "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
                "BLOCKED" => {
                    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}\n\n"
                }
                "THINK" => "data: {\"choices\":[{\"delta\":{\"reasoning\":\"Hm\"}}]}\n\n",
                "LENGTH" => "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n",
                "CALL" => {
                    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}}]}}]}\n\n"
                }
                "CALLED" => {
                    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n"
                }
                "DONE" => "data: [DONE]\n\n",
                text => &text.replace('␊', "\n").replace("MARK", "\u{FEFF}"),
            };
            Part::Bytes(text.as_bytes().to_vec())
        }
    }

    /// A body that arrives in parts.
    struct BodyParts {
        parts: Vec<Part>,
        connection: Arc<Mutex<ConnectionState>>,
    }

    impl Read for BodyParts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            while !self.parts.is_empty() {
                match self.parts.remove(0) {
                    Part::Bytes(bytes) => {
                        let count = bytes.len().min(buffer.len());
                        buffer[..count].copy_from_slice(&bytes[..count]);
                        if count < bytes.len() {
                            self.parts.insert(0, Part::Bytes(bytes[count..].to_vec()));
                        }
                        return Ok(count);
                    }
                    Part::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
                    Part::Pause => {
                        let timeout = lock(&self.connection).read_timeout;
                        if timeout.is_some_and(|timeout| timeout <= PAUSE) {
                            return Err(io::ErrorKind::TimedOut.into());
                        }
                    }
                }
            }
            Ok(0)
        }
    }

    /// A reader of a reply that arrives in these parts.
    fn reader_of(parts: Vec<Part>) -> ReplyReader<'static> {
        let connection = Arc::default();
        let body = BodyParts {
            parts,
            connection: Arc::clone(&connection),
        };
        let content_type = http::HeaderValue::from_static("text/plain");
        let response = Response {
            headers: [(http::header::CONTENT_TYPE, content_type)]
                .into_iter()
                .collect(),
            body: Box::new(body),
            connection,
        };
        ReplyReader::new(OPENAI_LIKE.api, response)
    }

    /// The text of a reply that arrives in these parts, whether its last piece is marked, and how reading ended.
    fn read(parts: Vec<Part>) -> (String, bool, Result<(), ReadError>) {
        let mut reader = reader_of(parts);
        let mut reply = Reply::default();
        let (mut text, mut has_last) = (String::new(), false);
        loop {
            match reader.next(&mut reply) {
                Ok(Some(piece)) => {
                    text += &piece.text;
                    has_last = piece.is_last;
                }
                Ok(None) => return (text, has_last, Ok(())),
                Err(error) => return (text, has_last, Err(error)),
            }
        }
    }

    #[test]
    fn the_end_of_a_stream_decides_whether_its_answer_is_complete() {
        // What comes, separated by semicolons; the text of the answer; and how reading ends.
        let table = r##"
            HELLO; STOP; DONE | Hello | complete
            HELLO; DONE | Hello | complete
            HELLO; data: [DONE] | Hello | complete
            HELLO; DONE; RESET | Hello | complete
            HELLO; DONE; HELLO | Hello | complete
            ␊␊; : waiting␊␊; HELLO; DONE | Hello | complete
            HELLO; STOP | Hello | complete
            HELLO; STOP; RESET | Hello | complete
            HELLO; STOP; : waiting␊␊; RESET | Hello | complete
            HELLO; STOP; PAUSE; HELLO; DONE | Hello | complete
            STOP; PAUSE; HELLO; STOP; DONE | Hello | complete
            THINK; STOP; PAUSE; HELLO; STOP; DONE | Hello | complete
            THINK; LENGTH; PAUSE; HELLO; DONE | - | complete
            CALL; CALLED; PAUSE; HELLO; DONE | - | complete
            BLOCKED; PAUSE; HELLO; DONE | - | ended
            HELLO; STOP; data: {"choi | Hello | complete
            HELLO; STOP; data: {"choi; RESET | Hello | complete
            HELLO; STOP; HELLO; DONE | HelloHello | complete
            HELLO; STOP; HELLO | HelloHello | complete
            HELLO; STOP; HELLO; RESET | HelloHello | Connection
            HELLO; STOP; HELLO; PAUSE; HELLO; DONE | HelloHelloHello | complete
            HELLO; PAUSE; HELLO; STOP | HelloHello | complete
            HELLO | Hello | Broken("the stream ended before the answer did
            HELLO; RESET | Hello | Connection
            HELLO; data: {"choi | Hello | Broken("the stream ended before the answer did
            HELLO; data: {"choi; RESET | Hello | Connection
            HELLO; data: {␊␊ | Hello | Reply(Malformed
            HELLO; data: {␊␊; STOP; DONE | Hello | Reply(Malformed
            HELLO; data: {"error":"down"}␊␊ | Hello | Reply(Server
            HELLO; STOP; data: {"error":"down"}␊␊ | Hello | Reply(Server
            HELLO; noise␊{"error":"down"}␊ | Hello | Reply(Server
            HELLO; STOP; {"error":"down"}␊ | Hello | Reply(Server
            RESET | - | Connection
            - | - | Broken("the server accepted the question and sent nothing
            ␊␊ | - | Broken("the server accepted the question and sent nothing
            <html> | - | NotFromApi(Other("text/plain"))
            <html><title>Sign in</title> | - | NotFromApi(Page("Sign in"))
        "##;
        check_ends(table);
    }

    #[test]
    fn a_stream_that_is_only_kept_alive_after_a_finish_reason_ends() {
        for (begin, timeout) in [
            ("HELLO; STOP", END_TIMEOUT),
            ("THINK; LENGTH", END_TIMEOUT),
            ("CALL; CALLED", END_TIMEOUT),
            ("STOP; THINK", EMPTY_END_TIMEOUT),
        ] {
            let mut words = Vec::from_iter(begin.split("; "));
            words.extend([": waiting␊␊"; 1000]);
            let mut reader = reader_of(Vec::from_iter(words.into_iter().map(Part::of)));
            let mut reply = Reply::default();
            for _ in 0..3 {
                assert!(matches!(reader.next(&mut reply), Ok(Some(_))), "{begin}");
            }
            let since = reader.finished.expect(begin);
            reader.finished = since.checked_sub(timeout - Duration::from_secs(5));
            let next = reader.next(&mut reply);
            assert!(next.is_ok() && matches!(reader.stage, ReadingStage::Streaming));
            reader.finished = since.checked_sub(timeout);
            let end = [reader.next(&mut reply), reader.next(&mut reply)];
            assert!(matches!(&end, [Ok(Some(_)), Ok(Some(last))] if last.is_last));
            assert!(matches!(reader.next(&mut reply), Ok(None)), "{begin}");
        }
    }

    #[test]
    fn reasoning_after_a_finish_reason_leaves_the_rest_its_time() {
        let words = ["STOP", ": waiting␊␊", "THINK", "THINK"];
        let mut reader = reader_of(Vec::from_iter(words.map(Part::of)));
        let mut reply = Reply::default();
        let mut has_time = Vec::new();
        for _ in words {
            assert!(matches!(reader.next(&mut reply), Ok(Some(_))));
            has_time.push(reader.finished.is_none());
        }
        assert_eq!(has_time, [true, false, true, true]);
    }

    #[test]
    fn a_reply_in_one_piece_is_complete_unless_it_is_an_error() {
        let table = r##"
            {"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]} | Hello | complete
            ␊; {"choices":; [{"message":{"content":"Hello"}}]} | Hello | complete
            MARK{"choices":; [{"message":{"content":"Hello"}}]} | Hello | complete
            MARK; {"choices":[{"message":{"content":"Hello"}}]} | Hello | complete
            MARK{"error":"down"} | - | Reply(Server
            {"choices":; RESET | - | Connection
            {"choices": | - | Reply(Malformed
            {"error":"down"} | - | Reply(Server
            {"detail":"down"} | - | Reply(Server
        "##;
        check_ends(table);
    }

    /// Checks each row of a table: what comes, the text of the answer, and how the error begins.
    fn check_ends(table: &'static str) {
        for [parts, expected, end] in rows(table) {
            let words = parts.split("; ").filter(|part| !part.is_empty());
            let (text, has_last, ended) = read(words.map(Part::of).collect());
            assert_eq!(text, expected, "{parts}");
            match ended {
                // An answer that was blocked has no last piece.
                Ok(()) => {
                    let found = if has_last { "complete" } else { "ended" };
                    assert_eq!(found, end, "{parts}");
                }
                Err(error) => {
                    let error = format!("{error:?}");
                    assert!(error.starts_with(end), "{parts}: {error}");
                }
            }
        }
    }
}
