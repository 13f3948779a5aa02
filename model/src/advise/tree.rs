//! The allowed CPUs as a tree of packages, NUMA nodes, LLCs and cores, with the tasks on each branch: what SPREAD walks
//! where a task at a time is best.

use super::Smt;
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
    topology::{Level, Topology},
};
use std::cmp::{Ordering, Reverse};

/// What a CPU costs before any shape counts: tasks already on it, and then whether taking it goes against the `smt`
/// wish: a core more that is shared, or a core more that is used. Lower is better.
pub(super) type Tier = (u32, bool);

#[derive(Debug, Clone)]
struct Branch {
    above: usize,
    children: Vec<usize>,
    /// The CPU, at the tips.
    cpu: Option<Cpu>,
    is_core: bool,
    /// It is a CPU that may not be taken.
    is_closed: bool,
    /// Which component of SPREAD's shape counts its tasks, from the first; cores and CPUs are counted by none.
    component: Option<u8>,
    /// The child that SPREAD takes next.
    next: Option<usize>,
    /// Tasks on the branch, others' included.
    tasks: u32,
    /// CPUs on the branch that run something.
    busy: u32,
    /// Threads of a core that the tasks may not use and that run something.
    busy_outside: u32,
    /// Whether the job has a task on the branch.
    ours: bool,
    /// The best tier of its CPUs.
    tier: Tier,
    /// The least used of its CPUs of that tier, by measured utilisation in tenths, then by number.
    pick: (u8, Option<Cpu>),
}

/// The tree; branch 0 is the host.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    branches: Vec<Branch>,
    smt: Smt,
}

impl Branch {
    /// The branch without what is summed up.
    fn clone_head(&self) -> Self {
        Self { children: Vec::new(), tasks: 0, busy: self.busy_outside, ours: false, ..*self }
    }
}

/// Comes after every pick.
const NO_PICK: (u8, Option<Cpu>) = (u8::MAX, None);

const NOTHING: Tier = (u32::MAX, true);

/// The components of SPREAD's shape: packages, NUMA nodes, their halves, quarters and so on, and LLCs last.
const PACKAGE: u8 = 0;
const NODE: u8 = 1;
const LLC: u8 = u8::MAX;

impl Tree {
    /// The allowed CPUs with what runs on them, of which those that are `open` may be taken.
    pub(super) fn new(
        topology: &Topology,
        load: &Load,
        (allowed, open): (&CpuSet, &CpuSet),
        smt: Smt,
    ) -> Self {
        let mut tree = Self { branches: Vec::new(), smt };
        let host = tree.add(0, None, 0);
        for package in split(topology, Level::Package, allowed) {
            let package_branch = tree.add(host, None, 0);
            tree.branches[package_branch].component = Some(PACKAGE);
            for node in split(topology, Level::Node, &package) {
                let node_branch = tree.add(package_branch, None, 0);
                tree.branches[node_branch].component = Some(NODE);
                let llcs = split(topology, Level::Llc, &node);
                tree.add_llcs((node_branch, NODE), topology, load, &llcs);
            }
        }
        for branch in (0..tree.branches.len()).rev() {
            let cpu = tree.branches[branch].cpu;
            tree.branches[branch].is_closed = cpu.is_some_and(|cpu| !open.contains(cpu));
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
            is_closed: false,
            component: None,
            next: None,
            tasks,
            busy: 0,
            busy_outside: 0,
            ours: false,
            tier: NOTHING,
            pick: NO_PICK,
        };
        self.branches.push(branch);
        if index > 0 {
            self.branches[above].children.push(index);
        }
        index
    }

    fn add_llcs(
        &mut self,
        (above, component): (usize, u8),
        topology: &Topology,
        load: &Load,
        llcs: &[CpuSet],
    ) {
        // Hardware has levels that it does not report: LLCs hang below their node in halves, quarters and so on.
        if llcs.len() > 1 {
            let (first, second) = llcs.split_at(llcs.len() / 2);
            for half in [first, second] {
                let branch = self.add(above, None, 0);
                // The halves of two are LLCs.
                self.branches[branch].component = (llcs.len() > 2).then_some(component + 1);
                self.add_llcs((branch, component + 1), topology, load, half);
            }
            return;
        }
        for llc in llcs {
            let llc_branch = self.add(above, None, 0);
            self.branches[llc_branch].component = Some(LLC);
            for core in split(topology, Level::Core, llc) {
                let core_branch = self.add(llc_branch, None, 0);
                self.branches[core_branch].is_core = true;
                self.branches[core_branch].busy_outside = busy_outside(topology, load, &core);
                for cpu in &core {
                    let tip = self.add(core_branch, Some(cpu), load.taken(cpu));
                    self.branches[tip].pick = (tenths(load.of(cpu).utilisation), Some(cpu));
                }
            }
        }
    }

