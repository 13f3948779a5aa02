//! An advice with its proof, to the wire.

use super::{
    advise::Question,
    assumed, count,
    prediction::{self, Detail, Outcome, Scene},
    snapshot::Ground,
    topology::nodes_of,
};
use berth_model::{
    advise::{Advice, Attempt, Failure, Form, Objective, Outcome as ProofOutcome, Part, Policy, Proof},
    cpuset::{Cpu, CpuSet},
    predict::{Determined, Placed, Prediction},
};
use berth_proto::v1::{self, form, policy, proof, verdict};
use std::ops::Range;

/// What the answer is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) question: &'a Question,
    pub(crate) scene: Scene<'a>,
    /// What a proof can stand on.
    pub(crate) ground: Ground,
    pub(crate) valid_for: &'a v1::Snapshot,
}

impl Frame<'_> {
    /// The advice itself.
    pub(crate) fn advice(&self, advice: &Advice) -> v1::Advice {
        let Question { only_task, full, .. } = *self.question;
        let has_parts = matches!(advice.form, Form::Mask | Form::Split) && only_task.is_none();
        let each = advice.form == Form::PerTask || (full && !Self::is_long(advice));
        v1::Advice {
            form: form(advice.form).into(),
            parts: if has_parts { self.parts(&advice.parts) } else { Vec::new() },
            tasks: match only_task {
                Some(task) => self.entries(advice, task..task.saturating_add(1)),
                None if each => self.entries(advice, 0..u32::MAX),
                None => Vec::new(),
            },
            proof: Some(self.proof(&advice.proof, &advice.parts)),
            objective: full.then(|| Self::objective(&advice.objective, advice.optimal, advice.bound)),
            groups: Vec::new(),
        }
    }

    fn parts(&self, parts: &[Part]) -> Vec<v1::Part> {
        let mut first_task = 0;
        let parts = parts.iter().map(|part| {
            let first = first_task;
            first_task += part.tasks;
            v1::Part {
                cpus: part.cpus.to_string(),
                memory_nodes: nodes_of(self.scene.topology, &part.cpus),
                tasks: part.tasks,
                first_task: first,
                group: 0,
                instance: 0,
            }
        });
        parts.collect()
    }

    /// Whether the entries of all tasks, each with its mask, would be a very long answer. With PER_TASK they are the
    /// advice itself.
    pub(crate) fn is_long(advice: &Advice) -> bool {
        const MOST: usize = 1 << 20;
        let repeated = |part: &Part| part.cpus.to_string().len() * part.placed.len();
        advice.form != Form::PerTask && advice.parts.iter().map(repeated).sum::<usize>() > MOST
    }

    /// The entries of these tasks, in order.
    fn entries(&self, advice: &Advice, wanted: Range<u32>) -> Vec<v1::TaskEntry> {
        let of_parts = matches!(advice.form, Form::Mask | Form::Split) && self.question.only_task.is_none();
        let bound = advice.form != Form::None;
        let mut first = 0;
        let mut entries = Vec::new();
        for (part, index) in advice.parts.iter().zip(0..) {
            let tasks = first..first + part.tasks;
            first = tasks.end;
            if tasks.end <= wanted.start || tasks.start >= wanted.end {
                continue;
            }
            // Written once for all tasks of the part.
            let (cpus, memory_nodes) = if bound {
                (part.cpus.to_string(), nodes_of(self.scene.topology, &part.cpus))
            } else {
                (String::new(), String::new())
            };
            let each = part.placed.len() / (part.tasks as usize).max(1);
            let inside = tasks.zip(part.placed.chunks(each.max(1))).filter(|(task, _)| wanted.contains(task));
            entries.extend(inside.map(|(task, placed)| v1::TaskEntry {
                task,
                cpus: cpus.clone(),
                memory_nodes: memory_nodes.clone(),
                part: of_parts.then_some(index),
                group: 0,
                instance: 0,
                placed: if self.question.full { cpulist(placed) } else { String::new() },
            }));
        }
        entries
    }

    /// Whether these parts are proven.
    pub(crate) fn proof(&self, proof: &Proof, parts: &[Part]) -> v1::Proof {
        // A task that may use one CPU only goes there under any scheduler.
        let ground = ground_of(self.ground, parts);
        let result = result(proof, ground);
        v1::Proof {
            result: result.into(),
            runs: proof.runs,
            // Of a proof that ended early nobody counted the rest.
            runs_needed: if result == proof::Result::Safe { proof.runs } else { 0 },
            margin: proof.margin.map(|margin| margin.cpus),
            margin_at_least: proof.margin.is_some_and(|margin| margin.at_least),
            failing_run: proof
                .failure
                .as_ref()
                .filter(|failure| ground.covered && failure.run.tally.pile_up)
                .map(|failure| self.failing_run(failure, parts)),
            origins: proof.origins.to_string(),
            profiles: proof.profiles.iter().map(|&name| name.to_owned()).collect(),
            valid_for: Some(self.valid_for.clone()),
            because: because(proof, ground),
            assumes: if result == proof::Result::Safe {
                assumed::by(ground, &self.question.launch, proof)
            } else {
                Vec::new()
            },
        }
    }

    /// The run that piles up: one of many, and of one part.
    fn failing_run(&self, failure: &Failure, parts: &[Part]) -> v1::Prediction {
        let unknown = Determined { cpu: false, llc: false, node: false, package: false };
        let tasks = failure.run.places.iter().map(|&cpu| Placed { cpu, determined: unknown }).collect();
        let outcome = Outcome {
            profile: failure.profile,
            central: Prediction { origin: failure.origin, tasks, tally: failure.run.tally.clone() },
            verdict: if failure.run.tally.pile_up {
                verdict::Value::PileUp
            } else {
                verdict::Value::NoPileUp
            },
            determined: false,
            others: Vec::new(),
            balancing: None,
            wakes_on: Vec::new(),
            frozen_clock: None,
            mark: None,
        };
        let whole = CpuSet::new();
        let allowed = parts.get(failure.part).map_or(&whole, |part| &part.cpus);
        let run = prediction::to_wire(&outcome, Scene { allowed, ..self.scene }, self.detail());
        v1::Prediction { undetermined: None, ..run }
    }

    /// How much of a prediction is told beside an advice.
    pub(crate) fn detail(&self) -> Detail {
        match (self.question.only_task, self.question.full) {
            (Some(_), _) => Detail::Totals,
            (None, false) => Detail::Places,
            (None, true) => Detail::Tasks,
        }
    }

    fn objective(objective: &Objective, optimal: bool, bound: Option<u64>) -> v1::Objective {
        let components = objective.components.iter().map(|component| v1::ObjectiveComponent {
            name: component.name.to_owned(),
            values: component.values.clone(),
        });
        v1::Objective { components: components.collect(), optimal, bound: bound.into_iter().collect() }
    }

    pub(crate) fn attempt(&self, attempt: &Attempt) -> v1::Attempt {
        v1::Attempt {
            form: form(attempt.form).into(),
            parts: self.parts(&attempt.parts),
            proof: Some(self.proof(&attempt.proof, &attempt.parts)),
            because: because(&attempt.proof, ground_of(self.ground, &attempt.parts)),
        }
    }

    /// A placement by another policy, judged in the terms of this one. Nothing if it does not lose.
    pub(crate) fn runner_up(
        &self,
        policy: Policy,
        advice: &Advice,
        judged: &Objective,
        best: &Objective,
    ) -> Option<v1::RunnerUp> {
        let pairs = judged.components.iter().zip(&best.components);
        let loses_at = pairs.clone().position(|(ours, best)| ours > best)?;
        let (lost, best) = (&judged.components[loses_at], &best.components[loses_at]);
        Some(v1::RunnerUp {
            policy: self::policy(policy).into(),
            form: form(advice.form).into(),
            parts: self.parts(&advice.parts),
            objective: Some(Self::objective(judged, false, None)),
            loses_at: Some(count(loses_at)),
            because: format!("{}: {} is more than {}.", lost.name, shown(&lost.values), shown(&best.values)),
        })
    }
}

