//! What `Explain` tells of a CPU's levels, against running kernels and by hand.

use crate::{machines::turin, records::machines};
use berth_model::{
    Cpu, CpuSet,
    domains::{Chain, Domains, Level, Vanishes, chains},
    predict::thresholds,
    profile::{self, KernelIdentity, Profile},
};
use std::collections::BTreeSet;

/// The flags that 6.1 and 6.12 have, by bit.
const V6_1: [&str; 14] = [
    "BALANCE_NEWIDLE",
    "BALANCE_EXEC",
    "BALANCE_FORK",
    "BALANCE_WAKE",
    "WAKE_AFFINE",
    "ASYM_CPUCAPACITY",
    "ASYM_CPUCAPACITY_FULL",
    "SHARE_CPUCAPACITY",
    "SHARE_LLC",
    "SERIALIZE",
    "ASYM_PACKING",
    "PREFER_SIBLING",
    "OVERLAP",
    "NUMA",
];

fn flags(bits: u32, release: &str) -> BTreeSet<&'static str> {
    let mut names = V6_1.to_vec();
    if release.starts_with("6.12") {
        names.insert(8, "CLUSTER");
    }
    assert_eq!(bits >> names.len(), 0, "a flag without a name in {bits:#x}");
    (0..).zip(names).filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| name).collect()
}

#[test]
fn what_stays_is_what_running_kernels_have_with_their_flags() {
    let mut compared = 0;
    for machine in machines() {
        let identity = KernelIdentity {
            release: machine.kernel.clone(),
            version: Some(machine.version.clone()),
            version_signature: None,
        };
        let profile = profile::candidates(&identity).unwrap().profiles[0];
        let topology = machine.topology();
        for chain in chains(&topology, profile, topology.online()) {
            let recorded = &machine.domains[chain.cpu.index()];
            let stays: Vec<&Level> = chain.levels.iter().filter(|level| level.vanishes.is_none()).collect();
            assert_eq!(stays.len(), recorded.len(), "{} CPU {}", machine.topology, chain.cpu);
            for (ours, theirs) in stays.into_iter().zip(recorded) {
                let groups: Vec<String> = ours.groups.iter().map(|group| group.cpus.to_string()).collect();
                assert_eq!((ours.span.to_string(), groups), (theirs.span.clone(), theirs.groups.clone()));
                let named: BTreeSet<&str> = ours.flags.names(ours.kind).into_iter().collect();
                assert_eq!(
                    named,
                    flags(theirs.flags, &machine.kernel),
                    "{} {}",
                    machine.topology,
                    theirs.name
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 2000, "only {compared} levels were compared");
}

/// The levels of one CPU: name, CPUs, and why it vanishes.
fn levels(topology: &berth_model::topology::Topology, profile: &str, cpu: u16) -> Vec<Level> {
    let profile = Profile::named(profile).unwrap();
    chains(topology, profile, &CpuSet::from(Cpu::from(cpu))).next().unwrap().levels
}

#[test]
fn levels_vanish_and_say_why() {
    let shown: Vec<(&str, usize, Option<Vanishes>)> = levels(&turin(), "v6.12", 7)
        .iter()
        .map(|level| (level.kind.name(), level.span.len(), level.vanishes))
        .collect();
    let same = Some(Vanishes::SameSpan);
    assert_eq!(
        shown,
        [("SMT", 2, None), ("MC", 32, None), ("NODE", 32, same), ("NUMA", 320, None), ("NUMA", 640, None)]
    );
}

/// The groups of a ring of four packages overlap: each is balanced by the CPUs that see it as their own.
#[test]
fn overlapping_groups_are_balanced_by_their_owners() {
    let ring = machines().into_iter().find(|machine| machine.topology == "4s-2l-4c-ring").unwrap();
    let top = levels(&ring.topology(), "6.1.178+", 0).pop().unwrap();
    let shown: Vec<(String, String)> =
        top.groups.iter().map(|group| (group.cpus.to_string(), group.balance.to_string())).collect();
    assert_eq!(shown, [("0-15,24-31".to_owned(), "0-7".to_owned()), ("8-31".to_owned(), "16-23".to_owned())]);
}

#[test]
fn an_isolated_cpu_has_no_levels() {
    let mut description = turin().describe();
    description.isolated = CpuSet::parse("3").unwrap();
    let topology = berth_model::topology::Topology::try_new(description).unwrap();
    let profile = Profile::named("v6.12").unwrap();
    let chains: Vec<Chain> = chains(&topology, profile, &CpuSet::parse("3-4").unwrap()).collect();
    assert!(chains[0].levels.is_empty() && chains[0].partition.is_empty());
    assert_eq!(chains[1].partition.len(), 639);
    assert_eq!(chains[1].levels.len(), Domains::build(&topology, profile).of(Cpu::from(4)).len() + 1);
}

/// The numbers of the top level on dual Turin under the mask 0-175, as the kernel's rules have them.
#[test]
fn thresholds_are_those_of_the_rules() {
    let (topology, allowed) = (turin(), CpuSet::parse("0-175").unwrap());
    let top = |name: &str, cpu: u16| -> Vec<(&str, u32)> {
        let profile = Profile::named(name).unwrap();
        let level = levels(&topology, name, cpu).pop().unwrap();
        let found = thresholds(&topology, profile, &level, &allowed);
        assert!(found.iter().all(|threshold| threshold.meaning.ends_with('.')));
        found.into_iter().map(|threshold| (threshold.name, threshold.value)).collect()
    };
    let of = |all: Vec<(&str, u32)>, name: &str| all.into_iter().find(|(n, _)| *n == name).map(|(_, v)| v);
    assert_eq!(
        top("v6.12", 0),
        [
            ("fork_distance_limit", 32),
            ("fork_tolerates_below", 8),
            ("fork_tolerated_idle", 2),
            ("balance_tolerates_below", 9),
            ("balance_tolerated", 2),
            ("spare_below", 320),
            ("busy_margin", 174),
            ("balance_interval_ms", 640),
        ]
    );
    // A quarter of 640 from v5.11 to v5.17; any idle CPU before.
    assert_eq!(of(top("v5.13", 0), "fork_stays_below"), Some(160));
    assert_eq!(of(top("v5.13", 0), "balance_tolerates_below"), Some(80));
    assert_eq!(of(top("v5.7", 0), "fork_stays_while_idle"), Some(1));
    assert_eq!(of(top("v5.7", 0), "balance_tolerates_below"), Some(3));
    // The number of allowed CPUs narrows it: package 1 has sixteen, a narrower mask has fewer.
    let few = CpuSet::parse("0-175").unwrap().difference(&CpuSet::parse("163-175").unwrap());
    let profile = Profile::named("v6.12").unwrap();
    let level = levels(&topology, "v6.12", 160).pop().unwrap();
    let narrowed = thresholds(&topology, profile, &level, &few);
    assert_eq!(narrowed[1].value, 3);
}
