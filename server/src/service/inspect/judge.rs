//! What is wrong with a workload, and what mends it.

use super::look::Workload;
use crate::{
    convert::{
        cpus::shorten,
        verify::{finding, move_memory, set_affinity, threads},
    },
    ingest::{numa_maps::Memory, threads::Thread},
};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    topology::{Level, Topology},
    verify::{Move, PileUp, Runner, moves, pile_ups},
};
use berth_proto::v1;
use std::collections::{BTreeMap, BTreeSet};

/// Memory on other nodes matters from this part of all, and from so many bytes.
const WRONG_SHARE: f64 = 0.1;
const WRONG_BYTES: u64 = 16 << 20;

/// What a workload is held against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) topology: &'a Topology,
    /// The CPUs that its tasks should be on, if that is known.
    pub(super) expected: Option<&'a CpuSet>,
    /// Runnable tasks of each CPU.
    pub(super) counts: &'a BTreeMap<Cpu, u32>,
}

/// Where a workload's threads wait although they need not.
#[derive(Debug, Clone, Default)]
pub(super) struct Crowds {
    /// They may use emptier CPUs, or should be on them.
    pub(super) piled: Vec<PileUp>,
    /// Their masks keep them from emptier CPUs of their cpuset.
    pub(super) by_mask: Vec<PileUp>,
}

impl Crowds {
    pub(super) fn are_none(&self) -> bool {
        self.piled.is_empty() && self.by_mask.is_empty()
    }

    /// Only those on the CPUs that are crowded in the other look too.
    pub(super) fn keep(&mut self, earlier: &Self) {
        let keep = |now: &mut Vec<PileUp>, before: &[PileUp]| {
            now.retain(|one| before.iter().any(|other| other.cpu == one.cpu));
        };
        keep(&mut self.piled, &earlier.piled);
        keep(&mut self.by_mask, &earlier.by_mask);
    }
}

impl Workload {
    fn running(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().filter(|thread| thread.task.is_runnable())
    }

    /// The CPUs of the thread's cpuset that are online; those of its mask where that cannot be read.
    fn open_to(&self, thread: &Thread, ground: Ground<'_>) -> CpuSet {
        let cpuset = self.cpusets.get(&thread.process.pid).unwrap_or(&thread.allowed);
        cpuset.intersection(ground.topology.online())
    }

    /// The CPUs that the thread should keep to: those that are expected of it, else its mask.
    fn own(&self, thread: &Thread, ground: Ground<'_>) -> CpuSet {
        let expected = ground.expected.map(|expected| expected.intersection(&self.open_to(thread, ground)));
        let own = expected.filter(|expected| !expected.is_empty());
        own.unwrap_or_else(|| thread.allowed.intersection(ground.topology.online()))
    }

    fn is_pinned(thread: &Thread, ground: Ground<'_>) -> bool {
        !ground.topology.online().is_subset(&thread.allowed)
    }

    /// Where its threads wait although they need not.
    pub(super) fn crowds(&self, ground: Ground<'_>) -> Crowds {
        let own = Usable::new(self.running().map(|thread| (thread, self.own(thread, ground))));
        let piled = pile_ups(&own.runners(), ground.counts);
        if ground.expected.is_some() {
            return Crowds { piled, by_mask: Vec::new() };
        }
        let wider = self.wider(ground);
        let is_told = |one: &PileUp| piled.iter().any(|other| other.cpu == one.cpu);
        let by_mask = pile_ups(&wider.runners(), ground.counts).into_iter().filter(|one| !is_told(one));
        Crowds { by_mask: by_mask.collect(), piled }
    }

