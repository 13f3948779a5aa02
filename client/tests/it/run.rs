//! `berth run`: a command where its tasks do not pile up, and a command in any case.

use crate::{
    berth::{Said, berth, berth_with, machine},
    berthd::Berthd,
};

/// An address at which nobody listens.
const NOBODY: &str = "unix:/nowhere/berthd.sock";
/// What a command says of itself: its parent, its mask, and what it was given.
const TELL: &str = "echo $PPID; sed -n 's/Cpus_allowed_list:\t//p' /proc/self/status; echo ${BERTH_CPUS-unset}; echo ${OMP_NUM_THREADS-unset}";

fn told(said: Said) -> Vec<String> {
    said.answer().lines().map(str::to_owned).collect()
}

#[test]
fn the_command_is_bound_and_is_this_process() {
    let server = Berthd::start();
    let run = ["run", "-n", "1", "--cpus", "0", "--within", "20s", "--", "sh", "-c", TELL];
    let lines = told(server.berth(run));
    assert_eq!(lines, [std::process::id().to_string().as_str(), "0", "0", "1"]);
    let failing = ["run", "-n", "1", "--within", "20s", "--", "sh", "-c", "exit 7"];
    assert_eq!(server.berth(failing).status, 7);
    let killed = ["run", "-n", "1", "--within", "20s", "--follow", "1s", "--", "sh", "-c", "exit 9"];
    assert_eq!(server.berth(killed).status, 9);
}

#[test]
fn its_cpus_are_held_while_it_starts() {
    let server = Berthd::start();
    let holds =
        format!("{} --server {} holds $BERTH_HOLD -o json", env!("CARGO_BIN_EXE_berth"), server.address());
    let json =
        server.berth(["run", "-n", "1", "--cpus", "0", "--within", "20s", "--", "sh", "-c", &holds]).json();
    let hold = &json["hold"];
    assert_eq!((hold["cpus"].as_str(), hold["tasks"].as_u64()), (Some("0"), Some(1)), "{json}");
    // It ends with the command, if a sample has not seen its task before.
    assert!(hold["owner"]["process"]["pid"].as_u64() > Some(1), "{json}");
}

#[test]
fn whatever_goes_wrong_it_is_run() {
    let script = ["--", "sh", "-c", "echo out; exit 7"];
    let away = berth(["--server", NOBODY, "run", "-n", "2"].iter().chain(&script));
    assert_eq!((away.status, away.stdout.as_str()), (7, "out\n"));
    assert!(
        away.stderr.starts_with("berth: running the command without advice: no berthd answers"),
        "{}",
        away.stderr
    );

    let server = Berthd::start();
    server.halt();
    let slow = server.berth(["run", "-n", "2"].iter().chain(&script));
    assert_eq!((slow.status, slow.stdout.as_str()), (7, "out\n"));
    assert!(
        slow.stderr.contains("without advice: no answer from") && slow.stderr.contains("200ms"),
        "{}",
        slow.stderr
    );

    let kept = berth(["--server", NOBODY, "run", "-n", "2", "--cpus", "0", "--", "sh", "-c", TELL]);
    assert!(kept.stdout.contains("\n0\nunset\nunset\n"), "still where it was told to be: {}", kept.stdout);

    let off = berth_with(
        ["--server", NOBODY, "run", "-n", "2"].iter().chain(&script),
        |command| _ = command.env("BERTH", "off"),
        "",
    );
    assert_eq!((off.status, off.stderr.as_str()), (7, ""));
}

#[test]
fn unless_advice_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("ran");
    let touch = ["--", "touch", trace.to_str().unwrap()];
    let said = berth(["--server", NOBODY, "run", "-n", "1", "--require"].iter().chain(&touch)).refusal(125);
    assert!(said.starts_with("berth: the command was not run: no berthd answers"), "{said}");
    assert!(!trace.exists());
    berth(["--server", NOBODY, "run", "-n", "1", "--", "/nowhere/command"]).refusal_of_command(127);
    berth(["--server", NOBODY, "run", "-n", "1", "--", "/etc/passwd"]).refusal_of_command(126);
    berth(["run", "-n", "1"]).refusal(2);
    berth(["run", "--", "true"]).refusal(2);
}

impl Said {
    /// It ended with a status of the command's, which said nothing.
    fn refusal_of_command(&self, status: i32) {
        assert_eq!((self.status, self.stdout.as_str()), (status, ""), "{}", self.stderr);
        assert!(self.stderr.contains("cannot run /"), "{}", self.stderr);
    }
}

