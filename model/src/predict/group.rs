//! Which group of a domain a new task goes to.

use super::{
    by_load,
    state::{GroupStats, SCALE, State},
};
use crate::{
    cpuset::Cpu,
    domains::View,
    profile::{NumaForkRule, TieRule},
};

/// How busy a group is; lower is better.
#[doc(alias = "group_type")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupType {
    /// It has capacity to spare.
    HasSpare,
    /// It is just used up.
    FullyBusy,
    /// Load balancing inside it failed because of affinity.
    Imbalanced,
    /// It has more tasks than it can serve.
    Overloaded,
}

impl GroupType {
    /// Groups of this type are told apart by their load.
    pub(super) fn compares_load(self) -> bool {
        matches!(self, Self::FullyBusy | Self::Overloaded)
    }
}

/// A group as the slow path sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) group: u32,
    pub(crate) stats: GroupStats,
    pub(crate) group_type: GroupType,
    /// Load per capacity, for the types that are told apart by it; 0 for the others.
    pub(crate) avg_load: u64,
}

impl Candidate {
    fn new(state: &State<'_>, group: u32, stats: GroupStats, imbalance_pct: u32) -> Self {
        let weight = state.weight(group, &stats);
        let group_type = classify(&stats, weight, imbalance_pct, state.profile.group_runnable);
        let avg_load = if group_type.compares_load() { u64::from(stats.load / weight.max(1)) } else { 0 };
        Self { group, stats, group_type, avg_load }
    }

    fn marked(self) -> Self {
        Self { group_type: self.group_type.max(GroupType::Imbalanced), ..self }
    }

    /// Lower is better; equal for groups that user space cannot tell apart.
    fn rank(&self) -> (GroupType, u64) {
        match self.group_type {
            GroupType::HasSpare => (self.group_type, u64::MAX - u64::from(self.stats.idle)),
            GroupType::FullyBusy | GroupType::Overloaded => (self.group_type, self.avg_load),
            GroupType::Imbalanced => (self.group_type, 0),
        }
    }

    /// Whether user space cannot tell the two apart.
    pub(super) fn ties_with(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }

    /// Whether this group replaces the best one so far.
    #[doc(alias = "update_pick_idlest")]
    fn beats(&self, best: &Self, tie: TieRule) -> bool {
        let (ours, theirs) = (self.rank(), best.rank());
        let utilisation_decides = tie == TieRule::Utilisation && self.group_type == GroupType::HasSpare;
        ours < theirs || (ours == theirs && utilisation_decides && self.stats.util < best.stats.util)
    }
}

/// The first type that fits, from the busiest down.
#[doc(alias = "group_classify")]
#[doc(alias = "group_is_overloaded")]
#[doc(alias = "group_has_capacity")]
fn classify(stats: &GroupStats, weight: u32, imbalance_pct: u32, with_runnable: bool) -> GroupType {
    if stats.tasks < weight {
        return GroupType::HasSpare;
    }
    let capacity = u64::from(weight) * u64::from(SCALE);
    let (pct, util) = (u64::from(imbalance_pct), u64::from(stats.util));
    let waits = with_runnable && capacity * pct < u64::from(stats.runnable) * 100;
    if stats.tasks > weight && (capacity * 100 < util * pct || waits) {
        GroupType::Overloaded
    } else if !waits && capacity * 100 > util * pct {
        GroupType::HasSpare
    } else {
        GroupType::FullyBusy
    }
}

/// The groups of a domain that may hold the task: the one that holds `cpu`, and the others in ring order.
struct Survey {
    local: Option<Candidate>,
    others: Vec<Candidate>,
}

/// What of the task itself bears on the choice of a group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Task {
    /// The NUMA node that it prefers, as `Domains` numbers nodes.
    #[doc(alias = "numa_preferred_nid")]
    pub(crate) preferred_node: Option<u32>,
    /// Its utilisation if it executes a new program; a new task has none to go by.
    pub(crate) exec_util: Option<u32>,
}

/// Whether a task stays with the group of the CPU that is looked from, and what decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) stay: bool,
    pub(crate) reason: Reason,
}

/// What decides between the local group and the idlest other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// No other group has an allowed CPU.
    Alone,
    /// The local group has none.
    Outside,
    /// One is of a better type.
    Type,
    /// Both are marked as imbalanced.
    Marked,
    /// Both have no spare capacity: their loads.
    Load,
    /// The node that the task prefers.
    PreferredNode,
    /// What a NUMA level tolerates.
    Numa,
    /// Their idle CPUs.
    Idle,
    /// The spare capacity of their emptiest CPUs (v5.3 and v5.4, exec).
    Spare,
    /// Their loads, in the way of v5.3 and v5.4.
    ByLoad,
}

