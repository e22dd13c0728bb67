//! Says why TLS failed, from the words of its library, and what to do about it (pure).

use time::OffsetDateTime;

/// The library's name for an authority that it does not know.
const UNKNOWN_ISSUER: &str = "UnknownIssuer";

/// Other names of its for a certificate that no known authority has signed: one of the known ones has only the same name.
const WRONG_ISSUERS: [&str; 2] = [
    "BadSignature",
    "UnsupportedSignatureAlgorithmForPublicKeyContext",
];

/// Its words before what is wrong with a certificate, and before the names that one has.
const CERTIFICATE: &str = "invalid peer certificate: ";
const OTHER_NAME: &str = "certificate not valid for name ";
const NAMES: &str = "certificate is only valid for ";

/// What to do about a certificate that no known authority has signed.
const NAME_THE_CA: &str =
    "if the certificate is your company's or your own, name its CA certificate in SSL_CERT_FILE";

/// What to do about one that is signed in a way that q does not know.
const SIGN_AGAIN: &str = "the server needs a certificate with an RSA, ECDSA (P-256, P-384) or Ed25519 key that is signed with SHA-256 or more";

/// What q says of a certificate that the library calls this, and what to do.
const CERTIFICATES: [(&str, &str, Option<&str>); 14] = [
    ("BadEncoding", "cannot be read", None),
    ("Expired", "expired", Some("check this machine's clock")),
    (
        "NotValidYet",
        "is not valid yet",
        Some("check this machine's clock"),
    ),
    ("Revoked", "has been revoked", None),
    (
        "UnhandledCriticalExtension",
        "has a critical extension that q does not know",
        None,
    ),
    (
        "UnsupportedSignatureAlgorithm",
        "is signed in a way that q does not know",
        Some(SIGN_AGAIN),
    ),
    (
        "UnsupportedSignatureAlgorithmContext",
        "is signed in a way that q does not know",
        Some(SIGN_AGAIN),
    ),
    ("NotValidForName", "is not valid for this host", None),
    (
        "InvalidPurpose",
        "is not made for a server",
        Some(
            "the server needs a certificate whose extendedKeyUsage, if it has one, has serverAuth",
        ),
    ),
    (
        "certificate does not allow extended key usage",
        "is not made for a server",
        Some(
            "the server needs a certificate whose extendedKeyUsage, if it has one, has serverAuth",
        ),
    ),
    (
        "InvalidOcspResponse",
        "came with an invalid OCSP response",
        None,
    ),
    (
        "UnknownRevocationStatus",
        "may have been revoked, which q cannot find out",
        None,
    ),
    (
        "certificate revocation list expired",
        "may have been revoked: the revocation list expired",
        None,
    ),
    (
        "CaUsedAsEndEntity",
        "is one of a CA",
        Some(
            "the server sent a CA certificate; a self-signed server certificate needs basicConstraints=CA:FALSE",
        ),
    ),
];

/// What q says where the library begins like this and goes on with a name of its own.
const OTHERS: [(&str, &str); 8] = [
    ("received fatal alert: ", "the server refuses"),
    (
        "peer is incompatible: ",
        "q and the server have no way in common",
    ),
    ("peer misbehaved: ", "the server breaks the rules"),
    (
        "received corrupt message of type ",
        "the server sent a message that cannot be read",
    ),
    (
        "received unexpected handshake message: got ",
        "the server sent an unexpected message",
    ),
    (
        "received unexpected message: got ",
        "the server sent an unexpected message",
    ),
    (
        "invalid certificate revocation list: ",
        "a certificate revocation list is invalid",
    ),
    (
        "encrypted client hello failure: ",
        "the beginning cannot be encrypted",
    ),
];

/// The library's name for bytes that are not TLS.
const NO_TLS: &str = "InvalidContentType";

/// What q says of them: they may be a server's or a proxy's.
pub const NOT_TLS: &str = "the answer is not in TLS";

/// What q says of a server that answers in TLS where it was not asked in it.
pub const UNASKED_TLS: &str = "the server answers in TLS";

/// The library's words before the time that it has compared with.
const CLOCK: &str = "verification time ";

/// Its words before the time at which a certificate ends or begins, and q's.
const LIMITS: [(&str, &str); 2] = [
    ("certificate is not valid after ", "expired on"),
    ("certificate is not valid before ", "is not valid before"),
];

/// Whether the reason is that no known authority has signed a certificate.
pub fn is_unknown_issuer(reason: &str) -> bool {
    let Some((_, certificate)) = reason.split_once(CERTIFICATE) else {
        return false;
    };
    let name = name_of(certificate);
    name == UNKNOWN_ISSUER || WRONG_ISSUERS.contains(&name)
}

