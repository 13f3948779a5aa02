//! The scheduling domains that a kernel builds over a topology: for each CPU a chain of ever wider spans, each
//! divided into groups that are tried in ring order.
//!
//! Built once per topology and profile, then only read. Equal domains and groups of different CPUs are kept once.

mod attach;
mod explain;
mod imb_numa;
mod raw;

pub use explain::{Chain, Group, Level, Vanishes, chains};

use crate::cpuset::{Cpu, CpuSet};
use std::ops::Range;

/// What a domain is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The hardware threads of a core.
    Smt,
    /// The CPUs of a cluster (x86: those that share an L2).
    Cluster,
    /// The CPUs that share a last-level cache, cut at NUMA node borders.
    Mc,
    /// The CPUs of a NUMA node, on hosts without several nodes in a package. Called DIE before v6.7.
    Pkg,
    /// The CPUs of a NUMA node.
    Node,
    /// The CPUs of all nodes up to a distance.
    Numa {
        /// That distance.
        distance: u32,
    },
}

impl Kind {
    /// The kernel's name for the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smt => "SMT",
            Self::Cluster => "CLS",
            Self::Mc => "MC",
            Self::Pkg => "PKG",
            Self::Node => "NODE",
            Self::Numa { .. } => "NUMA",
        }
    }
}

/// The flags of a domain that decide placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flags {
    /// New and exec'd tasks are balanced at this level.
    #[doc(alias = "SD_BALANCE_FORK")]
    #[doc(alias = "SD_BALANCE_EXEC")]
    pub balance_fork: bool,
    /// The CPUs share a last-level cache.
    #[doc(alias = "SD_SHARE_LLC")]
    #[doc(alias = "SD_SHARE_PKG_RESOURCES")]
    pub share_llc: bool,
    /// Load balancing prefers to even out the number of tasks between the groups.
    #[doc(alias = "SD_PREFER_SIBLING")]
    pub prefer_sibling: bool,
    /// The level spans NUMA nodes.
    #[doc(alias = "SD_NUMA")]
    pub numa: bool,
}

impl Flags {
    /// The kernel's names of the flags that a level of this kind has, without the prefix `SD_`, those that decide
    /// nothing here included. `SHARE_LLC` was `SHARE_PKG_RESOURCES` before v6.9.
    pub fn names(self, kind: Kind) -> Vec<&'static str> {
        let all = [
            ("BALANCE_NEWIDLE", true),
            ("BALANCE_EXEC", self.balance_fork),
            ("BALANCE_FORK", self.balance_fork),
            ("WAKE_AFFINE", self.balance_fork),
            ("SHARE_CPUCAPACITY", kind == Kind::Smt),
            ("CLUSTER", kind == Kind::Cluster),
            ("SHARE_LLC", self.share_llc),
            ("SERIALIZE", self.numa),
            ("PREFER_SIBLING", self.prefer_sibling),
            ("OVERLAP", self.numa),
            ("NUMA", self.numa),
        ];
        all.into_iter().filter_map(|(name, is_set)| is_set.then_some(name)).collect()
    }
}

/// Where the groups of a domain stand, in ring order, the CPU's own first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Ring {
    start: u32,
    len: u32,
    /// Some CPU of the span is in more than one group.
    overlaps: bool,
}

/// A domain as several CPUs share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shared {
    kind: Kind,
    flags: Flags,
    imbalance_pct: u32,
    weight: u32,
    imb_numa_nr: u32,
    /// Index of the span among the groups.
    span: u32,
    ring: Ring,
}

/// The domains of every CPU of a host under one profile.
#[derive(Debug, Clone)]
pub struct Domains {
    /// Every span and every group once.
    groups: Vec<CpuSet>,
    /// How many CPUs each group has, side by side for the placement loop.
    weights: Vec<u32>,
    /// For each group whether the domains that it is the span of prefer siblings.
    prefers_siblings: Vec<bool>,
    shared: Vec<Shared>,
    /// Indices of groups, ring after ring.
    rings: Vec<u32>,
    /// The groups of each NUMA level divide its span, none left out and none twice.
    numa_groups_divide: bool,
    /// Indices into `shared`, lowest level first, chain after chain.
    links: Vec<u32>,
    /// For each CPU its chain in `links`; empty for CPUs without domains.
    chains: Vec<Range<u32>>,
    /// For each CPU the groups that hold it, in `memberships`.
    member_of: Vec<Range<u32>>,
    memberships: Vec<u32>,
    /// For each CPU the index of its NUMA node's CPUs in `nodes`, for CPUs that are online.
    node_of: Vec<Option<u32>>,
    nodes: Vec<CpuSet>,
}

