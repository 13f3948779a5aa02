//! The allowed CPUs as a tree of packages, NUMA nodes, LLCs and cores, with the tasks on each branch: what SPREAD and
//! COMPACT walk.

use super::Smt;
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
    topology::{Level, Topology},
};
use std::collections::BTreeMap;

/// How a node's LLCs hang below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halves {
    /// In halves, quarters and so on, in topology order: hardware has levels that it does not report.
    Nested,
    /// All side by side.
    Flat,
}

/// What a CPU costs before any shape counts: tasks already on it, and then what it shares against the `smt` wish.
/// Lower is better.
pub(super) type Tier = (u32, u32);

#[derive(Debug, Clone)]
struct Branch {
    above: usize,
    children: Vec<usize>,
    /// The CPU, at the tips.
    cpu: Option<Cpu>,
    is_core: bool,
    /// Tasks on the branch, others' included.
    tasks: u32,
    /// The best tier of its CPUs, and how many slots it has there: CPUs that can be taken without making each other
    /// worse.
    tier: Tier,
    slots: u32,
    /// Measured utilisation of its least used CPU of that tier, in tenths.
    tenths: u8,
}

/// The tree; branch 0 is the host.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    branches: Vec<Branch>,
    smt: Smt,
}

const NOTHING: Tier = (u32::MAX, u32::MAX);

impl Tree {
    /// The allowed CPUs with what runs on them.
    pub(super) fn new(topology: &Topology, load: &Load, allowed: &CpuSet, smt: Smt, halves: Halves) -> Self {
        let mut tree = Self { branches: Vec::new(), smt };
        let host = tree.add(0, None, 0);
        for package in split(topology, Level::Package, allowed) {
            let package_branch = tree.add(host, None, 0);
            for node in split(topology, Level::Node, &package) {
                let node_branch = tree.add(package_branch, None, 0);
                let llcs = split(topology, Level::Llc, &node);
                tree.add_llcs(node_branch, topology, load, &llcs, halves);
            }
        }
        for branch in (0..tree.branches.len()).rev() {
            tree.refresh(branch);
        }
        tree
    }

    fn add(&mut self, above: usize, cpu: Option<Cpu>, tasks: u32) -> usize {
        let index = self.branches.len();
        let branch = Branch {
            above,
            children: Vec::new(),
            cpu,
            is_core: false,
            tasks,
            tier: NOTHING,
            slots: 0,
            tenths: 0,
        };
        self.branches.push(branch);
        if index > 0 {
            self.branches[above].children.push(index);
        }
        index
    }

    fn add_llcs(&mut self, above: usize, topology: &Topology, load: &Load, llcs: &[CpuSet], halves: Halves) {
        if halves == Halves::Nested && llcs.len() > 1 {
            let (first, second) = llcs.split_at(llcs.len() / 2);
            for half in [first, second] {
                let branch = self.add(above, None, 0);
                self.add_llcs(branch, topology, load, half, halves);
            }
            return;
        }
        for llc in llcs {
            let llc_branch = self.add(above, None, 0);
            for core in split(topology, Level::Core, llc) {
                let core_branch = self.add(llc_branch, None, 0);
                self.branches[core_branch].is_core = true;
                for cpu in &core {
                    let tip = self.add(core_branch, Some(cpu), load.runnable(cpu));
                    self.branches[tip].tenths = tenths(load.of(cpu).utilisation);
                }
            }
        }
    }

    /// Sums a branch up from its children.
    fn refresh(&mut self, index: usize) {
        let (mut tasks, mut tier, mut slots, mut tenths) = (0, NOTHING, 0, u8::MAX);
        let branch = &self.branches[index];
        if branch.cpu.is_some() {
            (tasks, tier, slots, tenths) = (branch.tasks, (branch.tasks, 0), 1, branch.tenths);
        }
        for &child in &branch.children {
            let child = &self.branches[child];
            tasks += child.tasks;
            if child.tier < tier {
                (tier, slots, tenths) = (child.tier, 0, u8::MAX);
            }
            if child.tier == tier {
                slots += child.slots;
                tenths = tenths.min(child.tenths);
            }
        }
        // Only one thread of a core comes free of sharing: the core counts what would be shared.
        if branch.is_core && self.smt == Smt::Avoid {
            (tier.1, slots) = (tasks - tier.0.min(tasks), slots.min(1));
        }
        let branch = &mut self.branches[index];
        (branch.tasks, branch.tier, branch.slots, branch.tenths) = (tasks, tier, slots, tenths);
    }

