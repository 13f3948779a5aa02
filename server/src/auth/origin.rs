//! Who is at the other end of a connection.

use super::{certificate, process};
use crate::listen::Presence;
use berth_model::hold::Process;
use rustix::net::UCred;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, OnceLock},
};
use tonic::transport::server::TlsConnectInfo;

/// The other end of a connection, told once for all its requests.
#[derive(Debug, Clone)]
pub(crate) struct Origin(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    accepted: Identity,
    /// Known once the TLS handshake is over.
    certified: OnceLock<Identity>,
    presence: Presence,
}

/// As whom a connection counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Identity {
    /// A process of this host, as the kernel saw it when it connected to the unix socket.
    Local {
        uid: u32,
        /// Its group and its supplementary ones, as far as they can be read.
        gids: Vec<u32>,
        /// Not known if it had ended already, or is in another pid namespace.
        process: Option<Process>,
    },
    /// The names of a certificate.
    Certificate { names: Vec<String> },
    /// An address, of which nothing else is known.
    Address(IpAddr),
    /// Nobody: it came without the certificate that is asked for.
    Stranger(IpAddr),
}

/// That of a request which no listener of ours took.
pub(super) const NOWHERE: Identity = Identity::Stranger(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

impl Origin {
    /// The process that connected to the unix socket.
    pub(crate) fn unix(peer: UCred, presence: Presence) -> Self {
        let uid = peer.uid.as_raw();
        let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).ok();
        // Its group list counts only while the process is still that user's.
        let seen = pid.and_then(process::of_host).and_then(|process| {
            let credentials = process::credentials(process)?;
            (credentials.effective_uid == uid).then_some((process, credentials.groups))
        });
        let mut gids = vec![peer.gid.as_raw()];
        let process = seen.map(|(process, groups)| {
            gids.extend(groups);
            process
        });
        Self::of(Identity::Local { uid, gids, process }, presence)
    }

    /// `needs_certificate`: its address alone says nothing.
    pub(crate) fn tcp(address: IpAddr, needs_certificate: bool, presence: Presence) -> Self {
        let address = address.to_canonical();
        let identity =
            if needs_certificate { Identity::Stranger(address) } else { Identity::Address(address) };
        Self::of(identity, presence)
    }

    fn of(accepted: Identity, presence: Presence) -> Self {
        Self(Arc::new(Inner { accepted, certified: OnceLock::new(), presence }))
    }

    /// That of the connection which a request came over.
    pub(crate) fn of_request<B>(request: &http::Request<B>) -> Option<Self> {
        let Some(secured) = request.extensions().get::<TlsConnectInfo<Self>>() else {
            return request.extensions().get::<Self>().cloned();
        };
        let origin = secured.get_ref().clone();
        if let Some(first) = secured.peer_certs().as_deref().and_then(|chain| chain.first()) {
            origin.0.certified.get_or_init(|| Identity::Certificate { names: certificate::names(first) });
        }
        Some(origin)
    }

    pub(crate) fn identity(&self) -> &Identity {
        self.0.certified.get().unwrap_or(&self.0.accepted)
    }

    pub(crate) fn presence(&self) -> &Presence {
        &self.0.presence
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { uid, .. } => write!(f, "uid {uid}"),
            Self::Certificate { names } if names.is_empty() => f.write_str("a certificate without a name"),
            Self::Certificate { names } => write!(f, "certificate {}", names.join(", ")),
            Self::Address(address) | Self::Stranger(address) => write!(f, "{address}"),
        }
    }
}
