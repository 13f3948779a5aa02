//! What the kernel's counters say at one moment of a burst: per CPU and, kept up to date task by task, per group.

use super::{
    Host,
    clock::{Clock, Lack},
    group::{GroupType, settled_type},
    mark::{MarkBoard, Markable, Marks},
    queue::{Queue, full},
    sparse::Sparse,
};
use crate::{
    cpuset::{self, Cpu, CpuSet},
    domains::{Domains, View},
    load::Load,
    profile::{Profile, StatsRule},
};
use std::cmp::Reverse;

/// The sums over one group that the kernel would compute afresh for each task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupStats {
    /// What its tasks are held against.
    pub(crate) weight: u32,
    /// CPUs of the group that the task may use.
    pub(crate) allowed: u32,
    #[doc(alias = "sum_nr_running")]
    pub(crate) tasks: u32,
    #[doc(alias = "idle_cpus")]
    pub(crate) idle: u32,
    /// CPUs that count and are not idle.
    pub(crate) busy: u32,
    /// What is lacking of 1024 for each busy CPU.
    #[doc(alias = "group_util")]
    util_lack: Lack,
    /// What is lacking of 1024 for each task.
    #[doc(alias = "group_runnable")]
    runnable_lack: Lack,
    #[doc(alias = "group_load")]
    pub(crate) load: u32,
    /// How much of that may be missing.
    pub(crate) open_load: u32,
    /// Tasks and idle CPUs of the whole group, as load balancing counts them.
    pub(crate) all_tasks: u32,
    pub(crate) all_idle: u32,
}

impl GroupStats {
    /// Whether the whole group is overloaded once its tasks have run for long.
    fn settles_overloaded(&self, weight: u32, imbalance_pct: u32) -> bool {
        let busy = weight - self.all_idle.min(weight);
        settled_type(self.all_tasks, weight, busy, imbalance_pct) == GroupType::Overloaded
    }

    fn enter(&mut self, queue: Queue) {
        self.tasks += queue.tasks;
        self.idle += u32::from(queue.tasks == 0);
        self.busy += u32::from(queue.tasks > 0);
        self.util_lack = self.util_lack.saturating_add(queue.util_lack);
        self.runnable_lack = self.runnable_lack.saturating_add(queue.runnable_lack);
        self.load = self.load.saturating_add(queue.load);
        self.open_load = self.open_load.saturating_add(queue.open_load);
    }

    fn leave(&mut self, queue: Queue) {
        self.tasks -= queue.tasks;
        self.idle -= u32::from(queue.tasks == 0);
        self.busy -= u32::from(queue.tasks > 0);
        self.util_lack = self.util_lack.saturating_sub(queue.util_lack);
        self.runnable_lack = self.runnable_lack.saturating_sub(queue.runnable_lack);
        self.load = self.load.saturating_sub(queue.load);
        self.open_load = self.open_load.saturating_sub(queue.open_load);
    }
}

/// 64 CPUs, one bit each.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// Those that have a queue of their own.
    known: u64,
    /// Those that run nothing.
    idle: u64,
    /// Those with two tasks or more.
    crowded: u64,
    /// Those that ran something before the burst.
    busy_before: u64,
}

/// How much a group draws load balancing; larger is busier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pull {
    overloaded: bool,
    few_idle: Reverse<u32>,
    tasks: u32,
}

/// The counters during a burst under one mask.
#[derive(Debug, Clone)]
pub(crate) struct State<'a> {
    pub(crate) domains: &'a Domains,
    pub(crate) profile: &'a Profile,
    load: &'a Load,
    allowed: &'a CpuSet,
    /// Those of the CPUs of which anything is known; the others run nothing.
    queues: Sparse<Queue>,
    /// What is asked of many CPUs at a time, by words of 64.
    words: Vec<Word>,
    /// CPUs with two tasks or more.
    crowds: u32,
    /// Of the groups that were looked at.
    groups: Sparse<GroupStats>,
    clock: Clock,
    board: MarkBoard,
    /// Groups and tied CPUs that were looked at.
    looks: u64,
}