#[test]
fn what_is_set_already_stays() {
    let server = Berthd::start();
    let run = ["run", "-n", "1", "--cpus", "0", "--within", "20s", "--", "sh", "-c", TELL];
    let lines = told(berth_with(
        [&["--server", &server.address()], &run[..]].concat(),
        |command| _ = command.env("OMP_NUM_THREADS", "3"),
        "",
    ));
    assert_eq!(lines[3], "3");
}

/// 176 tasks on a 640-CPU host, whose kernel piles them up under any one mask.
#[test]
fn what_would_be_done_is_shown() {
    let xml = machine("seeds/turin-2s-l3-as-numa.xml");
    let flags = ["--no-tcp", "--kernel", "6.12.95", "--topology-xml", xml.to_str().unwrap()];
    let server = Berthd::start_with(flags);
    let run = ["run", "-n", "176", "--cpus", "0-175", "--within", "20s", "--dry-run"];
    let command = ["--", "stress-ng", "--cpu", "176", "a b"];
    let omp = server.berth(run.iter().chain(&command)).answer();
    assert!(omp.starts_with("taskset -c 0-175 env OMP_NUM_THREADS=176 OMP_PLACES='{0},{1},"), "{omp}");
    assert!(omp.ends_with("BERTH_CPUS=0-175 stress-ng --cpu 176 'a b'\n"), "{omp}");
    let followed = server.berth(run.iter().chain(&["--follow", "1s"]).chain(&command)).answer();
    let lines: Vec<&str> = followed.lines().collect();
    assert_eq!(
        lines[0],
        "taskset -c 0-175 env OMP_NUM_THREADS=176 BERTH_CPUS=0-175 stress-ng --cpu 176 'a b'"
    );
    assert_eq!(lines[2..], ["  0-159  (160 each round)", "  160-175  (16 each round)"], "{followed}");
    let json = server.berth(run.iter().chain(&["-o", "json"]).chain(&command)).json();
    assert_eq!(json["advice"]["form"], "PER_TASK");
    // These CPUs are not here: it is run all the same, where it may be.
    let run = ["run", "-n", "2", "--cpus", "600-601", "--within", "20s", "--", "sh", "-c", "echo out"];
    let said = server.berth(run);
    assert_eq!((said.status, said.stdout.as_str()), (0, "out\n"), "{}", said.stderr);
    assert!(said.stderr.contains("600-601"), "{}", said.stderr);
}

/// The real program that the first report was about. Four workers on two CPUs: under one mask this kernel would put three on one.
#[test]
fn workers_that_a_program_forks_are_followed() {
    if std::process::Command::new("stress-ng").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no stress-ng");
    }
    let own = affinity();
    if !berth_model::CpuSet::first_n(2).is_subset(&own) {
        return eprintln!("skipped: CPUs 0 and 1 are not both this process's");
    }
    let host = ["--no-tcp", "--topology-synthetic", "pack:1 [numa] core:2 pu:1", "--kernel", "6.12.95"];
    let server = Berthd::start_with(host);
    let advised = server.berth(["advise", "-n", "4", "--cpus", "0-1", "-o", "list"]).answer();
    let mut advised: Vec<&str> = advised.lines().collect();
    advised.sort_unstable();
    assert!(advised.len() == 4 && advised.contains(&"0"), "no one mask is safe: {advised:?}");
    let script = "stress-ng --cpu 4 --timeout 20s --quiet & wait_for=$!; sleep 3; \
        for p in $(cat /proc/$wait_for/task/$wait_for/children); do \
            taskset -cp $p | sed 's/.*: //'; for q in $(cat /proc/$p/task/$p/children); do taskset -cp $q | sed 's/.*: //'; done; \
        done; kill $wait_for; wait";
    let run =
        ["run", "-n", "4", "--cpus", "0-1", "--within", "20s", "--follow", "2s", "--", "sh", "-c", script];
    let said = server.berth(run);
    let mask = |line: &str| berth_model::CpuSet::parse(line).map(|mask| mask.to_string()).ok();
    let mut masks: Vec<String> = said.stdout.lines().filter_map(mask).collect();
    masks.sort_unstable();
    assert_eq!(masks, advised, "{}{}", said.stdout, said.stderr);
}

/// The CPUs of this process.
fn affinity() -> berth_model::CpuSet {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process has one");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    berth_model::CpuSet::parse(list.expect("it has a mask").trim()).expect("a list")
}
