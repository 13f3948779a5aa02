//! What an answer rests on, to the wire, with what to know of it.

use super::{Failure, Faults, Warnings, cpus, load, time};
use crate::snapshot::{Machine, Snapshot};
use berth_model::{cpuset::CpuSet, profile::RECLAIM_DISTANCE};
use berth_proto::v1;
use std::time::Duration;

/// What the answer rests on.
pub(crate) fn to_wire(snapshot: &Snapshot) -> v1::Snapshot {
    let measured = snapshot.load.measured();
    v1::Snapshot {
        topology_generation: snapshot.topology_generation,
        holds_generation: snapshot.holds.generation(),
        load_generation: measured.map_or(0, |load| load.generation),
        load_taken_at: measured.map(|load| time::moment_to_wire(load.taken_at)),
        load_age: measured.map(|load| time::duration_to_wire(load.age)),
        load_stale: measured.is_some_and(|load| load.stale),
        boot_id: snapshot.here.as_ref().map(|here| here.kernel.boot_id.clone()).unwrap_or_default(),
    }
}

/// What the caller demands of the snapshot. The default: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Expected {
    topology_generation: u64,
    holds_generation: u64,
    max_load_age: Option<Duration>,
}

impl Expected {
    pub(crate) fn from_wire(expect: Option<v1::Expect>, faults: &mut Faults) -> Self {
        let Some(v1::Expect { topology_generation, holds_generation, max_load_age }) = expect else {
            return Self::default();
        };
        let max_load_age =
            max_load_age.and_then(|age| faults.take("expect.max_load_age", time::duration_from_wire(age)));
        Self { topology_generation, holds_generation, max_load_age }
    }

    /// Holds a snapshot against it.
    ///
    /// # Errors
    ///
    /// If a generation has moved, or the load is too old.
    pub(crate) fn is_met(self, snapshot: &Snapshot) -> Result<(), Failure> {
        let generations = [
            ("topology", self.topology_generation, snapshot.topology_generation),
            ("holds", self.holds_generation, snapshot.holds.generation()),
        ];
        for (what, expected, now) in generations {
            if expected != 0 && expected != now {
                return Err(Failure::Moved { what, expected, now });
            }
        }
        let Some(most) = self.max_load_age else { return Ok(()) };
        match snapshot.load.measured().map(|load| load.age) {
            Some(age) if age <= most => Ok(()),
            age => Err(Failure::LoadTooOld { age, most }),
        }
    }
}

/// What every answer about a placement on these CPUs has to say of the host behind it.
pub(crate) fn warn(snapshot: &Snapshot, cpus: &CpuSet, warnings: &mut Warnings) {
    warn_of_hardware(snapshot, warnings);
    load::warn(snapshot, cpus, warnings);
    load::warn_of_crowd(snapshot, warnings);
    warn_of_cover(snapshot, warnings);
}

/// What the model does not cover of the host.
pub(crate) fn warn_of_cover(snapshot: &Snapshot, warnings: &mut Warnings) {
    let topology = &snapshot.machine.topology;
    if topology.asymmetric_capacity() {
        let said = "The cores differ in capacity, which the model does not cover: no verdict is given.";
        warnings.add("ASYMMETRIC_CAPACITY", said);
    }
    if let Some(here) = &snapshot.here
        && here.settings.is_foreign_scheduler()
    {
        let name = here.settings.sched_ext.clone().unwrap_or_default();
        let said = format!(
            "The sched_ext scheduler {name} is in charge, which the model does not cover: no verdict is given."
        );
        warnings.add("SCHED_EXT", said);
    }
    if is_divided(&snapshot.machine) {
        let said = "Cpuset partitions divide the host into parts with scheduling domains of their own, which cannot be told apart: no verdict is given.";
        warnings.add("PARTITIONED", said);
    }
}

/// Whether some CPUs are balanced apart from others in a way that the model does not know of.
fn is_divided(machine: &Machine) -> bool {
    let topology = &machine.topology;
    let balanced = topology.online().difference(topology.isolated());
    let mut parts = machine.facts.partitions.iter().filter(|part| !part.isolated);
    topology.partitions().is_empty() && parts.any(|part| !balanced.is_subset(&part.cpus))
}

