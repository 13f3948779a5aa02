//! What tells that the host is no longer as it was read: a dozen small files, cheap enough to be read each second.

use super::{
    partitions::{self, Partition},
    sysfs::{cpus, text},
};
use std::path::Path;

/// CPUs and nodes that come and go, SMT, isolation, cpusets, the scheduler in charge, settings that bear on placement.
const FILES: [&str; 12] = [
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/nohz_full",
    "sys/devices/system/cpu/smt/control",
    "sys/devices/system/node/online",
    "sys/devices/system/node/has_cpu",
    "sys/fs/cgroup/cpuset.cpus.isolated",
    "sys/kernel/sched_ext/state",
    "sys/kernel/sched_ext/root/ops",
    "sys/kernel/debug/sched/features",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/sched_autogroup_enabled",
];

/// The host as those files have it. Two that are equal: nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    files: Vec<Option<String>>,
    /// The CPUs that this process may use, as its own cpuset has it.
    own: Option<String>,
    partitions: Vec<Partition>,
}

impl Marks {
    /// Reads them below `root`, which is `/` but in tests.
    pub fn read(root: &Path) -> Self {
        let online = cpus(&root.join(FILES[0])).unwrap_or_default();
        let status = text(&root.join("proc/self/status")).unwrap_or_default();
        let own = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Self {
            files: FILES.iter().map(|file| text(&root.join(file))).collect(),
            own: own.map(|cpus| cpus.trim().to_owned()),
            partitions: partitions::read(root, &online),
        }
    }
}
