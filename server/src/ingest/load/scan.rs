//! Every runnable task of the host, from the states of all threads.
//!
//! A process whose threads used no CPU time since they were last read, and of which none ran then, is not read thread
//! by thread: the kernel adds their times up faster than it tells of each. What can be missed is a thread that has
//! run for less than one clock tick (10 ms) since.

use super::task::Task;
use berth_model::{cpuset::Cpu, hold::Process};
use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Instant,
};

/// More than this part of the host's threads has to be seen.
const SEEN: f64 = 0.9;
/// So many threads may come and go while they are read.
const MAY_PASS: usize = 64;
/// Longer than any line of `/proc/PID/stat`.
const LINE: usize = 2048;

/// Why there are no counts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `/proc` cannot be read.
    #[error("/proc cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It shows no process at all.
    #[error("/proc shows no process")]
    Empty,
    /// Some threads are hidden: by a PID namespace, or by a `/proc` mounted with `hidepid`.
    #[error(
        "only {seen} of {all} threads can be seen (a PID namespace, or /proc mounted with hidepid, hides the others)"
    )]
    Hidden {
        /// Threads that were seen.
        seen: usize,
        /// Threads that the host has.
        all: usize,
    },
}

/// A runnable task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Runnable {
    /// The process that it is a thread of.
    pub process: Process,
    /// Its own number.
    pub tid: u32,
    /// The CPU that it runs on or waits for.
    pub cpu: Cpu,
}

/// What one look at all threads shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scan {
    /// The runnable tasks by process, those of one beside each other; not those of the process to leave out.
    pub runnable: Vec<Runnable>,
    /// The share of time that real-time and deadline tasks used on each CPU since the scan before; nothing in the
    /// first one. CPUs not named: none.
    pub realtime: Option<BTreeMap<Cpu, f64>>,
    /// Every process that is not the kernel's own, each with its parent, by number.
    pub processes: Vec<(u32, u32)>,
}

impl Scan {
    /// Runnable tasks on each CPU; CPUs not named have none.
    pub fn counts(&self) -> BTreeMap<Cpu, u32> {
        let mut counts = BTreeMap::new();
        for task in &self.runnable {
            *counts.entry(task.cpu).or_default() += 1;
        }
        counts
    }

    /// A process and those that it descends from, the nearest first. One whose parent has ended is another's child by now.
    pub fn line_of(&self, pid: u32) -> impl Iterator<Item = u32> {
        let parent = |pid: &u32| {
            let at = self.processes.binary_search_by_key(pid, |(pid, _)| *pid).ok()?;
            Some(self.processes[at].1)
        };
        // What was read while processes came and went may even lead round.
        std::iter::successors(Some(pid), parent).take(self.processes.len() + 1)
    }

    /// Whether it is not the kernel's own.
    pub fn is_users(&self, pid: u32) -> bool {
        self.processes.binary_search_by_key(&pid, |(pid, _)| *pid).is_ok()
    }

    /// The runnable tasks of one process.
    pub fn of(&self, process: Process) -> &[Runnable] {
        let from = self.runnable.partition_point(|task| task.process < process);
        let len = self.runnable[from..].partition_point(|task| task.process == process);
        &self.runnable[from..from + len]
    }
}

/// What a process was like when it was last read thread by thread.
#[derive(Debug, Clone, Copy)]
struct Known {
    start_time: u64,
    ticks: u64,
    threads: u32,
    ran: bool,
    /// The scan that saw it.
    scan: u64,
}

/// A real-time task's time, and the scan that saw it.
#[derive(Debug, Clone, Copy)]
struct Realtime {
    pid: u32,
    start_time: u64,
    ticks: u64,
    scan: u64,
}

/// Looks at all threads, again and again.
#[derive(Debug)]
pub struct Scanner {
    root: PathBuf,
    /// The process whose threads do not count.
    own: u32,
    known: HashMap<u32, Known>,
    realtime: HashMap<u32, Realtime>,
    scans: u64,
    last: Option<Instant>,
    line: Vec<u8>,
}

