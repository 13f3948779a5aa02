//! Random hosts and questions, with a liking for edges.

use berth_model::{
    Cpu, CpuSet,
    load::{CpuLoad, Load},
    profile::{self, Column, Profile},
    topology::{Description, NodeDescription, Processor, PuDescription, Shape, Topology},
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

/// Hosts as no vendor builds them: nodes of other sizes, LLCs over node borders, CPU numbers in any order and with holes,
/// any distances, the same both ways or not.
pub(crate) fn irregular() -> impl Strategy<Value = Topology> {
    let nodes = vec((1u32..=4, 1u32..=2, 0u32..=2), 2..=6);
    (
        nodes,
        vec(sample::select(vec![11u32, 12, 16, 20, 21, 30, 32, 40]), 36),
        any::<bool>(),
        0u32..=3,
        any::<u64>(),
    )
        .prop_map(|(nodes, distances, both_ways, holes, order)| {
            let count = nodes.len();
            let mut pus = Vec::new();
            let mut core = 0;
            for (node, &(cores, threads, llc)) in (0u32..).zip(&nodes) {
                for _ in 0..cores {
                    core += 1;
                    for _ in 0..threads {
                        // Packages of two nodes; with an LLC kind of 2, two nodes share one.
                        let llc = if llc == 2 {
                            node / 2
                        } else {
                            100 + node * 10 + if llc == 1 { core } else { 0 }
                        };
                        pus.push(PuDescription {
                            cpu: Cpu::from(0),
                            package: node / 2,
                            node,
                            llc,
                            cluster: None,
                            core,
                            capacity: 0,
                        });
                    }
                }
            }
            let mut numbers: Vec<u16> = (0..).take(pus.len() + holes as usize).collect();
            let mut random = order;
            for last in (1..numbers.len()).rev() {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                numbers.swap(last, usize::try_from(random >> 33).unwrap() % (last + 1));
            }
            for (pu, number) in pus.iter_mut().zip(numbers) {
                pu.cpu = Cpu::from(number);
            }
            let distance = |from: usize, to: usize| match (from == to, both_ways && from > to) {
                (true, _) => 10,
                (_, true) => distances[to * 6 + from],
                _ => distances[from * 6 + to],
            };
            Topology::try_new(Description {
                pus,
                nodes: (0..).take(count).map(|id| NodeDescription { id, memory: None }).collect(),
                distances: Some(
                    (0..count).map(|from| (0..count).map(|to| distance(from, to)).collect()).collect(),
                ),
                processor: Processor { vendor: "AuthenticAMD".to_owned(), family: Some(0x19) },
                ..Description::default()
            })
            .unwrap()
        })
}

/// Hosts of any shape, with CPUs offline or isolated, partitions, nodes that have memory only, and clusters.
pub(crate) fn any_host() -> impl Strategy<Value = Topology> {
    let base = prop_oneof![topology(), irregular()];
    let some = || vec(any::<sample::Index>(), 0..4);
    let far = sample::select(vec![10u32, 17, 20, 28, 33, 254]);
    (base, some(), some(), vec(0u8..6, 96), 0usize..3, far, 0u8..8).prop_map(
        |(base, offline, isolated, cut, memory_only, far, odd)| {
            let mut host = base.describe();
            // Most hosts have one oddity or none.
            if odd == 0 || odd == 6 {
                let cpus: Vec<Cpu> = host.pus.iter().map(|pu| pu.cpu).collect();
                let off: CpuSet = offline.iter().map(|index| *index.get(&cpus)).collect();
                if off.len() < cpus.len() {
                    host.pus.retain(|pu| !off.contains(pu.cpu));
                    host.offline = off;
                }
            }
            let cpus: Vec<Cpu> = host.pus.iter().map(|pu| pu.cpu).collect();
            if odd == 1 {
                host.isolated = isolated.iter().map(|index| *index.get(&cpus)).collect();
            }
            if odd == 2 || odd == 6 {
                let of = |part: u8| {
                    let inside = cpus.iter().zip(cut.iter().cycle()).filter(|(_, cut)| **cut == part);
                    inside.map(|(cpu, _)| *cpu).collect::<CpuSet>()
                };
                host.partitions = [of(0), of(1)].into_iter().filter(|part| !part.is_empty()).collect();
            }
            if let (3 | 6, Some(rows)) = (odd, &mut host.distances) {
                for id in (100..).take(memory_only) {
                    rows.iter_mut().for_each(|row| row.push(far));
                    let count = rows.len();
                    rows.push((0..=count).map(|to| if to == count { 10 } else { far }).collect());
                    host.nodes.push(NodeDescription { id, memory: Some(1) });
                }
            }
            if odd == 4 {
                // Pairs of cores that share an L2 share all that is above it.
                host.pus
                    .iter_mut()
                    .for_each(|pu| pu.cluster = Some((pu.node * 100 + pu.llc) * 1000 + pu.core / 2));
            }
            Topology::try_new(host).unwrap()
        },
    )
}

/// A profile with some rules of another.
pub(crate) fn mixed_profile() -> impl Strategy<Value = Profile> {
    let columns = sample::subsequence(Column::ALL.to_vec(), 0..=Column::ALL.len());
    (any_profile(), any_profile(), columns).prop_map(|(profile, other, columns)| {
        let mut mixed = *profile;
        for column in columns {
            column.set(&mut mixed, &column.value(other)).unwrap();
        }
        mixed
    })
}

/// Every profile.
pub(crate) fn any_profile() -> impl Strategy<Value = &'static Profile> {
    sample::select(profile::all().iter().collect::<Vec<_>>())
}

/// What runs where: nothing, or a few tasks here and there, some of them asleep on CPUs that are held for them.
pub(crate) fn load(topology: &Topology) -> impl Strategy<Value = Load> + use<> {
    let cpus: Vec<Cpu> = topology.online().iter().collect();
    let some = vec((sample::select(cpus.clone()), 1u32..=3), 0..12);
    let held = vec((sample::select(cpus), 1u32..=3), 0..8);
    prop_oneof![
        1 => Just(Load::idle()),
        3 => (some, prop_oneof![Just(Vec::new()), held]).prop_map(|(busy, held)| {
            let busy = busy.into_iter().map(|(cpu, runnable)| (cpu, CpuLoad { runnable, utilisation: None }));
            let mut load: Load = busy.collect();
            held.into_iter().for_each(|(cpu, tasks)| load.hold(cpu, tasks));
            load
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
