//! Why a request has no response, or an incomplete one, and what to do about it.

use std::io::{self, ErrorKind};

use http::StatusCode;
use time::OffsetDateTime;
use ureq::Timeout;

use super::coding;
use super::connections::CONNECT_TIMEOUT;
use super::proxy::{NamedProxy, ProxyProtocol};
use super::response::Response;
use super::tls::{self, TlsPeer, UnansweredTls, UnaskedTls};
use crate::provider::failure::{self, ServerError};
use crate::secret::{self, Secrets};
use crate::server::retry;
use crate::server_url::ServerUrl;

/// The beginning of q's words for a name, the server's or a proxy's, that was not resolved.
const UNRESOLVED: &str = "could not resolve the host";

/// The beginning of the standard library's message for a name that was not resolved; it has no error kind.
const LOOKUP_FAILURE: &str = "failed to lookup address information: ";

/// What to do about a response that is compressed although the request asks for none that is.
const DO_NOT_COMPRESS: &str = "configure the server, or a proxy or gateway before it, not to compress where “Accept-Encoding: identity” is sent";

/// What to do about a server that takes longer than q waits.
const WAIT_LONGER: &str = "raise the timeout setting (Q_TIMEOUT) to wait longer";

/// What to do about a name that is not resolved.
const CHECK_NAME: &str = "check the network and the name in the address";

/// What to do about a server that cannot be reached.
const CHECK_NETWORK: &str = "check the network and the address; a firewall may be in the way";

/// What to do about a proxy that does not lead to the server.
const LEAVE_OUT_THE_PROXY: &str =
    "if the server can be reached without the proxy, name its host in NO_PROXY";

/// What to do about a proxy that refuses to connect to a server without TLS. The library sends no requests to be passed on.
const TUNNELS_FOR_TLS: &str = "if the server has TLS, begin its URL with https://, because q asks the proxy for a tunnel (CONNECT), which many proxies allow only to port 443";

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

/// A reason why a request has no response, or only a part of one.
#[derive(Debug)]
pub enum TransportError {
    /// The server answers with a status other than success.
    Status(StatusFailure),
    /// There is no response, or it ends early or cannot be read.
    Connection(ConnectionFailure),
}

/// A response with a status other than success.
#[derive(Debug)]
pub struct StatusFailure {
    pub status: u16,
    /// What the server says.
    pub error: ServerError,
    /// The beginning of its body, with any secrets that it names.
    pub body: String,
    /// Where the server redirects to.
    pub location: Option<String>,
    /// What to do about a body that cannot be read.
    advice_on_body: Option<&'static str>,
}

/// What went wrong with a connection, in q's words.
#[derive(Debug)]
pub struct ConnectionFailure {
    pub cause: String,
    pub advice: Option<String>,
    /// Whether the next try may succeed.
    pub is_transient: bool,
    /// Whether nothing was reached, neither the server nor a proxy.
    pub is_unreached: bool,
    kind: FailureKind,
}

/// What failed on the way, as far as a proxy may be what has to be changed.
#[derive(Debug, Clone, Copy)]
enum FailureKind {
    /// The name of the server, or of the proxy, was not resolved.
    Unresolved,
    /// Nobody takes the connection.
    Refused,
    /// There is no way to the address, or nothing answers there.
    Unreachable,
    /// What should speak TLS does not answer in it, or not at all.
    LacksTls,
    /// What was not asked in TLS answers in it.
    AnswersInTls,
    Other,
}

impl StatusFailure {
    /// Describes a response from this address. If its body is compressed, nobody knows what the server says, but its status and its
    /// headers count.
    pub fn read(
        status: StatusCode,
        mut response: Response,
        address: &ServerUrl,
        secrets: &Secrets,
    ) -> StatusFailure {
        let (body, mut error, advice_on_body) = match response.read_error() {
            Ok(body) => {
                let error = failure::read_redacted(&body, secrets);
                (body, error, None)
            }
            Err(compressed) => {
                let error = ServerError::unread(compressed.to_string());
                (String::new(), error, Some(DO_NOT_COMPRESS))
            }
        };
        let now = OffsetDateTime::now_utc();
        let exact = retry::retry_after_ms(response.header("retry-after-ms"), now);
        let wait = retry::retry_after(response.header("retry-after"), now);
        let said = retry::wait_in_body(error.retry_after, now);
        error.retry_after = retry::first_wait([exact, wait, said]);
        error.should_retry = response.header("x-should-retry").parse().ok();
        let mut location = None;
        let target = response.header("location");
        if status.is_redirection() && !target.is_empty() {
            // First, so that no part of a secret is left where the URL is cut.
            let shown = secret::redact(target, secrets);
            location = Some(address.redirect_target(&shown));
        }
        StatusFailure {
            status: status.as_u16(),
            error,
            body,
            location,
            advice_on_body,
        }
    }

