//! Tasks that hold CPUs and sleep: counted, and not seen by the kernel.

use crate::{
    advice::Question,
    bursts::{Bench, STREAM, cpu, cpus},
    machines::zen3,
};
use berth_model::{
    CpuSet,
    advise::{Form, Launch, Outcome},
    load::{CpuLoad, Load},
    predict::{Burst, Host, Parent},
    topology::Shape,
};

fn eight_cpus() -> Bench {
    Bench::named(&Shape { llcs: 2, cores: 4, ..Shape::default() }.topology().unwrap(), "v6.12")
}

#[test]
fn a_cpu_counts_as_the_larger_of_held_and_measured() {
    let mut load = Load::idle();
    load.set(cpu(1), CpuLoad { runnable: 1, utilisation: None });
    load.set(cpu(2), CpuLoad { runnable: 3, utilisation: None });
    for number in 0..=2 {
        load.hold(cpu(number), 2);
    }
    let counts = |number| (load.runnable(cpu(number)), load.asleep(cpu(number)), load.taken(cpu(number)));
    assert_eq!([counts(0), counts(1), counts(2), counts(3)], [(0, 2, 2), (1, 1, 2), (3, 0, 3), (0, 0, 0)]);
    let awake = load.awake().unwrap();
    assert_eq!((awake.runnable(cpu(0)), awake.runnable(cpu(1)), awake.runnable(cpu(2))), (2, 2, 3));
    assert_eq!((awake.taken(cpu(0)), awake.awake()), (2, None));
    // Tasks of a job beside those that are held.
    load.add(cpu(0), 1);
    assert_eq!(load.taken(cpu(0)), 3);
}

/// The kernel puts a task where a holder sleeps: two CPUs would do for two tasks, and one gets two.
#[test]
fn the_kernel_walks_into_a_sleeping_holder() {
    let mut bench = eight_cpus();
    bench.load.hold(cpu(0), 1);
    let allowed = cpus("0-1");
    let tally = bench.predict(&Burst::forks(&allowed, 1, cpu(1))).tally;
    assert_eq!((tally.tasks_on.as_slice(), tally.fullest, tally.best), ([(cpu(0), 1)].as_slice(), 2, 1));
    assert!(tally.pile_up);
    // The holder runs: the kernel sees it and turns away.
    let awake = bench.load.awake().unwrap();
    let tally = Burst::forks(&allowed, 1, cpu(1)).tally(Host { load: &awake, ..bench.host() }, &[cpu(1)]);
    assert_eq!((tally.fullest, tally.best), (1, 1));
}

/// A mask with a sleeping holder is not safe: the advice goes around it.
#[test]
fn advice_goes_around_a_sleeping_holder() {
    let mut bench = eight_cpus();
    for number in [0, 1, 4, 5] {
        bench.load.hold(cpu(number), 1);
    }
    let allowed = cpus("0-7");
    let advice = Question { allowed: Some(&allowed), ..Question::tasks(4) }.ask(&bench);
    assert_eq!(advice.asked.outcome, Outcome::Unsafe);
    let given = advice.parts.iter().fold(CpuSet::new(), |all, part| all.union(&part.cpus));
    assert_eq!(given, cpus("2-3,6-7"));
    assert!(advice.proof.is_safe());
}

/// What is kept for tasks is as wide as their placement, so that the next caller is given the rest.
#[test]
fn what_is_kept_is_as_wide_as_the_placement() {
    let bench = eight_cpus();
    let question = || Question::tasks(3);
    assert_eq!(question().ask(&bench).form, Form::None);
    let kept = Question { kept: true, ..question() }.ask(&bench);
    assert!(kept.form != Form::None && kept.proof.is_safe());
    assert_eq!(kept.parts.iter().map(|part| part.cpus.len()).sum::<usize>(), 3);
}

/// Two holders outside the mask, one a package: as long as both sleep or both run the packages look alike, and with one
/// of them awake they do not.
#[test]
fn one_of_two_holders_may_wake() {
    let stream = cpus(STREAM);
    let asked = |prepare: &dyn Fn(&mut Load)| {
        let mut bench = Bench::named(&zen3(1), "v6.12");
        prepare(&mut bench.load);
        let launch = Launch { origin: Some(cpu(0)), parent: Parent::IsTask, ..Launch::default() };
        Question { allowed: Some(&stream), launch, ..Question::tasks(8) }.ask(&bench).asked.outcome
    };
    let runs = CpuLoad { runnable: 1, utilisation: None };
    assert_eq!(asked(&|_| ()), Outcome::Safe);
    assert_eq!(asked(&|load| [1, 65].iter().for_each(|&at| load.set(cpu(at), runs))), Outcome::Safe);
    let with_one = [1, 65].map(|at| asked(&|load| load.set(cpu(at), runs)));
    assert!(with_one.contains(&Outcome::Unsafe), "{with_one:?}");
    assert_eq!(asked(&|load| [1, 65].iter().for_each(|&at| load.hold(cpu(at), 1))), Outcome::Unsafe);
}
