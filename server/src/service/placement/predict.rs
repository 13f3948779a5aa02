//! `Predict`: every plausible origin under every profile that the host's kernel may follow; the worst is told.

use super::{
    super::{Context, pool::Stop},
    SHORT, origins,
    search::{Found, OfClass, UnderProfile},
};
use crate::{
    convert::{
        Failure, Faults, Warnings, cpus, host, kernel,
        predict::{self, Question},
        prediction::{self, Detail, Scene},
        snapshot::{self, Ground},
        trace,
    },
    snapshot::Snapshot,
};
use berth_model::{
    cpuset::CpuSet,
    predict::{Host, lone_cpus},
};
use berth_proto::v1::{self, verdict};

impl Context {
    pub(in crate::service) async fn predict(
        &self,
        request: v1::PredictRequest,
    ) -> Result<v1::PredictResponse, Failure> {
        predict::unserved(&request)?;
        let (mut faults, mut warnings) = (Faults::default(), Warnings::default());
        let mut request = request;
        let expected = snapshot::Expected::from_wire(request.expect.take(), &mut faults);
        let asked_host = host::from_wire(request.host.take(), &mut faults, &mut warnings);
        let asked_kernel = kernel::from_wire(request.kernel.take(), &mut faults);
        let asked = predict::from_wire(request, &mut faults);
        let Some(subject) = self.subject(asked_host, asked_kernel, &mut faults, &mut warnings).await? else {
            return Err(faults.none().err().unwrap_or_else(|| Failure::internal("no host, and no fault")));
        };
        let question = asked.about(&subject.snapshot, &mut faults, &mut warnings);
        faults.none()?;
        let question = question?;
        expected.is_met(&subject.snapshot)?;
        subject.modelled()?;
        cpus::warn_of_few(question.tasks, 1, &question.allowed, &mut warnings);
        snapshot::warn(&subject.snapshot, &question.allowed, &mut warnings);

        let is_small = question.tasks <= SHORT && !question.full && question.trace.is_none();
        let compute = move |snapshot: &Snapshot, stop: &Stop| answer(snapshot, &question, stop);
        let answered = self.computed(&subject, is_small, compute).await?;
        let mut response = answered.ok_or_else(|| Failure::internal("the caller went away"))?;
        let mut all = warnings.into_wire();
        all.append(&mut response.warnings);
        Ok(v1::PredictResponse { warnings: all, ..response })
    }
}

/// The answer, but for what is to be said of the host. Nothing if it was stopped.
fn answer(snapshot: &Snapshot, question: &Question, stop: &Stop) -> Option<v1::PredictResponse> {
    let machine = &*snapshot.machine;
    let load = snapshot.load_of_model();
    let ground = Ground::of(snapshot, &question.allowed);
    let loads = question.launch.holders.loads(&load);
    let (mut profiles, mut found) = (Vec::new(), Vec::new());
    for kernel in &machine.kernels {
        let under = UnderProfile {
            host: machine.host(kernel, &load),
            symmetry: &kernel.symmetry,
            question,
            ground,
            proven: false,
            profiles: machine.kernels.len() * loads.len(),
        };
        let (worse, its) = under.search_under(loads.iter().map(AsRef::as_ref), stop)?;
        profiles.push(worse);
        found.push(its);
    }
    let mut warnings = Warnings::default();
    warn_of_ranges(&found, &mut warnings);
    if let Some(under) = profiles.first() {
        let is_sure = found.iter().all(|found| found.worst().is_some_and(OfClass::is_safe));
        warn_of_lone_cpus(under.host, &question.allowed, is_sure, &mut warnings);
    }
    let with_origins = profiles.first().is_some_and(UnderProfile::tells_every_class);
    let origins = if with_origins { origins::to_wire(&found) } else { Vec::new() };

    let scene = Scene { topology: &machine.topology, load: &load, allowed: &question.allowed };
    let mut predictions = Vec::with_capacity(found.len());
    let mut traces = trace::Budget::default();
    for (under, found) in profiles.iter().zip(&found) {
        if stop.is_called() {
            return None;
        }
        let Some(outcome) = under.worst_and_later(found) else { continue };
        let mut prediction = prediction::to_wire(&outcome, scene, Detail::Tasks);
        traces.add_central(under.host, question, &mut prediction);
        predictions.push(prediction);
    }
    let verdict = joint(predictions.iter().map(v1::Prediction::verdict));
    let mut predictions = predictions.into_iter();
    Some(v1::PredictResponse {
        verdict: verdict.into(),
        prediction: predictions.next(),
        others: predictions.collect(),
        origins,
        allowed: question.allowed.to_string(),
        profile: Some(kernel::to_wire(&machine.choice)),
        snapshot: Some(snapshot::to_wire(snapshot)),
        warnings: warnings.into_wire(),
    })
}

/// What the ranges of an answer leave out.
fn warn_of_ranges(found: &[Found], warnings: &mut Warnings) {
    let worst = || found.iter().filter_map(Found::worst);
    let is_open = |of_class: &OfClass| of_class.verdict == verdict::Value::Unknown;
    if worst().any(|of_class| of_class.cut) {
        let no_verdict = if worst().any(|of_class| of_class.cut && is_open(of_class)) {
            " None of these piles up under some profile, which is no verdict."
        } else {
            ""
        };
        let said = format!("Not every run could be followed: ranges hold for those that were.{no_verdict}");
        warnings.add("RUNS_CUT", said);
    }
}

/// A task that sleeps and wakes stays in its LLC: what that means for a mask that leaves one CPU there.
fn warn_of_lone_cpus(host: Host<'_>, allowed: &CpuSet, is_safe: bool, warnings: &mut Warnings) {
    let lone = lone_cpus(host, allowed);
    if is_safe || lone.is_empty() || allowed.len() == 1 {
        return;
    }
    let said = format!(
        "CPUs {} are alone in their LLC under this mask: a task that sleeps and wakes comes back to such a CPU however busy it is, so waking undoes no pile-up there.",
        cpus::shorten(&lone)
    );
    warnings.add_about("WAKES_ALONE", said, &lone);
}

/// One verdict for all profiles: what is not safe under one is not safe.
fn joint(verdicts: impl Iterator<Item = verdict::Value> + Clone) -> verdict::Value {
    let any = |wanted: verdict::Value| verdicts.clone().any(|verdict| verdict == wanted);
    if any(verdict::Value::PileUp) {
        verdict::Value::PileUp
    } else if any(verdict::Value::Unknown) || !any(verdict::Value::NoPileUp) {
        verdict::Value::Unknown
    } else {
        verdict::Value::NoPileUp
    }
}
