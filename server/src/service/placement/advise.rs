//! `Advise`: the widest proven form, with both outcomes side by side.

use super::{
    super::{Context, caller::Caller, kept, pool::Stop},
    SHORT,
    keep::Keeping,
    search::UnderProfile,
    traced::Traced,
};
use crate::{
    convert::{
        Failure, Faults, Warnings,
        advice::{self, Frame},
        advise::{self, Asked, Question},
        cpus, host, kernel,
        prediction::{self, Outcome, Scene},
        snapshot::{self, Ground},
        trace::Budget,
    },
    snapshot::Snapshot,
};
use berth_model::{
    advise::{Advice, Error, Form, Kernel, Outcome as ProofOutcome, Part, Policy, Request, objective},
    cpuset::{Cpu, CpuSet},
    hold::{self, Mode},
};
use berth_proto::v1::{self, verdict};

impl Context {
    pub(in crate::service) async fn advise(
        &self,
        mut request: v1::AdviseRequest,
        caller: Caller,
    ) -> Result<v1::AdviseResponse, Failure> {
        advise::unserved(&request)?;
        let (mut faults, mut warnings) = (Faults::default(), Warnings::default());
        let asked_host = host::from_wire(request.host.take(), &mut faults, &mut warnings);
        let asked_kernel = kernel::from_wire(request.kernel.take(), &mut faults);
        let expected = snapshot::Expected::from_wire(request.expect, &mut faults);
        let asked = advise::from_wire(&request, &mut faults);
        let Some(subject) = self.subject(asked_host, asked_kernel, &mut faults, &mut warnings).await? else {
            return Err(faults.none().err().unwrap_or_else(|| Failure::internal("no host, and no fault")));
        };
        // All that is wrong is told at once.
        let _ = asked.clone().about(&subject.snapshot, &mut faults, &mut Warnings::default());
        faults.none()?;
        subject.modelled()?;
        let is_small = asked.is_short(SHORT);
        let compute = move |snapshot: &Snapshot, stop: &Stop| {
            answer_all(&asked, expected, None, snapshot, |uid| caller.may_see(uid), stop)
        };
        let mut response = self.computed(&subject, is_small, compute).await??.response;
        let mut all = warnings.into_wire();
        all.append(&mut response.warnings);
        Ok(v1::AdviseResponse { warnings: all, ..response })
    }
}

/// An answer, and what is to be kept of it.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) response: v1::AdviseResponse,
    /// The masks of the placement.
    pub(super) parts: Vec<hold::Part>,
    /// The answer for whoever asks again, if somebody may.
    pub(super) plain: Option<v1::AdviseResponse>,
}

/// Holds what is asked against the snapshot, and answers it.
pub(super) fn answer_all(
    asked: &Asked,
    expected: snapshot::Expected,
    keeping: Option<Keeping<'_>>,
    snapshot: &Snapshot,
    may_see: impl Fn(u32) -> bool,
    stop: &Stop,
) -> Result<Answered, Failure> {
    let (mut faults, mut warnings) = (Faults::default(), Warnings::default());
    let question = asked.clone().about(snapshot, &mut faults, &mut warnings);
    faults.none()?;
    let mut question = question?;
    expected.is_met(snapshot)?;
    let mut mode = Mode::Shared;
    if let Some(keeping) = &keeping {
        question.keep(keeping.own)?;
        mode = keeping.mode;
    }
    question.allowed =
        kept::open_to(mode, &question.allowed, question.cpus(), snapshot, may_see, &mut warnings)?;
    cpus::warn_of_few(question.tasks, question.cpus_per_task, &question.allowed, &mut warnings);
    snapshot::warn(snapshot, &question.allowed, &mut warnings);
    let repeatable = keeping.is_some_and(|keeping| keeping.repeatable);
    let mut answered = answer(snapshot, &question, repeatable, stop)?;
    let warnings = warnings.into_wire();
    for response in std::iter::once(&mut answered.response).chain(&mut answered.plain) {
        response.warnings.splice(..0, warnings.iter().cloned());
    }
    Ok(answered)
}