/// An answer that was told plainly before, for somebody with other wishes about how much is told. What it rested on is
/// no more, so nothing is computed anew.
pub(crate) fn again(mut plain: v1::AdviseResponse, only_task: Option<u32>, full: bool) -> v1::AdviseResponse {
    let advice = plain.advice.get_or_insert_default();
    let entry = |task: u32, part: &v1::Part, index: Option<u32>| v1::TaskEntry {
        task,
        cpus: part.cpus.clone(),
        memory_nodes: part.memory_nodes.clone(),
        part: index,
        ..v1::TaskEntry::default()
    };
    if let Some(task) = only_task {
        let of_part = |part: &&v1::Part| (part.first_task..part.first_task + part.tasks).contains(&task);
        let in_part = advice.parts.iter().find(of_part).map(|part| entry(task, part, None));
        let own = advice.tasks.iter().find(|entry| entry.task == task).cloned();
        let unbound = || v1::TaskEntry { task, ..v1::TaskEntry::default() };
        advice.tasks = vec![own.or(in_part).unwrap_or_else(unbound)];
        advice.parts.clear();
        for prediction in plain.without.iter_mut().chain(&mut plain.with) {
            prediction.llcs.clear();
            prediction.nodes.clear();
            prediction.packages.clear();
        }
    } else if full {
        if advice.tasks.is_empty() {
            let parts = (0..).zip(&advice.parts);
            let tasks = |part: &v1::Part| part.first_task..part.first_task + part.tasks;
            advice.tasks = parts
                .flat_map(|(index, part)| tasks(part).map(move |task| entry(task, part, Some(index))))
                .collect();
        }
        let said = "This was answered before, and is told as it was told then: without what only FULL and `trace` add.";
        plain.warnings.push(v1::Warning {
            reason: "ANSWERED_BEFORE".to_owned(),
            message: said.to_owned(),
            ..v1::Warning::default()
        });
    }
    plain
}

