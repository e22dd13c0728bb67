//! The HTTP client, which alone names its library, with its children: chooses proxy and certificates, limits how long q
//! waits, and says why a request failed.

mod connections;
mod roots;
mod side_by_side;
mod socket;
mod tls;

use std::io::{self, ErrorKind, Read};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use http::HeaderValue;
use time::OffsetDateTime;
use ureq::config::Config;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, AsSendBody, Proxy, Timeout};

pub use self::connections::State;
use self::connections::{CONNECT_TIMEOUT, Connections, MAX_IDLE};
use super::retry;
use crate::address::Address;
use crate::error::Error;
use crate::provider::failure::{self, ServerError};
use crate::provider::request::Request;
use crate::secret::{self, Secret, Secrets};
use crate::settings::Environment;
use crate::threads::lock;

/// The most that q reads of an error's body, and how long that may take: the status is known already.
const MAX_ERROR_BODY: usize = 256 << 10;
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of a response is received at once. The library accepts 64 KiB of headers, and can refuse longer ones only if
/// this is more. Its own size is 128 KiB, but clearing so much takes longer than reading a short answer.
const RECEIVED_AT_ONCE: usize = 80 << 10;

/// How much of a request is sent at once, for the same reason less than 128 KiB.
const SENT_AT_ONCE: usize = 32 << 10;

/// A response with a status of success; its body is read as it arrives.
pub struct Response {
    pub headers: http::HeaderMap,
    pub body: Box<dyn Read + Send>,
    pub connection: Arc<Mutex<State>>,
}

impl Response {
    /// The value of a header; empty if there is none, or if it is not text.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(HeaderValue::to_str);
        value.and_then(Result::ok).unwrap_or_default()
    }

    pub fn content_type(&self) -> &str {
        self.header("content-type")
    }

    /// How the body is compressed, if it is.
    fn compression(&self) -> Option<&str> {
        let coding = self.header("content-encoding").trim();
        let is_plain = coding.is_empty() || coding.eq_ignore_ascii_case("identity");
        (!is_plain).then_some(coding)
    }

    /// The content type in lowercase, without its parameters.
    pub fn media_type(&self) -> String {
        let (media_type, _) = self
            .content_type()
            .split_once(';')
            .unwrap_or((self.content_type(), ""));
        media_type.trim().to_ascii_lowercase()
    }
}

/// What to do with a path of the server. A body is borrowed because it may be large, and is sent again after a failure.
#[derive(Debug, Clone, Copy)]
pub enum Method<'a> {
    Get,
    /// Sends this JSON.
    Post(&'a [u8]),
    Delete,
}

/// Whether one of the headers is the key.
pub fn has_authorization(headers: &[(String, Secret)]) -> bool {
    headers.iter().any(is_authorization)
}

/// Whether this header is the key.
pub fn is_authorization((name, _): &(String, Secret)) -> bool {
    name.eq_ignore_ascii_case("authorization")
}

/// How long a request may take; `None` is forever.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// The longest silence.
    pub silence: Option<Duration>,
    /// The time until the response is complete.
    pub total: Option<Duration>,
}

/// Why there is no response, or only a part of it.
#[derive(Debug, Default)]
pub struct TransportError {
    /// A status other than success; `None`: the connection failed.
    pub status: Option<u16>,
    /// What the server says, or why the connection failed.
    pub error: ServerError,
    /// The beginning of the body that came with the status, with any secrets that it names.
    pub body: String,
    /// Where the server redirects to.
    pub location: Option<String>,
    pub advice: Option<String>,
    /// The connection failed, and may succeed the next time.
    pub is_transient: bool,
}

impl TransportError {
    fn new(cause: impl Into<String>) -> TransportError {
        TransportError {
            error: ServerError::new(cause),
            ..TransportError::default()
        }
    }

    fn transient(cause: impl Into<String>) -> TransportError {
        TransportError {
            is_transient: true,
            ..TransportError::new(cause)
        }
    }

    fn advised(cause: impl Into<String>, advice: &'static str) -> TransportError {
        TransportError {
            advice: Some(advice.to_owned()),
            ..TransportError::new(cause)
        }
    }
}

/// A client for one address.
pub struct Client {
    agent: Agent,
    /// The system may have certificates that the agent does not know.
    may_know_more: bool,
    /// All of the system's, once the agent has met an authority that it does not know.
    all_roots: OnceLock<RootCerts>,
    connections: Connections,
    state: Arc<Mutex<State>>,
    pub address: Address,
    proxy: Option<NamedProxy>,
    /// The longest silence, unless a request has limits of its own.
    silence: Option<Duration>,
}

