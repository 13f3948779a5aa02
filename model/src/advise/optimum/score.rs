//! The components of an objective that are sums, packed so that adding and comparing them is adding and comparing three
//! numbers.

use std::ops::Add;

/// Sums over the units that a placement uses. Compared from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Score {
    /// What comes before the counts of SPREAD.
    pub(super) before: u128,
    /// The shape of COMPACT.
    pub(super) shape: u128,
    /// What comes last.
    pub(super) after: u64,
}

/// A component that is a sum. None of them reaches the bits of the next: a placement has 65,536 CPUs at most.
#[derive(Debug, Clone, Copy)]
pub(super) enum Term {
    /// CPUs of tasks that are broken over several units: LLCs, then nodes, then packages.
    Broken(Wide),
    /// Cores shared against the wish.
    Cores,
    /// Distance from the place to be near to.
    Near,
    /// Units used: packages, then nodes, then LLCs.
    Used(Wide),
    /// Distance of all pairs of tasks.
    Distance,
    /// Free CPUs left in the LLCs used.
    Left,
    /// Utilisation of the CPUs, in tenths.
    Tenths,
}

/// A level wider than a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wide {
    Package,
    Node,
    Llc,
}

impl Score {
    pub(super) fn of(term: Term, value: u64) -> Self {
        let wide = u128::from(value);
        let (before, shape, after) = match term {
            Term::Broken(Wide::Llc) => (wide << 96, 0, 0),
            Term::Broken(Wide::Node) => (wide << 76, 0, 0),
            Term::Broken(Wide::Package) => (wide << 56, 0, 0),
            Term::Cores => (wide << 32, 0, 0),
            Term::Near => (wide, 0, 0),
            Term::Used(Wide::Package) => (0, wide << 96, 0),
            Term::Used(Wide::Node) => (0, wide << 76, 0),
            Term::Used(Wide::Llc) => (0, wide << 56, 0),
            Term::Distance => (0, wide, 0),
            Term::Left => (0, 0, value << 32),
            Term::Tenths => (0, 0, value),
        };
        Self { before, shape, after }
    }

    /// The distance among its sums.
    pub(super) fn distance(self) -> u64 {
        u64::try_from(self.shape & ((1 << 56) - 1)).unwrap_or(u64::MAX)
    }
}

impl Add for Score {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            before: self.before + other.before,
            shape: self.shape + other.shape,
            after: self.after + other.after,
        }
    }
}
