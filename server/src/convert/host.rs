//! The host that a question is about, from the wire.

use super::{Faults, Warnings, cpus, unserved::Unserved};
use crate::ingest::Hardware;
use berth_model::{
    cpuset::CpuSet,
    load::{self, Averages, CpuLoad},
    topology::Topology,
};
use berth_proto::v1::{self, host::Source as WireSource};

/// The longest vendor string that is taken.
const MAX_VENDOR: usize = 64;
/// Tasks that may be said to run on one CPU.
const MAX_RUNNABLE: u32 = super::MAX_TASKS;
/// The largest average of a run queue: 1024 for each of those.
const MAX_AVERAGE: u32 = load::MAX_RUNNABLE * 1024;
/// From this share of busy time on, a CPU of which no count is given runs one task.
const BUSY: f64 = 0.5;
/// Vendors that `/proc/cpuinfo` is known to name.
const VENDORS: [&str; 7] = [
    "GenuineIntel",
    "AuthenticAMD",
    "HygonGenuine",
    "CentaurHauls",
    "  Shanghai  ",
    "Shanghai",
    "GenuineTMx86",
];

/// The host that a question is about.
#[derive(Debug, Default)]
pub(crate) struct HostAsked {
    pub(crate) source: Source,
    pub(crate) load: LoadAsked,
    pub(crate) changes: Changes,
}

/// Where it is described.
#[derive(Debug, Default)]
pub(crate) enum Source {
    #[default]
    Here,
    Xml(String),
    Synthetic(String),
}

/// What runs on it.
#[derive(Debug, Default)]
pub(crate) enum LoadAsked {
    /// As it was measured, or nothing on another host.
    #[default]
    Measured,
    Idle,
    /// Per entry of the request.
    Given(Vec<GivenLoad>),
}

/// What is said to run on each of some CPUs.
#[derive(Debug)]
pub(crate) struct GivenLoad {
    cpus: CpuSet,
    load: CpuLoad,
    averages: Averages,
}

/// What is to be replaced of what is known of it.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) cpu_vendor: Option<String>,
    pub(crate) cpu_family: Option<u32>,
    isolated: Option<CpuSet>,
    partitions: Option<Vec<CpuSet>>,
    offline: Option<CpuSet>,
    distances: Option<Vec<u32>>,
}

impl Changes {
    pub(crate) fn are_none(&self) -> bool {
        let Self { cpu_vendor, cpu_family, isolated, partitions, offline, distances } = self;
        cpu_vendor.is_none()
            && cpu_family.is_none()
            && isolated.is_none()
            && partitions.is_none()
            && offline.is_none()
            && distances.is_none()
    }

    /// Makes them. CPUs and distances that the host cannot have are faults.
    pub(crate) fn make(&self, hardware: &mut Hardware, faults: &mut Faults) {
        let description = &mut hardware.description;
        if let Some(vendor) = &self.cpu_vendor {
            description.processor.vendor.clone_from(vendor);
        }
        if self.cpu_family.is_some() {
            description.processor.family = self.cpu_family;
        }
        let online: CpuSet = description.pus.iter().map(|pu| pu.cpu).collect();
        let known = online.union(&description.offline);
        let mut check = |field: &str, set: &CpuSet| {
            let strangers = set.difference(&known);
            if !strangers.is_empty() {
                let shown = cpus::shorten(&strangers);
                faults
                    .add(field, format!("CPUs {shown} do not exist on this host; expected some of {known}"));
            }
        };
        if let Some(isolated) = &self.isolated {
            check("host.isolated", isolated);
            description.isolated = isolated.clone();
        }
        if let Some(partitions) = &self.partitions {
            for (i, partition) in partitions.iter().enumerate() {
                check(&format!("host.partitions[{i}]"), partition);
            }
            description.partitions.clone_from(partitions);
        }
        if let Some(offline) = &self.offline {
            check("host.offline", offline);
            if online.is_subset(offline) {
                faults.add(
                    "host.offline",
                    format!("no CPU is left online; expected to leave some of {online}"),
                );
            } else {
                description.pus.retain(|pu| !offline.contains(pu.cpu));
                description.offline.extend_from(offline);
            }
        }
        if let Some(distances) = &self.distances {
            let nodes = description.nodes.len();
            if distances.len() == nodes * nodes {
                description.distances = Some(distances.chunks(nodes.max(1)).map(<[u32]>::to_vec).collect());
                hardware.facts.nodes_without_distances = Vec::new();
            } else {
                let (given, wanted) = (distances.len(), nodes * nodes);
                let said = format!(
                    "{given} distances are given; expected {wanted}, a row for each of {nodes} nodes"
                );
                faults.add("host.distances", said);
            }
        }
    }
}

