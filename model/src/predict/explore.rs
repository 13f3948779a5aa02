//! Every run that a burst may take where user space cannot see what decides.

use super::{Burst, Children, Host, Symmetry, Tally, group::Ties, state::State, symmetry::Picture};
use crate::cpuset::Cpu;
use std::collections::HashSet;

/// One way in which a burst may go.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The CPU of each task, in the order in which they were started.
    pub places: Vec<Cpu>,
    /// What it comes to.
    pub tally: Tally,
}

/// What the runs of a burst have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Explored {
    /// How many runs were told apart; mirror images of each other count once.
    pub runs: u32,
    /// Whether these are all. If not, the limit was reached.
    pub complete: bool,
    /// The runs at their ends; none if the search stopped at one that piles up.
    pub ends: Vec<Run>,
    /// A run that piles up, if any does.
    pub refused: Option<Run>,
}

/// A run up to some task.
#[derive(Clone)]
struct Branch<'a> {
    state: State<'a>,
    picture: Picture<'a>,
    /// The last step in the arena of steps.
    last: Option<usize>,
}

/// How far to follow the runs of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// With the imbalance mark and without it wherever it can arise, or without it only.
    pub marks: bool,
    /// Stop at the first run that piles up.
    pub stop_at_pile_up: bool,
    /// The most runs to follow at a time; beyond, one of them is followed further, and the answer is not complete.
    pub limit: u32,
}

/// Follows every run of a burst, whichever of equally idle CPUs and of equal groups is taken. Runs that are mirror
/// images of each other are followed once.
pub fn explore(host: Host<'_>, burst: &Burst<'_>, symmetry: &Symmetry, search: Search) -> Explored {
    let walk = burst.walk();
    let state = burst.start(host);
    let picture = symmetry.picture(&state, Some(burst.origin));
    let bounds = burst.bounds(host);
    let mut steps: Vec<(Option<usize>, Cpu)> = Vec::new();
    let mut start = Branch { state, picture, last: None };
    if let Some(cpu) = burst.placed_at_start() {
        steps.push((None, cpu));
        start.last = Some(0);
    }
    let mut branches = vec![start];
    let (mut runs, mut complete) = (1, true);

    for _ in 0..burst.placements() {
        let mut next: Vec<Branch<'_>> = Vec::with_capacity(branches.len());
        let mut known: HashSet<u64> = HashSet::new();
        for mut branch in branches {
            let picture = &branch.picture;
            let mut cpus =
                walk.outcomes(&mut branch.state, Ties::Any, search.marks, |_, cpus| picture.narrow(cpus));
            picture.narrow(&mut cpus);
            let last = cpus.last();
            let mut branch = Some(branch);
            for cpu in &cpus {
                // The last outcome takes the branch over, the others copy it.
                let taken = if Some(cpu) == last { branch.take() } else { branch.clone() };
                let Some(mut taken) = taken else { continue };
                steps.push((taken.last, cpu));
                taken.last = Some(steps.len() - 1);
                burst.children.start_on(cpu, &mut taken.state);
                taken.picture.update(&taken.state, cpu);
                // Tasks do not move during a burst, so a pile-up that has begun stays.
                if burst.children != Children::Asleep
                    && bounds.exceeded_now(cpu, taken.state.queue(cpu).tasks)
                {
                    let run = finish(host, burst, taken, &steps);
                    return Explored { runs, complete: false, ends: Vec::new(), refused: Some(run) };
                }
                if known.insert(taken.picture.key()) {
                    next.push(taken);
                }
            }
        }
        let width = u32::try_from(next.len()).unwrap_or(u32::MAX);
        if width > search.limit {
            complete = false;
            next.truncate(1);
        }
        runs = runs.max(width);
        branches = next;
    }
    let ends: Vec<Run> = branches.into_iter().map(|branch| finish(host, burst, branch, &steps)).collect();
    let refused = ends.iter().find(|run| run.tally.pile_up).cloned();
    Explored { runs, complete, ends, refused }
}

/// Takes a run to its end by the kernel's central choices.
fn finish(host: Host<'_>, burst: &Burst<'_>, mut branch: Branch<'_>, steps: &[(Option<usize>, Cpu)]) -> Run {
    let mut places = Vec::with_capacity(burst.tasks as usize);
    let mut at = branch.last;
    while let Some((before, cpu)) = at.map(|index| steps[index]) {
        places.push(cpu);
        at = before;
    }
    places.reverse();
    let walk = burst.walk();
    while places.len() < burst.tasks as usize {
        let cpu = walk.place(&mut branch.state);
        burst.children.start_on(cpu, &mut branch.state);
        places.push(cpu);
    }
    let tally = burst.tally(host, &places);
    Run { places, tally }
}
