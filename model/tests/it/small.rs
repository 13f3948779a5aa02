//! The small fixed vectors.

use crate::{
    advice::Question,
    bursts::{Bench, cpu, cpus},
    machines::{turin, xeon, zen3},
};
use berth_model::{
    advise::Outcome,
    load::CpuLoad,
    predict::{Burst, Entry, IdleCpu, Parent, Weight},
    profile,
    topology::{Level, Processor, Shape, Topology},
};

#[test]
fn one_allowed_cpu_is_that_cpu() {
    let allowed = cpus("77");
    for profile in profile::all() {
        let bench = Bench::new(&zen3(2), profile);
        for entry in [Entry::Fork, Entry::Exec] {
            let burst = Burst { entry, ..Burst::forks(&allowed, 3, cpu(5)) };
            assert_eq!(bench.places(&burst), [77, 77, 77], "{}", profile.name);
        }
    }
}

#[test]
fn a_mask_inside_one_node_is_kept() {
    let topology = turin();
    let allowed = cpus("32-47,352-367");
    for profile in profile::all() {
        let bench = Bench::new(&topology, profile);
        let places = bench.places(&Burst::forks(&allowed, 40, cpu(33)));
        assert!(places.iter().all(|&p| allowed.contains(cpu(p))), "{}: {places:?}", profile.name);
    }
}

#[test]
fn from_outside_the_mask_any_group_is_better() {
    let allowed = cpus("40-79");
    for profile in profile::all() {
        let bench = Bench::new(&xeon(), profile);
        let burst = Burst { entry: Entry::Exec, parent: Parent::Sleeps, ..Burst::forks(&allowed, 1, cpu(0)) };
        let places = bench.places(&burst);
        assert!(allowed.contains(cpu(places[0])), "{}: {places:?}", profile.name);
    }
}

#[test]
fn the_least_loaded_of_busy_cpus() {
    let shape = Shape { packages: 2, cores: 4, ..Shape::default() };
    let mut bench = Bench::named(&shape.topology().unwrap(), "v6.12");
    for (number, runnable) in [(4, 1), (5, 2), (6, 1), (7, 3)] {
        bench.load.set(cpu(number), CpuLoad { runnable, utilisation: None });
    }
    let allowed = cpus("4-7");
    assert_eq!(bench.places(&Burst::forks(&allowed, 1, cpu(0))), [4]);
}

#[test]
fn the_shallowest_then_the_most_recently_idled() {
    let shape = Shape { packages: 2, cores: 2, ..Shape::default() };
    let bench = Bench::named(&shape.topology().unwrap(), "v6.12");
    let allowed = cpus("2-3");
    let choice = |on_2: IdleCpu, on_3: IdleCpu| {
        let idle = [IdleCpu::default(), IdleCpu::default(), on_2, on_3];
        bench.places(&Burst { idle: &idle, ..Burst::forks(&allowed, 1, cpu(0)) })[0]
    };
    let idle = |exit_latency: Option<u32>, idle_stamp: u64| IdleCpu { exit_latency, idle_stamp };
    assert_eq!(choice(idle(Some(100), 9), idle(Some(2), 5)), 3);
    assert_eq!(choice(idle(Some(2), 5), idle(Some(100), 9)), 2);
    assert_eq!(choice(idle(Some(2), 5), idle(Some(2), 9)), 3);
    assert_eq!(choice(idle(None, 5), idle(None, 9)), 3);
    // One that never went idle, as far as its stamp tells, is passed over.
    assert_eq!(choice(idle(None, 0), idle(None, 9)), 3);
    // If neither did, the task stays on the CPU that it looks from; that one is not allowed, so the fallback decides.
    let never = [IdleCpu { exit_latency: None, idle_stamp: 0 }; 4];
    let from = |origin: u32, allowed: &str| {
        let allowed = cpus(allowed);
        bench.places(&Burst { idle: &never, ..Burst::forks(&allowed, 1, cpu(origin)) })[0]
    };
    assert_eq!(from(0, "2-3"), 2);
    // With it allowed, it takes the task although it is busy.
    assert_eq!(from(0, "0,2-3"), 0);
}

