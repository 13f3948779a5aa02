//! Which role a caller has.

use super::{Role, origin::Identity};
use crate::config::Roles;
use std::{fmt, fs};

/// Whom an entry of the lists names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Every process that reaches the unix socket.
    Unix,
    /// Every process on this host, over TCP without a certificate.
    Loopback,
    /// Everyone who reaches the TCP port without a certificate.
    Tcp,
    /// Every certificate that the configured authority signed.
    AnyCertificate,
    /// The user that the daemon runs as, over the unix socket.
    Daemon,
    /// A user, over the unix socket.
    Uid(u32),
    /// Whoever is in a group, over the unix socket.
    Gid(u32),
    /// A certificate by its common name, or an alternative one.
    Certificate {
        /// The name.
        name: String,
        /// The uid that its holds belong to.
        uid: Option<u32>,
    },
}

/// What the lists give a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) role: Role,
    /// For a certificate: whose its holds are.
    pub(crate) uid: Option<u32>,
}

/// The highest role whose list names the caller.
pub(super) fn grant(roles: &Roles, identity: &Identity) -> Grant {
    let lists = [(Role::Admin, &roles.admin), (Role::Hold, &roles.hold), (Role::Read, &roles.read)];
    let mut entries = lists.iter().flat_map(|(role, list)| list.iter().map(move |entry| (*role, entry)));
    match entries.find(|(_, subject)| subject.names(identity)) {
        Some((role, subject)) => Grant { role, uid: subject.uid() },
        None => Grant { role: Role::None, uid: None },
    }
}

impl Subject {
    /// What is accepted, for messages.
    pub const EXPECTED: &str = "expected unix, loopback, tcp, certificate, daemon, uid:NUMBER, user:NAME, \
                                gid:NUMBER, group:NAME, or cert:NAME with the uid of its holds, as in cert:agent.example=1000";

    /// Reads an entry. Names of users and groups are looked up in `/etc/passwd` and `/etc/group`.
    ///
    /// # Errors
    ///
    /// If it is none, or names nobody. Says what would be accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        let number = || value.parse().map_err(|_| Self::EXPECTED.to_owned());
        let look_up = |file: &str| {
            id_of(file, value).ok_or_else(|| format!("{file} has no such name; give its number"))
        };
        match (kind, value) {
            ("unix", "") => Ok(Self::Unix),
            ("loopback", "") => Ok(Self::Loopback),
            ("tcp", "") => Ok(Self::Tcp),
            ("certificate", "") => Ok(Self::AnyCertificate),
            ("daemon", "") => Ok(Self::Daemon),
            ("uid", _) => number().map(Self::Uid),
            ("gid", _) => number().map(Self::Gid),
            ("user", _) => look_up("/etc/passwd").map(Self::Uid),
            ("group", _) => look_up("/etc/group").map(Self::Gid),
            ("cert", _) => match value.rsplit_once('=') {
                Some((name, uid)) if !name.is_empty() => {
                    let uid = uid
                        .parse()
                        .map_err(|_| format!("`{text}`: the uid `{uid}` is no number; {}", Self::EXPECTED))?;
                    Ok(Self::Certificate { name: name.to_owned(), uid: Some(uid) })
                }
                None if !value.is_empty() => Ok(Self::Certificate { name: value.to_owned(), uid: None }),
                _ => Err(Self::EXPECTED.to_owned()),
            },
            _ => Err(Self::EXPECTED.to_owned()),
        }
    }

    fn names(&self, identity: &Identity) -> bool {
        match (self, identity) {
            (Self::Unix, Identity::Local { .. }) | (Self::AnyCertificate, Identity::Certificate { .. }) => {
                true
            }
            (Self::Tcp, Identity::Address(_)) => true,
            (Self::Loopback, Identity::Address(address)) => address.is_loopback(),
            (Self::Daemon, Identity::Local { uid, .. }) => *uid == rustix::process::geteuid().as_raw(),
            (Self::Uid(named), Identity::Local { uid, .. }) => named == uid,
            (Self::Gid(named), Identity::Local { gids, .. }) => gids.contains(named),
            (Self::Certificate { name, .. }, Identity::Certificate { names }) => names.contains(name),
            _ => false,
        }
    }

    /// Whether holds of whom it names belong to some uid.
    pub(crate) fn has_uid(&self) -> bool {
        match self {
            Self::Certificate { uid, .. } => uid.is_some(),
            Self::Unix | Self::Daemon | Self::Uid(_) | Self::Gid(_) => true,
            Self::Loopback | Self::Tcp | Self::AnyCertificate => false,
        }
    }

    fn uid(&self) -> Option<u32> {
        match self {
            Self::Certificate { uid, .. } => *uid,
            _ => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix => f.write_str("unix"),
            Self::Loopback => f.write_str("loopback"),
            Self::Tcp => f.write_str("tcp"),
            Self::AnyCertificate => f.write_str("certificate"),
            Self::Daemon => f.write_str("daemon"),
            Self::Uid(uid) => write!(f, "uid:{uid}"),
            Self::Gid(gid) => write!(f, "gid:{gid}"),
            Self::Certificate { name, uid: Some(uid) } => write!(f, "cert:{name}={uid}"),
            Self::Certificate { name, uid: None } => write!(f, "cert:{name}"),
        }
    }
}

