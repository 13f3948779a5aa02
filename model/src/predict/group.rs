//! Which group of a domain a new task goes to.

use super::{
    by_load,
    mark::Markable,
    queue::{SCALE, full},
    state::{GroupStats, State},
};
use crate::{
    cpuset::Cpu,
    domains::View,
    profile::{NumaForkRule, TieRule},
};
use smallvec::SmallVec;

/// So many groups are compared without an allocation; most domains have no more.
const FEW_GROUPS: usize = 8;

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
    const ALL: [Self; 4] = [Self::HasSpare, Self::FullyBusy, Self::Imbalanced, Self::Overloaded];

    /// Groups of this type are told apart by their load.
    pub(super) fn compares_load(self) -> bool {
        matches!(self, Self::FullyBusy | Self::Overloaded)
    }
}

/// A group as the slow path sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'s> {
    pub(crate) group: u32,
    pub(crate) stats: &'s GroupStats,
    /// The type above, and below what decides within it; lower is better, and equal for groups that user space cannot
    /// tell apart. One number, since the placement loop does little else than compare them.
    rank: u64,
}

impl<'s> Candidate<'s> {
    #[inline]
    fn new(state: &State<'_>, group: u32, stats: &'s GroupStats, imbalance_pct: u32) -> Self {
        let mut group_type = unmarked(state, stats, imbalance_pct);
        if state.is_marked(group) {
            group_type = group_type.max(GroupType::Imbalanced);
        }
        Self::of_type(group, stats, group_type, stats.load)
    }

    #[inline]
    fn of_type(group: u32, stats: &'s GroupStats, group_type: GroupType, load: u32) -> Self {
        let within = match group_type {
            GroupType::HasSpare => !stats.idle,
            GroupType::Imbalanced => 0,
            GroupType::FullyBusy | GroupType::Overloaded => load / stats.weight.max(1),
        };
        Self { group, stats, rank: (group_type as u64) << 32 | u64::from(within) }
    }

    pub(crate) fn group_type(&self) -> GroupType {
        match self.rank >> 32 {
            0 => GroupType::HasSpare,
            1 => GroupType::FullyBusy,
            2 => GroupType::Imbalanced,
            _ => GroupType::Overloaded,
        }
    }

    /// Load per capacity, for the types that are told apart by it; 0 for the others.
    pub(crate) fn avg_load(&self) -> u64 {
        if self.group_type().compares_load() { self.rank & u64::from(u32::MAX) } else { 0 }
    }

    /// Itself with each type that it may have: for however long its tasks have run, with the mark and without.
    fn forms(self, state: &State<'_>, imbalance_pct: u32, open: Open) -> Forms<'s> {
        let Self { group, stats, .. } = self;
        let mut least = self.group_type();
        let mut may_be_marked = state.may_be_marked(group, open.marks);
        // One that is told to be marked may have been cleared since.
        if open.marks != Markable::None && state.is_marked(group) {
            (least, may_be_marked) = (unmarked(state, stats, imbalance_pct), true);
        }
        let mut most = least;
        if open.weights && stats.tasks >= stats.weight {
            let runnable = state.profile.group_runnable.then(|| full(stats.tasks));
            let settled = classify(stats.tasks, stats.weight, || full(stats.busy), runnable, imbalance_pct);
            most = most.max(settled);
        }
        Forms { group, stats, least, most, may_be_marked }
    }

    /// Whether user space cannot tell the two apart.
    pub(super) fn ties_with(&self, other: &Self) -> bool {
        self.rank == other.rank
    }

    /// Whether this group replaces the best one so far.
    #[doc(alias = "update_pick_idlest")]
    fn beats(&self, best: &Self, state: &State<'_>) -> bool {
        if !self.ties_with(best) {
            return self.rank < best.rank;
        }
        state.profile.tie == TieRule::Utilisation
            && self.group_type() == GroupType::HasSpare
            && state.is_less_used(self.stats, best.stats)
    }
}

/// What a group may look like.
#[derive(Debug, Clone, Copy)]
struct Forms<'s> {
    group: u32,
    stats: &'s GroupStats,
    /// The emptiest type and the busiest one, without the mark.
    least: GroupType,
    most: GroupType,
    may_be_marked: bool,
}

