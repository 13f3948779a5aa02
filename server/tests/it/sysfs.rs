//! What sysfs knows better than hwloc, from a tree that the test writes.

use berth_model::{
    cpuset::{Cpu, CpuSet},
    topology::{NodeDescription, PuDescription},
};
use berth_server::ingest::{Facts, Hardware, Settings, kernel::Kernel, sysfs::Sysfs};
use std::{fs, path::Path};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Eight CPUs of which 6 is offline, on nodes 0 and 8; node 2 is memory that lies near to node 0.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("sys/devices/system/cpu/present", "0-7\n"),
        ("sys/devices/system/cpu/online", "0-5,7\n"),
        ("sys/devices/system/cpu/isolated", "3\n"),
        ("sys/devices/system/cpu/nohz_full", "(null)\n"),
        ("sys/fs/cgroup/cpuset.cpus.isolated", "5\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n"),
        ("sys/devices/system/node/online", "0,2,8\n"),
        ("sys/devices/system/node/has_cpu", "0,8\n"),
        ("sys/devices/system/node/node0/cpulist", "0-3\n"),
        ("sys/devices/system/node/node0/distance", "10 17 32\n"),
        ("sys/devices/system/node/node2/cpulist", "\n"),
        ("sys/devices/system/node/node2/distance", "17 10 34\n"),
        ("sys/devices/system/node/node8/cpulist", "4-5,7\n"),
        ("sys/devices/system/node/node8/distance", "32 34 10\n"),
        ("sys/kernel/sched_ext/state", "enabled\n"),
        ("sys/kernel/sched_ext/root/ops", "lavd\n"),
        ("proc/sys/kernel/osrelease", "6.8.0-45-generic\n"),
        ("proc/sys/kernel/version", "#45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024\n"),
        ("proc/sys/kernel/numa_balancing", "2\n"),
        ("proc/version_signature", "Ubuntu 6.8.0-45.45-generic 6.8.12\n"),
        ("proc/cmdline", "root=/dev/vda nohz_full=4-5\n"),
        ("proc/cpuinfo", "processor: 0\nvendor_id : AuthenticAMD\ncpu family : 25\n"),
    ] {
        write(root.path(), file, text);
    }
    root
}

/// What hwloc would make of it: node 2 has node 0's CPUs, and there are no distances.
fn hardware() -> Hardware {
    let online = CpuSet::parse("0-5,7").unwrap();
    let pus = online.iter().map(|cpu| PuDescription {
        cpu,
        package: 0,
        node: if cpu < Cpu::from(4) { 2 } else { 8 },
        llc: 0,
        cluster: None,
        core: cpu.number(),
        capacity: 0,
    });
    let mut hardware = Hardware { description: Default::default(), facts: Facts::default() };
    hardware.description.pus = pus.collect();
    hardware.description.nodes =
        [0, 2, 8].map(|id| NodeDescription { id, memory: Some(u64::from(id) + 1) }).into();
    hardware
}

#[test]
fn the_kernel_tells_which_nodes_have_cpus() {
    let root = tree();
    let mut hardware = hardware();
    Sysfs::read(root.path()).correct(&mut hardware);
    let description = &hardware.description;
    let nodes: Vec<u32> = description.pus.iter().map(|pu| pu.node).collect();
    assert_eq!(nodes, [0, 0, 0, 0, 8, 8, 8]);
    assert_eq!(description.distances, Some(vec![vec![10, 17, 32], vec![17, 10, 34], vec![32, 34, 10]]));
    assert_eq!(description.nodes[1], NodeDescription { id: 2, memory: Some(3) });
    assert_eq!(
        (description.offline.to_string(), description.isolated.to_string()),
        ("6".to_owned(), "3,5".to_owned())
    );
    assert!(hardware.facts.nohz_full.is_empty(), "`(null)` is no list");
}

#[test]
fn a_missing_tree_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut corrected = hardware();
    Sysfs::read(root.path()).correct(&mut corrected);
    assert_eq!(corrected, hardware());
}

#[test]
fn the_kernel_and_its_settings() {
    let root = tree();
    let kernel = Kernel::read(root.path());
    assert_eq!(kernel.identity.version_signature.as_deref(), Some("Ubuntu 6.8.0-45.45-generic 6.8.12"));
    assert_eq!(
        (kernel.identity.release.as_str(), kernel.cpu_vendor.as_str()),
        ("6.8.0-45-generic", "AuthenticAMD")
    );
    let settings = Settings::read(root.path());
    assert_eq!(
        (settings.numa_balancing, settings.autogroup, settings.cpuset_version),
        (Some(true), None, Some(2))
    );
    assert_eq!((settings.isolcpus.as_deref(), settings.nohz_full.as_deref()), (Some(""), Some("4-5")));
    assert_eq!(settings.sched_ext.as_deref(), Some("lavd"));
    assert!(settings.is_foreign_scheduler());
}