/// A proxy from the environment.
struct NamedProxy {
    /// The variable that names it.
    variable: &'static str,
    proxy: Proxy,
    secrets: Vec<Secret>,
}

impl Client {
    /// Chooses a proxy and certificates, and sends nothing yet. `timeout` is the longest silence.
    pub fn new(
        address: &Address,
        timeout: Option<Duration>,
        environment: &Environment,
    ) -> Result<Client, Error> {
        let named_proxy = proxy_for(address, environment)?;
        // A proxy may be asked over TLS, too.
        let (trusted, may_know_more) = if address.is_https() || named_proxy.is_some() {
            roots::load(environment)?
        } else {
            (RootCerts::WebPki, false)
        };
        // This time-out costs a thread.
        let resolve_timeout = (!address.is_loopback()).then_some(CONNECT_TIMEOUT);
        let config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(named_proxy.as_ref().map(|named| named.proxy.clone()))
            .tls_config(TlsConfig::builder().root_certs(trusted).build())
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
            may_know_more,
            all_roots: OnceLock::new(),
            connections,
            state,
            address: address.clone(),
            proxy: named_proxy,
            silence: timeout,
        })
    }

    /// The login of the proxy, which must not be shown.
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

    /// Sends a request, and returns when the headers of the response have come.
    pub(super) fn send(
        &self,
        request: &Request,
        secrets: &Secrets,
    ) -> Result<Response, TransportError> {
        let body = &request.body;
        let method = match body {
            Some(body) => Method::Post(body.as_bytes()),
            None => Method::Get,
        };
        let limits = Limits {
            silence: self.silence,
            // An answer may take any time, but a list may not.
            total: self.silence.filter(|_| body.is_none()),
        };
        let attempt = || self.attempt(method, &request.path, &request.headers, limits);
        let mut sent = attempt();
        // A connection that had been idle is replaced once. But silence may mean that the server is at work on the request.
        if matches!(sent, Err(ureq::Error::Io(_))) && lock(&self.state).was_idle {
            sent = attempt();
        }
        self.received(sent, secrets)
    }

    /// Sends a request with any method and its own limits, and returns when the headers of the response have come. Secrets
    /// are removed from what the server says about a failure.
    pub fn exchange(
        &self,
        method: Method,
        path: &str,
        headers: &[(String, Secret)],
        limits: Limits,
        secrets: &Secrets,
    ) -> Result<Response, TransportError> {
        let sent = self.attempt(method, path, headers, limits);
        self.received(sent, secrets)
    }

    /// Sends a request once. An unknown authority ends a connection before anything is sent, so it is looked for among all
    /// certificates of the system.
    fn attempt(
        &self,
        method: Method,
        path: &str,
        headers: &[(String, Secret)],
        limits: Limits,
    ) -> Result<http::Response<ureq::Body>, ureq::Error> {
        lock(&self.state).patience = None;
        // Without this header a server may compress, and q cannot read that.
        let mut request = http::Request::builder()
            .uri(self.address.join(path))
            .header("accept-encoding", "identity");
        for (name, value) in headers {
            request = request.header(name, value.expose());
        }
        let sent = match method {
            Method::Get => self.run(request.body(())?, limits),
            Method::Delete => self.run(request.method("DELETE").body(())?, limits),
            Method::Post(body) => {
                let mut request = request.method("POST").body(body)?;
                let content_type = request.headers_mut().entry("content-type");
                content_type.or_insert(HeaderValue::from_static("application/json"));
                self.run(request, limits)
            }
        };
        let is_unknown = |error: &ureq::Error| error.to_string().contains(tls::UNKNOWN_ISSUER);
        if self.may_know_more
            && self.all_roots.get().is_none()
            && sent.as_ref().is_err_and(is_unknown)
        {
            self.all_roots.get_or_init(roots::load_all);
            return self.attempt(method, path, headers, limits);
        }
        sent
    }

    fn run(
        &self,
        request: http::Request<impl AsSendBody>,
        limits: Limits,
    ) -> Result<http::Response<ureq::Body>, ureq::Error> {
        let mut limited = self
            .agent
            .configure_request(request)
            .timeout_per_read(limits.silence)
            .timeout_per_write(limits.silence)
            .timeout_global(limits.total);
        if let Some(roots) = self.all_roots.get() {
            let trusting = TlsConfig::builder().root_certs(roots.clone()).build();
            limited = limited.tls_config(trusting);
        }
        self.agent.run(limited.build())
    }

    /// Returns the response once its headers have come and its status is one of success.
    fn received(
        &self,
        sent: Result<http::Response<ureq::Body>, ureq::Error>,
        secrets: &Secrets,
    ) -> Result<Response, TransportError> {
        let received = sent.map_err(|error| self.connection_failure(error))?;
        let (parts, body) = received.into_parts();
        let response = Response {
            headers: parts.headers,
            body: Box::new(body.into_reader()),
            connection: Arc::clone(&self.state),
        };
        if !parts.status.is_success() {
            return Err(self.status_failure(parts.status, response, secrets));
        }
        match response.compression() {
            Some(coding) => Err(TransportError::advised(compressed(coding), DO_NOT_COMPRESS)),
            None => Ok(response),
        }
    }

    /// Describes a response with a status other than success.
    fn status_failure(
        &self,
        status: http::StatusCode,
        mut response: Response,
        secrets: &Secrets,
    ) -> TransportError {
        let mut said = self.beginning(&mut response);
        if let Some(coding) = response.compression() {
            said = compressed(coding);
        }
        let mut error = failure::read_redacted(&said, secrets);
        let exact = retry::retry_after_ms(response.header("retry-after-ms"));
        let wait = retry::retry_after(response.header("retry-after"), OffsetDateTime::now_utc());
        error.retry_after = exact.or(wait).or(error.retry_after);
        error.should_retry = response.header("x-should-retry").parse().ok();
        let mut location = None;
        let target = response.header("location");
        if status.is_redirection() && !target.is_empty() {
            location = Some(secret::redact(&self.redirected_to(target), secrets));
        }
        TransportError {
            status: Some(status.as_u16()),
            error,
            body: said,
            location,
            ..TransportError::default()
        }
    }

    /// The beginning of an error's body. An incomplete one still says more than none.
    fn beginning(&self, response: &mut Response) -> String {
        let began = Instant::now();
        let mut beginning = Vec::new();
        let mut buffer = vec![0; RECEIVED_AT_ONCE];
        while beginning.len() < MAX_ERROR_BODY
            && let left = ERROR_BODY_TIMEOUT.saturating_sub(began.elapsed())
            && !left.is_zero()
        {
            lock(&self.state).patience = Some(left);
            match response.body.read(&mut buffer) {
                Ok(count @ 1..) => beginning.extend_from_slice(&buffer[..count]),
                _ => break,
            }
        }
        beginning.truncate(MAX_ERROR_BODY);
        String::from_utf8_lossy(&beginning).into_owned()
    }

    /// Where a redirect leads, without a login and the query, because they may be secret. A path alone is on the same server.
    fn redirected_to(&self, location: &str) -> String {
        let url = location.split('?').next().unwrap_or_default();
        let url = url.rsplit('@').next().unwrap_or_default();
        if url.starts_with('/') {
            return self.address.origin() + url;
        }
        url.to_owned()
    }

    /// Says why there is no response, or no more of it.
    pub fn connection_failure(&self, error: impl Into<ureq::Error>) -> TransportError {
        let mut failure = match (error.into(), &self.proxy) {
            (ureq::Error::ConnectProxyFailed(reason), Some(_)) => refused_by_proxy(&reason),
            (error, _) => describe(error),
        };
        if let Some(NamedProxy {
            variable, proxy, ..
        }) = &self.proxy
        {
            failure.error.message += &format!(
                " (through the proxy {}:{}, which {variable} names)",
                proxy.host(),
                proxy.port()
            );
        }
        failure
    }
}

