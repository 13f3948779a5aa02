//! Where a kernel puts new tasks: a burst of forks or execs under an affinity mask, placed one after another.
//!
//! Each task is counted at once, before the next is placed, and nothing sleeps, ends or is moved in between. What does
//! change with time is how much the kernel thinks of each task, and which groups load balancing has marked: a burst
//! has a clock, which may stand still. [`predict`] gives the central run, in which equally idle CPUs are taken from the
//! lowest number up, and says for each task what of its place is determined and what is noise.

mod because;
mod by_load;
mod clock;
mod explore;
mod group;
mod mark;
mod origins;
mod outset;
mod queue;
mod replay;
mod settle;
mod sparse;
mod state;
mod symmetry;
mod tally;
mod thresholds;
pub mod trace;
mod wake;
mod walk;

pub use explore::{Explored, Run, Search, explore};
pub use group::GroupType;
pub use mark::{Markable, Marks};
pub use origins::{Origin, Outlook, origins, outlooks};
pub use outset::Outset;
pub use replay::Replay;
pub use settle::{
    Afterwards, Effect, HORIZON_MS, MarkSeen, Settled, Settling, Split, afterwards, settle, worst_split,
};
pub use symmetry::Symmetry;
pub use tally::{Tally, best_fullest};
pub use thresholds::{Threshold, thresholds};
pub use wake::{lone_cpus, wakes_on};
pub use walk::{Entry, IdleCpu};

use crate::{
    cpuset::{Cpu, CpuSet},
    domains::Domains,
    load::Load,
    profile::Profile,
    topology::{Level, Topology},
};
use group::{Open, Task};
use queue::SCALE;
use state::State;
use symmetry::Told;
use tally::Bounds;
use walk::{Visitor, Walk};

/// What the parent does while it starts the tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Parent {
    /// It runs while it starts the tasks, is not one of them, and waits for them afterwards: a launcher. The kernel sees
    /// it during the burst; what the placement comes to is judged without it.
    #[default]
    Waits,
    /// It keeps running beside the tasks, and counts as one more in what the placement comes to.
    Runs,
    /// It is the first of the tasks and starts the others: a thread pool.
    IsTask,
    /// It does not run.
    Sleeps,
}

/// What a new task does as the next is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Children {
    /// It runs.
    #[default]
    Running,
    /// It blocked at once, so that the next placement does not see it.
    Asleep,
}

impl Children {
    fn start_on(self, cpu: Cpu, state: &mut State<'_>) {
        if self == Self::Running {
            state.add_fresh(cpu);
        }
    }
}

/// For how long a task has run: what it weighs in the averages that the kernel keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Weight {
    /// It was just forked.
    #[default]
    Fresh,
    /// It has hardly run, as a launcher that mostly sleeps: its CPU looks less used than it is.
    Light,
    /// It has run for long.
    Settled,
}

impl Weight {
    fn add(self, cpu: Cpu, state: &mut State<'_>) {
        match self {
            Self::Fresh => state.add_fresh(cpu),
            Self::Light => state.add_light(cpu),
            Self::Settled => state.add_settled(cpu),
        }
    }
}

/// A host under one kernel, with what runs on it.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// Its hardware.
    pub topology: &'a Topology,
    /// Its scheduling domains under `profile`.
    pub domains: &'a Domains,
    /// Its kernel's rules.
    pub profile: &'a Profile,
    /// What runs on it.
    pub load: &'a Load,
}

/// The most groups that can be told to be marked.
pub const MAX_MARKED: usize = 32;

/// Tasks started one after another under a mask.
#[derive(Debug, Clone, Copy)]
pub struct Burst<'a> {
    /// The CPUs that the tasks may use: online ones, at least one.
    pub allowed: &'a CpuSet,
    /// How many tasks; the parent included if it is one of them.
    pub tasks: u32,
    /// The CPU that the parent is on.
    pub origin: Cpu,
    /// What the parent does.
    pub parent: Parent,
    /// Fork or exec.
    pub entry: Entry,
    /// What a new task does as the next is placed.
    pub children: Children,
    /// Time between two placements, in microseconds; 0 if the clock is frozen.
    pub gap: u64,
    /// What the parent weighs at the start.
    pub parent_weight: Weight,
    /// What of the imbalance mark the burst meets.
    pub marks: Marks,
    /// Whether that is the central case only, and runs with other marks belong to what may come.
    pub marks_open: bool,
    /// Groups that are marked as it begins and stay so, by their CPUs; at most [`MAX_MARKED`].
    pub marked: &'a [CpuSet],
    /// What is known of idle CPUs, by CPU number; CPUs beyond its end are as [`IdleCpu::default`].
    pub idle: &'a [IdleCpu],
    /// The NUMA node that the tasks prefer already, as an index into the topology's [`Level::Node`] units: threads of a
    /// process under NUMA balancing inherit one.
    #[doc(alias = "numa_preferred_nid")]
    pub preferred_node: Option<u32>,
}

