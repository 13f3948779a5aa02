//! The corner cases of the specification, one test each.

use crate::{
    bursts::{Bench, cpu, cpus},
    hwloc::machine,
    machines::{xeon, zen3},
    oracle::Oracle,
    records,
};
use berth_model::{
    Cpu, CpuSet,
    domains::{Domains, Kind},
    predict::{Burst, Entry, place},
    profile::{self, Profile},
    topology::{Description, Level, NodeDescription, Processor, Shape, Topology},
};

fn intel() -> Processor {
    Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) }
}

fn changed(shape: &Shape, change: impl FnOnce(&mut Description)) -> Topology {
    let mut description = shape.describe();
    change(&mut description);
    Topology::try_new(description).unwrap()
}

/// Name and span of each of a CPU's domains.
fn levels(bench: &Bench, number: u32) -> Vec<String> {
    let named =
        |domain: berth_model::domains::Domain<'_>| format!("{} {}", domain.kind().name(), domain.span());
    bench.domains.of(cpu(number)).map(named).collect()
}

fn distinct(places: &[u32]) -> CpuSet {
    places.iter().map(|&place| cpu(place)).collect()
}

#[test]
fn offline_cpus_are_in_no_span_and_levels_of_one_cpu_vanish() {
    let shape = Shape { packages: 2, cores: 2, threads: 2, ..Shape::default() };
    let topology = changed(&shape, |host| {
        host.pus.retain(|pu| ![0, 5].contains(&pu.cpu.number()));
        host.offline = cpus("0,5");
    });
    let bench = Bench::named(&topology, "v6.12");
    // CPU 4 has lost its sibling 0, and CPU 1 its sibling 5: neither has an SMT level.
    assert_eq!(levels(&bench, 4), ["MC 1,4", "NUMA 1-4,6-7"]);
    assert_eq!(levels(&bench, 2), ["SMT 2,6", "MC 2-3,6-7", "NUMA 1-4,6-7"]);
    assert!(levels(&bench, 0).is_empty());
    let allowed = topology.online().clone();
    assert_eq!(distinct(&bench.places(&Burst::forks(&allowed, 5, cpu(4)))), cpus("1-3,6-7"));
}

#[test]
fn isolated_cpus_have_no_domains_and_only_the_fallback_finds_them() {
    let topology =
        changed(&Shape { packages: 2, cores: 4, ..Shape::default() }, |host| host.isolated = cpus("2-3"));
    for profile in profile::all() {
        let bench = Bench::new(&topology, profile);
        assert!(levels(&bench, 2).is_empty() && levels(&bench, 0)[0] == "MC 0-1", "{}", profile.name);
        // From such a CPU tasks stay; from others they never come to one while another is allowed.
        assert_eq!(bench.places(&Burst::forks(&cpus("2-3"), 3, cpu(3))), [3, 3, 3], "{}", profile.name);
        let spread = bench.places(&Burst::forks(&cpus("0-7"), 20, cpu(0)));
        assert!(!distinct(&spread).intersects(&cpus("2-3")), "{}: {spread:?}", profile.name);
        assert_eq!(bench.places(&Burst::forks(&cpus("2-3"), 2, cpu(7))), [2, 2], "{}", profile.name);
    }
}

#[test]
fn partitions_have_domains_of_their_own() {
    // Four of the eight LLCs of each package are in a partition, the rest of the host outside.
    let own = cpus("0-31,64-95,128-159,192-223");
    let whole = Bench::named(&zen3(1), "v6.12");
    let mut description = zen3(1).describe();
    description.partitions = vec![own.clone()];
    let parted = Bench::named(&Topology::try_new(description.clone()).unwrap(), "v6.12");
    let numa = |bench: &Bench, number: u32| {
        let top = bench.domains.of(cpu(number)).last().unwrap();
        (top.span().clone(), top.imb_numa_nr())
    };
    assert_eq!(numa(&whole, 0), (cpus("0-255"), 8));
    // Four LLCs in what is left of the first level above the LLC.
    assert_eq!(numa(&parted, 0), (own.clone(), 4));
    assert_eq!(numa(&parted, 32), (cpus("0-255").difference(&own), 4));
    let every = cpus("0-255");
    for (origin, inside) in [(0, true), (40, false)] {
        let places = distinct(&parted.places(&Burst::forks(&every, 100, cpu(origin))));
        assert_eq!((places.is_subset(&own), places.intersects(&own)), (inside, inside), "from {origin}");
    }
    // What may only run in another partition is put there by the fallback.
    assert_eq!(parted.places(&Burst::forks(&cpus("32-39"), 2, cpu(0))), [32, 32]);
    description.partitions.push(cpus("31-40"));
    let error = Topology::try_new(description).unwrap_err().to_string();
    assert_eq!(error, "CPUs 31 are in two partitions; expected each CPU in one at most");
}

