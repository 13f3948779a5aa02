//! Processes of the host, each told from a later one that has its number.

use super::load::task::Task;
use berth_model::hold::Process;
use std::{fs, path::Path};

/// The process that has this pid now, below `root`, which is `/` but in tests. Nothing if there is none, or it has ended.
pub fn with_pid(root: &Path, pid: u32) -> Option<Process> {
    let first = Task::parse(&fs::read(root.join(format!("proc/{pid}/stat"))).ok()?)?;
    // An ended process keeps its entry until its parent has taken note. One whose first thread has ended still runs as
    // long as it has others.
    let is_alive = !first.is_dead || first.threads > 1;
    is_alive.then_some(Process { pid, start_time: first.start_time })
}

/// Whether it still runs.
pub fn is_alive(root: &Path, process: Process) -> bool {
    with_pid(root, process.pid) == Some(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_and_its_end() {
        let root = Path::new("/");
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = with_pid(root, child.id()).unwrap();
        let later = Process { start_time: process.start_time + 1, ..process };
        assert!(is_alive(root, process) && !is_alive(root, later));
        child.kill().unwrap();
        // Ended as soon as it is killed, although nobody has waited for it: it is a zombie then.
        while is_alive(root, process) {
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{}", child.id())).exists());
        child.wait().unwrap();
        assert_eq!(with_pid(root, child.id()), None);
    }
}
