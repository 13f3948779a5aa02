//! One kernel's placement rules as data, and which profiles a host may have.
//!
//! A [`Profile`] is a row of the table in `docs/heuristics.md`: each field names one rule that differed between
//! kernel releases. The rules themselves are carried out by [`crate::domains`] and [`crate::predict`].
//!
//! Which rows fit a host is told from what it says of its kernel ([`KernelIdentity`]): [`candidates`] answers with
//! every profile that it may have, most likely first, and with the evidence. `uname -r` alone is rarely enough:
//! distributions hide the stable level, and vendors carry patches that no number tells.

mod built;
mod column;
mod error;
mod identity;
mod origins;
mod posted;
mod provenance;
mod rules;
mod select;
mod table;
#[cfg(test)]
mod tests;
mod tolerance;
mod vendor;
mod version;

pub use built::Built;
pub use column::{Column, RECLAIM_DISTANCE, Refused};
pub use error::{Error, Field};
pub use identity::{KernelIdentity, Upstream};
pub use provenance::{Knowledge, Origin, Provenance, Source, Status};
pub use rules::Rule;
pub use select::{Candidates, Confidence, candidates, from_text};
pub use table::all;
pub use tolerance::{Balance, Counted, Limit, Most, Tolerance};
pub use vendor::Patching;
pub use version::Version;

/// How `imb_numa_nr`, the number of tasks that may crowd one NUMA node before another is used, is computed when
/// the domains are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImbNumaRule {
    /// No such field (before v5.18).
    None,
    /// `max(1, (llc >> 1) / ((w / llc) * online_nodes))` at every NUMA level (posted 1 December 2021).
    V3,
    /// `max(2, (llc * llc / w) >> 2)`, scaled by the span's weight above the first level over the LLC.
    V4,
    /// As [`ImbNumaRule::V4`], scaled by the span of the first ancestor without `PREFER_SIBLING`.
    V4PreferSibling,
    /// `k = w / llc`; a quarter of the span if `k == 1`, else `k` (v5.18, v5.19).
    Llc25,
    /// `k = w / llc`; an eighth of the span if `k == 1`, else `k`, at least 1 (v6.0 and later).
    Llc12,
}

/// When a NUMA level keeps a new task local although another group has more idle CPUs: with `n` the local
/// group's running tasks, `I` the level's `imb_numa_nr`, `a` the local group's allowed CPUs and `d` the
/// difference of idle CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumaForkRule {
    /// Groups are chosen by their load on every level, and not by type and idle CPUs: no other rule of this column
    /// comes into it, nor do `stats`, `tie` and the imbalance mark (v5.3 and v5.4).
    ByLoad,
    /// Any idle CPU in the local group (v5.5 to v5.10).
    AnyIdle,
    /// `n < weight(domain) >> 2` (v5.11 to v5.17).
    Span25,
    /// `n < I`.
    Less,
    /// `n <= I`.
    NotMore,
    /// `n + 1 < I`.
    PlusOneLess,
    /// `n + 1 <= I` (v5.18, v5.19).
    PlusOneNotMore,
    /// `n + 1 < min(a, I)`.
    PlusOneLessAllowed,
    /// `n + 1 <= min(a, I)`.
    PlusOneNotMoreAllowed,
    /// `n + 1 > I ? d == 0 : d <= 2`.
    Adjusted,
    /// `n + 1 > min(a, I) ? d == 0 : d <= 2` (v6.0 and later).
    AdjustedAllowed,
}

/// Which CPUs of a group feed its statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatsRule {
    /// Every CPU of the group, allowed or not: the cause of the lopsided-mask pile-up.
    All,
    /// Only allowed CPUs, against the whole group's weight and capacity (82d6e01a0699: v6.19 and backports).
    Allowed,
    /// Only allowed CPUs, against their own weight and capacity: what no kernel does yet and `AUTO` advice assumes.
    AllowedWhole,
}

