//! Where in the host tasks may be, beyond a mask: near a place, within one unit, without neighbours.

use super::{Error, Request, Smt};
use crate::{
    cpuset::{Cpu, CpuSet},
    topology::{Level, Topology},
};

/// The longest distance that the kernel knows.
const FARTHEST: u32 = 255;

/// Into how small a part of the host the tasks should fit, each on an idle CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within {
    /// One unit of this level.
    pub level: Level,
    /// Rather no answer than a wider one.
    pub required: bool,
}

/// What nobody else's tasks may be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusive {
    /// The CPUs themselves.
    Cpus,
    /// The units of this level that the CPUs are in.
    Units(Level),
    /// The whole host.
    Host,
}

/// A place that tasks should be near to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    cpus: CpuSet,
    nodes: Vec<usize>,
}

impl Near {
    /// Near a CPU: in its LLC, else by the distance from its node. `None` if it is not online.
    pub fn cpu(topology: &Topology, cpu: Cpu) -> Option<Self> {
        let node = topology.cpu_nodes()[topology.unit_of(Level::Node, cpu)?];
        Some(Self { cpus: topology.span(Level::Llc, cpu)?.clone(), nodes: vec![node] })
    }

    /// Near a NUMA node, by its number. `None` if there is no such node.
    pub fn node(topology: &Topology, id: u32) -> Option<Self> {
        let index = topology.nodes().iter().position(|node| node.id == id)?;
        Some(Self { cpus: topology.nodes()[index].cpus.clone(), nodes: vec![index] })
    }

    /// Near what these CPUs are the nearest to, such as a device. `None` if none of them is online.
    pub fn cpus(topology: &Topology, cpus: &CpuSet) -> Option<Self> {
        let cpus = cpus.intersection(topology.online());
        let has_some = |index: &usize| topology.nodes()[*index].cpus.intersects(&cpus);
        let nodes: Vec<usize> = topology.cpu_nodes().iter().copied().filter(has_some).collect();
        (!nodes.is_empty()).then_some(Self { cpus, nodes })
    }

    /// The CPUs at the place, online ones.
    pub fn at(&self) -> &CpuSet {
        &self.cpus
    }

    /// How far a CPU is from the place: 0 for those at it, else the distance of the nodes.
    pub(super) fn distance(&self, topology: &Topology, cpu: Cpu) -> u32 {
        if self.cpus.contains(cpu) {
            return 0;
        }
        let node = topology.unit_of(Level::Node, cpu).map(|unit| topology.cpu_nodes()[unit]);
        let distances = self.nodes.iter().filter_map(|&from| Some(topology.distance(from, node?)));
        distances.min().unwrap_or(FARTHEST)
    }
}

/// The allowed CPUs that the tasks may be on: none that share a unit with other jobs, if that is demanded.
pub(super) fn open(request: &Request<'_>) -> Result<CpuSet, Error> {
    let Request { topology, load, allowed, .. } = *request;
    let idle = |cpus: &CpuSet| cpus.iter().all(|cpu| load.taken(cpu) == 0);
    let alone = |level: Level| {
        let of = |cpu: &Cpu| topology.span(level, *cpu).is_some_and(&idle);
        allowed.iter().filter(of).collect::<CpuSet>()
    };
    let mut open = match request.exclusive {
        None => allowed.clone(),
        Some(Exclusive::Cpus) => allowed.iter().filter(|&cpu| load.taken(cpu) == 0).collect(),
        Some(Exclusive::Units(level)) => alone(level),
        Some(Exclusive::Host) if idle(topology.online()) => allowed.clone(),
        Some(Exclusive::Host) => CpuSet::new(),
    };
    if request.smt == Smt::FullCores {
        open = open.intersection(&alone(Level::Core));
        if open.is_empty() && request.exclusive.is_none() {
            let cores = super::tree::split(topology, Level::Core, allowed).len();
            return Err(Error::NoFreeCore { cores });
        }
    }
    let asked = request.cpus();
    if let Some(exclusive) = request.exclusive.filter(|_| open.len() < asked) {
        return Err(Error::NotAlone { exclusive, asked, free: open.len(), allowed: allowed.len() });
    }
    Ok(open)
}

/// The parts of the open CPUs that tasks may be put in, each of which has an idle CPU for all of theirs; and whether that
/// is what was wished for.
pub(super) fn regions(request: &Request<'_>, open: &CpuSet) -> Result<(Vec<CpuSet>, bool), Error> {
    let Some(Within { level, required }) = request.within else { return Ok((vec![open.clone()], true)) };
    let asked = request.cpus();
    let idle = |cpus: &CpuSet| cpus.iter().filter(|&cpu| request.load.taken(cpu) == 0).count();
    let units = super::tree::split(request.topology, level, open);
    let fitting: Vec<CpuSet> = units.iter().filter(|unit| idle(unit) >= asked).cloned().collect();
    if !fitting.is_empty() {
        return Ok((fitting, true));
    }
    if !required {
        return Ok((vec![open.clone()], false));
    }
    let most = |sizes: &mut dyn Iterator<Item = usize>| sizes.max().unwrap_or(0);
    let ever = super::tree::split(request.topology, level, request.allowed);
    Err(Error::NotWithin {
        level,
        asked,
        free: most(&mut units.iter().map(idle)),
        allowed: most(&mut ever.iter().map(CpuSet::len)),
    })
}
