//! Where to put tasks: a placement by policy, and the widest form of it that is proven.

mod entries;
mod form;
mod launched;
mod objective;
mod optimum;
mod placement;
mod proof;
mod tree;
mod wishes;

pub use form::{Advice, Attempt, Form, Part, advise, objective};
pub use objective::{Component, Objective};
pub use proof::{Failure, MAX_RUNS, Margin, Outcome, Proof};
pub use wishes::{Exclusive, Near, Within};

use crate::{
    cpuset::{Cpu, CpuSet},
    domains::Domains,
    load::Load,
    predict::{Burst, Entry, GAP, Markable, Marks, Parent, Symmetry, Weight},
    profile::Profile,
    topology::{Level, Topology},
};

/// How tasks lie towards each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// As the newest kernel would place them if it judged by allowed CPUs alone, evened out.
    #[default]
    Auto,
    /// As far apart as possible: for memory bandwidth.
    Spread,
    /// As close together as possible: for tasks that talk.
    Compact,
}

/// What to do with the threads of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Smt {
    /// A second thread of a core only when no core is free.
    #[default]
    Avoid,
    /// Fill cores.
    Share,
    /// Never share a core with another job.
    FullCores,
}

/// One kernel that the host may run.
#[derive(Debug, Clone, Copy)]
pub struct Kernel<'a> {
    /// Its rules.
    pub profile: &'a Profile,
    /// The host's domains under these rules.
    pub domains: &'a Domains,
    /// The host's mirror images under these rules.
    pub symmetry: &'a Symmetry,
}

/// How the tasks will be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch<'a> {
    /// The CPU that the parent is on; `None` for any that it could be on.
    pub origin: Option<Cpu>,
    /// What the parent does meanwhile.
    pub parent: Parent,
    /// Fork or exec.
    pub entry: Entry,
    /// Time between two placements, in microseconds; 0 if the clock is frozen, and a proof then takes it as such.
    pub gap: u64,
    /// What of the imbalance mark is met.
    pub marks: Marks,
    /// Groups that are marked already, by their CPUs.
    pub marked: &'a [CpuSet],
}

impl Default for Launch<'_> {
    fn default() -> Self {
        Self {
            origin: None,
            parent: Parent::default(),
            entry: Entry::default(),
            gap: GAP,
            marks: Marks::Never,
            marked: &[],
        }
    }
}

impl<'a> Launch<'a> {
    /// The launch of one of several parts: the parent is a task of the part that it is in, and of no other.
    pub(super) fn of_part(&self, is_parents: bool) -> Self {
        let waits = self.parent == Parent::IsTask && !is_parents;
        Self { parent: if waits { Parent::Waits } else { self.parent }, ..*self }
    }

    /// Which of several parts the parent is in: that with its CPU if that is known, else the first.
    pub(super) fn part_of_parent(&self, parts: &[Part]) -> usize {
        let holds = |origin: Cpu| parts.iter().position(|part| part.cpus.contains(origin));
        self.origin.and_then(holds).unwrap_or(0)
    }

    /// A burst of this launch.
    pub fn burst(&self, allowed: &'a CpuSet, tasks: u32, origin: Cpu) -> Burst<'a> {
        let Self { parent, entry, gap, marks, marked, .. } = *self;
        Burst {
            parent,
            entry,
            gap,
            parent_weight: Weight::Light,
            marks,
            marked,
            ..Burst::forks(allowed, tasks, origin)
        }
    }
}

/// What the advice is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The host's hardware.
    pub topology: &'a Topology,
    /// Every kernel that it may run, likeliest first; at least one.
    pub kernels: &'a [Kernel<'a>],
    /// The host's domains under [`Profile::ideal`].
    pub ideal: &'a Domains,
    /// What runs there.
    pub load: &'a Load,
    /// The CPUs that the tasks may use: usable ones, at least one.
    pub allowed: &'a CpuSet,
    /// Whether the caller named them; else they are all that the host has, and not binding at all is a form too.
    pub asked: bool,
    /// How many tasks; at least one.
    pub tasks: u32,
    /// How many CPUs each of them gets; at least one. Several are kept in one LLC if one can hold them, else in one node,
    /// else in one package, and no CPU belongs to two tasks unless there are too few.
    pub cpus_per_task: u32,
    /// How they lie towards each other.
    pub policy: Policy,
    /// What to do with the threads of one core.
    pub smt: Smt,
    /// Into how small a part of the host they should fit.
    pub within: Option<Within>,
    /// Where they should be near to.
    pub near: Option<&'a Near>,
    /// What is for them alone: a constraint, not a wish.
    pub exclusive: Option<Exclusive>,
    /// How they will be started.
    pub launch: Launch<'a>,
    /// The forms that the caller can apply; empty for all.
    pub can_apply: &'a [Form],
    /// Entries of [`Form::PerTask`] are single CPUs even where wider ones are proven.
    pub single_cpus: bool,
    /// Whether the CPUs of the placement are kept for the tasks. Then no form is wider: others are given the rest.
    pub kept: bool,
    /// Which groups a proof takes as possibly marked as imbalanced.
    pub marks: Markable,
    /// Whether to look for the margin of the advice.
    pub with_margin: bool,
}

impl Request<'_> {
    /// How many CPUs the tasks get all together.
    fn cpus(&self) -> usize {
        self.tasks.saturating_mul(self.cpus_per_task) as usize
    }
}

/// Why there is no advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Every allowed core runs something, and cores are not to be shared with other jobs.
    #[error("smt FULL_CORES: each of the {cores} allowed cores runs a task of another job already")]
    NoFreeCore {
        /// How many allowed cores there are.
        cores: usize,
    },
    /// Too few CPUs without other jobs on what is to be exclusive.
    #[error(
        "exclusive: {asked} CPUs are asked for, and {free} of the {allowed} allowed ones have no other job there"
    )]
    NotAlone {
        /// What was to be exclusive.
        exclusive: Exclusive,
        /// CPUs asked for.
        asked: usize,
        /// Allowed CPUs that nobody else is on, nor on the rest of their unit.
        free: usize,
        /// Allowed CPUs.
        allowed: usize,
    },
    /// No unit has an idle CPU for each of the tasks'.
    #[error("within: {asked} CPUs are asked for, and no {} has more than {free} idle ones of {allowed} allowed", level.name())]
    NotWithin {
        /// The level.
        level: Level,
        /// CPUs asked for.
        asked: usize,
        /// The most idle ones that one unit has.
        free: usize,
        /// The most allowed ones that one unit has.
        allowed: usize,
    },
    /// The kernels of this host are not told.
    #[error("no kernel to prove the advice for")]
    NoKernel,
}