    /// Its pinned threads, each with all CPUs of its cpuset.
    fn wider(&self, ground: Ground<'_>) -> Usable<'_> {
        let pinned = self.running().filter(|thread| Self::is_pinned(thread, ground));
        Usable::new(pinned.map(|thread| (thread, self.open_to(thread, ground))))
    }

    /// All that is wrong with it, the worst first. `mended` has the runnable tasks of each CPU once all steps so far are
    /// done, and takes in those that are told here: others do not go to the same CPUs.
    pub(super) fn findings(
        &self,
        crowds: &Crowds,
        memory: &[(u32, Memory)],
        ground: Ground<'_>,
        mended: &mut BTreeMap<Cpu, u32>,
    ) -> Vec<v1::Finding> {
        let mut findings = Vec::new();
        findings.extend(self.piled_up(&crowds.piled, ground, mended));
        findings.extend(self.crowded_by_mask(&crowds.by_mask, ground, mended));
        findings.extend(self.drift(ground));
        findings.extend(self.memory_elsewhere(memory, ground));
        findings
    }

    fn piled_up(
        &self,
        piled: &[PileUp],
        ground: Ground<'_>,
        mended: &mut BTreeMap<Cpu, u32>,
    ) -> Option<v1::Finding> {
        let told = Told::of(piled)?;
        let own = Usable::new(self.running().map(|thread| (thread, self.own(thread, ground))));
        let moves = made(moves(&own.runners(), mended), mended);
        let may = if ground.expected.is_some() { "should be on" } else { "may use" };
        let idle = match told.idle.is_empty() {
            true => format!("although others that they {may} are emptier"),
            false => format!("while {} that they {may} {} idle", told.idle_cpus(), told.are()),
        };
        let who = threads(told.tids.len(), "shares", "share");
        let message = format!("{who} {} {idle}.{}", told.cpus(), once(&moves));
        // A mask of one CPU for a moment moves a thread at once; then it has its own one again, and stays there.
        let mut fixes: Vec<v1::Fix> = moves.iter().map(to_one).collect();
        let mut after: BTreeMap<CpuSet, Vec<u32>> = BTreeMap::new();
        for thread in self.moved(&moves) {
            after.entry(self.own(thread, ground)).or_default().push(thread.task.tid);
        }
        fixes.extend(after.into_iter().map(|(mask, tids)| set_affinity(tids, &mask)));
        Some(v1::Finding { fixes, ..finding("PILED_UP", message, &told.on, told.tids) })
    }

    fn crowded_by_mask(
        &self,
        by_mask: &[PileUp],
        ground: Ground<'_>,
        mended: &mut BTreeMap<Cpu, u32>,
    ) -> Option<v1::Finding> {
        let told = Told::of(by_mask)?;
        let moves = made(moves(&self.wider(ground).runners(), mended), mended);
        let idle = match told.idle.is_empty() {
            true => "while others of their cpuset are emptier".to_owned(),
            false => format!("while {} of their cpuset {} idle", told.idle_cpus(), told.are()),
        };
        let who = threads(told.tids.len(), "has to share", "have to share");
        let message = format!("{who} {}, by the masks, {idle}.{}", told.cpus(), once(&moves));
        let mut fixes: Vec<v1::Fix> = moves.iter().map(to_one).collect();
        // A mask of several CPUs stays one, with those that were missing.
        let mut wider: BTreeMap<&CpuSet, CpuSet> = BTreeMap::new();
        for (thread, one) in self.moved(&moves).zip(&moves).filter(|(thread, _)| thread.allowed.len() > 1) {
            wider.entry(&thread.allowed).or_insert_with(|| thread.allowed.clone()).insert(one.to);
        }
        for (mask, wider) in wider {
            let tids = self.running().filter(|thread| thread.allowed == *mask).map(|thread| thread.task.tid);
            fixes.push(set_affinity(tids.collect(), &wider));
        }
        Some(v1::Finding { fixes, ..finding("CROWDED_BY_MASK", message, &told.on, told.tids) })
    }

    /// The threads of moves, in their order.
    fn moved(&self, moves: &[Move]) -> impl Iterator<Item = &Thread> {
        moves.iter().filter_map(|one| self.threads.iter().find(|thread| thread.task.tid == one.tid))
    }

    /// Masks that are not within what is expected.
    fn drift(&self, ground: Ground<'_>) -> Vec<v1::Finding> {
        let Some(expected) = ground.expected else { return Vec::new() };
        let (mut wiped, mut outside, mut closed) = (Vec::new(), Vec::new(), Vec::new());
        for thread in &self.threads {
            let open = self.open_to(thread, ground);
            let (tid, mask) = (thread.task.tid, thread.allowed.intersection(ground.topology.online()));
            if !open.intersects(expected) {
                closed.push(tid);
            } else if mask.is_subset(expected) {
            } else if open.is_subset(&mask) {
                wiped.push(tid);
            } else {
                outside.push(tid);
            }
        }
        let expected_text = shorten(expected);
        let mut findings = Vec::new();
        let mut add = |reason: &str, tids: Vec<u32>, [one, many]: [&str; 2], mends: bool| {
            if tids.is_empty() {
                return;
            }
            let message = format!("{} {expected_text}.", threads(tids.len(), one, many));
            let fixes = if mends { vec![set_affinity(tids.clone(), expected)] } else { Vec::new() };
            findings.push(v1::Finding { fixes, ..finding(reason, message, expected, tids) });
        };
        let wiped_so =
            "may use every CPU of the cpuset, as after a change of it that wipes masks, and should be on";
        add("MASK_WIPED", wiped, [wiped_so; 2], true);
        add("OUTSIDE_EXPECTED", outside, ["may use other CPUs than"; 2], true);
        let closed_so = ["has a cpuset with none of the CPUs", "have a cpuset with none of the CPUs"];
        add("EXPECTED_OUTSIDE_CPUSET", closed, closed_so, false);
        findings
    }

    /// The nodes that its memory should be on: those of the CPUs that its threads should keep to.
    pub(super) fn nodes(&self, ground: Ground<'_>) -> BTreeSet<u32> {
        let cpus =
            self.threads.iter().fold(CpuSet::new(), |all, thread| all.union(&self.own(thread, ground)));
        let units: BTreeSet<usize> =
            cpus.iter().filter_map(|cpu| ground.topology.unit_of(Level::Node, cpu)).collect();
        let id = |unit: usize| {
            let node = *ground.topology.cpu_nodes().get(unit)?;
            Some(ground.topology.nodes().get(node)?.id)
        };
        units.into_iter().filter_map(id).collect()
    }

    fn memory_elsewhere(&self, memory: &[(u32, Memory)], ground: Ground<'_>) -> Option<v1::Finding> {
        let near = self.nodes(ground);
        let (mut all, mut far, mut fixes) = (0_u64, 0_u64, Vec::new());
        for (pid, memory) in memory {
            let wrong = memory.bytes.iter().filter(|(node, bytes)| !near.contains(node) && **bytes > 0);
            let from: Vec<u32> = wrong.clone().map(|(node, _)| *node).collect();
            all = all.saturating_add(memory.bytes.values().sum());
            far = far.saturating_add(wrong.map(|(_, bytes)| *bytes).sum());
            if !from.is_empty() {
                fixes.push(move_memory(*pid, &from, &near.iter().copied().collect::<Vec<_>>()));
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "a share")]
        let share = far as f64 / all.max(1) as f64;
        if near.is_empty() || far < WRONG_BYTES || share < WRONG_SHARE {
            return None;
        }
        let nodes: Vec<String> = near.iter().map(u32::to_string).collect();
        let message = format!(
            "{} MiB of {} MiB are on other NUMA nodes than {}, where its threads are.",
            far >> 20,
            all >> 20,
            nodes.join(", ")
        );
        Some(v1::Finding { fixes, ..finding("MEMORY_ELSEWHERE", message, &CpuSet::new(), Vec::new()) })
    }
}

/// The moves, once they are counted as made.
fn made(moves: Vec<Move>, counts: &mut BTreeMap<Cpu, u32>) -> Vec<Move> {
    for one in &moves {
        let from = counts.entry(one.from).or_default();
        *from = from.saturating_sub(1);
        *counts.entry(one.to).or_default() += 1;
    }
    moves
}

/// What is to be said where nothing is left to be moved.
fn once(moves: &[Move]) -> &'static str {
    if moves.is_empty() { " The steps of the workloads before this one leave it enough room." } else { "" }
}

