//! What is looked up whenever metrics are asked for.

use crate::service::Context;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge, info::Info},
    registry::Unit,
};
use std::{collections::BTreeSet, fmt::Error, sync::Arc, time::SystemTime};

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
