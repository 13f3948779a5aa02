//! Where requests come from: TCP, with TLS or without, and a unix socket.
//!
//! [`accept`] takes connections as long as their peers have not too many; a [`connection`] ends when it is of no
//! use, which the [`presence`] of calls on it tells.

mod accept;
mod connection;
mod presence;
mod tls;
mod unix;

pub(crate) use accept::{Incoming, Tcp, incoming};
pub(crate) use presence::Presence;
pub(crate) use tls::Tls;
pub(crate) use unix::{Access, Socket};

use std::{io, net::SocketAddr, path::PathBuf};
use tokio::net::TcpListener;

/// Why the daemon cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The TCP address is taken, or not this host's.
    #[error("cannot listen on {address}: {cause}; give another one with --tcp, or --no-tcp")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        cause: io::Error,
    },
    /// The certificates cannot be used.
    #[error("the TLS certificates cannot be used: {cause}")]
    Tls {
        /// What the TLS library said.
        cause: String,
    },
    /// The admin address is taken, or not this host's.
    #[error("cannot listen on {address}: {cause}; give another address with --admin, or none")]
    Admin {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        cause: io::Error,
    },
    /// Another server answers on the socket.
    #[error("another server listens on {}; stop it, or give another path with --uds", .path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// What is there is no socket.
    #[error("{} is there and is no socket; remove it, or give another path with --uds", .path.display())]
    NoSocket {
        /// What is there.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("cannot listen on {}: {cause}; give another path with --uds, or --no-uds", .path.display())]
    Unix {
        /// The socket.
        path: PathBuf,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// Listens on TCP. Says where: port 0 is a free one.
pub(crate) async fn tcp(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    bind(address).await.map_err(|cause| Error::Tcp { address, cause })
}

/// Listens on the admin address.
pub(crate) async fn admin(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    bind(address).await.map_err(|cause| Error::Admin { address, cause })
}

async fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}
