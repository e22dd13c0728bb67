//! A TCP connection that is kept alive, and from which an early answer can still be read after sending has failed.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use ureq::Error;
use ureq::Timeout;
use ureq::config::Config;
use ureq::unversioned::transport::{Buffers, LazyBuffers, NextTimeout, Transport};

use super::tls::UnansweredTls;
use crate::unix;

/// How long no data comes before the system asks whether the other end is there, so that routers remember the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// How long the answer to the first message of TLS may take.
const TLS_TIMEOUT: Duration = Duration::from_secs(15);

/// The first bytes of a connection over TLS: the type of a handshake, and the version.
const CLIENT_HELLO: [u8; 2] = [0x16, 3];

/// What has gone through a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exchanged {
    Nothing,
    /// The first message of TLS was sent, and nothing has arrived. What speaks TLS answers it at once.
    TlsBeginning,
    More,
}

/// A socket with its buffers.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    buffers: LazyBuffers,
    /// The timeouts that the system has for a read and a write. They are set only if they change, because that takes time.
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
    /// Why nothing more can be sent. What the server has sent before can still be read.
    send_failure: Option<io::Error>,
    exchanged: Exchanged,
}

impl Socket {
    /// Connects to an address.
    pub fn connect(
        address: SocketAddr,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<Socket, Error> {
        let connected = match timeout.not_zero() {
            Some(limit) => TcpStream::connect_timeout(&address, *limit),
            None => TcpStream::connect(address),
        };
        let stream = connected.map_err(|error| with_reason(error, timeout.reason))?;
        stream.set_nodelay(true)?;
        unix::keep_alive(&stream, KEEP_ALIVE);
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Socket {
            stream,
            buffers,
            read_timeout: None,
            write_timeout: None,
            send_failure: None,
            exchanged: Exchanged::Nothing,
        })
    }

    /// Reads what has arrived, or waits for it. A signal does not end the wait.
    fn read(&mut self, limit: Option<Duration>) -> io::Result<usize> {
        let began = Instant::now();
        let mut left = limit;
        loop {
            if self.read_timeout != left {
                self.stream.set_read_timeout(left)?;
                self.read_timeout = left;
            }
            match self.stream.read(self.buffers.input_append_buf()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return read,
            }
            left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }
}

impl Transport for Socket {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    /// Sends what is in the buffer. A server that closes the connection may have said why, so that is read before this counts as a
    /// failure.
    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        if self.send_failure.is_some() {
            return Ok(());
        }
        let timeout = timeout.for_write();
        let limit = duration_of(timeout)?;
        if self.write_timeout != limit {
            self.stream.set_write_timeout(limit)?;
            self.write_timeout = limit;
        }
        let output = &self.buffers.output()[..amount];
        if self.exchanged == Exchanged::Nothing {
            self.exchanged = if output.starts_with(&CLIENT_HELLO) {
                Exchanged::TlsBeginning
            } else {
                Exchanged::More
            };
        }
        match self.stream.write_all(output) {
            Ok(()) => Ok(()),
            Err(error) if is_closed(&error) => {
                self.send_failure = Some(error);
                Ok(())
            }
            Err(error) => Err(with_reason(error, timeout.reason)),
        }
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        let mut limit = duration_of(timeout)?;
        let awaits_tls = self.exchanged == Exchanged::TlsBeginning;
        // A shorter one is the user's own, or that of a question.
        let is_own_limit = awaits_tls && limit.is_none_or(|limit| limit > TLS_TIMEOUT);
        if is_own_limit {
            limit = Some(TLS_TIMEOUT);
        }
        let read = self.read(limit);
        let longest = limit.filter(|_| is_own_limit);
        if awaits_tls && let Some(unanswered) = UnansweredTls::of(&read, longest) {
            return Err(unanswered.into_io().into());
        }
        self.exchanged = Exchanged::More;
        if !matches!(read, Ok(1..))
            && let Some(send_failure) = self.send_failure.take()
        {
            return Err(send_failure.into());
        }
        let count = read.map_err(|error| with_reason(error, timeout.reason))?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    /// Whether nothing has arrived from the server, not even the end.
    fn is_open(&mut self) -> bool {
        let probe = |stream: &TcpStream| {
            stream.set_nonblocking(true)?;
            let seen = stream.peek(&mut [0]);
            stream.set_nonblocking(false)?;
            seen
        };
        let has_nothing = |error: io::Error| error.kind() == ErrorKind::WouldBlock;
        self.send_failure.is_none() && probe(&self.stream).is_err_and(has_nothing)
    }
}

/// Returns how long a call may take; `None` is no limit.
fn duration_of(timeout: NextTimeout) -> Result<Option<Duration>, Error> {
    match timeout.not_zero() {
        Some(limit) => Ok(Some(*limit)),
        None if timeout.after.is_not_happening() => Ok(None),
        None => Err(Error::Timeout(timeout.reason)),
    }
}

fn is_closed(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset
    )
}

/// Makes the library's error, in which a timeout has its reason.
fn with_reason(error: io::Error, reason: Timeout) -> Error {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Error::Timeout(reason),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A limit of a minute, as the library gives it.
    fn minute() -> NextTimeout {
        NextTimeout {
            after: Duration::from_secs(60).into(),
            ..NextTimeout::default()
        }
    }

    fn connected() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let socket = Socket::connect(address, &Config::default(), minute()).expect("a connection");
        (socket, listener.accept().expect("the other end").0)
    }

    #[test]
    fn a_connection_has_tcp_keep_alive_switched_on() {
        let (socket, _other) = connected();
        assert_eq!(unix::kept_alive(&socket.stream), Some(KEEP_ALIVE));
    }

    #[test]
    fn bytes_received_before_the_server_closed_are_read_after_sending_failed() {
        let (mut socket, mut other) = connected();
        other.write_all(b"HTTP/1.1 413 ").expect("a part");
        drop(other);
        let half = "x".repeat(16_000);
        for _ in 0..1_000 {
            let output = socket.buffers.output();
            output[..half.len()].copy_from_slice(half.as_bytes());
            socket
                .transmit_output(half.len(), minute())
                .expect("no failure yet");
            if socket.send_failure.is_some() {
                break;
            }
        }
        assert!(socket.send_failure.is_some());
        assert!(!socket.is_open());
        assert!(socket.await_input(minute()).expect("what came"));
        assert_eq!(socket.buffers.input(), b"HTTP/1.1 413 ");
        assert!(socket.await_input(minute()).is_err());
    }
}
