//! Where running tasks wait although they need not, and which moves mend that.
//!
//! Tasks count alike, and each may use some CPUs. A CPU is piled up if a task could go from it to an emptier one, at once
//! or by others making way: as long as there is none, no placement has a lower fullest CPU (of unit tasks with
//! restricted CPUs, a placement without such a way is the best one).

use crate::cpuset::{Cpu, CpuSet};
use std::collections::{BTreeMap, VecDeque};

/// A runnable thread of the workload.
#[derive(Debug, Clone, Copy)]
pub struct Runner<'a> {
    /// Its number.
    pub tid: u32,
    /// The CPU that it is on.
    pub cpu: Cpu,
    /// The CPUs that it may use.
    pub usable: &'a CpuSet,
}

/// A CPU with more tasks than it need have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PileUp {
    /// The CPU.
    pub cpu: Cpu,
    /// The workload's threads on it, ascending.
    pub tids: Vec<u32>,
    /// Runnable tasks on it in all.
    pub runnable: u32,
    /// Idle CPUs that these threads may use.
    pub idle: CpuSet,
}

/// A thread that goes from one CPU to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The thread.
    pub tid: u32,
    /// Where it is.
    pub from: Cpu,
    /// Where it should be.
    pub to: Cpu,
}

/// The CPUs on which the workload's threads are piled up, the fullest first. `counts` has the runnable tasks of each CPU,
/// these threads included; CPUs that are not named are idle.
pub fn pile_ups(threads: &[Runner<'_>], counts: &BTreeMap<Cpu, u32>) -> Vec<PileUp> {
    let floor = Floor::new(threads, counts);
    let piled = |cpu: &Cpu| floor.way_from(*cpu).is_some();
    floor.fullest_first().into_iter().filter(piled).map(|cpu| floor.pile_up(cpu)).collect()
}

/// Moves after which no CPU is piled up, by thread in the order of `threads`. Nothing if none is.
pub fn moves(threads: &[Runner<'_>], counts: &BTreeMap<Cpu, u32>) -> Vec<Move> {
    let mut floor = Floor::new(threads, counts);
    // Each way evens two CPUs out, so it comes to an end.
    while let Some(way) = floor.fullest_first().into_iter().find_map(|cpu| floor.way_from(cpu)) {
        for (index, to) in way {
            floor.put(index, to);
        }
    }
    let moved = threads.iter().zip(&floor.at).filter(|(thread, at)| thread.cpu != **at);
    moved.map(|(thread, &to)| Move { tid: thread.tid, from: thread.cpu, to }).collect()
}

/// Who is where.
struct Floor<'a> {
    threads: &'a [Runner<'a>],
    counts: BTreeMap<Cpu, u32>,
    /// Of each thread, where it is.
    at: Vec<Cpu>,
    /// Of each CPU, which threads are there.
    on: BTreeMap<Cpu, Vec<usize>>,
}

