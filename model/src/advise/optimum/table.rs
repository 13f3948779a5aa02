//! For each number of candidates, the best way to take so many of a branch.

use super::score::Score;
use crate::cpuset::Cpu;
use std::cmp::Ordering;

/// The best ways to take candidates of a branch: one row for each number of them. Every component is a sum over
/// branches, or compares like one, so that the best of two branches together is made of the best of each.
#[derive(Debug, Clone)]
pub(super) struct Table {
    /// Candidates taken in the first row.
    pub(super) least: usize,
    scores: Vec<Score>,
    /// SPREAD's tasks per unit, level by level, the most first; as many in each row.
    counts: Vec<u32>,
    /// How many of these are of each level.
    units: Vec<usize>,
    /// The candidates taken, by rank from the lowest CPU.
    taken: Vec<u64>,
    words: usize,
}

/// Rows of two tables that are taken together.
type Pair = (usize, usize);

impl Table {
    /// The ways to take no candidate, from a branch that has none.
    pub(super) fn empty(words: usize, levels: usize) -> Self {
        Self {
            least: 0,
            scores: vec![Score::default()],
            counts: Vec::new(),
            units: vec![0; levels],
            taken: vec![0; words],
            words,
        }
    }

    /// Candidates that are taken in this order, by rank, as many as `rows` say; `score` says what so many cost.
    pub(super) fn ordered(
        empty: &Self,
        order: &[usize],
        rows: std::ops::RangeInclusive<usize>,
        score: impl Fn(usize) -> Score,
    ) -> Self {
        let mut table = Self { least: *rows.start(), scores: Vec::new(), taken: Vec::new(), ..empty.clone() };
        for count in rows {
            table.scores.push(score(count));
            let row = table.taken.len();
            table.taken.resize(row + table.words, 0);
            for rank in &order[..count] {
                table.taken[row + rank / 64] |= 1 << (rank % 64);
            }
        }
        table
    }

    /// How many levels are counted.
    pub(super) fn levels(&self) -> usize {
        self.units.len()
    }

    /// Candidates taken in the last row.
    pub(super) fn most(&self) -> usize {
        self.least + self.scores.len() - 1
    }

    /// How good so many candidates are.
    pub(super) fn score(&self, count: usize) -> Score {
        self.scores[count - self.least]
    }

    /// The candidates taken in a row, by rank.
    pub(super) fn taken(&self, count: usize) -> &[u64] {
        &self.taken[(count - self.least) * self.words..][..self.words]
    }

    /// The CPUs taken in a row.
    pub(super) fn cpus(&self, count: usize, candidates: &[Cpu]) -> impl Iterator<Item = Cpu> {
        let taken = self.taken(count);
        let ranked = candidates.iter().enumerate();
        ranked.filter(|(rank, _)| taken[rank / 64] >> (rank % 64) & 1 == 1).map(|(_, &cpu)| cpu)
    }

    /// Adds to each row what so many candidates cost beyond what is below.
    pub(super) fn add(&mut self, score: impl Fn(usize) -> Score) {
        for (count, row) in (self.least..).zip(&mut self.scores) {
            *row = *row + score(count);
        }
    }

    /// Adds the tasks on a unit of this level, which holds all that the table is of.
    pub(super) fn count(&mut self, level: usize, tasks: impl Fn(usize) -> u32) {
        let before: usize = self.units[..level].iter().sum();
        let old: usize = self.units.iter().sum();
        let mut counts = Vec::with_capacity((old + 1) * self.scores.len());
        for row in 0..self.scores.len() {
            let (wider, narrower) = self.counts[row * old..][..old].split_at(before);
            counts.extend_from_slice(wider);
            counts.push(tasks(self.least + row));
            counts.extend_from_slice(narrower);
        }
        self.units[level] += 1;
        self.counts = counts;
    }

    /// The best ways to take candidates of two branches together, for these numbers of them. `between` is the sum of
    /// distances between the tasks of both. Where that would be too much work, only ways that leave nothing in the one
    /// or take nothing from the other are tried.
    pub(super) fn with(
        &self,
        other: &Self,
        rows: std::ops::RangeInclusive<usize>,
        thin: bool,
        between: impl Fn(Pair) -> Score,
    ) -> Self {
        let mut joined = Self {
            least: *rows.start(),
            scores: Vec::with_capacity(rows.end() - rows.start() + 1),
            counts: Vec::new(),
            units: self.units.iter().zip(&other.units).map(|(a, b)| a + b).collect(),
            taken: Vec::with_capacity((rows.end() - rows.start() + 1) * self.words),
            words: self.words,
        };
        for count in rows {
            let first = self.least.max(count.saturating_sub(other.most()));
            let last = self.most().min(count - other.least);
            let scored = |mine: usize| {
                let pair = (mine, count - mine);
                (pair, self.score(pair.0) + other.score(pair.1) + between(pair))
            };
            let step = if thin { (last - first).max(1) } else { 1 };
            let mut best = scored(first);
            for mine in (first..=last).step_by(step).skip(1) {
                let next = scored(mine);
                if self.compare(other, next, best) == Ordering::Less {
                    best = next;
                }
            }
            let ((mine, its), score) = best;
            joined.scores.push(score);
            joined.taken.extend(self.taken(mine).iter().zip(other.taken(its)).map(|(a, b)| a | b));
            for level in 0..self.units.len() {
                joined.counts.extend(merged(self.counts(mine, level), other.counts(its, level)));
            }
        }
        joined
    }

    fn compare(&self, other: &Self, (a, its): (Pair, Score), (b, score): (Pair, Score)) -> Ordering {
        let counts = || {
            (0..self.units.len())
                .map(|level| {
                    let of = |(mine, its): Pair| merged(self.counts(mine, level), other.counts(its, level));
                    of(a).cmp(of(b))
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        };
        let lower = || {
            let words = |(mine, its): Pair| self.taken(mine).iter().zip(other.taken(its)).map(|(a, b)| a | b);
            let differing = words(a).zip(words(b)).find(|(a, b)| a != b);
            // Of two sets, that with the lowest CPU that only one has comes first.
            differing.map_or(Ordering::Equal, |(a, b)| {
                if a & 1 << (a ^ b).trailing_zeros() == 0 { Ordering::Greater } else { Ordering::Less }
            })
        };
        let (first, then) = (its.before.cmp(&score.before), its.shape.cmp(&score.shape));
        first.then_with(counts).then(then).then(its.after.cmp(&score.after)).then_with(lower)
    }

    /// The tasks per unit of one level in a row, the most first.
    fn counts(&self, count: usize, level: usize) -> &[u32] {
        let before: usize = self.units[..level].iter().sum();
        let all: usize = self.units.iter().sum();
        &self.counts[(count - self.least) * all + before..][..self.units[level]]
    }
}

/// Two descending lists as one.
fn merged<'a>(mut a: &'a [u32], mut b: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
    std::iter::from_fn(move || {
        let list = if a.first() >= b.first() { &mut a } else { &mut b };
        let (first, rest) = list.split_first()?;
        *list = rest;
        Some(*first)
    })
}
