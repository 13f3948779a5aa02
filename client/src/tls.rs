//! The files that an encrypted connection needs.

use std::{fs, path::PathBuf};

use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::{Error, address::Address, cli::TlsArgs};

/// What a connection to the address needs. `None`: the address does without TLS.
///
/// # Errors
///
/// A flag is missing, or a file cannot be read.
pub(crate) fn config(args: &TlsArgs, address: &Address) -> Result<Option<ClientTlsConfig>, Error> {
    if !matches!(address, Address::Tls(_)) {
        return Ok(None);
    }
    let Some(ca) = &args.tls_ca else {
        return Err(Error::Tls(format!(
            "{address} needs --tls-ca (or BERTH_TLS_CA), the certificates that its own may come from"
        )));
    };
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read("--tls-ca", ca)?));
    match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => {
            config = config.identity(Identity::from_pem(read("--tls-cert", cert)?, read("--tls-key", key)?));
        }
        (None, None) => {}
        (Some(_), None) => return Err(Error::Tls("--tls-cert needs --tls-key, its private key".to_owned())),
        (None, Some(_)) => return Err(Error::Tls("--tls-key needs --tls-cert, its certificate".to_owned())),
    }
    if let Some(name) = &args.tls_name {
        config = config.domain_name(name);
    }
    Ok(Some(config))
}

fn read(flag: &'static str, path: &PathBuf) -> Result<Vec<u8>, Error> {
    let pem = fs::read(path).map_err(|source| Error::TlsFile { flag, path: path.clone(), source })?;
    // Otherwise an unusable file shows as a failed handshake, without a word of which.
    if pem.windows(MARK.len()).any(|part| part == MARK) {
        Ok(pem)
    } else {
        Err(Error::Tls(format!("{flag}: {} holds no PEM, which starts with -----BEGIN", path.display())))
    }
}

/// What every PEM has.
const MARK: &[u8] = b"-----BEGIN ";
