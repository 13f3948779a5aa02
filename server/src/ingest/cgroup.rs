//! The folders of a cgroup, and who is in it.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// The file that lists a cgroup's processes.
const PROCESSES: &str = "cgroup.procs";

/// The folders of a cgroup, by its path: below the one hierarchy of v2, or below each of v1. None if there is no such
/// cgroup, or the path can be none.
pub fn folders(root: &Path, path: &str) -> Vec<PathBuf> {
    let below = path.trim_start_matches('/');
    let is_plain = Path::new(below).components().all(|part| matches!(part, Component::Normal(_)));
    if below.is_empty() || !is_plain {
        return Vec::new();
    }
    let mount = root.join("sys/fs/cgroup");
    let hierarchies = fs::read_dir(&mount).into_iter().flatten().filter_map(Result::ok);
    let roots = std::iter::once(mount.clone()).chain(hierarchies.map(|entry| entry.path()));
    roots
        .filter(|root| root.join(PROCESSES).is_file())
        .map(|root| root.join(below))
        .filter(|folder| folder.join(PROCESSES).is_file())
        .collect()
}

/// Whether there is a process in the cgroup of this folder, or in one below it.
pub fn is_populated(folder: &Path) -> bool {
    // v2 says so itself, of those below too.
    if let Ok(events) = fs::read_to_string(folder.join("cgroup.events"))
        && let Some(populated) = events.lines().find_map(|line| line.strip_prefix("populated "))
    {
        return populated.trim() != "0";
    }
    if fs::read_to_string(folder.join(PROCESSES)).is_ok_and(|pids| !pids.trim().is_empty()) {
        return true;
    }
    below(folder).iter().any(|folder| is_populated(folder))
}

/// The numbers of the threads in the cgroup of this folder, and in those below it.
pub fn threads(folder: &Path) -> Vec<u32> {
    let own = |name: &str| fs::read_to_string(folder.join(name));
    // v2, threaded cgroups included, then v1. One that goes away while it is read has none.
    let text = own("cgroup.threads").or_else(|error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => own("tasks"),
        _ => Err(error),
    });
    let mut threads: Vec<u32> =
        text.unwrap_or_default().lines().filter_map(|line| line.trim().parse().ok()).collect();
    below(folder).iter().for_each(|folder| threads.extend(self::threads(folder)));
    threads
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_both_versions_and_of_those_below() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join("sys/fs/cgroup").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("cgroup.procs", "1\n");
        write("a/cgroup.procs", "11\n");
        write("a/cgroup.threads", "11\n12\nno number\n");
        write("a/below/tasks", "13\n");
        write("a/empty/cgroup.threads", "");
        let [folder] = &folders(root.path(), "/a")[..] else { panic!("one hierarchy") };
        assert_eq!(threads(folder), [11, 12, 13]);
        assert_eq!(threads(&root.path().join("gone")), [0; 0]);
    }
}
