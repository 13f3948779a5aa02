//! Hosts that aren't here, through the whole path.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use berth_model::CpuSet;
use berth_proto::kubelet::device_plugin::Device;

use super::{CPU, held, kubelet::Kubelet, plugin::Plugin};
use crate::{berth::machine, berthd::Berthd};

fn of_xml(name: &str) -> Berthd {
    let xml = machine(name);
    let flags = ["--no-tcp", "--kernel", "6.12.95", "--topology-xml", xml.to_str().expect("it is text")];
    Berthd::start_with(flags)
}

fn nodes(device: &Device) -> Vec<i64> {
    device.topology.iter().flat_map(|topology| &topology.nodes).map(|node| node.id).collect()
}

/// 20 NUMA nodes, which are caches: a kubelet that is told of each would never be done with aligning.
#[test]
fn beyond_eight_nodes_devices_are_their_packages() {
    let (server, kubelet) = (of_xml("seeds/turin-2s-l3-as-numa.xml"), Kubelet::start());
    let plugin = Plugin::start(&kubelet, &server.address(), ["--policy", "compact"]);
    let devices = kubelet.wait_for(CPU, |devices| devices.len() == 320);
    let told: BTreeSet<Vec<i64>> = devices.iter().map(nodes).collect();
    assert_eq!(told, BTreeSet::from([(0..10).collect(), (10..20).collect()]));
    // Berth knows better where they are: sixteen cores in one cache.
    let pod = kubelet.admit("pod", "main", (CPU, 16), &[]).expect("there is room");
    plugin.says(0, "are held (h");
    let holds = held(&server);
    let cpus = CpuSet::parse(holds[0]["cpus"].as_str().expect("a list")).expect("a list");
    assert_eq!((pod.devices.len(), cpus.len()), (16, 32));
    let caches: BTreeSet<u32> = cpus.iter().map(|cpu| cpu.number() % 320 / 16).collect();
    assert_eq!(caches.len(), 1, "{cpus}");
    drop(plugin);
    for (flag, expected) in [("node", 20), ("none", 1)] {
        let _plugin = Plugin::start(&kubelet, &server.address(), ["--topology", flag]);
        kubelet.wait_for(CPU, |devices| {
            devices.iter().map(nodes).collect::<BTreeSet<_>>().len() == expected
                && devices.iter().all(|device| device.health == "Healthy")
        });
    }
}

#[test]
fn caches_are_devices_too() {
    const LLC: &str = "berth.dev/llc";
    let (server, kubelet) = (of_xml("seeds/zen3-2s-nps4.xml"), Kubelet::start());
    let _plugin = Plugin::start(&kubelet, &server.address(), ["--devices", "llc", "--reserved", "0"]);
    let devices = kubelet.wait_for(LLC, |devices| devices.len() == 16);
    assert_eq!((&*devices[0].id, nodes(&devices[0]), nodes(&devices[15])), ("llc-0", vec![0], vec![7]));
    // Two that lie together; the first has seven cores and a half, and a task runs on it.
    server.berth(["hold", "--cpus", "1-7,129-135", "--ttl", "1h"]).answer();
    let pod = kubelet.admit("pod", "main", (LLC, 2), &[]).expect("there is room");
    assert!(!pod.devices.contains(&"llc-0".to_owned()), "{:?}", pod.devices);
    let of = |id: &String| devices.iter().find(|device| device.id == *id).map(nodes);
    assert_eq!(of(&pod.devices[0]), of(&pod.devices[1]), "{:?}", pod.devices);
    assert!(pod.told.envs.contains_key("BERTH_HOLD"));
}

/// Memory without CPUs, cores of two kinds, CPUs that are not there.
#[test]
fn odd_hosts_have_devices() {
    for (name, count, at) in [
        ("ibm-power9-2s-gpu-memory-only-numa.xml", 8, BTreeSet::from([vec![0], vec![8]])),
        ("intel-raptorlake-hybrid-p6e8.xml", 14, BTreeSet::from([vec![0]])),
        ("intel-haswell-2s-offline-cpu0-node0.xml", 17, BTreeSet::from([vec![1]])),
        ("intel-sgi-uv-24s-24numa-384pu.xml", 192, (0..24).map(|node| vec![node]).collect()),
    ] {
        let (server, kubelet) = (of_xml(name), Kubelet::start());
        let _plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
        let devices = kubelet.wait_for(CPU, |devices| !devices.is_empty());
        let told: BTreeSet<Vec<i64>> = devices.iter().map(nodes).collect();
        assert_eq!((devices.len(), &told), (count, &at), "{name}");
        let pod = kubelet.admit("pod", "main", (CPU, 4), &[]).expect("there is room");
        assert!(pod.told.envs.contains_key("BERTH_HOLD"), "{name}: {pod:?}");
    }
}

