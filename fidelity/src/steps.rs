//! Step by step: with the kernel's own choices so far as the state, was its next one that the model allows?

use crate::{
    scene::{Question, Scene},
    track::Track,
};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    predict::{Markable, Marks, Replay, Weight},
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

/// A choice that tells whether a group is marked, there being a reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// How long there has been a reason, in microseconds.
    pub age: u64,
    /// The choice is one with the mark alone; else one without it alone.
    pub is_set: bool,
}

/// How a case fared.
#[derive(Debug, Default)]
pub struct Fared {
    /// Each step, in order.
    pub steps: Vec<Step>,
    /// Those that needed more than the rules and the record.
    pub misses: Vec<Miss>,
    /// What they tell of the imbalance mark.
    pub looks: Vec<Look>,
}

/// Replays a case.
pub fn replay(scene: &Scene, question: &Question<'_>) -> Fared {
    let case = question.case;
    let along = |marks| Replay::new(scene.host(&question.load), &question.allowed, marks);
    let mut reason_since = None;
    let mut state = Along {
        replay: along(Marks::Never),
        marked: along(Marks::AtOnce),
        track: Track::new(case),
        parent: None,
        now: 0,
        asleep: question.naps(),
    };
    let mut fared = Fared::default();
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
            fared.misses.push(Miss { task, parent, took, allowed, step });
        }
        fared.steps.push(step);
        // However long tasks have run: only the mark is to tell the two apart.
        let [without, with] =
            [&state.replay, &state.marked].map(|replay| replay.clone().choices(parent, Markable::None, true));
        if without != with {
            let age = at - *reason_since.get_or_insert(at);
            let is_set = with.contains(took);
            fared.looks.extend((is_set != without.contains(took)).then_some(Look { age, is_set }));
        }
        state.start_on(took);
    }
    fared
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
    if !question.crowded_before.is_empty() && any(Markable::Any, true) {
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
    /// The same with every group marked that has a reason.
    marked: Replay<'a>,
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
                self.each(|replay| {
                    replay.remove(moved.from);
                    replay.add(moved.to, Weight::Fresh);
                });
            }
        }
        self.pass(at);
    }

    fn pass(&mut self, at: u64) {
        let micros = at.saturating_sub(self.now);
        self.each(|replay| replay.advance(micros));
        self.now = self.now.max(at);
    }

    fn parent_is_on(&mut self, cpu: Cpu) {
        if self.parent != Some(cpu) {
            let before = self.parent.replace(cpu);
            self.each(|replay| {
                before.iter().for_each(|&before| replay.remove(before));
                replay.add(cpu, Weight::Light);
            });
        }
    }

    fn start_on(&mut self, cpu: Cpu) {
        self.track.tasks.push(cpu);
        if !self.asleep {
            self.each(|replay| replay.add(cpu, Weight::Fresh));
        }
    }

    fn each(&mut self, change: impl Fn(&mut Replay<'_>)) {
        [&mut self.replay, &mut self.marked].into_iter().for_each(change);
    }
}