impl Domains {
    /// The domains of a CPU, lowest level first. Empty for a CPU that is offline or isolated.
    pub fn of(&self, cpu: Cpu) -> impl DoubleEndedIterator<Item = Domain<'_>> + ExactSizeIterator {
        self.chain(cpu).iter().map(|&id| Domain { domains: self, shared: &self.shared[id as usize] })
    }

    /// The indices of a CPU's domains, lowest level first.
    pub(crate) fn chain(&self, cpu: Cpu) -> &[u32] {
        let range = self.chains.get(cpu.index()).cloned().unwrap_or(0..0);
        &self.links[range.start as usize..range.end as usize]
    }

    pub(crate) fn groups(&self) -> &[CpuSet] {
        &self.groups
    }

    /// How many CPUs a group has.
    pub(crate) fn group_weight(&self, group: u32) -> u32 {
        self.weights[group as usize]
    }

    /// The indices of the groups that hold the CPU.
    pub(crate) fn groups_of(&self, cpu: Cpu) -> &[u32] {
        let range = self.member_of.get(cpu.index()).cloned().unwrap_or(0..0);
        &self.memberships[range.start as usize..range.end as usize]
    }

    /// Whether load balancing inside the group, as the span of a domain, evens out tasks rather than idle CPUs.
    pub(crate) fn prefers_siblings(&self, group: u32) -> bool {
        self.prefers_siblings[group as usize]
    }

    fn ring(&self, Ring { start, len, .. }: Ring) -> &[u32] {
        &self.rings[start as usize..][..len as usize]
    }

    /// What the domain is made for.
    pub(crate) fn kind(&self, id: u32) -> Kind {
        self.shared[id as usize].kind
    }

    pub(crate) fn view(&self, id: u32) -> View<'_> {
        let shared = &self.shared[id as usize];
        View {
            balance_fork: shared.flags.balance_fork,
            numa: shared.flags.numa,
            share_llc: shared.flags.share_llc,
            prefer_sibling: shared.flags.prefer_sibling,
            is_smt: shared.kind == Kind::Smt,
            overlaps: shared.ring.overlaps,
            imbalance_pct: shared.imbalance_pct,
            weight: shared.weight,
            imb_numa_nr: shared.imb_numa_nr,
            span: shared.span,
            ring: self.ring(shared.ring),
        }
    }

    /// Whether the groups of each NUMA level divide its span. If not, they hang on the order of CPU numbers, and nodes at
    /// the same distances from all others need not see the same.
    pub(crate) fn numa_groups_divide(&self) -> bool {
        self.numa_groups_divide
    }

    /// How many groups the domain with the most has: what a placement costs at most.
    pub fn widest(&self) -> usize {
        self.shared.iter().map(|domain| domain.ring.len as usize).max().unwrap_or(0)
    }

    /// The index of the CPU's NUMA node among those with CPUs.
    pub(crate) fn node_index(&self, cpu: Cpu) -> Option<u32> {
        self.node_of.get(cpu.index()).copied().flatten()
    }

    /// The CPUs of the CPU's NUMA node.
    pub(crate) fn node_of(&self, cpu: Cpu) -> Option<&CpuSet> {
        self.nodes.get(self.node_index(cpu)? as usize)
    }

    /// One more than the highest CPU that has domains, or that could have.
    pub(crate) fn cpu_limit(&self) -> usize {
        self.chains.len()
    }
}

/// What the placement loop reads of a domain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) balance_fork: bool,
    pub(crate) numa: bool,
    pub(crate) share_llc: bool,
    pub(crate) prefer_sibling: bool,
    pub(crate) is_smt: bool,
    pub(crate) overlaps: bool,
    pub(crate) imbalance_pct: u32,
    pub(crate) weight: u32,
    pub(crate) imb_numa_nr: u32,
    pub(crate) span: u32,
    pub(crate) ring: &'a [u32],
}

/// One domain of one CPU.
#[derive(Debug, Clone, Copy)]
pub struct Domain<'a> {
    domains: &'a Domains,
    shared: &'a Shared,
}

impl<'a> Domain<'a> {
    /// What the domain is made for.
    pub fn kind(self) -> Kind {
        self.shared.kind
    }

    /// Its flags.
    pub fn flags(self) -> Flags {
        self.shared.flags
    }

    /// Equal for equal spans of one host's domains.
    pub(crate) fn span_id(self) -> u32 {
        self.shared.span
    }

    /// Equal for equal rings of NUMA groups of one host's domains.
    pub(crate) fn ring_id(self) -> u64 {
        u64::from(self.shared.ring.start)
    }

    /// Its CPUs.
    pub fn span(self) -> &'a CpuSet {
        &self.domains.groups[self.shared.span as usize]
    }

    /// How many CPUs it spans.
    #[doc(alias = "span_weight")]
    pub fn weight(self) -> u32 {
        self.shared.weight
    }

    /// How far a group may be ahead of another, in percent, before the difference counts.
    pub fn imbalance_pct(self) -> u32 {
        self.shared.imbalance_pct
    }

    /// How many tasks may crowd one group before another is used; read at NUMA levels only, 0 below.
    pub fn imb_numa_nr(self) -> u32 {
        self.shared.imb_numa_nr
    }

    /// Its groups in ring order, the CPU's own first.
    pub fn groups(self) -> impl ExactSizeIterator<Item = &'a CpuSet> {
        self.domains.ring(self.shared.ring).iter().map(|&id| &self.domains.groups[id as usize])
    }
}
