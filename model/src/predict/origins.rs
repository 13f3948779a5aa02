//! Where the parent may be.

use super::{Burst, Explored, Host, Prediction, Run, Search, Symmetry, explore, predict, state::State};
use crate::cpuset::{Cpu, CpuSet};
use std::{cmp::Reverse, collections::HashMap};

/// CPUs from which a burst goes the same way, mirror images taken as the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The one that stands for them: the lowest.
    pub cpu: Cpu,
    /// All of them.
    pub class: CpuSet,
}

impl From<Cpu> for Origin {
    /// A parent whose CPU is known.
    fn from(cpu: Cpu) -> Self {
        Self { cpu, class: CpuSet::from(cpu) }
    }
}

/// One CPU of every class that could hold the parent of tasks under the mask `allowed`: the parent has the mask too,
/// so it is on one of those CPUs. By lowest CPU.
pub fn origins(host: Host<'_>, symmetry: &Symmetry, allowed: &CpuSet) -> Vec<Origin> {
    let picture = symmetry.picture(&State::new(host.domains, host.profile, host.load, allowed), None);
    let mut known: HashMap<u64, usize> = HashMap::new();
    let mut origins: Vec<Origin> = Vec::new();
    for cpu in allowed {
        let index = *known.entry(picture.class(cpu)).or_insert_with(|| {
            origins.push(Origin { cpu, class: CpuSet::new() });
            origins.len() - 1
        });
        origins[index].class.insert(cpu);
    }
    origins
}

/// What becomes of a burst from one class of origins.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// The CPUs that the parent may be on.
    pub origin: Origin,
    /// The central run.
    pub prediction: Prediction,
    /// Where its choices are open, the ends of all runs that differ: of equally idle CPUs and equal groups any is
    /// taken, and no group is marked as imbalanced.
    pub ends: Vec<Run>,
    /// Whether `ends` are all.
    pub complete: bool,
}

/// What becomes of a burst from each class of origins, `burst.origin` aside; worst first.
pub fn outlooks(
    host: Host<'_>,
    symmetry: &Symmetry,
    burst: &Burst<'_>,
    origins: Vec<Origin>,
) -> Vec<Outlook> {
    let search = Search { marks: false, stop_at_pile_up: false, limit: 64 };
    let mut outlooks: Vec<Outlook> = origins
        .into_iter()
        .map(|origin| {
            let burst = Burst { origin: origin.cpu, ..*burst };
            let Explored { ends, complete, .. } = explore(host, &burst, symmetry, search);
            Outlook { prediction: predict(host, &burst), origin, ends, complete }
        })
        .collect();
    // Stable: of equally bad ones the lowest CPU first.
    outlooks.sort_by_key(|outlook| Reverse(outlook.prediction.tally.severity()));
    outlooks
}

/// Equal for masks that are mirror images of each other, with what runs everywhere.
pub fn look(host: Host<'_>, symmetry: &Symmetry, allowed: &CpuSet) -> u64 {
    symmetry.picture(&State::new(host.domains, host.profile, host.load, allowed), None).key()
}
