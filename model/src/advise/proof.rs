//! Whether a form is safe: the kernel model is run from every plausible origin, under every candidate profile, along
//! every way that user space cannot tell apart.

use super::{Kernel, Launch, Part, objective::Judge, tree::split};
use crate::{
    cpuset::{Cpu, CpuSet},
    load::Load,
    predict::{Explored, Host, Markable, Outset, Parent, Run, Search},
    topology::{Level, Topology},
};
use std::collections::HashSet;

/// The most runs that one proof makes.
pub const MAX_RUNS: u32 = 256;

/// The most groups that one proof looks at, over all runs: a proof of very many tasks, or on a very flat host, is cut
/// too.
const MAX_LOOKS: u64 = 1 << 23;

/// The most extra busy CPUs that a margin is looked for with.
const MAX_MARGIN: u32 = 4;

/// So many CPUs with holders, or packages of them, may have any of these wake.
const FEW_HOLDERS: usize = 3;

/// What a proof found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// No run piles up.
    Safe,
    /// A run piles up.
    Unsafe,
    /// A run keeps to the bound on every CPU and not to the policy's shape: nothing was looked for beyond it.
    Misshapen,
    /// A full proof needs more runs than are allowed: not called safe.
    Cut,
}

/// A run that piles up, or misses the policy's shape, and under what.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Name of the profile.
    pub profile: &'static str,
    /// The CPU that the parent was on.
    pub origin: Cpu,
    /// Index of the part.
    pub part: usize,
    /// What ran as the part was launched; `None` if the run is one of all parts, one after the other.
    pub load: Option<Load>,
    /// The run of that part's tasks.
    pub run: Run,
}

/// Whether a form is safe, and how that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// What was found.
    pub outcome: Outcome,
    /// Runs of the kernel model; mirror images of each other count once.
    pub runs: u32,
    /// How many extra busy CPUs, placed worst, the form stands; `None` if not looked for.
    pub margin: Option<Margin>,
    /// The first run that piles up, or misses the policy's shape.
    pub failure: Option<Failure>,
    /// The origins that were tried, one of each class.
    pub origins: CpuSet,
    /// The profiles that were tried.
    pub profiles: Vec<&'static str>,
}

/// How many extra busy CPUs, placed worst, a form stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Margin {
    /// So many are proven.
    pub cpus: u32,
    /// The search ended there without a failure: it may be more.
    pub at_least: bool,
}

impl Proof {
    /// Takes a proof back for a run of all parts together.
    pub(super) fn refute(&mut self, profile: &'static str, origin: Cpu, run: Run) {
        self.outcome = Outcome::Unsafe;
        self.failure = Some(Failure { profile, origin, part: 0, load: None, run });
    }

    /// The proof if that run misses the policy's shape.
    fn held_to(self, misshapen: Option<Failure>) -> Self {
        match self.outcome {
            Outcome::Safe if misshapen.is_some() => {
                Self { outcome: Outcome::Misshapen, failure: misshapen, ..self }
            }
            _ => self,
        }
    }

    /// Whether no run piles up.
    pub fn is_safe(&self) -> bool {
        self.outcome == Outcome::Safe
    }
}

/// What a proof is made on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prover<'a> {
    pub(super) topology: &'a Topology,
    pub(super) kernels: &'a [Kernel<'a>],
    pub(super) load: &'a Load,
    pub(super) launch: Launch<'a>,
    /// Which groups may be marked as imbalanced.
    pub(super) marks: Markable,
    /// Every end of a run that does not pile up is accepted.
    pub(super) any_shape: bool,
}

impl<'a> Prover<'a> {
    /// Proves parts, each launched under its own mask. Ends of runs that do not pile up are held to the shape of the part's
    /// placement, if there is a judge.
    pub(super) fn prove(&self, parts: &[Part], judge: Option<&Judge<'_>>) -> Proof {
        let mut work = Work::default();
        self.follow(parts, judge, &mut work);
        let misshapen = work.misshapen.take();
        work.proof().held_to(misshapen)
    }

    /// The same by itself and held to the shape, from the same runs.
    pub(super) fn prove_both(&self, parts: &[Part], judge: Option<&Judge<'_>>) -> (Proof, Proof) {
        let mut work = Work { beyond_shape: true, ..Work::default() };
        self.follow(parts, judge, &mut work);
        let misshapen = work.misshapen.take();
        let proof = work.proof();
        (proof.clone(), proof.held_to(misshapen))
    }

