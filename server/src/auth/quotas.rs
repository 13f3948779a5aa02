//! How much one user may hold.

use super::Peer;
use crate::convert::Failure;

/// What the living holds of one uid may come to. Who has the admin role has no quota, nor has what it makes for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Holds, claims included.
    pub holds: u32,
    /// CPUs that are held exclusively, in percent of those online, rounded up.
    pub exclusive_percent: u32,
}

/// What the living holds of one uid come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) holds: usize,
    pub(crate) exclusive_cpus: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self { holds: 256, exclusive_percent: 50 }
    }
}

impl Quotas {
    /// The most CPUs that one uid may hold exclusively, of a host with so many online.
    pub(crate) fn exclusive_cpus(&self, online: usize) -> usize {
        let percent = usize::try_from(self.exclusive_percent.min(100)).unwrap_or(100);
        (online * percent).div_ceil(100)
    }

    /// Goes on only if the caller may have `held`, a hold that is to be made included.
    ///
    /// # Errors
    ///
    /// If that is more than its quota.
    pub(crate) fn check(&self, peer: &Peer, held: Held, online: usize) -> Result<(), Failure> {
        if peer.is_admin() {
            return Ok(());
        }
        let holds = usize::try_from(self.holds).unwrap_or(usize::MAX);
        let cpus = self.exclusive_cpus(online);
        let over = [("holds", held.holds, holds), ("exclusive_cpus", held.exclusive_cpus, cpus)];
        match over.into_iter().find(|(_, asked, most)| asked > most) {
            Some((of, asked, most)) => Err(Failure::Quota { of, asked, most, caller: peer.to_string() }),
            None => Ok(()),
        }
    }
}
