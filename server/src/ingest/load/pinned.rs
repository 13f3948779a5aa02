//! Tasks that may not run everywhere: their masks, how many there are under each, and where those that run are.

use super::scan::Scan;
use berth_model::cpuset::{Cpu, CpuSet};
use rustix::{io::Errno, process::Pid, thread};
use std::{collections::HashMap, fs, path::Path};

/// The tasks under one mask that leaves online CPUs out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Their mask; where the kernel was asked for it, less CPUs that are offline.
    #[doc(alias = "cpus_mask")]
    pub allowed: CpuSet,
    /// How many there are.
    pub tasks: u32,
    /// How many of them were runnable.
    pub runnable: u32,
    /// The CPUs that these were on.
    pub running_on: CpuSet,
}

/// Looks at every thread of the scan's processes; those of the kernel are left out.
pub fn look(root: &Path, scan: &Scan, online: &CpuSet) -> Vec<Group> {
    let runnable: HashMap<u32, Cpu> = scan.runnable.iter().map(|task| (task.tid, task.cpu)).collect();
    let mut masks = Masks::new(root);
    for (pid, _) in &scan.processes {
        let threads = fs::read_dir(root.join(format!("proc/{pid}/task"))).into_iter().flatten().flatten();
        for thread in threads {
            let Some(tid) = thread.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // It may have ended meanwhile.
            let Some(mask) = masks.of(tid, || fs::read(thread.path().join("status")).ok()) else { continue };
            let (_, group) = masks.known(mask, online);
            if let Some(group) = group {
                group.tasks += 1;
                if let Some(&cpu) = runnable.get(&tid) {
                    group.runnable += 1;
                    group.running_on.insert(cpu);
                }
            }
        }
    }
    let mut groups: Vec<Group> = masks.known.into_iter().filter_map(|(_, group)| group).collect();
    groups.sort_by_cached_key(|group| group.allowed.to_string());
    groups
}

/// Whether the numbers there are those by which the kernel knows threads when this process asks.
fn is_own(root: &Path) -> bool {
    let own = fs::read_link(root.join("proc/self"));
    own.is_ok_and(|own| own.to_str() == Some(std::process::id().to_string().as_str()))
}

/// A mask as it was told.
#[derive(PartialEq, Eq)]
pub(crate) enum Mask {
    Asked(Box<thread::CpuSet>),
    Written(String),
}

impl Mask {
    pub(crate) fn cpus(&self) -> Option<CpuSet> {
        match self {
            Self::Asked(set) => {
                let cpus = (0..u32::try_from(thread::CpuSet::MAX_CPU).ok()?).filter_map(Cpu::try_new);
                Some(cpus.filter(|cpu| set.is_set(cpu.index())).collect())
            }
            Self::Written(text) => CpuSet::parse(text).ok(),
        }
    }
}

/// The masks that were met, each understood once.
pub(crate) struct Masks {
    known: Vec<(Mask, Option<Group>)>,
    /// The kernel is asked for a thread's mask. It gives a text too, which costs thirty times as much.
    asks: bool,
}

impl Masks {
    pub(crate) fn new(root: &Path) -> Self {
        Self { known: Vec::new(), asks: is_own(root) }
    }

    /// The mask of a thread, whose status text is read where the kernel cannot be asked. Nothing if it is gone.
    pub(crate) fn of(&mut self, tid: u32, status: impl FnOnce() -> Option<Vec<u8>>) -> Option<Mask> {
        if self.asks {
            let tid = i32::try_from(tid).ok().and_then(Pid::from_raw)?;
            match thread::sched_getaffinity(Some(tid)) {
                Ok(set) => return Some(Mask::Asked(Box::new(set))),
                // The host has more CPUs than that can tell of.
                Err(Errno::INVAL) => self.asks = false,
                Err(_) => return None,
            }
        }
        mask(&status()?).map(|text| Mask::Written(text.to_owned()))
    }

