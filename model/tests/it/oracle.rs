//! The fork and exec slow path once more, plainly: every statistic is counted afresh over every CPU for every decision.
//! What the model's counters are held against, and what the bench runs beside them.

use berth_model::{
    Cpu, CpuSet,
    domains::{Domain, Domains},
    load::Load,
    predict::{Burst, Children, Entry, Parent, Weight},
    profile::{NumaForkRule, Profile, StatsRule, TieRule},
    topology::{Level, Topology},
};

#[derive(Clone, Copy, Default)]
struct Cell {
    nr: u64,
    load: u64,
    util: u64,
    runnable: u64,
}

impl Cell {
    fn long_running(nr: u64) -> Self {
        Self { nr, load: nr * 1024, util: nr.min(1) * 1024, runnable: nr * 1024 }
    }

    /// One more that has run for long.
    fn run_long(&mut self) {
        (self.nr, self.load, self.util, self.runnable) =
            (self.nr + 1, self.load + 1024, 1024, self.runnable + 1024);
    }

    fn fork_onto(&mut self) {
        let cap = (1024 - self.util.min(1024)) / 2;
        let util = if self.util == 0 { cap } else { cap.min(self.util * 1024 / (self.load + 1)) };
        self.nr += 1;
        self.load += 1024;
        self.util += util;
        self.runnable += util;
    }
}

