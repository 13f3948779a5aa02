//! One predicted outcome, to the wire.

use super::{balancing::Balancing, count, topology::id_of};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    load::Load,
    predict::{MarkOutlook, Placed, Prediction, Run, Tally},
    topology::{Level, Topology},
};
use berth_proto::v1::{self, verdict};

/// What was found out about one origin under one profile.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) profile: &'static str,
    /// The central run.
    pub(crate) central: Prediction,
    pub(crate) verdict: verdict::Value,
    /// The verdict holds for every run.
    pub(crate) determined: bool,
    /// The ends of other runs that were followed.
    pub(crate) others: Vec<Run>,
    /// What load balancing does to the central run; absent if not computed.
    pub(crate) balancing: Option<Balancing>,
    /// For each task the CPUs that it can wake on; empty if not computed.
    pub(crate) wakes_on: Vec<String>,
    /// The share of CPU time if no time passed during the launch; the central run's if not looked at.
    pub(crate) frozen_clock: Option<f64>,
    /// Where load balancing could set its mark.
    pub(crate) mark: Option<MarkOutlook>,
}

/// Where it happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) load: &'a Load,
    pub(crate) allowed: &'a CpuSet,
}

/// How much of it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Totals alone.
    Totals,
    /// And the tasks of each LLC, node and package.
    Places,
    /// And of each CPU, and the place of each task.
    Tasks,
}

impl Outcome {
    fn tallies(&self) -> impl Iterator<Item = &Tally> + Clone {
        std::iter::once(&self.central.tally).chain(self.others.iter().map(|other| &other.tally))
    }

    /// Fewest and most over all runs.
    fn range(&self, of: impl Fn(&Tally) -> u32) -> v1::CountRange {
        let least = self.tallies().map(&of).min().unwrap_or(0);
        v1::CountRange { least, most: self.tallies().map(&of).max().unwrap_or(least) }
    }
}

/// The outcome.
pub(crate) fn to_wire(outcome: &Outcome, scene: Scene<'_>, detail: Detail) -> v1::Prediction {
    let Prediction { origin, tasks, tally } = &outcome.central;
    let places = Places::new(outcome, scene);
    let counts = |level| if detail >= Detail::Places { places.counts(level) } else { Vec::new() };
    let (mut each_task, mut each_cpu) = (Vec::new(), Vec::new());
    if detail >= Detail::Tasks {
        each_task = tasks
            .iter()
            .zip(0..)
            .map(|(placed, task)| task_placement(placed, task, scene.topology))
            .collect();
        for (task, wakes_on) in each_task.iter_mut().zip(&outcome.wakes_on) {
            task.wakes_on.clone_from(wakes_on);
        }
        each_cpu = cpu_counts(tally, scene.load);
    }
    v1::Prediction {
        profile: outcome.profile.to_owned(),
        origin: origin.number(),
        verdict: outcome.verdict.into(),
        verdict_determined: outcome.determined,
        most_on_one_cpu: tally.fullest,
        most_on_one_cpu_range: Some(outcome.range(|tally| tally.fullest)),
        best_possible: tally.best,
        idle_allowed: tally.idle_allowed.to_string(),
        idle_allowed_count: count(tally.idle_allowed.len()),
        idle_allowed_range: Some(outcome.range(|tally| count(tally.idle_allowed.len()))),
        cpus_used: count(tally.tasks_on.len()),
        cpu_use: Some(v1::CpuUse {
            settled: outcome.balancing.as_ref().and_then(Balancing::cpu_use),
            ..cpu_use(outcome.tallies(), outcome.frozen_clock)
        }),
        balancing: outcome.balancing.as_ref().map(|balancing| balancing.to_wire(scene.topology)),
        tasks: each_task,
        cpus: each_cpu,
        llcs: counts(Level::Llc),
        nodes: counts(Level::Node),
        packages: counts(Level::Package),
        undetermined: undetermined(tasks),
        mark: outcome.mark.as_ref().map(mark_outlook),
        trace: Vec::new(),
        trace_cut: false,
    }
}

/// The CPU time that the tasks get; the central run's first.
pub(crate) fn cpu_use<'a>(
    tallies: impl Iterator<Item = &'a Tally> + Clone,
    frozen_clock: Option<f64>,
) -> v1::CpuUse {
    let shares = || tallies.clone().map(|tally| tally.cpu_use);
    let expected = shares().next().unwrap_or(0.0);
    v1::CpuUse {
        expected,
        least: shares().fold(expected, f64::min),
        most: shares().fold(expected, f64::max),
        frozen_clock: frozen_clock.unwrap_or(expected),
        settled: None,
    }
}

