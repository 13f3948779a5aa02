//! The CPUs of a placement divided among tasks that have several each.

use super::tree::split;
use crate::{
    cpuset::{Cpu, CpuSet},
    topology::{Level, Topology},
};
use std::collections::BTreeMap;

/// The CPUs of each task, `per_task` of them: tasks are whole in an LLC as far as that goes, then in a node, then in a
/// package. The tasks come in the order of their lowest CPUs.
pub(super) fn entries(topology: &Topology, places: &[Cpu], per_task: u32) -> Vec<Vec<Cpu>> {
    let per_task = usize::try_from(per_task).unwrap_or(usize::MAX).max(1);
    let mut tasks: Vec<Vec<Cpu>> = Vec::new();
    let mut left: BTreeMap<Cpu, usize> = BTreeMap::new();
    places.iter().for_each(|&cpu| *left.entry(cpu).or_default() += 1);
    for level in [Level::Llc, Level::Node, Level::Package] {
        let cpus: CpuSet = left.keys().copied().collect();
        for unit in split(topology, level, &cpus) {
            let inside = neighbours(topology, &unit, &left);
            for task in inside.chunks_exact(per_task) {
                task.iter().for_each(|cpu| take(&mut left, *cpu));
                tasks.push(task.to_vec());
            }
        }
    }
    let cpus: CpuSet = left.keys().copied().collect();
    tasks.extend(neighbours(topology, &cpus, &left).chunks(per_task).map(<[Cpu]>::to_vec));
    tasks.iter_mut().for_each(|task| task.sort_unstable());
    tasks.sort_unstable();
    tasks
}

/// The CPUs of a unit, core by core; those that several tasks share once more after all others.
fn neighbours(topology: &Topology, unit: &CpuSet, left: &BTreeMap<Cpu, usize>) -> Vec<Cpu> {
    let mut all: Vec<(usize, Option<usize>, Cpu)> = Vec::new();
    for cpu in unit {
        let times = left.get(&cpu).copied().unwrap_or(0);
        all.extend((0..times).map(|round| (round, topology.unit_of(Level::Core, cpu), cpu)));
    }
    all.sort_unstable();
    all.into_iter().map(|(_, _, cpu)| cpu).collect()
}

fn take(left: &mut BTreeMap<Cpu, usize>, cpu: Cpu) {
    if let Some(times) = left.get_mut(&cpu) {
        *times -= 1;
        if *times == 0 {
            left.remove(&cpu);
        }
    }
}