/// The answer, but for what is to be said of the host.
fn answer(
    snapshot: &Snapshot,
    question: &Question,
    repeatable: bool,
    stop: &Stop,
) -> Result<Answered, Failure> {
    let machine = &*snapshot.machine;
    let load = snapshot.load_of_model();
    let ground = Ground::of(snapshot, &question.allowed);
    let kernels: Vec<Kernel<'_>> = machine
        .kernels
        .iter()
        .map(|under| Kernel { profile: &under.profile, domains: &under.domains, symmetry: &under.symmetry })
        .collect();
    // Where the model does not reach, a task with one CPU goes there all the same.
    let pinned = [Form::PerTask];
    let can_pin = question.can_apply.is_empty() || question.can_apply.contains(&Form::PerTask);
    let pin = !ground.covered && can_pin;
    let request = Request {
        topology: &machine.topology,
        kernels: &kernels,
        ideal: &machine.ideal,
        load: &load,
        allowed: &question.allowed,
        asked: question.asked,
        tasks: question.tasks,
        cpus_per_task: question.cpus_per_task,
        policy: question.policy,
        smt: question.smt,
        within: question.wishes.within,
        near: question.near.as_ref(),
        exclusive: question.wishes.exclusive,
        launch: question.launch(),
        can_apply: if pin { &pinned } else { &question.can_apply },
        single_cpus: question.single_cpus || pin,
        kept: question.kept,
        marks: question.open_marks(),
        with_margin: question.full && ground.covered,
    };
    let given = berth_model::advise::advise(&request).map_err(failure)?;
    let wanted = question.without_advice();
    let stopped = || Failure::internal("the caller went away");
    let judged_by = machine.kernels.iter().find(|under| under.profile.name == given.judged_by);
    let judged_by = judged_by.ok_or_else(|| Failure::internal("no kernel"))?;
    let host = machine.host(judged_by, &load);
    let loads = wanted.launch.holders.loads(&load);
    let under = UnderProfile {
        host,
        symmetry: &judged_by.symmetry,
        question: &wanted,
        ground,
        proven: given.asked.is_safe(),
        profiles: loads.len(),
    };
    let (under, without) = under.search_under(loads.iter().map(AsRef::as_ref), stop).ok_or_else(stopped)?;

    let rests_on = snapshot::to_wire(snapshot);
    let scene = Scene { topology: &machine.topology, load: &load, allowed: &question.allowed };
    let whole = [whole(question)];
    let told = |question: &Question| {
        let frame = Frame { question, scene, ground, valid_for: &rests_on };
        let mut warnings = Warnings::default();
        warn_of_advice(&given, question, ground, &mut warnings);
        if question.full && Frame::is_long(&given) {
            let said =
                "The entries of all tasks, each with its mask, are too long to be told: see the parts.";
            warnings.add("ENTRIES_LEFT_OUT", said);
        }
        let mut traced = Traced { machine, question, budget: Budget::default() };
        let mut asked = frame.proof(&given.asked, &whole);
        traced.refutation(&given.asked, &whole, Some(&mut asked));
        let attempts = given.attempts.iter().map(|attempt| {
            let mut told = frame.attempt(attempt);
            traced.refutation(&attempt.proof, &attempt.parts, told.proof.as_mut());
            told
        });
        let attempts = attempts.collect();
        let mut advice = frame.advice(&given);
        traced.refutation(&given.proof, &given.parts, advice.proof.as_mut());
        let worst = under.worst(&without);
        let mut without = worst.map(|outcome| prediction::to_wire(&outcome, scene, frame.detail()));
        traced.without(under.host, &wanted, without.as_mut());
        v1::AdviseResponse {
            advice: Some(advice),
            without,
            with: Some(prediction::to_wire(&with(&given, ground), scene, frame.detail())),
            asked: Some(asked),
            attempts,
            reasons: reasons(&given, question, ground),
            runners_up: if question.full { runners_up(&request, &given, &frame) } else { Vec::new() },
            formatted: question.formats.of(&given, &machine.topology),
            hold: None,
            allowed: question.allowed.to_string(),
            profile: Some(kernel::to_wire(&machine.choice)),
            snapshot: Some(rests_on.clone()),
            warnings: warnings.into_wire(),
        }
    };
    Ok(Answered {
        parts: if question.kept { parts_to_keep(&given) } else { Vec::new() },
        plain: repeatable.then(|| told(&question.plain())),
        response: told(question),
    })
}

