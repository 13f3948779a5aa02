//! From what ingest read to a [`Topology`].

use super::{LOCAL_DISTANCE, Level, Node, Place, Processor, REMOTE_DISTANCE, Topology, Unit};
use crate::cpuset::{Cpu, CpuSet};
use std::collections::BTreeMap;

/// The most NUMA nodes that a host can have.
#[doc(alias = "MAX_NUMNODES")]
pub const MAX_NODES: usize = 1024;

/// What is known of one online CPU. The numbers are keys: CPUs with an equal key share the unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PuDescription {
    /// The CPU.
    pub cpu: Cpu,
    /// Its package's operating system number.
    pub package: u32,
    /// Its NUMA node's operating system number.
    pub node: u32,
    /// Its LLC; any number that is unique on the host.
    pub llc: u32,
    /// Its cluster (x86: L2), where known; any number that is unique on the host.
    pub cluster: Option<u32>,
    /// Its core; any number that is unique on the host.
    pub core: u32,
    /// The kind of core on a hybrid host, or a relative capacity; equal everywhere on ordinary hosts.
    pub capacity: u32,
}

/// What is known of one NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDescription {
    /// The operating system's number.
    pub id: u32,
    /// Its memory in bytes, where known.
    pub memory: Option<u64>,
}

/// What ingest read of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// The online CPUs, in any order.
    pub pus: Vec<PuDescription>,
    /// Every online NUMA node, memory-only ones too, in any order. Nodes that only CPUs name are added.
    pub nodes: Vec<NodeDescription>,
    /// One row per node in the order of `nodes`, one distance per node in the row; `None` if not reported.
    pub distances: Option<Vec<Vec<u32>>>,
    /// CPUs that exist and are offline.
    pub offline: CpuSet,
    /// CPUs that are taken out of scheduling domains.
    pub isolated: CpuSet,
    /// Sets of CPUs with scheduling domains of their own (cpuset partitions).
    pub partitions: Vec<CpuSet>,
    /// CPUs that this process' cpuset does not allow.
    pub disallowed: CpuSet,
    /// Who made the processor.
    pub processor: Processor,
}

/// Why a description is no topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No CPU is online.
    #[error("the topology has no online CPU")]
    NoCpus,
    /// A CPU is described twice.
    #[error("CPU {0} is described twice")]
    DuplicateCpu(Cpu),
    /// A NUMA node is described twice.
    #[error("NUMA node {0} is described twice")]
    DuplicateNode(u32),
    /// More NUMA nodes than any kernel is built for.
    #[error("the topology has {0} NUMA nodes; at most {MAX_NODES} are taken, as many as Linux is built for")]
    TooManyNodes(usize),
    /// Two partitions share CPUs.
    #[error("CPUs {0} are in two partitions; expected each CPU in one at most")]
    OverlappingPartitions(CpuSet),
    /// The distance matrix does not have a row and a column for each node.
    #[error("the distance matrix is not {nodes} x {nodes}, one row and one column for each NUMA node")]
    DistanceShape {
        /// How many nodes there are.
        nodes: usize,
    },
}

impl Topology {
    /// Makes a topology of what was read.
    ///
    /// # Errors
    ///
    /// No online CPU, a CPU or node described twice, too many nodes, partitions that overlap, or a distance matrix of
    /// another size than the nodes.
    pub fn try_new(description: Description) -> Result<Self, Error> {
        let Description { mut pus, nodes, distances, offline, isolated, partitions, disallowed, processor } =
            description;
        pus.sort_by_key(|pu| pu.cpu);
        if let Some(pair) = pus.windows(2).find(|pair| pair[0].cpu == pair[1].cpu) {
            return Err(Error::DuplicateCpu(pair[0].cpu));
        }
        let last = pus.last().ok_or(Error::NoCpus)?.cpu;
        let online: CpuSet = pus.iter().map(|pu| pu.cpu).collect();

        let mut partitioned = CpuSet::new();
        for partition in &partitions {
            let twice = partitioned.intersection(partition);
            if !twice.is_empty() {
                return Err(Error::OverlappingPartitions(twice));
            }
            partitioned.extend_from(partition);
        }

        let packages = Grouping::by_key(&pus, |pu| pu.package);
        let cpu_nodes = Grouping::by_key(&pus, |pu| pu.node);
        let llcs = Grouping::by_lowest_cpu(&pus, |pu| pu.llc);
        let cores = Grouping::by_lowest_cpu(&pus, |pu| pu.core);
        // A host where some CPU has no cluster has no cluster level.
        let clusters = if pus.iter().all(|pu| pu.cluster.is_some()) {
            Grouping::by_lowest_cpu(&pus, |pu| pu.cluster.unwrap_or(pu.core))
        } else {
            Grouping::default()
        };

        let mut places = vec![None; last.index() + 1];
        for (i, pu) in pus.iter().enumerate() {
            places[pu.cpu.index()] = Some(Place {
                units: [packages.of[i], cpu_nodes.of[i], llcs.of[i], cores.of[i]],
                cluster: clusters.of.get(i).copied().unwrap_or(u32::MAX),
            });
        }

        let distances_assumed = distances.is_none();
        let (nodes, distances) = join_nodes(nodes, distances, &cpu_nodes.units)?;
        let index_of = |id: u32| nodes.iter().position(|node| node.id == id);
        let cpu_node_indices = cpu_nodes.units.iter().filter_map(|unit| index_of(unit.id)).collect();

        Ok(Self {
            offline: offline.difference(&online),
            isolated: isolated.intersection(&online),
            partitions: partitions
                .iter()
                .map(|partition| partition.intersection(&online))
                .filter(|partition| !partition.is_empty())
                .collect(),
            disallowed: disallowed.intersection(&online),
            asymmetric: pus.iter().any(|pu| pu.capacity != pus[0].capacity),
            online,
            places,
            units: [packages.units, cpu_nodes.units, llcs.units, cores.units],
            clusters: clusters.units.into_iter().map(|unit| unit.cpus).collect(),
            nodes,
            cpu_nodes: cpu_node_indices,
            distances,
            distances_assumed,
            processor,
        })
    }

