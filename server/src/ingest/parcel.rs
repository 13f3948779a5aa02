//! A [`Hardware`] as bytes, from the process that runs hwloc to the daemon. Both are the same program, so the form
//! may change at will; protobuf is at hand.

use super::{Cache, CoreKind, Facts, Hardware, Source};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    topology::{Description, NodeDescription, Processor, PuDescription},
};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Parcel {
    #[prost(message, repeated, tag = "1")]
    pus: Vec<Pu>,
    #[prost(message, repeated, tag = "2")]
    nodes: Vec<Node>,
    /// Row by row; none if not told.
    #[prost(uint32, repeated, tag = "3")]
    distances: Vec<u32>,
    #[prost(string, tag = "4")]
    offline: String,
    #[prost(string, tag = "5")]
    disallowed: String,
    #[prost(string, tag = "6")]
    vendor: String,
    #[prost(uint32, optional, tag = "7")]
    family: Option<u32>,
    #[prost(string, tag = "8")]
    model: String,
    #[prost(string, tag = "9")]
    cpu_model: String,
    #[prost(message, repeated, tag = "10")]
    caches: Vec<LastLevelCache>,
    #[prost(message, repeated, tag = "11")]
    core_kinds: Vec<Kind>,
    #[prost(uint32, repeated, tag = "12")]
    nodes_without_distances: Vec<u32>,
    /// Of the library that read it.
    #[prost(string, tag = "13")]
    pub(super) hwloc_version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Pu {
    #[prost(uint32, tag = "1")]
    cpu: u32,
    #[prost(uint32, tag = "2")]
    package: u32,
    #[prost(uint32, tag = "3")]
    node: u32,
    #[prost(uint32, tag = "4")]
    llc: u32,
    #[prost(uint32, optional, tag = "5")]
    cluster: Option<u32>,
    #[prost(uint32, tag = "6")]
    core: u32,
    #[prost(uint32, tag = "7")]
    capacity: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(uint32, tag = "1")]
    id: u32,
    #[prost(uint64, optional, tag = "2")]
    memory: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct LastLevelCache {
    #[prost(uint32, tag = "1")]
    lowest_cpu: u32,
    #[prost(uint32, tag = "2")]
    level: u32,
    #[prost(uint64, optional, tag = "3")]
    bytes: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Kind {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    cpus: String,
    #[prost(uint32, optional, tag = "3")]
    performance: Option<u32>,
}

/// The bytes are no parcel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

impl Parcel {
    /// What hwloc told; isolated CPUs and those without a tick are not among it.
    pub(super) fn pack(hardware: Hardware, hwloc_version: String) -> Self {
        let Hardware { description, facts } = hardware;
        let pus = description.pus.into_iter().map(|pu| Pu {
            cpu: pu.cpu.number(),
            package: pu.package,
            node: pu.node,
            llc: pu.llc,
            cluster: pu.cluster,
            core: pu.core,
            capacity: pu.capacity,
        });
        Self {
            pus: pus.collect(),
            nodes: description
                .nodes
                .into_iter()
                .map(|node| Node { id: node.id, memory: node.memory })
                .collect(),
            distances: description.distances.into_iter().flatten().flatten().collect(),
            offline: description.offline.to_string(),
            disallowed: description.disallowed.to_string(),
            vendor: description.processor.vendor,
            family: description.processor.family,
            model: facts.model,
            cpu_model: facts.cpu_model,
            caches: facts
                .caches
                .into_iter()
                .map(|(cpu, cache)| LastLevelCache {
                    lowest_cpu: cpu.number(),
                    level: cache.level,
                    bytes: cache.bytes,
                })
                .collect(),
            core_kinds: facts
                .core_kinds
                .into_iter()
                .map(|kind| Kind {
                    name: kind.name,
                    cpus: kind.cpus.to_string(),
                    performance: kind.performance,
                })
                .collect(),
            nodes_without_distances: facts.nodes_without_distances,
            hwloc_version,
        }
    }

    pub(super) fn unpack(self, source: Source) -> Result<Hardware, Damaged> {
        let cpu = |number: u32| Cpu::try_new(number).ok_or(Damaged);
        let set = |text: &str| CpuSet::parse(text).map_err(|_| Damaged);
        let pus = self.pus.into_iter().map(|pu| {
            let cpu = cpu(pu.cpu)?;
            let (package, node, llc, core) = (pu.package, pu.node, pu.llc, pu.core);
            Ok(PuDescription { cpu, package, node, llc, cluster: pu.cluster, core, capacity: pu.capacity })
        });
        let caches = self
            .caches
            .into_iter()
            .map(|cache| Ok((cpu(cache.lowest_cpu)?, Cache { level: cache.level, bytes: cache.bytes })));
        let kinds = self.core_kinds.into_iter().map(|kind| {
            Ok(CoreKind { cpus: set(&kind.cpus)?, name: kind.name, performance: kind.performance })
        });
        let rows = self.distances.chunks(self.nodes.len().max(1)).map(<[u32]>::to_vec);
        let description = Description {
            pus: pus.collect::<Result<_, _>>()?,
            distances: (!self.distances.is_empty()).then(|| rows.collect()),
            nodes: self
                .nodes
                .into_iter()
                .map(|node| NodeDescription { id: node.id, memory: node.memory })
                .collect(),
            offline: set(&self.offline)?,
            isolated: CpuSet::new(),
            partitions: Vec::new(),
            disallowed: set(&self.disallowed)?,
            processor: Processor { vendor: self.vendor, family: self.family },
        };
        let facts = Facts {
            source,
            model: self.model,
            cpu_model: self.cpu_model,
            caches: caches.collect::<Result<_, _>>()?,
            core_kinds: kinds.collect::<Result<_, _>>()?,
            nohz_full: CpuSet::new(),
            partitions: Vec::new(),
            nodes_without_distances: self.nodes_without_distances,
        };
        Ok(Hardware { description, facts })
    }
}
