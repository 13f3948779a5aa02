//! How the load is measured.

use super::prelude::*;
use crate::ingest::load::Method;

section! {
    /// How the load of this host is measured.
    Load "load";

    /// Time between two readings of the load, from 100ms to 1m.
    sample_interval: Duration = Setting::new("sample-interval", "TIME", parse::time(ms(100)..=s(60))).or("1s").live();

    /// How runnable tasks are counted: auto, debug, threads or estimate.
    ///
    /// debug reads the scheduler's debug file, threads the state of every thread, each as often as --load-cost-limit
    /// lets it; estimate takes a CPU that was busy half of the time or more as running one task; auto is the cheapest way
    /// that is exact.
    source: Method = Setting::new("load-source", "SOURCE", parse::choice(&METHODS)).or("auto").live();

    /// CPU time that measuring the load may cost, in percent of one CPU, the kernel's part included.
    cost_limit: f64 = Setting::new("load-cost-limit", "PERCENT", percent()).or("0.5").live();
}

const METHODS: [(&str, Method); 4] = [
    ("auto", Method::Auto),
    ("debug", Method::Debug),
    ("threads", Method::Threads),
    ("estimate", Method::Estimate),
];

/// A share, typed in percent.
fn percent() -> Parser<f64> {
    parse::number(0.01..=100.0).map(|percent| percent / 100.0)
}
