//! A host as a picture: packages, NUMA nodes, last-level caches, cores and their CPUs, with what runs on each.
//!
//! [`Host`] is the one layout; [`terminal`] and [`svg`] draw it.

mod svg;
mod terminal;

use std::collections::BTreeMap;

use berth_model::{Cpu, CpuSet};
use berth_proto::v1::{CpuCount, Topology};

pub(crate) use svg::svg;
pub(crate) use terminal::terminal;

/// A host, from the outside in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Host {
    packages: Vec<Package>,
    /// What of it is no CPU that may be drawn, or one of its own kind: each a sentence.
    notes: Vec<String>,
}

/// A package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Package {
    id: u32,
    caches: Vec<Cache>,
}

/// A last-level cache, or a part of one that lies on a NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cache {
    id: u32,
    node: Option<u32>,
    /// Of each hardware thread of its cores, the CPUs in the order of the cores. A core that has fewer leaves a gap.
    threads: Vec<Vec<Option<Cpu>>>,
}

/// The cores of each cache, by its node and its own id; of each core its CPUs.
type Caches = BTreeMap<(Option<u32>, u32), Vec<Vec<Cpu>>>;

impl Host {
    /// From a topology with its cores.
    pub(crate) fn of(topology: &Topology) -> Self {
        let offline = CpuSet::parse(&topology.offline).unwrap_or_default();
        let mut packages: BTreeMap<u32, Caches> = BTreeMap::new();
        for core in &topology.cores {
            let cpus = CpuSet::parse(&core.cpus).unwrap_or_default().difference(&offline);
            let caches = packages.entry(core.package).or_default();
            caches.entry((core.node, core.llc)).or_default().push(cpus.iter().collect());
        }
        let cache = |((node, id), mut cores): ((Option<u32>, u32), Vec<Vec<Cpu>>)| {
            cores.sort();
            let most = cores.iter().map(Vec::len).max().unwrap_or(0);
            let thread = |nth: usize| cores.iter().map(|core| core.get(nth).copied()).collect();
            Cache { id, node, threads: (0..most).map(thread).collect() }
        };
        let packages = packages
            .into_iter()
            .map(|(id, caches)| Package { id, caches: caches.into_iter().map(cache).collect() });
        Self { packages: packages.collect(), notes: notes(topology) }
    }

    /// How many packages there are.
    pub(crate) fn packages(&self) -> usize {
        self.packages.len()
    }

    /// The name of each cache, and of its node.
    pub(crate) fn names(&self) -> Vec<String> {
        let alike = self.nodes_are_caches();
        let name = |(_, cache): (&Package, &Cache)| match cache.node {
            Some(node) if alike => format!("node {node}"),
            Some(node) => format!("node {node} LLC {}", cache.id),
            None => format!("LLC {}", cache.id),
        };
        self.caches().map(name).collect()
    }

    /// Each last-level cache, with its package.
    pub(crate) fn caches(&self) -> impl Iterator<Item = (&Package, &Cache)> {
        self.packages.iter().flat_map(|package| package.caches.iter().map(move |cache| (package, cache)))
    }

    /// Whether each NUMA node is one cache: then it is named once.
    fn nodes_are_caches(&self) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        self.caches().all(|(_, cache)| cache.node.is_some_and(|node| seen.insert(node)))
    }
}

impl Package {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Whether this is its first cache.
    pub(crate) fn starts_with(&self, cache: &Cache) -> bool {
        self.caches.first() == Some(cache)
    }
}

impl Cache {
    /// How many letters a line with all its hardware threads has, and a gap between two of them.
    fn width(&self) -> usize {
        self.threads.iter().map(Vec::len).sum::<usize>() + self.threads.len().saturating_sub(1)
    }

    /// Its hardware threads in lines of at most `room` letters: all on one line if they fit, else each on lines of its own.
    pub(crate) fn lines(&self, room: usize) -> Vec<Vec<&[Option<Cpu>]>> {
        if self.width() <= room {
            return vec![self.threads.iter().map(Vec::as_slice).collect()];
        }
        self.threads.iter().flat_map(|thread| thread.chunks(room.max(1))).map(|part| vec![part]).collect()
    }

    fn cpus(&self) -> CpuSet {
        self.threads.iter().flatten().flatten().copied().collect()
    }
}

/// What the picture alone does not show.
fn notes(topology: &Topology) -> Vec<String> {
    let memory = topology.nodes.iter().filter(|node| node.cpus.is_empty()).map(|node| node.id.to_string());
    let told = [
        ("NUMA nodes that have memory only", memory.collect::<Vec<_>>().join(", ")),
        ("offline", topology.offline.clone()),
        ("isolated from load balancing", topology.isolated.clone()),
    ];
    let told = told.into_iter().filter(|(_, which)| !which.is_empty());
    told.map(|(what, which)| format!("{what}: {which}")).collect()
}

/// What runs on each CPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scene {
    /// What the picture shows, in a few words.
    pub(crate) title: String,
    /// What it comes to.
    pub(crate) said: String,
    /// The CPUs that the tasks may use.
    pub(crate) allowed: CpuSet,
    /// Runnable tasks; CPUs that are not named have none.
    pub(crate) tasks: BTreeMap<Cpu, u32>,
    /// The share of time that each is busy, where that is known and tasks are not counted.
    pub(crate) busy: BTreeMap<Cpu, f64>,
}

