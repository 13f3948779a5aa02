//! What holds for every host, mask, load and number of tasks.

use crate::{advice::Question, bursts::Bench, strategies};
use berth_model::{
    Cpu, CpuSet,
    advise::{Form, Launch, Outcome, Policy, Smt},
    load::Load,
    predict::{Burst, Host, IdleCpu, Markable, Marks, Search, Weight, best_fullest, explore, origins, place},
    profile::Profile,
    topology::Topology,
};
use proptest::{prelude::*, sample};

#[derive(Debug, Clone)]
struct Case {
    topology: Topology,
    profile: &'static Profile,
    load: Load,
    mask: CpuSet,
    origin: Cpu,
    tasks: u32,
    idle: Vec<IdleCpu>,
}

fn case() -> impl Strategy<Value = Case> {
    let topologies = prop_oneof![2 => strategies::topology(), 1 => strategies::irregular()];
    (topologies, strategies::any_profile()).prop_flat_map(|(topology, profile)| {
        let cpus: Vec<Cpu> = topology.online().iter().collect();
        let stamps = prop::collection::vec(0u64..40, topology.cpu_limit());
        let loads = strategies::load(&topology);
        let masks = strategies::mask(&topology);
        (Just(topology), Just(profile), loads, masks, sample::select(cpus), 1u32..=40, stamps).prop_map(
            |(topology, profile, load, mask, origin, tasks, stamps)| {
                let idle =
                    stamps.into_iter().map(|s| IdleCpu { exit_latency: None, idle_stamp: s + 1 }).collect();
                Case { topology, profile, load, mask, origin, tasks, idle }
            },
        )
    })
}

impl Case {
    fn bench(&self) -> Bench {
        Bench { load: self.load.clone(), ..Bench::new(&self.topology, self.profile) }
    }

    fn origin_inside(&self) -> Cpu {
        if self.mask.contains(self.origin) { self.origin } else { self.mask.first().unwrap() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Promise 1: no advice puts more on the fullest CPU than the best possible placement.
    #[test]
    fn no_advice_piles_up(
        case in case(),
        policy in sample::select(vec![Policy::Auto, Policy::Spread, Policy::Compact]),
        smt in sample::select(vec![Smt::Avoid, Smt::Share]),
        asked in any::<bool>(),
        with_origin in any::<bool>(),
        single in any::<bool>(),
        kept in any::<bool>(),
    ) {
        let bench = case.bench();
        let all = case.topology.usable();
        let allowed = if asked { &case.mask } else { &all };
        let launch = Launch { origin: with_origin.then(|| case.origin_inside()), ..Launch::default() };
        let can_apply: &[Form] = if single { &[Form::PerTask] } else { &[] };
        let question = Question {
            allowed: asked.then_some(allowed), policy, smt, launch, can_apply, kept, ..Question::tasks(case.tasks)
        };
        let advice = question.ask(&bench);
        prop_assert!(advice.proof.is_safe() && !advice.with.tally.pile_up);
        let taken = |cpu: Cpu| bench.load.taken(cpu);
        let best = best_fullest(allowed.iter().map(taken), case.tasks);
        let placed: Vec<Cpu> = advice.parts.iter().flat_map(|part| part.placed.iter().copied()).collect();
        prop_assert_eq!(placed.len(), case.tasks as usize);
        for &cpu in &placed {
            let tasks = placed.iter().filter(|&&other| other == cpu).count();
            prop_assert!(allowed.contains(cpu));
            prop_assert!(u32::try_from(tasks).unwrap() + taken(cpu) <= best, "{:?}", advice);
        }
        for attempt in &advice.attempts {
            let piles_up = attempt.proof.failure.as_ref().map(|failure| failure.run.tally.pile_up);
            let expected = match attempt.proof.outcome {
                Outcome::Unsafe => Some(true),
                Outcome::Misshapen => Some(false),
                Outcome::Safe | Outcome::Cut => None,
            };
            prop_assert_eq!(piles_up, expected);
        }
        for part in &advice.parts {
            prop_assert!(!part.cpus.is_empty() && part.cpus.is_subset(allowed));
            prop_assert_eq!(part.tasks as usize, part.placed.len());
            if kept {
                prop_assert_eq!(&part.cpus, &part.placed.iter().copied().collect::<CpuSet>());
            }
        }
        prop_assert!(advice.with.tally.fullest <= best, "{:?}", advice);
    }

    /// Promise 2: what is called safe stands in any order of idle CPUs, from any origin, at any pace, whenever marks come,
    /// whether holders sleep or run.
    #[test]
    fn a_safe_mask_stands_in_any_idle_order(
        case in case(),
        parent_weight in sample::select(vec![Weight::Fresh, Weight::Light, Weight::Settled]),
        gap in sample::select(vec![0, 100, 1_000, 30_000]),
        marks in sample::select(vec![Marks::Never, Marks::Expected, Marks::AtOnce]),
    ) {
        let bench = case.bench();
        let question = Question { allowed: Some(&case.mask), ..Question::tasks(case.tasks) };
        let advice = question.ask(&bench);
        if advice.asked.is_safe() {
            let origin = case.origin_inside();
            let frozen = Burst::forks(&case.mask, case.tasks, origin);
            let burst = Burst { parent_weight, gap, marks, idle: &case.idle, ..frozen };
            let awake = bench.load.awake();
            for load in [Some(bench.load.clone()), awake].into_iter().flatten() {
                let host = Host { load: &load, ..bench.host() };
                let places = place(host, &burst);
                let tally = burst.tally(host, &places);
                prop_assert!(!tally.pile_up, "{:?} from {}: {:?}", case.mask, origin, places);
            }
        }
    }

    /// Following one CPU for all its mirror images loses no run: with no symmetry to use, the same verdict.
    #[test]
    fn mirror_images_lose_nothing(case in case()) {
        let mut bench = case.bench();
        // Few tasks and CPUs, or the runs without symmetry are too many.
        let mask: CpuSet = case.mask.iter().take(8).collect();
        let search = Search { marks: Markable::Crowded, weights: true, stop_at_pile_up: true, runs: 100_000, looks: u64::MAX };
        let any_piles_up = |bench: &Bench, origins: Vec<Cpu>| {
            origins.into_iter().any(|origin| {
                let burst = Burst::forks(&mask, case.tasks % 6, origin);
                let explored = explore(bench.host(), &burst, &bench.symmetry, search);
                assert!(explored.complete || explored.refused.is_some());
                explored.refused.is_some()
            })
        };
        let burst = Burst::forks(&mask, case.tasks % 6, mask.first().unwrap());
        let classes = origins(bench.host(), &bench.symmetry, &burst).into_iter().map(|class| class.cpu).collect();
        let with = any_piles_up(&bench, classes);
        bench.symmetry.tell_apart();
        prop_assert_eq!(with, any_piles_up(&bench, mask.iter().collect()));
    }
}
