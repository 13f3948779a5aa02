//! How good a placement is: a vector compared from left to right, smaller is better.

use super::{Near, Policy, Smt, tree};
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
    topology::{Level, Topology},
};
use std::collections::BTreeMap;

/// One component of an objective.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Component {
    /// What it counts.
    pub name: &'static str,
    /// Its numbers, compared from left to right.
    pub values: Vec<u64>,
}

/// How good a placement is, most important component first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Objective {
    /// The components in order.
    pub components: Vec<Component>,
}

/// What placements are judged on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) topology: &'a Topology,
    pub(super) load: &'a Load,
    pub(super) allowed: &'a CpuSet,
    pub(super) policy: Policy,
    pub(super) smt: Smt,
    pub(super) cpus_per_task: u32,
    pub(super) near: Option<&'a Near>,
}

impl Judge<'_> {
    /// The whole vector of a placement.
    pub(super) fn objective(&self, places: &[Cpu]) -> Objective {
        let mut components = self.shape(places);
        if self.policy == Policy::Spread {
            let before_llcs = components.len() - 1;
            components
                .insert(before_llcs, component("tasks per half, quarter, … of a node", self.halves(places)));
        }
        let tenths = places.iter().map(|&cpu| u64::from(tree::tenths(self.load.of(cpu).utilisation))).sum();
        components.push(component("utilisation in tenths", vec![tenths]));
        components.push(component("CPUs", places.iter().map(|cpu| u64::from(cpu.number())).collect()));
        Objective { components }
    }

    /// The components that a kernel can be held to: all but those that only tell equal choices apart.
    pub(super) fn shape(&self, places: &[Cpu]) -> Vec<Component> {
        let per_cpu = self.counts(places, self.topology.cpu_limit(), |cpu| Some(cpu.index()));
        let mut shape = vec![component("tasks per CPU", per_cpu)];
        if self.cpus_per_task > 1 {
            let broken = |level: Level| vec![self.broken(level, places)];
            shape.extend([
                component("CPUs of tasks over several LLCs", broken(Level::Llc)),
                component("CPUs of tasks over several NUMA nodes", broken(Level::Node)),
                component("CPUs of tasks over several packages", broken(Level::Package)),
            ]);
        }
        shape.push(component("cores shared against the wish", vec![self.cores_shared(places)]));
        if let Some(near) = self.near {
            let far = places.iter().map(|&cpu| u64::from(near.distance(self.topology, cpu))).sum();
            shape.push(component("distance from the place to be near to", vec![far]));
        }
        let per = |level: Level| {
            self.counts(places, self.topology.units(level).len(), |cpu| self.topology.unit_of(level, cpu))
        };
        let used = |level: Level| {
            let units: CpuSet =
                places.iter().filter_map(|&cpu| self.topology.span(level, cpu)?.first()).collect();
            vec![units.len() as u64]
        };
        match self.policy {
            Policy::Auto => {}
            Policy::Spread => shape.extend([
                component("tasks per package", per(Level::Package)),
                component("tasks per NUMA node", per(Level::Node)),
                component("tasks per LLC", per(Level::Llc)),
            ]),
            Policy::Compact => shape.extend([
                component("packages used", used(Level::Package)),
                component("NUMA nodes used", used(Level::Node)),
                component("LLCs used", used(Level::Llc)),
                component("distance between all pairs, both ways", vec![self.distance(places)]),
                component("free CPUs left in the LLCs used", vec![self.left_over(places)]),
            ]),
        }
        shape
    }

    /// Tasks, others' included, per unit that has allowed CPUs; the most first.
    fn counts(&self, places: &[Cpu], units: usize, unit: impl Fn(Cpu) -> Option<usize>) -> Vec<u64> {
        let mut counts: Vec<Option<u64>> = vec![None; units];
        let mut add = |cpu: Cpu, tasks: u64| {
            if let Some(count) = unit(cpu).and_then(|unit| counts.get_mut(unit)) {
                *count = Some(count.unwrap_or(0) + tasks);
            }
        };
        self.allowed.iter().for_each(|cpu| add(cpu, u64::from(self.load.taken(cpu))));
        places.iter().for_each(|&cpu| add(cpu, 1));
        let mut values: Vec<u64> = counts.into_iter().flatten().collect();
        values.sort_unstable_by(|a, b| b.cmp(a));
        values
    }

    /// Cores of the job that go against the wish: with AVOID those of which two threads or more are busy, with SHARE
    /// all that it uses.
    fn cores_shared(&self, places: &[Cpu]) -> u64 {
        let mut used: BTreeMap<usize, CpuSet> = BTreeMap::new();
        for &cpu in places {
            if let Some(core) = self.topology.unit_of(Level::Core, cpu) {
                used.entry(core).or_default().insert(cpu);
            }
        }
        let busy = |core: &usize, ours: &CpuSet| {
            let others = self.topology.units(Level::Core)[*core].cpus.iter();
            others.filter(|&cpu| self.load.taken(cpu) > 0 || ours.contains(cpu)).count()
        };
        let counted = |(core, ours): &(&usize, &CpuSet)| self.smt == Smt::Share || busy(core, ours) > 1;
        used.iter().filter(counted).count() as u64
    }

    /// Tasks per half, quarter and so on of each node's LLCs, level by level.
    fn halves(&self, places: &[Cpu]) -> Vec<u64> {
        let mut level: Vec<Vec<CpuSet>> = tree::split(self.topology, Level::Node, self.allowed)
            .iter()
            .map(|node| tree::split(self.topology, Level::Llc, node))
            .collect();
        let mut values = Vec::new();
        loop {
            level = level
                .iter()
                .filter(|llcs| llcs.len() > 2)
                .flat_map(|llcs| {
                    let (first, second) = llcs.split_at(llcs.len() / 2);
                    [first.to_vec(), second.to_vec()]
                })
                .collect();
            if level.is_empty() {
                return values;
            }
            let mut part_of = vec![None; self.topology.cpu_limit()];
            for (part, llcs) in level.iter().enumerate() {
                llcs.iter().flatten().for_each(|cpu| part_of[cpu.index()] = Some(part));
            }
            values.extend(self.counts(places, level.len(), |cpu| part_of[cpu.index()]));
        }
    }

    /// CPUs of tasks of which a unit of the level holds a part only.
    fn broken(&self, level: Level, places: &[Cpu]) -> u64 {
        let mut inside: BTreeMap<usize, u64> = BTreeMap::new();
        for unit in places.iter().filter_map(|&cpu| self.topology.unit_of(level, cpu)) {
            *inside.entry(unit).or_default() += 1;
        }
        inside.values().map(|cpus| cpus % u64::from(self.cpus_per_task)).sum()
    }

    /// Both ways, since they may differ.
    fn distance(&self, places: &[Cpu]) -> u64 {
        let mut per_node: BTreeMap<usize, u64> = BTreeMap::new();
        for unit in places.iter().filter_map(|&cpu| self.topology.unit_of(Level::Node, cpu)) {
            *per_node.entry(self.topology.cpu_nodes()[unit]).or_default() += 1;
        }
        let pairs = per_node.iter().flat_map(|a| per_node.iter().map(move |b| (a, b)));
        // A task is no pair with itself.
        let pairs = pairs
            .map(|((&a, m), (&b, n))| m * (n - u64::from(a == b)) * u64::from(self.topology.distance(a, b)));
        pairs.sum()
    }

    fn left_over(&self, places: &[Cpu]) -> u64 {
        let mut touched = CpuSet::new();
        for span in places.iter().filter_map(|&cpu| self.topology.span(Level::Llc, cpu)) {
            touched.extend_from(span);
        }
        let used: CpuSet = places.iter().copied().collect();
        let free = |cpu: &Cpu| self.load.taken(*cpu) == 0 && !used.contains(*cpu);
        touched.intersection(self.allowed).iter().filter(free).count() as u64
    }
}

fn component(name: &'static str, values: Vec<u64>) -> Component {
    Component { name, values }
}