    /// Follows all runs of the parts, up to one that fails.
    fn follow(&self, parts: &[Part], judge: Option<&Judge<'_>>, work: &mut Work) {
        let of_parent = self.launch.part_of_parent(parts);
        for kernel in self.kernels {
            work.profiles.push(kernel.profile.name);
            for (index, part) in parts.iter().enumerate() {
                // A task with one CPU goes there, whatever the kernel.
                if part.cpus.len() == 1 {
                    work.origins.extend_from(&part.cpus);
                    continue;
                }
                for load in self.loads_around(parts, index) {
                    let launch = self.launch.of_part(index == of_parent);
                    let prover = Prover { load: &load, launch, ..*self };
                    if !prover.part_holds(kernel, index, part, judge, work) {
                        return;
                    }
                }
            }
        }
    }

    /// How many extra busy CPUs, placed worst, safe parts stand; `None` where tasks are pinned to single CPUs, which
    /// stand none that is on their own.
    pub(super) fn margin(&self, parts: &[Part], judge: Option<&Judge<'_>>) -> Option<Margin> {
        if parts.iter().any(|part| part.cpus.len() == 1) {
            return None;
        }
        let (mut loads, mut runs) = (vec![self.load.clone()], 0);
        for cpus in 1..=MAX_MARGIN {
            let mut busier: Vec<Load> = Vec::new();
            for load in &loads {
                for cpu in &(Prover { load, ..*self }).every_look(parts) {
                    if busier.len() >= MAX_RUNS as usize {
                        return Some(Margin { cpus: cpus - 1, at_least: true });
                    }
                    let mut load = load.clone();
                    load.add(cpu, 1);
                    let proof = Prover { load: &load, ..*self }.prove(parts, judge);
                    runs += proof.runs;
                    let at_least = match proof.outcome {
                        Outcome::Unsafe | Outcome::Misshapen => false,
                        Outcome::Safe if runs <= MAX_RUNS => {
                            busier.push(load);
                            continue;
                        }
                        Outcome::Safe | Outcome::Cut => true,
                    };
                    return Some(Margin { cpus: cpus - 1, at_least });
                }
            }
            loads = busier;
        }
        Some(Margin { cpus: MAX_MARGIN, at_least: true })
    }

    /// CPUs of which every other is the mirror image under every kernel, with what runs, the parts and the parent where
    /// they are.
    fn every_look(&self, parts: &[Part]) -> CpuSet {
        let allowed = parts.iter().fold(CpuSet::new(), |all, part| all.union(&part.cpus));
        let labels = self.labels(parts);
        let burst = self.launch.burst(&allowed, 1, Cpu::from(0));
        let looks: Vec<Outset<'_>> = self
            .kernels
            .iter()
            .map(|kernel| {
                Outset::told(self.host(kernel), kernel.symmetry, &burst, self.launch.origin, &labels)
            })
            .collect();
        let mut known: HashSet<Vec<u64>> = HashSet::new();
        let new = |cpu: &Cpu| known.insert(looks.iter().map(|outset| outset.class(*cpu)).collect());
        self.topology.online().iter().filter(new).collect()
    }

    /// For each CPU a label that tells parts apart: those inside one NUMA node that have as many CPUs and tasks may change
    /// places with all that is in them, but for the one of which the parent is a task.
    fn labels(&self, parts: &[Part]) -> Vec<u64> {
        let mut labels = vec![0; self.topology.cpu_limit()];
        let of_parent = (self.launch.parent == Parent::IsTask).then(|| self.launch.part_of_parent(parts));
        for (index, part) in parts.iter().enumerate() {
            let node = part.cpus.first().and_then(|cpu| self.topology.span(Level::Node, cpu));
            let is_like_others =
                node.is_some_and(|node| part.cpus.is_subset(node)) && of_parent != Some(index);
            let label = if is_like_others {
                1 << 63 | (part.cpus.len() as u64) << 32 | u64::from(part.tasks)
            } else {
                index as u64 + 1
            };
            part.cpus.iter().for_each(|cpu| labels[cpu.index()] = label);
        }
        labels
    }

