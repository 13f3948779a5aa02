//! What one profile makes of a question: the outlook from each class of origins, without the imbalance mark and with
//! it.

use super::super::pool::Stop;
use crate::convert::{balancing::Balancing, predict::Question, prediction::Outcome, snapshot::Ground};
use berth_model::{
    advise::MAX_RUNS,
    cpuset::{Cpu, CpuSet},
    load::Load,
    predict::{
        Burst, HORIZON_MS, Host, Markable, Origin, Outlook, Outset, Parent, Run, Search, Symmetry,
        afterwards, mark_outlook, origins, outlooks, predict, wakes_on, worst_split,
    },
    topology::Level,
};
use berth_proto::v1::verdict;
use std::{cmp::Reverse, collections::HashMap};

/// The most groups that one answer looks at to find other runs than the central ones, twice: without marks and with
/// them.
const MAX_LOOKS: u64 = 1 << 22;

/// The most tasks of which it is told what becomes of them later.
const MAX_SETTLED: usize = 4096;

/// The most tasks that are placed in central runs, over all origins and profiles.
const MAX_PLACEMENTS: usize = 1 << 22;

/// A question about a host under one profile.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnderProfile<'a> {
    pub(super) host: Host<'a>,
    pub(super) symmetry: &'a Symmetry,
    pub(super) question: &'a Question,
    /// What there is to stand on.
    pub(super) ground: Ground,
    /// The mask is proven for this launch under every profile: no run piles up, and none needs to be looked for.
    pub(super) proven: bool,
    /// So many profiles share the work.
    pub(super) profiles: usize,
}

/// What was found under one profile.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) profile: &'static str,
    /// From each class of origins, or from those alone among which the worst is, worst first; at least one.
    pub(super) classes: Vec<OfClass>,
}

/// What was found from one class of origins.
#[derive(Debug)]
pub(super) struct OfClass {
    /// Its runs without the mark.
    pub(super) outlook: Outlook,
    /// A run with the mark that piles up, if that is what decides.
    marked: Option<Run>,
    pub(super) verdict: verdict::Value,
    /// The verdict holds for every run.
    determined: bool,
    /// Not every run could be followed.
    pub(super) cut: bool,
}

impl OfClass {
    /// The runs that were followed, the central one first.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> + Clone {
        self.outlook.runs().chain(&self.marked)
    }

    /// Other classes were left out, so that this one's being safe says nothing of the whole.
    fn leave_open(&mut self) {
        self.cut = true;
        if self.verdict == verdict::Value::NoPileUp {
            (self.verdict, self.determined) = (verdict::Value::Unknown, false);
        }
    }

    /// No run piles up.
    pub(super) fn is_safe(&self) -> bool {
        self.verdict == verdict::Value::NoPileUp
    }

    /// Greater is worse.
    pub(super) fn rank(&self) -> u8 {
        match self.verdict {
            verdict::Value::PileUp => 2,
            verdict::Value::Unknown => 1,
            verdict::Value::NoPileUp => 0,
        }
    }
}

impl Found {
    /// The class that is worst.
    pub(super) fn worst(&self) -> Option<&OfClass> {
        self.classes.first()
    }

    /// Greater is worse.
    fn severity(&self) -> Option<impl Ord + use<>> {
        self.worst().map(|worst| (worst.rank(), worst.outlook.central.tally.severity()))
    }
}

