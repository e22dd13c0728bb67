//! Why a request has no response, or an incomplete one, and what to do about it.

use std::io::{self, ErrorKind};

use http::StatusCode;
use time::OffsetDateTime;
use ureq::Timeout;

use super::connections::CONNECT_TIMEOUT;
use super::proxy::{NamedProxy, ProxyProtocol};
use super::response::Response;
use super::tls;
use crate::provider::failure::{self, ServerError};
use crate::secret::{self, Secrets};
use crate::server::retry;
use crate::server_url::ServerUrl;

/// The beginning of q's words for a name, the server's or a proxy's, that was not resolved.
const UNRESOLVED: &str = "could not resolve the host";

/// q's words for a connection that nobody takes.
const REFUSED: &str = "the connection was refused";

/// The beginning of the standard library's message for a name that was not resolved; it has no error kind.
const LOOKUP_FAILURE: &str = "failed to lookup address information: ";

/// What to do about a response that is compressed although the request asks for none that is.
const DO_NOT_COMPRESS: &str = "the server, or a proxy or gateway before it, must not compress where “Accept-Encoding: identity” is sent";

/// What to do about a proxy that does not lead to the server.
const LEAVE_OUT_THE_PROXY: &str =
    "if the server can be reached without the proxy, name its host in NO_PROXY";

/// The library's words for an answer that is not as SOCKS has it.
const NO_SOCKS: [&str; 4] = [
    "invalid response version",
    "invalid response code",
    "invalid reserved byte",
    "unsupported address type",
];

/// Its words for a SOCKS proxy that does not let this user in.
const SOCKS_LOGIN: [&str; 3] = [
    "no acceptable auth methods",
    "unknown auth method",
    "password authentication failed",
];

/// Its words for a SOCKS proxy that does not connect to the server.
const SOCKS_REFUSALS: [&str; 10] = [
    "general SOCKS server failure",
    "connection not allowed by ruleset",
    "network unreachable",
    "host unreachable",
    "connection refused",
    "TTL expired",
    "command not supported",
    "address kind not supported",
    "unknown error",
    "request rejected or failed",
];

/// A reason why there is no response, or only a part of it.
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
    /// Whether the connection failed, and may succeed the next time.
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

    /// Describes a response from this address with a status other than success.
    pub fn of_status(
        status: StatusCode,
        mut response: Response,
        address: &ServerUrl,
        secrets: &Secrets,
    ) -> TransportError {
        let mut said = response.read_error();
        if let Some(coding) = response.compression() {
            said = compression_words(coding);
        }
        let mut error = failure::read_redacted(&said, secrets);
        let exact = retry::retry_after_ms(response.header("retry-after-ms"));
        let wait = retry::retry_after(response.header("retry-after"), OffsetDateTime::now_utc());
        error.retry_after = exact.or(wait).or(error.retry_after);
        error.should_retry = response.header("x-should-retry").parse().ok();
        let mut location = None;
        let target = response.header("location");
        if status.is_redirection() && !target.is_empty() {
            // First, so that no part of a secret is left where the URL is cut.
            let shown = secret::redact(target, secrets);
            location = Some(address.redirect_target(&shown));
        }
        TransportError {
            status: Some(status.as_u16()),
            error,
            body: said,
            location,
            ..TransportError::default()
        }
    }

    /// Describes why there is no response, or no more of it.
    pub fn of_connection(error: ureq::Error, proxy: Option<&NamedProxy>) -> TransportError {
        let Some(named) = proxy else {
            return describe(error);
        };
        let mut failure = match (error, named.protocol) {
            (ureq::Error::ConnectProxyFailed(reason), _) => refused_by_proxy(&reason),
            (ureq::Error::Io(error), ProxyProtocol::Socks) => failure_of_socks(&error),
            (other, _) => describe(other),
        };
        let variable = named.variable;
        let is_encrypted = named.protocol == ProxyProtocol::Https;
        let message = &failure.error.message;
        // The connection to the proxy comes first, and so does its name, unless q has to resolve the server's, too.
        if message == REFUSED {
            let advice = format!("is the proxy running, and does {variable} have its address?");
            failure.advice = Some(advice);
        } else if message.starts_with(UNRESOLVED) && named.protocol != ProxyProtocol::Socks {
            let advice = format!("check the network\ncheck the name of the proxy in {variable}");
            failure.advice = Some(advice);
        }
        if is_encrypted && message.contains(tls::NOT_TLS) {
            // The server's own URL must not lose its TLS.
            let advice =
                format!("if the proxy has no TLS, begin its URL in {variable} with http://");
            failure.advice = Some(advice);
        }
        if !is_encrypted && message.contains(tls::UNASKED_TLS) {
            // Whose answer it is, nobody knows.
            let advice = format!(
                "begin its URL with https://\nor, if the proxy has TLS, its URL in {variable}"
            );
            failure.advice = Some(advice);
        }
        let (host, port) = (named.proxy.host(), named.proxy.port());
        failure.error.message +=
            &format!(" (through the proxy {host}:{port}, which {variable} names)");
        failure
    }

    /// Describes a response that is compressed like this.
    pub fn compressed(coding: &str) -> TransportError {
        TransportError::advised(compression_words(coding), DO_NOT_COMPRESS)
    }
}

