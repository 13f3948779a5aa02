//! What is held beside what runs: how many tasks count on a CPU.

use super::{Book, Owner, Part, book::Count};
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
};
use std::collections::BTreeMap;

/// The tasks that owners are seen to run, by CPU. Of an owner that is not named it is not known which tasks are its own.
pub type Running = BTreeMap<Owner, BTreeMap<Cpu, u32>>;

/// So many tasks that are held and do not run count on a CPU beyond those of the CPU with the fewest.
const MOST_AHEAD: u32 = 4;

/// What the named owners hold and run on one CPU.
#[derive(Debug, Clone, Copy, Default)]
struct OfOwners {
    held: u32,
    running: u32,
    /// Held beyond what the same owner runs.
    asleep: u32,
}

impl Book {
    /// Says on each CPU how many tasks count there beyond those that run. Of a named owner the larger of what it holds and
    /// what it runs counts, whatever others run there; of all others together, the larger of what they hold and what
    /// runs besides.
    ///
    /// Whatever is held somewhere, no more tasks that do not run count there than on the CPU of `cpus` with the fewest, and
    /// [`MOST_AHEAD`] beyond: who holds CPUs for thousands of tasks sends others away from them no further than one who
    /// runs a few there.
    pub fn count_on(&self, load: &mut Load, running: &Running, cpus: &CpuSet) {
        let of_owners = self.of_owners(running);
        let waiting = |(cpu, count): (Cpu, Count)| {
            let OfOwners { held, running, asleep } = of_owners.get(&cpu).copied().unwrap_or_default();
            let runs = load.runnable(cpu);
            let others = count.tasks.saturating_sub(held).saturating_sub(runs.saturating_sub(running));
            (cpu, asleep.saturating_add(others))
        };
        let waiting: BTreeMap<Cpu, u32> = self.on_each().map(waiting).collect();
        let fewest = cpus.iter().map(|cpu| waiting.get(&cpu).copied().unwrap_or(0)).min().unwrap_or(0);
        for (cpu, waiting) in waiting {
            let counted = waiting.min(fewest.saturating_add(MOST_AHEAD));
            load.hold(cpu, load.runnable(cpu).saturating_add(counted));
        }
    }

    fn of_owners(&self, running: &Running) -> BTreeMap<Cpu, OfOwners> {
        let mut held: BTreeMap<(&Owner, Cpu), u32> = BTreeMap::new();
        if running.is_empty() {
            return BTreeMap::new();
        }
        for hold in self.living().filter(|hold| running.contains_key(&hold.owner)) {
            for &(cpu, tasks) in hold.parts.iter().flat_map(Part::counts) {
                let held = held.entry((&hold.owner, cpu)).or_default();
                *held = held.saturating_add(tasks);
            }
        }
        let mut on: BTreeMap<Cpu, OfOwners> = BTreeMap::new();
        for ((owner, cpu), held) in held {
            let runs = running.get(owner).and_then(|cpus| cpus.get(&cpu)).copied().unwrap_or(0);
            let on = on.entry(cpu).or_default();
            on.held = on.held.saturating_add(held);
            on.running = on.running.saturating_add(runs);
            on.asleep = on.asleep.saturating_add(held.saturating_sub(runs));
        }
        on
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cpuset::CpuSet,
        hold::{Mode, Moment, New, Process, Uid},
        load::CpuLoad,
    };
    use std::time::Duration;

    fn process(pid: u32) -> Owner {
        Owner::Process(Process { pid, start_time: 1 })
    }

    /// A book in which each owner holds CPU 0 for so many tasks.
    fn book(holds: &[(Owner, u32)]) -> Book {
        let mut book = Book::default();
        for (owner, tasks) in holds {
            let new = New {
                uid: Uid(1),
                name: String::new(),
                owner: owner.clone(),
                parts: vec![Part::spread(&CpuSet::from(Cpu::from(0)), *tasks)],
                mode: Mode::Shared,
                claim: None,
                foreign: false,
                keep: true,
                ttl: Some(Duration::from_secs(60)),
                before: 0,
                request_id: String::new(),
                labels: BTreeMap::new(),
            };
            book.make(new, Moment::default()).unwrap();
        }
        book
    }

    /// What counts on CPU 0 where so many tasks run, of which the owners run some.
    fn taken(holds: &[(Owner, u32)], runs: u32, of_owners: &[(Owner, u32)]) -> u32 {
        let mut load: Load =
            [(Cpu::from(0), CpuLoad { runnable: runs, utilisation: None })].into_iter().collect();
        let running = of_owners
            .iter()
            .map(|(owner, tasks)| (owner.clone(), [(Cpu::from(0), *tasks)].into_iter().collect()))
            .collect();
        book(holds).count_on(&mut load, &running, &CpuSet::first_n(1));
        load.taken(Cpu::from(0))
    }

    #[test]
    fn the_larger_for_each_owner_and_what_others_run_besides() {
        let (a, b, lease) = (process(1), Owner::Cgroup("/b".to_owned()), Owner::Lease);
        let one = [(a.clone(), 1)];
        assert_eq!(taken(&one, 1, &[(a.clone(), 1)]), 1, "its own task");
        assert_eq!(taken(&one, 1, &[(a.clone(), 0)]), 2, "it sleeps, and another's task runs");
        assert_eq!(taken(&one, 2, &[(a.clone(), 1)]), 2, "its own task and another's");
        assert_eq!(taken(&one, 3, &[(a.clone(), 2)]), 3, "more than it holds, and another's");
        assert_eq!(taken(&one, 1, &[]), 1, "whose task it is is not known");
        let both = [(a.clone(), 2), (b.clone(), 1)];
        assert_eq!(taken(&both, 2, &[(a.clone(), 2), (b.clone(), 0)]), 3, "one runs, one sleeps");
        assert_eq!(taken(&both, 1, &[(a.clone(), 0), (b.clone(), 1)]), 3);
        assert_eq!(
            taken(&[(a.clone(), 1), (a.clone(), 1)], 1, &[(a.clone(), 1)]),
            2,
            "two holds of one owner"
        );
        let with_lease = [(a.clone(), 1), (lease, 1)];
        assert_eq!(taken(&with_lease, 2, &[(a.clone(), 1)]), 2, "the other task may be the lease's");
        assert_eq!(taken(&with_lease, 1, &[(a, 1)]), 2, "it is the owner's, so the lease's sleeps");
        assert_eq!(taken(&with_lease, 1, &[]), 2);
    }

    #[test]
    fn thousands_that_never_come_count_as_a_few() {
        let book = book(&[(process(1), 20_000), (Owner::Lease, 10)]);
        let on = |cpus: u32, running: &[(Owner, u32)]| {
            let mut load = Load::idle();
            let running = running
                .iter()
                .map(|(owner, tasks)| (owner.clone(), [(Cpu::from(0), *tasks)].into_iter().collect()))
                .collect();
            book.count_on(&mut load, &running, &CpuSet::first_n(cpus));
            load.taken(Cpu::from(0))
        };
        assert_eq!(on(2, &[]), MOST_AHEAD, "nothing is held on the other CPU");
        assert_eq!(on(2, &[(process(1), 0)]), MOST_AHEAD, "a known owner is no exception");
        assert_eq!(on(1, &[]), 20_010, "there is no other CPU to be sent to");
    }
}
