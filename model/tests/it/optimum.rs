//! Every policy against every possible placement, on machines and masks small enough for it.

use crate::{
    bursts::Bench,
    strategies::{irregular, topology},
};
use berth_model::{
    Cpu, CpuSet,
    advise::{Error, Exclusive, Form, Kernel, Launch, Near, Policy, Request, Smt, Within, advise, objective},
    domains::Domains,
    load::{CpuLoad, Load},
    predict::Markable,
    profile::Profile,
    topology::{Description, Level, NodeDescription, PuDescription, Shape, Topology, Unit},
};
use proptest::{
    collection::vec,
    prelude::*,
    sample,
    test_runner::{TestCaseError, TestRunner},
};

/// Every way to put `tasks` on `cpus`, ascending.
fn every_placement(cpus: &[Cpu], tasks: u32) -> Vec<Vec<Cpu>> {
    if tasks == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (index, &cpu) in cpus.iter().enumerate() {
        for mut rest in every_placement(&cpus[index..], tasks - 1) {
            rest.insert(0, cpu);
            all.push(rest);
        }
    }
    all
}

/// A question, and what it is about.
struct Case<'a> {
    topology: &'a Topology,
    load: Load,
    allowed: &'a CpuSet,
    tasks: u32,
    cpus_per_task: u32,
    policy: Policy,
    smt: Smt,
    wishes: Wishes,
}

/// Where in the host the tasks should be.
#[derive(Debug, Clone, Copy, Default)]
struct Wishes {
    within: Option<Within>,
    near: Option<Cpu>,
    exclusive: Option<Exclusive>,
}

impl Case<'_> {
    /// Holds the answer against every placement, the numbers of the CPUs included. AUTO promises the first component only.
    /// Says whether there was an answer.
    fn check(&self) -> Result<bool, TestCaseError> {
        let Self { topology, allowed, tasks, cpus_per_task, policy, smt, wishes, .. } = *self;
        let Wishes { within, near, exclusive } = wishes;
        let near = near.map(|cpu| Near::cpu(topology, cpu).unwrap());
        let bench = Bench { load: self.load.clone(), ..Bench::named(topology, "v6.12") };
        let ideal = Domains::build(topology, Profile::ideal());
        let kernel = Kernel { profile: &bench.profile, domains: &bench.domains, symmetry: &bench.symmetry };
        let request = Request {
            topology,
            kernels: &[kernel],
            ideal: &ideal,
            load: &bench.load,
            allowed,
            asked: true,
            tasks,
            cpus_per_task,
            policy,
            smt,
            within,
            near: near.as_ref(),
            exclusive,
            launch: Launch::default(),
            can_apply: &[Form::PerTask],
            single_cpus: true,
            kept: false,
            marks: Markable::Crowded,
            with_margin: false,
        };
        let idle = |cpus: &CpuSet| cpus.iter().filter(|&cpu| bench.load.taken(cpu) == 0).count();
        let alone = |level: Level, cpu: Cpu| {
            let span = topology.span(level, cpu).unwrap();
            idle(span) == span.len()
        };
        let open: CpuSet = allowed
            .iter()
            .filter(|&cpu| smt != Smt::FullCores || alone(Level::Core, cpu))
            .filter(|&cpu| match exclusive {
                None => true,
                Some(Exclusive::Cpus) => bench.load.taken(cpu) == 0,
                Some(Exclusive::Units(level)) => alone(level, cpu),
                Some(Exclusive::Host) => idle(topology.online()) == topology.online().len(),
            })
            .collect();
        let count = (tasks * cpus_per_task) as usize;
        let part = |unit: &Unit| unit.cpus.intersection(&open);
        let fitting: Vec<CpuSet> = match within {
            Some(within) => topology.units(within.level).iter().map(part).collect(),
            None => vec![open.clone()],
        };
        let fitting: Vec<CpuSet> =
            fitting.into_iter().filter(|part| within.is_none() || idle(part) >= count).collect();
        let ours = match advise(&request) {
            Ok(ours) => ours,
            Err(Error::NoFreeCore { .. }) => {
                prop_assert!(smt == Smt::FullCores && open.is_empty());
                return Ok(false);
            }
            Err(Error::NotAlone { free, .. }) => {
                prop_assert!(exclusive.is_some() && free == open.len() && free < count);
                return Ok(false);
            }
            Err(Error::NotWithin { .. }) => {
                prop_assert!(within.unwrap().required && fitting.is_empty());
                return Ok(false);
            }
            Err(other) => return Err(TestCaseError::fail(format!("{other}"))),
        };
        prop_assert_eq!(ours.within_met, !fitting.is_empty());
        if !ours.optimal {
            prop_assert!(units_cross(topology, allowed), "not said to be optimal");
            return Ok(false);
        }
        let fitting = if fitting.is_empty() { vec![open] } else { fitting };
        let every = fitting.iter().flat_map(|part| {
            let cpus: Vec<Cpu> = part.iter().collect();
            every_placement(&cpus, tasks * cpus_per_task)
        });
        let best = every.map(|places| (objective(&request, &places), places)).min().unwrap();
        let mut placed: Vec<Cpu> = ours.parts.iter().flat_map(|part| part.placed.clone()).collect();
        placed.sort_unstable();
        let told = objective(&request, &placed);
        let depth = if policy == Policy::Auto { 1 } else { told.components.len() };
        prop_assert_eq!(
            &told.components[..depth],
            &best.0.components[..depth],
            "ours {:?}, best {:?}",
            placed,
            best.1
        );
        prop_assert_eq!(ours.objective, told);
        Ok(true)
    }
}

