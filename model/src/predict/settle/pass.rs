//! One pass of load balancing: one group of one domain looks for the busiest other and pulls tasks from its fullest CPU.

use super::{
    floor::{Floor, Sums},
    units::{Unit, Units},
};
use crate::{
    cpuset::Cpu,
    predict::{
        group::{GroupType, settled_type},
        queue::SCALE,
    },
    profile::{Balance, Profile},
};

/// What a pass has done.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// From which CPU to which, task by task.
    pub(super) moved: Vec<(Cpu, Cpu)>,
    /// Passes that have failed in a row.
    pub(super) failures: u32,
    /// The next pass may do more, though nothing else changes.
    pub(super) may_go_on: bool,
    /// The mark of a group was there to be seen.
    pub(super) met_mark: bool,
    /// The group whose mark was set or cleared.
    pub(super) mark_changed: Option<u32>,
    /// A busy CPU made it.
    pub(super) busy: bool,
}

/// A group as load balancing sees it: all its CPUs count, whatever any mask allows.
#[derive(Debug, Clone, Copy)]
struct Seen {
    group: u32,
    sums: Sums,
    weight: u32,
    group_type: GroupType,
}

/// What is to be pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pull {
    /// So many tasks.
    Tasks(u32),
    /// Tasks that use so much of a CPU.
    Utilisation(u64),
    /// Tasks of so much load.
    Load(u64),
}

/// Makes one pass.
#[doc(alias = "load_balance")]
#[doc(alias = "sched_balance_rq")]
pub(super) fn pass(
    floor: &mut Floor<'_>,
    profile: &Profile,
    units: &Units<'_>,
    index: usize,
    failures: u32,
    sees_mark: bool,
) -> Done {
    let unit = units.of(index);
    let mut done = Done::default();
    let Some((to, idle)) = unit.designated(floor) else { return done };
    done.busy = !idle;
    let mut attempt = Attempt { unit, profile, to, idle, sees_mark, left_out: Vec::new(), refused: false };
    // Queues of which no task may come are left out, one after the other.
    let pulled = loop {
        match attempt.pull(floor, &mut done) {
            Pulled::NoneMayCome(queue) => attempt.left_out.push(queue),
            other => break other,
        }
    };
    let mark = match pulled {
        // Of what could be pulled nothing was left that may come: set before other queues are looked at.
        _ if attempt.refused && !attempt.left_out.is_empty() => Some(true),
        Pulled::Tasks { wanted_more: true } if attempt.refused => Some(true),
        Pulled::Balanced => Some(false),
        _ => None,
    };
    if let Pulled::Nothing(queue) = pulled {
        done.failures = failures + 1;
        done.may_go_on = idle;
        // A running task is moved only after several passes in vain.
        let may_run = floor.movable(queue) > 0 && floor.allowed.contains(to);
        if done.failures > unit.patience && idle {
            done.may_go_on = may_run;
            if may_run {
                floor.shift(queue, to);
                done.moved.push((queue, to));
                done.failures = unit.patience - 1;
            }
        }
    }
    if unit.has_parent
        && let Some(on) = mark
        && floor.mark(unit.view.span, on)
    {
        done.mark_changed = Some(unit.view.span);
    }
    done
}

/// How one attempt went.
#[derive(Debug, Clone, Copy)]
enum Pulled {
    /// There is nothing to even out.
    Balanced,
    /// Tasks came; more were wanted than came, or not.
    Tasks { wanted_more: bool },
    /// No task of this queue may come.
    NoneMayCome(Cpu),
    /// This queue has a single task, which runs.
    Nothing(Cpu),
}

struct Attempt<'a> {
    unit: &'a Unit<'a>,
    profile: &'a Profile,
    to: Cpu,
    idle: bool,
    sees_mark: bool,
    left_out: Vec<Cpu>,
    /// Some task was refused because its mask does not allow the CPU.
    refused: bool,
}

