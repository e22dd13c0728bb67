//! The connections of one client: opens one ahead of the first request, knows which were idle, and looks a name up once.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Uri;
use ureq::config::Config;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, NextTimeout, RustlsConnector,
    SocksConnector, Transport, time,
};
use ureq::{Error, Timeout};

use super::side_by_side::{SideBySide, details};
use crate::threads::{self, lock};

/// How long connecting may take, and resolving the name before it.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a connection may have been idle when it is used: servers and routers forget those that are.
pub const MAX_IDLE: Duration = Duration::from_secs(30);

/// Opens the connections of a client, and looks names up for them.
#[derive(Clone)]
pub struct Connections(Arc<Shared>);

struct Shared {
    steps: Box<dyn Connector<(), Out = Connection>>,
    resolver: DefaultResolver,
    /// What the server's name was resolved to.
    addresses: Mutex<Option<Vec<SocketAddr>>>,
    opening: Mutex<Option<Receiver<Result<OpenedAhead, Error>>>>,
    opened: Mutex<Option<OpenedAhead>>,
}

/// A connection that was opened before the request that needs it.
struct OpenedAhead {
    connection: Connection,
    /// When it was opened.
    at: Instant,
}

impl Connections {
    pub fn new() -> Connections {
        let steps =
            ().chain(SocksConnector::default())
                .chain(ConnectProxyConnector::default())
                .chain(SideBySide)
                .chain(RustlsConnector::default())
                .chain(LastStep);
        Connections(Arc::new(Shared {
            steps: Box::new(steps),
            resolver: DefaultResolver::default(),
            addresses: Mutex::default(),
            opening: Mutex::default(),
            opened: Mutex::default(),
        }))
    }

    /// Opens the connection for the first request, once, while q waits for something else.
    pub fn open_ahead(&self, uri: Uri, config: Config) {
        let mut slot = lock(&self.0.opening);
        if slot.is_some() {
            return;
        }
        let (send, opening) = mpsc::channel();
        let this = self.clone();
        // Without a thread, the request opens its own.
        let started = threads::start(move || {
            let _ = send.send(this.open(&uri, &config));
        });
        if started.is_ok() {
            *slot = Some(opening);
        }
    }

    fn open(&self, uri: &Uri, config: &Config) -> Result<OpenedAhead, Error> {
        let timeouts = config.timeouts();
        let addrs = self.resolve(uri, config, within(timeouts.resolve, Timeout::Resolve))?;
        let timeout = within(timeouts.connect, Timeout::Connect);
        let details = details(uri, config, addrs, timeout, &self.0.resolver);
        let mut connection = self
            .connect(&details, None)?
            .ok_or(Error::ConnectionFailed)?;
        connection.was_idle = true;
        Ok(OpenedAhead {
            connection,
            at: Instant::now(),
        })
    }

    /// Waits for the connection that is being opened. An error only if it fails while q waits for it: what failed before
    /// is tried again by the request itself.
    pub fn wait_for_opening(&self) -> Result<(), Error> {
        let Some(opening) = lock(&self.0.opening).take() else {
            return Ok(());
        };
        let opened = match opening.try_recv() {
            Ok(Ok(connection)) => connection,
            Err(TryRecvError::Empty) => match opening.recv() {
                Ok(opened) => opened?,
                Err(_) => return Ok(()),
            },
            _ => return Ok(()),
        };
        *lock(&self.0.opened) = Some(opened);
        Ok(())
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("Connections")
    }
}

impl Resolver for Connections {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        // Behind a proxy there are two names.
        if config.proxy().is_some() {
            return self.0.resolver.resolve(uri, config, timeout);
        }
        let known = lock(&self.0.addresses).clone();
        if let Some(known) = known {
            let mut addresses = self.empty();
            for address in known {
                addresses.push(address);
            }
            return Ok(addresses);
        }
        let found = self.0.resolver.resolve(uri, config, timeout)?;
        *lock(&self.0.addresses) = Some(found.to_vec());
        Ok(found)
    }
}

impl Connector for Connections {
    type Out = Connection;

    fn connect(
        &self,
        details: &ConnectionDetails,
        before: Option<()>,
    ) -> Result<Option<Connection>, Error> {
        // Whether it is still open cannot be asked: over TLS the server may have sent tickets.
        let opened = lock(&self.0.opened).take();
        if let Some(opened) = opened
            && opened.at.elapsed() < MAX_IDLE
        {
            return Ok(Some(opened.connection));
        }
        self.0.steps.connect(details, before)
    }
}

fn within(limit: Option<Duration>, reason: Timeout) -> NextTimeout {
    NextTimeout {
        after: limit.map_or(time::Duration::NotHappening, time::Duration::from),
        reason,
        ..NextTimeout::default()
    }
}

/// A connection that may have been idle, so that the server may have closed it before the next request came.
#[derive(Debug)]
pub struct Connection {
    transport: Box<dyn Transport>,
    /// Nothing has come since it was idle.
    was_idle: bool,
}

/// The request on a connection that had been idle failed before anything came.
#[derive(Debug)]
struct ClosedWhileIdle;

impl fmt::Display for ClosedWhileIdle {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("the server closed the idle connection")
    }
}

impl std::error::Error for ClosedWhileIdle {}

/// Whether a connection failed because it had been idle, so that the request may be sent on a new one.
pub fn was_closed_while_idle(error: &Error) -> bool {
    let Error::Io(error) = error else {
        return false;
    };
    error
        .get_ref()
        .is_some_and(|cause| cause.is::<ClosedWhileIdle>())
}

impl Connection {
    /// Silence is no such failure: the server may be at work on the request.
    fn judged(&self, error: Error) -> Error {
        match error {
            Error::Io(cause) if self.was_idle => {
                Error::Io(io::Error::new(cause.kind(), ClosedWhileIdle))
            }
            other => other,
        }
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let sent = self.transport.transmit_output(amount, timeout);
        sent.map_err(|error| self.judged(error))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let came = self.transport.await_input(timeout);
        let has_ended = matches!(came, Ok(false));
        if has_ended && self.was_idle {
            return Err(self.judged(Error::Io(ErrorKind::UnexpectedEof.into())));
        }
        let came = came.map_err(|error| self.judged(error))?;
        self.was_idle = false;
        Ok(came)
    }

    /// The library asks when a response has been read, and again before the next request.
    fn is_open(&mut self) -> bool {
        self.was_idle = true;
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

/// The end of the steps that make a connection.
#[derive(Debug)]
struct LastStep;

impl<In: Transport> Connector<In> for LastStep {
    type Out = Connection;

    fn connect(
        &self,
        _: &ConnectionDetails,
        before: Option<In>,
    ) -> Result<Option<Connection>, Error> {
        let Some(transport) = before else {
            return Ok(None);
        };
        Ok(Some(Connection {
            transport: Box::new(transport),
            was_idle: false,
        }))
    }
}
