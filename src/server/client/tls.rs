//! Says why TLS failed, from the words of its library, and what to do about it (pure).

use time::OffsetDateTime;

/// The library's name for an authority that it does not know.
pub const UNKNOWN_ISSUER: &str = "UnknownIssuer";

/// The library's name for bytes that are not TLS.
pub const NO_TLS: &str = "InvalidContentType";

/// The library's words before the time that it has compared with.
const CLOCK: &str = "verification time ";

/// Its words before the time at which a certificate ends or begins, and q's.
const LIMITS: [(&str, &str); 2] = [
    ("certificate is not valid after ", "expired on"),
    ("certificate is not valid before ", "is not valid before"),
];

/// Returns the reason for the user, and advice if there is any.
pub fn explain(reason: &str) -> (String, Option<String>) {
    if let Some((message, clock)) = about_dates(reason) {
        let advice = format!("this machine's clock says {clock}: if that is wrong, set it");
        return (message, Some(advice));
    }
    let advice = if reason.contains(UNKNOWN_ISSUER) {
        "if the certificate is your company's or your own, name its CA certificate in SSL_CERT_FILE"
    } else if reason.contains("CaUsedAsEndEntity") {
        "the server sent a CA certificate; a self-signed server certificate needs basicConstraints=CA:FALSE"
    } else if reason.contains(NO_TLS) {
        "if the server has no TLS, begin its URL with http://"
    } else {
        return (format!("TLS: {reason}"), None);
    };
    (format!("TLS: {reason}"), Some(advice.to_owned()))
}

/// Returns the message, and the date of this machine's clock, where the certificate is not valid at this time.
fn about_dates(reason: &str) -> Option<(String, String)> {
    let clock = date_after(reason, CLOCK)?;
    for (words, limit) in LIMITS {
        if let Some(date) = date_after(reason, words) {
            let message = format!("TLS: the server's certificate {limit} {date}");
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
    use std::time::Duration;

    use rustls::pki_types::UnixTime;
    use rustls::{CertificateError, Error};

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

    #[test]
    fn a_certificate_error_without_a_date_is_reported_unchanged() {
        for error in [
            CertificateError::Expired,
            CertificateError::NotValidYet,
            CertificateError::Revoked,
        ] {
            let text = Error::InvalidCertificate(error).to_string();
            assert_eq!(explain(&text), (format!("TLS: {text}"), None));
        }
    }
}