/// Whether two units have CPUs in common and neither is inside the other.
fn units_cross(topology: &Topology, allowed: &CpuSet) -> bool {
    let units = || Level::ALL.iter().flat_map(|&level| topology.units(level));
    let parts: Vec<CpuSet> = units().map(|unit| unit.cpus.intersection(allowed)).collect();
    let cross = |a: &CpuSet, b: &CpuSet| a.intersects(b) && !a.is_subset(b) && !b.is_subset(a);
    parts.iter().any(|a| parts.iter().any(|b| cross(a, b)))
}

/// Hosts of up to 24 CPUs on which each level has parts of any sizes, cores of up to four threads, LLCs wider than nodes,
/// and distances of a hierarchy or of none.
fn uneven() -> impl Strategy<Value = Topology> {
    let package = vec(vec(vec(1u32..=4, 1..=3), 1..=2), 1..=3);
    let host = vec((package, any::<bool>()), 1..=3);
    (host, 1u32..=3, vec(sample::select(vec![11u32, 12, 20, 32]), 64), any::<bool>(), any::<bool>()).prop_map(
        |(host, scale, distances, nested, interleaved)| {
            let mut pus: Vec<PuDescription> = Vec::new();
            let mut packages_of = Vec::new();
            let (mut node, mut llc, mut core) = (0, 0, 0);
            for (package, (nodes, shared)) in (0..).zip(&host) {
                for llcs in nodes {
                    if packages_of.len() == 8 {
                        break;
                    }
                    packages_of.push(package);
                    for cores in llcs {
                        for &threads in cores {
                            for _ in 0..threads.min(scale + 1) {
                                pus.push(PuDescription {
                                    cpu: Cpu::from(0),
                                    package,
                                    node,
                                    llc: if *shared { 1000 + package } else { llc },
                                    cluster: None,
                                    core,
                                    capacity: 0,
                                });
                            }
                            core += 1;
                        }
                        llc += 1;
                    }
                    node += 1;
                }
            }
            pus.truncate(24);
            let last = pus.last().unwrap().node;
            if interleaved {
                // First threads before second ones, as Linux numbers them.
                let mut seen = std::collections::HashMap::new();
                pus.sort_by_cached_key(|pu| {
                    let thread = seen.entry(pu.core).or_insert(0);
                    *thread += 1;
                    *thread
                });
            }
            for (pu, number) in pus.iter_mut().zip(0u16..) {
                pu.cpu = Cpu::from(number);
            }
            let nodes = usize::try_from(last).unwrap() + 1;
            let distance = |from: usize, to: usize| match (from == to, nested) {
                (true, _) => 10,
                (_, true) if packages_of[from] == packages_of[to] => 12,
                (_, true) => 32,
                _ => distances[from * 8 + to],
            };
            Topology::try_new(Description {
                pus,
                nodes: (0..=last).map(|id| NodeDescription { id, memory: None }).collect(),
                distances: Some(
                    (0..nodes).map(|from| (0..nodes).map(|to| distance(from, to)).collect()).collect(),
                ),
                ..Description::default()
            })
            .unwrap()
        },
    )
}

