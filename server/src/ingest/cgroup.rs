//! The folders of a cgroup, and who is in it.

use super::process::unless_gone;
use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// The file that lists a cgroup's processes.
const PROCESSES: &str = "cgroup.procs";

/// The folders of a cgroup, by its path: below the one hierarchy of v2, or below each of v1. None if there is no such
/// cgroup, or the path can be none.
///
/// # Errors
///
/// If it cannot be told.
pub fn folders(root: &Path, path: &str) -> io::Result<Vec<PathBuf>> {
    let below = path.trim_start_matches('/');
    let is_plain = Path::new(below).components().all(|part| matches!(part, Component::Normal(_)));
    if below.is_empty() || !is_plain {
        return Ok(Vec::new());
    }
    let mount = root.join("sys/fs/cgroup");
    let mut folders = Vec::new();
    for root in std::iter::once(mount.clone()).chain(entries(&mount)?) {
        let folder = root.join(below);
        if is_there(&root.join(PROCESSES))? && is_there(&folder.join(PROCESSES))? {
            folders.push(folder);
        }
    }
    Ok(folders)
}

fn is_there(file: &Path) -> io::Result<bool> {
    Ok(unless_gone(fs::metadata(file))?.is_some_and(|about| about.is_file()))
}

/// Whether there is a process in the cgroup of this folder, or in one below it.
///
/// # Errors
///
/// If it cannot be told.
pub fn is_populated(folder: &Path) -> io::Result<bool> {
    let read = |name: &str| unless_gone(fs::read_to_string(folder.join(name)));
    // v2 says so itself, of those below too.
    if let Some(events) = read("cgroup.events")?
        && let Some(populated) = events.lines().find_map(|line| line.strip_prefix("populated "))
    {
        return Ok(populated.trim() != "0");
    }
    if read(PROCESSES)?.is_some_and(|pids| !pids.trim().is_empty()) {
        return Ok(true);
    }
    for folder in below(folder)? {
        if is_populated(&folder)? {
            return Ok(true);
        }
    }
    Ok(false)
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
    let below = below(folder).unwrap_or_default();
    below.iter().for_each(|folder| threads.extend(self::threads(folder)));
    threads
}

/// The folders in one.
fn below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in entries(folder)? {
        if unless_gone(fs::symlink_metadata(&entry))?.is_some_and(|about| about.is_dir()) {
            folders.push(entry);
        }
    }
    Ok(folders)
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = unless_gone(fs::read_dir(folder))?.into_iter().flatten();
    entries.map(|entry| entry.map(|entry| entry.path())).collect()
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
        let [folder] = &folders(root.path(), "/a").unwrap()[..] else { panic!("one hierarchy") };
        assert_eq!(threads(folder), [11, 12, 13]);
        assert_eq!(threads(&root.path().join("gone")), [0; 0]);
    }
}
