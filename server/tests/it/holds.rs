//! Holds over the wire: made, listed, renewed, adopted, released, watched.

use crate::support::{Served, holds, over_tcp, over_unix, placement, process::Running};
use berth_model::CpuSet;
use berth_proto::v1::{self, hold, owner};
use std::{collections::BTreeSet, process::Child, time::Duration};
use tokio_stream::StreamExt;
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

/// 16 CPUs in two LLCs.
pub(crate) const HOST: [&str; 4] =
    ["--topology-synthetic", "pack:1 [numa] l3:2 core:8 pu:1", "--kernel", "6.12.95"];

pub(crate) fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

/// A hold that ends with its time alone.
pub(crate) fn lease(ttl: i64) -> v1::HoldSpec {
    v1::HoldSpec { owner: Some(v1::Owner { owner: None }), ttl: seconds(ttl), ..Default::default() }
}

/// The owner that is this process.
pub(crate) fn process(pid: u32) -> Option<v1::Owner> {
    Some(v1::Owner { owner: Some(owner::Owner::Process(v1::Process { pid, start_time: 0 })) })
}

pub(crate) async fn create(channel: &Channel, spec: v1::HoldSpec, cpus: &str) -> Result<v1::Hold, Status> {
    let request = v1::CreateHoldRequest { hold: Some(spec), cpus: cpus.to_owned(), ..Default::default() };
    Ok(holds(channel).create_hold(request).await?.into_inner().hold.unwrap())
}

pub(crate) async fn advise(
    channel: &Channel,
    tasks: u32,
    spec: v1::HoldSpec,
) -> Result<v1::AdviseResponse, Status> {
    let request = v1::AdviseRequest { tasks, hold: Some(spec), ..Default::default() };
    Ok(placement(channel).advise(request).await?.into_inner())
}

pub(crate) async fn get(channel: &Channel, id: &str) -> Result<v1::Hold, Status> {
    let request = v1::GetHoldRequest { id: id.to_owned(), uid: None };
    Ok(holds(channel).get_hold(request).await?.into_inner().hold.unwrap())
}

/// All holds in force.
pub(crate) async fn list(channel: &Channel) -> Vec<v1::Hold> {
    let mut all = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListHoldsRequest { page_token, page_size: 7, ..Default::default() };
        let page = holds(channel).list_holds(request).await.unwrap().into_inner();
        all.extend(page.holds);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return all;
        }
    }
}

pub(crate) async fn release(channel: &Channel, id: &str) -> Result<v1::ReleaseHoldResponse, Status> {
    let request = v1::ReleaseHoldRequest { id: id.to_owned(), uid: None };
    Ok(holds(channel).release_hold(request).await?.into_inner())
}

