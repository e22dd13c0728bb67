//! What a transcript tells a server to answer, as a reply.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::format::Directive;
use crate::harness::server::{Reply, Server};
use crate::keys::{Key, Setup};
use crate::matching::bytes_of;

/// How the bytes of a reply arrive.
#[derive(Clone, Copy, PartialEq)]
pub enum Chunking {
    Whole,
    RandomPieces,
    SingleBytes,
}

/// What the words after `@reply` say of a reply.
#[derive(Default)]
struct ReplySpec<'a> {
    status: Option<u16>,
    flags: Vec<&'a str>,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> ReplySpec<'a> {
    fn parse(text: &'a str) -> ReplySpec<'a> {
        let mut spec = ReplySpec::default();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find([' ', '=']).unwrap_or(rest.len());
            let word = &rest[..end];
            rest = &rest[end..];
            if let Some(value) = rest.strip_prefix('=') {
                let (value, after) = match value.strip_prefix('"') {
                    Some(quoted) => quoted.split_once('"').expect("another quote"),
                    None => value.split_once(' ').unwrap_or((value, "")),
                };
                spec.headers.push((word, value));
                rest = after;
            } else if let Ok(status) = word.parse() {
                spec.status = Some(status);
            } else {
                spec.flags.push(word);
            }
            rest = rest.trim_start();
        }
        spec
    }
}

/// The reply that a directive describes: a status, words and headers, and the body below it.
pub fn reply(directive: &Directive, chunking: Chunking) -> Reply {
    let spec = ReplySpec::parse(&directive.value);
    let has = |flag: &str| spec.flags.contains(&flag);
    let stop = spec.headers.iter().find(|(name, _)| *name == "blocks");
    let mut body = match stop {
        Some((_, reason)) => blocks(directive, reason),
        None => body(directive, &spec.flags),
    };
    let status = spec.status.unwrap_or(200);
    let is_stream =
        has("stream") || (status == 200 && !body.starts_with(b"{") && !body.starts_with(b"["));
    let mut reply = if has("raw") {
        Reply::raw("")
    } else {
        Reply::new(status)
    };
    let mut kind = if is_stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let mut pause = None;
    for (name, value) in spec.headers {
        match name {
            "blocks" => {}
            "content-type" => kind = value,
            "pause" => pause = Some(value.parse().expect("seconds")),
            _ => reply = reply.header(name, value),
        }
    }
    if !body.is_empty() {
        reply = reply.header("content-type", kind);
    }
    if !has("raw") && (is_stream || chunking != Chunking::Whole) {
        reply = reply.chunked();
    }
    reply = match pause {
        Some(seconds) => paused(reply, &body, seconds),
        None if has("stream") && chunking == Chunking::Whole => reply.pieces(events(&mut body)),
        None if body.is_empty() => reply,
        None => reply.pieces(pieces(&body, chunking)),
    };
    if has("cut") {
        reply.cut()
    } else if has("reset") {
        reply.reset()
    } else if has("hang") {
        reply.hang()
    } else {
        reply
    }
}

/// The bytes of the body. With `stream` each line is an event; other words say how lines begin and end.
fn body(directive: &Directive, flags: &[&str]) -> Vec<u8> {
    let mut text = directive.text();
    if flags.contains(&"stream") {
        text.clear();
        for line in &directive.block {
            let is_json = line.starts_with(['{', '[']);
            let data = if is_json { "data: " } else { "" };
            text.push_str(&format!("{data}{line}\n\n"));
        }
        if flags.contains(&"done") {
            text.push_str("data: [DONE]\n\n");
        }
    }
    if flags.contains(&"named") {
        text.clear();
        for line in &directive.block {
            // Not parsed: an event may have half a surrogate pair, which no parser takes.
            let (_, rest) = line.split_once("\"type\":").expect("a type");
            let name = rest.split('"').nth(1).expect("its name");
            text.push_str(&format!("event: {name}\ndata: {line}\n\n"));
        }
    }
    let ends: &[&str] = if flags.contains(&"crlf") {
        &["\r\n"]
    } else if flags.contains(&"cr") {
        &["\r"]
    } else if flags.contains(&"mixed") {
        &["\r\n", "\r", "\n", "\r", "\r\n", "\n"]
    } else {
        &["\n"]
    };
    let mut ends = ends.iter().cycle();
    let mut bytes = Vec::new();
    if flags.contains(&"bom") {
        bytes.extend_from_slice(b"\xEF\xBB\xBF");
    }
    for line in text.split_inclusive('\n') {
        bytes.extend(bytes_of(line.trim_end_matches('\n')));
        if line.ends_with('\n') {
            bytes.extend_from_slice(ends.next().expect("an end").as_bytes());
        }
    }
    bytes
}

/// The events of an answer of Anthropic's that has these blocks, and ends for this reason.
fn blocks(directive: &Directive, reason: &str) -> Vec<u8> {
    let given = directive.text();
    let mut values = serde_json::Deserializer::from_str(&given).into_iter::<Value>();
    let mut text = String::new();
    let (mut index, mut begin) = (0, 0);
    while let Some(value) = values.next() {
        value.expect("a block as JSON");
        let block = &given[begin..values.byte_offset()].trim();
        begin = values.byte_offset();
        text.push_str(&format!(
            "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{block}}}\n\n"
        ));
        index += 1;
    }
    text.push_str(&format!(
        "data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\"}},\"usage\":{{\"output_tokens\":2}}}}\n\n"
    ));
    text.push_str("data: {\"type\":\"message_stop\"}\n\n");
    text.into_bytes()
}

/// Each event of a stream by itself.
fn events(body: &mut [u8]) -> Vec<Vec<u8>> {
    let mut events = vec![Vec::new()];
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let event = events.last_mut().expect("one at least");
        event.extend_from_slice(line);
        if line == b"\n" {
            events.push(Vec::new());
        }
    }
    events.retain(|event| !event.is_empty());
    events
}

/// The first event, that many seconds without data, and the rest.
fn paused(reply: Reply, body: &[u8], seconds: u64) -> Reply {
    let end = body
        .windows(2)
        .position(|two| two == b"\n\n")
        .expect("an event")
        + 2;
    reply
        .piece(&body[..end])
        .then(move || thread::sleep(Duration::from_secs(seconds)))
        .piece(&body[end..])
}

/// The silence of `pause` begins when the first event is sent, however long ago the directive was read.
pub fn check_pause() {
    let directive = Directive {
        key: Key::Setup(Setup::Reply),
        value: "stream pause=1".to_owned(),
        block: vec!["{}".to_owned(), "{}".to_owned()],
    };
    let server = Server::always(reply(&directive, Chunking::Whole));
    thread::sleep(Duration::from_secs(1));
    let mut client = TcpStream::connect(server.address()).expect("a connection");
    let asked = Instant::now();
    client
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .expect("a request");
    client.read_to_end(&mut Vec::new()).expect("an answer");
    assert!(asked.elapsed() >= Duration::from_secs(1), "no silence");
}

/// The body as it arrives: whole, byte by byte, or in pieces of 1 to 32 bytes, the same ones in every run.
fn pieces(body: &[u8], chunking: Chunking) -> Vec<&[u8]> {
    let mut state = 20_261_122_u64;
    let mut rest = body;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let length = match chunking {
            Chunking::Whole => rest.len(),
            Chunking::SingleBytes => 1,
            Chunking::RandomPieces => {
                // The constants are Knuth's; the low bits of such a sequence are not random.
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(state >> 59).expect("five bits") + 1
            }
        };
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
