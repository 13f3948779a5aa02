//! Who asks, and what they may do.
//!
//! The connection tells who is at its other end ([`Origin`]): the kernel vouches for a unix socket's peer, a
//! certificate for a TLS one's, its address for another. The configured lists ([`roles`]) give that a [`Role`], the table of
//! [`methods`] says which one a method needs, and the layer `layers::authentication` refuses or puts a [`Peer`]
//! into the request's extensions, where a service finds it with [`Peer::of`].
//!
//! What the roles may do is in `docs/security.md`, which a test keeps equal to what a running server does.

pub(crate) mod caller;
mod certificate;
pub mod cpuset;
pub(crate) mod methods;
mod origin;
mod peer;
mod process;
mod quotas;
mod role;
mod roles;

pub(crate) use cpuset::effective_cpuset;
pub(crate) use origin::Origin;
pub(crate) use peer::{Key, Peer};
pub(crate) use quotas::Held;
pub use quotas::Quotas;
pub(crate) use role::Role;
pub use roles::Subject;
pub(crate) use roles::group_id;
