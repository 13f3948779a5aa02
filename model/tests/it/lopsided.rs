//! Masks that hold most of one package and little of another: the pile-up that 82d6e01a0699 mends.

use crate::{
    bursts::{Bench, cpu, cpus, most},
    machines::turin,
};
use berth_model::{
    load::CpuLoad,
    predict::{Burst, GAP, Parent, Weight, mark_outlook, outlooks},
    topology::{Level, Shape},
};

#[test]
fn turin_176_hogs_on_0_to_175() {
    let allowed = cpus("0-175");
    for (profile, split, busy) in [
        ("v6.12", [16, 160], 32),
        ("v6.18", [16, 160], 32),
        ("v6.19", [160, 16], 176),
        ("6.18.39+", [160, 16], 176),
        ("6.12.97+", [160, 16], 176),
        ("6.1.178+", [160, 16], 176),
    ] {
        let bench = Bench::named(&turin(), profile);
        for origin in [0, 17, 159, 160, 175] {
            let burst = Burst::forks(&allowed, 176, cpu(origin));
            let places = bench.places(&burst);
            let tally = bench.predict(&burst).tally;
            let name = format!("{profile} from {origin}");
            assert_eq!(bench.split(Level::Package, &places), split, "{name}");
            assert_eq!(tally.tasks_on.len(), busy, "{name}");
            assert!((tally.cpu_use - busy as f64 / 176.0).abs() < 1e-9, "{name}");
            assert_eq!(tally.pile_up, busy < 176, "{name}");
            assert_eq!(tally.idle_allowed.len(), 176 - busy, "{name}");
            // A parent that sleeps leaves one more idle CPU to be counted on its package.
            let asleep = bench.places(&Burst { parent: Parent::Sleeps, ..burst });
            let moved = bench.split(Level::Package, &asleep)[0].abs_diff(split[0]);
            assert!(moved <= 2, "{name}, parent asleep: {moved} tasks elsewhere");
        }
    }
}

/// 24.87 % was measured on 6.12.95: inside the range, whose floor is the burst in which no time passes.
#[test]
fn turin_has_a_range_that_holds_what_was_measured() {
    let bench = Bench::named(&turin(), "v6.12");
    let allowed = cpus("0-175");
    let burst = Burst { gap: GAP, parent_weight: Weight::Light, ..Burst::forks(&allowed, 176, cpu(0)) };
    let outlooks = outlooks(bench.host(), &bench.symmetry, &burst, vec![cpu(0).into()], 1 << 22);
    let shares: Vec<f64> = outlooks[0].runs().map(|run| run.tally.cpu_use).collect();
    let (least, most) =
        (shares.iter().copied().fold(1.0, f64::min), shares.iter().copied().fold(0.0, f64::max));
    assert!(least < 0.2487 && 0.2487 < most, "{least} to {most}");
    let percent = |share: f64| (share * 10_000.0).round() / 100.0;
    assert_eq!(percent(outlooks[0].frozen().tally.cpu_use), 18.18);
    assert_eq!(percent(outlooks[0].central.tally.cpu_use), 18.18);
    // Package 0 has 16 tasks before the first is crowded on package 1.
    let mark = mark_outlook(bench.host(), &burst).unwrap();
    assert_eq!(mark.group, cpus("160-319,480-639"));
    assert!((33..=64).contains(&mark.from_task), "{mark:?}");
    assert!(mark.expected_share > 0.1 && mark.expected_share < 0.5, "{mark:?}");
    // With the fix nothing is crowded, so nothing is marked.
    let fixed = Bench::named(&turin(), "6.12.97+");
    assert_eq!(mark_outlook(fixed.host(), &burst), None);
}

/// Each busy forbidden CPU on package 1 lets one more hog stay on package 0.
#[test]
fn turin_with_busy_forbidden_cpus() {
    let allowed = cpus("0-175");
    for (busy, use_percent) in [(0, 18.18), (4, 20.45), (8, 22.73), (12, 25.00), (16, 27.27)] {
        let mut bench = Bench::named(&turin(), "v6.12");
        for number in 176..176 + busy {
            bench.load.set(cpu(number), CpuLoad { runnable: 1, utilisation: None });
        }
        let tally = bench.predict(&Burst::forks(&allowed, 176, cpu(0))).tally;
        assert!((tally.cpu_use * 100.0 - use_percent).abs() < 0.005, "{busy} busy: {}", tally.cpu_use);
    }
}

/// The example of the fix: 16 CPUs in two nodes, 12 hogs on 0-11.
#[test]
fn two_nodes_of_eight() {
    let shape = Shape { packages: 2, cores: 8, ..Shape::default() };
    let allowed = cpus("0-11");
    for (profile, split, fullest) in [
        ("v5.12", [4, 8], 2),
        ("v5.19", [4, 8], 2),
        ("v6.12", [4, 8], 2),
        ("v6.18", [4, 8], 2),
        ("v6.19", [8, 4], 1),
        ("6.12.97+", [8, 4], 1),
    ] {
        let bench = Bench::named(&shape.topology().unwrap(), profile);
        for origin in [0, 8] {
            let places = bench.places(&Burst::forks(&allowed, 12, cpu(origin)));
            assert_eq!(bench.split(Level::Node, &places), split, "{profile} from {origin}: {places:?}");
            assert_eq!(most(&places), fullest, "{profile} from {origin}: {places:?}");
        }
    }
}
