//! The host's hardware as the scheduler sees it: PUs, cores, LLCs, NUMA nodes with distances, and packages.

mod describe;
mod shape;

pub use describe::{Description, Error, MAX_NODES, NodeDescription, PuDescription};
pub use shape::Shape;

use crate::cpuset::{Cpu, CpuSet};

/// The distance of a NUMA node to itself.
pub const LOCAL_DISTANCE: u32 = 10;
/// The distance between two NUMA nodes where the host reports none.
pub const REMOTE_DISTANCE: u32 = 20;

/// A level of the hardware's hierarchy, from the widest to the narrowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A socket.
    Package,
    /// A NUMA node that has CPUs.
    Node,
    /// The CPUs that share a last-level cache.
    Llc,
    /// The hardware threads of one core.
    Core,
}

impl Level {
    /// Every level, widest first.
    pub const ALL: [Self; 4] = [Self::Package, Self::Node, Self::Llc, Self::Core];

    /// The field's name for one unit of this level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::Node => "NUMA node",
            Self::Llc => "LLC",
            Self::Core => "core",
        }
    }
}

/// A package, NUMA node, LLC or core with its CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The operating system's number for packages and NUMA nodes; a running number, by lowest CPU, for the rest.
    pub id: u32,
    /// Its online CPUs; never empty.
    pub cpus: CpuSet,
}

/// A NUMA node, with or without CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The operating system's number.
    pub id: u32,
    /// Its online CPUs; empty for a memory-only node.
    pub cpus: CpuSet,
    /// Its memory in bytes, where known.
    pub memory: Option<u64>,
}

/// Who made the processor: the kernel's distance limit for fork balancing depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Processor {
    /// The vendor string, such as `AuthenticAMD`; empty if unknown.
    pub vendor: String,
    /// The family, such as 25 (19h).
    pub family: Option<u32>,
}

impl Processor {
    /// Whether it is an AMD or Hygon one of family 17h or later, for which the kernel's NUMA distance limit for fork and
    /// exec balancing differs. `None` if the vendor or the family is not known.
    #[doc(alias = "node_reclaim_distance")]
    pub fn is_epyc(&self) -> Option<bool> {
        match (self.vendor.as_str(), self.family) {
            ("", _) | ("AuthenticAMD", None) => None,
            ("AuthenticAMD", Some(family)) => Some(family >= 0x17),
            (vendor, _) => Some(vendor == "HygonGenuine"),
        }
    }
}

/// Where a CPU sits: an index into [`Topology::units`] for each level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    units: [u32; 4],
    cluster: u32,
}

/// A host's topology. Made by [`Topology::try_new`] from what ingest read; never changed afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    online: CpuSet,
    offline: CpuSet,
    isolated: CpuSet,
    partitions: Vec<CpuSet>,
    disallowed: CpuSet,
    places: Vec<Option<Place>>,
    units: [Vec<Unit>; 4],
    clusters: Vec<CpuSet>,
    nodes: Vec<Node>,
    cpu_nodes: Vec<usize>,
    distances: Vec<u32>,
    distances_assumed: bool,
    asymmetric: bool,
    processor: Processor,
}

impl Topology {
    /// The CPUs that are online.
    pub fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The CPUs that exist and are offline.
    pub fn offline(&self) -> &CpuSet {
        &self.offline
    }

    /// The online CPUs that are taken out of scheduling domains (`isolcpus=domain`, isolated partitions).
    pub fn isolated(&self) -> &CpuSet {
        &self.isolated
    }

    /// Sets of online CPUs that have scheduling domains of their own (cpuset partitions): none of them overlaps another.
    pub fn partitions(&self) -> &[CpuSet] {
        &self.partitions
    }

    /// The CPUs that have domains, those of each partition apart; the CPUs outside every partition come first. Isolated
    /// CPUs are in none.
    #[doc(alias = "generate_sched_domains")]
    #[doc(alias = "partition_sched_domains")]
    pub fn scheduling_partitions(&self) -> Vec<CpuSet> {
        let mut rest = self.online.difference(&self.isolated);
        self.partitions.iter().for_each(|partition| rest.subtract(partition));
        let all = std::iter::once(rest).chain(self.partitions.iter().map(|p| p.difference(&self.isolated)));
        all.filter(|partition| !partition.is_empty()).collect()
    }

    /// The online CPUs that this process' cpuset does not allow.
    pub fn disallowed(&self) -> &CpuSet {
        &self.disallowed
    }

    /// The CPUs that a task can be given: online and not disallowed.
    pub fn usable(&self) -> CpuSet {
        self.online.difference(&self.disallowed)
    }

    /// The units of a level, by lowest CPU for LLCs and cores, by number for packages and nodes.
    pub fn units(&self, level: Level) -> &[Unit] {
        &self.units[level as usize]
    }

    /// The index in [`Topology::units`] of the unit that holds the CPU; `None` if the CPU is not online.
    pub fn unit_of(&self, level: Level, cpu: Cpu) -> Option<usize> {
        self.places.get(cpu.index())?.as_ref().map(|place| place.units[level as usize] as usize)
    }

    /// The CPUs of the unit that holds the CPU; `None` if the CPU is not online.
    pub fn span(&self, level: Level, cpu: Cpu) -> Option<&CpuSet> {
        self.unit_of(level, cpu).map(|index| &self.units(level)[index].cpus)
    }

    /// The CPUs that share the CPU's cluster (x86: its L2), where the host has such a level.
    pub fn cluster_span(&self, cpu: Cpu) -> Option<&CpuSet> {
        let place = self.places.get(cpu.index())?.as_ref()?;
        self.clusters.get(place.cluster as usize)
    }

    /// Every NUMA node, memory-only ones too, by number.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// For each unit of [`Level::Node`], its index in [`Topology::nodes`].
    pub fn cpu_nodes(&self) -> &[usize] {
        &self.cpu_nodes
    }

    /// The distance from one node to another, both as indices into [`Topology::nodes`]; 10 is local.
    pub fn distance(&self, from: usize, to: usize) -> u32 {
        self.distances.get(from * self.nodes.len() + to).copied().unwrap_or(REMOTE_DISTANCE)
    }

    /// Whether the host reported no distances, so that 10 and 20 are assumed.
    pub fn distances_assumed(&self) -> bool {
        self.distances_assumed
    }

    /// Whether CPUs differ in capacity (hybrid cores): the model does not cover that.
    pub fn asymmetric_capacity(&self) -> bool {
        self.asymmetric
    }

    /// Who made the processor.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// One more than the highest online CPU: the length of per-CPU tables.
    pub fn cpu_limit(&self) -> usize {
        self.places.len()
    }
}
