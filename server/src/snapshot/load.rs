//! What runs on a host, and how that is known.

use crate::ingest::load::Busy;
use berth_model::{cpuset::Cpu, load};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// What runs on a host.
#[derive(Debug, Clone)]
pub(crate) enum Load {
    /// Not known: taken as idle, and said so.
    Unknown,
    /// Given in the request, or idle because the request says so.
    Given(Arc<load::Load>),
    /// Measured.
    Measured(Arc<Measured>),
}

impl Load {
    /// The same for the model; idle if nothing is known.
    pub(crate) fn of_model(&self) -> Arc<load::Load> {
        match self {
            Self::Unknown => Arc::default(),
            Self::Given(load) => Arc::clone(load),
            Self::Measured(measured) => Arc::clone(&measured.load),
        }
    }

    /// The sample behind it.
    pub(crate) fn measured(&self) -> Option<&Measured> {
        match self {
            Self::Measured(measured) => Some(measured),
            Self::Unknown | Self::Given(_) => None,
        }
    }
}

/// One sample of the running host.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// The same for the model.
    pub(crate) load: Arc<load::Load>,
    pub(crate) busy: Arc<BTreeMap<Cpu, Busy>>,
    /// Time between its two readings.
    pub(crate) interval: Duration,
    pub(crate) taken_at: SystemTime,
    pub(crate) generation: u64,
    /// How old it was when the snapshot was published.
    pub(crate) age: Duration,
    /// It was too old to rely on then.
    pub(crate) stale: bool,
}
