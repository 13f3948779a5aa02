//! The load of this host, to the wire.

use super::{Warnings, cpus::shorten, time};
use crate::{
    ingest::load,
    snapshot::{Load, MARKS_LAST, Measured, OnCpu, Snapshot},
};
use berth_model::cpuset::CpuSet;
use berth_proto::v1::{self, cpu_load::Source};

/// From these shares of time on, what the model does not know of is told: time stolen by a hypervisor, time spent on
/// interrupts, time used by real-time and deadline tasks.
const STEAL: f64 = 0.05;
const IRQ: f64 = 0.2;
const REALTIME: f64 = 0.05;

/// What runs on these CPUs; pinned tasks only if it is to be `full`.
pub(crate) fn to_wire(snapshot: &Snapshot, cpus: &CpuSet, full: bool) -> v1::Load {
    let Some(measured) = snapshot.load.measured() else { return v1::Load::default() };
    let (counted, pinned) = (measured.counted.as_ref(), measured.pinned.as_ref());
    let groups = pinned.filter(|_| full).map(|pinned| pinned.groups.iter().map(group).collect());
    v1::Load {
        known: true,
        cpus: entries(measured, cpus),
        pinned: groups.unwrap_or_default(),
        taken_at: Some(time::moment_to_wire(measured.taken_at)),
        interval: measured.interval.map(time::duration_to_wire),
        runnable_source: source(measured.source()).into(),
        runnable_taken_at: Some(time::moment_to_wire(
            counted.map_or(measured.taken_at, |counted| counted.taken_at),
        )),
        pinned_taken_at: pinned.map(|pinned| time::moment_to_wire(pinned.taken_at)),
        cost: measured.cost,
    }
}

/// One entry for CPUs of equal numbers, in the order of their lowest CPU.
fn entries(measured: &Measured, cpus: &CpuSet) -> Vec<v1::CpuLoad> {
    let mut entries: Vec<(CpuSet, OnCpu)> = Vec::new();
    for (&cpu, on) in measured.cpus.iter().filter(|(cpu, _)| cpus.contains(**cpu)) {
        match entries.iter_mut().find(|(_, known)| known == on) {
            Some((alike, _)) => {
                alike.insert(cpu);
            }
            None => entries.push((cpu.into(), *on)),
        }
    }
    entries.into_iter().map(|(cpus, on)| entry(&cpus, &on)).collect()
}

fn entry(cpus: &CpuSet, on: &OnCpu) -> v1::CpuLoad {
    v1::CpuLoad {
        cpus: cpus.to_string(),
        runnable: on.runnable,
        utilisation: on.utilisation,
        steal: on.steal,
        irq: on.irq,
        rt: on.realtime,
        source: source(on.source).into(),
        taken_at: on.taken_at.map(time::moment_to_wire),
        ..v1::CpuLoad::default()
    }
}

fn group(group: &load::pinned::Group) -> v1::PinnedTasks {
    v1::PinnedTasks {
        allowed: group.allowed.to_string(),
        tasks: group.tasks,
        runnable: group.runnable,
        running_on: group.running_on.to_string(),
    }
}

fn source(source: load::Source) -> Source {
    match source {
        load::Source::Debug => Source::SchedDebug,
        load::Source::Threads => Source::TaskStates,
        load::Source::Estimate => Source::Estimated,
        load::Source::Reported => Source::Reported,
    }
}

/// What is to be known of the load on these CPUs.
pub(crate) fn warn(snapshot: &Snapshot, cpus: &CpuSet, warnings: &mut Warnings) {
    match &snapshot.load {
        Load::Given(_) => {}
        Load::Unknown if snapshot.here.is_some() => {
            warnings.add("LOAD_UNKNOWN", "What runs on this host is not known: taken as idle.");
        }
        Load::Unknown => {}
        Load::Measured(measured) => warn_of_measured(measured, cpus, warnings),
    }
}

/// What a launch may meet that is left of tasks that ran before.
pub(crate) fn warn_of_crowd(snapshot: &Snapshot, warnings: &mut Warnings) {
    let Some(crowd) = snapshot.load.measured().and_then(|measured| measured.crowd.as_ref()) else { return };
    let said = format!(
        "Pinned tasks waited for CPUs {} within the last {} s while others were idle. The kernel may have marked groups of CPUs as imbalanced then, and avoid them or leave them for no reason of load: every answer that such a mark would turn is given as the worse.",
        shorten(&crowd.cpus),
        MARKS_LAST.as_secs()
    );
    warnings.add_about("MARKS_LEFT", said, &crowd.cpus);
}

fn warn_of_measured(measured: &Measured, cpus: &CpuSet, warnings: &mut Warnings) {
    if measured.stale {
        let said = format!("The load is {} ms old, too old to rely on.", measured.age.as_millis());
        warnings.add("LOAD_STALE", said);
    }
    let untold = cpus.difference(&measured.which(|on| on.runnable.is_some()));
    if !untold.is_empty() {
        let said = format!("What runs on CPUs {} is not known: taken as idle.", shorten(&untold));
        warnings.add_about("LOAD_INCOMPLETE", said, &untold);
    }
    let estimated = measured.which(|on| on.source == load::Source::Estimate).intersection(cpus);
    if measured.source() == load::Source::Estimate {
        let said = "Runnable tasks are estimated: one on each CPU that was busy half of the time or more.";
        warnings.add("LOAD_ESTIMATED", said);
    } else if !estimated.is_empty() {
        let said = format!(
            "Runnable tasks of CPUs {} are estimated: how busy these are has changed since tasks were counted.",
            shorten(&estimated)
        );
        warnings.add_about("LOAD_ESTIMATED", said, &estimated);
    }
    let mut shares = |reason: &str, least: f64, share: fn(&OnCpu) -> Option<f64>, what: &str| {
        let much = measured.which(|on| share(on).is_some_and(|share| share >= least)).intersection(cpus);
        if !much.is_empty() {
            let percent = least * 100.0;
            let said = format!("On CPUs {} {what} {percent:.0} % of the time or more.", shorten(&much));
            warnings.add_about(reason, said, &much);
        }
    };
    shares("CPUS_STOLEN", STEAL, |on| on.steal, "a hypervisor ran something else");
    shares("CPUS_INTERRUPTED", IRQ, |on| on.irq, "interrupts took");
    shares(
        "CPUS_REALTIME",
        REALTIME,
        |on| on.realtime,
        "real-time tasks, which the model does not cover, ran",
    );
}
