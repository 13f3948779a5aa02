//! The one task that replaces the snapshot, and the handles to it.

use super::{
    Counted, Crowd, Here, Load, Machine, Measured, Pinned, Snapshot, changes,
    reports::{Report, Reports},
};
use crate::{config::Live, ingest::load::Busy};
use arc_swap::ArcSwapOption;
use berth_model::{cpuset::Cpu, hold::Book};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::sleep_until,
};

/// News that have not been taken yet; whoever brings more waits.
const INBOX: usize = 8;

/// After this many intervals without a sample, the last one is called stale.
const STALE_AFTER: u32 = 3;

/// What the publisher is told.
#[derive(Debug)]
enum News {
    Machine { machine: Arc<Machine>, here: Arc<Here>, published: oneshot::Sender<()> },
    Holds { holds: Arc<Book>, published: oneshot::Sender<()> },
    Sample(Box<Sample>),
    Report(Report),
}

/// How busy each CPU was, and what is known of the tasks on it.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) busy: BTreeMap<Cpu, Busy>,
    /// The newest counts, of this sample or of one before it.
    pub(crate) counted: Option<Counted>,
    /// The newest look at tasks that may not run everywhere.
    pub(crate) pinned: Option<Pinned>,
    /// The last crowd of pinned tasks, however long ago.
    pub(crate) crowd: Option<Crowd>,
    /// CPU time that sampling costs, as a share of one CPU.
    pub(crate) cost: Option<f64>,
    pub(crate) interval: Duration,
    pub(crate) taken_at: SystemTime,
    /// The same moment on a clock that nobody sets.
    pub(crate) at: Instant,
}

/// Brings news to the publisher.
#[derive(Debug, Clone)]
pub(crate) struct Handle(mpsc::Sender<News>);

impl Handle {
    /// The hardware was read, for the first time or anew. Returns what was published once every reader sees it.
    pub(crate) async fn machine(&self, machine: Machine, here: Here) -> (Arc<Machine>, Arc<Here>) {
        let (machine, here) = (Arc::new(machine), Arc::new(here));
        let (published, done) = oneshot::channel();
        let news = News::Machine { machine: Arc::clone(&machine), here: Arc::clone(&here), published };
        self.send(news).await;
        // The publisher ends with the daemon: see `send`.
        let _ = done.await;
        (machine, here)
    }

    /// Holds have changed. Returns once every reader sees it; for a thread that may block.
    pub(crate) fn holds(&self, holds: Arc<Book>) {
        let (published, done) = oneshot::channel();
        // The publisher ends with the daemon: see `send`.
        let _ = self.0.blocking_send(News::Holds { holds, published });
        let _ = done.blocking_recv();
    }

    /// A sample was taken. For a thread that may block.
    pub(crate) fn sample(&self, sample: Sample) {
        let _ = self.0.blocking_send(News::Sample(Box::new(sample)));
    }

    /// Another agent told of the load.
    pub(crate) async fn report(&self, report: Report) {
        self.send(News::Report(report)).await;
    }

    async fn send(&self, news: News) {
        // The publisher ends with the daemon: then nobody reads any more.
        let _ = self.0.send(news).await;
    }
}

/// Gives the newest snapshot.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    newest: Arc<ArcSwapOption<Snapshot>>,
    each: watch::Receiver<Option<Arc<Snapshot>>>,
}

impl Current {
    /// The newest snapshot; none before the first.
    pub(crate) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.newest.load_full()
    }

    /// The newest snapshot, and each one after it; those that a slow reader has missed are gone.
    pub(crate) fn each(&self) -> watch::Receiver<Option<Arc<Snapshot>>> {
        self.each.clone()
    }
}

/// Starts the publisher, which expects a sample at each interval if the load is `sampled`. It ends when every handle is
/// gone.
pub(crate) fn start(live: Live, sampled: bool) -> (Handle, Current) {
    let (sender, inbox) = mpsc::channel(INBOX);
    let (each, receiver) = watch::channel(None);
    let current = Current { newest: Arc::default(), each: receiver };
    let newest = Arc::clone(&current.newest);
    tokio::spawn(
        Publisher {
            newest,
            each,
            live,
            sampled,
            holds: Arc::default(),
            sample: None,
            reports: Reports::default(),
            generation: 0,
        }
        .run(inbox),
    );
    (Handle(sender), current)
}

struct Publisher {
    newest: Arc<ArcSwapOption<Snapshot>>,
    each: watch::Sender<Option<Arc<Snapshot>>>,
    live: Live,
    sampled: bool,
    holds: Arc<Book>,
    /// The newest sample, which may have come before the first machine.
    sample: Option<Sample>,
    reports: Reports,
    /// One more with each sample and each report.
    generation: u64,
}

impl Publisher {
    async fn run(mut self, mut inbox: mpsc::Receiver<News>) {
        let mut look = tokio::time::Instant::now();
        loop {
            tokio::select! {
                news = inbox.recv() => match news {
                    Some(News::Machine { machine, here, published }) => {
                        self.take_machine(machine, here);
                        // Whoever brought it may have gone.
                        let _ = published.send(());
                    }
                    Some(News::Holds { holds, published }) => {
                        self.take_holds(holds);
                        // As above.
                        let _ = published.send(());
                    }
                    Some(News::Sample(sample)) => {
                        self.sample = Some(*sample);
                        self.publish_load(true);
                    }
                    Some(News::Report(report)) => {
                        self.reports.take(report);
                        self.publish_load(true);
                    }
                    None => return,
                },
                () = sleep_until(look) => {
                    self.look_at_age();
                    look = tokio::time::Instant::now() + self.live.now().load.sample_interval;
                }
            }
        }
    }

    fn take_machine(&mut self, machine: Arc<Machine>, here: Arc<Here>) {
        let before = self.newest.load_full();
        let topology_generation = before.as_ref().map_or(0, |before| before.topology_generation) + 1;
        let changes = before.as_ref().and_then(|before| {
            Some(changes::between((&before.machine, before.here.as_ref()?), (&machine, &here)))
        });
        let changes = changes.unwrap_or_default().into();
        let (load, holds, sampled) = (self.load(), Arc::clone(&self.holds), self.sampled);
        let here = Some(here);
        self.publish(Snapshot { machine, load, sampled, holds, topology_generation, changes, here });
    }

    fn take_holds(&mut self, holds: Arc<Book>) {
        self.holds = Arc::clone(&holds);
        if let Some(before) = self.newest.load_full() {
            self.publish(Snapshot { holds, ..(*before).clone() });
        }
    }

    /// Says so when no sample has come for too long, whatever keeps it away, and forgets reports that are too old.
    fn look_at_age(&mut self) {
        let forgot = self.reports.forget(Instant::now());
        let stale = self.sample.as_ref().is_some_and(|sample| sample.at.elapsed() > self.stale_after());
        if forgot || stale {
            self.publish_load(forgot);
        }
    }

    fn stale_after(&self) -> Duration {
        self.live.now().load.sample_interval * STALE_AFTER
    }

    fn publish_load(&mut self, is_new: bool) {
        self.generation += u64::from(is_new);
        if let Some(before) = self.newest.load_full() {
            let load = self.load();
            self.publish(Snapshot { load, ..(*before).clone() });
        }
    }

    fn load(&self) -> Load {
        let measured =
            Measured::new(self.sample.as_ref(), &self.reports, self.generation, self.stale_after());
        measured.map_or(Load::Unknown, |measured| Load::Measured(Arc::new(measured)))
    }

    fn publish(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        self.newest.store(Some(Arc::clone(&snapshot)));
        self.each.send_replace(Some(snapshot));
    }
}
