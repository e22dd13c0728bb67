//! An HTTP/1.1 server inside the test process: it records every request (`request.rs`) and answers from a script (`reply.rs`).

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use super::locks::lock;
use super::reply::{Framing, Step, framed};
pub use super::reply::{Gate, Reply};
pub use super::request::Recorded;
use super::request::read_request;
use super::times::GUARD;

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

    /// Fails unless there were exactly this many requests, and shows them.
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
                    let sender = self.sender.clone();
                    // The connection may have ended when it opens.
                    gate.when_open(move || drop(sender.send(Event::GateOpened)));
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
