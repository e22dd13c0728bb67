//! Says why TLS failed, and what to do about it (pure).

use std::fmt::{self, Debug};
use std::io::{self, ErrorKind};
use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
use time::OffsetDateTime;

/// What q says of bytes that are not TLS: they may be a server's or a proxy's.
const NOT_TLS: &str = "the answer is not in TLS";

/// The beginning of what q says where nothing answers the first message of TLS.
const UNANSWERED: &str = "TLS: no answer";

/// What to do about something that does not speak TLS.
const NO_TLS: &str = "if the server has no TLS, begin its URL with http://";

/// What to do where nothing answers in TLS.
pub const CHECK_BETWEEN: &str = "check the network, because a firewall may keep q from the server; \
    if the server has no TLS, begin its URL with http://";

/// What to do about a certificate that no known authority has signed.
const NAME_THE_CA: &str =
    "if the certificate is your company's or your own, name its CA certificate in SSL_CERT_FILE";

/// What to do about one that is signed in a way that q does not know: give its owner one of these.
const SIGN_AGAIN: &str = "a certificate with an RSA, ECDSA (P-256, P-384) or Ed25519 key that is signed with SHA-256 or more";

/// What to do about one that is not valid at this time.
const CHECK_THE_CLOCK: &str = "check this machine's clock";

/// The same about one that is made for something else.
const FOR_A_SERVER: &str = "a certificate whose extendedKeyUsage, if it has one, has serverAuth";

/// The name of a CA's certificate in the library for certificates, whose errors have no type here.
const CA_CERTIFICATE: &str = "CaUsedAsEndEntity";

/// The same about one of a CA.
const FOR_NO_CA: &str =
    "a certificate that is not one of a CA; a self-signed one needs basicConstraints=CA:FALSE";

/// What is at the other end of a connection in TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsPeer {
    Server,
    /// The proxy itself, before it has connected to the server.
    Proxy,
}

impl TlsPeer {
    fn name(self) -> &'static str {
        match self {
            TlsPeer::Server => "the server",
            TlsPeer::Proxy => "the proxy",
        }
    }
}

/// Why nothing has answered the first message of TLS. What speaks plain HTTP may wait for more of it, or close the connection.
#[derive(Debug)]
pub enum UnansweredTls {
    Closed,
    /// Nothing has come for this long.
    Silent(Duration),
}

impl UnansweredTls {
    /// Returns what it means that the answer could be read only so, within this limit; `None` if something has come.
    pub fn of(read: &io::Result<usize>, limit: Option<Duration>) -> Option<UnansweredTls> {
        match read {
            Ok(0) => Some(UnansweredTls::Closed),
            Err(error) => match error.kind() {
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
                    Some(UnansweredTls::Closed)
                }
                ErrorKind::TimedOut | ErrorKind::WouldBlock => limit.map(UnansweredTls::Silent),
                _ => None,
            },
            Ok(_) => None,
        }
    }

    pub fn into_io(self) -> io::Error {
        let kind = match self {
            UnansweredTls::Closed => ErrorKind::UnexpectedEof,
            UnansweredTls::Silent(_) => ErrorKind::TimedOut,
        };
        io::Error::new(kind, self)
    }

    /// Returns the one that an error of a connection has within, if it has one.
    pub fn within(error: &io::Error) -> Option<&UnansweredTls> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for UnansweredTls {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            UnansweredTls::Closed => {
                write!(formatter, "{UNANSWERED}, and the connection was closed")
            }
            UnansweredTls::Silent(limit) => {
                write!(
                    formatter,
                    "{UNANSWERED} within {} s",
                    limit.as_secs_f64().ceil()
                )
            }
        }
    }
}

impl std::error::Error for UnansweredTls {}

/// A server, or a proxy, that answers in TLS where it was not asked in it.
#[derive(Debug)]
pub struct UnaskedTls;

impl UnaskedTls {
    pub fn into_io(self) -> io::Error {
        io::Error::new(ErrorKind::InvalidData, self)
    }

