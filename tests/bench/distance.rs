//! A server far away, on this machine: TLS, and a proxy before it that delays each direction by half a round trip.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::authority::Authority;
use crate::http;

/// From the server and back, once.
pub const ROUND_TRIP: Duration = Duration::from_millis(50);

pub struct Far {
    pub address: String,
    connections: Arc<AtomicUsize>,
}

impl Far {
    /// Writes the certificate of the server's authority. `answer` makes the events of a stream from the body of a request.
    pub fn start(certificate: &Path, answer: fn(&str) -> String) -> Far {
        let authority = Authority::new("far");
        std::fs::write(certificate, authority.pem()).expect("a file");
        let config = authority.server(&["127.0.0.1"], 2000..=2999);
        let server = listen(move |stream| serve(stream, &config, answer));
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let proxy = listen(move |stream| {
            counted.fetch_add(1, Ordering::Relaxed);
            delay(stream, server);
        });
        Far {
            address: format!("https://{proxy}"),
            connections,
        }
    }

    /// How many connections there were since this was asked last.
    pub fn connections(&self) -> usize {
        self.connections.swap(0, Ordering::Relaxed)
    }
}

/// Gives each connection to `serve`, on a thread of its own.
fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_nodelay(true).expect("a socket");
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Answers each request on a connection, until the client closes it.
fn serve(stream: TcpStream, config: &Arc<ServerConfig>, answer: fn(&str) -> String) {
    let connection = ServerConnection::new(Arc::clone(config)).expect("a server's side of TLS");
    let mut stream = StreamOwned::new(connection, stream);
    while let Ok(body) = http::read_body(&mut stream) {
        let events = answer(&String::from_utf8_lossy(&body));
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let reply = format!("{head}{:x}\r\n{events}\r\n0\r\n\r\n", events.len());
        if body.is_empty() || stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// Passes everything on, later. The system accepts a connection at once, so what comes on it first waits for as long as
/// opening it would have taken.
fn delay(client: TcpStream, server: SocketAddr) {
    let server = TcpStream::connect(server).expect("the server");
    server.set_nodelay(true).expect("a socket");
    let clone = |stream: &TcpStream| stream.try_clone().expect("a socket");
    let opened = Instant::now() + ROUND_TRIP;
    let (back, to) = (clone(&server), clone(&client));
    thread::spawn(move || pass_on(back, to, opened));
    pass_on(client, server, opened);
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, opened: Instant) {
    let (send, arrived) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (due, bytes) in arrived {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let due = Instant::now().max(opened) + ROUND_TRIP / 2;
        if send.send((due, buffer[..count].to_vec())).is_err() {
            return;
        }
    }
}
