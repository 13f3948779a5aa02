//! Step by step: with the kernel's own choices so far as the state, was its next one that the model allows?

use crate::{
    scene::{Question, Scene},
    track::Track,
};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    predict::{Markable, Replay, Weight},
};

/// How a step fared: the least that has to be open for the model to allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Equally idle CPUs and equal groups, with the clock of the record.
    Allowed,
    /// And how long each task has run.
    AnyWeight,
    /// And the mark, either way, where tasks that run are a reason for it.
    AnyMark,
    /// And marks that pinned tasks of an earlier case in this boot may have left anywhere.
    MarkLeft,
    /// The record does not tell where the burners were by then.
    LooseBurners,
    /// It would be, had one more thread run somewhere, or one task less: the emulator stretches what short kernel threads
    /// take.
    ShortThread,
    /// It is not.
    Refused,
}

/// One step that needed more than the rules and the record.
#[derive(Debug)]
pub struct Miss {
    /// Index of the task.
    pub task: usize,
    /// The CPU that the parent was on, and the one that the kernel took.
    pub parent: Cpu,
    /// The CPU that the kernel took.
    pub took: Cpu,
    /// The CPUs that the model allows, with marks open where there was a reason.
    pub allowed: CpuSet,
    /// How it fared.
    pub step: Step,
}

/// Replays a case; gives how each step fared, and the misses.
pub fn replay(scene: &Scene, question: &Question<'_>) -> (Vec<Step>, Vec<Miss>) {
    let case = question.case;
    let mut state = Along {
        replay: Replay::new(scene.host(&question.load), &question.allowed),
        track: Track::new(case),
        parent: None,
        now: 0,
        asleep: question.naps(),
    };
    let (mut steps, mut misses) = (Vec::new(), Vec::new());
    for (task, ((took, parent), at)) in
        case.fork_cpu.iter().zip(&case.parent_cpu).zip(&case.fork_at_us).enumerate()
    {
        let (Some(took), Some(parent), Some(at)) = (*took, *parent, *at) else { continue };
        let (took, parent) = (Cpu::from(took), Cpu::from(parent));
        state.advance_to(at);
        state.parent_is_on(parent);
        let step = judge(&state, scene, question, parent, took);
        if step > Step::AnyMark {
            let allowed = state.replay.clone().choices(parent, Markable::Crowded, true);
            misses.push(Miss { task, parent, took, allowed, step });
        }
        steps.push(step);
        state.start_on(took);
    }
    (steps, misses)
}

fn judge(state: &Along<'_>, scene: &Scene, question: &Question<'_>, parent: Cpu, took: Cpu) -> Step {
    let allows =
        |replay: &Replay<'_>, marks, weights| replay.clone().choices(parent, marks, weights).contains(took);
    // Of tasks that nap first, any number of the latest may still be awake.
    let mut awake = vec![state.replay.clone()];
    if state.asleep {
        for &cpu in state.track.tasks.iter().rev() {
            let mut more = awake[awake.len() - 1].clone();
            more.add(cpu, Weight::Fresh);
            awake.push(more);
        }
    }
    let any = |marks, weights| awake.iter().any(|replay| allows(replay, marks, weights));
    if any(Markable::None, false) {
        return Step::Allowed;
    }
    if any(Markable::None, true) {
        return Step::AnyWeight;
    }
    if any(Markable::Crowded, true) {
        return Step::AnyMark;
    }
    if question.after_crowd && any(Markable::Any, true) {
        return Step::MarkLeft;
    }
    if question.has_loose_burners() {
        return Step::LooseBurners;
    }
    let one_more = scene.topology.online().iter().any(|cpu| {
        let mut replay = state.replay.clone();
        replay.add(cpu, Weight::Light);
        allows(&replay, Markable::Crowded, true)
    });
    let one_less = || {
        state.track.tasks.iter().chain([&parent]).any(|&cpu| {
            let mut replay = state.replay.clone();
            replay.remove(cpu);
            allows(&replay, Markable::Crowded, true)
        })
    };
    if one_more || one_less() { Step::ShortThread } else { Step::Refused }
}

/// The state along a record.
struct Along<'a> {
    replay: Replay<'a>,
    track: Track<'a>,
    parent: Option<Cpu>,
    now: u64,
    /// The tasks sleep, so their moves change nothing.
    asleep: bool,
}

impl Along<'_> {
    /// Lets time pass, and the tasks that were moved meanwhile move.
    fn advance_to(&mut self, at: u64) {
        while let Some(moved) = self.track.next_move_before(at) {
            self.pass(moved.at);
            if !self.asleep {
                self.replay.remove(moved.from);
                self.replay.add(moved.to, Weight::Fresh);
            }
        }
        self.pass(at);
    }

    fn pass(&mut self, at: u64) {
        self.replay.advance(at.saturating_sub(self.now));
        self.now = self.now.max(at);
    }

    fn parent_is_on(&mut self, cpu: Cpu) {
        if self.parent != Some(cpu) {
            self.parent.iter().for_each(|&before| self.replay.remove(before));
            self.replay.add(cpu, Weight::Light);
            self.parent = Some(cpu);
        }
    }

    fn start_on(&mut self, cpu: Cpu) {
        self.track.tasks.push(cpu);
        if !self.asleep {
            self.replay.add(cpu, Weight::Fresh);
        }
    }
}
