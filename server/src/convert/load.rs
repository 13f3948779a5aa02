//! The load of this host, to the wire.

use super::time;
use crate::snapshot::{Measured, Snapshot};
use berth_model::cpuset::CpuSet;
use berth_proto::v1::{self, cpu_load::Source};

/// What runs on these CPUs.
pub(crate) fn to_wire(snapshot: &Snapshot, cpus: &CpuSet) -> v1::Load {
    let Some(measured) = snapshot.load.measured() else { return v1::Load::default() };
    v1::Load {
        known: true,
        cpus: entries(measured, cpus),
        pinned: Vec::new(),
        taken_at: Some(time::moment_to_wire(measured.taken_at)),
        interval: Some(time::duration_to_wire(measured.interval)),
        runnable_source: Source::Estimated.into(),
        runnable_taken_at: Some(time::moment_to_wire(measured.taken_at)),
        pinned_taken_at: None,
        cost: None,
    }
}

/// One entry for CPUs of equal numbers, in the order of their lowest CPU.
fn entries(measured: &Measured, cpus: &CpuSet) -> Vec<v1::CpuLoad> {
    let mut entries: Vec<(CpuSet, v1::CpuLoad)> = Vec::new();
    for (&cpu, busy) in measured.busy.iter().filter(|(cpu, _)| cpus.contains(**cpu)) {
        let entry = v1::CpuLoad {
            runnable: Some(busy.estimate().runnable),
            utilisation: Some(busy.utilisation),
            steal: Some(busy.steal),
            irq: Some(busy.irq),
            source: Source::Estimated.into(),
            ..v1::CpuLoad::default()
        };
        match entries.iter_mut().find(|(_, known)| *known == entry) {
            Some((alike, _)) => {
                alike.insert(cpu);
            }
            None => entries.push((cpu.into(), entry)),
        }
    }
    entries.into_iter().map(|(cpus, entry)| v1::CpuLoad { cpus: cpus.to_string(), ..entry }).collect()
}
