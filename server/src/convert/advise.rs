//! What is asked of `Advise`, from the wire.

use super::{
    Failure, Faults, Warnings, cpus,
    format::Formats,
    host,
    predict::{self, known_enum},
    unserved::Unserved,
    wishes::Wishes,
};
use crate::{service::Caller, snapshot::Snapshot};
use berth_model::{
    advise::{Form, Launch, Near, Policy, Smt},
    cpuset::{Cpu, CpuSet, MAX_CPUS},
    predict::Markable,
};
use berth_proto::v1::{self, form, launch, level, near, policy, scenario, smt, view};

/// The most forms that one says it can apply: each of them, and some twice.
const MAX_FORMS: usize = 16;

/// A question that can be answered, once it is held against a host.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    tasks: u32,
    cpus_per_task: u32,
    allowed: Option<CpuSet>,
    policy: Policy,
    smt: Smt,
    launch: predict::Launch,
    can_apply: Vec<Form>,
    single_cpus: bool,
    only_task: Option<u32>,
    full: bool,
    trace: bool,
    wishes: Wishes,
    formats: Formats,
}

/// The same question about a host.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) tasks: u32,
    pub(crate) cpus_per_task: u32,
    /// Online CPUs, at least one.
    pub(crate) allowed: CpuSet,
    /// Whether the request names them.
    pub(crate) asked: bool,
    pub(crate) policy: Policy,
    pub(crate) smt: Smt,
    pub(crate) launch: predict::Launch,
    /// Empty for all.
    pub(crate) can_apply: Vec<Form>,
    pub(crate) single_cpus: bool,
    pub(crate) only_task: Option<u32>,
    pub(crate) full: bool,
    /// Decisions are told too.
    pub(crate) trace: bool,
    /// The CPUs are kept for the tasks.
    pub(crate) kept: bool,
    pub(crate) wishes: Wishes,
    /// The place that is wished for, on this host.
    pub(crate) near: Option<Near>,
    pub(crate) formats: Formats,
}

impl Question {
    /// The CPUs are to be kept, among those that the caller may hold: all of these, if it named none.
    ///
    /// # Errors
    ///
    /// If it named others.
    pub(crate) fn keep(&mut self, own: Option<&CpuSet>) -> Result<(), Failure> {
        self.kept = true;
        if let (Some(own), false) = (own, self.asked) {
            let inside = self.allowed.intersection(own);
            // One whose cpuset has isolated CPUs alone may hold these.
            self.allowed = if inside.is_empty() { own.clone() } else { inside };
        }
        Caller::check_cpus("allowed", &self.allowed, own)
    }

    /// The same question, answered for whoever asks it again with other wishes about how much is told.
    pub(crate) fn plain(&self) -> Self {
        Self { only_task: None, full: false, trace: false, ..self.clone() }
    }

    /// The tasks whose decisions are told, by index; nothing if none are.
    pub(crate) fn traced(&self) -> Option<CpuSet> {
        let only = || self.only_task.and_then(Cpu::try_new).map(CpuSet::from);
        self.trace.then(|| only().unwrap_or_else(|| CpuSet::first_n(self.tasks)))
    }

    /// How many CPUs the tasks are to have, all together.
    pub(crate) fn cpus(&self) -> u32 {
        self.tasks.saturating_mul(self.cpus_per_task)
    }

    /// How the tasks are started, as the model has it.
    pub(crate) fn launch(&self) -> Launch<'_> {
        let predict::Launch { origin, parent, entry, gap, marks, ref marked, .. } = self.launch;
        Launch { origin, parent, entry, gap, marks, marked }
    }

    /// Which groups may be marked, if the question leaves that open.
    pub(crate) fn open_marks(&self) -> Markable {
        if self.launch.marks_open { Markable::Crowded } else { Markable::None }
    }

    /// The same tasks under the allowed CPUs, as `Predict` asks.
    pub(crate) fn without_advice(&self) -> predict::Question {
        predict::Question {
            tasks: self.tasks,
            allowed: self.allowed.clone(),
            launch: self.launch.clone(),
            full: self.full,
            trace: self.traced(),
        }
    }
}

/// # Errors
///
/// If a field is set that is not served yet.
pub(crate) fn unserved(request: &v1::AdviseRequest) -> Result<(), Failure> {
    let mut fields = Unserved::default();
    let is_pci = |near: &v1::Near| matches!(near.place, Some(near::Place::Pci(_)));
    fields.field("near.pci", request.near.as_ref().is_some_and(is_pci));
    // What is kept is what is placed: the rest of a unit would be open to others.
    let wider = !matches!(request.exclusive(), level::Value::Unspecified | level::Value::Pu);
    fields.field("exclusive above PU with hold", wider && request.hold.is_some());
    fields.field("memory", request.memory.is_some());
    fields.field("min_cpus", request.min_cpus != 0);
    fields.field("core_kinds", !request.core_kinds.is_empty());
    fields.field("cpu_quota", request.cpu_quota != 0.0);
    fields.field("must_include", !request.must_include.is_empty());
    fields.field("groups", !request.groups.is_empty());
    fields.field("launch FORK_EXEC", request.launch() == launch::Value::ForkExec);
    if let Some(scenario) = &request.scenario {
        // A proof tries what it can itself; only `Predict` takes these circumstances for given.
        fields.field("scenario.holders", scenario.holders() != scenario::Holders::Worse);
        fields.field("scenario.children_sleep", scenario.children_sleep);
        fields.field("scenario.preferred_node", scenario.preferred_node.is_some());
        fields.field("scenario.idle_order", !scenario.idle_order.is_empty());
        fields.field("scenario.exit_latencies", !scenario.exit_latencies.is_empty());
    }
    host::unserved(request.host.as_ref(), &mut fields);
    fields.none()
}

