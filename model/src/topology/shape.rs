//! Regular topologies from a few numbers, for tests and examples.

use super::{Description, Error, NodeDescription, Processor, PuDescription, Topology};
use crate::cpuset::{Cpu, MAX_CPUS};

/// A regular host. CPUs are numbered as Linux numbers them on servers: first threads of all cores by package, node
/// and LLC, then all second threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Packages.
    pub packages: u32,
    /// NUMA nodes in a package.
    pub nodes: u32,
    /// LLCs in a NUMA node.
    pub llcs: u32,
    /// Cores in an LLC.
    pub cores: u32,
    /// Threads of a core.
    pub threads: u32,
    /// Distance between nodes of one package.
    pub near: u32,
    /// Distance between nodes of different packages.
    pub far: u32,
    /// Who made the processor.
    pub processor: Processor,
}

impl Default for Shape {
    /// One package with one node, one LLC, one core and one thread; distances 12 and 32; an AMD EPYC.
    fn default() -> Self {
        Self {
            packages: 1,
            nodes: 1,
            llcs: 1,
            cores: 1,
            threads: 1,
            near: 12,
            far: 32,
            processor: Processor { vendor: "AuthenticAMD".to_owned(), family: Some(0x19) },
        }
    }
}

impl Shape {
    /// The description of this host.
    pub fn describe(&self) -> Description {
        let first_threads = self.packages * self.nodes * self.llcs * self.cores;
        let count = (first_threads * self.threads).min(MAX_CPUS);
        let pus = (0..count).filter_map(|number| {
            let core = number % first_threads;
            let llc = core / self.cores;
            let node = llc / self.llcs;
            let package = node / self.nodes;
            Some(PuDescription {
                cpu: Cpu::try_new(number)?,
                package,
                node,
                llc,
                cluster: None,
                core,
                capacity: 0,
            })
        });
        let node_ids = 0..self.packages * self.nodes;
        let distance = |from: u32, to: u32| match (from == to, from / self.nodes == to / self.nodes) {
            (true, _) => super::LOCAL_DISTANCE,
            (_, true) => self.near,
            _ => self.far,
        };
        Description {
            pus: pus.collect(),
            nodes: node_ids.clone().map(|id| NodeDescription { id, memory: None }).collect(),
            distances: Some(
                node_ids.clone().map(|a| node_ids.clone().map(|b| distance(a, b)).collect()).collect(),
            ),
            processor: self.processor.clone(),
            ..Description::default()
        }
    }

    /// The topology of this host.
    ///
    /// # Errors
    ///
    /// [`Error::NoCpus`] if one of the numbers is 0.
    pub fn topology(&self) -> Result<Topology, Error> {
        Topology::try_new(self.describe())
    }
}
