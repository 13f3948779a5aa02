//! The domains of every CPU against those read from the kernel's memory.

use crate::{record::Record, scene::Scene};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    domains::Kind,
};

/// How many CPUs were looked at, and how many of these have exactly the kernel's domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Matches {
    /// CPUs.
    pub cpus: u32,
    /// Those with the kernel's spans, groups in ring order, `imbalance_pct` and, at NUMA levels, `imb_numa_nr`.
    pub equal: u32,
}

/// Compares every CPU.
pub fn compare(scene: &Scene, record: &Record) -> Matches {
    let mut matches = Matches::default();
    for (theirs, cpu) in record.machine.domains.iter().zip((0..=u16::MAX).map(Cpu::from)) {
        let ours: Vec<_> = scene.domains.of(cpu).collect();
        let equal = ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(ours, theirs)| {
                let is_numa = matches!(ours.kind(), Kind::Numa { .. });
                let span = |set: &CpuSet| set.to_string();
                span(ours.span()) == theirs.span
                    && ours.groups().map(span).eq(theirs.groups.iter().cloned())
                    && ours.imbalance_pct() == theirs.imbalance_pct
                    && (!is_numa || ours.imb_numa_nr() == theirs.imb_numa_nr)
            });
        matches.cpus += 1;
        matches.equal += u32::from(equal);
    }
    matches
}
