//! A certificate authority that no system trusts, for servers that speak TLS in tests and benchmarks.

use std::ops::RangeInclusive;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Two of one name would be taken for one whose key does not fit.
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(params, key).expect("the authority's certificate"))
    }

    /// The authority's own certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// What a server needs to speak TLS under these names, in these years; without a name, with the authority's own
    /// certificate.
    pub fn server(&self, names: &[&str], years: RangeInclusive<i32>) -> Arc<ServerConfig> {
        let hosts: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names of hosts");
        params.not_before = date_time_ymd(*years.start(), 1, 1);
        params.not_after = date_time_ymd(*years.end(), 12, 31);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let (certificate, key) = match names {
            [] => (self.0.der(), self.0.key()),
            _ => (certificate.der(), &key),
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        // Named, because another crate may bring a second one into the build.
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .expect("versions of TLS")
                .with_no_client_auth()
                .with_single_cert(vec![certificate.clone()], key);
        Arc::new(config.expect("a key that fits the certificate"))
    }
}
