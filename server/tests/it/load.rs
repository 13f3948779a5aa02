//! The load, from a `/proc/stat` that the test writes.

use crate::support::{Served, load, placement, process::Running, spin};
use berth_model::CpuSet;
use berth_proto::v1::{self, cpu_load::Source, proof, verdict};
use std::{fs, path::Path, time::Duration};
use tempfile::TempDir;
use tonic::{Code, transport::Channel};
use tonic_types::StatusExt;

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
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("the load changes")
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

    assert_eq!(
        called(&channel).await,
        (verdict::Value::Unknown, proof::Result::NotProven, "LOAD_UNKNOWN".to_owned())
    );

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

    let estimated = "LOAD_ESTIMATED".to_owned();
    assert_eq!(called(&channel).await, (verdict::Value::NoPileUp, proof::Result::Safe, estimated));

    fs::remove_file(root.path().join("proc/stat")).unwrap();
    let answer = until(&channel, |answer| answer.snapshot.as_ref().unwrap().load_stale).await;
    assert!(answer.load.unwrap().known, "the last one is still told");
    assert!(answer.warnings.iter().any(|warning| warning.reason == "LOAD_STALE"));
    assert_eq!(
        called(&channel).await,
        (verdict::Value::Unknown, proof::Result::NotProven, "LOAD_STALE".to_owned())
    );
}

/// What is called safe of a task on two CPUs, of which one at least is idle: the verdict, the proof of the mask, and what
/// that assumes or why it is none.
async fn called(channel: &Channel) -> (verdict::Value, proof::Result, String) {
    let (tasks, allowed) = (1, "0-2".to_owned());
    let request = v1::PredictRequest { tasks, allowed: allowed.clone(), ..Default::default() };
    let verdict = placement(channel).predict(request).await.unwrap().into_inner().verdict();
    let request = v1::AdviseRequest { tasks, allowed, ..Default::default() };
    let answer = placement(channel).advise(request).await.unwrap().into_inner();
    let asked = answer.asked.unwrap();
    let reason = asked.assumes.first().or_else(|| answer.reasons.first()).unwrap().reason.clone();
    (verdict, asked.result(), reason)
}

/// The kernel's own count of this very host, by a daemon that reads it: tasks that wait are in it too.
#[tokio::test(flavor = "multi_thread")]
async fn run_queues_as_the_scheduler_counts_them() {
    let flags = ["--sample-interval", "100ms", "--load-source", "debug", "--load-cost-limit", "100"];
    let Some(served) = Running::start_with_debug_file(&flags) else {
        println!("skipped: the scheduler's debug file is not to be had");
        return;
    };
    let channel = served.channel().await;
    let cpu = spin::allowed().iter().last().unwrap();
    let spinning = spin::Spinning::start(3, cpu);
    let on = |answer: &v1::GetLoadResponse| {
        let cpus = answer.load.as_ref().unwrap().cpus.iter();
        cpus.filter(|entry| CpuSet::parse(&entry.cpus).unwrap().contains(cpu))
            .map(|entry| (entry.runnable(), entry.source()))
            .next()
    };
    // A CPU that was idle of late makes an older count an estimate, for a moment.
    let answer = until(&channel, |answer| {
        on(answer).is_some_and(|(runnable, source)| runnable >= 3 && source == Source::SchedDebug)
    })
    .await;
    assert_eq!(answer.load.unwrap().runnable_source(), Source::SchedDebug);
    drop(spinning);
    until(&channel, |answer| on(answer).is_some_and(|(runnable, _)| runnable < 3)).await;
}

/// Threads of a process that is not this one, each with its state and CPU.
fn write_tasks(root: &TempDir, tasks: &[(char, u32)]) {
    for (i, (state, cpu)) in tasks.iter().enumerate() {
        let pid = 5_000_000 + i;
        let folder = root.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        let line = format!(
            "{pid} (task) {state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 50 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0 0"
        );
        fs::write(folder.join("stat"), line).unwrap();
    }
}

