//! Sets of CPUs, single CPUs and numbers of tasks, from the wire.

use super::{
    Faults, MAX_TASKS, Warnings,
    status::{Failure, Precondition},
};
use berth_model::{
    cpuset::{Cpu, CpuSet, MAX_CPUS},
    topology::Topology,
};

/// A set of CPUs; nothing for an empty text, which is "not given".
pub(crate) fn set(field: &str, text: &str, faults: &mut Faults) -> Option<CpuSet> {
    if text.is_empty() {
        return None;
    }
    let set = faults.take(field, CpuSet::parse(text))?;
    if set.is_empty() {
        let shown: String = text.chars().take(40).collect();
        faults.add(
            field,
            format!("`{shown}` names no CPU; expected at least one, such as 0-15, or leave it out"),
        );
        return None;
    }
    Some(set)
}

/// A single CPU.
pub(crate) fn cpu(field: &str, number: u32, faults: &mut Faults) -> Option<Cpu> {
    let cpu = Cpu::try_new(number);
    if cpu.is_none() {
        faults.add(field, format!("{number} is no CPU; expected a number below {MAX_CPUS}"));
    }
    cpu
}

/// A number of tasks that has to be given.
pub(crate) fn tasks(tasks: u32, faults: &mut Faults) -> u32 {
    if tasks == 0 {
        faults.add("tasks", format!("no tasks are asked for; expected 1 to {MAX_TASKS}"));
    } else if tasks > MAX_TASKS {
        faults.add("tasks", format!("{tasks} tasks are too many; expected 1 to {MAX_TASKS}"));
    }
    tasks
}

/// Notes the CPUs of a field that the host does not have. Says whether it has all.
pub(crate) fn exist(field: &str, cpus: &CpuSet, topology: &Topology, faults: &mut Faults) -> bool {
    let known = topology.online().union(topology.offline());
    let strangers = cpus.difference(&known);
    if !strangers.is_empty() {
        let shown = shorten(&strangers);
        faults.add(field, format!("CPUs {shown} do not exist on this host; expected some of {known}"));
    }
    strangers.is_empty()
}

/// The CPUs of a mask that are online. Those that are not are dropped with a warning.
///
/// # Errors
///
/// If none is.
pub(crate) fn online(
    field: &'static str,
    cpus: &CpuSet,
    topology: &Topology,
    warnings: &mut Warnings,
) -> Result<CpuSet, Failure> {
    let online = cpus.intersection(topology.online());
    let offline = cpus.difference(topology.online());
    if online.is_empty() {
        let cpus = shorten(&offline);
        return Err(Failure::Precondition(Precondition::CpusOffline { field, cpus }));
    }
    if !offline.is_empty() {
        let message = format!("CPUs {} of `{field}` are offline and were left out.", shorten(&offline));
        warnings.add_about("CPUS_OFFLINE", message, &offline);
    }
    let disallowed = online.intersection(topology.disallowed());
    if !disallowed.is_empty() {
        let message = format!(
            "CPUs {} of `{field}` are outside the cpuset that the host was read from; tasks of that cpuset cannot use them.",
            shorten(&disallowed)
        );
        warnings.add_about("CPUS_DISALLOWED", message, &disallowed);
    }
    Ok(online)
}

/// Fewer CPUs than tasks: some of them share one, however well they are placed.
pub(crate) fn warn_of_few(tasks: u32, each: u32, allowed: &CpuSet, warnings: &mut Warnings) {
    let cpus = super::count(allowed.len());
    if tasks.saturating_mul(each) > cpus {
        let have = if cpus == 1 { "CPU" } else { "CPUs" };
        let of = if each > 1 { format!(" of {each} CPUs") } else { String::new() };
        let said = format!("{tasks} tasks{of} have {cpus} {have}: some share one, wherever they are put.");
        warnings.add("FEWER_CPUS_THAN_TASKS", said);
    }
}

/// A set as it may stand in a sentence.
pub(crate) fn shorten(cpus: &CpuSet) -> String {
    const MOST: usize = 80;
    let text = cpus.to_string();
    match text.char_indices().take_while(|(at, _)| *at < MOST).filter(|(_, c)| *c == ',').last() {
        Some((at, _)) if text.len() > MOST => format!("{},… ({} in all)", &text[..at], cpus.len()),
        _ => text,
    }
}
