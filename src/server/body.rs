//! Reads the body of a response, as it arrives or to its end.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use super::client::Response;
use super::sse::{self, TooLong};
use crate::provider::ReplyError;
use crate::provider::failure;
use crate::secret::{self, Secrets};
use crate::text::one_line::beginning;
use crate::text::size::in_units;
use crate::threads::lock;

/// How long the rest of a body may take after the terminal event: no longer than another connection would.
const REST_TIMEOUT: Duration = Duration::from_millis(100);

/// How much is read at once; one write to standard output follows each read.
const READ_SIZE: usize = 16 << 10;

/// The most characters that are shown of the title of a page.
const MAX_TITLE: usize = 200;

/// A reason why there is no complete answer.
#[derive(Debug)]
pub enum ReadError {
    Connection(io::Error),
    /// What came is an error, or cannot be read.
    Reply(ReplyError),
    /// What is wrong with a body that is not an answer.
    Broken(String),
    /// It does not come from an API. The address may be wrong.
    NotFromApi(ForeignBody),
}

impl<E: Into<ReplyError>> From<E> for ReadError {
    fn from(error: E) -> ReadError {
        ReadError::Reply(error.into())
    }
}

/// The body of a response, as it arrives.
pub struct Body {
    pub response: Response,
    buffer: Vec<u8>,
    filled: usize,
}

impl Body {
    pub fn new(response: Response) -> Body {
        Body {
            response,
            buffer: vec![0; READ_SIZE],
            filled: 0,
        }
    }

    /// Waits for more bytes, at most this long. Returns how many have arrived: none at the end.
    pub fn fill(&mut self, read_timeout: Option<Duration>) -> io::Result<usize> {
        lock(&self.response.connection).read_timeout = read_timeout;
        self.filled = 0;
        self.filled = self.response.body.read(&mut self.buffer)?;
        Ok(self.filled)
    }

    /// Reads to the end if that comes at once: only then can another request have the same connection.
    pub fn read_rest(&mut self) {
        let began = Instant::now();
        while began.elapsed() < REST_TIMEOUT && matches!(self.fill(Some(REST_TIMEOUT)), Ok(1..)) {}
    }

    /// Returns the bytes that the last call of `fill` brought.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }
}

/// Reads a body of at most `limit` bytes to its end, after the bytes that have arrived of it already.
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

/// Returns the error for a body or a part of one that is too long.
pub fn too_long(what: &str, limit: usize) -> ReadError {
    ReadError::Broken(format!(
        "{what} has more than {size}",
        size = in_units(limit)
    ))
}

/// The body of a response that does not come from an API.
#[derive(Debug)]
pub enum ForeignBody {
    /// It is an HTML page with this title, however long that is. It may have secrets.
    Page(String),
    /// It has this content type.
    Other(String),
}

impl ForeignBody {
    pub fn of(body: &str, content_type: &str) -> ForeignBody {
        match failure::title(body) {
            Some(title) => ForeignBody::Page(title),
            None => ForeignBody::Other(content_type.to_owned()),
        }
    }

    /// Says what it is, without secrets. They are removed before a title is cut, so that no part of one is left.
    pub fn words(&self, secrets: &Secrets) -> String {
        match self {
            ForeignBody::Page(title) => {
                let title = beginning(&secret::redact(title, secrets), MAX_TITLE);
                format!("the server sent an HTML page: “{title}”")
            }
            ForeignBody::Other(content_type) => format!(
                "the response is neither JSON nor an event stream (content type “{content_type}”)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn a_secret_is_removed_from_a_title_before_that_is_cut() {
        const SECRET: &str = "secret-0123456789";
        let mut secrets = Secrets::default();
        secrets.add(&Secret::new(SECRET));
        for before in 0..=MAX_TITLE {
            let page = format!("<title>{}{SECRET} more</title>", "-".repeat(before));
            let words = ForeignBody::of(&page, "text/html").words(&secrets);
            assert!(!words.contains("sec"), "{before}: {words}");
        }
        let page = format!("<title>{}</title>", "-".repeat(MAX_TITLE + 1));
        let words = ForeignBody::of(&page, "text/html").words(&secrets);
        let shown = "-".repeat(MAX_TITLE - 1);
        assert_eq!(words, format!("the server sent an HTML page: “{shown}…”"));
    }
}