impl<'a> Burst<'a> {
    /// Forks by a launcher, of tasks that run at once, by the rules alone: no time passes and no group is marked.
    pub fn forks(allowed: &'a CpuSet, tasks: u32, origin: Cpu) -> Self {
        Self {
            allowed,
            tasks,
            origin,
            parent: Parent::Waits,
            entry: Entry::Fork,
            children: Children::Running,
            gap: 0,
            parent_weight: Weight::Fresh,
            marks: Marks::Never,
            marks_open: true,
            marked: &[],
            idle: &[],
            preferred_node: None,
        }
    }

    /// The same burst by the rules alone.
    pub fn frozen(&self) -> Self {
        Self { gap: 0, marks: Marks::Never, ..*self }
    }

    fn walk(&self) -> Walk<'a> {
        let exec_util = match (self.entry, self.parent_weight) {
            (Entry::Fork, _) => None,
            (Entry::Exec, Weight::Settled) => Some(SCALE),
            (Entry::Exec, Weight::Fresh | Weight::Light) => Some(SCALE / 2),
        };
        let task = Task { preferred_node: self.preferred_node, exec_util };
        Walk { origin: self.origin, entry: self.entry, task, idle: self.idle }
    }

    /// What tells CPUs apart wherever the parent is.
    fn told(&self) -> Told<'a> {
        let Self { preferred_node, idle, marked, .. } = *self;
        Told { preferred_node, idle, marked, ..Told::default() }
    }

    /// The counters before the first placement.
    fn start<'s>(&self, host: Host<'s>, parent: Weight) -> State<'s>
    where
        'a: 's,
    {
        let mut state = State::new(host, self.allowed, self.tasks, self.marks);
        state.mark(self.marked);
        self.add_parent(parent, &mut state);
        state
    }

    fn add_parent(&self, parent: Weight, state: &mut State<'_>) {
        if self.parent != Parent::Sleeps {
            parent.add(self.origin, state);
        }
    }

    /// The places that are taken before the first placement: the parent's if it is one of the tasks.
    fn placed_at_start(&self) -> Option<Cpu> {
        (self.parent == Parent::IsTask && self.tasks > 0).then_some(self.origin)
    }

    /// How many tasks the kernel places.
    fn placements(&self) -> u32 {
        self.tasks - u32::from(self.placed_at_start().is_some())
    }

    fn bounds(&self, host: Host<'_>) -> Bounds {
        Bounds::new(host.load, self)
    }

    /// Counts what a placement of this burst comes to.
    pub fn tally(&self, host: Host<'_>, places: &[Cpu]) -> Tally {
        Tally::new(host.load, self.allowed, places, &self.bounds(host))
    }
}

/// What of a task's place is determined by what user space can see, the earlier tasks being where they are. The rest
/// is noise: which of several equally idle CPUs, which of several equal groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Determined {
    /// Its CPU.
    pub cpu: bool,
    /// Its LLC.
    pub llc: bool,
    /// Its NUMA node.
    pub node: bool,
    /// Its package.
    pub package: bool,
}

/// What is left determined once other CPUs are met.
struct Doubt<'a> {
    topology: &'a Topology,
    /// The CPU of the central run.
    cpu: Cpu,
    determined: Determined,
}

impl<'a> Doubt<'a> {
    fn new(topology: &'a Topology, cpu: Cpu) -> Self {
        let determined = Determined { cpu: true, llc: true, node: true, package: true };
        Self { topology, cpu, determined }
    }

    fn span(&self, level: Level) -> Option<&'a CpuSet> {
        self.topology.span(level, self.cpu)
    }
}

impl Visitor for Doubt<'_> {
    fn reach(&mut self, cpu: Cpu) {
        let inside = |level: Level| self.span(level).is_some_and(|span| span.contains(cpu));
        self.determined = Determined {
            cpu: self.determined.cpu && cpu == self.cpu,
            llc: self.determined.llc && inside(Level::Llc),
            node: self.determined.node && inside(Level::Node),
            package: self.determined.package && inside(Level::Package),
        };
    }

    fn enters(&self, span: &CpuSet) -> bool {
        let Determined { cpu, llc, node, package } = self.determined;
        let leaves = |level: Level| self.span(level).is_none_or(|own| !span.is_subset(own));
        cpu || llc && leaves(Level::Llc) || node && leaves(Level::Node) || package && leaves(Level::Package)
    }
}

