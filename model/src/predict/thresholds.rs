//! The numbers at which a level's answer changes, for a reader who checks it by hand.

use super::{group::TOLERATED, queue::SCALE};
use crate::{
    cpuset::CpuSet,
    domains::{Kind, Level},
    profile::{Counted, Limit, Most, NumaForkRule, Profile, StatsRule},
    topology::Topology,
};

/// A number at which placement or balancing changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threshold {
    /// What it is called.
    pub name: &'static str,
    /// The number.
    pub value: u32,
    /// What happens at it, as a sentence.
    pub meaning: &'static str,
}

/// The thresholds of a level under a mask. A level that vanishes has none.
pub fn thresholds(topology: &Topology, profile: &Profile, level: &Level, allowed: &CpuSet) -> Vec<Threshold> {
    let Some(local) = level.groups.first().filter(|_| level.vanishes.is_none()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut add = |name, value, meaning| found.push(Threshold { name, value, meaning });
    let count = |cpus: usize| u32::try_from(cpus).unwrap_or(u32::MAX);
    let (weight, span) = (count(local.cpus.len()), count(level.span.len()));
    if let Kind::Numa { .. } = level.kind {
        add(
            "fork_distance_limit",
            profile.fork_distance_limit(topology.processor()),
            "Beyond this NUMA distance a level takes no part in placing new tasks.",
        );
        if level.flags.balance_fork {
            let own = count(local.cpus.intersection_len(allowed));
            for (name, value, meaning) in fork(profile.numa_fork, span, level.imb_numa_nr, own) {
                add(name, value, meaning);
            }
        }
        balancing(profile, level, weight, span, &mut add);
    }
    let margin = SCALE * level.imbalance_pct.saturating_sub(100) / 100;
    let by_load = profile.numa_fork == NumaForkRule::ByLoad;
    if level.flags.balance_fork && by_load {
        add(
            "load_margin",
            margin,
            "Loads per CPU that differ by less are as good as equal: a new task stays at a NUMA level, and goes by the average load below; 1024 is one task for each CPU.",
        );
    }
    if level.flags.balance_fork && !by_load {
        let (spare, meaning) = match profile.stats {
            StatsRule::All => (
                weight,
                "While fewer tasks run in it than this, forbidden CPUs included, the local group has capacity to spare.",
            ),
            StatsRule::Allowed => (
                weight,
                "While fewer tasks than this run on its allowed CPUs, the local group has capacity to spare: its forbidden CPUs count as room.",
            ),
            StatsRule::AllowedWhole => (
                count(local.cpus.intersection_len(allowed)),
                "While fewer tasks than this run on its allowed CPUs, the local group has capacity to spare.",
            ),
        };
        add("spare_below", spare, meaning);
        add(
            "busy_margin",
            margin,
            "Between two busy groups a new task stays unless the other's load per CPU is lower by more than this; 1024 is one task for each CPU.",
        );
    }
    add(
        "balance_interval_ms",
        span,
        "Idle, it balances every so many milliseconds, and up to twice as rarely while there is nothing to do.",
    );
    found
}

type Told = (&'static str, u32, &'static str);

/// When a NUMA level keeps a new task although another group has more idle CPUs.
fn fork(rule: NumaForkRule, span: u32, imb_numa_nr: u32, own: u32) -> Vec<Told> {
    const BELOW: &str = "fork_stays_below";
    const STAYS: &str = "While fewer tasks than this run in the local group, a new task stays there.";
    let narrowed = imb_numa_nr.min(own);
    let adjusted = |limit: u32| {
        vec![
            (
                "fork_tolerates_below",
                limit,
                "While fewer tasks than this run in the local group, it may have some idle CPUs less than another and still keep a new task.",
            ),
            ("fork_tolerated_idle", TOLERATED, "So many idle CPUs less it may have then."),
        ]
    };
    match rule {
        NumaForkRule::ByLoad => Vec::new(),
        NumaForkRule::AnyIdle => vec![(
            "fork_stays_while_idle",
            1,
            "While at least so many CPUs of the local group idle, allowed or not, a new task stays there.",
        )],
        NumaForkRule::Span25 => vec![(BELOW, span >> 2, STAYS)],
        NumaForkRule::Less | NumaForkRule::PlusOneNotMore => vec![(BELOW, imb_numa_nr, STAYS)],
        NumaForkRule::NotMore => vec![(BELOW, imb_numa_nr + 1, STAYS)],
        NumaForkRule::PlusOneLess => vec![(BELOW, imb_numa_nr.saturating_sub(1), STAYS)],
        NumaForkRule::PlusOneLessAllowed => vec![(BELOW, narrowed.saturating_sub(1), STAYS)],
        NumaForkRule::PlusOneNotMoreAllowed => vec![(BELOW, narrowed, STAYS)],
        NumaForkRule::Adjusted => adjusted(imb_numa_nr),
        NumaForkRule::AdjustedAllowed => adjusted(narrowed),
    }
}

/// What load balancing leaves alone.
fn balancing(
    profile: &Profile,
    level: &Level,
    weight: u32,
    span: u32,
    add: &mut impl FnMut(&'static str, u32, &'static str),
) {
    let Some(tolerance) = profile.balance.tolerance() else { return };
    let limit = tolerance.limit(weight, span, level.imb_numa_nr);
    let limit = if tolerance.inclusive { limit + 1 } else { limit };
    let meaning = match (tolerance.counted, tolerance.limit) {
        (Counted::Busiest, Limit::GroupQuarter) => {
            "While fewer tasks than this run in a group as large as the local one, balancing leaves a small difference alone."
        }
        (Counted::Busiest, _) => {
            "While fewer tasks than this run in the busiest group, balancing leaves a small difference alone."
        }
        (Counted::WithNew, _) => {
            "While fewer tasks than this, one more included, run in the group that balances, it leaves a small difference alone."
        }
    };
    add("balance_tolerates_below", limit, meaning);
    let most = match tolerance.most {
        Most::Any => return,
        Most::Of(most) => most,
        Most::ImbNuma => level.imb_numa_nr,
    };
    let most = if tolerance.halved_first { 2 * most + 1 } else { most };
    add("balance_tolerated", most, "A difference of up to so many tasks or idle CPUs is small.");
}
