//! Where the threads of one process or of one cgroup are now. It costs a few microseconds for each thread, so it is
//! for the few that somebody waits for; [`scan`](super::scan) is for all.

use super::task::Task;
use berth_model::cpuset::{Cpu, CpuSet};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// A process, named so that a later one of the same number is not taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it was started, in clock ticks after boot.
    pub start_time: u64,
}

/// Threads as they were seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// How many there are; 0 for a cgroup without any.
    pub threads: u32,
    /// Those that run or wait for a CPU, by that CPU.
    pub runnable: BTreeMap<Cpu, u32>,
    /// CPUs that any of them is on or was on last.
    pub on: CpuSet,
}

impl Seen {
    /// Adds the thread whose folder of `/proc` this is, if it still is there.
    fn add(&mut self, folder: &Path) {
        let line = fs::read(folder.join("stat")).unwrap_or_default();
        let Some(task) = Task::parse(&line).filter(|task| !task.is_dead) else { return };
        self.threads += 1;
        self.on.insert(task.cpu);
        if task.is_runnable {
            *self.runnable.entry(task.cpu).or_default() += 1;
        }
    }
}

impl Process {
    /// The process that has this number now. Nothing if there is none, or it has ended.
    pub fn of(root: &Path, pid: u32) -> Option<Self> {
        let first = first(root, pid).filter(is_alive)?;
        Some(Self { pid, start_time: first.start_time })
    }

    /// Whether it still runs.
    pub fn is_alive(&self, root: &Path) -> bool {
        first(root, self.pid).is_some_and(|first| first.start_time == self.start_time && is_alive(&first))
    }

    /// Where its threads are. Nothing if it is gone.
    pub fn seen(&self, root: &Path) -> Option<Seen> {
        if !self.is_alive(root) {
            return None;
        }
        let mut seen = Seen::default();
        for thread in below(&root.join(format!("proc/{}/task", self.pid))) {
            seen.add(&thread);
        }
        Some(seen)
    }
}

/// Where the threads of a cgroup and of those below it are. Nothing if it is gone.
///
/// # Errors
///
/// If it is there and cannot be read.
pub fn of_cgroup(root: &Path, folder: &Path) -> io::Result<Option<Seen>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut seen = Seen::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for tid in threads_of_cgroup(&folder)?.lines().filter_map(|line| line.trim().parse::<u32>().ok()) {
            seen.add(&root.join(format!("proc/{tid}/task/{tid}")));
        }
        folders.extend(below(&folder));
    }
    Ok(Some(seen))
}

/// The numbers of its own threads, one a line; none if it goes away just now.
fn threads_of_cgroup(folder: &Path) -> io::Result<String> {
    // Version 2, threaded cgroups included, then version 1.
    let read = fs::read_to_string(folder.join("cgroup.threads"));
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let read = match read {
        Err(error) if is_missing(&error) => fs::read_to_string(folder.join("tasks")),
        read => read,
    };
    match read {
        // A cgroup that is removed while its file is open answers ENODEV.
        Err(error)
            if is_missing(&error)
                || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) =>
        {
            Ok(String::new())
        }
        read => read,
    }
}

fn first(root: &Path, pid: u32) -> Option<Task> {
    Task::parse(&fs::read(root.join(format!("proc/{pid}/stat"))).ok()?)
}

/// An ended process keeps its entry until its parent has taken note. One whose first thread has ended still runs as
/// long as it has others.
fn is_alive(first: &Task) -> bool {
    !first.is_dead || first.threads > 1
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_and_its_end() {
        let root = Path::new("/");
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(root, child.id()).unwrap();
        let seen = process.seen(root).unwrap();
        assert_eq!((seen.threads, seen.on.len()), (1, 1));
        let later = Process { start_time: process.start_time + 1, ..process };
        assert_eq!((later.is_alive(root), later.seen(root)), (false, None));
        child.kill().unwrap();
        // Ended as soon as it is killed, although nobody has waited for it: it is a zombie then.
        while process.is_alive(root) {
            std::thread::yield_now();
        }
        assert_eq!((Process::of(root, child.id()), process.seen(root)), (None, None));
        child.wait().unwrap();
        assert_eq!(Process::of(root, child.id()), None);
    }

    #[test]
    fn the_threads_of_a_cgroup_and_of_those_below() {
        let tree = tempfile::tempdir().unwrap();
        let (root, group) = (tree.path(), tree.path().join("group"));
        let thread = |tid: u32, state: char, cpu: u32| {
            let folder = root.join(format!("proc/{tid}/task/{tid}"));
            fs::create_dir_all(&folder).unwrap();
            let line = format!(
                "{tid} (x) {state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0 0"
            );
            fs::write(folder.join("stat"), line).unwrap();
        };
        thread(11, 'R', 3);
        thread(12, 'S', 1);
        thread(13, 'R', 3);
        fs::create_dir_all(group.join("below")).unwrap();
        fs::write(group.join("cgroup.threads"), "11\n12\n99\n").unwrap();
        fs::write(group.join("below/tasks"), "13\n").unwrap();
        let seen = of_cgroup(root, &group).unwrap().unwrap();
        assert_eq!((seen.threads, seen.on.to_string()), (3, "1,3".to_owned()));
        assert_eq!(seen.runnable, BTreeMap::from([(Cpu::from(3), 2)]));
        assert_eq!(of_cgroup(root, &root.join("gone")).unwrap(), None);
        fs::write(group.join("cgroup.threads"), "").unwrap();
        fs::write(group.join("below/tasks"), "").unwrap();
        assert_eq!(of_cgroup(root, &group).unwrap(), Some(Seen::default()));
    }
}
