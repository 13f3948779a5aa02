//! One thread as `/proc/PID/task/TID/stat` tells it.

use berth_model::cpuset::Cpu;

/// A thread of the kernel's own.
const PF_KTHREAD: u64 = 0x0020_0000;

/// One thread. In `/proc/PID/stat` it is the process' first one, but for `ticks`, which there are those of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub tid: u32,
    /// The process that its process is a child of.
    pub parent: u32,
    /// The letter of its state, such as `R` or `S`.
    pub state: char,
    /// The CPU that it is on, or was on last.
    #[doc(alias = "task_cpu")]
    pub cpu: Cpu,
    /// CPU time it has used, kernel time included, in clock ticks.
    pub ticks: u64,
    /// Threads of its process.
    pub threads: u32,
    /// When it was started, in clock ticks after boot.
    pub start_time: u64,
    /// It has a real-time or deadline policy.
    pub is_realtime: bool,
    /// It is the kernel's own.
    pub is_kernel: bool,
}

impl Task {
    /// Reads the line. Nothing if it is none.
    #[doc(alias = "do_task_stat")]
    pub fn parse(line: &[u8]) -> Option<Self> {
        // The name in parentheses may hold anything, parentheses and white space included.
        let (open, close) = (line.iter().position(|&b| b == b'(')?, line.iter().rposition(|&b| b == b')')?);
        let tid = std::str::from_utf8(line.get(..open)?).ok()?.trim().parse().ok()?;
        let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
        let mut words = rest.split_ascii_whitespace();
        // `nth` counts from the word after the last one taken; the numbers are those of proc(5).
        let state = words.next()?.chars().next()?; // 3
        let parent = words.next()?.parse().ok()?; // 4
        let flags: u64 = words.nth(4)?.parse().ok()?; // 9
        let user: u64 = words.nth(4)?.parse().ok()?; // 14
        let system: u64 = words.next()?.parse().ok()?; // 15
        let threads = words.nth(4)?.parse().ok()?; // 20
        let start_time = words.nth(1)?.parse().ok()?; // 22
        let cpu = Cpu::try_new(words.nth(16)?.parse().ok()?)?; // 39
        let policy: u32 = words.nth(1)?.parse().ok()?; // 41
        Some(Self {
            tid,
            parent,
            state,
            cpu,
            ticks: user.saturating_add(system),
            threads,
            start_time,
            // SCHED_FIFO, SCHED_RR, SCHED_DEADLINE.
            is_realtime: matches!(policy, 1 | 2 | 6),
            is_kernel: flags & PF_KTHREAD != 0,
        })
    }

    /// Running or waiting for its CPU.
    pub fn is_runnable(&self) -> bool {
        self.state == 'R'
    }

    /// It has ended, and only its entry is left.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A line as the kernel writes it.
    fn line(tid: u32, name: &str, state: char, flags: u64, ticks: [u64; 2], cpu: u32, policy: u32) -> String {
        let [user, system] = ticks;
        format!(
            "{tid} ({name}) {state} 1 {tid} {tid} 0 -1 {flags} 10 0 0 0 {user} {system} 0 0 20 0 7 0 4242 1000000 500 18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 {cpu} 0 {policy} 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    #[test]
    fn fields_are_where_proc_5_has_them() {
        let text = line(77, "a (b) R 9) c", 'R', PF_KTHREAD | 0x40, [3, 4], 639, 1);
        let task = Task::parse(text.as_bytes()).unwrap();
        let expected = Task {
            tid: 77,
            parent: 1,
            state: 'R',
            cpu: Cpu::from(639),
            ticks: 7,
            threads: 7,
            start_time: 4242,
            is_realtime: true,
            is_kernel: true,
        };
        assert_eq!(task, expected);
    }

    #[test]
    fn this_thread() {
        let task = Task::parse(&std::fs::read("/proc/thread-self/stat").unwrap()).unwrap();
        assert!(task.is_runnable() && !task.is_kernel && task.threads > 0 && task.start_time > 0, "{task:?}");
    }

    proptest! {
        /// Whatever a task is called, it is read rightly.
        #[test]
        fn any_name(name in ".{0,15}", cpu in 0u32..65_536, policy in 0u32..8) {
            let text = line(5_000_000, &name, 'S', 0, [1, 2], cpu, policy);
            let task = Task::parse(text.as_bytes()).unwrap();
            prop_assert_eq!((task.tid, task.cpu.number(), task.is_runnable()), (5_000_000, cpu, false));
            prop_assert_eq!(task.is_realtime, [1, 2, 6].contains(&policy));
        }

        /// Nothing that is read makes it panic, and what is cut off before the policy is no line.
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0usize..120) {
            let _ = Task::parse(&bytes);
            let text = line(7, "x", 'R', 0, [1, 2], 3, 0);
            prop_assert_eq!(Task::parse(&text.as_bytes()[..cut.min(100)]), None);
        }
    }
}
