//! The tasks of a command as they start: each is put under the next of some masks.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
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
    fn take(&mut self) -> Option<usize> {
        let at = (0..self.masks.len()).min_by_key(|&at| self.fullness(at, 0))?;
        self.taken[at] += 1;
        Some(at)
    }

    /// From which mask to which a task should go, now that some have ended: the one stays fuller than the other becomes.
    fn uneven(&self) -> Option<(usize, usize)> {
        let from = (0..self.masks.len()).max_by_key(|&at| self.fullness(at, 0))?;
        let to = (0..self.masks.len()).min_by_key(|&at| self.fullness(at, 1))?;
        (self.fullness(from, 0) > self.fullness(to, 1)).then_some((from, to))
    }

    /// How full a mask is with some tasks more, in millionths.
    fn fullness(&self, at: usize, more: u32) -> u64 {
        u64::from(self.taken[at] + more) * 1_000_000 / u64::from(self.tasks[at].max(1))
    }

    /// Gives the place of a task back.
    fn give_back(&mut self, at: usize) {
        self.taken[at] = self.taken[at].saturating_sub(1);
    }
}

/// Puts each task that the command starts under the next mask, for so long. What starts others is a launcher, the command's first
/// thread before all: it is put nowhere. What has another mask than what it was started by has chosen it itself.
pub(crate) async fn spread(command: Option<u32>, each: &[String], mask: &str, time: Duration) {
    let (Some(command), Ok(given)) = (command, CpuSet::parse(mask)) else { return };
    let mut following = Following {
        places: Places::new(each),
        given,
        placed: HashMap::new(),
        launchers: HashMap::new(),
        left: HashSet::from([command]),
        ran: HashSet::new(),
    };
    let (end, mut pause) = (Instant::now() + time, SHORTEST);
    while Instant::now() < end {
        let found = following.look(command);
        pause = if found { SHORTEST } else { (pause * 2).min(LONGEST) };
        sleep(pause.min(end.saturating_duration_since(Instant::now()))).await;
    }
}

/// What was done so far.
struct Following {
    places: Places,
    /// The mask that the command was started with.
    given: CpuSet,
    /// The place of each task that was put somewhere.
    placed: HashMap<u32, usize>,
    /// Of each launcher that was put somewhere at first, where: what it started then has inherited that.
    launchers: HashMap<u32, usize>,
    /// Launchers, and what has chosen its mask itself.
    left: HashSet<u32>,
    /// What ran at a look: whoever runs at another one too is no passing helper.
    ran: HashSet<u32>,
}

impl Following {
    /// Looks once; says whether something was done.
    fn look(&mut self, command: u32) -> bool {
        let mut found = false;
        let tasks = tasks_below(command);
        // Places of those that have ended are free.
        let lives = |tid: &u32| self.placed.contains_key(tid) && state(*tid).is_some();
        let living: HashSet<u32> = tasks.iter().map(|task| task.tid).filter(lives).collect();
        for (_, at) in self.placed.extract_if(|tid, _| !living.contains(tid)) {
            self.places.give_back(at);
        }
        for task in tasks {
            if self.left.contains(&task.tid) {
                continue;
            }
            if let Some(&at) = self.placed.get(&task.tid) {
                // It ran as it started, and is a launcher.
                if task.has_children {
                    self.places.give_back(at);
                    self.placed.remove(&task.tid);
                    self.launchers.insert(task.tid, at);
                    self.left.insert(task.tid);
                    put(task.tid, &self.given);
                    found = true;
                }
            } else if !task.has_children && is_running(task.tid) && !self.ran.insert(task.tid) {
                let at = self.placed.get(&task.starter).or_else(|| self.launchers.get(&task.starter));
                let of_starter = at.map(|&at| &self.places.masks[at].1);
                let inherited = is_bound_to(task.tid, &self.given)
                    || of_starter.is_some_and(|mask| is_bound_to(task.tid, mask));
                match inherited.then(|| self.places.take()).flatten() {
                    Some(at) => {
                        put(task.tid, &self.places.masks[at].1);
                        self.placed.insert(task.tid, at);
                        found = true;
                    }
                    None => _ = self.left.insert(task.tid),
                }
            }
        }
        found | self.even_out()
    }

    /// Moves tasks to places that others have left; says whether one was.
    fn even_out(&mut self) -> bool {
        let mut moved = false;
        while let Some((from, to)) = self.places.uneven()
            && let Some((&tid, at)) = self.placed.iter_mut().find(|(_, at)| **at == from)
        {
            *at = to;
            self.places.give_back(from);
            self.places.taken[to] += 1;
            put(tid, &self.places.masks[to].1);
            moved = true;
        }
        moved
    }
}

/// Sets the mask of a task. It may have ended, and then takes no place of anybody for long.
fn put(tid: u32, mask: &CpuSet) {
    let _ = affinity::set(i32::try_from(tid).ok().and_then(Pid::from_raw), mask);
}

/// A thread below the command.
#[derive(Debug, Clone, Copy)]
struct Task {
    tid: u32,
    /// What has started it: the first thread of its process, or that of the process' parent.
    starter: u32,
    /// Its process has started others.
    has_children: bool,
}

/// All threads of a process, of those that descend from it, and of orphans that came to this one; the oldest processes first.
fn tasks_below(command: u32) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut open: Vec<(u32, u32)> = vec![(command, command)];
    let orphans = children(std::process::id()).into_iter().filter(|&child| child != command);
    open.extend(orphans.map(|orphan| (orphan, command)));
    let mut seen: HashSet<u32> = HashSet::new();
    while let Some((pid, parent)) = open.pop() {
        if seen.insert(pid) {
            let below = children(pid);
            let task = |tid| {
                let is_first = tid == pid;
                let starter = if is_first { parent } else { pid };
                Task { tid, starter, has_children: is_first && !below.is_empty() }
            };
            tasks.extend(tids(pid).into_iter().map(task));
            open.extend(below.iter().map(|&child| (child, pid)));
        }
    }
    tasks.sort_unstable_by_key(|task| task.tid);
    tasks
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
    state(tid) == Some('R')
}

/// Its state as a letter of /proc. Nothing if it has ended, also if nobody has taken note of that.
fn state(tid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    let letter = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    (!matches!(letter, 'Z' | 'X')).then_some(letter)
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
        let next: Vec<usize> = (0..8).filter_map(|_| places.take()).collect();
        assert_eq!(next.iter().filter(|at| **at == 1).count(), 2, "{next:?}");
        assert_eq!(next[..4].iter().filter(|at| **at == 1).count(), 1, "{next:?}");
        places.give_back(1);
        assert_eq!((places.take(), Places::new(&[]).take()), (Some(1), None));
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
        let tasks: Vec<u32> =
            tasks_below(shell.id()).into_iter().map(|task| task.tid).filter(|tid| is_running(*tid)).collect();
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
        assert!(tasks_below(own).iter().any(|task| task.tid == own));
    }
}