impl<'s> Forms<'s> {
    /// From the emptiest. Where loads are compared that are known within bounds, both of these.
    fn each(self) -> impl DoubleEndedIterator<Item = Candidate<'s>> {
        let Self { group, stats, least, most, may_be_marked } = self;
        let may_be = move |&group_type: &GroupType| match group_type {
            GroupType::Imbalanced => least == group_type || may_be_marked && least < group_type,
            other => least <= other && other <= most,
        };
        let types = GroupType::ALL.into_iter().filter(may_be);
        types.flat_map(move |group_type| {
            let least = (stats.open_load > 0 && group_type.compares_load())
                .then(|| Candidate::of_type(group, stats, group_type, stats.load - stats.open_load));
            least.into_iter().chain([Candidate::of_type(group, stats, group_type, stats.load)])
        })
    }

    /// Its rank at the busiest.
    fn worst(self) -> Option<u64> {
        self.each().next_back().map(|form| form.rank)
    }
}

/// The type of a group, but for its mark.
#[inline]
fn unmarked(state: &State<'_>, stats: &GroupStats, imbalance_pct: u32) -> GroupType {
    if stats.tasks < stats.weight {
        return GroupType::HasSpare;
    }
    let runnable = state.profile.group_runnable.then(|| state.runnable(stats));
    classify(stats.tasks, stats.weight, || state.util(stats), runnable, imbalance_pct)
}

/// The type of a group whose tasks have run for long on so many busy CPUs, but for its mark: load balancing sees no other.
pub(super) fn settled_type(tasks: u32, weight: u32, busy: u32, imbalance_pct: u32) -> GroupType {
    classify(tasks, weight, || full(busy), Some(full(tasks)), imbalance_pct)
}

/// The first type that fits, from the busiest down. The utilisation is asked for only where it decides.
#[doc(alias = "group_classify")]
#[doc(alias = "group_is_overloaded")]
#[doc(alias = "group_has_capacity")]
#[inline]
fn classify(
    tasks: u32,
    weight: u32,
    util: impl FnOnce() -> u64,
    runnable: Option<u64>,
    imbalance_pct: u32,
) -> GroupType {
    let (capacity, pct) = (full(weight), u64::from(imbalance_pct));
    let waits = runnable.is_some_and(|runnable| capacity * pct < runnable * 100);
    if waits && tasks > weight {
        return GroupType::Overloaded;
    }
    let used = util() * pct;
    if tasks > weight && capacity * 100 < used {
        GroupType::Overloaded
    } else if tasks < weight || !waits && capacity * 100 > used {
        GroupType::HasSpare
    } else {
        GroupType::FullyBusy
    }
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
pub(crate) fn pick_group(state: &State<'_>, domain: View<'_>, cpu: Cpu, task: Task) -> Option<u32> {
    if state.profile.numa_fork == NumaForkRule::ByLoad {
        return by_load::pick(state, domain, cpu, task);
    }
    let (local, idlest) = &local_and_idlest(state, domain, cpu);
    let idlest = idlest.as_ref()?;
    (!decide(state, domain, cpu, task, local.as_ref(), Some(idlest)).stay).then_some(idlest.group)
}

/// The group that holds `cpu`, if it has an allowed CPU, and the best of the others.
pub(crate) fn local_and_idlest<'s>(
    state: &'s State<'_>,
    domain: View<'_>,
    cpu: Cpu,
) -> (Option<Candidate<'s>>, Option<Candidate<'s>>) {
    let (mut local, mut idlest): (Option<Candidate<'_>>, Option<Candidate<'_>>) = (None, None);
    for (candidate, is_local) in candidates(state, domain, cpu) {
        if is_local {
            local = Some(candidate);
        } else if idlest.as_ref().is_none_or(|best| candidate.beats(best, state)) {
            idlest = Some(candidate);
        }
    }
    (local, idlest)
}