impl Reason {
    pub(crate) fn stay_if(self, stay: bool) -> Decision {
        Decision { stay, reason: self }
    }
}

/// The kernel's choice: the group to go to, or `None` to stay where `cpu` is.
#[doc(alias = "find_idlest_group")]
#[doc(alias = "sched_balance_find_dst_group")]
pub(crate) fn pick_group(state: &mut State<'_>, domain: View<'_>, cpu: Cpu, task: Task) -> Option<u32> {
    if state.profile.numa_fork == NumaForkRule::ByLoad {
        return by_load::pick(state, domain, cpu, task);
    }
    let (local, idlest) = local_and_idlest(state, domain, cpu);
    let idlest = idlest?;
    (!decide(state, domain, cpu, task, local.as_ref(), Some(&idlest)).stay).then_some(idlest.group)
}

/// The group that holds `cpu`, if it has an allowed CPU, and the best of the others.
pub(crate) fn local_and_idlest(
    state: &mut State<'_>,
    domain: View<'_>,
    cpu: Cpu,
) -> (Option<Candidate>, Option<Candidate>) {
    let tie = state.profile.tie;
    let (mut local, mut idlest): (Option<Candidate>, Option<Candidate>) = (None, None);
    for_each_candidate(state, domain, cpu, |candidate, is_local| {
        if is_local {
            local = Some(candidate);
        } else if idlest.is_none_or(|best| candidate.beats(&best, tie)) {
            idlest = Some(candidate);
        }
    });
    (local, idlest)
}

/// Calls `take` for each group with allowed CPUs in ring order, and says whether it holds `cpu`.
pub(super) fn for_each_candidate(
    state: &mut State<'_>,
    domain: View<'_>,
    cpu: Cpu,
    mut take: impl FnMut(Candidate, bool),
) {
    state.note_looks(domain.ring.len());
    for (position, &group) in domain.ring.iter().enumerate() {
        let stats = state.stats(group);
        if stats.allowed == 0 {
            continue;
        }
        // The ring starts with the CPU's own group; where groups overlap, later ones may hold the CPU too.
        let is_local =
            position == 0 || (domain.overlaps && state.domains.groups()[group as usize].contains(cpu));
        take(Candidate::new(state, group, stats, domain.imbalance_pct), is_local);
    }
}

/// A group that may hold the task, as one CPU sees it.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) candidate: Candidate,
    /// It holds the CPU.
    pub(super) is_local: bool,
}

/// Every group in ring order, with what is seen of those that have allowed CPUs.
pub(super) fn candidates(state: &mut State<'_>, domain: View<'_>, cpu: Cpu) -> Vec<(u32, Option<Seen>)> {
    let mut all: Vec<(u32, Option<Seen>)> = domain.ring.iter().map(|&group| (group, None)).collect();
    for_each_candidate(state, domain, cpu, |candidate, is_local| {
        if let Some((_, seen)) = all.iter_mut().find(|(group, _)| *group == candidate.group) {
            *seen = Some(Seen { candidate, is_local });
        }
    });
    all
}

/// Every choice that the kernel may make where user space cannot see what decides.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    /// Staying where the CPU is.
    pub(crate) stay: bool,
    /// Going to one of these groups.
    pub(crate) groups: Vec<u32>,
}

impl Choices {
    /// Adds what a decision about a group comes to.
    pub(super) fn add(&mut self, decision: Decision, group: u32) {
        if decision.stay {
            self.stay = true;
        } else if !self.groups.contains(&group) {
            self.groups.push(group);
        }
    }
}

/// What decides between groups that look equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// As the profile has it: ring order decides where the kernel looks at nothing else.
    AsKernel,
    /// Anything: for states that stand for their mirror images, which have other ring orders.
    Any,
}

