//! HTTP: chooses proxy and certificates, limits how long q waits, and gives every failure its cause. Only this file
//! names the HTTP library.

use std::io::{self, ErrorKind, Read};
use std::time::Duration;

use time::OffsetDateTime;
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Proxy, ProxyProtocol, Timeout};

use super::retry;
use crate::address::{Address, Endpoint};
use crate::error::Error;
use crate::provider::failure::{self, ServerError, TRANSIENT_STATUSES};
use crate::provider::request::Request;
use crate::secret::{self, Secret};
use crate::settings::Environment;

/// How long connecting may take, and resolving the name before it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The most that q reads of an error's body.
const MAX_ERROR_BODY: u64 = 64 << 10;

/// How much of a response is received at once: more than the library accepts of headers (64 KiB), so that it sees when
/// they are too long, but less than its own 128 KiB, whose clearing costs more than a short answer.
const RECEIVED_AT_ONCE: usize = 80 << 10;

/// How much of a request is sent at once, for the same reason less than 128 KiB.
const SENT_AT_ONCE: usize = 32 << 10;

/// The beginning of data compressed by gzip (RFC 1952).
pub(crate) const GZIP: &[u8] = b"\x1F\x8B";

/// The error for a body that begins like this.
pub(crate) const COMPRESSED: &str = "the response is compressed by gzip, which q did not ask for";

/// A response with a status of success; its body is read as it arrives.
pub(crate) struct Response {
    headers: http::HeaderMap,
    pub(crate) body: Box<dyn Read + Send>,
}

impl Response {
    /// The value of a header; empty if there is none, or if it is not text.
    pub(crate) fn header(&self, name: &str) -> &str {
        text_of(&self.headers, name).unwrap_or_default()
    }

    pub(crate) fn content_type(&self) -> &str {
        self.header("content-type")
    }
}

/// What to do with a path of the server. A body is borrowed because it may be large, and is sent again after a failure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Method<'a> {
    Get,
    /// Sends this JSON.
    Post(&'a [u8]),
    Delete,
}

/// Whether one of the headers is the key.
pub(crate) fn has_authorization(headers: &[(String, Secret)]) -> bool {
    headers.iter().any(is_authorization)
}

/// Whether this header is the key.
pub(crate) fn is_authorization((name, _): &(String, Secret)) -> bool {
    name.eq_ignore_ascii_case("authorization")
}

/// How long a request may take; `None` is for ever.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The longest silence.
    pub(crate) silence: Option<Duration>,
    /// Until the whole response is there.
    pub(crate) total: Option<Duration>,
}

/// Why there is no response, or only a part of it.
#[derive(Debug)]
pub(crate) struct TransportError {
    /// A status other than success; `None`: the connection failed.
    pub(crate) status: Option<u16>,
    /// What the server says, or why the connection failed.
    pub(crate) error: ServerError,
    /// The body that came with the status, unchanged.
    pub(crate) body: String,
    /// Where the server redirects to.
    pub(crate) location: Option<String>,
    pub(crate) advice: Option<String>,
    /// Another try may succeed.
    pub(crate) is_transient: bool,
}

/// A client for one address.
pub(crate) struct Client {
    agent: Agent,
    address: Address,
    proxy: Option<ProxyUsed>,
    /// The longest silence, unless a request has limits of its own.
    silence: Option<Duration>,
    retries: u32,
}

/// The proxy, as q reports it.
struct ProxyUsed {
    /// The variable that names it.
    variable: &'static str,
    /// Without user and password.
    host: String,
    port: u16,
    /// The server's name is looked up here, not by the proxy.
    looks_up_here: bool,
}

