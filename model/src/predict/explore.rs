//! Every run that a burst may take where user space cannot see what decides.

use super::{
    Burst, Children, Host, Markable, Outset, Symmetry, Tally, Weight,
    group::Open,
    place,
    state::State,
    symmetry::{Narrowed, Picture},
    tally::Bounds,
};
use crate::cpuset::{Cpu, CpuSet};
use std::collections::HashSet;

/// One way in which a burst may go.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The CPU of each task, in the order in which they were started.
    pub places: Vec<Cpu>,
    /// What it comes to.
    pub tally: Tally,
}

/// How far to follow the runs of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// With the imbalance mark and without it wherever it can arise, or without it only.
    pub marks: Markable,
    /// For however long the tasks have run, or as the burst's clock says.
    pub weights: bool,
    /// Stop at the first run that piles up.
    pub stop_at_pile_up: bool,
    /// The most runs to follow at a time.
    pub runs: u32,
    /// The most groups and tied CPUs to look at, over all runs: what a search costs.
    pub looks: u64,
}

/// The runs of a burst.
#[derive(Debug, Clone, PartialEq)]
pub struct Explored {
    /// How many runs were told apart at a time; mirror images of each other count once.
    pub runs: u32,
    /// How many groups and tied CPUs were looked at.
    pub looks: u64,
    /// Whether `ends` are all. If not, a limit was reached, or a run piled up and ended the search.
    pub complete: bool,
    /// The runs that differ, at their ends; the central one if the search was ended.
    pub ends: Vec<Run>,
    /// A run that piles up, if any was found.
    pub refused: Option<Run>,
}

/// A run up to some task.
#[derive(Clone)]
struct Branch<'a> {
    state: State<'a>,
    picture: Picture<'a>,
    /// The last step on the trail.
    last: Option<usize>,
}

/// What the next task comes to on some CPU.
struct Landing {
    /// Tasks there, with those of the job that sleep.
    tasks: u32,
    /// Equal for ways that lead to mirror images of each other.
    key: u64,
}

impl Branch<'_> {
    /// What becomes of it with the next task on the CPU.
    fn landing(&self, children: Children, cpu: Cpu) -> Landing {
        let (mut queue, mut asleep) = (self.state.queue(cpu), self.picture.asleep(cpu));
        match children {
            Children::Running => queue = self.state.queue_with_fresh(cpu),
            Children::Asleep => asleep += 1,
        }
        Landing {
            tasks: queue.tasks.saturating_add(u32::try_from(asleep).unwrap_or(u32::MAX)),
            key: self.picture.key_with(&self.state, cpu, queue, asleep),
        }
    }

    /// Puts the next task on the CPU, and lets time pass.
    fn put(&mut self, children: Children, cpu: Cpu, gap: u64, trail: &mut Trail) {
        self.last = Some(trail.step(self.last, cpu));
        children.start_on(cpu, &mut self.state);
        match children {
            Children::Running => self.picture.update(&self.state, cpu),
            Children::Asleep => self.picture.put_asleep(&self.state, cpu),
        }
        self.state.advance(gap);
    }
}

/// Follows every run of a burst, whichever of equally idle CPUs and of equal groups is taken. Runs that are mirror
/// images of each other are followed once.
pub fn explore(host: Host<'_>, burst: &Burst<'_>, symmetry: &Symmetry, search: Search) -> Explored {
    Outset::new(host, symmetry, burst).explore(burst.origin, search)
}

