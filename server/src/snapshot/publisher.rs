//! The one task that replaces the snapshot, and the handles to it.

use super::{Here, Load, Machine, Measured, Snapshot};
use crate::ingest::load::Busy;
use arc_swap::ArcSwapOption;
use berth_model::cpuset::Cpu;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::{mpsc, oneshot};

/// News that have not been taken yet; whoever brings more waits.
const INBOX: usize = 8;

/// After this many intervals without a sample, the last one is called stale.
const STALE_AFTER: u32 = 3;

/// What the publisher is told.
#[derive(Debug)]
enum News {
    Machine { machine: Arc<Machine>, here: Arc<Here>, published: oneshot::Sender<()> },
    Sample(Sample),
    NoSample { interval: Duration },
}

/// How busy each CPU was.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) busy: BTreeMap<Cpu, Busy>,
    pub(crate) interval: Duration,
    pub(crate) taken_at: SystemTime,
    /// The same moment on a clock that nobody sets.
    pub(crate) at: Instant,
}

/// Brings news to the publisher.
#[derive(Debug, Clone)]
pub(crate) struct Handle(mpsc::Sender<News>);

impl Handle {
    /// The hardware was read, for the first time or anew. Returns once every reader sees it.
    pub(crate) async fn machine(&self, machine: Machine, here: Here) {
        let (published, done) = oneshot::channel();
        self.send(News::Machine { machine: Arc::new(machine), here: Arc::new(here), published }).await;
        // The publisher ends with the daemon: see `send`.
        let _ = done.await;
    }

    /// A sample was taken.
    pub(crate) async fn sample(&self, sample: Sample) {
        self.send(News::Sample(sample)).await;
    }

    /// A sample was due and could not be taken.
    pub(crate) async fn no_sample(&self, interval: Duration) {
        self.send(News::NoSample { interval }).await;
    }

    async fn send(&self, news: News) {
        // The publisher ends with the daemon: then nobody reads any more.
        let _ = self.0.send(news).await;
    }
}

/// Gives the newest snapshot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Current(Arc<ArcSwapOption<Snapshot>>);

impl Current {
    /// The newest snapshot; none before the first.
    pub(crate) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.0.load_full()
    }
}

/// Starts the publisher. It ends when every handle is gone.
pub(crate) fn start() -> (Handle, Current) {
    let (sender, inbox) = mpsc::channel(INBOX);
    let current = Current::default();
    tokio::spawn(Publisher { current: current.clone(), last: None, sampled_at: None }.run(inbox));
    (Handle(sender), current)
}

struct Publisher {
    current: Current,
    /// A sample that came before the first machine.
    last: Option<Measured>,
    sampled_at: Option<Instant>,
}

impl Publisher {
    async fn run(mut self, mut inbox: mpsc::Receiver<News>) {
        while let Some(news) = inbox.recv().await {
            match news {
                News::Machine { machine, here, published } => {
                    self.take_machine(machine, here);
                    // Whoever brought it may have gone.
                    let _ = published.send(());
                }
                News::Sample(sample) => self.take_sample(sample),
                News::NoSample { interval } => self.take_no_sample(interval),
            }
        }
    }

    fn take_machine(&mut self, machine: Arc<Machine>, here: Arc<Here>) {
        let before = self.current.snapshot();
        let topology_generation = before.map_or(0, |snapshot| snapshot.topology_generation) + 1;
        let load = self.last.clone().map_or(Load::Unknown, |measured| Load::Measured(Arc::new(measured)));
        self.publish(Snapshot { machine, load, topology_generation, here: Some(here) });
    }

    fn take_sample(&mut self, sample: Sample) {
        let generation = self.last.as_ref().map_or(0, |measured| measured.generation) + 1;
        self.sampled_at = Some(sample.at);
        let measured = Measured {
            load: Arc::new(sample.busy.iter().map(|(&cpu, busy)| (cpu, busy.estimate())).collect()),
            busy: Arc::new(sample.busy),
            interval: sample.interval,
            taken_at: sample.taken_at,
            generation,
            age: sample.at.elapsed(),
            stale: false,
        };
        self.replace_load(measured);
    }

    fn take_no_sample(&mut self, interval: Duration) {
        if let (Some(last), Some(at)) = (self.last.clone(), self.sampled_at) {
            let age = at.elapsed();
            self.replace_load(Measured { age, stale: age > interval * STALE_AFTER, ..last });
        }
    }

    fn replace_load(&mut self, measured: Measured) {
        self.last = Some(measured.clone());
        if let Some(before) = self.current.snapshot() {
            let load = Load::Measured(Arc::new(measured));
            self.publish(Snapshot { load, ..(*before).clone() });
        }
    }

    fn publish(&self, snapshot: Snapshot) {
        self.current.0.store(Some(Arc::new(snapshot)));
    }
}
