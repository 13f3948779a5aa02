//! Eight STREAM threads pinned one per LLC, and sixteen unpinned ones, on two-socket EPYCs (kernel list, December 2021
//! to February 2022).

use crate::{
    bursts::{Bench, cpus, most, threads},
    machines::zen3,
};
use berth_model::topology::Level;

const EIGHT: &str = "0,16,32,48,64,80,96,112";

/// Per profile: package 0 / package 1 and the most on one CPU, under NPS1, NPS2 and NPS4.
#[test]
fn the_split_table_from_every_origin() {
    type Cell = (usize, usize, usize);
    let table: &[(&[&str], [Cell; 3])] = &[
        (
            &["v5.7", "v5.8", "v5.12", "v5.13", "v5.13-revert-c6f886546cb8", "tip-5.16-rc1", "tip-5.17-rc1"],
            [(8, 0, 5), (8, 0, 7), (8, 0, 8)],
        ),
        (&["mel-v3"], [(4, 4, 1), (4, 4, 1), (4, 4, 1)]),
        (&["mel-v4"], [(5, 3, 2), (8, 0, 5), (8, 0, 8)]),
        (&["mel-v4-ps"], [(4, 4, 1), (5, 3, 2), (5, 3, 3)]),
        (&["mel-v5"], [(7, 1, 4), (7, 1, 4), (4, 4, 1)]),
        (
            &["mel-v6", "v5.18", "v5.19", "v5.18rc4-baseline", "v5.18rc4-revert-c6f886546cb8"],
            [(8, 0, 5), (8, 0, 5), (5, 3, 2)],
        ),
        (&["mel-v5-prateek-v1", "mel-v6-prateek-v2"], [(4, 4, 1), (4, 4, 1), (4, 4, 1)]),
        (&["v5.18rc4-this_series"], [(6, 2, 3), (6, 2, 3), (5, 3, 2)]),
        (
            &["v6.0", "v6.1", "v6.6", "v6.12", "v6.18", "v6.19", "6.18.39+", "6.12.97+", "6.1.178+"],
            [(4, 4, 1), (4, 4, 1), (4, 4, 1)],
        ),
    ];
    let allowed = cpus(EIGHT);
    for (profiles, row) in table {
        for profile in *profiles {
            for (nodes, &(package_0, package_1, fullest)) in [1, 2, 4].into_iter().zip(row) {
                let bench = Bench::named(&zen3(nodes), profile);
                for origin in [0, 16, 32, 48] {
                    let places = bench.places(&threads(&allowed, 8, origin));
                    let split = bench.split(Level::Package, &places);
                    let found = (split[0], split[1], most(&places));
                    assert_eq!(
                        found,
                        (package_0, package_1, fullest),
                        "{profile} NPS{nodes} from {origin}: {places:?}"
                    );
                }
            }
        }
    }
}

/// With equally idle CPUs taken from the lowest number up, from CPU 16.
#[test]
fn the_ascending_default_cpu_for_cpu() {
    let table: &[(&str, [&str; 3])] = &[
        ("tip-5.17-rc1", ["32 48 0 16 16 16 16", "0 16 16 16 16 16 16", "16 16 16 16 16 16 16"]),
        ("mel-v5", ["32 48 0 16 16 16 64", "0 16 32 48 16 16 64", "32 48 64 80 96 0 112"]),
        ("mel-v6", ["32 48 0 16 16 16 16", "0 16 16 32 48 16 16", "16 32 48 64 80 96 0"]),
        ("v6.0", ["32 48 64 0 80 96 112", "0 32 64 48 80 96 112", "32 48 64 0 80 96 112"]),
        ("v6.12", ["32 48 64 0 80 96 112", "0 32 64 48 80 96 112", "32 48 64 0 80 96 112"]),
    ];
    let allowed = cpus(EIGHT);
    for (profile, row) in table {
        for (nodes, expected) in [1, 2, 4].into_iter().zip(row) {
            let bench = Bench::named(&zen3(nodes), profile);
            let places = bench.places(&threads(&allowed, 8, 16));
            let children: Vec<String> = places[1..].iter().map(ToString::to_string).collect();
            assert_eq!(children.join(" "), *expected, "{profile} NPS{nodes}");
        }
    }
}

/// Per profile: packages, LLCs used of 16, most in one LLC, under NPS1, NPS2 and NPS4.
#[test]
fn sixteen_unpinned() {
    type Cell = (usize, usize, usize, usize);
    let even: Cell = (8, 8, 16, 1);
    let table: &[(&str, [Cell; 3])] = &[
        ("tip-5.17-rc1", [(16, 0, 8, 2), (16, 0, 4, 4), (16, 0, 2, 8)]),
        ("mel-v3", [even; 3]),
        ("mel-v4", [even, (9, 7, 14, 2), (16, 0, 8, 5)]),
        ("mel-v4-ps", [even, even, (8, 8, 14, 2)]),
        ("mel-v5", [even; 3]),
        ("mel-v6", [even; 3]),
        ("v5.18", [even; 3]),
        ("v6.0", [even; 3]),
        ("v6.19", [even; 3]),
    ];
    for (profile, row) in table {
        for (nodes, &expected) in [1, 2, 4].into_iter().zip(row) {
            let bench = Bench::named(&zen3(nodes), profile);
            let places = bench.places(&threads(&bench.topology.online().clone(), 16, 0));
            let (packages, llcs) = (bench.split(Level::Package, &places), bench.split(Level::Llc, &places));
            let used = llcs.iter().filter(|&&n| n > 0).count();
            let found = (packages[0], packages[1], used, llcs.iter().copied().max().unwrap_or(0));
            assert_eq!(found, expected, "{profile} NPS{nodes}: {places:?}");
        }
    }
}
