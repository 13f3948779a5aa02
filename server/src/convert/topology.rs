//! A topology, to the wire.

use super::count;
use crate::{
    ingest,
    snapshot::{Machine, Snapshot},
};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    topology::{Level, Node, Topology, Unit},
};
use berth_proto::v1::{self, topology::Source};

/// The hardware; cores only if it is to be `full`.
pub(crate) fn to_wire(snapshot: &Snapshot, full: bool) -> v1::Topology {
    let Machine { topology, facts, .. } = &*snapshot.machine;
    let online = topology.online();
    let cores = topology.units(Level::Core);
    // By a request, and not read from cgroups.
    let is_described = |cpus: &&CpuSet| facts.partitions.iter().all(|known| known.cpus != **cpus);
    v1::Topology {
        source: source(facts.source).into(),
        model: facts.model.clone(),
        online: online.to_string(),
        offline: topology.offline().to_string(),
        disallowed: topology.disallowed().to_string(),
        isolated: topology.isolated().to_string(),
        nohz_full: facts.nohz_full.to_string(),
        partitions: facts
            .partitions
            .iter()
            .map(partition)
            .chain(topology.partitions().iter().filter(is_described).map(described_partition))
            .collect(),
        packages: topology.units(Level::Package).iter().map(|unit| package(topology, unit)).collect(),
        nodes: (0..topology.nodes().len()).map(|index| node(topology, index)).collect(),
        llcs: topology.units(Level::Llc).iter().map(|unit| llc(topology, facts, unit)).collect(),
        cores: if full { cores.iter().map(|unit| core(topology, facts, unit)).collect() } else { Vec::new() },
        core_kinds: facts.core_kinds.iter().map(core_kind).collect(),
        distances_assumed: topology.distances_assumed(),
        devices: Vec::new(),
        cpu_vendor: topology.processor().vendor.clone(),
        cpu_family: topology.processor().family.unwrap_or(0),
        threads_per_core: cores.iter().map(|core| count(core.cpus.len())).max().unwrap_or(0),
        online_count: count(online.len()),
    }
}

fn source(source: ingest::Source) -> Source {
    match source {
        ingest::Source::Live => Source::Live,
        ingest::Source::Xml => Source::Xml,
        ingest::Source::Synthetic => Source::Synthetic,
    }
}

fn partition(partition: &ingest::Partition) -> v1::Partition {
    let ingest::Partition { cgroup, cpus, isolated } = partition;
    v1::Partition { cgroup: cgroup.clone(), cpus: cpus.to_string(), isolated: *isolated }
}

fn package(topology: &Topology, unit: &Unit) -> v1::Package {
    v1::Package { id: unit.id, cpus: unit.cpus.to_string(), nodes: nodes_of(topology, &unit.cpus) }
}

fn node(topology: &Topology, index: usize) -> v1::NumaNode {
    let Node { id, cpus, memory } = &topology.nodes()[index];
    v1::NumaNode {
        id: *id,
        cpus: cpus.to_string(),
        package: only_unit(topology, Level::Package, cpus),
        memory_bytes: memory.unwrap_or(0),
        available_bytes: None,
        free_huge_pages: Vec::new(),
        distances: (0..topology.nodes().len()).map(|to| topology.distance(index, to)).collect(),
    }
}

fn llc(topology: &Topology, facts: &ingest::Facts, unit: &Unit) -> v1::Llc {
    let cache = unit.cpus.first().and_then(|cpu| facts.caches.get(&cpu));
    v1::Llc {
        id: unit.id,
        cpus: unit.cpus.to_string(),
        level: cache.map_or(0, |cache| cache.level),
        bytes: cache.and_then(|cache| cache.bytes).unwrap_or(0),
        nodes: nodes_of(topology, &unit.cpus),
        package: id_of(topology, Level::Package, unit.cpus.first()).unwrap_or(0),
    }
}

fn core(topology: &Topology, facts: &ingest::Facts, unit: &Unit) -> v1::Core {
    let first = unit.cpus.first();
    let kind = facts.core_kinds.iter().find(|kind| first.is_some_and(|cpu| kind.cpus.contains(cpu)));
    v1::Core {
        id: unit.id,
        cpus: unit.cpus.to_string(),
        llc: id_of(topology, Level::Llc, first).unwrap_or(0),
        node: id_of(topology, Level::Node, first),
        package: id_of(topology, Level::Package, first).unwrap_or(0),
        kind: kind.map(|kind| kind.name.clone()).unwrap_or_default(),
    }
}

fn core_kind(kind: &ingest::CoreKind) -> v1::CoreKind {
    v1::CoreKind { name: kind.name.clone(), cpus: kind.cpus.to_string(), performance: kind.performance }
}

/// The number of the CPU's unit.
pub(crate) fn id_of(topology: &Topology, level: Level, cpu: Option<Cpu>) -> Option<u32> {
    topology.unit_of(level, cpu?).and_then(|index| topology.units(level).get(index)).map(|unit| unit.id)
}

/// The number of the one unit that all these CPUs are in.
fn only_unit(topology: &Topology, level: Level, cpus: &CpuSet) -> Option<u32> {
    let first = cpus.first()?;
    topology.span(level, first).filter(|span| cpus.is_subset(span))?;
    id_of(topology, level, Some(first))
}

/// The NUMA nodes with some of these CPUs, as a list.
pub(crate) fn nodes_of(topology: &Topology, cpus: &CpuSet) -> String {
    let nodes = topology.units(Level::Node).iter().filter(|node| node.cpus.intersects(cpus));
    // A list of nodes has the form of a cpulist; no host has as many nodes as numbers fit.
    nodes.filter_map(|node| Cpu::try_new(node.id)).collect::<CpuSet>().to_string()
}

/// A partition that came with the request.
fn described_partition(cpus: &CpuSet) -> v1::Partition {
    v1::Partition { cgroup: String::new(), cpus: cpus.to_string(), isolated: false }
}
