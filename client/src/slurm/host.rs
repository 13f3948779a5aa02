//! What the hooks read of this host: its processes and its CPUs.

use std::fs;

use berth_model::{Cpu, CpuSet};
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

use crate::child::stat_field;

/// Where CPUs are described.
const CPUS: &str = "/sys/devices/system/cpu";
/// So many parents up, a hook's task is found if it is one: a shell or two may stand between.
const GENERATIONS: usize = 6;

/// The parent of a process.
pub(super) fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, 4)?.try_into().ok()
}

/// Whether a process is this one's parent, or that one's, and so on.
pub(super) fn is_ancestor(pid: u32) -> bool {
    let mut own = Some(std::process::id());
    (0..GENERATIONS).any(|_| {
        own = own.and_then(parent);
        own == Some(pid)
    })
}

/// How long this process has run.
pub(super) fn age() -> Option<Duration> {
    let started = stat_field(std::process::id(), 22)?;
    let ticks = u32::try_from(clock_ticks_per_second()).ok().filter(|&ticks| ticks > 0)?;
    let started = Duration::from_millis(started.checked_mul(1000)? / u64::from(ticks));
    let now = clock_gettime(ClockId::Boottime);
    let now = Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?);
    now.checked_sub(started)
}

/// The CPUs that are online. `None`: it cannot be read.
pub(super) fn online() -> Option<CpuSet> {
    CpuSet::parse(fs::read_to_string(format!("{CPUS}/online")).ok()?.trim()).ok()
}

/// The CPUs in the order in which threads should take them: one thread of each core, then the others.
pub(super) fn cores_first(cpus: &CpuSet) -> Vec<Cpu> {
    let siblings = |cpu: Cpu| {
        let file = format!("{CPUS}/cpu{}/topology/thread_siblings_list", cpu.number());
        let read = fs::read_to_string(file).ok().and_then(|text| CpuSet::parse(text.trim()).ok());
        read.unwrap_or_else(|| std::iter::once(cpu).collect())
    };
    let mut seen = CpuSet::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for cpu in cpus {
        if seen.contains(cpu) {
            others.push(cpu);
        } else {
            first.push(cpu);
            seen.extend_from(&siblings(cpu));
        }
    }
    first.extend(others);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_parent_and_an_age() {
        let own = parent(std::process::id()).unwrap();
        assert_eq!(own, std::os::unix::process::parent_id());
        assert!(is_ancestor(own) && !is_ancestor(std::process::id()));
        let age = age().unwrap();
        assert!(age < Duration::from_secs(3600), "{age:?}");
    }

    #[test]
    fn all_cpus_come_once() {
        let online = online().unwrap();
        let order = cores_first(&online);
        assert_eq!((order.len(), order.into_iter().collect::<CpuSet>()), (online.len(), online));
    }
}
