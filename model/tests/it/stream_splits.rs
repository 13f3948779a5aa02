//! Vector 7.2, splits: eight STREAM threads pinned one per second LLC of two-socket EPYCs (kernel list, December 2021 to
//! February 2022). The parent is one of the eight and forks the others.

use crate::{
    bursts::{Bench, STREAM, cpus, most, threads},
    machines::zen3,
};
use berth_model::topology::Level;

/// Per profile: package 0 / package 1 and the most on one CPU, under NPS1, NPS2 and NPS4.
#[test]
fn the_split_table_from_every_origin() {
    type Cell = (usize, usize, usize);
    let table: &[(&[&str], [Cell; 3])] = &[
        (&["v5.3"], [(8, 0, 2), (8, 0, 4), (8, 0, 8)]),
        (
            &[
                "v5.5",
                "v5.7",
                "v5.8",
                "v5.12",
                "v5.13",
                "v5.13-revert-c6f886546cb8",
                "tip-5.16-rc1",
                "tip-5.17-rc1",
            ],
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
    let allowed = cpus(STREAM);
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
