//! What the plugin counts.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::manager::Manager;

/// What became of a container that asked to be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It has a mask on which no run of the kernel's rules piles up.
    Placed,
    /// It has the mask with the smallest predicted pile-up, since none is proven.
    Unproven,
    /// It was looked at, since the kubelet gives out CPUs.
    Observed,
    /// It was looked at, and its tasks pile up.
    PileUp,
    /// It cannot be placed, and is as it would have been.
    Left,
    /// berthd did not answer in time, and it is as it would have been.
    NoAnswer,
}

/// Where a container was found once it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Where it was placed.
    AsPlaced,
    /// On other CPUs.
    Elsewhere,
    /// Its process is not seen from here.
    Unseen,
    /// Some of its tasks wait although they need not.
    PiledUp,
}

impl Outcome {
    /// As the metric and the container's annotation have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Placed => "placed",
            Self::Unproven => "unproven",
            Self::Observed => "observed",
            Self::PileUp => "pile_up",
            Self::Left => "left",
            Self::NoAnswer => "no_answer",
        }
    }
}

impl Found {
    fn name(self) -> &'static str {
        match self {
            Self::AsPlaced => "as_placed",
            Self::Elsewhere => "elsewhere",
            Self::Unseen => "unseen",
            Self::PiledUp => "piled_up",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FoundLabel {
    found: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabel {
    policy: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabel {
    call: &'static str,
}

/// What the plugin counts. Clones count together.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    outcomes: Family<OutcomeLabel, Counter>,
    found: Family<FoundLabel, Counter>,
    policy: Family<PolicyLabel, Gauge>,
    calls: Family<CallLabel, Histogram, fn() -> Histogram>,
    /// Connections to the runtime.
    pub(super) connections: Counter,
    /// The runtime has taken the plugin in.
    pub(super) connected: Gauge,
    /// Containers that have a mask of ours.
    pub(super) placed: Gauge,
    /// Containers whose CPUs were to be their own alone, and are not.
    pub(super) exclusive_refused: Counter,
    /// CPUs that the kubelet has given out, as berthd was told.
    pub(super) foreign_cpus: Gauge,
    /// Containers whose CPUs, given by the kubelet, would be filled badly.
    pub(super) foreign_pile_ups: Gauge,
    /// Times that something was to be done and could not be.
    pub(super) failures: Counter,
}

impl Counts {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("berth_nri");
        let counts = Self {
            outcomes: Family::default(),
            found: Family::default(),
            policy: Family::default(),
            calls: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.000_25, 2.0, 14))),
            connections: Counter::default(),
            connected: Gauge::default(),
            placed: Gauge::default(),
            exclusive_refused: Counter::default(),
            foreign_cpus: Gauge::default(),
            foreign_pile_ups: Gauge::default(),
            failures: Counter::default(),
        };
        registry.register(
            "containers",
            "Containers that asked to be placed, by what became of them",
            counts.outcomes.clone(),
        );
        registry.register(
            "containers_found",
            "Placed containers, by where they were found once they ran",
            counts.found.clone(),
        );
        registry.register(
            "cpu_manager_policy",
            "1 for the policy of the kubelet's CPU manager: only under `none` are cpusets written",
            counts.policy.clone(),
        );
        registry.register(
            "call_seconds",
            "How long calls of the runtime took to be answered",
            counts.calls.clone(),
        );
        registry.register("connections", "Times the runtime took the plugin in", counts.connections.clone());
        registry.register(
            "connected",
            "1 while the runtime has taken the plugin in",
            counts.connected.clone(),
        );
        registry.register(
            "placed_containers",
            "Containers that have a mask of Berth's",
            counts.placed.clone(),
        );
        registry.register(
            "exclusive_refused",
            "Containers whose CPUs were to be their own alone, and are not",
            counts.exclusive_refused.clone(),
        );
        registry.register(
            "foreign_cpus",
            "CPUs that the kubelet has given out, as berthd was told",
            counts.foreign_cpus.clone(),
        );
        registry.register(
            "foreign_pile_ups",
            "Containers whose CPUs, given out by the kubelet, would be filled badly",
            counts.foreign_pile_ups.clone(),
        );
        registry.register(
            "failures",
            "Times something was to be done and could not be",
            counts.failures.clone(),
        );
        counts
    }

    pub(super) fn outcome(&self, outcome: Outcome) {
        self.outcomes.get_or_create(&OutcomeLabel { outcome: outcome.name() }).inc();
    }

    pub(super) fn found(&self, found: Found) {
        self.found.get_or_create(&FoundLabel { found: found.name() }).inc();
    }

    /// Says which policy the CPU manager has.
    pub(super) fn policy(&self, manager: Manager) {
        for policy in Manager::ALL {
            let gauge = self.policy.get_or_create(&PolicyLabel { policy: policy.to_string() });
            gauge.set((policy == manager).into());
        }
    }

    pub(super) fn call(&self, call: &'static str, seconds: f64) {
        self.calls.get_or_create(&CallLabel { call }).observe(seconds);
    }
}
