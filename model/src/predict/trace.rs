//! The decisions of a burst, task by task and level by level, so that they can be checked by hand.
//!
//! The tracer looks on as [`place`](super::place) decides, and reads the same counters again: what it tells is what was
//! decided, and a burst that nobody traces pays nothing for it.

use super::{
    Burst, Host, Markable,
    because::{because, by_load_because},
    by_load::{Margins, Survey},
    group::{Candidate, GroupType, Open, Reason, candidates, decide, group_choices, local_and_idlest},
    queue::full,
    state::{GroupStats, State},
    walk::{Level, NoWalk, Walk},
};
use crate::{
    cpuset::{Cpu, CpuSet},
    domains::{Kind, View},
    profile::NumaForkRule,
};

/// The decisions for one task, from the top level down.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskTrace {
    /// Index of the task in the burst.
    pub task: u32,
    /// Microseconds since the first placement.
    pub at: u64,
    /// The CPU that the descent started from.
    pub from: Cpu,
    /// The CPU that the task is put on.
    pub cpu: Cpu,
    /// The levels, top level first; empty if there was nothing to choose.
    pub steps: Vec<Step>,
    /// The descent came out at a CPU that the task may not use, and an allowed one was taken instead.
    pub fell_back: bool,
    /// Why there are no steps, or why the fallback; empty if neither is so.
    pub because: String,
}

/// One level of one descent.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What the domain is made for.
    pub kind: Kind,
    /// Its CPUs.
    pub span: CpuSet,
    /// The CPU whose domain it is.
    pub cpu: Cpu,
    /// Its `imb_numa_nr`; `None` below NUMA and where the kernel has none.
    pub imb_numa_nr: Option<u32>,
    /// Its groups in ring order.
    pub groups: Vec<Group>,
    /// Index of the group that holds the CPU, if it has allowed CPUs.
    pub local: Option<usize>,
    /// Index of the best other group.
    pub idlest: Option<usize>,
    /// Indices of others that look like the best one to user space.
    pub tied: Vec<usize>,
    /// What was decided.
    pub decision: Verdict,
    /// The column of the profile that decided; `None` if it was nothing in which kernels differ.
    pub rule: Option<&'static str>,
    /// The rule with its numbers.
    pub because: String,
}

/// What was decided at a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// To stay with the CPU's group, and go one level down.
    Stay,
    /// To go to another group.
    Go {
        /// The CPU there.
        chosen: Cpu,
        /// Other CPUs there that look the same to user space.
        tied: CpuSet,
    },
    /// The level takes no part.
    Pass,
}

/// What the kernel sees of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its CPUs.
    pub cpus: CpuSet,
    /// How many of them the task may use. None: it is passed over, and nothing else is known of it.
    pub allowed: u32,
    /// How many it has, as its tasks are held against.
    pub weight: u32,
    /// Runnable tasks.
    pub running: u32,
    /// Idle CPUs.
    pub idle: u32,
    /// Utilisation, 1024 for each CPU that is always busy.
    pub util: u64,
    /// Running and waiting time, 1024 for each task that is always runnable.
    pub runnable: u64,
    /// Load, 1024 for each task of nice 0.
    pub load: u32,
    /// Load per capacity, where it is compared.
    pub avg_load: Option<u64>,
    /// How busy it counts; `None` where the kernel does not sort groups so.
    pub group_type: Option<GroupType>,
}

impl Group {
    /// Its capacity, 1024 for each CPU.
    pub fn capacity(&self) -> u64 {
        full(self.weight)
    }
}

/// Traces a burst: the run with these `places`, or the central one where they end. `take` is given the trace of each
/// task that is `wanted`, and says whether to go on.
pub fn trace(
    host: Host<'_>,
    burst: &Burst<'_>,
    places: &[Cpu],
    wanted: impl Fn(u32) -> bool,
    mut take: impl FnMut(TaskTrace) -> bool,
) {
    let (walk, mut state) = (burst.walk(), burst.start(host, burst.parent_weight));
    let mut at = 0;
    for (task, index) in (0..burst.tasks).zip(0..) {
        let place = places.get(index).copied();
        let cpu = match burst.placed_at_start().filter(|_| task == 0) {
            Some(cpu) => {
                let because = format!("It is the parent, which stays on CPU {cpu}.");
                let parent =
                    TaskTrace { task, at, from: cpu, cpu, steps: Vec::new(), fell_back: false, because };
                if wanted(task) && !take(parent) {
                    return;
                }
                continue;
            }
            None if wanted(task) => {
                let mut traced = trace_task(&walk, &mut state, task, at);
                if let Some(place) = place.filter(|place| *place != traced.cpu) {
                    traced.turn_to(place, &walk, &state);
                }
                let cpu = traced.cpu;
                if !take(traced) {
                    return;
                }
                cpu
            }
            None => place.unwrap_or_else(|| walk.place(&mut state)),
        };
        burst.children.start_on(cpu, &mut state);
        state.advance(burst.gap);
        at += burst.gap;
    }
}

impl TaskTrace {
    /// The run has the task elsewhere: says what user space cannot see and has to be so for that.
    fn turn_to(&mut self, cpu: Cpu, walk: &Walk<'_>, state: &State<'_>) {
        let equals = Open { ring_order: true, ..Open::default() };
        let longer = Open { weights: true, ..equals };
        let leads = |open: Open| {
            let mut outcomes = CpuSet::new();
            walk.visit(&mut state.clone(), open, &mut outcomes);
            outcomes.contains(cpu)
        };
        let given = if leads(equals) {
            "it is one of equals"
        } else if leads(longer) {
            "as it is if tasks have run for longer"
        } else if leads(Open { marks: Markable::Any, ..longer }) {
            "as it is if a group is marked, or no longer"
        } else {
            "the rules do not lead there"
        };
        let space = if self.because.is_empty() { "" } else { " " };
        self.because.push_str(&format!(
            "{space}By what is known it comes out at CPU {}. In this run it is CPU {cpu}: {given}.",
            self.cpu
        ));
        self.cpu = cpu;
    }
}