/// Some CPUs of any host, with what runs there: tasks, utilisation in tenths, and whether others hold it asleep.
fn crowded() -> impl Strategy<Value = (Topology, CpuSet, Load)> {
    let host = prop_oneof![topology(), irregular(), uneven(), uneven()];
    let some = (any::<sample::Index>(), 0u32..4, 0u8..4, 0u8..8);
    (host, vec(some, 1..=9), 0u8..3).prop_map(|(topology, some, quiet)| {
        let online: Vec<Cpu> = topology.usable().iter().collect();
        let (mut allowed, mut load) = (CpuSet::new(), Load::idle());
        for (index, runnable, tenths, held) in some {
            let cpu = *index.get(&online);
            allowed.insert(cpu);
            if quiet == 0 {
                continue;
            }
            let utilisation = Some(f32::from(tenths) / 10.0);
            load.set(cpu, CpuLoad { runnable: runnable.saturating_sub(1), utilisation });
            load.hold(cpu, u32::from(held == 0));
        }
        (topology, allowed, load)
    })
}

/// Wishes of which the place to be near to is still to be found on the host.
#[derive(Debug, Clone)]
struct AnyWishes {
    near: Option<sample::Index>,
    rest: Wishes,
}

/// Mostly none, or one of them.
fn wishes() -> impl Strategy<Value = AnyWishes> {
    let level = sample::select(Level::ALL.to_vec());
    let within = (level.clone(), any::<bool>()).prop_map(|(level, required)| Within { level, required });
    let exclusive =
        prop_oneof![Just(Exclusive::Cpus), level.prop_map(Exclusive::Units), Just(Exclusive::Host)];
    use proptest::option::weighted;
    (weighted(0.2, within), weighted(0.2, any::<sample::Index>()), weighted(0.1, exclusive)).prop_map(
        |(within, near, exclusive)| AnyWishes { near, rest: Wishes { within, near: None, exclusive } },
    )
}

/// Every policy, every choice about threads, any mask, any load, one CPU for each task or several.
#[test]
fn no_placement_is_better() {
    let cases = std::env::var("BERTH_CASES").map_or(600, |cases| cases.parse().unwrap());
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let tasks = sample::select(vec![(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (1, 2), (2, 2), (1, 3), (1, 4)]);
    let policy =
        sample::select(vec![Policy::Auto, Policy::Spread, Policy::Compact, Policy::Spread, Policy::Compact]);
    let smt = sample::select(vec![Smt::Avoid, Smt::Share, Smt::FullCores]);
    let answered = std::cell::Cell::new(0);
    let result = TestRunner::new(config).run(
        &(crowded(), tasks, policy, smt, wishes()),
        |((topology, allowed, load), (tasks, cpus_per_task), policy, smt, wishes)| {
            let allowed = &allowed;
            let wishes = Wishes {
                near: wishes.near.map(|index| *index.get(&topology.online().iter().collect::<Vec<_>>())),
                ..wishes.rest
            };
            let case = Case { topology: &topology, load, allowed, tasks, cpus_per_task, policy, smt, wishes };
            answered.set(answered.get() + u32::from(case.check()?));
            Ok(())
        },
    );
    result.unwrap();
    assert!(answered.get() * 3 > cases * 2, "{} of {cases} were answered", answered.get());
}

/// Rings, on which distances are those of no hierarchy.
#[test]
fn no_placement_is_better_where_distances_are_no_hierarchy() {
    let ring = |nodes: u32| {
        let mut host = Shape { packages: nodes, cores: 2, ..Shape::default() }.describe();
        let steps = |a: u32, b: u32| a.abs_diff(b).min(nodes - a.abs_diff(b));
        let row = |a: u32| (0..nodes).map(|b| 10 + 6 * steps(a, b)).collect();
        host.distances = Some((0..nodes).map(row).collect());
        Topology::try_new(host).unwrap()
    };
    for nodes in [4, 5, 6] {
        let topology = ring(nodes);
        for tasks in 1..=6 {
            let case = Case {
                topology: &topology,
                load: Load::idle(),
                allowed: topology.online(),
                tasks,
                cpus_per_task: 1,
                policy: Policy::Compact,
                smt: Smt::Avoid,
                wishes: Wishes::default(),
            };
            assert!(case.check().unwrap(), "{tasks} tasks on {nodes} nodes");
        }
    }
}