/// A thread is put on one CPU.
fn to_one(one: &Move) -> v1::Fix {
    set_affinity(vec![one.tid], &CpuSet::from(one.to))
}

/// Threads, each with the CPUs that count as usable.
struct Usable<'a>(Vec<(&'a Thread, CpuSet)>);

impl<'a> Usable<'a> {
    fn new(threads: impl Iterator<Item = (&'a Thread, CpuSet)>) -> Self {
        Self(threads.collect())
    }

    fn runners(&self) -> Vec<Runner<'_>> {
        self.0
            .iter()
            .map(|(thread, usable)| Runner { tid: thread.task.tid, cpu: thread.task.cpu, usable })
            .collect()
    }
}

/// Pile-ups in a sentence.
struct Told {
    on: CpuSet,
    idle: CpuSet,
    tids: Vec<u32>,
}

impl Told {
    fn of(piled: &[PileUp]) -> Option<Self> {
        let mut tids: Vec<u32> = piled.iter().flat_map(|one| one.tids.iter().copied()).collect();
        tids.sort_unstable();
        let on = piled.iter().map(|one| one.cpu).collect();
        let idle = piled.iter().fold(CpuSet::new(), |all, one| all.union(&one.idle));
        (!piled.is_empty()).then_some(Self { on, idle, tids })
    }

    fn cpus(&self) -> String {
        named(&self.on)
    }

    fn idle_cpus(&self) -> String {
        named(&self.idle)
    }

    fn are(&self) -> &'static str {
        if self.idle.len() == 1 { "is" } else { "are" }
    }
}

fn named(cpus: &CpuSet) -> String {
    let name = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{name} {}", shorten(cpus))
}
