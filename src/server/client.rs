//! The HTTP client of one address. It and its children alone name the HTTP library.

mod coding;
mod connections;
mod failure;
mod happy_eyeballs;
mod pem;
mod proxy;
mod response;
mod roots;
mod socket;
mod tls;

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderValue;
use ureq::config::Config;
use ureq::tls::TlsConfig;
use ureq::{Agent, AsSendBody};

pub use self::connections::ConnectionState;
use self::connections::{CONNECT_TIMEOUT, Connections, MAX_IDLE};
pub use self::failure::{ConnectionFailure, StatusFailure, TransportError, with_status};
use self::proxy::NamedProxy;
pub use self::response::Response;
use self::roots::TrustedRoots;
use self::tls::TlsPeer;
use crate::error::Error;
use crate::provider::request::Request;
use crate::secret::{Secret, Secrets};
use crate::server_url::ServerUrl;
use crate::settings::Environment;
use crate::threads::lock;

/// How much of a response is received at once. The library accepts 64 KiB of headers, and can reject longer ones only if
/// this is more. Its own size is 128 KiB, but clearing so much takes longer than reading a short answer.
const RECEIVED_AT_ONCE: usize = 80 << 10;

/// How much of a request is sent at once, for the same reason less than 128 KiB.
const SENT_AT_ONCE: usize = 32 << 10;

/// An HTTP method with its body. A body is borrowed because it may be large, and is sent again after a failure.
#[derive(Debug, Clone, Copy)]
pub enum Method<'a> {
    Get,
    /// Sends this JSON.
    Post(&'a [u8]),
    Delete,
}

/// Whether one of the headers is `Authorization`, of which a request may have only one. Others may hold a key, too.
pub fn has_authorization(headers: &[(String, Secret)]) -> bool {
    let mut names = headers.iter().map(|(name, _)| name);
    names.any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// The timeouts of a request; `None` is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeouts {
    /// How long no data may be received, or none that is sent be taken.
    pub read: Option<Duration>,
    /// How long it may take until the response is complete.
    pub total: Option<Duration>,
}

/// A request to a path of the server. An attempt can be repeated with it.
#[derive(Clone, Copy)]
struct OutgoingRequest<'a> {
    method: Method<'a>,
    path: &'a str,
    headers: &'a [(String, Secret)],
    timeouts: Timeouts,
}

/// A client for one address.
pub struct Client {
    agent: Agent,
    roots: TrustedRoots,
    connections: Connections,
    state: Arc<Mutex<ConnectionState>>,
    pub address: ServerUrl,
    proxy: Option<NamedProxy>,
    /// The read timeout, unless a request has timeouts of its own.
    read_timeout: Option<Duration>,
}

