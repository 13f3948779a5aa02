//! Pinned tasks that wait for a CPU while others are idle. Load balancing cannot part them, and marks the groups of CPUs
//! in which it failed; such a mark can outlive them.

use super::{
    pinned::Masks,
    scan::{Runnable, Scan},
};
use berth_model::cpuset::{Cpu, CpuSet};
use std::{collections::BTreeMap, fs, path::Path};

/// Whether tasks may wait on some CPU while another is idle.
pub fn is_uneven(counts: &BTreeMap<Cpu, u32>, online: &CpuSet) -> bool {
    let is_busy = |cpu: Cpu| counts.get(&cpu).is_some_and(|&tasks| tasks > 0);
    counts.values().any(|&tasks| tasks > 1) && !online.iter().all(is_busy)
}

/// The CPUs on which several tasks are runnable, of which one may not run on a CPU that is idle. Tasks of the kernel's
/// own do not count: their waiting is over at once, and being bound they set no mark.
#[doc(alias = "can_migrate_task")]
pub fn look(root: &Path, scan: &Scan, online: &CpuSet) -> CpuSet {
    let counts = scan.counts();
    if !is_uneven(&counts, online) {
        return CpuSet::new();
    }
    let idle: CpuSet = online.iter().filter(|cpu| !counts.contains_key(cpu)).collect();
    let mut waiting: BTreeMap<Cpu, Vec<&Runnable>> = BTreeMap::new();
    for task in scan.runnable.iter().filter(|task| scan.is_users(task.process.pid)) {
        waiting.entry(task.cpu).or_default().push(task);
    }
    let mut masks = Masks::new(root);
    let mut is_refused = |task: &&Runnable| {
        let status = format!("proc/{}/task/{}/status", task.process.pid, task.tid);
        let mask = masks.of(task.tid, || fs::read(root.join(status)).ok());
        mask.and_then(|mask| mask.cpus()).is_some_and(|allowed| !idle.is_subset(&allowed))
    };
    let crowded =
        waiting.into_iter().filter(|(_, tasks)| tasks.len() > 1 && tasks.iter().any(&mut is_refused));
    crowded.map(|(cpu, _)| cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::hold::Process;

    /// Runnable tasks, each with its process, CPU and mask; process 2 is the kernel's.
    fn crowded(tasks: &[(u32, u16, &str)]) -> String {
        let root = tempfile::tempdir().unwrap();
        let mut scan = Scan { processes: vec![(7, 1), (8, 1)], ..Scan::default() };
        for (tid, &(pid, cpu, mask)) in (100..).zip(tasks) {
            let folder = root.path().join(format!("proc/{pid}/task/{tid}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("status"), format!("Name:\tx\nCpus_allowed_list:\t{mask}\n")).unwrap();
            scan.runnable.push(Runnable {
                process: Process { pid, start_time: 1 },
                tid,
                cpu: Cpu::from(cpu),
            });
        }
        look(root.path(), &scan, &CpuSet::parse("0-3").unwrap()).to_string()
    }

    #[test]
    fn bound_tasks_that_wait_while_others_idle() {
        assert_eq!(crowded(&[(7, 0, "0-1"), (7, 0, "0-1"), (7, 1, "0-1")]), "0");
        assert_eq!(
            crowded(&[(7, 0, "0-3"), (8, 0, "0"), (7, 1, "1"), (8, 1, "1")]),
            "0-1",
            "one that refuses is enough"
        );
        assert_eq!(crowded(&[(7, 0, "0-3"), (7, 0, "0-3")]), "", "they can move");
        assert_eq!(crowded(&[(7, 0, "0"), (7, 1, "1")]), "", "nobody waits");
        assert_eq!(crowded(&[(7, 0, "0"), (2, 0, "0")]), "", "the kernel's own");
        let all_busy = [(7, 0, "0"), (7, 0, "0"), (7, 1, "1"), (7, 2, "2"), (7, 3, "3")];
        assert_eq!(crowded(&all_busy), "", "no CPU is idle");
        assert_eq!(
            crowded(&[(7, 0, "0,2-3"), (7, 0, "0,2-3"), (8, 1, "1")]),
            "",
            "the idle ones are not refused"
        );
        assert_eq!(crowded(&[]), "");
    }
}
