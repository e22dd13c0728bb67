//! Reads the certificates in a file of the usual form: base64 between two marks (pure).
//!
//! The library reads more forms, but decodes them digit by digit, which takes longer for the certificates of a system than the
//! rest of a short run.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// The lines between which a certificate is.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// What each mark begins with, also that of something else.
const MARK: &str = "-----";

/// Returns all certificates; `None` if there are none, or if something has another form.
pub fn certificates(pem: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut certificates = Vec::new();
    // The base64 of the certificate that has begun.
    let mut begun: Option<String> = None;
    for line in str::from_utf8(pem).ok()?.lines() {
        match &mut begun {
            None if line == BEGIN => begun = Some(String::new()),
            None if line.starts_with(MARK) => return None,
            // A comment.
            None => {}
            Some(base64) if line == END => {
                certificates.push(BASE64_STANDARD.decode(base64).ok()?);
                begun = None;
            }
            Some(base64) => base64.push_str(line),
        }
    }
    if begun.is_some() || certificates.is_empty() {
        return None;
    }
    Some(certificates)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    /// The certificates that the library finds; `None` if it finds a fault.
    fn found_by_library(pem: &[u8]) -> Option<Vec<Vec<u8>>> {
        let found = CertificateDer::pem_slice_iter(pem);
        found.map(|der| Some(der.ok()?.to_vec())).collect()
    }

    #[test]
    fn files_of_the_usual_form_are_read_as_the_library_reads_them() {
        for (text, count) in [
            ("BEGIN␊YWI=␊END␊", 1),
            ("BEGIN␊YWI=␊END", 1),
            ("BEGIN␊YWJj␊ZGVm␊END␊# two␊BEGIN␊YWI=␊END␊", 2),
            ("comment␊␊BEGIN␍␊YWI=␍␊END␍␊", 1),
            ("BEGIN␊END␊", 1),
        ] {
            let pem = pem_of(text);
            let found = certificates(&pem);
            assert_eq!(found.as_ref().map(Vec::len), Some(count), "{text}");
            assert_eq!(found, found_by_library(&pem), "{text}");
        }
    }

    #[test]
    fn what_has_another_form_is_left_to_the_library() {
        for text in [
            "",
            "comment␊",
            "BEGIN␊YWI=␊",
            "BEGIN␊YWI␊END␊",
            "BEGIN␊YW I=␊END␊",
            "BEGIN ␊YWI=␊END␊",
            " BEGIN␊YWI=␊END␊",
            "# BEGIN␊YWI=␊END␊",
            "BEGIN␊# YWI=␊END␊",
            "BEGIN␊YWI=␊BEGIN␊YWI=␊END␊",
            "BEGIN␊YWI=␊END␊END␊",
            "BEGIN␊YWI=␊END␊-----BEGIN TRUSTED CERTIFICATE-----␊YWI=␊-----END TRUSTED CERTIFICATE-----␊",
            "BEGIN␊-----BEGIN X-----␊YWI=␊END␊",
        ] {
            assert_eq!(certificates(&pem_of(text)), None, "{text}");
        }
        assert_eq!(certificates(b"\xff\n"), None);
    }

    /// The text of a table as a file has it.
    fn pem_of(text: &str) -> Vec<u8> {
        let mut pem = String::new();
        for line in text.split_inclusive('␊') {
            let is_other = line.starts_with(MARK);
            let line = line.replace('␍', "\r").replace('␊', "\n");
            if is_other {
                pem.push_str(&line);
            } else {
                pem.push_str(&line.replace("BEGIN", BEGIN).replace("END", END));
            }
        }
        pem.into_bytes()
    }
}
