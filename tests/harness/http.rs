//! The part of HTTP that the servers of the benchmark and of the soak need.

use std::io::{self, BufRead, BufReader, Read};

/// Reads a request, and returns its body.
pub fn read_body(stream: impl Read) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok(body)
}
