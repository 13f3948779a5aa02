//! Answers about placements.

use berth_proto::v1::{self, proof, verdict};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// Answers about placements, by what was answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placement {
    advised: Family<Advised, Counter>,
    predicted: Family<Predicted, Counter>,
    pile_ups: Family<PileUp, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Advised {
    form: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Predicted {
    verdict: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PileUp {
    profile: String,
}

impl Placement {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let placement = Self::default();
        let Self { advised, predicted, pile_ups } = placement.clone();
        registry.register(
            "advice",
            "Advice that was given, by its form and by what its proof found",
            advised,
        );
        registry.register("predictions", "Predictions that were given, by their verdict", predicted);
        registry.register(
            "predicted_pile_ups",
            "Questions whose tasks pile up if they are left to the kernel, by the rules that make them",
            pile_ups,
        );
        placement
    }

    /// Advice was given.
    pub(crate) fn advised(&self, response: &v1::AdviseResponse) {
        let Some(advice) = &response.advice else { return };
        let outcome = advice.proof.as_ref().map_or(proof::Result::NotProven, v1::Proof::result);
        let labels = Advised { form: advice.form().as_str_name(), outcome: outcome.as_str_name() };
        self.advised.get_or_create(&labels).inc();
        self.judged(response.without.as_ref());
    }

    /// A prediction was given.
    pub(crate) fn predicted(&self, response: &v1::PredictResponse) {
        let labels = Predicted { verdict: response.verdict().as_str_name() };
        self.predicted.get_or_create(&labels).inc();
        self.judged(response.prediction.as_ref());
    }

    fn judged(&self, prediction: Option<&v1::Prediction>) {
        if let Some(prediction) = prediction.filter(|found| found.verdict() == verdict::Value::PileUp) {
            // One of the profiles' names, which are few.
            let labels = PileUp { profile: prediction.profile.clone() };
            self.pile_ups.get_or_create(&labels).inc();
        }
    }
}