/// Waits until a hold has ended; says how.
pub(crate) async fn ended(channel: &Channel, id: &str) -> hold::End {
    let wait = async {
        loop {
            let hold = get(channel, id).await.unwrap();
            if hold.state() == hold::State::Ended {
                return hold.end();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("the hold ends")
}

fn reason(status: &Status) -> String {
    status.get_error_details().error_info().unwrap().reason.clone()
}

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse(list).unwrap()
}

/// A process that can be killed.
pub(crate) struct Sleeper(pub(crate) Child);

impl Sleeper {
    pub(crate) fn start() -> Self {
        Self(std::process::Command::new("sleep").arg("1000").spawn().unwrap())
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_from_its_making_to_its_end() {
    let served = Served::start(&HOST).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    let labels = [("job".to_owned(), "7".to_owned())].into();
    let spec = v1::HoldSpec { name: "build".to_owned(), labels, ..lease(60) };
    let answer = advise(&channel, 4, spec).await.unwrap();
    let made = answer.hold.unwrap();
    assert_eq!((made.state(), made.mode(), made.tasks), (hold::State::Active, hold::Mode::Shared, 4));
    assert!(made.owner.is_none() && made.expires_at.is_some() && made.keep);
    assert_eq!((made.name.as_str(), made.labels["job"].as_str()), ("build", "7"));
    // What is advised is what is held.
    let advised = answer.advice.unwrap();
    let masks =
        advised.parts.iter().map(|part| &part.cpus).chain(advised.tasks.iter().map(|task| &task.cpus));
    assert_eq!(masks.fold(CpuSet::new(), |all, mask| all.union(&cpus(mask))), cpus(&made.cpus));
    assert_eq!(cpus(&made.cpus).len(), 4);
    assert!(answer.reasons.iter().any(|reason| reason.reason == "KEPT_AS_PLACED"));

    assert_eq!(get(&channel, &made.id).await.unwrap(), get(&channel, "build").await.unwrap());
    // The next one is given other CPUs, and one that may not share none of these.
    let second = advise(&channel, 4, lease(60)).await.unwrap().hold.unwrap();
    assert!(!cpus(&second.cpus).intersects(&cpus(&made.cpus)));
    let alone = v1::HoldSpec { mode: hold::Mode::Exclusive.into(), ..lease(60) };
    let third = advise(&channel, 8, alone.clone()).await.unwrap().hold.unwrap();
    assert_eq!(cpus(&third.cpus).len(), 8);
    let refused = advise(&channel, 1, alone).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::ResourceExhausted, "CPUS_HELD"));
    let details = refused.get_error_details();
    let metadata = &details.error_info().unwrap().metadata;
    assert_eq!((metadata["asked"].as_str(), metadata["free"].as_str()), ("16", "0"));
    assert!(metadata["by"].contains("build"), "{}", metadata["by"]);
    let retry = details.retry_info().unwrap().retry_delay.unwrap();
    assert!(retry > Duration::from_secs(1) && retry <= Duration::from_secs(60), "{retry:?}");
    assert!(details.quota_failure().is_some());
    // Without a hold, what is held alone is nobody's, and what is held counts.
    let request = v1::AdviseRequest { tasks: 9, ..Default::default() };
    let plain = placement(&channel).advise(request).await.unwrap().into_inner();
    assert!(!cpus(&plain.allowed).intersects(&cpus(&third.cpus)));
    assert_eq!(plain.with.unwrap().best_possible, 3);
    assert!(plain.warnings.iter().any(|warning| warning.reason == "CPUS_HELD"));

    let ids: Vec<String> = list(&channel).await.into_iter().map(|hold| hold.id).collect();
    assert_eq!(ids, [made.id.clone(), second.id.clone(), third.id.clone()]);
    let request = v1::RenewHoldRequest { id: "build".to_owned(), ttl: seconds(600), uid: None };
    let renewed = holds(&channel).renew_hold(request).await.unwrap().into_inner().hold.unwrap();
    let moved = renewed.expires_at.unwrap().seconds - made.expires_at.unwrap().seconds;
    assert!((500..=600).contains(&moved), "{moved}");
    assert!(renewed.generation > made.generation);

    let released = release(&channel, "build").await.unwrap().hold.unwrap();
    assert_eq!((released.state(), released.end()), (hold::State::Ended, hold::End::Released));
    assert!(release(&channel, &made.id).await.unwrap().hold.is_none(), "ended already, which is no error");
    let renewed = holds(&channel)
        .renew_hold(v1::RenewHoldRequest { id: made.id.clone(), ttl: None, uid: None })
        .await
        .unwrap_err();
    assert_eq!((renewed.code(), reason(&renewed).as_str()), (Code::FailedPrecondition, "HOLD_ENDED"));
    for unknown in ["h99", "nobody", "17"] {
        let status = get(&channel, unknown).await.unwrap_err();
        assert_eq!((status.code(), reason(&status).as_str()), (Code::NotFound, "HOLD_NOT_FOUND"));
        assert!(status.get_error_details().resource_info().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_is_answered_the_same() {
    let served = Served::start(&HOST).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    let ask = |only_task: Option<u32>, tasks: u32| v1::AdviseRequest {
        tasks,
        only_task,
        hold: Some(v1::HoldSpec { request_id: "job-1.0".to_owned(), ..lease(60) }),
        ..Default::default()
    };
    let mut first = None;
    // Each task of a step asks for its own entry.
    let mut entries = BTreeSet::new();
    for task in 0..4 {
        let answer = placement(&channel).advise(ask(Some(task), 4)).await.unwrap().into_inner();
        let hold = answer.hold.unwrap();
        assert_eq!(first.get_or_insert_with(|| hold.id.clone()), &hold.id);
        let [entry] = answer.advice.unwrap().tasks.try_into().unwrap();
        assert_eq!(entry.task, task);
        assert!(cpus(&entry.cpus).is_subset(&cpus(&hold.cpus)));
        entries.insert((task, entry.cpus));
    }
    assert_eq!(list(&channel).await.len(), 1);
    let plain = placement(&channel).advise(ask(None, 4)).await.unwrap().into_inner();
    let again = placement(&channel).advise(ask(None, 4)).await.unwrap().into_inner();
    assert_eq!(plain, again);
    let full = v1::AdviseRequest { view: v1::view::Value::Full.into(), ..ask(None, 4) };
    let full = placement(&channel).advise(full).await.unwrap().into_inner();
    assert_eq!(full.advice.unwrap().tasks.len(), 4);
    assert!(full.warnings.iter().any(|warning| warning.reason == "ANSWERED_BEFORE"));
    let other = placement(&channel).advise(ask(None, 5)).await.unwrap_err();
    assert_eq!((other.code(), reason(&other).as_str()), (Code::AlreadyExists, "REQUEST_ID_USED"));
    // Many at once make one.
    let requests = (0..20).map(|_| {
        let channel = channel.clone();
        let spec = v1::HoldSpec { request_id: "once".to_owned(), ..lease(60) };
        tokio::spawn(async move { create(&channel, spec, "0-1").await.unwrap().id })
    });
    let mut ids = BTreeSet::new();
    for request in requests.collect::<Vec<_>>() {
        ids.insert(request.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
}

/// More than may wait for a long computation: the first one's is everybody's.
#[tokio::test(flavor = "multi_thread")]
async fn a_herd_that_asks_a_long_question_costs_one_decision() {
    let served = Served::start(&HOST).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    let asked = (0..100).map(|task| {
        let channel = channel.clone();
        let request = v1::AdviseRequest {
            tasks: 200,
            only_task: Some(task),
            hold: Some(v1::HoldSpec { request_id: "step".to_owned(), ..lease(60) }),
            ..Default::default()
        };
        tokio::spawn(async move { placement(&channel).advise(request).await })
    });
    let mut ids = BTreeSet::new();
    for answer in asked.collect::<Vec<_>>() {
        ids.insert(answer.await.unwrap().unwrap().into_inner().hold.unwrap().id);
    }
    assert_eq!((ids.len(), list(&channel).await.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_what_belongs_to_them() {
    let served = Served::start(&HOST).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    let named = |name: &str| v1::HoldSpec { name: name.to_owned(), ..lease(60) };
    let claim = create(&channel, named("job-7"), "").await.unwrap();
    assert!(claim.cpus.is_empty() && claim.parts.is_empty() && claim.tasks == 0);
    let under = v1::HoldSpec { claim: "job-7".to_owned(), ttl: None, ..lease(60) };
    let step = create(&channel, under.clone(), "2-3").await.unwrap();
    let other = advise(&channel, 2, under).await.unwrap().hold.unwrap();
    assert_eq!((step.claim.as_str(), other.claim.as_str()), (claim.id.as_str(), claim.id.as_str()));
    let request = v1::ListHoldsRequest { claim: "job-7".to_owned(), ..Default::default() };
    let listed = holds(&channel).list_holds(request).await.unwrap().into_inner().holds;
    assert_eq!(listed.len(), 2);
    let request = v1::ListHoldsRequest { cpus: "3".to_owned(), ..Default::default() };
    assert_eq!(
        holds(&channel).list_holds(request).await.unwrap().into_inner().holds,
        std::slice::from_ref(&step)
    );

    let taken = create(&channel, named("job-7"), "0").await.unwrap_err();
    assert_eq!((taken.code(), reason(&taken).as_str()), (Code::AlreadyExists, "HOLD_NAME_USED"));
    let below = v1::HoldSpec { claim: step.id.clone(), ..lease(60) };
    let below = create(&channel, below, "0").await.unwrap_err();
    assert_eq!((below.code(), reason(&below).as_str()), (Code::FailedPrecondition, "NOT_A_CLAIM"));
    assert_eq!(release(&channel, "job-7").await.unwrap().also_released, 2);
    assert_eq!(get(&channel, &step.id).await.unwrap().end(), hold::End::ClaimEnded);
    let late = v1::HoldSpec { claim: claim.id, ..lease(60) };
    assert_eq!(reason(&create(&channel, late, "0").await.unwrap_err()), "HOLD_ENDED");
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_and_times() {
    let served = Served::start(&[&HOST[..], &["--sample-interval", "100ms"]].concat()).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    // Nothing said: the calling process, for the default time.
    let own = create(&channel, v1::HoldSpec::default(), "0").await.unwrap();
    let Some(owner::Owner::Process(owner)) = own.owner.unwrap().owner else { panic!("no process") };
    assert_eq!(owner.pid, std::process::id());
    assert!(owner.start_time > 0 && own.expires_at.is_some() && !own.keep);
    let mut sleeper = Sleeper::start();
    let tied = v1::HoldSpec { owner: process(sleeper.0.id()), ..Default::default() };
    let tied = create(&channel, tied, "1").await.unwrap();
    assert!(tied.expires_at.is_none());
    let adopt =
        v1::AdoptHoldRequest { id: own.id.clone(), owner: process(sleeper.0.id()), ..Default::default() };
    let adopted = holds(&channel).adopt_hold(adopt).await.unwrap().into_inner().hold.unwrap();
    assert!(adopted.expires_at.is_none() && adopted.keep);
    let short =
        v1::HoldSpec { ttl: Some(prost_types::Duration { seconds: 0, nanos: 100_000_000 }), ..lease(1) };
    let short = create(&channel, short, "2").await.unwrap();
    assert_eq!(ended(&channel, &short.id).await, hold::End::Expired);
    assert_eq!(get(&channel, &tied.id).await.unwrap().state(), hold::State::Active);

    sleeper.kill();
    assert_eq!(ended(&channel, &tied.id).await, hold::End::ProcessDied);
    assert_eq!(ended(&channel, &own.id).await, hold::End::ProcessDied);
    assert!(list(&channel).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_told_at_once() {
    let served = Served::start(&HOST).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    let long = "x".repeat(257);
    let bad = v1::HoldSpec {
        owner: process(u32::MAX),
        request_id: long.clone(),
        ttl: seconds(-1),
        mode: 7,
        claim: long.clone(),
        name: "h17".to_owned(),
        labels: (0..17).map(|i| (format!("{i}{long}"), String::new())).collect(),
        ..Default::default()
    };
    let status = create(&channel, bad, "0-99").await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = status.get_error_details();
    let fields: BTreeSet<&str> =
        details.bad_request().unwrap().field_violations.iter().map(|v| v.field.as_str()).collect();
    for field in [
        "hold.owner.process.pid",
        "hold.request_id",
        "hold.ttl",
        "hold.mode",
        "hold.claim",
        "hold.name",
        "hold.labels",
    ] {
        assert!(fields.contains(field), "{field} is not among {fields:?}");
    }
    let cases = [
        (v1::HoldSpec { ttl: None, ..lease(1) }, "0", "hold.ttl"),
        (v1::HoldSpec { ttl: seconds(90_000), ..lease(1) }, "0", "hold.ttl"),
        (
            v1::HoldSpec { ttl: Some(prost_types::Duration { seconds: 0, nanos: 2 }), ..lease(1) },
            "0",
            "hold.ttl",
        ),
        (lease(1), "16", "cpus"),
        (lease(1), "x", "cpus"),
    ];
    for (spec, cpus, field) in cases {
        let status = create(&channel, spec, cpus).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        let details = status.get_error_details();
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, field);
    }
    let host = Some(v1::Host { idle: true, ..Default::default() });
    let request = v1::AdviseRequest { tasks: 1, host, hold: Some(lease(1)), ..Default::default() };
    let status = placement(&channel).advise(request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(list(&channel).await.is_empty(), "nothing was kept");
}

/// Over TCP nobody is known: what is held can be counted on, and nothing be held.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_hold_nothing() {
    let served = Served::start(&HOST).await;
    let tcp = over_tcp(&served.daemon).await;
    let status = create(&tcp, lease(5), "0").await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status:?}");
    assert_eq!(advise(&tcp, 1, lease(5)).await.unwrap_err().code(), Code::PermissionDenied);
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    let made = create(&channel, lease(60), "0").await.unwrap();
    assert!(list(&tcp).await.is_empty());
    assert_eq!(get(&tcp, &made.id).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_are_told_of_each_change() {
    let served = Served::start(&HOST).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    let first = create(&channel, lease(60), "0").await.unwrap();
    let mut changes =
        holds(&channel).watch_holds(v1::WatchHoldsRequest::default()).await.unwrap().into_inner();
    let all = changes.next().await.unwrap().unwrap();
    assert!(all.complete && all.dropped == 0);
    assert_eq!(all.holds, std::slice::from_ref(&first));
    // A mirror that is kept by what is told is what is there.
    let mut mirror = std::collections::BTreeMap::new();
    mirror.insert(first.id.clone(), first);
    for round in 0..40 {
        let made = create(&channel, lease(60), "1").await.unwrap();
        if round % 2 == 0 {
            release(&channel, &made.id).await.unwrap();
        }
    }
    let last = create(&channel, lease(60), "2").await.unwrap();
    let follow = async {
        while !mirror.contains_key(&last.id) {
            let change = changes.next().await.unwrap().unwrap();
            assert!(change.dropped == 0 || change.complete);
            if change.complete {
                mirror.clear();
            }
            for hold in change.holds {
                match hold.state() {
                    hold::State::Ended => drop(mirror.remove(&hold.id)),
                    _ => drop(mirror.insert(hold.id.clone(), hold)),
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), follow).await.unwrap();
    let there: Vec<v1::Hold> = list(&channel).await;
    assert_eq!(mirror.len(), there.len());
    for hold in there {
        assert_eq!(mirror[&hold.id].generation, hold.generation);
    }
}

/// A daemon that can open no file any more does not take the owners of holds for dead.
#[tokio::test(flavor = "multi_thread")]
async fn owners_outlive_a_want_of_file_descriptors() {
    let running = Running::start(&[&HOST[..], &["--sample-interval", "100ms"]].concat());
    let channel = running.channel().await;
    let mut sleeper = Sleeper::start();
    let spec = || v1::HoldSpec { owner: process(sleeper.0.id()), keep: true, ..Default::default() };
    let held = create(&channel, spec(), "0").await.unwrap();
    let looked = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        get(&channel, &held.id).await.unwrap().state()
    };
    assert_eq!(running.without_descriptors(looked).await, hold::State::Active);
    sleeper.kill();
    assert_eq!(ended(&channel, &held.id).await, hold::End::ProcessDied);
}
