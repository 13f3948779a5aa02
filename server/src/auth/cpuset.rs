//! The CPUs that a caller may use itself, from the cpuset of its cgroup.

use super::{Peer, process};
use crate::convert::Failure;
use berth_model::{cpuset::CpuSet, hold::Process};
use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// The CPUs inside which this caller may hold some: its effective cpuset. None: no bound of its own, as for who has the
/// admin role, or is not a process of this host.
///
/// # Errors
///
/// If the calling process has ended, or cannot be seen.
pub(crate) fn effective_cpuset(peer: &Peer) -> Result<Option<CpuSet>, Failure> {
    if peer.is_admin() || !peer.is_local() {
        return Ok(None);
    }
    let cpus = peer.process().and_then(|process| of_process(process, Path::new("/")));
    cpus.map(Some).ok_or_else(|| Failure::CallerGone { caller: peer.to_string() })
}

/// The effective cpuset of a process, as its cgroup has it; where that cannot be found, such as from inside a container
/// that does not see the cgroup, the CPUs of its affinity mask, which are always among them. None if it has ended.
pub(crate) fn of_process(process: Process, root: &Path) -> Option<CpuSet> {
    let cgroups = process::file(process, "cgroup")?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    let files = files(&cgroups, &mounts);
    let of_cgroup = files.iter().find_map(|file| cpulist(&fs::read_to_string(file).ok()?));
    let cpus = of_cgroup.or_else(|| of_affinity(&process::file(process, "status")?));
    // What was read of the cgroup is its own if it is alive still.
    cpus.filter(|_| process::lives(process))
}

fn of_affinity(status: &str) -> Option<CpuSet> {
    cpulist(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)
}

/// A list that names any CPU.
fn cpulist(text: &str) -> Option<CpuSet> {
    CpuSet::parse(text.trim()).ok().filter(|cpus| !cpus.is_empty())
}

/// The files that may tell of the cpuset of a process, from its `/proc/PID/cgroup` and from `/proc/self/mountinfo`, in the order in which they count: that of cgroup v1, if its cpusets are mounted; else those
/// of v2, from the process's cgroup upwards, since one without the controller has its parent's CPUs.
pub fn files(cgroups: &str, mounts: &str) -> Vec<PathBuf> {
    let lines = cgroups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (_, controllers, path) in lines {
        if controllers.split(',').any(|name| name == "cpuset") {
            let folders = mounted(path, mounts, |kind, options| {
                kind == "cgroup" && options.split(',').any(|option| option == "cpuset")
            });
            first.extend(folders.first().map(|folder| folder.join("cpuset.effective_cpus")));
        } else if controllers.is_empty() {
            let folders = mounted(path, mounts, |kind, _| kind == "cgroup2");
            second.extend(folders.into_iter().map(|folder| folder.join("cpuset.cpus.effective")));
        }
    }
    first.extend(second);
    first
}

/// The folders of a cgroup and of its ancestors below the first mount of that kind which shows it.
fn mounted(path: &str, mounts: &str, is_kind: impl Fn(&str, &str) -> bool) -> Vec<PathBuf> {
    let path = Path::new(path);
    // Outside of this process's cgroup namespace.
    if path.components().any(|part| part == Component::ParentDir) {
        return Vec::new();
    }
    let mount = mounts.lines().find_map(|line| {
        // Number, parent, device, root, mount point, …, a dash, type, source, options.
        let (before, after) = line.split_once(" - ")?;
        let (before, after): (Vec<_>, Vec<_>) = (before.split(' ').collect(), after.split(' ').collect());
        let shown =
            is_kind(after.first()?, after.get(2)?).then(|| path.strip_prefix(before.get(3)?).ok())??;
        Some((PathBuf::from(before.get(4)?), shown.to_owned()))
    });
    let Some((mount, below)) = mount else { return Vec::new() };
    below.ancestors().map(|part| mount.join(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        30 20 0:26 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
        31 20 0:27 / /sys/fs/cgroup/cpu,cpuset rw,nosuid shared:9 - cgroup cgroup rw,cpuset,cpu\n";
    const CONTAINER: &str = "30 20 0:26 /kubepods/pod7 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn both_versions_are_found() {
        let of = |cgroups: &str, mounts: &str| {
            let files = files(cgroups, mounts).into_iter();
            files.map(|file| file.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let both = of("4:cpu,cpuset:/a:b\n0::/c/d\n", MOUNTS);
        assert_eq!(both[0], "/sys/fs/cgroup/cpu,cpuset/a:b/cpuset.effective_cpus");
        assert_eq!(both[1], "/sys/fs/cgroup/unified/c/d/cpuset.cpus.effective");
        assert_eq!(both.last().unwrap(), "/sys/fs/cgroup/unified/cpuset.cpus.effective");
        let inside = of("0::/kubepods/pod7/c1\n", CONTAINER);
        assert_eq!(inside[0], "/sys/fs/cgroup/c1/cpuset.cpus.effective");
        for hidden in ["0::/kubepods/pod8\n", "0::/../pod8\n", "3:memory:/x\n", "nonsense\n", ""] {
            assert_eq!(of(hidden, CONTAINER), Vec::<String>::new(), "{hidden}");
        }
    }

    /// Of this very process: what its cgroup says holds what its affinity mask says.
    #[test]
    fn this_process_has_one() {
        let process = process::of_host(std::process::id()).unwrap();
        let cpus = of_process(process, Path::new("/")).unwrap();
        let own = of_affinity(&process::file(process, "status").unwrap()).unwrap();
        assert!(own.is_subset(&cpus), "{own} in {cpus}");
        let earlier = Process { start_time: process.start_time - 1, ..process };
        assert_eq!(of_process(earlier, Path::new("/")), None);
    }

    /// A process in a cgroup of its own that has one CPU.
    #[test]
    fn a_cgroup_bounds_its_processes() {
        let this = process::of_host(std::process::id()).unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let own =
            files(&process::file(this, "cgroup").unwrap(), &mounts).into_iter().find(|file| file.exists());
        let all = of_process(this, Path::new("/")).unwrap();
        let Some(own) = own else { return eprintln!("skipped: no cpuset is mounted") };
        let cgroup = own.with_file_name(format!("berth-test-{}", std::process::id()));
        let made = fs::create_dir(&cgroup).and_then(|()| {
            if cgroup.join("cpuset.mems").exists() && own.ends_with("cpuset.effective_cpus") {
                let nodes = fs::read_to_string(own.with_file_name("cpuset.mems"))?;
                fs::write(cgroup.join("cpuset.mems"), nodes)?;
            }
            fs::write(cgroup.join("cpuset.cpus"), all.last().unwrap().to_string())
        });
        if let Err(error) = made {
            let _ = fs::remove_dir(&cgroup);
            return eprintln!("skipped: no cgroup with a cpuset can be made here: {error}");
        }
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let moved = fs::write(cgroup.join("cgroup.procs"), sleeper.id().to_string());
        let process = process::of_host(sleeper.id()).unwrap();
        let cpus = of_process(process, Path::new("/"));
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        let after = of_process(process, Path::new("/"));
        // The kernel takes a moment to let go of what has died.
        for _ in 0..100 {
            if fs::remove_dir(&cgroup).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        moved.unwrap();
        assert_eq!(cpus.unwrap().to_string(), all.last().unwrap().to_string());
        assert_eq!(after, None, "it has ended");
    }
}
