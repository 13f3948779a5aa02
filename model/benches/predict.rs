//! How long the kernel model takes, as ratios against something run beside it: machines are noisy, ratios less so.
//!
//! `cargo bench -p berth-model` prints, for each pair, the median time of both and their ratio, taken in turns; a text
//! behind `--` picks the pairs whose name holds it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a bench prints")]
#![allow(missing_docs, unreachable_pub, dead_code, reason = "shared with the tests")]

#[path = "../tests/it/machines.rs"]
mod machines;
#[path = "../tests/it/oracle.rs"]
mod oracle;

use berth_model::{
    Cpu, CpuSet,
    advise::{Form, Kernel, Launch, Policy, Request, Smt, advise},
    domains::Domains,
    load::Load,
    predict::{Burst, Host, Markable, Symmetry, place},
    profile::Profile,
    topology::{NodeDescription, Shape, Topology},
};
use machines::{turin, zen3};
use std::{hint::black_box, time::Instant};

fn main() {
    let (host, mask) = (Bench::new(turin(), "v6.12"), cpus("0-175"));
    let burst = Burst::forks(&mask, 176, Cpu::from(0));
    pair(
        "predict, 176 tasks on 0-175 of 640 CPUs",
        ("counters", || place(host.host(), &burst).len()),
        ("plain rescan", || host.oracle().place(&burst).len()),
    );
    let mut oracle = host.oracle();
    oracle.place(&burst);
    println!("  the plain rescan reads {} CPUs a task", oracle.reads / u64::from(burst.tasks));
    let (wide, same) = (Bench::new(wide(), "v6.12"), cpus("0-175"));
    let wide_burst = Burst::forks(&same, 176, Cpu::from(0));
    pair(
        "predict, 176 tasks",
        ("640 CPUs", || place(host.host(), &burst).len()),
        ("10,240 CPUs", || place(wide.host(), &wide_burst).len()),
    );
    pair(
        "176 tasks on 0-175 of 640 CPUs",
        ("predict", || place(host.host(), &burst).len()),
        ("advise with proof", || host.advise(&mask, 176, Policy::Auto, Smt::Avoid)),
    );
    let (small, every) = (Bench::new(zen3(1), "v6.12"), cpus("0-255"));
    let eight = Burst::forks(&every, 8, Cpu::from(0));
    pair(
        "8 tasks on 256 CPUs",
        ("predict", || place(small.host(), &eight).len()),
        ("advise with proof", || small.advise(&every, 8, Policy::Spread, Smt::Avoid)),
    );
    advice(&host, &small);
    pair(
        "domains of a host, one profile",
        ("640 CPUs", || Domains::build(&host.topology, &host.profile).of(Cpu::from(0)).len()),
        ("10,240 CPUs", || Domains::build(&wide.topology, &wide.profile).of(Cpu::from(0)).len()),
    );
}

/// The best placement and its proof, beside a prediction of the same tasks.
fn advice(turin: &Bench, small: &Bench) {
    let large = Bench::new(
        Shape { packages: 8, nodes: 8, llcs: 2, cores: 8, threads: 2, ..Shape::default() }
            .topology()
            .unwrap(),
        "v6.12",
    );
    let mut busy = Bench::new(zen3(1), "v6.12");
    for number in (0..256u16).step_by(3) {
        busy.load.add(Cpu::from(number), 1);
    }
    let hosts = [
        ("8 tasks on 256 CPUs", small, 8),
        ("8 tasks on 256 CPUs, a third of them busy", &busy, 8),
        ("176 tasks on 640 CPUs", turin, 176),
        ("256 tasks on 2048 CPUs in 64 nodes", &large, 256),
    ];
    for (what, host, tasks) in hosts {
        let every = host.topology.online();
        let burst = Burst::forks(every, tasks, Cpu::from(0));
        for policy in [Policy::Auto, Policy::Spread, Policy::Compact] {
            for smt in [Smt::Avoid, Smt::Share] {
                pair(
                    &format!("{what}, {policy:?}, {smt:?}"),
                    ("predict", || place(host.host(), &burst).len()),
                    ("advise with proof", || host.advise(every, tasks, policy, smt)),
                );
            }
        }
    }
    let two = Shape { packages: 2, cores: 32, threads: 2, ..Shape::default() };
    let (few, many) = (Bench::new(two.topology().unwrap(), "v6.12"), Bench::new(memory_only(two), "v6.12"));
    for policy in [Policy::Auto, Policy::Spread, Policy::Compact] {
        pair(
            &format!("40 tasks, {policy:?}"),
            ("2 nodes", || few.advise(few.topology.online(), 40, policy, Smt::Avoid)),
            ("34 nodes of which 2 have CPUs", || many.advise(many.topology.online(), 40, policy, Smt::Avoid)),
        );
    }
}

