//! The machines of the mailing-list reports, as shapes.

use berth_model::topology::{Processor, Shape, Topology};

/// Two packages of 64 cores in LLCs of 8, with `nodes` NUMA nodes per package (NPS).
pub(crate) fn zen3(nodes: u32) -> Topology {
    epyc(nodes, 8)
}

/// Two packages of 64 cores in LLCs of 4, with `nodes` NUMA nodes per package (NPS).
pub(crate) fn zen2(nodes: u32) -> Topology {
    epyc(nodes, 4)
}

fn epyc(nodes: u32, cores: u32) -> Topology {
    Shape { packages: 2, nodes, llcs: 64 / cores / nodes, cores, threads: 2, ..Shape::default() }
        .topology()
        .unwrap()
}

/// Two Turin 9845 with each LLC of 16 cores as a NUMA node: 20 nodes, 640 CPUs.
pub(crate) fn turin() -> Topology {
    Shape { packages: 2, nodes: 10, llcs: 1, cores: 16, threads: 2, ..Shape::default() }.topology().unwrap()
}

/// Two Xeons of 20 cores and one LLC each: 80 CPUs.
pub(crate) fn xeon() -> Topology {
    let processor = Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) };
    Shape { packages: 2, cores: 20, threads: 2, far: 21, processor, ..Shape::default() }.topology().unwrap()
}
