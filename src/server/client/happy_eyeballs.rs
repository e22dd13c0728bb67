//! Happy Eyeballs (RFC 8305): connects to the addresses of a name, to each a little after the one before it, and takes the
//! first connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use http::Uri;
use ureq::Error;
use ureq::config::Config;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    ConnectionDetails, Connector, Either, NextTimeout, Transport, time,
};

use super::socket::Socket;
use crate::threads;

/// How long an address has until the next one is tried as well.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// A connector to the first address that takes a connection.
#[derive(Debug)]
pub struct HappyEyeballs;

impl<In: Transport> Connector<In> for HappyEyeballs {
    type Out = Either<In, Box<dyn Transport>>;

    fn connect(
        &self,
        details: &ConnectionDetails,
        before: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        // A proxy has made the connection.
        if let Some(before) = before {
            return Ok(Some(Either::A(before)));
        }
        let config = details.config.clone();
        let (limit, began) = (details.timeout, Instant::now());
        let attempt = move |address| {
            let left = limit.after.saturating_sub(began.elapsed());
            let limit = NextTimeout {
                // The library would take zero for no limit.
                after: left.max(Duration::from_millis(1)).into(),
                ..limit
            };
            let socket = Socket::connect(address, &config, limit)?;
            Ok(Box::new(socket) as Box<dyn Transport>)
        };
        let connection = first_to_connect(&in_turn(&details.addrs), attempt, threads::start)?;
        Ok(Some(Either::B(connection)))
    }
}

/// Returns the addresses with both families in turn, beginning with that of the first (section 4).
fn in_turn(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else {
        return Vec::new();
    };
    let is_of_first = |address: &SocketAddr| address.is_ipv6() == first.is_ipv6();
    let (same, other): (Vec<_>, Vec<_>) = addresses.iter().copied().partition(is_of_first);
    let mut ordered = Vec::new();
    for place in 0..same.len().max(other.len()) {
        ordered.extend(same.get(place));
        ordered.extend(other.get(place));
    }
    ordered
}

/// Makes an attempt for each address, the next one as soon as the one before it has failed or taken a while. Returns the
/// first connection, or why the last attempt to end has failed. `start` starts a thread.
fn first_to_connect<C: Send + 'static>(
    addresses: &[SocketAddr],
    attempt: impl Fn(SocketAddr) -> Result<C, Error> + Clone + Send + 'static,
    start: impl Fn(Box<dyn FnOnce() + Send>) -> io::Result<()>,
) -> Result<C, Error> {
    if let [only] = addresses {
        return attempt(*only);
    }
    let (send, ended) = mpsc::channel();
    let mut left = addresses.iter();
    let mut running = 0;
    let mut failure = Error::ConnectionFailed;
    loop {
        if let Some(address) = left.next() {
            let (send_there, attempt_there, address) = (send.clone(), attempt.clone(), *address);
            // A connection that comes too late is closed here.
            let started = start(Box::new(move || {
                drop(send_there.send(attempt_there(address)));
            }));
            if started.is_ok() {
                running += 1;
            } else {
                // Without a thread, each address is tried in its turn.
                match attempt(address) {
                    Ok(connection) => return Ok(connection),
                    Err(error) => failure = error,
                }
                continue;
            }
        } else if running == 0 {
            return Err(failure);
        }
        let outcome = match left.len() {
            0 => ended.recv().map_err(RecvTimeoutError::from),
            _ => ended.recv_timeout(NEXT_ADDRESS),
        };
        match outcome {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => {
                failure = error;
                running -= 1;
            }
            Err(_) => {}
        }
    }
}

/// Returns what connecting needs, without a proxy.
pub fn details<'a>(
    uri: &'a Uri,
    config: &'a Config,
    addrs: ResolvedSocketAddrs,
    timeout: NextTimeout,
    resolver: &'a dyn Resolver,
) -> ConnectionDetails<'a> {
    ConnectionDetails {
        uri,
        addrs,
        config,
        request_level: false,
        resolver,
        now: time::Instant::now(),
        timeout,
        current_time: Arc::new(time::Instant::now),
        run_connector: Arc::new(|_: &ConnectionDetails| Err(Error::ConnectionFailed)),
        register_shutdown: Arc::new(|_| Ok(())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::Sender;

    use super::*;
    use crate::threads::lock;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        let mut addresses = Vec::new();
        for text in texts {
            addresses.push(text.parse().expect(text));
        }
        addresses
    }

    #[test]
    fn addresses_of_ipv6_and_ipv4_take_turns() {
        let (a, b, c, d) = ("[::1]:1", "[::2]:1", "1.0.0.1:1", "1.0.0.2:1");
        for (found, ordered) in [
            (&[a, b, c, d][..], &[a, c, b, d][..]),
            (&[c, d, a], &[c, a, d]),
            (&[a, c, d, b], &[a, c, b, d]),
            (&[a], &[a]),
            (&[], &[]),
        ] {
            assert_eq!(in_turn(&addresses(found)), addresses(ordered), "{found:?}");
        }
    }

    #[test]
    fn the_first_address_that_connects_wins_without_waiting_for_a_silent_one() {
        // What becomes of each address, and which connects.
        for (fates, winner) in [
            ("s+", Some(1)),
            ("s--+", Some(3)),
            ("+ss", Some(0)),
            ("--", None),
        ] {
            let list = addresses(&["1.0.0.1:0", "1.0.0.1:1", "1.0.0.1:2", "1.0.0.1:3"]);
            // Held until the end, so that what waits for them waits forever.
            let silent: Arc<Mutex<Vec<Sender<()>>>> = Arc::default();
            let attempt = {
                let silent = Arc::clone(&silent);
                move |address: SocketAddr| {
                    let (send, wait) = mpsc::channel();
                    match fates.as_bytes()[usize::from(address.port())] {
                        b's' => {
                            lock(&silent).push(send);
                            let _ = wait.recv();
                        }
                        b'+' => return Ok(address.port()),
                        _ => {}
                    }
                    Err(Error::HostNotFound)
                }
            };
            let result = first_to_connect(&list[..fates.len()], attempt, threads::start);
            assert_eq!(result.ok(), winner, "{fates}");
        }
    }

    #[test]
    fn addresses_are_tried_one_after_another_where_no_thread_can_be_started() {
        let list = addresses(&["1.0.0.1:0", "1.0.0.1:1", "1.0.0.1:2"]);
        for winner in [Some(0), Some(2), None] {
            let tried: Arc<Mutex<Vec<u16>>> = Arc::default();
            let attempt = {
                let tried = Arc::clone(&tried);
                move |address: SocketAddr| {
                    lock(&tried).push(address.port());
                    let connects = Some(address.port()) == winner;
                    connects
                        .then_some(address.port())
                        .ok_or(Error::HostNotFound)
                }
            };
            let no_thread = |_: Box<dyn FnOnce() + Send>| Err(io::ErrorKind::WouldBlock.into());
            let found = first_to_connect(&list, attempt, no_thread);
            assert_eq!(found.ok(), winner);
            let last = winner.unwrap_or(2);
            assert_eq!(*lock(&tried), Vec::from_iter(0..=last), "{winner:?}");
        }
    }
}
