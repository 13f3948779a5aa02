//! What a burst meets before anything is started: the counters and the mirror images. It is the same wherever the parent
//! may be, so it is set up once, and each origin begins with a copy.

use super::{
    Burst, Explored, Host, Origin, Search, Symmetry,
    explore::explore_from,
    state::State,
    symmetry::{Picture, Told},
};
use crate::cpuset::{Cpu, CpuSet};
use std::collections::HashMap;

/// A host as it is before a burst.
#[derive(Debug)]
pub struct Outset<'a> {
    pub(super) host: Host<'a>,
    burst: Burst<'a>,
    state: State<'a>,
    picture: Picture<'a>,
}

impl<'a> Outset<'a> {
    /// Sets the host up for a burst, whatever `burst.origin` says.
    pub fn new(host: Host<'a>, symmetry: &'a Symmetry, burst: &Burst<'a>) -> Self {
        Self::told(host, symmetry, burst, None, &[])
    }

    /// The same where more tells CPUs apart: the parent's, if that is known, and a label for each.
    pub(crate) fn told(
        host: Host<'a>,
        symmetry: &'a Symmetry,
        burst: &Burst<'a>,
        origin: Option<Cpu>,
        labels: &'a [u64],
    ) -> Self {
        let mut state = State::new(host, burst.allowed, burst.tasks, burst.marks);
        state.mark(burst.marked);
        let picture = symmetry.picture(&state, Told { origin, labels, ..burst.told() });
        Self { host, burst: *burst, state, picture }
    }

    /// Equal for CPUs that are mirror images of each other.
    pub(crate) fn class(&self, cpu: Cpu) -> u64 {
        self.picture.class(cpu)
    }

    /// One CPU of every class that could hold the parent: it has the mask too, so it is on one of the allowed CPUs. By
    /// lowest CPU.
    pub fn origins(&self) -> Vec<Origin> {
        let mut known: HashMap<u64, usize> = HashMap::new();
        let mut origins: Vec<Origin> = Vec::new();
        for cpu in self.burst.allowed {
            let index = *known.entry(self.picture.class(cpu)).or_insert_with(|| {
                origins.push(Origin { cpu, class: CpuSet::new() });
                origins.len() - 1
            });
            origins[index].class.insert(cpu);
        }
        origins
    }

    /// Equal for masks that are mirror images of each other, with what runs everywhere.
    pub fn look(&self) -> u64 {
        self.picture.key()
    }

    /// Follows every run from an origin, whichever of equally idle CPUs and of equal groups is taken. Runs that are mirror
    /// images of each other are followed once.
    pub fn explore(&self, origin: Cpu, search: Search) -> Explored {
        explore_from(self, &Burst { origin, ..self.burst }, search)
    }

    /// Copies to begin with.
    pub(super) fn begin(&self) -> (State<'a>, Picture<'a>) {
        (self.state.clone(), self.picture.clone())
    }
}
