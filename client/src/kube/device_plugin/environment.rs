//! What a container finds in its environment of the CPUs that it is bound to.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::CpuSet;

use super::device::Device;

/// The hold, by its id.
#[doc(alias = "BERTH_HOLD")]
pub(super) const HOLD: &str = "BERTH_HOLD";

/// Variables with CPU numbers, for a container that is bound to these devices' CPUs.
pub(super) fn of(devices: &[&Device]) -> BTreeMap<String, String> {
    let cpus = devices.iter().fold(CpuSet::new(), |all, device| all.union(&device.cpus()));
    let nodes: BTreeSet<u32> = devices.iter().flat_map(|device| device.place.nodes.iter().copied()).collect();
    let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
    let mut variables = BTreeMap::from([("BERTH_CPUS".to_owned(), cpus.to_string())]);
    if !nodes.is_empty() {
        variables.insert("BERTH_MEMORY_NODES".to_owned(), nodes.join(","));
    }
    // OpenMP binds its first thread too, and whatever that one starts stays there with it: where there is a choice of places, it
    // is not made here.
    if let (1, Some(cpu)) = (cpus.len(), cpus.first()) {
        variables.insert("OMP_PLACES".to_owned(), format!("{{{}}}", cpu.number()));
        variables.insert("OMP_PROC_BIND".to_owned(), "close".to_owned());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::{
        super::device::tests::{devices, host},
        *,
    };
    use crate::cli::DeviceKind;

    #[test]
    fn several_cpus_are_named_and_openmp_is_left_alone() {
        let devices = devices(DeviceKind::Cores, &host([2, 1, 1, 2]));
        let two: Vec<&Device> = ["core-1", "core-2"].iter().filter_map(|id| devices.get(id)).collect();
        let expected = [("BERTH_CPUS", "1-2,5-6"), ("BERTH_MEMORY_NODES", "0,1")];
        assert_eq!(
            of(&two),
            BTreeMap::from(expected.map(|(name, value)| (name.to_owned(), value.to_owned())))
        );
    }

    #[test]
    fn a_single_cpu_is_a_place() {
        let mut single = devices(DeviceKind::Cores, &host([1, 1, 1, 2])).get("core-1").unwrap().clone();
        single.cores = vec![CpuSet::parse("1").unwrap()];
        let variables = of(&[&single]);
        assert_eq!((&*variables["OMP_PLACES"], &*variables["OMP_PROC_BIND"]), ("{1}", "close"));
    }
}