/// What a CPU looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Look {
    /// The tasks may not use it, and nothing runs there.
    Forbidden,
    /// Nothing runs there.
    Idle,
    /// Something runs there, and it is not known how many tasks.
    Busy,
    /// One task.
    One,
    /// Two or three: each has to wait.
    Some,
    /// Four or more.
    Many,
}

impl Look {
    const ALL: [Self; 6] = [Self::Forbidden, Self::Idle, Self::Busy, Self::One, Self::Some, Self::Many];

    fn words(self) -> &'static str {
        match self {
            Self::Forbidden => "outside the mask",
            Self::Idle => "idle",
            Self::Busy => "busy, tasks not counted",
            Self::One => "1 task",
            Self::Some => "2 or 3",
            Self::Many => "4 or more",
        }
    }
}

impl Scene {
    /// From the counts of an outcome.
    pub(crate) fn counted(title: String, said: String, allowed: CpuSet, counts: &[CpuCount]) -> Self {
        let of = |count: &CpuCount| Some((Cpu::try_new(count.cpu)?, count.tasks + count.before));
        let tasks = counts.iter().filter_map(of).filter(|(_, tasks)| *tasks > 0).collect();
        Self { title, said, allowed, tasks, busy: BTreeMap::new() }
    }

    fn tasks_on(&self, cpu: Cpu) -> u32 {
        self.tasks.get(&cpu).copied().unwrap_or(0)
    }

    /// How a CPU looks, and the letter for it: a digit for tasks, `+` from ten on, others for what has none.
    pub(crate) fn letter(&self, cpu: Cpu, ascii: bool) -> (Look, String) {
        let look = self.look(cpu);
        let letter = match self.tasks_on(cpu) {
            0 => empty(look, ascii).to_owned(),
            tasks @ 1..=9 => tasks.to_string(),
            _ => "+".to_owned(),
        };
        (look, letter)
    }

    /// How a CPU looks.
    pub(crate) fn look(&self, cpu: Cpu) -> Look {
        match self.tasks_on(cpu) {
            0 if self.busy.get(&cpu).is_some_and(|busy| *busy >= 0.5) => Look::Busy,
            0 if self.allowed.contains(cpu) => Look::Idle,
            0 => Look::Forbidden,
            1 => Look::One,
            2 | 3 => Look::Some,
            _ => Look::Many,
        }
    }
}

/// The letter for a CPU without tasks that are counted.
fn empty(look: Look, ascii: bool) -> &'static str {
    match (look, ascii) {
        (Look::Forbidden, true) => "-",
        (Look::Forbidden, false) => "·",
        (Look::Idle, true) => "o",
        (Look::Idle, false) => "○",
        (_, true) => "#",
        (_, false) => "●",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::v1::{Core, NumaNode};

    pub(super) fn core(cpus: &str, llc: u32, node: u32, package: u32) -> Core {
        let cpus = cpus.to_owned();
        Core { cpus, llc, node: Some(node), package, ..Core::default() }
    }

    /// Two packages; the second has a core that is one thread short, and there is a node of memory alone.
    pub(super) fn irregular() -> Topology {
        let cores =
            vec![core("0,4", 0, 0, 0), core("1,5", 0, 0, 0), core("2,6", 1, 1, 1), core("3", 1, 1, 1)];
        let nodes = ["0-1,4-5", "2-3,6", ""];
        let node =
            |(id, cpus): (u32, &&str)| NumaNode { id, cpus: (*cpus).to_owned(), ..NumaNode::default() };
        let nodes = (0..).zip(&nodes).map(node).collect();
        let [online, offline, isolated] = ["0-6", "7", "3"].map(str::to_owned);
        Topology { cores, nodes, online, offline, isolated, ..Topology::default() }
    }

    #[test]
    fn a_host_from_the_outside_in() {
        let host = Host::of(&irregular());
        let shape: Vec<(u32, usize)> = host.packages.iter().map(|one| (one.id, one.caches.len())).collect();
        let notes = ["NUMA nodes that have memory only: 2", "offline: 7", "isolated from load balancing: 3"]
            .map(str::to_owned);
        assert_eq!((shape, &host.notes[..]), (vec![(0, 1), (1, 1)], &notes[..]));
        let last = &host.packages[1].caches[0];
        assert_eq!(last.threads, [vec![Cpu::try_new(2), Cpu::try_new(3)], vec![Cpu::try_new(6), None],]);
        assert!(host.nodes_are_caches() && last.cpus().to_string() == "2-3,6");
    }

    #[test]
    fn looks() {
        let counts = [(0, 1), (1, 3), (2, 10)];
        let count = |&(cpu, tasks): &(u32, u32)| CpuCount { cpu, tasks, ..CpuCount::default() };
        let counts: Vec<CpuCount> = counts.iter().map(count).collect();
        let scene = Scene::counted(String::new(), String::new(), CpuSet::first_n(4), &counts);
        let looks: Vec<Look> = CpuSet::first_n(5).iter().map(|cpu| scene.look(cpu)).collect();
        assert_eq!(looks, [Look::One, Look::Some, Look::Many, Look::Idle, Look::Forbidden]);
    }
}
