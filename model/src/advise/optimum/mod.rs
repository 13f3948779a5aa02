//! The best placement under SPREAD and COMPACT, however irregular, busy or restricted the host is.
//!
//! What is best for the tasks per CPU leaves open which of some CPUs get one task more ([`Fill`]). All components after
//! that are sums over units that lie inside each other or apart, or compare like sums, but for the distances. So the best
//! way to take a number of CPUs from a branch of the hardware is made of the best ways to take fewer from those below it
//! ([`Table`]). Distances are such sums where they are those of a hierarchy. Elsewhere the nearest hierarchy below them
//! gives a bound, and the ways to divide the tasks over the nodes are searched ([`scattered`]).

mod branches;
mod clusters;
mod fill;
mod scattered;
mod score;
mod table;

use super::{Near, Policy, Smt, tree::tenths};
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
    topology::{Level, Topology},
};
use branches::{Branch, Branches};
use clusters::Clusters;
use fill::Fill;
use scattered::Scattered;
use score::{Score, Term, Wide};
use table::Table;

/// What the best placement is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal<'a> {
    pub(super) topology: &'a Topology,
    pub(super) load: &'a Load,
    /// The CPUs whose tasks count, and those of them that may be taken: at least one.
    pub(super) counted: &'a CpuSet,
    pub(super) open: &'a CpuSet,
    /// How many CPUs, counted once for each task, and how many belong to one task.
    pub(super) cpus: u32,
    pub(super) per_task: u32,
    /// SPREAD or COMPACT.
    pub(super) policy: Policy,
    pub(super) smt: Smt,
    pub(super) near: Option<&'a Near>,
}

/// A placement.
#[derive(Debug)]
pub(super) struct Found {
    /// The CPUs, ascending.
    pub(super) places: Vec<Cpu>,
    /// No other is better.
    pub(super) optimal: bool,
    /// If one may be, the least that the sum of distances can be, where that is known.
    pub(super) bound: Option<u64>,
}

/// The most pairs of rows that are compared in full.
const MAX_PAIRS: usize = 1 << 23;

impl Goal<'_> {
    /// The best placement.
    pub(super) fn reach(&self) -> Found {
        let fill = Fill::new(self.load, self.open, self.cpus);
        if fill.rest == 0 {
            return Found { places: fill.common(), optimal: true, bound: None };
        }
        let mut sets = branches::units(self.topology, self.counted);
        let clusters = match self.policy {
            Policy::Compact => Clusters::new(self.topology, self.counted),
            Policy::Auto | Policy::Spread => {
                sets.extend(branches::halves(self.topology, self.counted));
                Clusters::default()
            }
        };
        let mut tree = Branches::new(self.topology, self.counted, [sets.clone(), clusters.sets()].concat());
        let mut exact = clusters.exact;
        if tree.crossing && !clusters.is_flat() {
            // Clusters may cross packages: then all nodes are taken as equally far.
            tree = Branches::new(self.topology, self.counted, [sets, clusters.flat()].concat());
            exact = false;
        }
        let search = Search::new(self, &fill, &tree.all);
        let nodes_apart = !exact && !tree.crossing && !search.thin;
        let (table, kept) = search.root(nodes_apart);
        let (taken, score) = (table.cpus(fill.rest, &fill.candidates), table.score(fill.rest));
        let mut found = Found {
            places: Self::places(&fill, taken),
            optimal: exact && !tree.crossing && !search.thin,
            bound: None,
        };
        if nodes_apart {
            found.bound = Some(score.distance());
            if let Some(scattered) = Scattered::new(&search, kept) {
                let (taken, complete) = scattered.best();
                (found.places, found.optimal) = (Self::places(&fill, taken), complete);
            }
        }
        found
    }

    /// The CPUs that all placements have in common and these, ascending.
    fn places(fill: &Fill, taken: impl IntoIterator<Item = Cpu>) -> Vec<Cpu> {
        let mut places = fill.common();
        places.extend(taken);
        places.sort_unstable();
        places
    }
}

