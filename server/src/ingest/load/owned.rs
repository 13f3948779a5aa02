//! Which of the tasks that run belong to owners of holds.

use super::scan::{Runnable, Scan};
use crate::ingest::cgroup;
use berth_model::hold::{Book, Hold, Owner, Process, Running};
use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

/// Tells whose tasks run, again and again.
#[derive(Debug, Default)]
pub struct Eye {
    /// Processes that were seen to own tasks.
    recognised: BTreeSet<Process>,
}

impl Eye {
    /// Whether there is anybody to look for.
    pub fn is_needed(book: &Book) -> bool {
        owners(book).next().is_some()
    }

    /// The tasks of each owner in the book. A task is its process's that owns a hold, else that of the nearest one which its
    /// process descends from, else of the innermost cgroup.
    ///
    /// Left out are owners of which it is not known which tasks are theirs: leases; and processes whose holds were seen to
    /// be used, but never by the process itself or what descends from it.
    pub fn look(&mut self, root: &Path, scan: &Scan, book: &Book) -> Running {
        let mut running = Running::new();
        let mut processes: HashMap<u32, Process> = HashMap::new();
        let mut cgroups: Vec<&str> = Vec::new();
        for hold in owners(book) {
            match &hold.owner {
                Owner::Process(process) => {
                    processes.insert(process.pid, *process);
                    if !hold.tasks_seen || self.recognised.contains(process) {
                        running.entry(hold.owner.clone()).or_default();
                    }
                }
                Owner::Cgroup(path) => {
                    if !running.contains_key(&hold.owner) {
                        cgroups.push(path);
                        running.entry(hold.owner.clone()).or_default();
                    }
                }
                Owner::Lease => {}
            }
        }
        // Inner ones after those that they are in.
        cgroups.sort_unstable_by_key(|path| path.len());
        let threads: HashMap<u32, &str> = cgroups
            .into_iter()
            .flat_map(|path| {
                cgroup::folders(root, path).into_iter().flatten().map(move |folder| (path, folder))
            })
            .flat_map(|(path, folder)| cgroup::threads(&folder).into_iter().map(move |tid| (tid, path)))
            .collect();
        let owner = |task: &Runnable| {
            let of_process = scan.line_of(task.process.pid).find_map(|pid| processes.get(&pid));
            // One that has ended may have left its number to another.
            let of_process =
                of_process.filter(|owner| owner.pid != task.process.pid || **owner == task.process);
            of_process
                .map(|process| Owner::Process(*process))
                .or_else(|| threads.get(&task.tid).map(|path| Owner::Cgroup((*path).to_owned())))
        };
        for task in &scan.runnable {
            if let Some(owner) = owner(task) {
                *running.entry(owner).or_default().entry(task.cpu).or_default() += 1;
            }
        }
        let is_process = |owner: &Owner| match owner {
            Owner::Process(process) => Some(*process),
            _ => None,
        };
        self.recognised.retain(|process| processes.get(&process.pid) == Some(process));
        let seen = running.iter().filter(|(_, cpus)| !cpus.is_empty());
        self.recognised.extend(seen.filter_map(|(owner, _)| is_process(owner)));
        running
    }
}

/// The holds of CPUs whose owners can have tasks.
fn owners(book: &Book) -> impl Iterator<Item = &Hold> {
    let holds = book.living().map(AsRef::as_ref);
    holds.filter(|hold| hold.owner != Owner::Lease && !hold.is_claim())
}
