//! What load balancing leaves alone between the groups of a NUMA level, as data.

use super::BalanceRule;

/// When load balancing at a NUMA level, both groups having capacity to spare, leaves a difference alone.
#[doc(alias = "adjust_numa_imbalance")]
#[doc(alias = "allow_numa_imbalance")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tolerance {
    /// Whose tasks are held against `limit`.
    pub counted: Counted,
    /// Up to how many of them the difference may be left alone.
    pub limit: Limit,
    /// That number itself still counts.
    pub inclusive: bool,
    /// The largest difference that is left alone.
    pub most: Most,
    /// The difference is halved before it is held against `most`, not afterwards.
    pub halved_first: bool,
}

/// Whose tasks are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Those of the busiest group.
    Busiest,
    /// Those of the group that balances, with the one that would come.
    WithNew,
}

/// How many tasks are few.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// So many.
    Tasks(u32),
    /// A quarter of the busiest group's CPUs.
    GroupQuarter,
    /// A quarter of the domain's CPUs.
    DomainQuarter,
    /// The level's `imb_numa_nr`.
    ImbNuma,
}

/// How large a difference is small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Most {
    /// Any is.
    Any,
    /// Up to so many tasks or idle CPUs.
    Of(u32),
    /// Up to the level's `imb_numa_nr`.
    ImbNuma,
}

/// The numbers of one level at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Balance {
    /// Runnable tasks of the busiest group.
    pub busiest: u32,
    /// Runnable tasks of the group that balances.
    pub local: u32,
    /// CPUs of the busiest group.
    pub group_weight: u32,
    /// CPUs of the domain.
    pub domain_weight: u32,
    /// Its `imb_numa_nr`.
    pub imb_numa_nr: u32,
}

impl BalanceRule {
    /// What it leaves alone; `None` where balancing goes by load, which is not modelled.
    pub const fn tolerance(self) -> Option<Tolerance> {
        let v5_11 = Tolerance {
            counted: Counted::Busiest,
            limit: Limit::GroupQuarter,
            inclusive: false,
            most: Most::Of(2),
            halved_first: true,
        };
        let with_new = Tolerance { counted: Counted::WithNew, limit: Limit::ImbNuma, ..v5_11 };
        Some(match self {
            Self::ByLoad => return None,
            Self::V5_7 => Tolerance { limit: Limit::Tasks(2), inclusive: true, most: Most::Any, ..v5_11 },
            Self::V5_11 => v5_11,
            Self::MelV3 => Tolerance { limit: Limit::ImbNuma, ..v5_11 },
            Self::MelV4 => Tolerance { limit: Limit::DomainQuarter, most: Most::ImbNuma, ..v5_11 },
            Self::MelV5 => with_new,
            Self::MelV6 => Tolerance { inclusive: true, ..with_new },
            Self::V6_0 => Tolerance { inclusive: true, halved_first: false, ..with_new },
        })
    }
}

impl Tolerance {
    /// How many tasks are moved for a `difference` of tasks or idle CPUs: half of it, or none where it is left alone.
    #[doc(alias = "calculate_imbalance")]
    pub fn to_move(&self, difference: u32, at: &Balance) -> u32 {
        let held = if self.halved_first { difference / 2 } else { difference };
        let is_small = match self.most {
            Most::Any => true,
            Most::Of(most) => held <= most,
            Most::ImbNuma => held <= at.imb_numa_nr,
        };
        if is_small && self.are_few(at) { 0 } else { difference / 2 }
    }

    /// Whether so few tasks run that a difference may be left alone.
    fn are_few(&self, at: &Balance) -> bool {
        let counted = match self.counted {
            Counted::Busiest => at.busiest,
            Counted::WithNew => at.local + 1,
        };
        let limit = self.limit(at.group_weight, at.domain_weight, at.imb_numa_nr);
        counted < limit || (self.inclusive && counted == limit)
    }

    /// The limit at a level.
    pub fn limit(&self, group_weight: u32, domain_weight: u32, imb_numa_nr: u32) -> u32 {
        match self.limit {
            Limit::Tasks(tasks) => tasks,
            Limit::GroupQuarter => group_weight >> 2,
            Limit::DomainQuarter => domain_weight >> 2,
            Limit::ImbNuma => imb_numa_nr,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of 40 CPUs; `imb_numa_nr` as each kernel computes it.
    fn moved(rule: BalanceRule, imb_numa_nr: u32, busiest: u32, local: u32) -> u32 {
        let at = Balance { busiest, local, group_weight: 40, domain_weight: 80, imb_numa_nr };
        rule.tolerance().unwrap().to_move(busiest - local, &at)
    }

    #[test]
    fn what_each_kernel_leaves_alone() {
        // v5.7: any difference of at most two tasks on the busiest node.
        assert_eq!((moved(BalanceRule::V5_7, 0, 2, 0), moved(BalanceRule::V5_7, 0, 3, 0)), (0, 1));
        // v5.11: half of the difference up to two while fewer than ten run there.
        assert_eq!((moved(BalanceRule::V5_11, 0, 9, 4), moved(BalanceRule::V5_11, 0, 9, 3)), (0, 3));
        assert_eq!(moved(BalanceRule::V5_11, 0, 10, 6), 2);
        // v4: half of the difference up to imb_numa_nr while fewer than twenty run there.
        assert_eq!((moved(BalanceRule::MelV4, 4, 9, 0), moved(BalanceRule::MelV4, 4, 10, 0)), (0, 5));
        // v5 and v6 differ by one.
        assert_eq!((moved(BalanceRule::MelV5, 10, 13, 9), moved(BalanceRule::MelV6, 10, 13, 9)), (2, 0));
        // v6.0 holds the whole difference against two.
        assert_eq!((moved(BalanceRule::V6_0, 5, 5, 3), moved(BalanceRule::V6_0, 5, 6, 3)), (0, 1));
        assert_eq!(moved(BalanceRule::V6_0, 5, 7, 5), 1, "six are too many");
    }
}
