//! An HTTP/1.1 server inside the test process: it records every request and answers from a script.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use serde_json::Value;

use super::locks::lock;
use super::times::GUARD;

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

/// Holds a reply back until the test opens it, so that no test has to sleep.
#[derive(Clone, Default)]
pub struct Gate {
    state: Arc<Mutex<GateState>>,
}

#[derive(Default)]
struct GateState {
    open: bool,
    waiting: Vec<Sender<Event>>,
}

impl Gate {
    pub fn new() -> Gate {
        Gate::default()
    }

    pub fn open(&self) {
        let mut state = lock(&self.state);
        state.open = true;
        for waiting in state.waiting.drain(..) {
            // The connection may have ended meanwhile.
            let _ = waiting.send(Event::GateOpened);
        }
    }

    fn is_open(&self) -> bool {
        lock(&self.state).open
    }

    fn tell(&self, connection: Sender<Event>) {
        lock(&self.state).waiting.push(connection);
    }
}

/// The script of one reply: its head, then steps in order.
#[derive(Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    framing: Framing,
    keep_alive: bool,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, PartialEq)]
enum Framing {
    Length,
    Chunked,
    Raw,
}

#[derive(Clone)]
enum Step {
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

    fn head(&self) -> Vec<u8> {
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

type Handler = dyn Fn(&Recorded, usize) -> Reply + Send + Sync;

/// The server; dropping it ends every connection and every thread.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    handler: Box<Handler>,
    keeps_requests: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    requests: Vec<Recorded>,
    /// How many connections there were.
    accepted: usize,
    handler_panicked: bool,
    stopping: bool,
    connections: HashMap<usize, Open>,
    threads: Vec<JoinHandle<()>>,
}

/// What is needed to end a connection from outside; weak, so that a reset or close is not held up by it.
struct Open {
    stream: Weak<TcpStream>,
    events: Sender<Event>,
}

enum Event {
    Request(Recorded),
    Malformed(String),
    ClientGone,
    GateOpened,
    ServerDropped,
}

impl Server {
    /// Answers each request with what `handler` makes of it and of its number, counted from 0. A handler that panics
    /// fails the test when the server is dropped.
    pub fn start(handler: impl Fn(&Recorded, usize) -> Reply + Send + Sync + 'static) -> Server {
        Server::listen(Box::new(handler), true)
    }

    /// The same, but requests are forgotten: for a server that answers a million of them.
    #[allow(dead_code, reason = "the soak needs it")]
    pub fn forgetful(handler: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Server {
        Server::listen(Box::new(move |request, _| handler(request)), false)
    }

    fn listen(handler: Box<Handler>, keeps_requests: bool) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on 127.0.0.1");
        let address = listener.local_addr().expect("the listener's address");
        let shared = Arc::new(Shared {
            handler,
            keeps_requests,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Server {
            address,
            shared,
            accepting: Some(accepting),
        }
    }

    /// Answers every request with this reply.
    pub fn always(reply: Reply) -> Server {
        Server::start(move |_, _| reply.clone())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Scheme, host and port, no slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.state).requests.clone()
    }

    /// The only request that there was.
    #[track_caller]
    pub fn request(&self) -> Recorded {
        let mut requests = self.requests();
        let text = overview(&requests);
        assert_eq!(requests.len(), 1, "the requests:\n{text}");
        requests.remove(0)
    }

    /// The newest request.
    #[track_caller]
    pub fn last_request(&self) -> Recorded {
        self.requests().pop().expect("a request")
    }

    /// Fails unless there were exactly so many requests, and shows those that there were.
    #[track_caller]
    pub fn expect_requests(&self, count: usize) {
        let requests = self.requests();
        let text = overview(&requests);
        assert_eq!(requests.len(), count, "the requests:\n{text}");
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        lock(&self.shared.state).accepted
    }

    /// Returns once that many requests have arrived, those before included.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) {
        self.wait_for("requests", count, |state| state.requests.len());
    }

