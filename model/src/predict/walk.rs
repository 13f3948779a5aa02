//! The slow path of fork and exec: from the parent's CPU down its domains to the new task's CPU.

use super::{
    group::{Open, Task, group_choices, pick_group},
    queue::SCALE,
    state::State,
};
use crate::{
    cpuset::{Cpu, CpuSet},
    profile::NumaForkRule,
};
use smallvec::{SmallVec, smallvec};

/// How a task comes to be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Entry {
    /// It is new, and woken for the first time.
    #[doc(alias = "wake_up_new_task")]
    #[doc(alias = "SD_BALANCE_FORK")]
    #[default]
    Fork,
    /// It runs on the parent's CPU and executes a new program.
    #[doc(alias = "sched_exec")]
    #[doc(alias = "SD_BALANCE_EXEC")]
    Exec,
}

/// What is known of an idle CPU, which decides between equally idle ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleCpu {
    /// Exit latency of the idle state it is in, in µs; `None` if it records no idle state.
    pub exit_latency: Option<u32>,
    /// When it went idle; later is larger, 0 never.
    pub idle_stamp: u64,
}

impl Default for IdleCpu {
    /// No idle state recorded, went idle at the same moment as all others: the lowest number wins.
    fn default() -> Self {
        Self { exit_latency: None, idle_stamp: 1 }
    }
}

/// Places tasks one after another from one CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk<'a> {
    pub(crate) origin: Cpu,
    pub(crate) entry: Entry,
    pub(crate) task: Task,
    /// By CPU number; CPUs beyond its end are as [`IdleCpu::default`].
    pub(crate) idle: &'a [IdleCpu],
}

/// Where the walk stands: the CPU and how many of its domains, from the bottom, are still to be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    cpu: Cpu,
    levels: usize,
}

/// A level of a descent, and where it led.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level {
    /// The CPU whose domain it is.
    pub(crate) cpu: Cpu,
    /// The domain.
    pub(crate) domain: u32,
    /// The group that was gone to, if any.
    pub(crate) target: Option<u32>,
    /// The CPU that it went on with.
    pub(crate) new: Cpu,
}

/// Why there is nothing to walk through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoWalk {
    /// The task may use this CPU only.
    OneAllowed(Cpu),
    /// The parent's CPU has no domain that balances new tasks.
    NoDomain,
    /// None that does holds a CPU that the task may use.
    Outside,
}

/// What is done with every CPU that a task may be put on.
pub(crate) trait Visitor {
    /// One of them.
    fn reach(&mut self, cpu: Cpu);

    /// Whether it matters which of these CPUs are.
    fn enters(&self, _span: &CpuSet) -> bool {
        true
    }

    /// Thins out CPUs that lead to the same for the visitor.
    fn narrow(&self, _cpus: &mut CpuSet) {}
}

/// Collects them.
impl Visitor for CpuSet {
    fn reach(&mut self, cpu: Cpu) {
        self.insert(cpu);
    }
}

