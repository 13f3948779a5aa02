//! Runs of the kernel model on the machines of the mailing-list reports.

use berth_model::{
    Cpu, CpuSet,
    domains::Domains,
    load::Load,
    predict::{Burst, Host, Parent, Prediction, Symmetry, place, predict},
    profile::Profile,
    topology::{Level, Topology},
};

/// The mask of the STREAM reports: one CPU in every second LLC.
pub(crate) const STREAM: &str = "0,16,32,48,64,80,96,112";

/// A host under one profile, owned.
pub(crate) struct Bench {
    pub(crate) topology: Topology,
    pub(crate) domains: Domains,
    pub(crate) profile: Profile,
    pub(crate) load: Load,
    pub(crate) symmetry: Symmetry,
}

impl Bench {
    pub(crate) fn new(topology: &Topology, profile: &Profile) -> Self {
        let domains = Domains::build(topology, profile);
        let symmetry = Symmetry::new(topology, &domains);
        Self { topology: topology.clone(), domains, profile: *profile, load: Load::idle(), symmetry }
    }

    pub(crate) fn named(topology: &Topology, profile: &str) -> Self {
        Self::new(topology, Profile::named(profile).unwrap_or_else(|| panic!("no profile {profile}")))
    }

    pub(crate) fn host(&self) -> Host<'_> {
        Host { topology: &self.topology, domains: &self.domains, profile: &self.profile, load: &self.load }
    }

    pub(crate) fn places(&self, burst: &Burst<'_>) -> Vec<u32> {
        place(self.host(), burst).into_iter().map(Cpu::number).collect()
    }

    pub(crate) fn predict(&self, burst: &Burst<'_>) -> Prediction {
        predict(self.host(), burst)
    }

    /// Tasks per unit of a level.
    pub(crate) fn split(&self, level: Level, places: &[u32]) -> Vec<usize> {
        let units = self.topology.units(level);
        units.iter().map(|unit| places.iter().filter(|&&p| unit.cpus.contains(cpu(p))).count()).collect()
    }
}

pub(crate) fn cpu(number: u32) -> Cpu {
    Cpu::try_new(number).unwrap()
}

pub(crate) fn cpus(list: &str) -> CpuSet {
    CpuSet::parse(list).unwrap()
}

/// The most tasks on one CPU.
pub(crate) fn most(places: &[u32]) -> usize {
    places.iter().map(|p| places.iter().filter(|q| *q == p).count()).max().unwrap_or(0)
}

/// A burst whose parent is the first of the tasks.
pub(crate) fn threads(allowed: &CpuSet, tasks: u32, origin: u32) -> Burst<'_> {
    Burst { parent: Parent::IsTask, ..Burst::forks(allowed, tasks, cpu(origin)) }
}