/// What the tables are made on.
#[derive(Debug)]
struct Search<'a> {
    goal: &'a Goal<'a>,
    fill: &'a Fill,
    branches: &'a [Branch],
    /// For each branch, what it has without any candidate.
    state: Vec<State>,
    /// Only part of the ways is tried.
    thin: bool,
    empty: Table,
}

/// What a branch has without any candidate.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Tasks of others, and those that every placement puts there.
    others: u32,
    ours: u32,
    /// CPUs on which neither runs.
    free: u32,
    candidates: usize,
}

impl<'a> Search<'a> {
    fn new(goal: &'a Goal<'a>, fill: &'a Fill, branches: &'a [Branch]) -> Self {
        let mut is_candidate = vec![false; goal.topology.cpu_limit()];
        fill.candidates.iter().for_each(|cpu| is_candidate[cpu.index()] = true);
        let mut state = vec![State::default(); branches.len()];
        for (index, branch) in branches.iter().enumerate().rev() {
            // Cores come last, and what is above them is summed up.
            let mut sum = branch.children.iter().fold(State::default(), |sum, &child| sum.and(state[child]));
            if branch.children.is_empty() {
                for cpu in &branch.cpus {
                    let (others, ours) = (goal.load.taken(cpu), fill.base(cpu));
                    sum = sum.and(State {
                        others,
                        ours,
                        free: u32::from(others + ours == 0),
                        candidates: usize::from(is_candidate[cpu.index()]),
                    });
                }
            }
            state[index] = sum;
        }
        let levels = match goal.policy {
            Policy::Compact => 0,
            Policy::Auto | Policy::Spread => {
                branches.iter().filter_map(|branch| branch.half).max().map_or(3, |deepest| deepest + 4)
            }
        };
        let empty = Table::empty(fill.candidates.len().div_ceil(64), levels);
        let mut search = Self { goal, fill, branches, state, thin: false, empty };
        // A row of SPREAD is compared number by number.
        let each = if levels == 0 { 1 } else { 8 };
        search.thin = search.pairs() * each > MAX_PAIRS;
        search
    }

    /// The numbers of candidates that may be taken from so many: the others have to suffice for the rest.
    fn rows(&self, of: usize) -> std::ops::RangeInclusive<usize> {
        let elsewhere = self.fill.candidates.len() - of;
        self.fill.rest.saturating_sub(elsewhere)..=of.min(self.fill.rest)
    }

    /// How many pairs of rows are compared.
    fn pairs(&self) -> usize {
        let rows = |of: usize| self.rows(of).count();
        let of_branch = |branch: &Branch| {
            let mut sum = 0;
            let pairs = branch.children.iter().map(|&child| {
                let (before, its) = (sum, self.state[child].candidates);
                sum += its;
                if before == 0 { 0 } else { rows(before) * rows(its) }
            });
            pairs.sum::<usize>()
        };
        self.branches.iter().map(of_branch).sum()
    }

    /// The table of the whole host, and those of the nodes if they are kept.
    fn root(&self, keep_nodes: bool) -> (Table, Vec<(usize, Table)>) {
        let mut tables: Vec<Option<Table>> = vec![None; self.branches.len()];
        let mut kept = Vec::new();
        for (index, branch) in self.branches.iter().enumerate().rev() {
            let mut table =
                if branch.children.is_empty() { self.core(index) } else { self.joined(branch, &mut tables) };
            self.close(index, &mut table);
            if keep_nodes && branch.node.is_some() {
                kept.push((index, table.clone()));
            }
            tables[index] = Some(table);
        }
        kept.reverse();
        (tables.swap_remove(0).unwrap_or_else(|| self.empty.clone()), kept)
    }

    fn joined(&self, branch: &Branch, tables: &mut [Option<Table>]) -> Table {
        let mut sum = State::default();
        let mut joined: Option<Table> = None;
        for &child in &branch.children {
            let Some(table) = tables[child].take() else { continue };
            let state = self.state[child];
            let both = sum.and(state);
            joined = Some(match joined {
                None => table,
                Some(joined) => joined.with(&table, self.rows(both.candidates), self.thin, |(mine, its)| {
                    let pairs = (u64::from(sum.ours) + mine as u64) * (u64::from(state.ours) + its as u64);
                    Score::of(Term::Distance, self.distance(branch) * 2 * pairs)
                }),
            });
            sum = both;
        }
        joined.unwrap_or_else(|| self.empty.clone())
    }