impl Scanner {
    /// Will read `proc` below `root`, and leave the process `own` out.
    pub fn new(root: &Path, own: u32) -> Self {
        Self {
            root: root.join("proc"),
            own,
            known: HashMap::new(),
            realtime: HashMap::new(),
            scans: 0,
            last: None,
            line: vec![0; LINE],
        }
    }

    /// Looks once.
    ///
    /// # Errors
    ///
    /// If `/proc` cannot be read, or does not show all threads.
    pub fn scan(&mut self) -> Result<Scan, Error> {
        let now = Instant::now();
        let mut look = Look { scan: Scan::default(), realtime_ticks: BTreeMap::new(), threads: 0 };
        self.scans += 1;
        let proc = folder(CWD, &self.root)?;
        for pid in numbers(&proc)? {
            self.process(&proc, pid, &mut look);
        }
        self.known.retain(|_, known| known.scan == self.scans);
        // Those of a process that was not read thread by thread are still there.
        self.realtime.retain(|_, task| task.scan == self.scans || self.known.contains_key(&task.pid));
        self.are_all(look.threads)?;

        let Look { mut scan, realtime_ticks, .. } = look;
        scan.runnable.sort_unstable();
        scan.processes.sort_unstable();
        let before = self.last.replace(now);
        scan.realtime = before.map(|before| {
            let ticks = now.duration_since(before).as_secs_f64() * ticks_per_second();
            realtime_ticks.into_iter().map(|(cpu, used)| (cpu, (used / ticks).min(1.0))).collect()
        });
        Ok(scan)
    }

    fn process(&mut self, proc: &OwnedFd, pid: u32, look: &mut Look) {
        // It may have ended since its number was read.
        let Some(first) = read(proc, &format!("{pid}/stat"), &mut self.line) else { return };
        let threads = usize::try_from(first.threads).unwrap_or(usize::MAX);
        look.threads = look.threads.saturating_add(threads);
        if pid == self.own {
            return;
        }
        if !first.is_kernel {
            look.scan.processes.push((pid, first.parent));
        }
        let process = Process { pid, start_time: first.start_time };
        let ran = if first.threads == 1 {
            self.task(process, &first, look)
        } else {
            let known = self.known.get(&pid).filter(|known| {
                let Known { start_time, ticks, threads, ran, scan: _ } = **known;
                !ran && (start_time, ticks, threads) == (first.start_time, first.ticks, first.threads)
            });
            // One whose first thread runs is not as it was.
            if known.is_some() && !first.is_runnable() && !first.is_realtime {
                false
            } else {
                self.threads(proc, process, look)
            }
        };
        let Task { start_time, ticks, threads, .. } = first;
        if threads > 1 {
            self.known.insert(pid, Known { start_time, ticks, threads, ran, scan: self.scans });
        }
    }

    /// Reads every thread of a process. Says whether one is runnable.
    fn threads(&mut self, proc: &OwnedFd, process: Process, look: &mut Look) -> bool {
        let Ok(tasks) = folder(proc, Path::new(&format!("{}/task", process.pid))) else { return false };
        let mut ran = false;
        for tid in numbers(&tasks).unwrap_or_default() {
            if let Some(task) = read(&tasks, &format!("{tid}/stat"), &mut self.line) {
                ran |= self.task(process, &task, look);
            }
        }
        ran
    }

    /// Takes note of one thread. Says whether it is runnable.
    fn task(&mut self, process: Process, task: &Task, look: &mut Look) -> bool {
        let Task { tid, cpu, ticks, start_time, .. } = *task;
        if task.is_realtime {
            let now = Realtime { pid: process.pid, start_time, ticks, scan: self.scans };
            let before = self.realtime.insert(tid, now).filter(|before| before.start_time == start_time);
            let used = before.map_or(0, |before| ticks.saturating_sub(before.ticks));
            if used > 0 {
                *look.realtime_ticks.entry(cpu).or_default() += u32::try_from(used).map_or(0.0, f64::from);
            }
        }
        if task.is_runnable() {
            look.scan.runnable.push(Runnable { process, tid, cpu });
        }
        task.is_runnable()
    }

