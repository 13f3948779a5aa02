//! What is told of a host beside what its placement depends on.

use super::Partition;
use berth_model::cpuset::{Cpu, CpuSet};
use std::collections::BTreeMap;

/// Where a topology comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// The host that the daemon runs on.
    #[default]
    Live,
    /// An hwloc XML.
    Xml,
    /// An hwloc synthetic description.
    Synthetic,
}

/// What is told of a host beside what its placement depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Where it comes from.
    pub source: Source,
    /// What the machine is called: its product or CPU model. Empty if not known.
    pub model: String,
    /// The CPUs' model name. Empty if not known.
    pub cpu_model: String,
    /// Each last-level cache, by its lowest CPU.
    pub caches: BTreeMap<Cpu, Cache>,
    /// The kinds of core, slowest first where that is known. Empty if all are alike.
    pub core_kinds: Vec<CoreKind>,
    /// CPUs without a timer tick.
    pub nohz_full: CpuSet,
    /// Parts of the host that load balancing does not leave. Empty if it is one.
    pub partitions: Vec<Partition>,
    /// NUMA nodes that are named but whose distances are not told, where those of others are.
    pub nodes_without_distances: Vec<u32>,
}

/// One last-level cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Its level, such as 3.
    pub level: u32,
    /// Its size in bytes, where known.
    pub bytes: Option<u64>,
}

/// A kind of core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreKind {
    /// Its name, or its number where it has none.
    pub name: String,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Its rank; a faster kind has a higher one. Absent where not known.
    pub performance: Option<u32>,
}
