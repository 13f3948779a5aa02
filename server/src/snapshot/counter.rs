//! Counts runnable tasks in the cheapest source that is exact.

use super::{
    Counted,
    budget::{Budget, cpu_time},
};
use crate::ingest::load::{
    Method, Source,
    crowd::is_uneven,
    debug,
    scan::{Scan, Scanner},
};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    hold::Running,
};
use std::{
    collections::BTreeMap,
    fmt::Display,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// After a source failed, it is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(60);
/// What a source was measured to cost is believed for so long.
const BELIEVED: Duration = Duration::from_secs(600);

/// One source.
#[derive(Debug, Default)]
struct Way {
    /// CPU time that it took the last time, and when that was; nothing if it failed.
    cost: Option<(Duration, Instant)>,
    failed_at: Option<Instant>,
}

impl Way {
    fn is_usable(&self, now: Instant) -> bool {
        self.failed_at.is_none_or(|at| now.saturating_duration_since(at) >= TRY_AGAIN)
    }

    /// What it is likely to cost; nothing where that is to be found out.
    fn cost(&self, now: Instant) -> Option<Duration> {
        let believed = |(_, at): &(Duration, Instant)| now.saturating_duration_since(*at) < BELIEVED;
        self.cost.filter(believed).map(|(cost, _)| cost)
    }

    /// Uses it, and takes note of how that went.
    fn take<T, E: Display>(
        &mut self,
        now: Instant,
        take: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Failed<E>> {
        let begun = cpu_time();
        let taken = take();
        self.cost = taken.is_ok().then(|| (cpu_time().saturating_sub(begun), now));
        let is_first = self.failed_at.is_none();
        self.failed_at = taken.is_err().then_some(now);
        taken.map_err(|error| Failed { error, is_first })
    }
}

/// Why a source cannot be used.
struct Failed<E> {
    error: E,
    /// It could be before.
    is_first: bool,
}

/// Counts, again and again.
#[derive(Debug)]
pub(super) struct Counter<'a> {
    root: &'a Path,
    scanner: Scanner,
    threads: Way,
    debug: Way,
    newest: Option<Counted>,
}

impl<'a> Counter<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self {
            root,
            scanner: Scanner::new(root, std::process::id()),
            threads: Way::default(),
            debug: Way::default(),
            newest: None,
        }
    }

    /// The newest counts; none if nothing can be counted.
    pub(super) fn newest(&self) -> Option<&Counted> {
        self.newest.as_ref()
    }

    /// Says whose the tasks are that were just counted.
    pub(super) fn attribute(&mut self, running: Running) {
        if let Some(newest) = &mut self.newest {
            newest.running = Arc::new(running);
        }
    }

    /// Counts, if the budget affords it; looks at all threads in any case if that is `wanted`, or if tasks waited the last
    /// time while CPUs were idle: it is to be known why. Gives what that showed.
    pub(super) fn count(
        &mut self,
        method: Method,
        online: &CpuSet,
        wanted: bool,
        budget: &mut Budget,
    ) -> Option<Arc<Scan>> {
        let now = Instant::now();
        let wanted = wanted || self.newest.as_ref().is_some_and(|newest| is_uneven(&newest.counts, online));
        let mut scan = None;
        let (source, counts) = loop {
            let source = self.choose(method, now)?;
            if !self.affords(source, wanted, now, budget) {
                return None;
            }
            let counts = match source {
                Source::Debug => self.read(method, online.len(), now),
                _ => {
                    scan = self.scan(now);
                    scan.as_ref().map(|scan| scan.counts())
                }
            };
            // Else there may be another source.
            if let Some(counts) = counts {
                break (source, counts);
            }
        };
        if wanted && scan.is_none() && self.threads.is_usable(now) {
            scan = self.scan(now);
        }
        let known = self.newest.take().and_then(|newest| newest.scan);
        self.newest = Some(Counted {
            source,
            counts: Arc::new(counts),
            scan: scan.clone().or(known),
            running: Arc::default(),
            taken_at: SystemTime::now(),
            at: Instant::now(),
        });
        scan
    }

    /// Whether there is enough in the budget for this source, and for a look at all threads where that is wanted besides.
    fn affords(&self, source: Source, wanted: bool, now: Instant, budget: &mut Budget) -> bool {
        let of = |way: &Way, is_used: bool| way.cost(now).filter(|_| is_used).unwrap_or_default();
        let scans = (source == Source::Threads || wanted) && self.threads.is_usable(now);
        budget.affords(of(&self.debug, source == Source::Debug) + of(&self.threads, scans))
    }

    /// The source that is best now. One whose cost is to be found out is.
    fn choose(&mut self, method: Method, now: Instant) -> Option<Source> {
        let debug = method != Method::Threads && self.debug.is_usable(now);
        let threads = method != Method::Debug && self.threads.is_usable(now);
        let chosen = match (debug, threads) {
            _ if method == Method::Estimate => None,
            (true, true) if self.debug.cost(now) <= self.threads.cost(now) => Some(Source::Debug),
            (_, true) => Some(Source::Threads),
            (true, false) => Some(Source::Debug),
            (false, false) => None,
        };
        if chosen.is_none() {
            self.newest = None;
        }
        chosen
    }

    fn scan(&mut self, now: Instant) -> Option<Arc<Scan>> {
        let scanner = &mut self.scanner;
        let failed = match self.threads.take(now, || scanner.scan()) {
            Ok(scan) => return Some(Arc::new(scan)),
            Err(failed) => failed,
        };
        if failed.is_first {
            tracing::warn!(error = %failed.error, "the states of threads cannot be told");
        }
        None
    }

    fn read(&mut self, method: Method, cpus: usize, now: Instant) -> Option<BTreeMap<Cpu, u32>> {
        let root = self.root;
        let Failed { error, is_first } = match self.debug.take(now, || debug::counts(root, cpus)) {
            Ok(counts) => return Some(counts),
            Err(failed) => failed,
        };
        // Most hosts do not let it be read, and there is another source.
        if is_first && method == Method::Debug {
            tracing::warn!(%error, "runnable tasks cannot be counted");
        } else if is_first {
            tracing::debug!(%error, "runnable tasks are counted otherwise");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const QUEUES: &str = "cpu#0\n  .nr_running  : 7\n  .curr->pid  : 5\n\n";

    /// A host of which one thread runs, and whose debug file may be read or not.
    fn host(debug: Option<&str>) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "proc/7/stat",
            "7 (x) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0",
        );
        if let Some(text) = debug {
            write("sys/kernel/debug/sched/debug", text);
        }
        root
    }

    /// Which source counted, what it counted on CPU 0, and whether all threads were looked at.
    fn count(counter: &mut Counter<'_>, method: Method, wanted: bool) -> Option<(Source, u32, bool)> {
        let mut budget = Budget::new();
        budget.settle(1e12);
        let scan = counter.count(method, &CpuSet::from(Cpu::from(0)), wanted, &mut budget);
        let newest = counter.newest()?;
        Some((newest.source, newest.counts[&Cpu::from(0)], scan.is_some()))
    }

    #[test]
    fn each_source_is_measured_and_the_cheaper_one_is_used() {
        let root = host(Some(QUEUES));
        let mut counter = Counter::new(root.path());
        assert_eq!(count(&mut counter, Method::Auto, true), Some((Source::Debug, 7, true)));
        let now = Instant::now();
        let cost = |counter: &mut Counter<'_>, debug, threads| {
            counter.debug.cost = Some((Duration::from_millis(debug), now));
            counter.threads.cost = Some((Duration::from_millis(threads), now));
        };
        cost(&mut counter, 1, 2);
        assert_eq!(count(&mut counter, Method::Auto, false), Some((Source::Debug, 7, false)));
        cost(&mut counter, 3, 2);
        assert_eq!(count(&mut counter, Method::Auto, false), Some((Source::Threads, 1, true)));
        cost(&mut counter, 3, 2);
        counter.debug.cost = None;
        assert_eq!(
            count(&mut counter, Method::Auto, false),
            Some((Source::Debug, 7, false)),
            "not known any more"
        );
        assert_eq!(count(&mut counter, Method::Threads, false), Some((Source::Threads, 1, true)));
        assert_eq!(count(&mut counter, Method::Debug, true), Some((Source::Debug, 7, true)));
        assert_eq!(count(&mut counter, Method::Estimate, true), None);
    }

    #[test]
    fn one_that_fails_is_left_alone_and_the_other_used_at_once() {
        let root = host(None);
        let mut counter = Counter::new(root.path());
        assert_eq!(count(&mut counter, Method::Auto, false), Some((Source::Threads, 1, true)));
        assert_eq!(count(&mut counter, Method::Debug, false), None);
        fs::create_dir_all(root.path().join("sys/kernel/debug/sched")).unwrap();
        fs::write(root.path().join("sys/kernel/debug/sched/debug"), QUEUES).unwrap();
        assert_eq!(count(&mut counter, Method::Auto, false), Some((Source::Threads, 1, true)));
        counter.debug.failed_at = Instant::now().checked_sub(TRY_AGAIN);
        assert_eq!(count(&mut counter, Method::Auto, false), Some((Source::Debug, 7, false)));
        // Threads are hidden, and the file tells all the same.
        fs::write(root.path().join("proc/loadavg"), "0 0 0 1/900 1\n").unwrap();
        counter.threads.cost = None;
        assert_eq!(count(&mut counter, Method::Auto, true), Some((Source::Debug, 7, false)));
        assert_eq!(count(&mut counter, Method::Threads, true), None);
    }

    #[test]
    fn nothing_is_counted_that_is_not_paid_for() {
        let root = host(Some(QUEUES));
        let mut counter = Counter::new(root.path());
        let mut budget = Budget::new();
        assert!(
            counter.count(Method::Auto, &CpuSet::from(Cpu::from(0)), false, &mut budget).is_none()
                && counter.newest().is_some()
        );
        let before = counter.newest().unwrap().at;
        counter.debug.cost = Some((Duration::from_secs(9), Instant::now()));
        counter.threads.cost = Some((Duration::from_secs(9), Instant::now()));
        counter.count(Method::Auto, &CpuSet::from(Cpu::from(0)), true, &mut budget);
        assert_eq!(counter.newest().unwrap().at, before);
    }
}