    /// The kernel counts the threads of the whole host, whoever asks.
    fn are_all(&self, seen: usize) -> Result<(), Error> {
        if seen == 0 {
            return Err(Error::Empty);
        }
        let text = fs::read_to_string(self.root.join("loadavg")).unwrap_or_default();
        let Some(all) = threads_of_host(&text) else { return Ok(()) };
        #[allow(clippy::cast_precision_loss, reason = "threads are fewer than 2^52")]
        let least = (all as f64) * SEEN;
        #[allow(clippy::cast_precision_loss, reason = "threads are fewer than 2^52")]
        if ((seen + MAY_PASS) as f64) < least {
            return Err(Error::Hidden { seen, all });
        }
        Ok(())
    }
}

struct Look {
    scan: Scan,
    realtime_ticks: BTreeMap<Cpu, f64>,
    /// Threads seen, the own ones included.
    threads: usize,
}

/// `0.20 0.18 0.12 1/80 11206`: of 80 threads 1 is runnable.
pub(super) fn threads_of_host(loadavg: &str) -> Option<usize> {
    loadavg.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn ticks_per_second() -> f64 {
    let ticks = rustix::param::clock_ticks_per_second();
    u32::try_from(ticks).map_or(100.0, f64::from)
}

fn folder(at: impl std::os::fd::AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(at, path, flags, Mode::empty())?)
}