/// The fields that are not served.
pub(crate) fn unserved(host: Option<&v1::Host>, unserved: &mut Unserved) {
    let Some(host) = host else { return };
    // The first entry with each: a list may be long.
    let mut first = |name: &str, is_set: fn(&v1::CpuLoad) -> bool| {
        let entry = host.load.iter().position(is_set);
        unserved.field(format!("host.load[{}].{name}", entry.unwrap_or_default()), entry.is_some());
    };
    first("steal", |load| load.steal.is_some());
    first("irq", |load| load.irq.is_some());
    first("rt", |load| load.rt.is_some());
}

/// The host that a request names.
pub(crate) fn from_wire(host: Option<v1::Host>, faults: &mut Faults, warnings: &mut Warnings) -> HostAsked {
    let Some(host) = host else { return HostAsked::default() };
    let load = match (host.idle, host.load.is_empty()) {
        (true, true) => LoadAsked::Idle,
        (false, true) => LoadAsked::Measured,
        (idle, false) => {
            if idle {
                faults.add("host.idle", "it is set together with `host.load`; expected one of the two");
            }
            LoadAsked::Given(loads(host.load, faults))
        }
    };
    if host.cpu_vendor.len() > MAX_VENDOR {
        let said = format!(
            "it has {} bytes; expected at most {MAX_VENDOR}, such as AuthenticAMD",
            host.cpu_vendor.len()
        );
        faults.add("host.cpu_vendor", said);
    } else if !host.cpu_vendor.is_empty() && !VENDORS.contains(&host.cpu_vendor.as_str()) {
        let said = format!(
            "`{}` is no vendor that /proc/cpuinfo is known to name, such as AuthenticAMD or GenuineIntel: forks are taken to spread up to a distance of 30.",
            host.cpu_vendor
        );
        warnings.add("CPU_VENDOR_UNKNOWN", said);
    }
    for (i, distance) in
        host.distances.iter().enumerate().filter(|(_, distance)| !(10..=255).contains(*distance))
    {
        if faults.are_many() {
            break;
        }
        faults.add(
            format!("host.distances[{i}]"),
            format!("{distance} is no NUMA distance; expected 10 to 255"),
        );
    }
    let changes = Changes {
        cpu_vendor: (!host.cpu_vendor.is_empty()).then_some(host.cpu_vendor),
        cpu_family: (host.cpu_family != 0).then_some(host.cpu_family),
        isolated: cpus::set("host.isolated", &host.isolated, faults),
        partitions: (!host.partitions.is_empty()).then(|| partitions(&host.partitions, faults)),
        offline: cpus::set("host.offline", &host.offline, faults),
        distances: (!host.distances.is_empty()).then_some(host.distances),
    };
    let source = match host.source {
        None => Source::Here,
        Some(WireSource::Xml(xml)) => Source::Xml(xml),
        Some(WireSource::Synthetic(text)) => Source::Synthetic(text),
    };
    HostAsked { source, load, changes }
}

