//! A bare client, for comparison: one request over a socket, its answer to standard output, and nothing else.

use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_default();
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"question"}]}"#;
    let mut stream = std::net::TcpStream::connect(&address)?;
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = vec![0; 64 << 10];
    let mut stdout = std::io::stdout().lock();
    loop {
        match stream.read(&mut answer)? {
            0 => return stdout.flush(),
            count => stdout.write_all(&answer[..count])?,
        }
    }
}
