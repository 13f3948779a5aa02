//! The program itself: its exit status, its signals, its environment.

use crate::support::{PROGRAM, over_unix, topologies, topology};
use berth_proto::v1;
use serde_json::Value;
use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

pub(crate) fn berthd(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .env_clear()
        .env("BERTH_CONFIG", "none")
        .args(["--tcp", "127.0.0.1:0", "--uds"])
        .arg(folder.join("berthd.sock"))
        .arg("--state-dir")
        .arg(folder.join("state"));
    command.arg("--ready-file").arg(folder.join("ready"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits for what the program writes once it serves.
pub(crate) fn ready(folder: &Path, program: &mut Child) -> Value {
    let begun = Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(folder.join("ready")) {
            return serde_json::from_str(&text).unwrap();
        }
        assert!(program.try_wait().unwrap().is_none(), "it ended");
        assert!(begun.elapsed() < Duration::from_secs(10), "it does not serve");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn signal(program: &Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &program.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_serves_and_stops_as_told() {
    for name in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let mut program = berthd(folder.path()).args(["--log-format", "json"]).spawn().unwrap();
        let told = ready(folder.path(), &mut program);
        assert_eq!(told["pid"], program.id());
        assert!(told["tcp"].as_str().unwrap().starts_with("127.0.0.1:"));
        let socket = told["uds"].as_str().unwrap().to_owned();
        let channel = over_unix(Path::new(&socket)).await;
        topology(&channel).get_topology(v1::GetTopologyRequest::default()).await.unwrap();
        drop(channel);
        signal(&program, name);
        let output = program.wait_with_output().unwrap();
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "the log goes to stderr");
        assert!(!Path::new(&socket).exists());
        assert!(!folder.path().join("ready").exists());
        let lines: Vec<Value> =
            stderr(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().any(|line| line["message"] == "serving"), "{lines:?}");
    }
}

/// The process that reads the description never answers: the signal is heard meanwhile.
#[test]
fn it_can_be_stopped_before_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let synthetic = ["--topology-synthetic", "pack:16 core:64 pu:2"];
    let program = berthd(folder.path()).args(synthetic).spawn().unwrap();
    let children = format!("/proc/{}/task", program.id());
    let begun = Instant::now();
    let reader = loop {
        let threads = fs::read_dir(&children).unwrap();
        let children = threads
            .filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("children")).ok())
            .collect::<String>();
        if let Some(child) = children.split_whitespace().next() {
            break child.to_owned();
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "it reads the description in no process");
    };
    let tell = |pid: &str, name: &str| Command::new("kill").args(["-s", name, pid]).status().unwrap();
    assert!(tell(&reader, "STOP").success());
    signal(&program, "TERM");
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!folder.path().join("ready").exists());
}

/// A killed server leaves its socket; the next one takes it over.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_followed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = berthd(folder.path()).spawn().unwrap();
    ready(folder.path(), &mut first);
    let refused = berthd(folder.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(69), "{}", stderr(&refused));
    assert!(folder.path().join("ready").exists(), "it is the first one's");
    first.kill().unwrap();
    first.wait().unwrap();
    fs::remove_file(folder.path().join("ready")).unwrap();
    let mut second = berthd(folder.path()).spawn().unwrap();
    let told = ready(folder.path(), &mut second);
    let channel = over_unix(Path::new(told["uds"].as_str().unwrap())).await;
    topology(&channel).get_topology(v1::GetTopologyRequest::default()).await.unwrap();
    second.kill().unwrap();
    second.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_does_not_steer_hwloc() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = berthd(folder.path());
    command
        .env("HWLOC_SYNTHETIC", "pack:3 core:5 pu:1")
        .env("HWLOC_XMLFILE", topologies().join("seeds/xeon-2s-80cpu.xml"));
    let mut program = command.env("HWLOC_THISSYSTEM", "1").spawn().unwrap();
    let told = ready(folder.path(), &mut program);
    let channel = over_unix(Path::new(told["uds"].as_str().unwrap())).await;
    let answer =
        topology(&channel).get_topology(v1::GetTopologyRequest::default()).await.unwrap().into_inner();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    assert_eq!(answer.topology.unwrap().online, online.trim());
    program.kill().unwrap();
    program.wait().unwrap();
}

#[test]
fn flags_count_before_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = berthd(folder.path());
    let output = command.env("BERTH_KERNEL", "nonsense").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("BERTH_KERNEL=nonsense: kernel `nonsense`"), "{}", stderr(&output));
    let mut program =
        berthd(folder.path()).env("BERTH_KERNEL", "nonsense").args(["--kernel", "6.12.95"]).spawn().unwrap();
    ready(folder.path(), &mut program);
    program.kill().unwrap();
    program.wait().unwrap();
}

#[test]
fn what_is_wrong_is_said_before_a_port_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    let version3 = topologies().join("xml-v3-format-nvidia-dgx2.xml");
    let output = berthd(folder.path()).arg("--topology-xml").arg(version3).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("--export-xml-flags v2"), "{}", stderr(&output));
    assert!(!folder.path().join("berthd.sock").exists());
    let output =
        berthd(folder.path()).args(["--tcp", "192.0.2.1:1", "--log-format", "xml"]).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(64), 2), "{}", stderr(&output));
    let output = berthd(folder.path()).arg("--nonsense").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    let output = Command::new(PROGRAM).arg("--version").output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).starts_with("berthd 0."));
}

