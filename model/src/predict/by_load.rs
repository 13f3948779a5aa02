//! The choice of a group in v5.3 and v5.4: by load per capacity, with margins, whatever the groups' types.

use super::{
    group::{Choices, Decision, Reason, Task, candidates},
    queue::SCALE,
    state::{GroupStats, State},
};
use crate::{cpuset::Cpu, domains::View};
use smallvec::SmallVec;

/// What a group is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) group: u32,
    /// The weight of its runnable tasks per capacity.
    #[doc(alias = "runnable_load_avg")]
    pub(crate) runnable: u64,
    /// Its average load per capacity.
    #[doc(alias = "load_avg")]
    pub(crate) load: u64,
    /// How much of that may be missing.
    open: u64,
}

/// How much of a difference counts at a level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Margins {
    /// Of load per capacity, in units of 1/1024 of a task for each CPU.
    pub(crate) load: u64,
    /// Of average load, in percent.
    pub(crate) percent: u64,
}

impl Margins {
    pub(crate) fn new(domain: View<'_>) -> Self {
        let over = u64::from(domain.imbalance_pct) - 100;
        Self { load: u64::from(SCALE) * over / 100, percent: 100 + over / 2 }
    }

    /// Whether a group replaces the best other one so far by its average load, although not by its runnable load.
    fn replaces_by_average(self, new: &Loaded, best: &Loaded) -> bool {
        new.runnable < best.runnable + self.load && 100 * best.load > self.percent * new.load
    }

    /// The best other group so far, once another is met: with the smallest runnable load so far beside its own average
    /// load.
    fn better(self, best: Option<Loaded>, new: Loaded) -> Loaded {
        match best {
            Some(best) if best.runnable <= new.runnable + self.load => {
                if self.replaces_by_average(&new, &best) {
                    Loaded { runnable: best.runnable, ..new }
                } else {
                    best
                }
            }
            _ => new,
        }
    }

    /// Whether the task stays; `other` has the smallest runnable load of all and the chosen group's average load.
    fn decide(self, domain: View<'_>, local: Option<&Loaded>, other: &Loaded) -> Decision {
        let Some(local) = local else { return Reason::Outside.stay_if(false) };
        let Self { load, percent } = self;
        Reason::ByLoad.stay_if(
            (domain.numa && other.runnable + load >= local.runnable)
                || other.runnable > local.runnable + load
                || (local.runnable < other.runnable + load && 100 * local.load < percent * other.load),
        )
    }
}

impl Loaded {
    fn new(group: u32, stats: &GroupStats) -> Self {
        let weight = u64::from(stats.weight.max(1));
        let runnable = u64::from(stats.tasks) * u64::from(SCALE);
        let (load, open) = (u64::from(stats.load) / weight, u64::from(stats.open_load).div_ceil(weight));
        Self { group, runnable: runnable / weight, load, open: open.min(load) }
    }

    /// With the least average load that it may have, and with the most.
    fn ends(&self) -> [Self; 2] {
        [Self { load: self.load - self.open, ..*self }, *self]
    }
}

/// The groups that may hold the task: that of the CPU, and the others in ring order.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) local: Option<Loaded>,
    pub(crate) others: Vec<Loaded>,
}

impl Survey {
    pub(crate) fn new(state: &State<'_>, domain: View<'_>, cpu: Cpu) -> Self {
        let mut survey = Self::default();
        for (candidate, is_local) in candidates(state, domain, cpu) {
            let loaded = Loaded::new(candidate.group, candidate.stats);
            if is_local { survey.local = Some(loaded) } else { survey.others.push(loaded) }
        }
        survey
    }

    /// The best other group in ring order, with the smallest runnable load that was met beside its own average load.
    pub(crate) fn best(&self, margins: Margins) -> Option<Loaded> {
        self.others.iter().fold(None, |best, new| Some(margins.better(best, *new)))
    }

    /// For an exec: whether spare capacity decides, and for which group. Ties go to the first in ring order.
    pub(crate) fn by_spare(&self, state: &State<'_>, margins: Margins, task: Task) -> Option<BySpare> {
        let util = u64::from(task.exec_util?);
        let spare = |loaded: &Loaded| u64::from(most_spare(state, loaded.group));
        let local = self.local.as_ref().map_or(0, spare);
        let (mut best, mut groups) = (0, Vec::new());
        for other in &self.others {
            match spare(other) {
                same if same == best && best > 0 => groups.push(other.group),
                more if more > best => (best, groups) = (more, vec![other.group]),
                _ => {}
            }
        }
        let by_spare = |decision: Decision| BySpare { decision, groups, local, best };
        if local > util / 2 && margins.percent * local > 100 * best {
            return Some(by_spare(Reason::Spare.stay_if(true)));
        }
        (best > util / 2).then(|| by_spare(Reason::Spare.stay_if(false)))
    }
}

/// A decision by spare capacity.
#[derive(Debug)]
pub(crate) struct BySpare {
    pub(crate) decision: Decision,
    /// Those with the most, in ring order.
    pub(crate) groups: Vec<u32>,
    pub(crate) local: u64,
    pub(crate) best: u64,
}

