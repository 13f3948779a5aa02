//! Vector 7.2, ascending default: eight STREAM threads from CPU 16, with equally idle CPUs taken from the lowest number up.

use crate::{
    bursts::{Bench, STREAM, cpus, threads},
    machines::zen3,
};

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
    let allowed = cpus(STREAM);
    for (profile, row) in table {
        for (nodes, expected) in [1, 2, 4].into_iter().zip(row) {
            let bench = Bench::named(&zen3(nodes), profile);
            let places = bench.places(&threads(&allowed, 8, 16));
            let children: Vec<String> = places[1..].iter().map(ToString::to_string).collect();
            assert_eq!(children.join(" "), *expected, "{profile} NPS{nodes}");
        }
    }
}
