//! What is looked up whenever metrics are asked for.

use super::state;
use crate::service::Context;
use berth_model::cpuset::CpuSet;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge, info::Info},
    registry::Unit,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Error,
    sync::Arc,
    time::SystemTime,
};

/// One that lacks some of its CPUs, whatever it is else.
const VIOLATED: &str = "violated";
const STATES: [&str; 4] = ["shared", "exclusive", "claim", VIOLATED];

/// Tells of the daemon and of the newest snapshot.
#[derive(Debug)]
pub(crate) struct Facts(pub(crate) Arc<Context>);

impl Collector for Facts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let build = Info::new([
            ("version", env!("CARGO_PKG_VERSION")),
            ("commit", option_env!("BERTH_COMMIT").unwrap_or_default()),
            ("hwloc", self.0.reader.hwloc_version()),
        ]);
        build.encode(encoder.encode_descriptor("build", "What runs", None, build.metric_type())?)?;

        let snapshot = self.0.current.snapshot();
        let measured = snapshot.as_ref().and_then(|snapshot| snapshot.load.measured());
        if let Some(measured) = measured {
            let age = SystemTime::now().duration_since(measured.taken_at).unwrap_or_default();
            let age = ConstGauge::new(age.as_secs_f64());
            let help = "Time since the load in use was measured";
            age.encode(encoder.encode_descriptor(
                "load_age",
                help,
                Some(&Unit::Seconds),
                age.metric_type(),
            )?)?;
        }
        let generations = [
            ("topology", snapshot.as_ref().map_or(0, |snapshot| snapshot.topology_generation)),
            ("load", measured.map_or(0, |measured| measured.generation)),
        ];
        let help = "Generation of what answers rest on; 0 before the first";
        labelled(&mut encoder, "generation", help, "of", generations)?;
        let book = snapshot.as_ref().map(|snapshot| Arc::clone(&snapshot.holds)).unwrap_or_default();
        let (mut count, mut held) = (BTreeMap::from(STATES.map(|state| (state, 0))), BTreeMap::new());
        for hold in book.living() {
            let state = if hold.missing.is_empty() { state(hold) } else { VIOLATED };
            *count.entry(state).or_default() += 1;
            let cpus: &mut CpuSet = held.entry(state).or_default();
            *cpus = cpus.union(&hold.cpus());
        }
        labelled(&mut encoder, "holds", "Holds in force, by what they are", "state", count)?;
        let held = STATES.map(|state| (state, held.get(state).map_or(0, |cpus| cpus.len() as u64)));
        let help = "CPUs of the holds in force; one with several holds counts once for each word";
        labelled(&mut encoder, "held_cpus", help, "state", held)?;
        let degraded = self.0.degraded(snapshot.as_deref());
        let reasons: BTreeSet<&str> = degraded.iter().map(|warning| warning.reason.as_str()).collect();
        let help = "What answers do without; none is told if nothing is missing";
        labelled(&mut encoder, "degraded", help, "reason", reasons.into_iter().map(|reason| (reason, 1)))
    }
}

/// A gauge with a value for each word of a label.
fn labelled<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: impl IntoIterator<Item = (&'a str, u64)>,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    values
        .into_iter()
        .try_for_each(|(word, value)| ConstGauge::new(value).encode(family.encode_family(&[(label, word)])?))
}
