//! The hooks without Slurm: whatever they are given, they end with 0 and say what they should.

use std::{
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt as _, fs::PermissionsExt as _},
    process::{Child, Command, Output, Stdio},
};

use super::{cluster::text, two_cpus, unsafe_host};
use crate::berth::{berth, berth_with};

const NOBODY: &str = "unix:/nowhere/berthd.sock";
const HOOKS: [&str; 3] = ["prolog", "task-prolog", "epilog"];

/// A shell that is a task, and its hook: its process is the hook's parent.
fn task(server: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new("/bin/sh");
    let script = format!(
        "SLURM_TASK_PID=$$ {} --server {server} slurm task-prolog; echo \"ends $?\"; \
        while read -r name value; do [ \"$name\" = Cpus_allowed_list: ] && echo \"is on $value\"; done </proc/self/status; true",
        env!("CARGO_BIN_EXE_berth")
    );
    command.env_clear().args(["-c", &script]).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What Slurm tells one of four tasks.
fn step(local: &str) -> Vec<(&str, &str)> {
    vec![
        ("SLURM_CLUSTER_NAME", "alone"),
        ("SLURMD_NODENAME", "node"),
        ("SLURM_JOB_ID", "7"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_NODEID", "0"),
        ("SLURM_LOCALID", local),
        ("SLURM_STEP_TASKS_PER_NODE", "4"),
        ("SLURM_CPU_BIND_TYPE", "mask_cpu:"),
        ("SLURM_CPU_BIND_LIST", "0x3"),
    ]
}

fn ended(child: Child) -> String {
    let Output { stdout, stderr, status } = child.wait_with_output().expect("it ends");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && stdout.contains("ends 0\n"), "{stdout}{stderr}");
    stdout.into_owned()
}

fn said(command: &mut Command) -> String {
    ended(command.spawn().expect("a shell starts"))
}

#[test]
fn without_what_slurm_tells_they_end_well() {
    for hook in HOOKS {
        for server in [NOBODY, "nonsense", ""] {
            let said =
                berth_with(["slurm", hook], |berth| _ = berth.env_clear().env("BERTH_SERVER", server), "");
            assert_eq!(said.status, 0, "{hook} {server}: {said:?}");
        }
        for args in
            [&["--no-such-flag"][..], &["too", "much"], &["--timeout", "never"], &["--tls-ca", "/nowhere"]]
        {
            assert_eq!(berth(["slurm", hook].iter().chain(args)).status, 0, "{hook} {args:?}");
        }
    }
}

#[test]
fn a_broken_environment_is_said_and_harms_nobody() {
    let mut broken = Vec::new();
    for name in
        ["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NODEID", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"]
    {
        for value in ["-1", "x", "99999999999999999999", " 1", "4(x"] {
            broken.push((name, value.to_owned()));
        }
    }
    for value in ["0x", "0xzz", "0x3,0x", "0x100000000000000000000000000000000", "0x8"] {
        broken.push(("SLURM_CPU_BIND_LIST", value.to_owned()));
    }
    broken.push(("SLURM_CPU_BIND_LIST", format!("0x{}", "f".repeat(100_000))));
    broken.push(("SLURM_LOCALID", "4".to_owned()));
    for (name, value) in &broken {
        let mut variables = step("0");
        variables.push((name, value));
        let said = said(&mut task(NOBODY, &variables));
        assert!(said.starts_with("export BERTH_STATUS=failed: "), "{name}={value:.40}: {said}");
    }
    let odd = OsString::from_vec(vec![0xff, b'=', 0xfe]);
    let said = said(
        task(NOBODY, &step("0")).env("SLURM_CLUSTER_NAME", &odd).env("BERTH", &odd).env(odd.clone(), &odd),
    );
    assert!(said.contains("no berthd answers at unix:/nowhere"), "{said}");
}

#[test]
fn somebody_elses_process_is_not_touched() {
    let variables = step("0").into_iter().chain([("SLURM_TASK_PID", "1")]);
    let said = berth_with(
        ["--server", NOBODY, "slurm", "task-prolog"],
        |berth| _ = berth.env_clear().envs(variables),
        "",
    );
    assert!(said.answer().contains("process 1 of SLURM_TASK_PID did not start this one"));
}

#[test]
fn where_nothing_can_be_written_nothing_is() {
    for closing in [">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", ">/dev/full 2>/dev/full"] {
        for hook in HOOKS {
            let script = format!("{} --server {NOBODY} slurm {hook} {closing}", env!("CARGO_BIN_EXE_berth"));
            let status = Command::new("/bin/sh").args(["-c", &script]).status().expect("a shell starts");
            assert!(status.success(), "{hook} {closing}");
        }
    }
    // Nobody reads.
    let script = format!("{} --server {NOBODY} slurm task-prolog | true", env!("CARGO_BIN_EXE_berth"));
    assert!(Command::new("/bin/sh").args(["-c", &script]).status().expect("a shell starts").success());
}

#[test]
fn where_nothing_can_be_started_they_end_well() {
    // No memory to speak of, no threads, no files.
    for limit in ["ulimit -v 65536", "ulimit -n 12", "ulimit -s 64", "ulimit -f 0"] {
        for hook in HOOKS {
            let folder = tempfile::tempdir().expect("there is room");
            let script = folder.path().join(hook);
            install(folder.path().to_str().expect("it is text"), NOBODY);
            let script = format!("{limit}; {}", text(&script));
            let said = Command::new("/bin/sh").args(["-c", &script]).output().expect("a shell starts");
            assert!(said.status.success(), "{hook} {limit}: {said:?}");
        }
    }
}

fn install(folder: &str, server: &str) -> String {
    berth(["--server", server, "slurm", "install", "--write", folder]).answer()
}

#[test]
fn what_is_installed_is_absolute_and_can_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("a/hooks");
    let lines = install(text(&place), NOBODY);
    let conf = format!("Prolog={0}/prolog\nEpilog={0}/epilog\nTaskProlog={0}/task-prolog\n", place.display());
    assert!(lines.ends_with(&conf), "{lines}");
    assert_eq!(install(text(&place), NOBODY), lines, "it may be done again");
    for hook in HOOKS {
        let script = place.join(hook);
        assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o755);
        // Nothing is looked for.
        let said = Command::new(&script).env_clear().output().unwrap();
        assert!(said.status.success() && said.stderr.len() < 500, "{said:?}");
        // A berth that is not there any more.
        let gone =
            fs::read_to_string(&script).unwrap().replace(env!("CARGO_BIN_EXE_berth"), "/nowhere/berth");
        fs::write(&script, gone).unwrap();
        assert!(Command::new(&script).env_clear().status().unwrap().success());
    }
    // Without a folder all is shown, and nothing is written.
    let shown =
        berth(["--server", NOBODY, "slurm", "install", "--berth", "/usr/bin/berth", "--opt-in"]).answer();
    assert!(shown.contains("\nTaskProlog=/etc/slurm/berth/task-prolog\n"), "{shown}");
    assert!(
        shown.contains("'/usr/bin/berth' slurm task-prolog --server 'unix:/nowhere/berthd.sock' --opt-in"),
        "{shown}"
    );
    let shown = berth(["slurm", "install"]).answer();
    assert!(shown.contains("slurm epilog --server 'unix:/run/berth/berthd.sock' <"), "{shown}");
    berth(["slurm", "install", "--write", "/proc/nowhere"]).refusal(2);
    berth(["slurm", "install", "--write", "/tmp/a b"]).refusal(2);
}

