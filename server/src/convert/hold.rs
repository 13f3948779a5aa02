//! A hold, to the wire.

use super::{cpus, time, topology::nodes_of};
use crate::{ledger::by_wall_clock, snapshot::Snapshot};
use berth_model::{
    cpuset::CpuSet,
    hold::{Book, End, Hold, Id, Mode, Owner},
};
use berth_proto::v1::{self, hold, owner};

/// A hold, as it is in the snapshot's book.
pub(crate) fn to_wire(hold: &Hold, snapshot: &Snapshot) -> v1::Hold {
    let violations = violations(hold, &snapshot.holds);
    let state = match (hold.ended.is_some(), violations.is_empty()) {
        (true, _) => hold::State::Ended,
        (false, true) => hold::State::Active,
        (false, false) => hold::State::Violated,
    };
    let cpus = hold.cpus();
    let nodes = |cpus: &CpuSet| nodes_of(&snapshot.machine.topology, cpus);
    let mut first_task = 0u32;
    let parts = hold.parts.iter().map(|part| {
        let first = first_task;
        first_task = first_task.saturating_add(part.tasks());
        v1::HeldPart {
            cpus: part.cpus().to_string(),
            tasks: part.tasks(),
            first_task: first,
            memory_nodes: nodes(part.cpus()),
        }
    });
    v1::Hold {
        id: hold.id.to_string(),
        name: hold.name.clone(),
        uid: hold.uid.0,
        owner: owner_to_wire(&hold.owner),
        cpus: cpus.to_string(),
        memory_nodes: nodes(&cpus),
        tasks: hold.tasks(),
        parts: parts.collect(),
        mode: mode_to_wire(hold.mode).into(),
        state: state.into(),
        end: hold.ended.map_or(hold::End::NotEnded, |ended| end_to_wire(ended.why)).into(),
        violations,
        claim: hold.claim.as_ref().map(Id::to_string).unwrap_or_default(),
        foreign: hold.foreign,
        keep: hold.keep,
        tasks_seen: hold.tasks_seen,
        created_at: Some(time::moment_to_wire(by_wall_clock(hold.created_at))),
        expires_at: hold.expiry.map(|expiry| time::moment_to_wire(by_wall_clock(expiry.at))),
        request_id: hold.request_id.clone(),
        labels: hold.labels.clone(),
        generation: hold.generation,
    }
}

fn owner_to_wire(owner: &Owner) -> Option<v1::Owner> {
    let owner = match owner {
        Owner::Lease => return None,
        Owner::Process(process) => {
            owner::Owner::Process(v1::Process { pid: process.pid, start_time: process.start_time })
        }
        Owner::Cgroup(path) => owner::Owner::Cgroup(path.clone()),
    };
    Some(v1::Owner { owner: Some(owner) })
}

fn mode_to_wire(mode: Mode) -> hold::Mode {
    match mode {
        Mode::Shared => hold::Mode::Shared,
        Mode::Exclusive => hold::Mode::Exclusive,
    }
}

fn end_to_wire(end: End) -> hold::End {
    match end {
        End::Released => hold::End::Released,
        End::ProcessDied => hold::End::ProcessDied,
        End::CgroupEmpty => hold::End::CgroupEmpty,
        End::Expired => hold::End::Expired,
        End::TasksSeen => hold::End::TasksSeen,
        End::ClaimEnded => hold::End::ClaimEnded,
        End::Rebooted => hold::End::Rebooted,
    }
}

/// What is violated of a hold, a sentence each. Whose the other holds are is not told.
fn violations(hold: &Hold, book: &Book) -> Vec<String> {
    let mut violations = Vec::new();
    if !hold.missing.is_empty() && hold.ended.is_none() {
        violations.push(format!("The host does not have CPUs {} now.", cpus::shorten(&hold.missing)));
    }
    let others = book.intruders_of(hold).fold(CpuSet::new(), |all, other| all.union(&other.cpus()));
    if !others.is_empty() {
        let shared = cpus::shorten(&hold.cpus().intersection(&others));
        violations.push(format!("Another holder is on CPUs {shared}, which are this hold's alone."));
    }
    violations
}

/// Why a hold ended, in words.
pub(crate) fn why(end: End) -> &'static str {
    match end {
        End::Released => "it was released",
        End::ProcessDied => "its process died",
        End::CgroupEmpty => "its cgroup is empty",
        End::Expired => "it expired",
        End::TasksSeen => "its tasks were seen running",
        End::ClaimEnded => "its claim ended",
        End::Rebooted => "the host was booted anew",
    }
}
