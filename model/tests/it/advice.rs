//! Advice on the machines of the reports, against the answers that are right there.

use crate::{
    bursts::{Bench, cpu, cpus},
    machines::{turin, xeon, zen3},
};
use berth_model::{
    CpuSet,
    advise::{
        Advice, Error, Exclusive, Form, Kernel, Launch, Near, Outcome, Policy, Request, Smt, Within, advise,
    },
    domains::Domains,
    predict::{Burst, Markable, Parent},
    profile::Profile,
    topology::Topology,
};

/// What a test asks, with the common answers filled in.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) allowed: Option<&'a CpuSet>,
    pub(crate) tasks: u32,
    pub(crate) cpus_per_task: u32,
    pub(crate) policy: Policy,
    pub(crate) smt: Smt,
    pub(crate) within: Option<Within>,
    pub(crate) near: Option<&'a Near>,
    pub(crate) exclusive: Option<Exclusive>,
    pub(crate) launch: Launch<'a>,
    pub(crate) can_apply: &'a [Form],
    pub(crate) kept: bool,
    pub(crate) with_margin: bool,
}

impl Question<'_> {
    pub(crate) fn tasks(tasks: u32) -> Self {
        Self {
            allowed: None,
            tasks,
            cpus_per_task: 1,
            policy: Policy::Auto,
            smt: Smt::Avoid,
            within: None,
            near: None,
            exclusive: None,
            launch: Launch::default(),
            can_apply: &[],
            kept: false,
            with_margin: false,
        }
    }

    pub(crate) fn ask(&self, bench: &Bench) -> Advice {
        self.try_ask(bench).unwrap()
    }

    pub(crate) fn try_ask(&self, bench: &Bench) -> Result<Advice, Error> {
        let ideal = Domains::build(&bench.topology, Profile::ideal());
        let kernel = Kernel { profile: &bench.profile, domains: &bench.domains, symmetry: &bench.symmetry };
        advise(&Request {
            topology: &bench.topology,
            kernels: &[kernel],
            ideal: &ideal,
            load: &bench.load,
            allowed: self.allowed.unwrap_or_else(|| bench.topology.online()),
            asked: self.allowed.is_some(),
            tasks: self.tasks,
            cpus_per_task: self.cpus_per_task,
            policy: self.policy,
            smt: self.smt,
            within: self.within,
            near: self.near,
            exclusive: self.exclusive,
            launch: self.launch,
            can_apply: self.can_apply,
            single_cpus: self.can_apply == [Form::PerTask],
            kept: self.kept,
            marks: Markable::Crowded,
            with_margin: self.with_margin,
        })
    }
}

fn masks(advice: &Advice) -> Vec<(String, u32)> {
    advice.parts.iter().map(|part| (part.cpus.to_string(), part.tasks)).collect()
}

#[test]
fn turin_is_split_by_package() {
    let allowed = cpus("0-175");
    for origin in [Some(cpu(0)), None] {
        for profile in ["v6.12", "v6.18"] {
            let launch = Launch { origin, ..Launch::default() };
            let question = Question { allowed: Some(&allowed), launch, ..Question::tasks(176) };
            let advice = question.ask(&Bench::named(&turin(), profile));
            assert_eq!(advice.form, Form::Split);
            assert_eq!(masks(&advice), [("0-159".to_owned(), 160), ("160-175".to_owned(), 16)]);
            assert!(advice.proof.is_safe());
            assert_eq!(advice.asked.outcome, Outcome::Unsafe);
            let failure = advice.asked.failure.as_ref().unwrap();
            assert!(failure.run.tally.fullest > failure.run.tally.best);
            assert!(!advice.with.tally.pile_up);
            assert_eq!(advice.with.tally.tasks_on.len(), 176);
        }
    }
}