    /// Puts one more task on a tip.
    fn put(&mut self, tip: usize) {
        self.branches[tip].tasks += 1;
        let mut at = tip;
        loop {
            self.refresh(at);
            if at == 0 {
                break;
            }
            at = self.branches[at].above;
        }
    }

    /// The best tier that is left, and its slots.
    pub(super) fn best(&self) -> (Tier, u32) {
        (self.branches[0].tier, self.branches[0].slots)
    }

    /// Puts the next task where SPREAD wants it: always on the branch with the fewest tasks, among those that lead to
    /// the best tier.
    pub(super) fn put_apart(&mut self) -> Option<Cpu> {
        let (tier, _) = self.best();
        let mut at = 0;
        while self.branches[at].cpu.is_none() {
            let open = self.branches[at].children.iter().filter(|&&child| self.leads_to(at, child, tier));
            at = *open.min_by_key(|&&child| (self.branches[child].tasks, self.branches[child].tenths))?;
        }
        self.put(at);
        self.branches[at].cpu
    }

    /// Whether a child has a slot of the branch's best tier. Below a core only the CPU's own tasks count.
    fn leads_to(&self, branch: usize, child: usize, tier: Tier) -> bool {
        let child = &self.branches[child];
        if self.branches[branch].is_core { child.tier.0 == tier.0 } else { child.tier == tier }
    }

    /// Puts `count` tasks on slots of the best tier, close together: into the tightest branch that holds them all,
    /// else into as few branches as possible. At most as many as [`Tree::best`] has slots.
    pub(super) fn put_together(&mut self, count: u32) -> Vec<Cpu> {
        let (tier, slots) = self.best();
        let mut tips = Vec::new();
        self.choose_together(0, count.min(slots), tier, &mut tips);
        for &tip in &tips {
            self.put(tip);
        }
        tips.into_iter().filter_map(|tip| self.branches[tip].cpu).collect()
    }

    fn choose_together(&self, at: usize, count: u32, tier: Tier, tips: &mut Vec<usize>) {
        if count == 0 {
            return;
        }
        if self.branches[at].cpu.is_some() {
            tips.push(at);
            return;
        }
        let slots = |child: usize| self.branches[child].slots;
        let mut open: Vec<usize> = self.branches[at]
            .children
            .iter()
            .copied()
            .filter(|&child| self.leads_to(at, child, tier))
            .collect();
        // Largest first; of equal ones the first in topology order.
        open.sort_by_key(|&child| std::cmp::Reverse(slots(child)));
        let mut left = count;
        while left > 0 && !open.is_empty() {
            // The last one that holds what is left is the tightest; if none does, the largest is filled.
            let fits = open.partition_point(|&child| slots(child) >= left);
            let tightest = fits.checked_sub(1).map(|last| slots(open[last]));
            let pick = tightest.map_or(0, |size| open.partition_point(|&child| slots(child) > size));
            let child = open.remove(pick);
            let take = left.min(slots(child));
            self.choose_together(child, take, tier, tips);
            left -= take;
        }
    }
}

/// The parts of `cpus` in each unit of the level, in the units' order.
pub(super) fn split(topology: &Topology, level: Level, cpus: &CpuSet) -> Vec<CpuSet> {
    let mut parts: BTreeMap<usize, CpuSet> = BTreeMap::new();
    for cpu in cpus {
        if let Some(unit) = topology.unit_of(level, cpu) {
            parts.entry(unit).or_default().insert(cpu);
        }
    }
    parts.into_values().collect()
}

/// A utilisation in steps of 10 %; unknown counts as none.
pub(super) fn tenths(utilisation: Option<f32>) -> u8 {
    let steps = (utilisation.unwrap_or(0.0).clamp(0.0, 1.0) * 10.0).floor();
    (0..=10).rev().find(|&step| f32::from(step) <= steps).unwrap_or(0)
}
