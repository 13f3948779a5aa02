//! TLS on the TCP listener.

use super::Error;
use crate::config::Tls;
use std::time::Duration;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

/// The longest that a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What the TCP listener proves itself with, and whom it asks to do the same. None: there is no certificate.
///
/// A client without a certificate is let in, so that it can ask for health and understand why it is refused.
///
/// # Errors
///
/// If the certificate, the key or an authority cannot be read, or the key is not the certificate's.
pub(crate) fn tls(settings: &Tls) -> Result<Option<ServerTlsConfig>, Error> {
    let (Some(certificate), Some(key)) = (&settings.certificate, &settings.key) else { return Ok(None) };
    let identity = Identity::from_pem(&certificate.text, &key.text);
    let mut config = ServerTlsConfig::new().identity(identity).timeout(HANDSHAKE);
    if let Some(authorities) = &settings.client_ca {
        config = config.client_ca_root(Certificate::from_pem(&authorities.text)).client_auth_optional(true);
    }
    match Server::builder().tls_config(config.clone()) {
        Ok(_) => Ok(Some(config)),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            Err(Error::Tls { cause: cause.unwrap_or_else(|| error.to_string()) })
        }
    }
}
