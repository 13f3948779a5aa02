//! The thread that takes a sample of the load at each interval, and notices when the host changes. It has a thread of its own so that its CPU time, the
//! kernel's part included, is known exactly.

use super::{
    Counted, Pinned,
    budget::{Budget, cpu_time},
    publisher::{Handle, Sample},
};
use crate::{
    config::Live,
    ingest::{
        Marks,
        load::{
            Method, Source, pinned,
            scan::{self, Scanner},
            stat::{self, Reading},
        },
    },
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::watch;

/// How often masks are looked at, at most, and the part of the budget that they may take.
const MASKS_PACE: Duration = Duration::from_secs(10);
const MASKS_SHARE: f64 = 0.2;
/// After a source failed, it is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(60);

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
        publisher: Handle,
        changed: watch::Sender<()>,
    ) -> io::Result<Self> {
        let (running, ended) = mpsc::channel();
        // Before the host is read for the first time: what changes from now on is noticed.
        let marks = Marks::read(&root);
        thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || run(State::new(&root, marks), &live, &publisher, &changed, &ended))?;
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
        // The rest pays for looks at masks.
        state.budget.settle(settings.cost_limit * (1.0 - MASKS_SHARE));
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
    counted: Option<Counted>,
    pinned: Option<Pinned>,
    pinned_from: Option<Instant>,
    scanner: Scanner,
    scan_from: Option<Instant>,
    /// CPU time that the last scan took.
    scan_cost: Duration,
    stat_failing: bool,
    scan_failing: bool,
}

impl<'a> State<'a> {
    fn new(root: &'a Path, marks: Marks) -> Self {
        Self {
            root,
            budget: Budget::new(),
            marks,
            before: None,
            counted: None,
            pinned: None,
            pinned_from: None,
            scanner: Scanner::new(root, std::process::id()),
            scan_from: None,
            scan_cost: Duration::ZERO,
            stat_failing: false,
            scan_failing: false,
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
                if !std::mem::replace(&mut self.stat_failing, true) {
                    tracing::warn!(%error, "the load cannot be read");
                }
                return None;
            }
        };
        self.stat_failing = false;
        let (at, taken_at) = (Instant::now(), SystemTime::now());
        if self.budget.affords(self.scan_cost) {
            self.count(method, at);
            self.look_at_masks(&reading, at, limit);
        }
        let sample = self.before.as_ref().map(|(before, before_at)| Sample {
            busy: stat::between(before, &reading),
            counted: self.counted.clone(),
            pinned: self.pinned.clone(),
            cost: self.budget.cost(),
            interval: at.duration_since(*before_at),
            taken_at,
            at,
        });
        self.before = Some((reading, at));
        sample
    }

    /// Looks which of the tasks that were counted just now may not run everywhere, at a slow pace.
    fn look_at_masks(&mut self, reading: &Reading, now: Instant, limit: f64) {
        let scan = self
            .counted
            .as_ref()
            .filter(|counted| counted.at >= now)
            .and_then(|counted| counted.scan.as_ref());
        let Some(scan) = scan.filter(|_| self.pinned_from.is_none_or(|from| now >= from)) else { return };
        let begun = cpu_time();
        let groups = pinned::look(self.root, scan, &reading.keys().copied().collect());
        self.pinned = Some(Pinned { groups: groups.into(), taken_at: SystemTime::now() });
        let cost = cpu_time().saturating_sub(begun);
        self.budget.excuse(cost);
        let pause = cost.as_secs_f64() / limit / MASKS_SHARE;
        let pause = Duration::try_from_secs_f64(pause).unwrap_or(Duration::MAX);
        self.pinned_from = now.checked_add(pause.max(MASKS_PACE));
    }

    /// Counts runnable tasks, if there is a source.
    fn count(&mut self, method: Method, now: Instant) {
        if method == Method::Estimate {
            self.counted = None;
            return;
        }
        if self.scan_from.is_some_and(|from| now < from) {
            return;
        }
        let begun = cpu_time();
        let scan = self.scanner.scan();
        self.scan_cost = cpu_time().saturating_sub(begun);
        match scan {
            Ok(scan) => {
                self.scan_failing = false;
                self.counted = Some(counted(scan));
            }
            Err(error) => {
                if !std::mem::replace(&mut self.scan_failing, true) {
                    tracing::warn!(%error, "runnable tasks cannot be counted: they are estimated");
                }
                self.counted = None;
                self.scan_from = Some(now + TRY_AGAIN);
            }
        }
    }
}

fn counted(scan: scan::Scan) -> Counted {
    Counted {
        source: Source::Threads,
        counts: Arc::new(scan.counts()),
        scan: Some(Arc::new(scan)),
        taken_at: SystemTime::now(),
        at: Instant::now(),
    }
}