    /// The distance counts for COMPACT only.
    fn distance(&self, branch: &Branch) -> u64 {
        if self.goal.policy == Policy::Compact { branch.distance.into() } else { 0 }
    }

    /// The ways to take CPUs of one core: the least used first.
    fn core(&self, index: usize) -> Table {
        let Goal { topology, load, smt, near, .. } = *self.goal;
        let cpus = &self.branches[index].cpus;
        let far = |cpu: Cpu| near.map_or(0, |near| near.distance(topology, cpu));
        let mut order: Vec<(u32, u8, usize)> = cpus
            .iter()
            .filter_map(|cpu| {
                let rank = self.fill.candidates.binary_search(&cpu).ok()?;
                Some((far(cpu), tenths(load.of(cpu).utilisation), rank))
            })
            .collect();
        order.sort_unstable();
        let whole = cpus.first().and_then(|cpu| topology.span(Level::Core, cpu)).unwrap_or(cpus);
        let is_busy = |cpu: &Cpu| load.taken(*cpu) + self.fill.base(*cpu) > 0;
        let busy = whole.iter().filter(is_busy).count();
        let has_ours = self.state[index].ours > 0;
        let score = |count: usize| {
            let is_shared = smt == Smt::Share || busy + if self.fill.on_idle { count } else { 0 } > 1;
            let used = has_ours || count > 0;
            let taken = || order[..count].iter();
            let far = taken().map(|&(far, _, _)| u64::from(far)).sum();
            let tenths = taken().map(|&(_, tenths, _)| u64::from(tenths)).sum();
            let shared = Score::of(Term::Cores, (used && is_shared).into());
            shared + Score::of(Term::Near, far) + Score::of(Term::Tenths, tenths)
        };
        let ranks: Vec<usize> = order.iter().map(|&(_, _, rank)| rank).collect();
        Table::ordered(&self.empty, &ranks, self.rows(ranks.len()), score)
    }

    /// Adds what a branch costs by itself.
    fn close(&self, index: usize, table: &mut Table) {
        table.add(|count| self.own(index, count));
        if self.goal.policy == Policy::Compact {
            return;
        }
        let branch = &self.branches[index];
        let State { others, ours, .. } = self.state[index];
        let narrowest = self.empty.levels() - 1;
        let levels = [
            (branch.package, 0),
            (branch.node.is_some(), 1),
            (branch.half.is_some(), 2 + branch.half.unwrap_or(0)),
            (branch.llc, narrowest),
        ];
        for (_, level) in levels.into_iter().filter(|(is_such, _)| *is_such) {
            table.count(level, |count| others + ours + u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// What a branch costs by itself with so many candidates taken.
    fn own(&self, index: usize, count: usize) -> Score {
        let branch = &self.branches[index];
        let State { ours, free, .. } = self.state[index];
        let tasks = u64::from(ours) + count as u64;
        let kinds =
            [(branch.package, Wide::Package), (branch.node.is_some(), Wide::Node), (branch.llc, Wide::Llc)];
        let mut score = Score::default();
        for (_, wide) in kinds.into_iter().filter(|(is_such, _)| *is_such) {
            score = score + Score::of(Term::Broken(wide), tasks % u64::from(self.goal.per_task));
            if self.goal.policy == Policy::Compact && tasks > 0 {
                score = score + Score::of(Term::Used(wide), 1);
            }
        }
        if self.goal.policy == Policy::Compact && tasks > 0 {
            if branch.llc {
                let taken = if self.fill.on_idle { count as u64 } else { 0 };
                score = score + Score::of(Term::Left, u64::from(free) - taken);
            }
            if let Some(node) = branch.node {
                let own = u64::from(self.goal.topology.distance(node, node));
                score = score + Score::of(Term::Distance, own * tasks * (tasks - 1));
            }
        }
        score
    }
}

impl State {
    fn and(self, other: Self) -> Self {
        Self {
            others: self.others + other.others,
            ours: self.ours + other.ours,
            free: self.free + other.free,
            candidates: self.candidates + other.candidates,
        }
    }
}