/// What the kernel tells of its CPUs and nodes: a tree that berthd alone is shown in place of this machine's.
struct Tree(tempfile::TempDir);

impl Tree {
    /// Packages, NUMA nodes of each, cores of each node, which share a cache. Two threads a core.
    fn new(packages: u32, nodes_each: u32, cores_each: u32) -> Self {
        let tree = Self(tempfile::tempdir().expect("there is room"));
        let nodes = packages * nodes_each;
        let cores = nodes * cores_each;
        let list = |cpus: &mut dyn Iterator<Item = u32>| {
            cpus.filter_map(berth_model::Cpu::try_new).collect::<CpuSet>()
        };
        let threads = |of: &dyn Fn(u32) -> bool| list(&mut (0..2 * cores).filter(|cpu| of(cpu % cores)));
        let all = threads(&|_| true).to_string();
        for name in ["online", "possible", "present"] {
            tree.write(&format!("cpu/{name}"), &all);
        }
        for name in ["isolated", "offline"] {
            tree.write(&format!("cpu/{name}"), "");
        }
        for name in ["online", "possible", "has_cpu", "has_memory"] {
            tree.write(&format!("node/{name}"), &format!("0-{}", nodes - 1));
        }
        let package_of = |core: u32| core / (cores / packages);
        for node in 0..nodes {
            let of_node = threads(&|core| core / cores_each == node);
            let near = |other| match (other == node, other / nodes_each == node / nodes_each) {
                (true, _) => "10",
                (_, true) => "12",
                _ => "32",
            };
            let distance: Vec<&str> = (0..nodes).map(near).collect();
            for (name, text) in [
                ("cpulist", of_node.to_string()),
                ("cpumap", of_node.to_groups()),
                ("distance", distance.join(" ")),
                ("meminfo", format!("Node {node} MemTotal: 16777216 kB\nNode {node} MemFree: 16000000 kB")),
            ] {
                tree.write(&format!("node/node{node}/{name}"), &text);
            }
        }
        for cpu in 0..2 * cores {
            let core = cpu % cores;
            let (siblings, package) =
                (threads(&|other| other == core), threads(&|other| package_of(other) == package_of(core)));
            let cache = threads(&|other| other / cores_each == core / cores_each);
            let topology = format!("cpu/cpu{cpu}/topology");
            for (name, text) in [
                ("physical_package_id", package_of(core).to_string()),
                ("core_id", core.to_string()),
                ("thread_siblings", siblings.to_groups()),
                ("core_cpus", siblings.to_groups()),
                ("core_siblings", package.to_groups()),
                ("package_cpus", package.to_groups()),
            ] {
                tree.write(&format!("{topology}/{name}"), &text);
            }
            for (name, text) in [
                ("level", "3".to_owned()),
                ("type", "Unified".to_owned()),
                ("size", "32768K".to_owned()),
                ("shared_cpu_map", cache.to_groups()),
                ("shared_cpu_list", cache.to_string()),
            ] {
                tree.write(&format!("cpu/cpu{cpu}/cache/index0/{name}"), &text);
            }
            tree.write(&format!("cpu/cpu{cpu}/online"), "1");
        }
        tree
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().expect("it is in the tree")).expect("there is room");
        // In one step, as the kernel's files change.
        let new = path.with_extension("new");
        fs::write(&new, format!("{text}\n")).expect("there is room");
        fs::rename(new, path).expect("it is there");
    }

    /// A program that shows berthd this tree, in a mount namespace of its own, and nobody else.
    fn wrapper(&self, program: &Path) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let script = format!(
            "#!/bin/sh\nexec unshare --mount sh -c 'mount --bind {tree}/cpu /sys/devices/system/cpu && \
             mount --bind {tree}/node /sys/devices/system/node && exec {program} \"$@\"' berthd \"$@\"\n",
            tree = self.0.path().display(),
            program = program.display(),
        );
        let path = self.0.path().join("berthd");
        fs::write(&path, script).expect("there is room");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        path
    }
}