/// The capacity that the group's emptiest CPU has left.
fn most_spare(state: &State<'_>, group: u32) -> u32 {
    let cpus = state.domains.groups()[group as usize].iter();
    cpus.map(|cpu| SCALE.saturating_sub(state.util_of(cpu))).max().unwrap_or(0)
}

/// The group to go to, or `None` to stay where `cpu` is.
pub(super) fn pick(state: &State<'_>, domain: View<'_>, cpu: Cpu, task: Task) -> Option<u32> {
    let margins = Margins::new(domain);
    if task.exec_util.is_some() {
        let by_spare = Survey::new(state, domain, cpu).by_spare(state, margins, task);
        if let Some(BySpare { decision, groups, .. }) = by_spare {
            return groups.first().copied().filter(|_| !decision.stay);
        }
    }
    let (mut local, mut best) = (None, None);
    for (candidate, is_local) in candidates(state, domain, cpu) {
        let loaded = Loaded::new(candidate.group, candidate.stats);
        if is_local { local = Some(loaded) } else { best = Some(margins.better(best, loaded)) }
    }
    let best = best?;
    (!margins.decide(domain, local.as_ref(), &best).stay).then_some(best.group)
}

/// Every group that may be picked. Loads have blocked shares that user space does not see, and mirror images have other
/// ring orders, so any order of the ring counts.
pub(super) fn choices(state: &State<'_>, domain: View<'_>, cpu: Cpu, task: Task) -> Choices {
    let survey = Survey::new(state, domain, cpu);
    let margins = Margins::new(domain);
    let mut choices = Choices { stay: survey.others.is_empty(), groups: SmallVec::new() };
    let is_open = survey.local.iter().chain(&survey.others).any(|loaded| loaded.open > 0);
    if task.exec_util.is_some() && is_open {
        // Nor is the spare capacity known.
        return Choices { stay: true, groups: survey.others.iter().map(|other| other.group).collect() };
    }
    if let Some(BySpare { decision, groups, .. }) = survey.by_spare(state, margins, task) {
        choices.stay |= decision.stay;
        groups.into_iter().for_each(|group| choices.add(decision, group));
        return choices;
    }
    let Some(least) = survey.others.iter().map(|other| other.runnable).min() else { return choices };
    // In any order, the runnable load that is held against the local group's ends within the margin of the least.
    let mut ends: Vec<u64> = survey.others.iter().map(|other| other.runnable).collect();
    ends.retain(|&runnable| runnable <= least + margins.load);
    ends.sort_unstable();
    ends.dedup();
    // Once one with the least runnable load was met, only the average load decides: what has clearly more of it than such
    // a one loses, wherever the two stand.
    let loses = |to: &Loaded, group: &Loaded| {
        to.runnable == least && 100 * (group.load - group.open) > margins.percent * to.load
    };
    for other in survey.others.iter().filter(|other| !survey.others.iter().any(|to| loses(to, other))) {
        for &runnable in &ends {
            // It comes in by its average load, or is itself the one with this runnable load.
            if other.runnable < runnable + margins.load || other.runnable == runnable {
                for end in (Loaded { runnable, ..*other }).ends() {
                    match &survey.local {
                        Some(local) => local.ends().iter().for_each(|local| {
                            choices.add(margins.decide(domain, Some(local), &end), other.group);
                        }),
                        None => choices.add(margins.decide(domain, None, &end), other.group),
                    }
                }
            }
        }
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever order the ring has, the group that wins in it is one of the choices that any order leaves. No level has an
        /// `imbalance_pct` below 110.
        #[test]
        fn no_order_of_the_ring_is_missed(
            loads in prop::collection::vec((0u64..900, 0u64..900), 1..6), percent in 110u64..140,
        ) {
            let margins = Margins { load: 1024 * (percent - 100) / 100, percent: 100 + (percent - 100) / 2 };
            let groups: Vec<Loaded> =
                (0..).zip(&loads).map(|(group, &(runnable, load))| Loaded { group, runnable, load, open: 0 }).collect();
            let least = groups.iter().map(|group| group.runnable).min().unwrap();
            for order in orders(&groups) {
                let best = Survey { local: None, others: order.clone() }.best(margins).unwrap();
                let own = groups[best.group as usize];
                prop_assert!(best.runnable >= least && best.runnable <= least + margins.load);
                prop_assert!(own.runnable < best.runnable + margins.load || own.runnable == best.runnable);
                let beaten = groups.iter().any(|to| {
                    to.runnable == least && 100 * own.load > margins.percent * to.load
                });
                prop_assert!(!beaten, "{order:?}: {best:?}");
            }
        }
    }

    fn orders(groups: &[Loaded]) -> Vec<Vec<Loaded>> {
        if groups.is_empty() {
            return vec![Vec::new()];
        }
        let each = |index: usize| {
            let mut rest = groups.to_vec();
            let first = rest.remove(index);
            orders(&rest).into_iter().map(move |order| [vec![first], order].concat())
        };
        (0..groups.len()).flat_map(each).collect()
    }
}
