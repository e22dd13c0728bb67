//! The script of a reply of the server inside the test process, and the gate that holds it back.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::locks::lock;

/// Holds a reply back until the test opens it, so that no test has to sleep.
#[derive(Clone, Default)]
pub struct Gate {
    state: Arc<Mutex<GateState>>,
}

#[derive(Default)]
struct GateState {
    open: bool,
    /// What is called when it opens.
    waiting: Vec<Box<dyn FnOnce() + Send>>,
}

impl Gate {
    pub fn new() -> Gate {
        Gate::default()
    }

    pub fn open(&self) {
        let mut state = lock(&self.state);
        state.open = true;
        for waiting in state.waiting.drain(..) {
            waiting();
        }
    }

    pub(super) fn is_open(&self) -> bool {
        lock(&self.state).open
    }

    /// Calls this when it opens.
    pub(super) fn when_open(&self, call: impl FnOnce() + Send + 'static) {
        lock(&self.state).waiting.push(Box::new(call));
    }
}

/// The script of one reply: its head, then steps in order.
#[derive(Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    pub(super) framing: Framing,
    pub(super) keep_alive: bool,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Framing {
    Length,
    Chunked,
    Raw,
}

#[derive(Clone)]
pub(super) enum Step {
    Piece(Vec<u8>),
    Wait(Gate),
    Do(Arc<dyn Fn() + Send + Sync>),
    Hang,
    Cut,
    Reset,
}

impl Reply {
    /// No body yet; what `piece` adds is announced by `Content-Length`.
    pub fn new(status: u16) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            framing: Framing::Length,
            keep_alive: false,
            steps: Vec::new(),
        }
    }

    pub fn json(status: u16, value: Value) -> Reply {
        Reply::new(status)
            .header("content-type", "application/json")
            .piece(value.to_string())
    }

    /// A chunked event stream, each piece a chunk and a write of its own.
    pub fn sse<P: AsRef<[u8]>>(pieces: impl IntoIterator<Item = P>) -> Reply {
        let reply = Reply::new(200).header("content-type", "text/event-stream");
        reply.chunked().pieces(pieces)
    }

    /// These bytes and no others on the socket, no head added, then close.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Reply {
        let mut reply = Reply::new(200).piece(bytes);
        reply.framing = Framing::Raw;
        reply
    }

    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn chunked(mut self) -> Reply {
        self.framing = Framing::Chunked;
        self
    }

    /// The connection stays open for the next request. After a raw reply too: a raw answer to `CONNECT` makes the
    /// server its own proxy.
    pub fn keep_alive(mut self) -> Reply {
        self.keep_alive = true;
        self
    }

    pub fn piece(self, bytes: impl AsRef<[u8]>) -> Reply {
        self.step(Step::Piece(bytes.as_ref().to_vec()))
    }

    pub fn pieces<P: AsRef<[u8]>>(self, pieces: impl IntoIterator<Item = P>) -> Reply {
        pieces.into_iter().fold(self, Reply::piece)
    }

    pub fn wait_for(self, gate: &Gate) -> Reply {
        self.step(Step::Wait(gate.clone()))
    }

    /// Does something between two pieces.
    pub fn then(self, action: impl Fn() + Send + Sync + 'static) -> Reply {
        self.step(Step::Do(Arc::new(action)))
    }

    /// Sends nothing more and keeps the connection open until the client leaves or the server is dropped.
    pub fn hang(self) -> Reply {
        self.step(Step::Hang)
    }

    /// Closes the connection with the body unfinished.
    pub fn cut(self) -> Reply {
        self.step(Step::Cut)
    }

    /// Closes the connection with a TCP reset.
    pub fn reset(self) -> Reply {
        self.step(Step::Reset)
    }

    fn step(mut self, step: Step) -> Reply {
        self.steps.push(step);
        self
    }

    pub(super) fn head(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match self.framing {
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
            Framing::Length => head.push_str(&format!("content-length: {}\r\n", self.length())),
            Framing::Raw => return Vec::new(),
        }
        let connection = if self.keep_alive {
            "keep-alive"
        } else {
            "close"
        };
        head.push_str(&format!("connection: {connection}\r\n\r\n"));
        head.into_bytes()
    }

    fn length(&self) -> usize {
        let mut length = 0;
        for step in &self.steps {
            match step {
                Step::Piece(bytes) => length += bytes.len(),
                Step::Wait(_) | Step::Do(_) => {}
                // A body that breaks off must be announced as longer than it turns out, or nobody could tell.
                Step::Hang | Step::Cut | Step::Reset => return length + 1,
            }
        }
        length
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 | 302 | 307 | 308 => "Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

/// A part of the body as it is sent.
pub(super) fn framed(framing: Framing, bytes: &[u8]) -> Vec<u8> {
    // An empty chunk would end the body.
    if framing != Framing::Chunked || bytes.is_empty() {
        return bytes.to_vec();
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