fn has(answer: &v1::GetLoadResponse, reason: &str) -> bool {
    answer.warnings.iter().any(|warning| warning.reason == reason)
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_counted() {
    let root = tempfile::tempdir().unwrap();
    write_tasks(&root, &[('R', 2), ('R', 2), ('S', 1), ('D', 0), ('R', 0)]);
    write(&root, 1);
    let served = served(root.path()).await;
    let [(_, channel), _] = served.channels().await;
    // On a busy machine a look costs so much that the next sample goes without.
    let is_counted = |load: &v1::Load| load.known && load.runnable_source() == Source::TaskStates;
    let answer = until(&channel, |answer| is_counted(answer.load.as_ref().unwrap())).await;
    let load = answer.load.as_ref().unwrap();
    assert!(load.runnable_taken_at.is_some() && load.cost.is_some_and(|cost| cost > 0.0), "{load:?}");
    let counted: Vec<_> = load.cpus.iter().map(|cpu| (cpu.cpus.as_str(), cpu.runnable)).collect();
    assert_eq!(counted, [("0", Some(1)), ("1", Some(0)), ("2", Some(2))], "CPU 3 has no line");
    assert!(!has(&answer, "LOAD_ESTIMATED"));
    // Of a CPU without a sample nothing is known, which is said where it is asked about.
    let unknown = answer.warnings.iter().find(|warning| warning.reason == "LOAD_INCOMPLETE").unwrap();
    assert_eq!(unknown.cpus, "3");
    let ask =
        |allowed: &str| v1::PredictRequest { tasks: 1, allowed: allowed.to_owned(), ..Default::default() };
    for (allowed, expected) in [("2-3", true), ("0-2", false)] {
        let answer = placement(&channel).predict(ask(allowed)).await.unwrap().into_inner();
        let said = answer.warnings.iter().any(|warning| warning.reason == "LOAD_INCOMPLETE");
        assert_eq!(said, expected, "{allowed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tasks_cannot_see_is_flagged() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("proc")).unwrap();
    let stat = |step: u64| {
        // Stolen half of the time; interrupts a quarter of it.
        format!(
            "cpu0 {0} 0 0 {0} 0 0 0 {1}\ncpu1 {0} 0 0 {1} 0 {0} 0 0\ncpu2 0 0 0 {0}\ncpu3 0 0 0 {0}\n",
            step * 10,
            step * 20
        )
    };
    let served = served(root.path()).await;
    let [(_, channel), _] = served.channels().await;
    let writing = async {
        for step in 1.. {
            fs::write(root.path().join("proc/new"), stat(step)).unwrap();
            fs::rename(root.path().join("proc/new"), root.path().join("proc/stat")).unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let answer = tokio::select! {
        () = writing => unreachable!(),
        answer = until(&channel, |answer| has(answer, "CPUS_STOLEN")) => answer,
    };
    let cpus = |reason: &str| {
        answer.warnings.iter().find(|warning| warning.reason == reason).map(|warning| warning.cpus.as_str())
    };
    assert_eq!((cpus("CPUS_STOLEN"), cpus("CPUS_INTERRUPTED")), (Some("0"), Some("1")));
    assert_eq!(cpus("CPUS_REALTIME"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_is_told_of_each_sample_and_of_the_end() {
    let root = tempfile::tempdir().unwrap();
    write_tasks(&root, &[('R', 2)]);
    write(&root, 1);
    let served = served(root.path()).await;
    let [(_, channel), (_, other)] = served.channels().await;
    let watch = v1::WatchLoadRequest { cpus: "1-2".to_owned(), ..Default::default() };
    let mut stream = load(&channel).watch_load(watch).await.unwrap().into_inner();
    let every = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    let rarely = v1::WatchLoadRequest { every, ..Default::default() };
    let mut rare = load(&other).watch_load(rarely).await.unwrap().into_inner();
    rare.message().await.unwrap().unwrap();
    let mut before = None;
    for _ in 0..4 {
        let told = stream.message().await.unwrap().unwrap();
        let generation = told.snapshot.unwrap().load_generation;
        // Whoever reads at once may still miss some on a busy machine; it is told how many.
        assert!(
            before.is_none_or(|before| generation == before + 1 + told.dropped),
            "{before:?} {generation}"
        );
        let cpus = told.load.unwrap().cpus;
        assert!(cpus.is_empty() || cpus.iter().all(|cpu| ["1", "2", "1-2"].contains(&cpu.cpus.as_str())));
        before = Some(generation);
    }
    let bad = v1::WatchLoadRequest { cpus: "9".to_owned(), ..Default::default() };
    assert_eq!(load(&channel).watch_load(bad).await.unwrap_err().code(), Code::InvalidArgument);
    let every = Some(prost_types::Duration { seconds: -1, nanos: 0 });
    let bad = v1::WatchLoadRequest { every, ..Default::default() };
    assert!(load(&channel).watch_load(bad).await.unwrap_err().message().contains("every"));

    served.daemon.stop().await;
    let ended = rare.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable);
    assert_eq!(ended.get_error_details().error_info().unwrap().reason, "STOPPING");
}

/// An agent that tells of a host that is described: nothing else tells what runs there.
#[tokio::test(flavor = "multi_thread")]
async fn another_agent_reports() {
    let served =
        Served::start(&["--topology-synthetic", "pack:1 [numa] l3:1 core:4 pu:1", "--kernel", "6.12.95"])
            .await;
    let [(_, tcp), (_, channel)] = served.channels().await;
    let report = |agent: &str, cpus: &str, runnable: u32, seconds: i64| v1::ReportLoadRequest {
        agent: agent.to_owned(),
        age: Some(prost_types::Duration { seconds, nanos: 0 }),
        cpus: vec![v1::CpuLoad { cpus: cpus.to_owned(), runnable: Some(runnable), ..Default::default() }],
    };
    let told = [report("a", "0-2", 1, 0), report("", "1", 3, 1), report("", "2", 5, 3600)];
    let answer = load(&channel).report_load(tokio_stream::iter(told)).await.unwrap().into_inner();
    assert_eq!((answer.accepted, answer.too_old), (2, 1));
    let answer = until(&channel, |answer| answer.load.as_ref().unwrap().known).await;
    let numbers = answer.load.unwrap();
    assert_eq!(numbers.runnable_source(), Source::Reported);
    let entries: Vec<_> =
        numbers.cpus.iter().map(|cpu| (cpu.cpus.as_str(), cpu.runnable, cpu.source())).collect();
    assert_eq!(
        entries,
        [("0-2", Some(1), Source::Reported)],
        "what is older than what is known does not count"
    );
    let request = v1::PredictRequest { tasks: 1, allowed: "0".to_owned(), ..Default::default() };
    let prediction = placement(&channel).predict(request).await.unwrap().into_inner().prediction.unwrap();
    assert_eq!(prediction.cpus[0].before, 1);

    let bad = [
        (report("", "0", 1, 0), "agent"),
        (report("a", "0-9", 1, 0), "cpus[0].cpus"),
        (report("a", "", 1, 0), "cpus[0].cpus"),
        (report("a", "0", 70_000, 0), "cpus[0].runnable"),
        (report("a", "0", 1, -1), "age"),
        (report(&"x".repeat(129), "0", 1, 0), "agent"),
    ];
    for (message, field) in bad {
        let status = load(&channel).report_load(tokio_stream::iter([message])).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{field}");
        assert!(status.message().contains(field), "{}", status.message());
    }
    // Loopback TCP may only read.
    let status = load(&tcp).report_load(tokio_stream::iter([report("a", "0", 1, 0)])).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
}

/// A task under a narrow mask, and where it runs.
#[tokio::test(flavor = "multi_thread")]
async fn pinned_tasks_are_told() {
    let root = tempfile::tempdir().unwrap();
    write_tasks(&root, &[('R', 2), ('S', 1)]);
    for (i, mask) in ["2-3", "0-7"].iter().enumerate() {
        let pid = 5_000_000 + i;
        let folder = root.path().join(format!("proc/{pid}/task/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("status"), format!("Name:\tx\nCpus_allowed_list:\t{mask}\n")).unwrap();
    }
    write(&root, 1);
    let served = served(root.path()).await;
    let [(_, channel), _] = served.channels().await;
    until(&channel, |answer| answer.load.as_ref().unwrap().pinned_taken_at.is_some()).await;
    let full = v1::GetLoadRequest { view: v1::view::Value::Full.into(), ..Default::default() };
    let pinned = load(&channel).get_load(full).await.unwrap().into_inner().load.unwrap().pinned;
    let expected =
        v1::PinnedTasks { allowed: "2-3".to_owned(), tasks: 1, runnable: 1, running_on: "2".to_owned() };
    assert_eq!(pinned, [expected]);
}
