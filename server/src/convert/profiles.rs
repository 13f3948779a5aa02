//! Profiles and their rules, to the wire.

use berth_model::profile::{
    BalanceRule, ImbNumaRule, Knowledge, NumaForkRule, Profile, StatsRule, Status, TieRule,
};
use berth_proto::v1;

/// Whether some kernel that people run follows the profile.
pub(crate) fn is_of_a_kernel(profile: &Profile) -> bool {
    matches!(profile.provenance.status, Status::Released | Status::Vendor)
}

pub(crate) fn to_wire(profile: &Profile) -> v1::Profile {
    let provenance = &profile.provenance;
    let known = match provenance.knowledge {
        Knowledge::SourceRead => "Its rules were read in the source",
        Knowledge::PatchMail => "Its rules were read in patch mails and test reports",
        Knowledge::Inferred => {
            "Its rules are put together from releases before and after it and a list of changes"
        }
        Knowledge::Unconfirmed => "Its rules are assumed, since no change was found; the source was not read",
    };
    let note = if provenance.note.is_empty() { String::new() } else { format!("; {}", provenance.note) };
    v1::Profile {
        name: profile.name.to_owned(),
        title: provenance.releases.to_owned(),
        released: provenance.status == Status::Released,
        rules: rules(profile),
        basis: format!("{known}{note}."),
        since: since(profile).into_iter().collect(),
    }
}

/// The first release of a profile that is named after it, such as `v6.12` or `6.12.97+`.
fn since(profile: &Profile) -> Option<String> {
    let name = profile.name.trim_start_matches('v').trim_end_matches('+');
    let is_release = name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    (is_release && profile.provenance.status == Status::Released).then(|| name.to_owned())
}

/// Value, meaning, release and commit that brought it.
type Told = (&'static str, &'static str, &'static str, &'static str);

/// The rules by name, in the order in which the kernel comes to them.
fn rules(profile: &Profile) -> Vec<v1::Rule> {
    let rule = |name: &str, (value, meaning, since, commit): Told| v1::Rule {
        name: name.to_owned(),
        value: value.to_owned(),
        meaning: meaning.to_owned(),
        since: since.to_owned(),
        commit: commit.to_owned(),
    };
    let percent = profile.imbalance_pct.to_string();
    let percent = v1::Rule {
        value: percent,
        ..rule(
            "imbalance_pct",
            ("", "imbalance_pct of levels above the LLC, in percent.", pct_since(profile), ""),
        )
    };
    vec![
        rule("cluster_level", cluster(profile.cluster_level)),
        rule("cpu_nodes_only", cpu_nodes(profile.cpu_nodes_only)),
        percent,
        rule("imb_numa", imb_numa(profile.imb_numa)),
        rule("stats", stats(profile.stats)),
        rule("tie", tie(profile.tie)),
        rule("numa_fork", numa_fork(profile.numa_fork)),
        rule("balance", balance(profile.balance)),
    ]
}

fn pct_since(profile: &Profile) -> &'static str {
    if profile.imbalance_pct == 117 { "v5.10" } else { "" }
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

fn imb_numa(rule: ImbNumaRule) -> Told {
    match rule {
        ImbNumaRule::None => ("none", "There is no imb_numa_nr.", "", ""),
        ImbNumaRule::V3 => {
            ("v3", "Half an LLC over the LLCs of a node and the nodes, alike at all levels.", "", "")
        }
        ImbNumaRule::V4 => {
            ("v4", "A quarter of the LLC squared over the node, at least 2, scaled per level.", "", "")
        }
        ImbNumaRule::V4PreferSibling => {
            ("v4ps", "As v4, scaled from the first level without PREFER_SIBLING.", "", "")
        }
        ImbNumaRule::Llc25 => {
            ("llc25", "The LLCs of a node; a quarter of the node if it has one.", "v5.18", "e496132ebedd")
        }
        ImbNumaRule::Llc12 => {
            ("llc12", "The LLCs of a node; an eighth of the node if it has one.", "v6.0", "026b98a93bbd")
        }
    }
}

fn stats(rule: StatsRule) -> Told {
    match rule {
        StatsRule::All => {
            ("all", "A group is judged by all of its CPUs, those that the mask forbids too.", "", "")
        }
        StatsRule::Allowed => (
            "allowed",
            "A group is judged by its allowed CPUs, against its whole weight.",
            "v6.19",
            "82d6e01a0699",
        ),
        StatsRule::AllowedWhole => ("allowed-whole", "A group is judged by its allowed CPUs alone.", "", ""),
    }
}

fn tie(rule: TieRule) -> Told {
    match rule {
        TieRule::First => {
            ("first", "Of equally idle groups the first in ring order wins.", "v5.5", "57abff067a08")
        }
        TieRule::Utilisation => {
            ("utilisation", "Of equally idle groups the less utilised wins.", "v5.9", "3edecfef0285")
        }
    }
}

fn numa_fork(rule: NumaForkRule) -> Told {
    match rule {
        NumaForkRule::AnyIdle => {
            ("any-idle", "A task stays local while any local CPU idles.", "v5.5", "57abff067a08")
        }
        NumaForkRule::Span25 => (
            "span25",
            "A task stays local while fewer than a quarter of the level's CPUs run one.",
            "v5.11",
            "23e6082a522e",
        ),
        NumaForkRule::Less => ("less", "A task stays local while fewer run there than imb_numa_nr.", "", ""),
        NumaForkRule::NotMore => {
            ("not-more", "A task stays local while no more run there than imb_numa_nr.", "", "")
        }
        NumaForkRule::PlusOneLess => ("plus-one-less", "As less, with the new task counted.", "", ""),
        NumaForkRule::PlusOneNotMore => {
            ("plus-one-not-more", "As not-more, with the new task counted.", "v5.18", "2cfb7a1b031b")
        }
        NumaForkRule::PlusOneLessAllowed => {
            ("plus-one-less-allowed", "As plus-one-less, capped by allowed local CPUs.", "", "")
        }
        NumaForkRule::PlusOneNotMoreAllowed => {
            ("plus-one-not-more-allowed", "As plus-one-not-more, capped by allowed local CPUs.", "", "")
        }
        NumaForkRule::Adjusted => {
            let meaning =
                "While no more run there than imb_numa_nr, it may have two idle CPUs less than another node.";
            ("adjusted", meaning, "v6.0", "cb29a5c19d2d")
        }
        NumaForkRule::AdjustedAllowed => (
            "adjusted-allowed",
            "As adjusted, with imb_numa_nr capped by allowed local CPUs.",
            "v6.0",
            "f5b2eeb49991",
        ),
    }
}

fn balance(rule: BalanceRule) -> Told {
    const MEANING: &str =
        "What load balancing tolerates between NUMA nodes later on; it does not place new tasks.";
    match rule {
        BalanceRule::V5_7 => ("v5.7", MEANING, "v5.7", ""),
        BalanceRule::V5_11 => ("v5.11", MEANING, "v5.11", "7d2b5dd0bcc4"),
        BalanceRule::MelV3 => ("mel-v3", MEANING, "", ""),
        BalanceRule::MelV4 => ("mel-v4", MEANING, "", ""),
        BalanceRule::MelV5 => ("mel-v5", MEANING, "", ""),
        BalanceRule::MelV6 => ("mel-v6", MEANING, "v5.18", "e496132ebedd"),
        BalanceRule::V6_0 => ("v6.0", MEANING, "v6.0", "026b98a93bbd"),
    }
}
