//! What load balancing does afterwards: the published splits, and the situations that records show.

use crate::machines::{turin, xeon, zen3};
use berth_model::{
    Cpu, CpuSet,
    domains::Domains,
    load::{CpuLoad, Load},
    predict::{Burst, Effect, Host, MarkSeen, Settled, Settling, place, settle, worst_split},
    profile::{Profile, all},
    topology::{Processor, Shape, Topology},
};

fn set(text: &str) -> CpuSet {
    CpuSet::parse(text).unwrap()
}

/// The most lopsided split that load balancing lets stand, of 16 and of 20 tasks over two nodes of 40 CPUs.
#[test]
fn persistent_splits() {
    let topology = xeon();
    let split = |profile: &Profile, tasks: u32| {
        let domains = Domains::build(&topology, profile);
        let host = Host { topology: &topology, domains: &domains, profile, load: &Load::idle() };
        worst_split(host, topology.online(), tasks).map(|split| split.tasks)
    };
    let table: [(&str, [u32; 2], [u32; 2]); 13] = [
        ("v5.7", [8, 8], [10, 10]),
        ("v5.8", [8, 8], [10, 10]),
        ("v5.12", [9, 7], [10, 10]),
        ("v5.13", [9, 7], [10, 10]),
        ("v5.13-revert-c6f886546cb8", [9, 7], [10, 10]),
        ("tip-5.17-rc1", [9, 7], [10, 10]),
        ("v5.18", [10, 6], [12, 8]),
        ("v5.18rc4-baseline", [10, 6], [12, 8]),
        ("v5.18rc4-revert-c6f886546cb8", [10, 6], [12, 8]),
        ("v5.18rc4-this_series", [8, 8], [10, 10]),
        ("v6.0", [8, 8], [10, 10]),
        ("6.12.97+", [8, 8], [10, 10]),
        ("v6.19", [8, 8], [10, 10]),
    ];
    for (name, sixteen, twenty) in table {
        let profile = Profile::named(name).unwrap();
        assert_eq!(split(profile, 16).unwrap(), sixteen, "{name}");
        assert_eq!(split(profile, 20).unwrap(), twenty, "{name}");
    }
    // Every other profile lets some split stand too, and no task is lost in it. Of those that balance by load nothing is said.
    for profile in all() {
        let tasks = split(profile, 16).map(|tasks| tasks.iter().sum::<u32>());
        assert_eq!(tasks, profile.balance.tolerance().map(|_| 16), "{}", profile.name);
    }
}

/// Places a burst and lets it settle.
fn settled(
    topology: &Topology,
    profile: &str,
    allowed: &str,
    tasks: u32,
    origin: u16,
    load: &Load,
) -> (Settled, u32) {
    let profile = Profile::named(profile).unwrap();
    let domains = Domains::build(topology, profile);
    let host = Host { topology, domains: &domains, profile, load };
    let allowed = set(allowed);
    let burst = Burst::forks(&allowed, tasks, Cpu::from(origin));
    let places = place(host, &burst);
    let before = burst.tally(host, &places).fullest;
    (settle(host, &burst, &places, Settling::default()), before)
}

/// Seed 000: nothing but the mark lets a task out of the crowd, one by one.
#[test]
fn the_crowd_on_dual_turin_stands_without_marks() {
    let topology = turin();
    let profile = Profile::named("v6.12").unwrap();
    let domains = Domains::build(&topology, profile);
    let load = Load::idle();
    let host = Host { topology: &topology, domains: &domains, profile, load: &load };
    let allowed = set("0-175");
    let burst = Burst::forks(&allowed, 176, Cpu::from(0));
    let places = place(host, &burst);
    let never = Settling { marks: MarkSeen::Never, ..Settling::default() };
    let stands = settle(host, &burst, &places, never);
    assert_eq!((stands.effect, stands.tally.tasks_on.len()), (Effect::LetsStand, 32));
    let leaks = settle(host, &burst, &places, Settling::default());
    assert!(leaks.tally.tasks_on.len() > 32 && leaks.tally.pile_up, "{:?}", leaks.effect);
    // With the fix there is nothing to mend.
    let (fixed, before) = settled(&topology, "6.12.97+", "0-175", 176, 0, &load);
    assert_eq!((before, fixed.effect, fixed.moves), (1, Effect::NothingToDo, 0));
}

