//! The columns of the profile table by name, with the values that each takes: what an operator can set otherwise.

use super::{BalanceRule, ImbNumaRule, NumaForkRule, Profile, StatsRule, TieRule, error::excerpt};
use crate::topology::Processor;

/// A column of the profile table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// [`Profile::cluster_level`].
    ClusterLevel,
    /// [`Profile::cpu_nodes_only`].
    CpuNodesOnly,
    /// [`Profile::epyc_distance`].
    EpycDistance,
    /// [`Profile::imbalance_pct`].
    ImbalancePct,
    /// [`Profile::imb_numa`].
    ImbNuma,
    /// [`Profile::stats`].
    Stats,
    /// [`Profile::group_runnable`].
    GroupRunnable,
    /// [`Profile::tie`].
    Tie,
    /// [`Profile::numa_fork`].
    NumaFork,
    /// [`Profile::balance`].
    Balance,
}

/// Why a column was not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such column.
    #[error("`{name}` is no rule; expected one of {}", Column::ALL.map(Column::name).join(", "))]
    Name {
        /// What was named.
        name: String,
    },
    /// The column does not take the value.
    #[error("`{value}` is no value of {}; expected {}", column.name(), column.values())]
    Value {
        /// The column.
        column: Column,
        /// The value.
        value: String,
    },
}

impl Column {
    /// Every column, in the order in which the kernel comes to them.
    pub const ALL: [Self; 10] = [
        Self::ClusterLevel,
        Self::CpuNodesOnly,
        Self::EpycDistance,
        Self::ImbalancePct,
        Self::ImbNuma,
        Self::Stats,
        Self::GroupRunnable,
        Self::Tie,
        Self::NumaFork,
        Self::Balance,
    ];

    /// Its name, such as `stats`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClusterLevel => "cluster_level",
            Self::CpuNodesOnly => "cpu_nodes_only",
            Self::EpycDistance => "epyc_distance",
            Self::ImbalancePct => "imbalance_pct",
            Self::ImbNuma => "imb_numa",
            Self::Stats => "stats",
            Self::GroupRunnable => "group_runnable",
            Self::Tie => "tie",
            Self::NumaFork => "numa_fork",
            Self::Balance => "balance",
        }
    }

    /// The column of that name.
    ///
    /// # Errors
    ///
    /// [`Refused::Name`] if there is none.
    pub fn named(name: &str) -> Result<Self, Refused> {
        let found = Self::ALL.into_iter().find(|column| column.name() == name.trim());
        found.ok_or_else(|| Refused::Name { name: excerpt(name) })
    }

    /// What it takes, in words.
    pub fn values(self) -> String {
        fn one_of<T: Value>() -> String {
            let names: Vec<&str> = T::NAMES.iter().map(|(_, name)| *name).collect();
            match names.as_slice() {
                [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
                _ => names.concat(),
            }
        }
        match self {
            Self::ClusterLevel | Self::CpuNodesOnly | Self::GroupRunnable => one_of::<bool>(),
            Self::EpycDistance => "a NUMA distance from 10 to 255".to_owned(),
            Self::ImbalancePct => "a percentage from 100 to 200".to_owned(),
            Self::ImbNuma => one_of::<ImbNumaRule>(),
            Self::Stats => one_of::<StatsRule>(),
            Self::Tie => one_of::<TieRule>(),
            Self::NumaFork => one_of::<NumaForkRule>(),
            Self::Balance => one_of::<BalanceRule>(),
        }
    }

    /// Its value in a profile, as [`Column::set`] takes it.
    pub fn value(self, profile: &Profile) -> String {
        match self {
            Self::ClusterLevel => profile.cluster_level.name().to_owned(),
            Self::CpuNodesOnly => profile.cpu_nodes_only.name().to_owned(),
            Self::EpycDistance => profile.epyc_distance.to_string(),
            Self::ImbalancePct => profile.imbalance_pct.to_string(),
            Self::ImbNuma => profile.imb_numa.name().to_owned(),
            Self::Stats => profile.stats.name().to_owned(),
            Self::GroupRunnable => profile.group_runnable.name().to_owned(),
            Self::Tie => profile.tie.name().to_owned(),
            Self::NumaFork => profile.numa_fork.name().to_owned(),
            Self::Balance => profile.balance.name().to_owned(),
        }
    }

    /// Sets it in a profile.
    ///
    /// # Errors
    ///
    /// [`Refused::Value`] if it does not take the value.
    pub fn set(self, profile: &mut Profile, value: &str) -> Result<(), Refused> {
        let trimmed = value.trim();
        let number = |least: u32, most: u32| trimmed.parse().ok().filter(|n| (least..=most).contains(n));
        let set = match self {
            Self::ClusterLevel => read(trimmed, &mut profile.cluster_level),
            Self::CpuNodesOnly => read(trimmed, &mut profile.cpu_nodes_only),
            Self::EpycDistance => number(10, 255).map(|distance| profile.epyc_distance = distance),
            Self::ImbalancePct => number(100, 200).map(|percent| profile.imbalance_pct = percent),
            Self::ImbNuma => read(trimmed, &mut profile.imb_numa),
            Self::Stats => read(trimmed, &mut profile.stats),
            Self::GroupRunnable => read(trimmed, &mut profile.group_runnable),
            Self::Tie => read(trimmed, &mut profile.tie),
            Self::NumaFork => read(trimmed, &mut profile.numa_fork),
            Self::Balance => read(trimmed, &mut profile.balance),
        };
        set.ok_or_else(|| Refused::Value { column: self, value: excerpt(value) })
    }
}