#[test]
fn a_cpu_without_domains_keeps_its_children() {
    let mut description = Shape { packages: 2, cores: 4, ..Shape::default() }.describe();
    description.isolated = cpus("2-3");
    let bench = Bench::named(&Topology::try_new(description).unwrap(), "v6.19");
    assert_eq!(bench.places(&Burst::forks(&cpus("2-3"), 2, cpu(2))), [2, 2]);
    assert_eq!(
        bench.split(Level::Node, &bench.places(&Burst::forks(&cpus("0-7"), 4, cpu(0)))).iter().sum::<usize>(),
        4
    );
    // From outside, the fallback takes the lowest allowed CPU of the parent's node.
    assert_eq!(bench.places(&Burst::forks(&cpus("2-3"), 2, cpu(0))), [2, 2]);
}

/// Six nodes of one CPU at distances that differ by direction: CPU 1's top level has the groups {1} and {1-5}, of which
/// both are its own, so that nothing leaves it.
#[test]
fn a_second_group_that_holds_the_cpu_is_local_too() {
    let rows = [
        [10, 11, 21, 11, 21, 21],
        [30, 10, 30, 30, 30, 30],
        [30, 11, 10, 11, 11, 11],
        [30, 30, 30, 10, 30, 30],
        [30, 11, 11, 11, 10, 11],
        [30, 11, 11, 11, 11, 10],
    ];
    let mut description = Shape { packages: 6, ..Shape::default() }.describe();
    description.distances = Some(rows.iter().map(|row| row.to_vec()).collect());
    for profile in ["v6.12", "v6.19"] {
        let bench = Bench::named(&Topology::try_new(description.clone()).unwrap(), profile);
        assert_eq!(bench.places(&Burst::forks(&cpus("0-5"), 2, cpu(1))), [1, 1], "{profile}");
    }
}

/// A launcher that waits is seen by the kernel and left out of the outcome; one that keeps running counts.
#[test]
fn a_waiting_launcher_is_no_pile_up() {
    let bench = Bench::named(&Shape { cores: 2, ..Shape::default() }.topology().unwrap(), "v6.18");
    let allowed = cpus("0-1");
    for tasks in 1..8 {
        let burst = Burst::forks(&allowed, tasks, cpu(0));
        let tally = bench.predict(&burst).tally;
        assert_eq!(tally.pile_up, tally.fullest > tally.best, "{tasks} tasks");
        assert!(!tally.pile_up, "{tasks} tasks: {tally:?}");
    }
    let beside = Burst { parent: Parent::Runs, ..Burst::forks(&allowed, 1, cpu(0)) };
    let tally = bench.predict(&beside).tally;
    assert_eq!((tally.fullest, tally.best, tally.pile_up), (1, 1, false));
}

/// Recorded on 6.1.170 and 6.1.192: six tasks under a mask of the four CPUs of one LLC leave three on the parent's CPU if
/// the parent has hardly run, and none of it is called safe.
#[test]
fn a_light_parent_keeps_three_of_six() {
    let processor = Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) };
    let shape = Shape { packages: 2, cores: 4, far: 30, processor, ..Shape::default() };
    let bench = Bench::named(&shape.topology().unwrap(), "6.1.178+");
    let allowed = cpus("4-7");
    let burst = Burst { parent_weight: Weight::Light, ..Burst::forks(&allowed, 6, cpu(4)) };
    let places = bench.places(&burst);
    assert_eq!(places.iter().filter(|&&place| place == 4).count(), 3, "{places:?}");
    let advice = Question { allowed: Some(&allowed), ..Question::tasks(6) }.ask(&bench);
    assert_eq!(advice.asked.outcome, Outcome::Unsafe);
}
