//! The state of knowledge that answers rest on: one immutable value behind one atomic pointer.
//!
//! [`publisher`] is the task that replaces it. Readers take it once per request and keep it for that request, so an
//! answer never mixes two of them.

mod budget;
mod changes;
pub(crate) mod kernel;
mod load;
mod machine;
pub(crate) mod publisher;
pub(crate) mod reports;
pub(crate) mod sampler;

pub(crate) use kernel::Choice;
pub(crate) use load::{Counted, Load, Measured, OnCpu, Pinned};
pub(crate) use machine::Machine;
pub(crate) use sampler::Sampler;

use crate::ingest::{Settings, kernel::Kernel};
use std::sync::Arc;

/// What is known of one host at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// Its hardware under each kernel that it may run.
    pub(crate) machine: Arc<Machine>,
    /// What runs on it.
    pub(crate) load: Load,
    /// Generation of the hardware; 0 if it came with the request.
    pub(crate) topology_generation: u64,
    /// What changed from the generation before to this one.
    pub(crate) changes: Arc<[String]>,
    /// The host that the daemon runs on, if this is it.
    pub(crate) here: Option<Arc<Here>>,
}

/// What is told of the host that the daemon runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Here {
    pub(crate) kernel: Kernel,
    pub(crate) settings: Settings,
}
