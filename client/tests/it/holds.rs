//! CPUs that are held: made, listed, renewed, let go, and kept while a command runs.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use berth_model::CpuSet;
use serde_json::Value;

use crate::berthd::Berthd;

/// How long the end of a process may take to be seen, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn list(server: &Berthd) -> Vec<Value> {
    let json = server.berth(["holds", "--all", "-o", "json"]).json();
    json["holds"].as_array().expect("a list").clone()
}

/// Waits until so many holds are left.
fn wait_for(server: &Berthd, count: usize) {
    let start = Instant::now();
    while list(server).len() != count {
        assert!(start.elapsed() < PATIENCE, "{:?}", list(server));
        thread::sleep(Duration::from_millis(50));
    }
}

/// A CPU that this process may use, and hold therefore.
fn own_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says what is allowed");
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .expect("in a line of its own");
    let set: CpuSet = list.trim().parse().expect("a list");
    set.first().expect("it has one").number().to_string()
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill runs").success());
}

/// A process that does nothing for long. It ends with its owner.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("sleep runs"))
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_lease_is_made_renewed_and_let_go() {
    let server = Berthd::start();
    server.measured();
    assert_eq!(server.berth(["holds"]).answer(), "  No holds.\n");
    let made = server
        .berth(["hold", "-n", "1", "--name", "job", "--ttl", "10m", "--label", "a=b", "-o", "json"])
        .json();
    let hold = &made["hold"];
    let id = hold["id"].as_str().expect("an id").to_owned();
    assert_eq!((&hold["state"], &hold["name"]), (&Value::from("ACTIVE"), &Value::from("job")));
    assert!(!hold["cpus"].as_str().expect("CPUs").is_empty(), "{hold}");
    assert_eq!(made["advice"]["proof"]["result"], "SAFE", "{made}");

    assert!(server.berth(["holds"]).answer().contains(&id));
    let detail = server.berth(["holds", "job"]).answer();
    for expected in [id.as_str(), "  labels    ", "a=b", "ACTIVE", "its expiry"] {
        assert!(detail.contains(expected), "{expected}: {detail}");
    }
    let renewed = server.berth(["renew", "job", "--ttl", "1h", "-o", "json"]).json();
    assert!(renewed["hold"]["expiresAt"].as_str() > hold["expiresAt"].as_str(), "{renewed}");
    let released = server.berth(["release", "job"]).answer();
    assert!(released.starts_with(&format!("released job ({id}): CPU")), "{released}");
    assert_eq!(server.berth(["release", &id]).answer(), format!("{id} had ended before\n"));
    server.berth(["renew", "nobody"]).refusal(1);
    assert_eq!(list(&server), Vec::<Value>::new());
}

#[test]
fn the_same_request_is_the_same_hold() {
    let server = Berthd::start();
    let cpu = own_cpu();
    let ask = |id: &str| server.berth(["hold", "--cpus", &cpu, "--request-id", id, "-o", "json"]).json();
    let first = ask("r1");
    assert_eq!(ask("r1")["hold"]["id"], first["hold"]["id"]);
    assert_ne!(ask("r2")["hold"]["id"], first["hold"]["id"]);
    assert_eq!(list(&server).len(), 2);
    server.berth(["release", "--all-mine"]).answer();
    assert_eq!(list(&server).len(), 0);
}

#[test]
fn what_is_held_exclusively_is_given_to_nobody_else() {
    let server = Berthd::start();
    let cpu = own_cpu();
    let exclusive = ["hold", "--cpus", &cpu, "--exclusive"];
    assert_eq!(server.berth(exclusive.iter().chain(&["-o", "list"])).answer(), format!("{cpu}\n"));
    let said = server.berth(exclusive).refusal(1);
    assert!(said.contains("RESOURCE_EXHAUSTED"), "{said}");
    let said = server.berth(exclusive.iter().chain(&["--", "touch", "/nowhere/file"])).refusal(125);
    assert!(said.contains("RESOURCE_EXHAUSTED"), "{said}");
    let said = server.berth(exclusive.iter().chain(&["--or-run", "--", "echo", "ran"]));
    assert_eq!((said.status, said.stdout.as_str()), (0, "ran\n"), "{}", said.stderr);
}

#[test]
fn a_claim_takes_what_is_under_it_along() {
    let server = Berthd::start();
    server.berth(["hold", "--claim", "--name", "job", "--ttl", "10m"]).answer();
    server.berth(["hold", "-n", "1", "--under", "job", "--ttl", "10m"]).answer();
    assert_eq!(
        server.berth(["holds", "--under", "job", "-o", "json"]).json()["holds"].as_array().map(Vec::len),
        Some(1)
    );
    let released = server.berth(["release", "job"]).answer();
    assert!(released.ends_with(": a claim, and with it 1 hold under it\n"), "{released}");
    assert_eq!(list(&server).len(), 0);
}