/// The lines of a JSON log, as they come.
struct Lines(std::io::Lines<std::io::BufReader<std::process::ChildStderr>>);

impl Lines {
    fn of(program: &mut Child) -> Self {
        use std::io::BufRead;
        Self(std::io::BufReader::new(program.stderr.take().unwrap()).lines())
    }

    /// All up to the first with this message.
    fn until(&mut self, message: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        for line in &mut self.0 {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let is_last = line["message"].as_str().is_some_and(|text| text.contains(message));
            lines.push(line);
            if is_last {
                return lines;
            }
        }
        panic!("no `{message}` in {lines:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reads_the_file_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("berthd.toml");
    let write = |text: &str| fs::write(&file, text).unwrap();
    let given_limit = |channel: tonic::transport::Channel| async move {
        let mut info = crate::support::info(&channel);
        let told = info.get_info(v1::GetInfoRequest {}).await.unwrap().into_inner();
        told.limits.unwrap().deadline.unwrap().seconds
    };
    write("[log]\nformat = \"json\"\n[limits]\ndeadline = \"7s\"\n");
    let admin = ["--admin", "127.0.0.1:0", "--admin-change-log"];
    let mut program = berthd(folder.path()).args(admin).arg("--config").arg(&file).spawn().unwrap();
    let mut lines = Lines::of(&mut program);
    let told = ready(folder.path(), &mut program);
    let channel = over_unix(Path::new(told["uds"].as_str().unwrap())).await;
    assert_eq!(given_limit(channel.clone()).await, 7);

    write("[log]\nformat = \"text\"\n[limits]\ndeadline = \"9s\"\n");
    signal(&program, "HUP");
    let said = lines.until("the configuration was read again");
    let has = |level: &str, text: &str| {
        said.iter().any(|line| line["level"] == level && line["message"].as_str().unwrap().contains(text))
    };
    assert!(has("INFO", "limits.deadline: 9s instead of 7s"), "{said:#?}");
    assert!(has("WARN", "log.format: text instead of json: this needs a restart"), "{said:#?}");
    assert_eq!(given_limit(channel.clone()).await, 9);

    write("[limits]\ndeadline = \"11s\"\nmax_requests = 0\n");
    signal(&program, "HUP");
    let said = lines.until("nothing was changed");
    assert!(said.iter().any(|line| line["message"].as_str().unwrap().contains("limits.max_requests")));
    assert_eq!(given_limit(channel.clone()).await, 9);

    // What was changed meanwhile is changed back.
    let admin = told["admin"].as_str().unwrap().parse().unwrap();
    assert_eq!(crate::admin::http(admin, "GET", "/log", "").await, (200, "info\n".to_owned()));
    assert_eq!(crate::admin::http(admin, "PUT", "/log", "berthd=debug").await.0, 200);
    given_limit(channel.clone()).await;
    let answered = lines.until("answered");
    let answered = answered.last().unwrap();
    assert_eq!(answered["span"]["method"], "/berth.v1.InfoService/GetInfo", "{answered}");
    assert!(answered["span"]["id"].as_str().unwrap().contains('-'), "{answered}");
    assert_eq!(crate::admin::http(admin, "GET", "/log", "").await, (200, "berthd=debug\n".to_owned()));

    // Without the settings, their defaults; and the log says no more than it is told.
    write("[log]\nfilter = \"warn\"\nformat = \"json\"\n");
    signal(&program, "HUP");
    while given_limit(channel.clone()).await != 30 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(channel);
    signal(&program, "TERM");
    assert!(program.wait().unwrap().success());
    let rest: Vec<String> = lines.0.map(Result::unwrap).collect();
    let late = rest.iter().skip_while(|line| !line.contains("was read again"));
    assert!(late.skip(1).all(|line| !line.contains("\"INFO\"")), "{rest:#?}");
}

/// What systemd is told, by its own protocol.
#[test]
fn systemd_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let until = |wanted: &str| {
        let mut told = vec![0; 4096];
        loop {
            let length = socket.recv(&mut told).unwrap_or_else(|error| panic!("no {wanted}: {error}"));
            let text = String::from_utf8_lossy(&told[..length]).into_owned();
            if text.lines().any(|line| line == wanted) {
                return text;
            }
        }
    };
    let mut command = berthd(folder.path());
    command.env("NOTIFY_SOCKET", folder.path().join("notify")).env("WATCHDOG_USEC", "100000");
    let mut program = command.spawn().unwrap();
    until("READY=1");
    assert!(folder.path().join("ready").exists());
    until("WATCHDOG=1");
    until("WATCHDOG=1");
    signal(&program, "HUP");
    assert!(until("RELOADING=1").contains("MONOTONIC_USEC="));
    until("READY=1");
    signal(&program, "TERM");
    until("STOPPING=1");
    assert!(program.wait().unwrap().success());
}

/// A log that cannot be written, on a full disk or because its reader is gone, ends no daemon.
#[tokio::test(flavor = "multi_thread")]
async fn it_serves_without_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut program = berthd(folder.path()).args(["--log", "trace"]).stderr(full).spawn().unwrap();
    let told = ready(folder.path(), &mut program);
    let channel = over_unix(Path::new(told["uds"].as_str().unwrap())).await;
    topology(&channel).get_topology(v1::GetTopologyRequest::default()).await.unwrap();
    drop(channel);
    signal(&program, "TERM");
    assert!(program.wait().unwrap().success());
}