impl Walk<'_> {
    /// The CPU that the kernel puts the next task on.
    #[doc(alias = "select_task_rq_fair")]
    pub(crate) fn place(&self, state: &mut State<'_>) -> Cpu {
        let reached = self.descend(state, |_, _| {});
        self.land(state, reached)
    }

    /// Goes down the domains, and shows each level to `look`. The CPU that it comes out at need not be allowed.
    #[doc(alias = "find_idlest_cpu")]
    #[doc(alias = "sched_balance_find_dst_cpu")]
    pub(crate) fn descend(&self, state: &mut State<'_>, mut look: impl FnMut(&mut State<'_>, Level)) -> Cpu {
        let mut step = match self.start(state) {
            Ok(step) => step,
            Err(NoWalk::OneAllowed(only)) => return only,
            Err(NoWalk::NoDomain | NoWalk::Outside) => return self.origin,
        };
        while let Some(below) = step.levels.checked_sub(1) {
            let id = state.domains.chain(step.cpu)[below];
            let domain = state.domains.view(id);
            state.look_at(domain);
            let target =
                domain.balance_fork.then(|| pick_group(state, domain, step.cpu, self.task)).flatten();
            let new = target.map_or(step.cpu, |group| self.pick_cpu(state, group, step.cpu));
            look(state, Level { cpu: step.cpu, domain: id, target, new });
            step = next(state, step, new, domain.weight);
        }
        step.cpu
    }

    /// The CPU itself if the task may run there, else what the kernel falls back to.
    pub(crate) fn land(&self, state: &State<'_>, reached: Cpu) -> Cpu {
        allowed_or_fallback(state, reached, self.origin)
    }

    /// Where the walk starts, if there is one.
    pub(crate) fn start(&self, state: &State<'_>) -> Result<Step, NoWalk> {
        let allowed = state.allowed();
        if let Some(only) = allowed.first().filter(|&first| allowed.last() == Some(first)) {
            return Err(NoWalk::OneAllowed(only));
        }
        let chain = state.domains.chain(self.origin);
        let levels = chain.iter().take_while(|&&id| state.domains.view(id).balance_fork).count();
        let top = levels.checked_sub(1).ok_or(NoWalk::NoDomain)?;
        let span = state.domains.view(chain[top]).span;
        let reaches = state.domains.groups()[span as usize].intersects(allowed);
        if reaches { Ok(Step { cpu: self.origin, levels }) } else { Err(NoWalk::Outside) }
    }

    /// The CPU inside the chosen group: idle before busy; among idle ones the shallowest idle state, then the most
    /// recently idled, then the lowest number; among busy ones the least load.
    #[doc(alias = "find_idlest_group_cpu")]
    #[doc(alias = "sched_balance_find_dst_group_cpu")]
    fn pick_cpu(&self, state: &State<'_>, group: u32, cpu: Cpu) -> Cpu {
        if state.domains.group_weight(group) == 1 {
            return state.domains.groups()[group as usize].first().unwrap_or(cpu);
        }
        let mut idle = state.idle_allowed_in(group).filter(|&c| !self.runs_itself_on(c));
        let kept = if self.idle.is_empty() { idle.next() } else { self.most_recent(idle) };
        let busy = |&c: &Cpu| state.queue(c).tasks > 0 || self.runs_itself_on(c);
        kept.or_else(|| state.allowed_in(group).filter(busy).min_by_key(|&c| self.load(state, c)))
            .unwrap_or(cpu)
    }

    fn most_recent(&self, idle: impl Iterator<Item = Cpu>) -> Option<Cpu> {
        let (mut latency, mut stamp, mut kept) = (u32::MAX, 0, None);
        for cpu in idle {
            let known = self.idle.get(cpu.index()).copied().unwrap_or_default();
            match known.exit_latency {
                Some(shallower) if shallower < latency => {
                    (latency, stamp, kept) = (shallower, known.idle_stamp, Some(cpu));
                }
                Some(deeper) if deeper > latency => {}
                _ if known.idle_stamp > stamp => (stamp, kept) = (known.idle_stamp, Some(cpu)),
                _ => {}
            }
        }
        kept
    }

    /// What a busy CPU is judged by. A task that executes a new program counts where it still runs.
    fn load(&self, state: &State<'_>, cpu: Cpu) -> u32 {
        let queue = state.queue(cpu);
        // v5.3 and v5.4 look at what is runnable alone.
        let load = match state.profile.numa_fork {
            NumaForkRule::ByLoad => queue.tasks.saturating_mul(SCALE),
            _ => queue.load,
        };
        load.saturating_add(if self.runs_itself_on(cpu) { SCALE } else { 0 })
    }

    /// A task that executes a new program still runs on its CPU while it looks for another.
    fn runs_itself_on(&self, cpu: Cpu) -> bool {
        self.entry == Entry::Exec && cpu == self.origin
    }

    /// Shows a visitor every CPU that the next task may be put on, whichever of equally idle CPUs is taken, and whatever
    /// is open.
    pub(crate) fn visit(&self, state: &mut State<'_>, what: Open, visitor: &mut impl Visitor) {
        let start = match self.start(state) {
            Ok(step) => step,
            Err(NoWalk::OneAllowed(only)) => return visitor.reach(only),
            Err(NoWalk::NoDomain | NoWalk::Outside) => return visitor.reach(self.land(state, self.origin)),
        };
        let mut seen: SmallVec<[CpuSet; 8]> = smallvec![CpuSet::new(); start.levels + 1];
        let mut open: SmallVec<[Step; 16]> = smallvec![start];
        while let Some(step) = open.pop() {
            if seen.len() <= step.levels {
                seen.resize(step.levels + 1, CpuSet::new());
            }
            if !seen[step.levels].insert(step.cpu) {
                continue;
            }
            let Some(below) = step.levels.checked_sub(1) else {
                visitor.reach(self.land(state, step.cpu));
                continue;
            };
            let domain = state.domains.view(state.domains.chain(step.cpu)[below]);
            // From an allowed CPU the walk stays inside the domain, but where NUMA distances are odd.
            let stays_inside = !domain.numa && state.allowed().contains(step.cpu);
            if stays_inside && !visitor.enters(&state.domains.groups()[domain.span as usize]) {
                continue;
            }
            state.look_at(domain);
            let choices = group_choices(state, domain, step.cpu, self.task, what);
            if choices.stay || !domain.balance_fork {
                open.push(Step { levels: below, ..step });
            }
            for &group in choices.groups.iter().filter(|_| domain.balance_fork) {
                let mut cpus = self.cpu_choices(state, group, step.cpu);
                state.note_looks(cpus.len());
                visitor.narrow(&mut cpus);
                open.extend(cpus.iter().map(|new| next(state, step, new, domain.weight)));
            }
        }
    }

    /// Every CPU that [`Walk::pick_cpu`] may return; stamps and latencies decide only where they are given.
    pub(crate) fn cpu_choices(&self, state: &State<'_>, group: u32, cpu: Cpu) -> CpuSet {
        if state.domains.group_weight(group) == 1 || !self.idle.is_empty() {
            return CpuSet::from(self.pick_cpu(state, group, cpu));
        }
        let mut choices = state.idle_set_in(group);
        if self.entry == Entry::Exec {
            choices.remove(self.origin);
        }
        if choices.is_empty() {
            let most = state.allowed_in(group).map(|c| self.load(state, c)).min();
            let may_be_least = |&c: &Cpu| Some(self.load(state, c) - state.queue(c).open_load) <= most;
            choices = state.allowed_in(group).filter(may_be_least).collect();
        }
        if choices.is_empty() {
            choices.insert(cpu);
        }
        choices
    }
}

/// The step after choosing `new` at a domain of that weight: one level down, or the new CPU's domains that are
/// narrower than the one just used.
fn next(state: &State<'_>, step: Step, new: Cpu, weight: u32) -> Step {
    if new == step.cpu {
        return Step { levels: step.levels - 1, ..step };
    }
    let chain = state.domains.chain(new);
    let narrower = chain.iter().take_while(|&&id| state.domains.view(id).weight < weight);
    let with_flag = narrower.enumerate().filter(|(_, id)| state.domains.view(**id).balance_fork);
    Step { cpu: new, levels: with_flag.last().map_or(0, |(index, _)| index + 1) }
}

/// The CPU itself if the task may run there; else one of the previous CPU's node, else any.
#[doc(alias = "select_fallback_rq")]
fn allowed_or_fallback(state: &State<'_>, cpu: Cpu, previous: Cpu) -> Cpu {
    let allowed = state.allowed();
    if allowed.contains(cpu) {
        return cpu;
    }
    let node = state.domains.node_of(previous);
    let near = node.and_then(|node| allowed.intersection(node).first());
    near.or_else(|| allowed.first()).unwrap_or(cpu)
}