/// What to do about a response that is compressed although the request asks for none that is.
const DO_NOT_COMPRESS: &str = "the server, or a proxy or gateway before it, must not compress where “Accept-Encoding: identity” is sent";

fn compressed(coding: &str) -> String {
    format!("the response is compressed ({coding}), which q did not ask for and cannot read")
}

/// Describes the failure of a proxy to connect to the server. The library's words have the status twice.
fn refused_by_proxy(reason: &str) -> TransportError {
    let (_, status) = reason.rsplit_once('/').unwrap_or_default();
    if status == "407" {
        return TransportError::advised(
            "the proxy wants a login (407)",
            "put it before the host in the variable: http://user:password@proxy.example:3128",
        );
    }
    let cause = match status {
        "" => format!("the proxy does not connect to the server ({reason})"),
        status => format!("the proxy refuses to connect to the server ({status})"),
    };
    TransportError::advised(
        cause,
        "if the server can be reached without the proxy, name its host in NO_PROXY",
    )
}

fn describe(error: ureq::Error) -> TransportError {
    let limit = CONNECT_TIMEOUT.as_secs();
    match error {
        ureq::Error::Io(error) => io_failure(&error),
        ureq::Error::Timeout(Timeout::Connect) => {
            TransportError::transient(format!("no connection within {limit} s"))
        }
        ureq::Error::Timeout(Timeout::Resolve) => {
            TransportError::transient(format!("{UNRESOLVED}: no answer within {limit} s"))
        }
        ureq::Error::Timeout(_) => TransportError::advised(
            "timed out: no data from the server",
            "raise the timeout setting (Q_TIMEOUT) to wait longer",
        ),
        ureq::Error::Protocol(error) => TransportError::new(format!(
            "the server sent an invalid HTTP response ({error})"
        )),
        other => TransportError::new(other.to_string()),
    }
}