/// The same from an outset.
pub(super) fn explore_from(outset: &Outset<'_>, burst: &Burst<'_>, search: Search) -> Explored {
    let host = outset.host;
    let bounds = burst.bounds(host);
    let central = Run::of(host, burst, &bounds, place(host, burst));
    let ended = |runs: u32, looks: u64, refused: Option<Run>| {
        let refused = refused.or_else(|| central.tally.pile_up.then(|| central.clone()));
        Explored { runs, looks, complete: false, ends: vec![central.clone()], refused }
    };
    if search.stop_at_pile_up && central.tally.pile_up {
        return ended(1, 0, None);
    }
    let walk = burst.walk();
    // Open weights are taken at their least, and no time passes.
    let (weight, gap) = if search.weights { (Weight::Light, 0) } else { (burst.parent_weight, burst.gap) };
    let (mut state, mut picture) = outset.begin();
    if search.weights {
        state.lighten();
        host.load.busy().for_each(|(cpu, _)| picture.update(&state, cpu));
    }
    burst.add_parent(weight, &mut state);
    picture.set_origin(&state, burst.origin);
    let mut trail = Trail::default();
    let last = burst.placed_at_start().map(|cpu| trail.step(None, cpu));
    let mut branches = vec![Branch { state, picture, last }];
    let (mut runs, mut looks) = (1, 0);

    for _ in 0..burst.placements() {
        let mut next: Vec<Branch<'_>> = Vec::with_capacity(branches.len());
        let mut known: HashSet<u64> = HashSet::new();
        for mut branch in branches {
            if looks > search.looks || next.len() >= search.runs as usize {
                return ended(runs, looks, None);
            }
            let open = Open { ring_order: true, marks: search.marks, weights: search.weights };
            let mut narrowed = Narrowed { picture: &branch.picture, cpus: CpuSet::new() };
            walk.visit(&mut branch.state, open, &mut narrowed);
            let mut cpus = narrowed.cpus;
            branch.picture.narrow(&mut cpus);
            looks += branch.state.take_looks();
            // Most ways lead to what another led to already: those are left before anything is copied.
            let mut new: Vec<Cpu> = Vec::new();
            for cpu in &cpus {
                let landing = branch.landing(burst.children, cpu);
                // Tasks do not move during a burst, so a pile-up that has begun stays.
                if search.stop_at_pile_up && bounds.exceeded(cpu, landing.tasks + host.load.asleep(cpu)) {
                    branch.put(burst.children, cpu, gap, &mut trail);
                    return ended(runs, looks, Some(finish(host, burst, &bounds, branch, &trail)));
                }
                if known.insert(landing.key) {
                    new.push(cpu);
                }
            }
            let Some(last) = new.pop() else { continue };
            // Copying a branch costs about as much as looking at an eighth of the host's CPUs.
            looks += (new.len() * host.topology.cpu_limit() / 8) as u64;
            for cpu in new {
                let mut copy = branch.clone();
                copy.put(burst.children, cpu, gap, &mut trail);
                next.push(copy);
            }
            branch.put(burst.children, last, gap, &mut trail);
            next.push(branch);
        }
        runs = runs.max(u32::try_from(next.len()).unwrap_or(u32::MAX));
        branches = next;
    }
    let ends: Vec<Run> =
        branches.into_iter().map(|branch| finish(host, burst, &bounds, branch, &trail)).collect();
    let refused = ends.iter().find(|run| run.tally.pile_up).cloned();
    Explored { runs, looks, complete: true, ends, refused }
}

impl Run {
    /// The central run of a burst.
    pub fn central(host: Host<'_>, burst: &Burst<'_>) -> Self {
        Self::of(host, burst, &burst.bounds(host), place(host, burst))
    }

    fn of(host: Host<'_>, burst: &Burst<'_>, bounds: &Bounds, places: Vec<Cpu>) -> Self {
        let tally = Tally::new(host.load, burst.allowed, &places, bounds);
        Self { places, tally }
    }
}

/// The steps of all runs; those that begin alike share theirs.
#[derive(Default)]
struct Trail(Vec<(Option<usize>, Cpu)>);

impl Trail {
    /// Adds a step behind another; says where it is.
    fn step(&mut self, before: Option<usize>, cpu: Cpu) -> usize {
        self.0.push((before, cpu));
        self.0.len() - 1
    }

    /// The CPUs of a run up to a step.
    fn up_to(&self, last: Option<usize>) -> Vec<Cpu> {
        let mut cpus: Vec<Cpu> =
            std::iter::successors(last, |&at| self.0[at].0).map(|at| self.0[at].1).collect();
        cpus.reverse();
        cpus
    }
}

/// Takes a run to its end by the kernel's central choices.
fn finish(host: Host<'_>, burst: &Burst<'_>, bounds: &Bounds, mut branch: Branch<'_>, trail: &Trail) -> Run {
    let mut places = trail.up_to(branch.last);
    let walk = burst.walk();
    while places.len() < burst.tasks as usize {
        let cpu = walk.place(&mut branch.state);
        burst.children.start_on(cpu, &mut branch.state);
        branch.state.advance(burst.gap);
        places.push(cpu);
    }
    Run::of(host, burst, bounds, places)
}