/// Where one task goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Placed {
    /// The CPU in the central run.
    pub cpu: Cpu,
    /// What of it is determined.
    pub determined: Determined,
}

/// The central run of a burst.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The CPU that the parent was on.
    pub origin: Cpu,
    /// The tasks in the order in which they were started.
    pub tasks: Vec<Placed>,
    /// What it comes to.
    pub tally: Tally,
}

/// The CPU of each task in the central run, in the order in which they are started.
pub fn place(host: Host<'_>, burst: &Burst<'_>) -> Vec<Cpu> {
    if let Some(only) = burst.allowed.first().filter(|&first| burst.allowed.last() == Some(first)) {
        let mut places = vec![only; burst.tasks as usize];
        places.splice(..burst.placed_at_start().iter().len(), burst.placed_at_start());
        return places;
    }
    let (walk, mut state) = (burst.walk(), burst.start(host, burst.parent_weight));
    let mut places = Vec::with_capacity(burst.tasks as usize);
    places.extend(burst.placed_at_start());
    for _ in 0..burst.placements() {
        let cpu = walk.place(&mut state);
        burst.children.start_on(cpu, &mut state);
        state.advance(burst.gap);
        places.push(cpu);
    }
    places
}

/// Where and when load balancing could mark a group during a burst.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkOutlook {
    /// Index of the first task that is placed while there is a reason.
    pub from_task: u32,
    /// The CPUs of the first group that could be marked.
    pub group: CpuSet,
    /// The share of the later placements that is expected to meet a mark, 0 to 1.
    pub expected_share: f64,
}

/// Where and when the burst gives load balancing a reason for its mark; `None` if it never does.
pub fn mark_outlook(host: Host<'_>, burst: &Burst<'_>) -> Option<MarkOutlook> {
    let burst = Burst { marks: Marks::Expected, ..*burst };
    if burst.allowed.len() == 1 || burst.children == Children::Asleep {
        return None;
    }
    let (walk, mut state) = (burst.walk(), burst.start(host, burst.parent_weight));
    let placed = u32::from(burst.placed_at_start().is_some());
    let (mut first, mut later, mut met) = (None, 0_u32, 0_u32);
    for task in placed..burst.tasks {
        if first.is_some() {
            later += 1;
            met += u32::from(state.board().any_is_set());
        }
        let cpu = walk.place(&mut state);
        burst.children.start_on(cpu, &mut state);
        state.advance(burst.gap);
        first = first.or_else(|| state.board().first_active().map(|group| (task + 1, group)));
    }
    let (from_task, group) = first.filter(|&(from_task, _)| from_task < burst.tasks)?;
    let group = host.domains.groups()[group as usize].clone();
    Some(MarkOutlook { from_task, group, expected_share: f64::from(met) / f64::from(later.max(1)) })
}

/// The time between two forks of a launcher that does nothing else, in microseconds, as real kernels were seen to need.
pub const GAP: u64 = 100;

/// The most tasks whose places are looked at for what is determined of them. What comes later in so large a burst
/// depends on too much that cannot be seen, and counts as noise.
const EXAMINED: usize = 4096;

/// The central run of a burst, with what of it is noise.
pub fn predict(host: Host<'_>, burst: &Burst<'_>) -> Prediction {
    if burst.allowed.len() == 1 {
        let determined = Determined { cpu: true, llc: true, node: true, package: true };
        let places = place(host, burst);
        let tasks = places.iter().map(|&cpu| Placed { cpu, determined }).collect();
        return Prediction { origin: burst.origin, tasks, tally: burst.tally(host, &places) };
    }
    let (walk, mut state) = (burst.walk(), burst.start(host, burst.parent_weight));
    let certain = Determined { cpu: true, llc: true, node: true, package: true };
    let mut tasks: Vec<Placed> =
        burst.placed_at_start().into_iter().map(|cpu| Placed { cpu, determined: certain }).collect();
    for index in 0..burst.placements() as usize {
        let cpu = walk.place(&mut state);
        let mut doubt = Doubt::new(host.topology, cpu);
        if index < EXAMINED {
            walk.visit(&mut state, Open::default(), &mut doubt);
        } else {
            host.topology.online().iter().for_each(|other| doubt.reach(other));
        }
        burst.children.start_on(cpu, &mut state);
        state.advance(burst.gap);
        tasks.push(Placed { cpu, determined: doubt.determined });
    }
    let places: Vec<Cpu> = tasks.iter().map(|task| task.cpu).collect();
    Prediction { origin: burst.origin, tasks, tally: burst.tally(host, &places) }
}
