//! A mask of a hold, and where its tasks count.

use crate::cpuset::{Cpu, CpuSet};
use std::collections::BTreeMap;

/// A mask of a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    cpus: CpuSet,
    tasks: u32,
    /// What counts on each of its CPUs, ascending.
    counts: Vec<(Cpu, u32)>,
}

impl Part {
    /// The tasks of a placement: they count where they are placed.
    pub fn placed(places: &[Cpu]) -> Self {
        let mut counts: BTreeMap<Cpu, u32> = BTreeMap::new();
        for &cpu in places {
            *counts.entry(cpu).or_default() += 1;
        }
        Self::counted(counts.into_iter().collect())
    }

    /// Tasks that nobody has placed: as many count on each CPU as on any other, and one at least.
    pub fn spread(cpus: &CpuSet, tasks: u32) -> Self {
        let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX).max(1);
        let (each, more) = (tasks / count, tasks % count);
        let counts = cpus.iter().zip(0..).map(|(cpu, index)| (cpu, (each + u32::from(index < more)).max(1)));
        Self { tasks, ..Self::counted(counts.collect()) }
    }

    /// Tasks that count so on each CPU; a CPU is named once.
    pub fn counted(counts: Vec<(Cpu, u32)>) -> Self {
        let cpus = counts.iter().map(|&(cpu, _)| cpu).collect();
        let tasks = counts.iter().fold(0u32, |sum, &(_, tasks)| sum.saturating_add(tasks));
        Self { cpus, tasks, counts }
    }

    /// The same mask for so many tasks.
    #[must_use]
    pub fn for_tasks(self, tasks: u32) -> Self {
        Self { tasks, ..self }
    }

    /// Its CPUs.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// How many tasks are under it.
    pub fn tasks(&self) -> u32 {
        self.tasks
    }

    /// What counts on each of its CPUs, ascending.
    pub fn counts(&self) -> &[(Cpu, u32)] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_count_where_they_are() {
        let cpu = Cpu::from;
        let placed = Part::placed(&[cpu(4), cpu(1), cpu(4)]);
        assert_eq!((placed.tasks(), placed.counts()), (3, [(cpu(1), 1), (cpu(4), 2)].as_slice()));
        let cpus: CpuSet = [1, 2, 3].map(cpu).into_iter().collect();
        let counts = |tasks| Part::spread(&cpus, tasks).counts().iter().map(|c| c.1).collect::<Vec<_>>();
        assert_eq!((counts(1), counts(3), counts(5)), (vec![1, 1, 1], vec![1, 1, 1], vec![2, 2, 1]));
        assert_eq!(Part::spread(&cpus, 1).tasks(), 1);
    }
}
