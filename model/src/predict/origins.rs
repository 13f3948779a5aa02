//! Where the parent may be.

use super::{Burst, Explored, Host, Run, Search, Symmetry, Tally, explore, state::State, symmetry::Told};
use crate::cpuset::{Cpu, CpuSet};
use std::{cmp::Reverse, collections::HashMap};

/// The most runs that an outlook follows at a time.
const MAX_RUNS: u32 = 64;

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

/// One CPU of every class that could hold the parent of a burst, whatever `burst.origin` says: the parent has the mask
/// too, so it is on one of the allowed CPUs. By lowest CPU.
pub fn origins(host: Host<'_>, symmetry: &Symmetry, burst: &Burst<'_>) -> Vec<Origin> {
    let allowed = burst.allowed;
    let state = State::new(host.domains, host.profile, host.load, allowed);
    let picture = symmetry.picture(&state, burst.told());
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
    pub central: Run,
    /// The other runs: of equally idle CPUs and equal groups any is taken, and no group is marked as imbalanced.
    pub explored: Explored,
}

impl Outlook {
    /// Whether a run piles up; `None` if none of those that were followed does, and they are not all.
    pub fn piles_up(&self) -> Option<bool> {
        let found = self.central.tally.pile_up || self.explored.refused.is_some();
        (found || self.explored.complete).then_some(found)
    }

    /// Whether all runs come to the same verdict.
    pub fn is_determined(&self) -> bool {
        let first = self.central.tally.pile_up;
        self.explored.complete && self.explored.ends.iter().all(|run| run.tally.pile_up == first)
    }

    /// The least and the most of something over all runs; `None` if they are not all known.
    pub fn range<T: PartialOrd>(&self, of: impl Fn(&Tally) -> T) -> Option<(T, T)> {
        let runs = self.explored.ends.iter().chain([&self.central]);
        let values = |_| runs.clone().map(|run| of(&run.tally));
        let pick = |keep: fn(&T, &T) -> bool| values(()).reduce(|a, b| if keep(&a, &b) { a } else { b });
        self.explored.complete.then(|| pick(|a, b| a <= b).zip(pick(|a, b| a >= b))).flatten()
    }

    fn severity(&self) -> impl Ord + use<> {
        (self.piles_up() != Some(false), self.central.tally.severity())
    }
}

/// What becomes of a burst from each class of origins, whatever `burst.origin` says; worst first. At most `looks`
/// groups are looked at for runs beside the central ones, shared evenly.
pub fn outlooks(
    host: Host<'_>,
    symmetry: &Symmetry,
    burst: &Burst<'_>,
    origins: Vec<Origin>,
    looks: u64,
) -> Vec<Outlook> {
    let share = looks / (origins.len() as u64).max(1);
    let search = Search { marks: false, stop_at_pile_up: false, runs: MAX_RUNS, looks: share };
    let outlook = |origin: Origin| {
        let burst = Burst { origin: origin.cpu, ..*burst };
        Outlook {
            central: Run::central(host, &burst),
            explored: explore(host, &burst, symmetry, search),
            origin,
        }
    };
    let mut outlooks: Vec<Outlook> = origins.into_iter().map(outlook).collect();
    // Stable: of equally bad ones the lowest CPU first.
    outlooks.sort_by_key(|outlook| Reverse(outlook.severity()));
    outlooks
}

/// Equal for masks that are mirror images of each other, with what runs everywhere.
pub fn look(host: Host<'_>, symmetry: &Symmetry, allowed: &CpuSet) -> u64 {
    symmetry.picture(&State::new(host.domains, host.profile, host.load, allowed), Told::default()).key()
}