fn cpulist(cpus: &[Cpu]) -> String {
    cpus.iter().copied().collect::<CpuSet>().to_string()
}

/// The first numbers of a component.
fn shown(values: &[u64]) -> String {
    const MOST: usize = 12;
    let mut text: Vec<String> = values.iter().take(MOST).map(u64::to_string).collect();
    if values.len() > MOST {
        text.push("…".to_owned());
    }
    text.join(" ")
}

pub(crate) fn form(form: Form) -> form::Value {
    match form {
        Form::None => form::Value::None,
        Form::Mask => form::Value::Mask,
        Form::Split => form::Value::Split,
        Form::PerTask => form::Value::PerTask,
    }
}

fn policy(policy: Policy) -> policy::Value {
    match policy {
        Policy::Auto => policy::Value::Auto,
        Policy::Spread => policy::Value::Spread,
        Policy::Compact => policy::Value::Compact,
    }
}

/// What there is to stand on for these masks. A task that may use one CPU only goes there under any scheduler.
pub(crate) fn ground_of(ground: Ground, parts: &[Part]) -> Ground {
    if parts.iter().any(|part| part.cpus.len() > 1) { ground } else { ground.for_pinned() }
}

fn result(proof: &Proof, ground: Ground) -> proof::Result {
    match proof.outcome {
        ProofOutcome::Safe if ground.is_firm() => proof::Result::Safe,
        ProofOutcome::Safe | ProofOutcome::Misshapen => proof::Result::NotProven,
        _ if !ground.covered => proof::Result::NotProven,
        ProofOutcome::Unsafe => proof::Result::Unsafe,
        ProofOutcome::Cut => proof::Result::Cut,
    }
}

/// Why a proof went as it did, in a sentence.
pub(crate) fn because(proof: &Proof, ground: Ground) -> String {
    let (profiles, origins) = (proof.profiles.len(), proof.origins.len());
    match (&proof.outcome, &proof.failure) {
        _ if !ground.covered => "The model does not cover this host: see the warnings.".to_owned(),
        (ProofOutcome::Safe, _) if let Some(doubt) = ground.load_doubt => doubt.told().1.to_owned(),
        (ProofOutcome::Safe, _) if proof.runs == 0 => {
            "Each task has one CPU, and goes there under any kernel.".to_owned()
        }
        (ProofOutcome::Safe, _) => {
            let runs = if proof.runs == 1 { "1 run".to_owned() } else { format!("{} runs", proof.runs) };
            format!("No pile-up in {runs} of the model (kernels: {profiles}, parent CPUs: {origins}).")
        }
        (_, Some(failure)) if failure.run.tally.pile_up => {
            let tally = &failure.run.tally;
            format!(
                "Under {}, forked from CPU {}, {} tasks end up on one CPU where {} would do.",
                failure.profile, failure.origin, tally.fullest, tally.best
            )
        }
        (_, Some(failure)) => format!(
            "Under {}, forked from CPU {}, a run does not pile up and is not of the shape that the policy asks for.",
            failure.profile, failure.origin
        ),
        (ProofOutcome::Unsafe | ProofOutcome::Misshapen, None) => "A run piles up.".to_owned(),
        (ProofOutcome::Cut, None) => {
            format!("A full proof needs more runs than are made, of which there were {}.", proof.runs)
        }
    }
}

/// The CPUs of every task of an advice, ascending.
pub(crate) fn placed(advice: &Advice) -> Vec<Cpu> {
    let mut placed: Vec<Cpu> = advice.parts.iter().flat_map(|part| part.placed.iter().copied()).collect();
    placed.sort_unstable();
    placed
}
