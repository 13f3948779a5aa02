//! Proofs: nothing that is called safe may be a record that piled up.

use crate::{
    free::Known,
    scene::{Question, Scene},
};
use berth_model::{
    advise::MAX_RUNS,
    cpuset::Cpu,
    predict::{Burst, Children, Markable, Parent, Search, explore, origins},
};

/// The most groups that one proof looks at.
const MAX_LOOKS: u64 = 1 << 23;

/// What a proof says, and what was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// No run piles up, and all were followed.
    pub safe: bool,
    /// The record piled up, judged as the proof judges: without a parent that then sleeps.
    pub piled_up: bool,
}

/// Proves the mask of a case as the advice does.
pub fn prove(scene: &Scene, question: &Question<'_>, known: Known) -> Outcome {
    let host = scene.host(&question.load);
    let parent = if question.case.after == "burn" { Parent::Runs } else { Parent::Waits };
    let base = Burst { parent, ..question.burst() };
    let starts: Vec<Cpu> = match known {
        Known::Origin => vec![question.origin],
        Known::Nothing => {
            origins(host, &scene.symmetry, &base).into_iter().map(|origin| origin.cpu).collect()
        }
    };
    let marks = if question.after_crowd { Markable::Any } else { Markable::Crowded };
    let children =
        if question.naps() { vec![Children::Running, Children::Asleep] } else { vec![base.children] };
    let mut runs = 0;
    // Where the burners are is not known: nothing is proven of it.
    let mut safe = !question.has_loose_burners();
    for origin in starts {
        for &children in &children {
            if safe {
                let search = Search {
                    marks,
                    weights: true,
                    stop_at_pile_up: true,
                    runs: MAX_RUNS.saturating_sub(runs),
                    looks: MAX_LOOKS,
                };
                let explored = explore(host, &Burst { origin, children, ..base }, &scene.symmetry, search);
                runs += explored.runs;
                safe = explored.complete && explored.refused.is_none();
            }
        }
    }
    Outcome { safe, piled_up: question.piled_up(host, parent) }
}
