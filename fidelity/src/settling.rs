//! Settling: what load balancing made of a launch by the last look, against what it is said to do.

use crate::{
    proofs::parent,
    scene::{Question, Scene},
    track::Track,
};
use berth_model::{
    cpuset::Cpu,
    predict::{Burst, Effect, Parent, afterwards},
};

/// What was said and what became of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Tasks on the fullest CPU as the last task had been placed, the most that is no pile-up, and at the last look.
    pub fullest: [u32; 3],
    /// The range that it was said to be in at the last look.
    pub range: (u32, u32),
    /// What load balancing did.
    pub did: Effect,
    /// What it is said to do by then, as the quickest kernel has it and as the slowest, which takes twice as long.
    pub said: [Effect; 2],
    /// How many tasks it moved.
    pub moves: usize,
}

impl Outcome {
    /// Whether the two agree. Tasks that move to and fro stand somewhere in the range at one look.
    pub fn agrees(&self) -> bool {
        let goes_round = self.said.contains(&Effect::PingPongs) && self.moves > 0 && self.outside() == 0;
        self.said.contains(&self.did) || goes_round
    }

    /// How far the fullest CPU is outside its range, in tasks.
    pub fn outside(&self) -> u32 {
        let (least, most) = self.range;
        least.saturating_sub(self.fullest[2]).max(self.fullest[2].saturating_sub(most))
    }

    /// Whether tasks shared CPUs without need as the last task had been placed.
    pub fn began_piled_up(&self) -> bool {
        self.fullest[0] > self.fullest[1]
    }
}

/// Lets the model balance from where the tasks were as the last of them had been placed, and looks again when the record
/// does.
pub fn settle(scene: &Scene, question: &Question<'_>) -> Option<Outcome> {
    let (host, case) = (scene.host(&question.load), question.case);
    let (last, launched) = (case.snaps.last()?, case.fork_at_us.iter().flatten().last().copied()?);
    let mut track = Track::new(case);
    for (&place, &at) in question.places.iter().zip(case.fork_at_us.iter().flatten()) {
        while track.next_move_before(at).is_some() {}
        track.tasks.push(place);
    }
    let origin = case.parent_cpu.iter().flatten().last().map_or(question.origin, |&cpu| Cpu::from(cpu));
    let burst = Burst { parent: parent(question), ..Burst::forks(&question.allowed, case.n, origin) };
    let (before, micros) = (burst.tally(host, &track.tasks), last.at_us.saturating_sub(launched));
    let quick = afterwards(host, &burst, &track.tasks, micros / 1000)?;
    let slow = afterwards(host, &burst, &track.tasks, micros / 2000)?;
    let later: Vec<Cpu> = last.cpus.iter().map(|&cpu| Cpu::from(cpu)).collect();
    let on = |cpu: Cpu| {
        let beside = burst.parent == Parent::Runs && cpu == Cpu::from(last.parent);
        later.iter().filter(|&&other| other == cpu).count() + usize::from(beside)
    };
    let fullest =
        later.iter().map(|&cpu| u32::try_from(on(cpu)).unwrap_or(u32::MAX) + question.load.runnable(cpu));
    let fullest = fullest.max()?;
    let did = match (before.pile_up, fullest > before.best) {
        (false, false) => Effect::NothingToDo,
        (true, false) => Effect::Repairs,
        (true, true) if fullest <= before.fullest => Effect::LetsStand,
        (_, true) => Effect::MakesWorse,
    };
    Some(Outcome {
        fullest: [before.fullest, before.best, fullest],
        range: (quick.fullest.0.min(slow.fullest.0), quick.fullest.1.max(slow.fullest.1)),
        did,
        said: [quick.effect, slow.effect],
        moves: case.moves.iter().filter(|it| it.task.is_some() && it.at > launched).count(),
    })
}
