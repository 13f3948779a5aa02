//! The three roles.

use berth_proto::v1::get_info_response;
use std::fmt;

/// What a caller may do; each role may do what the one before may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Nothing but health and reflection.
    None,
    /// Ask.
    Read,
    /// Hold CPUs.
    Hold,
    /// Report load, hold for others, see others' processes and holds.
    Admin,
}

impl Role {
    pub(crate) fn to_wire(self) -> get_info_response::Role {
        match self {
            Self::None => get_info_response::Role::NoRole,
            Self::Read => get_info_response::Role::Read,
            Self::Hold => get_info_response::Role::Hold,
            Self::Admin => get_info_response::Role::Admin,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Hold => "hold",
            Self::Admin => "admin",
        })
    }
}