    /// Whether an error of a connection has one within.
    pub fn is_within(error: &io::Error) -> bool {
        error
            .get_ref()
            .is_some_and(|inner| inner.is::<UnaskedTls>())
    }
}

impl fmt::Display for UnaskedTls {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("the server answers in TLS")
    }
}

impl std::error::Error for UnaskedTls {}

/// A reason for the user, and advice if there is any.
type Explanation = (String, Option<String>);

/// Whether the reason is that no known authority has signed the server's certificate.
pub fn is_unknown_issuer(error: &io::Error) -> bool {
    match error_in(error) {
        Some(Error::InvalidCertificate(reason)) => is_unsigned(reason),
        _ => false,
    }
}

/// Whether the reason is that what came is not TLS.
pub fn is_no_tls(error: &io::Error) -> bool {
    matches!(
        error_in(error),
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType))
    )
}

/// Returns the error of the TLS library that an error of a connection has within, if it has one.
fn error_in(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

/// Whether no known authority has signed a certificate. One of the known ones may have the same name as the one that has.
fn is_unsigned(reason: &CertificateError) -> bool {
    matches!(
        reason,
        CertificateError::UnknownIssuer
            | CertificateError::BadSignature
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. }
    )
}

/// Explains an error of a connection to this peer whose data is not as it should be.
pub fn explain(error: &io::Error, peer: TlsPeer) -> Explanation {
    let (message, advice) = if let Some(of_library) = error_in(error) {
        explain_library(of_library, peer.name())
    } else {
        let is_unasked = UnaskedTls::is_within(error);
        let advice = is_unasked.then(|| "begin its URL with https://".to_owned());
        (error.to_string(), advice)
    };
    (format!("TLS: {message}"), advice)
}

fn explain_library(error: &Error, peer: &str) -> Explanation {
    let message = match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            return (NOT_TLS.to_owned(), Some(NO_TLS.to_owned()));
        }
        Error::InvalidCertificate(reason) => {
            let (what, advice) = about_certificate(reason, peer);
            return (format!("{peer}'s certificate {what}"), advice);
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            format!("{peer} requires a certificate of the client, which q does not send")
        }
        Error::AlertReceived(alert) => named(&format!("{peer} refuses"), alert),
        Error::PeerIncompatible(reason) => {
            named(&format!("q and {peer} have no way in common"), reason)
        }
        Error::PeerMisbehaved(reason) => named(&format!("{peer} breaks the rules"), reason),
        Error::InvalidMessage(reason) => named(
            &format!("{peer} sent a message that cannot be read"),
            reason,
        ),
        Error::InappropriateMessage { got_type, .. } => {
            named(&format!("{peer} sent an unexpected message"), got_type)
        }
        Error::InappropriateHandshakeMessage { got_type, .. } => {
            named(&format!("{peer} sent an unexpected message"), got_type)
        }
        Error::InvalidCertRevocationList(reason) => {
            named("a certificate revocation list is invalid", reason)
        }
        Error::InvalidEncryptedClientHello(reason) => {
            named("the beginning cannot be encrypted", reason)
        }
        // The library's words, without a name behind them.
        other => {
            let text = other.to_string();
            let (words, _) = text.split_once(": ").unwrap_or((&text, ""));
            words.to_owned()
        }
    };
    (message, None)
}