impl Client {
    /// Decides on proxy and certificates; nothing is sent yet. `timeout` is the longest silence.
    ///
    /// # Errors
    /// `Settings`: a proxy that is not a URL, or named certificates that cannot be used.
    pub(crate) fn new(
        address: &Address,
        timeout: Option<Duration>,
        retries: u32,
        environment: &Environment,
    ) -> Result<Client, Error> {
        let proxy = proxy_for(address, environment)?;
        let tls = TlsConfig::builder();
        let proxy_speaks_tls = proxy
            .as_ref()
            .is_some_and(|(_, proxy)| proxy.protocol() == ProxyProtocol::Https);
        let needs_tls = address.is_https() || proxy_speaks_tls;
        let tls = if needs_tls {
            tls.root_certs(root_certificates(environment)?)
        } else {
            tls
        };
        let named = address.ip().is_none() && !address.is_loopback();
        let config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(proxy.as_ref().map(|(_, proxy)| proxy.clone()))
            .tls_config(tls.build())
            .user_agent(concat!("q/", env!("CARGO_PKG_VERSION")))
            // This time-out costs a thread, and an IP address need not be resolved.
            .timeout_resolve(named.then_some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .input_buffer_size(RECEIVED_AT_ONCE)
            .output_buffer_size(SENT_AT_ONCE)
            .build();
        let proxy = proxy.map(|(variable, proxy)| ProxyUsed {
            variable,
            host: proxy.host().to_owned(),
            port: proxy.port(),
            looks_up_here: proxy.resolve_target(),
        });
        Ok(Client {
            agent: config.into(),
            address: address.clone(),
            proxy,
            silence: timeout,
            retries,
        })
    }

    /// How often a failed request is tried again.
    pub(crate) fn retries(&self) -> u32 {
        self.retries
    }

    /// Sends a request, and returns when the headers of the response have come.
    ///
    /// # Errors
    /// The connection failed, or the status is not a success.
    pub(super) fn send(
        &self,
        request: &Request,
        secrets: &[Secret],
    ) -> Result<Response, TransportError> {
        let body = request
            .body
            .as_ref()
            .map(|body| body.to_string().into_bytes());
        let method = body.as_deref().map_or(Method::Get, Method::Post);
        let limits = Limits {
            silence: self.silence,
            total: None,
        };
        self.exchange(method, &request.path, &request.headers, limits, secrets)
    }

    /// Sends a request with any method and its own limits, and returns when the headers of the response have come. What
    /// the server says about a failure is cleared of secrets.
    ///
    /// # Errors
    /// As for [`Client::send`].
    pub(crate) fn exchange(
        &self,
        method: Method,
        path: &str,
        headers: &[(String, Secret)],
        limits: Limits,
        secrets: &[Secret],
    ) -> Result<Response, TransportError> {
        let url = self.address.join(path);
        let sent = match method {
            Method::Post(body) => completed(
                self.agent.post(url).content_type("application/json"),
                headers,
                limits,
            )
            .send(body),
            Method::Get => completed(self.agent.get(url), headers, limits).call(),
            Method::Delete => completed(self.agent.delete(url), headers, limits).call(),
        };
        let mut response = sent.map_err(|error| self.connection_failure(error))?;
        let status = response.status();
        if !status.is_success() {
            let header = |name| text_of(response.headers(), name);
            let retry_after = header("retry-after")
                .and_then(|text| retry::retry_after(text, OffsetDateTime::now_utc()));
            let location = header("location").filter(|_| status.is_redirection());
            let location =
                location.map(|location| secret::redact(&self.redirected_to(location), secrets));
            // An incomplete body still says more than none.
            let mut body = Vec::new();
            let _ = response
                .body_mut()
                .as_reader()
                .take(MAX_ERROR_BODY)
                .read_to_end(&mut body);
            let is_compressed = body.starts_with(GZIP);
            let body = if is_compressed {
                COMPRESSED.into()
            } else {
                String::from_utf8_lossy(&body).into_owned()
            };
            let mut error = failure::read_redacted(&body, secrets);
            error.retry_after = retry_after.or(error.retry_after);
            return Err(TransportError {
                status: Some(status.as_u16()),
                error,
                body,
                location,
                advice: None,
                is_transient: TRANSIENT_STATUSES.contains(&status.as_u16()),
            });
        }
        let (parts, body) = response.into_parts();
        Ok(Response {
            headers: parts.headers,
            body: Box::new(body.into_reader()),
        })
    }

    /// Where a redirect leads, without a login and the query, which may be secret. A path alone is one of the same server.
    fn redirected_to(&self, location: &str) -> String {
        let url = location.split('?').next().unwrap_or_default();
        let is_path = url.starts_with('/') && !url.starts_with("//");
        match Endpoint::parse(url) {
            _ if is_path => self.address.origin() + url,
            Ok(endpoint) => endpoint.to_string(),
            Err(_) => url.rsplit('@').next().unwrap_or_default().to_owned(),
        }
    }

    /// Describes a failure while the body was read.
    pub(crate) fn read_failure(&self, error: io::Error) -> TransportError {
        self.connection_failure(ureq::Error::from(error))
    }

    fn connection_failure(&self, error: ureq::Error) -> TransportError {
        let (mut cause, advice) = self.describe(&error);
        if let Some(ProxyUsed {
            variable,
            host,
            port,
            ..
        }) = &self.proxy
        {
            cause += &format!(" (through the proxy {host}:{port}, which {variable} names)");
        }
        TransportError {
            status: None,
            error: ServerError::new(cause),
            body: String::new(),
            location: None,
            advice: advice.map(str::to_owned),
            is_transient: is_transient(&error),
        }
    }

    /// The cause of a failure, and what to do about it.
    fn describe(&self, error: &ureq::Error) -> (String, Option<&'static str>) {
        // With most proxies, only the proxy's own name is looked up here.
        let proxy = self.proxy.as_ref().filter(|proxy| !proxy.looks_up_here);
        let looked_up = proxy.map_or(self.address.host(), |proxy| &proxy.host);
        let limit = CONNECT_TIMEOUT.as_secs();
        let cause = match error {
            ureq::Error::HostNotFound => format!("the host {looked_up} has no address"),
            ureq::Error::Io(error) => return io_cause(error, looked_up),
            ureq::Error::Rustls(error) => return tls_cause(&error.to_string()),
            ureq::Error::Tls(reason) => return tls_cause(reason),
            ureq::Error::Timeout(Timeout::Connect) => format!("no connection within {limit} s"),
            ureq::Error::Timeout(Timeout::Resolve) => {
                format!("the name {looked_up} was not resolved within {limit} s")
            }
            ureq::Error::Timeout(_) => {
                let limit = self
                    .silence
                    .map(|limit| format!("{} s", limit.as_secs_f64()));
                let cause = format!(
                    "no data from the server for {}",
                    limit.as_deref().unwrap_or("too long")
                );
                return (
                    cause,
                    Some("the setting timeout (Q_TIMEOUT) says how long a silence may last"),
                );
            }
            ureq::Error::ConnectProxyFailed(reason) => {
                format!("the proxy made no connection: {reason}")
            }
            ureq::Error::LargeResponseHeader(..) => "the server's headers are too long".to_owned(),
            ureq::Error::Protocol(error) => {
                format!("the server sent an invalid HTTP response ({error})")
            }
            other => other.to_string(),
        };
        (cause, None)
    }
}

/// The cause of an error that the system reports, and what to do about it.
fn io_cause(error: &io::Error, looked_up: &str) -> (String, Option<&'static str>) {
    if let Some(reason) = lookup_failure(error) {
        let cause = format!("the name {looked_up} cannot be resolved ({reason})");
        return (
            cause,
            Some("check the network\ncheck the name in the address"),
        );
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => (
            "the connection was refused".to_owned(),
            Some("is the server running, and is this its address?"),
        ),
        ErrorKind::TimedOut => ("the connection timed out".to_owned(), None),
        ErrorKind::InvalidData => tls_cause(&error.to_string()),
        kind if CLOSED.contains(&kind) => ("the server closed the connection".to_owned(), None),
        _ => (error.to_string(), None),
    }
}

/// Whether a connection that failed like this may succeed the next time.
fn is_transient(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Io(error) => match lookup_failure(error) {
            // EAI_AGAIN in the words of glibc, musl and the BSDs.
            Some(reason) => ["Temporary failure", "Try again", "try again"]
                .iter()
                .any(|known| reason.contains(known)),
            None => error.kind() == ErrorKind::TimedOut || CLOSED.contains(&error.kind()),
        },
        ureq::Error::Timeout(phase) => matches!(phase, Timeout::Connect | Timeout::Resolve),
        _ => false,
    }
}

