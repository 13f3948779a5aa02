//! Two implementations agree: the fast model and the plain oracle, which counts everything afresh for every decision, on
//! random hosts of every shape, kernels with any mixture of rules, loads, masks and launches.
//!
//! `BERTH_CASES` sets how many cases are tried; `make agree` tries many.

use crate::{bursts::Bench, oracle::Oracle, strategies};
use berth_model::{
    Cpu, CpuSet,
    load::{Averages, Load},
    predict::{Burst, Children, Entry, IdleCpu, Parent, Weight, place},
    profile::Profile,
    topology::Topology,
};
use proptest::{collection::vec, prelude::*, sample};

const CASES: u32 = 4_000;

fn cases() -> u32 {
    std::env::var("BERTH_CASES").ok().map_or(CASES, |cases| cases.parse().unwrap())
}

#[derive(Debug, Clone)]
struct Case {
    topology: Topology,
    profile: Profile,
    load: Load,
    mask: CpuSet,
    origin: Cpu,
    tasks: u32,
    launch: Launch,
}

#[derive(Debug, Clone)]
struct Launch {
    parent: Parent,
    entry: Entry,
    children: Children,
    parent_weight: Weight,
    idle: Vec<IdleCpu>,
    preferred_node: Option<u32>,
}

/// Idle CPUs as hosts have them: a few idle states, few moments, some that never went idle.
fn idle(limit: usize) -> impl Strategy<Value = Vec<IdleCpu>> {
    let latency = sample::select(vec![None, Some(0), Some(2), Some(100)]);
    let one = (latency, 0u64..6).prop_map(|(exit_latency, idle_stamp)| IdleCpu { exit_latency, idle_stamp });
    prop_oneof![1 => Just(Vec::new()), 1 => vec(one, limit)]
}

fn launch(limit: usize) -> impl Strategy<Value = Launch> {
    let parent = sample::select(vec![Parent::Waits, Parent::Runs, Parent::IsTask, Parent::Sleeps]);
    let entry = sample::select(vec![Entry::Fork, Entry::Exec]);
    let children = sample::select(vec![Children::Running, Children::Asleep]);
    let weight = sample::select(vec![Weight::Fresh, Weight::Light, Weight::Settled]);
    (parent, entry, children, weight, idle(limit), prop::option::weighted(0.2, 0u32..6)).prop_map(
        |(parent, entry, children, parent_weight, idle, preferred_node)| Launch {
            parent,
            entry,
            children,
            parent_weight,
            idle,
            preferred_node,
        },
    )
}

/// What runs, with averages here and there.
fn load(topology: &Topology) -> impl Strategy<Value = Load> + use<> {
    let cpus: Vec<Cpu> = topology.online().iter().collect();
    let average = |most: u32| prop::option::of(0..=most);
    let averages = (average(4096), average(1024), average(4096))
        .prop_map(|(load, util, runnable)| Averages { load, util, runnable });
    (strategies::load(topology), vec((sample::select(cpus), averages), 0..6)).prop_map(|(mut load, known)| {
        known.into_iter().for_each(|(cpu, averages)| load.set_averages(cpu, averages));
        load
    })
}

fn case() -> impl Strategy<Value = Case> {
    (strategies::any_host(), strategies::mixed_profile()).prop_flat_map(|(topology, profile)| {
        let cpus: Vec<Cpu> = topology.online().iter().collect();
        let launch = launch(topology.cpu_limit());
        let (load, mask) = (load(&topology), strategies::mask(&topology));
        (Just(topology), Just(profile), load, mask, sample::select(cpus), 1u32..=40, launch).prop_map(
            |(topology, profile, load, mask, origin, tasks, launch)| Case {
                topology,
                profile,
                load,
                mask,
                origin,
                tasks,
                launch,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counters_agree_with_a_plain_rescan(case in case()) {
        let bench = Bench { load: case.load.clone(), ..Bench::new(&case.topology, &case.profile) };
        let Launch { parent, entry, children, parent_weight, idle, preferred_node } = &case.launch;
        let burst = Burst {
            parent: *parent,
            entry: *entry,
            children: *children,
            parent_weight: *parent_weight,
            idle,
            preferred_node: *preferred_node,
            ..Burst::forks(&case.mask, case.tasks, case.origin)
        };
        let mut oracle = Oracle::new(&bench.topology, &bench.domains, &bench.profile, &bench.load);
        prop_assert_eq!(place(bench.host(), &burst), oracle.place(&burst));
    }
}
