//! What a process of this host may do.

use crate::ingest::process::{is_alive, with_pid};
use berth_model::hold::Process;
use std::{fs, path::Path};

/// What `/proc/PID/status` says of a process's rights.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) effective_uid: u32,
    pub(super) groups: Vec<u32>,
}

/// The process of this host that has this pid now. None if there is none, or its files cannot be read.
pub(super) fn of_host(pid: u32) -> Option<Process> {
    with_pid(Path::new("/"), pid).ok().flatten()
}

/// Whether it is known to run still.
pub(super) fn lives(process: Process) -> bool {
    is_alive(Path::new("/"), process).unwrap_or(false)
}

/// A file of its folder in `/proc`, if it was still there after the file was read: what was read is then its own, and not
/// that of a later process with the same pid.
pub(super) fn file(process: Process, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{}/{name}", process.pid)).ok()?;
    lives(process).then_some(text)
}

/// Its rights now.
pub(super) fn credentials(process: Process) -> Option<Credentials> {
    parse(&file(process, "status")?)
}

fn parse(status: &str) -> Option<Credentials> {
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
    fn rights_of_a_process() {
        let status = "Name:\tx\nUid:\t1000\t33\t0\t0\nGid:\t5\t6\t7\t8\nGroups:\t4 27 1000 \n";
        assert_eq!(parse(status), Some(Credentials { effective_uid: 33, groups: vec![4, 27, 1000] }));
        assert_eq!(parse("Uid:\t0\t0\t0\t0\nGroups:\t \n").unwrap().groups, Vec::<u32>::new());
        assert_eq!(parse("Uid:\t0\n"), None);
    }

    #[test]
    fn this_process_is_alive_and_another_of_its_pid_is_not() {
        let this = of_host(std::process::id()).unwrap();
        assert!(lives(this) && credentials(this).is_some());
        let earlier = Process { start_time: this.start_time - 1, ..this };
        assert!(!lives(earlier) && credentials(earlier).is_none());
    }
}
