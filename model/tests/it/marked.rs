//! Groups that are told to be marked as imbalanced.

use crate::{
    advice::Question,
    bursts::{Bench, STREAM, cpu, cpus, threads},
    machines::zen3,
};
use berth_model::{
    CpuSet,
    advise::{Launch, Outcome},
    domains::Domain,
    predict::{Burst, Markable, Search, explore, origins, place, trace::trace},
};

/// The CPUs of one package of the host, which are a group of its widest domains.
fn package(bench: &Bench, of: u32) -> CpuSet {
    let top: Domain<'_> = bench.domains.of(cpu(of)).next_back().unwrap();
    top.groups().next().unwrap().clone()
}

#[test]
fn a_marked_package_is_left_alone() {
    let bench = Bench::named(&zen3(1), "v6.12");
    let (near, far, stream) = (package(&bench, 0), package(&bench, 64), cpus(STREAM));
    let on_near = |marked: &[CpuSet]| {
        let burst = Burst { marked, ..threads(&stream, 8, 16) };
        place(bench.host(), &burst).iter().filter(|cpu| near.contains(**cpu)).count()
    };
    assert_eq!(on_near(&[]), 4);
    assert_eq!(on_near(std::slice::from_ref(&far)), 8);
    assert_eq!(on_near(std::slice::from_ref(&near)), 1, "the parent alone stays");
    assert_eq!(on_near(&[near.clone(), far.clone()]), 8, "of two marked groups neither is better");
    assert_eq!(on_near(&[cpus("0-5")]), 4, "these are no group");
}

/// Whether the mark is still there is open where marks are; and CPUs of a marked package mirror no others.
#[test]
fn both_states_are_followed() {
    let bench = Bench::named(&zen3(1), "v6.12");
    let (marked, stream) = ([package(&bench, 64)], cpus(STREAM));
    let burst = Burst { marked: &marked, ..threads(&stream, 8, 16) };
    let ends = |marks| {
        let search = Search { marks, weights: false, stop_at_pile_up: false, runs: 4096, looks: 1 << 22 };
        let explored = explore(bench.host(), &burst, &bench.symmetry, search);
        assert!(explored.complete);
        explored.ends.iter().map(|run| run.tally.fullest).collect::<Vec<_>>()
    };
    assert!(ends(Markable::None).iter().all(|&fullest| fullest > 1));
    let both = ends(Markable::Crowded);
    assert!(both.contains(&1) && both.iter().any(|&fullest| fullest > 1), "{both:?}");
    let classes = |burst: &Burst<'_>| origins(bench.host(), &bench.symmetry, burst).len();
    assert_eq!((classes(&burst), classes(&Burst { marked: &[], ..burst })), (2, 2));
    let all = cpus("0-255");
    let free = Burst::forks(&all, 8, cpu(0));
    assert_eq!(classes(&Burst { marked: &marked, ..free }), 2);
}

/// A proof under a mark that somebody knows of; its refutation is traced along the places of its run.
#[test]
fn a_proof_takes_the_mark_into_account() {
    let bench = Bench::named(&zen3(1), "6.12.97+");
    let (marked, stream) = ([package(&bench, 64)], cpus(STREAM));
    let asked = |marked| {
        let launch = Launch { origin: Some(cpu(0)), marked, ..Launch::default() };
        Question { allowed: Some(&stream), launch, ..Question::tasks(8) }.ask(&bench).asked
    };
    assert_eq!(asked(&[]).outcome, Outcome::Safe);
    let proof = asked(&marked);
    assert_eq!(proof.outcome, Outcome::Unsafe);

    let failure = proof.failure.unwrap();
    assert_eq!((failure.part, failure.load.as_ref()), (0, Some(&bench.load)));
    let launch = Launch { marked: &marked, ..Launch::default() };
    let burst = launch.burst(&stream, 8, failure.origin);
    let mut seen = Vec::new();
    trace(
        bench.host(),
        &burst,
        &failure.run.places,
        |_| true,
        |task| {
            seen.push((task.cpu, task.at));
            true
        },
    );
    let expected: Vec<_> = failure.run.places.iter().copied().zip((0..).step_by(100)).collect();
    assert_eq!(seen, expected);
}

/// Where a run takes another of equal CPUs than the central one, the trace says so and goes on from there.
#[test]
fn a_trace_follows_the_run_that_is_given() {
    let bench = Bench::named(&zen3(1), "v6.12");
    let stream = cpus(STREAM);
    let burst = threads(&stream, 8, 16);
    let mut places = place(bench.host(), &burst);
    let second = places[1];
    let other = [cpu(32), cpu(48)].into_iter().find(|cpu| *cpu != second).unwrap();
    places[1] = other;
    let mut said = Vec::new();
    trace(
        bench.host(),
        &burst,
        &places[..2],
        |_| true,
        |task| {
            said.push((task.cpu, task.because));
            true
        },
    );
    assert_eq!(said[1].0, other);
    assert_eq!(
        said[1].1,
        format!(
            "By what is known it comes out at CPU {second}. In this run it is CPU {other}: it is one of equals."
        )
    );
    let mut cpus: Vec<_> = said.iter().map(|(cpu, _)| *cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    assert_eq!(cpus.len(), 8, "the rest is placed as if it had always been so");
}
