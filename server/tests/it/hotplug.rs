//! The host changes while the daemon runs: what the kernel tells of it comes from a tree that the test writes, the
//! rest from this machine.

use crate::{
    holds::{create, get, lease},
    support::{Served, over_unix, placement, topology},
};
use berth_model::cpuset::CpuSet;
use berth_proto::v1::{self, hold::State};
use std::{collections::BTreeSet, fs, path::Path, time::Duration};
use tonic::{Code, Streaming};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // In one step, as the kernel's files change.
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

async fn next(stream: &mut Streaming<v1::WatchTopologyResponse>) -> v1::WatchTopologyResponse {
    let next = tokio::time::timeout(Duration::from_secs(20), stream.message()).await;
    next.expect("the change is noticed").unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_a_generation_that_watchers_are_told_of() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().to_owned();
    let online = CpuSet::parse(fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim()).unwrap();
    let last = online.iter().last().unwrap();
    write(&path, "sys/devices/system/cpu/online", &online.to_string());
    write(&path, "sys/devices/system/cpu/present", &online.to_string());
    write(&path, "sys/kernel/sched_ext/state", "disabled");
    let change = path.clone();
    let mut served = Served::begin(&["--sample-interval", "100ms"], |config| config.root = change).await;
    served.daemon.ready().await.unwrap();
    let [(_, channel), (_, other)] = served.channels().await;
    let watch = v1::WatchTopologyRequest::default();
    let mut stream = topology(&other).watch_topology(watch).await.unwrap().into_inner();
    let first = next(&mut stream).await;
    assert_eq!((first.generation, first.changes.len()), (1, 0));
    assert_eq!(first.topology.unwrap().online, online.to_string());

    write(&path, "sys/devices/system/cpu/isolated", &last.to_string());
    let told = next(&mut stream).await;
    assert_eq!((told.generation, told.dropped), (2, 0));
    assert_eq!(told.changes, [format!("CPUs {last} are cut off from load balancing.")]);
    assert_eq!(told.topology.unwrap().isolated, last.to_string());
    // Whoever has seen the former generation is told that it has moved.
    let expect = Some(v1::Expect { topology_generation: 1, ..Default::default() });
    let request = v1::PredictRequest { tasks: 1, allowed: online.to_string(), expect, ..Default::default() };
    assert_eq!(placement(&channel).predict(request).await.unwrap_err().code(), Code::Aborted);

    write(&path, "sys/devices/system/cpu/isolated", "");
    assert_eq!(next(&mut stream).await.changes, [format!("CPUs {last} are balanced again.")]);

    write(&path, "sys/devices/system/cpu/smt/control", "off");
    assert_eq!(next(&mut stream).await.changes, ["SMT is off and was not told."]);

    write(&path, "sys/kernel/sched_ext/root/ops", "lavd");
    write(&path, "sys/kernel/sched_ext/state", "enabled");
    let mut told = next(&mut stream).await;
    while told.changes != ["The sched_ext scheduler lavd took charge."] {
        // The name was there before the state.
        told = next(&mut stream).await;
    }
    let request = v1::PredictRequest { tasks: 1, allowed: online.to_string(), ..Default::default() };
    let answer = placement(&channel).predict(request).await.unwrap().into_inner();
    assert!(answer.warnings.iter().any(|warning| warning.reason == "SCHED_EXT"), "{:?}", answer.warnings);
    write(&path, "sys/kernel/sched_ext/state", "disabled");
    let told = next(&mut stream).await;
    assert_eq!(told.changes, ["The kernel's own scheduler is in charge again."]);

    if online.len() < 2 {
        println!("skipped: this machine has one CPU, which cannot go");
        return;
    }
    let mut left = online.clone();
    left.remove(last);
    // A cpuset that takes a CPU for itself divides the host.
    write(&path, "sys/fs/cgroup/cgroup.controllers", "cpuset");
    write(&path, "sys/fs/cgroup/part/cpuset.cpus.partition", "root");
    write(&path, "sys/fs/cgroup/part/cpuset.cpus.effective", &last.to_string());
    write(&path, "sys/fs/cgroup/cpuset.cpus.effective", &left.to_string());
    let mut told = next(&mut stream).await;
    while told.topology.as_ref().unwrap().partitions.is_empty() {
        told = next(&mut stream).await;
    }
    assert!(told.changes.contains(&"Cpusets divide the host into other parts than before.".to_owned()));
    let part = &told.topology.as_ref().unwrap().partitions[0];
    assert_eq!((part.cgroup.as_str(), part.cpus.clone(), part.isolated), ("/part", last.to_string(), false));
    // The model knows of the parts: each has domains of its own.
    let request = || v1::PredictRequest { tasks: 1, allowed: left.to_string(), ..Default::default() };
    let warns =
        |answer: &v1::PredictResponse| answer.warnings.iter().any(|warning| warning.reason == "PARTITIONED");
    let answer = placement(&channel).predict(request()).await.unwrap().into_inner();
    assert!(!warns(&answer), "{:?}", answer.warnings);
    let explain = v1::ExplainRequest { cpus: online.to_string(), ..Default::default() };
    let explained = placement(&channel).explain(explain).await.unwrap().into_inner();
    let partitions: BTreeSet<String> = explained.cpus.iter().map(|chain| chain.partition.clone()).collect();
    assert_eq!(partitions, [left.to_string(), last.to_string()].into());

    // Another one that has the same CPU cannot be.
    write(&path, "sys/fs/cgroup/other/cpuset.cpus.partition", "root");
    write(&path, "sys/fs/cgroup/other/cpuset.cpus.effective", &last.to_string());
    while told.topology.as_ref().unwrap().partitions.len() < 2 {
        told = next(&mut stream).await;
    }
    let answer = placement(&channel).predict(request()).await.unwrap().into_inner();
    assert!(warns(&answer), "{:?}", answer.warnings);
    assert_eq!(answer.verdict(), v1::verdict::Value::Unknown);
    write(&path, "sys/fs/cgroup/other/cpuset.cpus.partition", "member");
    while told.topology.as_ref().unwrap().partitions.len() > 1 {
        told = next(&mut stream).await;
    }

    write(&path, "sys/devices/system/cpu/online", &left.to_string());
    let mut told = next(&mut stream).await;
    while told.topology.as_ref().unwrap().online != left.to_string() {
        told = next(&mut stream).await;
    }
    assert!(told.changes.contains(&format!("CPUs {last} went offline.")), "{:?}", told.changes);
    assert_eq!(told.topology.unwrap().offline, last.to_string());
    write(&path, "sys/devices/system/cpu/online", &online.to_string());
    let told = next(&mut stream).await;
    assert!(told.changes.contains(&format!("CPUs {last} came online.")), "{:?}", told.changes);
}