    /// Sums a branch up from its children.
    fn refresh(&mut self, index: usize) {
        let mut branch =
            Branch { tier: NOTHING, pick: NO_PICK, next: None, ..self.branches[index].clone_head() };
        if branch.cpu.is_some() {
            let tip = &self.branches[index];
            (branch.tasks, branch.ours, branch.busy) = (tip.tasks, tip.ours, u32::from(tip.tasks > 0));
            branch.pick = tip.pick;
            if !tip.is_closed {
                branch.tier = (tip.tasks, false);
            }
        }
        for &at in &self.branches[index].children {
            let child = &self.branches[at];
            branch.tasks += child.tasks;
            branch.busy += child.busy;
            branch.ours |= child.ours;
            if child.tier < branch.tier {
                (branch.tier, branch.pick, branch.next) = (child.tier, NO_PICK, None);
            }
            if child.tier == branch.tier {
                let is_less_crowded = |than: usize| self.by_crowd(at, than) == Ordering::Less;
                if branch.next.is_none_or(is_less_crowded) {
                    branch.next = Some(at);
                }
                branch.pick = branch.pick.min(child.pick);
            }
        }
        if branch.is_core && branch.tier != NOTHING {
            self.judge_core(&mut branch);
        }
        let kept = &mut self.branches[index];
        branch.children = std::mem::take(&mut kept.children);
        *kept = branch;
    }

    /// What the next task on a core costs.
    fn judge_core(&self, core: &mut Branch) {
        core.tier.1 = match self.smt {
            Smt::Share => !core.ours,
            Smt::Avoid | Smt::FullCores => {
                let is_shared = core.busy > 1;
                let would_be = core.busy + u32::from(core.tier.0 == 0) > 1;
                would_be && !(core.ours && is_shared)
            }
        };
    }

    /// Puts one more task on a tip.
    fn put(&mut self, tip: usize) {
        self.branches[tip].tasks += 1;
        self.branches[tip].ours = true;
        let mut at = tip;
        loop {
            self.refresh(at);
            if at == 0 {
                break;
            }
            at = self.branches[at].above;
        }
    }

    /// Puts the next task where SPREAD wants it: among CPUs of the best tier on the one that adds least to the components
    /// of the shape, the first that differs deciding.
    pub(super) fn put_apart(&mut self) -> Option<Cpu> {
        let tip = self.ways_down(0).last().filter(|&tip| self.branches[tip].tier != NOTHING)?;
        self.put(tip);
        self.branches[tip].cpu
    }

    /// The branches that SPREAD goes down from one, itself included.
    fn ways_down(&self, from: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(from), |&at| self.branches[at].next)
    }

    /// Which of two branches SPREAD takes first. A component that does not count the one's tasks is not made worse there.
    fn by_crowd(&self, a: usize, b: usize) -> Ordering {
        let added = |from: usize| {
            self.ways_down(from).filter_map(|at| {
                let branch = &self.branches[at];
                Some((Reverse(branch.component?), branch.tasks))
            })
        };
        let pick = |from: usize| self.ways_down(from).last().map(|tip| self.branches[tip].pick);
        added(a).cmp(added(b)).then_with(|| pick(a).cmp(&pick(b)))
    }
}

/// The parts of `cpus` in each unit of the level, in the units' order.
pub(super) fn split(topology: &Topology, level: Level, cpus: &CpuSet) -> Vec<CpuSet> {
    let mut parts: Vec<(usize, CpuSet)> = Vec::new();
    let mut left = cpus.clone();
    while let Some(first) = left.first() {
        if let Some(unit) = topology.unit_of(level, first) {
            let part = left.intersection(&topology.units(level)[unit].cpus);
            left.subtract(&part);
            parts.push((unit, part));
        } else {
            left.remove(first);
        }
    }
    parts.sort_unstable_by_key(|&(unit, _)| unit);
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Threads of the core that are not among `allowed` and run something.
fn busy_outside(topology: &Topology, load: &Load, allowed: &CpuSet) -> u32 {
    let whole = allowed.first().and_then(|cpu| topology.span(Level::Core, cpu));
    let outside = whole.map(|core| core.difference(allowed)).unwrap_or_default();
    outside.iter().map(|cpu| u32::from(load.taken(cpu) > 0)).sum()
}

/// A utilisation in steps of 10 %; unknown counts as none.
pub(super) fn tenths(utilisation: Option<f32>) -> u8 {
    let steps = (utilisation.unwrap_or(0.0).clamp(0.0, 1.0) * 10.0).floor();
    (0..=10).rev().find(|&step| f32::from(step) <= steps).unwrap_or(0)
}