    /// Returns once there were that many connections.
    #[track_caller]
    pub fn wait_for_connections(&self, count: usize) {
        self.wait_for("connections", count, |state| state.accepted);
    }

    #[track_caller]
    fn wait_for(&self, what: &str, count: usize, counted: fn(&State) -> usize) {
        let (state, time_out) = self
            .shared
            .changed
            .wait_timeout_while(lock(&self.shared.state), GUARD, |state| {
                counted(state) < count
            })
            .unwrap_or_else(PoisonError::into_inner);
        let found = counted(&state);
        drop(state);
        assert!(
            !time_out.timed_out(),
            "waited in vain for {count} {what}, not {found}"
        );
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let connections = {
            let mut state = lock(&self.shared.state);
            state.stopping = true;
            std::mem::take(&mut state.connections)
        };
        for connection in connections.into_values() {
            let _ = connection.events.send(Event::ServerDropped);
            if let Some(stream) = connection.stream.upgrade() {
                // Wakes its reader, and a writer whose client does not read.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        // Accepting ends with the next connection, which is this one.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            let _ = accepting.join();
        }
        let threads = std::mem::take(&mut lock(&self.shared.state).threads);
        for thread in threads {
            let _ = thread.join();
        }
        if thread::panicking() {
            let (address, text) = (self.address, overview(&self.requests()));
            eprintln!("the server at {address} got these requests:\n{text}");
        }
        let panicked = lock(&self.shared.state).handler_panicked;
        // A second panic during a first would abort the whole test run.
        if panicked && !thread::panicking() {
            panic!("the server's handler panicked");
        }
    }
}

/// A line for each request, with the beginning of its body.
fn overview(requests: &[Recorded]) -> String {
    let line = |request: &Recorded| {
        let body: String = request.text().chars().take(1_000).collect();
        format!("  {} {} {body}\n", request.method, request.path)
    };
    if requests.is_empty() {
        "  none\n".to_owned()
    } else {
        requests.iter().map(line).collect()
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for number in 0.. {
        let accepted = listener.accept();
        let mut state = lock(&shared.state);
        if state.stopping {
            return;
        }
        // A client that is gone before it is accepted is no fault of the server's.
        let Ok((stream, _)) = accepted else { continue };
        let stream = Arc::new(stream);
        let (sender, events) = mpsc::channel();
        let open = Open {
            stream: Arc::downgrade(&stream),
            events: sender.clone(),
        };
        state.connections.insert(number, open);
        state.accepted += 1;
        shared.changed.notify_all();
        let thread = thread::spawn({
            let shared = Arc::clone(shared);
            move || {
                serve(stream, number, (sender, events), &shared);
                lock(&shared.state).connections.remove(&number);
            }
        });
        state.threads.retain(|thread| !thread.is_finished());
        state.threads.push(thread);
    }
}

/// One connection, from its first request to its end. A second thread reads, so that a client that leaves is noticed
/// in the middle of a reply.
fn serve(
    stream: Arc<TcpStream>,
    place: usize,
    (sender, events): (Sender<Event>, Receiver<Event>),
    shared: &Arc<Shared>,
) {
    // Each piece is to leave at once.
    let _ = stream.set_nodelay(true);
    let reading = thread::spawn({
        let (stream, sender) = (Arc::clone(&stream), sender.clone());
        move || read_requests(&stream, &sender)
    });
    let mut connection = Connection {
        stream,
        sender,
        events,
        queued: VecDeque::new(),
        ended: false,
    };
    let mut end = End::Close;
    while let Some(mut request) = connection.next_request() {
        request.connection = place;
        let number = {
            let mut state = lock(&shared.state);
            if shared.keeps_requests {
                state.requests.push(request.clone());
            }
            shared.changed.notify_all();
            state.requests.len().saturating_sub(1)
        };
        // An assertion that fails in a handler must not leave the client waiting.
        let called = AssertUnwindSafe(|| (shared.handler)(&request, number));
        let Ok(reply) = panic::catch_unwind(called) else {
            lock(&shared.state).handler_panicked = true;
            break;
        };
        end = connection.answer(&reply);
        if end != End::Keep {
            break;
        }
    }
    let stream = connection.stream;
    match end {
        End::Reset => {
            reset_on_close(&stream);
            let _ = stream.shutdown(Shutdown::Read);
        }
        _ => {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
    // The socket is closed when its last owner is gone: the reader first, then this one.
    let _ = reading.join();
    drop(stream);
}

fn read_requests(stream: &TcpStream, events: &Sender<Event>) {
    let mut reader = BufReader::new(stream);
    let last = loop {
        match read_request(&mut reader, stream) {
            Ok(Some(request)) => {
                if events.send(Event::Request(request)).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                break Event::Malformed(error.to_string());
            }
            // A reset is as good a farewell as a proper end.
            Ok(None) | Err(_) => break Event::ClientGone,
        }
    };
    let _ = events.send(last);
}

struct Connection {
    stream: Arc<TcpStream>,
    sender: Sender<Event>,
    events: Receiver<Event>,
    /// Requests that came before the reply to an earlier one was finished.
    queued: VecDeque<Recorded>,
    ended: bool,
}

#[derive(PartialEq)]
enum End {
    Keep,
    Close,
    Reset,
}

impl Connection {
    fn next_request(&mut self) -> Option<Recorded> {
        while self.queued.is_empty() && !self.ended {
            match self.events.recv() {
                Ok(Event::Malformed(what)) => {
                    let reply = Reply::new(400).piece(what);
                    self.answer(&reply);
                    self.ended = true;
                }
                Ok(event) => self.note(event),
                Err(_) => self.ended = true,
            }
        }
        self.queued.pop_front()
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Request(request) => self.queued.push_back(request),
            Event::GateOpened => {}
            Event::Malformed(_) | Event::ClientGone | Event::ServerDropped => self.ended = true,
        }
    }

    fn answer(&mut self, reply: &Reply) -> End {
        // A head and the body's first piece may not share a write: a test may want the head alone.
        if self.send(&reply.head()).is_err() {
            return End::Close;
        }
        for step in &reply.steps {
            match step {
                Step::Piece(bytes) => {
                    if self.send(&framed(reply.framing, bytes)).is_err() {
                        return End::Close;
                    }
                }
                Step::Wait(gate) => {
                    gate.tell(self.sender.clone());
                    self.wait_while(|| !gate.is_open());
                    if self.ended {
                        return End::Close;
                    }
                }
                Step::Do(action) => action(),
                Step::Hang => {
                    self.wait_while(|| true);
                    return End::Close;
                }
                Step::Cut => return End::Close,
                Step::Reset => return End::Reset,
            }
        }
        if reply.framing == Framing::Chunked && self.send(b"0\r\n\r\n").is_err() {
            return End::Close;
        }
        if reply.keep_alive {
            End::Keep
        } else {
            End::Close
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&*self.stream).write_all(bytes)
    }

    fn wait_while(&mut self, closed: impl Fn() -> bool) {
        while closed() && !self.ended {
            match self.events.recv() {
                Ok(event) => self.note(event),
                Err(_) => self.ended = true,
            }
        }
    }
}

fn framed(framing: Framing, bytes: &[u8]) -> Vec<u8> {
    // An empty chunk would end the body.
    if framing != Framing::Chunked || bytes.is_empty() {
        return bytes.to_vec();
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// Makes closing the socket send a reset.
fn reset_on_close(stream: &TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the descriptor is open for as long as `stream` is borrowed, and the size is that of the value.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        )
    };
    let error = io::Error::last_os_error();
    assert_eq!(result, 0, "setting SO_LINGER: {error}");
}

/// The next request, or nothing where the client closed the connection instead.
fn read_request(
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