/// Of a hold whose CPU goes it is said that it does not fit, and that it does once the CPU is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_whose_cpu_goes_is_violated_until_it_is_back() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().to_owned();
    let online = CpuSet::parse(fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim()).unwrap();
    let last = online.iter().last().unwrap();
    if online.len() < 2 {
        println!("skipped: this machine has one CPU, which cannot go");
        return;
    }
    write(&path, "sys/devices/system/cpu/online", &online.to_string());
    write(&path, "sys/devices/system/cpu/present", &online.to_string());
    write(&path, "proc/sys/kernel/random/boot_id", "boot-1");
    let change = path.clone();
    let mut served = Served::begin(&["--sample-interval", "100ms"], |config| config.root = change).await;
    served.daemon.ready().await.unwrap();
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    let hold = create(&channel, lease(600), &last.to_string()).await.unwrap();
    assert_eq!((hold.state(), hold.violations.len()), (State::Active, 0));
    let mut left = online.clone();
    left.remove(last);
    for (now, state, violations) in [(&left, State::Violated, 1), (&online, State::Active, 0)] {
        write(&path, "sys/devices/system/cpu/online", &now.to_string());
        let wait = async {
            loop {
                let hold = get(&channel, &hold.id).await.unwrap();
                if hold.state() == state {
                    return assert_eq!(hold.violations.len(), violations, "{:?}", hold.violations);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it is noticed");
    }
}
