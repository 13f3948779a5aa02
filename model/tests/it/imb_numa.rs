//! Every worked value of `imb_numa_nr` on the machines of the mailing-list reports.

use crate::machines::{turin, xeon, zen2, zen3};
use berth_model::{
    domains::{Domains, Kind},
    profile::{ImbNumaRule, Profile},
    topology::Topology,
};

fn values(topology: &Topology, rule: ImbNumaRule) -> Vec<u32> {
    let profile = Profile { imb_numa: rule, ..*Profile::named("v6.12").unwrap() };
    let domains = Domains::build(topology, &profile);
    let per_cpu = topology.online().iter().map(|cpu| {
        domains
            .of(cpu)
            .filter(|d| matches!(d.kind(), Kind::Numa { .. }))
            .map(|d| d.imb_numa_nr())
            .collect::<Vec<_>>()
    });
    let mut distinct: Vec<_> = per_cpu.collect();
    distinct.dedup();
    assert_eq!(distinct.len(), 1, "every CPU sees the same values");
    distinct.remove(0)
}

#[test]
fn every_cell_of_the_table() {
    use ImbNumaRule::{Llc12, Llc25, V3, V4, V4PreferSibling};
    let rules = [V3, V4, V4PreferSibling, Llc25, Llc12];
    let table: [(&str, Topology, [&[u32]; 5]); 7] = [
        ("Zen3 NPS1", zen3(1), [&[1], &[4], &[2], &[8], &[8]]),
        ("Zen3 NPS2", zen3(2), [&[1, 1], &[4, 8], &[2, 4], &[4, 8], &[4, 8]]),
        ("Zen3 NPS4", zen3(4), [&[1, 1], &[8, 16], &[2, 4], &[2, 4], &[2, 4]]),
        ("Zen2 NPS1", zen2(1), [&[1], &[4], &[2], &[16], &[16]]),
        ("Zen2 NPS2", zen2(2), [&[1, 1], &[4, 8], &[2, 4], &[8, 16], &[8, 16]]),
        ("Zen2 NPS4", zen2(4), [&[1, 1], &[8, 16], &[2, 4], &[4, 8], &[4, 8]]),
        ("Xeon 2x40", xeon(), [&[10], &[20], &[10], &[10], &[5]]),
    ];
    for (name, topology, row) in &table {
        for (rule, expected) in rules.iter().zip(row) {
            assert_eq!(values(topology, *rule), *expected, "{name}, {rule:?}");
        }
    }
    assert_eq!(values(&turin(), Llc25), [8, 16]);
    assert_eq!(values(&turin(), Llc12), [4, 8]);
}
