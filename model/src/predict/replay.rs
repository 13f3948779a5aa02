//! A burst along places that are known, such as those in a real kernel's record.

use super::{
    Entry, Host, Weight,
    group::{Open, Task},
    mark::{Markable, Marks},
    state::State,
    walk::Walk,
};
use crate::cpuset::{Cpu, CpuSet};

/// The counters of a host along a record.
#[derive(Debug, Clone)]
pub struct Replay<'a>(State<'a>);

impl<'a> Replay<'a> {
    /// Before the first task, for tasks that may use `allowed`; with these marks beside those that choices leave open.
    pub fn new(host: Host<'a>, allowed: &'a CpuSet, marks: Marks) -> Self {
        Self(State::new(host, allowed, 0, marks))
    }

    /// Lets time pass, in microseconds.
    pub fn advance(&mut self, micros: u64) {
        self.0.advance(micros);
    }

    /// A task begins to run on the CPU.
    pub fn add(&mut self, cpu: Cpu, weight: Weight) {
        weight.add(cpu, &mut self.0);
    }

    /// A task leaves the CPU.
    pub fn remove(&mut self, cpu: Cpu) {
        self.0.remove(cpu);
    }

    /// Where the kernel may put a task that is forked on `origin`: whichever of equally idle CPUs and equal groups it
    /// takes and whichever groups are marked; with `weights` for however long the tasks may have run.
    pub fn choices(&mut self, origin: Cpu, marks: Markable, weights: bool) -> CpuSet {
        let walk = Walk { origin, entry: Entry::Fork, task: Task::default(), idle: &[] };
        let mut outcomes = CpuSet::new();
        walk.visit(&mut self.0, Open { marks, weights, ring_order: false }, &mut outcomes);
        outcomes
    }
}
