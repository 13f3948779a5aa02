//! What was refused because too much was going on.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// Refusals, by the limit that they met.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sheds(Family<Labels, Counter>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    limit: &'static str,
}

impl Sheds {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let sheds = Self::default();
        registry.register(
            "sheds",
            "Requests that were refused because too much was going on, by the limit that they met",
            sheds.0.clone(),
        );
        sheds
    }

    /// Refusals by this limit.
    pub(crate) fn of(&self, limit: &'static str) -> Counter {
        self.0.get_or_create_owned(&Labels { limit })
    }
}
