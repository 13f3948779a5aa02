//! Situations that users of other tools reported, each with the right answer; named after the report.

use crate::{
    advice::Question,
    bursts::{Bench, cpu, cpus},
    machines::zen3,
};
use berth_model::{
    CpuSet,
    advise::{Advice, Error, Exclusive, Form, Launch, Near, Outcome, Policy, Within},
    predict::Parent,
    topology::{Level, NodeDescription, Shape, Topology},
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

/// The CPUs of all tasks.
fn placed(advice: &Advice) -> CpuSet {
    advice.parts.iter().flat_map(|part| part.placed.iter().copied()).collect()
}

fn two_nodes(cores: u32) -> Bench {
    let shape = Shape { packages: 2, cores, threads: 2, ..Shape::default() };
    Bench::named(&shape.topology().unwrap(), "v6.12")
}

/// kubernetes#123816: 26 CPUs of node 0 are held; 26 within one node are those of node 1.
#[test]
fn what_one_node_cannot_take_goes_to_the_other() {
    let mut bench = two_nodes(16);
    cpus("0-12,32-44").iter().for_each(|cpu| bench.load.hold(cpu, 1));
    let within = Some(Within { level: Level::Node, required: true });
    for policy in [Policy::Auto, Policy::Spread, Policy::Compact] {
        let advice = Question { within, policy, ..Question::tasks(26) }.ask(&bench);
        assert!(placed(&advice).is_subset(&cpus("16-31,48-63")), "{policy:?}: {}", placed(&advice));
        assert!(advice.proof.is_safe() && advice.within_met);
        for part in &advice.parts {
            assert!(part.cpus.is_subset(&cpus("16-31,48-63")), "{policy:?}: {}", part.cpus);
        }
    }
}

/// koordinator#1682: eight CPUs within one node, where each has four idle ones of 52.
#[test]
fn what_no_node_can_take_is_refused_with_the_numbers() {
    let shape = Shape { packages: 2, cores: 52, ..Shape::default() };
    let mut bench = Bench::named(&shape.topology().unwrap(), "v6.12");
    (0..48).chain(52..100).for_each(|number| bench.load.add(cpu(number), 1));
    let within = Some(Within { level: Level::Node, required: true });
    let refused = Question { within, policy: Policy::Spread, ..Question::tasks(8) }.try_ask(&bench);
    let error = Error::NotWithin { level: Level::Node, asked: 8, free: 4, allowed: 52 };
    assert_eq!(refused.unwrap_err(), error);
    assert_eq!(
        error.to_string(),
        "within: 8 CPUs are asked for, and no NUMA node has more than 4 idle ones of 52 allowed"
    );
}

/// kubernetes#84597: three nodes with four free CPUs each; eight fit into none, and are put on two.
#[test]
fn a_preference_that_cannot_be_met_is_said() {
    let shape = Shape { packages: 3, cores: 6, far: 20, ..Shape::default() };
    let mut bench = Bench::named(&shape.topology().unwrap(), "v6.12");
    [0, 1, 6, 7, 12, 13].into_iter().for_each(|number| bench.load.add(cpu(number), 1));
    let within = Some(Within { level: Level::Node, required: false });
    let question = Question { within, policy: Policy::Compact, ..Question::tasks(8) };
    let advice = question.ask(&bench);
    assert_eq!((advice.within_met, placed(&advice)), (false, cpus("2-5,8-11")));
    let advice = Question { tasks: 4, ..question }.ask(&bench);
    assert_eq!((advice.within_met, placed(&advice)), (true, cpus("2-5")));
}

/// vllm#13855: a device near 56-111,168-223.
#[test]
fn near_a_device() {
    let bench = two_nodes(56);
    let local = cpus("56-111,168-223");
    let near = Near::cpus(&bench.topology, &local).unwrap();
    for policy in [Policy::Auto, Policy::Spread, Policy::Compact] {
        for tasks in [1, 8, 56] {
            let advice = Question { near: Some(&near), policy, ..Question::tasks(tasks) }.ask(&bench);
            assert!(placed(&advice).is_subset(&local), "{policy:?}: {}", placed(&advice));
            for part in &advice.parts {
                assert!(part.cpus.is_subset(&local), "{policy:?} {:?}: {}", advice.form, part.cpus);
            }
        }
    }
}

/// dask-cuda#1358: the CPUs near the device are not allowed; the nearest others are.
#[test]
fn near_a_device_that_is_outside() {
    let shape = Shape { packages: 2, nodes: 2, cores: 4, ..Shape::default() };
    let bench = Bench::named(&shape.topology().unwrap(), "v6.12");
    let near = Near::node(&bench.topology, 3).unwrap();
    let allowed = cpus("0-11");
    let question = Question { near: Some(&near), allowed: Some(&allowed), ..Question::tasks(4) };
    for policy in [Policy::Auto, Policy::Spread, Policy::Compact] {
        let advice = Question { policy, ..question }.ask(&bench);
        assert_eq!(placed(&advice), cpus("8-11"), "{policy:?}");
    }
}

/// kubernetes#135541: 34 nodes, two of which have CPUs.
#[test]
fn nodes_without_cpus_change_nothing() {
    let shape = Shape { packages: 2, cores: 8, far: 20, ..Shape::default() };
    let mut host = shape.describe();
    let rows = host.distances.as_mut().unwrap();
    for id in 2..34 {
        rows.iter_mut().for_each(|row| row.push(20));
        rows.push((0..=id).map(|to| if to == id { 10 } else { 20 }).collect());
        host.nodes.push(NodeDescription { id, memory: Some(1 << 34) });
    }
    let few = Bench::named(&shape.topology().unwrap(), "v6.12");
    let many = Bench::named(&Topology::try_new(host).unwrap(), "v6.12");
    for policy in [Policy::Auto, Policy::Spread, Policy::Compact] {
        let question = Question { policy, ..Question::tasks(6) };
        let (few, many) = (question.ask(&few), question.ask(&many));
        assert_eq!((few.form, few.parts), (many.form, many.parts), "{policy:?}");
        assert!(many.optimal);
    }
}

/// kubernetes#125453: six equal holds one after the other. cri-resource-manager#908: two that want a node each.
#[test]
fn holds_go_apart() {
    let mut bench = two_nodes(8);
    for _ in 0..6 {
        let advice = Question { policy: Policy::Spread, kept: true, ..Question::tasks(1) }.ask(&bench);
        placed(&advice).iter().for_each(|cpu| bench.load.hold(cpu, 1));
    }
    let on = |node: usize| bench.load.occupied().intersection_len(&bench.topology.nodes()[node].cpus);
    assert_eq!((on(0), on(1)), (3, 3));

    let mut bench = two_nodes(8);
    let exclusive = Exclusive::Units(Level::Node);
    let question =
        Question { policy: Policy::Spread, exclusive: Some(exclusive), kept: true, ..Question::tasks(1) };
    for node in [0, 1] {
        let advice = question.ask(&bench);
        assert!(placed(&advice).is_subset(&bench.topology.nodes()[node].cpus));
        placed(&advice).iter().for_each(|cpu| bench.load.hold(cpu, 1));
    }
    let refused = Error::NotAlone { exclusive, asked: 1, free: 0, allowed: 32 };
    assert_eq!(question.try_ask(&bench).unwrap_err(), refused);
}

/// yalantinglibs#1215, where sharing is ruled out; a core of which one thread is busy is no core for oneself.
#[test]
fn exclusive_cpus_are_not_shared() {
    let mut bench = two_nodes(4);
    let allowed = cpus("2,4");
    let exclusive = Some(Exclusive::Cpus);
    let question = Question { allowed: Some(&allowed), exclusive, ..Question::tasks(2) };
    assert_eq!(placed(&question.ask(&bench)), allowed);
    let refused = Question { tasks: 3, ..question }.try_ask(&bench).unwrap_err();
    assert_eq!(refused, Error::NotAlone { exclusive: Exclusive::Cpus, asked: 3, free: 2, allowed: 2 });
    bench.load.add(cpu(10), 1);
    assert_eq!(placed(&question.ask(&bench)), allowed);
    let cores = Some(Exclusive::Units(Level::Core));
    assert!(Question { exclusive: cores, ..question }.try_ask(&bench).is_err());
}

/// A task's CPUs are those of one LLC, and its own.
#[test]
fn several_cpus_per_task_stay_together() {
    let bench = Bench::named(&zen3(2), "v6.12");
    for (policy, expected) in [
        (Policy::Compact, ["0-3", "4-7", "8-11", "12-15"]),
        (Policy::Spread, ["0-3", "32-35", "64-67", "96-99"]),
        (Policy::Auto, ["0-3", "32-35", "64-67", "96-99"]),
    ] {
        let advice = Question { policy, cpus_per_task: 4, ..Question::tasks(4) }.ask(&bench);
        assert_eq!((advice.form, masks(&advice)), (Form::PerTask, expected.map(str::to_owned).to_vec()));
        assert!(advice.proof.is_safe() && advice.optimal, "{policy:?}");
        assert!(advice.parts.iter().all(|part| part.tasks == 1));
    }
    let lone = Question { cpus_per_task: 4, can_apply: &[Form::Mask], ..Question::tasks(1) }.ask(&bench);
    assert_eq!((lone.form, masks(&lone)), (Form::Mask, vec!["0-3".to_owned()]));
}

/// util-linux#950, crun#2229: sets in every form, also beyond 1024 CPUs.
#[test]
fn sets_come_back_as_they_were() {
    for list in ["0-31,64-95", "1024-1030"] {
        let set = cpus(list);
        for form in [list.to_owned(), set.to_hex(), set.to_groups()] {
            assert_eq!(CpuSet::parse(&form).unwrap(), set, "{form}");
        }
        assert_eq!(set.to_string(), list);
    }
    assert_eq!(cpus("0-31,64-95").to_groups(), "ffffffff,00000000,ffffffff");
}
