//! A request as the server inside the test process has read it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::time::Instant;

use serde_json::Value;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    /// The request target as sent, with its query; a proxy sees a whole URL or `host:port` here.
    pub path: String,
    /// Names in lower case; the values of a repeated header are joined with `, `.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    /// When the last byte of the request was read.
    pub received: Instant,
    /// The number of its connection, counted from 0.
    pub connection: usize,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!(
                "the body of {} {} is not JSON: {error}\n{}",
                self.method,
                self.path,
                self.text()
            ),
        }
    }
}

/// The next request, or nothing where the client closed the connection instead.
pub(super) fn read_request(
    reader: &mut impl BufRead,
    mut interim: impl Write,
) -> io::Result<Option<Recorded>> {
    let Some(first) = read_line(reader)? else {
        return Ok(None);
    };
    let mut words = first.split(' ');
    let (Some(method), Some(path), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(malformed(&format!("not a request line: {first:?}")));
    };
    let mut headers = BTreeMap::<String, String>::new();
    loop {
        let line = read_line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| malformed(&format!("not a header: {line:?}")))?;
        headers
            .entry(name.to_ascii_lowercase())
            .and_modify(|values| {
                values.push_str(", ");
                values.push_str(value.trim());
            })
            .or_insert_with(|| value.trim().to_owned());
    }
    if headers.get("expect").map(String::as_str) == Some("100-continue") {
        interim.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = read_body(reader, &headers)?;
    Ok(Some(Recorded {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
        body,
        received: Instant::now(),
        connection: 0,
    }))
}

fn read_body(reader: &mut impl BufRead, headers: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if headers.get("transfer-encoding").map(String::as_str) == Some("chunked") {
        loop {
            let line = read_line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            let length = usize::from_str_radix(line.trim(), 16)
                .map_err(|_| malformed(&format!("not a chunk's length: {line:?}")))?;
            read_exactly(reader, length, &mut body)?;
            // The newline after the chunk.
            read_line(reader)?;
            if length == 0 {
                break;
            }
        }
    } else if let Some(length) = headers.get("content-length") {
        let length = length
            .parse()
            .map_err(|_| malformed(&format!("not a length: {length:?}")))?;
        read_exactly(reader, length, &mut body)?;
    }
    Ok(body)
}

fn read_exactly(reader: &mut impl BufRead, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    // Grows with what arrives and not with what is announced.
    let read = reader.take(length as u64).read_to_end(body)?;
    if read < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// One line without its end, or nothing at the end of the stream.
fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if reader.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&line);
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
