//! Whether the owners of holds live.

use crate::ingest::{cgroup, process};
use berth_model::hold::{Book, Gone, Owner, Process};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Looks for owners on the host whose `proc` and `sys` lie below a folder.
#[derive(Debug, Clone)]
pub(crate) struct Owners {
    root: PathBuf,
}

impl Owners {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where the host's `proc` and `sys` lie.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Owners in the book that are no more. One that cannot be looked at now, for want of memory or of files, is none.
    pub(crate) fn gone(&self, book: &Book) -> Vec<Gone> {
        let dead = book.living().filter(|hold| {
            self.lives(&hold.owner)
                .inspect_err(|error| {
                    tracing::warn!(id = %hold.id, "the owner of a hold cannot be looked at: {error}");
                })
                .is_ok_and(|lives| !lives)
        });
        dead.map(|hold| Gone { id: hold.id, owner: hold.owner.clone() }).collect()
    }

    /// The process that has this pid now.
    pub(crate) fn process(&self, pid: u32) -> Option<Process> {
        process::with_pid(&self.root, pid).ok().flatten()
    }

    /// Whether there is such a cgroup, if the path can be one.
    pub(crate) fn has_cgroup(&self, path: &str) -> bool {
        cgroup::folders(&self.root, path).is_ok_and(|folders| !folders.is_empty())
    }

    /// Who the process runs as, if it still does.
    pub(crate) fn uid_of(&self, process: Process) -> Option<u32> {
        let uid = process::effective_uid(&self.root, process.pid)?;
        (self.process(process.pid) == Some(process)).then_some(uid)
    }

    /// Whether this process started the session that another one of the user's is in: it is the nearest one of somebody else
    /// that it descends from, such as Slurm's of a job step. The host's first process is none.
    pub(crate) fn started(&self, process: Process, of: Process, uid: u32) -> bool {
        let mut pid = of.pid;
        while let Some(parent) = process::parent(&self.root, pid).filter(|parent| *parent > 1) {
            if process::effective_uid(&self.root, parent) != Some(uid) {
                return parent == process.pid && self.process(parent) == Some(process);
            }
            pid = parent;
        }
        false
    }

    /// Whether there are processes in the cgroup, and all run as this user.
    pub(crate) fn is_of(&self, path: &str, uid: u32) -> bool {
        let folders = cgroup::folders(&self.root, path).unwrap_or_default();
        let mut threads = folders.iter().flat_map(|folder| cgroup::threads(folder)).peekable();
        threads.peek().is_some()
            && threads.all(|tid| process::effective_uid(&self.root, tid).is_none_or(|of| of == uid))
    }

    fn lives(&self, owner: &Owner) -> io::Result<bool> {
        match owner {
            Owner::Lease => Ok(true),
            Owner::Process(process) => process::is_alive(&self.root, *process),
            Owner::Cgroup(path) => {
                for folder in cgroup::folders(&self.root, path)? {
                    if cgroup::is_populated(&folder)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn cgroups_of_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let cgroup = root.path().join("sys/fs/cgroup");
        let owners = Owners::new(root.path().to_owned());
        let lives = |path: &str| owners.lives(&Owner::Cgroup(path.to_owned())).unwrap();
        // v1: a folder of each controller.
        write(cgroup.join("cpuset/cgroup.procs"), "1\n");
        write(cgroup.join("cpuset/a/cgroup.procs"), "");
        write(cgroup.join("cpuset/a/b/cgroup.procs"), "12\n");
        write(cgroup.join("cpuset/empty/cgroup.procs"), "\n");
        assert!(lives("/a") && lives("a/b") && !lives("/empty") && !lives("/none"));
        assert!(owners.has_cgroup("/empty") && !owners.has_cgroup("/none"));
        // v2.
        write(cgroup.join("cgroup.procs"), "1\n");
        write(cgroup.join("c/cgroup.procs"), "");
        write(cgroup.join("c/cgroup.events"), "populated 1\nfrozen 0\n");
        assert!(lives("/c"));
        write(cgroup.join("c/cgroup.events"), "populated 0\nfrozen 0\n");
        assert!(!lives("/c"));
        for bad in ["", "/", "..", "/a/../a", "/cpuset/../.."] {
            assert!(!owners.has_cgroup(bad), "{bad}");
        }
    }

    #[test]
    fn a_process_that_has_died_is_told_from_a_later_one() {
        let owners = Owners::new(PathBuf::from("/"));
        let lives = |process| owners.lives(&Owner::Process(process)).unwrap();
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let process = owners.process(child.id()).unwrap();
        assert!(lives(process));
        let earlier = Process { start_time: process.start_time - 1, ..process };
        assert!(!lives(earlier));
        child.kill().unwrap();
        // Dead, and not waited for yet.
        while lives(process) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(Path::new(&format!("/proc/{}", child.id())).exists());
        child.wait().unwrap();
        assert!(!lives(process));
    }

    /// An owner is gone if it is not there, not if it cannot be read.
    #[test]
    fn what_cannot_be_read_is_not_gone() {
        let root = tempfile::tempdir().unwrap();
        let owners = Owners::new(root.path().to_owned());
        let cgroup = root.path().join("sys/fs/cgroup");
        let lives = |owner: &Owner| owners.lives(owner).ok();
        let (process, group) =
            (Owner::Process(Process { pid: 7, start_time: 9 }), Owner::Cgroup("/a".to_owned()));
        assert_eq!((lives(&process), lives(&group)), (Some(false), Some(false)), "there is neither");
        // Reading a folder as a file fails, for root too.
        fs::create_dir_all(root.path().join("proc/7/stat")).unwrap();
        assert_eq!(lives(&process), None);
        write(cgroup.join("cgroup.procs"), "");
        write(cgroup.join("a/cgroup.procs"), "");
        assert_eq!(lives(&group), Some(false));
        fs::create_dir_all(cgroup.join("a/cgroup.events")).unwrap();
        assert_eq!(lives(&group), None);
        fs::remove_dir(cgroup.join("a/cgroup.events")).unwrap();
        fs::remove_file(cgroup.join("a/cgroup.procs")).unwrap();
        std::os::unix::fs::symlink("cgroup.procs", cgroup.join("a/cgroup.procs")).unwrap();
        assert_eq!(lives(&group), None, "it leads nowhere but to itself");
    }
}
