//! Cores or last-level caches as devices.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use berth_model::{Cpu, CpuSet};
use berth_proto::{
    kubelet::device_plugin as wire,
    v1::{Core, Topology},
};

use crate::cli::{DeviceKind, DeviceTopology};

/// Kubelets align devices by themselves on hosts of up to so many NUMA nodes, those without CPUs counted.
const MOST_NODES: usize = 8;

/// A part of the host that a container can be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    /// Its name for the kubelet, by the first CPU that it was seen with, such as `core-12`.
    pub(super) id: String,
    /// Its CPUs, online or not, without reserved ones; by cores.
    pub(super) cores: Vec<CpuSet>,
    /// Those of them that are online.
    pub(super) online: CpuSet,
    pub(super) place: Place,
}

/// Where a device is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) package: u32,
    /// Its NUMA nodes: one, unless it is a cache that several share, or the node is not known.
    pub(super) nodes: Vec<u32>,
    /// The first CPU of its last-level cache.
    pub(super) llc: Option<Cpu>,
    /// The nodes that the kubelet is told.
    told: Vec<u32>,
}

impl Device {
    /// Its first CPU, online or not, by which devices are ordered.
    pub(super) fn first(&self) -> Option<Cpu> {
        self.cores.iter().filter_map(CpuSet::first).min()
    }

    /// Each of its cores has a CPU that is online.
    pub(super) fn is_healthy(&self) -> bool {
        self.cores.iter().all(|core| core.intersects(&self.online))
    }

    /// As the kubelet is told.
    pub(super) fn to_wire(&self) -> wire::Device {
        let nodes = self.place.told.iter().map(|&node| wire::NumaNode { id: node.into() });
        let health = if self.is_healthy() { "Healthy" } else { "Unhealthy" };
        wire::Device {
            id: self.id.clone(),
            health: health.to_owned(),
            topology: (!self.place.told.is_empty()).then(|| wire::TopologyInfo { nodes: nodes.collect() }),
        }
    }
}

/// All devices of one moment, ascending by their first CPUs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Devices {
    list: Vec<Device>,
    by_id: HashMap<String, usize>,
}

impl Devices {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Device> {
        self.list.iter()
    }

    pub(super) fn get(&self, id: &str) -> Option<&Device> {
        self.list.get(*self.by_id.get(id)?)
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// How many can be given away.
    pub(super) fn healthy(&self) -> usize {
        self.list.iter().filter(|device| device.is_healthy()).count()
    }
}

/// Every unit that was ever seen: one whose CPUs went offline is still known, and keeps its name when they come back.
#[derive(Debug)]
pub(super) struct Catalogue {
    kind: DeviceKind,
    topology: DeviceTopology,
    /// CPUs for no container, as the operator says.
    reserved: CpuSet,
    /// CPUs for containers, as the kubelet says; empty if it does not. `None`: it was not asked yet.
    allocatable: Option<CpuSet>,
    isolated: CpuSet,
    online: CpuSet,
    units: Vec<Unit>,
    unit_of: BTreeMap<Cpu, usize>,
}

/// A core or a cache with all CPUs that it was ever seen with.
#[derive(Debug)]
struct Unit {
    first: Cpu,
    cores: Vec<CpuSet>,
    place: Place,
}

impl Catalogue {
    pub(super) fn new(kind: DeviceKind, topology: DeviceTopology, reserved: CpuSet) -> Self {
        Self {
            kind,
            topology,
            reserved,
            allocatable: None,
            isolated: CpuSet::new(),
            online: CpuSet::new(),
            units: Vec::new(),
            unit_of: BTreeMap::new(),
        }
    }

    /// Whether all is known that devices are made of: a kubelet should not be told of some that are taken back at once.
    pub(super) fn is_ready(&self) -> bool {
        !self.online.is_empty() && self.allocatable.is_some()
    }

