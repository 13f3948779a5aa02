//! Packages, caches, clusters and cores of each PU, and the kinds of core.

use super::{
    super::{Cache, CoreKind},
    Error,
    read::{Infos, Pus, cpus, cpus_of, number},
};
use berth_model::cpuset::{Cpu, CpuSet};
use hwlocality::{
    Topology,
    object::{TopologyObject, attributes::ObjectAttributes, types::ObjectType},
};
use std::collections::{BTreeMap, BTreeSet};

/// The keys of the units that a PU is in: PUs with an equal key share the unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) package: u32,
    pub(super) llc: u32,
    pub(super) cluster: Option<u32>,
    pub(super) core: u32,
}

/// The place of each PU, in the order of the PUs.
pub(super) fn places(topology: &Topology, pus: &Pus<'_>, infos: &Infos<'_>) -> Result<Vec<Place>, Error> {
    let packages = package_ids(topology);
    let x86 = infos.is_x86();
    // Any number that is unique will do as a key: the lowest CPU of the unit.
    let key = |object: &TopologyObject| cpus_of(object).map(|set| set.first().map_or(0, Cpu::number));
    pus.values()
        .map(|pu| {
            let core = pu.first_ancestor_with_type(ObjectType::Core);
            let core = core.unwrap_or(pu);
            let llc = last_level_cache(pu).unwrap_or(core);
            let package = pu.first_ancestor_with_type(ObjectType::Package);
            Ok(Place {
                package: package.and_then(|p| packages.get(&p.logical_index()).copied()).unwrap_or(0),
                llc: key(llc)?,
                cluster: cluster(pu, llc, x86).map(key).transpose()?,
                core: key(core)?,
            })
        })
        .collect()
}

/// The packages' own numbers; where some have none or share one, their positions by lowest CPU.
fn package_ids(topology: &Topology) -> BTreeMap<usize, u32> {
    let packages: Vec<&TopologyObject> = topology.objects_with_type(ObjectType::Package).collect();
    let mut own: Vec<u32> = packages.iter().filter_map(|package| number(package)).collect();
    own.sort_unstable();
    own.dedup();
    if own.len() == packages.len() {
        return packages.iter().filter_map(|p| Some((p.logical_index(), number(p)?))).collect();
    }
    let lowest = |package: &TopologyObject| package.cpuset().and_then(|set| set.first_set()).map(usize::from);
    let mut by_lowest = packages;
    by_lowest.sort_by_key(|package| lowest(package));
    by_lowest.iter().map(|package| package.logical_index()).zip(0..).collect()
}

/// The L3, else the outermost cache of data.
fn last_level_cache(pu: &TopologyObject) -> Option<&TopologyObject> {
    let caches = || pu.ancestors().filter(|object| object.object_type().is_cpu_data_cache());
    caches().find(|object| object.object_type() == ObjectType::L3Cache).or_else(|| caches().last())
}

/// The level between core and LLC: the L2 on x86, what the firmware calls a cluster elsewhere. Never wider than the
/// LLC: some hosts call half a package a cluster.
fn cluster<'a>(pu: &'a TopologyObject, llc: &TopologyObject, x86: bool) -> Option<&'a TopologyObject> {
    let is_cluster = |object: &&TopologyObject| {
        if x86 {
            object.object_type() == ObjectType::L2Cache
        } else {
            object.object_type() == ObjectType::Group
                && object.subtype().is_some_and(|name| name == c"Cluster")
        }
    };
    let inside = |object: &&TopologyObject| llc.cpuset().is_some_and(|set| object.is_inside_cpuset(set));
    pu.ancestors().find(is_cluster).filter(inside)
}