impl<'a> Floor<'a> {
    fn new(threads: &'a [Runner<'a>], counts: &BTreeMap<Cpu, u32>) -> Self {
        let mut floor = Self { threads, counts: counts.clone(), at: Vec::new(), on: BTreeMap::new() };
        for (index, thread) in threads.iter().enumerate() {
            floor.at.push(thread.cpu);
            floor.on.entry(thread.cpu).or_default().push(index);
        }
        // What was counted at another moment may have missed some.
        for (cpu, on) in &floor.on {
            let least = u32::try_from(on.len()).unwrap_or(u32::MAX);
            let count = floor.counts.entry(*cpu).or_default();
            *count = (*count).max(least);
        }
        floor
    }

    fn count(&self, cpu: Cpu) -> u32 {
        self.counts.get(&cpu).copied().unwrap_or(0)
    }

    /// The CPUs with threads of which one may wait.
    fn fullest_first(&self) -> Vec<Cpu> {
        let mut cpus: Vec<Cpu> =
            self.on.iter().filter(|(_, on)| !on.is_empty()).map(|(&cpu, _)| cpu).collect();
        cpus.retain(|&cpu| self.count(cpu) > 1);
        cpus.sort_by_key(|&cpu| std::cmp::Reverse(self.count(cpu)));
        cpus
    }

    /// The shortest way on which threads make room on a CPU, the last of them going to one that stays emptier than this
    /// CPU was: threads, each with where it goes.
    fn way_from(&self, from: Cpu) -> Option<Vec<(usize, Cpu)>> {
        let most = self.count(from);
        let mut seen = CpuSet::from(from);
        let mut came: BTreeMap<Cpu, (Cpu, usize)> = BTreeMap::new();
        let mut open = VecDeque::from([from]);
        while let Some(at) = open.pop_front() {
            let mut new = CpuSet::new();
            for &index in self.on.get(&at).into_iter().flatten() {
                let usable = self.threads[index].usable.difference(&seen);
                for cpu in &usable {
                    came.insert(cpu, (at, index));
                }
                seen.extend_from(&usable);
                new.extend_from(&usable);
            }
            let emptiest = new.iter().min_by_key(|&cpu| self.count(cpu));
            if let Some(to) = emptiest.filter(|&cpu| self.count(cpu) + 1 < most) {
                let mut way = Vec::new();
                let mut next = to;
                while let Some(&(before, index)) = came.get(&next) {
                    way.push((index, next));
                    next = before;
                }
                return Some(way);
            }
            open.extend(&new);
        }
        None
    }

    fn put(&mut self, index: usize, to: Cpu) {
        let from = std::mem::replace(&mut self.at[index], to);
        if let Some(on) = self.on.get_mut(&from) {
            on.retain(|&other| other != index);
        }
        self.on.entry(to).or_default().push(index);
        let less = self.count(from).saturating_sub(1);
        let more = self.count(to) + 1;
        self.counts.extend([(from, less), (to, more)]);
    }

    fn pile_up(&self, cpu: Cpu) -> PileUp {
        let on = self.on.get(&cpu).map_or(&[][..], Vec::as_slice);
        let mut tids: Vec<u32> = on.iter().map(|&index| self.threads[index].tid).collect();
        tids.sort_unstable();
        let usable = on.iter().fold(CpuSet::new(), |all, &index| all.union(self.threads[index].usable));
        let idle = usable.iter().filter(|&cpu| self.count(cpu) == 0).collect();
        PileUp { cpu, tids, runnable: self.count(cpu), idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cpus(list: &str) -> CpuSet {
        CpuSet::parse(list).unwrap()
    }

    /// Threads 1, 2, …, each on a CPU with a mask; and how many tasks more there are on CPUs.
    fn look(threads: &[(u16, &CpuSet)], others: &[(u16, u32)]) -> (Vec<PileUp>, Vec<Move>) {
        let mut counts = BTreeMap::new();
        let mut runners = Vec::new();
        for (tid, &(cpu, usable)) in (1..).zip(threads) {
            let cpu = Cpu::from(cpu);
            *counts.entry(cpu).or_default() += 1;
            runners.push(Runner { tid, cpu, usable });
        }
        for &(cpu, tasks) in others {
            *counts.entry(Cpu::from(cpu)).or_default() += tasks;
        }
        (pile_ups(&runners, &counts), moves(&runners, &counts))
    }

    #[test]
    fn threads_crowd_beside_idle_cpus() {
        let mask = cpus("0-3");
        let (piled, moves) = look(&[(0, &mask), (0, &mask), (0, &mask), (1, &mask)], &[]);
        let expected = PileUp { cpu: Cpu::from(0), tids: vec![1, 2, 3], runnable: 3, idle: cpus("2-3") };
        assert_eq!(piled, [expected]);
        let to: Vec<u32> = moves.iter().map(|one| one.to.number()).collect();
        assert_eq!((moves.len(), to), (2, vec![2, 3]));
    }

    #[test]
    fn nothing_is_piled_up_that_cannot_be_better() {
        let (one, two) = (cpus("0"), cpus("0-1"));
        // A mask of one CPU; two tasks on two CPUs of which one runs another task; as many on each.
        assert_eq!(look(&[(0, &one), (0, &one)], &[]), (vec![], vec![]));
        assert_eq!(look(&[(0, &two), (0, &two)], &[(1, 1)]), (vec![], vec![]));
        assert_eq!(look(&[(0, &two), (0, &two), (1, &two), (1, &two)], &[]), (vec![], vec![]));
        assert_eq!(look(&[], &[(0, 5)]), (vec![], vec![]));
    }

    /// The threads on CPU 0 may go to CPU 1 only, whose own thread can make way.
    #[test]
    fn others_make_way() {
        let (left, right) = (cpus("0-1"), cpus("1-2"));
        let (piled, moves) = look(&[(0, &left), (0, &left), (1, &right)], &[]);
        assert_eq!((piled.len(), piled[0].cpu.number(), piled[0].idle.len()), (1, 0, 0));
        assert_eq!(moves.len(), 2);
        assert!(moves.iter().any(|one| (one.tid, one.to.number()) == (3, 2)), "{moves:?}");
    }

    proptest! {
        /// After the moves the fullest CPU of any thread is no fuller than in the best of all placements, and nothing is
        /// piled up.
        #[test]
        fn moves_reach_the_best_placement(
            threads in prop::collection::vec((0u16..4, 1u16..16), 0..6),
            others in prop::collection::vec(0u32..3, 4),
        ) {
            let masks: Vec<CpuSet> = threads
                .iter()
                .map(|&(cpu, bits)| {
                    (0..4).filter(|bit| (bits >> bit) & 1 == 1 || *bit == cpu).map(Cpu::from).collect()
                })
                .collect();
            let runners: Vec<Runner<'_>> = (1..)
                .zip(threads.iter().zip(&masks))
                .map(|(tid, (&(cpu, _), usable))| Runner { tid, cpu: Cpu::from(cpu), usable })
                .collect();
            let base: Vec<u32> = others.clone();
            let with = |places: &[Cpu]| {
                let mut counts: BTreeMap<Cpu, u32> = (0..4u16).map(Cpu::from).zip(base.clone()).collect();
                places.iter().for_each(|cpu| *counts.entry(*cpu).or_default() += 1);
                counts
            };
            // Sorted counts of all CPUs, the fullest first: the smallest is the best.
            let vector = |counts: &BTreeMap<Cpu, u32>| {
                let mut all: Vec<u32> = counts.values().copied().collect();
                all.sort_unstable_by(|a, b| b.cmp(a));
                all
            };
            let start: Vec<Cpu> = runners.iter().map(|thread| thread.cpu).collect();
            let counts = with(&start);
            let moved = moves(&runners, &counts);
            let end: Vec<Cpu> = runners
                .iter()
                .map(|thread| moved.iter().find(|one| one.tid == thread.tid).map_or(thread.cpu, |one| one.to))
                .collect();
            for (thread, cpu) in runners.iter().zip(&end) {
                prop_assert!(thread.usable.contains(*cpu));
            }
            let mut best = vector(&with(&end));
            let mut places = Vec::new();
            every(&runners, &mut places, &mut |places| {
                best = best.clone().min(vector(&with(places)));
            });
            prop_assert_eq!(vector(&with(&end)), best);
            let after: Vec<Runner<'_>> =
                runners.iter().zip(&end).map(|(thread, &cpu)| Runner { cpu, ..*thread }).collect();
            prop_assert_eq!(pile_ups(&after, &with(&end)), vec![]);
            prop_assert_eq!(pile_ups(&runners, &counts).is_empty(), moved.is_empty());
        }
    }

    fn every(runners: &[Runner<'_>], places: &mut Vec<Cpu>, tell: &mut impl FnMut(&[Cpu])) {
        let Some(next) = runners.get(places.len()) else { return tell(places) };
        for cpu in next.usable {
            places.push(cpu);
            every(runners, places, tell);
            places.pop();
        }
    }
}