/// Returns what is wrong with a certificate, and what to do.
#[allow(deprecated)]
fn about_certificate(reason: &CertificateError, peer: &str) -> Explanation {
    let advised = |what: &str, advice: &str| (what.to_owned(), Some(advice.to_owned()));
    let needs = |what: &str, other: &str| (what.to_owned(), Some(format!("give {peer} {other}")));
    let plain = |what: &str| (what.to_owned(), None);
    match reason {
        reason if is_unsigned(reason) => {
            advised("is not signed by a CA that this system trusts", NAME_THE_CA)
        }
        CertificateError::ExpiredContext { time, not_after } => (
            format!("expired on {}", day(*not_after)),
            Some(set_clock(*time)),
        ),
        CertificateError::NotValidYetContext { time, not_before } => {
            let what = format!("is not valid before {}", day(*not_before));
            (what, Some(set_clock(*time)))
        }
        CertificateError::Expired => advised("expired", CHECK_THE_CLOCK),
        CertificateError::NotValidYet => advised("is not valid yet", CHECK_THE_CLOCK),
        CertificateError::BadEncoding => plain("cannot be read"),
        CertificateError::Revoked => plain("has been revoked"),
        CertificateError::UnhandledCriticalExtension => {
            plain("has a critical extension that q does not know")
        }
        CertificateError::UnsupportedSignatureAlgorithm
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            needs("is signed in a way that q does not know", SIGN_AGAIN)
        }
        CertificateError::NotValidForName => plain("is not valid for this host"),
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => (about_names(&expected.to_str(), presented), None),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            needs("is not made for a server", FOR_A_SERVER)
        }
        CertificateError::InvalidOcspResponse => plain("came with an invalid OCSP response"),
        CertificateError::UnknownRevocationStatus => {
            plain("may have been revoked, which q cannot find out")
        }
        CertificateError::ExpiredRevocationListContext { .. } => {
            plain("may have been revoked: the revocation list expired")
        }
        CertificateError::Other(other) if name_of(&other.0) == CA_CERTIFICATE => {
            needs("is one of a CA", FOR_NO_CA)
        }
        CertificateError::Other(other) => (named("is not valid", &other.0), None),
        other => (named("is not valid", other), None),
    }
}

/// Returns for whom a certificate is, from the name that is wanted and those that it has, each within the name of its kind.
fn about_names(wanted: &str, presented: &[String]) -> String {
    let mut names = Vec::new();
    for name in presented {
        let (_, inner) = name.split_once('(').unwrap_or(("", name));
        names.push(inner.trim_end_matches(')').trim_matches('"'));
    }
    let Some(last) = names.pop() else {
        return format!("is not valid for {wanted}, nor for any other name");
    };
    let only = if names.is_empty() {
        last.to_owned()
    } else {
        format!("{} or {last}", names.join(", "))
    };
    format!("is not valid for {wanted}, only for {only}")
}

/// Returns the advice for a clock that may be wrong, where it says this time.
fn set_clock(time: UnixTime) -> String {
    let clock = day(time);
    format!("this machine's clock says {clock}: if that is wrong, set it")
}

/// Returns the day of a moment.
fn day(moment: UnixTime) -> String {
    let seconds = i64::try_from(moment.as_secs()).unwrap_or(i64::MAX);
    match OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(time) => time.date().to_string(),
        Err(_) => "a day that no calendar has".to_owned(),
    }
}

/// Returns what has happened, with the library's own name for it in words.
fn named(what: &str, name: &impl Debug) -> String {
    format!("{what} ({})", in_words(&name_of(name)))
}

