//! What counts on a CPU that is held while tasks run there: those of the hold once, those of others besides. The tasks are
//! real processes that never sleep, bound to CPU 0, seen by a daemon that sees no others.

use crate::{
    holds::{create, ended, get, lease, process},
    holds_on_host::{Root, before},
    support::{Served, over_unix, spin},
};
use berth_proto::v1::{self, hold, owner};
use std::{fs, time::Duration};
use tonic::transport::Channel;

async fn served(root: &Root) -> (Served, Channel) {
    let served = root.served_by("threads").await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    (served, channel)
}

/// Whether this process may use CPU 0.
fn has_cpu() -> bool {
    spin::allowed().contains(0.into())
}

/// Waits until so many tasks count on CPU 0, and looks that they stay so.
async fn counts(channel: &Channel, tasks: u32, why: &str) {
    let (mut in_turn, mut last) = (0, 0);
    let wait = async {
        while in_turn < 15 {
            last = before(channel).await;
            in_turn = if last == tasks { in_turn + 1 } else { 0 };
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), wait).await;
    assert!(waited.is_ok(), "{why}: {last} and not {tasks}");
}

fn start(root: &Root) -> spin::Process {
    let process = spin::Process::start(0.into());
    root.show(process.pid());
    process
}

fn held_by(owner: Option<v1::Owner>) -> v1::HoldSpec {
    v1::HoldSpec { owner, ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_counted_once_and_others_beside_it() {
    if !has_cpu() {
        println!("skipped: CPU 0 may not be used");
        return;
    }
    let root = Root::new();
    let (_served, channel) = served(&root).await;
    let owner = start(&root);
    counts(&channel, 1, "it runs").await;
    create(&channel, held_by(process(owner.pid())), "0").await.unwrap();
    counts(&channel, 1, "it runs where it holds").await;
    let other = start(&root);
    counts(&channel, 2, "another runs there").await;
    owner.pause();
    counts(&channel, 2, "the owner sleeps beside another's task").await;
    drop(other);
    counts(&channel, 1, "the owner sleeps").await;
    owner.go_on();
    counts(&channel, 1, "the owner runs again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_descends_from_an_owner_is_its_own() {
    if !has_cpu() {
        println!("skipped: CPU 0 may not be used");
        return;
    }
    let root = Root::new();
    let (_served, channel) = served(&root).await;
    // The daemon is in this process, whose own threads do not count; its children do.
    let hold = create(&channel, held_by(process(std::process::id())), "0").await.unwrap();
    counts(&channel, 1, "held").await;
    let child = start(&root);
    counts(&channel, 1, "its child runs").await;
    let another = start(&root);
    counts(&channel, 2, "two of its children run").await;
    drop((child, another));
    counts(&channel, 1, "held").await;
    assert!(get(&channel, &hold.id).await.unwrap().tasks_seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cgroup_is_counted_once_and_others_beside_it() {
    if !has_cpu() {
        println!("skipped: CPU 0 may not be used");
        return;
    }
    let root = Root::new();
    let (_served, channel) = served(&root).await;
    let task = start(&root);
    let mount = root.folder.path().join("sys/fs/cgroup");
    let write = |file: &str, text: String| {
        fs::create_dir_all(mount.join(file).parent().unwrap()).unwrap();
        fs::write(mount.join(file), text).unwrap();
    };
    write("cgroup.procs", String::new());
    write("job/cgroup.procs", format!("{}\n", task.pid()));
    write("job/cgroup.threads", format!("{}\n", task.pid()));
    let owner = Some(v1::Owner { owner: Some(owner::Owner::Cgroup("/job".to_owned())) });
    let hold = create(&channel, held_by(owner), "0").await.unwrap();
    counts(&channel, 1, "it runs where it holds").await;
    let other = start(&root);
    counts(&channel, 2, "another runs there").await;
    task.pause();
    counts(&channel, 2, "the cgroup sleeps beside another's task").await;
    drop(other);
    counts(&channel, 1, "the cgroup sleeps").await;
    write("job/cgroup.procs", String::new());
    write("job/cgroup.threads", String::new());
    assert_eq!(ended(&channel, &hold.id).await, hold::End::CgroupEmpty);
    counts(&channel, 0, "the cgroup is empty").await;
}

/// Of a lease nobody knows whose tasks are its own: the larger counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_and_what_runs_are_the_larger() {
    if !has_cpu() {
        println!("skipped: CPU 0 may not be used");
        return;
    }
    let root = Root::new();
    let (_served, channel) = served(&root).await;
    create(&channel, lease(600), "0").await.unwrap();
    counts(&channel, 1, "held").await;
    let task = start(&root);
    counts(&channel, 1, "held, and it runs").await;
    // As soon as the task is known to be another's, it counts beside the lease.
    create(&channel, held_by(process(task.pid())), "0").await.unwrap();
    counts(&channel, 2, "both are held").await;
}
