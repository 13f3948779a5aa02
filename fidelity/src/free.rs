//! Free running: a burst predicted at once, against how it came out.

use crate::scene::{Question, Scene};
use berth_model::{
    advise::MAX_RUNS,
    cpuset::Cpu,
    predict::{Burst, Markable, Origin, Outlook, Search, explore, origins, outlooks},
    topology::Level,
};

/// What is known of the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Its CPU, as the record tells.
    Origin,
    /// Nothing, as for a service that is asked beforehand.
    Nothing,
}

/// How a burst came out beside its prediction.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The largest difference of the central run on a package, NUMA node and LLC, in tasks.
    pub off: [u32; 3],
    /// How far the record lies outside the range of some node, in tasks.
    pub outside: u32,
    /// The widest range of a node, in tasks.
    pub width: u32,
    /// Whether it piled up.
    pub piled_up: bool,
    /// Whether the central run does.
    pub central: bool,
    /// Whether some run does, with the mark wherever it can arise and for however long the tasks have run: the verdict.
    pub any: bool,
}

/// The most groups and tied CPUs that are looked at for one case, as for one question to the service.
const MAX_LOOKS: u64 = 1 << 22;

/// Predicts a case as `Predict` does, and compares.
pub fn run(scene: &Scene, question: &Question<'_>, known: Known) -> Option<Outcome> {
    let host = scene.host(&question.load);
    let burst = question.burst();
    let starts = match known {
        Known::Origin => vec![Origin::from(question.origin)],
        Known::Nothing => origins(host, &scene.symmetry, &burst),
    };
    let outlooks = outlooks(host, &scene.symmetry, &burst, starts, MAX_LOOKS);
    let central = &outlooks.first()?.central;
    let counts = |level, places: &[Cpu]| counts(scene, level, places);
    let off = [Level::Package, Level::Node, Level::Llc].map(|level| {
        let (ours, theirs) = (counts(level, &central.places), counts(level, &question.places));
        ours.iter().zip(&theirs).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0)
    });
    let runs = || outlooks.iter().flat_map(Outlook::runs);
    let mut ranges: Vec<(u32, u32)> = vec![(u32::MAX, 0); scene.topology.units(Level::Node).len()];
    for run in runs() {
        for (range, count) in ranges.iter_mut().zip(counts(Level::Node, &run.places)) {
            *range = (range.0.min(count), range.1.max(count));
        }
    }
    let theirs = counts(Level::Node, &question.places);
    let outside = |(&(least, most), &count): (&(u32, u32), &u32)| {
        least.saturating_sub(count).max(count.saturating_sub(most))
    };
    Some(Outcome {
        off,
        outside: ranges.iter().zip(&theirs).map(outside).max().unwrap_or(0),
        width: ranges.iter().map(|(least, most)| most - least).max().unwrap_or(0),
        piled_up: question.piled_up(host, burst.parent),
        central: central.tally.pile_up,
        any: runs().any(|run| run.tally.pile_up)
            || outlooks.iter().any(|outlook| {
                let burst = Burst { origin: outlook.origin.cpu, ..burst };
                let search = Search {
                    marks: Markable::Crowded,
                    weights: true,
                    stop_at_pile_up: true,
                    runs: MAX_RUNS,
                    looks: MAX_LOOKS,
                };
                explore(host, &burst, &scene.symmetry, search).refused.is_some()
            }),
    })
}

/// Tasks on each unit of a level.
fn counts(scene: &Scene, level: Level, places: &[Cpu]) -> Vec<u32> {
    let mut counts = vec![0; scene.topology.units(level).len()];
    for unit in places.iter().filter_map(|&cpu| scene.topology.unit_of(level, cpu)) {
        counts[unit] += 1;
    }
    counts
}
