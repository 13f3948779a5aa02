//! The chain of one CPU before levels without effect are taken out.

use super::{Flags, Kind};
use crate::{
    cpuset::{Cpu, CpuSet},
    profile::Profile,
    topology::{Level, Topology},
};
use std::{collections::BTreeMap, rc::Rc};

/// One level of a raw chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawLevel {
    pub(super) kind: Kind,
    pub(super) flags: Flags,
    pub(super) span: Rc<CpuSet>,
}

/// The raw chains of all CPUs; index i is the same level in each.
#[derive(Debug)]
pub(super) struct RawChains {
    /// Online and not isolated: the CPUs that have domains, those of each partition apart.
    pub(super) partitions: Vec<CpuSet>,
    chains: Vec<Rc<[RawLevel]>>,
    /// Each CPU as a set of its own.
    singles: Vec<Rc<CpuSet>>,
}

impl RawChains {
    #[doc(alias = "build_sched_domains")]
    pub(super) fn build(topology: &Topology, profile: &Profile) -> Self {
        let partitions = topology.scheduling_partitions();
        let numa = NumaLevels::new(topology, profile);
        let packages_hold_nodes = topology.units(Level::Package).iter().any(|package| {
            topology.units(Level::Node).iter().filter(|node| node.cpus.intersects(&package.cpus)).count() > 1
        });
        let with_package_level = !packages_hold_nodes;

        let mut spans = SpanCache::default();
        let none: Rc<[RawLevel]> = Rc::from([]);
        let mut chains = vec![Rc::clone(&none); topology.cpu_limit()];
        let mut by_core: BTreeMap<(usize, usize, usize), Rc<[RawLevel]>> = BTreeMap::new();
        for (index, cpu) in
            partitions.iter().enumerate().flat_map(|(i, set)| set.iter().map(move |cpu| (i, cpu)))
        {
            let (Some(core), Some(node)) =
                (topology.unit_of(Level::Core, cpu), topology.unit_of(Level::Node, cpu))
            else {
                continue;
            };
            let chain = by_core.entry((core, node, index)).or_insert_with(|| {
                let levels = levels(topology, profile, &numa, cpu, node, with_package_level);
                Rc::from(chain(levels, &partitions[index], &mut spans))
            });
            chains[cpu.index()] = Rc::clone(chain);
        }
        let every_cpu = (0..=u16::MAX).map(Cpu::from).take(topology.cpu_limit());
        let singles = every_cpu.map(|cpu| spans.intern(CpuSet::from(cpu))).collect();
        Self { partitions, chains, singles }
    }

    pub(super) fn of(&self, cpu: Cpu) -> &Rc<[RawLevel]> {
        &self.chains[cpu.index()]
    }

    /// The span of the domain below level `index` of the CPU: what it contributes as a group.
    pub(super) fn child_span(&self, cpu: Cpu, index: usize) -> Rc<CpuSet> {
        // A chain that has ended lower, on a host whose levels contradict each other, counts with its last.
        let chain = self.of(cpu);
        let below = index.checked_sub(1).and_then(|below| chain.get(below).or_else(|| chain.last()));
        below.map_or_else(|| Rc::clone(&self.singles[cpu.index()]), |level| Rc::clone(&level.span))
    }
}

/// One `Rc` for each distinct span: hosts with thousands of CPUs keep one copy of each, and equal spans are known by
/// their address.
#[derive(Default)]
struct SpanCache(std::collections::HashMap<CpuSet, Rc<CpuSet>>);

impl SpanCache {
    fn intern(&mut self, span: CpuSet) -> Rc<CpuSet> {
        if let Some(known) = self.0.get(&span) {
            return Rc::clone(known);
        }
        let shared = Rc::new(span.clone());
        self.0.insert(span, Rc::clone(&shared));
        shared
    }
}

/// Spans cut to the partition, each inside the next, up to the first that is the whole partition.
fn chain(levels: Vec<(Kind, Flags, CpuSet)>, partition: &CpuSet, spans: &mut SpanCache) -> Vec<RawLevel> {
    let mut chain: Vec<RawLevel> = Vec::with_capacity(levels.len());
    for (kind, flags, span) in levels {
        let mut span = span.intersection(partition);
        if let Some(child) = chain.last()
            && !child.span.is_subset(&span)
        {
            span.extend_from(&child.span);
        }
        let whole = span == *partition;
        chain.push(RawLevel { kind, flags, span: spans.intern(span) });
        if whole {
            break;
        }
    }
    chain
}

/// The levels of one CPU, lowest first, uncut.
fn levels(
    topology: &Topology,
    profile: &Profile,
    numa: &NumaLevels,
    cpu: Cpu,
    node: usize,
    with_package_level: bool,
) -> Vec<(Kind, Flags, CpuSet)> {
    let span = |level: Level| topology.span(level, cpu).cloned().unwrap_or_default();
    let common = Flags { balance_fork: true, share_llc: false, prefer_sibling: true, numa: false };
    let sharing = Flags { share_llc: true, ..common };
    let mut levels = vec![(Kind::Smt, sharing, span(Level::Core))];
    if profile.cluster_level
        && let Some(cluster) = topology.cluster_span(cpu)
    {
        levels.push((Kind::Cluster, sharing, cluster.clone()));
    }
    let node_cpus = span(Level::Node);
    levels.push((Kind::Mc, sharing, span(Level::Llc).intersection(&node_cpus)));
    if with_package_level {
        levels.push((Kind::Pkg, common, node_cpus.clone()));
    }
    if numa.valid {
        levels.push((Kind::Node, common, node_cpus));
        let limit = profile.fork_distance_limit(topology.processor());
        for (&distance, spans) in numa.distances.iter().zip(&numa.spans) {
            let flags = Flags {
                balance_fork: distance <= limit,
                share_llc: false,
                prefer_sibling: false,
                numa: true,
            };
            levels.push((Kind::Numa { distance }, flags, spans[node].clone()));
        }
    }
    levels
}

/// The NUMA levels of the distance matrix: one per distance above the smallest.
#[doc(alias = "sched_init_numa")]
struct NumaLevels {
    distances: Vec<u32>,
    /// Per level and node with CPUs, the CPUs of all nodes up to the level's distance.
    spans: Vec<Vec<CpuSet>>,
    valid: bool,
}

impl NumaLevels {
    fn new(topology: &Topology, profile: &Profile) -> Self {
        let all: Vec<usize> = (0..topology.nodes().len()).collect();
        let with_cpus = topology.cpu_nodes();
        let counted: &[usize] = if profile.cpu_nodes_only { with_cpus } else { &all };
        let pairs =
            counted.iter().flat_map(|&from| counted.iter().map(move |&to| topology.distance(from, to)));
        let mut distances: Vec<u32> = pairs.collect();
        distances.sort_unstable();
        distances.dedup();
        let valid = distances.iter().all(|distance| (10..=255).contains(distance));
        if !distances.is_empty() {
            distances.remove(0);
        }
        let within = |from: usize, distance: u32| {
            let near = with_cpus.iter().filter(|&&to| topology.distance(from, to) <= distance);
            near.fold(CpuSet::new(), |mut span, &to| {
                span.extend_from(&topology.nodes()[to].cpus);
                span
            })
        };
        let level = |&distance: &u32| with_cpus.iter().map(|&from| within(from, distance)).collect();
        Self { spans: distances.iter().map(level).collect(), distances, valid }
    }
}
