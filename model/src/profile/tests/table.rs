//! The table as a whole.

use crate::profile::*;
use std::collections::HashSet;

/// All columns of all rows: imb_numa_nr, fork, statistics, tie, imbalance_pct, balancing, the distance limit on EPYC, and
/// `r` for types that look at runnable_avg, `n` for NUMA levels from nodes with CPUs only, `c` for a cluster level.
const TABLE: &str = "\
v5.3 None ByLoad All First 125 ByLoad 30
v5.4 None ByLoad All First 125 ByLoad 32
v5.5 None AnyIdle All First 125 V5_7 32
v5.7 None AnyIdle All First 125 V5_7 32 r
v5.8 None AnyIdle All First 125 V5_7 32 r
v5.9 None AnyIdle All Utilisation 125 V5_7 32 r
v5.10 None AnyIdle All Utilisation 117 V5_7 32 r
v5.12 None Span25 All Utilisation 117 V5_11 32 r
v5.13 None Span25 All Utilisation 117 V5_11 32 r
v5.16 None Span25 All Utilisation 117 V5_11 32 rc
v5.18 Llc25 PlusOneNotMore All Utilisation 117 MelV6 32 rnc
v5.19 Llc25 PlusOneNotMore All Utilisation 117 MelV6 32 rnc
v6.0 Llc12 AdjustedAllowed All Utilisation 117 V6_0 32 rnc
v6.1 Llc12 AdjustedAllowed All Utilisation 117 V6_0 32 rnc
v6.6 Llc12 AdjustedAllowed All Utilisation 117 V6_0 32 rnc
v6.12 Llc12 AdjustedAllowed All Utilisation 117 V6_0 32 rnc
v6.18 Llc12 AdjustedAllowed All Utilisation 117 V6_0 32 rnc
v6.19 Llc12 AdjustedAllowed Allowed Utilisation 117 V6_0 32 rnc
6.18.39+ Llc12 AdjustedAllowed Allowed Utilisation 117 V6_0 32 rnc
6.12.97+ Llc12 AdjustedAllowed Allowed Utilisation 117 V6_0 32 rnc
6.6.145+ Llc12 AdjustedAllowed Allowed Utilisation 117 V6_0 32 rnc
6.1.178+ Llc12 AdjustedAllowed Allowed Utilisation 117 V6_0 32 rnc
5.15.212+ None Span25 Allowed Utilisation 117 V5_11 32 r
5.10.261+ None AnyIdle Allowed Utilisation 117 V5_7 32 r
v5.18-allowed Llc25 PlusOneNotMore Allowed Utilisation 117 MelV6 32 rnc
v5.16-allowed None Span25 Allowed Utilisation 117 V5_11 32 rc
v5.13-revert-c6f886546cb8 None Span25 All Utilisation 117 V5_11 32 r
tip-5.16-rc1 None Span25 All Utilisation 117 V5_11 32 rc
tip-5.17-rc1 None Span25 All Utilisation 117 V5_11 32 rc
mel-v3 V3 Less All Utilisation 117 MelV3 32 rc
mel-v4 V4 NotMore All Utilisation 117 MelV4 32 rc
mel-v4-ps V4PreferSibling NotMore All Utilisation 117 MelV4 32 rc
mel-v5 Llc25 PlusOneLess All Utilisation 117 MelV5 32 rc
mel-v5-prateek-v1 Llc25 PlusOneLessAllowed All Utilisation 117 MelV5 32 rc
mel-v6 Llc25 PlusOneNotMore All Utilisation 117 MelV6 32 rc
mel-v6-prateek-v2 Llc25 PlusOneNotMoreAllowed All Utilisation 117 MelV6 32 rc
v5.18rc4-baseline Llc25 PlusOneNotMore All Utilisation 117 MelV6 32 rnc
v5.18rc4-revert-c6f886546cb8 Llc25 PlusOneNotMore All Utilisation 117 MelV6 32 rnc
v5.18rc4-this_series Llc12 Adjusted All Utilisation 117 V6_0 32 rnc
v5.18rc4-this_series-revert-c6f886546cb8 Llc12 Adjusted All Utilisation 117 V6_0 32 rnc
";

#[test]
fn the_table() {
    let shown: String = all()
        .iter()
        .map(|p| {
            let runnable = if p.group_runnable { "r" } else { "" };
            let nodes = if p.cpu_nodes_only { "n" } else { "" };
            let cluster = if p.cluster_level { "c" } else { "" };
            let row = format!(
                "{} {:?} {:?} {:?} {:?} {} {:?} {} {runnable}{nodes}{cluster}",
                p.name, p.imb_numa, p.numa_fork, p.stats, p.tie, p.imbalance_pct, p.balance, p.epyc_distance
            );
            row.trim_end().to_owned() + "\n"
        })
        .collect();
    assert_eq!(shown, TABLE);
}

#[test]
fn names_are_unique_and_found() {
    let mut names = HashSet::new();
    for profile in all() {
        assert!(names.insert(profile.name), "{} is listed twice", profile.name);
        assert_eq!(Profile::named(profile.name), Some(profile));
        let given = from_text(profile.name).unwrap();
        assert_eq!((given.profiles, given.confidence), (vec![profile], Confidence::Given));
    }
    assert_eq!(Profile::named("v6.13"), None);
}

#[test]
fn the_ideal_is_the_newest_with_whole_statistics_and_not_listed() {
    let ideal = Profile::ideal();
    assert_eq!((ideal.name, ideal.stats), ("berth-auto", StatsRule::AllowedWhole));
    let newest = Profile { stats: StatsRule::Allowed, ..*ideal };
    assert!(newest.same_rules(Profile::named("v6.19").unwrap()));
    assert!(all().iter().all(|profile| profile.stats != StatsRule::AllowedWhole));
    assert_eq!(Profile::named(ideal.name), None);
}

#[test]
fn every_row_says_where_it_comes_from() {
    for Profile { name, provenance, .. } in all() {
        assert!(!provenance.releases.is_empty() && !provenance.origins.is_empty(), "{name}");
        for origin in provenance.origins {
            let well_formed = match origin.source {
                Source::Commit(id) | Source::ReadAt(id) => {
                    id.len() == 12 && id.bytes().all(|b| b.is_ascii_hexdigit())
                }
                Source::Mail(mail) => mail.contains("202") && provenance.status == Status::MailingList,
            };
            assert!(well_formed, "{name}: {origin:?}");
        }
    }
}