    /// The entry of a mask, which is the last one from then on: threads of one process mostly have the same.
    fn known(&mut self, mask: Mask, online: &CpuSet) -> &mut (Mask, Option<Group>) {
        let last = self.known.len().saturating_sub(1);
        match self.known.iter().rposition(|(known, _)| *known == mask) {
            Some(at) => self.known.swap(at, last),
            None => {
                let group = mask.cpus().and_then(|cpus| narrow(cpus, online));
                self.known.push((mask, group));
            }
        }
        let last = self.known.len() - 1;
        &mut self.known[last]
    }
}

/// A group without tasks; nothing if the mask has every online CPU.
fn narrow(allowed: CpuSet, online: &CpuSet) -> Option<Group> {
    let is_narrow = !online.is_subset(&allowed);
    is_narrow.then(|| Group { allowed, tasks: 0, runnable: 0, running_on: CpuSet::new() })
}

/// The mask in `/proc/PID/task/TID/status`, as a cpulist. The name in its first line may hold anything but a new line.
fn mask(status: &[u8]) -> Option<&str> {
    let line = status.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"Cpus_allowed_list:"))?;
    std::str::from_utf8(line).ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::load::scan::Runnable;
    use berth_model::hold::Process;

    #[test]
    fn tasks_by_their_masks() {
        let root = tempfile::tempdir().unwrap();
        let thread = |pid: u32, tid: u32, mask: &str| {
            let folder = root.path().join(format!("proc/{pid}/task/{tid}"));
            fs::create_dir_all(&folder).unwrap();
            let status =
                format!("Name:\tCpus_allowed_list\nCpus_allowed:\tff\nCpus_allowed_list:\t{mask}\nX:\t1\n");
            fs::write(folder.join("status"), status).unwrap();
        };
        thread(7, 7, "0-3");
        thread(7, 8, "0-3");
        thread(7, 9, "0-7");
        thread(20, 20, "2");
        thread(30, 30, "1");
        let runnable =
            |pid, tid, cpu| Runnable { process: Process { pid, start_time: 1 }, tid, cpu: Cpu::from(cpu) };
        let scan = Scan {
            runnable: vec![runnable(7, 8, 1), runnable(7, 9, 5), runnable(20, 20, 2)],
            realtime: None,
            processes: vec![(7, 1), (20, 1), (99, 1)],
        };
        let groups = look(root.path(), &scan, &CpuSet::parse("0-5").unwrap());
        let told: Vec<_> = groups
            .iter()
            .map(|group| {
                (group.allowed.to_string(), group.tasks, group.runnable, group.running_on.to_string())
            })
            .collect();
        let expected = [("0-3", 2, 1, "1"), ("2", 1, 1, "2")];
        let expected =
            expected.map(|(mask, tasks, runnable, on)| (mask.to_owned(), tasks, runnable, on.to_owned()));
        assert_eq!(told, expected);
    }

    /// On this host, by both ways: a thread that may run on one CPU only.
    #[test]
    fn a_pinned_thread_of_this_host() {
        let status = fs::read("/proc/thread-self/status").unwrap();
        let own = CpuSet::parse(mask(&status).unwrap()).unwrap();
        let first = own.iter().next().unwrap();
        let (tell_tid, tid) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let pinned = std::thread::spawn(move || {
            let mut set = thread::CpuSet::new();
            set.set(first.index());
            thread::sched_setaffinity(None, &set).unwrap();
            tell_tid.send(thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            let _ = ended.recv();
        });
        let tid = tid.recv().unwrap();
        for asks in [true, false] {
            let mut masks = Masks { known: Vec::new(), asks };
            let status = || fs::read(format!("/proc/self/task/{tid}/status")).ok();
            let told = masks.of(tid, status).unwrap();
            assert_eq!(matches!(told, Mask::Asked(_)), asks);
            assert_eq!(told.cpus().unwrap(), CpuSet::from(first));
        }
        // And as part of a look: alone under its mask, unless every thread may run on that CPU only.
        let scan = Scan { processes: vec![(std::process::id(), 1)], ..Scan::default() };
        let online = own.union(&CpuSet::from(Cpu::from(u16::MAX)));
        let groups = look(Path::new("/"), &scan, &online);
        assert!(
            groups.iter().any(|group| group.allowed == CpuSet::from(first) && group.tasks >= 1),
            "{groups:?}"
        );
        drop(end);
        pinned.join().unwrap();
    }
}