    fn host(&self, kernel: &Kernel<'a>) -> Host<'a> {
        let (domains, profile) = (kernel.domains, kernel.profile);
        Host { topology: self.topology, domains, profile, load: self.load }
    }

    /// What may run as one part is launched: none of the others, those before it, or all; each with holders asleep and
    /// with holders running.
    fn loads_around(&self, parts: &[Part], index: usize) -> Vec<Load> {
        let with = |others: &mut dyn Iterator<Item = &Part>| {
            let mut load = self.load.clone();
            for cpu in others.flat_map(|part| &part.placed) {
                load.add(*cpu, 1);
            }
            load
        };
        let (before, after) = (&parts[..index], &parts[index + 1..]);
        let mut loads = vec![self.load.clone()];
        if !before.is_empty() && !after.is_empty() {
            loads.push(with(&mut before.iter()));
        }
        if parts.len() > 1 {
            loads.push(with(&mut before.iter().chain(after)));
        }
        let wake = self.who_wakes();
        let awake: Vec<Load> =
            loads.iter().flat_map(|load| wake.iter().map(|cpus| load.awake_on(cpus))).collect();
        loads.extend(awake);
        loads
    }

    /// Which CPUs' holders may run while others sleep. CPU by CPU where they are few, else by package; any of these
    /// where they are few, else each by itself, all others, and all.
    fn who_wakes(&self) -> Vec<CpuSet> {
        let sleepers = self.load.sleepers();
        if sleepers.is_empty() {
            return Vec::new();
        }
        let units: Vec<CpuSet> = if sleepers.len() <= FEW_HOLDERS {
            sleepers.iter().map(CpuSet::from).collect()
        } else {
            split(self.topology, Level::Package, &sleepers)
        };
        if units.len() > FEW_HOLDERS {
            let others = units.iter().map(|unit| sleepers.difference(unit));
            return units.iter().cloned().chain(others).chain([sleepers.clone()]).collect();
        }
        (1..1_usize << units.len())
            .map(|chosen| {
                let unit = |index: &usize| chosen >> index & 1 == 1;
                (0..units.len()).filter(unit).fold(CpuSet::new(), |all, index| all.union(&units[index]))
            })
            .collect()
    }

    /// Follows all runs of one part; says whether all hold.
    fn part_holds(
        &self,
        kernel: &Kernel<'_>,
        index: usize,
        part: &Part,
        judge: Option<&Judge<'_>>,
        work: &mut Work,
    ) -> bool {
        let host = self.host(kernel);
        let given = self.launch.origin.filter(|&cpu| part.as_asked || part.cpus.contains(cpu));
        let burst = self.launch.burst(&part.cpus, part.tasks, Cpu::from(0));
        let outset = Outset::new(host, kernel.symmetry, &burst);
        // A part that is the mirror image of one that holds, holds.
        let look = (kernel.profile.name, outset.look(), part.tasks, self.launch.parent);
        if given.is_none() && self.any_shape && !work.held.insert(look) {
            return true;
        }
        let starts = match given {
            Some(cpu) => vec![cpu],
            None => outset.origins().into_iter().map(|origin| origin.cpu).collect(),
        };
        let wanted = judge.map(|judge| judge.shape(&part.placed));
        let misses = |run: &Run| judge.map(|judge| judge.shape(&run.places)) > wanted;
        for origin in starts {
            work.origins.insert(origin);
            let search = Search {
                marks: self.marks,
                weights: self.launch.gap > 0,
                stop_at_pile_up: true,
                runs: MAX_RUNS.saturating_sub(work.runs),
                looks: MAX_LOOKS.saturating_sub(work.looks),
            };
            let explored = outset.explore(origin, search);
            work.runs += explored.runs;
            work.looks += explored.looks;
            let Explored { ends, refused, complete, .. } = explored;
            work.cut |= !complete;
            let profile = kernel.profile.name;
            let failure =
                |run| Some(Failure { profile, origin, part: index, load: Some(self.load.clone()), run });
            if let Some(run) = refused {
                work.failure = failure(run);
                return false;
            }
            if work.misshapen.is_none() {
                work.misshapen = ends.into_iter().find(misses).and_then(failure);
            }
            if work.cut || (work.misshapen.is_some() && !work.beyond_shape) {
                return false;
            }
        }
        true
    }
}

/// What a proof has come to so far.
#[derive(Default)]
struct Work {
    runs: u32,
    looks: u64,
    cut: bool,
    failure: Option<Failure>,
    /// The first run that misses the policy's shape, and whether to go on from there.
    misshapen: Option<Failure>,
    beyond_shape: bool,
    origins: CpuSet,
    profiles: Vec<&'static str>,
    /// Profile, look, tasks and parent of the parts that were followed. A part that fails ends the proof.
    held: HashSet<(&'static str, u64, u32, Parent)>,
}

impl Work {
    fn proof(self) -> Proof {
        let outcome = match (&self.failure, self.cut) {
            (Some(_), _) => Outcome::Unsafe,
            (None, true) => Outcome::Cut,
            (None, false) => Outcome::Safe,
        };
        let Self { runs, failure, origins, profiles, .. } = self;
        Proof { outcome, runs, margin: None, failure, origins, profiles }
    }
}
