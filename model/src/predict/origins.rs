//! Where the parent may be.

use super::{Host, Symmetry, state::State};
use crate::cpuset::{Cpu, CpuSet};
use std::collections::HashMap;

/// CPUs from which a burst goes the same way, mirror images taken as the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The one that stands for them: the lowest.
    pub cpu: Cpu,
    /// All of them.
    pub class: CpuSet,
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

/// Equal for masks that are mirror images of each other, with what runs everywhere.
pub fn look(host: Host<'_>, symmetry: &Symmetry, allowed: &CpuSet) -> u64 {
    symmetry.picture(&State::new(host.domains, host.profile, host.load, allowed), None).key()
}
