//! Certificates, made for one test.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::{fs, net::SocketAddr, path::Path};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// An authority that signs certificates.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM form.
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate with this common name, and these alternative ones.
    pub(crate) fn sign(&self, name: &str, alternative: &[&str]) -> Signed {
        let alternative: Vec<String> = alternative.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(alternative).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Signed { certificate, key: key.serialize_pem() }
    }
}

impl Signed {
    /// The files that berthd is told.
    pub(crate) fn write(&self, folder: &Path) -> (String, String) {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        (write("server.pem", &self.certificate), write("server.key", &self.key))
    }
}

/// A connection over TLS to a server that this authority signed, as this client.
pub(crate) async fn over_tls(
    address: SocketAddr,
    server: &Authority,
    client: Option<&Signed>,
) -> Result<Channel, tonic::transport::Error> {
    let mut tls =
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&server.pem)).domain_name("localhost");
    if let Some(client) = client {
        tls = tls.identity(Identity::from_pem(&client.certificate, &client.key));
    }
    Endpoint::from_shared(format!("https://{address}")).unwrap().tls_config(tls)?.connect().await
}
