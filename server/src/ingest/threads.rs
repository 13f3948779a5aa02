//! The threads of single processes: where each is, and where it may be.

use super::{
    load::{pinned::Masks, task::Task},
    process::{unless_gone, with_pid},
};
use berth_model::{cpuset::CpuSet, hold::Process};
use std::{fs, io, path::Path};

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    /// Its process.
    pub(crate) process: Process,
    /// What the kernel tells of it.
    pub(crate) task: Task,
    /// The CPUs that it may use, as far as they can be read.
    pub(crate) allowed: CpuSet,
}

/// All threads of a process, ascending. Nothing if it has ended.
///
/// # Errors
///
/// If they cannot be read.
pub(crate) fn of_process(root: &Path, pid: u32, masks: &mut Masks) -> io::Result<Option<Vec<Thread>>> {
    let Some(process) = with_pid(root, pid)? else { return Ok(None) };
    let folder = root.join(format!("proc/{pid}/task"));
    let Some(entries) = unless_gone(fs::read_dir(&folder))? else { return Ok(None) };
    let mut threads = Vec::new();
    for entry in entries.flatten() {
        let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // It may have ended meanwhile.
        threads.extend(with_tid(root, process, tid, masks));
    }
    threads.sort_unstable_by_key(|thread: &Thread| thread.task.tid);
    Ok(Some(threads))
}

/// One thread of a process. Nothing if it has ended.
pub(crate) fn with_tid(root: &Path, process: Process, tid: u32, masks: &mut Masks) -> Option<Thread> {
    let folder = root.join(format!("proc/{}/task/{tid}", process.pid));
    let task = Task::parse(&fs::read(folder.join("stat")).ok()?).filter(|task| !task.is_dead())?;
    let mask = masks.of(tid, || fs::read(folder.join("status")).ok())?;
    Some(Thread { process, task, allowed: mask.cpus()? })
}

/// What a thread calls itself; empty if it has ended.
pub(crate) fn name(root: &Path, pid: u32, tid: u32) -> String {
    let name = fs::read(root.join(format!("proc/{pid}/task/{tid}/comm"))).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned()
}

/// How often a thread went to another CPU since it was started. Nothing where the kernel was built without that.
#[doc(alias = "nr_migrations")]
pub(crate) fn migrations(root: &Path, pid: u32, tid: u32) -> Option<u64> {
    let text = fs::read_to_string(root.join(format!("proc/{pid}/task/{tid}/sched"))).ok()?;
    let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process() {
        let root = Path::new("/");
        let own = std::process::id();
        let threads = of_process(root, own, &mut Masks::new(root)).unwrap().unwrap();
        let first = threads.iter().find(|thread| thread.task.tid == own).unwrap();
        assert!(threads.iter().all(|thread| thread.process.pid == own && !thread.allowed.is_empty()));
        assert!(first.process.start_time > 0 && !name(root, own, own).is_empty());
        assert!(threads.is_sorted_by_key(|thread| thread.task.tid));
        assert_eq!(name(root, own, u32::MAX), "");
    }

    #[test]
    fn a_process_that_is_not_there() {
        let root = Path::new("/");
        assert_eq!(of_process(root, u32::MAX >> 1, &mut Masks::new(root)).unwrap(), None);
    }
}
