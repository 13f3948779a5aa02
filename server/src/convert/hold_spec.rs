//! What a new hold should be, from the wire.

use super::{Faults, predict::known_enum, time};
use berth_model::hold::{Id, Mode, New, Owner, Part, Process, Uid};
use berth_proto::v1::{self, hold, owner};
use std::{collections::BTreeMap, time::Duration};

/// The longest id of a request, name of a hold, key or value of a label.
const MAX_TEXT: usize = 256;
/// The most labels of one hold.
const MAX_LABELS: usize = 16;

/// The shortest time of a hold: about what an answer may take on a busy host.
const LEAST_TTL: Duration = Duration::from_millis(100);

/// How long holds last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ttl {
    /// Where nothing is said of an owner or a time.
    pub(crate) default: Duration,
    pub(crate) most: Duration,
}

/// What is known of processes and cgroups.
pub(crate) trait Known {
    /// The process that has this pid now.
    fn process(&self, pid: u32) -> Option<Process>;
    /// The process that asks, if it is one of this host.
    fn caller(&self) -> Option<Process>;
    /// Whether there is such a cgroup.
    fn has_cgroup(&self, path: &str) -> bool;
    /// Whether who asks may name the process as an owner.
    fn may_name(&self, process: Process) -> bool;
    /// Whether who asks may name the cgroup as an owner.
    fn may_name_cgroup(&self, path: &str) -> bool;
}

/// What a new hold should be, but for its CPUs.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) uid: Uid,
    pub(crate) request_id: String,
    pub(crate) mode: Mode,
    /// Id or name of the claim that it belongs to; empty for none.
    pub(crate) claim: String,
    pub(crate) name: String,
    owner: Owner,
    ttl: Option<Duration>,
    keep: bool,
    labels: BTreeMap<String, String>,
}

impl Spec {
    /// The hold of a user. `uid` is the one that the wire names, or the caller's.
    pub(crate) fn from_wire(
        spec: v1::HoldSpec,
        uid: u32,
        limits: Ttl,
        known: &impl Known,
        faults: &mut Faults,
    ) -> Self {
        known_enum("hold.mode", spec.mode, hold::Mode::try_from(spec.mode).is_ok(), faults);
        let mode = match spec.mode() {
            hold::Mode::Shared => Mode::Shared,
            hold::Mode::Exclusive => Mode::Exclusive,
        };
        is_short("hold.request_id", &spec.request_id, faults);
        is_short("hold.name", &spec.name, faults);
        is_short("hold.claim", &spec.claim, faults);
        if spec.name.parse::<Id>().is_ok() {
            let said = format!("`{}` is like an id; expected a name that is not, such as build-7", spec.name);
            faults.add("hold.name", said);
        }
        if spec.labels.len() > MAX_LABELS {
            faults.add("hold.labels", format!("{} labels; expected at most {MAX_LABELS}", spec.labels.len()));
        }
        for (key, value) in spec.labels.iter().take(MAX_LABELS) {
            is_short("hold.labels", key, faults);
            is_short("hold.labels", value, faults);
        }
        let is_given = spec.ttl.is_some();
        let given = spec.ttl.and_then(|ttl| ttl_from_wire("hold.ttl", ttl, limits.most, faults));
        let (owner, ttl, keep) = match spec.owner {
            None => {
                let ttl = given.unwrap_or(limits.default);
                (known.caller().map_or(Owner::Lease, Owner::Process), Some(ttl), spec.keep)
            }
            Some(owner) => {
                let owner = owner_from_wire("hold.owner", owner, known, faults).unwrap_or(Owner::Lease);
                if owner == Owner::Lease && !is_given && spec.claim.is_empty() {
                    faults.add("hold.ttl", "a lease has no owner to end with; expected a time, such as 60s");
                }
                (owner, given, true)
            }
        };
        Self {
            uid: Uid(uid),
            request_id: spec.request_id,
            mode,
            claim: spec.claim,
            name: spec.name,
            owner,
            ttl,
            keep,
            labels: spec.labels,
        }
    }

    /// The same with CPUs.
    pub(crate) fn with(&self, parts: Vec<Part>, claim: Option<Id>, before: u32, foreign: bool) -> New {
        New {
            uid: self.uid,
            name: self.name.clone(),
            owner: self.owner.clone(),
            parts,
            mode: self.mode,
            claim,
            foreign,
            keep: self.keep,
            ttl: self.ttl,
            before,
            request_id: self.request_id.clone(),
            labels: self.labels.clone(),
        }
    }
}

fn is_short(field: &str, text: &str, faults: &mut Faults) {
    if text.len() > MAX_TEXT {
        faults.add(field, format!("it has {} bytes; expected at most {MAX_TEXT}", text.len()));
    }
}

/// A time that a hold is given.
pub(crate) fn ttl_from_wire(
    field: &str,
    ttl: prost_types::Duration,
    most: Duration,
    faults: &mut Faults,
) -> Option<Duration> {
    let ttl = faults.take(field, time::duration_from_wire(ttl))?;
    if ttl < LEAST_TTL || ttl > most {
        let said =
            format!("{ttl:?} is no time for a hold; expected at least {LEAST_TTL:?}, at most {most:?}");
        faults.add(field, said);
        return None;
    }
    Some(ttl)
}

/// An owner that lives.
pub(crate) fn owner_from_wire(
    field: &str,
    owner: v1::Owner,
    known: &impl Known,
    faults: &mut Faults,
) -> Option<Owner> {
    match owner.owner {
        None => Some(Owner::Lease),
        Some(owner::Owner::Process(process)) => {
            process_from_wire(field, process, known, faults).map(Owner::Process)
        }
        Some(owner::Owner::Cgroup(path)) => {
            let field = format!("{field}.cgroup");
            if path.len() > 4096 || !known.has_cgroup(&path) {
                let shown: String = path.chars().take(80).collect();
                faults.add(
                    field,
                    format!("there is no cgroup `{shown}`; expected a path below the cgroup mount, such as /system.slice/a.service"),
                );
                return None;
            }
            if !known.may_name_cgroup(&path) {
                let said = "the cgroup is another user's, whose end is none of yours; expected one whose processes are all your own";
                faults.add(field, said);
                return None;
            }
            Some(Owner::Cgroup(path))
        }
    }
}

fn process_from_wire(
    field: &str,
    asked: v1::Process,
    known: &impl Known,
    faults: &mut Faults,
) -> Option<Process> {
    let found = if asked.pid == 0 { known.caller() } else { known.process(asked.pid) };
    let Some(found) = found else {
        let said = if asked.pid == 0 {
            "the calling process is not known here; expected a pid".to_owned()
        } else {
            format!("there is no process {}; expected one that runs", asked.pid)
        };
        faults.add(format!("{field}.process.pid"), said);
        return None;
    };
    if !known.may_name(found) {
        let said = format!(
            "process {} is another user's, whose end is none of yours; expected a process of your own, or the one that your session was started by",
            asked.pid
        );
        faults.add(format!("{field}.process.pid"), said);
        return None;
    }
    if asked.start_time != 0 && asked.start_time != found.start_time {
        faults.add(
            format!("{field}.process.start_time"),
            format!(
                "process {} was started at {} and not at {}: it is another one",
                found.pid, found.start_time, asked.start_time
            ),
        );
    }
    Some(found)
}
