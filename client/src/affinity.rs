//! Affinity masks of processes of this host.

use std::fs;

use berth_model::CpuSet;
use rustix::{process::Pid, thread};

/// Why a mask cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The CPU is beyond those that can be named.
    #[error("CPU {number} is beyond the {most} that it can name")]
    TooLarge {
        /// The CPU.
        number: usize,
        /// How many can be named.
        most: usize,
    },
    /// The system refuses.
    #[error("{0}")]
    Refused(rustix::io::Errno),
}

/// Sets the mask of a thread, which the processes and threads that it starts from then on inherit. `None`: this thread.
///
/// # Errors
///
/// The system refuses, or a CPU is beyond those that can be named.
#[doc(alias = "sched_setaffinity")]
pub(crate) fn set(of: Option<Pid>, cpus: &CpuSet) -> Result<(), Error> {
    let mut mask = thread::CpuSet::new();
    for cpu in cpus {
        let number = usize::try_from(cpu.number()).unwrap_or(usize::MAX);
        if number >= thread::CpuSet::MAX_CPU {
            return Err(Error::TooLarge { number, most: thread::CpuSet::MAX_CPU });
        }
        mask.set(number);
    }
    thread::sched_setaffinity(of, &mask).map_err(Error::Refused)
}

/// The mask of a process's first thread, of any size. `None`: there is no such process, or it cannot be seen.
pub(crate) fn of(pid: u32) -> Option<CpuSet> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    CpuSet::parse(list.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Cpu;

    #[test]
    fn what_is_set_is_seen() {
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let before = of(sleeper.id()).unwrap();
        let one: CpuSet = before.first().into_iter().collect();
        let pid = Pid::from_raw(i32::try_from(sleeper.id()).unwrap());
        let set = set(pid, &one);
        let after = of(sleeper.id());
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!((set, after), (Ok(()), Some(one)));
        assert_eq!(of(u32::MAX), None);
    }

    #[test]
    fn what_cannot_be_named_is_refused() {
        let far: CpuSet = Cpu::try_new(5000).into_iter().collect();
        assert_eq!(set(None, &far), Err(Error::TooLarge { number: 5000, most: 1024 }));
    }
}
