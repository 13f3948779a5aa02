//! What a host does to holds: tasks that run, owners that die, boots, herds.

use crate::{
    holds::{HOST, Sleeper, advise, create, ended, get, lease, list, process},
    support::{Served, config, load, over_unix, placement},
};
use berth_model::CpuSet;
use berth_proto::v1::{self, hold};
use berth_server::{Daemon, config::Config};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tonic::{Code, transport::Channel};

/// A folder with what the daemon reads of a host: this boot, this process, and as much load as is written there.
pub(crate) struct Root {
    pub(crate) folder: TempDir,
    /// Whether CPU 0 is busy.
    busy: Arc<AtomicBool>,
    writer: tokio::task::JoinHandle<()>,
}

impl Root {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("proc/sys/kernel/random")).unwrap();
        boot(folder.path(), "boot-1");
        let own = std::process::id().to_string();
        symlink(Path::new("/proc").join(&own), folder.path().join("proc").join(own)).unwrap();
        let busy = Arc::new(AtomicBool::new(false));
        let (is_busy, path) = (Arc::clone(&busy), folder.path().join("proc"));
        let writer = tokio::spawn(async move {
            let (mut used, mut idle) = (0, 0);
            loop {
                if is_busy.load(Ordering::Relaxed) {
                    used += 10
                } else {
                    idle += 10
                }
                let rest: String = (1..16).map(|cpu| format!("cpu{cpu} 0 0 0 {}\n", used + idle)).collect();
                // In one step, as the kernel's file changes.
                fs::write(path.join("new"), format!("cpu0 {used} 0 0 {idle}\n{rest}")).unwrap();
                fs::rename(path.join("new"), path.join("stat")).unwrap();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        Self { folder, busy, writer }
    }

    async fn served(&self) -> Served {
        // By what the file says alone: this process is there too, and its threads run where they like.
        self.served_by("estimate").await
    }

    pub(crate) async fn served_by(&self, source: &str) -> Served {
        let flags = ["--sample-interval", "100ms", "--load-source", source, "--load-cost-limit", "100"];
        let flags = [&HOST[..], &flags].concat();
        let mut served = Served::begin(&flags, |config| {
            config.root = self.folder.path().to_owned();
            config.measure_load = true;
        })
        .await;
        served.daemon.ready().await.unwrap();
        served
    }
}

impl Root {
    /// Lets the daemon see this process of the machine.
    pub(crate) fn show(&self, pid: u32) {
        let entry = pid.to_string();
        symlink(Path::new("/proc").join(&entry), self.folder.path().join("proc").join(entry)).unwrap();
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

fn boot(root: &Path, id: &str) {
    fs::write(root.join("proc/sys/kernel/random/boot_id"), format!("{id}\n")).unwrap();
}

/// What counts on CPU 0 before a task that would be put there.
pub(crate) async fn before(channel: &Channel) -> u32 {
    let request = v1::PredictRequest { tasks: 1, allowed: "0".to_owned(), ..Default::default() };
    placement(channel).predict(request).await.unwrap().into_inner().prediction.unwrap().cpus[0].before
}

/// Waits until one task counts on CPU 0. More never do.
async fn one_counts(channel: &Channel) {
    let wait = async {
        loop {
            match before(channel).await {
                // A sample between two writings of the file shows an idle host.
                0 => tokio::time::sleep(Duration::from_millis(10)).await,
                counted => return assert_eq!(counted, 1),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("it counts");
}

async fn until_busy(channel: &Channel, busy: bool) {
    let wait = async {
        loop {
            let answer = load(channel).get_load(v1::GetLoadRequest::default()).await.unwrap().into_inner();
            let of_zero = |entry: &&v1::CpuLoad| CpuSet::parse(&entry.cpus).unwrap().contains(0.into());
            let cpus = answer.load.unwrap().cpus;
            if cpus.iter().find(of_zero).is_some_and(|entry| (entry.runnable() > 0) == busy) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_whose_tasks_run_is_not_counted_twice() {
    let root = Root::new();
    let served = root.served().await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    until_busy(&channel, false).await;
    assert_eq!(before(&channel).await, 0);
    // A short one, as launchers make them, and one that stays.
    let short =
        create(&channel, v1::HoldSpec { ttl: crate::holds::seconds(600), ..Default::default() }, "0").await;
    let short = short.unwrap();
    assert!(!short.keep);
    assert_eq!(before(&channel).await, 1, "held");
    root.busy.store(true, Ordering::Relaxed);
    assert_eq!(ended(&channel, &short.id).await, hold::End::TasksSeen);
    // It runs, and the hold has ended.
    one_counts(&channel).await;

    root.busy.store(false, Ordering::Relaxed);
    until_busy(&channel, false).await;
    assert_eq!(before(&channel).await, 0);
    let stays = create(&channel, lease(600), "0").await.unwrap();
    assert_eq!(before(&channel).await, 1);
    root.busy.store(true, Ordering::Relaxed);
    until_busy(&channel, true).await;
    // Held and running.
    for _ in 0..20 {
        one_counts(&channel).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seen = async {
        while !get(&channel, &stays.id).await.unwrap().tasks_seen {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), seen).await.unwrap();
    assert_eq!(get(&channel, &stays.id).await.unwrap().state(), hold::State::Active);
}

/// The kernel does not see who sleeps: it puts a task there, and the prediction says so.
#[tokio::test(flavor = "multi_thread")]
async fn sleeping_holders_are_predicted_as_the_kernel_sees_them() {
    let served = Served::start(&HOST).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    create(&channel, lease(600), "0").await.unwrap();
    let ask = |holders: v1::scenario::Holders| v1::PredictRequest {
        tasks: 1,
        allowed: "0-1".to_owned(),
        origin: Some(1),
        scenario: Some(v1::Scenario { holders: holders.into(), ..Default::default() }),
        ..Default::default()
    };
    use v1::scenario::Holders::{Asleep, Running, Worse};
    // A sleeper's CPU is as good as idle to the kernel. One that runs keeps the task on the launcher's CPU, unless it has
    // slept so far and the launcher has not: then its CPU still looks the better.
    for (holders, fullest) in [(Asleep, 2), (Running, 1), (Worse, 2)] {
        let answer = placement(&channel).predict(ask(holders)).await.unwrap().into_inner();
        assert_eq!(answer.verdict(), v1::verdict::Value::PileUp, "{holders:?}");
        let prediction = answer.prediction.unwrap();
        assert_eq!((prediction.best_possible, prediction.most_on_one_cpu), (1, fullest), "{holders:?}");
    }
}

/// On this very host, by its own samples.
#[tokio::test(flavor = "multi_thread")]
async fn one_whose_owner_is_killed_is_free_within_two_samples() {
    let served = Served::start(&["--sample-interval", "500ms"]).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    let mut sleeper = Sleeper::start();
    let spec = v1::HoldSpec {
        owner: process(sleeper.0.id()),
        mode: hold::Mode::Exclusive.into(),
        ..Default::default()
    };
    let made = create(&channel, spec, "0").await.unwrap();
    let sample = || async {
        let answer = load(&channel).get_load(v1::GetLoadRequest::default()).await.unwrap().into_inner();
        answer.snapshot.unwrap().load_generation
    };
    let refused = create(&channel, lease(60), "0").await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    sleeper.kill();
    let killed_at = sample().await;
    assert_eq!(ended(&channel, &made.id).await, hold::End::ProcessDied);
    let samples = sample().await - killed_at;
    assert!(samples <= 2, "after {samples} samples");
    create(&channel, lease(60), "0").await.unwrap();
}

/// A daemon that keeps its holds in this folder.
async fn kept_in(folder: &Path, change: impl FnOnce(&mut Config)) -> Daemon {
    let mut config = config(folder, &HOST);
    change(&mut config);
    let mut daemon = Daemon::start(config).await.unwrap();
    daemon.ready().await.unwrap();
    daemon
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_outlast_the_daemon_and_not_the_boot() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new();
    let at = |config: &mut Config| config.root = root.folder.path().to_owned();
    let daemon = kept_in(folder.path(), at).await;
    let channel = over_unix(daemon.uds().unwrap()).await;
    let spec = v1::HoldSpec { request_id: "r".to_owned(), name: "n".to_owned(), ..lease(600) };
    let answer = advise(&channel, 3, spec.clone()).await.unwrap();
    create(&channel, v1::HoldSpec { ttl: crate::holds::seconds(600), ..Default::default() }, "")
        .await
        .unwrap();
    let gone = create(&channel, lease(600), "9").await.unwrap();
    crate::holds::release(&channel, &gone.id).await.unwrap();
    let mut all = list(&channel).await;
    daemon.stop().await;

    let daemon = kept_in(folder.path(), at).await;
    let channel = over_unix(daemon.uds().unwrap()).await;
    let again = advise(&channel, 3, spec).await.unwrap();
    // The moment of a hold by the wall clock is as exact as two clocks can be read at a time.
    let plain = |hold: &mut v1::Hold| {
        hold.created_at.as_mut().unwrap().nanos = 0;
        hold.expires_at.iter_mut().for_each(|at| at.nanos = 0);
    };
    let mut now = list(&channel).await;
    all.iter_mut().chain(&mut now).for_each(plain);
    let seconds = |holds: &mut [v1::Hold]| {
        holds.iter_mut().for_each(|hold| {
            hold.created_at = None;
            hold.expires_at = None;
        })
    };
    seconds(&mut all);
    seconds(&mut now);
    assert_eq!(now, all);
    assert_eq!((again.advice, again.hold.unwrap().id), (answer.advice, answer.hold.unwrap().id));
    assert_eq!(get(&channel, &gone.id).await.unwrap().end(), hold::End::Released);
    daemon.stop().await;

    boot(root.folder.path(), "boot-2");
    let daemon = kept_in(folder.path(), at).await;
    let channel = over_unix(daemon.uds().unwrap()).await;
    assert!(list(&channel).await.is_empty());
    assert_eq!(get(&channel, &all[0].id).await.unwrap().end(), hold::End::Rebooted);
    // Ids are not given again.
    let next = create(&channel, lease(600), "0").await.unwrap();
    assert!(all.iter().all(|hold| hold.id != next.id));
    daemon.stop().await;
}

/// 200 clients in the same second, each over a connection of its own: no CPU is given twice while another is free.
#[tokio::test(flavor = "multi_thread")]
async fn a_herd_gets_different_cpus() {
    let flags = ["--topology-synthetic", "pack:2 [numa] l3:8 core:16 pu:1", "--kernel", "6.12.95"];
    for (clients, tasks) in [(200, 1), (32, 8), (300, 1)] {
        let room = ["--max-requests", "1000", "--max-connections-per-peer", "1000"];
        let served = Served::start(&[flags, room].concat()).await;
        let path = served.daemon.uds().unwrap().to_owned();
        let herd: Vec<_> = (0..clients)
            .map(|_| {
                let path = path.clone();
                tokio::spawn(async move {
                    let channel = over_unix(&path).await;
                    loop {
                        match advise(&channel, tasks, lease(600)).await {
                            // One user has a part of the places only, and is told to come again.
                            Err(status) if status.code() == Code::Unavailable => {
                                tokio::time::sleep(Duration::from_millis(20)).await;
                            }
                            answer => return answer.unwrap(),
                        }
                    }
                })
            })
            .collect();
        let mut given: BTreeMap<u32, u32> = BTreeMap::new();
        for client in herd {
            let answer = client.await.unwrap();
            let (hold, advice) = (answer.hold.unwrap(), answer.advice.unwrap());
            let parts = hold.parts.iter().map(|part| CpuSet::parse(&part.cpus).unwrap());
            let held = parts.fold(CpuSet::new(), |all, part| all.union(&part));
            assert_eq!(held.len(), tasks as usize);
            // What a client is told to use is what it holds.
            let masks: BTreeSet<String> = advice
                .parts
                .iter()
                .map(|part| part.cpus.clone())
                .chain(advice.tasks.iter().map(|task| task.cpus.clone()))
                .collect();
            let told = masks.iter().fold(CpuSet::new(), |all, mask| all.union(&CpuSet::parse(mask).unwrap()));
            assert_eq!(told, held);
            held.iter().for_each(|cpu| *given.entry(cpu.number()).or_default() += 1);
        }
        let most = given.values().max().copied().unwrap();
        assert_eq!(most, (clients * tasks).div_ceil(256), "{clients} clients of {tasks} tasks: {given:?}");
    }
}
