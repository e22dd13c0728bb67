//! Which authorities' certificates are trusted: the system's, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.

use std::path::Path;

use rustls_native_certs::CertificateResult;
use ureq::tls::{Certificate, RootCerts};

use crate::error::Error;
use crate::settings::Environment;

/// The certificates of a client.
pub struct Roots {
    pub trusted: RootCerts,
    /// Only the system's file of all certificates was read, so its folder may have more.
    pub may_have_more: bool,
}

/// The certificates that a client begins with.
pub fn load(environment: &Environment) -> Result<Roots, Error> {
    let mut named = vec!["SSL_CERT_FILE", "SSL_CERT_DIR"];
    named.retain(|name| environment.get(name).is_some());
    if named.is_empty() {
        let bundle = bundle();
        if !bundle.certs.is_empty() {
            return Ok(Roots {
                trusted: trusted(&bundle),
                may_have_more: true,
            });
        }
    }
    let found = rustls_native_certs::load_native_certs();
    let mut trusted = trusted(&found);
    if found.certs.is_empty() {
        if !named.is_empty() {
            return Err(no_certificate(&named, &found));
        }
        trusted = RootCerts::WebPki;
    }
    Ok(Roots {
        trusted,
        may_have_more: false,
    })
}

/// All certificates of the system, those that only its folder has among them.
pub fn load_all() -> RootCerts {
    trusted(&rustls_native_certs::load_native_certs())
}

/// The file that has all certificates of the system. Its folder usually has each of them once more, in a file of its own,
/// and to read them all takes as long as the rest of a short run.
fn bundle() -> CertificateResult {
    // Elsewhere the system itself decides.
    if !cfg!(target_os = "linux") {
        return CertificateResult::default();
    }
    let file = openssl_probe::probe().cert_file;
    rustls_native_certs::load_certs_from_paths(file.as_deref(), None::<&Path>)
}

fn trusted(found: &CertificateResult) -> RootCerts {
    let mut certificates = Vec::new();
    for der in &found.certs {
        certificates.push(Certificate::from_der(der).to_owned());
    }
    RootCerts::new_with_certs(&certificates)
}

fn no_certificate(named: &[&str], found: &CertificateResult) -> Error {
    let names = named.join(" or ");
    let reason = match found.errors.first() {
        Some(error) => error.to_string(),
        None => "it has none".to_owned(),
    };
    Error::settings(format!("{names} yields no certificate: {reason}"))
        .advise("unset it to use the system's certificates")
}