/// Returns the reason for the user, and advice if there is any.
pub fn explain(reason: &str) -> (String, Option<String>) {
    let (message, advice) = if reason == UNASKED_TLS {
        (reason.to_owned(), Some("begin its URL with https://"))
    } else if reason.contains(NO_TLS) {
        let advice = "if the server has no TLS, begin its URL with http://";
        (NOT_TLS.to_owned(), Some(advice))
    } else if is_unknown_issuer(reason) {
        let message = "the server's certificate is not signed by a CA that this system trusts";
        (message.to_owned(), Some(NAME_THE_CA))
    } else if let Some((message, clock)) = about_dates(reason) {
        let advice = format!("this machine's clock says {clock}: if that is wrong, set it");
        return (format!("TLS: {message}"), Some(advice));
    } else if let Some(certificate) = reason.strip_prefix(CERTIFICATE) {
        let (what, advice) = about_certificate(certificate);
        (format!("the server's certificate {what}"), advice)
    } else {
        (about_others(reason), None)
    };
    (format!("TLS: {message}"), advice.map(str::to_owned))
}

/// Returns what is wrong with a certificate, and what to do.
fn about_certificate(reason: &str) -> (String, Option<&'static str>) {
    if let Some(names) = reason.strip_prefix(OTHER_NAME) {
        return (about_names(names), None);
    }
    let name = name_of(reason);
    for (known, what, advice) in CERTIFICATES {
        let is_it = name == known || reason.starts_with(known) && known.contains(' ');
        if is_it {
            return (what.to_owned(), advice);
        }
    }
    (format!("is not valid ({})", in_words(name)), None)
}

/// Returns for whom a certificate is, from the library's words for the name that is wanted and those that it has.
fn about_names(names: &str) -> String {
    let wanted = names.split('"').nth(1).unwrap_or_default();
    let Some((_, presented)) = names.split_once(NAMES) else {
        return format!("is not valid for {wanted}, nor for any other name");
    };
    let mut presented = presented.replace([')', '"'], "");
    for kind in ["DnsName(", "IpAddress(", "UniformResourceIdentifier("] {
        presented = presented.replace(kind, "");
    }
    format!("is not valid for {wanted}, only for {presented}")
}

fn about_others(reason: &str) -> String {
    if reason.ends_with("CertificateRequired") {
        return "the server requires a certificate of the client, which q does not send".to_owned();
    }
    for (words, what) in OTHERS {
        if let Some(rest) = reason.strip_prefix(words) {
            return format!("{what} ({})", in_words(name_of(rest)));
        }
    }
    // Words, or the words before a name.
    let (words, _) = reason.split_once(": ").unwrap_or((reason, ""));
    words.to_owned()
}

/// Returns the library's own name for what has happened; it may be within those of others, and have details behind it.
fn name_of(reason: &str) -> &str {
    let inner = reason.strip_prefix("Other(OtherError(");
    let name = inner.unwrap_or(reason);
    let end = name.find(|character: char| !character.is_ascii_alphanumeric());
    &name[..end.unwrap_or(name.len())]
}

/// Returns the words that such a name is made of: `handshake failure` of `HandshakeFailure`, `unknown CA` of `UnknownCA`.
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

/// Returns the message, and the date of this machine's clock, where the certificate is not valid at this time.
fn about_dates(reason: &str) -> Option<(String, String)> {
    let clock = date_after(reason, CLOCK)?;
    for (words, limit) in LIMITS {
        if let Some(date) = date_after(reason, words) {
            let message = format!("the server's certificate {limit} {date}");
            return Some((message, clock));
        }
    }
    None
}

/// Returns the day of the moment that follows these words, in seconds since 1970.
fn date_after(reason: &str, words: &str) -> Option<String> {
    let (_, rest) = reason.split_once(words)?;
    let end = rest.find(|character: char| !character.is_ascii_digit());
    let seconds = rest[..end.unwrap_or(rest.len())].parse().ok()?;
    let moment = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    Some(moment.date().to_string())
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{
        AlertDescription, CertRevocationListError, CertificateError, ContentType, Error,
        ExtendedKeyPurpose, HandshakeType, InconsistentKeys, InvalidMessage, OtherError,
        PeerIncompatible, PeerMisbehaved,
    };

    use super::*;

    fn moment(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
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
            let (message, advice) = explain(&Error::InvalidCertificate(error).to_string());
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
            let (message, advice) = explain(&Error::InvalidCertificate(error).to_string());
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
            let (message, _) = explain(&error.to_string());
            assert_eq!(message, format!("TLS: {expected}"));
        }
    }
}
