//! The most lopsided splits that load balancing lets stand.

use super::super::Host;
use crate::{
    cpuset::CpuSet,
    domains::View,
    profile::{Balance, Tolerance},
};

/// Tasks on each group of one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The groups, ascending.
    pub groups: Vec<CpuSet>,
    /// The tasks of each, the fullest first.
    pub tasks: Vec<u32>,
}

/// The most lopsided way in which `tasks`, one on a CPU, can lie over the groups of the widest NUMA level without load
/// balancing moving any between them: one group has more, the others share the rest evenly. Nothing where there is no
/// such level, a CPU would get two, or the kernel balances by load.
pub fn worst_split(host: Host<'_>, allowed: &CpuSet, tasks: u32) -> Option<Split> {
    let tolerance = host.profile.balance.tolerance()?;
    let first = allowed.first()?;
    let top = host.domains.chain(first).last().map(|&id| host.domains.view(id)).filter(|view| view.numa)?;
    let groups: Vec<CpuSet> = top.ring.iter().map(|&id| host.domains.groups()[id as usize].clone()).collect();
    let others = u32::try_from(groups.len()).ok()?.checked_sub(1).filter(|others| *others > 0)?;
    let room = groups.iter().map(|group| group.intersection_len(allowed)).min()?;
    let weight = host.domains.group_weight(*top.ring.first()?);
    let even = tasks.div_ceil(others + 1);
    let stands = |&fullest: &u32| {
        let rest = tasks - fullest;
        fullest as usize <= room && to_move(&tolerance, top, weight, fullest, rest / others) == 0
    };
    let fullest = (even..=tasks).rev().find(stands)?;
    let rest = tasks - fullest;
    let share = |i: u32| rest / others + u32::from(i < rest % others);
    Some(Split { groups, tasks: std::iter::once(fullest).chain((0..others).map(share)).collect() })
}

/// How many of the tasks of the busiest group an idle CPU of the emptiest one would pull.
fn to_move(tolerance: &Tolerance, top: View<'_>, weight: u32, busiest: u32, local: u32) -> u32 {
    let difference = busiest.saturating_sub(local);
    if difference <= 1 || busiest <= 1 {
        return 0;
    }
    let at = Balance {
        busiest,
        local,
        group_weight: weight,
        domain_weight: top.weight,
        imb_numa_nr: top.imb_numa_nr,
    };
    tolerance.to_move(difference, &at)
}
