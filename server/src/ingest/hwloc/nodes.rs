//! NUMA nodes: which of them have CPUs, their memory and their distances.

use super::{
    Error,
    read::{Pus, cpus_of, number},
};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    topology::NodeDescription,
};
use hwlocality::{
    Topology,
    object::{TopologyObject, attributes::ObjectAttributes, distance::DistancesKind, types::ObjectType},
};
use std::collections::{BTreeMap, BTreeSet};

/// The NUMA nodes of a host.
pub(super) struct Numa {
    pub(super) nodes: Vec<NodeDescription>,
    /// The node of each CPU that names one.
    node_of: BTreeMap<Cpu, u32>,
    /// The node of all others: the kernel gives the CPUs of a node that is offline to one that is online.
    else_node: u32,
    /// In the order of `nodes`.
    pub(super) distances: Option<Vec<Vec<u32>>>,
    pub(super) without_distances: Vec<u32>,
}

impl Numa {
    pub(super) fn node_of(&self, cpu: Cpu) -> u32 {
        self.node_of.get(&cpu).copied().unwrap_or(self.else_node)
    }
}

pub(super) fn nodes(topology: &Topology, pus: &Pus<'_>) -> Result<Numa, Error> {
    let mut found = Vec::new();
    for object in topology.objects_with_type(ObjectType::NUMANode) {
        found.push(Found::of(object)?);
    }
    // hwloc gives a node without CPUs the CPUs that it is near to. The kernel puts a CPU on one node: on a plain one
    // rather than on one of a special kind of memory, on the narrowest, on the one with the lowest number.
    found.sort_by_key(|node| (node.special, node.cpus.len(), node.id));
    let mut node_of = BTreeMap::new();
    for (&cpu, pu) in pus {
        let with_object = found.iter().find(|node| node.cpus.contains(cpu)).map(|node| node.id);
        if let Some(node) = with_object.or_else(|| beyond_cpuset(pu, &found)) {
            node_of.insert(cpu, node);
        }
    }

    // Nodes that only CPUs name get no distances; hosts without nodes get node 0.
    let mut ids: BTreeSet<u32> = found.iter().map(|node| node.id).collect();
    if ids.len() != found.len() {
        return Err(Error::Impossible("two NUMA nodes of it have the same number".to_owned()));
    }
    ids.extend(node_of.values());
    if ids.is_empty() {
        ids.insert(0);
    }
    let memory: BTreeMap<u32, u64> = found.iter().filter_map(|node| Some((node.id, node.memory?))).collect();
    let told = distances(topology);
    let without_distances = match &told {
        Some(told) => ids.iter().copied().filter(|id| !told.contains_key(&(*id, *id))).collect(),
        None => Vec::new(),
    };
    let rows = |told: &Distances| {
        let distance =
            |from: u32, to: u32| told.get(&(from, to)).copied().unwrap_or_else(|| assumed(from, to));
        ids.iter().map(|&from| ids.iter().map(|&to| distance(from, to)).collect()).collect()
    };
    Ok(Numa {
        distances: told.as_ref().map(rows),
        nodes: ids.iter().map(|&id| NodeDescription { id, memory: memory.get(&id).copied() }).collect(),
        else_node: node_of.values().min().or_else(|| ids.first()).copied().unwrap_or(0),
        node_of,
        without_distances,
    })
}

fn assumed(from: u32, to: u32) -> u32 {
    if from == to { berth_model::topology::LOCAL_DISTANCE } else { berth_model::topology::REMOTE_DISTANCE }
}

struct Found {
    id: u32,
    cpus: CpuSet,
    memory: Option<u64>,
    /// It is of a kind of memory that comes beside ordinary one, such as a GPU's.
    special: bool,
}

impl Found {
    fn of(object: &TopologyObject) -> Result<Self, Error> {
        let id = number(object);
        let memory = match object.attributes() {
            Some(ObjectAttributes::NUMANode(attributes)) => attributes.local_memory().map(Into::into),
            _ => None,
        };
        Ok(Self {
            id: id.ok_or_else(|| Error::Impossible("a NUMA node of it has no number".to_owned()))?,
            cpus: cpus_of(object)?,
            memory,
            special: object.subtype().is_some_and(|name| !name.is_empty() && name != c"DRAM"),
        })
    }
}

/// A CPU whose node is outside the cpuset that the description was taken in still names it.
fn beyond_cpuset(pu: &TopologyObject, found: &[Found]) -> Option<u32> {
    let nodes = pu.complete_nodeset()?;
    let first = usize::from(nodes.first_set()?);
    let id = u32::try_from(first).ok()?;
    (!found.iter().any(|node| node.id == id)).then_some(id)
}

/// The distance from one node to another, both by number.
type Distances = BTreeMap<(u32, u32), u32>;

/// The first matrix of latencies between NUMA nodes, where there is one.
fn distances(topology: &Topology) -> Option<Distances> {
    let matrices = topology.distances_with_type(None, ObjectType::NUMANode).ok()?;
    let latencies = matrices.iter().find(|matrix| matrix.kind().contains(DistancesKind::MEANS_LATENCY))?;
    let pairs = latencies.object_distances();
    let told = pairs.filter_map(|((from, to), distance)| {
        let distance = u32::try_from(distance).unwrap_or(u32::MAX);
        Some(((number(from?)?, number(to?)?), distance))
    });
    let told: Distances = told.collect();
    (!told.is_empty()).then_some(told)
}
