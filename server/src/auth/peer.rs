//! The caller of a request.

use super::{
    Origin, Role,
    origin::{Identity, NOWHERE},
    roles::{Grant, grant},
};
use crate::{config::Roles, convert::Failure};
use berth_model::hold::Process;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};
use tonic::Request;

/// The caller of a request: who, and what that one may do.
#[derive(Debug, Clone)]
pub(crate) struct Peer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    identity: Identity,
    role: Role,
    uid: Option<u32>,
}

/// What limits count by: all connections and requests of one caller share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Uid(u32),
    Certificate(String),
    Address(IpAddr),
}

impl Peer {
    fn new(identity: Identity, grant: Grant) -> Self {
        let uid = match &identity {
            Identity::Local { uid, .. } => Some(*uid),
            _ => grant.uid,
        };
        Self(Arc::new(Inner { identity, role: grant.role, uid }))
    }

    /// The caller of this request, by the connection that it came over.
    pub(crate) fn of_request<B>(request: &http::Request<B>, roles: &Roles) -> Self {
        let origin = Origin::of_request(request);
        let identity = origin.as_ref().map_or(&NOWHERE, Origin::identity);
        Self::new(identity.clone(), grant(roles, identity))
    }

    /// The caller of this request. Nobody if it did not pass the layer that tells.
    pub(crate) fn of<T>(request: &Request<T>) -> Self {
        request.extensions().get::<Self>().cloned().unwrap_or_else(Self::nobody)
    }

    /// The same, before tonic has looked at the request.
    pub(crate) fn within(extensions: &http::Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_else(Self::nobody)
    }

    fn nobody() -> Self {
        Self::new(NOWHERE, Grant { role: Role::None, uid: None })
    }

    /// What it may do.
    pub(crate) fn role(&self) -> Role {
        self.0.role
    }

    /// Whether it may act for others.
    pub(crate) fn is_admin(&self) -> bool {
        self.0.role == Role::Admin
    }

    /// The uid that its holds belong to. None: it can have none. That of a unix socket's peer, or the one that is
    /// configured beside a certificate's name.
    pub(crate) fn uid(&self) -> Option<u32> {
        self.0.uid
    }

    /// The calling process. None if it is not of this host, has ended, or cannot be seen.
    pub(crate) fn process(&self) -> Option<Process> {
        match self.0.identity {
            Identity::Local { process, .. } => process,
            _ => None,
        }
    }

    /// Whether it came over the unix socket.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.0.identity, Identity::Local { .. })
    }

    /// Whether it may see what belongs to this uid: its processes and holds.
    pub(crate) fn may_see(&self, uid: u32) -> bool {
        self.is_admin() || self.0.uid == Some(uid)
    }

    /// What limits count it by.
    pub(crate) fn key(&self) -> Key {
        Key::of(&self.0.identity)
    }

    /// Goes on only if it has this role. `what` names what it asked for.
    ///
    /// # Errors
    ///
    /// If its role is less.
    pub(crate) fn require(&self, needed: Role, what: &str) -> Result<(), Failure> {
        if self.0.role >= needed {
            return Ok(());
        }
        let caller = self.0.identity.to_string();
        Err(match self.0.identity {
            Identity::Stranger(_) => Failure::NotKnown { caller, expected: "a client certificate" },
            Identity::Address(_) if self.0.role == Role::None => {
                Failure::NotKnown { caller, expected: "the unix socket, or loopback TCP" }
            }
            _ => Failure::RoleTooLow { caller, role: self.0.role, needed, what: what.to_owned() },
        })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.identity.fmt(f)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uid(uid) => write!(f, "uid {uid}"),
            Self::Certificate(name) => write!(f, "certificate {name}"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl Key {
    fn of(identity: &Identity) -> Self {
        match identity {
            Identity::Local { uid, .. } => Self::Uid(*uid),
            Identity::Certificate { names } => Self::Certificate(names.first().cloned().unwrap_or_default()),
            Identity::Address(address) | Identity::Stranger(address) => Self::of_address(*address),
        }
    }

    /// Whoever has one IPv6 address has its whole subnet, and every user of this host has all of loopback.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::Address(IpAddr::from([a, b, c, d, 0, 0, 0, 0]))
            }
            other => Self::Address(other),
        }
    }
}