/// The number of a group, from `/etc/group`.
pub(crate) fn group_id(name: &str) -> Option<u32> {
    id_of("/etc/group", name)
}

/// The number of a name, from a file of lines such as `name:x:number:…`.
fn id_of(file: &str, name: &str) -> Option<u32> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    lines.find(|fields| fields.first() == Some(&name) && !name.is_empty())?.get(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn local(uid: u32, gids: &[u32]) -> Identity {
        Identity::Local { uid, gids: gids.to_vec(), process: None }
    }

    fn certificate(name: &str) -> Identity {
        Identity::Certificate { names: vec![name.to_owned()] }
    }

    #[test]
    fn entries_are_written_as_they_are_read() {
        let all =
            ["unix", "loopback", "tcp", "certificate", "daemon", "uid:7", "gid:9", "cert:a.b", "cert:a=b=7"];
        for text in all {
            assert_eq!(Subject::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Subject::parse("user:root"), Ok(Subject::Uid(0)));
        assert_eq!(Subject::parse("group:root"), Ok(Subject::Gid(0)));
        for bad in [
            "",
            "root",
            "uid:",
            "uid:-1",
            "uid:x",
            "user:",
            "user:no-such-user",
            "cert:",
            "cert:=7",
            "cert:a=x",
            "unix:1",
        ] {
            assert!(Subject::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_highest_role_counts() {
        let flags = ["--allow-hold", "gid:27,cert:batch=1000", "--allow-admin", "uid:7,cert:admin=0"];
        let flags = ["berthd", "--config", "none"].into_iter().chain(flags);
        let roles = Config::try_from_args(flags).unwrap().sections.roles;
        let role = |identity: &Identity| grant(&roles, identity).role;
        assert_eq!(role(&local(1, &[5])), Role::Read);
        assert_eq!(role(&local(1, &[5, 27])), Role::Hold);
        assert_eq!(role(&local(7, &[27])), Role::Admin);
        assert_eq!(grant(&roles, &certificate("batch")), Grant { role: Role::Hold, uid: Some(1000) });
        assert_eq!(role(&certificate("admin")), Role::Admin);
        assert_eq!(role(&certificate("uid:7")), Role::Read);
        assert_eq!(role(&Identity::Address([127, 0, 0, 9].into())), Role::Read);
        assert_eq!(role(&Identity::Address([192, 0, 2, 1].into())), Role::None);
        assert_eq!(role(&Identity::Stranger([127, 0, 0, 1].into())), Role::None);
    }
}
