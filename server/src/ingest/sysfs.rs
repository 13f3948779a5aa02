//! What the kernel says of its own CPUs and NUMA nodes, where it knows better than hwloc: which nodes have CPUs,
//! distances, which CPUs are offline, isolated or without a tick.

use super::{
    Hardware,
    partitions::{self, Partition},
};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    topology::NodeDescription,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// What was read. A file that is missing or cannot be read says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sysfs {
    /// Nodes by number.
    pub nodes: BTreeMap<u32, Node>,
    /// CPUs that are online.
    pub online: CpuSet,
    /// CPUs that are present and not online.
    pub offline: CpuSet,
    /// CPUs cut off from load balancing, by `isolcpus=` or by an isolated cpuset partition.
    pub isolated: CpuSet,
    /// CPUs without a timer tick.
    pub nohz_full: CpuSet,
    /// Parts of the host that load balancing does not leave.
    pub partitions: Vec<Partition>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Its online CPUs; none for a node that is memory only.
    pub cpus: CpuSet,
    /// Its distance to each online node, by number ascending.
    pub distances: Vec<u32>,
}

impl Sysfs {
    /// Reads the files below `root`, which is `/` but in tests.
    pub fn read(root: &Path) -> Self {
        let cpu = root.join("sys/devices/system/cpu");
        let cgroup = root.join("sys/fs/cgroup");
        let isolated = cpus(&cpu.join("isolated")).unwrap_or_default();
        let isolated = isolated.union(&cpus(&cgroup.join("cpuset.cpus.isolated")).unwrap_or_default());
        let online = cpus(&cpu.join("online")).unwrap_or_default();
        let partitions = partitions::read(root, &online);
        // Kernels before 6.6 do not tell the root cgroup which are isolated.
        let isolated = partitions
            .iter()
            .filter(|part| part.isolated)
            .fold(isolated, |isolated, part| isolated.union(&part.cpus));
        Self {
            nodes: nodes(&root.join("sys/devices/system/node")),
            offline: cpus(&cpu.join("present")).unwrap_or_default().difference(&online),
            online,
            isolated,
            partitions,
            nohz_full: cpus(&cpu.join("nohz_full")).unwrap_or_default(),
        }
    }

    /// Puts what was read in place of what hwloc made of it.
    pub fn correct(&self, hardware: &mut Hardware) {
        let description = &mut hardware.description;
        // One that went offline while hwloc read the host.
        if description.pus.iter().any(|pu| self.online.contains(pu.cpu)) {
            description.pus.retain(|pu| self.online.contains(pu.cpu));
        }
        for pu in &mut description.pus {
            let own = self.nodes.iter().find(|(_, node)| node.cpus.contains(pu.cpu));
            if let Some((&id, _)) = own {
                pu.node = id;
            }
        }
        let online: CpuSet = description.pus.iter().map(|pu| pu.cpu).collect();
        description.offline.extend_from(&self.offline.difference(&online));
        description.isolated = self.isolated.clone();
        hardware.facts.nohz_full = self.nohz_full.clone();
        hardware.facts.partitions = self.partitions.clone();
        description.partitions = apart(&self.partitions);

        let square = self.nodes.values().all(|node| node.distances.len() == self.nodes.len());
        let named: BTreeSet<u32> = description.pus.iter().map(|pu| pu.node).collect();
        if !self.nodes.is_empty() && square && named.iter().all(|id| self.nodes.contains_key(id)) {
            let memory =
                |id| description.nodes.iter().find(|node| node.id == id).and_then(|node| node.memory);
            description.nodes =
                self.nodes.keys().map(|&id| NodeDescription { id, memory: memory(id) }).collect();
            description.distances = Some(self.nodes.values().map(|node| node.distances.clone()).collect());
            hardware.facts.nodes_without_distances = Vec::new();
        }
    }
}

/// The CPUs of each part that has scheduling domains. None at all if some CPU is in two of them: they were changed while
/// they were read.
fn apart(partitions: &[Partition]) -> Vec<CpuSet> {
    let parts: Vec<CpuSet> =
        partitions.iter().filter(|part| !part.isolated).map(|part| part.cpus.clone()).collect();
    let all = parts.iter().fold(CpuSet::new(), |all, part| all.union(part));
    let is_apart = parts.iter().map(CpuSet::len).sum::<usize>() == all.len();
    if is_apart { parts } else { Vec::new() }
}

fn nodes(folder: &Path) -> BTreeMap<u32, Node> {
    let online = cpus(&folder.join("online")).unwrap_or_default();
    // Absent on kernels without it: then a node has the CPUs that it lists.
    let has_cpu = cpus(&folder.join("has_cpu"));
    let node = |id: Cpu| {
        let own = folder.join(format!("node{id}"));
        let with_cpus = has_cpu.as_ref().is_none_or(|set| set.contains(id));
        let distances = text(&own.join("distance")).unwrap_or_default();
        let distances = distances.split_whitespace().map(str::parse).collect::<Result<_, _>>();
        Node {
            cpus: if with_cpus { cpus(&own.join("cpulist")).unwrap_or_default() } else { CpuSet::new() },
            distances: distances.unwrap_or_default(),
        }
    };
    // Node lists have the form of cpulists.
    online.iter().map(|id| (id.number(), node(id))).collect()
}

/// A file that holds a cpulist; nothing if it is missing or holds something else, such as `(null)`.
pub(super) fn cpus(path: &Path) -> Option<CpuSet> {
    CpuSet::parse(&text(path)?).ok()
}

/// A file's text without white space around it.
pub(super) fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
