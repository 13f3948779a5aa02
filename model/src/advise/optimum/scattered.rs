//! COMPACT where distances are those of no hierarchy: the numbers of tasks per node are searched.

use super::{
    Search,
    score::{Score, Term},
    table::Table,
};
use crate::cpuset::Cpu;

/// So many nodes are searched to the end, whatever it takes.
const MANY_NODES: usize = 16;
/// The most ways to go on that are looked at with that many nodes, and with more.
const MAX_LOOKS: [u32; 2] = [1 << 22, 1 << 16];
/// The most steps that finding the bounds may take.
const MAX_STEPS: usize = 1 << 24;

/// A NUMA node with the ways to take CPUs of it.
struct Leaf {
    node: usize,
    ours: u64,
    table: Table,
    /// Branches above it of which it is the last node.
    closes: Vec<usize>,
    /// To the nearest of the nodes after it and back.
    to_next: u64,
}

/// The nodes, one after the other.
pub(super) struct Scattered<'a> {
    search: &'a Search<'a>,
    leaves: Vec<Leaf>,
    /// For each branch above nodes, these by their position.
    below: Vec<Vec<usize>>,
    /// What the nodes from each on cost at least, for each number of candidates among them.
    bounds: Vec<Vec<Option<Score>>>,
}

/// A way that has been gone so far.
struct Way {
    counts: Vec<usize>,
    /// For each node, the sum of distances between one task there and all that are placed, both ways.
    pull: Vec<u64>,
    best: Option<(Score, Vec<u64>, Vec<usize>)>,
    looks: u32,
}

