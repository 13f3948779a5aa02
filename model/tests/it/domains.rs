//! Domains against those that running kernels had built, read from their memory.

use crate::records::machines;
use berth_model::{
    Cpu,
    domains::Domains,
    profile::{self, KernelIdentity},
};

/// One domain as both sides can print it: name, percentage, `imb_numa_nr`, span, groups in ring order.
type Row = (String, u32, u32, String, Vec<String>);

#[test]
fn every_cpu_of_every_recorded_machine_has_the_kernels_domains() {
    let mut compared = 0;
    for machine in machines() {
        let identity = KernelIdentity {
            release: machine.kernel.clone(),
            version: Some(machine.version.clone()),
            version_signature: None,
        };
        let candidates = profile::candidates(&identity).unwrap();
        let domains = Domains::build(&machine.topology(), candidates.profiles[0]);
        for (number, recorded) in (0u16..).zip(&machine.domains) {
            let ours: Vec<Row> = domains
                .of(Cpu::from(number))
                .map(|d| {
                    let groups = d.groups().map(ToString::to_string).collect();
                    (
                        d.kind().name().to_owned(),
                        d.imbalance_pct(),
                        d.imb_numa_nr(),
                        d.span().to_string(),
                        groups,
                    )
                })
                .collect();
            // The level named PKG was DIE before v6.7.
            let name = |name: &str| {
                if name == "DIE" { "PKG".to_owned() } else { name.to_owned() }
            };
            let theirs: Vec<Row> = recorded
                .iter()
                .map(|d| (name(&d.name), d.imbalance_pct, d.imb_numa_nr, d.span.clone(), d.groups.clone()))
                .collect();
            assert_eq!(ours, theirs, "{} {}, CPU {number}", machine.topology, machine.version);
            compared += theirs.len();
        }
    }
    assert!(compared > 2000, "only {compared} domains were compared");
}