/// A request with its headers and limits.
fn completed<Any>(
    mut request: ureq::RequestBuilder<Any>,
    headers: &[(String, Secret)],
    limits: Limits,
) -> ureq::RequestBuilder<Any> {
    for (name, value) in headers {
        request = request.header(name, value.expose());
    }
    let Limits { silence, total } = limits;
    request
        .config()
        .timeout_per_read(silence)
        .timeout_per_write(silence)
        .timeout_global(total)
        .build()
}

/// A header whose value is text.
fn text_of<'h>(headers: &'h http::HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// What a server says, after its status if there is one: `404 Not Found: no such page`.
pub(crate) fn with_status(status: Option<u16>, says: &str) -> String {
    let Some(status) = status else {
        return says.to_owned();
    };
    let reason = http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    format!(
        "{}: {says}",
        format!("{status} {}", reason.unwrap_or_default()).trim_end()
    )
}

/// What the system says if the server closed the connection.
const CLOSED: [ErrorKind; 4] = [
    ErrorKind::ConnectionReset,
    ErrorKind::ConnectionAborted,
    ErrorKind::BrokenPipe,
    ErrorKind::UnexpectedEof,
];

/// The beginning of the standard library's message for a name that was not resolved; it has no error kind.
const LOOKUP_FAILURE: &str = "failed to lookup address information: ";

/// Why a name was not resolved, if that is the failure.
fn lookup_failure(error: &io::Error) -> Option<String> {
    error
        .to_string()
        .strip_prefix(LOOKUP_FAILURE)
        .map(str::to_owned)
}

