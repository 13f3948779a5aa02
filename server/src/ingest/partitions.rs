//! Cpusets that divide the host: each of them has scheduling domains of its own, or none.

use super::sysfs::{cpus, text};
use berth_model::cpuset::CpuSet;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A part of the host that load balancing does not leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The path of its cgroup below the mount of the controller.
    pub cgroup: String,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Nor are they balanced among each other.
    pub isolated: bool,
}

/// Reads them below `root`, which is `/` but in tests. None if the host is not divided.
pub fn read(root: &Path, online: &CpuSet) -> Vec<Partition> {
    let mount = root.join("sys/fs/cgroup");
    let mut found = if mount.join("cgroup.controllers").is_file() {
        version2(&mount, online)
    } else {
        version1(&mount.join("cpuset"), online)
    };
    found.sort_by(|a, b| a.cgroup.cmp(&b.cgroup));
    found
}

/// Partition roots take their CPUs away from the root cgroup. What it has left is no partition of its own.
#[doc(alias = "cpuset.cpus.partition")]
fn version2(mount: &Path, online: &CpuSet) -> Vec<Partition> {
    // The kernel tells it of the root cgroup too. Nothing is missing there: nobody has taken any.
    if cpus(&mount.join("cpuset.cpus.effective")).is_none_or(|left| online.is_subset(&left)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut folders = below(mount);
    while let Some(folder) = folders.pop() {
        // A cgroup without the file has no cpuset, and neither have those below it. One that is no valid partition
        // says `member`, or why it is not.
        let Some(kind) = text(&folder.join("cpuset.cpus.partition")) else { continue };
        if kind == "root" || kind == "isolated" {
            let own = cpus(&folder.join("cpuset.cpus.effective")).unwrap_or_default();
            if !own.is_empty() {
                let isolated = kind == "isolated";
                found.push(Partition { cgroup: name(mount, &folder), cpus: own, isolated });
            }
            folders.extend(below(&folder));
        } else if cpus(&folder.join("cpuset.cpus.exclusive.effective")).is_some_and(|set| !set.is_empty()) {
            // It may hand CPUs on to a partition further down.
            folders.extend(below(&folder));
        }
    }
    found
}

/// Where the root cgroup is not balanced, each cpuset that is makes a part, and so do those that overlap together.
#[doc(alias = "cpuset.sched_load_balance")]
fn version1(mount: &Path, online: &CpuSet) -> Vec<Partition> {
    let balanced = |folder: &Path| text(&folder.join("cpuset.sched_load_balance")).map(|flag| flag != "0");
    if balanced(mount) != Some(false) {
        return Vec::new();
    }
    let mut found: Vec<Partition> = Vec::new();
    let mut folders = below(mount);
    while let Some(folder) = folders.pop() {
        match balanced(&folder) {
            Some(true) => {
                let own = cpus(&folder.join("cpuset.effective_cpus"))
                    .or_else(|| cpus(&folder.join("cpuset.cpus")))
                    .unwrap_or_default()
                    .intersection(online);
                join(&mut found, Partition { cgroup: name(mount, &folder), cpus: own, isolated: false });
            }
            Some(false) => folders.extend(below(&folder)),
            None => {}
        }
    }
    let left = found.iter().fold(online.clone(), |left, part| left.difference(&part.cpus));
    if !left.is_empty() {
        found.push(Partition { cgroup: "/".to_owned(), cpus: left, isolated: true });
    }
    found
}

/// Adds a part, together with those that it overlaps.
fn join(found: &mut Vec<Partition>, mut part: Partition) {
    if part.cpus.is_empty() {
        return;
    }
    let (overlapping, apart): (Vec<_>, Vec<_>) =
        found.drain(..).partition(|known| known.cpus.intersects(&part.cpus));
    *found = apart;
    for other in overlapping {
        part.cpus.extend_from(&other.cpus);
        part.cgroup = part.cgroup.min(other.cgroup);
    }
    found.push(part);
}

fn name(mount: &Path, folder: &Path) -> String {
    format!("/{}", folder.strip_prefix(mount).unwrap_or(folder).display())
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn tree(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = root.path().join("sys/fs/cgroup").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        root
    }

    fn told(files: &[(&str, &str)]) -> Vec<(String, String, bool)> {
        let parts = read(tree(files).path(), &CpuSet::parse("0-7").unwrap());
        parts.into_iter().map(|part| (part.cgroup, part.cpus.to_string(), part.isolated)).collect()
    }

    fn part(cgroup: &str, cpus: &str, isolated: bool) -> (String, String, bool) {
        (cgroup.to_owned(), cpus.to_owned(), isolated)
    }

    #[test]
    fn version_2() {
        let mut files = vec![
            ("cgroup.controllers", "cpuset cpu"),
            ("cpuset.cpus.effective", "0-7"),
            ("a/cpuset.cpus.partition", "root"),
            ("a/cpuset.cpus.effective", "4-5"),
            ("a/b/cpuset.cpus.partition", "isolated"),
            ("a/b/cpuset.cpus.effective", "6"),
            ("c/cpuset.cpus.partition", "root invalid (Cpu list in cpuset.cpus not exclusive)"),
            ("c/cpuset.cpus.effective", "0-3"),
            ("d/cpuset.cpus.partition", "member"),
            ("d/cpuset.cpus.exclusive.effective", "7"),
            ("d/far/cpuset.cpus.partition", "isolated"),
            ("d/far/cpuset.cpus.effective", "7"),
        ];
        assert_eq!(told(&files), [], "nobody has taken a CPU from the root cgroup");
        files[1].1 = "0-3";
        assert_eq!(
            told(&files),
            [part("/a", "4-5", false), part("/a/b", "6", true), part("/d/far", "7", true)]
        );
    }

    #[test]
    fn version_1() {
        let mut files = vec![
            ("cpuset/cpuset.sched_load_balance", "1"),
            ("cpuset/a/cpuset.sched_load_balance", "1"),
            ("cpuset/a/cpuset.effective_cpus", "0-2"),
            ("cpuset/b/cpuset.sched_load_balance", "0"),
            ("cpuset/b/c/cpuset.sched_load_balance", "1"),
            ("cpuset/b/c/cpuset.effective_cpus", "2-3"),
            ("cpuset/b/d/cpuset.sched_load_balance", "1"),
            ("cpuset/b/d/cpuset.effective_cpus", "5,9"),
        ];
        assert_eq!(told(&files), [], "the root cgroup is balanced as a whole");
        files[0].1 = "0";
        let parts = [part("/", "4,6-7", true), part("/a", "0-3", false), part("/b/d", "5", false)];
        assert_eq!(told(&files), parts);
        assert_eq!(told(&files[..1]), [part("/", "0-7", true)]);
        assert_eq!(told(&[]), []);
    }
}