impl Profile {
    /// The NUMA distance beyond which a level takes no part in fork and exec balancing on a host with this processor. One
    /// that is not known is taken as none of AMD's.
    #[doc(alias = "node_reclaim_distance")]
    pub fn fork_distance_limit(&self, processor: &Processor) -> u32 {
        if processor.is_epyc() == Some(true) { self.epyc_distance } else { RECLAIM_DISTANCE }
    }
}

/// The kernel's limit where no architecture sets another.
pub const RECLAIM_DISTANCE: u32 = 30;

/// A rule whose values have names.
trait Value: Copy + PartialEq + 'static {
    /// Every value with its name.
    const NAMES: &'static [(Self, &'static str)];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(value, _)| *value == self).map_or("", |(_, name)| name)
    }
}

fn read<T: Value>(name: &str, into: &mut T) -> Option<()> {
    T::NAMES.iter().find(|(_, known)| *known == name).map(|(value, _)| *into = *value)
}

impl Value for bool {
    const NAMES: &'static [(Self, &'static str)] = &[(false, "false"), (true, "true")];
}

impl Value for ImbNumaRule {
    const NAMES: &'static [(Self, &'static str)] = &[
        (Self::None, "none"),
        (Self::V3, "v3"),
        (Self::V4, "v4"),
        (Self::V4PreferSibling, "v4ps"),
        (Self::Llc25, "llc25"),
        (Self::Llc12, "llc12"),
    ];
}

impl Value for StatsRule {
    const NAMES: &'static [(Self, &'static str)] =
        &[(Self::All, "all"), (Self::Allowed, "allowed"), (Self::AllowedWhole, "allowed-whole")];
}

impl Value for TieRule {
    const NAMES: &'static [(Self, &'static str)] =
        &[(Self::First, "first"), (Self::Utilisation, "utilisation")];
}

impl Value for NumaForkRule {
    const NAMES: &'static [(Self, &'static str)] = &[
        (Self::ByLoad, "by-load"),
        (Self::AnyIdle, "any-idle"),
        (Self::Span25, "span25"),
        (Self::Less, "less"),
        (Self::NotMore, "not-more"),
        (Self::PlusOneLess, "plus-one-less"),
        (Self::PlusOneNotMore, "plus-one-not-more"),
        (Self::PlusOneLessAllowed, "plus-one-less-allowed"),
        (Self::PlusOneNotMoreAllowed, "plus-one-not-more-allowed"),
        (Self::Adjusted, "adjusted"),
        (Self::AdjustedAllowed, "adjusted-allowed"),
    ];
}

impl Value for BalanceRule {
    const NAMES: &'static [(Self, &'static str)] = &[
        (Self::ByLoad, "by-load"),
        (Self::V5_7, "v5.7"),
        (Self::V5_11, "v5.11"),
        (Self::MelV3, "mel-v3"),
        (Self::MelV4, "mel-v4"),
        (Self::MelV5, "mel-v5"),
        (Self::MelV6, "mel-v6"),
        (Self::V6_0, "v6.0"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::all;

    /// Each column of each row read back gives the row; nothing else sets anything.
    #[test]
    fn every_value_has_a_name_that_is_read_back() {
        for profile in all() {
            let mut other =
                Profile { name: profile.name, provenance: profile.provenance, ..*Profile::ideal() };
            for column in Column::ALL {
                assert_eq!(Column::named(column.name()), Ok(column));
                column.set(&mut other, &column.value(profile)).unwrap();
            }
            assert_eq!(&other, profile);
        }
        let mut profile = *Profile::ideal();
        for column in Column::ALL {
            for wrong in ["", "ALL", "-1", "99999999999", "256 "] {
                let refused = column.set(&mut profile, wrong).unwrap_err().to_string();
                assert!(refused.contains(column.name()) && refused.contains("expected"), "{refused}");
            }
        }
        assert_eq!(&profile, Profile::ideal());
        assert_eq!(
            Column::named("statz").unwrap_err().to_string(),
            "`statz` is no rule; expected one of cluster_level, cpu_nodes_only, epyc_distance, imbalance_pct, \
             imb_numa, stats, group_runnable, tie, numa_fork, balance"
        );
        assert_eq!(
            Column::Stats.set(&mut profile, "some").unwrap_err().to_string(),
            "`some` is no value of stats; expected all, allowed or allowed-whole"
        );
    }
}