impl<'a> State<'a> {
    /// The counters before the first of so many tasks, which may use `allowed`.
    pub(crate) fn new(host: Host<'a>, allowed: &'a CpuSet, tasks: u32, marks: Marks) -> Self {
        let Host { domains, profile, load, .. } = host;
        let limit = domains.cpu_limit();
        let words = limit.div_ceil(64);
        let groups = domains.groups().len();
        // A task has a queue of its own at most, besides the parent's, and leads to a few groups.
        let room = (tasks as usize).saturating_add(load.busy().count() + 1).min(limit);
        let mut state = Self {
            domains,
            profile,
            load,
            allowed,
            queues: Sparse::new(limit, room),
            words: vec![Word { idle: u64::MAX, ..Word::default() }; words],
            crowds: 0,
            groups: Sparse::new(groups, 4 * (domains.widest() + room)),
            clock: Clock::default(),
            board: MarkBoard::new(marks, groups),
            looks: 0,
        };
        for (cpu, tasks) in load.busy().take_while(|(cpu, _)| cpu.index() < limit) {
            state.keep(cpu, Queue::settled(tasks));
        }
        for (cpu, known) in load.averages().take_while(|(cpu, _)| cpu.index() < limit) {
            let mut queue = state.queue(cpu);
            queue.know(state.clock, known.load, known.util, known.runnable);
            state.keep(cpu, queue);
        }
        for word in &mut state.words {
            word.busy_before = !word.idle;
        }
        state
    }

    /// Takes the groups with exactly these CPUs as marked.
    pub(crate) fn mark(&mut self, groups: &[CpuSet]) {
        for cpus in groups {
            for (group, _) in (0..).zip(self.domains.groups()).filter(|(_, known)| *known == cpus) {
                self.board.tell(group);
            }
        }
    }

