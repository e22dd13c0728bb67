//! The connections of one client: opens one ahead of the first request, knows which were idle, and looks a name up once.

use std::sync::mpsc::{self, Receiver};
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

use super::happy_eyeballs::{HappyEyeballs, details};
use super::tls::UnaskedTls;
use crate::threads::{self, lock};

/// How long connecting may take, and resolving the name before it.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a connection may have been idle when it is used: servers and routers forget those that are.
pub const MAX_IDLE: Duration = Duration::from_secs(30);

/// How long reading what has already arrived may take.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(1);

/// The first bytes of what a server with TLS answers to bytes that are not TLS: the type of an alert, and the version.
const TLS_ALERT: [u8; 2] = [0x15, 3];

/// The state that a client shares with its connections.
#[derive(Debug, Default)]
pub struct ConnectionState {
    /// A read timeout below the request's own: the library cannot change the timeouts of a request that has begun.
    pub read_timeout: Option<Duration>,
    /// Whether the connection had been idle, and nothing has come since: the server may have closed it before the request came.
    pub was_idle: bool,
    /// Whether the last connection that was to be opened to a proxy itself has failed.
    pub has_failed_at_proxy: bool,
    /// What the server's name was resolved to.
    addresses: Option<ResolvedSocketAddrs>,
    /// The connection that is opened before the request that needs it.
    opening: Option<Receiver<Result<HttpConnection, Error>>>,
}

/// The connections of a client: it opens them, and looks names up for them.
#[derive(Debug, Clone)]
pub struct Connections {
    state: Arc<Mutex<ConnectionState>>,
    steps: Arc<dyn Connector<(), Out = HttpConnection>>,
}

impl Connections {
    pub fn new(state: &Arc<Mutex<ConnectionState>>) -> Connections {
        let steps =
            ().chain(SocksConnector::default())
                .chain(ConnectProxyConnector::default())
                .chain(HappyEyeballs)
                .chain(RustlsConnector::default())
                .chain(LastStep(Arc::clone(state)));
        Connections {
            state: Arc::clone(state),
            steps: Arc::new(steps),
        }
    }

    /// Opens the connection for the first request, once, while q waits for something else.
    pub fn open_ahead(&self, uri: Uri, config: Config) {
        let opening = &mut lock(&self.state).opening;
        if opening.is_some() {
            return;
        }
        let (send, opened) = mpsc::channel();
        let this = self.clone();
        // Without a thread nothing comes, and the request opens its own.
        let _ = threads::start(move || drop(send.send(this.open(&uri, &config))));
        *opening = Some(opened);
    }

    fn open(&self, uri: &Uri, config: &Config) -> Result<HttpConnection, Error> {
        let addrs = self.resolve(uri, config, connect_timeout(Timeout::Resolve))?;
        let timeout = connect_timeout(Timeout::Connect);
        let details = details(uri, config, addrs, timeout, self);
        let connected = self.steps.connect(&details, None)?;
        connected.ok_or(Error::ConnectionFailed)
    }
}

impl Resolver for Connections {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let known = lock(&self.state).addresses.clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = resolve_in_time(uri, config, timeout)?;
        // Behind a proxy there are two names.
        if config.proxy().is_none() {
            lock(&self.state).addresses = Some(found.clone());
        }
        Ok(found)
    }
}

impl Connector for Connections {
    type Out = HttpConnection;

    fn connect(
        &self,
        details: &ConnectionDetails,
        before: Option<()>,
    ) -> Result<Option<HttpConnection>, Error> {
        let opening = lock(&self.state).opening.take();
        lock(&self.state).was_idle = false;
        let opened = match opening.map(|opening| opening.recv()) {
            Some(Ok(Ok(connection))) => Some(connection),
            // Another try would take as long again.
            Some(Ok(Err(error @ Error::Timeout(_)))) => return Err(error),
            _ => None,
        };
        if let Some(mut connection) = opened
            && connection.opened.elapsed() < MAX_IDLE
            && connection.is_unused()
        {
            lock(&self.state).was_idle = true;
            return Ok(Some(connection));
        }
        let connected = self.steps.connect(details, before);
        // Within the connection to a server, the library opens that to its proxy, which has none itself.
        if details.config.proxy().is_none() {
            lock(&self.state).has_failed_at_proxy = connected.is_err();
        }
        connected
    }
}

