//! `Verify` on real processes: tasks that crowd are found, mended by what is said to mend them, and gone.

use crate::{
    holds::{create, lease, process},
    support::{
        placement,
        process::{Running, other_users},
        spin::{self, Process},
    },
};
use berth_model::cpuset::{Cpu, CpuSet};
use berth_proto::v1::{self, fix::Action, verdict, view};
use rustix::{process::Pid, thread};
use std::{collections::BTreeMap, time::Duration};
use tokio::sync::Mutex;
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

/// So many crowd on one CPU: whatever else runs here, another has fewer.
const CROWD: usize = 8;

async fn verify(channel: &Channel, request: v1::VerifyRequest) -> Result<v1::VerifyResponse, Status> {
    placement(channel).verify(request).await.map(tonic::Response::into_inner)
}

fn reason(status: &Status) -> String {
    status.get_error_details().error_info().unwrap().reason.clone()
}

/// One crowd at a time: two would wait for each other's CPUs.
static ALONE: Mutex<()> = Mutex::const_new(());

/// The first CPU here and all of them; nothing where there is one.
fn two_cpus() -> Option<(Cpu, CpuSet)> {
    let allowed = spin::allowed();
    if allowed.len() < 2 {
        eprintln!("skipped: there is one CPU");
        return None;
    }
    Some((allowed.first()?, allowed))
}

/// Asks until the answer is as it should be: the kernel takes a moment to move tasks.
async fn until(
    channel: &Channel,
    request: &v1::VerifyRequest,
    is_so: impl Fn(&v1::VerifyResponse) -> bool,
) -> v1::VerifyResponse {
    let mut last = None;
    for _ in 0..300 {
        let answer = verify(channel, request.clone()).await.unwrap();
        if is_so(&answer) {
            return answer;
        }
        last = Some(answer);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never was so: {last:#?}")
}

/// Does what a finding says.
fn mend(finding: &v1::Finding) {
    assert!(!finding.fixes.is_empty(), "{finding:?}");
    for fix in &finding.fixes {
        let Some(Action::SetAffinity(set)) = &fix.action else { panic!("{fix:?}") };
        assert!(fix.command.contains(&set.cpus) && fix.command.contains("taskset -cp"), "{fix:?}");
        let mut mask = thread::CpuSet::new();
        CpuSet::parse(&set.cpus).unwrap().iter().for_each(|cpu| mask.set(cpu.index()));
        for &tid in &set.tids {
            let tid = Pid::from_raw(i32::try_from(tid).unwrap());
            thread::sched_setaffinity(tid, &mask).unwrap();
        }
    }
}

fn workload<'a>(answer: &'a v1::VerifyResponse, pids: &[u32]) -> Option<&'a v1::Workload> {
    answer.workloads.iter().find(|workload| workload.pids.iter().any(|pid| pids.contains(pid)))
}