/// Describes an error that the system reports.
fn io_failure(error: &io::Error) -> TransportError {
    let text = error.to_string();
    if let Some(reason) = text.strip_prefix(LOOKUP_FAILURE) {
        // `EAI_AGAIN` in the words of glibc, musl and the BSDs.
        let is_transient = reason.contains("Temporary failure") || reason.contains("ry again");
        return TransportError {
            is_transient,
            ..TransportError::advised(
                format!("{UNRESOLVED}: {reason}"),
                "check the network\ncheck the name in the address",
            )
        };
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => TransportError::advised(
            "the connection was refused",
            "is the server running, and is this its address?",
        ),
        ErrorKind::InvalidData => tls_failure(&text),
        ErrorKind::TimedOut => TransportError::transient("the connection timed out"),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => TransportError::transient("the server closed the connection"),
        _ => TransportError::new(text),
    }
}

/// What a server says, after its status if there is one: `404 Not Found: no such page`.
pub fn with_status(status: Option<u16>, says: &str) -> String {
    let Some(status) = status else {
        return says.to_owned();
    };
    let known = http::StatusCode::from_u16(status).ok();
    match known.and_then(|known| known.canonical_reason()) {
        Some(reason) => format!("{status} {reason}: {says}"),
        None => format!("{status}: {says}"),
    }
}

/// The beginning of q's own words for it, or for the name of a proxy.
const UNRESOLVED: &str = "a name cannot be resolved";

/// The beginning of the standard library's message for a name that was not resolved; it has no error kind.
const LOOKUP_FAILURE: &str = "failed to lookup address information: ";

fn tls_failure(reason: &str) -> TransportError {
    let (message, advice) = tls::explain(reason);
    TransportError {
        advice,
        ..TransportError::new(message)
    }
}

/// The proxy for an address, by its scheme.
fn proxy_for(address: &Address, environment: &Environment) -> Result<Option<NamedProxy>, Error> {
    let exempt = first_set(["NO_PROXY", "no_proxy"], environment);
    if address.is_loopback() || exempt.is_some_and(|(_, list)| is_exempt(address, &list)) {
        return Ok(None);
    }
    let names = if address.is_https() {
        ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    } else {
        ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
    };
    let Some((variable, value)) = first_set(names, environment) else {
        return Ok(None);
    };
    match Proxy::new(&value) {
        Ok(proxy) => Ok(Some(NamedProxy {
            variable,
            proxy,
            secrets: secret::of_proxy(&value),
        })),
        Err(_) => Err(
            Error::settings(format!("{variable} is not the URL of a proxy"))
                .advise("it looks like http://proxy.example:3128 or socks5://127.0.0.1:1080"),
        ),
    }
}