#[test]
fn cpus_are_kept_while_a_command_runs_and_let_go_after() {
    let server = Berthd::start();
    let berth = env!("CARGO_BIN_EXE_berth");
    let script = format!(
        "echo \"$BERTH_CPUS $BERTH_HOLD\"; {berth} --server '{}' holds \"$BERTH_HOLD\" -o json; exit 7",
        server.address()
    );
    let said = server.berth(["hold", "-n", "1", "--cpus", &own_cpu(), "--", "sh", "-c", &script]);
    assert_eq!(said.status, 7, "{}", said.stderr);
    let (first, json) = said.stdout.split_once('\n').expect("two parts");
    let (cpus, id) = first.split_once(' ').expect("two words");
    let hold: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!((hold["hold"]["cpus"].as_str(), hold["hold"]["id"].as_str()), (Some(cpus), Some(id)));
    assert_eq!(cpus, own_cpu());
    assert_eq!(list(&server).len(), 0, "let go when the command has ended");
}

#[test]
fn a_lease_lasts_no_longer_than_the_server_gives_one() {
    let server = Berthd::start_with(["--no-tcp", "--hold-ttl", "2s", "--max-hold-ttl", "2s"]);
    server.berth(["hold", "-n", "1"]).answer();
    assert_eq!(list(&server).len(), 1);
    wait_for(&server, 0);
    let refused = server.berth(["hold", "-n", "1", "--ttl", "30s"]).refusal(1);
    assert!(refused.contains("at most 2s") && !refused.contains("expected a time"), "{refused}");
}

/// A server that is killed with the request in its hands, and started anew, makes the hold all the same.
#[test]
fn a_server_that_starts_anew_is_asked_again() {
    let mut server = Berthd::start();
    server.halt();
    let berth = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["--server", &server.address(), "--timeout", "60s", "hold", "-n", "1", "--cpus", &own_cpu()])
        .args(["--", "echo", "held"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("berth starts");
    // Until it has asked.
    thread::sleep(Duration::from_secs(1));
    server.start_anew();
    let said = berth.wait_with_output().expect("it ends");
    let complaint = String::from_utf8_lossy(&said.stderr);
    assert_eq!((said.status.code(), said.stdout.as_slice()), (Some(0), &b"held\n"[..]), "{complaint}");
}

#[test]
fn a_command_is_bound_to_what_is_held() {
    let server = Berthd::start();
    let script = "grep Cpus_allowed_list /proc/self/status; echo \"$BERTH_CPUS\"";
    let cpu = own_cpu();
    let said = server.berth(["hold", "-n", "1", "--cpus", &cpu, "--bind", "--", "sh", "-c", script]).answer();
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["Cpus_allowed_list:", &cpu, &cpu]);
}

/// The command goes on when berth is killed, and its CPUs stay held until it ends too.
#[test]
fn the_command_is_the_owner() {
    let server = Berthd::start();
    let mut berth = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["--server", &server.address(), "hold", "-n", "1", "--", "sh", "-c", "echo $$; exec sleep 600"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("berth starts");
    let mut line = String::new();
    BufReader::new(berth.stdout.take().expect("its stdout is piped"))
        .read_line(&mut line)
        .expect("it says its pid");
    let command: u32 = line.trim().parse().expect("a pid");
    let owner = || list(&server).first().map(|hold| hold["owner"]["process"]["pid"].clone());
    let start = Instant::now();
    while owner() != Some(Value::from(command)) {
        assert!(start.elapsed() < PATIENCE, "{:?}", list(&server));
        thread::sleep(Duration::from_millis(20));
    }
    berth.kill().expect("it runs");
    berth.wait().expect("it ends");
    // Longer than two samples.
    thread::sleep(Duration::from_secs(3));
    assert_eq!(list(&server).len(), 1);
    kill(command);
    wait_for(&server, 0);
}

#[test]
fn a_hold_ends_with_the_process_that_is_named() {
    let server = Berthd::start();
    let sleeper = Sleeper::start();
    let pid = sleeper.0.id().to_string();
    server.berth(["hold", "-n", "1", "--pid", &pid]).answer();
    assert!(server.berth(["holds"]).answer().contains(&format!("process {pid}")));
    drop(sleeper);
    wait_for(&server, 0);
}

#[test]
fn holds_are_followed() {
    let server = Berthd::start();
    let mut watch = Command::new(env!("CARGO_BIN_EXE_berth"))
        .args(["--server", &server.address(), "watch", "holds", "--all", "--count", "3"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("berth starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("its stdout is piped")).lines();
    let mut next = || lines.next().expect("a line").expect("in UTF-8");
    assert_eq!(next(), "no holds");
    let cpu = own_cpu();
    server.berth(["hold", "--cpus", &cpu, "--name", "job", "--ttl", "10m"]).answer();
    let made = next();
    assert!(made.starts_with("made     ") && made.contains(&format!(" (job): CPU {cpu}, user ")), "{made}");
    server.berth(["release", "job"]).answer();
    let ended = next();
    assert!(ended.starts_with("ended    ") && ended.ends_with("; released"), "{ended}");
    assert!(watch.wait().expect("it ends").success(), "after three messages");
}
