//! Random hosts and questions, with a liking for edges.

use berth_model::{
    Cpu, CpuSet,
    load::{CpuLoad, Load},
    profile::{self, Profile},
    topology::{Processor, Shape, Topology},
};
use proptest::{collection::vec, prelude::*, sample};

/// Regular hosts of up to 96 CPUs, some with CPUs taken out of the domains.
pub(crate) fn topology() -> impl Strategy<Value = Topology> {
    let sizes = (1u32..=3, 1u32..=3, 1u32..=3, 1u32..=4, 1u32..=2);
    let processor = prop_oneof![
        Just(Processor { vendor: "AuthenticAMD".to_owned(), family: Some(0x19) }),
        Just(Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) }),
    ];
    let far = sample::select(vec![20u32, 21, 30, 32, 40]);
    (sizes, processor, far, vec(any::<prop::sample::Index>(), 0..3), 0u8..4).prop_map(
        |((packages, nodes, llcs, cores, threads), processor, far, taken, isolate)| {
            let shape = Shape { packages, nodes, llcs, cores, threads, near: 12, far, processor };
            let mut description = shape.describe();
            let cpus: Vec<Cpu> = description.pus.iter().map(|pu| pu.cpu).collect();
            if isolate == 0 && cpus.len() > 3 {
                description.isolated = taken.iter().map(|index| *index.get(&cpus)).collect();
            }
            Topology::try_new(description).unwrap()
        },
    )
}

/// Every profile.
pub(crate) fn any_profile() -> impl Strategy<Value = &'static Profile> {
    sample::select(profile::all().iter().collect::<Vec<_>>())
}

/// What runs where: nothing, or a few tasks here and there.
pub(crate) fn load(topology: &Topology) -> impl Strategy<Value = Load> + use<> {
    let cpus: Vec<Cpu> = topology.online().iter().collect();
    let some = vec((sample::select(cpus), 1u32..=3), 0..12);
    prop_oneof![
        1 => Just(Load::idle()),
        2 => some.prop_map(|busy| {
            busy.into_iter().map(|(cpu, runnable)| (cpu, CpuLoad { runnable, utilisation: None })).collect()
        }),
    ]
}

/// Masks: all, one CPU, a range, or any CPUs.
pub(crate) fn mask(topology: &Topology) -> impl Strategy<Value = CpuSet> + use<> {
    let cpus: Vec<Cpu> = topology.online().iter().collect();
    let count = cpus.len();
    let all: CpuSet = topology.online().clone();
    let ranged = cpus.clone();
    prop_oneof![
        1 => Just(all),
        1 => sample::select(cpus.clone()).prop_map(CpuSet::from),
        3 => (0..count, 1..=count).prop_map(move |(from, len)| ranged.iter().skip(from).take(len).copied().collect()),
        3 => sample::subsequence(cpus, 1..=count).prop_map(|cpus| cpus.into_iter().collect()),
    ]
}