    /// Learns which CPUs the kubelet gives to pods at all. `None`: it was asked and did not answer, so what it said before holds.
    pub(super) fn allocatable(&mut self, cpus: Option<CpuSet>) {
        let before = self.allocatable.take();
        self.allocatable = Some(cpus.or(before).unwrap_or_default());
    }

    /// Learns the topology of the moment, cores included.
    pub(super) fn see(&mut self, topology: &Topology) {
        (self.online, self.isolated) = (set(&topology.online), set(&topology.isolated));
        let hardware = Hardware::of(topology, self.topology);
        for core in &topology.cores {
            let cpus = set(&core.cpus);
            let whole = match self.kind {
                DeviceKind::Cores => &cpus,
                DeviceKind::Llc => hardware.llcs.get(&core.llc).map_or(&cpus, |(cpus, _)| cpus),
            };
            let Some(first) = whole.first() else { continue };
            let known = whole.iter().find_map(|cpu| self.unit_of.get(&cpu).copied());
            let index = known.unwrap_or(self.units.len());
            if known.is_none() {
                self.units.push(Unit { first, cores: Vec::new(), place: Place::default() });
            }
            let unit = &mut self.units[index];
            match unit.cores.iter_mut().find(|known| known.intersects(&cpus)) {
                Some(known) => known.extend_from(&cpus),
                None => unit.cores.push(cpus.clone()),
            }
            unit.place = hardware.place(core, self.kind);
            self.unit_of.extend(cpus.iter().map(|cpu| (cpu, index)));
        }
    }

    /// The devices of the moment.
    pub(super) fn devices(&self) -> Arc<Devices> {
        let allocatable = self.allocatable.as_ref().filter(|cpus| !cpus.is_empty());
        let may_be_given = |cpu: &Cpu| {
            !self.reserved.contains(*cpu)
                && !self.isolated.contains(*cpu)
                && allocatable.is_none_or(|cpus| cpus.contains(*cpu))
        };
        let mut units: Vec<&Unit> = self.units.iter().collect();
        units.sort_unstable_by_key(|unit| unit.first);
        let name = match self.kind {
            DeviceKind::Cores => "core",
            DeviceKind::Llc => "llc",
        };
        let device = |unit: &Unit| {
            let cores = unit.cores.iter().map(|core| core.iter().filter(may_be_given).collect());
            let cores: Vec<CpuSet> = cores.filter(|core: &CpuSet| !core.is_empty()).collect();
            let all = cores.iter().fold(CpuSet::new(), |all, core| all.union(core));
            (!cores.is_empty()).then(|| Device {
                id: format!("{name}-{}", unit.first.number()),
                online: all.intersection(&self.online),
                cores,
                place: unit.place.clone(),
            })
        };
        let list: Vec<Device> = units.into_iter().filter_map(device).collect();
        let by_id = list.iter().enumerate().map(|(i, device)| (device.id.clone(), i)).collect();
        Arc::new(Devices { list, by_id })
    }
}

/// What stands in a topology, for looking up.
struct Hardware {
    /// CPUs and NUMA nodes of each LLC, by its id.
    llcs: HashMap<u32, (CpuSet, Vec<u32>)>,
    /// NUMA nodes of each package, by its id.
    packages: HashMap<u32, Vec<u32>>,
    told: DeviceTopology,
}

impl Hardware {
    fn of(topology: &Topology, told: DeviceTopology) -> Self {
        let told = match told {
            DeviceTopology::Auto if topology.nodes.len() > MOST_NODES => DeviceTopology::Package,
            DeviceTopology::Auto => DeviceTopology::Node,
            told => told,
        };
        let llcs = topology.llcs.iter().map(|llc| (llc.id, (set(&llc.cpus), numbers(&llc.nodes))));
        let packages = topology.packages.iter().map(|package| (package.id, numbers(&package.nodes)));
        Self { llcs: llcs.collect(), packages: packages.collect(), told }
    }

