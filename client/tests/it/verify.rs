//! `berth verify` on real processes that share a CPU although another has room.

use std::{
    process::{Child, Command},
    sync::{Mutex, MutexGuard, PoisonError},
};

use berth_model::CpuSet;

use crate::{
    berth::{Said, berth},
    berthd::Berthd,
};

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

/// Asks until the answer is as it should be: other tests crowd CPUs too, for a while.
fn until(server: &Berthd, words: &[&str], is_so: impl Fn(&Said) -> bool) -> Said {
    let mut tries = (0..100).map(|_| server.berth(words));
    tries.find(|said| is_so(said)).unwrap_or_else(|| panic!("it never was so: {words:?}"))
}

#[test]
fn found_mended_and_gone() {
    let server = Berthd::start();
    let Some((crowd, allowed)) = Crowd::start() else { return };
    let (pids, expected) = (crowd.pids(), allowed.to_string());
    let job = ["verify", "--pid", &pids, "--expected", &expected];
    let found = until(&server, &[&job[..], &["--check"]].concat(), |said| said.status == 10);
    assert!(found.stdout.starts_with("Running tasks\n"), "{}", found.stdout);
    assert!(found.stdout.contains("PILE_UP") && found.stdout.contains("PILED_UP"), "{}", found.stdout);
    assert!(found.stdout.contains("mends it  taskset -cp "), "{}", found.stdout);
    assert!(found.stdout.lines().all(|line| line.chars().count() <= 100), "{}", found.stdout);

    let fix = [&job[..], &["--fix", "--yes"]].concat();
    let fixed = until(&server, &fix, |said| said.stdout.contains("PILED_UP"));
    assert_eq!(fixed.status, 0, "{}{}", fixed.stdout, fixed.stderr);
    let mask = |pid: &str| {
        let said = Command::new("taskset").args(["-cp", pid]).output().expect("taskset is there");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        CpuSet::parse(said.rsplit(": ").next().unwrap_or_default().trim()).expect("a list")
    };
    // Half of them were moved, and have the mask that is expected now.
    assert!(pids.split(',').filter(|pid| mask(pid) == allowed).count() >= 2, "{}", fixed.stdout);
    // They may go where they like now; beside what else runs here, that takes turns.
    let mended = until(&server, &[&job[..], &["--check", "--full"]].concat(), |said| said.status == 0);
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
    let is_found = |said: &Said| {
        let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("one document");
        let workloads = json["workloads"].as_array().expect("a list").iter();
        let crowded = workloads.filter(|workload| workload["findings"][0]["reason"] == "CROWDED_BY_MASK");
        let found: Vec<String> = crowded.map(|workload| workload["pids"][0].to_string()).collect();
        crowd.pids().split(',').all(|pid| found.iter().any(|other| other == pid))
    };
    until(&server, &["verify", "--all", "-o", "json"], is_found);
}

#[test]
fn nothing_is_changed_without_a_word() {
    let server = Berthd::start();
    let Some((crowd, allowed)) = Crowd::start() else { return };
    let expected = allowed.to_string();
    let pids = crowd.pids();
    let fix = ["verify", "--pid", &pids, "--expected", &expected, "--fix"];
    let asked = until(&server, &fix, |said| said.status == 2);
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
    let gone = server.berth(["verify", "--pid", "1073741823"]);
    assert_eq!(gone.status, 0);
    assert!(gone.stderr.contains("not there (any more): 1073741823"), "{}", gone.stderr);
}
