//! NUMA nodes by distance, as a hierarchy.

use super::branches::{self, Kind};
use crate::{cpuset::CpuSet, topology::Topology};

/// Nodes in clusters within clusters: those of two nodes' narrowest common cluster are as far apart as the longest of the
/// shortest steps that lead from one to the other. This is the closest hierarchy that makes no two nodes further than
/// they are.
#[derive(Debug)]
pub(super) struct Clusters {
    sets: Vec<(CpuSet, u32)>,
    /// The shortest distance between two nodes.
    nearest: u32,
    all: CpuSet,
    /// Each distance is that of the hierarchy.
    pub(super) exact: bool,
}

impl Default for Clusters {
    /// One node, or distances that do not count.
    fn default() -> Self {
        Self { sets: Vec::new(), nearest: 0, all: CpuSet::new(), exact: true }
    }
}

impl Clusters {
    /// The clusters of the nodes that have some of the CPUs.
    pub(super) fn new(topology: &Topology, cpus: &CpuSet) -> Self {
        let nodes: Vec<(usize, CpuSet)> = branches::nodes(topology, cpus).collect();
        let distance = |a: usize, b: usize| topology.distance(nodes[a].0, nodes[b].0);
        let nearer = |a: usize, b: usize| distance(a, b).min(distance(b, a));
        let count = nodes.len();
        let pairs = || (0..count).flat_map(|a| (0..a).map(move |b| (a, b)));
        let mut steps: Vec<u32> = pairs().map(|(a, b)| nearer(a, b)).collect();
        steps.sort_unstable();
        steps.dedup();
        let mut clusters = Self {
            nearest: steps.first().copied().unwrap_or(0),
            all: cpus.clone(),
            exact: pairs().all(|(a, b)| distance(a, b) == distance(b, a)),
            ..Self::default()
        };
        // The first node of each node's cluster.
        let mut first: Vec<usize> = (0..count).collect();
        for step in steps {
            let before = first.clone();
            for (a, b) in pairs().filter(|&(a, b)| nearer(a, b) <= step) {
                let (low, high) = (first[a].min(first[b]), first[a].max(first[b]));
                if low != high {
                    first.iter_mut().filter(|first| **first == high).for_each(|first| *first = low);
                }
            }
            // What has just come together is as far apart as the step is long.
            clusters.exact &= pairs()
                .filter(|&(a, b)| before[a] != before[b] && first[a] == first[b])
                .all(|(a, b)| nearer(a, b) == step);
            for cluster in 0..count {
                let members = || (0..count).filter(|&node| first[node] == cluster);
                if members().any(|node| before[node] != cluster) {
                    let all = members().fold(CpuSet::new(), |all, node| all.union(&nodes[node].1));
                    clusters.sets.push((all, step));
                }
            }
            if first.iter().all(|&first| first == 0) {
                break;
            }
        }
        clusters
    }

    /// The clusters as sets, the narrowest first.
    pub(super) fn sets(&self) -> Vec<(CpuSet, Kind)> {
        self.sets.iter().map(|(cpus, distance)| (cpus.clone(), Kind::Cluster(*distance))).collect()
    }

    /// Whether there is no cluster but that of all.
    pub(super) fn is_flat(&self) -> bool {
        self.sets.len() < 2
    }

    /// All nodes as one cluster, none of them further from another than it is.
    pub(super) fn flat(&self) -> Vec<(CpuSet, Kind)> {
        vec![(self.all.clone(), Kind::Cluster(self.nearest))]
    }
}