/// The entries of a folder that are numbers.
fn numbers(folder: &OwnedFd) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in Dir::read_from(folder)? {
        let Ok(entry) = entry else { break };
        numbers.extend(entry.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(numbers)
}

/// Reads one thread's line into a buffer that is used again and again.
fn read(at: &OwnedFd, path: &str, line: &mut [u8]) -> Option<Task> {
    let file = openat(at, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    // The kernel gives such a file at once.
    let len = rustix::io::read(&file, &mut *line).ok()?;
    Task::parse(line.get(..len)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// One thread: process, number, state, CPU, ticks, policy.
    type Line = (u32, u32, char, u32, u64, u32);

    /// A `/proc` with these threads. The first of each process comes first.
    fn write(root: &TempDir, lines: &[Line]) {
        let proc = root.path().join("proc");
        let _ = fs::remove_dir_all(&proc);
        for &(pid, tid, state, cpu, ticks, policy) in lines {
            let of_process = || lines.iter().filter(|line| line.0 == pid);
            let all: u64 = of_process().map(|line| line.4).sum();
            let line = |ticks: u64| {
                let threads = of_process().count();
                format!(
                    "{tid} (a b) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 {threads} 0 50 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 {policy} 0"
                )
            };
            let task = proc.join(format!("{pid}/task/{tid}"));
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("stat"), line(ticks)).unwrap();
            if pid == tid {
                fs::write(proc.join(format!("{pid}/stat")), line(all)).unwrap();
            }
        }
    }

    fn counts(scan: &Scan) -> Vec<(u32, u32)> {
        scan.counts().into_iter().map(|(cpu, tasks)| (cpu.number(), tasks)).collect()
    }

    #[test]
    fn runnable_tasks_of_all_but_the_own_process() {
        let root = tempfile::tempdir().unwrap();
        let mut lines =
            vec![(7, 7, 'R', 0, 5, 0), (8, 8, 'S', 1, 5, 0), (8, 9, 'R', 1, 5, 0), (8, 10, 'R', 3, 5, 0)];
        lines.extend([(20, 20, 'R', 3, 1, 0), (20, 21, 'R', 3, 1, 0), (30, 30, 'Z', 2, 0, 0)]);
        write(&root, &lines);
        let mut scanner = Scanner::new(root.path(), 20);
        let scan = scanner.scan().unwrap();
        assert_eq!(counts(&scan), [(0, 1), (1, 1), (3, 1)]);
        let tids = |pid| {
            let tasks = scan.of(Process { pid, start_time: 50 });
            tasks.iter().map(|task| task.tid).collect::<Vec<_>>()
        };
        assert_eq!((tids(8), tids(7), tids(20)), (vec![9, 10], vec![7], vec![]));
        assert_eq!((scan.realtime, scan.processes.len()), (None, 3));
    }

    /// A process that used no time is not read thread by thread, and is as soon as it did.
    #[test]
    fn quiet_processes() {
        let root = tempfile::tempdir().unwrap();
        let with = |state, ticks| [(8, 8, 'S', 1, 5, 0), (8, 9, state, 2, ticks, 0)];
        let mut scanner = Scanner::new(root.path(), 1);
        write(&root, &with('S', 4));
        assert_eq!(counts(&scanner.scan().unwrap()), []);
        write(&root, &with('R', 4));
        assert_eq!(counts(&scanner.scan().unwrap()), [], "not read, since its time stands still");
        write(&root, &with('R', 5));
        assert_eq!(counts(&scanner.scan().unwrap()), [(2, 1)]);
        assert_eq!(counts(&scanner.scan().unwrap()), [(2, 1)], "what ran is read again");
        write(&root, &with('S', 5));
        assert_eq!(counts(&scanner.scan().unwrap()), []);
        // Another process of the same number.
        write(&root, &[(8, 8, 'R', 1, 5, 0)]);
        assert_eq!(counts(&scanner.scan().unwrap()), [(1, 1)]);
    }

    #[test]
    fn shares_of_realtime_tasks() {
        let root = tempfile::tempdir().unwrap();
        let mut scanner = Scanner::new(root.path(), 1);
        write(&root, &[(7, 7, 'S', 3, 1_000, 1), (8, 8, 'S', 2, 1_000, 0)]);
        assert_eq!(scanner.scan().unwrap().realtime, None);
        write(&root, &[(7, 7, 'S', 3, 900_000, 1), (8, 8, 'S', 2, 900_000, 0), (9, 9, 'S', 1, 900_000, 6)]);
        let realtime = scanner.scan().unwrap().realtime.unwrap();
        assert_eq!(realtime, BTreeMap::from([(Cpu::from(3), 1.0)]), "of the one that was there before");
        let realtime = scanner.scan().unwrap().realtime.unwrap();
        assert_eq!(realtime, BTreeMap::new());
    }

    #[test]
    fn what_hides_threads_is_said() {
        let root = tempfile::tempdir().unwrap();
        let mut scanner = Scanner::new(root.path(), 1);
        assert!(matches!(scanner.scan(), Err(Error::Io(_))));
        write(&root, &[(7, 7, 'S', 3, 0, 0)]);
        let loadavg = |text: &str| fs::write(root.path().join("proc/loadavg"), text).unwrap();
        loadavg("0.20 0.18 0.12 1/60 11206\n");
        assert!(scanner.scan().is_ok());
        loadavg("0.20 0.18 0.12 1/600 11206\n");
        assert!(matches!(scanner.scan(), Err(Error::Hidden { seen: 1, all: 600 })));
        loadavg("nothing that is known\n");
        assert!(scanner.scan().is_ok());
    }

    /// This host: a thread that never sleeps is counted, where it is.
    #[test]
    fn a_busy_thread_of_this_host() {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = std::sync::Arc::clone(&stop);
        let busy = std::thread::spawn(move || {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let own = std::process::id();
        let count = |left_out| match Scanner::new(Path::new("/"), left_out).scan() {
            Ok(scan) => scan.runnable.iter().filter(|task| task.process.pid == own).count(),
            Err(Error::Hidden { seen, all }) => {
                println!("skipped: {seen} of {all} threads can be seen");
                usize::MAX
            }
            Err(error) => panic!("{error}"),
        };
        let (all, none) = (count(0), count(own));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        busy.join().unwrap();
        assert!(all == usize::MAX || (all >= 2 && none == 0), "{all} and {none}");
    }
}
