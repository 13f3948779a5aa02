//! What is asked of `Predict`, from the wire.

use super::{Failure, Faults, Warnings, cpus, host, status::Precondition, time, trace, unserved::Unserved};
use crate::snapshot::Snapshot;
use berth_model::{
    cpuset::{Cpu, CpuSet},
    load::Load,
    predict::{Burst, Children, Entry, GAP, IdleCpu, MAX_MARKED, Marks, Parent, Weight},
    topology::{Level, Topology},
};
use berth_proto::v1::{self, launch, scenario, view};
use prost_types::Duration as WireDuration;
use std::{borrow::Cow, time::Duration};

/// How tasks are started, as far as a request tells.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) origin: Option<Cpu>,
    pub(crate) parent: Parent,
    pub(crate) entry: Entry,
    pub(crate) children: Children,
    pub(crate) holders: Holders,
    /// Microseconds between two forks; 0 if the clock is frozen.
    pub(crate) gap: u64,
    pub(crate) marks: Marks,
    /// Whether the request leaves the mark open.
    pub(crate) marks_open: bool,
    /// Groups that are marked already, by their CPUs.
    pub(crate) marked: Vec<CpuSet>,
    /// What is known of idle CPUs, by number; empty if nothing is told.
    pub(crate) idle: Vec<IdleCpu>,
    /// The NUMA node that the tasks prefer: its number, and once held against a host its index among nodes with CPUs.
    pub(crate) preferred_node: Option<u32>,
}

/// What tasks do that hold CPUs and were not measured to run there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Holders {
    /// Either; the worse counts.
    #[default]
    Worse,
    Run,
    Sleep,
}

impl Holders {
    /// What then runs: one load or two.
    pub(crate) fn loads(self, load: &Load) -> Vec<Cow<'_, Load>> {
        let asleep = Cow::Borrowed(load);
        match (self, load.awake()) {
            (Self::Sleep, _) | (_, None) => vec![asleep],
            (Self::Run, Some(awake)) => vec![Cow::Owned(awake)],
            (Self::Worse, Some(awake)) => vec![asleep, Cow::Owned(awake)],
        }
    }
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            origin: None,
            parent: Parent::default(),
            entry: Entry::default(),
            children: Children::default(),
            holders: Holders::default(),
            gap: GAP,
            marks: Marks::Never,
            marks_open: true,
            marked: Vec::new(),
            idle: Vec::new(),
            preferred_node: None,
        }
    }
}

/// A question that can be answered, once it is held against a host.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) tasks: u32,
    allowed: Option<CpuSet>,
    pub(crate) launch: Launch,
    pub(crate) full: bool,
    trace: Option<CpuSet>,
}

/// The same question about a host.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) tasks: u32,
    /// Online CPUs, at least one.
    pub(crate) allowed: CpuSet,
    pub(crate) launch: Launch,
    pub(crate) full: bool,
    /// The tasks whose decisions are told, by index.
    pub(crate) trace: Option<CpuSet>,
}

impl Question {
    /// The tasks started from this CPU.
    pub(crate) fn burst(&self, origin: Cpu) -> Burst<'_> {
        let Launch {
            parent,
            entry,
            children,
            gap,
            marks,
            marks_open,
            ref marked,
            ref idle,
            preferred_node,
            ..
        } = self.launch;
        Burst {
            parent,
            entry,
            children,
            gap,
            parent_weight: Weight::Light,
            marks,
            marks_open,
            marked,
            idle,
            preferred_node,
            ..Burst::forks(&self.allowed, self.tasks, origin)
        }
    }
}

/// # Errors
///
/// If a field is set that is not served yet.
pub(crate) fn unserved(request: &v1::PredictRequest) -> Result<(), Failure> {
    let mut fields = Unserved::default();
    fields.field("groups", !request.groups.is_empty());
    fields.field("launch FORK_EXEC", request.launch() == launch::Value::ForkExec);
    host::unserved(request.host.as_ref(), &mut fields);
    fields.none()
}

/// The question, without what depends on the host.
pub(crate) fn from_wire(request: v1::PredictRequest, faults: &mut Faults) -> Asked {
    known_enum("launch", request.launch, launch::Value::try_from(request.launch).is_ok(), faults);
    known_enum("view", request.view, view::Value::try_from(request.view).is_ok(), faults);
    let entry = entry(request.launch());
    let full = request.view() == view::Value::Full;
    let tasks = cpus::tasks(request.tasks, faults);
    Asked {
        tasks,
        trace: trace::wanted(request.trace, &request.trace_tasks, tasks, faults),
        allowed: cpus::set("allowed", &request.allowed, faults),
        full,
        launch: self::launch(request.origin, request.origin_is_task, entry, request.scenario, faults),
    }
}