fn mark_outlook(mark: &MarkOutlook) -> v1::MarkOutlook {
    v1::MarkOutlook {
        from_task: mark.from_task,
        group: mark.group.to_string(),
        expected_share: mark.expected_share,
    }
}

fn task_placement(placed: &Placed, task: u32, topology: &Topology) -> v1::TaskPlacement {
    let id = |level| id_of(topology, level, Some(placed.cpu)).unwrap_or(0);
    let known = placed.determined;
    v1::TaskPlacement {
        task,
        cpu: placed.cpu.number(),
        llc: id(Level::Llc),
        node: id(Level::Node),
        package: id(Level::Package),
        determined: (known.cpu || known.llc || known.node || known.package).then_some(v1::Determined {
            cpu: known.cpu,
            llc: known.llc,
            node: known.node,
            package: known.package,
        }),
        wakes_on: String::new(),
    }
}

fn cpu_counts(tally: &Tally, load: &Load) -> Vec<v1::CpuCount> {
    let counts = tally.tasks_on.iter().map(|&(cpu, tasks)| v1::CpuCount {
        cpu: cpu.number(),
        tasks,
        before: load.taken(cpu),
        range: None,
    });
    counts.collect()
}

fn undetermined(tasks: &[Placed]) -> Option<v1::Undetermined> {
    let open = |is: fn(&Placed) -> bool| count(tasks.iter().filter(|placed| !is(placed)).count());
    let found = v1::Undetermined {
        cpu: open(|placed| placed.determined.cpu),
        llc: open(|placed| placed.determined.llc),
        node: open(|placed| placed.determined.node),
        package: open(|placed| placed.determined.package),
        because: Vec::new(),
    };
    let mut because = Vec::new();
    if found.cpu > 0 {
        because.push(
            "Which of several equally idle CPUs is taken depends on idle states and on when each went idle."
                .to_owned(),
        );
    }
    if found.llc > 0 {
        because
            .push("Which of several equally idle groups is taken depends on averages that decay.".to_owned());
    }
    (found.cpu > 0).then_some(v1::Undetermined { because, ..found })
}

/// Counts per unit of each level.
struct Places<'a> {
    scene: Scene<'a>,
    idle: &'a CpuSet,
    /// The CPUs of each run, the central one first.
    runs: Vec<Vec<Cpu>>,
}

impl<'a> Places<'a> {
    fn new(outcome: &'a Outcome, scene: Scene<'a>) -> Self {
        let central = outcome.central.tasks.iter().map(|placed| placed.cpu).collect();
        let others = outcome.others.iter().map(|other| other.places.clone());
        let runs = std::iter::once(central).chain(others).collect();
        Self { scene, idle: &outcome.central.tally.idle_allowed, runs }
    }

    /// Each unit with allowed CPUs.
    fn counts(&self, level: Level) -> Vec<v1::PlaceCount> {
        let units = self.scene.topology.units(level);
        let per_run: Vec<Vec<u32>> =
            self.runs.iter().map(|places| self.tasks_per_unit(level, places)).collect();
        let with_allowed = units.iter().enumerate().filter_map(|(index, unit)| {
            let cpus = unit.cpus.intersection(self.scene.allowed);
            (!cpus.is_empty())
                .then(|| self.place_count(unit.id, &cpus, per_run.iter().map(|counts| counts[index])))
        });
        with_allowed.collect()
    }

    fn tasks_per_unit(&self, level: Level, places: &[Cpu]) -> Vec<u32> {
        let mut counts = vec![0; self.scene.topology.units(level).len()];
        for &cpu in places {
            if let Some(unit) = self.scene.topology.unit_of(level, cpu) {
                counts[unit] += 1;
            }
        }
        counts
    }

    fn place_count(&self, id: u32, cpus: &CpuSet, mut per_run: impl Iterator<Item = u32>) -> v1::PlaceCount {
        let tasks = per_run.next().unwrap_or(0);
        let (least, most) = per_run.fold((tasks, tasks), |(least, most), n| (least.min(n), most.max(n)));
        v1::PlaceCount {
            id,
            cpus: cpus.to_string(),
            allowed: count(cpus.len()),
            tasks,
            before: cpus.iter().map(|cpu| self.scene.load.taken(cpu)).sum(),
            idle: count(cpus.intersection_len(self.idle)),
            range: (least != most).then_some(v1::CountRange { least, most }),
        }
    }
}
