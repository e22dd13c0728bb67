//! A response: its headers, and its body as it arrives.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::HeaderValue;

use super::coding::{self, CodedBody};
use super::connections::ConnectionState;
use crate::threads::lock;

/// The most that q reads of an error's body, and how long that may take: the status is known already.
const MAX_ERROR_BODY: usize = 256 << 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of an error's body is read at once.
const ERROR_READ_SIZE: usize = 16 << 10;

/// A response, whose body is read as it arrives.
pub struct Response {
    pub headers: http::HeaderMap,
    pub body: Box<dyn Read + Send>,
    pub connection: Arc<Mutex<ConnectionState>>,
}

impl Response {
    /// Returns the value of a header; empty if there is none, or if it is not text.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(HeaderValue::to_str);
        value.and_then(Result::ok).unwrap_or_default()
    }

    pub fn content_type(&self) -> &str {
        self.header("content-type")
    }

    /// Returns the response, whose body is an error as soon as it turns out to be compressed.
    pub(super) fn with_checked_coding(mut self) -> Response {
        let mut coding = self.header("content-encoding").trim().to_owned();
        if coding.eq_ignore_ascii_case("identity") {
            coding.clear();
        }
        self.body = Box::new(CodedBody::new(coding, self.body));
        self
    }

    /// Returns the content type in lowercase, without its parameters.
    pub fn media_type(&self) -> String {
        let media_type = self.content_type().split(';').next();
        media_type.unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Reads the beginning of an error's body. An incomplete one still says more than none.
    ///
    /// # Errors
    ///
    /// The body is compressed.
    pub(super) fn read_error(&mut self) -> io::Result<String> {
        let began = Instant::now();
        let mut beginning = Vec::new();
        let mut buffer = vec![0; ERROR_READ_SIZE];
        while beginning.len() < MAX_ERROR_BODY
            && let left = ERROR_BODY_TIMEOUT.saturating_sub(began.elapsed())
            && !left.is_zero()
        {
            lock(&self.connection).read_timeout = Some(left);
            match self.body.read(&mut buffer) {
                Ok(count @ 1..) => beginning.extend_from_slice(&buffer[..count]),
                Ok(0) => break,
                Err(error) if coding::of_error(&error).is_some() => return Err(error),
                Err(_) => break,
            }
        }
        beginning.truncate(MAX_ERROR_BODY);
        Ok(String::from_utf8_lossy(&beginning).into_owned())
    }
}