/// The masks to keep: those of the placement. Entries that are the same CPU are one.
fn parts_to_keep(advice: &Advice) -> Vec<hold::Part> {
    let mut places: Vec<Vec<Cpu>> = Vec::new();
    for part in &advice.parts {
        let same = |before: &&mut Vec<Cpu>| {
            advice.form == Form::PerTask && part.placed.len() == 1 && before.first() == part.placed.first()
        };
        match places.last_mut().filter(same) {
            Some(before) => before.extend(&part.placed),
            None => places.push(part.placed.clone()),
        }
    }
    places.iter().map(|placed| hold::Part::placed(placed)).collect()
}

fn failure(error: Error) -> Failure {
    match error {
        Error::NoFreeCore { cores } => Failure::NoFreeCore { cores },
        Error::NotAlone { asked, free, allowed, .. } => {
            Failure::NoRoom { reason: "NOT_ALONE", said: error.to_string(), asked, free, allowed }
        }
        Error::NotWithin { asked, free, allowed, .. } => {
            Failure::NoRoom { reason: "NOT_WITHIN", said: error.to_string(), asked, free, allowed }
        }
        Error::NoKernel => Failure::internal(error),
    }
}

/// The allowed CPUs as one mask.
fn whole(question: &Question) -> Part {
    Part { cpus: question.allowed.clone(), tasks: question.tasks, placed: Vec::new(), as_asked: true }
}

/// What the kernel does with the advice.
fn with(advice: &Advice, ground: Ground) -> Outcome {
    let ground = advice::ground_of(ground, &advice.parts);
    let (verdict, determined) = match advice.proof.outcome {
        _ if !ground.covered => (verdict::Value::Unknown, false),
        ProofOutcome::Safe if !ground.is_firm() => (verdict::Value::Unknown, false),
        ProofOutcome::Safe => (verdict::Value::NoPileUp, true),
        ProofOutcome::Unsafe => (verdict::Value::PileUp, false),
        _ if advice.with.tally.pile_up => (verdict::Value::PileUp, false),
        ProofOutcome::Misshapen
            if ground.is_firm()
                && advice.asked.is_safe()
                && advice.parts.iter().all(|part| part.as_asked) =>
        {
            (verdict::Value::NoPileUp, true)
        }
        ProofOutcome::Misshapen | ProofOutcome::Cut => (verdict::Value::Unknown, false),
    };
    Outcome {
        profile: advice.judged_by,
        central: advice.with.clone(),
        verdict,
        determined,
        others: Vec::new(),
        balancing: None,
        wakes_on: Vec::new(),
        frozen_clock: None,
        mark: None,
    }
}

