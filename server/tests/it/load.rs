//! The load, from a `/proc/stat` that the test writes.

use crate::support::{Served, load, placement};
use berth_proto::v1::{self, cpu_load::Source};
use std::{fs, path::Path, time::Duration};
use tempfile::TempDir;
use tonic::transport::Channel;

/// The daemon's load comes from this folder.
async fn served(root: &Path) -> Served {
    let flags = [
        "--topology-synthetic",
        "pack:1 [numa] l3:1 core:4 pu:1",
        "--kernel",
        "6.12.95",
        "--sample-interval",
        "100ms",
    ];
    let mut served = Served::begin(&flags, |config| {
        config.root = root.to_owned();
        config.measure_load = true;
    })
    .await;
    served.daemon.ready().await.unwrap();
    served
}

/// A reading: CPU 0 is busy all the time, CPU 1 a quarter of it, CPU 3 has no line.
fn write(root: &TempDir, step: u64) {
    let (busy, idle) = (step * 40, step * 40);
    let text = format!(
        "cpu 0 0 0 0\ncpu0 {busy} 0 0 7 0 0 0 0\ncpu1 {} 0 0 {} 0 0 0 0\ncpu2 0 0 0 {idle}\n",
        busy / 4,
        idle * 3 / 4
    );
    // In one step, as the kernel's file changes.
    fs::write(root.path().join("proc/new"), text).unwrap();
    fs::rename(root.path().join("proc/new"), root.path().join("proc/stat")).unwrap();
}

async fn get(channel: &Channel) -> v1::GetLoadResponse {
    load(channel).get_load(v1::GetLoadRequest::default()).await.unwrap().into_inner()
}

async fn until(channel: &Channel, what: impl Fn(&v1::GetLoadResponse) -> bool) -> v1::GetLoadResponse {
    let wait = async {
        loop {
            let answer = get(channel).await;
            if what(&answer) {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("the load changes")
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_then_measured_then_stale() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("proc")).unwrap();
    let served = served(root.path()).await;
    let [(_, channel), (_, other)] = served.channels().await;

    let answer = get(&other).await;
    assert!(!answer.load.unwrap().known && answer.snapshot.unwrap().load_generation == 0);
    assert_eq!(answer.warnings[0].reason, "LOAD_UNKNOWN");

    let writing = async {
        for step in 1.. {
            write(&root, step);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let busy = |answer: &v1::GetLoadResponse| {
        let load = answer.load.as_ref().unwrap();
        load.known && load.cpus.iter().any(|cpu| cpu.cpus == "0" && cpu.utilisation == Some(1.0))
    };
    let answer = tokio::select! {
        () = writing => unreachable!(),
        answer = until(&channel, busy) => answer,
    };
    let measured = answer.load.unwrap();
    assert_eq!(measured.runnable_source(), Source::Estimated);
    let of = |cpus: &str| {
        measured.cpus.iter().find(|cpu| cpu.cpus == cpus).cloned().unwrap_or_else(|| panic!("{measured:?}"))
    };
    assert_eq!((of("0").runnable, of("0").source()), (Some(1), Source::Estimated));
    assert_eq!((of("1").runnable, of("1").utilisation), (Some(0), Some(0.25)));
    assert_eq!((of("2").runnable, of("2").utilisation), (Some(0), Some(0.0)));

    // The task that was seen keeps its CPU: four more on four CPUs put two on one of them.
    let request = v1::PredictRequest { tasks: 1, allowed: "0".to_owned(), ..Default::default() };
    let prediction = placement(&channel).predict(request).await.unwrap().into_inner().prediction.unwrap();
    assert_eq!((prediction.most_on_one_cpu, prediction.cpus[0].before), (2, 1));

    fs::remove_file(root.path().join("proc/stat")).unwrap();
    let answer = until(&channel, |answer| answer.snapshot.as_ref().unwrap().load_stale).await;
    assert!(answer.load.unwrap().known, "the last one is still told");
    assert!(answer.warnings.iter().any(|warning| warning.reason == "LOAD_STALE"));
}
