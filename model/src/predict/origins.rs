//! Where the parent may be.

use super::{Burst, Explored, Host, Markable, Marks, Outset, Run, Search, Symmetry};
use crate::cpuset::{Cpu, CpuSet};
use std::cmp::Reverse;

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
    Outset::new(host, symmetry, burst).origins()
}

/// What becomes of a burst from one class of origins.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// The CPUs that the parent may be on.
    pub origin: Origin,
    /// The central run.
    pub central: Run,
    /// Runs with the same choices: if no time passed, and if groups were marked as often as can be expected and from the
    /// moment at which there is a reason.
    pub ends: [Run; 3],
    /// The other runs, in which no time passes: of equally idle CPUs and equal groups any is taken, and no group is marked
    /// as imbalanced.
    pub explored: Explored,
}

impl Outlook {
    /// What becomes of a burst from its origin.
    fn new(outset: &Outset<'_>, burst: &Burst<'_>, origin: Origin, looks: u64) -> Self {
        let host = outset.host;
        let burst = Burst { origin: origin.cpu, ..*burst };
        let search =
            Search { marks: Markable::None, weights: false, stop_at_pile_up: false, runs: MAX_RUNS, looks };
        let marked = |marks| if burst.marks_open { marks } else { burst.marks };
        let end = |burst: Burst<'_>| Run::central(host, &burst);
        Self {
            central: end(burst),
            ends: [
                end(burst.frozen()),
                end(Burst { marks: marked(Marks::Expected), ..burst }),
                end(Burst { marks: marked(Marks::AtOnce), ..burst }),
            ],
            explored: outset.explore(origin.cpu, search),
            origin,
        }
    }

    /// The run if no time passed and no group were marked.
    pub fn frozen(&self) -> &Run {
        &self.ends[0]
    }

    /// The runs that are known, the central one first.
    pub fn runs(&self) -> impl Iterator<Item = &Run> + Clone {
        std::iter::once(&self.central).chain(&self.ends).chain(&self.explored.ends)
    }

    /// Whether a run piles up; `None` if none of those that were followed does, and they are not all.
    pub fn piles_up(&self) -> Option<bool> {
        let found = self.runs().chain(&self.explored.refused).any(|run| run.tally.pile_up);
        (found || self.explored.complete).then_some(found)
    }

    /// Whether all runs come to the same verdict.
    pub fn is_determined(&self) -> bool {
        let first = self.central.tally.pile_up;
        self.explored.complete && self.runs().all(|run| run.tally.pile_up == first)
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
    let outset = Outset::new(host, symmetry, &burst.frozen());
    let outlook = |origin: Origin| Outlook::new(&outset, burst, origin, share);
    let mut outlooks: Vec<Outlook> = origins.into_iter().map(outlook).collect();
    // Stable: of equally bad ones the lowest CPU first.
    outlooks.sort_by_key(|outlook| Reverse(outlook.severity()));
    outlooks
}
