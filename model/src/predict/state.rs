//! What the kernel's counters say at one moment of a burst: per CPU and, kept up to date task by task, per group.

use crate::{
    cpuset::{self, Cpu, CpuSet},
    domains::Domains,
    load::Load,
    profile::{Profile, StatsRule},
};

/// The load and the capacity of one task, thread or CPU at full weight.
#[doc(alias = "SCHED_CAPACITY_SCALE")]
pub(crate) const SCALE: u32 = 1024;

/// The counters of one run queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Queue {
    /// Runnable tasks.
    #[doc(alias = "nr_running")]
    pub(crate) tasks: u32,
    /// Their weight.
    #[doc(alias = "load_avg")]
    pub(crate) load: u32,
    /// Utilisation, 0 to 1024.
    #[doc(alias = "util_avg")]
    pub(crate) util: u32,
    /// Running and waiting time, 1024 for each task that has long been runnable.
    #[doc(alias = "runnable_avg")]
    pub(crate) runnable: u32,
}

impl Queue {
    /// Tasks that have run for long.
    fn settled(tasks: u32) -> Self {
        Self {
            tasks,
            load: tasks.saturating_mul(SCALE),
            util: tasks.min(1) * SCALE,
            runnable: tasks.saturating_mul(SCALE),
        }
    }

    /// Adds a freshly forked task: it starts with its full weight, and half of the utilisation that is left.
    #[doc(alias = "post_init_entity_util_avg")]
    fn add_fresh(&mut self) {
        let cap = SCALE.saturating_sub(self.util) / 2;
        let util = match self.util {
            0 => cap,
            util => {
                cap.min(u32::try_from(u64::from(util) * 1024 / (u64::from(self.load) + 1)).unwrap_or(cap))
            }
        };
        self.tasks += 1;
        self.load = self.load.saturating_add(SCALE);
        self.util += util;
        self.runnable = self.runnable.saturating_add(util);
    }
}

/// The sums over one group that the kernel would compute afresh for each task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupStats {
    ready: bool,
    /// CPUs of the group that the task may use.
    pub(crate) allowed: u32,
    #[doc(alias = "sum_nr_running")]
    pub(crate) tasks: u32,
    #[doc(alias = "idle_cpus")]
    pub(crate) idle: u32,
    #[doc(alias = "group_util")]
    pub(crate) util: u32,
    #[doc(alias = "group_runnable")]
    pub(crate) runnable: u32,
    #[doc(alias = "group_load")]
    pub(crate) load: u32,
}

/// The counters during a burst under one mask.
#[derive(Debug, Clone)]
pub(crate) struct State<'a> {
    pub(crate) domains: &'a Domains,
    pub(crate) profile: &'a Profile,
    load: &'a Load,
    allowed: &'a CpuSet,
    queues: Vec<Queue>,
    /// CPUs that run nothing, one bit each.
    idle: Vec<u64>,
    /// CPUs with two tasks or more, and how many there are.
    crowded: Vec<u64>,
    crowds: u32,
    /// Those that had them before the burst.
    crowded_before: Vec<u64>,
    groups: Vec<GroupStats>,
    /// Groups and tied CPUs that were looked at.
    looks: u64,
}

impl<'a> State<'a> {
    /// The counters before the first task, for tasks that may use `allowed`.
    pub(crate) fn new(
        domains: &'a Domains,
        profile: &'a Profile,
        load: &'a Load,
        allowed: &'a CpuSet,
    ) -> Self {
        let limit = domains.cpu_limit();
        let words = limit.div_ceil(64);
        let mut state = Self {
            domains,
            profile,
            load,
            allowed,
            queues: vec![Queue::default(); limit],
            idle: vec![u64::MAX; words],
            crowded: vec![0; words],
            crowds: 0,
            crowded_before: Vec::new(),
            groups: vec![GroupStats::default(); domains.groups().len()],
            looks: 0,
        };
        for (index, cpu) in (0..=u16::MAX).map(Cpu::from).take(limit).enumerate() {
            let tasks = load.runnable(cpu);
            if tasks > 0 {
                state.queues[index] = Queue::settled(tasks);
                state.mark_busy(cpu, tasks);
            }
        }
        for (cpu, known) in load.averages().take_while(|(cpu, _)| cpu.index() < limit) {
            let queue = &mut state.queues[cpu.index()];
            queue.load = known.load.unwrap_or(queue.load);
            queue.util = known.util.unwrap_or(queue.util);
            queue.runnable = known.runnable.unwrap_or(queue.runnable);
        }
        state.crowded_before = state.crowded.clone();
        state
    }

    /// Notes that so many groups or tied CPUs are looked at: what a placement costs.
    pub(crate) fn note_looks(&mut self, count: usize) {
        self.looks += count as u64;
    }

    /// How many were looked at since this was last asked.
    pub(crate) fn take_looks(&mut self) -> u64 {
        std::mem::take(&mut self.looks)
    }

