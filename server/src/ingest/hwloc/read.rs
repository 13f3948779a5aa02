//! From hwloc's objects to the model's description.

use super::{
    super::{Facts, Hardware, Source},
    Error, cores, nodes,
};
use berth_model::{
    cpuset::{Cpu, CpuSet, MAX_CPUS},
    topology::{Description, Processor, PuDescription},
};
use hwlocality::{
    Topology,
    bitmap::BitmapRef,
    object::{TopologyObject, types::ObjectType},
};
use std::{collections::BTreeMap, ops::Deref};

pub(super) fn hardware(topology: &Topology, source: Source) -> Result<Hardware, Error> {
    let online = cpus(topology.cpuset())?;
    let pus = pus(topology)?;
    let infos = Infos::of(topology);
    let places = cores::places(topology, &pus, &infos)?;
    let numa = nodes::nodes(topology, &pus)?;
    let kinds = cores::kinds(topology, &pus)?;

    let descriptions = pus.iter().zip(&places).map(|((&cpu, _), place)| PuDescription {
        cpu,
        package: place.package,
        node: numa.node_of(cpu),
        llc: place.llc,
        cluster: place.cluster,
        core: place.core,
        capacity: cores::capacity(&kinds, cpu),
    });
    let description = Description {
        pus: descriptions.collect(),
        offline: cpus(topology.complete_cpuset())?.difference(&online),
        disallowed: online.difference(&cpus(topology.allowed_cpuset())?),
        isolated: CpuSet::new(),
        partitions: Vec::new(),
        nodes: numa.nodes,
        distances: numa.distances,
        processor: Processor { vendor: infos.vendor(), family: infos.family() },
    };
    let facts = Facts {
        source,
        model: infos.model(),
        cpu_model: infos.cpu_model(),
        caches: cores::caches(topology, &pus),
        core_kinds: cores::told_apart(kinds),
        nohz_full: CpuSet::new(),
        partitions: Vec::new(),
        nodes_without_distances: numa.without_distances,
    };
    Ok(Hardware { description, facts })
}

/// Every PU by its number.
pub(super) type Pus<'a> = BTreeMap<Cpu, &'a TopologyObject>;

fn pus(topology: &Topology) -> Result<Pus<'_>, Error> {
    let mut pus = Pus::new();
    for object in topology.objects_with_type(ObjectType::PU) {
        let cpu = number(object).and_then(Cpu::try_new).ok_or_else(|| {
            Error::Impossible(format!("a PU of it has no number below {MAX_CPUS}, as each CPU of Linux has"))
        })?;
        if pus.insert(cpu, object).is_some() {
            return Err(Error::Impossible(format!("two PUs of it have the number {cpu}")));
        }
    }
    if pus.is_empty() {
        return Err(Error::Impossible("it has no PU that is online".to_owned()));
    }
    Ok(pus)
}

/// The operating system's number of an object.
pub(super) fn number(object: &TopologyObject) -> Option<u32> {
    object.os_index().and_then(|index| u32::try_from(index).ok())
}

/// The CPUs of an object; none for objects without.
pub(super) fn cpus_of(object: &TopologyObject) -> Result<CpuSet, Error> {
    object.cpuset().map_or_else(|| Ok(CpuSet::new()), cpus)
}

/// hwloc's set as ours. Theirs may be infinite.
pub(super) fn cpus(set: BitmapRef<'_, hwlocality::cpu::cpuset::CpuSet>) -> Result<CpuSet, Error> {
    set.deref()
        .iter_set()
        .map(|index| u32::try_from(usize::from(index)).ok().and_then(Cpu::try_new))
        .map(|cpu| {
            cpu.ok_or_else(|| Error::Impossible(format!("it names a CPU of number {MAX_CPUS} or above")))
        })
        .collect()
}

/// The texts that the machine and its packages carry.
pub(super) struct Infos<'a> {
    objects: Vec<&'a TopologyObject>,
}

impl<'a> Infos<'a> {
    fn of(topology: &'a Topology) -> Self {
        let packages = topology.objects_with_type(ObjectType::Package);
        Self { objects: std::iter::once(topology.root_object()).chain(packages).collect() }
    }

    fn text(&self, name: &str) -> Option<String> {
        let found = self.objects.iter().find_map(|object| object.info(name))?;
        let text = found.to_string_lossy().trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    fn vendor(&self) -> String {
        self.text("CPUVendor").unwrap_or_default()
    }

    fn family(&self) -> Option<u32> {
        self.text("CPUFamilyNumber").and_then(|family| family.parse().ok())
    }

    fn cpu_model(&self) -> String {
        self.text("CPUModel").unwrap_or_default()
    }

    /// Firmware often leaves its fields as the board's maker shipped them: then the CPU says more.
    fn model(&self) -> String {
        let product = self.text("DMIProductName").filter(|name| !name.to_ascii_lowercase().contains("o.e.m"));
        let vendor = self.text("DMISysVendor").filter(|_| product.is_some());
        match (vendor, product) {
            (Some(vendor), Some(product)) if !product.starts_with(&vendor) => format!("{vendor} {product}"),
            (_, Some(product)) => product,
            _ => self.cpu_model(),
        }
    }

    /// Whether clusters are the CPUs that share an L2, as on x86. A description that does not say is taken for x86.
    pub(super) fn is_x86(&self) -> bool {
        self.text("Architecture")
            .is_none_or(|name| matches!(name.as_str(), "x86_64" | "i386" | "i486" | "i586" | "i686"))
    }
}
