//! What the server says of itself, to the wire.

use super::{MAX_REQUEST_BYTES, MAX_TASKS, count, time};
use crate::{
    config::Sections,
    ingest::{MAX_XML_BYTES, Settings, Source, kernel::Kernel},
    snapshot::{Here, Machine},
};
use berth_model::{advise::MAX_RUNS, cpuset::MAX_CPUS};
use berth_proto::v1;

/// The running kernel's own identification. Of a host that is described only its processor is told: this machine's kernel
/// is not its.
pub(crate) fn kernel_to_wire(here: &Here, machine: &Machine) -> v1::KernelIdentity {
    let processor = machine.topology.processor();
    let of_processor = v1::KernelIdentity {
        cpu_vendor: processor.vendor.clone(),
        cpu_family: processor.family.unwrap_or(0),
        ..v1::KernelIdentity::default()
    };
    if machine.facts.source != Source::Live {
        return of_processor;
    }
    let Kernel { identity, machine, cpu_model, .. } = &here.kernel;
    v1::KernelIdentity {
        release: identity.release.clone(),
        version: identity.version.clone().unwrap_or_default(),
        version_signature: identity.version_signature.clone().unwrap_or_default(),
        machine: machine.clone(),
        cpu_model: cpu_model.clone(),
        ..of_processor
    }
}

pub(crate) fn settings_to_wire(settings: &Settings) -> v1::KernelSettings {
    v1::KernelSettings {
        numa_balancing: settings.numa_balancing,
        autogroup: settings.autogroup,
        features: settings.features.clone(),
        isolcpus: settings.isolcpus.clone(),
        nohz_full: settings.nohz_full.clone(),
        sched_ext: settings.sched_ext.clone(),
        core_scheduling: settings.core_scheduling,
        cpuset_version: settings.cpuset_version,
        smt_control: settings.smt_control.clone(),
        hz: settings.hz,
    }
}

/// The limits that requests are held to.
pub(crate) fn limits(settings: &Sections, online: usize) -> v1::Limits {
    v1::Limits {
        tasks: MAX_TASKS,
        cpus: MAX_CPUS,
        xml_bytes: count(MAX_XML_BYTES),
        request_bytes: count(MAX_REQUEST_BYTES),
        deadline: Some(time::duration_to_wire(settings.limits.deadline)),
        proof_runs: MAX_RUNS,
        holds_per_uid: settings.holds.max_holds,
        hold_ttl: Some(time::duration_to_wire(settings.holds.max_hold_ttl)),
        exclusive_cpus_per_uid: count(settings.holds.quotas().exclusive_cpus(online)),
    }
}
