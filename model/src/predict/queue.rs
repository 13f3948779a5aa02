//! What the kernel's counters say of one run queue.

use super::clock::{Clock, Lack};
use crate::load::Averages;

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
    /// How much of that weight may be missing: what tasks weigh that ran before and slept in between is not known.
    pub(crate) open_load: u32,
    /// What the utilisation lacks of a queue that has long been busy.
    #[doc(alias = "util_avg")]
    pub(crate) util_lack: Lack,
    /// What running and waiting time lack of 1024 for each task.
    #[doc(alias = "runnable_avg")]
    pub(crate) runnable_lack: Lack,
}

impl Queue {
    /// Tasks that have run for long.
    pub(crate) fn settled(tasks: u32) -> Self {
        Self { tasks, load: tasks.saturating_mul(SCALE), ..Self::default() }
    }

    /// Takes over averages that are known, each if it is.
    pub(crate) fn know(&mut self, clock: Clock, load: Option<u32>, util: Option<u32>, runnable: Option<u32>) {
        self.load = load.unwrap_or(self.load);
        if let Some(util) = util {
            self.util_lack = clock.keep(of(self.tasks.min(1)) - signed(util));
        }
        if let Some(runnable) = runnable {
            self.runnable_lack = clock.keep(of(self.tasks) - signed(runnable));
        }
    }

    /// Takes what is not known of tasks that ran before at its least; the load is told as a range.
    pub(crate) fn lighten(&mut self, clock: Clock, known: Averages) {
        if known.util.is_none() {
            self.util_lack = clock.keep(of(self.tasks.min(1)));
        }
        if known.runnable.is_none() {
            self.runnable_lack = clock.keep(of(self.tasks));
        }
        if known.load.is_none() {
            self.open_load = self.load;
        }
    }

    /// Adds a freshly forked task: it starts with its full weight, and half of the utilisation that is left.
    #[doc(alias = "post_init_entity_util_avg")]
    pub(crate) fn add_fresh(&mut self, clock: Clock) {
        let util = self.util(clock);
        let cap = SCALE.saturating_sub(util) / 2;
        let new = match util {
            0 => cap,
            util => {
                cap.min(u32::try_from(u64::from(util) * 1024 / (u64::from(self.load) + 1)).unwrap_or(cap))
            }
        };
        self.add(clock.keep(of(1) - signed(util + new)), clock.keep(of(1) - signed(new)));
    }

    /// Adds a task that has hardly run.
    pub(crate) fn add_light(&mut self, clock: Clock) {
        self.add(clock.keep(of(1) - signed(self.util(clock))), clock.keep(of(1)));
    }

    /// Adds a task that has run for long.
    pub(crate) fn add_settled(&mut self) {
        self.add(0, 0);
    }

    /// Adds a task; says what the queue's utilisation lacks with it, and what its own running time lacks.
    fn add(&mut self, util_lack: Lack, runnable_lack: Lack) {
        self.tasks += 1;
        self.load = self.load.saturating_add(SCALE);
        self.util_lack = util_lack;
        self.runnable_lack = self.runnable_lack.saturating_add(runnable_lack);
    }

    /// Takes one task away.
    pub(crate) fn remove(&mut self) {
        let left = self.tasks.saturating_sub(1);
        *self = Self {
            tasks: left,
            load: self.load.saturating_sub(SCALE),
            open_load: self.open_load.min(self.load.saturating_sub(SCALE)),
            util_lack: if left == 0 { 0 } else { self.util_lack },
            runnable_lack: self.runnable_lack / i64::from(self.tasks.max(1)) * i64::from(left),
        };
    }

    /// Utilisation now.
    pub(crate) fn util(&self, clock: Clock) -> u32 {
        u32::try_from(i64::from(of(self.tasks.min(1))) - clock.lacking(self.util_lack)).unwrap_or(0)
    }
}

/// The most that an average can come to over so many CPUs or tasks.
fn of(count: u32) -> i32 {
    signed(count.saturating_mul(SCALE))
}

fn signed(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// The most that an average can come to over so many CPUs or tasks.
pub(crate) fn full(count: u32) -> u64 {
    u64::from(count) * u64::from(SCALE)
}
