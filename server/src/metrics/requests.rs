//! Requests: how long they took, by method and status; refused ones too.

use berth_proto::FILE_DESCRIPTOR_SETS;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use prost::Message;
use prost_types::FileDescriptorSet;
use std::{collections::BTreeSet, sync::LazyLock, time::Instant};
use tonic::Code;

/// Requests of every service.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    durations: Family<Labels, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    code: &'static str,
}

impl Requests {
    pub(super) fn new(registry: &mut Registry) -> Self {
        // From 0.1 ms, each twice the one before, to 13 s.
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(1e-4, 2.0, 18));
        let requests =
            Self { durations: Family::new_with_constructor(histogram), in_flight: Gauge::default() };
        registry.register_with_unit(
            "request_duration",
            "How long requests took until their answer was handed over, by method and gRPC status",
            Unit::Seconds,
            requests.durations.clone(),
        );
        registry.register(
            "requests_in_flight",
            "Requests that are being answered",
            requests.in_flight.clone(),
        );
        requests
    }

    /// A request for this path begins.
    pub(crate) fn begin(&self, path: &str) -> Ticket {
        self.in_flight.inc();
        Ticket { requests: self.clone(), method: method(path), begun: Instant::now(), code: None }
    }

    /// Requests that are being answered.
    pub(crate) fn in_flight(&self) -> i64 {
        self.in_flight.get()
    }
}

/// A request that is being answered. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    requests: Requests,
    method: &'static str,
    begun: Instant,
    /// Its status, once that is known.
    code: Option<Code>,
}

impl Ticket {
    /// The request was answered with this status.
    pub(crate) fn answered(&mut self, code: Code) {
        self.code = Some(code);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Without an answer: whoever asked went away.
        let code = name(self.code.unwrap_or(Code::Cancelled));
        let labels = Labels { method: self.method, code };
        self.requests.durations.get_or_create(&labels).observe(self.begun.elapsed().as_secs_f64());
        self.requests.in_flight.dec();
    }
}

/// Every path that is served. Others are told by one name: anybody may invent them.
static PATHS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let others = [tonic_health::pb::FILE_DESCRIPTOR_SET, tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET];
    let sets = FILE_DESCRIPTOR_SETS.into_iter().chain(others);
    let files = sets.filter_map(|set| FileDescriptorSet::decode(set).ok()).flat_map(|set| set.file);
    files
        .flat_map(|file| {
            let package = file.package().to_owned();
            file.service.into_iter().flat_map(move |service| {
                let service_name = format!("/{package}.{}/", service.name());
                service.method.into_iter().map(move |method| format!("{service_name}{}", method.name()))
            })
        })
        .collect()
});

/// The path without its first slash.
fn method(path: &str) -> &'static str {
    PATHS.get(path).map_or("other", |path| path.trim_start_matches('/'))
}

/// As gRPC writes it.
fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_are_served_have_names() {
        assert_eq!(method("/berth.v1.PlacementService/Advise"), "berth.v1.PlacementService/Advise");
        assert_eq!(method("/grpc.health.v1.Health/Check"), "grpc.health.v1.Health/Check");
        assert_eq!(method("/berth.v1.PlacementService/Invented"), "other");
        assert_eq!(method(""), "other");
    }
}
