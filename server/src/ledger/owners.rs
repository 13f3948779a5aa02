//! Whether the owners of holds live.

use crate::ingest::{cgroup, process};
use berth_model::hold::{Book, Gone, Owner, Process};
use std::path::PathBuf;

/// Looks for owners on the host whose `proc` and `sys` lie below a folder.
#[derive(Debug, Clone)]
pub(crate) struct Owners {
    root: PathBuf,
}

impl Owners {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Owners in the book that are no more.
    pub(crate) fn gone(&self, book: &Book) -> Vec<Gone> {
        let dead = book.living().filter(|hold| !self.lives(&hold.owner));
        dead.map(|hold| Gone { id: hold.id, owner: hold.owner.clone() }).collect()
    }

    /// The process that has this pid now.
    pub(crate) fn process(&self, pid: u32) -> Option<Process> {
        process::with_pid(&self.root, pid)
    }

    /// Whether there is such a cgroup, if the path can be one.
    pub(crate) fn has_cgroup(&self, path: &str) -> bool {
        !cgroup::folders(&self.root, path).is_empty()
    }

    fn lives(&self, owner: &Owner) -> bool {
        match owner {
            Owner::Lease => true,
            Owner::Process(process) => process::is_alive(&self.root, *process),
            Owner::Cgroup(path) => {
                cgroup::folders(&self.root, path).iter().any(|folder| cgroup::is_populated(folder))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn cgroups_of_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let cgroup = root.path().join("sys/fs/cgroup");
        let owners = Owners::new(root.path().to_owned());
        let lives = |path: &str| owners.lives(&Owner::Cgroup(path.to_owned()));
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
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let process = owners.process(child.id()).unwrap();
        assert!(owners.lives(&Owner::Process(process)));
        let earlier = Process { start_time: process.start_time - 1, ..process };
        assert!(!owners.lives(&Owner::Process(earlier)));
        child.kill().unwrap();
        // Dead, and not waited for yet.
        while owners.lives(&Owner::Process(process)) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(Path::new(&format!("/proc/{}", child.id())).exists());
        child.wait().unwrap();
        assert!(!owners.lives(&Owner::Process(process)));
    }
}
