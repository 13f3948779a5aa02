//! SPREAD and COMPACT against every possible placement, on machines and masks small enough for it.

use crate::{
    bursts::Bench,
    strategies::{irregular, topology},
};
use berth_model::{
    Cpu, CpuSet,
    advise::{Form, Kernel, Launch, Objective, Policy, Request, Smt, advise, objective},
    domains::Domains,
    load::{CpuLoad, Load},
    predict::Markable,
    profile::Profile,
    topology::{Level, Shape, Topology},
};
use proptest::{collection::vec, prelude::*, sample, test_runner::TestRunner};

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

/// Some CPUs of any host, with what runs there: tasks, utilisation in tenths, and whether others hold it asleep.
fn crowded() -> impl Strategy<Value = (Topology, CpuSet, Load)> {
    let host = prop_oneof![topology(), irregular()];
    let some = (any::<sample::Index>(), 0u32..4, 0u8..4, 0u8..8);
    (host, vec(some, 1..=9)).prop_map(|(topology, some)| {
        let online: Vec<Cpu> = topology.usable().iter().collect();
        let (mut allowed, mut load) = (CpuSet::new(), Load::idle());
        for (index, runnable, tenths, held) in some {
            let cpu = *index.get(&online);
            allowed.insert(cpu);
            let utilisation = Some(f32::from(tenths) / 10.0);
            load.set(cpu, CpuLoad { runnable: runnable.saturating_sub(1), utilisation });
            load.hold(cpu, u32::from(held == 0));
        }
        (topology, allowed, load)
    })
}

/// The whole vector, the numbers of the CPUs included, wherever the answer says that it is the best.
#[test]
fn no_placement_is_better_under_any_mask_and_load() {
    let cases = std::env::var("BERTH_CASES").map_or(600, |cases| cases.parse().unwrap());
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let question = (crowded(), 1u32..=4, sample::select(vec![Smt::Avoid, Smt::Share, Smt::FullCores]));
    let (asked, optimal) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let result = TestRunner::new(config).run(&question, |((topology, allowed, load), tasks, smt)| {
        let bench = Bench { load, ..Bench::named(&topology, "v6.12") };
        let ideal = Domains::build(&topology, Profile::ideal());
        let kernel = Kernel { profile: &bench.profile, domains: &bench.domains, symmetry: &bench.symmetry };
        let request = Request {
            topology: &topology,
            kernels: &[kernel],
            ideal: &ideal,
            load: &bench.load,
            allowed: &allowed,
            asked: true,
            tasks,
            policy: Policy::Spread,
            smt,
            launch: Launch::default(),
            can_apply: &[Form::PerTask],
            single_cpus: true,
            kept: false,
            marks: Markable::Crowded,
            with_margin: false,
        };
        // FULL_CORES may find no core that is free.
        let Ok(ours) = advise(&request) else { return Ok(()) };
        asked.set(asked.get() + 1);
        if !ours.optimal {
            return Ok(());
        }
        optimal.set(optimal.get() + 1);
        let taken = |core: &CpuSet| core.iter().any(|cpu| bench.load.taken(cpu) > 0);
        let free = |cpu: &Cpu| smt != Smt::FullCores || !taken(topology.span(Level::Core, *cpu).unwrap());
        let cpus: Vec<Cpu> = allowed.iter().filter(free).collect();
        let every = every_placement(&cpus, tasks).into_iter();
        let best = every.map(|places| (objective(&request, &places), places)).min().unwrap();
        let placed: Vec<Cpu> = ours.parts.iter().flat_map(|part| part.placed.clone()).collect();
        prop_assert_eq!(objective(&request, &placed), best.0, "ours {:?}, best {:?}", placed, best.1);
        Ok(())
    });
    result.unwrap();
    assert!(optimal.get() * 3 > asked.get(), "{} of {} were said to be optimal", optimal.get(), asked.get());
}
