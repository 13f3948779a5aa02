//! Decisions in words and numbers, as a reader checks them.

use super::{
    by_load::{BySpare, Margins, Survey},
    group::{Candidate, Decision, GroupType, Reason, Task},
    queue::SCALE,
    state::{GroupStats, State},
};
use crate::{cpuset::Cpu, domains::View, profile::NumaForkRule};

/// Why the task stays or goes, such as `not 3 + 1 < 4; idle 62 < 64: go`.
pub(super) fn because(
    state: &State<'_>,
    domain: View<'_>,
    cpu: Cpu,
    decision: Decision,
    local: Option<&Candidate<'_>>,
    idlest: Option<&Candidate<'_>>,
) -> String {
    let to_do = if decision.stay { "stay" } else { "go" };
    let said = match (local, idlest) {
        (_, None) => "no other group has an allowed CPU".to_owned(),
        (None, Some(_)) => format!("the group of CPU {cpu} has no allowed CPU"),
        (Some(local), Some(idlest)) => compared(state, domain, cpu, decision, local, idlest),
    };
    format!("{said}: {to_do}")
}

fn compared(
    state: &State<'_>,
    domain: View<'_>,
    cpu: Cpu,
    decision: Decision,
    local: &Candidate<'_>,
    idlest: &Candidate<'_>,
) -> String {
    let rule = state.profile.numa_fork;
    match decision.reason {
        Reason::Alone | Reason::Outside | Reason::Spare | Reason::ByLoad => String::new(),
        Reason::Type => {
            format!("local is {}, idlest is {}", local.group_type().name(), idlest.group_type().name())
        }
        Reason::Marked => "both are imbalanced".to_owned(),
        Reason::Load => loads(domain, local, idlest),
        Reason::PreferredNode if decision.stay => format!("CPU {cpu} is on the preferred NUMA node"),
        Reason::PreferredNode => "the idlest group is on the preferred NUMA node".to_owned(),
        Reason::Numa => tolerance(rule, domain, local.stats, idlest.stats),
        Reason::Idle => {
            let sign = if decision.stay { ">=" } else { "<" };
            let idle = format!("idle {} {sign} {}", local.stats.idle, idlest.stats.idle);
            if domain.numa {
                format!("{}; {idle}", tolerance(rule, domain, local.stats, idlest.stats))
            } else {
                idle
            }
        }
    }
}

/// The first comparison of loads that keeps the task, or the last that does not.
fn loads(domain: View<'_>, local: &Candidate<'_>, idlest: &Candidate<'_>) -> String {
    let pct = u64::from(domain.imbalance_pct);
    let margin = u64::from(SCALE) * (pct - 100) / 100;
    let (ours, theirs) = (local.avg_load(), idlest.avg_load());
    if domain.numa && theirs + margin >= ours {
        format!("load {theirs} + {margin} >= {ours}")
    } else if theirs >= ours + margin {
        format!("load {theirs} >= {ours} + {margin}")
    } else {
        let sign = if 100 * ours <= pct * theirs { "<=" } else { ">" };
        format!("load 100 * {ours} {sign} {pct} * {theirs}")
    }
}

/// The NUMA rule with its numbers, whether it keeps the task or not.
fn tolerance(rule: NumaForkRule, domain: View<'_>, local: &GroupStats, idlest: &GroupStats) -> String {
    let (n, i, a) = (local.tasks, domain.imb_numa_nr, local.allowed);
    let holds = |holds: bool, text: String| if holds { text } else { format!("not {text}") };
    let least = i.min(a);
    let difference = local.idle.abs_diff(idlest.idle);
    let adjusted = |limit: u32, shown: String| {
        if n + 1 > limit {
            format!("{n} + 1 > {shown}, so no difference is tolerated")
        } else {
            let sign = if difference <= 2 { "<=" } else { ">" };
            format!("{n} + 1 <= {shown} and |{} - {}| {sign} 2", local.idle, idlest.idle)
        }
    };
    match rule {
        NumaForkRule::ByLoad => String::new(),
        NumaForkRule::AnyIdle => holds(local.idle > 0, format!("idle {} > 0", local.idle)),
        NumaForkRule::Span25 => {
            let limit = domain.weight >> 2;
            holds(n < limit, format!("{n} < {} >> 2 = {limit}", domain.weight))
        }
        NumaForkRule::Less => holds(n < i, format!("{n} < {i}")),
        NumaForkRule::NotMore => holds(n <= i, format!("{n} <= {i}")),
        NumaForkRule::PlusOneLess => holds(n + 1 < i, format!("{n} + 1 < {i}")),
        NumaForkRule::PlusOneNotMore => holds(n < i, format!("{n} + 1 <= {i}")),
        NumaForkRule::PlusOneLessAllowed => holds(n + 1 < least, format!("{n} + 1 < min({a}, {i})")),
        NumaForkRule::PlusOneNotMoreAllowed => holds(n < least, format!("{n} + 1 <= min({a}, {i})")),
        NumaForkRule::Adjusted => adjusted(i, i.to_string()),
        NumaForkRule::AdjustedAllowed => adjusted(least, format!("min({a}, {i})")),
    }
}

/// The same for v5.3 and v5.4.
pub(super) fn by_load_because(
    state: &State<'_>,
    domain: View<'_>,
    task: Task,
    survey: &Survey,
    margins: Margins,
) -> String {
    let Margins { load: margin, percent } = margins;
    if let Some(BySpare { decision, local, best, .. }) = survey.by_spare(state, margins, task) {
        return if decision.stay {
            format!("spare {percent} * {local} > 100 * {best}: stay")
        } else {
            format!("spare {best} > {}: go", task.exec_util.unwrap_or(0) / 2)
        };
    }
    let Some(best) = survey.best(margins) else {
        return "no other group has an allowed CPU: stay".to_owned();
    };
    let Some(local) = &survey.local else { return "the local group has no allowed CPU: go".to_owned() };
    let (ours, theirs) = (local.runnable, best.runnable);
    if domain.numa && theirs + margin >= ours {
        format!("load {theirs} + {margin} >= {ours}: stay")
    } else if theirs > ours + margin {
        format!("load {theirs} > {ours} + {margin}: stay")
    } else if ours >= theirs + margin {
        format!("load {ours} >= {theirs} + {margin}: go")
    } else if 100 * local.load < percent * best.load {
        format!("average load 100 * {} < {percent} * {}: stay", local.load, best.load)
    } else {
        format!("average load 100 * {} >= {percent} * {}: go", local.load, best.load)
    }
}

impl GroupType {
    /// The kernel's name for it, without its prefix.
    pub fn name(self) -> &'static str {
        match self {
            Self::HasSpare => "has_spare",
            Self::FullyBusy => "fully_busy",
            Self::Imbalanced => "imbalanced",
            Self::Overloaded => "overloaded",
        }
    }
}