    /// Returns the advice about the status, and after it what to do about a body that cannot be read.
    pub fn advice(&self, on_status: Option<String>) -> Option<String> {
        let Some(on_body) = self.advice_on_body else {
            return on_status;
        };
        Some(match on_status {
            Some(on_status) => format!("{on_status}; {on_body}"),
            None => on_body.to_owned(),
        })
    }
}

impl ConnectionFailure {
    fn new(cause: impl Into<String>) -> ConnectionFailure {
        ConnectionFailure {
            cause: cause.into(),
            advice: None,
            is_transient: false,
            is_unreached: false,
            kind: FailureKind::Other,
        }
    }

    fn transient(cause: impl Into<String>) -> ConnectionFailure {
        ConnectionFailure {
            is_transient: true,
            ..ConnectionFailure::new(cause)
        }
    }

    fn advised(cause: impl Into<String>, advice: impl Into<String>) -> ConnectionFailure {
        ConnectionFailure {
            advice: Some(advice.into()),
            ..ConnectionFailure::new(cause)
        }
    }

    fn of_kind(self, kind: FailureKind) -> ConnectionFailure {
        let is_unreached = matches!(
            kind,
            FailureKind::Unresolved | FailureKind::Refused | FailureKind::Unreachable
        );
        ConnectionFailure {
            kind,
            is_unreached,
            ..self
        }
    }

    /// Describes an address that nothing answers at, or to which there is no way.
    fn unreachable(cause: impl Into<String>) -> ConnectionFailure {
        ConnectionFailure::advised(cause, CHECK_NETWORK).of_kind(FailureKind::Unreachable)
    }

    /// Whether nobody takes the connection at the address of the server.
    pub fn is_refused_by_server(&self) -> bool {
        matches!(self.kind, FailureKind::Refused)
    }

    /// Describes why there is no response, or no more of it. `peer` is the other end of the connection that has failed.
    pub fn from_library(
        error: ureq::Error,
        proxy: Option<&NamedProxy>,
        peer: TlsPeer,
    ) -> ConnectionFailure {
        let Some(named) = proxy else {
            return describe(error, TlsPeer::Server);
        };
        let mut failure = match (error, named.protocol) {
            (ureq::Error::ConnectProxyFailed(reason), _) => refused_by_proxy(&reason, named),
            (ureq::Error::Io(error), ProxyProtocol::Socks) => failure_of_socks(&error),
            (other, _) => describe(other, peer),
        };
        let variable = named.variable;
        let is_encrypted = named.protocol == ProxyProtocol::Https;
        let advice = match failure.kind {
            // The connection to the proxy comes first, and so does its name, unless q has to resolve the server's, too.
            FailureKind::Unreachable => {
                format!("check the network, and that {variable} has the address of the proxy")
            }
            FailureKind::Refused => {
                format!("check that the proxy runs, and that {variable} has its address")
            }
            FailureKind::Unresolved if named.protocol != ProxyProtocol::Socks => {
                format!("check the network and the name of the proxy in {variable}")
            }
            FailureKind::Unresolved if named.proxy.resolve_target() => format!(
                "check the network and the name in the address, or let the proxy resolve the name: begin its URL in {variable} with socks5h://"
            ),
            // The server's own URL must not lose its TLS.
            FailureKind::LacksTls if is_encrypted => {
                format!("if the proxy has no TLS, begin its URL in {variable} with http://")
            }
            // Whose answer it is, nobody knows.
            FailureKind::AnswersInTls if !is_encrypted => format!(
                "begin its URL with https://, or, if the proxy has TLS, its URL in {variable}"
            ),
            _ => String::new(),
        };
        if !advice.is_empty() {
            failure.advice = Some(advice);
        }
        let (host, port) = (named.proxy.host(), named.proxy.port());
        // It was the proxy that was asked.
        failure.kind = FailureKind::Other;
        failure.cause += &format!(", through the proxy {host}:{port}, which {variable} names");
        failure
    }
}

