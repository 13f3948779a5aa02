//! Tasks that may not run everywhere: their masks, how many there are under each, and where those that run are.

use super::scan::Scan;
use berth_model::cpuset::{Cpu, CpuSet};
use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

/// The tasks under one mask that leaves online CPUs out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Their mask.
    #[doc(alias = "cpus_mask")]
    pub allowed: CpuSet,
    /// How many there are.
    pub tasks: u32,
    /// How many of them were runnable.
    pub runnable: u32,
    /// The CPUs that these were on.
    pub running_on: CpuSet,
}

/// Looks at every thread of the scan's processes; those of the kernel are left out. It costs more than the scan, since
/// the kernel tells of masks in a long text only.
pub fn look(root: &Path, scan: &Scan, online: &CpuSet) -> Vec<Group> {
    let runnable: HashMap<u32, Cpu> = scan.runnable.iter().map(|task| (task.tid, task.cpu)).collect();
    // By the text, so that each mask is understood once.
    let mut groups: BTreeMap<String, Option<Group>> = BTreeMap::new();
    for pid in &scan.processes {
        let threads = fs::read_dir(root.join(format!("proc/{pid}/task"))).into_iter().flatten().flatten();
        for thread in threads {
            let Some(tid) = thread.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // It may have ended meanwhile.
            let Ok(status) = fs::read(thread.path().join("status")) else { continue };
            let Some(mask) = mask(&status) else { continue };
            let group = groups.entry(mask.to_owned()).or_insert_with(|| narrow(mask, online));
            if let Some(group) = group {
                group.tasks += 1;
                if let Some(&cpu) = runnable.get(&tid) {
                    group.runnable += 1;
                    group.running_on.insert(cpu);
                }
            }
        }
    }
    groups.into_values().flatten().collect()
}

/// A group without tasks; nothing if the mask has every online CPU.
fn narrow(mask: &str, online: &CpuSet) -> Option<Group> {
    let allowed = CpuSet::parse(mask).ok().filter(|mask| !online.is_subset(mask))?;
    Some(Group { allowed, tasks: 0, runnable: 0, running_on: CpuSet::new() })
}

/// The mask in `/proc/PID/task/TID/status`, as a cpulist. The name in its first line may hold anything but a new line.
fn mask(status: &[u8]) -> Option<&str> {
    let line = status.split(|&b| b == b'\n').find_map(|line| line.strip_prefix(b"Cpus_allowed_list:"))?;
    std::str::from_utf8(line).ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::load::{owners::Process, scan::Runnable};

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
            processes: vec![7, 20, 99],
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

    #[test]
    fn this_process() {
        let status = fs::read("/proc/thread-self/status").unwrap();
        let mask = CpuSet::parse(mask(&status).unwrap()).unwrap();
        assert!(!mask.is_empty());
    }
}
