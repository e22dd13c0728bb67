//! Which authorities' certificates are trusted: the system's, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.

use ureq::tls::{Certificate, RootCerts};

use crate::error::Error;
use crate::settings::Environment;

/// The certificates that a client trusts.
pub fn load(environment: &Environment) -> Result<RootCerts, Error> {
    let found = rustls_native_certs::load_native_certs();
    if !found.certs.is_empty() {
        let certificates = found.certs.iter();
        let certificates = certificates.map(|der| Certificate::from_der(der).to_owned());
        return Ok(RootCerts::new_with_certs(&Vec::from_iter(certificates)));
    }
    let mut named = vec!["SSL_CERT_FILE", "SSL_CERT_DIR"];
    named.retain(|name| environment.get(name).is_some());
    if named.is_empty() {
        return Ok(RootCerts::WebPki);
    }
    let names = named.join(" or ");
    let first_error = found.errors.first().map(ToString::to_string);
    let reason = first_error.unwrap_or_else(|| "it has none".to_owned());
    let message = format!("{names} yields no certificate: {reason}");
    Err(Error::settings(message).advise("unset it to use the system's certificates"))
}