    fn place(&self, core: &Core, kind: DeviceKind) -> Place {
        let llc = self.llcs.get(&core.llc);
        let nodes = match (kind, llc) {
            (DeviceKind::Llc, Some((_, nodes))) => nodes.clone(),
            _ => core.node.into_iter().collect(),
        };
        let told = match self.told {
            DeviceTopology::None => Vec::new(),
            DeviceTopology::Package => self.packages.get(&core.package).cloned().unwrap_or_default(),
            DeviceTopology::Node | DeviceTopology::Auto => nodes.clone(),
        };
        Place { package: core.package, nodes, llc: llc.and_then(|(cpus, _)| cpus.first()), told }
    }
}

/// The set that a list of berthd names; empty if it names none.
fn set(list: &str) -> CpuSet {
    CpuSet::parse(list).unwrap_or_default()
}

fn numbers(list: &str) -> Vec<u32> {
    set(list).iter().map(Cpu::number).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use berth_proto::v1::{Llc, NumaNode, Package};

    /// Packages, nodes of each, caches of each node, cores of each cache; two threads a core, numbered as Linux does.
    pub(in super::super) fn host([packages, nodes, llcs, cores]: [u32; 4]) -> Topology {
        let all = packages * nodes * llcs * cores;
        let cpus = |cores: std::ops::Range<u32>| {
            format!("{0}-{1},{2}-{3}", cores.start, cores.end - 1, cores.start + all, cores.end - 1 + all)
        };
        let part = |i: u32, of: u32| cpus(i * of..(i + 1) * of);
        let (per_node, per_package) = (llcs * cores, nodes * llcs * cores);
        Topology {
            online: format!("0-{}", 2 * all - 1),
            packages: (0..packages)
                .map(|id| Package {
                    id,
                    cpus: part(id, per_package),
                    nodes: format!("{}-{}", id * nodes, (id + 1) * nodes - 1),
                })
                .collect(),
            nodes: (0..packages * nodes)
                .map(|id| NumaNode { id, cpus: part(id, per_node), ..NumaNode::default() })
                .collect(),
            llcs: (0..packages * nodes * llcs)
                .map(|id| Llc { id, cpus: part(id, cores), nodes: (id / llcs).to_string(), ..Llc::default() })
                .collect(),
            cores: (0..all)
                .map(|id| Core {
                    id,
                    cpus: format!("{id},{}", id + all),
                    llc: id / cores,
                    node: Some(id / per_node),
                    package: id / per_package,
                    kind: String::new(),
                })
                .collect(),
            ..Topology::default()
        }
    }

    pub(in super::super) fn devices(kind: DeviceKind, host: &Topology) -> Arc<Devices> {
        let mut catalogue = Catalogue::new(kind, DeviceTopology::Auto, CpuSet::new());
        catalogue.see(host);
        catalogue.devices()
    }

    /// Each device: its id, its CPUs, whether it is healthy.
    fn shown(devices: &Devices) -> Vec<String> {
        let mark = |device: &Device| if device.is_healthy() { "" } else { " sick" };
        let cpus = |device: &Device| device.cores.iter().flatten().collect::<CpuSet>();
        devices.iter().map(|device| format!("{} {}{}", device.id, cpus(device), mark(device))).collect()
    }

    /// Without some CPUs: as the topology is told when they are offline.
    fn without(mut host: Topology, gone: &str) -> Topology {
        let left = |list: &str| set(list).difference(&set(gone)).to_string();
        host.online = left(&host.online);
        host.cores.iter_mut().for_each(|core| core.cpus = left(&core.cpus));
        host.llcs.iter_mut().for_each(|llc| llc.cpus = left(&llc.cpus));
        host.cores.retain(|core| !core.cpus.is_empty());
        host
    }

    #[test]
    fn devices_are_cores_or_caches() {
        assert_eq!(shown(&devices(DeviceKind::Cores, &host([1, 1, 1, 2]))), ["core-0 0,2", "core-1 1,3"]);
        let caches = devices(DeviceKind::Llc, &host([2, 1, 1, 2]));
        assert_eq!(shown(&caches), ["llc-0 0-1,4-5", "llc-2 2-3,6-7"]);
    }

    #[test]
    fn a_device_is_sick_while_a_core_of_it_is_gone_and_keeps_its_name() {
        let whole = host([1, 1, 2, 2]);
        for (kind, sick) in [
            (DeviceKind::Cores, vec!["core-0 0,4", "core-1 1,5 sick", "core-2 2,6", "core-3 3,7"]),
            (DeviceKind::Llc, vec!["llc-0 0-1,4-5 sick", "llc-2 2-3,6-7"]),
        ] {
            let mut catalogue = Catalogue::new(kind, DeviceTopology::Auto, CpuSet::new());
            catalogue.see(&whole);
            let well = shown(&catalogue.devices());
            catalogue.see(&without(whole.clone(), "1,5"));
            assert_eq!(shown(&catalogue.devices()), sick);
            // First threads alone go, and second ones.
            for (threads, left) in [("0-3", "4-7"), ("4-7", "0-3")] {
                catalogue.see(&without(whole.clone(), threads));
                let devices = catalogue.devices();
                assert_eq!(shown(&devices), well, "without {threads}");
                let online = devices.iter().fold(CpuSet::new(), |all, device| all.union(&device.online));
                assert_eq!(online.to_string(), left);
            }
            catalogue.see(&whole);
            assert_eq!(shown(&catalogue.devices()), well);
        }
    }

    #[test]
    fn reserved_and_isolated_cpus_are_in_no_device() {
        let mut host = host([1, 1, 2, 2]);
        host.isolated = "3,7".to_owned();
        let mut cores = Catalogue::new(DeviceKind::Cores, DeviceTopology::Auto, set("0,5"));
        cores.see(&host);
        assert_eq!(shown(&cores.devices()), ["core-0 4", "core-1 1", "core-2 2,6"]);
        cores.allocatable(Some(set("1-7")));
        assert_eq!(shown(&cores.devices()), ["core-0 4", "core-1 1", "core-2 2,6"]);
        cores.allocatable(Some(set("2-3,6-7")));
        assert_eq!(shown(&cores.devices()), ["core-2 2,6"]);
        cores.allocatable(None);
        assert_eq!(shown(&cores.devices()), ["core-2 2,6"], "as it was told last");
        let mut caches = Catalogue::new(DeviceKind::Llc, DeviceTopology::Auto, set("0,4"));
        caches.see(&host);
        assert_eq!(shown(&caches.devices()), ["llc-0 1,5", "llc-2 2,6"]);
    }

    #[test]
    fn beyond_eight_nodes_the_package_is_told() {
        let told = |topology: DeviceTopology, nodes: u32| {
            let mut catalogue = Catalogue::new(DeviceKind::Cores, topology, CpuSet::new());
            catalogue.see(&host([2, nodes, 1, 1]));
            let device = catalogue.devices().iter().last().unwrap().to_wire();
            device.topology.map(|told| told.nodes.iter().map(|node| node.id).collect::<Vec<_>>())
        };
        assert_eq!(told(DeviceTopology::Auto, 4), Some(vec![7]));
        assert_eq!(told(DeviceTopology::Auto, 5), Some(vec![5, 6, 7, 8, 9]));
        assert_eq!(told(DeviceTopology::Node, 5), Some(vec![9]));
        assert_eq!(told(DeviceTopology::Package, 2), Some(vec![2, 3]));
        assert_eq!(told(DeviceTopology::None, 2), None);
    }

    #[test]
    fn nonsense_is_no_device() {
        let mut host = host([1, 1, 1, 2]);
        host.cores[0].cpus = "zero".to_owned();
        host.cores[1].llc = 7;
        assert_eq!(shown(&devices(DeviceKind::Cores, &host)), ["core-1 1,3"]);
        assert_eq!(shown(&devices(DeviceKind::Llc, &host)), ["llc-1 1,3"]);
        assert_eq!(devices(DeviceKind::Cores, &Topology::default()).len(), 0);
    }
}
