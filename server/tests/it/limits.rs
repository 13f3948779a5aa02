//! Too many requests, requests that take too long, and names of requests.

use crate::support::{PROGRAM, Served, info, over_tcp, placement, small_host};
use berth_proto::v1;
use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt, time::Duration};
use tokio::{io::AsyncReadExt, net::TcpSocket, task::JoinSet};
use tonic::{Code, Request, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_types::StatusExt;

/// A daemon whose process that reads descriptions never answers.
async fn stuck(flags: &[&str]) -> (Served, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("reader");
    let text = format!("#!/bin/sh\n[ \"$2\" = live ] && exec {PROGRAM} \"$@\"\nexec sleep 100\n");
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut served = Served::begin(flags, |config| config.program = script).await;
    served.daemon.ready().await.unwrap();
    (served, folder)
}

fn long() -> v1::PredictRequest {
    v1::PredictRequest { tasks: 1, host: small_host(), ..Default::default() }
}

async fn healthy(channel: &Channel) {
    let request = HealthCheckRequest { service: String::new() };
    HealthClient::new(channel.clone()).check(request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_is_given_up() {
    let (served, _folder) = stuck(&["--deadline", "200ms"]).await;
    for (_, channel) in served.channels().await {
        let status = placement(&channel).predict(long()).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        let info = status.get_error_details().error_info().unwrap().clone();
        assert_eq!((info.reason.as_str(), info.metadata["limit_ms"].as_str()), ("DEADLINE_EXCEEDED", "200"));
    }
}

/// The header alone, so that only the server counts the time.
#[tokio::test(flavor = "multi_thread")]
async fn the_callers_own_deadline_counts_if_it_is_shorter() {
    let (served, _folder) = stuck(&[]).await;
    for (_, channel) in served.channels().await {
        let mut request = Request::new(long());
        request.metadata_mut().insert("grpc-timeout", "1000m".parse().unwrap());
        let begun = std::time::Instant::now();
        let status = placement(&channel).predict(request).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}

/// One long request takes the only place; the next is refused at once; health and short ones afterwards are answered.
#[tokio::test(flavor = "multi_thread")]
async fn more_than_are_answered_at_a_time_are_refused_at_once() {
    let (served, _folder) = stuck(&["--max-requests", "1"]).await;
    for (_, channel) in served.channels().await {
        let other = channel.clone();
        // Until it is the one that has the place: it too may be refused.
        let first = tokio::spawn(async move {
            while placement(&other)
                .predict(long())
                .await
                .is_err_and(|status| status.code() == Code::Unavailable)
            {}
        });
        let refused = async {
            loop {
                if let Err(status) = info(&channel).get_info(v1::GetInfoRequest {}).await {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let status = tokio::time::timeout(Duration::from_secs(10), refused).await.unwrap();
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "OVERLOADED");
        assert!(details.retry_info().unwrap().retry_delay.is_some());
        healthy(&channel).await;
        first.abort();
        let _ = first.await;
        // Its place is free once the server has noticed.
        let served = async {
            while info(&channel).get_info(v1::GetInfoRequest {}).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), served).await.unwrap();
    }
}

/// Questions about other hosts wait for each other, and short ones do not wait for them.
#[tokio::test(flavor = "multi_thread")]
async fn other_hosts_do_not_starve_this_one() {
    let (served, _folder) = stuck(&[]).await;
    let channel = over_tcp(&served.daemon).await;
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let channel = channel.clone();
            tokio::spawn(async move { placement(&channel).predict(long()).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let here = v1::PredictRequest { tasks: 1, ..Default::default() };
    let answered = tokio::time::timeout(Duration::from_secs(5), placement(&channel).predict(here)).await;
    answered.unwrap().unwrap();
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Each of them may be long: no more are kept than can be read in time.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_other_hosts_are_refused() {
    let (served, _folder) = stuck(&[]).await;
    let channel = over_tcp(&served.daemon).await;
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let channel = channel.clone();
        waiting.spawn(async move { placement(&channel).predict(long()).await });
    }
    // The readings never end, so the first to be answered are those that are refused.
    let first = tokio::time::timeout(Duration::from_secs(10), waiting.join_next()).await.unwrap();
    let status = first.unwrap().unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().unwrap().metadata["of"], "descriptions of other hosts");
    assert!(details.retry_info().is_some());
}

/// Every user of this host has all of 127.0.0.0/8: it is one peer, whose connections are counted together.
#[tokio::test(flavor = "multi_thread")]
async fn all_of_loopback_is_one_peer() {
    let served = Served::start(&["--max-connections-per-peer", "2"]).await;
    let server = served.daemon.tcp().unwrap();
    let from = async |host: u8| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, host], 0))).unwrap();
        socket.connect(server).await.unwrap()
    };
    let _kept = [from(2).await, from(3).await];
    let mut third = from(4).await;
    let ended = tokio::time::timeout(Duration::from_secs(1), third.read(&mut [0; 1024])).await;
    let ended = ended.expect("it is not closed at once");
    assert!(ended.is_err() || ended.is_ok_and(|read| read == 0), "it was greeted");
}

/// Watches of health take no place of other calls, and not without end; checks are answered all the same.
#[tokio::test(flavor = "multi_thread")]
async fn watches_of_health_are_counted() {
    let served = Served::start(&[]).await;
    let [(_, first), _] = served.channels().await;
    let [(_, second), (_, other)] = served.channels().await;
    let watch = async |channel: &Channel| {
        let request = HealthCheckRequest { service: String::new() };
        HealthClient::new(channel.clone()).watch(request).await
    };
    let mut watches = Vec::new();
    for _ in 0..256 {
        watches.push(watch(&first).await.unwrap());
    }
    let refused = watch(&second).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    assert_eq!(refused.get_error_details().error_info().unwrap().reason, "OVERLOADED");
    healthy(&second).await;
    watch(&other).await.unwrap();
    // Its connection ends, and its places are free.
    drop((watches, first));
    let free = async {
        while watch(&second).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), free).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_a_name() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut request = Request::new(v1::GetInfoRequest {});
        request.metadata_mut().insert("x-request-id", "mine-7".parse().unwrap());
        let answer = info(&channel).get_info(request).await.unwrap();
        assert_eq!(answer.metadata().get("x-request-id").unwrap(), "mine-7");
        let answer = info(&channel).get_info(v1::GetInfoRequest {}).await.unwrap();
        assert!(!answer.metadata().get("x-request-id").unwrap().is_empty());
    }
}
