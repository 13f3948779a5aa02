//! The `machine` records of real kernels, from `testdata/ground-truth`.

use berth_model::{
    cpuset::{Cpu, CpuSet},
    topology::{Description, NodeDescription, Processor, PuDescription, Topology},
};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
};

/// What a booted kernel said of its machine and of the domains it had built.
#[derive(Debug, Deserialize)]
pub(crate) struct Machine {
    pub(crate) topology: String,
    pub(crate) kernel: String,
    pub(crate) version: String,
    nodes: Vec<NodeRecord>,
    cpus: Vec<CpuRecord>,
    pub(crate) domains: Vec<Vec<DomainRecord>>,
}

#[derive(Debug, Deserialize)]
struct NodeRecord {
    node: u32,
    cpulist: String,
    distance: String,
}

#[derive(Debug, Deserialize)]
struct CpuRecord {
    cpu: u16,
    package: String,
    smt: String,
    l3: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DomainRecord {
    pub(crate) name: String,
    pub(crate) flags: u32,
    pub(crate) imbalance_pct: u32,
    pub(crate) imb_numa_nr: u32,
    pub(crate) span: String,
    pub(crate) groups: Vec<String>,
}

impl Machine {
    /// The topology that the kernel saw. The guests are no AMD machines to it.
    pub(crate) fn topology(&self) -> Topology {
        let set = |text: &str| CpuSet::parse(text).unwrap();
        let lowest = |text: &str| set(text).first().unwrap().number();
        let node_of: BTreeMap<Cpu, u32> = self
            .nodes
            .iter()
            .flat_map(|n| set(&n.cpulist).iter().map(|cpu| (cpu, n.node)).collect::<Vec<_>>())
            .collect();
        let pus = self.cpus.iter().map(|record| PuDescription {
            cpu: Cpu::from(record.cpu),
            package: record.package.parse().unwrap(),
            node: node_of[&Cpu::from(record.cpu)],
            llc: lowest(&record.l3),
            cluster: None,
            core: lowest(&record.smt),
            capacity: 0,
        });
        let distances =
            self.nodes.iter().map(|n| n.distance.split(' ').map(|d| d.parse().unwrap()).collect());
        Topology::try_new(Description {
            pus: pus.collect(),
            nodes: self.nodes.iter().map(|n| NodeDescription { id: n.node, memory: None }).collect(),
            distances: Some(distances.collect()),
            processor: Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) },
            ..Description::default()
        })
        .unwrap()
    }
}

/// Every recorded machine, one per boot: the line of type `machine` of each file.
pub(crate) fn machines() -> Vec<Machine> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/ground-truth");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let machine = |path: std::path::PathBuf| {
        let file = flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap());
        let mut lines = BufReader::new(file).lines().map(Result::unwrap);
        let line =
            lines.find(|line| line.contains(r#""type": "machine""#) || line.contains(r#""type":"machine""#));
        serde_json::from_str(&line.unwrap()).unwrap()
    };
    let machines: Vec<Machine> = paths.into_iter().map(machine).collect();
    assert_eq!(machines.len(), 19, "one record per boot");
    machines
}
