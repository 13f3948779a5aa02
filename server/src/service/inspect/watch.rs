//! Several looks one after another: what lasts, and what moves.

use super::{
    judge::{Crowds, Ground},
    look::{Look, Workload, memory},
};
use crate::{
    convert::{Warnings, count, verify::Asked},
    ingest::{numa_maps::Memory, threads},
};
use berth_model::{cpuset::CpuSet, topology::Topology};
use berth_proto::v1::{self, verdict};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(250);
/// Tasks that pass each other have done so after this time.
pub(super) const SURE: Duration = Duration::from_millis(20);
/// Of more threads migrations are not read: each costs a file.
const MAX_THREADS: usize = 4096;
/// The most threads that are told of one workload.
const MAX_TOLD: usize = 4096;

/// The pauses between looks that take so long in all.
pub(super) fn pauses(watch: Option<Duration>) -> Vec<Duration> {
    let Some(watch) = watch else { return Vec::new() };
    let number = u32::try_from(watch.as_millis() / PAUSE.as_millis()).unwrap_or(1).max(1);
    vec![watch / number; number as usize]
}

/// A thread at the first look that saw it.
#[derive(Debug, Clone, Copy)]
struct First {
    at: Instant,
    start_time: u64,
    ticks: u64,
    migrations: Option<u64>,
}

/// What the looks so far have shown.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) last: Look,
    root: PathBuf,
    /// Of each workload of the last look, the crowds that all looks saw.
    crowds: Vec<Crowds>,
    firsts: HashMap<u32, First>,
    /// Of each workload of the last look, what memory its processes have, if that is asked for.
    memory: Vec<Vec<(u32, Memory)>>,
    looks: usize,
}

impl Watch {
    /// How many looks there were.
    pub(super) fn looks(&self) -> usize {
        self.looks
    }

    /// Whether all of them saw threads that wait although they need not.
    pub(super) fn finds_crowds(&self) -> bool {
        self.crowds.iter().any(|crowds| !crowds.are_none())
    }

    /// After one more look, of which `crowds` are those of each workload. `wants`: to know of migrations, and of memory.
    pub(super) fn next(
        before: Option<Self>,
        last: Look,
        mut crowds: Vec<Crowds>,
        root: &Path,
        (moves, with_memory): (bool, bool),
    ) -> Self {
        let mut firsts = HashMap::new();
        let looks = before.as_ref().map_or(0, |before| before.looks) + 1;
        if let Some(before) = before {
            for (workload, crowds) in last.workloads.iter().zip(&mut crowds) {
                let at = before.last.workloads.iter().position(|other| other.key() == workload.key());
                let earlier = at.and_then(|at| before.crowds.get(at)).cloned().unwrap_or_default();
                crowds.keep(&earlier);
            }
            firsts = before.firsts;
        } else if moves {
            firsts.reserve(last.seen.min(MAX_THREADS));
        }
        for thread in last.workloads.iter().flat_map(|workload| &workload.threads) {
            if moves && firsts.len() < MAX_THREADS {
                let (pid, tid) = (thread.process.pid, thread.task.tid);
                let (start_time, ticks) = (thread.task.start_time, thread.task.ticks);
                firsts.entry(tid).or_insert_with(|| First {
                    at: last.at,
                    start_time,
                    ticks,
                    migrations: threads::migrations(root, pid, tid),
                });
            }
        }
        let of = |workload: &Workload| if with_memory { memory(root, &workload.pids) } else { Vec::new() };
        let memory = last.workloads.iter().map(of).collect();
        Self { last, root: root.to_owned(), crowds, firsts, memory, looks }
    }

    /// What is to be known beside the workloads.
    pub(super) fn warn(&self, warnings: &mut Warnings) {
        if !self.last.gone.is_empty() {
            let pids: Vec<String> = self.last.gone.iter().take(16).map(u32::to_string).collect();
            let said =
                format!("{} processes are not there (any more): {}.", self.last.gone.len(), pids.join(", "));
            warnings.add("PROCESS_GONE", said);
        }
        if let Some(path) = &self.last.no_cgroup {
            let path: String = path.chars().take(80).collect();
            warnings.add("CGROUP_GONE", format!("There is no cgroup `{path}` (any more)."));
        }
        if self.last.hidden > 0 {
            let said = format!("{} threads belong to others, of whom you may not know.", self.last.hidden);
            warnings.add("THREADS_NOT_SHOWN", said);
        }
        if self.memory.iter().flatten().any(|(_, memory)| memory.cut) {
            let said = "A process has more mappings than are read at a time: its memory is told in part.";
            warnings.add("MEMORY_CUT", said);
        }
    }

