//! Every recorded machine loads with the counts that `testdata/README.md` gives it, or is refused.

use crate::support::{Served, host_of, placement, release, small_host, topologies, topology, xml};
use berth_proto::v1::{self, topology::Source};
use std::collections::BTreeSet;

/// Packages, NUMA nodes, LLCs, cores, PUs.
type Counts = [usize; 5];

/// DIFFERENCES from the counts there, which are hwloc's: hosts without an L3 (0 there) have the next cache as LLC
/// here, and of the Opteron hwloc counts the nodes with allowed CPUs and memory only.
const MACHINES: [(&str, Counts); 24] = [
    ("amd-zen1-2s-8numa-16llc-corona.xml", [2, 8, 16, 48, 96]),
    ("amd-zen2-2s-nps1-16llc-corona-p2.xml", [2, 2, 16, 48, 96]),
    ("amd-zen3-1s-nps4-8llc-tioga.xml", [1, 4, 8, 64, 128]),
    ("amd-zen4-2s-nps1-24llc-384pu-epyc9654.xml", [2, 2, 24, 192, 384]),
    ("intel-sgi-uv-24s-24numa-384pu.xml", [24, 24, 24, 192, 384]),
    ("intel-knl-snc4-flat-8numa-272pu.xml", [1, 8, 34, 68, 272]),
    ("intel-cascadelake-ap-4numa-192pu.xml", [4, 4, 4, 96, 192]),
    ("intel-cascadelake-2s-snc2-2lm-memside-cache.xml", [2, 4, 2, 40, 80]),
    ("ibm-power9-2s-gpu-memory-only-numa.xml", [2, 8, 4, 8, 32]),
    ("arm-kunpeng920-2s-4numa-clusters-128pu.xml", [2, 4, 4, 128, 128]),
    ("intel-raptorlake-hybrid-p6e8.xml", [1, 1, 1, 14, 20]),
    ("intel-haswell-2s-offline-cpu0-node0.xml", [2, 1, 2, 17, 17]),
    ("amd-opteron-8s-cpuset-disallowed.xml", [6, 8, 10, 10, 10]),
    ("intel-1s-cxl-memory-dax.xml", [1, 1, 1, 4, 4]),
    ("synthetic-azure-hbv4-4numa-24llc-irregular-176pu.xml", [2, 4, 24, 176, 176]),
    ("seeds/turin-2s-l3-as-numa.xml", [2, 20, 20, 320, 640]),
    ("seeds/turin-2s-nps1.xml", [2, 2, 20, 320, 640]),
    ("seeds/zen3-2s-nps1.xml", [2, 2, 16, 128, 256]),
    ("seeds/zen3-2s-nps2.xml", [2, 4, 16, 128, 256]),
    ("seeds/zen3-2s-nps4.xml", [2, 8, 16, 128, 256]),
    ("seeds/zen2-2s-nps1.xml", [2, 2, 32, 128, 256]),
    ("seeds/zen2-2s-nps2.xml", [2, 4, 32, 128, 256]),
    ("seeds/zen2-2s-nps4.xml", [2, 8, 32, 128, 256]),
    ("seeds/xeon-2s-80cpu.xml", [2, 2, 2, 40, 80]),
];

const REFUSED: &str = "xml-v3-format-nvidia-dgx2.xml";

fn full(host: Option<v1::Host>) -> v1::GetTopologyRequest {
    let mut request = v1::GetTopologyRequest { host, view: 0 };
    request.set_view(v1::view::Value::Full);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn every_machine_loads_with_its_counts_and_answers() {
    let served = Served::start(&[]).await;
    for (transport, channel) in served.channels().await {
        for (name, counts) in MACHINES {
            let read = topology(&channel).get_topology(full(host_of(xml(name)))).await.unwrap().into_inner();
            let read = read.topology.unwrap();
            let online = usize::try_from(read.online_count).unwrap();
            let found = [read.packages.len(), read.nodes.len(), read.llcs.len(), read.cores.len(), online];
            assert_eq!(found, counts, "{transport} {name}");
            assert_eq!(read.source(), Source::Xml);
            let request = v1::PredictRequest {
                tasks: 8,
                host: host_of(xml(name)),
                kernel: release("6.12.95"),
                ..v1::PredictRequest::default()
            };
            let answer = placement(&channel).predict(request).await.unwrap().into_inner();
            assert_eq!(answer.prediction.unwrap().tasks.len(), 8, "{transport} {name}");
        }
    }
}

#[test]
fn no_machine_is_left_out() {
    let listed: BTreeSet<String> =
        MACHINES.iter().map(|(name, _)| (*name).to_owned()).chain([REFUSED.to_owned()]).collect();
    let mut found = BTreeSet::new();
    for (folder, prefix) in [(topologies(), ""), (topologies().join("seeds"), "seeds/")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".xml") {
                found.insert(format!("{prefix}{name}"));
            }
        }
    }
    assert_eq!(listed, found);
}