/// What keeps verdicts of a host from being sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ground {
    /// The model covers the host. If not, there is no verdict at all.
    pub(crate) covered: bool,
    /// Why nothing is called safe that would be on a host where only that runs which is known of; `None` if it may be.
    pub(crate) load_doubt: Option<LoadDoubt>,
    /// How the load is known on which something is called safe.
    pub(crate) load_taken: LoadTaken,
}

/// How the load of the moment is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadTaken {
    /// Tasks were counted, or are given.
    Counted,
    /// Tasks are estimated from how busy CPUs were.
    Estimated,
    /// Nobody tells what runs on a host that is only described: nothing is taken to.
    Idle,
}

/// Why the load of the moment is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadDoubt {
    /// No sample tells it of some of the CPUs.
    Unknown,
    /// The last sample is too old.
    Stale,
}

impl LoadDoubt {
    /// The same by name, and in a sentence.
    pub(crate) fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Unknown => (
                "LOAD_UNKNOWN",
                "No run piles up with what is known to run, but what runs is not known of every CPU: not proven.",
            ),
            Self::Stale => (
                "LOAD_STALE",
                "No run piles up with what ran at the last sample, but that is too old to rely on: not proven.",
            ),
        }
    }
}

impl Ground {
    /// What there is to stand on for tasks on these CPUs.
    pub(crate) fn of(snapshot: &Snapshot, allowed: &CpuSet) -> Self {
        let covered = is_covered(snapshot);
        let load_doubt = match snapshot.load.measured() {
            _ if !snapshot.sampled || snapshot.load.is_given() => None,
            Some(measured) if measured.stale => Some(LoadDoubt::Stale),
            Some(measured) if allowed.is_subset(&measured.which(|on| on.runnable.is_some())) => None,
            _ => Some(LoadDoubt::Unknown),
        };
        let load_taken = match snapshot.load.measured() {
            Some(measured) if measured.is_estimated() => LoadTaken::Estimated,
            None if !snapshot.load.is_given() => LoadTaken::Idle,
            _ => LoadTaken::Counted,
        };
        Self { covered, load_doubt, load_taken }
    }

    /// The same for tasks with one CPU each, which go there under any scheduler.
    pub(crate) fn for_pinned(self) -> Self {
        Self { covered: true, ..self }
    }

    /// Whether a run of the model may be a proof.
    pub(crate) fn is_firm(self) -> bool {
        self.covered && self.load_doubt.is_none()
    }
}

/// Whether the model covers the host at all.
fn is_covered(snapshot: &Snapshot) -> bool {
    let foreign = snapshot.here.as_ref().is_some_and(|here| here.settings.is_foreign_scheduler());
    !foreign && !snapshot.machine.topology.asymmetric_capacity() && !is_divided(&snapshot.machine)
}

/// What is assumed of the hardware.
pub(crate) fn warn_of_hardware(snapshot: &Snapshot, warnings: &mut Warnings) {
    let topology = &snapshot.machine.topology;
    if topology.distances_assumed() && topology.cpu_nodes().len() > 1 {
        warnings.add("DISTANCES_ASSUMED", "The NUMA distances are not told: assumed as 10 and 20.");
    }
    let untold = &snapshot.machine.facts.nodes_without_distances;
    if !untold.is_empty() {
        let nodes: Vec<String> = untold.iter().map(u32::to_string).collect();
        let said =
            format!("The distances of NUMA nodes {} are not told: assumed as 10 and 20.", nodes.join(", "));
        warnings.add("DISTANCES_ASSUMED", said);
    }
    let processor = topology.processor();
    // Nothing depends on it where no distance is between the two limits.
    let nodes = topology.cpu_nodes();
    let decides = nodes.iter().any(|&a| nodes.iter().any(|&b| (31..=32).contains(&topology.distance(a, b))));
    if processor.is_epyc().is_none() && decides {
        let what = if processor.vendor.is_empty() { "vendor" } else { "family" };
        let said = format!(
            "The CPU {what} is not told: forks are assumed to spread up to a NUMA distance of {RECLAIM_DISTANCE}, which is wrong for an AMD CPU of family 23 or later. Give `host.cpu_vendor` and `host.cpu_family`."
        );
        warnings.add("CPU_VENDOR_ASSUMED", said);
    }
    if !topology.isolated().is_empty() {
        let isolated: &CpuSet = topology.isolated();
        let said = format!(
            "CPUs {} are isolated: they are cut off from load balancing, and used only where they are asked for.",
            cpus::shorten(isolated)
        );
        warnings.add_about("CPUS_ISOLATED", said, isolated);
    }
}
