//! Health: NOT_SERVING until the host has been read, then SERVING, then NOT_SERVING again while it stops.

use crate::support::{PROGRAM, Served, info, placement};
use berth_proto::v1;
use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};
use tonic::{Code, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_types::StatusExt;

const SERVED: [&str; 6] = [
    "",
    "berth.v1.PlacementService",
    "berth.v1.TopologyService",
    "berth.v1.LoadService",
    "berth.v1.InfoService",
    "berth.v1.HoldService",
];

async fn check(channel: &Channel, service: &str) -> ServingStatus {
    let request = HealthCheckRequest { service: service.to_owned() };
    HealthClient::new(channel.clone()).check(request).await.unwrap().into_inner().status()
}

/// Stands in for the program that reads topologies, and waits for a file before it does.
pub(crate) fn slow_reader(folder: &Path) -> std::path::PathBuf {
    let script = folder.join("reader");
    let gate = folder.join("go");
    let text =
        format!("#!/bin/sh\nwhile ! [ -e {} ]; do sleep 0.01; done\nexec {PROGRAM} \"$@\"\n", gate.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

#[tokio::test(flavor = "multi_thread")]
async fn not_serving_until_the_host_is_read() {
    let gate = tempfile::tempdir().unwrap();
    let program = slow_reader(gate.path());
    let file = gate.path().join("ready.json");
    fs::write(&file, "of one that was killed").unwrap();
    let flags = ["--ready-file", file.to_str().unwrap()];
    let mut served = Served::begin(&flags, |config| config.program = program).await;
    assert!(!file.exists(), "it says that it serves");
    for (_, channel) in served.channels().await {
        for service in SERVED {
            assert_eq!(check(&channel, service).await, ServingStatus::NotServing, "{service}");
        }
        let status = placement(&channel)
            .predict(v1::PredictRequest { tasks: 1, ..Default::default() })
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "NO_SNAPSHOT");
        assert!(details.retry_info().is_some());
        let told = info(&channel).get_info(v1::GetInfoRequest {}).await.unwrap().into_inner();
        assert!(told.snapshot.is_none());
        assert_eq!(told.degraded[0].reason, "NO_SNAPSHOT");
    }
    fs::write(gate.path().join("go"), "").unwrap();
    served.daemon.ready().await.unwrap();
    assert!(file.exists());
    for (_, channel) in served.channels().await {
        for service in SERVED {
            assert_eq!(check(&channel, service).await, ServingStatus::Serving, "{service}");
        }
        placement(&channel).predict(v1::PredictRequest { tasks: 1, ..Default::default() }).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_is_told_of_the_stop_before_it_happens() {
    let served = Served::start(&[]).await;
    let [(_, channel), _] = served.channels().await;
    let request = HealthCheckRequest { service: String::new() };
    let mut watch = HealthClient::new(channel).watch(request).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let socket = served.daemon.uds().unwrap().to_owned();
    let stop = tokio::spawn(served.daemon.stop());
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    drop(watch);
    tokio::time::timeout(Duration::from_secs(5), stop).await.unwrap().unwrap();
    assert!(!socket.exists(), "the socket goes with the daemon");
}

/// The budget is 300 ms on a host of 640 CPUs; this one is described, and read anew by a process of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_host_is_served_soon() {
    let file = crate::support::topologies().join("seeds/turin-2s-l3-as-numa.xml");
    let begun = std::time::Instant::now();
    let served = Served::start(&["--topology-xml", file.to_str().unwrap(), "--kernel", "6.12.95"]).await;
    let took = begun.elapsed();
    let [(_, channel), _] = served.channels().await;
    assert_eq!(check(&channel, "").await, ServingStatus::Serving);
    // Four times the budget: tests run beside each other, unoptimised.
    assert!(took < Duration::from_millis(1200), "{took:?}");
}
