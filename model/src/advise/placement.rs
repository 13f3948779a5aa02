//! The CPU of each task under each policy: the placement behind every form.

use super::{
    Policy, Smt,
    tree::{Halves, Tree, split},
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
    pub(super) smt: Smt,
    /// Where the parent is, if that is known.
    pub(super) origin: Option<Cpu>,
}

impl Wish<'_> {
    /// The CPU of each task, ascending. No CPU holds more tasks than the best possible placement would give it.
    pub(super) fn placed(&self, policy: Policy) -> Vec<Cpu> {
        let mut places = match policy {
            Policy::Auto => self.as_the_kernel_should(),
            Policy::Spread => self.apart(self.tasks),
            Policy::Compact => self.together(),
        };
        places.sort_unstable();
        places
    }

    /// Whether no placement is known to have a smaller vector. AUTO promises the first component alone, and always
    /// reaches it. COMPACT takes the best branch at each step, which is best in all where branches are alike: on idle,
    /// whole, regular hosts. Elsewhere a lesser component may be missed.
    ///
    /// Each component that SPREAD counts is a sum of convex functions of the tasks in units that lie inside each other or
    /// apart; adding a task at a time where the vector grows least is best for these (laminar convex functions are
    /// M♮-convex). The exceptions are left out: units that cross, and cores of which a second task costs less than the
    /// first.
    pub(super) fn is_optimal(&self, policy: Policy) -> bool {
        match policy {
            Policy::Auto => true,
            Policy::Spread => self.units_nest() && self.sharing_is_convex(),
            Policy::Compact => self.smt == Smt::Avoid && self.is_idle_and_whole() && self.is_regular(),
        }
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

    fn is_idle_and_whole(&self) -> bool {
        let idle = |cpu: Cpu| self.load.taken(cpu) == 0 && self.load.of(cpu).utilisation.unwrap_or(0.0) < 0.1;
        self.allowed == self.topology.online() && self.allowed.iter().all(idle)
    }

    /// Every package has as many nodes, every node as many LLCs, every LLC as many cores and every core as many
    /// threads, each inside the next wider, and distances tell packages apart and nothing else.
    fn is_regular(&self) -> bool {
        let levels = [Level::Package, Level::Node, Level::Llc, Level::Core];
        let same_size = |level: Level| {
            let mut sizes = self.topology.units(level).iter().map(|unit| unit.cpus.len());
            let first = sizes.next();
            sizes.all(|size| Some(size) == first)
        };
        let nodes = self.topology.cpu_nodes();
        let package = |node: usize| {
            let first = self.topology.nodes()[node].cpus.first();
            first.and_then(|cpu| self.topology.unit_of(Level::Package, cpu))
        };
        let mut by_relation: BTreeMap<(bool, bool), u32> = BTreeMap::new();
        let pairs = nodes.iter().flat_map(|&a| nodes.iter().map(move |&b| (a, b)));
        let uniform = pairs.into_iter().all(|(a, b)| {
            let distance = self.topology.distance(a, b);
            *by_relation.entry((a == b, package(a) == package(b))).or_insert(distance) == distance
        });
        levels.into_iter().all(same_size) && self.units_nest() && uniform
    }

    fn tree(&self, halves: Halves) -> Tree {
        Tree::new(self.topology, self.load, (self.counted, self.allowed), self.smt, halves)
    }

    /// As far apart as possible, in the order in which CPUs are taken.
    fn apart(&self, tasks: u32) -> Vec<Cpu> {
        let mut tree = self.tree(Halves::Nested);
        (0..tasks).map_while(|_| tree.put_apart()).collect()
    }

    /// As close together as possible.
    fn together(&self) -> Vec<Cpu> {
        let mut tree = self.tree(Halves::Flat);
        let mut places = Vec::new();
        let mut left = self.tasks;
        while left > 0 {
            let taken = tree.put_together(left);
            if taken.is_empty() {
                break;
            }
            left = left.saturating_sub(u32::try_from(taken.len()).unwrap_or(left));
            places.extend(taken);
        }
        places
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
