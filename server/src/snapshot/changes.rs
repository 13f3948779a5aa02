//! What changed from one generation of the hardware to the next, a sentence each.

use super::{Here, Machine};
use berth_model::cpuset::CpuSet;

/// The differences, those that matter most first. Empty if only details did.
pub(super) fn between(before: (&Machine, &Here), after: (&Machine, &Here)) -> Vec<String> {
    let mut changes = Vec::new();
    let (old, new) = (&before.0.topology, &after.0.topology);
    sets(&mut changes, old.online(), new.online(), "came online", "went offline");
    sets(
        &mut changes,
        old.isolated(),
        new.isolated(),
        "are cut off from load balancing",
        "are balanced again",
    );
    let (old_own, new_own) = (old.disallowed(), new.disallowed());
    sets(
        &mut changes,
        old_own,
        new_own,
        "are no longer in berthd's own cpuset",
        "are in berthd's own cpuset again",
    );
    if before.0.facts.partitions != after.0.facts.partitions {
        changes.push("Cpusets divide the host into other parts than before.".to_owned());
    }
    let (old, new) = (&before.1.settings, &after.1.settings);
    texts(&mut changes, "SMT is", &old.smt_control, &new.smt_control);
    if old.sched_ext != new.sched_ext {
        changes.push(match new.sched_ext.as_deref().unwrap_or_default() {
            "" => "The kernel's own scheduler is in charge again.".to_owned(),
            name => format!("The sched_ext scheduler {name} took charge."),
        });
    }
    if changes.is_empty() {
        changes.push("Caches, memory or kernel settings are told otherwise than before.".to_owned());
    }
    changes
}

fn sets(changes: &mut Vec<String>, old: &CpuSet, new: &CpuSet, came: &str, went: &str) {
    for (set, what) in [(new.difference(old), came), (old.difference(new), went)] {
        if !set.is_empty() {
            changes.push(format!("CPUs {set} {what}."));
        }
    }
}

fn texts(changes: &mut Vec<String>, what: &str, old: &Option<String>, new: &Option<String>) {
    if old != new {
        let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "not told".to_owned());
        changes.push(format!("{what} {} and was {}.", said(new), said(old)));
    }
}
