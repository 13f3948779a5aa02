//! The scheduler's debug file: how many tasks each run queue holds, as the kernel itself counts them.
//!
//! The kernel writes a line for every thread of the host into it, and walks all of them once for each CPU, so it is for
//! small hosts; what it costs is measured.

use berth_model::cpuset::Cpu;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Where it lies: since v5.13, and before.
const FILES: [&str; 2] = ["sys/kernel/debug/sched/debug", "proc/sched_debug"];
/// The kernel walks this many threads in some 10 ms; where it would be more, the file is not even tried.
const MOST: usize = 1 << 20;
/// The first PID namespace, by the number that the kernel gives it.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Why there are no counts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not there, or may not be read.
    #[error("the scheduler's debug file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It tells of no run queue.
    #[error("{0} tells of no run queue")]
    Empty(PathBuf),
    /// The threads of this process cannot be told from others by the numbers in it.
    #[error("this process is in a PID namespace, the scheduler's debug file is not")]
    Namespace,
    /// It would cost too much.
    #[error("{threads} threads on {cpus} CPUs are too many for the scheduler's debug file")]
    TooLarge {
        /// Threads of the host.
        threads: usize,
        /// Its CPUs.
        cpus: usize,
    },
}

/// One run queue.
#[doc(alias = "rq")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// Its runnable tasks, the running one included.
    #[doc(alias = "nr_running")]
    pub runnable: u32,
    /// The running one, by its number in the first PID namespace; 0 if the CPU is idle.
    #[doc(alias = "curr->pid")]
    pub running: u32,
}

/// Runnable tasks on each CPU. Those that wait are counted whosever they are; those that run, if they are not threads of
/// this process, of which one is running: it reads the file.
///
/// # Errors
///
/// If the file is not there, may not be read, or is not to be read on this host.
pub fn counts(root: &Path, cpus: usize) -> Result<BTreeMap<Cpu, u32>, Error> {
    if fs::read_link(root.join("proc/self/ns/pid")).is_ok_and(|name| name.as_os_str() != FIRST_NAMESPACE) {
        return Err(Error::Namespace);
    }
    let loadavg = fs::read_to_string(root.join("proc/loadavg")).unwrap_or_default();
    let threads = super::scan::threads_of_host(&loadavg).unwrap_or(0);
    if threads.saturating_mul(cpus) > MOST {
        return Err(Error::TooLarge { threads, cpus });
    }
    let (path, text) = read(root)?;
    let queues = parse(&text);
    if queues.is_empty() {
        return Err(Error::Empty(path));
    }
    let is_own = |tid: u32| tid > 0 && root.join(format!("proc/self/task/{tid}")).exists();
    let count = |queue: Queue| queue.runnable.saturating_sub(u32::from(is_own(queue.running)));
    Ok(queues.into_iter().map(|(cpu, queue)| (cpu, count(queue))).collect())
}

fn read(root: &Path) -> io::Result<(PathBuf, Vec<u8>)> {
    let [newer, older] = FILES.map(|file| root.join(file));
    match fs::read(&newer) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::read(&older).map(|text| (older, text)),
        read => read.map(|text| (newer, text)),
    }
}

/// The run queues in the text, of any kernel since v5.3.
///
/// The name of a task may hold line breaks, and be anything that fits into 15 bytes. It cannot pass for a queue: its
/// first line is followed by that of its tasks at once, and a line with a name in it goes on after the name.
#[doc(alias = "print_cpu")]
pub fn parse(text: &[u8]) -> BTreeMap<Cpu, Queue> {
    let mut queues = BTreeMap::new();
    let mut lines = text.split(|&b| b == b'\n').peekable();
    while let Some(line) = lines.next() {
        let Some(cpu) = cpu(line) else { continue };
        let Some(runnable) = lines.peek().and_then(|line| value(line, "nr_running")) else { continue };
        let fields = std::iter::from_fn(|| lines.next_if(|line| line.starts_with(b"  .")));
        let running = fields.filter_map(|line| value(line, "curr->pid")).last();
        if let Some(running) = running {
            queues.insert(cpu, Queue { runnable, running });
        }
    }
    queues
}

/// `cpu#12, 2599.998 MHz`, and `cpu#12` on machines that are not x86.
fn cpu(line: &[u8]) -> Option<Cpu> {
    let line = std::str::from_utf8(line.strip_prefix(b"cpu#")?).ok()?;
    let (number, rest) = line.split_once(',').unwrap_or((line, " MHz"));
    let is_number = number.bytes().all(|b| b.is_ascii_digit()) && rest.ends_with(" MHz");
    number.parse().ok().filter(|_| is_number).and_then(Cpu::try_new)
}

