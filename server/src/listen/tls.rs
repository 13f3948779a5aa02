//! TLS on the TCP listener. Its files can be read again: new ones count for connections from then on.

use super::{Error, Incoming, connection::Connection};
use crate::config;
use arc_swap::ArcSwap;
use std::{sync::Arc, time::Duration};
use tokio::{net::TcpStream, sync::mpsc, task::JoinSet, time::timeout};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
    server::TlsStream,
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

/// The longest that a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What the TCP listener proves itself with, and whom it asks to do the same.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    config: Arc<ArcSwap<ServerConfig>>,
}

/// A connection over TLS.
pub(crate) type Secured = TlsStream<Connection<TcpStream>>;

impl Tls {
    /// None: there is no certificate.
    ///
    /// # Errors
    ///
    /// If the certificate, the key or an authority cannot be read, or the key is not the certificate's.
    pub(crate) fn new(settings: &config::Tls) -> Result<Option<Self>, Error> {
        let config = server_config(settings)?;
        Ok(config.map(|config| Self { config: Arc::new(ArcSwap::from_pointee(config)) }))
    }

    /// Takes the files as they are now. Connections that are there keep what they began with.
    ///
    /// # Errors
    ///
    /// As [`Tls::new`]: then those from before stay.
    pub(crate) fn renew(&self, settings: &config::Tls) -> Result<(), Error> {
        if let Some(config) = server_config(settings)? {
            self.config.store(Arc::new(config));
        }
        Ok(())
    }

    /// Takes connections through the handshake, each in a task of its own; those that do not get through are closed.
    pub(crate) fn secure(self, mut incoming: Incoming<Connection<TcpStream>>) -> Incoming<Secured> {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut handshakes = JoinSet::new();
            loop {
                tokio::select! {
                    connection = incoming.next() => {
                        let Some(Ok(connection)) = connection else { return };
                        let acceptor = TlsAcceptor::from(self.config.load_full());
                        handshakes.spawn(timeout(HANDSHAKE, acceptor.accept(connection)));
                    }
                    Some(ended) = handshakes.join_next() => match ended {
                        Ok(Ok(Ok(secured))) => if sender.send(Ok(secured)).await.is_err() { return },
                        Ok(Ok(Err(error))) => tracing::debug!(%error, "no TLS handshake"),
                        Ok(Err(_)) => tracing::debug!("a TLS handshake took too long"),
                        Err(error) => tracing::error!(%error, "a TLS handshake"),
                    },
                    () = sender.closed() => return,
                }
            }
        });
        ReceiverStream::new(receiver)
    }
}

/// A client without a certificate is let in, so that it can ask for health and understand why it is refused.
fn server_config(settings: &config::Tls) -> Result<Option<ServerConfig>, Error> {
    let (Some(certificate), Some(key)) = (&settings.certificate, &settings.key) else { return Ok(None) };
    let builder = ServerConfig::builder();
    let builder = match &settings.client_ca {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates("client_ca", &authorities.text)? {
                roots.add(authority).map_err(|error| wrong("client_ca", error))?;
            }
            let verifier = WebPkiClientVerifier::builder(roots.into()).allow_unauthenticated().build();
            builder.with_client_cert_verifier(verifier.map_err(|error| wrong("client_ca", error))?)
        }
    };
    let chain = certificates("certificate", &certificate.text)?;
    let key = PrivateKeyDer::from_pem_slice(key.text.as_bytes()).map_err(|error| wrong("key", error))?;
    let mut config =
        builder.with_single_cert(chain, key).map_err(|error| wrong("certificate and key", error))?;
    config.alpn_protocols.push(b"h2".to_vec());
    Ok(Some(config))
}

/// Those of a PEM file, of which there has to be one.
fn certificates(setting: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| wrong(setting, error))?;
    if all.is_empty() { Err(wrong(setting, "no certificate is in it")) } else { Ok(all) }
}

fn wrong(setting: &'static str, cause: impl ToString) -> Error {
    Error::Tls { cause: format!("tls.{setting}: {}", cause.to_string()) }
}
