//! The stop: what is being answered is finished, and nobody else holds it up.

use crate::{
    admin::{ADMIN, http, value},
    health::slow_reader,
    support::{Served, holds, load, placement, process::Running, small_host, topology},
};
use berth_proto::v1;
use rustix::process::Signal;
use std::{fs, time::Duration};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};
use tokio_stream::StreamExt;
use tonic::{Code, Status, Streaming};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_types::StatusExt;

/// Longer than any test waits: a drain that comes to its limit fails.
const LIMIT: [&str; 2] = ["--shutdown-timeout", "1h"];

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_do_not_hold_it_up() {
    let served = Served::start(&LIMIT).await;
    let address = served.daemon.tcp().unwrap();
    let silent = TcpStream::connect(address).await.unwrap();
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"PRI * HTTP/2.0\r\n\r\n").await.unwrap();
    let [idle, _] = served.channels().await;
    tokio::time::timeout(Duration::from_secs(30), served.daemon.stop()).await.expect("held up");
    drop((silent, half, idle));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_told_and_ended() {
    let served = Served::start(&LIMIT).await;
    let mut watches = Vec::new();
    for (_, channel) in served.channels().await {
        let request = HealthCheckRequest { service: String::new() };
        let mut watch = HealthClient::new(channel).watch(request).await.unwrap().into_inner();
        assert_eq!(watch.message().await.unwrap().unwrap().status, 1);
        watches.push(watch);
    }
    let stopping = tokio::spawn(served.daemon.stop());
    for mut watch in watches {
        assert_eq!(watch.message().await.unwrap().unwrap().status, 2, "NOT_SERVING comes first");
        is_told(&watch.message().await.unwrap_err());
    }
    tokio::time::timeout(Duration::from_secs(30), stopping).await.expect("held up").unwrap();
}

fn is_told(status: &Status) {
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().map(|info| info.reason.as_str()), Some("STOPPING"), "{status:?}");
    assert!(details.retry_info().is_some(), "{status:?}");
}

/// Until it ends.
async fn last_word<T>(mut stream: Streaming<T>) -> Status {
    loop {
        match stream.message().await {
            Ok(message) => assert!(message.is_some(), "it ends with a status"),
            Err(status) => return status,
        }
    }
}

/// A process of its own, whose end takes its connections with it: whatever is not sent before then is lost.
#[tokio::test(flavor = "multi_thread")]
async fn every_stream_hears_the_last_word() {
    let mut berthd = Running::start(&[&LIMIT[..], &ADMIN].concat());
    let mut streams = JoinSet::new();
    for _ in 0..8 {
        let channel = berthd.channel().await;
        let watch = load(&channel).watch_load(v1::WatchLoadRequest::default()).await.unwrap().into_inner();
        streams.spawn(last_word(watch));
        let watch = topology(&channel).watch_topology(v1::WatchTopologyRequest::default()).await;
        streams.spawn(last_word(watch.unwrap().into_inner()));
        let watch = holds(&channel).watch_holds(v1::WatchHoldsRequest::default()).await;
        streams.spawn(last_word(watch.unwrap().into_inner()));
        // One that streams itself is answered when it ends.
        let report = v1::ReportLoadRequest { agent: "a".to_owned(), ..Default::default() };
        let reports = tokio_stream::once(report).chain(tokio_stream::pending());
        streams.spawn(async move { load(&channel).report_load(reports).await.unwrap_err() });
    }
    let metrics = || http(berthd.admin.unwrap(), "GET", "/metrics", "");
    while value(&metrics().await.1, "berth_requests_in_flight") != Some(32.0) {}
    berthd.signal(Signal::TERM);
    while let Some(status) = streams.join_next().await {
        is_told(&status.unwrap());
    }
    while berthd.is_alive() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_answered_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let program = slow_reader(folder.path());
    let served = Served::begin(&LIMIT, |config| config.program = program).await;
    let mut asked = Vec::new();
    for (_, channel) in served.channels().await {
        asked.push(tokio::spawn(async move {
            let request = v1::PredictRequest { tasks: 1, host: small_host(), ..Default::default() };
            placement(&channel).predict(request).await
        }));
    }
    while served.daemon.in_flight() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let stopping = tokio::spawn(served.daemon.stop());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!stopping.is_finished(), "it waits for the answers");
    fs::write(folder.path().join("go"), "").unwrap();
    for asked in asked {
        asked.await.unwrap().unwrap();
    }
    tokio::time::timeout(Duration::from_secs(30), stopping).await.expect("held up").unwrap();
}