/// Errors of the TLS library, plain words where its own are only names, and what to do about them.
const TLS_FAILURES: [(&str, Option<&str>, &str); 6] = [
    (
        "UnknownIssuer",
        None,
        "if the certificate is your company's or your own, name its authority in SSL_CERT_FILE",
    ),
    (
        "BadSignature",
        None,
        "if the certificate is your company's or your own, name its authority in SSL_CERT_FILE",
    ),
    (
        "expired",
        None,
        "the server's certificate, or this machine's clock, is out of date",
    ),
    (
        "not valid yet",
        None,
        "the server's certificate, or this machine's clock, is out of date",
    ),
    (
        "CaUsedAsEndEntity",
        Some("the server's certificate is one for an authority, not for a server"),
        "the server needs a certificate with CA:FALSE (openssl req -addext basicConstraints=CA:FALSE)",
    ),
    (
        "InvalidContentType",
        Some("the server does not speak TLS on this port"),
        "if the server has no TLS, its address begins with http://",
    ),
];

fn tls_cause(reason: &str) -> (String, Option<&'static str>) {
    let known = TLS_FAILURES.iter().find(|(mark, ..)| reason.contains(mark));
    let words = known.and_then(|(_, words, _)| *words).unwrap_or(reason);
    (format!("TLS: {words}"), known.map(|(_, _, advice)| *advice))
}

/// The proxy for an address, by its scheme, and the variable that names it.
fn proxy_for(
    address: &Address,
    environment: &Environment,
) -> Result<Option<(&'static str, Proxy)>, Error> {
    const FOR_HTTPS: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    const FOR_HTTP: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    if address.is_loopback()
        || ["NO_PROXY", "no_proxy"]
            .iter()
            .find_map(|name| environment.get(name))
            .is_some_and(|list| is_exempt(address, list))
    {
        return Ok(None);
    }
    let names = if address.is_https() {
        FOR_HTTPS
    } else {
        FOR_HTTP
    };
    let Some((name, value)) = names
        .into_iter()
        .find_map(|name| Some((name, environment.get(name)?)))
    else {
        return Ok(None);
    };
    // The library also accepts values that cannot be a proxy.
    let server = value.split_once("://").map_or(value, |(_, server)| server);
    let valid = Address::parse(&format!("http://{server}")).is_ok();
    match Proxy::new(value) {
        Ok(proxy) if valid => Ok(Some((name, proxy))),
        _ => Err(Error::settings(format!("{name} is not the URL of a proxy"))
            .advise("it looks like http://proxy.example:3128 or socks5://127.0.0.1:1080")),
    }
}

/// Whether `NO_PROXY` names the host or one of its domains.
fn is_exempt(address: &Address, list: &str) -> bool {
    let host = address.host().to_ascii_lowercase();
    list.split([',', ' ', '\t'])
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .any(|entry| {
            let entry = entry.to_ascii_lowercase();
            let (entry, port) = match entry.rsplit_once(':') {
                Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
                    (name, port.parse::<u16>().ok())
                }
                _ => (entry.as_str(), None),
            };
            let entry = entry
                .trim_start_matches("*.")
                .trim_start_matches('.')
                .trim_matches(['[', ']']);
            let named = entry == "*"
                || host == entry
                || host
                    .strip_suffix(entry)
                    .is_some_and(|rest| rest.ends_with('.'));
            named && port.is_none_or(|port| port == address.port())
        })
}

/// The system's certificates, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.
fn root_certificates(environment: &Environment) -> Result<RootCerts, Error> {
    let named: Vec<&str> = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
        .into_iter()
        .filter(|name| environment.get(name).is_some())
        .collect();
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        if named.is_empty() {
            return Ok(RootCerts::WebPki);
        }
        let reason = found
            .errors
            .first()
            .map_or_else(|| "it has none".to_owned(), ToString::to_string);
        return Err(Error::settings(format!(
            "{} yields no certificate: {reason}",
            named.join(" or ")
        ))
        .advise("unset it to use the system's certificates"));
    }
    let certificates: Vec<_> = found
        .certs
        .iter()
        .map(|der| Certificate::from_der(der).to_owned())
        .collect();
    Ok(RootCerts::new_with_certs(&certificates))
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
        let client = Client::new(
            &address("http://h.example"),
            None,
            1,
            &Environment::new(&[]),
        )
        .expect("a client");
        for (code, is_transient) in [
            (libc::EAI_AGAIN, true),
            (libc::EAI_NONAME, false),
            (libc::EAI_FAIL, false),
        ] {
            let failed = client.connection_failure(ureq::Error::Io(unresolved(code)));
            assert_eq!(failed.is_transient, is_transient, "{failed:?}");
            let cause = failed.error.message;
            assert!(
                cause.starts_with("the name h.example cannot be resolved ("),
                "{cause}"
            );
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
            ("example.com:8443", "https://example.com", false),
            ("example.com:8443", "https://example.com:8443", true),
            ("10.0.0.1", "http://10.0.0.1:8080", true),
            ("fe80::1", "http://[fe80::1]:8080", true),
            ("", "https://example.com", false),
            (",", "https://example.com", false),
        ] {
            assert_eq!(is_exempt(&address(url), list), exempt, "{list:?} for {url}");
        }
    }
}
