//! A process of this host, told from a later one that has its pid.

use std::{fs, path::PathBuf};

/// A process: its pid, and when it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Process {
    /// Its pid in this process's pid namespace.
    pub(crate) pid: u32,
    /// Its start time in clock ticks after boot, field 22 of `/proc/PID/stat`.
    pub(crate) start_time: u64,
}

/// What `/proc/PID/status` says of a process's rights.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) effective_uid: u32,
    pub(super) groups: Vec<u32>,
}

impl Process {
    /// The process that has this pid now. None if there is none, or its files cannot be read.
    pub(crate) fn with_pid(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(folder(pid).join("stat")).ok()?;
        Some(Self { pid, start_time: start_time(&stat)? })
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(self) -> bool {
        Self::with_pid(self.pid) == Some(self)
    }

    /// A file of its folder in `/proc`, if it was still there after the file was read: what was read is then its own,
    /// and not that of a later process with the same pid.
    pub(super) fn file(self, name: &str) -> Option<String> {
        let text = fs::read_to_string(folder(self.pid).join(name)).ok()?;
        self.is_alive().then_some(text)
    }

    pub(super) fn credentials(self) -> Option<Credentials> {
        credentials(&self.file("status")?)
    }
}

fn folder(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// The second field, the name, may itself hold spaces and parentheses.
fn start_time(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn credentials(status: &str) -> Option<Credentials> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    // Real, effective, saved, and that of the file system.
    let effective_uid = field("Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let groups = field("Groups:")?.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(Credentials { effective_uid, groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_mislead() {
        let stat = "12 (a) 7 (b c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(start_time(stat), Some(4711));
        assert_eq!(start_time("12 (cut"), None);
    }

    #[test]
    fn rights_of_a_process() {
        let status = "Name:\tx\nUid:\t1000\t33\t0\t0\nGid:\t5\t6\t7\t8\nGroups:\t4 27 1000 \n";
        assert_eq!(credentials(status), Some(Credentials { effective_uid: 33, groups: vec![4, 27, 1000] }));
        assert_eq!(credentials("Uid:\t0\t0\t0\t0\nGroups:\t \n").unwrap().groups, Vec::<u32>::new());
        assert_eq!(credentials("Uid:\t0\n"), None);
    }

    #[test]
    fn this_process_is_alive_and_another_of_its_pid_is_not() {
        let this = Process::with_pid(std::process::id()).unwrap();
        assert!(this.is_alive() && this.credentials().is_some());
        let earlier = Process { start_time: this.start_time - 1, ..this };
        assert!(!earlier.is_alive() && earlier.credentials().is_none());
    }
}