/// Where threads are that are all told.
fn places(answer: &v1::VerifyResponse) -> BTreeMap<u32, usize> {
    let mut on = BTreeMap::new();
    for thread in answer.workloads.iter().flat_map(|workload| &workload.threads) {
        *on.entry(thread.cpu).or_default() += 1;
    }
    on
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_crowd_beside_what_is_expected_are_found_and_mended() {
    let Some((first, allowed)) = two_cpus() else { return };
    let _alone = ALONE.lock().await;
    let running = Running::start(&[]);
    let channel = running.channel().await;
    // One process with all of them is one workload: the shell's children.
    let crowd: Vec<Process> = (0..CROWD).map(|_| Process::start(first)).collect();
    let pids: Vec<u32> = crowd.iter().map(Process::pid).collect();
    let request = v1::VerifyRequest {
        pids: vec![pids[0]],
        expected: allowed.to_string(),
        view: view::Value::Full.into(),
        ..Default::default()
    };
    let found =
        until(&channel, &request, |answer| answer.workloads[0].verdict() == verdict::Value::PileUp).await;
    let workload = &found.workloads[0];
    assert_eq!((workload.pids.as_slice(), workload.uid), (&pids[..1], rustix::process::geteuid().as_raw()));
    let finding = &workload.findings[0];
    assert_eq!(finding.reason, "PILED_UP");
    assert_eq!((finding.cpus.clone(), finding.tids.as_slice()), (first.to_string(), &pids[..1]));
    assert!(finding.message.starts_with("1 thread shares CPU"), "{}", finding.message);
    assert!(workload.pile_ups[0].runnable >= 2, "{:?}", workload.pile_ups);
    let thread = &workload.threads[0];
    assert_eq!(
        (thread.allowed.as_str(), thread.state.as_str(), thread.cpu),
        (&*first.to_string(), "R", first.number())
    );
    assert!(!thread.cpuset.is_empty() && thread.start_time > 0 && thread.command == "sh", "{thread:?}");
    mend(finding);
    let mended = until(&channel, &request, |answer| answer.workloads[0].findings.is_empty()).await;
    let thread = &mended.workloads[0].threads[0];
    assert_eq!(thread.allowed, allowed.to_string(), "the mask that was expected");
    assert_eq!(mended.workloads[0].verdict(), verdict::Value::NoPileUp);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_pinned_workload_that_waits_is_found() {
    let Some((first, _)) = two_cpus() else { return };
    let _alone = ALONE.lock().await;
    let running = Running::start(&[]);
    let channel = running.channel().await;
    let crowd: Vec<Process> = (0..CROWD).map(|_| Process::start(first)).collect();
    let pids: Vec<u32> = crowd.iter().map(Process::pid).collect();
    let all = v1::VerifyRequest { all: true, ..Default::default() };
    // How many of them wait in vain depends on what else runs on the other CPUs.
    let found = until(&channel, &all, |answer| workload(answer, &pids).is_some()).await;
    let one = workload(&found, &pids).unwrap();
    assert_eq!(one.findings[0].reason, "CROWDED_BY_MASK");
    assert_eq!((one.verdict(), one.name.as_str()), (verdict::Value::NoPileUp, "sh"));
    // The steps of one answer fit together: those that have enough room once the others are done have none.
    let ours = found.workloads.iter().filter(|workload| pids.contains(&workload.pids[0]));
    let with_steps = ours.map(|workload| &workload.findings[0]).filter(|finding| !finding.fixes.is_empty());
    let with_steps: Vec<&v1::Finding> = with_steps.collect();
    assert!((1..CROWD).contains(&with_steps.len()), "{found:#?}");
    with_steps.into_iter().for_each(mend);
    until(&channel, &all, |answer| workload(answer, &pids).is_none()).await;
    // Those that sleep are none.
    crowd.iter().for_each(Process::pause);
    let stopped =
        v1::VerifyRequest { pids: pids.clone(), view: view::Value::Full.into(), ..Default::default() };
    let answer = until(&channel, &stopped, |answer| {
        answer.workloads.iter().all(|workload| workload.threads[0].state == "T")
    })
    .await;
    assert!(answer.workloads.iter().all(|workload| workload.verdict() == verdict::Value::Unknown));
    assert_eq!((answer.threads_seen, answer.workloads.len()), (8, CROWD));
    assert_eq!(places(&answer).values().sum::<usize>(), CROWD);
}

/// The owner's descendants are the hold's tasks, and its CPUs are where they should be.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_drifted_from_a_hold() {
    let Some((first, allowed)) = two_cpus() else { return };
    let _alone = ALONE.lock().await;
    let last = allowed.last().unwrap();
    let running = Running::start(&[]);
    let channel = running.channel().await;
    let task = Process::start(first);
    let spec = v1::HoldSpec { owner: process(task.pid()), keep: true, ..Default::default() };
    let hold = create(&channel, spec, &last.to_string()).await.unwrap();
    let request = v1::VerifyRequest { hold: hold.id.clone(), ..Default::default() };
    let answer = verify(&channel, request.clone()).await.unwrap();
    let workload = &answer.workloads[0];
    assert_eq!((workload.hold.as_str(), workload.pids.as_slice()), (hold.id.as_str(), &[task.pid()][..]));
    let drift = workload.findings.iter().find(|finding| finding.reason == "OUTSIDE_EXPECTED").unwrap();
    assert_eq!((drift.cpus.as_str(), drift.tids.as_slice()), (&*last.to_string(), &[task.pid()][..]));
    mend(drift);
    until(&channel, &request, |answer| answer.workloads[0].findings.is_empty()).await;
    // As wide as it may be: what a change of the cpuset leaves on older kernels.
    let mut mask = thread::CpuSet::new();
    allowed.iter().for_each(|cpu| mask.set(cpu.index()));
    thread::sched_setaffinity(Pid::from_raw(i32::try_from(task.pid()).unwrap()), &mask).unwrap();
    let answer = verify(&channel, request).await.unwrap();
    assert!(answer.workloads[0].findings.iter().any(|finding| finding.reason == "MASK_WIPED"), "{answer:?}");

    let lease = create(&channel, lease(600), &first.to_string()).await.unwrap();
    let of_lease = v1::VerifyRequest { hold: lease.id, ..Default::default() };
    let answer = verify(&channel, of_lease).await.unwrap();
    assert_eq!((answer.warnings[0].reason.as_str(), answer.workloads.len()), ("HOLD_WITHOUT_OWNER", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_time_it_says_what_moves() {
    let Some((first, _)) = two_cpus() else { return };
    let _alone = ALONE.lock().await;
    let running = Running::start(&[]);
    let channel = running.channel().await;
    let task = Process::start(first);
    let request = v1::VerifyRequest {
        pids: vec![task.pid()],
        watch_for: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        memory: true,
        view: view::Value::Full.into(),
        ..Default::default()
    };
    let answer = verify(&channel, request).await.unwrap();
    let (workload, thread) = (&answer.workloads[0], &answer.workloads[0].threads[0]);
    let used = thread.cpu_use.unwrap();
    assert!(used > 0.0 && used <= 1.0, "{answer:?}");
    assert!(workload.cpu_use.is_none_or(|all| all > 0.0), "{answer:?}");
    // Pinned to one CPU, it stays there; some kernels do not count.
    assert!(thread.migrations_per_second.is_none_or(|rate| rate < 5.0), "{answer:?}");
    let memory: u64 = workload.memory.iter().map(|node| node.bytes).sum();
    assert!(memory > 100 << 10 || workload.memory.is_empty(), "{:?}", workload.memory);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_looked_at() {
    let running = Running::start(&[]);
    let channel = running.channel().await;
    let none = verify(&channel, v1::VerifyRequest::default()).await.unwrap_err();
    assert_eq!((none.code(), reason(&none).as_str()), (Code::InvalidArgument, "FIELDS_NOT_VALID"));
    assert!(none.message().contains("exactly one"), "{}", none.message());
    let gone = v1::VerifyRequest { pids: vec![u32::MAX >> 2], ..Default::default() };
    let answer = verify(&channel, gone).await.unwrap();
    assert_eq!((answer.workloads.len(), answer.warnings[0].reason.as_str()), (0, "PROCESS_GONE"));
    let unknown = v1::VerifyRequest { hold: "h77".to_owned(), ..Default::default() };
    assert_eq!(verify(&channel, unknown).await.unwrap_err().code(), Code::NotFound);
    for path in ["/none", "/../../etc"] {
        let cgroup = v1::VerifyRequest { cgroup: path.to_owned(), ..Default::default() };
        let answer = verify(&channel, cgroup).await.unwrap();
        assert_eq!(
            (answer.workloads.len(), answer.warnings[0].reason.as_str()),
            (0, "CGROUP_GONE"),
            "{path}"
        );
    }
    let described = Running::start(&["--topology-synthetic", "pack:1 core:4 pu:1"]);
    let all = v1::VerifyRequest { all: true, ..Default::default() };
    let refused = verify(&described.channel().await, all).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::FailedPrecondition, "HOST_DESCRIBED"));
}

/// Of others' tasks nobody hears but how many there are.
#[tokio::test(flavor = "multi_thread")]
async fn each_user_sees_its_own() {
    let Some((first, _)) = two_cpus() else { return };
    let _alone = ALONE.lock().await;
    if let Err(why) = other_users() {
        return eprintln!("skipped: {why}");
    }
    let running = Running::start(&[]);
    let crowd: Vec<Process> = (0..CROWD).map(|_| Process::start(first)).collect();
    let other = running.channel_as(61_003, 61_003, &[]).await;
    let pids = v1::VerifyRequest { pids: vec![crowd[0].pid()], ..Default::default() };
    let answer = verify(&other.channel, pids).await.unwrap();
    assert_eq!((answer.workloads.len(), answer.threads_seen, answer.threads_hidden), (0, 0, 1));
    assert!(answer.warnings.iter().any(|warning| warning.reason == "THREADS_NOT_SHOWN"));
    let all = v1::VerifyRequest { all: true, ..Default::default() };
    let answer = verify(&other.channel, all.clone()).await.unwrap();
    let pids: Vec<u32> = crowd.iter().map(Process::pid).collect();
    assert!(workload(&answer, &pids).is_none() && answer.threads_hidden > 0, "{answer:?}");
    // Over TCP nothing tells who asks.
    let tcp = crate::support::over_tcp_at(running.tcp).await;
    let answer = verify(&tcp, all).await.unwrap();
    assert_eq!(answer.workloads.len(), 0);
}