/// All tasks of a large step at once, as an ordinary node starts them.
#[test]
fn two_hundred_and_fifty_six_at_once_are_one_decision() {
    let Some(server) = two_cpus().then(unsafe_host) else { return };
    let start = |local: u32| {
        let local = local.to_string();
        let mut variables = step(&local);
        variables.push(("SLURM_STEP_TASKS_PER_NODE", "256"));
        task(&server.address(), &variables).spawn().expect("a shell starts")
    };
    let tasks: Vec<Child> = (0..256).map(start).collect();
    let said: Vec<String> = tasks.into_iter().map(ended).collect();
    let on = |cpu: &str| said.iter().filter(|said| said.ends_with(&format!("is on {cpu}\n"))).count();
    let (zero, one, left) = (on("0"), on("1"), on("0-1"));
    println!("on CPU 0: {zero}, on CPU 1: {one}, left: {left}");
    // A machine too busy to answer in time may leave some where they are, and puts none elsewhere.
    assert_eq!(zero + one + left, 256, "{said:?}");
    assert!(zero.abs_diff(one) <= left, "{zero} and {one}");
    // Who comes late hears the same decision.
    assert!(ended(start(0)).ends_with("is on 0\n"));
    assert!(ended(start(255)).ends_with("is on 1\n"));
    let holds = server.berth(["holds", "--all", "-o", "json"]).json();
    let [hold] = &holds["holds"].as_array().expect("a list")[..] else { panic!("{holds}") };
    assert_eq!(hold["tasks"], 256, "{hold}");
}