async fn read(served: &Served, host: Option<v1::Host>) -> (v1::Topology, Vec<String>) {
    let [(_, channel), _] = served.channels().await;
    let answer = topology(&channel).get_topology(full(host)).await.unwrap().into_inner();
    (answer.topology.unwrap(), answer.warnings.into_iter().map(|warning| warning.reason).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_without_cpus_are_told_from_nodes_with_the_same_cpuset() {
    let served = Served::start(&[]).await;
    let with_cpus = |topology: &v1::Topology| -> Vec<u32> {
        topology.nodes.iter().filter(|node| !node.cpus.is_empty()).map(|node| node.id).collect()
    };
    let (power9, _) = read(&served, host_of(xml("ibm-power9-2s-gpu-memory-only-numa.xml"))).await;
    assert_eq!(with_cpus(&power9), [0, 8]);
    assert!(power9.nodes.iter().all(|node| node.memory_bytes > 0));
    let (knl, warnings) = read(&served, host_of(xml("intel-knl-snc4-flat-8numa-272pu.xml"))).await;
    assert_eq!(with_cpus(&knl), [0, 1, 2, 3]);
    assert_eq!(knl.llcs[0].level, 2);
    assert!(knl.distances_assumed && warnings.iter().any(|reason| reason == "DISTANCES_ASSUMED"));
    let (opteron, warnings) = read(&served, host_of(xml("amd-opteron-8s-cpuset-disallowed.xml"))).await;
    assert_eq!(with_cpus(&opteron), [0, 1, 2, 3, 6, 7]);
    assert_eq!(opteron.offline, "4,7-11");
    assert!(warnings.iter().any(|reason| reason == "DISTANCES_ASSUMED"), "of nodes 0, 6 and 7");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_else_the_files_tell() {
    let served = Served::start(&[]).await;
    let (haswell, _) = read(&served, host_of(xml("intel-haswell-2s-offline-cpu0-node0.xml"))).await;
    assert_eq!((haswell.online.as_str(), haswell.offline.as_str()), ("4-20", "0-3,21-23"));
    assert_eq!((haswell.nodes[0].id, haswell.nodes[0].cpus.as_str()), (1, "4-20"));
    assert_eq!((haswell.cpu_vendor.as_str(), haswell.cpu_family), ("GenuineIntel", 6));
    let (raptor, _) = read(&served, host_of(xml("intel-raptorlake-hybrid-p6e8.xml"))).await;
    let kinds: Vec<&str> = raptor.core_kinds.iter().map(|kind| kind.cpus.as_str()).collect();
    assert_eq!(kinds, ["12-19", "0-11"], "the slower kind first");
    assert!(raptor.cores.iter().all(|core| !core.kind.is_empty()));
    let (snc, _) = read(&served, host_of(xml("intel-cascadelake-2s-snc2-2lm-memside-cache.xml"))).await;
    assert_eq!(snc.llcs[0].nodes, "0,2", "two nodes share an L3");
    let (corona, _) = read(&served, host_of(xml("amd-zen1-2s-8numa-16llc-corona.xml"))).await;
    assert_eq!(corona.nodes[0].distances, [10, 16, 16, 16, 32, 32, 32, 32]);
    assert_eq!((corona.threads_per_core, corona.llcs[0].bytes), (2, 8 << 20));
    let (kunpeng, _) = read(&served, host_of(xml("arm-kunpeng920-2s-4numa-clusters-128pu.xml"))).await;
    assert_eq!(kunpeng.packages[0].id, 36, "the package's own number");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_synthetic_host_has_the_numbers_of_its_description() {
    let served = Served::start(&[]).await;
    let turin = "pack:2 group:10 [numa] l3:1 core:16 pu:2(indexes=2*320:320*1)";
    let host =
        v1::Host { source: Some(v1::host::Source::Synthetic(turin.to_owned())), ..v1::Host::default() };
    let (turin, warnings) = read(&served, Some(host)).await;
    assert_eq!((turin.source(), turin.online.as_str()), (Source::Synthetic, "0-639"));
    assert_eq!(turin.nodes[19].cpus, "304-319,624-639");
    assert!(turin.distances_assumed && warnings.iter().any(|reason| reason == "DISTANCES_ASSUMED"));

    let mut host = small_host().unwrap();
    (host.offline, host.isolated, host.cpu_vendor, host.cpu_family) =
        ("7".into(), "1".into(), "AuthenticAMD".into(), 25);
    let (small, _) = read(&served, Some(host)).await;
    assert_eq!((small.online.as_str(), small.offline.as_str(), small.isolated.as_str()), ("0-6", "7", "1"));
    assert_eq!((small.cpu_vendor.as_str(), small.cpu_family), ("AuthenticAMD", 25));
}