/// Sets of CPUs of which none overlaps another.
fn partitions(given: &[String], faults: &mut Faults) -> Vec<CpuSet> {
    let mut all = CpuSet::new();
    let mut read = Vec::new();
    for (i, text) in given.iter().enumerate() {
        if faults.are_many() {
            break;
        }
        let field = format!("host.partitions[{i}]");
        if text.is_empty() {
            faults.add(&field, "no CPU is named; expected at least one, such as 0-15");
        }
        let Some(partition) = cpus::set(&field, text, faults) else { continue };
        let twice = partition.intersection(&all);
        if !twice.is_empty() {
            let said =
                format!("CPUs {} are in a partition before it; expected each in one", cpus::shorten(&twice));
            faults.add(&field, said);
        }
        all.extend_from(&partition);
        read.push(partition.difference(&twice));
    }
    read
}

fn loads(loads: Vec<v1::CpuLoad>, faults: &mut Faults) -> Vec<GivenLoad> {
    let mut seen = CpuSet::new();
    let mut read = Vec::with_capacity(loads.len());
    for (i, load) in loads.into_iter().enumerate() {
        if faults.are_many() {
            break;
        }
        let field = |name: &str| format!("host.load[{i}].{name}");
        if load.cpus.is_empty() {
            faults.add(field("cpus"), "no CPU is named; expected at least one, such as 0-15");
        }
        let named = cpus::set(&field("cpus"), &load.cpus, faults).unwrap_or_default();
        let twice = named.intersection(&seen);
        if !twice.is_empty() {
            let said =
                format!("CPUs {} are in an entry before it; expected each in one", cpus::shorten(&twice));
            faults.add(field("cpus"), said);
        }
        seen.extend_from(&named);
        if let Some(share) = load.utilisation.filter(|share| !(0.0..=1.0).contains(share)) {
            faults.add(field("utilisation"), format!("{share} is no share; expected 0 to 1"));
        }
        if let Some(runnable) = load.runnable.filter(|runnable| *runnable > MAX_RUNNABLE) {
            faults.add(
                field("runnable"),
                format!("{runnable} tasks are too many; expected at most {MAX_RUNNABLE}"),
            );
        }
        let mut average = |name: &str, given: Option<u32>, most: u32| {
            if let Some(given) = given.filter(|given| *given > most) {
                faults.add(field(name), format!("{given} is too large; expected at most {most}"));
            }
            given
        };
        let averages = Averages {
            load: average("load_avg", load.load_avg, MAX_AVERAGE),
            util: average("util_avg", load.util_avg, 1024),
            runnable: average("runnable_avg", load.runnable_avg, MAX_AVERAGE),
        };
        read.push(GivenLoad { cpus: named, load: cpu_load(load.runnable, load.utilisation), averages });
    }
    read
}

/// What is left out follows from what is given.
fn cpu_load(runnable: Option<u32>, utilisation: Option<f64>) -> CpuLoad {
    let runnable = runnable.unwrap_or_else(|| u32::from(utilisation.is_some_and(|share| share > BUSY)));
    let utilisation = utilisation.unwrap_or(if runnable > 0 { 1.0 } else { 0.0 });
    #[allow(clippy::cast_possible_truncation, reason = "a share needs no more digits")]
    CpuLoad { runnable, utilisation: Some(utilisation as f32) }
}

/// The load that a request gives, for the model.
pub(crate) fn load_for(
    given: &[GivenLoad],
    topology: &Topology,
    faults: &mut Faults,
    warnings: &mut Warnings,
) -> load::Load {
    let mut load = load::Load::idle();
    for (i, GivenLoad { cpus: set, load: of_each, averages }) in given.iter().enumerate() {
        cpus::exist(&format!("host.load[{i}].cpus"), set, topology, faults);
        let offline = set.intersection(topology.offline());
        if !offline.is_empty() {
            let said = format!(
                "What is said to run on CPUs {}, which are offline, was left out.",
                cpus::shorten(&offline)
            );
            warnings.add_about("CPUS_OFFLINE", said, &offline);
        }
        for cpu in set.intersection(topology.online()).iter() {
            load.set(cpu, *of_each);
            if *averages != Averages::default() {
                load.set_averages(cpu, *averages);
            }
        }
    }
    load
}