/// Describes the failure of a proxy to connect to the server. The library's words have the status twice.
fn refused_by_proxy(reason: &str, named: &NamedProxy) -> ConnectionFailure {
    let (_, status) = reason.rsplit_once('/').unwrap_or_default();
    let has_login = named.proxy.username().is_some() || named.proxy.password().is_some();
    let variable = named.variable;
    if status == "407" && has_login {
        return ConnectionFailure::advised(
            "the proxy refuses the user name or the password (407)",
            format!(
                "check them in {variable}, where %40 is written for @; or, {LEAVE_OUT_THE_PROXY}"
            ),
        );
    }
    if status == "407" {
        return ConnectionFailure::advised(
            "the proxy requires a user name and a password (407)",
            format!(
                "put them into {variable}, as in http://user:password@proxy.example:3128; or, {LEAVE_OUT_THE_PROXY}"
            ),
        );
    }
    let cause = match status {
        "" => format!("the proxy does not connect to the server ({reason})"),
        status => format!("the proxy refuses to connect to the server ({status})"),
    };
    if named.leads_to_tls {
        return ConnectionFailure::advised(cause, LEAVE_OUT_THE_PROXY);
    }
    ConnectionFailure::advised(
        cause,
        format!("{TUNNELS_FOR_TLS}; or, {LEAVE_OUT_THE_PROXY}"),
    )
}

/// Describes a failure on the way through a SOCKS proxy, whose errors are known by the library's words alone.
fn failure_of_socks(error: &io::Error) -> ConnectionFailure {
    let reason = &*error.to_string();
    if NO_SOCKS.contains(&reason) {
        return ConnectionFailure::advised(
            format!("the proxy does not speak SOCKS ({reason})"),
            "if it is an HTTP proxy, begin its URL with http://",
        );
    }
    if SOCKS_LOGIN.contains(&reason) {
        return ConnectionFailure::advised(
            format!("the proxy requires another user name or password ({reason})"),
            format!(
                "put them before the host in the variable, as in socks5h://user:password@proxy.example:1080; or, {LEAVE_OUT_THE_PROXY}"
            ),
        );
    }
    if SOCKS_REFUSALS.contains(&reason) {
        return ConnectionFailure::advised(
            format!("the proxy does not connect to the server ({reason})"),
            LEAVE_OUT_THE_PROXY,
        );
    }
    io_failure(error, TlsPeer::Server)
}

/// What the library says if the headers of a request are longer than its buffer.
const NO_ROOM_FOR_HEADERS: &str = "output too small to write output";

fn describe(error: ureq::Error, peer: TlsPeer) -> ConnectionFailure {
    let limit = CONNECT_TIMEOUT.as_secs();
    match error {
        ureq::Error::Io(error) => io_failure(&error, peer),
        ureq::Error::Timeout(Timeout::Connect) => ConnectionFailure {
            is_transient: true,
            ..ConnectionFailure::unreachable(format!("no connection within {limit} s"))
        },
        ureq::Error::Timeout(Timeout::Resolve) => {
            let cause = format!("{UNRESOLVED}: no answer within {limit} s");
            ConnectionFailure {
                is_transient: true,
                ..ConnectionFailure::advised(cause, CHECK_NAME).of_kind(FailureKind::Unresolved)
            }
        }
        ureq::Error::Timeout(Timeout::Global) => ConnectionFailure::advised(
            "timed out: the response was not complete in time",
            WAIT_LONGER,
        ),
        ureq::Error::Timeout(_) => {
            ConnectionFailure::advised("timed out: no data from the server", WAIT_LONGER)
        }
        // The server has said nothing.
        ureq::Error::Protocol(error) if error.to_string() == NO_ROOM_FOR_HEADERS => {
            ConnectionFailure::new("the headers of the request are too long to be sent")
        }
        ureq::Error::Protocol(error) => ConnectionFailure::new(format!(
            "the server sent an invalid HTTP response ({error})"
        )),
        other => ConnectionFailure::new(other.to_string()),
    }
}

