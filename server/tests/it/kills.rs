//! The daemon is killed at random moments under sixteen clients: nothing that it acknowledged is lost, and nothing is
//! given twice. `make soak` does it a thousand times.

use crate::{
    holds::{lease, list},
    support::{PROGRAM, Random, holds, new_seed, over_unix, placement, try_unix},
};
use berth_proto::v1::{self, hold};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::{Mutex, RwLock};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

const CLIENTS: u64 = 16;
/// Each holds up to so many single CPUs, of 64.
const EACH: usize = 3;

/// A daemon as a process of its own.
struct Berthd(Child);

impl Berthd {
    /// Started, and serving.
    fn start(folder: &Path) -> Self {
        let ready = folder.join("ready");
        let _ = fs::remove_file(&ready);
        let log = fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
        let program = Command::new(PROGRAM)
            .env_clear()
            .env("BERTH_CONFIG", "none")
            .args(["--no-tcp", "--kernel", "6.12.95", "--log", "warn"])
            .args(["--topology-synthetic", "pack:2 [numa] l3:4 core:8 pu:1", "--uds"])
            .arg(folder.join("berthd.sock"))
            .arg("--state-dir")
            .arg(folder.join("state"))
            .arg("--ready-file")
            .arg(&ready)
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut started = Self(program);
        let begun = Instant::now();
        while !ready.exists() {
            let ended = started.0.try_wait().unwrap();
            let log = || fs::read_to_string(folder.join("log")).unwrap();
            assert!(ended.is_none(), "it does not start: {}", log());
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not serve: {}", log());
            std::thread::sleep(Duration::from_millis(2));
        }
        started
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A client that knows what it was told.
struct Client {
    number: u64,
    requests: u64,
    random: Random,
    socket: PathBuf,
    channel: Option<Channel>,
    /// What it holds, as it was acknowledged.
    held: BTreeMap<String, v1::Hold>,
}

impl Client {
    /// Asks until there is an answer, over a new connection after each failure.
    async fn ask<T, F>(&mut self, ask: impl Fn(Channel) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        loop {
            if !self.socket.exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
                continue;
            }
            let channel = match self.channel.take() {
                Some(channel) => channel,
                None => match try_unix(&self.socket).await {
                    Some(channel) => channel,
                    None => {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                        continue;
                    }
                },
            };
            match ask(channel.clone()).await {
                // A connection that breaks is told so by tonic. What the daemon itself says has a reason, and is never
                // that it failed inside.
                Err(status)
                    if matches!(
                        status.code(),
                        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal
                    ) =>
                {
                    let told = status.get_error_details().error_info().map(|info| info.reason.clone());
                    assert!(told.is_none() || status.code() == Code::Unavailable, "{status:?}");
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                answer => {
                    self.channel = Some(channel);
                    return answer;
                }
            }
        }
    }

    /// Takes one CPU more, renews one, or lets one go.
    async fn step(&mut self) {
        let pick = usize::try_from(self.random.below(EACH as u64)).unwrap();
        match self.held.keys().nth(pick).cloned() {
            Some(id) if self.random.below(4) == 0 => {
                let request = v1::RenewHoldRequest { id: id.clone(), ttl: None, uid: None };
                let renewed = self.ask(|channel| {
                    let request = request.clone();
                    async move { holds(&channel).renew_hold(request).await }
                });
                let hold = renewed.await.expect("it is held").into_inner().hold.unwrap();
                self.held.insert(id, hold);
            }
            Some(id) => {
                let request = v1::ReleaseHoldRequest { id: id.clone(), uid: None };
                let released = self.ask(|channel| {
                    let request = request.clone();
                    async move { holds(&channel).release_hold(request).await }
                });
                released.await.expect("it is held, or was until the answer was lost");
                self.held.remove(&id);
            }
            None => {
                self.requests += 1;
                let request_id = format!("{}-{}", self.number, self.requests);
                let spec = v1::HoldSpec { request_id, mode: hold::Mode::Exclusive.into(), ..lease(3600) };
                let request = v1::AdviseRequest { tasks: 1, hold: Some(spec), ..Default::default() };
                let made = self.ask(|channel| {
                    let request = request.clone();
                    async move { placement(&channel).advise(request).await }
                });
                let hold =
                    made.await.expect("there are more CPUs than clients hold").into_inner().hold.unwrap();
                self.held.insert(hold.id.clone(), hold);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_it_is_killed() {
    let kills: u64 = std::env::var("BERTH_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let seed = new_seed();
    println!("{kills} kills, seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("berthd.sock");
    // The clients make steps while it is open, and finish the one that they are at before it is closed.
    let gate = Arc::new(RwLock::new(()));
    let (over, steps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut daemon = Berthd::start(folder.path());
    let clients: Vec<Arc<Mutex<Client>>> = (0..CLIENTS)
        .map(|number| {
            let random = Random(seed ^ (number << 40));
            let (socket, channel) = (socket.clone(), None);
            Arc::new(Mutex::new(Client {
                number,
                requests: 0,
                random,
                socket,
                channel,
                held: BTreeMap::new(),
            }))
        })
        .collect();
    let tasks: Vec<_> = clients
        .iter()
        .map(|client| {
            let (client, gate, over, steps) =
                (Arc::clone(client), Arc::clone(&gate), Arc::clone(&over), Arc::clone(&steps));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let _open = gate.read().await;
                    client.lock().await.step().await;
                    steps.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut random = Random(seed);
    for kill in 0..kills {
        tokio::time::sleep(Duration::from_micros(random.below(60_000))).await;
        daemon.kill();
        let path = folder.path().to_owned();
        daemon = tokio::task::spawn_blocking(move || Berthd::start(&path)).await.unwrap();
        let closed = tokio::time::timeout(Duration::from_secs(60), gate.write()).await;
        let _closed = closed.expect("each client gets an answer");
        for task in &tasks {
            assert!(!task.is_finished(), "a client failed");
        }
        let there: BTreeMap<String, v1::Hold> =
            list(&over_unix(&socket).await).await.into_iter().map(|hold| (hold.id.clone(), hold)).collect();
        let mut acknowledged: BTreeMap<String, v1::Hold> = BTreeMap::new();
        for client in &clients {
            acknowledged.extend(client.lock().await.held.clone());
        }
        let ids = |holds: &BTreeMap<String, v1::Hold>| holds.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(ids(&there), ids(&acknowledged), "after kill {kill}, seed {seed}");
        let mut cpus = BTreeSet::new();
        for (id, hold) in &there {
            // A renewal that was acknowledged is not lost either.
            let told = &acknowledged[id];
            assert_eq!((&hold.cpus, hold.generation), (&told.cpus, told.generation), "{id}, seed {seed}");
            let expires = |hold: &v1::Hold| hold.expires_at.map_or(0, |at| at.seconds);
            assert!(expires(hold).abs_diff(expires(told)) <= 1, "{id}, seed {seed}: {hold:?} {told:?}");
            assert!(cpus.insert(hold.cpus.clone()), "CPU {} is held twice, seed {seed}", hold.cpus);
        }
        if kills > 100 && (kill + 1) % 100 == 0 {
            println!("{} kills, {} steps, {} held", kill + 1, steps.load(Ordering::Relaxed), there.len());
        }
    }
    over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let steps = steps.load(Ordering::Relaxed);
    println!("{steps} requests were answered over {kills} kills");
    assert!(steps > kills, "the clients did something");
    daemon.kill();
}
