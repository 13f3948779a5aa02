//! One look at running tasks: whose they are, where each is and may be, and what else runs.

use crate::{
    auth::cpuset,
    convert::{Failure, status::Precondition},
    ingest::{
        cgroup,
        load::{
            pinned::Masks,
            scan::{self, Runnable, Scan, Scanner},
        },
        numa_maps::{self, Memory},
        process,
        threads::{self, Thread},
    },
};
use berth_model::{
    cpuset::{Cpu, CpuSet},
    hold::{Hold, Owner, Process},
};
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// Whose tasks are looked at.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    Pids(Vec<u32>),
    Cgroup(String),
    Hold(Arc<Hold>),
    /// Every pinned workload; the CPUs are those that the host has online.
    All(CpuSet),
}

/// Tasks that belong together.
#[derive(Debug, Clone)]
pub(super) struct Workload {
    pub(super) name: String,
    pub(super) uid: u32,
    /// Its processes, ascending.
    pub(super) pids: Vec<u32>,
    /// Its threads that were looked at, ascending.
    pub(super) threads: Vec<Thread>,
    /// The effective cpuset of each process, as far as it could be read.
    pub(super) cpusets: HashMap<u32, CpuSet>,
}

impl Workload {
    /// Tells it from others at every look.
    pub(super) fn key(&self) -> (String, Option<Process>) {
        (self.name.clone(), self.threads.first().map(|thread| thread.process))
    }
}

/// What a look showed.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) at: Instant,
    pub(super) workloads: Vec<Workload>,
    /// Runnable tasks of each CPU, whosever they are.
    pub(super) counts: BTreeMap<Cpu, u32>,
    pub(super) seen: usize,
    pub(super) hidden: usize,
    /// Processes that were asked for and are no more.
    pub(super) gone: Vec<u32>,
    /// A cgroup that was asked for and is not there.
    pub(super) no_cgroup: Option<String>,
}

/// Looks at tasks of the host whose `proc` and `sys` lie below a folder.
pub(super) struct Looker<F> {
    pub(super) root: PathBuf,
    pub(super) subject: Subject,
    /// Whether the caller may see what runs as this uid.
    pub(super) may_see: F,
}

impl<F: Fn(u32) -> bool> Looker<F> {
    /// Looks once. Blocks.
    ///
    /// # Errors
    ///
    /// If not all threads of the host can be seen.
    pub(super) fn look(&self) -> Result<Look, Failure> {
        let at = Instant::now();
        let scan = Scanner::new(&self.root, std::process::id()).scan().map_err(|error| match error {
            scan::Error::Hidden { .. } => {
                Failure::Precondition(Precondition::ThreadsHidden { said: error.to_string() })
            }
            other => Failure::internal(other),
        })?;
        let mut look = Look {
            at,
            workloads: Vec::new(),
            counts: scan.counts(),
            seen: 0,
            hidden: 0,
            gone: Vec::new(),
            no_cgroup: None,
        };
        let mut masks = Masks::new(&self.root);
        match &self.subject {
            Subject::Pids(pids) => {
                let mut pids = pids.clone();
                pids.sort_unstable();
                pids.dedup();
                for pid in pids {
                    let threads = self.threads_of(&[pid], &mut masks, &mut look);
                    let name = threads::name(&self.root, pid, pid);
                    self.add(name, threads, &mut look);
                }
            }
            Subject::Cgroup(path) => {
                let threads = self.threads_in(path, &mut masks, &mut look);
                self.add(path.clone(), threads, &mut look);
            }
            Subject::Hold(hold) => {
                let threads = match &hold.owner {
                    Owner::Lease => Vec::new(),
                    Owner::Process(owner) => {
                        let all = family(&scan, owner.pid);
                        self.threads_of(&all, &mut masks, &mut look)
                    }
                    Owner::Cgroup(path) => self.threads_in(path, &mut masks, &mut look),
                };
                let name = if hold.name.is_empty() { hold.id.to_string() } else { hold.name.clone() };
                self.add(name, threads, &mut look);
            }
            Subject::All(online) => self.all(&scan, online, &mut masks, &mut look),
        }
        Ok(look)
    }