impl<'a> UnderProfile<'a> {
    /// Looks at every class of origins under each of these loads; gives the worse. Nothing if it was stopped.
    pub(super) fn search_under<'b>(
        self,
        loads: impl IntoIterator<Item = &'b Load>,
        stop: &Stop,
    ) -> Option<(UnderProfile<'b>, Found)>
    where
        'a: 'b,
    {
        let mut worst: Option<(UnderProfile<'b>, Found)> = None;
        for load in loads {
            let under = UnderProfile { host: Host { load, ..self.host }, ..self };
            let found = under.search(stop)?;
            if worst.as_ref().is_none_or(|(_, known)| found.severity() > known.severity()) {
                worst = Some((under, found));
            }
        }
        worst
    }

    /// Looks at every class of origins. Nothing if it was stopped.
    fn search(&self, stop: &Stop) -> Option<Found> {
        let mut origins = match self.question.launch.origin {
            Some(cpu) => vec![Origin::from(cpu)],
            None => origins(self.host, self.symmetry, &self.question.burst(Cpu::from(0))),
        };
        // Each costs a central run of all tasks.
        let affordable = (MAX_PLACEMENTS / (self.question.tasks as usize * self.profiles).max(1)).max(1);
        let left_out = origins.len() > affordable;
        origins.truncate(affordable);
        let origins = self.worth_following(origins);
        let first = origins.first()?.cpu;
        let looks = MAX_LOOKS / (self.profiles as u64).max(1);
        let share = looks / (origins.len() as u64).max(1);
        let burst = self.question.burst(first);
        let outset = Outset::new(self.host, self.symmetry, &burst);
        let mut classes = Vec::with_capacity(origins.len());
        for outlook in outlooks(self.host, self.symmetry, &burst, origins, looks) {
            if stop.is_called() {
                return None;
            }
            let mut of_class = self.judge(&outset, outlook, share);
            if left_out {
                of_class.leave_open();
            }
            classes.push(of_class);
        }
        // Stable: the model has put the worst of equals first.
        classes.sort_by_key(|of_class| Reverse(of_class.rank()));
        Some(Found { profile: self.host.profile.name, classes })
    }

    /// The classes among which the worst is, unless every one is to be told of. Where a central run piles up, no class is
    /// worse than the one that it does so most in; where none can, the central runs alone tell.
    fn worth_following(&self, origins: Vec<Origin>) -> Vec<Origin> {
        if self.tells_every_class() || origins.len() < 2 {
            return origins;
        }
        let severity =
            |origin: &Origin| Run::central(self.host, &self.question.burst(origin.cpu)).tally.severity();
        // The first of the worst.
        let worst = origins
            .iter()
            .map(|origin| (severity(origin), origin))
            .rev()
            .max_by_key(|(severity, _)| *severity);
        match worst {
            Some(((piles_up, ..), origin)) if piles_up || self.proven => vec![origin.clone()],
            _ => origins,
        }
    }

    /// Whether an answer tells what becomes of each class.
    pub(super) fn tells_every_class(&self) -> bool {
        self.question.full && self.question.launch.origin.is_none()
    }

    /// All that is to be told of the worst class.
    pub(super) fn worst(&self, found: &Found) -> Option<Outcome> {
        let worst = found.worst()?;
        let burst = self.question.burst(worst.outlook.origin.cpu);
        let central = predict(self.host, &burst);
        Some(Outcome {
            profile: found.profile,
            verdict: worst.verdict,
            determined: worst.determined,
            others: worst.runs().skip(1).cloned().collect(),
            balancing: None,
            wakes_on: Vec::new(),
            central,
            frozen_clock: Some(worst.outlook.frozen().tally.cpu_use),
            mark: burst.marks_open.then(|| mark_outlook(self.host, &burst)).flatten(),
        })
    }

    /// The same with what becomes of it later: what load balancing does, and with a full answer where each task can wake.
    pub(super) fn worst_and_later(&self, found: &Found) -> Option<Outcome> {
        let outcome = self.worst(found)?;
        let burst = self.question.burst(outcome.central.origin);
        let places: Vec<Cpu> = outcome.central.tasks.iter().map(|placed| placed.cpu).collect();
        // Not where the model does not reach, nor for more than is worth its time.
        let balancing = (self.ground.covered && places.len() <= MAX_SETTLED).then(|| {
            let afterwards = afterwards(self.host, &burst, &places, HORIZON_MS);
            let split = worst_split(self.host, &self.question.allowed, self.question.tasks);
            Balancing { afterwards, split }
        });
        let wakes_on = if self.question.full && places.len() <= MAX_SETTLED {
            self.wakes_on(&places)
        } else {
            Vec::new()
        };
        Some(Outcome { balancing, wakes_on, ..outcome })
    }

    /// Where each task can wake, any other of the tasks waking it.
    fn wakes_on(&self, places: &[Cpu]) -> Vec<String> {
        // One waker stands for all of its LLC.
        let topology = self.host.topology;
        let per_llc = topology
            .units(Level::Llc)
            .iter()
            .filter_map(|llc| places.iter().copied().filter(|cpu| llc.cpus.contains(*cpu)).min());
        let wakers: CpuSet = per_llc.collect();
        let mut known: HashMap<Cpu, String> = HashMap::new();
        let reach = |cpu| wakes_on(self.host, &self.question.allowed, cpu, &wakers).to_string();
        places.iter().map(|&cpu| known.entry(cpu).or_insert_with(|| reach(cpu)).clone()).collect()
    }

    /// The verdict takes the worse end: what piles up only with the mark piles up.
    fn judge(&self, outset: &Outset<'_>, outlook: Outlook, looks: u64) -> OfClass {
        let burst = self.question.burst(outlook.origin.cpu);
        let without = outlook.piles_up();
        let mut of_class = OfClass {
            marked: None,
            verdict: verdict::Value::PileUp,
            determined: false,
            cut: !outlook.explored.complete,
            outlook,
        };
        if without == Some(true) {
            of_class.determined =
                of_class.outlook.is_determined() && self.marks_come_too_late(&burst, &of_class.outlook);
        } else {
            let marks = if burst.marks_open { Markable::Crowded } else { Markable::None };
            let weights = burst.gap > 0;
            let search = Search { marks, weights, stop_at_pile_up: true, runs: MAX_RUNS, looks };
            let (refused, complete) = if self.proven {
                (None, true)
            } else {
                let marked = outset.explore(burst.origin, search);
                (marked.refused, marked.complete)
            };
            let safe = self.proven || (without == Some(false) && complete);
            of_class.cut |= !complete && refused.is_none();
            of_class.determined = safe;
            if refused.is_none() {
                of_class.verdict = if safe { verdict::Value::NoPileUp } else { verdict::Value::Unknown };
            }
            of_class.marked = refused;
        }
        let is_open = !self.ground.is_firm() && of_class.verdict == verdict::Value::NoPileUp;
        if !self.ground.covered || is_open {
            (of_class.verdict, of_class.determined) = (verdict::Value::Unknown, false);
        }
        of_class
    }

    /// Whether each run has piled up by the time at which there is a reason for a mark. What a mark does later mends
    /// no pile-up, since tasks do not move during a launch. One that was left by others may be there from the start.
    fn marks_come_too_late(&self, burst: &Burst<'_>, outlook: &Outlook) -> bool {
        let mut runs = outlook.runs();
        // Two tasks without the parent, where one would do.
        let too_late =
            |run: &Run| run.tally.best == 1 && self.first_crowded(burst, run).is_some_and(|tasks| tasks > 1);
        self.host.load.crowded().is_empty() && !self.is_crowded() && runs.all(too_late)
    }

    /// Some CPU has several tasks before the launch.
    fn is_crowded(&self) -> bool {
        self.host.topology.online().iter().any(|cpu| self.host.load.runnable(cpu) > 1)
    }

    /// Tasks on the first CPU of the run that comes to have several, the parent being one of them; the parent itself
    /// is not counted.
    fn first_crowded(&self, burst: &Burst<'_>, run: &Run) -> Option<u32> {
        let launcher =
            |cpu: Cpu| u32::from(matches!(burst.parent, Parent::Waits | Parent::Runs) && cpu == burst.origin);
        let mut on: HashMap<Cpu, u32> = HashMap::new();
        run.places.iter().find_map(|&cpu| {
            let tasks = on.entry(cpu).or_insert_with(|| self.host.load.runnable(cpu));
            *tasks += 1;
            (*tasks + launcher(cpu) > 1).then_some(*tasks)
        })
    }
}
