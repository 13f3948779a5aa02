//! Vector 7.3: sixteen unpinned STREAM threads on two-socket EPYCs.

use crate::{
    bursts::{Bench, threads},
    machines::zen3,
};
use berth_model::topology::Level;

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
