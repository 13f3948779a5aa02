//! Flags of a connection that is encrypted and proves who asks.

use std::path::PathBuf;

use clap::Args;

/// Files and names for an address `https://host:port`. Other addresses do without them.
#[derive(Debug, Clone, Default, Args)]
pub struct TlsArgs {
    /// For https: certificates (PEM) of the authorities that the server's certificate may come from
    #[arg(long, value_name = "FILE", env = "BERTH_TLS_CA", hide_env_values = true, global = true)]
    pub tls_ca: Option<PathBuf>,
    /// For https: the certificate (PEM) that says who asks
    #[arg(long, value_name = "FILE", env = "BERTH_TLS_CERT", hide_env_values = true, global = true)]
    pub tls_cert: Option<PathBuf>,
    /// For https: its private key (PEM)
    #[arg(long, value_name = "FILE", env = "BERTH_TLS_KEY", hide_env_values = true, global = true)]
    pub tls_key: Option<PathBuf>,
    /// For https: the name that the server's certificate must have. Default: the host of the address
    #[arg(long, value_name = "NAME", env = "BERTH_TLS_NAME", hide_env_values = true, global = true)]
    pub tls_name: Option<String>,
}
