//! Proofs: nothing that is called safe may be a record that piled up.

use crate::{
    free::Known,
    scene::{Question, Scene},
};
use berth_model::{
    advise::MAX_RUNS,
    cpuset::Cpu,
    load::Load,
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
    Outcome {
        // Where burners are that could move is not known: nothing is proven of it.
        safe: !question.has_loose_burners() && is_safe(scene, question, known, &question.load),
        piled_up: question.piled_up(scene.host(&question.load), parent(question)),
    }
}

/// Whether the mask of a case would be called safe with one more busy CPU too, wherever that is.
pub fn stands_one_more(scene: &Scene, question: &Question<'_>, known: Known) -> bool {
    scene.topology.online().iter().all(|cpu| {
        let mut load = question.load.clone();
        load.add(cpu, 1);
        is_safe(scene, question, known, &load)
    })
}

/// What the parent did once the tasks were launched.
pub(crate) fn parent(question: &Question<'_>) -> Parent {
    if question.case.after == "burn" { Parent::Runs } else { Parent::Waits }
}

fn is_safe(scene: &Scene, question: &Question<'_>, known: Known, load: &Load) -> bool {
    let mut load = load.clone();
    load.set_crowded(question.crowded_before.clone());
    let host = scene.host(&load);
    let base = Burst { parent: parent(question), ..question.burst() };
    let starts: Vec<Cpu> = match known {
        Known::Origin => vec![question.origin],
        Known::Nothing => {
            origins(host, &scene.symmetry, &base).into_iter().map(|origin| origin.cpu).collect()
        }
    };
    let children: &[Children] =
        if question.naps() { &[Children::Running, Children::Asleep] } else { &[base.children] };
    let mut runs = 0;
    starts.iter().all(|&origin| {
        children.iter().all(|&children| {
            let search = Search {
                marks: Markable::Crowded,
                weights: true,
                stop_at_pile_up: true,
                runs: MAX_RUNS.saturating_sub(runs),
                looks: MAX_LOOKS,
            };
            let explored = explore(host, &Burst { origin, children, ..base }, &scene.symmetry, search);
            runs += explored.runs;
            explored.complete && explored.refused.is_none()
        })
    })
}