fn compression_words(coding: &str) -> String {
    format!("the response is compressed ({coding}), which q did not ask for and cannot read")
}

/// Describes the failure of a proxy to connect to the server. The library's words have the status twice.
fn refused_by_proxy(reason: &str) -> TransportError {
    let (_, status) = reason.rsplit_once('/').unwrap_or_default();
    if status == "407" {
        return TransportError::advised(
            "the proxy requires a user name and a password (407)",
            "put them before the host in the variable: http://user:password@proxy.example:3128",
        );
    }
    let cause = match status {
        "" => format!("the proxy does not connect to the server ({reason})"),
        status => format!("the proxy refuses to connect to the server ({status})"),
    };
    TransportError::advised(cause, LEAVE_OUT_THE_PROXY)
}

/// Describes a failure on the way through a SOCKS proxy, whose errors are known by the library's words alone.
fn failure_of_socks(error: &io::Error) -> TransportError {
    let reason = &*error.to_string();
    if NO_SOCKS.contains(&reason) {
        return TransportError::advised(
            format!("the proxy does not speak SOCKS ({reason})"),
            "if it is an HTTP proxy, begin its URL with http://",
        );
    }
    if SOCKS_LOGIN.contains(&reason) {
        return TransportError::advised(
            format!("the proxy requires another user name or password ({reason})"),
            "put them before the host in the variable: socks5h://user:password@proxy.example:1080",
        );
    }
    if SOCKS_REFUSALS.contains(&reason) {
        return TransportError::advised(
            format!("the proxy does not connect to the server ({reason})"),
            LEAVE_OUT_THE_PROXY,
        );
    }
    io_failure(error)
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
        ErrorKind::ConnectionRefused => {
            TransportError::advised(REFUSED, "is the server running, and is this its address?")
        }
        ErrorKind::InvalidData => tls_failure(&text),
        ErrorKind::TimedOut => TransportError::transient("the connection timed out"),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => TransportError::transient("the server closed the connection"),
        _ => TransportError::new(text),
    }
}

/// Returns what a server says, after its status if there is one: `404 Not Found: no such page`.
pub fn with_status(status: Option<u16>, says: &str) -> String {
    let Some(status) = status else {
        return says.to_owned();
    };
    let known = StatusCode::from_u16(status).ok();
    match known.and_then(|known| known.canonical_reason()) {
        Some(reason) => format!("{status} {reason}: {says}"),
        None => format!("{status}: {says}"),
    }
}

fn tls_failure(reason: &str) -> TransportError {
    let (message, advice) = tls::explain(reason);
    TransportError {
        advice,
        ..TransportError::new(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of the standard library for a name that the system's resolver gave up with this code.
    #[allow(unsafe_code)]
    fn unresolved(code: libc::c_int) -> io::Error {
        // SAFETY: the call takes any code, and returns a string that lasts as long as the program.
        let reason = unsafe { std::ffi::CStr::from_ptr(libc::gai_strerror(code)) };
        io::Error::other(format!("{LOOKUP_FAILURE}{}", reason.to_string_lossy()))
    }

    #[test]
    fn only_a_temporary_failure_to_resolve_a_host_is_transient() {
        for (code, is_transient) in [
            (libc::EAI_AGAIN, true),
            (libc::EAI_NONAME, false),
            (libc::EAI_FAIL, false),
        ] {
            let failed = TransportError::of_connection(ureq::Error::Io(unresolved(code)), None);
            assert_eq!(failed.is_transient, is_transient, "{failed:?}");
            let cause = failed.error.message;
            assert!(cause.starts_with(UNRESOLVED), "{cause}");
        }
    }
}