    /// What this topology was made of: a start for a changed one.
    pub fn describe(&self) -> Description {
        let unit = |level: Level, cpu: Cpu| {
            let unit = self.unit_of(level, cpu).map(|index| &self.units(level)[index]);
            unit.map_or(0, |unit| unit.id)
        };
        let pus = self.online.iter().map(|cpu| PuDescription {
            cpu,
            package: unit(Level::Package, cpu),
            node: unit(Level::Node, cpu),
            llc: unit(Level::Llc, cpu),
            core: unit(Level::Core, cpu),
            cluster: self.cluster_span(cpu).and_then(CpuSet::first).map(Cpu::number),
            capacity: if self.asymmetric { cpu.number() } else { 0 },
        });
        let count = self.nodes.len();
        let rows = (0..count).map(|from| (0..count).map(|to| self.distance(from, to)).collect());
        Description {
            pus: pus.collect(),
            nodes: self.nodes.iter().map(|n| NodeDescription { id: n.id, memory: n.memory }).collect(),
            distances: (!self.distances_assumed).then(|| rows.collect()),
            offline: self.offline.clone(),
            isolated: self.isolated.clone(),
            partitions: self.partitions.clone(),
            disallowed: self.disallowed.clone(),
            processor: self.processor.clone(),
        }
    }
}

/// The CPUs of a description grouped by one key.
#[derive(Default)]
struct Grouping {
    units: Vec<Unit>,
    /// For each PU of the description, the index of its unit.
    of: Vec<u32>,
}

impl Grouping {
    /// Units in the order of their keys, which are their numbers.
    fn by_key(pus: &[PuDescription], key: impl Fn(&PuDescription) -> u32) -> Self {
        let mut sets: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for pu in pus {
            sets.entry(key(pu)).or_default().insert(pu.cpu);
        }
        let ranks: BTreeMap<u32, u32> = sets.keys().copied().zip(0..).collect();
        Self {
            of: pus.iter().filter_map(|pu| ranks.get(&key(pu)).copied()).collect(),
            units: sets.into_iter().map(|(id, cpus)| Unit { id, cpus }).collect(),
        }
    }

    /// Units in the order of their lowest CPU, numbered in that order. `pus` must be in ascending order.
    fn by_lowest_cpu(pus: &[PuDescription], key: impl Fn(&PuDescription) -> u32) -> Self {
        let mut ranks: BTreeMap<u32, u32> = BTreeMap::new();
        let mut next = 0..;
        for pu in pus {
            ranks.entry(key(pu)).or_insert_with(|| next.next().unwrap_or(u32::MAX));
        }
        Self::by_key(pus, |pu| ranks.get(&key(pu)).copied().unwrap_or(u32::MAX))
    }
}

/// Nodes by number with the CPUs they have, and their distances in that order.
fn join_nodes(
    described: Vec<NodeDescription>,
    distances: Option<Vec<Vec<u32>>>,
    with_cpus: &[Unit],
) -> Result<(Vec<Node>, Vec<u32>), Error> {
    let count = described.len();
    if let Some(rows) = &distances
        && (rows.len() != count || rows.iter().any(|row| row.len() != count))
    {
        return Err(Error::DistanceShape { nodes: count });
    }
    let row_of: BTreeMap<u32, usize> = described.iter().map(|node| node.id).zip(0..).collect();
    if row_of.len() != count {
        let twice = described.iter().enumerate().find(|(i, node)| row_of.get(&node.id) != Some(i));
        return Err(Error::DuplicateNode(twice.map_or(0, |(_, node)| node.id)));
    }
    let mut nodes: BTreeMap<u32, Node> = described
        .into_iter()
        .map(|node| (node.id, Node { id: node.id, cpus: CpuSet::new(), memory: node.memory }))
        .collect();
    for unit in with_cpus {
        let node =
            nodes.entry(unit.id).or_insert_with(|| Node { id: unit.id, cpus: CpuSet::new(), memory: None });
        node.cpus = unit.cpus.clone();
    }
    let nodes: Vec<Node> = nodes.into_values().collect();
    let given = |from: u32, to: u32| {
        let rows = distances.as_ref()?;
        Some(rows[*row_of.get(&from)?][*row_of.get(&to)?])
    };
    let assumed = |from: u32, to: u32| {
        if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE }
    };
    if nodes.len() > MAX_NODES {
        return Err(Error::TooManyNodes(nodes.len()));
    }
    let pairs = nodes.iter().flat_map(|from| nodes.iter().map(|to| (from.id, to.id)));
    let matrix = pairs.map(|(from, to)| given(from, to).unwrap_or_else(|| assumed(from, to))).collect();
    Ok((nodes, matrix))
}