/// Returns the library's own name for what has happened, without details.
fn name_of(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find(|character: char| !character.is_ascii_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Returns the words that a name in code is made of: `handshake failure` of `HandshakeFailure`, `unknown CA` of `UnknownCA`.
fn in_words(name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for character in name.chars() {
        let begins = character.is_ascii_uppercase() && !before.is_ascii_uppercase();
        match words.last_mut() {
            Some(word) if !begins => word.push(character),
            _ => words.push(character.to_string()),
        }
        before = character;
    }
    for word in &mut words {
        let is_short = word.chars().all(|character| character.is_ascii_uppercase());
        if !is_short {
            word.make_ascii_lowercase();
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::ServerName;
    use rustls::{
        CertRevocationListError, ContentType, ExtendedKeyPurpose, HandshakeType, InconsistentKeys,
        OtherError, PeerIncompatible, PeerMisbehaved,
    };

    use super::*;

    /// An error as a connection has it.
    fn of_connection(error: Error) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    fn moment(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn what_ends_or_waits_before_it_answers_does_not_answer() {
        let limit = Duration::from_millis(14_100);
        let failed = |kind: ErrorKind| Err(kind.into());
        let closed = Some("TLS: no answer, and the connection was closed");
        let silent = Some("TLS: no answer within 15 s");
        for (read, limit, expected) in [
            (Ok(0), None, closed),
            (failed(ErrorKind::ConnectionReset), Some(limit), closed),
            (failed(ErrorKind::TimedOut), Some(limit), silent),
            (failed(ErrorKind::WouldBlock), Some(limit), silent),
            // The user's own timeout says more.
            (failed(ErrorKind::TimedOut), None, None),
            (failed(ErrorKind::Interrupted), Some(limit), None),
            (Ok(1), Some(limit), None),
        ] {
            let found = UnansweredTls::of(&read, limit).map(|unanswered| unanswered.to_string());
            assert_eq!(found.as_deref(), expected, "{read:?}");
        }
    }

    #[test]
    fn an_expired_or_future_certificate_is_reported_with_the_date_of_the_clock() {
        let (early, late) = (moment(86_400), moment(1_790_000_000));
        let young = CertificateError::NotValidYetContext {
            time: early,
            not_before: late,
        };
        let old = CertificateError::ExpiredContext {
            time: late,
            not_after: early,
        };
        for (error, limit, clock) in [
            (young, "is not valid before 2026-09-21", "1970-01-02"),
            (old, "expired on 1970-01-02", "2026-09-21"),
        ] {
            let (message, advice) = explain(
                &of_connection(Error::InvalidCertificate(error)),
                TlsPeer::Server,
            );
            assert_eq!(message, format!("TLS: the server's certificate {limit}"));
            let expected = format!("this machine's clock says {clock}: if that is wrong, set it");
            assert_eq!(advice, Some(expected));
        }
    }

    /// An error that the library passes on by this name.
    struct PassedOn(&'static str);

    impl fmt::Debug for PassedOn {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl fmt::Display for PassedOn {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(self.0)
        }
    }

    impl std::error::Error for PassedOn {}

    fn other(name: &'static str) -> CertificateError {
        CertificateError::Other(OtherError(Arc::new(PassedOn(name))))
    }

    #[test]
    #[allow(deprecated)]
    fn what_is_wrong_with_a_certificate_is_said_in_words() {
        let unknown = "is not signed by a CA that this system trusts | SSL_CERT_FILE";
        let signed = "is signed in a way that q does not know | SHA-256";
        let purpose = "is not made for a server | serverAuth";
        let expected = ServerName::try_from("here.example").expect("a name");
        let elsewhere = |presented: &[&str]| CertificateError::NotValidForNameContext {
            expected: expected.clone(),
            presented: presented.iter().map(|name| (*name).to_owned()).collect(),
        };
        for (error, expected) in [
            (CertificateError::UnknownIssuer, unknown),
            (CertificateError::BadSignature, unknown),
            (
                CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                    signature_algorithm_id: vec![1],
                    public_key_algorithm_id: vec![2],
                },
                unknown,
            ),
            (CertificateError::UnsupportedSignatureAlgorithm, signed),
            (
                CertificateError::UnsupportedSignatureAlgorithmContext {
                    signature_algorithm_id: vec![1],
                    supported_algorithms: Vec::new(),
                },
                signed,
            ),
            (CertificateError::BadEncoding, "cannot be read"),
            (CertificateError::Expired, "expired | clock"),
            (CertificateError::NotValidYet, "is not valid yet | clock"),
            (CertificateError::Revoked, "has been revoked"),
            (
                CertificateError::UnhandledCriticalExtension,
                "has a critical extension that q does not know",
            ),
            (
                CertificateError::UnknownRevocationStatus,
                "may have been revoked, which q cannot find out",
            ),
            (
                CertificateError::ExpiredRevocationListContext {
                    time: moment(2),
                    next_update: moment(1),
                },
                "may have been revoked: the revocation list expired",
            ),
            (
                CertificateError::ExpiredRevocationList,
                "is not valid (expired revocation list)",
            ),
            (
                CertificateError::NotValidForName,
                "is not valid for this host",
            ),
            (
                elsewhere(&[
                    "DnsName(\"a.example\")",
                    "DnsName(\"b\")",
                    "IpAddress(127.0.0.1)",
                ]),
                "is not valid for here.example, only for a.example, b or 127.0.0.1",
            ),
            (
                elsewhere(&[]),
                "is not valid for here.example, nor for any other name",
            ),
            (CertificateError::InvalidPurpose, purpose),
            (
                CertificateError::InvalidPurposeContext {
                    required: ExtendedKeyPurpose::ServerAuth,
                    presented: vec![ExtendedKeyPurpose::Other(vec![1, 3])],
                },
                purpose,
            ),
            (
                CertificateError::InvalidOcspResponse,
                "came with an invalid OCSP response",
            ),
            (
                CertificateError::ApplicationVerificationFailure,
                "is not valid (application verification failure)",
            ),
            (other("CaUsedAsEndEntity"), "is one of a CA | CA:FALSE"),
            (
                other("PathLenConstraintViolated"),
                "is not valid (path len constraint violated)",
            ),
        ] {
            let (message, advice) = explain(
                &of_connection(Error::InvalidCertificate(error)),
                TlsPeer::Server,
            );
            let (what, to_do) = expected.split_once(" | ").unwrap_or((expected, ""));
            assert_eq!(message, format!("TLS: the server's certificate {what}"));
            let has_advice = advice.as_ref().is_some_and(|advice| advice.contains(to_do));
            assert_eq!(has_advice, !to_do.is_empty(), "{what}: {advice:?}");
        }
    }

    #[test]
    fn what_else_fails_in_tls_is_said_in_words() {
        let lists = CertRevocationListError::IssuerInvalidForCrl;
        let alert = Error::AlertReceived;
        for (error, expected) in [
            (
                alert(AlertDescription::HandshakeFailure),
                "the server refuses (handshake failure)",
            ),
            (
                alert(AlertDescription::UnknownCA),
                "the server refuses (unknown CA)",
            ),
            (
                alert(AlertDescription::Unknown(99)),
                "the server refuses (alert description)",
            ),
            (
                alert(AlertDescription::CertificateRequired),
                "the server requires a certificate of the client, which q does not send",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
                "q and the server have no way in common (no cipher suites in common)",
            ),
            (
                Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedCipherSuite),
                "the server breaks the rules (selected unoffered cipher suite)",
            ),
            (
                Error::InvalidMessage(InvalidMessage::InvalidContentType),
                NOT_TLS,
            ),
            (
                Error::InvalidMessage(InvalidMessage::MissingData("X")),
                "the server sent a message that cannot be read (missing data)",
            ),
            (
                Error::InappropriateMessage {
                    expect_types: vec![ContentType::Handshake],
                    got_type: ContentType::ApplicationData,
                },
                "the server sent an unexpected message (application data)",
            ),
            (
                Error::InappropriateHandshakeMessage {
                    expect_types: vec![HandshakeType::ServerHello],
                    got_type: HandshakeType::ClientHello,
                },
                "the server sent an unexpected message (client hello)",
            ),
            (
                Error::InvalidCertRevocationList(lists),
                "a certificate revocation list is invalid (issuer invalid for crl)",
            ),
            (
                Error::InconsistentKeys(InconsistentKeys::KeyMismatch),
                "keys may not be consistent",
            ),
            (Error::NoCertificatesPresented, "peer sent no certificates"),
            (Error::DecryptError, "cannot decrypt peer's message"),
        ] {
            let (message, _) = explain(&of_connection(error), TlsPeer::Server);
            assert_eq!(message, format!("TLS: {expected}"));
        }
    }
}
