//! The CPU time that answers about placements cost to compute.

use prometheus_client::{
    metrics::counter::Counter,
    registry::{Registry, Unit},
};
use rustix::time::{ClockId, clock_gettime};
use std::{sync::atomic::AtomicU64, time::Duration};

/// CPU time of the model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Computing(Counter<f64, AtomicU64>);

impl Computing {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let computing = Self::default();
        registry.register_with_unit(
            "computing_cpu",
            "CPU time that went into computing predictions and advice, without what carries them",
            Unit::Seconds,
            computing.0.clone(),
        );
        computing
    }

    /// Computes, on this thread.
    pub(crate) fn timed<T>(&self, compute: impl FnOnce() -> T) -> T {
        let begun = thread_time();
        let computed = compute();
        self.0.inc_by(thread_time().saturating_sub(begun).as_secs_f64());
        computed
    }
}

fn thread_time() -> Duration {
    // The kernel's times are positive.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