/// Before v5.18 the distances of nodes without CPUs make levels too, which vanish again; v3 counts such nodes.
#[test]
fn memory_only_nodes() {
    let shape = Shape { packages: 2, cores: 20, threads: 2, far: 21, processor: intel(), ..Shape::default() };
    let topology = changed(&shape, |host| {
        host.nodes.extend([2, 3].map(|id| NodeDescription { id, memory: Some(1 << 30) }));
        let rows = [[10, 21, 17, 28], [21, 10, 28, 17], [17, 28, 10, 28], [28, 17, 28, 10]];
        host.distances = Some(rows.iter().map(|row| row.to_vec()).collect());
    });
    for name in ["v5.12", "v6.12", "mel-v3"] {
        let bench = Bench::named(&topology, name);
        assert_eq!(levels(&bench, 0)[2..], ["NUMA 0-79".to_owned()], "{name}");
    }
    let imb = |topology: &Topology| {
        let bench = Bench::named(topology, "mel-v3");
        bench.domains.of(cpu(0)).last().unwrap().imb_numa_nr()
    };
    // Half an LLC of 40 over two nodes, and over four.
    assert_eq!((imb(&xeon()), imb(&topology)), (10, 5));
    let bench = Bench::named(&topology, "v6.12");
    let every = topology.online().clone();
    assert_eq!(bench.split(Level::Node, &bench.places(&Burst::forks(&every, 20, cpu(0)))), [10, 10]);
    // A level of 17 that only memory-only nodes are at spans what the node below does.
    let kinds: Vec<Kind> = Bench::named(&topology, "v5.12").domains.of(cpu(0)).map(|d| d.kind()).collect();
    assert_eq!(kinds.last(), Some(&Kind::Numa { distance: 21 }));
}

#[test]
fn one_node_has_no_numa_level() {
    let topology = Shape { llcs: 2, cores: 4, threads: 2, ..Shape::default() }.topology().unwrap();
    for profile in profile::all() {
        let bench = Bench::new(&topology, profile);
        assert!(bench.domains.of(cpu(0)).all(|domain| !domain.flags().numa), "{}", profile.name);
        let places = bench.places(&Burst::forks(&cpus("0-15"), 15, cpu(0)));
        assert_eq!(
            bench.split(Level::Core, &places).iter().filter(|&&n| n == 0).count(),
            0,
            "{}",
            profile.name
        );
    }
}

/// Before the fix a core's idle sibling counts although the task may not run there; the core beside it, whose allowed
/// thread idles and whose other is busy, looks no better.
#[test]
fn smt_siblings_outside_the_mask_count_before_the_fix() {
    let topology = Shape { cores: 2, threads: 2, ..Shape::default() }.topology().unwrap();
    let allowed = cpus("0-1");
    for (profile, chosen) in [("v5.12", 0), ("v6.12", 0), ("v6.19", 1), ("6.1.178+", 1)] {
        let mut bench = Bench::named(&topology, profile);
        bench.load.add(cpu(3), 1);
        assert_eq!(bench.places(&Burst::forks(&allowed, 1, cpu(0))), [chosen], "{profile}");
    }
}

/// The fast model and the plain one agree on machines whose groups overlap, from every origin.
#[test]
fn overlapping_groups() {
    let ring = records::machines().into_iter().find(|machine| machine.topology.contains("ring")).unwrap();
    let machines = [
        ("SGI UV", machine("intel-sgi-uv-24s-24numa-384pu.xml"), true),
        // Seen from a cpuset with 5 of the 8 nodes, whose distances divide cleanly.
        ("Opteron", machine("amd-opteron-8s-cpuset-disallowed.xml"), false),
        ("four packages in a ring", ring.topology(), true),
    ];
    for (name, topology, overlaps) in &machines {
        let mut overlap = false;
        for profile in ["v5.4", "v5.12", "v6.12", "v6.19"] {
            let bench = Bench::named(topology, profile);
            overlap |= topology.online().iter().any(|cpu| {
                bench.domains.of(cpu).any(|d| d.groups().map(CpuSet::len).sum::<usize>() > d.span().len())
            });
            let step = topology.online().len().div_ceil(24);
            let allowed: CpuSet = topology.online().iter().step_by(3).collect();
            for origin in topology.online().iter().step_by(step) {
                let burst = Burst::forks(&allowed, 40, origin);
                let mut oracle = Oracle::new(&bench.topology, &bench.domains, &bench.profile, &bench.load);
                assert_eq!(
                    place(bench.host(), &burst),
                    oracle.place(&burst),
                    "{name} {profile} from {origin}"
                );
            }
        }
        assert_eq!(overlap, *overlaps, "{name}");
    }
}