/// The groups with allowed CPUs in ring order, each with whether it holds `cpu`; the domain was looked at.
pub(super) fn candidates<'s>(
    state: &'s State<'_>,
    domain: View<'_>,
    cpu: Cpu,
) -> impl Iterator<Item = (Candidate<'s>, bool)> {
    domain.ring.iter().enumerate().filter_map(move |(position, &group)| {
        let stats = state.known(group).filter(|stats| stats.allowed > 0)?;
        // The ring starts with the CPU's own group; where groups overlap, later ones may hold the CPU too.
        let is_local =
            position == 0 || (domain.overlaps && state.domains.groups()[group as usize].contains(cpu));
        Some((Candidate::new(state, group, stats, domain.imbalance_pct), is_local))
    })
}

/// Every choice that the kernel may make where user space cannot see what decides.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    /// Staying where the CPU is.
    pub(crate) stay: bool,
    /// Going to one of these groups.
    pub(crate) groups: SmallVec<[u32; FEW_GROUPS]>,
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

/// What is taken as open that user space cannot see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Open {
    /// Which of several equal groups, even where the kernel goes by ring order: for states that stand for their mirror
    /// images, which have other ring orders.
    pub(crate) ring_order: bool,
    /// Which groups may have the imbalance mark.
    pub(crate) marks: Markable,
    /// For how long the tasks have run.
    pub(crate) weights: bool,
}

/// Every group that the kernel may pick, whichever of several equal groups it takes, and whatever else is open.
pub(crate) fn group_choices(
    state: &State<'_>,
    domain: View<'_>,
    cpu: Cpu,
    task: Task,
    open: Open,
) -> Choices {
    if state.profile.numa_fork == NumaForkRule::ByLoad {
        return by_load::choices(state, domain, cpu, task);
    }
    let (mut local, mut others) = (None, SmallVec::<[_; FEW_GROUPS]>::new());
    candidates(state, domain, cpu).for_each(|(candidate, is_local)| {
        let forms = candidate.forms(state, domain.imbalance_pct, open);
        if is_local { local = Some(forms) } else { others.push(forms) }
    });
    let in_ring_order = state.profile.tie == TieRule::First && open == Open::default();
    let mut choices = Choices { stay: others.is_empty(), groups: SmallVec::new() };
    // A group can be the best with a form if every other one has a form that is no better.
    let (mut best, mut second) = (u64::MAX, u64::MAX);
    for worst in others.iter().filter_map(|forms| forms.worst()) {
        (best, second) = if worst < best { (worst, best) } else { (best, second.min(worst)) };
    }
    for forms in &others {
        let bound = if forms.worst() == Some(best) { second } else { best };
        let mut wins = false;
        for form in forms.each().take_while(|form| form.rank <= bound) {
            wins = true;
            match local {
                Some(local) => local.each().for_each(|local| {
                    choices.add(decide(state, domain, cpu, task, Some(&local), Some(&form)), form.group);
                }),
                None => choices.add(decide(state, domain, cpu, task, None, Some(&form)), form.group),
            }
        }
        if in_ring_order && wins {
            break;
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
    local: Option<&Candidate<'_>>,
    idlest: Option<&Candidate<'_>>,
) -> Decision {
    let Some(idlest) = idlest else { return Reason::Alone.stay_if(true) };
    let Some(local) = local else { return Reason::Outside.stay_if(false) };
    let group_type = local.group_type();
    if group_type != idlest.group_type() {
        return Reason::Type.stay_if(group_type < idlest.group_type());
    }
    match group_type {
        GroupType::Imbalanced => Reason::Marked.stay_if(true),
        GroupType::FullyBusy | GroupType::Overloaded => {
            let pct = u64::from(domain.imbalance_pct);
            let margin = u64::from(SCALE) * (pct - 100) / 100;
            let (ours, theirs) = (local.avg_load(), idlest.avg_load());
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
            if domain.numa && numa_stays(state.profile.numa_fork, domain, local.stats, idlest.stats) {
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
