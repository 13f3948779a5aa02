//! What a process of this host may use, as its kernel has it.

use std::fs;

use berth_model::CpuSet;

/// Where CPUs are described.
const CPUS: &str = "/sys/devices/system/cpu";

/// The CPUs and memory nodes that a process may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Reach {
    /// CPUs: all of its cpuset, unless it has bound itself.
    pub(super) cpus: CpuSet,
    /// NUMA nodes of its memory. Empty: not known.
    pub(super) memory_nodes: CpuSet,
}

impl Reach {
    /// What the containers of a pod can have at most: what its first process may use, but for CPUs that are cut off from load
    /// balancing. Where that process is not seen from here, all CPUs of the host.
    pub(super) fn of_pod(pid: u32) -> Self {
        let isolated = listed(&format!("{CPUS}/isolated")).unwrap_or_default();
        let mut reach = Self::of(pid).unwrap_or_else(|| Self {
            cpus: listed(&format!("{CPUS}/online")).unwrap_or_default(),
            memory_nodes: CpuSet::new(),
        });
        let rest = reach.cpus.difference(&isolated);
        if !rest.is_empty() {
            reach.cpus = rest;
        }
        reach
    }

    /// What a process may use. `None`: it is not seen from here.
    pub(super) fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    #[doc(alias = "Cpus_allowed_list")]
    #[doc(alias = "Mems_allowed_list")]
    fn parse(status: &str) -> Option<Self> {
        let list = |key| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            CpuSet::parse(line.trim()).ok()
        };
        let cpus = list("Cpus_allowed_list:").filter(|cpus| !cpus.is_empty())?;
        Some(Self { cpus, memory_nodes: list("Mems_allowed_list:").unwrap_or_default() })
    }
}

fn listed(file: &str) -> Option<CpuSet> {
    CpuSet::parse(fs::read_to_string(file).ok()?.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_status() {
        let set = |list: &str| CpuSet::parse(list).unwrap();
        let status = "Name:\tpause\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t0,2\n";
        assert_eq!(Reach::parse(status), Some(Reach { cpus: set("0-7"), memory_nodes: set("0,2") }));
        assert_eq!(Reach::parse("Name:\tpause\n"), None);
        assert_eq!(Reach::parse("Cpus_allowed_list:\t\n"), None);
    }

    #[test]
    fn a_pod_that_is_not_seen_could_have_every_cpu() {
        let online = listed(&format!("{CPUS}/online")).unwrap();
        let unseen = Reach::of_pod(u32::MAX);
        assert!(!unseen.cpus.is_empty() && unseen.cpus.is_subset(&online), "{unseen:?}");
        let own = Reach::of_pod(std::process::id());
        assert!(!own.cpus.is_empty() && own.cpus.is_subset(&online), "{own:?}");
    }
}
