//! The rules of a profile as an operator reads them: name, value, what it does, and the change that brought it.

use super::{BalanceRule, ImbNumaRule, NumaForkRule, Profile, StatsRule, TieRule};

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

const PERCENT: &str = "imbalance_pct";

/// Value, meaning, release and commit.
type Told = (&'static str, &'static str, &'static str, &'static str);

impl Profile {
    /// Its rules by name, in the order in which the kernel comes to them.
    pub fn rules(&self) -> Vec<Rule> {
        let all: [(&'static str, Told); 8] = [
            ("cluster_level", cluster(self.cluster_level)),
            ("cpu_nodes_only", cpu_nodes(self.cpu_nodes_only)),
            (PERCENT, percent(self.imbalance_pct)),
            ("imb_numa", self.imb_numa.told()),
            ("stats", self.stats.told()),
            ("tie", self.tie.told()),
            ("numa_fork", self.numa_fork.told()),
            ("balance", self.balance.told()),
        ];
        let rule = |(name, (value, meaning, since, commit)): (&'static str, Told)| {
            let value = if name == PERCENT { self.imbalance_pct.to_string() } else { value.to_owned() };
            Rule { name, value, meaning, since, commit }
        };
        all.into_iter().map(rule).collect()
    }
}

fn cluster(level: bool) -> Told {
    if level {
        ("true", "CPUs that share a cluster (x86: an L2) have a level of their own.", "v5.16", "66558b730f25")
    } else {
        ("false", "There is no level for clusters.", "", "")
    }
}

fn cpu_nodes(only: bool) -> Told {
    if only {
        ("true", "Only nodes with CPUs make NUMA levels.", "v5.18", "0fb3978b0aac")
    } else {
        ("false", "Every online node makes NUMA levels.", "", "")
    }
}

/// Its value is a number, which is told apart.
fn percent(imbalance_pct: u32) -> Told {
    let meaning = "imbalance_pct of levels above the LLC, in percent.";
    if imbalance_pct == 117 { ("", meaning, "v5.10", "2208cdaa56c9") } else { ("", meaning, "", "") }
}

impl ImbNumaRule {
    const fn told(self) -> Told {
        match self {
            Self::None => ("none", "There is no imb_numa_nr.", "", ""),
            Self::V3 => {
                ("v3", "Half an LLC over the LLCs of a node and the nodes, alike at all levels.", "", "")
            }
            Self::V4 => {
                ("v4", "A quarter of the LLC squared over the node, at least 2, scaled per level.", "", "")
            }
            Self::V4PreferSibling => {
                ("v4ps", "As v4, scaled from the first level without PREFER_SIBLING.", "", "")
            }
            Self::Llc25 => {
                ("llc25", "The LLCs of a node; a quarter of the node if it has one.", "v5.18", "e496132ebedd")
            }
            Self::Llc12 => {
                ("llc12", "The LLCs of a node; an eighth of the node if it has one.", "v6.0", "026b98a93bbd")
            }
        }
    }
}

impl StatsRule {
    const fn told(self) -> Told {
        match self {
            Self::All => {
                ("all", "A group is judged by all of its CPUs, those that the mask forbids too.", "", "")
            }
            Self::Allowed => (
                "allowed",
                "A group is judged by its allowed CPUs, against its whole weight.",
                "v6.19",
                "82d6e01a0699",
            ),
            Self::AllowedWhole => ("allowed-whole", "A group is judged by its allowed CPUs alone.", "", ""),
        }
    }
}

impl TieRule {
    const fn told(self) -> Told {
        match self {
            Self::First => {
                ("first", "Of equally idle groups the first in ring order wins.", "v5.5", "57abff067a08")
            }
            Self::Utilisation => {
                ("utilisation", "Of equally idle groups the less utilised wins.", "v5.9", "3edecfef0285")
            }
        }
    }
}

impl NumaForkRule {
    const fn told(self) -> Told {
        match self {
            Self::AnyIdle => {
                ("any-idle", "A task stays local while any local CPU idles.", "v5.5", "57abff067a08")
            }
            Self::Span25 => (
                "span25",
                "A task stays local while fewer than a quarter of the level's CPUs run one.",
                "v5.11",
                "23e6082a522e",
            ),
            Self::Less => ("less", "A task stays local while fewer run there than imb_numa_nr.", "", ""),
            Self::NotMore => {
                ("not-more", "A task stays local while no more run there than imb_numa_nr.", "", "")
            }
            Self::PlusOneLess => ("plus-one-less", "As less, with the new task counted.", "", ""),
            Self::PlusOneNotMore => {
                ("plus-one-not-more", "As not-more, with the new task counted.", "v5.18", "2cfb7a1b031b")
            }
            Self::PlusOneLessAllowed => {
                ("plus-one-less-allowed", "As plus-one-less, capped by allowed local CPUs.", "", "")
            }
            Self::PlusOneNotMoreAllowed => {
                ("plus-one-not-more-allowed", "As plus-one-not-more, capped by allowed local CPUs.", "", "")
            }
            Self::Adjusted => {
                let meaning = "While no more run there than imb_numa_nr, it may have two idle CPUs less than another node.";
                ("adjusted", meaning, "v6.0", "cb29a5c19d2d")
            }
            Self::AdjustedAllowed => (
                "adjusted-allowed",
                "As adjusted, with imb_numa_nr capped by allowed local CPUs.",
                "v6.0",
                "f5b2eeb49991",
            ),
        }
    }
}

impl BalanceRule {
    const fn told(self) -> Told {
        match self {
            Self::V5_7 => (
                "v5.7",
                "Balancing between NUMA nodes starts once the busier one has more than two tasks.",
                "v5.7",
                "",
            ),
            Self::V5_11 => (
                "v5.11",
                "While a node runs fewer tasks than a quarter of its CPUs, balancing lets it have five more than another.",
                "v5.11",
                "7d2b5dd0bcc4",
            ),
            Self::MelV3 => ("mel-v3", "As v5.11, while it runs fewer tasks than imb_numa_nr.", "", ""),
            Self::MelV4 => (
                "mel-v4",
                "While a node runs fewer tasks than a quarter of the level's CPUs, balancing lets it have 2 * imb_numa_nr + 1 more than another.",
                "",
                "",
            ),
            Self::MelV5 => (
                "mel-v5",
                "While the other node with one task more stays below imb_numa_nr, balancing lets a node have five more.",
                "",
                "",
            ),
            Self::MelV6 => (
                "mel-v6",
                "While the other node with one task more does not exceed imb_numa_nr, balancing lets a node have five more.",
                "v5.18",
                "e496132ebedd",
            ),
            Self::V6_0 => (
                "v6.0",
                "While the other node with one task more does not exceed imb_numa_nr, balancing lets a node have two more.",
                "v6.0",
                "026b98a93bbd",
            ),
        }
    }
}
