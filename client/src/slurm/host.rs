//! What the hooks read of this host: its processes and its CPUs.

use std::fs;

use berth_model::{Cpu, CpuSet};
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

use crate::child::stat_field;

/// Where CPUs are described.
const CPUS: &str = "/sys/devices/system/cpu";
/// Caches are numbered below this.
const LARGEST_CACHE: u32 = 5;
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
    listed(&format!("{CPUS}/online"))
}

/// The CPUs in the order in which threads should take them: one thread of each core, then the others.
pub(super) fn cores_first(cpus: &CpuSet) -> Vec<Cpu> {
    let cores = parts(cpus, core_of);
    let depth = cores.iter().map(Vec::len).max().unwrap_or(0);
    (0..depth).flat_map(|thread| cores.iter().filter_map(move |core| core.get(thread).copied())).collect()
}

/// The CPUs in an order in which neighbours follow each other: threads of a core, cores of a last-level cache.
pub(super) fn neighbours(cpus: &CpuSet) -> Vec<Cpu> {
    let caches = parts(cpus, cache_of);
    caches.into_iter().flat_map(|cache| parts(&cache.into_iter().collect(), core_of)).flatten().collect()
}

/// The CPUs by parts of the host, in the order of their first CPUs. `of` tells all CPUs of the part that a CPU is in.
fn parts(cpus: &CpuSet, of: impl Fn(Cpu) -> Option<CpuSet>) -> Vec<Vec<Cpu>> {
    let (mut seen, mut parts) = (CpuSet::new(), Vec::new());
    for cpu in cpus {
        if !seen.contains(cpu) {
            let mut part = of(cpu).unwrap_or_default();
            part.insert(cpu);
            let part = part.intersection(cpus).difference(&seen);
            seen.extend_from(&part);
            parts.push(part.iter().collect());
        }
    }
    parts
}

#[doc(alias = "thread_siblings_list")]
fn core_of(cpu: Cpu) -> Option<CpuSet> {
    listed(&format!("{CPUS}/cpu{}/topology/thread_siblings_list", cpu.number()))
}

/// The largest cache that there is.
#[doc(alias = "shared_cpu_list")]
fn cache_of(cpu: Cpu) -> Option<CpuSet> {
    let file = |index| format!("{CPUS}/cpu{}/cache/index{index}/shared_cpu_list", cpu.number());
    (0..LARGEST_CACHE).rev().find_map(|index| listed(&file(index)))
}

fn listed(file: &str) -> Option<CpuSet> {
    CpuSet::parse(fs::read_to_string(file).ok()?.trim()).ok()
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
        for order in [cores_first(&online), neighbours(&online)] {
            assert_eq!((order.len(), order.into_iter().collect::<CpuSet>()), (online.len(), online.clone()));
        }
    }

    #[test]
    fn parts_are_told_by_the_host_and_cut_to_what_is_asked() {
        let set = |list: &str| CpuSet::parse(list).unwrap();
        // Two threads a core, as far apart as Linux counts them.
        let core = |cpu: Cpu| Some(set(&format!("{0},{1}", cpu.number() % 4, cpu.number() % 4 + 4)));
        let shown = |cpus| {
            let parts = parts(&set(cpus), core).into_iter();
            parts.map(|part| part.into_iter().collect::<CpuSet>().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(shown("0-7"), ["0,4", "1,5", "2,6", "3,7"]);
        assert_eq!(shown("1-2,6"), ["1", "2,6"]);
        assert_eq!(parts(&set("3,1"), |_| None).concat(), set("1,3").iter().collect::<Vec<_>>());
    }
}
