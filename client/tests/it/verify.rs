//! `berth verify` on real processes that share a CPU although another has room.

use std::{
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError},
};

use berth_model::CpuSet;

use crate::{berth::berth, berthd::Berthd};

/// So many crowd on one CPU: whatever else runs here, another has fewer.
const CROWD: usize = 8;

/// Processes that never sleep, bound to the first CPU of this process, and killed when they are dropped.
struct Crowd {
    children: Vec<Child>,
    /// One crowd at a time: two would wait for each other's CPUs.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Crowd {
    /// Nothing where there is one CPU.
    fn start() -> Option<(Self, CpuSet)> {
        let status = std::fs::read_to_string("/proc/self/status").expect("this process has one");
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let allowed = CpuSet::parse(list.expect("it has a mask").trim()).expect("in a list");
        if allowed.len() < 2 {
            eprintln!("skipped: there is one CPU");
            return None;
        }
        let first = allowed.first()?.to_string();
        let spin = |_| {
            let mut command = Command::new("taskset");
            command.args(["-c", &first, "/bin/sh", "-c", "while :; do :; done"]);
            command.spawn().expect("taskset and a shell are there")
        };
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Some((Self { children: (0..CROWD).map(spin).collect(), _alone }, allowed))
    }

    fn pids(&self) -> String {
        let pids: Vec<String> = self.children.iter().map(|child| child.id().to_string()).collect();
        pids.join(",")
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn found_mended_and_gone() {
    let server = Berthd::start();
    let Some((crowd, allowed)) = Crowd::start() else { return };
    let (pids, expected) = (crowd.pids(), allowed.to_string());
    let job = ["verify", "--pid", &pids, "--expected", &expected];
    let found = server.berth(job.iter().chain(&["--check"]));
    assert_eq!(found.status, 10, "{}{}", found.stdout, found.stderr);
    assert!(found.stdout.starts_with("Running tasks\n"), "{}", found.stdout);
    assert!(found.stdout.contains("PILE_UP") && found.stdout.contains("PILED_UP"), "{}", found.stdout);
    assert!(found.stdout.contains("mends it  taskset -cp "), "{}", found.stdout);
    assert!(found.stdout.lines().all(|line| line.chars().count() <= 100), "{}", found.stdout);

    let fixed = server.berth(job.iter().chain(&["--fix", "--yes"]));
    assert_eq!(fixed.status, 0, "{}{}", fixed.stdout, fixed.stderr);
    assert!(fixed.stdout.contains("PILED_UP"), "{}", fixed.stdout);
    let mask = |pid: &str| {
        let said = Command::new("taskset").args(["-cp", pid]).output().expect("taskset is there");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        CpuSet::parse(said.rsplit(": ").next().unwrap_or_default().trim()).expect("a list")
    };
    // Half of them were moved, and have the mask that is expected now.
    assert!(pids.split(',').filter(|pid| mask(pid) == allowed).count() >= 2, "{}", fixed.stdout);
    // They may go where they like now; beside what else runs here, that takes turns.
    let mended = (0..30).map(|_| server.berth(job.iter().chain(&["--check", "--full"])));
    let mended = mended.into_iter().find(|said| said.status == 0).expect("they crowd no more");
    assert!(
        mended.stdout.contains("Nothing is wrong.") && mended.stdout.contains("NO_PILE_UP"),
        "{}",
        mended.stdout
    );
}

#[test]
fn the_first_thing_to_type_on_a_slow_machine() {
    let server = Berthd::start();
    let Some((crowd, _)) = Crowd::start() else { return };
    let json = server.berth(["verify", "--all", "--once", "-o", "json"]).json();
    let found: Vec<String> = json["workloads"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|workload| workload["findings"][0]["reason"] == "CROWDED_BY_MASK")
        .map(|workload| workload["pids"][0].to_string())
        .collect();
    assert!(crowd.pids().split(',').all(|pid| found.iter().any(|other| other == pid)), "{json}");
}

#[test]
fn nothing_is_changed_without_a_word() {
    let server = Berthd::start();
    let Some((crowd, allowed)) = Crowd::start() else { return };
    let expected = allowed.to_string();
    let pids = crowd.pids();
    let asked = server.berth(["verify", "--pid", &pids, "--expected", &expected, "--fix"]);
    assert_eq!(asked.status, 2, "{}{}", asked.stdout, asked.stderr);
    assert!(asked.stderr.contains("--yes does it without"), "{}", asked.stderr);
    let first = allowed.first().expect("it has some").to_string();
    for pid in pids.split(',') {
        let said = Command::new("taskset").args(["-cp", pid]).output().expect("taskset is there");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.trim_end().ends_with(&format!(": {first}")), "{said}");
    }
}

#[test]
fn what_is_meant_has_to_be_said() {
    let none = berth(["verify"]).refusal(2);
    assert!(none.contains("--pid") && none.contains("--all"), "{none}");
    berth(["verify", "--all", "--pid", "1"]).refusal(2);
    berth(["verify", "--all", "--expected", "0"]).refusal(2);
    berth(["verify", "--pid", "0"]).refusal(2);
    berth(["verify", "--all", "--yes"]).refusal(2);
    let server = Berthd::start();
    let long = server.berth(["verify", "--all", "--watch-for", "1m"]).refusal(1);
    assert!(long.contains("--watch-for") && long.contains("10 s"), "{long}");
    let gone = server.berth(["verify", "--pid", "1073741823", "--once"]);
    assert_eq!(gone.status, 0);
    assert!(gone.stderr.contains("not there (any more): 1073741823"), "{}", gone.stderr);
}