impl<'a> Scattered<'a> {
    /// `None` if there is too much to search.
    pub(super) fn new(search: &'a Search<'a>, nodes: Vec<(usize, Table)>) -> Option<Self> {
        let rest = search.fill.rest;
        let rows: usize = nodes.iter().map(|(_, table)| table.most() - table.least + 1).sum();
        if rows * rest > MAX_STEPS || nodes.len() * rest > MAX_STEPS {
            return None;
        }
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); search.branches.len()];
        for (position, (branch, _)) in nodes.iter().enumerate() {
            below[*branch].push(position);
        }
        for (index, branch) in search.branches.iter().enumerate().rev() {
            let inside: Vec<usize> =
                branch.children.iter().flat_map(|&child| below[child].iter().copied()).collect();
            below[index].extend(inside);
        }
        let mut closes = vec![Vec::new(); nodes.len()];
        for (branch, inside) in below.iter().enumerate() {
            if let (None, Some(&last)) = (search.branches[branch].node, inside.iter().max()) {
                closes[last].push(branch);
            }
        }
        let leaves = nodes.into_iter().zip(closes).map(|((branch, table), closes)| Leaf {
            node: search.branches[branch].node.unwrap_or(0),
            ours: search.state[branch].ours.into(),
            table,
            closes,
            to_next: 0,
        });
        let mut scattered = Self { search, leaves: leaves.collect(), below, bounds: Vec::new() };
        for position in 0..scattered.leaves.len() {
            let later = position + 1..scattered.leaves.len();
            let nearest = later.map(|other| scattered.both_ways(position, other)).min();
            scattered.leaves[position].to_next = nearest.unwrap_or(0);
        }
        scattered.bound();
        Some(scattered)
    }

    fn both_ways(&self, a: usize, b: usize) -> u64 {
        let topology = self.search.goal.topology;
        let (a, b) = (self.leaves[a].node, self.leaves[b].node);
        u64::from(topology.distance(a, b)) + u64::from(topology.distance(b, a))
    }

    /// Finds what the last nodes cost at least, then one more, and so on.
    fn bound(&mut self) {
        let rest = self.search.fill.rest;
        let mut after: Vec<Option<Score>> = vec![None; rest + 1];
        after[0] = Some(Score::default());
        let mut ours = 0;
        self.bounds.push(after);
        for leaf in self.leaves.iter().rev() {
            let after = &self.bounds[self.bounds.len() - 1];
            let least = |count: usize| {
                let rows = leaf.table.least..=leaf.table.most().min(count);
                let ways = rows.filter_map(|its| {
                    let later = after[count - its]?;
                    let pairs = (leaf.ours + its as u64) * (ours + (count - its) as u64);
                    Some(leaf.table.score(its) + later + Score::of(Term::Distance, leaf.to_next * pairs))
                });
                ways.min()
            };
            let bounds = (0..=rest).map(least).collect();
            ours += leaf.ours;
            self.bounds.push(bounds);
        }
        self.bounds.reverse();
    }

    /// The best candidates to take, and whether all ways were searched.
    pub(super) fn best(&self) -> (Vec<Cpu>, bool) {
        let mut way = Way { counts: Vec::new(), pull: vec![0; self.leaves.len()], best: None, looks: 0 };
        let complete = self.go(&mut way, self.search.fill.rest, Score::default());
        let counts = way.best.map(|(_, _, counts)| counts).unwrap_or_default();
        let chosen = self.leaves.iter().zip(counts);
        let cpus = chosen.flat_map(|(leaf, count)| leaf.table.cpus(count, &self.search.fill.candidates));
        (cpus.collect(), complete)
    }

    /// Goes on with so many candidates left to take; says whether the search may go on.
    fn go(&self, way: &mut Way, left: usize, score: Score) -> bool {
        let position = way.counts.len();
        let Some(leaf) = self.leaves.get(position) else {
            self.arrive(way, score);
            return true;
        };
        let most_looks = MAX_LOOKS[usize::from(self.leaves.len() > MANY_NODES)];
        let mut ways: Vec<(Score, usize, Score)> = Vec::new();
        for count in leaf.table.least..=leaf.table.most().min(left) {
            way.looks += 1;
            let Some(later) = self.bounds[position + 1][left - count] else { continue };
            let here = score + self.of_leaf(way, count);
            let bound = here + later + Score::of(Term::Distance, self.pulled(way, count, left - count));
            ways.push((bound, count, here));
        }
        ways.sort_unstable();
        for (bound, count, here) in ways {
            if way.best.as_ref().is_some_and(|(best, _, _)| bound > *best) {
                break;
            }
            if way.looks > most_looks && way.best.is_some() {
                return false;
            }
            let tasks = leaf.ours + count as u64;
            let pull: Vec<u64> = (0..way.pull.len()).map(|other| self.both_ways(position, other)).collect();
            way.pull.iter_mut().zip(&pull).for_each(|(sum, pull)| *sum += pull * tasks);
            way.counts.push(count);
            let went_on = self.go(way, left - count, here);
            way.counts.pop();
            way.pull.iter_mut().zip(&pull).for_each(|(sum, pull)| *sum -= pull * tasks);
            if !went_on {
                return false;
            }
        }
        true
    }

    /// What the next node costs with so many candidates, and the branches above that have no more nodes.
    fn of_leaf(&self, way: &Way, count: usize) -> Score {
        let position = way.counts.len();
        let leaf = &self.leaves[position];
        let tasks = leaf.ours + count as u64;
        let own = leaf.table.score(count) + Score::of(Term::Distance, way.pull[position] * tasks);
        leaf.closes.iter().fold(own, |sum, &branch| {
            let inside = self.below[branch].iter();
            let taken = inside.map(|&node| way.counts.get(node).copied().unwrap_or(count)).sum();
            sum + self.search.own(branch, taken)
        })
    }

    /// The least that the distances between the tasks on nodes up to the next one, with so many candidates, and the
    /// others can come to.
    fn pulled(&self, way: &Way, count: usize, left: usize) -> u64 {
        let position = way.counts.len();
        let tasks = self.leaves[position].ours + count as u64;
        let mut sum = 0;
        let mut room: Vec<(u64, usize)> = Vec::new();
        for (other, leaf) in self.leaves.iter().enumerate().skip(position + 1) {
            let pull = way.pull[other] + self.both_ways(position, other) * tasks;
            sum += pull * leaf.ours;
            room.push((pull, leaf.table.most()));
        }
        room.sort_unstable();
        let mut left = left;
        for (pull, most) in room {
            let taken = most.min(left);
            sum += pull * taken as u64;
            left -= taken;
        }
        sum
    }

    fn arrive(&self, way: &mut Way, score: Score) {
        let mut taken: Vec<u64> = Vec::new();
        for (leaf, &count) in self.leaves.iter().zip(&way.counts) {
            let its = leaf.table.taken(count);
            taken.resize(its.len(), 0);
            taken.iter_mut().zip(its).for_each(|(all, its)| *all |= its);
        }
        // Of two sets, that with the lowest CPU that only one has comes first.
        let lower = |known: &Vec<u64>| {
            let differing = taken.iter().zip(known).find(|(a, b)| a != b);
            differing.is_some_and(|(a, b)| a & 1 << (a ^ b).trailing_zeros() != 0)
        };
        let better = match &way.best {
            None => true,
            Some((best, known, _)) => score < *best || (score == *best && lower(known)),
        };
        if better {
            way.best = Some((score, taken, way.counts.clone()));
        }
    }
}
