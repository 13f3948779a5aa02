//! What runs on a host, and how that is known.

use super::publisher::Sample;
use crate::ingest::load::{Source, scan::Scan};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    load::{self, CpuLoad},
};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
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
    /// What runs on each CPU of which something is known.
    pub(crate) cpus: Arc<BTreeMap<Cpu, OnCpu>>,
    /// Time between its two readings.
    pub(crate) interval: Duration,
    pub(crate) taken_at: SystemTime,
    /// The newest counts of runnable tasks; none if all are estimates.
    pub(crate) counted: Option<Counted>,
    /// CPU time that sampling costs, as a share of one CPU.
    pub(crate) cost: Option<f64>,
    pub(crate) generation: u64,
    /// How old it was when the snapshot was published.
    pub(crate) age: Duration,
    /// It was too old to rely on then.
    pub(crate) stale: bool,
}

/// What runs on one CPU. Shares are of the time between the two readings; what is not known is absent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OnCpu {
    pub(crate) runnable: Option<u32>,
    /// Where that number comes from.
    pub(crate) source: Source,
    pub(crate) utilisation: Option<f64>,
    pub(crate) steal: Option<f64>,
    pub(crate) irq: Option<f64>,
    pub(crate) realtime: Option<f64>,
    /// When it was taken, where that is not when the rest was.
    pub(crate) taken_at: Option<SystemTime>,
}

/// Runnable tasks as they were counted at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) source: Source,
    /// CPUs not named have none.
    pub(crate) counts: Arc<BTreeMap<Cpu, u32>>,
    /// Each of the tasks, where they were counted one by one.
    pub(crate) scan: Option<Arc<Scan>>,
    pub(crate) taken_at: SystemTime,
    /// The same moment on a clock that nobody sets.
    pub(crate) at: Instant,
}

impl Measured {
    /// The load in a sample that is published now.
    pub(crate) fn new(sample: &Sample, generation: u64) -> Self {
        let cpus = cpus(sample);
        Self {
            load: Arc::new(of_model(&cpus)),
            cpus: Arc::new(cpus),
            interval: sample.interval,
            taken_at: sample.taken_at,
            counted: sample.counted.clone(),
            cost: sample.cost,
            generation,
            age: sample.at.elapsed(),
            stale: false,
        }
    }

    /// CPUs of which this holds.
    pub(crate) fn which(&self, holds: impl Fn(&OnCpu) -> bool) -> CpuSet {
        self.cpus.iter().filter(|(_, on)| holds(on)).map(|(&cpu, _)| cpu).collect()
    }
}

fn cpus(sample: &Sample) -> BTreeMap<Cpu, OnCpu> {
    let realtime = sample.counted.as_ref().and_then(|counted| counted.scan.as_ref()?.realtime.as_ref());
    let on = |(&cpu, busy): (&Cpu, &crate::ingest::load::Busy)| {
        let (runnable, source) = match &sample.counted {
            Some(counted) => {
                let count = counted.counts.get(&cpu).copied().unwrap_or(0);
                // Counted for this sample, or earlier: then the sample may tell otherwise.
                let now = if counted.at >= sample.at { count } else { busy.allows(count) };
                (now, if now == count { counted.source } else { Source::Estimate })
            }
            None => (busy.estimate(), Source::Estimate),
        };
        let on = OnCpu {
            runnable: Some(runnable),
            source,
            utilisation: Some(busy.utilisation),
            steal: Some(busy.steal),
            irq: Some(busy.irq),
            realtime: realtime.map(|realtime| realtime.get(&cpu).copied().unwrap_or(0.0)),
            taken_at: None,
        };
        (cpu, on)
    };
    sample.busy.iter().map(on).collect()
}

fn of_model(cpus: &BTreeMap<Cpu, OnCpu>) -> load::Load {
    let on = |(&cpu, on): (&Cpu, &OnCpu)| {
        #[allow(clippy::cast_possible_truncation, reason = "a share needs no more digits")]
        let utilisation = on.utilisation.map(|share| share as f32);
        (cpu, CpuLoad { runnable: on.runnable.unwrap_or(0), utilisation })
    };
    cpus.iter().map(on).collect()
}
