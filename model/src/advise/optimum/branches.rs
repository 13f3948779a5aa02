//! Packages, nodes, LLCs, cores and what else a policy counts as one tree, however they lie inside each other.

use crate::{
    advise::tree::split,
    cpuset::{Cpu, CpuSet},
    topology::{Level, Topology},
};
use std::cmp::Reverse;

/// What a set of CPUs is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Package,
    /// A node, by its index in the topology.
    Node(usize),
    /// A half of a node's LLCs, or of such a half, and so on: how often was halved.
    Half(usize),
    Llc,
    Core,
    /// Nodes no further than this from each other, by single steps.
    Cluster(u32),
}

/// CPUs that some component counts, with all that the same CPUs are.
#[derive(Debug, Clone, Default)]
pub(super) struct Branch {
    pub(super) cpus: CpuSet,
    pub(super) children: Vec<usize>,
    pub(super) package: bool,
    pub(super) node: Option<usize>,
    pub(super) half: Option<usize>,
    pub(super) llc: bool,
    pub(super) core: bool,
    /// Distance between its nodes, of those that lie in different children.
    pub(super) distance: u32,
}

/// The tree; branch 0 is the host, and each branch comes after the one above it.
#[derive(Debug)]
pub(super) struct Branches {
    pub(super) all: Vec<Branch>,
    /// Some sets cross: neither is inside the other. The later ones are left out.
    pub(super) crossing: bool,
}

impl Branches {
    /// The tree of these parts of `cpus`, with cores below them.
    pub(super) fn new(topology: &Topology, cpus: &CpuSet, mut sets: Vec<(CpuSet, Kind)>) -> Self {
        sets.extend(split(topology, Level::Core, cpus).into_iter().map(|core| (core, Kind::Core)));
        sets.sort_by_key(|(set, _)| (Reverse(set.len()), set.first()));
        let host = Branch { cpus: cpus.clone(), ..Branch::default() };
        let mut tree = Self { all: vec![host], crossing: false };
        let mut innermost = vec![0; topology.cpu_limit()];
        for (set, kind) in sets {
            tree.add(&mut innermost, set, kind);
        }
        tree
    }

    fn add(&mut self, innermost: &mut [usize], set: CpuSet, kind: Kind) {
        let Some(above) = set.first().map(|first| innermost[first.index()]) else { return };
        let is_core = matches!(kind, Kind::Core);
        if set.iter().any(|cpu| innermost[cpu.index()] != above) || (self.all[above].core && !is_core) {
            self.crossing = true;
            if is_core {
                // Each of its threads by itself.
                set.iter().for_each(|cpu| self.add(innermost, cpu.into(), kind));
            }
            return;
        }
        let is_same = self.all[above].cpus.len() == set.len();
        let index = if is_same { above } else { self.all.len() };
        if !is_same {
            set.iter().for_each(|cpu| innermost[cpu.index()] = index);
            self.all[above].children.push(index);
            let distance = if self.all[above].node.is_some() { 0 } else { self.all[above].distance };
            self.all.push(Branch { cpus: set, distance, ..Branch::default() });
        }
        let branch = &mut self.all[index];
        match kind {
            Kind::Package => branch.package = true,
            Kind::Node(node) => (branch.node, branch.distance) = (Some(node), 0),
            Kind::Half(depth) => branch.half = Some(depth),
            Kind::Llc => branch.llc = true,
            Kind::Core => branch.core = true,
            Kind::Cluster(distance) if branch.node.is_none() => branch.distance = distance,
            Kind::Cluster(_) => {}
        }
    }
}

/// Packages, nodes and LLCs.
pub(super) fn units(topology: &Topology, cpus: &CpuSet) -> Vec<(CpuSet, Kind)> {
    let mut sets: Vec<(CpuSet, Kind)> = Vec::new();
    sets.extend(split(topology, Level::Package, cpus).into_iter().map(|cpus| (cpus, Kind::Package)));
    for (index, node) in nodes(topology, cpus) {
        sets.push((node, Kind::Node(index)));
    }
    sets.extend(split(topology, Level::Llc, cpus).into_iter().map(|cpus| (cpus, Kind::Llc)));
    sets
}

/// The parts of `cpus` in each NUMA node, with its index in the topology.
pub(super) fn nodes(topology: &Topology, cpus: &CpuSet) -> impl Iterator<Item = (usize, CpuSet)> {
    let index = |cpu: Cpu| topology.unit_of(Level::Node, cpu).map(|unit| topology.cpu_nodes()[unit]);
    split(topology, Level::Node, cpus).into_iter().filter_map(move |node| Some((index(node.first()?)?, node)))
}

/// Halves, quarters and so on of each node's LLCs, in topology order.
pub(super) fn halves(topology: &Topology, cpus: &CpuSet) -> Vec<(CpuSet, Kind)> {
    let mut sets = Vec::new();
    let nodes = split(topology, Level::Node, cpus);
    let mut level: Vec<Vec<CpuSet>> = nodes.iter().map(|node| split(topology, Level::Llc, node)).collect();
    for depth in 0.. {
        level.retain(|llcs| llcs.len() > 2);
        if level.is_empty() {
            break;
        }
        level = level
            .iter()
            .flat_map(|llcs| {
                let (first, second) = llcs.split_at(llcs.len() / 2);
                [first.to_vec(), second.to_vec()]
            })
            .collect();
        let union = |llcs: &Vec<CpuSet>| llcs.iter().fold(CpuSet::new(), |all, llc| all.union(llc));
        sets.extend(level.iter().map(|llcs| (union(llcs), Kind::Half(depth))));
    }
    sets
}
