//! The decisions behind an advice: of the launch without it, and of each run that refutes a proof.

use crate::{
    convert::{advise::Question, predict, trace::Budget},
    snapshot::{Machine, Under},
};
use berth_model::{
    advise::{Part, Proof},
    predict::Host,
};
use berth_proto::v1;

/// What is still to be told of decisions.
#[derive(Debug)]
pub(super) struct Traced<'a> {
    pub(super) machine: &'a Machine,
    pub(super) question: &'a Question,
    pub(super) budget: Budget,
}

impl Traced<'_> {
    /// Adds the decisions of the run that refutes the proof of these parts. One of all parts together has none: each
    /// part of it is launched on top of the others.
    pub(super) fn refutation(&mut self, proof: &Proof, parts: &[Part], told: Option<&mut v1::Proof>) {
        let run = told.and_then(|told| told.failing_run.as_mut());
        let (Some(run), Some(failure), Some(wanted)) = (run, &proof.failure, self.question.traced()) else {
            return;
        };
        let (Some(part), Some(load)) = (parts.get(failure.part), &failure.load) else { return };
        let of_failure = |under: &&Under| under.profile.name == failure.profile;
        if let Some(under) = self.machine.kernels.iter().find(of_failure) {
            let burst = self.question.launch().burst(&part.cpus, part.tasks, failure.origin);
            let host = self.machine.host(under, load);
            self.budget.add(host, &burst, &failure.run.places, &wanted, run);
        }
    }

    /// Adds the decisions of the launch without the advice.
    pub(super) fn without(
        &mut self,
        host: Host<'_>,
        asked: &predict::Question,
        told: Option<&mut v1::Prediction>,
    ) {
        if let Some(prediction) = told.filter(|_| self.question.trace) {
            self.budget.add_central(host, asked, prediction);
        }
    }
}