/// A number that stands for no value of its enumeration is no default.
pub(crate) fn known_enum(field: &str, number: i32, known: bool, faults: &mut Faults) {
    if !known {
        faults.add(field, format!("{number} is none of its values; expected one that the contract names"));
    }
}

pub(crate) fn entry(launch: launch::Value) -> Entry {
    match launch {
        launch::Value::Exec => Entry::Exec,
        launch::Value::Fork | launch::Value::ForkExec => Entry::Fork,
    }
}

/// How the tasks are started.
pub(crate) fn launch(
    origin: Option<u32>,
    origin_is_task: bool,
    entry: Entry,
    scenario: Option<v1::Scenario>,
    faults: &mut Faults,
) -> Launch {
    let scenario = scenario.unwrap_or_default();
    let known = scenario::Holders::try_from(scenario.holders).is_ok();
    known_enum("scenario.holders", scenario.holders, known, faults);
    Launch {
        origin: origin.and_then(|number| cpus::cpu("origin", number, faults)),
        parent: parent(origin_is_task, scenario.parent_keeps_running),
        entry,
        children: if scenario.children_sleep { Children::Asleep } else { Children::Running },
        holders: match scenario.holders() {
            scenario::Holders::Worse => Holders::Worse,
            scenario::Holders::Running => Holders::Run,
            scenario::Holders::Asleep => Holders::Sleep,
        },
        gap: gap(scenario.gap, faults),
        marks: match scenario.mark() {
            scenario::Mark::Both | scenario::Mark::Clear => Marks::Never,
            scenario::Mark::Set => Marks::AtOnce,
        },
        marks_open: scenario.mark() == scenario::Mark::Both,
        marked: marked(&scenario.marked, faults),
        idle: idle(&scenario, faults),
        preferred_node: scenario.preferred_node,
    }
}

/// The longest pause between two forks.
const MAX_GAP: Duration = Duration::from_secs(10);

/// The pause between two forks, in microseconds.
fn gap(gap: Option<WireDuration>, faults: &mut Faults) -> u64 {
    let Some(gap) = gap else { return GAP };
    match time::duration_from_wire(gap) {
        Ok(gap) if gap <= MAX_GAP => u64::try_from(gap.as_micros()).unwrap_or(u64::MAX),
        Ok(gap) => {
            faults.add("scenario.gap", format!("{gap:?} is too long; expected 0s to {MAX_GAP:?}"));
            GAP
        }
        Err(fault) => {
            faults.add("scenario.gap", fault);
            GAP
        }
    }
}

/// What the parent does.
pub(super) fn parent(is_task: bool, keeps_running: bool) -> Parent {
    match (is_task, keeps_running) {
        (true, _) => Parent::IsTask,
        (false, true) => Parent::Runs,
        (false, false) => Parent::Waits,
    }
}

/// The groups that are marked already.
fn marked(groups: &[String], faults: &mut Faults) -> Vec<CpuSet> {
    if groups.len() > MAX_MARKED {
        faults.add("scenario.marked", format!("{} groups; expected at most {MAX_MARKED}", groups.len()));
    }
    let mut marked = Vec::new();
    for (i, cpus) in groups.iter().take(MAX_MARKED).enumerate() {
        let field = format!("scenario.marked[{i}]");
        if cpus.is_empty() {
            faults.add(&field, "no CPU is named; expected all CPUs of a group, such as 0-15");
        }
        marked.extend(cpus::set(&field, cpus, faults));
    }
    marked
}

/// The most exit latencies that are told apart: a host has a handful of idle states.
const MAX_LATENCIES: usize = 1024;

/// What the scenario tells of idle CPUs.
fn idle(scenario: &v1::Scenario, faults: &mut Faults) -> Vec<IdleCpu> {
    let mut table: Vec<IdleCpu> = Vec::new();
    let mut set = |cpu: Cpu, change: &dyn Fn(&mut IdleCpu)| {
        if table.len() <= cpu.index() {
            table.resize(cpu.index() + 1, IdleCpu::default());
        }
        change(&mut table[cpu.index()]);
    };
    // The most recent has the largest stamp; CPUs that are not named went idle before all of these.
    let stamps = (IdleCpu::default().idle_stamp + 1..).take(scenario.idle_order.len()).collect::<Vec<_>>();
    let mut seen = CpuSet::new();
    for (i, (&number, &stamp)) in scenario.idle_order.iter().zip(stamps.iter().rev()).enumerate() {
        if faults.are_many() {
            break;
        }
        let field = format!("scenario.idle_order[{i}]");
        let Some(cpu) = cpus::cpu(&field, number, faults) else { continue };
        if !seen.insert(cpu) {
            faults.add(field, format!("CPU {cpu} is named twice; expected each once"));
        }
        set(cpu, &|idle| idle.idle_stamp = stamp);
    }
    let latencies = scenario.exit_latencies.len();
    if latencies > MAX_LATENCIES {
        let said = format!(
            "{latencies} entries; expected at most {MAX_LATENCIES}, each with as many CPUs as share it"
        );
        faults.add("scenario.exit_latencies", said);
    }
    for (i, entry) in scenario.exit_latencies.iter().take(MAX_LATENCIES).enumerate() {
        if faults.are_many() {
            break;
        }
        let field = |name: &str| format!("scenario.exit_latencies[{i}].{name}");
        if entry.cpus.is_empty() {
            faults.add(field("cpus"), "no CPU is named; expected at least one, such as 0-15");
        }
        let named = cpus::set(&field("cpus"), &entry.cpus, faults).unwrap_or_default();
        let latency =
            faults.take(&field("latency"), time::duration_from_wire(entry.latency.unwrap_or_default()));
        let micros = latency.map(|latency| u32::try_from(latency.as_micros()).unwrap_or(u32::MAX));
        for cpu in &named {
            set(cpu, &|idle| idle.exit_latency = micros);
        }
    }
    table
}

