//! The tasks of a command as they start: each is put under the next of some masks.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    time::Duration,
};

use berth_model::CpuSet;
use rustix::{
    process::{Pid, getpid, set_child_subreaper},
    thread,
};
use tokio::time::{Instant, sleep};

use crate::affinity;

/// The time between two looks: short at first, when tasks start.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);

/// What starts in the background, and whose parent ends, stays a child of this process, and is found.
pub(crate) fn adopt_orphans() {
    // Without it, such tasks are not followed.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Masks, and how many tasks each is for.
#[derive(Debug)]
pub(crate) struct Places {
    masks: Vec<(String, CpuSet)>,
    tasks: Vec<u32>,
    taken: Vec<u32>,
}

impl Places {
    /// From the mask of each task.
    pub(crate) fn new(each: &[String]) -> Self {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut order: Vec<&str> = Vec::new();
        for mask in each {
            let count = counts.entry(mask).or_default();
            if *count == 0 {
                order.push(mask);
            }
            *count += 1;
        }
        let parsed = order.iter().filter_map(|mask| Some(((*mask).to_owned(), CpuSet::parse(mask).ok()?)));
        let masks: Vec<(String, CpuSet)> = parsed.collect();
        let tasks: Vec<u32> = masks.iter().map(|(mask, _)| counts[mask.as_str()]).collect();
        Self { taken: vec![0; tasks.len()], tasks, masks }
    }

    /// The masks, each with how many tasks it is for.
    pub(crate) fn told(&self) -> impl Iterator<Item = (&str, u32)> {
        self.masks.iter().map(|(mask, _)| mask.as_str()).zip(self.tasks.iter().copied())
    }

    /// The mask for one more task: that which is the least full for what it is for.
    fn next(&mut self) -> Option<&CpuSet> {
        let fullness = |&at: &usize| u64::from(self.taken[at]) * 1_000_000 / u64::from(self.tasks[at].max(1));
        let at = (0..self.masks.len()).min_by_key(fullness)?;
        self.taken[at] += 1;
        Some(&self.masks[at].1)
    }
}

/// Puts each task that the command starts under the next mask, for so long. The command's first thread is a launcher: it is put
/// nowhere. What has another mask than the command was started with has chosen it itself.
pub(crate) async fn spread(command: Option<u32>, each: &[String], mask: &str, time: Duration) {
    let (Some(command), Ok(given)) = (command, CpuSet::parse(mask)) else { return };
    let mut places = Places::new(each);
    let mut placed: HashSet<u32> = HashSet::from([command]);
    let (end, mut pause) = (Instant::now() + time, SHORTEST);
    while Instant::now() < end {
        let mut found = false;
        for tid in threads_below(command) {
            if placed.contains(&tid) || !is_running(tid) {
                continue;
            }
            placed.insert(tid);
            if is_bound_to(tid, &given)
                && let Some(mask) = places.next()
            {
                // It may have ended, and then takes no place of anybody for long.
                let _ = affinity::set(i32::try_from(tid).ok().and_then(Pid::from_raw), mask);
                found = true;
            }
        }
        pause = if found { SHORTEST } else { (pause * 2).min(LONGEST) };
        sleep(pause.min(end.saturating_duration_since(Instant::now()))).await;
    }
}

/// All threads of a process, of those that descend from it, and of orphans that came to this one.
fn threads_below(command: u32) -> Vec<u32> {
    let mut threads = Vec::new();
    let mut open = vec![command];
    open.extend(children(std::process::id()).into_iter().filter(|&child| child != command));
    let mut seen: HashSet<u32> = HashSet::new();
    while let Some(pid) = open.pop() {
        if seen.insert(pid) {
            threads.extend(tids(pid));
            open.extend(children(pid));
        }
    }
    threads.sort_unstable();
    threads
}

fn tids(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let of = |tid: u32| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let lists: Vec<String> = tids(pid).into_iter().map(of).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether it runs or waits for a CPU. What sleeps may start the others.
fn is_running(tid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('R'))
}

fn is_bound_to(tid: u32, mask: &CpuSet) -> bool {
    let pid = i32::try_from(tid).ok().and_then(Pid::from_raw);
    let Ok(own) = thread::sched_getaffinity(pid) else { return false };
    let most = thread::CpuSet::MAX_CPU;
    let named = (0..most).filter(|&cpu| own.is_set(cpu)).count();
    named == mask.len() && mask.iter().all(|cpu| cpu.index() < most && own.is_set(cpu.index()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_go_where_there_is_most_room() {
        let each: Vec<String> = ["0-3", "0-3", "0-3", "4"].map(str::to_owned).to_vec();
        let mut places = Places::new(&each);
        assert_eq!(places.told().collect::<Vec<_>>(), [("0-3", 3), ("4", 1)]);
        let next: Vec<String> = (0..8).filter_map(|_| places.next().map(ToString::to_string)).collect();
        assert_eq!(next.iter().filter(|mask| *mask == "4").count(), 2, "{next:?}");
        assert_eq!(next[..4].iter().filter(|mask| *mask == "4").count(), 1, "{next:?}");
        assert!(Places::new(&[]).next().is_none());
    }

    /// Real tasks that a shell starts, one of which has bound itself.
    #[tokio::test]
    async fn tasks_are_put_in_turn_but_for_those_that_bound_themselves() {
        let own = affinity::of(std::process::id()).unwrap();
        let (Some(first), Some(last)) = (own.first(), own.last()) else { panic!("it has a mask") };
        if first == last {
            return eprintln!("skipped: there is one CPU");
        }
        let script = format!(
            "for i in 1 2 3 4; do (while :; do :; done) & done; taskset -c {last} sh -c 'while :; do :; done' & echo; wait"
        );
        let mut shell = std::process::Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let each: Vec<String> = [first, last, first, last].map(|cpu| cpu.to_string()).to_vec();
        spread(Some(shell.id()), &each, &own.to_string(), Duration::from_secs(2)).await;
        let tasks: Vec<u32> = threads_below(shell.id()).into_iter().filter(|tid| is_running(*tid)).collect();
        let on = |cpu: berth_model::Cpu| {
            tasks.iter().filter(|tid| affinity::of(**tid) == Some(CpuSet::from(cpu))).count()
        };
        let (counts, all, of_shell) = ((on(first), on(last)), tasks.len(), affinity::of(shell.id()));
        for tid in tasks {
            let _ = rustix::process::kill_process(
                Pid::from_raw(i32::try_from(tid).unwrap()).unwrap(),
                rustix::process::Signal::KILL,
            );
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!((counts, all), ((2, 3), 5), "two each, and the one that chose the last");
        assert_eq!(of_shell, Some(own), "what starts them is left as it was");
    }

    #[test]
    fn threads_of_this_process_are_found() {
        let own = std::process::id();
        assert!(threads_below(own).contains(&own));
    }
}