/// Describes an error that the system reports.
fn io_failure(error: &io::Error, peer: TlsPeer) -> ConnectionFailure {
    if let Some(compressed) = coding::of_error(error) {
        return ConnectionFailure::advised(compressed.to_string(), DO_NOT_COMPRESS);
    }
    if let Some(unanswered) = UnansweredTls::within(error) {
        return ConnectionFailure {
            advice: Some(tls::CHECK_BETWEEN.to_owned()),
            kind: FailureKind::LacksTls,
            ..ConnectionFailure::transient(unanswered.to_string())
        };
    }
    let text = error.to_string();
    if let Some(reason) = text.strip_prefix(LOOKUP_FAILURE) {
        // `EAI_AGAIN` in the words of glibc, musl and the BSDs.
        let is_transient = reason.contains("Temporary failure") || reason.contains("ry again");
        let failure = ConnectionFailure::advised(format!("{UNRESOLVED}: {reason}"), CHECK_NAME);
        return ConnectionFailure {
            is_transient,
            ..failure.of_kind(FailureKind::Unresolved)
        };
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => ConnectionFailure::advised(
            "the connection was refused",
            "check that the server runs, and that this is its address",
        )
        .of_kind(FailureKind::Refused),
        ErrorKind::InvalidData => tls_failure(error, peer),
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::NetworkDown => {
            ConnectionFailure::unreachable(text)
        }
        ErrorKind::TimedOut => ConnectionFailure::transient("the connection timed out"),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => {
            ConnectionFailure::transient("the server closed the connection")
        }
        _ => ConnectionFailure::new(text),
    }
}

/// Returns what a server says, after its status if there is one: `404 Not Found: no such page`.
pub fn with_status(status: Option<u16>, says: &str) -> String {
    let Some(status) = status else {
        return says.to_owned();
    };
    let known = StatusCode::from_u16(status).ok();
    match known.and_then(|known| known.canonical_reason()) {
        Some(reason) if reason.eq_ignore_ascii_case(says) => format!("{status} {reason}"),
        Some(reason) => format!("{status} {reason}: {says}"),
        None => format!("{status}: {says}"),
    }
}

fn tls_failure(error: &io::Error, peer: TlsPeer) -> ConnectionFailure {
    let (message, advice) = tls::explain(error, peer);
    let kind = if tls::is_no_tls(error) {
        FailureKind::LacksTls
    } else if UnaskedTls::is_within(error) {
        FailureKind::AnswersInTls
    } else {
        FailureKind::Other
    };
    ConnectionFailure {
        advice,
        kind,
        ..ConnectionFailure::new(message)
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
            let failed = ConnectionFailure::from_library(
                ureq::Error::Io(unresolved(code)),
                None,
                TlsPeer::Server,
            );
            assert_eq!(failed.is_transient, is_transient, "{failed:?}");
            let cause = failed.cause;
            assert!(cause.starts_with(UNRESOLVED), "{cause}");
        }
    }

    #[test]
    fn an_address_that_is_not_reached_is_told_from_a_server_that_fails() {
        let system = |code| ureq::Error::Io(io::Error::from_raw_os_error(code));
        for (error, is_transient, advice) in [
            (
                ureq::Error::Io(unresolved(libc::EAI_AGAIN)),
                true,
                CHECK_NAME,
            ),
            (
                ureq::Error::Io(unresolved(libc::EAI_NONAME)),
                false,
                CHECK_NAME,
            ),
            (ureq::Error::Timeout(Timeout::Resolve), true, CHECK_NAME),
            (ureq::Error::Timeout(Timeout::Connect), true, CHECK_NETWORK),
            (system(libc::ENETUNREACH), false, CHECK_NETWORK),
            (system(libc::EHOSTUNREACH), false, CHECK_NETWORK),
            (system(libc::ENETDOWN), false, CHECK_NETWORK),
        ] {
            let failed = ConnectionFailure::from_library(error, None, TlsPeer::Server);
            let found = (failed.is_transient, failed.advice.as_deref());
            assert_eq!(found, (is_transient, Some(advice)), "{}", failed.cause);
            assert!(failed.is_unreached, "{}", failed.cause);
        }
        for error in [
            system(libc::ECONNRESET),
            system(libc::ETIMEDOUT),
            ureq::Error::Timeout(Timeout::RecvBody),
        ] {
            let failed = ConnectionFailure::from_library(error, None, TlsPeer::Server);
            assert!(!failed.is_unreached, "{}", failed.cause);
        }
    }
}
