//! SPREAD and COMPACT against every possible placement, on idle machines small enough for it.

use crate::bursts::Bench;
use berth_model::{
    Cpu,
    advise::{Form, Kernel, Launch, Objective, Policy, Request, Smt, advise, objective},
    domains::Domains,
    predict::Markable,
    profile::Profile,
    topology::{Shape, Topology},
};
use proptest::{prelude::*, sample};

/// Every way to put `tasks` on `cpus`, ascending.
fn every_placement(cpus: &[Cpu], tasks: u32) -> Vec<Vec<Cpu>> {
    if tasks == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, &cpu) in cpus.iter().enumerate() {
        for mut rest in every_placement(&cpus[index..], tasks - 1) {
            rest.insert(0, cpu);
            all.push(rest);
        }
    }
    all
}

/// The components but the last: which of equally good CPUs are taken is not looked for.
fn but_numbers(mut objective: Objective) -> Objective {
    objective.components.pop();
    objective
}

/// Regular hosts of up to 16 CPUs.
fn small() -> impl Strategy<Value = Topology> {
    (1u32..=2, 1u32..=2, 1u32..=2, 1u32..=2, 1u32..=2).prop_map(|(packages, nodes, llcs, cores, threads)| {
        Shape { packages, nodes, llcs, cores, threads, ..Shape::default() }.topology().unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_placement_is_better(
        topology in small(),
        tasks in 1u32..=5,
        policy in sample::select(vec![Policy::Spread, Policy::Compact]),
    ) {
        let bench = Bench::named(&topology, "v6.12");
        let mask = topology.online();
        let ideal = Domains::build(&topology, Profile::ideal());
        let kernel = Kernel { profile: &bench.profile, domains: &bench.domains, symmetry: &bench.symmetry };
        let request = Request {
            topology: &topology, kernels: &[kernel], ideal: &ideal, load: &bench.load, allowed: mask, asked: true,
            tasks, policy, smt: Smt::Avoid, launch: Launch::default(), can_apply: &[Form::PerTask], single_cpus: true,
            kept: false,
            marks: Markable::Crowded,
            with_margin: false,
        };
        let ours = advise(&request).unwrap();
        prop_assert!(ours.optimal);
        let cpus: Vec<Cpu> = mask.iter().collect();
        let every = every_placement(&cpus, tasks).into_iter();
        let best = every.map(|places| (but_numbers(objective(&request, &places)), places)).min().unwrap();
        let placed: Vec<Cpu> = ours.parts.iter().flat_map(|part| part.placed.clone()).collect();
        prop_assert_eq!(but_numbers(ours.objective), best.0, "ours {:?}, best {:?}", placed, best.1);
    }
}
