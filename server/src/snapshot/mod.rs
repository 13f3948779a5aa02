//! The state of knowledge that answers rest on: one immutable value behind one atomic pointer.
//!
//! [`publisher`] is the task that replaces it. Readers take it once per request and keep it for that request, so an
//! answer never mixes two of them.

mod budget;
mod changes;
mod counter;
pub(crate) mod kernel;
mod load;
mod machine;
pub(crate) mod publisher;
pub(crate) mod reports;
pub(crate) mod sampler;

pub(crate) use kernel::Choice;
pub(crate) use load::{Counted, Crowd, Load, MARKS_LAST, Measured, OnCpu, Pinned};
pub(crate) use machine::{Machine, Under};
pub(crate) use sampler::Sampler;

use crate::ingest::{Settings, kernel::Kernel};
use berth_model::hold::Book;
use std::sync::Arc;

/// What is known of one host at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// Its hardware under each kernel that it may run.
    pub(crate) machine: Arc<Machine>,
    /// What runs on it.
    pub(crate) load: Load,
    /// Samples of its load are taken: where none tells what runs, that is not known. A host that is only described is
    /// idle instead.
    pub(crate) sampled: bool,
    /// What is held on it; nothing if it came with the request.
    pub(crate) holds: Arc<Book>,
    /// Generation of the hardware; 0 if it came with the request.
    pub(crate) topology_generation: u64,
    /// What changed from the generation before to this one.
    pub(crate) changes: Arc<[String]>,
    /// The host that the daemon runs on, if this is it.
    pub(crate) here: Option<Arc<Here>>,
}

impl Snapshot {
    /// Whether what was decided on the one can be kept on the other: by then only samples may have come. What takes longer
    /// than a sample to decide would never be kept otherwise.
    pub(crate) fn decides_as(&self, other: &Self) -> bool {
        let is_known = |snapshot: &Self| snapshot.load.measured().map(|measured| measured.stale);
        Arc::ptr_eq(&self.machine, &other.machine)
            && is_known(self) == is_known(other)
            && self.holds.generation() == other.holds.generation()
    }

    /// What runs and what is held, as the model wants it. A load that a request gives stands for all of it.
    pub(crate) fn load_of_model(&self) -> Arc<berth_model::load::Load> {
        let measured = self.load.of_model();
        if self.holds.is_empty() || self.load.is_given() {
            return measured;
        }
        let mut load = (*measured).clone();
        let counted = self.load.measured().and_then(|measured| measured.counted.as_ref());
        let running = counted.map(|counted| Arc::clone(&counted.running)).unwrap_or_default();
        self.holds.count_on(&mut load, &running, self.machine.topology.online());
        Arc::new(load)
    }
}

/// What is told of the host that the daemon runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Here {
    pub(crate) kernel: Kernel,
    pub(crate) settings: Settings,
}