/// Every group that the kernel may pick: ties count as open, and with `marks` so does the imbalance mark of each
/// group that can have one.
pub(crate) fn group_choices(
    state: &mut State<'_>,
    domain: View<'_>,
    cpu: Cpu,
    task: Task,
    ties: Ties,
    marks: bool,
) -> Choices {
    if state.profile.numa_fork == NumaForkRule::ByLoad {
        return by_load::choices(state, domain, cpu, task);
    }
    let mut survey = Survey { local: None, others: Vec::new() };
    for_each_candidate(state, domain, cpu, |candidate, is_local| {
        if is_local { survey.local = Some(candidate) } else { survey.others.push(candidate) }
    });
    let Survey { local, mut others } = survey;
    let first_wins = ties == Ties::AsKernel && state.profile.tie == TieRule::First;
    let mut choices = Choices { stay: others.is_empty(), groups: Vec::new() };
    let may_be_marked = |state: &State<'_>, c: &Candidate| marks && state.can_be_marked(c.group);
    let mut locals = vec![local];
    if let Some(local) = local.filter(|local| may_be_marked(state, local)) {
        locals.push(Some(local.marked()));
    }
    others.sort_by_key(Candidate::rank);
    let decide = |local: &Option<Candidate>, other: &Candidate| {
        decide(state, domain, cpu, task, local.as_ref(), Some(other))
    };
    for local in &locals {
        let mut all_marked = !others.is_empty();
        let mut rest = others.as_slice();
        // Best rank first; a rank's groups can be passed over only if each of them can be marked.
        while let Some(first) = rest.first() {
            let (tied, worse) = rest.split_at(rest.partition_point(|c| c.rank() == first.rank()));
            let shown = if first_wins && !marks { 1 } else { tied.len() };
            for candidate in &tied[..shown] {
                choices.add(decide(local, candidate), candidate.group);
            }
            if !tied.iter().all(|c| may_be_marked(state, c)) {
                all_marked = false;
                break;
            }
            rest = worse;
        }
        if all_marked {
            for candidate in &others {
                choices.add(decide(local, &candidate.marked()), candidate.group);
            }
        }
    }
    choices
}

/// Whether the task stays with the local group although there is another.
pub(crate) fn decide(
    state: &State<'_>,
    domain: View<'_>,
    cpu: Cpu,
    task: Task,
    local: Option<&Candidate>,
    idlest: Option<&Candidate>,
) -> Decision {
    let Some(idlest) = idlest else { return Reason::Alone.stay_if(true) };
    let Some(local) = local else { return Reason::Outside.stay_if(false) };
    if local.group_type != idlest.group_type {
        return Reason::Type.stay_if(local.group_type < idlest.group_type);
    }
    match local.group_type {
        GroupType::Imbalanced => Reason::Marked.stay_if(true),
        GroupType::FullyBusy | GroupType::Overloaded => {
            let pct = u64::from(domain.imbalance_pct);
            let margin = u64::from(SCALE) * (pct - 100) / 100;
            let (ours, theirs) = (local.avg_load, idlest.avg_load);
            Reason::Load.stay_if(
                (domain.numa && theirs + margin >= ours)
                    || theirs >= ours + margin
                    || 100 * ours <= pct * theirs,
            )
        }
        GroupType::HasSpare => {
            if domain.numa && task.preferred_node.is_some() {
                let first = state.domains.groups()[idlest.group as usize].first();
                if state.domains.node_index(cpu) == task.preferred_node {
                    return Reason::PreferredNode.stay_if(true);
                }
                if first.and_then(|first| state.domains.node_index(first)) == task.preferred_node {
                    return Reason::PreferredNode.stay_if(false);
                }
            }
            if domain.numa && numa_stays(state.profile.numa_fork, domain, &local.stats, &idlest.stats) {
                return Reason::Numa.stay_if(true);
            }
            Reason::Idle.stay_if(local.stats.idle >= idlest.stats.idle)
        }
    }
}

/// The difference of idle CPUs that the newest kernels tolerate.
#[doc(alias = "NUMA_IMBALANCE_MIN")]
pub(super) const TOLERATED: u32 = 2;

/// Whether a NUMA level tolerates one more task here while another group has more idle CPUs.
#[doc(alias = "allow_numa_imbalance")]
#[doc(alias = "adjust_numa_imbalance")]
fn numa_stays(rule: NumaForkRule, domain: View<'_>, local: &GroupStats, idlest: &GroupStats) -> bool {
    let (tasks, limit) = (local.tasks, domain.imb_numa_nr);
    let narrowed = limit.min(local.allowed);
    let difference = local.idle.abs_diff(idlest.idle);
    let adjusted = |limit: u32| {
        if tasks + 1 > limit { difference == 0 } else { difference <= TOLERATED }
    };
    match rule {
        // Never asked: see `by_load`.
        NumaForkRule::ByLoad => false,
        NumaForkRule::AnyIdle => local.idle > 0,
        NumaForkRule::Span25 => tasks < domain.weight >> 2,
        NumaForkRule::Less => tasks < limit,
        NumaForkRule::NotMore => tasks <= limit,
        NumaForkRule::PlusOneLess => tasks + 1 < limit,
        // n + 1 <= I is n < I.
        NumaForkRule::PlusOneNotMore => tasks < limit,
        NumaForkRule::PlusOneLessAllowed => tasks + 1 < narrowed,
        NumaForkRule::PlusOneNotMoreAllowed => tasks < narrowed,
        NumaForkRule::Adjusted => adjusted(limit),
        NumaForkRule::AdjustedAllowed => adjusted(narrowed),
    }
}