    /// The workloads as they are told.
    pub(super) fn told(
        &self,
        topology: &Topology,
        expected: Option<&CpuSet>,
        asked: &Asked,
    ) -> Vec<v1::Workload> {
        let ground = Ground { topology, expected, counts: &self.last.counts };
        let mut mended = self.last.counts.clone();
        let all = self.last.workloads.iter().zip(&self.crowds).zip(&self.memory);
        all.map(|((workload, crowds), memory)| {
            let findings = workload.findings(crowds, memory, ground, &mut mended);
            self.workload(workload, crowds, memory, findings, ground, asked)
        })
        .collect()
    }

    fn workload(
        &self,
        workload: &Workload,
        crowds: &Crowds,
        memory: &[(u32, Memory)],
        findings: Vec<v1::Finding>,
        ground: Ground<'_>,
        asked: &Asked,
    ) -> v1::Workload {
        let concerned: BTreeSet<u32> =
            findings.iter().flat_map(|finding| finding.tids.iter().copied()).collect();
        let told =
            workload.threads.iter().filter(|thread| asked.full || concerned.contains(&thread.task.tid));
        let rates: Vec<Rates> = workload.threads.iter().filter_map(|thread| self.rates(thread)).collect();
        let running = rates.iter().filter(|rates| rates.is_runnable);
        let verdict = match () {
            () if !crowds.piled.is_empty() => verdict::Value::PileUp,
            () if workload.threads.iter().any(|thread| thread.task.is_runnable()) => verdict::Value::NoPileUp,
            () => verdict::Value::Unknown,
        };
        let piled = crowds.piled.iter().map(|one| v1::PileUp {
            cpu: one.cpu.number(),
            tids: one.tids.clone(),
            runnable: one.runnable,
            idle_allowed: one.idle.to_string(),
        });
        v1::Workload {
            name: workload.name.clone(),
            pids: workload.pids.clone(),
            uid: workload.uid,
            hold: String::new(),
            verdict: verdict.into(),
            pile_ups: piled.collect(),
            findings,
            threads: told.take(MAX_TOLD).map(|thread| self.thread(workload, thread)).collect(),
            migrations_per_second: sum(rates.iter().map(|rates| rates.migrations)),
            cpu_use: mean(running.map(|rates| rates.cpu_use)),
            memory: nodes(workload, memory, ground),
        }
    }

    fn thread(&self, workload: &Workload, thread: &threads::Thread) -> v1::ThreadState {
        let rates = self.rates(thread);
        let cpuset = workload.cpusets.get(&thread.process.pid);
        v1::ThreadState {
            pid: thread.process.pid,
            tid: thread.task.tid,
            command: threads::name(&self.root, thread.process.pid, thread.task.tid),
            cpu: thread.task.cpu.number(),
            allowed: thread.allowed.to_string(),
            cpuset: cpuset.map(ToString::to_string).unwrap_or_default(),
            state: thread.task.state.to_string(),
            migrations_per_second: rates.and_then(|rates| rates.migrations),
            cpu_use: rates.map(|rates| rates.cpu_use),
            start_time: thread.process.start_time,
        }
    }

    /// What a thread did since the first look that saw it.
    fn rates(&self, thread: &threads::Thread) -> Option<Rates> {
        let task = &thread.task;
        let first = self.firsts.get(&task.tid).filter(|first| first.start_time == task.start_time)?;
        let seconds = self.last.at.duration_since(first.at).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let now = threads::migrations(&self.root, thread.process.pid, task.tid);
        let per_second = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / seconds;
        let ticks = u32::try_from(rustix::param::clock_ticks_per_second()).map_or(100.0, f64::from);
        Some(Rates {
            is_runnable: task.is_runnable(),
            migrations: now.zip(first.migrations).map(|(now, then)| per_second(now.saturating_sub(then))),
            cpu_use: (per_second(task.ticks.saturating_sub(first.ticks)) / ticks).min(1.0),
        })
    }
}

/// What a thread did in a second.
#[derive(Debug, Clone, Copy)]
struct Rates {
    is_runnable: bool,
    migrations: Option<f64>,
    /// CPU time, 0 to 1.
    cpu_use: f64,
}

fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / f64::from(count(values.len())))
}

/// The memory of all its processes by node.
fn nodes(workload: &Workload, memory: &[(u32, Memory)], ground: Ground<'_>) -> Vec<v1::NodeMemory> {
    let near = workload.nodes(ground);
    let mut all: BTreeMap<u32, u64> = BTreeMap::new();
    for (node, bytes) in memory.iter().flat_map(|(_, memory)| &memory.bytes) {
        *all.entry(*node).or_default() += bytes;
    }
    let told = all.into_iter().map(|(node, bytes)| {
        let wrong = !near.is_empty() && !near.contains(&node);
        v1::NodeMemory { node, bytes, wrong }
    });
    told.collect()
}
