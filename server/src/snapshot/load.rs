//! What runs on a host, and how that is known.

use super::{publisher::Sample, reports::Reports};
use crate::ingest::load::{Source, pinned::Group, scan::Scan};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    hold::Running,
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

    /// Whether a request says what runs.
    pub(crate) fn is_given(&self) -> bool {
        matches!(self, Self::Given(_))
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
    /// Time between its two readings. Nothing if it was reported only.
    pub(crate) interval: Option<Duration>,
    pub(crate) taken_at: SystemTime,
    /// The newest counts of runnable tasks; none if all are estimates.
    pub(crate) counted: Option<Counted>,
    /// The newest look at tasks that may not run everywhere.
    pub(crate) pinned: Option<Pinned>,
    /// A crowd of pinned tasks that was seen so lately that marks may be left of it.
    pub(crate) crowd: Option<Crowd>,
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
    /// Each of the tasks, as they were last counted one by one.
    pub(crate) scan: Option<Arc<Scan>>,
    /// Those of owners of holds, where it was looked whose they are.
    pub(crate) running: Arc<Running>,
    pub(crate) taken_at: SystemTime,
    /// The same moment on a clock that nobody sets.
    pub(crate) at: Instant,
}

/// Tasks that may not run everywhere, as they were at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Pinned {
    pub(crate) groups: Arc<[Group]>,
    pub(crate) taken_at: SystemTime,
}

/// After this time without a crowd of pinned tasks, marks that it left are taken as gone: passes of load balancing, which
/// come each second or two even on large hosts, have cleared them.
pub(crate) const MARKS_LAST: Duration = Duration::from_secs(10);

/// Pinned tasks that waited while CPUs were idle.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    /// The CPUs that they waited for.
    pub(crate) cpus: CpuSet,
    /// When that was seen last.
    pub(crate) at: Instant,
}

impl Measured {
    /// The load that is published now. Nothing if there is neither a sample nor a report. A sample older than
    /// `stale_after` is called so.
    pub(super) fn new(
        sample: Option<&Sample>,
        reports: &Reports,
        generation: u64,
        stale_after: Duration,
    ) -> Option<Self> {
        let now = (Instant::now(), SystemTime::now());
        let at = sample.map(|sample| sample.at).or_else(|| reports.youngest())?;
        let age = now.0.saturating_duration_since(at);
        let mut cpus = sample.map(cpus).unwrap_or_default();
        let counted = sample.and_then(|sample| sample.counted.clone());
        reports.merge(&mut cpus, sample.map(|_| at), counted.as_ref().map(|counted| counted.at), now);
        let crowd = sample
            .and_then(|sample| sample.crowd.clone())
            .filter(|crowd| now.0.saturating_duration_since(crowd.at) < MARKS_LAST);
        let mut load = of_model(&cpus);
        load.set_crowded(crowd.iter().flat_map(|crowd| &crowd.cpus).collect());
        Some(Self {
            load: Arc::new(load),
            cpus: Arc::new(cpus),
            interval: sample.map(|sample| sample.interval),
            taken_at: sample.map(|sample| sample.taken_at).or_else(|| now.1.checked_sub(age))?,
            counted,
            pinned: sample.and_then(|sample| sample.pinned.clone()),
            crowd,
            cost: sample.and_then(|sample| sample.cost),
            generation,
            age,
            stale: sample.is_some() && age > stale_after,
        })
    }

    /// Where numbers of runnable tasks come from, as a whole.
    pub(crate) fn source(&self) -> Source {
        match &self.counted {
            Some(counted) => counted.source,
            None if self.interval.is_none() => Source::Reported,
            None => Source::Estimate,
        }
    }

    /// Whether the runnable tasks of any CPU are estimated: what runs elsewhere counts too.
    pub(crate) fn is_estimated(&self) -> bool {
        self.cpus.values().any(|on| on.source == Source::Estimate)
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
        // One that was reported as busy, without a number.
        let runnable =
            on.runnable.unwrap_or_else(|| u32::from(on.utilisation.is_some_and(|share| share > 0.5)));
        (cpu, CpuLoad { runnable, utilisation })
    };
    cpus.iter().map(on).collect()
}