/// The number in `  .nr_running                    : 4`.
fn value(line: &[u8], name: &str) -> Option<u32> {
    let line = std::str::from_utf8(line).ok()?;
    let (key, value) = line.strip_prefix("  .")?.split_once(':')?;
    if key.trim_end() != name { None } else { value.trim().parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As Linux 5.4 writes it, on a host of which CPU 1 is offline.
    const V5_4: &str = "Sched Debug Version: v0.11, 5.4.0-182-generic #202-Ubuntu
ktime                                   : 4210.123456
sysctl_sched
  .sysctl_sched_latency                    : 24.000000
  .sysctl_sched_features                   : 2059067
  .sysctl_sched_tunable_scaling            : 1 (logarithmic)

cpu#0, 2100.000 MHz
  .nr_running                    : 3
  .nr_load                       : 3072
  .nr_switches                   : 1810
  .nr_load_updates               : 0
  .nr_uninterruptible            : -12
  .next_balance                  : 4296.020304
  .curr->pid                     : 0
  .clock                         : 4210.099000
  .cpu_load[0]                   : 1024

cfs_rq[0]:/
  .exec_clock                    : 0.000000
  .nr_running                    : 7
  .curr->pid                     : 99

runnable tasks:
 S            task   PID         tree-key  switches  prio     wait-time             sum-exec        sum-sleep
-------------------------------------------------------------------------------------------------------------
 R            stress  1501       512.031001        12   120         0.000000       300.010000         0.000000 0 0 /
>R            stress  1502       512.031002        12   120         0.000000       300.010000         0.000000 0 0 /

cpu#2, 2100.000 MHz
  .nr_running                    : 0
  .curr->pid                     : 0

";

    /// As Linux 6.1 writes it on arm64.
    const V6_1: &str = "Sched Debug Version: v0.11, 6.1.0-47-arm64 #1
cpu#0
  .nr_running                    : 1
  .nr_switches                   : 18101
  .nr_uninterruptible            : 5
  .next_balance                  : 4296.020304
  .curr->pid                     : 812
  .clock                         : 4210.099000
  .clock_task                    : 4210.099000
  .avg_idle                      : 1000000
  .max_idle_balance_cost         : 500000

cpu#1
  .nr_running                    : 12
  .curr->pid                     : 4194303
";

    /// As Linux 6.18 writes it.
    const V6_18: &str = include_str!("../../../tests/data/sched-debug-6.18");

    fn told(text: &str) -> Vec<(u32, u32, u32)> {
        let queues = parse(text.as_bytes());
        queues.into_iter().map(|(cpu, queue)| (cpu.number(), queue.runnable, queue.running)).collect()
    }

    #[test]
    fn as_kernels_write_it() {
        assert_eq!(told(V5_4), [(0, 3, 0), (2, 0, 0)]);
        assert_eq!(told(V6_1), [(0, 1, 812), (1, 12, 4_194_303)]);
        assert_eq!(told(V6_18), [(0, 10, 8844), (1, 1, 19_428)]);
        assert_eq!(told(""), []);
        assert_eq!(told(&V6_1.replace("curr->pid", "current")), []);
    }

    /// Names of tasks that look like a queue.
    #[test]
    fn names_do_not_mislead() {
        for name in [
            "\ncpu#9\n  .nr_ru",
            "\ncpu#9, 1 MHz",
            "\ncpu#9\n",
            "\n .nr_running:",
            "\n\ncpu#9 MHz\n",
            "\n .curr->pid:9",
        ] {
            assert!(name.len() < 16);
            let text = V5_4.replace(" R            stress ", &format!(" R {name:>15} "));
            assert_ne!(text, V5_4);
            assert_eq!(told(&text), told(V5_4), "{name:?}");
        }
    }

    #[test]
    fn where_it_lies_and_when_it_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let counts = |cpus| {
            let counts = counts(root.path(), cpus);
            counts.map(|counts| {
                counts.into_iter().map(|(cpu, count)| (cpu.number(), count)).collect::<Vec<_>>()
            })
        };
        assert!(matches!(counts(2), Err(Error::Io(_))));
        write(FILES[1], V5_4);
        assert_eq!(counts(2).unwrap(), [(0, 3), (2, 0)]);
        write(FILES[0], V6_1);
        assert_eq!(counts(2).unwrap(), [(0, 1), (1, 12)]);
        // What of this process runs does not count.
        write("proc/self/task/812/stat", "");
        assert_eq!(counts(2).unwrap(), [(0, 0), (1, 12)]);
        write("proc/loadavg", "0.1 0.1 0.1 1/20000 11206\n");
        assert_eq!(counts(52).unwrap().len(), 2);
        assert!(matches!(counts(53), Err(Error::TooLarge { threads: 20_000, cpus: 53 })));
        write("proc/loadavg", "\n");
        write(FILES[0], "Sched Debug Version: v0.12\n");
        assert!(matches!(counts(2), Err(Error::Empty(path)) if path.ends_with(FILES[0])));
        fs::create_dir_all(root.path().join("proc/self/ns")).unwrap();
        std::os::unix::fs::symlink("pid:[4026532999]", root.path().join("proc/self/ns/pid")).unwrap();
        assert!(matches!(counts(2), Err(Error::Namespace)));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            parse(&bytes);
        }

        /// Whatever a task is called.
        #[test]
        fn any_name(name in prop::collection::vec(any::<u8>(), 0..16)) {
            let (before, after) = V5_4.split_once("stress").unwrap();
            let text = [before.as_bytes(), &name, after.as_bytes()].concat();
            prop_assert_eq!(parse(&text), parse(V5_4.as_bytes()));
        }
    }
}