/// A node of this tree: berthd reads it as it would its own host.
fn node(tree: &Tree) -> Option<(Berthd, Kubelet)> {
    let may_mount = Command::new("unshare").args(["--mount", "mount", "--bind", "/tmp", "/tmp"]).output();
    if !may_mount.is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: only root with CAP_SYS_ADMIN can show berthd another machine's files");
        return None;
    }
    let flags = ["--no-tcp", "--kernel", "6.12.95", "--sample-interval", "100ms"];
    Some((Berthd::start_as(|program| tree.wrapper(program), flags), Kubelet::start()))
}

/// CPUs go and come back; devices with them.
#[test]
fn health_follows_the_cpus() {
    let tree = Tree::new(2, 2, 4);
    let Some((server, kubelet)) = node(&tree) else { return };
    let plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
    let devices = kubelet.wait_for(CPU, |devices| devices.len() == 16);
    let of: Vec<Vec<i64>> = devices.iter().map(nodes).collect();
    assert_eq!((&of[0], &of[4], &of[8], &of[15]), (&vec![0], &vec![1], &vec![2], &vec![3]));
    let sick = |devices: &[Device]| -> Vec<String> {
        let sick = devices.iter().filter(|device| device.health != "Healthy");
        sick.map(|device| device.id.clone()).collect()
    };
    // Both threads of core 5, and one of core 6.
    tree.write("cpu/online", "0-4,7-20,22-31");
    kubelet.wait_for(CPU, |devices| sick(devices) == ["core-5"]);
    plugin.says(0, "15 of 16 devices of berth.dev/cpu are healthy");
    let pod = kubelet.admit("pod", "main", (CPU, 15), &[]).expect("there is room");
    assert!(!pod.devices.contains(&"core-5".to_owned()));
    kubelet.remove("pod");
    tree.write("cpu/online", "0-31");
    kubelet.wait_for(CPU, |devices| sick(devices).is_empty());
    // No second threads: cores are cores all the same.
    tree.write("cpu/online", "0-15");
    super::kubelet::wait(|| (server.berth(["topology", "-o", "list"]).answer() == "0-15\n").then_some(()));
    kubelet.wait_for(CPU, |devices| devices.len() == 16 && sick(devices).is_empty());
    let pod = kubelet.admit("single", "main", (CPU, 4), &[]).expect("there is room");
    let holds = held(&server);
    let hold = holds.iter().find(|hold| hold["id"] == *pod.told.envs["BERTH_HOLD"]).expect("it is held");
    let cpus = CpuSet::parse(hold["cpus"].as_str().expect("a list")).expect("a list");
    assert!(cpus.len() == 4 && cpus.last() < berth_model::Cpu::try_new(16), "{cpus}");
    // What is offline is not missed.
    super::kubelet::wait(|| (held(&server).len() == 1).then_some(()));
    plugin.says(0, "are let go");
    let said = plugin.log().len();
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(plugin.log().len(), said, "{:?}", plugin.log());
}

/// 640 CPUs on twenty nodes.
#[test]
fn a_large_host_is_read_and_given_away() {
    let tree = Tree::new(2, 10, 16);
    let Some((server, kubelet)) = node(&tree) else { return };
    kubelet.gives((2..320).chain(322..640));
    let _plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
    let devices = kubelet.wait_for(CPU, |devices| !devices.is_empty());
    assert_eq!(devices.len(), 318, "those that the kubelet has reserved were never devices");
    let told: BTreeSet<Vec<i64>> = devices.iter().map(nodes).collect();
    assert_eq!(told, BTreeSet::from([(0..10).collect(), (10..20).collect()]));
    let first = kubelet.admit("first", "main", (CPU, 16), &[]).expect("there is room");
    let second = kubelet.admit("second", "main", (CPU, 302), &[]).expect("there is room");
    assert!(first.devices.iter().all(|id| !second.devices.contains(id)));
    let held = held(&server).iter().fold(CpuSet::new(), |all, hold| {
        all.union(&CpuSet::parse(hold["cpus"].as_str().expect("a list")).expect("a list"))
    });
    assert_eq!(held.to_string(), "2-319,322-639");
}