impl Attempt<'_> {
    fn pull(&mut self, floor: &mut Floor<'_>, done: &mut Done) -> Pulled {
        let Some((local, busiest)) = self.busiest(floor, done) else { return Pulled::Balanced };
        let Some(pull) = self.amount(&local, &busiest) else { return Pulled::Balanced };
        let Some(queue) = self.fullest_queue(floor, busiest.group, pull) else { return Pulled::Balanced };
        if floor.tasks(queue) < 2 {
            return Pulled::Nothing(queue);
        }
        // What else runs there stays, so it cannot come.
        let waiting = floor.movable(queue).min(floor.tasks(queue) - 1);
        let target = if floor.allowed.contains(self.to) {
            Some(self.to)
        } else {
            self.refused |= waiting > 0;
            let mut others = floor.domains.groups()[local.group as usize].iter();
            others.find(|&cpu| floor.allowed.contains(cpu))
        };
        let Some(target) = target.filter(|_| waiting > 0) else { return Pulled::NoneMayCome(queue) };
        let wanted = tasks_of(pull, floor.tasks(queue));
        let moved = wanted.min(waiting);
        for _ in 0..moved {
            floor.shift(queue, target);
            done.moved.push((queue, target));
        }
        done.may_go_on = moved > 0;
        Pulled::Tasks { wanted_more: wanted > moved }
    }

    /// The CPU's own group and the busiest other, if there is something to even out.
    #[doc(alias = "find_busiest_group")]
    #[doc(alias = "sched_balance_find_src_group")]
    fn busiest(&self, floor: &Floor<'_>, done: &mut Done) -> Option<(Seen, Seen)> {
        let mut groups = self.unit.view.ring.iter().map(|&group| self.see(floor, group, done));
        let local = groups.next()?;
        let mut busiest: Option<Seen> = None;
        for seen in groups.filter(|seen| seen.sums.tasks > 0) {
            if busiest.is_none_or(|best| self.is_busier(&seen, &best)) {
                busiest = Some(seen);
            }
        }
        let busiest = busiest?;
        self.is_due(&local, &busiest).then_some((local, busiest))
    }

    fn see(&self, floor: &Floor<'_>, group: u32, done: &mut Done) -> Seen {
        let mut sums = floor.sums(group);
        for &cpu in &self.left_out {
            if floor.domains.groups()[group as usize].contains(cpu) {
                sums.tasks -= floor.tasks(cpu);
                sums.idle -= u32::from(floor.tasks(cpu) == 0);
            }
        }
        let weight = floor.domains.group_weight(group);
        let busy = weight.saturating_sub(sums.idle);
        let group_type = settled_type(sums.tasks, weight, busy, self.unit.view.imbalance_pct);
        let mut seen = Seen { group, sums, weight, group_type };
        if floor.is_marked(group) && seen.group_type < GroupType::Imbalanced {
            done.met_mark = true;
            if self.sees_mark {
                seen.group_type = GroupType::Imbalanced;
            }
        }
        seen
    }

    #[doc(alias = "update_sd_pick_busiest")]
    fn is_busier(&self, seen: &Seen, best: &Seen) -> bool {
        if seen.group_type != best.group_type {
            return seen.group_type > best.group_type;
        }
        match seen.group_type {
            GroupType::HasSpare => (seen.sums.idle, best.sums.tasks) < (best.sums.idle, seen.sums.tasks),
            GroupType::FullyBusy | GroupType::Overloaded => load(seen) > load(best),
            GroupType::Imbalanced => false,
        }
    }

    /// Whether the difference is to be evened out at all.
    fn is_due(&self, local: &Seen, busiest: &Seen) -> bool {
        match busiest.group_type {
            GroupType::Imbalanced => return true,
            other if local.group_type > other => return false,
            _ => {}
        }
        if local.group_type == GroupType::Overloaded {
            let (ours, theirs, pct) = (load(local), load(busiest), u64::from(self.unit.view.imbalance_pct));
            return theirs * 100 > ours * pct;
        }
        if self.unit.prefers_siblings && busiest.sums.tasks > local.sums.tasks + 1 {
            return true;
        }
        if busiest.group_type == GroupType::Overloaded {
            return true;
        }
        self.idle
            && !(busiest.weight > 1 && local.sums.idle <= busiest.sums.idle + 1)
            && busiest.sums.tasks > 1
    }

    /// How much is to be pulled.
    #[doc(alias = "calculate_imbalance")]
    fn amount(&self, local: &Seen, busiest: &Seen) -> Option<Pull> {
        let view = &self.unit.view;
        if busiest.group_type == GroupType::Imbalanced {
            return Some(Pull::Tasks(1));
        }
        if local.group_type == GroupType::HasSpare {
            if busiest.group_type == GroupType::Overloaded && !view.share_llc {
                let spare = u64::from(local.sums.idle) * u64::from(SCALE);
                return match (spare, self.idle) {
                    (0, true) => Some(Pull::Tasks(1)),
                    (0, false) => None,
                    (spare, _) => Some(Pull::Utilisation(spare)),
                };
            }
            let by_tasks = busiest.weight == 1 || self.unit.prefers_siblings;
            let difference = if by_tasks {
                busiest.sums.tasks.saturating_sub(local.sums.tasks)
            } else {
                local.sums.idle.saturating_sub(busiest.sums.idle)
            };
            let tasks = if view.numa {
                let at = Balance {
                    busiest: busiest.sums.tasks,
                    local: local.sums.tasks,
                    group_weight: busiest.weight,
                    domain_weight: view.weight,
                    imb_numa_nr: view.imb_numa_nr,
                };
                let tolerance = self.profile.balance.tolerance();
                tolerance.map_or(difference / 2, |tolerance| tolerance.to_move(difference, &at))
            } else {
                difference / 2
            };
            return (tasks > 0).then_some(Pull::Tasks(tasks));
        }
        let (ours, theirs) = (load(local), load(busiest));
        let weight = u64::from(local.weight + busiest.weight);
        let all = u64::from(local.sums.tasks + busiest.sums.tasks) * u64::from(SCALE) / weight.max(1);
        if ours >= theirs || ours >= all {
            return None;
        }
        let give = (theirs - all) * u64::from(busiest.weight);
        let take = (all - ours) * u64::from(local.weight);
        Some(Pull::Load(give.min(take))).filter(|pull| *pull != Pull::Load(0))
    }

    /// The fullest queue of a group; where utilisation or load is pulled, one with a task that waits.
    #[doc(alias = "find_busiest_queue")]
    #[doc(alias = "sched_balance_find_src_rq")]
    fn fullest_queue(&self, floor: &Floor<'_>, group: u32, pull: Pull) -> Option<Cpu> {
        let least = if matches!(pull, Pull::Tasks(_)) { 1 } else { 2 };
        let mut fullest: Option<Cpu> = None;
        for cpu in floor.domains.groups()[group as usize].iter().filter(|cpu| !self.left_out.contains(cpu)) {
            let tasks = floor.tasks(cpu);
            if tasks >= least && fullest.is_none_or(|best| tasks > floor.tasks(best)) {
                fullest = Some(cpu);
            }
        }
        fullest
    }
}

/// Load per CPU.
fn load(seen: &Seen) -> u64 {
    u64::from(seen.sums.tasks) * u64::from(SCALE) / u64::from(seen.weight.max(1))
}

/// How many tasks of a queue that is to be relieved.
fn tasks_of(pull: Pull, queue: u32) -> u32 {
    match pull {
        Pull::Tasks(tasks) => tasks,
        // Each of those that share a CPU uses its part of it.
        Pull::Utilisation(util) => {
            u32::try_from(util * u64::from(queue) / u64::from(SCALE)).unwrap_or(u32::MAX)
        }
        Pull::Load(load) => u32::try_from(load / u64::from(SCALE)).unwrap_or(u32::MAX).max(1),
    }
}
