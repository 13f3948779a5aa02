//! Component one reached: what every placement with the fewest tasks per CPU has in common, and what it leaves open.

use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
};

/// CPUs filled evenly from the emptiest up. Every placement whose tasks per CPU, sorted descending, are the least has
/// [`Fill::base`] and one more task on each of [`Fill::rest`] different ones of [`Fill::candidates`].
#[derive(Debug)]
pub(super) struct Fill {
    base: Vec<u32>,
    /// The CPUs that may get one task more, ascending.
    pub(super) candidates: Vec<Cpu>,
    /// How many of them do: fewer than there are.
    pub(super) rest: usize,
    /// The candidates are idle, and no CPU has tasks in common.
    pub(super) on_idle: bool,
}

impl Fill {
    /// Fills the open CPUs, at least one, with so many tasks.
    pub(super) fn new(load: &Load, open: &CpuSet, tasks: u32) -> Self {
        let mut taken: Vec<u32> = open.iter().map(|cpu| load.taken(cpu)).collect();
        taken.sort_unstable();
        let (mut level, mut left) = (taken.first().copied().unwrap_or(0), u64::from(tasks));
        for (count, next) in (1..).zip(taken.iter().skip(1).map(Some).chain([None])) {
            let needed = next.map(|&next| u64::from(next - level) * count);
            match (next, needed) {
                (Some(&next), Some(needed)) if needed <= left => (level, left) = (next, left - needed),
                _ => {
                    level += u32::try_from(left / count).unwrap_or(u32::MAX);
                    left %= count;
                    break;
                }
            }
        }
        let mut base = vec![0; open.last().map_or(0, |cpu| cpu.index() + 1)];
        open.iter().for_each(|cpu| base[cpu.index()] = level.saturating_sub(load.taken(cpu)));
        Self {
            base,
            candidates: open.iter().filter(|&cpu| load.taken(cpu) <= level).collect(),
            rest: usize::try_from(left).unwrap_or(usize::MAX),
            on_idle: level == 0,
        }
    }

    /// Tasks that every such placement puts on the CPU.
    pub(super) fn base(&self, cpu: Cpu) -> u32 {
        self.base.get(cpu.index()).copied().unwrap_or(0)
    }

    /// The CPUs that all such placements take, ascending, each as often as tasks are put there.
    pub(super) fn common(&self) -> Vec<Cpu> {
        let tasks = (0..=u16::MAX).map(Cpu::from).zip(&self.base);
        tasks.flat_map(|(cpu, &tasks)| (0..tasks).map(move |_| cpu)).collect()
    }
}
