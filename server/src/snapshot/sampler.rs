//! The thread that takes a sample of the load at each interval, and notices when the host changes. It has a thread of its own so that its CPU time, the
//! kernel's part included, is known exactly.

use super::{
    Crowd, Pinned,
    budget::{Budget, cpu_time},
    counter::Counter,
    publisher::{Current, Handle, Sample},
};
use crate::{
    config::Live,
    ingest::{
        Marks,
        load::{
            Method, crowd,
            owned::Eye,
            pinned,
            scan::Scan,
            stat::{self, Reading},
        },
    },
};
use berth_model::cpuset::CpuSet;
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::watch;

/// The part of the budget that is left for publishing samples, which other threads do.
const PUBLISHING_SHARE: f64 = 0.1;
/// How often masks are looked at, at most, and the part of the budget that they may take.
const MASKS_PACE: Duration = Duration::from_secs(10);
const MASKS_SHARE: f64 = 0.2;

/// The running sampler. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Sampler(#[allow(dead_code, reason = "dropping it ends the thread")] mpsc::Sender<()>);

impl Sampler {
    /// Starts it for the host whose `proc` and `sys` lie below `root`. It tells by `changed` when the host is no longer
    /// as it was.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(crate) fn start(
        root: PathBuf,
        live: Live,
        (publisher, current): (Handle, Current),
        changed: watch::Sender<()>,
    ) -> io::Result<Self> {
        let (running, ended) = mpsc::channel();
        // Before the host is read for the first time: what changes from now on is noticed.
        let marks = Marks::read(&root);
        thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || run(State::new(&root, marks, current), &live, &publisher, &changed, &ended))?;
        Ok(Self(running))
    }
}

fn run(
    mut state: State<'_>,
    live: &Live,
    publisher: &Handle,
    changed: &watch::Sender<()>,
    ended: &mpsc::Receiver<()>,
) {
    let mut next = Instant::now();
    loop {
        let settings = &live.now().load;
        state.budget.settle(settings.cost_limit * (1.0 - MASKS_SHARE - PUBLISHING_SHARE));
        if let Some(sample) = state.sample(settings.source, settings.cost_limit) {
            publisher.sample(sample);
        }
        if state.has_changed() {
            changed.send_replace(());
        }
        next = (next + settings.sample_interval).max(Instant::now());
        let wait = next.saturating_duration_since(Instant::now());
        if ended.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout) {
            return;
        }
    }
}

struct State<'a> {
    root: &'a Path,
    budget: Budget,
    marks: Marks,
    before: Option<(Reading, Instant)>,
    counter: Counter<'a>,
    pinned: Option<Pinned>,
    pinned_from: Option<Instant>,
    crowd: Option<Crowd>,
    /// For the holds that count when tasks are looked at.
    current: Current,
    eye: Eye,
    failing: bool,
}

impl<'a> State<'a> {
    fn new(root: &'a Path, marks: Marks, current: Current) -> Self {
        Self {
            root,
            budget: Budget::new(),
            marks,
            before: None,
            counter: Counter::new(root),
            pinned: None,
            pinned_from: None,
            crowd: None,
            current,
            eye: Eye::default(),
            failing: false,
        }
    }

    /// Whether the host is no longer as it was the last time.
    fn has_changed(&mut self) -> bool {
        let now = Marks::read(self.root);
        now != std::mem::replace(&mut self.marks, now.clone())
    }

    /// Looks at the host. Nothing the first time, since a share of time takes two readings.
    fn sample(&mut self, method: Method, limit: f64) -> Option<Sample> {
        let reading = match stat::read(self.root) {
            Ok(reading) => reading,
            Err(error) => {
                // Said once, not each second.
                if !std::mem::replace(&mut self.failing, true) {
                    tracing::warn!(%error, "the load cannot be read");
                }
                return None;
            }
        };
        self.failing = false;
        let (at, taken_at) = (Instant::now(), SystemTime::now());
        let online = reading.keys().copied().collect();
        let due = self.pinned_from.is_none_or(|from| at >= from);
        let book = self.current.snapshot().map(|snapshot| Arc::clone(&snapshot.holds)).unwrap_or_default();
        let wanted = due || Eye::is_needed(&book);
        if let Some(scan) = self.counter.count(method, &online, wanted, &mut self.budget) {
            self.counter.attribute(self.eye.look(self.root, &scan, &book));
            let crowded = crowd::look(self.root, &scan, &online);
            if !crowded.is_empty() {
                self.crowd = Some(Crowd { cpus: crowded, at });
            }
            if due {
                self.look_at_masks(&scan, &online, limit);
            }
        }
        let sample = self.before.as_ref().map(|(before, before_at)| Sample {
            busy: stat::between(before, &reading),
            counted: self.counter.newest().cloned(),
            pinned: self.pinned.clone(),
            crowd: self.crowd.clone(),
            cost: self.budget.cost(),
            interval: at.duration_since(*before_at),
            taken_at,
            at,
        });
        self.before = Some((reading, at));
        sample
    }

    /// Looks which of the tasks that were counted just now may not run everywhere.
    fn look_at_masks(&mut self, scan: &Scan, online: &CpuSet, limit: f64) {
        let begun = cpu_time();
        let groups = pinned::look(self.root, scan, online);
        self.pinned = Some(Pinned { groups: groups.into(), taken_at: SystemTime::now() });
        let cost = cpu_time().saturating_sub(begun);
        self.budget.excuse(cost);
        let pause = cost.as_secs_f64() / limit / MASKS_SHARE;
        let pause = Duration::try_from_secs_f64(pause).unwrap_or(Duration::MAX);
        self.pinned_from = Instant::now().checked_add(pause.max(MASKS_PACE));
    }
}
