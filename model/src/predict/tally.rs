//! What a placement comes to: tasks per CPU, idle CPUs, CPU use, pile-up.

use super::{Burst, Parent};
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
};
use std::{cmp::Reverse, collections::BTreeMap};

/// What a placement comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// The job's tasks on each CPU that has some, by CPU.
    pub tasks_on: Vec<(Cpu, u32)>,
    /// Tasks, others' and those of sleeping holders included, on the fullest CPU that has one of the job's.
    pub fullest: u32,
    /// The least that [`Tally::fullest`] could be.
    pub best: u32,
    /// Allowed CPUs on which nothing runs and nothing is held once the job runs.
    pub idle_allowed: CpuSet,
    /// The share of the CPU time they could use that the job's tasks get, 0 to 1; each CPU is shared evenly.
    pub cpu_use: f64,
    /// Whether the fullest CPU holds more tasks than the best possible placement would give it.
    pub pile_up: bool,
}

impl Tally {
    /// Counts the job's `places` on top of `load`.
    pub(super) fn new(load: &Load, allowed: &CpuSet, places: &[Cpu], bounds: &Bounds) -> Self {
        let mut tasks_on: BTreeMap<Cpu, u32> = BTreeMap::new();
        for &cpu in places {
            *tasks_on.entry(cpu).or_default() += 1;
        }
        let beside = |cpu: Cpu| u32::from(bounds.beside == Some(cpu));
        let all = |(&cpu, &tasks): (&Cpu, &u32)| tasks + load.taken(cpu) + beside(cpu);
        let share: f64 = tasks_on.iter().map(|on| f64::from(*on.1) / f64::from(all(on))).sum();
        let mut used = load.occupied();
        used.extend(tasks_on.keys().copied().chain(bounds.beside));
        let fullest = tasks_on.iter().map(all).max().unwrap_or(0);
        Self {
            fullest,
            best: bounds.best,
            idle_allowed: allowed.difference(&used),
            cpu_use: if places.is_empty() { 1.0 } else { share / places.len() as f64 },
            pile_up: fullest > bounds.best,
            tasks_on: tasks_on.into_iter().collect(),
        }
    }
}

impl Tally {
    /// Larger is worse: a pile-up before none, then tasks on the fullest CPU, then how few CPUs are used.
    pub fn severity(&self) -> (bool, u32, Reverse<usize>) {
        (self.pile_up, self.fullest, Reverse(self.tasks_on.len()))
    }
}

/// What the fullest CPU may hold before it is a pile-up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    best: u32,
    /// The CPU of a parent that keeps running beside the tasks, and counts as one more there.
    beside: Option<Cpu>,
    /// The CPU of a launcher, which the kernel sees and the outcome leaves out.
    launcher: Option<Cpu>,
}

impl Bounds {
    pub(super) fn new(load: &Load, burst: &Burst<'_>) -> Self {
        // A parent that is one of the tasks stays where it is; only the others could be placed better.
        let fixed = burst.placed_at_start();
        let at_origin = |parent: Parent| (burst.parent == parent).then_some(burst.origin);
        let (beside, launcher) = (at_origin(Parent::Runs), at_origin(Parent::Waits));
        let taken =
            |cpu: Cpu| load.taken(cpu) + u32::from(fixed == Some(cpu)) + u32::from(beside == Some(cpu));
        let best = best_fullest(burst.allowed.iter().map(taken), burst.placements());
        let best = fixed.map_or(best, |cpu| best.max(load.taken(cpu) + 1));
        Self { best, beside, launcher }
    }

    /// Whether a CPU with a task of the job piles up, on which `tasks` count, the launcher among them.
    pub(super) fn exceeded(&self, cpu: Cpu, tasks: u32) -> bool {
        tasks - u32::from(self.launcher == Some(cpu)) > self.best
    }
}

/// The fewest tasks on the fullest CPU that gets one, when `tasks` are put on CPUs that already run `taken`. 0 for no
/// tasks or no CPUs.
pub fn best_fullest(taken: impl IntoIterator<Item = u32>, tasks: u32) -> u32 {
    let mut taken: Vec<u32> = taken.into_iter().collect();
    if tasks == 0 || taken.is_empty() {
        return 0;
    }
    taken.sort_unstable();
    // Fill the emptiest CPUs level by level: with the first `n` CPUs in use, the level is the ceiling of the mean.
    let (mut sum, mut level) = (u64::from(tasks), u64::MAX);
    for (&runs, count) in taken.iter().zip(1u64..) {
        if u64::from(runs) >= level {
            break;
        }
        sum += u64::from(runs);
        level = sum.div_ceil(count).max(u64::from(runs) + 1).min(level);
    }
    u32::try_from(level).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn levels_of_water() {
        assert_eq!(best_fullest([0, 0, 0, 0], 4), 1);
        assert_eq!(best_fullest([0, 0, 0, 0], 5), 2);
        assert_eq!(best_fullest([5, 0], 2), 2);
        assert_eq!(best_fullest([1, 2, 1, 3], 1), 2);
        assert_eq!(best_fullest([3], 1), 4);
        assert_eq!(best_fullest([], 1), 0);
        assert_eq!(best_fullest([7], 0), 0);
    }

    proptest! {
        #[test]
        fn equals_placing_one_by_one(taken in prop::collection::vec(0u32..6, 1..12), tasks in 1u32..40) {
            let mut cpus = taken.clone();
            let mut fullest = 0;
            for _ in 0..tasks {
                let least = cpus.iter_mut().min().unwrap();
                *least += 1;
                fullest = fullest.max(*least);
            }
            prop_assert_eq!(best_fullest(taken, tasks), fullest);
        }
    }
}