/// The question, without what depends on the host.
pub(crate) fn from_wire(request: &v1::AdviseRequest, faults: &mut Faults) -> Asked {
    known_enum("policy", request.policy, policy::Value::try_from(request.policy).is_ok(), faults);
    known_enum("smt", request.smt, smt::Value::try_from(request.smt).is_ok(), faults);
    known_enum("launch", request.launch, launch::Value::try_from(request.launch).is_ok(), faults);
    known_enum("view", request.view, view::Value::try_from(request.view).is_ok(), faults);
    let tasks = cpus::tasks(request.tasks, faults);
    if let Some(task) = request.only_task.filter(|task| *task >= tasks && tasks > 0) {
        faults.add("only_task", format!("task {task} is none of {tasks}; expected 0 to {}", tasks - 1));
    }
    Asked {
        tasks,
        cpus_per_task: cpus_per_task(request.cpus_per_task, tasks, faults),
        allowed: cpus::set("allowed", &request.allowed, faults),
        policy: match request.policy() {
            policy::Value::Auto => Policy::Auto,
            policy::Value::Spread => Policy::Spread,
            policy::Value::Compact => Policy::Compact,
        },
        smt: match request.smt() {
            smt::Value::Avoid => Smt::Avoid,
            smt::Value::Share => Smt::Share,
            smt::Value::FullCores => Smt::FullCores,
        },
        launch: predict::launch(
            request.origin,
            request.origin_is_task,
            predict::entry(request.launch()),
            request.scenario.clone(),
            faults,
        ),
        can_apply: can_apply(&request.can_apply, faults),
        single_cpus: request.single_cpus,
        only_task: request.only_task,
        full: request.view() == view::Value::Full,
        trace: request.trace,
        wishes: Wishes::from_wire(request, faults),
        formats: Formats::from_wire(&request.formats, &request.slurm_cpus, faults),
    }
}

fn cpus_per_task(each: u32, tasks: u32, faults: &mut Faults) -> u32 {
    let each = each.max(1);
    if each.checked_mul(tasks).is_none_or(|cpus| cpus > MAX_CPUS && each > 1) {
        let most = MAX_CPUS / tasks.clamp(1, MAX_CPUS);
        faults.add("cpus_per_task", format!("{tasks} tasks of {each} CPUs; expected at most {most} each"));
    }
    each
}

fn can_apply(forms: &[i32], faults: &mut Faults) -> Vec<Form> {
    let mut read = Vec::new();
    if forms.len() > MAX_FORMS {
        faults.add("can_apply", format!("{} forms; expected at most {MAX_FORMS}", forms.len()));
    }
    for (i, &number) in forms.iter().take(MAX_FORMS).enumerate() {
        match form::Value::try_from(number) {
            Ok(form::Value::None) => read.push(Form::None),
            Ok(form::Value::Mask) => read.push(Form::Mask),
            Ok(form::Value::Split) => read.push(Form::Split),
            Ok(form::Value::PerTask) => read.push(Form::PerTask),
            Ok(form::Value::Unspecified) | Err(_) => {
                let said = format!("{number} is no form; expected NONE, MASK, SPLIT or PER_TASK");
                faults.add(format!("can_apply[{i}]"), said);
            }
        }
    }
    read.sort_unstable();
    read.dedup();
    // Not to bind is always possible.
    if !read.is_empty() && !read.contains(&Form::None) {
        read.push(Form::None);
    }
    read
}

impl Asked {
    /// Whether it is answered soon, by how much is asked.
    pub(crate) fn is_short(&self, tasks: u32) -> bool {
        self.tasks.saturating_mul(self.cpus_per_task) <= tasks && !self.full && !self.trace
    }

    /// Which task's entry is wanted alone, and whether all is to be told.
    pub(crate) fn wishes(&self) -> (Option<u32>, bool) {
        (self.only_task, self.full || self.trace)
    }

    /// Holds the question against the host that it is about.
    pub(crate) fn about(
        self,
        snapshot: &Snapshot,
        faults: &mut Faults,
        warnings: &mut Warnings,
    ) -> Result<Question, Failure> {
        let topology = &snapshot.machine.topology;
        let asked = self.allowed.is_some();
        let allowed = predict::allowed(self.allowed, topology, faults, warnings)?;
        predict::origin(self.launch.origin, topology, faults)?;
        predict::are_groups(&self.launch.marked, snapshot, faults);
        let near = self.wishes.near(topology, faults);
        Ok(Question {
            tasks: self.tasks,
            cpus_per_task: self.cpus_per_task,
            allowed,
            asked,
            policy: self.policy,
            smt: self.smt,
            launch: self.launch,
            can_apply: self.can_apply,
            single_cpus: self.single_cpus,
            only_task: self.only_task,
            full: self.full,
            trace: self.trace,
            kept: false,
            wishes: self.wishes,
            near,
            formats: self.formats,
        })
    }
}
