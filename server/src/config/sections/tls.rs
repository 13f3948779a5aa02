//! TLS.

use super::prelude::*;
use crate::config::parse::TextFile;

/// Longer ones are some other file.
const MAX_PEM: usize = 1 << 20;

section! {
    /// TLS on TCP.
    Tls "tls";

    /// The server's certificate for TCP, in PEM form, with those between it and an authority that clients know.
    certificate: Option<TextFile> = Setting::new("tls-cert", "FILE", parse::optional(parse::text_file(MAX_PEM)));

    /// The private key of that certificate, in PEM form.
    key: Option<TextFile> = Setting::new("tls-key", "FILE", parse::optional(parse::text_file(MAX_PEM)));

    /// The authorities that sign clients' certificates, in PEM form.
    ///
    /// With it a TCP client is known by its certificate alone: without one it is nobody, even from this host.
    client_ca: Option<TextFile> = Setting::new("tls-client-ca", "FILE", parse::optional(parse::text_file(MAX_PEM)));
}

impl Tls {
    /// All of them.
    pub(crate) fn files(&self) -> [Option<&TextFile>; 3] {
        [&self.certificate, &self.key, &self.client_ca].map(Option::as_ref)
    }
}