fn warn_of_advice(advice: &Advice, question: &Question, ground: Ground, warnings: &mut Warnings) {
    let ground = advice::ground_of(ground, &advice.parts);
    if !advice.proof.is_safe() || !ground.is_firm() {
        let said = match advice.proof.outcome {
            ProofOutcome::Safe if let Some(doubt) = ground.load_doubt.filter(|_| ground.covered) => {
                doubt.told().1
            }
            ProofOutcome::Misshapen => {
                "Under no form that can be applied does the kernel keep to the policy's shape: this is the widest."
            }
            _ => "No form that can be applied is proven: this is the one that piles up least.",
        };
        warnings.add("NOT_PROVEN", said);
    }
    if !advice.optimal {
        let said = "Where caches cross NUMA nodes, NUMA distances are those of no hierarchy, or a host is very large, not every placement is tried: a better one may exist.";
        warnings.add("MAY_NOT_BE_OPTIMAL", said);
    }
    if let Some(within) = question.wishes.within.filter(|_| !advice.within_met) {
        let level = within.level.name();
        let said = format!("No single {level} has an idle CPU for each: the tasks are on several.");
        warnings.add("WITHIN_NOT_MET", said);
    }
    if let Some(near) = &question.near {
        let placed = advice::placed(advice);
        let away: CpuSet = placed.iter().copied().filter(|&cpu| !near.at().contains(cpu)).collect();
        if !away.is_empty() {
            let said = if question.allowed.intersects(near.at()) {
                "Not every task has room at the place that it should be near to: these CPUs are the nearest others."
            } else {
                "No allowed CPU is at the place that the tasks should be near to: these are the nearest ones."
            };
            warnings.add_about("NEAR_NOT_MET", said, &away);
        }
    }
}

/// What limited or decided the advice.
fn reasons(advice: &Advice, question: &Question, ground: Ground) -> Vec<v1::Reason> {
    let mut reasons = Vec::new();
    let mut add = |reason: &str, message: String| {
        reasons.push(v1::Reason { reason: reason.to_owned(), message });
    };
    let asked = advice::because(&advice.asked, ground);
    match advice.asked.outcome {
        _ if !ground.covered => add("HOST_NOT_COVERED", asked),
        ProofOutcome::Safe if let Some(doubt) = ground.load_doubt => add(doubt.told().0, asked),
        ProofOutcome::Safe if advice.form == Form::None => add("KERNEL_DOES_AS_WELL", asked),
        ProofOutcome::Safe => add("ASKED_SAFE", asked),
        ProofOutcome::Unsafe | ProofOutcome::Misshapen => add("ASKED_UNSAFE", asked),
        ProofOutcome::Cut => add("ASKED_CUT", asked),
    }
    for attempt in &advice.attempts {
        let form = advice::form(attempt.form).as_str_name();
        let masks = if attempt.parts.len() == 1 { "mask" } else { "masks" };
        let because = advice::because(&attempt.proof, ground);
        add("WIDER_FORM_FAILED", format!("{form} ({} {masks}): {because}", attempt.parts.len()));
    }
    if question.kept {
        let said = "What is kept is as wide as the placement, so that others are given the rest.";
        add("KEPT_AS_PLACED", said.to_owned());
    }
    if !question.can_apply.is_empty() {
        let forms: Vec<&str> =
            question.can_apply.iter().map(|&form| advice::form(form).as_str_name()).collect();
        add("FORMS_LIMITED", format!("The caller can apply {} only.", forms.join(", ")));
    }
    let ground = advice::ground_of(ground, &advice.parts);
    if !advice.proof.is_safe() || !ground.is_firm() {
        add("NOT_PROVEN", advice::because(&advice.proof, ground));
    }
    reasons
}

/// What the other policies would do, in the terms of this one.
fn runners_up(request: &Request<'_>, best: &Advice, frame: &Frame<'_>) -> Vec<v1::RunnerUp> {
    let others =
        [Policy::Auto, Policy::Spread, Policy::Compact].into_iter().filter(|other| *other != request.policy);
    let judged = others.filter_map(|policy| {
        let advice = berth_model::advise::advise(&Request { policy, with_margin: false, ..*request }).ok()?;
        let objective = objective(request, &advice::placed(&advice));
        frame.runner_up(policy, &advice, &objective, &best.objective)
    });
    judged.collect()
}