impl Client {
    /// Chooses a proxy and certificates, and sends nothing yet.
    pub fn new(
        address: &ServerUrl,
        read_timeout: Option<Duration>,
        environment: &Environment,
    ) -> Result<Client, Error> {
        let proxy = NamedProxy::find(address, environment)?;
        // A proxy may be asked over TLS, too.
        let roots = if address.is_https() || proxy.is_some() {
            roots::load(environment)?
        } else {
            TrustedRoots::built_in()
        };
        // This time-out costs a thread.
        let resolve_timeout = (!address.is_loopback()).then_some(CONNECT_TIMEOUT);
        let config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(proxy.as_ref().map(|named| named.proxy.clone()))
            .tls_config(TlsConfig::builder().root_certs(roots.first.clone()).build())
            .user_agent(concat!("q/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(resolve_timeout)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .max_idle_age(MAX_IDLE)
            .input_buffer_size(RECEIVED_AT_ONCE)
            .output_buffer_size(SENT_AT_ONCE)
            .build();
        let state = Arc::default();
        let connections = Connections::new(&state);
        Ok(Client {
            agent: Agent::with_parts(config, connections.clone(), connections.clone()),
            roots,
            connections,
            state,
            address: address.clone(),
            proxy,
            read_timeout,
        })
    }

    /// Returns the user and password of the proxy, which must not be shown.
    pub fn proxy_secrets(&self) -> &[Secret] {
        self.proxy.as_ref().map_or(&[], |named| &named.secrets)
    }

    /// Opens the connection for the first request, while q waits for something else.
    pub(super) fn open_ahead(&self) {
        // Through a proxy, connecting is already a request.
        if self.proxy.is_none()
            && let Ok(uri) = self.address.origin().parse()
        {
            let config = self.agent.config().clone();
            self.connections.open_ahead(uri, config);
        }
    }

    /// Sends a request, and returns when the headers of the response have arrived.
    pub(super) fn send(
        &self,
        request: &Request,
        secrets: &Secrets,
    ) -> Result<Response, TransportError> {
        let body = &request.body;
        let outgoing = OutgoingRequest {
            method: match body {
                Some(body) => Method::Post(body.as_bytes()),
                None => Method::Get,
            },
            path: &request.path,
            headers: &request.headers,
            timeouts: Timeouts {
                read: self.read_timeout,
                // An answer may take any time, but a list may not.
                total: self.read_timeout.filter(|_| request.lists_models()),
            },
        };
        let mut sent = self.attempt(outgoing);
        // A connection that had been idle is replaced once, but not after a timeout: the server may be at work on the request.
        let is_lost =
            matches!(&sent, Err(ureq::Error::Io(error)) if error.kind() != ErrorKind::TimedOut);
        if is_lost && lock(&self.state).was_idle {
            sent = self.attempt(outgoing);
        }
        self.receive(sent, secrets)
    }

    /// Sends a request with any method and its own timeouts, and returns when the headers of the response have arrived. Secrets
    /// are removed from what the server says about a failure.
    pub fn exchange(
        &self,
        method: Method,
        path: &str,
        headers: &[(String, Secret)],
        timeouts: Timeouts,
        secrets: &Secrets,
    ) -> Result<Response, TransportError> {
        let sent = self.attempt(OutgoingRequest {
            method,
            path,
            headers,
            timeouts,
        });
        self.receive(sent, secrets)
    }

    /// Sends a request once. An unknown CA ends a connection before anything is sent, so it is looked for among all
    /// certificates of the system.
    fn attempt(
        &self,
        outgoing: OutgoingRequest,
    ) -> Result<http::Response<ureq::Body>, ureq::Error> {
        let sent = self.send_once(outgoing);
        if let Err(ureq::Error::Io(error)) = &sent
            && tls::is_unknown_issuer(error)
            && self.roots.read_all()
        {
            return self.send_once(outgoing);
        }
        sent
    }

    fn send_once(
        &self,
        outgoing: OutgoingRequest,
    ) -> Result<http::Response<ureq::Body>, ureq::Error> {
        let OutgoingRequest {
            method,
            path,
            headers,
            timeouts,
        } = outgoing;
        lock(&self.state).read_timeout = None;
        // Without this header a server may compress, and q cannot read that.
        let mut request = http::Request::builder()
            .uri(self.address.join(path))
            .header("accept-encoding", "identity");
        for (name, value) in headers {
            request = request.header(name, value.expose());
        }
        match method {
            Method::Get => self.run(request.body(())?, timeouts),
            Method::Delete => self.run(request.method("DELETE").body(())?, timeouts),
            Method::Post(body) => {
                let mut request = request.method("POST").body(body)?;
                let content_type = request.headers_mut().entry("content-type");
                content_type.or_insert(HeaderValue::from_static("application/json"));
                self.run(request, timeouts)
            }
        }
    }

    fn run(
        &self,
        request: http::Request<impl AsSendBody>,
        timeouts: Timeouts,
    ) -> Result<http::Response<ureq::Body>, ureq::Error> {
        let mut limited = self
            .agent
            .configure_request(request)
            .timeout_per_read(timeouts.read)
            .timeout_per_write(timeouts.read)
            .timeout_global(timeouts.total);
        if let Some(roots) = self.roots.all() {
            let trusting = TlsConfig::builder().root_certs(roots.clone()).build();
            limited = limited.tls_config(trusting);
        }
        self.agent.run(limited.build())
    }

    /// Returns the response once its headers have arrived and its status is one of success.
    fn receive(
        &self,
        sent: Result<http::Response<ureq::Body>, ureq::Error>,
        secrets: &Secrets,
    ) -> Result<Response, TransportError> {
        let received =
            sent.map_err(|error| TransportError::Connection(self.connection_failure(error)))?;
        let (parts, body) = received.into_parts();
        let response = Response {
            headers: parts.headers,
            body: Box::new(body.into_reader()),
            connection: Arc::clone(&self.state),
        };
        let response = response.with_checked_coding();
        if !parts.status.is_success() {
            let status = parts.status;
            let failure = StatusFailure::read(status, response, &self.address, secrets);
            return Err(TransportError::Status(failure));
        }
        Ok(response)
    }

    /// Says why there is no response, or no more of it.
    pub fn connection_failure(&self, error: impl Into<ureq::Error>) -> ConnectionFailure {
        let peer = if lock(&self.state).has_failed_at_proxy {
            TlsPeer::Proxy
        } else {
            TlsPeer::Server
        };
        ConnectionFailure::from_library(error.into(), self.proxy.as_ref(), peer)
    }
}
