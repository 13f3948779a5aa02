//! Processes of the host, each told from a later one that has its number.

use super::load::task::Task;
use berth_model::hold::Process;
use rustix::io::Errno;
use std::{fs, io, path::Path};

/// The process that has this pid now, below `root`, which is `/` but in tests. Nothing if there is none, or it has ended.
///
/// # Errors
///
/// If it cannot be told: what cannot be read may well be alive.
pub fn with_pid(root: &Path, pid: u32) -> io::Result<Option<Process>> {
    let Some(line) = unless_gone(fs::read(root.join(format!("proc/{pid}/stat"))))? else { return Ok(None) };
    let first = Task::parse(&line).ok_or(io::ErrorKind::InvalidData)?;
    // An ended process keeps its entry until its parent has taken note. One whose first thread has ended still runs as
    // long as it has others.
    let is_alive = !first.is_dead() || first.threads > 1;
    Ok(is_alive.then_some(Process { pid, start_time: first.start_time }))
}

/// Whether it still runs.
///
/// # Errors
///
/// As [`with_pid`].
pub fn is_alive(root: &Path, process: Process) -> io::Result<bool> {
    Ok(with_pid(root, process.pid)? == Some(process))
}

/// The process that this one is a child of. Nothing if it has ended.
pub fn parent(root: &Path, pid: u32) -> Option<u32> {
    Task::parse(&fs::read(root.join(format!("proc/{pid}/stat"))).ok()?).map(|first| first.parent)
}

/// Who a process, or that of a thread, runs as. Nothing if it has ended.
#[doc(alias = "euid")]
pub fn effective_uid(root: &Path, pid: u32) -> Option<u32> {
    let status = fs::read_to_string(root.join(format!("proc/{pid}/status"))).ok()?;
    // Real, effective, saved, and that of the file system.
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uids.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The process that a thread is of. Nothing if it has ended.
#[doc(alias = "tgid")]
pub fn of_thread(root: &Path, tid: u32) -> Option<u32> {
    let status = fs::read_to_string(root.join(format!("proc/{tid}/status"))).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// Nothing if what was read of `proc` or of a cgroup is no more.
pub(super) fn unless_gone<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        // The last two are said of what has gone since it was opened.
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::SRCH | Errno::NODEV) => Ok(None),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_and_its_end() {
        let root = Path::new("/");
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = with_pid(root, child.id()).unwrap().unwrap();
        let later = Process { start_time: process.start_time + 1, ..process };
        assert!(is_alive(root, process).unwrap() && !is_alive(root, later).unwrap());
        child.kill().unwrap();
        // Ended as soon as it is killed, although nobody has waited for it: it is a zombie then.
        while is_alive(root, process).unwrap() {
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{}", child.id())).exists());
        child.wait().unwrap();
        assert_eq!(with_pid(root, child.id()).unwrap(), None);
    }
}
