//! One hold.

use super::{Moment, Part};
use crate::cpuset::CpuSet;
use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

/// Names a hold for as long as the store lives; none is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl Id {
    /// The hold with this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// As `h17`.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "h{}", self.0)
    }
}

impl FromStr for Id {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix('h').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).map(Self).ok_or(())
    }
}

/// A user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u32);

/// A process, named so that a later one with its pid is not mistaken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// Its start time in clock ticks after boot.
    pub start_time: u64,
}

/// Who a hold ends with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Nobody but its expiry.
    Lease,
    /// A process.
    Process(Process),
    /// A cgroup, by its path below the mount: the last process in it.
    Cgroup(String),
}

/// How holds may overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Others may be given the CPUs too where there is no better choice.
    #[default]
    Shared,
    /// Nobody else is given the CPUs.
    Exclusive,
}

/// When a hold expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// How long it was given last.
    pub ttl: Duration,
    /// When that is over.
    pub at: Moment,
}

/// Why a hold ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// It was released.
    Released,
    /// Its process died.
    ProcessDied,
    /// Its cgroup emptied or vanished.
    CgroupEmpty,
    /// It expired.
    Expired,
    /// Its tasks were seen running: from then on they count themselves.
    TasksSeen,
    /// Its claim ended.
    ClaimEnded,
    /// The host was booted anew.
    Rebooted,
}

/// How and when a hold ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub why: End,
    /// When.
    pub at: Moment,
}

/// CPUs kept for an owner, or a claim: a hold without CPUs that others may belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Its id.
    pub id: Id,
    /// The user that it belongs to.
    pub uid: Uid,
    /// The user's name for it; empty for none.
    pub name: String,
    /// Who it ends with.
    pub owner: Owner,
    /// Its masks; empty for a claim.
    pub parts: Vec<Part>,
    /// Shared or exclusive.
    pub mode: Mode,
    /// The claim that it belongs to.
    pub claim: Option<Id>,
    /// Another manager gave the CPUs out: it may overlap any other.
    pub foreign: bool,
    /// It outlasts the sight of its tasks.
    pub keep: bool,
    /// Its tasks have been seen running.
    pub tasks_seen: bool,
    /// Tasks that were measured on its CPUs when it was made, and those of older holds that were seen there since.
    pub before: u32,
    /// When it was made.
    pub created_at: Moment,
    /// When it expires; `None` for never.
    pub expiry: Option<Expiry>,
    /// Id of the request that made it; empty for none.
    pub request_id: String,
    /// Facts for people.
    pub labels: BTreeMap<String, String>,
    /// CPUs of it that the host does not have now.
    pub missing: CpuSet,
    /// Generation of the book with the last change to it.
    pub generation: u64,
    /// How it ended; `None` while it is in force.
    pub ended: Option<Ended>,
}

impl Hold {
    /// All its CPUs.
    pub fn cpus(&self) -> CpuSet {
        self.parts.iter().fold(CpuSet::new(), |all, part| all.union(part.cpus()))
    }

    /// How many tasks it is for.
    pub fn tasks(&self) -> u32 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.tasks()))
    }

    /// Whether it is a claim.
    pub fn is_claim(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether it has any of these CPUs.
    pub fn overlaps(&self, cpus: &CpuSet) -> bool {
        self.parts.iter().any(|part| part.cpus().intersects(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_as_text() {
        assert_eq!("h17".parse(), Ok(Id::new(17)));
        assert_eq!(Id::new(17).to_string(), "h17");
        for bad in ["", "h", "17", "h1x", "h-1", "h+1", "H1", "h99999999999999999999"] {
            assert!(bad.parse::<Id>().is_err(), "{bad}");
        }
    }
}
