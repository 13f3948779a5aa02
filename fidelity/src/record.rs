//! The records of real kernels: one file a boot, gzipped JSON lines.

use anyhow::{Context, Result, ensure};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    profile::{self, KernelIdentity, Profile},
    topology::{Description, NodeDescription, Processor, PuDescription, Topology},
};
use serde::Deserialize;
use std::{collections::BTreeMap, fs::File, io::Read, path::Path};

/// What one boot of one kernel left behind.
#[derive(Debug)]
pub struct Record {
    /// The file's name without its endings.
    pub name: String,
    /// The machine, and the domains that the kernel built.
    pub machine: Machine,
    /// What was tried on it, in order.
    pub cases: Vec<Case>,
}

/// A line of a file.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Machine(Box<Machine>),
    Case(Box<Case>),
    #[serde(other)]
    Other,
}

/// The machine as the kernel saw it.
#[derive(Debug, Deserialize)]
pub struct Machine {
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`.
    pub version: String,
    nodes: Vec<Node>,
    cpus: Vec<CpuLine>,
    /// For every CPU its domains, lowest level first, as read from the kernel's memory.
    pub domains: Vec<Vec<Domain>>,
}

#[derive(Debug, Deserialize)]
struct Node {
    node: u32,
    cpulist: String,
    distance: String,
}

#[derive(Debug, Deserialize)]
struct CpuLine {
    cpu: u16,
    package: String,
    smt: String,
    l3: String,
}

/// A domain as read from the kernel's memory.
#[derive(Debug, Deserialize)]
pub struct Domain {
    /// The kernel's name for the level.
    pub name: String,
    /// Its `imbalance_pct`.
    pub imbalance_pct: u32,
    /// Its `imb_numa_nr`.
    pub imb_numa_nr: u32,
    /// Its CPUs, as a cpulist.
    pub span: String,
    /// Its groups in ring order, as cpulists.
    pub groups: Vec<String>,
}

/// A migration.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(from = "(i64, i64, u16, u16)")]
pub struct Move {
    /// When, in microseconds since the first fork; 0 if before it.
    pub at: u64,
    /// Index of the task; none if it was another one.
    pub task: Option<usize>,
    /// The CPU that it left.
    pub from: Cpu,
    /// The CPU that it came to.
    pub to: Cpu,
}

impl From<(i64, i64, u16, u16)> for Move {
    fn from((at, task, from, to): (i64, i64, u16, u16)) -> Self {
        let at = u64::try_from(at).unwrap_or(0);
        Self { at, task: usize::try_from(task).ok(), from: Cpu::from(from), to: Cpu::from(to) }
    }
}

/// A later look at a case.
#[derive(Debug, Deserialize)]
pub struct Look {
    /// When, in microseconds since the first fork.
    pub at_us: u64,
    /// The parent's CPU.
    pub parent: u16,
    /// The CPU of each task.
    pub cpus: Vec<u16>,
}

/// One repetition of one situation.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// The situation.
    pub id: String,
    /// Which repetition.
    pub rep: u32,
    /// The allowed CPUs, as a cpulist.
    pub mask: String,
    /// How many tasks were forked.
    pub n: u32,
    /// `spin`, or a nap first.
    pub child: String,
    /// What the parent did afterwards: `burn` or `sleep`.
    pub after: String,
    /// Pause between two forks beside what a fork takes, in microseconds.
    pub gap_us: u64,
    /// The CPUs of tasks that had been running for a while.
    pub bg_cpus: Vec<u16>,
    /// How many of these may move.
    pub bgfree: u32,
    /// The CPU of the sleeping observer.
    pub observer_cpu: u16,
    /// For each task the CPU it was placed on; none if the event was lost.
    pub fork_cpu: Vec<Option<u16>>,
    /// For each task the CPU that the parent was on then.
    pub parent_cpu: Vec<Option<u16>>,
    /// For each task the time since the first fork, in microseconds.
    pub fork_at_us: Vec<Option<u64>>,
    /// Every migration, in order.
    pub moves: Vec<Move>,
    /// Later looks, in order.
    pub snaps: Vec<Look>,
    /// The same as tasks per CPU by milliseconds.
    pub per_cpu_at_ms: BTreeMap<String, BTreeMap<String, u32>>,
    /// CPU time of each task at the last look, in milliseconds.
    pub runtime_ms: Vec<Option<f64>>,
}

impl Case {
    /// The CPUs that tasks shared at some time.
    pub fn crowded(&self) -> CpuSet {
        let mut forked: Vec<u16> =
            self.fork_cpu.iter().chain(&self.parent_cpu[..1]).flatten().copied().collect();
        forked.sort_unstable();
        let as_forked = forked.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let counts = self.per_cpu_at_ms.values().flatten().filter(|(_, tasks)| **tasks > 1);
        let later = counts.filter_map(|(cpu, _)| cpu.parse().ok());
        as_forked.chain(later).map(Cpu::from).collect()
    }
}

impl Record {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is no such record.
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("{}: cannot be opened", path.display()))?;
        let mut text = String::new();
        flate2::read::GzDecoder::new(file)
            .read_to_string(&mut text)
            .with_context(|| format!("{}: is no gzipped text", path.display()))?;
        let (mut machine, mut cases) = (None, Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = serde_json::from_str(line)
                .with_context(|| format!("{}: line {} is no record", path.display(), number + 1))?;
            match line {
                Line::Machine(it) => machine = Some(*it),
                Line::Case(case) => cases.push(*case),
                Line::Other => {}
            }
        }
        let machine = machine.with_context(|| format!("{}: has no line of type machine", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().replace(".jsonl.gz", "");
        Ok(Self { name, machine, cases })
    }

    /// Reads every file of a folder, by name.
    ///
    /// # Errors
    ///
    /// If the folder or a file cannot be read, or there is no record in it.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let entries = folder.read_dir().with_context(|| format!("{}: cannot be read", folder.display()))?;
        let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        let mut paths: Vec<_> =
            paths.into_iter().filter(|path| path.to_string_lossy().ends_with(".jsonl.gz")).collect();
        paths.sort();
        ensure!(!paths.is_empty(), "{}: holds no *.jsonl.gz", folder.display());
        paths.iter().map(|path| Self::read(path)).collect()
    }
}

impl Machine {
    /// The topology that the kernel saw. The emulated hosts are no AMD machines to it.
    ///
    /// # Errors
    ///
    /// If the record contradicts itself.
    pub fn topology(&self) -> Result<Topology> {
        let lowest =
            |text: &str| CpuSet::parse(text)?.first().map(Cpu::number).context("an empty set of CPUs");
        let mut node_of = BTreeMap::new();
        for node in &self.nodes {
            node_of.extend(CpuSet::parse(&node.cpulist)?.iter().map(|cpu| (cpu, node.node)));
        }
        let mut pus = Vec::new();
        for line in &self.cpus {
            let cpu = Cpu::from(line.cpu);
            pus.push(PuDescription {
                cpu,
                package: line.package.parse()?,
                node: *node_of.get(&cpu).context("a CPU without a node")?,
                llc: lowest(&line.l3)?,
                cluster: None,
                core: lowest(&line.smt)?,
                capacity: 0,
            });
        }
        let row = |node: &Node| node.distance.split(' ').map(str::parse).collect::<Result<Vec<u32>, _>>();
        Ok(Topology::try_new(Description {
            pus,
            nodes: self.nodes.iter().map(|n| NodeDescription { id: n.node, memory: None }).collect(),
            distances: Some(self.nodes.iter().map(row).collect::<Result<_, _>>()?),
            processor: Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) },
            ..Description::default()
        })?)
    }

    /// The profile of its kernel, told as on any host.
    ///
    /// # Errors
    ///
    /// If the kernel's version cannot be told.
    pub fn profile(&self) -> Result<&'static Profile> {
        let identity =
            KernelIdentity { version: Some(self.version.clone()), ..KernelIdentity::new(&self.kernel) };
        profile::candidates(&identity)?.profiles.first().copied().context("no profile")
    }
}
