//! Holds of several users: each sees and changes its own, and nobody takes what is not for him.

use crate::{
    holds::{create, get, lease, list, release},
    support::{
        holds, placement,
        process::{AsUser, Running, other_users},
    },
};
use berth_proto::v1::{self, hold, view};
use std::{collections::BTreeSet, fs, path::PathBuf};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

const ONE: u32 = 61_002;
const OTHER: u32 = 61_003;

/// A daemon about a host of 16 CPUs, as far as holds go.
const HOST: [&str; 2] = ["--topology-synthetic", "pack:2 [numa] l3:2 core:4 pu:1"];

fn reason(refused: Result<impl std::fmt::Debug, Status>) -> (Code, String) {
    let status = refused.unwrap_err();
    let told = status.get_error_details().error_info().map(|info| info.reason.clone());
    (status.code(), told.unwrap_or_else(|| panic!("{status:?}")))
}

fn exclusive(ttl: i64) -> v1::HoldSpec {
    v1::HoldSpec { mode: hold::Mode::Exclusive.into(), ..lease(ttl) }
}

async fn users(running: &Running) -> (Channel, AsUser, AsUser) {
    let one = running.channel_as(ONE, ONE, &[]).await;
    let other = running.channel_as(OTHER, OTHER, &[]).await;
    (running.channel().await, one, other)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_has_its_own() {
    if let Err(why) = other_users() {
        return eprintln!("skipped: {why}");
    }
    let running = Running::start(&[]);
    let (root, one, other) = users(&running).await;
    let named = |ttl| v1::HoldSpec { name: "mine".to_owned(), request_id: "1".to_owned(), ..lease(ttl) };
    let of_one = create(&one.channel, named(600), "").await.unwrap();
    let of_other = create(&other.channel, named(601), "").await.unwrap();
    assert_eq!((of_one.uid, of_other.uid), (ONE, OTHER));
    assert_ne!(of_one.id, of_other.id, "names and request ids are each user's own");
    let ids = async |channel: &Channel| -> BTreeSet<String> {
        list(channel).await.into_iter().map(|hold| hold.id).collect()
    };
    assert_eq!(ids(&one.channel).await, BTreeSet::from([of_one.id.clone()]));
    assert_eq!(ids(&other.channel).await, BTreeSet::from([of_other.id.clone()]));
    assert_eq!(ids(&root).await, BTreeSet::from([of_one.id.clone(), of_other.id.clone()]));
    // What is another's is as if it were not there.
    assert_eq!(get(&one.channel, "mine").await.unwrap().id, of_one.id);
    assert_eq!(reason(get(&one.channel, &of_other.id).await).0, Code::NotFound);
    let renew = v1::RenewHoldRequest { id: of_other.id.clone(), ..Default::default() };
    assert_eq!(reason(holds(&one.channel).renew_hold(renew).await).0, Code::NotFound);
    let adopt = v1::AdoptHoldRequest { id: of_other.id.clone(), ..Default::default() };
    assert_eq!(reason(holds(&one.channel).adopt_hold(adopt).await).0, Code::NotFound);
    let _ = release(&one.channel, &of_other.id).await;
    assert_eq!(get(&other.channel, &of_other.id).await.unwrap().state(), hold::State::Active);
    // For others, and beside others, only an admin.
    let denied = (Code::PermissionDenied, "ROLE_TOO_LOW".to_owned());
    let theirs = v1::HoldSpec { uid: Some(OTHER), ..lease(600) };
    assert_eq!(reason(create(&one.channel, theirs.clone(), "").await), denied);
    assert_eq!(create(&root, theirs, "").await.unwrap().uid, OTHER);
    let foreign = v1::CreateHoldRequest { hold: Some(lease(600)), foreign: true, ..Default::default() };
    assert_eq!(reason(holds(&one.channel).create_hold(foreign).await), denied);
    release(&root, &of_other.id).await.unwrap();
    assert_eq!(get(&root, &of_other.id).await.unwrap().state(), hold::State::Ended);
}

/// One who tries to hold everything gets its quota; the others get theirs.
#[tokio::test(flavor = "multi_thread")]
async fn one_cannot_hold_everything() {
    if let Err(why) = other_users() {
        return eprintln!("skipped: {why}");
    }
    // A twentieth of 16 CPUs, which is one, may be held alone.
    let flags = ["--max-holds", "5", "--max-exclusive-percent", "5"];
    let running = Running::start(&[HOST.as_slice(), &flags].concat());
    let (root, one, other) = users(&running).await;
    let exceeded = (Code::ResourceExhausted, "QUOTA_EXCEEDED".to_owned());
    let own = list_of_cpus(&one);
    let [first, second, ..] = own[..] else { return eprintln!("skipped: one CPU is too few") };
    let held = [create(&one.channel, exclusive(600), &first.to_string()).await.unwrap()];
    assert_eq!(reason(create(&one.channel, exclusive(600), &second.to_string()).await), exceeded);
    for hold in held {
        release(&one.channel, &hold.id).await.unwrap();
    }
    for _ in 0..5 {
        create(&one.channel, lease(600), "").await.unwrap();
    }
    let refused = create(&one.channel, lease(600), "").await.unwrap_err();
    let details = refused.get_error_details();
    let told = &details.error_info().unwrap().metadata;
    assert_eq!((told["of"].as_str(), told["asked"].as_str(), told["most"].as_str()), ("holds", "6", "5"));
    assert_eq!(reason(Err::<(), _>(refused)), exceeded);
    create(&other.channel, lease(600), "").await.unwrap();
    for _ in 0..8 {
        create(&root, lease(600), "").await.unwrap();
    }
}

/// Whatever one holds, another is not sent away from free CPUs further than by a few tasks that run.
#[tokio::test(flavor = "multi_thread")]
async fn one_cannot_send_others_away() {
    if let Err(why) = other_users() {
        return eprintln!("skipped: {why}");
    }
    let running = Running::start(&HOST);
    let (root, one, other) = users(&running).await;
    let own = list_of_cpus(&one);
    let [first, ..] = own[..] else { unreachable!() };
    let many = v1::CreateHoldRequest {
        hold: Some(lease(600)),
        cpus: first.to_string(),
        tasks: 65_536,
        ..Default::default()
    };
    holds(&one.channel).create_hold(many).await.unwrap();
    for channel in [&root, &other.channel] {
        let request = v1::AdviseRequest {
            tasks: 40,
            allowed: format!("{first},{}", (first + 1) % 16),
            view: view::Value::Full.into(),
            ..Default::default()
        };
        let answer = placement(channel).advise(request).await.unwrap().into_inner();
        let on = answer.with.unwrap().cpus.into_iter().find(|count| count.cpu == first);
        // 40 tasks and the four that count: 22 on each.
        assert_eq!(on.map(|count| count.tasks), Some(18), "65,536 tasks on CPU {first} never came");
    }
    // What started one's session is an owner, as Slurm's process of a step is for the hold of its tasks.
    let owned = |pid| {
        let owner = v1::owner::Owner::Process(v1::Process { pid, start_time: 0 });
        v1::HoldSpec { owner: Some(v1::Owner { owner: Some(owner) }), ..Default::default() }
    };
    create(&one.channel, owned(std::process::id()), &first.to_string()).await.unwrap();
    // Another process of another's, which may never end, is none.
    for pid in [1, other.pid()] {
        let refused = create(&one.channel, owned(pid), &first.to_string()).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert!(refused.message().contains("another user's"), "{refused:?}");
    }
}

/// The CPUs of this host that the caller may use.
fn list_of_cpus(user: &AsUser) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", user.pid())).unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let cpus = berth_model::cpuset::CpuSet::parse(list.trim()).unwrap();
    cpus.iter().map(berth_model::cpuset::Cpu::number).collect()
}