/// Level and size of each last-level cache, by its lowest CPU. LLCs that are no caches are left out.
pub(super) fn caches(topology: &Topology, pus: &Pus<'_>) -> BTreeMap<Cpu, Cache> {
    let mut caches = BTreeMap::new();
    let mut seen = CpuSet::new();
    debug_assert_eq!(pus.len(), topology.objects_with_type(ObjectType::PU).count());
    for (&cpu, pu) in pus {
        let Some(cache) = last_level_cache(pu).filter(|_| !seen.contains(cpu)) else { continue };
        // Read before: a set that cannot be read has failed by now.
        seen.extend_from(&cpus_of(cache).unwrap_or_default());
        if let Some(ObjectAttributes::Cache(attributes)) = cache.attributes() {
            let level = u32::try_from(attributes.depth()).unwrap_or(0);
            caches.insert(cpu, Cache { level, bytes: attributes.size().map(Into::into) });
        }
    }
    caches
}

/// One kind of core as hwloc has it.
pub(super) struct Kind {
    cpus: CpuSet,
    told: Told,
    efficiency: Option<u32>,
}

/// What makes cores differ for the scheduler. The highest clock alone does not: servers have favoured cores.
#[derive(PartialEq, Eq, Default)]
struct Told {
    core_type: Option<String>,
    /// What Linux gives as its capacity.
    capacity: Option<String>,
    /// Where neither is told, the base clock, which differs between alike cores too, together with how the core is
    /// built: PUs in it, and PUs that share its L2.
    build: Option<(String, usize, usize)>,
}

pub(super) fn kinds(topology: &Topology, pus: &Pus<'_>) -> Result<Vec<Kind>, Error> {
    let Ok(kinds) = topology.cpu_kinds() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for kind in kinds {
        let text = |name: &str| {
            let info = kind.infos.iter().find(|info| info.name().to_bytes() == name.as_bytes())?;
            Some(info.value().to_string_lossy().into_owned())
        };
        let cpus = cpus((&kind.cpuset).into())?;
        let mut told = Told { core_type: text("CoreType"), capacity: text("LinuxCapacity"), build: None };
        if told == Told::default() {
            let pu = cpus.iter().find_map(|cpu| pus.get(&cpu));
            let width = |of: ObjectType| {
                let unit = pu.and_then(|pu| pu.first_ancestor_with_type(of));
                unit.and_then(|unit| unit.cpuset()).and_then(|set| set.weight()).unwrap_or(1)
            };
            let base = text("FrequencyBaseMHz");
            told.build = base.map(|base| (base, width(ObjectType::Core), width(ObjectType::L2Cache)));
        }
        let efficiency = kind.efficiency.and_then(|efficiency| u32::try_from(efficiency).ok());
        found.push(Kind { cpus, told, efficiency });
    }
    // The clock counts only where cores are built differently.
    let builds: BTreeSet<_> = found.iter().map(|kind| kind.told.build.as_ref().map(|b| (b.1, b.2))).collect();
    if builds.len() < 2 {
        found.iter_mut().for_each(|kind| kind.told.build = None);
    }
    Ok(found)
}

/// A number that differs between CPUs of different capacity.
pub(super) fn capacity(kinds: &[Kind], cpu: Cpu) -> u32 {
    let Some(own) = kinds.iter().find(|kind| kind.cpus.contains(cpu)) else { return 0 };
    let first_alike = kinds.iter().position(|kind| kind.told == own.told);
    first_alike.and_then(|index| u32::try_from(index + 1).ok()).unwrap_or(0)
}

/// The kinds that differ for the scheduler; none if all are alike.
pub(super) fn told_apart(kinds: Vec<Kind>) -> Vec<CoreKind> {
    let mut apart: Vec<Kind> = Vec::new();
    for kind in kinds {
        match apart.iter_mut().find(|known| known.told == kind.told) {
            Some(known) => {
                known.cpus.extend_from(&kind.cpus);
                known.efficiency = known.efficiency.max(kind.efficiency);
            }
            None => apart.push(kind),
        }
    }
    if apart.len() < 2 {
        return Vec::new();
    }
    let named = apart.into_iter().enumerate();
    named
        .map(|(index, kind)| CoreKind {
            name: kind.told.core_type.unwrap_or_else(|| index.to_string()),
            cpus: kind.cpus,
            performance: kind.efficiency,
        })
        .collect()
}