/// A crowd inside one LLC is evened out within milliseconds; over NUMA nodes it takes as long as their levels' intervals.
#[test]
fn a_crowd_that_may_move_is_repaired_in_the_time_of_its_level() {
    let topology = zen3(1);
    let profile = Profile::named("v6.12").unwrap();
    let domains = Domains::build(&topology, profile);
    let load = Load::idle();
    let host = Host { topology: &topology, domains: &domains, profile, load: &load };
    let after = |allowed: &str, places: &str| {
        let allowed = set(allowed);
        let places: Vec<Cpu> = places.split(' ').map(|cpu| Cpu::from(cpu.parse::<u16>().unwrap())).collect();
        let burst = Burst::forks(&allowed, u32::try_from(places.len()).unwrap(), Cpu::from(0));
        settle(host, &burst, &places, Settling::default())
    };
    let near = after("0-7", "0 0 0 0");
    let (least, most) = near.takes_ms.unwrap();
    assert_eq!((near.effect, near.tally.fullest), (Effect::Repairs, 1));
    assert!(least <= 64 && most == 2 * least, "{least} {most}");
    let far = after("0-127", "0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7");
    assert_eq!(far.effect, Effect::Repairs, "{far:?}");
    // One allowed CPU in all: nothing can move.
    let alone = after("5", "5 5 5");
    assert_eq!((alone.effect, alone.moves, alone.takes_ms), (Effect::NothingToDo, 0, None));
}

/// `random-0` of the records: where no CPU is idle, each balances once in sixteen intervals, and nothing moves before.
#[test]
fn busy_cpus_balance_rarely() {
    let topology = Shape { packages: 2, cores: 16, ..Shape::default() }.topology().unwrap();
    let profile = Profile::named("6.1.178+").unwrap();
    let domains = Domains::build(&topology, profile);
    let load = Load::idle();
    let host = Host { topology: &topology, domains: &domains, profile, load: &load };
    let allowed = set("0-15");
    let places: Vec<Cpu> = (0..16).chain([0, 0, 1, 2, 3, 4, 5, 6]).map(Cpu::from).collect();
    let burst = Burst::forks(&allowed, 24, Cpu::from(0));
    let after = |horizon_ms| settle(host, &burst, &places, Settling { horizon_ms, ..Settling::default() });
    assert_eq!((after(255).effect, after(255).moves), (Effect::LetsStand, 0));
    assert_eq!((after(256).effect, after(256).tally.fullest), (Effect::Repairs, 2));
}

/// `stress-double` of the records: package 1 has two allowed CPUs, and evening out tasks per package crowds them.
#[test]
fn evening_out_packages_crowds_the_few_allowed_cpus_of_one() {
    let processor = Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) };
    let shape = Shape { packages: 2, nodes: 2, llcs: 2, cores: 2, far: 30, processor, ..Shape::default() };
    let topology = shape.topology().unwrap();
    let (after, before) = settled(&topology, "6.1.178+", "0-7,8-9", 20, 0, &Load::idle());
    let on_one: u32 =
        after.tally.tasks_on.iter().filter(|(cpu, _)| cpu.index() >= 8).map(|(_, tasks)| tasks).sum();
    assert!(on_one >= 9, "{:?}", after.tally.tasks_on);
    assert!(after.fullest_most > before, "{before} {after:?}");
    assert!(matches!(after.effect, Effect::MakesWorse | Effect::PingPongs), "{:?}", after.effect);
}

/// What else runs stays, and counts.
#[test]
fn others_are_left_where_they_are() {
    let topology = zen3(1);
    let mut load = Load::idle();
    load.set(Cpu::from(3), CpuLoad { runnable: 2, utilisation: None });
    let (after, _) = settled(&topology, "v6.12", "0-7", 4, 0, &load);
    assert_eq!(after.places.len(), 4);
    assert!(!after.places.contains(&Cpu::from(3)), "{:?}", after.places);
}