/// Resolves a name on a thread of its own, because the system's resolver has no timeout. The library would do that, too, and panic
/// where no thread can be started.
fn resolve_in_time(
    uri: &Uri,
    config: &Config,
    timeout: NextTimeout,
) -> Result<ResolvedSocketAddrs, Error> {
    let (send, found) = mpsc::channel();
    let (thread_uri, thread_config) = (uri.clone(), config.clone());
    let started = threads::start(move || drop(send.send(resolve(&thread_uri, &thread_config))));
    if started.is_err() {
        return resolve(uri, config);
    }
    let resolved = found.recv_timeout(*timeout.after);
    resolved.unwrap_or(Err(Error::Timeout(timeout.reason)))
}

/// Resolves a name, for as long as that takes.
fn resolve(uri: &Uri, config: &Config) -> Result<ResolvedSocketAddrs, Error> {
    let endless = NextTimeout {
        after: time::Duration::NotHappening,
        ..NextTimeout::default()
    };
    DefaultResolver::default().resolve(uri, config, endless)
}

fn connect_timeout(reason: Timeout) -> NextTimeout {
    NextTimeout {
        after: CONNECT_TIMEOUT.into(),
        reason,
        ..NextTimeout::default()
    }
}

/// A connection of which the client knows the state.
#[derive(Debug)]
pub struct HttpConnection {
    transport: Box<dyn Transport>,
    opened: Instant,
    /// Whether anything has arrived.
    has_received: bool,
    /// Whether the server has said something since the request was sent.
    has_answered: bool,
    state: Arc<Mutex<ConnectionState>>,
}

impl HttpConnection {
    /// Whether it is open, and the server has said nothing: what it says before the request, such as that none came in time, is no
    /// answer. Over TLS it may have sent tickets, which are read here.
    fn is_unused(&mut self) -> bool {
        if self.transport.is_open() {
            return true;
        }
        let has_arrived = self.transport.await_input(NextTimeout {
            after: DRAIN_TIMEOUT.into(),
            reason: Timeout::PerRead,
            ..NextTimeout::default()
        });
        matches!(has_arrived, Err(Error::Timeout(_)))
    }
}

impl Transport for HttpConnection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.has_answered = false;
        self.transport.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, mut timeout: NextTimeout) -> Result<bool, Error> {
        if let Some(read_timeout) = lock(&self.state).read_timeout {
            let of_request = timeout.per_read.map(|of_request| *of_request);
            let shorter = of_request.map_or(read_timeout, |it| read_timeout.min(it));
            timeout.per_read = Some(shorter.into());
        }
        let mut has_arrived = self.transport.await_input(timeout);
        if matches!(has_arrived, Err(Error::Timeout(Timeout::PerRead))) {
            // If q was stopped meanwhile, what has arrived counts.
            timeout.per_read = Some(DRAIN_TIMEOUT.into());
            has_arrived = self.transport.await_input(timeout);
        }
        if matches!(has_arrived, Err(Error::Timeout(Timeout::Global))) && !self.has_answered {
            return Err(Error::Timeout(Timeout::PerRead));
        }
        let has_arrived = has_arrived?;
        if has_arrived {
            self.has_answered = true;
            lock(&self.state).was_idle = false;
            let is_first = !std::mem::replace(&mut self.has_received, true);
            let is_alert = self.transport.buffers().input().starts_with(&TLS_ALERT);
            if is_first && is_alert && !self.transport.is_tls() {
                return Err(UnaskedTls.into_io().into());
            }
        }
        Ok(has_arrived)
    }

    /// Whether the connection is open. The library asks when a response has been read, and again before the next request.
    fn is_open(&mut self) -> bool {
        lock(&self.state).was_idle = true;
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

/// The end of the steps that make a connection.
#[derive(Debug)]
struct LastStep(Arc<Mutex<ConnectionState>>);

impl<In: Transport> Connector<In> for LastStep {
    type Out = HttpConnection;

    fn connect(
        &self,
        _: &ConnectionDetails,
        before: Option<In>,
    ) -> Result<Option<HttpConnection>, Error> {
        let Some(transport) = before else {
            return Ok(None);
        };
        Ok(Some(HttpConnection {
            transport: Box::new(transport),
            opened: Instant::now(),
            has_received: false,
            has_answered: false,
            state: Arc::clone(&self.0),
        }))
    }
}