#[test]
fn turin_single_cpus_on_request() {
    let allowed = cpus("0-175");
    let question = Question { allowed: Some(&allowed), can_apply: &[Form::PerTask], ..Question::tasks(176) };
    let advice = question.ask(&Bench::named(&turin(), "v6.12"));
    assert_eq!(advice.form, Form::PerTask);
    let expected: Vec<(String, u32)> = (0..176).map(|number: u32| (number.to_string(), 1)).collect();
    assert_eq!(masks(&advice), expected);
    assert!(advice.proof.is_safe());
}

#[test]
fn turin_mask_is_safe_with_the_fix() {
    let allowed = cpus("0-175");
    for profile in ["6.18.39+", "6.12.97+", "6.1.178+", "v6.19"] {
        let question = Question { allowed: Some(&allowed), ..Question::tasks(176) };
        let advice = question.ask(&Bench::named(&turin(), profile));
        assert_eq!((advice.form, masks(&advice)), (Form::Mask, vec![("0-175".to_owned(), 176)]), "{profile}");
        assert!(advice.proof.is_safe() && advice.asked.is_safe(), "{profile}");
    }
}

#[test]
fn spread_is_what_hwloc_distrib_gives() {
    for nodes in [1, 2, 4] {
        let question = Question { policy: Policy::Spread, can_apply: &[Form::PerTask], ..Question::tasks(8) };
        let advice = question.ask(&Bench::named(&zen3(nodes), "v6.12"));
        let found: Vec<String> = masks(&advice).into_iter().map(|(mask, _)| mask).collect();
        assert_eq!(found.join(","), "0,16,32,48,64,80,96,112", "NPS{nodes}");
    }
}

#[test]
fn compact_fills_one_llc_first() {
    let question = |tasks| Question { policy: Policy::Compact, ..Question::tasks(tasks) };
    let bench = Bench::named(&zen3(1), "v6.12");
    assert_eq!(masks(&question(8).ask(&bench)), [("0-7".to_owned(), 8)]);
    let twelve = question(12).ask(&bench);
    assert_eq!(twelve.parts.iter().map(|part| part.placed.len()).sum::<usize>(), 12);
    let llcs: CpuSet = twelve.parts.iter().flat_map(|part| part.placed.iter().copied()).collect();
    assert!(llcs.is_subset(&cpus("0-15")), "{llcs}");
}

#[test]
fn a_pair_stays_on_one_node() {
    for topology in [zen3(1), zen3(4), turin(), xeon()] {
        let question = Question { can_apply: &[Form::PerTask], ..Question::tasks(2) };
        let advice = question.ask(&Bench::named(&topology, "v6.12"));
        let level = berth_model::topology::Level::Node;
        let nodes: Vec<_> = advice.parts.iter().map(|part| topology.unit_of(level, part.placed[0])).collect();
        assert_eq!(nodes[0], nodes[1]);
    }
}

/// AUTO forks from where the parent is, also when its CPU is left to it.
#[test]
fn a_pair_stays_on_its_parents_node() {
    let topology = zen3(4);
    let node = |number| topology.unit_of(berth_model::topology::Level::Node, cpu(number));
    for origin in [0, 40, 100] {
        let launch = Launch { origin: Some(cpu(origin)), ..Launch::default() };
        let question = Question { launch, can_apply: &[Form::PerTask], ..Question::tasks(2) };
        let advice = question.ask(&Bench::named(&topology, "v6.12"));
        let places: Vec<u32> = advice.parts.iter().map(|part| part.placed[0].number()).collect();
        assert!(places.iter().all(|&place| node(place) == node(origin)), "from {origin}: {places:?}");
        assert!(!places.contains(&origin), "from {origin}: {places:?}");
    }
}

#[test]
fn nothing_to_bind_where_the_kernel_does_as_well() {
    let advice = Question::tasks(8).ask(&Bench::named(&zen3(1), "v6.12"));
    assert_eq!(advice.form, Form::None);
    assert!(advice.proof.is_safe());
}

