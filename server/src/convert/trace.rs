//! The decision trace, from and to the wire.

use super::{Faults, count, predict::Question, time};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    predict::{
        Burst, GroupType, Host,
        trace::{Group, Step, TaskTrace, Verdict, trace},
    },
};
use berth_proto::v1::{self, group_stats::Type, trace_step::Decision};
use prost::Message as _;
use std::time::Duration;

/// The most bytes of traces in one answer: clients take messages of 4 MiB.
const MAX_BYTES: usize = 1 << 20;

/// The tasks to trace, by index; nothing if no trace is asked for.
pub(crate) fn wanted(asked: bool, tasks: &str, of: u32, faults: &mut Faults) -> Option<CpuSet> {
    if !asked {
        if !tasks.is_empty() {
            faults.add("trace_tasks", "it is set without `trace`; expected both, or neither");
        }
        return None;
    }
    if tasks.is_empty() {
        return Some(CpuSet::first_n(of));
    }
    // Indices are written as CPUs are.
    let shown: String = tasks.chars().take(40).collect();
    let Some(wanted) = CpuSet::parse(tasks).ok().filter(|set| !set.is_empty()) else {
        let said =
            format!("`{shown}` is no list of tasks; expected indices such as 0-3,17, or nothing for all");
        faults.add("trace_tasks", said);
        return None;
    };
    if let Some(last) = wanted.last().filter(|last| last.number() >= of && of > 0) {
        faults.add("trace_tasks", format!("task {last} is none of {of}; expected 0 to {}", of - 1));
    }
    Some(wanted)
}

/// What may still be told in an answer.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(MAX_BYTES)
    }
}

impl Budget {
    /// Adds the trace of a burst to its prediction: of the run with these places, or of the central one if there are
    /// none. As far as it is wanted, and there is room.
    pub(crate) fn add(
        &mut self,
        host: Host<'_>,
        burst: &Burst<'_>,
        places: &[Cpu],
        wanted: &CpuSet,
        prediction: &mut v1::Prediction,
    ) {
        trace(
            host,
            burst,
            places,
            |task| Cpu::try_new(task).is_some_and(|index| wanted.contains(index)),
            |task| {
                let told = task_to_wire(task);
                let Some(left) = self.0.checked_sub(told.encoded_len()) else {
                    prediction.trace_cut = true;
                    return false;
                };
                self.0 = left;
                prediction.trace.push(told);
                true
            },
        );
    }

    /// Adds the trace of a prediction from its origin, if the question asks for one.
    pub(crate) fn add_central(
        &mut self,
        host: Host<'_>,
        question: &Question,
        prediction: &mut v1::Prediction,
    ) {
        if let (Some(wanted), Some(origin)) = (&question.trace, Cpu::try_new(prediction.origin)) {
            self.add(host, &question.burst(origin), &[], wanted, prediction);
        }
    }
}

fn task_to_wire(task: TaskTrace) -> v1::TaskTrace {
    v1::TaskTrace {
        task: task.task,
        from: task.from.number(),
        cpu: task.cpu.number(),
        steps: task.steps.into_iter().map(step_to_wire).collect(),
        fell_back: task.fell_back,
        because: task.because,
        at: Some(time::duration_to_wire(Duration::from_micros(task.at))),
    }
}

fn step_to_wire(step: Step) -> v1::TraceStep {
    let (decision, chosen, tied_cpus) = match step.decision {
        Verdict::Stay => (Decision::Stay, None, String::new()),
        Verdict::Pass => (Decision::Pass, None, String::new()),
        Verdict::Go { chosen, tied } => (Decision::Go, Some(chosen.number()), tied.to_string()),
    };
    v1::TraceStep {
        domain: step.kind.name().to_owned(),
        span: step.span.to_string(),
        cpu: step.cpu.number(),
        imb_numa_nr: step.imb_numa_nr,
        groups: step.groups.iter().map(group_to_wire).collect(),
        local: step.local.map(count),
        idlest: step.idlest.map(count),
        tied: step.tied.into_iter().map(count).collect(),
        decision: decision.into(),
        rule: step.rule.unwrap_or_default().to_owned(),
        because: step.because,
        chosen,
        tied_cpus,
    }
}

fn group_to_wire(group: &Group) -> v1::GroupStats {
    let group_type = match group.group_type {
        None => Type::Unknown,
        Some(GroupType::HasSpare) => Type::HasSpare,
        Some(GroupType::FullyBusy) => Type::FullyBusy,
        Some(GroupType::Imbalanced) => Type::Imbalanced,
        Some(GroupType::Overloaded) => Type::Overloaded,
    };
    v1::GroupStats {
        cpus: group.cpus.to_string(),
        allowed: group.allowed,
        weight: group.weight,
        running: group.running,
        idle: group.idle,
        util: group.util,
        runnable: group.runnable,
        load: group.load.into(),
        capacity: group.capacity(),
        avg_load: group.avg_load,
        r#type: group_type.into(),
        skipped: group.allowed == 0,
    }
}
