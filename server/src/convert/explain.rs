//! What is asked of `Explain`, and the levels of CPUs, to the wire.

use super::{Failure, Faults, Warnings, count, cpus, host, predict, unserved::Unserved};
use crate::snapshot::Snapshot;
use berth_model::{
    cpuset::CpuSet,
    domains::{Chain, Group, Kind, Level, Vanishes},
    predict::{Threshold, thresholds},
    profile::{ImbNumaRule, Profile},
    topology::Topology,
};
use berth_proto::v1;

/// The most groups that one answer lists: with their CPUs, about half of what clients take in one message.
const MAX_GROUPS: usize = 1 << 15;

/// A question that can be answered, once it is held against a host.
#[derive(Debug)]
pub(crate) struct Asked {
    cpus: Option<CpuSet>,
    allowed: Option<CpuSet>,
}

/// The same question about a host.
#[derive(Debug)]
pub(crate) struct Question {
    /// Online CPUs, at least one.
    pub(crate) cpus: CpuSet,
    /// Online CPUs, at least one.
    pub(crate) allowed: CpuSet,
}

/// # Errors
///
/// If a field is set that is not served yet.
pub(crate) fn unserved(request: &v1::ExplainRequest) -> Result<(), Failure> {
    let mut fields = Unserved::default();
    host::unserved(request.host.as_ref(), &mut fields);
    fields.none()
}

/// The question, but for what hangs on the host.
pub(crate) fn from_wire(request: &v1::ExplainRequest, faults: &mut Faults) -> Asked {
    Asked {
        cpus: cpus::set("cpus", &request.cpus, faults),
        allowed: cpus::set("allowed", &request.allowed, faults),
    }
}

impl Asked {
    /// Holds the question against the host that it is about.
    pub(crate) fn about(
        self,
        snapshot: &Snapshot,
        faults: &mut Faults,
        warnings: &mut Warnings,
    ) -> Result<Question, Failure> {
        let topology = &snapshot.machine.topology;
        let online = topology.online();
        let cpus = match self.cpus {
            Some(asked) if !cpus::exist("cpus", &asked, topology, faults) => asked,
            Some(asked) => cpus::online("cpus", &asked, topology, warnings)?,
            None => online.first().map(CpuSet::from).unwrap_or_default(),
        };
        let allowed = self.allowed.or_else(|| Some(online.clone()));
        Ok(Question { cpus, allowed: predict::allowed(allowed, topology, faults, warnings)? })
    }
}

/// The levels of each CPU with what decides there under a mask. What is too long to be told is left out, with a warning.
pub(crate) fn to_wire(
    chains: impl Iterator<Item = Chain>,
    asked: usize,
    topology: &Topology,
    profile: &Profile,
    allowed: &CpuSet,
    warnings: &mut Warnings,
) -> Vec<v1::CpuDomains> {
    let (mut told, mut groups) = (Vec::new(), 0);
    for chain in chains {
        groups += chain.levels.iter().map(|level| level.groups.len()).sum::<usize>();
        if groups > MAX_GROUPS && !told.is_empty() {
            let said = format!(
                "The domains of {asked} CPUs are too many for one answer: those of the first {} are told. Ask for the rest by `cpus`.",
                told.len()
            );
            warnings.add("CPUS_LEFT_OUT", said);
            break;
        }
        let domain = |level: &Level| {
            let numbers = thresholds(topology, profile, level, allowed);
            to_domain(level, profile, allowed, numbers)
        };
        told.push(v1::CpuDomains {
            cpu: chain.cpu.number(),
            partition: chain.partition.to_string(),
            domains: chain.levels.iter().map(domain).collect(),
        });
    }
    told
}

fn to_domain(level: &Level, profile: &Profile, allowed: &CpuSet, numbers: Vec<Threshold>) -> v1::Domain {
    let has_limit = level.flags.numa && profile.imb_numa != ImbNumaRule::None;
    let threshold = |number: Threshold| v1::Threshold {
        name: number.name.to_owned(),
        value: number.value.into(),
        meaning: number.meaning.to_owned(),
    };
    v1::Domain {
        name: level.kind.name().to_owned(),
        span: level.span.to_string(),
        weight: count(level.span.len()),
        distance: if let Kind::Numa { distance } = level.kind { distance } else { 0 },
        flags: level.flags.names(level.kind).into_iter().map(str::to_owned).collect(),
        imbalance_pct: level.imbalance_pct,
        imb_numa_nr: has_limit.then_some(level.imb_numa_nr),
        groups: level.groups.iter().map(|group| to_group(group, allowed)).collect(),
        vanished: level.vanishes.is_some(),
        because: level.vanishes.map(|why| because(why).to_owned()).unwrap_or_default(),
        thresholds: numbers.into_iter().map(threshold).collect(),
    }
}

fn to_group(group: &Group, allowed: &CpuSet) -> v1::DomainGroup {
    let all = group.balance == group.cpus;
    v1::DomainGroup {
        cpus: group.cpus.to_string(),
        weight: count(group.cpus.len()),
        allowed: count(group.cpus.intersection_len(allowed)),
        balance_cpus: if all { String::new() } else { group.balance.to_string() },
    }
}

fn because(why: Vanishes) -> &'static str {
    match why {
        Vanishes::OneCpu => "It spans one CPU: there is nothing to choose.",
        Vanishes::SameSpan => "The level below it spans the same CPUs.",
        Vanishes::OneGroup => "It has one group, and lies beyond the distance up to which tasks are spread.",
    }
}