impl Asked {
    /// Holds the question against the host that it is about.
    pub(crate) fn about(
        self,
        snapshot: &Snapshot,
        faults: &mut Faults,
        warnings: &mut Warnings,
    ) -> Result<Question, Failure> {
        let topology = &snapshot.machine.topology;
        let allowed = allowed(self.allowed, topology, faults, warnings)?;
        origin(self.launch.origin, topology, faults)?;
        let preferred_node = self.launch.preferred_node.and_then(|id| preferred_node(id, topology, faults));
        let launch = Launch { preferred_node, ..self.launch };
        are_groups(&launch.marked, snapshot, faults);
        Ok(Question { tasks: self.tasks, allowed, launch, full: self.full, trace: self.trace })
    }
}

/// The CPUs that the tasks may use. With faults noted, any.
pub(crate) fn allowed(
    asked: Option<CpuSet>,
    topology: &Topology,
    faults: &mut Faults,
    warnings: &mut Warnings,
) -> Result<CpuSet, Failure> {
    match asked {
        Some(asked) if !cpus::exist("allowed", &asked, topology, faults) => Ok(asked),
        Some(asked) => cpus::online("allowed", &asked, topology, warnings),
        None => Ok(unbound(topology)),
    }
}

/// Where a task may run that nobody bound: on every online CPU but isolated ones, which have to be asked for.
fn unbound(topology: &Topology) -> CpuSet {
    let housekeeping = topology.online().difference(topology.isolated());
    if housekeeping.is_empty() { topology.online().clone() } else { housekeeping }
}

/// The parent's CPU has to be one that it can be on.
pub(crate) fn origin(origin: Option<Cpu>, topology: &Topology, faults: &mut Faults) -> Result<(), Failure> {
    let Some(origin) = origin else { return Ok(()) };
    if cpus::exist("origin", &origin.into(), topology, faults) && !topology.online().contains(origin) {
        return Err(Failure::Precondition(Precondition::CpusOffline {
            field: "origin",
            cpus: origin.to_string(),
        }));
    }
    Ok(())
}

/// The index of the NUMA node among those with CPUs.
fn preferred_node(id: u32, topology: &Topology, faults: &mut Faults) -> Option<u32> {
    let nodes = topology.units(Level::Node);
    let index = nodes.iter().position(|node| node.id == id).and_then(|index| u32::try_from(index).ok());
    if index.is_none() {
        let known: Vec<String> = nodes.iter().map(|node| node.id.to_string()).collect();
        let said =
            format!("node {id} is no NUMA node with CPUs of this host; expected one of {}", known.join(", "));
        faults.add("scenario.preferred_node", said);
    }
    index
}

/// What is marked has to be a group under some kernel that the host may run.
pub(crate) fn are_groups(marked: &[CpuSet], snapshot: &Snapshot, faults: &mut Faults) {
    let kernels = &snapshot.machine.kernels;
    let is_group = |cpus: &CpuSet| {
        let first = cpus.first();
        let mut domains = kernels.iter().flat_map(|kernel| first.map(|cpu| kernel.domains.of(cpu)));
        domains.any(|mut domains| domains.any(|domain| domain.groups().any(|group| group == cpus)))
    };
    for (i, cpus) in marked.iter().enumerate().filter(|(_, cpus)| !is_group(cpus)) {
        let nodes: Vec<String> = snapshot
            .machine
            .topology
            .units(Level::Node)
            .iter()
            .take(2)
            .map(|node| node.cpus.to_string())
            .collect();
        let said = format!(
            "CPUs {} are no group of this host's scheduling domains; expected all CPUs of one, such as a NUMA node's ({})",
            cpus::shorten(cpus),
            nodes.join(" or ")
        );
        faults.add(format!("scenario.marked[{i}]"), said);
    }
}