/// A cgroup of cpusets with one CPU, if one can be made here; removed when dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(cpu: u32) -> Option<Self> {
        let folder = |root: &str| PathBuf::from(root).join(format!("berth-users-{}", std::process::id()));
        let v1 = Self(folder("/sys/fs/cgroup/cpuset"));
        if fs::create_dir(&v1.0).is_ok() && fs::write(v1.0.join("cpuset.mems"), "0").is_ok() {
            return fs::write(v1.0.join("cpuset.cpus"), cpu.to_string()).is_ok().then_some(v1);
        }
        let v2 = Self(folder("/sys/fs/cgroup"));
        let made = fs::create_dir(&v2.0).is_ok();
        (made && fs::write(v2.0.join("cpuset.cpus"), cpu.to_string()).is_ok()).then_some(v2)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..200 {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Holds lie inside the cpuset of the calling process.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_holds_outside_of_its_cpuset() {
    if let Err(why) = other_users() {
        return eprintln!("skipped: {why}");
    }
    let running = Running::start(&HOST);
    let (root, one, other) = users(&running).await;
    let own = list_of_cpus(&one);
    let Some(cgroup) = Cgroup::new(own[0]) else {
        return eprintln!("skipped: no cgroup with a cpuset can be made here");
    };
    fs::write(cgroup.0.join("cgroup.procs"), one.pid().to_string()).unwrap();
    create(&one.channel, lease(600), &own[0].to_string()).await.unwrap();
    let outside = (Code::PermissionDenied, "OUTSIDE_CPUSET".to_owned());
    for cpus in ["15", &format!("{},15", own[0])] {
        assert_eq!(reason(create(&one.channel, lease(600), cpus).await), outside, "{cpus}");
    }
    // The other one's is the host's own, whose CPUs end before those of the description.
    assert_eq!(reason(create(&other.channel, lease(600), "15").await), outside);
    create(&root, lease(600), "15").await.unwrap();
    drop(one);
    drop(cgroup);
}