/// The same host with 32 nodes more that have memory only.
fn memory_only(shape: Shape) -> Topology {
    let mut host = shape.describe();
    let rows = host.distances.as_mut().unwrap();
    for id in 2..34 {
        rows.iter_mut().for_each(|row| row.push(20));
        rows.push((0..=id).map(|to| if to == id { 10 } else { 20 }).collect());
        host.nodes.push(NodeDescription { id, memory: Some(1 << 34) });
    }
    Topology::try_new(host).unwrap()
}

/// Turin, sixteen times over: 10,240 CPUs in 320 nodes would be no machine, so nodes hold more.
fn wide() -> Topology {
    Shape { packages: 16, nodes: 4, llcs: 5, cores: 16, threads: 2, ..Shape::default() }.topology().unwrap()
}

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse(list).unwrap()
}

struct Bench {
    topology: Topology,
    profile: Profile,
    domains: Domains,
    symmetry: Symmetry,
    ideal: Domains,
    load: Load,
}

impl Bench {
    fn new(topology: Topology, profile: &str) -> Self {
        let profile = *Profile::named(profile).unwrap();
        let domains = Domains::build(&topology, &profile);
        let symmetry = Symmetry::new(&topology, &domains);
        let ideal = Domains::build(&topology, Profile::ideal());
        Self { topology, profile, domains, symmetry, ideal, load: Load::idle() }
    }

    fn host(&self) -> Host<'_> {
        Host { topology: &self.topology, domains: &self.domains, profile: &self.profile, load: &self.load }
    }

    fn oracle(&self) -> oracle::Oracle<'_> {
        oracle::Oracle::new(&self.topology, &self.domains, &self.profile, &self.load)
    }

    fn advise(&self, allowed: &CpuSet, tasks: u32, policy: Policy, smt: Smt) -> usize {
        let kernel = Kernel { profile: &self.profile, domains: &self.domains, symmetry: &self.symmetry };
        let advice = advise(&Request {
            topology: &self.topology,
            kernels: &[kernel],
            ideal: &self.ideal,
            load: &self.load,
            allowed,
            asked: true,
            tasks,
            cpus_per_task: 1,
            policy,
            smt,
            within: None,
            near: None,
            exclusive: None,
            launch: Launch::default(),
            can_apply: &[Form::Mask, Form::Split, Form::PerTask],
            single_cpus: false,
            kept: false,
            marks: Markable::Crowded,
            with_margin: false,
        });
        advice.unwrap().parts.len()
    }
}

/// Runs two things in turns and prints the median time of each, and how many times the second takes the first's.
fn pair<T, U>(what: &str, first: (&str, impl Fn() -> T), second: (&str, impl Fn() -> U)) {
    const ROUNDS: usize = 200;
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if wanted.is_some_and(|text| !what.contains(&text)) {
        return;
    }
    let micros = |run: &dyn Fn()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6
    };
    let (mut a, mut b) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        a.push(micros(&|| drop(black_box(first.1()))));
        b.push(micros(&|| drop(black_box(second.1()))));
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (a, b) = (median(&mut a), median(&mut b));
    println!("{what}: {} {a:.1} µs, {} {b:.1} µs, ratio {:.2}", first.0, second.0, b / a);
}
