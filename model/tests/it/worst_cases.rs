//! Ways to pile up that a proof must not miss, each found by somebody who looked for one.

use crate::{
    advice::Question,
    bursts::{Bench, cpu, cpus},
};
use berth_model::{
    advise::{Form, Launch, Outcome},
    load::{Averages, CpuLoad, Load},
    predict::{Burst, Children, GAP, Markable, Parent, Search, Weight, explore, place},
    topology::{Processor, Shape, Topology},
};

fn host(shape: Shape) -> Topology {
    let processor = Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) };
    Shape { processor, ..shape }.topology().unwrap()
}

fn two_packages() -> Topology {
    host(Shape { packages: 2, cores: 4, far: 21, ..Shape::default() })
}

fn one_llc() -> Topology {
    host(Shape { cores: 4, ..Shape::default() })
}

fn running(on: &[(u32, u32)]) -> Load {
    on.iter().map(|&(number, runnable)| (cpu(number), CpuLoad { runnable, utilisation: None })).collect()
}

fn from(origin: u32, parent: Parent) -> Launch<'static> {
    Launch { origin: Some(cpu(origin)), parent, ..Launch::default() }
}

/// All choices, no marks, and weights as the burst says.
const ALL: Search =
    Search { marks: Markable::None, weights: false, stop_at_pile_up: false, runs: 1 << 10, looks: 1 << 22 };

#[test]
fn one_pinned_task_of_others_may_cause_a_mark() {
    let bench = Bench { load: running(&[(0, 1)]), ..Bench::named(&two_packages(), "6.12.97+") };
    let allowed = cpus("0-4");
    // It waits behind the launcher and may refuse to go; marked, the package sends both tasks to CPU 4.
    let question = Question { allowed: Some(&allowed), launch: from(0, Parent::Waits), ..Question::tasks(2) };
    assert_eq!(question.ask(&bench).asked.outcome, Outcome::Unsafe);
}

#[test]
fn tasks_that_ran_before_may_have_slept_in_between() {
    let bench =
        Bench { load: running(&[(0, 1), (1, 1), (2, 1), (3, 1)]), ..Bench::named(&one_llc(), "v6.12") };
    let allowed = cpus("0-3");
    let question = Question { allowed: Some(&allowed), launch: from(0, Parent::Waits), ..Question::tasks(2) };
    assert_eq!(question.ask(&bench).asked.outcome, Outcome::Unsafe);
}

#[test]
fn two_tasks_may_weigh_less_than_one() {
    let allowed = cpus("0-1");
    for (averages, outcome) in [(None, Outcome::Unsafe), (Some([2048, 1024]), Outcome::Safe)] {
        let mut load = running(&[(0, 2), (1, 1), (2, 1), (3, 1)]);
        for (number, load_avg) in (0..).zip(averages.into_iter().flatten()) {
            let known = Averages { load: Some(load_avg), util: Some(1024), runnable: Some(load_avg) };
            load.set_averages(cpu(number), known);
        }
        let bench = Bench { load, ..Bench::named(&one_llc(), "v6.12") };
        let question =
            Question { allowed: Some(&allowed), launch: from(0, Parent::Sleeps), ..Question::tasks(1) };
        assert_eq!(question.ask(&bench).asked.outcome, outcome);
    }
}

#[test]
fn the_parent_is_a_task_of_one_part_only() {
    let bench = Bench::named(&two_packages(), "v6.12");
    let launch = Launch { parent: Parent::IsTask, ..Launch::default() };
    let question = Question { launch, can_apply: &[Form::Split], ..Question::tasks(8) };
    let advice = question.ask(&bench);
    // Four tasks are forked under the second mask, beside a parent that leaves again.
    assert!(advice.parts.len() < 2 || !advice.proof.is_safe(), "{advice:?}");
}

#[test]
fn the_margin_counts_what_is_far_from_a_known_parent() {
    let topology = host(Shape { llcs: 2, cores: 4, ..Shape::default() });
    let bench = Bench::named(&topology, "v6.12");
    let allowed = cpus("0-1,4-5");
    let question = Question {
        allowed: Some(&allowed),
        launch: from(0, Parent::IsTask),
        can_apply: &[Form::Mask],
        with_margin: true,
        ..Question::tasks(4)
    };
    let advice = question.ask(&bench);
    assert!(advice.proof.is_safe());
    // One busy CPU beside 4 and 5 draws a second task to CPU 0.
    assert_eq!(advice.proof.margin.unwrap().cpus, 0);
}

#[test]
fn sleeping_children_do_not_hide_where_they_went() {
    let allowed = cpus("0-3");
    let mut bench = Bench::named(&one_llc(), "v6.12");
    bench.load.hold(cpu(3), 1);
    let one = Burst { children: Children::Asleep, ..Burst::forks(&allowed, 1, cpu(0)) };
    let explored = explore(bench.host(), &one, &bench.symmetry, ALL);
    assert!(explored.refused.is_some(), "CPU 3 is held, and as idle to the kernel as 1 and 2");

    let bench = Bench::named(&one_llc(), "v6.12");
    let two = Burst { tasks: 2, ..one };
    let ends = explore(bench.host(), &two, &bench.symmetry, ALL).ends;
    let mut fullest: Vec<u32> = ends.iter().map(|run| run.tally.fullest).collect();
    fullest.sort_unstable();
    fullest.dedup();
    assert_eq!(fullest, [1, 2]);
}

#[test]
fn every_run_begins_with_the_bursts_own_parent() {
    let bench = Bench::named(&host(Shape { packages: 2, cores: 4, far: 30, ..Shape::default() }), "6.1.178+");
    let allowed = cpus("4-7");
    let light = Burst { parent_weight: Weight::Light, ..Burst::forks(&allowed, 6, cpu(4)) };
    let central = place(bench.host(), &light);
    let on_parents = |places: &[berth_model::Cpu]| places.iter().filter(|&&at| at == cpu(4)).count();
    assert_eq!(on_parents(&central), 3);
    let ends = explore(bench.host(), &light, &bench.symmetry, ALL).ends;
    assert!(ends.iter().any(|run| on_parents(&run.places) == 3));
}

#[test]
fn averages_of_any_size_are_kept() {
    let mut load = running(&[(0, 1)]);
    load.set_averages(cpu(0), Averages { load: None, util: Some(0), runnable: Some(u32::MAX) });
    let bench = Bench { load, ..Bench::named(&one_llc(), "v6.12") };
    let allowed = cpus("0-3");
    for gap in [0, GAP, 60_000_000] {
        let burst = Burst { gap, ..Burst::forks(&allowed, 8, cpu(0)) };
        assert_eq!(place(bench.host(), &burst).len(), 8);
    }
}

#[test]
fn a_group_that_has_run_for_long_has_no_capacity_left() {
    let topology = host(Shape { llcs: 2, cores: 2, ..Shape::default() });
    let mut load = running(&[(2, 1), (3, 1)]);
    for number in [2, 3] {
        // Busy all the time, and of little weight.
        let known = Averages { load: Some(600), util: Some(1024), runnable: Some(1024) };
        load.set_averages(cpu(number), known);
    }
    let bench = Bench { load, ..Bench::named(&topology, "v6.12") };
    let allowed = cpus("0-3");
    let third = |gap: u64| {
        let burst = Burst { gap, parent: Parent::Sleeps, ..Burst::forks(&allowed, 3, cpu(0)) };
        place(bench.host(), &burst)[2].number()
    };
    // Two fresh tasks use half of two CPUs; after 200 ms they use them up, and the lighter LLC is taken.
    assert!(third(0) < 2);
    assert!(third(200_000) >= 2);
}
