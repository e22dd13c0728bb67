//! Which certificates of CAs are trusted: the system's, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name instead.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ureq::tls::{Certificate, RootCerts};

use super::pem;
use crate::error::Error;
use crate::settings::Environment;
use crate::whole_file::{self, ReadFailure, broken_link};

/// The most bytes of a file of certificates: a hundred times as many as a system has.
const MAX_BUNDLE: u64 = 20_000_000;

/// The certificates that a client trusts. Those of the system's file are read first, and those of its directory only if they
/// are needed: the directory usually has each certificate once more, in a file of its own, and to read them all takes as long
/// as the rest of a short run.
pub struct TrustedRoots {
    /// Those that a client begins with.
    pub first: RootCerts,
    /// All of the system's, once they have been read; `None` if there are no others than the first.
    all: Option<OnceLock<RootCerts>>,
}

impl TrustedRoots {
    fn only(first: RootCerts) -> TrustedRoots {
        TrustedRoots { first, all: None }
    }

    /// Returns Mozilla's, which come with the program.
    pub fn built_in() -> TrustedRoots {
        TrustedRoots::only(RootCerts::WebPki)
    }

    /// Returns all of the system's, if they have been read.
    pub fn all(&self) -> Option<&RootCerts> {
        self.all.as_ref()?.get()
    }

    /// Reads all of the system's. Returns whether that may have brought certificates that were not known before.
    pub fn read_all(&self) -> bool {
        let Some(all) = &self.all else { return false };
        let is_new = all.get().is_none();
        all.get_or_init(|| root_certs(&rustls_native_certs::load_native_certs().certs));
        is_new
    }
}

/// What a variable names that has certificates.
#[derive(Clone, Copy)]
enum CertificatePlace {
    File,
    /// Several directories, as in `PATH`.
    Directories,
}

/// The variables that name certificates.
const VARIABLES: [(&str, CertificatePlace); 2] = [
    ("SSL_CERT_FILE", CertificatePlace::File),
    ("SSL_CERT_DIR", CertificatePlace::Directories),
];

/// Loads the certificates that a client begins with.
pub fn load(environment: &Environment) -> Result<TrustedRoots, Error> {
    let mut named = Vec::new();
    for (name, place) in VARIABLES {
        if let Some(paths) = environment.get_os(name) {
            named.push((name, place, paths));
        }
    }
    if named.is_empty() {
        return Ok(of_system());
    }
    if let [(_, CertificatePlace::File, file)] = *named
        && let Some(roots) = read_bundle(Path::new(file))
    {
        return Ok(TrustedRoots::only(roots));
    }
    let mut certificates = Vec::new();
    for (name, place, paths) in named {
        let found = certificates_in(paths, place);
        certificates.extend(found.map_err(|reason| none_in(name, &reason))?);
    }
    Ok(TrustedRoots::only(RootCerts::from(certificates)))
}

/// Returns the system's certificates that a client begins with, or Mozilla's if it has none.
fn of_system() -> TrustedRoots {
    // Elsewhere the system itself decides.
    if cfg!(target_os = "linux") {
        let file = openssl_probe::probe().cert_file;
        let mut first = file.as_deref().and_then(read_bundle);
        if first.is_none() {
            let bundle = rustls_native_certs::load_certs_from_paths(file.as_deref(), None);
            first = (!bundle.certs.is_empty()).then(|| root_certs(&bundle.certs));
        }
        if let Some(first) = first {
            return TrustedRoots {
                first,
                all: Some(OnceLock::new()),
            };
        }
    }
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return TrustedRoots::built_in();
    }
    TrustedRoots::only(root_certs(&found))
}

/// Returns the certificates in a file, or in all of several directories, else why there are none.
fn certificates_in(
    paths: &OsStr,
    kind: CertificatePlace,
) -> Result<Vec<Certificate<'static>>, String> {
    check_readable(paths, kind)?;
    let mut certificates = Vec::new();
    let mut first_error = None;
    let places = match kind {
        CertificatePlace::File => vec![PathBuf::from(paths)],
        CertificatePlace::Directories => Vec::from_iter(std::env::split_paths(paths)),
    };
    for place in places.iter().filter(|place| !place.as_os_str().is_empty()) {
        let (file, directory) = match kind {
            CertificatePlace::File => (Some(&**place), None),
            CertificatePlace::Directories => (None, Some(&**place)),
        };
        let found = rustls_native_certs::load_certs_from_paths(file, directory);
        certificates.extend(found.certs.iter().map(|der| certificate(der)));
        first_error = first_error.or_else(|| match broken_link(place) {
            Some(link) => Some(format!("{} is {link}", place.display())),
            None => found.errors.first().map(ToString::to_string),
        });
    }
    if certificates.is_empty() {
        return Err(first_error.unwrap_or_else(|| "it has none".to_owned()));
    }
    Ok(certificates)
}

fn none_in(name: &str, reason: &str) -> Error {
    let message = format!("{name} yields no certificate: {reason}");
    Error::settings(message).advise("unset it to use the system's certificates")
}

/// Checks that what is read for certificates ends: the library would wait for a pipe, and read a device forever. What
/// cannot be opened is left to the library.
fn check_readable(paths: &OsStr, kind: CertificatePlace) -> Result<(), String> {
    let mut files = Vec::new();
    match kind {
        CertificatePlace::File => files.push(PathBuf::from(paths)),
        CertificatePlace::Directories => {
            for directory in std::env::split_paths(paths) {
                let entries = fs::read_dir(directory).into_iter().flatten();
                files.extend(entries.flatten().map(|entry| entry.path()));
                // The library reads only these.
                files.retain(|path| path.is_file());
            }
        }
    }
    for file in files {
        if let Err(ReadFailure::Unusable(reason)) = whole_file::read(&file, MAX_BUNDLE) {
            return Err(format!("{}: {reason}", file.display()));
        }
    }
    Ok(())
}

/// Returns the certificates in a file; `None` unless it has the usual form, which can be read fast.
fn read_bundle(file: &Path) -> Option<RootCerts> {
    let bytes = whole_file::read(file, MAX_BUNDLE).ok()?;
    pem::certificates(&bytes).map(|found| root_certs(&found))
}

fn root_certs(found: &[impl AsRef<[u8]>]) -> RootCerts {
    RootCerts::from(found.iter().map(|der| certificate(der.as_ref())))
}

fn certificate(der: &[u8]) -> Certificate<'static> {
    Certificate::from_der(der).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_of_certificates_replaces_those_of_the_system() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("ca.pem");
        let certificate = "-----BEGIN CERTIFICATE-----\nYWI=\n-----END CERTIFICATE-----\n";
        fs::write(&file, certificate).expect("a file");
        let variable = ("SSL_CERT_FILE".into(), file.into_os_string());
        let roots = load(&Environment::from_iter([variable])).expect("certificates");
        assert!(matches!(&roots.first, RootCerts::Specific(found) if found.len() == 1));
        assert!(!roots.read_all(), "others may follow");
    }
}
