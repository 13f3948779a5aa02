//! What another agent reports of the load, from the wire.

use super::{Failure, Faults, cpus, time, unserved::Unserved};
use crate::{
    ingest::load::Source,
    snapshot::{
        OnCpu, Snapshot,
        reports::{MAX_AGE, Report},
    },
};
use berth_model::cpuset::CpuSet;
use berth_proto::v1;
use std::{collections::BTreeMap, time::Instant};

/// The longest name of an agent.
const MAX_NAME: usize = 128;

/// One message. `agent` is the name that the stream has given so far. Nothing if it is too old to be of use.
///
/// # Errors
///
/// If something in it cannot be taken.
pub(crate) fn from_wire(
    request: v1::ReportLoadRequest,
    agent: &mut String,
    snapshot: &Snapshot,
) -> Result<Option<Report>, Failure> {
    let v1::ReportLoadRequest { agent: name, age, cpus: loads } = request;
    unserved(&loads)?;
    let mut faults = Faults::default();
    if name.len() > MAX_NAME {
        faults.add("agent", format!("it has {} bytes; expected at most {MAX_NAME}", name.len()));
    } else if name.is_empty() && agent.is_empty() {
        faults.add("agent", "no name is given; expected one in the first message of a stream");
    } else if !name.is_empty() && *agent != name {
        tracing::info!(agent = name, "reports the load");
        *agent = name;
    }
    let age = age.and_then(|age| faults.take("age", time::duration_from_wire(age))).unwrap_or_default();
    let mut cpus = BTreeMap::new();
    let mut seen = CpuSet::new();
    for (i, load) in loads.iter().enumerate() {
        if faults.are_many() {
            break;
        }
        let named = named(i, load, &seen, snapshot, &mut faults);
        seen.extend_from(&named);
        let on = on_each(load);
        cpus.extend(named.intersection(snapshot.machine.topology.online()).iter().map(|cpu| (cpu, on)));
    }
    faults.none()?;
    // An agent may have been started before this host was.
    let at = Instant::now().checked_sub(age).filter(|_| age <= MAX_AGE);
    Ok(at.map(|at| Report { cpus, at }))
}

fn unserved(loads: &[v1::CpuLoad]) -> Result<(), Failure> {
    let mut unserved = Unserved::default();
    let mut first = |name: &str, is_set: fn(&v1::CpuLoad) -> bool| {
        let entry = loads.iter().position(is_set);
        unserved.field(format!("cpus[{}].{name}", entry.unwrap_or_default()), entry.is_some());
    };
    first("load_avg", |load| load.load_avg.is_some());
    first("util_avg", |load| load.util_avg.is_some());
    first("runnable_avg", |load| load.runnable_avg.is_some());
    unserved.none()
}

/// The CPUs of an entry, none if they are at fault.
fn named(i: usize, load: &v1::CpuLoad, seen: &CpuSet, snapshot: &Snapshot, faults: &mut Faults) -> CpuSet {
    let field = |name: &str| format!("cpus[{i}].{name}");
    if load.cpus.is_empty() {
        faults.add(field("cpus"), "no CPU is named; expected at least one, such as 0-15");
    }
    let named = cpus::set(&field("cpus"), &load.cpus, faults).unwrap_or_default();
    cpus::exist(&field("cpus"), &named, &snapshot.machine.topology, faults);
    let twice = named.intersection(seen);
    if !twice.is_empty() {
        let said = format!("CPUs {} are in an entry before it; expected each in one", cpus::shorten(&twice));
        faults.add(field("cpus"), said);
    }
    let shares =
        [("utilisation", load.utilisation), ("steal", load.steal), ("irq", load.irq), ("rt", load.rt)];
    for (name, share) in shares {
        if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
            faults.add(field(name), format!("{share} is no share; expected 0 to 1"));
        }
    }
    if let Some(runnable) = load.runnable.filter(|runnable| *runnable > super::MAX_TASKS) {
        let most = super::MAX_TASKS;
        faults.add(field("runnable"), format!("{runnable} tasks are too many; expected at most {most}"));
    }
    named
}

fn on_each(load: &v1::CpuLoad) -> OnCpu {
    OnCpu {
        runnable: load.runnable,
        source: Source::Reported,
        utilisation: load.utilisation,
        steal: load.steal,
        irq: load.irq,
        realtime: load.rt,
        taken_at: None,
    }
}