/// The first of these variables that is set, with its value.
fn first_set<const N: usize>(
    names: [&'static str; N],
    environment: &Environment,
) -> Option<(&'static str, String)> {
    let mut names = names.into_iter();
    names.find_map(|name| Some((name, environment.get(name)?.to_owned())))
}

/// Whether `NO_PROXY` names the host, one of its domains, or its network.
fn is_exempt(address: &Address, list: &str) -> bool {
    let list = list.to_ascii_lowercase();
    let mut entries = list.split([',', ' ', '\t']);
    entries.any(|entry| entry == "*" || names(entry, address))
}

/// Whether an entry of `NO_PROXY` names the host of an address: `example.com`, `.example.com`, `example.com:8080`, `10.0.0.1`
/// or `10.0.0.0/8`.
fn names(entry: &str, address: &Address) -> bool {
    let host = address.host().to_ascii_lowercase();
    let host_ip: Option<IpAddr> = host.parse().ok();
    if let Some((network, length)) = entry.split_once('/') {
        let network = network.trim_matches(['[', ']']).parse();
        return match (network, length.parse(), host_ip) {
            (Ok(network), Ok(length), Some(ip)) => is_within(ip, network, length),
            _ => false,
        };
    }
    // The colons of an IPv6 address without brackets are not before a port.
    let mut name = entry;
    if entry.parse::<IpAddr>().is_err()
        && let Some((before, port)) = entry.rsplit_once(':')
        && !port.ends_with(']')
    {
        if port.parse() != Ok(address.port()) {
            return false;
        }
        name = before;
    }
    let name = name.trim_matches(['*', '.', '[', ']']);
    if host_ip.is_some() {
        return host_ip == name.parse().ok();
    }
    match host.strip_suffix(name) {
        Some(before) => !name.is_empty() && (before.is_empty() || before.ends_with('.')),
        None => false,
    }
}

/// Whether an address begins with as many bits of a network's.
fn is_within(ip: IpAddr, network: IpAddr, length: u32) -> bool {
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) if length <= 32 => {
            let differs = ip.to_bits() ^ network.to_bits();
            differs.leading_zeros() >= length
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) if length <= 128 => {
            let differs = ip.to_bits() ^ network.to_bits();
            differs.leading_zeros() >= length
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text).expect(text)
    }

    /// The error of the standard library for a name that the system's resolver gave up with this code.
    #[allow(unsafe_code)]
    fn unresolved(code: libc::c_int) -> io::Error {
        // SAFETY: the call takes any code, and returns a string that lasts as long as the program.
        let reason = unsafe { std::ffi::CStr::from_ptr(libc::gai_strerror(code)) };
        io::Error::other(format!("{LOOKUP_FAILURE}{}", reason.to_string_lossy()))
    }

    #[test]
    fn a_name_that_is_not_resolved_now_may_be_resolved_later() {
        let client = Client::new(&address("http://h.example"), None, &Environment::new(&[]))
            .expect("a client");
        for (code, is_transient) in [
            (libc::EAI_AGAIN, true),
            (libc::EAI_NONAME, false),
            (libc::EAI_FAIL, false),
        ] {
            let failed = client.connection_failure(ureq::Error::Io(unresolved(code)));
            assert_eq!(failed.is_transient, is_transient, "{failed:?}");
            let cause = failed.error.message;
            assert!(cause.starts_with(UNRESOLVED), "{cause}");
        }
    }

    #[test]
    fn no_proxy_names_hosts_and_their_subdomains() {
        for (list, url, exempt) in [
            ("example.com", "https://example.com", true),
            ("example.com", "https://api.example.com", true),
            ("example.com", "https://notexample.com", false),
            (".example.com", "https://api.example.com", true),
            ("*.example.com", "https://api.example.com", true),
            (" a.example , EXAMPLE.com ", "https://example.com", true),
            ("a.example example.com", "https://example.com", true),
            ("*", "https://example.com", true),
            ("10.0.0.1", "http://10.0.0.1:8080", true),
            ("fe80::1", "http://[fe80::1]:8080", true),
            ("10.0.0.0/8", "http://10.1.2.3:8080", true),
            ("10.0.0.0/8", "http://11.1.2.3", false),
            ("10.0.0.0/8", "http://a10.example", false),
            ("192.168.0.0/0", "http://11.1.2.3", true),
            ("10.0.0.0/33", "http://10.0.0.0", false),
            ("10.0.0.1/32", "http://10.0.0.1", true),
            ("10.0.0.1/32", "http://10.0.0.2", false),
            ("fe80::/10", "http://[fe80::7]", true),
            ("fe80::/10", "http://[2001:db8::7]", false),
            ("::/0", "http://10.0.0.1", false),
            ("x, 172.16.0.0/12", "http://172.20.1.1", true),
            ("example.com:8080", "http://example.com:8080", true),
            ("example.com:8080", "http://example.com", false),
            ("example.com:443", "https://api.example.com", true),
            ("example.com:80", "http://example.com", true),
            ("10.0.0.1:8080", "http://10.0.0.1:8080", true),
            ("10.0.0.1:8080", "http://10.0.0.1:9090", false),
            ("[fe80::1]:8080", "http://[fe80::1]:8080", true),
            ("[fe80::1]:8080", "http://[fe80::1]", false),
            ("[fe80::1]", "http://[fe80::1]", true),
            ("fe80:0::1", "http://[fe80::1]", true),
            ("0.0.1", "http://10.0.0.1", false),
            ("example.com:", "http://example.com", false),
            ("", "https://example.com", false),
            (",", "https://example.com", false),
        ] {
            assert_eq!(is_exempt(&address(url), list), exempt, "{list:?} for {url}");
        }
    }
}
