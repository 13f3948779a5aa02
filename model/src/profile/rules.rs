//! The rules of a profile as an operator reads them: name, value, what it does, and the change that brought it.

use super::{BalanceRule, Column, ImbNumaRule, NumaForkRule, Profile, StatsRule, TieRule};

/// One rule of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The column, such as `stats`.
    pub name: &'static str,
    /// What the profile has there, such as `allowed`.
    pub value: String,
    /// What that does, as a sentence.
    pub meaning: &'static str,
    /// The release that brought it; empty if none did, or before the oldest that is known.
    pub since: &'static str,
    /// The commit that brought it, by the first 12 digits of its id; empty as `since`, or if not known.
    pub commit: &'static str,
}

/// Meaning, release and commit.
type Told = (&'static str, &'static str, &'static str);

impl Profile {
    /// Its rules by name, in the order in which the kernel comes to them.
    pub fn rules(&self) -> Vec<Rule> {
        let rule = |column: Column| {
            let (meaning, since, commit) = self.told(column);
            Rule { name: column.name(), value: column.value(self), meaning, since, commit }
        };
        Column::ALL.map(rule).into()
    }

    fn told(&self, column: Column) -> Told {
        match column {
            Column::ClusterLevel => cluster(self.cluster_level),
            Column::CpuNodesOnly => cpu_nodes(self.cpu_nodes_only),
            Column::EpycDistance => epyc_distance(self.epyc_distance),
            Column::ImbalancePct => percent(self.imbalance_pct),
            Column::ImbNuma => self.imb_numa.told(),
            Column::Stats => self.stats.told(),
            Column::GroupRunnable => runnable(self.group_runnable),
            Column::Tie => self.tie.told(),
            Column::NumaFork => self.numa_fork.told(),
            Column::Balance => self.balance.told(),
        }
    }
}

fn epyc_distance(distance: u32) -> Told {
    let meaning =
        "On AMD family 17h and later, new tasks spread up to this NUMA distance; elsewhere up to 30.";
    if distance == 32 { (meaning, "v5.4", "a55c7454a8c8") } else { (meaning, "", "") }
}

fn runnable(looked_at: bool) -> Told {
    if looked_at {
        ("A group is overloaded also if its tasks wait for much of their time.", "v5.7", "")
    } else {
        ("A group is overloaded by its utilisation alone.", "", "")
    }
}

fn cluster(level: bool) -> Told {
    if level {
        ("CPUs that share a cluster (x86: an L2) have a level of their own.", "v5.16", "66558b730f25")
    } else {
        ("There is no level for clusters.", "", "")
    }
}

fn cpu_nodes(only: bool) -> Told {
    if only {
        ("Only nodes with CPUs make NUMA levels.", "v5.18", "0fb3978b0aac")
    } else {
        ("Every online node makes NUMA levels.", "", "")
    }
}

fn percent(imbalance_pct: u32) -> Told {
    let meaning = "imbalance_pct of levels above the LLC, in percent.";
    if imbalance_pct == 117 { (meaning, "v5.10", "2208cdaa56c9") } else { (meaning, "", "") }
}

impl ImbNumaRule {
    const fn told(self) -> Told {
        match self {
            Self::None => ("There is no imb_numa_nr.", "", ""),
            Self::V3 => ("Half an LLC over the LLCs of a node and the nodes, alike at all levels.", "", ""),
            Self::V4 => ("A quarter of the LLC squared over the node, at least 2, scaled per level.", "", ""),
            Self::V4PreferSibling => ("As v4, scaled from the first level without PREFER_SIBLING.", "", ""),
            Self::Llc25 => {
                ("The LLCs of a node; a quarter of the node if it has one.", "v5.18", "e496132ebedd")
            }
            Self::Llc12 => {
                ("The LLCs of a node; an eighth of the node if it has one.", "v6.0", "026b98a93bbd")
            }
        }
    }
}

impl StatsRule {
    const fn told(self) -> Told {
        match self {
            Self::All => ("A group is judged by all of its CPUs, those that the mask forbids too.", "", ""),
            Self::Allowed => {
                ("A group is judged by its allowed CPUs, against its whole weight.", "v6.19", "82d6e01a0699")
            }
            Self::AllowedWhole => ("A group is judged by its allowed CPUs alone.", "", ""),
        }
    }
}

impl TieRule {
    const fn told(self) -> Told {
        match self {
            Self::First => ("Of equally idle groups the first in ring order wins.", "v5.5", "57abff067a08"),
            Self::Utilisation => ("Of equally idle groups the less utilised wins.", "v5.9", "3edecfef0285"),
        }
    }
}

impl NumaForkRule {
    const fn told(self) -> Told {
        match self {
            Self::ByLoad => {
                ("On every level, groups are chosen by their load, whatever CPUs of them idle.", "", "")
            }
            Self::AnyIdle => ("A task stays local while any local CPU idles.", "v5.5", "57abff067a08"),
            Self::Span25 => (
                "A task stays local while fewer than a quarter of the level's CPUs run one.",
                "v5.11",
                "23e6082a522e",
            ),
            Self::Less => ("A task stays local while fewer run there than imb_numa_nr.", "", ""),
            Self::NotMore => ("A task stays local while no more run there than imb_numa_nr.", "", ""),
            Self::PlusOneLess => ("As less, with the new task counted.", "", ""),
            Self::PlusOneNotMore => ("As not-more, with the new task counted.", "v5.18", "2cfb7a1b031b"),
            Self::PlusOneLessAllowed => ("As plus-one-less, capped by allowed local CPUs.", "", ""),
            Self::PlusOneNotMoreAllowed => ("As plus-one-not-more, capped by allowed local CPUs.", "", ""),
            Self::Adjusted => {
                let meaning = "While no more run there than imb_numa_nr, it may have two idle CPUs less than another node.";
                (meaning, "v6.0", "cb29a5c19d2d")
            }
            Self::AdjustedAllowed => {
                ("As adjusted, with imb_numa_nr capped by allowed local CPUs.", "v6.0", "f5b2eeb49991")
            }
        }
    }
}

impl BalanceRule {
    const fn told(self) -> Told {
        match self {
            Self::ByLoad => ("Balancing goes by load, in a way that is not modelled.", "", ""),
            Self::V5_7 => (
                "Balancing between NUMA nodes starts once the busier one has more than two tasks.",
                "v5.7",
                "",
            ),
            Self::V5_11 => (
                "While a node runs fewer tasks than a quarter of its CPUs, balancing lets it have five more than another.",
                "v5.11",
                "7d2b5dd0bcc4",
            ),
            Self::MelV3 => ("As v5.11, while it runs fewer tasks than imb_numa_nr.", "", ""),
            Self::MelV4 => (
                "While a node runs fewer tasks than a quarter of the level's CPUs, balancing lets it have 2 * imb_numa_nr + 1 more than another.",
                "",
                "",
            ),
            Self::MelV5 => (
                "While the other node with one task more stays below imb_numa_nr, balancing lets a node have five more.",
                "",
                "",
            ),
            Self::MelV6 => (
                "While the other node with one task more does not exceed imb_numa_nr, balancing lets a node have five more.",
                "v5.18",
                "e496132ebedd",
            ),
            Self::V6_0 => (
                "While the other node with one task more does not exceed imb_numa_nr, balancing lets a node have two more.",
                "v6.0",
                "026b98a93bbd",
            ),
        }
    }
}
