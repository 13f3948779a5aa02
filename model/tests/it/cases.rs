//! Situations that users of other tools reported, each with the right answer; named after the report.

use crate::{
    advice::Question,
    bursts::{Bench, cpu, cpus},
    machines::zen3,
};
use berth_model::{
    CpuSet,
    advise::{Advice, Form, Launch, Outcome, Policy},
    predict::Parent,
    topology::{Shape, Topology},
};

fn masks(advice: &Advice) -> Vec<String> {
    advice.parts.iter().map(|part| part.cpus.to_string()).collect()
}

/// Eight STREAM threads with one CPU in each second LLC allowed (kernel list, February 2022).
#[test]
fn stream_pinned_one_per_llc() {
    let allowed = cpus("0,16,32,48,64,80,96,112");
    let launch = Launch { parent: Parent::IsTask, ..Launch::default() };
    for nodes in [1, 2, 4] {
        let question = Question { allowed: Some(&allowed), launch, ..Question::tasks(8) };
        let old = Bench::named(&zen3(nodes), "v5.16");
        let advice = question.ask(&old);
        assert_eq!(advice.asked.outcome, Outcome::Unsafe, "NPS{nodes}");
        assert!(advice.proof.is_safe(), "NPS{nodes}");
        let bound = Question { can_apply: &[Form::PerTask], ..question }.ask(&old);
        assert_eq!(masks(&bound).join(","), allowed.to_string(), "NPS{nodes}");
        for profile in ["v6.1", "v6.12", "v6.19"] {
            let advice = question.ask(&Bench::named(&zen3(nodes), profile));
            assert_eq!(
                (advice.form, masks(&advice)),
                (Form::Mask, vec![allowed.to_string()]),
                "{profile} NPS{nodes}"
            );
        }
    }
}

/// moby#31086, reference-system#65: isolcpus=2,3 and two tasks allowed on them.
#[test]
fn isolated_cpus_are_not_balanced() {
    let mut description = Shape { cores: 4, ..Shape::default() }.describe();
    description.isolated = cpus("2-3");
    let bench = Bench::named(&Topology::try_new(description).unwrap(), "v6.12");
    let allowed = cpus("2-3");
    let advice = Question { allowed: Some(&allowed), ..Question::tasks(2) }.ask(&bench);
    assert_eq!(advice.asked.outcome, Outcome::Unsafe);
    assert_eq!((advice.form, masks(&advice)), (Form::PerTask, vec!["2".to_owned(), "3".to_owned()]));
}

/// flux-sched#1413: two sockets of ten cores, fifteen tasks of one core.
#[test]
fn no_core_twice() {
    let bench = Bench::named(
        &Shape { packages: 2, cores: 10, threads: 2, ..Shape::default() }.topology().unwrap(),
        "v6.12",
    );
    for policy in [Policy::Auto, Policy::Spread, Policy::Compact] {
        let advice = Question { policy, can_apply: &[Form::PerTask], ..Question::tasks(15) }.ask(&bench);
        let cores: CpuSet = advice.parts.iter().map(|part| cpu(part.placed[0].number() % 20)).collect();
        assert_eq!(cores.len(), 15, "{policy:?}");
    }
}

/// yalantinglibs#1215: CPUs 2 and 4 allowed.
#[test]
fn two_cpus_for_two_tasks_and_for_three() {
    let bench = Bench::named(&Shape { cores: 8, ..Shape::default() }.topology().unwrap(), "v6.12");
    let allowed = cpus("2,4");
    let question = Question { allowed: Some(&allowed), can_apply: &[Form::PerTask], ..Question::tasks(2) };
    assert_eq!(masks(&question.ask(&bench)), ["2", "4"]);
    let shared = Question { tasks: 3, ..question }.ask(&bench);
    assert_eq!(masks(&shared), ["2", "2", "4"]);
    assert_eq!((shared.with.tally.fullest, shared.with.tally.best), (2, 2));
}

/// koordinator#1682: two nodes of 52 CPUs, 48 taken on each, eight tasks apart.
#[test]
fn four_and_four_on_crowded_nodes() {
    let shape = Shape { packages: 2, cores: 52, ..Shape::default() };
    let mut bench = Bench::named(&shape.topology().unwrap(), "v6.12");
    for number in (0..48).chain(52..100) {
        bench.load.add(cpu(number), 1);
    }
    let advice =
        Question { policy: Policy::Spread, can_apply: &[Form::PerTask], ..Question::tasks(8) }.ask(&bench);
    assert_eq!(masks(&advice).join(","), "48,49,50,51,100,101,102,103");
}

/// sarus#14, likwid#630: what is allowed but not there is not used, and CPUs keep their own numbers.
#[test]
fn numbers_stay_the_hosts_own() {
    let bench = Bench::named(&Shape { cores: 16, ..Shape::default() }.topology().unwrap(), "v6.12");
    let online = cpus("0-31").intersection(bench.topology.online());
    let advice = Question { allowed: Some(&online), ..Question::tasks(15) }.ask(&bench);
    assert_eq!(masks(&advice), ["0-15"]);
    // With a task for each CPU, a parent that has long been busy drives the last one to a busy CPU: no mask is safe.
    let advice = Question { allowed: Some(&online), ..Question::tasks(16) }.ask(&bench);
    assert_eq!(masks(&advice), (0..16).map(|cpu| cpu.to_string()).collect::<Vec<_>>());
    let allowed = cpus("3,4");
    let advice =
        Question { allowed: Some(&allowed), can_apply: &[Form::PerTask], ..Question::tasks(2) }.ask(&bench);
    assert_eq!(masks(&advice), ["3", "4"]);
}