/// 32 CPUs, two packages, NPS2, a kernel with the fix: CPUs 1 and 2 are busy, the parent is on 15.
#[test]
fn the_fix_does_not_cover_everything() {
    use berth_model::topology::{Processor, Shape};
    let processor = Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) };
    let shape =
        Shape { packages: 2, nodes: 2, llcs: 2, cores: 4, near: 12, far: 30, processor, ..Shape::default() };
    let topology: Topology = shape.topology().unwrap();
    for profile in ["6.1.178+", "6.12.97+"] {
        let mut bench = Bench::named(&topology, profile);
        bench.load.add(cpu(1), 1);
        bench.load.add(cpu(2), 1);
        let allowed = cpus("1,2,6,15");
        let launch = Launch { origin: Some(cpu(15)), ..Launch::default() };
        let question = Question { allowed: Some(&allowed), launch, ..Question::tasks(6) };
        let advice = question.ask(&bench);
        assert_eq!(advice.asked.outcome, Outcome::Unsafe, "{profile}");
        let places = bench.places(&Burst::forks(&allowed, 6, cpu(15)));
        let on = |number| places.iter().filter(|&&place| place == number).count();
        assert_eq!((on(6), on(15)), (1, 5), "{profile}: {places:?}");
        assert!(advice.proof.is_safe(), "{profile}: {:?}", advice.form);
        let mut per_cpu = [(1, 1), (2, 1), (6, 0), (15, 0)].map(|(number, load)| {
            advice.parts.iter().flat_map(|part| &part.placed).filter(|p| p.number() == number).count() + load
        });
        per_cpu.sort_unstable();
        assert_eq!(per_cpu, [2, 2, 2, 2], "{profile}");
    }
}

/// Two tasks of others share CPU 0, pinned there for all that is known: load balancing may have marked their LLC, and a
/// marked LLC is passed over although CPU 1 idles.
#[test]
fn crowds_of_others_may_have_left_a_mark() {
    let shape = berth_model::topology::Shape { llcs: 2, cores: 2, ..Default::default() };
    let mut bench = Bench::named(&shape.topology().unwrap(), "v5.18");
    bench.load.add(cpu(0), 2);
    let allowed = cpus("0-3");
    let launch = Launch { origin: Some(cpu(2)), parent: Parent::Runs, ..Launch::default() };
    let advice = Question { allowed: Some(&allowed), launch, ..Question::tasks(2) }.ask(&bench);
    assert_eq!(advice.asked.outcome, Outcome::Unsafe);
}

#[test]
fn the_launchers_cpu_is_left_to_it_where_that_costs_nothing() {
    let shape = berth_model::topology::Shape { cores: 4, ..Default::default() };
    let bench = Bench::named(&shape.topology().unwrap(), "v6.12");
    let launch = Launch { origin: Some(cpu(0)), ..Launch::default() };
    let pinned = |tasks| {
        let advice = Question { launch, can_apply: &[Form::PerTask], ..Question::tasks(tasks) }.ask(&bench);
        masks(&advice).into_iter().map(|(mask, _)| mask).collect::<Vec<_>>().join(",")
    };
    assert_eq!(pinned(3), "1,2,3");
    assert_eq!(pinned(4), "0,1,2,3");
}

#[test]
fn only_forms_that_can_be_applied_are_given() {
    let shape = berth_model::topology::Shape { cores: 4, ..Default::default() };
    let bench = Bench::named(&shape.topology().unwrap(), "v6.12");
    let allowed = cpus("0-3");
    for form in [Form::None, Form::Mask, Form::Split, Form::PerTask] {
        let can_apply = [form];
        let advice =
            Question { allowed: Some(&allowed), can_apply: &can_apply, ..Question::tasks(3) }.ask(&bench);
        assert_eq!(advice.form, form);
    }
}

#[test]
fn pinned_tasks_have_no_margin_and_masks_a_small_one() {
    let allowed = cpus("0-175");
    let bench = Bench::named(&turin(), "v6.19");
    let question = Question { allowed: Some(&allowed), with_margin: true, ..Question::tasks(100) };
    assert!(question.ask(&bench).proof.margin.is_some());
    let pinned = Question { can_apply: &[Form::PerTask], ..question }.ask(&bench);
    assert_eq!(pinned.proof.margin, None);
}