    /// Takes what is not known of tasks that ran before the burst at its least, with what may be more told beside it.
    /// Nothing was looked at yet.
    pub(crate) fn lighten(&mut self) {
        for (cpu, _) in self.load.busy().take_while(|(cpu, _)| cpu.index() < self.domains.cpu_limit()) {
            let mut queue = self.queue(cpu);
            queue.lighten(self.clock, self.load.averages_of(cpu));
            self.keep(cpu, queue);
        }
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

    /// The same once a task that was just forked is there.
    pub(crate) fn queue_with_fresh(&self, cpu: Cpu) -> Queue {
        let mut queue = self.queue(cpu);
        queue.add_fresh(self.clock);
        queue
    }

    /// Whether pinned tasks waited for the CPU of late.
    pub(crate) fn was_crowded(&self, cpu: Cpu) -> bool {
        self.load.crowded().contains(cpu)
    }

    /// Tasks that count on a CPU and that the kernel does not see.
    pub(crate) fn asleep(&self, cpu: Cpu) -> u32 {
        self.load.asleep(cpu)
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, micros: u64) {
        self.board.advance(micros);
        let shift = self.clock.advance(micros);
        if shift > 0 {
            let queues = self.queues.values_mut().map(|q| (&mut q.util_lack, &mut q.runnable_lack));
            let groups = self.groups.values_mut().map(|g| (&mut g.util_lack, &mut g.runnable_lack));
            for (util, runnable) in queues.chain(groups) {
                (*util, *runnable) = (*util >> shift, *runnable >> shift);
            }
        }
    }

    /// Utilisation of a CPU now.
    pub(crate) fn util_of(&self, cpu: Cpu) -> u32 {
        self.queue(cpu).util(self.clock)
    }

    /// Utilisation of a group now, 1024 for each of its CPUs that count at most.
    pub(crate) fn util(&self, stats: &GroupStats) -> u64 {
        full(stats.busy).saturating_add_signed(-self.clock.lacking(stats.util_lack))
    }

    /// Whether a group's utilisation is less than another's now.
    pub(crate) fn is_less_used(&self, stats: &GroupStats, than: &GroupStats) -> bool {
        (stats.busy, stats.util_lack) != (than.busy, than.util_lack) && self.util(stats) < self.util(than)
    }

    /// Running and waiting time of a group now, 1024 for each of its tasks at most.
    pub(crate) fn runnable(&self, stats: &GroupStats) -> u64 {
        full(stats.tasks).saturating_add_signed(-self.clock.lacking(stats.runnable_lack))
    }

    /// Adds a task that has run for long.
    pub(crate) fn add_settled(&mut self, cpu: Cpu) {
        self.change(cpu, |queue, _| queue.add_settled());
    }

    /// Adds a task that has hardly run, such as a parent that mostly sleeps.
    pub(crate) fn add_light(&mut self, cpu: Cpu) {
        self.change(cpu, Queue::add_light);
    }

    /// Adds a task that was just forked.
    pub(crate) fn add_fresh(&mut self, cpu: Cpu) {
        self.change(cpu, Queue::add_fresh);
    }

    /// Takes a task away, such as one that load balancing moves.
    pub(crate) fn remove(&mut self, cpu: Cpu) {
        self.change(cpu, |queue, _| queue.remove());
    }

    fn change(&mut self, cpu: Cpu, change: impl FnOnce(&mut Queue, Clock)) {
        if cpu.index() >= self.domains.cpu_limit() {
            return;
        }
        let before = self.queue(cpu);
        let mut after = before;
        change(&mut after, self.clock);
        self.keep(cpu, after);
        let counts = self.counts(cpu);
        for &group in self.domains.groups_of(cpu) {
            let Some(stats) = self.groups.get_mut(group as usize) else { continue };
            stats.all_tasks = stats.all_tasks + after.tasks - before.tasks;
            stats.all_idle = stats.all_idle + u32::from(after.tasks == 0) - u32::from(before.tasks == 0);
            if counts {
                stats.leave(before);
                stats.enter(after);
            }
        }
        if self.crowds > 0 && self.board.asks_for_reasons() {
            self.note_reason(cpu);
        }
    }

    /// Whether the profile counts what runs on the CPU.
    fn counts(&self, cpu: Cpu) -> bool {
        self.profile.stats == StatsRule::All || self.allowed.contains(cpu)
    }

    /// Looks whether load balancing has a reason to mark a group, now that something changed on the CPU. Only the groups
    /// of the widest domains are looked at: of others hardly any was ever seen marked within a burst.
    fn note_reason(&mut self, cpu: Cpu) {
        if let [.., below, _] = *self.domains.chain(cpu) {
            let domain = self.domains.view(below);
            let has_reason = self.has_reason(domain);
            self.board.note(domain.span, has_reason);
        }
    }

    /// Whether a pass of load balancing at the domain finds work that affinity refuses: an idle CPU outside the mask, and
    /// a busier group with a queue of two or more. All CPUs count, whatever the profile.
    #[doc(alias = "calculate_imbalance")]
    #[doc(alias = "can_migrate_task")]
    fn has_reason(&mut self, domain: View<'_>) -> bool {
        let mut busiest: Option<(Pull, u32)> = None;
        for &group in domain.ring {
            let stats = self.stats(group);
            let pull = Pull {
                overloaded: stats.settles_overloaded(self.domains.group_weight(group), domain.imbalance_pct),
                few_idle: Reverse(stats.all_idle),
                tasks: stats.all_tasks,
            };
            if busiest.is_none_or(|(most, _)| pull > most) {
                busiest = Some((pull, group));
            }
        }
        let Some((pull, busy)) = busiest.filter(|&(_, group)| self.has(group, |i| self.words[i].crowded))
        else {
            return false;
        };
        let evens_tasks = self.domains.group_weight(busy) == 1 || self.domains.prefers_siblings(busy);
        domain.ring.iter().filter(|&&group| group != busy).any(|&group| {
            let refused = self.has(group, |i| self.words[i].idle & !self.allowed.word(i));
            let stats = self.stats(group);
            let ahead = if evens_tasks {
                pull.tasks.saturating_sub(stats.all_tasks)
            } else {
                stats.all_idle.saturating_sub(pull.few_idle.0)
            };
            let tolerated = if domain.numa && stats.all_tasks < domain.imb_numa_nr { 2 } else { 1 };
            refused && (pull.overloaded || ahead > tolerated)
        })
    }

    /// Whether a group has a CPU whose bit is set in the words that `keep` gives.
    fn has(&self, group: u32, keep: impl Fn(usize) -> u64) -> bool {
        self.domains.groups()[group as usize].words().any(|(i, word)| word & keep(i) != 0)
    }

    /// The marks of the groups.
    pub(crate) fn board(&self) -> &MarkBoard {
        &self.board
    }

    /// Whether load balancing has marked the group.
    pub(crate) fn is_marked(&self, group: u32) -> bool {
        !self.board.is_blank() && self.board.is_set(group)
    }

    /// Puts down what a queue has become.
    fn keep(&mut self, cpu: Cpu, queue: Queue) {
        self.queues.set(cpu.index(), queue);
        let bit = 1 << (cpu.index() % 64);
        let word = &mut self.words[cpu.index() / 64];
        let was_crowded = word.crowded & bit != 0;
        word.known |= bit;
        word.idle = if queue.tasks == 0 { word.idle | bit } else { word.idle & !bit };
        if (queue.tasks > 1) != was_crowded {
            word.crowded ^= bit;
            self.crowds = if was_crowded { self.crowds - 1 } else { self.crowds + 1 };
        }
    }

    /// Looks at every group of a domain.
    pub(crate) fn look_at(&mut self, domain: View<'_>) {
        self.note_looks(domain.ring.len());
        for &group in domain.ring {
            if self.known(group).is_none() {
                self.stats(group);
            }
        }
    }

    /// The sums of a group that was looked at.
    pub(crate) fn known(&self, group: u32) -> Option<&GroupStats> {
        self.groups.get(group as usize)
    }

    /// The sums of a group; computed at the first look, kept up to date from then on.
    #[doc(alias = "update_sg_wakeup_stats")]
    fn stats(&mut self, group: u32) -> GroupStats {
        if let Some(known) = self.groups.get(group as usize) {
            return *known;
        }
        let mut stats = self.summed_up(&self.domains.groups()[group as usize]);
        stats.weight = self.weight(group, stats.allowed);
        self.groups.set(group as usize, stats);
        stats
    }

    /// The sums over some CPUs. Of those whose queues are not known it matters only how many there are.
    fn summed_up(&self, cpus: &CpuSet) -> GroupStats {
        let all = self.profile.stats == StatsRule::All;
        let mut stats = GroupStats::default();
        for (index, word) in cpus.words() {
            let allowed = word & self.allowed.word(index);
            stats.allowed += allowed.count_ones();
            stats.all_idle += (word & self.words[index].idle).count_ones();
            let counted = if all { word } else { allowed };
            stats.idle += (counted & !self.words[index].known).count_ones();
            for cpu in cpuset::cpus_of_word(index, word & self.words[index].known) {
                let queue = self.queue(cpu);
                stats.all_tasks += queue.tasks;
                if self.counts(cpu) {
                    stats.enter(queue);
                }
            }
        }
        stats
    }

    /// What a group's tasks are held against: all its CPUs, or those that the task may use.
    pub(crate) fn weight(&self, group: u32, allowed: u32) -> u32 {
        match self.profile.stats {
            StatsRule::AllowedWhole => allowed,
            StatsRule::All | StatsRule::Allowed => self.domains.group_weight(group),
        }
    }

    /// The CPUs of a group that the tasks may use, ascending.
    pub(crate) fn allowed_in(&self, group: u32) -> impl Iterator<Item = Cpu> {
        self.words_where(group, |_| u64::MAX).flat_map(|(index, word)| cpuset::cpus_of_word(index, word))
    }

    /// The idle CPUs of a group that the tasks may use, ascending.
    pub(crate) fn idle_allowed_in(&self, group: u32) -> impl Iterator<Item = Cpu> {
        self.idle_words_in(group).flat_map(|(index, word)| cpuset::cpus_of_word(index, word))
    }

    /// The same as a set.
    pub(crate) fn idle_set_in(&self, group: u32) -> CpuSet {
        CpuSet::of_words(self.idle_words_in(group))
    }

    fn idle_words_in(&self, group: u32) -> impl Iterator<Item = (usize, u64)> {
        self.words_where(group, |index| self.words[index].idle)
    }

    /// The allowed CPUs of a group, by words, whose bits are set in the words that `keep` gives.
    fn words_where(&self, group: u32, keep: impl Fn(usize) -> u64) -> impl Iterator<Item = (usize, u64)> {
        let words = self.domains.groups()[group as usize].words();
        words.map(move |(i, word)| (i, word & keep(i) & self.allowed.word(i)))
    }

    /// Whether load balancing inside the group could mark it as imbalanced: some CPU there is refused by the tasks of a
    /// queue of two or more. The job's own tasks refuse CPUs outside their mask; what the tasks refuse that ran before
    /// is not known, so any; and a mark may be left of tasks that waited of late. Wider than the kernel's own condition, which asks for how far ahead the queue's group is.
    #[doc(alias = "sg_imbalanced")]
    #[doc(alias = "SOME_PINNED")]
    pub(crate) fn may_be_marked(&self, group: u32, which: Markable) -> bool {
        if which != Markable::Crowded {
            return which == Markable::Any;
        }
        let (cpus, is_single) =
            (&self.domains.groups()[group as usize], self.domains.group_weight(group) == 1);
        if !is_single && cpus.intersects(self.load.crowded()) {
            return true;
        }
        if self.crowds == 0 {
            return false;
        }
        let (mut crowded, mut crowded_with_others, mut outside) = (0, 0, 0);
        for (i, word) in cpus.words() {
            let of = self.words[i];
            crowded |= word & of.crowded;
            crowded_with_others |= word & of.crowded & of.busy_before;
            outside |= word & !self.allowed.word(i);
        }
        (crowded != 0 && outside != 0) || (crowded_with_others != 0 && !is_single)
    }
}
