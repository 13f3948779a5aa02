//! Where a task can wake: the fast path looks at the LLC of the CPU that it slept on, or of the CPU that wakes it, and
//! never leaves it.

use super::Host;
use crate::{
    cpuset::{Cpu, CpuSet},
    domains::Domains,
};

/// The CPUs that a task which sleeps on `on` can be drawn to when it wakes, its waker being on one of `wakers`, under the
/// mask `allowed`.
///
/// The search begins at the CPU that it slept on; or, where a domain that wakes from afar spans both, at the waker's if
/// the mask allows that. It ends at some allowed CPU of that CPU's LLC. If none is idle, the task goes where the search
/// began, however busy that is.
#[doc(alias = "select_task_rq_fair")]
#[doc(alias = "wake_affine")]
#[doc(alias = "select_idle_sibling")]
pub fn wakes_on(host: Host<'_>, allowed: &CpuSet, on: Cpu, wakers: &CpuSet) -> CpuSet {
    let mut reach = llc_of(host.domains, on).intersection(allowed);
    reach.insert(on);
    for waker in &wakers.intersection(allowed) {
        if !reach.contains(waker) && pulls(host.domains, waker, on) {
            reach.extend_from(&llc_of(host.domains, waker).intersection(allowed));
        }
    }
    reach
}

/// Whether waking can spread the tasks of one LLC: it has more than one allowed CPU. With a single one a task goes back
/// there however busy it is.
pub fn lone_cpus(host: Host<'_>, allowed: &CpuSet) -> CpuSet {
    let alone = |cpu: &Cpu| llc_of(host.domains, *cpu).intersection_len(allowed) <= 1;
    allowed.iter().filter(alone).collect()
}

/// Whether a waker there can draw a task that slept on `on` towards it.
#[doc(alias = "SD_WAKE_AFFINE")]
fn pulls(domains: &Domains, waker: Cpu, on: Cpu) -> bool {
    let spans_both =
        domains.of(waker).take_while(|domain| domain.flags().balance_fork).find(|d| d.span().contains(on));
    spans_both.is_some()
}

/// The CPUs that the search looks at: the widest domain that shares a cache. A CPU without one is looked at alone.
#[doc(alias = "sd_llc")]
fn llc_of(domains: &Domains, cpu: Cpu) -> CpuSet {
    let sharing = domains.of(cpu).take_while(|domain| domain.flags().share_llc).last();
    sharing.map_or_else(|| cpu.into(), |domain| domain.span().clone())
}
