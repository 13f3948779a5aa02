//! The levels of one CPU as the kernel builds them, those that vanish again included.

use super::{
    Flags, Kind,
    attach::{Rings, Sets, imbalance_pct},
    imb_numa::imb_numa_nr,
    raw::{RawChains, RawLevel},
};
use crate::{
    cpuset::{Cpu, CpuSet},
    profile::Profile,
    topology::Topology,
};

/// Why a level that was built has no effect and vanishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vanishes {
    /// It spans one CPU: there is nothing to choose.
    OneCpu,
    /// The level below it spans the same CPUs.
    SameSpan,
    /// It has one group, and takes no part in fork, exec and wake-ups.
    OneGroup,
}

impl Vanishes {
    /// What the span alone decides: how many CPUs it has, and how many the last level below that stayed.
    #[doc(alias = "sd_degenerate")]
    #[doc(alias = "sd_parent_degenerate")]
    pub(super) fn by_span(weight: u32, below: Option<u32>) -> Option<Self> {
        match below {
            _ if weight < 2 => Some(Self::OneCpu),
            Some(below) if below == weight => Some(Self::SameSpan),
            _ => None,
        }
    }

    /// What the number of groups decides.
    pub(super) fn by_groups(groups: u32, flags: Flags) -> Option<Self> {
        (groups == 1 && !flags.balance_fork).then_some(Self::OneGroup)
    }
}

/// The levels of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The CPU.
    pub cpu: Cpu,
    /// The CPUs that load balancing considers together with it; empty if it is isolated.
    pub partition: CpuSet,
    /// Lowest first.
    pub levels: Vec<Level>,
}

/// One level of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// What it is made for.
    pub kind: Kind,
    /// Its flags.
    pub flags: Flags,
    /// Its CPUs.
    pub span: CpuSet,
    /// How far a group may be ahead of another, in percent.
    pub imbalance_pct: u32,
    /// How many tasks may crowd one group before another is used; read at NUMA levels only.
    pub imb_numa_nr: u32,
    /// Its groups in ring order, the CPU's own first.
    pub groups: Vec<Group>,
    /// Why it vanishes; absent if it stays.
    pub vanishes: Option<Vanishes>,
}

/// One group of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Those that balance on its behalf: with overlapping groups, the ones to which this very group is their own.
    #[doc(alias = "group_balance_mask")]
    #[doc(alias = "build_balance_mask")]
    pub balance: CpuSet,
}

/// The levels of each of these CPUs, ascending, each built as it is asked for. A CPU that is isolated has none.
#[doc(alias = "build_sched_domains")]
pub fn chains<'a>(
    topology: &Topology,
    profile: &'a Profile,
    cpus: &'a CpuSet,
) -> impl Iterator<Item = Chain> + use<'a> {
    let raw = RawChains::build(topology, profile);
    let online_nodes = topology.nodes().len();
    let (mut sets, mut rings) = (Sets::default(), Rings::new());
    let of_cpu = move |cpu: Cpu| {
        let partition = raw.partitions.iter().find(|partition| partition.contains(cpu));
        let chain: &[RawLevel] = if partition.is_some() { raw.of(cpu) } else { &[] };
        let imb_numa = imb_numa_nr(chain, profile.imb_numa, online_nodes);
        let mut below = None;
        let mut levels = Vec::with_capacity(chain.len());
        for (index, level) in chain.iter().enumerate() {
            let weight = u32::try_from(level.span.len()).unwrap_or(u32::MAX);
            let ring = rings.of(&raw, &mut sets, cpu, index);
            let groups: Vec<Group> =
                rings.groups(ring).map(|id| group(&raw, level, index, sets.get(id))).collect();
            let count = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            let vanishes =
                Vanishes::by_span(weight, below).or_else(|| Vanishes::by_groups(count, level.flags));
            if vanishes.is_none() {
                below = Some(weight);
            }
            levels.push(Level {
                kind: level.kind,
                flags: level.flags,
                span: CpuSet::clone(&level.span),
                imbalance_pct: imbalance_pct(level.kind, level.flags, profile),
                imb_numa_nr: imb_numa[index],
                groups,
                vanishes,
            });
        }
        Chain { cpu, partition: partition.cloned().unwrap_or_default(), levels }
    };
    cpus.iter().map(of_cpu)
}

fn group(raw: &RawChains, level: &RawLevel, index: usize, cpus: &CpuSet) -> Group {
    let is_own = |&cpu: &Cpu| raw.of(cpu).get(index).is_some() && *raw.child_span(cpu, index) == *cpus;
    let balance = if level.flags.numa { cpus.iter().filter(is_own).collect() } else { cpus.clone() };
    Group { cpus: cpus.clone(), balance }
}