    /// The CPUs that the tasks may use.
    pub(crate) fn allowed(&self) -> &'a CpuSet {
        self.allowed
    }

    /// The counters of a CPU.
    pub(crate) fn queue(&self, cpu: Cpu) -> Queue {
        self.queues.get(cpu.index()).copied().unwrap_or_default()
    }

    /// Tasks that count on a CPU and that the kernel does not see.
    pub(crate) fn asleep(&self, cpu: Cpu) -> u32 {
        self.load.asleep(cpu)
    }

    /// Adds a task that has run for long, such as the parent.
    pub(crate) fn add_settled(&mut self, cpu: Cpu) {
        self.change(cpu, |queue| {
            queue.tasks += 1;
            queue.load = queue.load.saturating_add(SCALE);
            queue.util = SCALE;
            queue.runnable = queue.runnable.saturating_add(SCALE);
        });
    }

    /// Adds a task that has hardly run.
    pub(crate) fn add_light(&mut self, cpu: Cpu) {
        self.change(cpu, |queue| {
            queue.tasks += 1;
            queue.load = queue.load.saturating_add(SCALE);
        });
    }

    /// Adds a task that was just forked.
    pub(crate) fn add_fresh(&mut self, cpu: Cpu) {
        self.change(cpu, Queue::add_fresh);
    }

    fn change(&mut self, cpu: Cpu, change: impl FnOnce(&mut Queue)) {
        let Some(queue) = self.queues.get_mut(cpu.index()) else {
            return;
        };
        let before = *queue;
        change(queue);
        let after = *queue;
        self.mark_busy(cpu, after.tasks);
        let counts = self.profile.stats == StatsRule::All || self.allowed.contains(cpu);
        if !counts {
            return;
        }
        for &group in self.domains.groups_of(cpu) {
            let stats = &mut self.groups[group as usize];
            if stats.ready {
                stats.tasks += after.tasks - before.tasks;
                stats.idle -= u32::from(before.tasks == 0);
                stats.util = stats.util - before.util + after.util;
                stats.runnable = (stats.runnable - before.runnable).saturating_add(after.runnable);
                stats.load = stats.load.saturating_add(after.load - before.load);
            }
        }
    }

    fn mark_busy(&mut self, cpu: Cpu, tasks: u32) {
        let (word, bit) = (cpu.index() / 64, 1 << (cpu.index() % 64));
        self.idle[word] &= !bit;
        if tasks > 1 && self.crowded[word] & bit == 0 {
            self.crowded[word] |= bit;
            self.crowds += 1;
        }
    }

    /// The sums of a group; computed at the first look, kept up to date from then on.
    #[doc(alias = "update_sg_wakeup_stats")]
    pub(crate) fn stats(&mut self, group: u32) -> GroupStats {
        let known = self.groups[group as usize];
        if known.ready {
            return known;
        }
        let cpus = &self.domains.groups()[group as usize];
        let mut stats = GroupStats { ready: true, ..GroupStats::default() };
        for cpu in cpus {
            let allowed = self.allowed.contains(cpu);
            stats.allowed += u32::from(allowed);
            if allowed || self.profile.stats == StatsRule::All {
                let queue = self.queues[cpu.index()];
                stats.tasks += queue.tasks;
                stats.idle += u32::from(queue.tasks == 0);
                stats.util += queue.util;
                stats.runnable = stats.runnable.saturating_add(queue.runnable);
                stats.load = stats.load.saturating_add(queue.load);
            }
        }
        self.groups[group as usize] = stats;
        stats
    }

    /// The weight against which a group's tasks are held.
    pub(crate) fn weight(&self, group: u32, stats: &GroupStats) -> u32 {
        match self.profile.stats {
            StatsRule::AllowedWhole => stats.allowed,
            StatsRule::All | StatsRule::Allowed => self.domains.group_weight(group),
        }
    }

    /// The CPUs of a group that the tasks may use, ascending.
    pub(crate) fn allowed_in(&self, group: u32) -> impl Iterator<Item = Cpu> {
        self.cpus_where(group, |_| u64::MAX)
    }

    /// The idle CPUs of a group that the tasks may use, ascending.
    pub(crate) fn idle_allowed_in(&self, group: u32) -> impl Iterator<Item = Cpu> {
        self.cpus_where(group, |index| self.idle[index])
    }

    /// The allowed CPUs of a group whose bits are set in the words that `keep` gives.
    fn cpus_where(&self, group: u32, keep: impl Fn(usize) -> u64) -> impl Iterator<Item = Cpu> {
        let words = self.domains.groups()[group as usize].words();
        let kept = words.map(move |(i, word)| (i, word & keep(i) & self.allowed.word(i)));
        kept.flat_map(|(index, word)| cpuset::cpus_of_word(index, word))
    }

    /// Whether load balancing inside the group could mark it as imbalanced: an idle CPU there is refused by the tasks of
    /// a queue of two or more. The job's own tasks refuse CPUs outside their mask; what the tasks refuse that ran
    /// before is not known, so any. Wider than the kernel's own condition.
    #[doc(alias = "sg_imbalanced")]
    #[doc(alias = "SOME_PINNED")]
    pub(crate) fn can_be_marked(&self, group: u32) -> bool {
        if self.crowds == 0 {
            return false;
        }
        let (mut crowded, mut crowded_before, mut idle, mut idle_outside) = (0, 0, 0, 0);
        for (i, word) in self.domains.groups()[group as usize].words() {
            crowded |= word & self.crowded[i];
            crowded_before |= word & self.crowded_before[i];
            idle |= word & self.idle[i];
            idle_outside |= word & self.idle[i] & !self.allowed.word(i);
        }
        (crowded != 0 && idle_outside != 0) || (crowded_before != 0 && idle != 0)
    }
}