fn trace_task(walk: &Walk<'_>, state: &mut State<'_>, task: u32, at: u64) -> TaskTrace {
    let mut steps = Vec::new();
    let why_not = walk.start(state).err();
    let reached = walk.descend(state, |state, level| steps.push(step(walk, state, level)));
    let cpu = walk.land(state, reached);
    let fell_back = cpu != reached;
    let mut because = match why_not {
        Some(NoWalk::OneAllowed(only)) => format!("CPU {only} is the only one allowed."),
        Some(NoWalk::NoDomain) => format!("CPU {} has no domain that balances new tasks.", walk.origin),
        Some(NoWalk::Outside) => {
            format!("No domain of CPU {} that balances new tasks holds an allowed CPU.", walk.origin)
        }
        None => String::new(),
    };
    if fell_back {
        let space = if because.is_empty() { "" } else { " " };
        because.push_str(&format!(
            "{space}CPU {reached} is not allowed: a CPU of the same NUMA node is taken, else any."
        ));
    }
    TaskTrace { task, at, from: walk.origin, cpu, steps, fell_back, because }
}

/// Reads again what a level was decided by.
fn step(walk: &Walk<'_>, state: &State<'_>, level: Level) -> Step {
    let view = state.domains.view(level.domain);
    let by_load = state.profile.numa_fork == NumaForkRule::ByLoad;
    let seen: Vec<(Candidate<'_>, bool)> = candidates(state, view, level.cpu).collect();
    let of = |group: u32| seen.iter().map(|(candidate, _)| candidate).find(|seen| seen.group == group);
    let groups: Vec<Group> = view.ring.iter().map(|&group| shown(state, group, of(group), by_load)).collect();
    let place = |group: u32| view.ring.iter().position(|&id| id == group);
    let mut step = Step {
        kind: state.domains.kind(level.domain),
        span: state.domains.groups()[view.span as usize].clone(),
        cpu: level.cpu,
        imb_numa_nr: (view.numa && view.imb_numa_nr > 0).then_some(view.imb_numa_nr),
        groups,
        local: None,
        idlest: None,
        tied: Vec::new(),
        decision: Verdict::Pass,
        rule: None,
        because: "it does not balance new tasks".to_owned(),
    };
    if !view.balance_fork {
        return step;
    }
    let chosen = level.target.map(|group| {
        let mut tied = walk.cpu_choices(state, group, level.cpu);
        tied.remove(level.new);
        Verdict::Go { chosen: level.new, tied }
    });
    step.decision = chosen.unwrap_or(Verdict::Stay);
    if by_load {
        explain_by_load(walk, state, view, level, place, &mut step);
        return step;
    }
    let (local, idlest) = local_and_idlest(state, view, level.cpu);
    let decision = decide(state, view, level.cpu, walk.task, local.as_ref(), idlest.as_ref());
    step.local = local.as_ref().and_then(|local| place(local.group));
    step.idlest = idlest.as_ref().and_then(|idlest| place(idlest.group));
    if let Some(idlest) = &idlest {
        let ties = |(candidate, is_local): &&(Candidate<'_>, bool)| {
            !is_local && candidate.group != idlest.group && candidate.ties_with(idlest)
        };
        step.tied = seen.iter().filter(ties).filter_map(|(tied, _)| place(tied.group)).collect();
    }
    step.rule = (decision.reason == Reason::Numa).then_some("numa_fork");
    step.because = because(state, view, level.cpu, decision, local.as_ref(), idlest.as_ref());
    step
}

fn explain_by_load(
    walk: &Walk<'_>,
    state: &State<'_>,
    view: View<'_>,
    level: Level,
    place: impl Fn(u32) -> Option<usize>,
    step: &mut Step,
) {
    let survey = Survey::new(state, view, level.cpu);
    let margins = Margins::new(view);
    let open = group_choices(state, view, level.cpu, walk.task, Open::default()).groups;
    let idlest = level.target.or_else(|| survey.best(margins).map(|best| best.group));
    step.local = survey.local.as_ref().and_then(|local| place(local.group));
    step.idlest = idlest.and_then(&place);
    step.tied = open.into_iter().filter(|group| Some(*group) != idlest).filter_map(place).collect();
    step.rule = Some("numa_fork");
    step.because = by_load_because(state, view, walk.task, &survey, margins);
}

fn shown(state: &State<'_>, group: u32, candidate: Option<&Candidate<'_>>, by_load: bool) -> Group {
    let cpus = state.domains.groups()[group as usize].clone();
    let stats = candidate.map_or_else(GroupStats::default, |candidate| *candidate.stats);
    let average = candidate.filter(|candidate| !by_load && candidate.group_type().compares_load());
    Group {
        cpus,
        allowed: stats.allowed,
        weight: state.weight(group, stats.allowed),
        running: stats.tasks,
        idle: stats.idle,
        util: state.util(&stats),
        runnable: state.runnable(&stats),
        load: stats.load,
        avg_load: average.map(Candidate::avg_load),
        group_type: candidate.filter(|_| !by_load).map(Candidate::group_type),
    }
}
