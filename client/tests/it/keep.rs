//! `berth hold … -- COMMAND` where no CPUs can be held: the command is not run, or with --or-run as if it were typed alone.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Child, Command, Stdio},
};

use crate::berth::{Said, berth, berth_with};

/// An address at which nobody listens.
const NOBODY: &str = "unix:/nowhere/berthd.sock";

fn hold(flags: &[&str], command: &[&str]) -> Said {
    let args = ["--server", NOBODY, "hold", "-n", "1"].iter().chain(flags).chain(&["--"]).chain(command);
    berth(args)
}

#[test]
fn without_a_hold_the_command_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("ran");
    let said = hold(&[], &["touch", trace.to_str().unwrap()]).refusal(125);
    assert!(!trace.exists());
    assert!(
        said.starts_with("berth: the command was not run, since its CPUs cannot be held: no berthd answers"),
        "{said}"
    );
    assert!(said.ends_with("\n  --or-run runs it all the same.\n"), "{said}");
    // Without a command the status is that of every question.
    berth(["--server", NOBODY, "hold", "-n", "1"]).refusal(3);
}

#[test]
fn if_wished_it_is_run_all_the_same() {
    let said = hold(&["--or-run"], &["sh", "-c", "echo out; echo ${BERTH_CPUS-unset}; exit 7"]);
    assert_eq!((said.status, said.stdout.as_str()), (7, "out\nunset\n"));
    assert!(said.stderr.contains("no berthd answers at"), "{}", said.stderr);
    assert!(said.stderr.ends_with("berth: running the command without a hold\n"), "{}", said.stderr);
}

#[test]
fn a_command_that_cannot_be_started_is_told_apart() {
    assert_eq!(hold(&["--or-run"], &["/nowhere/command"]).status, 127);
    assert_eq!(hold(&["--or-run"], &["/etc/passwd"]).status, 126);
}

#[test]
fn the_command_has_the_standard_input() {
    let args = ["--server", NOBODY, "hold", "-n", "1", "--or-run", "--", "cat"];
    assert_eq!(berth_with(args, |_| {}, "as it came\n").answer(), "as it came\n");
}

#[test]
fn its_death_by_a_signal_is_told_as_shells_do() {
    assert_eq!(hold(&["--or-run"], &["sh", "-c", "kill -KILL $$"]).status, 137);
}

/// Starts a command that says "ready", and waits for it to say so. Its group is its own: the terminal of whoever runs the tests
/// would send its signals to the group that it shows.
fn started(command: &mut Command) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("its stdout is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it says something");
    assert_eq!(line, "ready\n");
    (child, out)
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().expect("kill runs").success());
}

#[test]
fn signals_are_passed_on() {
    for name in ["-TERM", "-INT", "-HUP", "-USR1"] {
        let script = format!(
            "trap 'echo got; exit 9' {}; echo ready; while :; do sleep 0.02; done",
            name.trim_start_matches('-')
        );
        let (mut child, mut out) = started(
            // A test that runs in the background of a shell may have been told to ignore some of them.
            Command::new("env")
                .args(["--default-signal", env!("CARGO_BIN_EXE_berth"), "--server", NOBODY])
                .args(["hold", "-n", "1", "--or-run", "--", "sh", "-c", &script]),
        );
        signal(&child, name);
        let status = child.wait().expect("it ends");
        let mut rest = String::new();
        out.read_line(&mut rest).expect("it says something");
        assert_eq!((status.code(), status.signal(), rest.as_str()), (Some(9), None, "got\n"), "{name}");
    }
}

#[test]
fn what_is_ignored_stays_ignored() {
    let berth = env!("CARGO_BIN_EXE_berth");
    let script = format!(
        "trap '' HUP; exec {berth} --server {NOBODY} hold -n 1 --or-run -- \
         sh -c 'kill -HUP $$; echo ready; exit 5'"
    );
    let (mut child, _) = started(Command::new("sh").args(["-c", &script]));
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
}