    /// The threads of some processes that the caller may see.
    fn threads_of(&self, pids: &[u32], masks: &mut Masks, look: &mut Look) -> Vec<Thread> {
        let mut all = Vec::new();
        for &pid in pids {
            match threads::of_process(&self.root, pid, masks) {
                Ok(None) => look.gone.push(pid),
                Ok(Some(threads)) if self.sees(pid) => all.extend(threads),
                Ok(Some(threads)) => look.hidden += threads.len(),
                Err(_) => look.hidden += 1,
            }
        }
        all
    }

    /// The threads of a cgroup that the caller may see.
    fn threads_in(&self, path: &str, masks: &mut Masks, look: &mut Look) -> Vec<Thread> {
        let folders = cgroup::folders(&self.root, path).unwrap_or_default();
        if folders.is_empty() {
            look.no_cgroup = Some(path.to_owned());
        }
        let mut tids: Vec<u32> = folders.iter().flat_map(|folder| cgroup::threads(folder)).collect();
        tids.sort_unstable();
        tids.dedup();
        let mut of_pids: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for tid in tids {
            // It may have ended meanwhile.
            let Some(pid) = process::of_thread(&self.root, tid) else { continue };
            of_pids.entry(pid).or_default().push(tid);
        }
        let mut all = Vec::new();
        for (pid, tids) in of_pids {
            let Ok(Some(process)) = process::with_pid(&self.root, pid) else { continue };
            if self.sees(pid) {
                let threads =
                    tids.into_iter().filter_map(|tid| threads::with_tid(&self.root, process, tid, masks));
                all.extend(threads);
            } else {
                look.hidden += tids.len();
            }
        }
        all
    }

    /// Every process with runnable threads that may not run everywhere: these threads.
    fn all(&self, scan: &Scan, online: &CpuSet, masks: &mut Masks, look: &mut Look) {
        for of_one in scan.runnable.chunk_by(|a, b| a.process == b.process) {
            let Some(&Runnable { process, .. }) = of_one.first() else { continue };
            if !scan.is_users(process.pid) {
                continue;
            }
            let pinned = of_one
                .iter()
                .filter_map(|task| threads::with_tid(&self.root, process, task.tid, masks))
                .filter(|thread| !online.is_subset(&thread.allowed));
            let pinned: Vec<Thread> = pinned.collect();
            if pinned.is_empty() {
                continue;
            }
            if self.sees(process.pid) {
                let name = threads::name(&self.root, process.pid, process.pid);
                self.add(name, pinned, look);
            } else {
                look.hidden += pinned.len();
            }
        }
    }

    fn sees(&self, pid: u32) -> bool {
        process::effective_uid(&self.root, pid).is_some_and(&self.may_see)
    }

    /// Takes the threads as one workload, if there are any.
    fn add(&self, name: String, threads: Vec<Thread>, look: &mut Look) {
        let Some(first) = threads.first() else { return };
        look.seen += threads.len();
        let uid = process::effective_uid(&self.root, first.process.pid).unwrap_or(0);
        let mut cpusets = HashMap::new();
        let mut pids = Vec::new();
        for of_one in threads.chunk_by(|a, b| a.process == b.process) {
            let Some(first) = of_one.first() else { continue };
            pids.push(first.process.pid);
            if let Some(cpus) = cpuset::of_process(first.process, &self.root) {
                cpusets.insert(first.process.pid, cpus);
            }
        }
        look.workloads.push(Workload { name, uid, pids, threads, cpusets });
    }
}

/// A process and all that descend from it.
fn family(scan: &Scan, pid: u32) -> Vec<u32> {
    let others = scan.processes.iter().map(|(other, _)| *other);
    let descends = |other: &u32| *other != pid && scan.line_of(*other).any(|before| before == pid);
    std::iter::once(pid).chain(others.filter(descends)).collect()
}

/// The memory of processes, each with its pid, but of those that cannot be read.
pub(super) fn memory(root: &Path, pids: &[u32]) -> Vec<(u32, Memory)> {
    let read = |&pid: &u32| Some((pid, numa_maps::of_process(root, pid).ok()??));
    pids.iter().filter_map(read).collect()
}
