//! The stop: what is being answered is finished, and nobody else holds it up.

use crate::{
    health::slow_reader,
    support::{Served, placement, small_host},
};
use berth_proto::v1;
use std::{fs, time::Duration};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

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
        assert_eq!(watch.message().await.unwrap_err().code(), Code::Unavailable);
    }
    tokio::time::timeout(Duration::from_secs(30), stopping).await.expect("held up").unwrap();
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