#[derive(Clone, Copy)]
struct Seen {
    allowed: u64,
    weight: u64,
    nr: u64,
    idle: u64,
    util: u64,
    runnable: u64,
    load: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Type {
    HasSpare,
    FullyBusy,
    Overloaded,
}

/// A burst of forks or execs.
pub(crate) struct Oracle<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) domains: &'a Domains,
    pub(crate) profile: &'a Profile,
    cells: Vec<Cell>,
    /// How many CPUs were read, each time that one was.
    pub(crate) reads: u64,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(
        topology: &'a Topology,
        domains: &'a Domains,
        profile: &'a Profile,
        load: &Load,
    ) -> Self {
        let cell = |cpu: Cpu| Cell::long_running(load.runnable(cpu).into());
        let mut cells: Vec<Cell> =
            (0..=u16::MAX).map(Cpu::from).take(topology.cpu_limit()).map(cell).collect();
        for (cpu, known) in load.averages() {
            let cell = &mut cells[cpu.index()];
            cell.load = known.load.map_or(cell.load, u64::from);
            cell.util = known.util.map_or(cell.util, u64::from);
            cell.runnable = known.runnable.map_or(cell.runnable, u64::from);
        }
        Self { topology, domains, profile, cells, reads: 0 }
    }

    /// The CPU of each task.
    pub(crate) fn place(&mut self, burst: &Burst<'_>) -> Vec<Cpu> {
        let mut places = Vec::new();
        if burst.parent != Parent::Sleeps {
            let cell = &mut self.cells[burst.origin.index()];
            match burst.parent_weight {
                Weight::Fresh => cell.fork_onto(),
                Weight::Light => (cell.nr, cell.load) = (cell.nr + 1, cell.load + 1024),
                Weight::Settled => cell.run_long(),
            }
        }
        if burst.parent == Parent::IsTask {
            places.push(burst.origin);
        }
        while places.len() < burst.tasks as usize {
            let cpu = self.next(burst);
            if burst.children == Children::Running {
                self.cells[cpu.index()].fork_onto();
            }
            places.push(cpu);
        }
        places
    }

    fn next(&mut self, burst: &Burst<'_>) -> Cpu {
        if burst.allowed.len() == 1 {
            return burst.allowed.first().unwrap();
        }
        let chain: Vec<Domain<'_>> = self.domains.of(burst.origin).collect();
        let top = chain.iter().take_while(|domain| domain.flags().balance_fork).last();
        let mut cpu = burst.origin;
        let mut domain = top.filter(|top| top.span().intersects(burst.allowed)).copied();
        while let Some(at) = domain {
            let by_load = self.profile.numa_fork == NumaForkRule::ByLoad;
            let chosen = match (at.flags().balance_fork, by_load) {
                (false, _) => None,
                (true, false) => self.group(at, cpu, burst),
                (true, true) => self.group_by_load(at, cpu, burst),
            };
            let new = chosen.map_or(cpu, |group| self.cpu_in(group, cpu, burst));
            let narrower = self.domains.of(new).rev().filter(|d| d.weight() < at.weight());
            domain = narrower.into_iter().find(|d| new == cpu || d.flags().balance_fork);
            cpu = new;
        }
        if burst.allowed.contains(cpu) {
            return cpu;
        }
        let node = self.topology.span(Level::Node, burst.origin);
        node.and_then(|node| node.intersection(burst.allowed).first())
            .or_else(|| burst.allowed.first())
            .unwrap()
    }

    fn see(&mut self, group: &CpuSet, allowed: &CpuSet) -> Seen {
        let inside = group.intersection(allowed);
        let counted = if self.profile.stats == StatsRule::All { group } else { &inside };
        self.reads += counted.len() as u64;
        let sum = |of: fn(&Cell) -> u64| counted.iter().map(|cpu| of(&self.cells[cpu.index()])).sum();
        let whole = if self.profile.stats == StatsRule::AllowedWhole { &inside } else { group };
        Seen {
            allowed: inside.len() as u64,
            weight: whole.len() as u64,
            nr: sum(|cell| cell.nr),
            idle: sum(|cell| u64::from(cell.nr == 0)),
            util: sum(|cell| cell.util),
            runnable: sum(|cell| cell.runnable),
            load: sum(|cell| cell.load),
        }
    }

    /// v5.3 and v5.4.
    fn group_by_load<'d>(&mut self, domain: Domain<'d>, cpu: Cpu, burst: &Burst<'_>) -> Option<&'d CpuSet> {
        let (margin, scale) =
            (1024 * (domain.imbalance_pct() - 100) / 100, 100 + (domain.imbalance_pct() - 100) / 2);
        let (margin, scale) = (u64::from(margin), u64::from(scale));
        let per_capacity = |load: u64, seen: &Seen| load * 1024 / (seen.weight * 1024);
        // Runnable and average load of the local group, if any, and the least of the others.
        let mut local: Option<(u64, u64)> = None;
        let mut least: Option<(u64, u64)> = None;
        let mut idlest = None;
        let (mut local_spare, mut most_spare, mut roomiest) = (0, 0, None);
        for (index, group) in domain.groups().enumerate() {
            let seen = self.see(group, burst.allowed);
            if seen.allowed == 0 {
                continue;
            }
            let loads = (per_capacity(seen.nr * 1024, &seen), per_capacity(seen.load, &seen));
            let spare = group.iter().map(|cpu| 1024 - self.cells[cpu.index()].util.min(1024)).max().unwrap();
            if index == 0 || group.contains(cpu) {
                (local, local_spare) = (Some(loads), spare);
                continue;
            }
            match least {
                Some((runnable, load)) if runnable <= loads.0 + margin => {
                    if loads.0 < runnable + margin && 100 * load > scale * loads.1 {
                        (least, idlest) = (Some((runnable, loads.1)), Some(group));
                    }
                }
                _ => (least, idlest) = (Some(loads), Some(group)),
            }
            if spare > most_spare {
                (most_spare, roomiest) = (spare, Some(group));
            }
        }
        if burst.entry == Entry::Exec {
            // The task has run for long, or about as long as one that was just forked.
            let half = if burst.parent_weight == Weight::Settled { 1024 / 2 } else { 512 / 2 };
            if local_spare > half && scale * local_spare > 100 * most_spare {
                return None;
            }
            if most_spare > half {
                return roomiest;
            }
        }
        let ((their_runnable, their_load), Some((runnable, load))) = (least?, local) else { return idlest };
        let numa = domain.flags().numa;
        if numa && their_runnable + margin >= runnable
            || their_runnable > runnable + margin
            || runnable < their_runnable + margin && 100 * load < scale * their_load
        {
            return None;
        }
        idlest
    }

    fn group<'d>(&mut self, domain: Domain<'d>, cpu: Cpu, burst: &Burst<'_>) -> Option<&'d CpuSet> {
        let allowed = burst.allowed;
        let pct = u64::from(domain.imbalance_pct());
        let kind = |seen: &Seen| {
            let capacity = seen.weight * 1024;
            let waiting = self.profile.group_runnable && capacity * pct < seen.runnable * 100;
            if seen.nr > seen.weight && (capacity * 100 < seen.util * pct || waiting) {
                Type::Overloaded
            } else if seen.nr < seen.weight || (!waiting && capacity * 100 > seen.util * pct) {
                Type::HasSpare
            } else {
                Type::FullyBusy
            }
        };
        let average = |seen: &Seen| seen.load * 1024 / (seen.weight * 1024);
        let mut local = None;
        let mut best: Option<(&CpuSet, Seen)> = None;
        for (index, group) in domain.groups().enumerate() {
            let seen = self.see(group, allowed);
            if seen.allowed == 0 {
                continue;
            }
            if index == 0 || group.contains(cpu) {
                local = Some(seen);
                continue;
            }
            let better = best.is_none_or(|(_, old)| match kind(&seen).cmp(&kind(&old)) {
                std::cmp::Ordering::Equal if kind(&seen) == Type::HasSpare => {
                    let tie = self.profile.tie == TieRule::Utilisation && seen.util < old.util;
                    seen.idle > old.idle || (seen.idle == old.idle && tie)
                }
                std::cmp::Ordering::Equal => average(&seen) < average(&old),
                other => other.is_lt(),
            });
            if better {
                best = Some((group, seen));
            }
        }
        let (group, other) = best?;
        let Some(local) = local else { return Some(group) };
        let numa = domain.flags().numa;
        let node = |cpu: Cpu| self.topology.unit_of(Level::Node, cpu);
        let preferred = burst.preferred_node.map(|node| Some(node as usize));
        let stay = match (kind(&local), kind(&other)) {
            (ours, theirs) if ours != theirs => ours < theirs,
            (Type::HasSpare, _) if numa && preferred == Some(node(cpu)) => true,
            (Type::HasSpare, _) if numa && preferred == Some(node(group.first().unwrap())) => false,
            (Type::HasSpare, _) => numa && self.tolerated(domain, &local, &other) || local.idle >= other.idle,
            _ => {
                let margin = 1024 * (pct - 100) / 100;
                let (ours, theirs) = (average(&local), average(&other));
                numa && theirs + margin >= ours || theirs >= ours + margin || 100 * ours <= pct * theirs
            }
        };
        (!stay).then_some(group)
    }

    #[allow(clippy::int_plus_one, reason = "the rules as the kernels write them")]
    fn tolerated(&self, domain: Domain<'_>, local: &Seen, other: &Seen) -> bool {
        let (n, i) = (local.nr, u64::from(domain.imb_numa_nr()));
        let least = i.min(local.allowed);
        let difference = local.idle.abs_diff(other.idle);
        match self.profile.numa_fork {
            NumaForkRule::ByLoad => unreachable!("groups are chosen by load"),
            NumaForkRule::AnyIdle => local.idle > 0,
            NumaForkRule::Span25 => n < u64::from(domain.weight() >> 2),
            NumaForkRule::Less => n < i,
            NumaForkRule::NotMore => n <= i,
            NumaForkRule::PlusOneLess => n + 1 < i,
            NumaForkRule::PlusOneNotMore => n + 1 <= i,
            NumaForkRule::PlusOneLessAllowed => n + 1 < least,
            NumaForkRule::PlusOneNotMoreAllowed => n + 1 <= least,
            NumaForkRule::Adjusted => difference <= if n + 1 > i { 0 } else { 2 },
            NumaForkRule::AdjustedAllowed => difference <= if n + 1 > least { 0 } else { 2 },
        }
    }

    fn cpu_in(&self, group: &CpuSet, cpu: Cpu, burst: &Burst<'_>) -> Cpu {
        if group.len() == 1 {
            return group.first().unwrap();
        }
        let exec_here = |c: Cpu| burst.entry == Entry::Exec && c == burst.origin;
        let (mut latency, mut stamp, mut idle) = (u32::MAX, 0, None);
        let (mut least, mut busy) = (u64::MAX, None);
        for candidate in group.intersection(burst.allowed).iter() {
            let cell = self.cells[candidate.index()];
            if cell.nr == 0 && !exec_here(candidate) {
                let known = burst.idle.get(candidate.index()).copied().unwrap_or_default();
                if known.exit_latency.is_some_and(|l| l < latency) {
                    (latency, stamp, idle) = (known.exit_latency.unwrap(), known.idle_stamp, Some(candidate));
                } else if known.exit_latency.is_none_or(|l| l == latency) && known.idle_stamp > stamp {
                    (stamp, idle) = (known.idle_stamp, Some(candidate));
                }
            } else {
                let load =
                    if self.profile.numa_fork == NumaForkRule::ByLoad { cell.nr * 1024 } else { cell.load };
                let load = load + if exec_here(candidate) { 1024 } else { 0 };
                if load < least {
                    (least, busy) = (load, Some(candidate));
                }
            }
        }
        idle.or(busy).unwrap_or(cpu)
    }
}
