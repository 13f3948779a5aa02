//! Where tasks can wake.

use crate::machines::{turin, zen3};
use berth_model::{
    Cpu, CpuSet,
    domains::Domains,
    load::Load,
    predict::{Host, lone_cpus, wakes_on},
    profile::Profile,
    topology::{Processor, Shape, Topology},
};

fn set(text: &str) -> CpuSet {
    CpuSet::parse(text).unwrap()
}

fn with<T>(topology: &Topology, ask: impl Fn(Host<'_>) -> T) -> T {
    let profile = Profile::named("v6.12").unwrap();
    let domains = Domains::build(topology, profile);
    ask(Host { topology, domains: &domains, profile, load: &Load::idle() })
}

/// The search stays in the LLC of the CPU that was slept on, cut by the mask.
#[test]
fn a_task_wakes_in_its_llc() {
    let wakes = |allowed: &str, on: u16, wakers: &str| {
        with(&zen3(1), |host| wakes_on(host, &set(allowed), Cpu::from(on), &set(wakers)).to_string())
    };
    assert_eq!(wakes("0-255", 9, "9"), "8-15,136-143");
    assert_eq!(wakes("0-11", 9, "9"), "8-11");
    // A waker elsewhere draws it there too, where the mask allows that.
    assert_eq!(wakes("0-11", 9, "0"), "0-11");
    assert_eq!(wakes("8-11", 9, "0"), "8-11", "the waker's own CPU is forbidden");
    assert_eq!(wakes("8-11,64-71", 9, "70"), "8-11,64-71", "over packages: 32 is within the limit");
}

/// One allowed CPU in each LLC, as in the STREAM reports: waking undoes no pile-up.
#[test]
fn a_lone_cpu_of_an_llc_is_returned_to() {
    let stream = "0,16,32,48,64,80,96,112";
    with(&zen3(1), |host| {
        assert_eq!(lone_cpus(host, &set(stream)), set(stream));
        assert_eq!(wakes_on(host, &set(stream), Cpu::from(16), &CpuSet::new()), set("16"));
        assert!(lone_cpus(host, &set("0-255")).is_empty());
        assert_eq!(lone_cpus(host, &set("0-7,8")), set("8"));
    });
    // An LLC that is a node is cut there too.
    with(&turin(), |host| assert_eq!(lone_cpus(host, &set("0-16")), set("16")));
}

/// Beyond the distance limit no waker draws a task towards it.
#[test]
fn a_waker_beyond_the_limit_draws_nobody() {
    let processor = Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) };
    let far = Shape { packages: 2, cores: 4, far: 40, processor, ..Shape::default() }.topology().unwrap();
    with(&far, |host| assert_eq!(wakes_on(host, &set("0-7"), Cpu::from(1), &set("6")), set("0-3")));
}

/// An isolated CPU has no domains: a task that sleeps there wakes there.
#[test]
fn an_isolated_cpu_is_alone() {
    let mut description = zen3(1).describe();
    description.isolated = set("3");
    let topology = Topology::try_new(description).unwrap();
    with(&topology, |host| {
        assert_eq!(wakes_on(host, &set("0-7"), Cpu::from(3), &set("3")), set("3"));
        assert_eq!(wakes_on(host, &set("0-7"), Cpu::from(2), &set("2")), set("0-2,4-7"));
    });
}
