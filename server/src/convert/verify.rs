//! `Verify`: what is asked, and what was seen.

use super::{Faults, count, cpus, time};
use berth_model::{cpuset::CpuSet, topology::Topology};
use berth_proto::v1::{self, fix::Action, view};
use std::time::Duration;

/// The most processes in one request.
const MAX_PIDS: usize = 4096;
/// The longest watch.
const MAX_WATCH: Duration = Duration::from_secs(10);

/// Whose tasks are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Processes.
    Pids(Vec<u32>),
    /// A cgroup with its descendants, by its path below the mount.
    Cgroup(String),
    /// A hold, by id or name.
    Hold(String),
    /// Every pinned workload.
    All,
}

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) target: Target,
    /// The CPUs that the tasks should be on.
    pub(crate) expected: Option<CpuSet>,
    /// For how long to watch; a single look if it is nothing.
    pub(crate) watch: Option<Duration>,
    pub(crate) memory: bool,
    pub(crate) full: bool,
}

/// Takes a request. What is wrong with it is noted, and nothing is returned then.
pub(crate) fn from_wire(
    request: v1::VerifyRequest,
    topology: &Topology,
    faults: &mut Faults,
) -> Option<Asked> {
    let view = request.view();
    let v1::VerifyRequest { pids, cgroup, hold, all, expected, watch_for, memory, .. } = request;
    let given = [!pids.is_empty(), !cgroup.is_empty(), !hold.is_empty(), all];
    let target = match given {
        [true, false, false, false] if pids.len() > MAX_PIDS => {
            faults.add("pids", format!("{} processes are too many; expected at most {MAX_PIDS}", pids.len()));
            None
        }
        [true, false, false, false] => {
            if let Some(at) = pids.iter().position(|&pid| pid == 0) {
                faults.add(format!("pids[{at}]"), "0 is no process; expected a number from 1 on");
            }
            Some(Target::Pids(pids))
        }
        [false, true, false, false] => Some(Target::Cgroup(cgroup)),
        [false, false, true, false] => Some(Target::Hold(hold)),
        [false, false, false, true] => Some(Target::All),
        _ => {
            let what = if given.contains(&true) { "more than one is given" } else { "none is given" };
            faults.add("pids", format!("of `pids`, `cgroup`, `hold` and `all` {what}; expected exactly one"));
            None
        }
    };
    let expected = cpus::set("expected", &expected, faults);
    if let Some(expected) = &expected {
        cpus::exist("expected", expected, topology, faults);
        if all {
            faults.add("expected", "with `all`, each workload would have its own; leave it out");
        }
    }
    let watch = watch_for.and_then(|watch| faults.take("watch_for", time::duration_from_wire(watch)));
    if watch.is_some_and(|watch| watch > MAX_WATCH) {
        faults.add("watch_for", format!("longer than {} s; expected at most that", MAX_WATCH.as_secs()));
    }
    let watch = watch.filter(|watch| !watch.is_zero());
    Some(Asked { target: target?, expected, watch, memory, full: view == view::Value::Full })
}

/// A finding that nothing mends yet.
pub(crate) fn finding(reason: &str, message: String, cpus: &CpuSet, tids: Vec<u32>) -> v1::Finding {
    let (reason, cpus) = (reason.to_owned(), cpus.to_string());
    v1::Finding { reason, message, cpus, tids, fixes: Vec::new() }
}

/// The step that gives threads a mask.
pub(crate) fn set_affinity(tids: Vec<u32>, cpus: &CpuSet) -> v1::Fix {
    let cpus = cpus.to_string();
    let each: Vec<String> = tids.iter().map(u32::to_string).collect();
    let command = match &each[..] {
        [only] => format!("taskset -cp {cpus} {only}"),
        many => format!("for t in {}; do taskset -cp {cpus} $t; done", many.join(" ")),
    };
    let action = Some(Action::SetAffinity(v1::SetAffinity { tids, cpus }));
    v1::Fix { command, needs_root: false, action }
}

/// The step that moves a process's memory.
pub(crate) fn move_memory(pid: u32, from: &[u32], to: &[u32]) -> v1::Fix {
    let list = |nodes: &[u32]| nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let (from, to) = (list(from), list(to));
    let command = format!("migratepages {pid} {from} {to}");
    let action = Some(Action::MoveMemory(v1::MoveMemory { pid, from, to }));
    v1::Fix { command, needs_root: false, action }
}

/// What so many threads do, as a sentence has it.
pub(crate) fn threads(number: usize, one_does: &str, many_do: &str) -> String {
    if number == 1 { format!("1 thread {one_does}") } else { format!("{} threads {many_do}", count(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::Failure;

    fn asked(request: v1::VerifyRequest) -> Result<Asked, String> {
        let topology = berth_model::topology::Shape { cores: 4, ..Default::default() }.topology().unwrap();
        let mut faults = Faults::default();
        let asked = from_wire(request, &topology, &mut faults);
        match faults.none() {
            Ok(()) => Ok(asked.unwrap()),
            Err(Failure::Fields(faults)) => {
                Err(faults.into_iter().map(|fault| fault.field).collect::<Vec<_>>().join(" "))
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn exactly_one_target() {
        let pids = v1::VerifyRequest { pids: vec![7], ..Default::default() };
        assert_eq!(asked(pids.clone()).unwrap().target, Target::Pids(vec![7]));
        assert_eq!(asked(v1::VerifyRequest::default()).unwrap_err(), "pids");
        assert_eq!(asked(v1::VerifyRequest { all: true, ..pids.clone() }).unwrap_err(), "pids");
        let zero = v1::VerifyRequest { pids: vec![1, 0], ..Default::default() };
        assert_eq!(asked(zero).unwrap_err(), "pids[1]");
        let many = v1::VerifyRequest { pids: vec![1; MAX_PIDS + 1], ..Default::default() };
        assert_eq!(asked(many).unwrap_err(), "pids");
        let long = prost_types::Duration { seconds: 11, nanos: 0 };
        let wrong = v1::VerifyRequest { expected: "9".to_owned(), watch_for: Some(long), ..pids };
        assert_eq!(asked(wrong).unwrap_err(), "expected watch_for");
        let all = v1::VerifyRequest { all: true, expected: "0".to_owned(), ..Default::default() };
        assert_eq!(asked(all).unwrap_err(), "expected");
    }

    #[test]
    fn commands() {
        let cpus = CpuSet::parse("1-2").unwrap();
        assert_eq!(set_affinity(vec![7], &cpus).command, "taskset -cp 1-2 7");
        assert_eq!(set_affinity(vec![7, 8], &cpus).command, "for t in 7 8; do taskset -cp 1-2 $t; done");
        assert_eq!(move_memory(7, &[0, 2], &[1]).command, "migratepages 7 0,2 1");
    }
}