#[test]
fn nothing_is_spread_beyond_the_distance_limit() {
    let epyc = Processor { vendor: "AuthenticAMD".to_owned(), family: Some(0x19) };
    let per_package = |far: u32, processor: &Processor, profile: &str, entry: Entry| {
        let shape = Shape { packages: 2, cores: 8, far, processor: processor.clone(), ..Shape::default() };
        let bench = Bench::named(&shape.topology().unwrap(), profile);
        let every = CpuSet::first_n(16);
        let burst = Burst { entry, ..Burst::forks(&every, 40, cpu(0)) };
        bench.split(Level::Package, &bench.places(&burst))
    };
    for entry in [Entry::Fork, Entry::Exec] {
        for profile in ["v5.3", "v5.7", "v5.18", "v6.12", "v6.19"] {
            assert_eq!(per_package(40, &epyc, profile, entry), [40, 0], "{profile}");
            assert_eq!(per_package(32, &intel(), profile, entry), [40, 0], "{profile}");
            assert_ne!(per_package(30, &intel(), profile, entry)[1], 0, "{profile}");
        }
        assert_eq!(per_package(32, &epyc, "v5.3", entry), [40, 0], "the limit was 30 there too");
        assert_ne!(per_package(32, &epyc, "v5.4", entry)[1], 0);
    }
}

/// Rows are taken as they are: CPUs on one node can have more levels than those on another.
#[test]
fn asymmetric_distances_give_nodes_levels_of_their_own() {
    let shape = Shape { packages: 3, cores: 2, processor: intel(), ..Shape::default() };
    let topology = changed(&shape, |host| {
        let rows = [[10, 16, 22], [22, 10, 22], [22, 16, 10]];
        host.distances = Some(rows.iter().map(|row| row.to_vec()).collect());
    });
    let bench = Bench::named(&topology, "v6.12");
    assert_eq!(levels(&bench, 0), ["MC 0-1", "NUMA 0-3", "NUMA 0-5"]);
    assert_eq!(levels(&bench, 2), ["MC 2-3", "NUMA 0-5"]);
    assert_eq!(levels(&bench, 4), ["MC 4-5", "NUMA 2-5", "NUMA 0-5"]);
    let every = cpus("0-5");
    for origin in 0..6 {
        let burst = Burst::forks(&every, 9, cpu(origin));
        let mut oracle = Oracle::new(&bench.topology, &bench.domains, &bench.profile, &bench.load);
        assert_eq!(place(bench.host(), &burst), oracle.place(&burst), "from {origin}");
    }
}

/// A distance that no kernel takes leaves the host without NUMA levels, so that nothing leaves the node.
#[test]
fn distances_out_of_range_leave_no_numa_level() {
    let shape = Shape { packages: 2, cores: 4, far: 9, ..Shape::default() };
    let bench = Bench::named(&shape.topology().unwrap(), "v6.12");
    assert_eq!(levels(&bench, 0), ["MC 0-3"]);
    assert_eq!(bench.split(Level::Node, &bench.places(&Burst::forks(&cpus("0-7"), 8, cpu(0)))), [8, 0]);
}

#[test]
fn hybrid_hosts_are_told_as_such() {
    let mut description = Shape { cores: 4, ..Shape::default() }.describe();
    assert!(!Topology::try_new(description.clone()).unwrap().asymmetric_capacity());
    description.pus[3].capacity = 1;
    assert!(Topology::try_new(description).unwrap().asymmetric_capacity());
}

#[test]
fn a_host_of_one_cpu() {
    let topology = Shape::default().topology().unwrap();
    for profile in profile::all() {
        let bench = Bench::new(&topology, profile);
        assert!(levels(&bench, 0).is_empty());
        let prediction = bench.predict(&Burst::forks(&cpus("0"), 3, cpu(0)));
        assert!(prediction.tasks.iter().all(|task| task.cpu == cpu(0) && task.determined.cpu));
        assert_eq!(
            (prediction.tally.fullest, prediction.tally.best, prediction.tally.pile_up),
            (3, 3, false)
        );
    }
}

/// The whole host in one LLC: the NUMA rules never come into it, whatever the profile.
#[test]
fn one_llc_is_filled_the_same_by_every_profile() {
    let topology = Shape { cores: 8, ..Shape::default() }.topology().unwrap();
    let places =
        |profile: &Profile| Bench::new(&topology, profile).places(&Burst::forks(&cpus("0-7"), 7, cpu(0)));
    for profile in profile::all() {
        assert_eq!(places(profile), [1, 2, 3, 4, 5, 6, 7], "{}", profile.name);
    }
    let numbers: Vec<Cpu> =
        Domains::build(&topology, Profile::ideal()).of(cpu(0)).flat_map(|d| d.span().iter()).collect();
    assert_eq!(numbers.len(), 8);
}