/// How two groups with spare capacity and as many idle CPUs are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TieRule {
    /// The first in ring order (v5.5 to v5.8).
    First,
    /// The lower utilisation, then the first in ring order (3edecfef0285: v5.9 and later).
    Utilisation,
}

/// What load balancing tolerates between NUMA nodes at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BalanceRule {
    /// v5.3 and v5.4: by load; not modelled.
    ByLoad,
    /// v5.7 to v5.10.
    V5_7,
    /// v5.11 to v5.17.
    V5_11,
    /// Posted December 2021, third version.
    MelV3,
    /// Posted December 2021, fourth version.
    MelV4,
    /// Posted February 2022, fifth version.
    MelV5,
    /// v5.18, v5.19.
    MelV6,
    /// v6.0 and later.
    V6_0,
}

/// One kernel's placement rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Profile {
    /// The name, such as `v6.12` or `6.12.97+`.
    pub name: &'static str,
    /// Which kernels the row stands for, where its rules come from and how well they are known.
    pub provenance: Provenance,
    /// How `imb_numa_nr` is computed.
    #[doc(alias = "imb_numa_nr")]
    pub imb_numa: ImbNumaRule,
    /// When a NUMA level keeps a new task local.
    #[doc(alias = "allow_numa_imbalance")]
    #[doc(alias = "adjust_numa_imbalance")]
    pub numa_fork: NumaForkRule,
    /// Which CPUs feed a group's statistics.
    #[doc(alias = "update_sg_wakeup_stats")]
    pub stats: StatsRule,
    /// How equal groups are told apart.
    #[doc(alias = "update_pick_idlest")]
    pub tie: TieRule,
    /// `imbalance_pct` of the levels that are neither SMT nor LLC-sharing, in percent.
    pub imbalance_pct: u32,
    /// What load balancing tolerates.
    #[doc(alias = "calculate_imbalance")]
    pub balance: BalanceRule,
    /// Whether a group's type looks at `runnable_avg` too (v5.7 and later).
    #[doc(alias = "group_is_overloaded")]
    #[doc(alias = "group_has_capacity")]
    pub group_runnable: bool,
    /// The NUMA distance beyond which a level takes no part in fork and exec balancing on AMD family 17h and later;
    /// elsewhere it is 30.
    #[doc(alias = "node_reclaim_distance")]
    pub epyc_distance: u32,
    /// NUMA levels come from nodes that have CPUs only (v5.18 and later), not from every online node.
    pub cpu_nodes_only: bool,
    /// A cluster level (CPUs that share the L2) exists between SMT and MC (v5.16 and later).
    pub cluster_level: bool,
}

impl Profile {
    /// The profile with this name, as [`all`] lists it.
    pub fn named(name: &str) -> Option<&'static Self> {
        all().iter().find(|profile| profile.name == name)
    }

    /// What `AUTO` advice assumes: the newest rules, with groups judged by their allowed CPUs alone. No kernel has
    /// them, so [`all`] does not list it.
    pub fn ideal() -> &'static Self {
        &table::BERTH_AUTO
    }

    /// Whether both place tasks by the same rules, whatever they are called.
    pub fn same_rules(&self, other: &Self) -> bool {
        // Taken apart by name, so that a new rule cannot be forgotten here.
        let Self {
            name: _,
            provenance: _,
            imb_numa,
            numa_fork,
            stats,
            tie,
            imbalance_pct,
            balance,
            group_runnable,
            epyc_distance,
            cpu_nodes_only,
            cluster_level,
        } = self;
        *imb_numa == other.imb_numa
            && *numa_fork == other.numa_fork
            && *stats == other.stats
            && *tie == other.tie
            && *imbalance_pct == other.imbalance_pct
            && *balance == other.balance
            && *group_runnable == other.group_runnable
            && *epyc_distance == other.epyc_distance
            && *cpu_nodes_only == other.cpu_nodes_only
            && *cluster_level == other.cluster_level
    }
}
