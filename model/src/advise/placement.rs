//! The CPU of each task under each policy: the placement behind every form.

use super::{
    Near, Policy, Smt,
    optimum::{Found, Goal},
    tree::{Tree, split},
};
use crate::{
    cpuset::{Cpu, CpuSet},
    domains::Domains,
    load::Load,
    predict::{Burst, Host, IdleCpu, Parent, place},
    profile::Profile,
    topology::{Level, Topology, Unit},
};
use std::collections::BTreeMap;

/// What a placement depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) topology: &'a Topology,
    pub(super) load: &'a Load,
    /// Domains under [`Profile::ideal`].
    pub(super) ideal: &'a Domains,
    /// The CPUs whose tasks count, and those of them that may be taken.
    pub(super) counted: &'a CpuSet,
    pub(super) allowed: &'a CpuSet,
    pub(super) tasks: u32,
    pub(super) cpus_per_task: u32,
    pub(super) smt: Smt,
    pub(super) near: Option<&'a Near>,
    /// Where the parent is, if that is known.
    pub(super) origin: Option<Cpu>,
}

impl Wish<'_> {
    /// The CPUs of the tasks, ascending. None holds more tasks than the best possible placement would give it. AUTO
    /// promises no more than that; of the others no placement has a smaller vector where [`Found::optimal`] says so.
    ///
    /// AUTO with several CPUs per task has nothing of the kernel to go by: tasks are then put apart, each on CPUs that are
    /// close together.
    pub(super) fn placed(&self, policy: Policy) -> Found {
        let places = match policy {
            Policy::Auto if self.cpus_per_task == 1 => self.as_the_kernel_should(),
            Policy::Spread if self.is_simple() => self.apart(self.tasks),
            _ => return self.best(policy),
        };
        let mut found = Found { places, optimal: true, bound: None };
        found.places.sort_unstable();
        found
    }

    fn best(&self, policy: Policy) -> Found {
        let goal = Goal {
            topology: self.topology,
            load: self.load,
            counted: self.counted,
            open: self.allowed,
            cpus: self.tasks.saturating_mul(self.cpus_per_task),
            per_task: self.cpus_per_task,
            policy: if policy == Policy::Auto { Policy::Spread } else { policy },
            smt: self.smt,
            near: self.near,
        };
        goal.reach()
    }

    /// Whether SPREAD may put down a task at a time where the vector grows least. Each component that it counts is a sum
    /// of convex functions of the tasks in units that lie inside each other or apart; that is best for these (laminar
    /// convex functions are M♮-convex). The exceptions are left out: units that cross, and cores of which a second task
    /// costs less than the first.
    fn is_simple(&self) -> bool {
        self.cpus_per_task == 1 && self.near.is_none() && self.sharing_is_convex() && self.units_nest()
    }

    /// Each core is in one LLC, each LLC in one node, each node in one package.
    fn units_nest(&self) -> bool {
        let levels = [Level::Package, Level::Node, Level::Llc, Level::Core];
        levels.windows(2).all(|pair| {
            let inside = |unit: &Unit| split(self.topology, pair[0], &unit.cpus).len() == 1;
            self.topology.units(pair[1]).iter().all(inside)
        })
    }

    /// On no core does a second task cost less than the first: cores have two threads at most, and either each task has
    /// an idle CPU or all CPUs are idle.
    fn sharing_is_convex(&self) -> bool {
        let idle = self.allowed.difference(&self.load.occupied()).len();
        let pairs = self.topology.units(Level::Core).iter().all(|core| core.cpus.len() <= 2);
        self.smt != Smt::Share && pairs && (idle >= self.tasks as usize || idle == self.allowed.len())
    }

    /// As far apart as possible, in the order in which CPUs are taken.
    fn apart(&self, tasks: u32) -> Vec<Cpu> {
        let mut tree = Tree::new(self.topology, self.load, (self.counted, self.allowed), self.smt);
        (0..tasks).map_while(|_| tree.put_apart()).collect()
    }

    /// What the newest kernel would choose if it judged groups by their allowed CPUs alone; equally idle CPUs are
    /// taken in SPREAD's order, and tasks that it piles up nevertheless move to the nearest CPU with room.
    fn as_the_kernel_should(&self) -> Vec<Cpu> {
        // The launcher's own CPU may be left to it, and is not among the allowed ones then.
        let Some(origin) = self.origin.or_else(|| self.emptiest()) else {
            return Vec::new();
        };
        let mut idle = vec![IdleCpu::default(); self.topology.cpu_limit()];
        let every_cpu = u32::try_from(self.allowed.len()).unwrap_or(u32::MAX);
        for (stamp, cpu) in (2..).zip(self.apart(every_cpu).into_iter().rev()) {
            idle[cpu.index()].idle_stamp = stamp;
        }
        // By the true load: a holder counts whether it runs or not.
        let awake = self.load.awake();
        let load = awake.as_ref().unwrap_or(self.load);
        let host = Host { topology: self.topology, domains: self.ideal, profile: Profile::ideal(), load };
        let burst =
            Burst { parent: Parent::Sleeps, idle: &idle, ..Burst::forks(self.allowed, self.tasks, origin) };
        let mut places = place(host, &burst);
        self.even_out(&mut places);
        places
    }

    /// The first allowed CPU of the NUMA node with the most idle ones.
    fn emptiest(&self) -> Option<Cpu> {
        let mut idle: BTreeMap<Option<usize>, (usize, Cpu)> = BTreeMap::new();
        for cpu in self.allowed {
            let node = self.topology.unit_of(Level::Node, cpu);
            idle.entry(node).or_insert((0, cpu)).0 += usize::from(self.load.taken(cpu) == 0);
        }
        idle.into_values().rev().max_by_key(|&(count, _)| count).map(|(_, cpu)| cpu)
    }

    /// Moves last tasks off CPUs that hold two more than another, to the nearest of the emptiest.
    fn even_out(&self, places: &mut [Cpu]) {
        let mut ours: BTreeMap<Cpu, Vec<usize>> = self.allowed.iter().map(|cpu| (cpu, Vec::new())).collect();
        for (task, cpu) in places.iter().enumerate() {
            ours.entry(*cpu).or_default().push(task);
        }
        let count = |cpu: Cpu, ours: &[usize]| ours.len() + self.load.taken(cpu) as usize;
        loop {
            let Some(least) = ours.iter().map(|(&cpu, ours)| count(cpu, ours)).min() else { return };
            let crowded =
                ours.iter().filter(|(cpu, ours)| !ours.is_empty() && count(**cpu, ours) > least + 1);
            let fullest = crowded.max_by_key(|(cpu, ours)| (count(**cpu, ours), ours.last().copied()));
            let Some(from) = fullest.map(|(&cpu, _)| cpu) else { return };
            let room = ours.iter().filter(|(cpu, ours)| count(**cpu, ours) == least).map(|(&cpu, _)| cpu);
            let Some(to) = room.min_by_key(|&cpu| (self.remoteness(from, cpu), cpu)) else { return };
            let Some(task) = ours.get_mut(&from).and_then(Vec::pop) else { return };
            ours.entry(to).or_default().push(task);
            places[task] = to;
        }
    }

    /// How far two CPUs are apart: the narrowest level that they share, then the distance of their nodes.
    fn remoteness(&self, a: Cpu, b: Cpu) -> (u8, u32) {
        let shares = |level: Level| self.topology.unit_of(level, a) == self.topology.unit_of(level, b);
        let levels = [Level::Core, Level::Llc, Level::Node, Level::Package];
        let shared = (0..).zip(levels).find(|(_, level)| shares(*level)).map_or(4, |(rank, _)| rank);
        let node =
            |cpu: Cpu| self.topology.unit_of(Level::Node, cpu).map(|unit| self.topology.cpu_nodes()[unit]);
        let distance = node(a).zip(node(b)).map_or(0, |(a, b)| self.topology.distance(a, b));
        (shared, distance)
    }
}
