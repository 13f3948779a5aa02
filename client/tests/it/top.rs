//! `berth top` in a terminal of its own.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{berth::berth, berthd::Berthd};

/// What leaves the screen as it was.
const LEFT: &str = "\u{1b}[?1049l";

/// `berth top` in a pseudo-terminal of 100 columns and 30 lines, which `script` makes; what it writes goes to a file.
fn start(server: &Berthd, seen: &Path) -> Child {
    let berth = format!("{} --server {} top", env!("CARGO_BIN_EXE_berth"), server.address());
    let command = format!("stty rows 30 cols 100; exec {berth}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--flush", "--return", "--command", &command]).arg(seen);
    script.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").env_remove("LC_ALL");
    script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    script.spawn().expect("script is there")
}

fn wait_for(seen: &Path, what: &str) {
    let start = Instant::now();
    while !fs::read(seen).is_ok_and(|text| String::from_utf8_lossy(&text).contains(what)) {
        let text = fs::read(seen).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        assert!(start.elapsed() < Duration::from_secs(60), "it never shows `{what}`: {text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends what runs in the terminal a signal.
fn signal(script: &Child, name: &str) {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", script.id())).expect("it runs");
    let pid = children.split_whitespace().next().expect("it runs");
    assert!(Command::new("kill").args([name, pid]).status().expect("kill runs").success());
}

#[test]
fn it_shows_the_host_and_quits() {
    let server = Berthd::start();
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let mut script = start(&server, &seen);
    wait_for(&seen, "busy,");
    server.berth(["hold", "-n", "1", "--ttl", "1m", "--name", "seen-in-top"]).answer();
    wait_for(&seen, "seen-in-top");
    let mut keys = script.stdin.take().unwrap();
    keys.write_all(b"?").unwrap();
    wait_for(&seen, "the ends");
    keys.write_all(b"qq").unwrap();
    assert!(script.wait().unwrap().success());
    wait_for(&seen, LEFT);
}

#[test]
fn a_server_that_goes_away_is_told_and_a_signal_leaves_the_screen() {
    let mut server = Berthd::start();
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let mut script = start(&server, &seen);
    // As long as it is open, the terminal is.
    let keys = script.stdin.take().unwrap();
    wait_for(&seen, "busy,");
    server.stop();
    wait_for(&seen, "no berthd answers");
    server.start_anew();
    signal(&script, "-TERM");
    assert!(script.wait().unwrap().success());
    wait_for(&seen, LEFT);
    drop(keys);
}

#[test]
fn an_interrupt_from_elsewhere_leaves_the_screen() {
    let server = Berthd::start();
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let mut script = start(&server, &seen);
    let keys = script.stdin.take().unwrap();
    wait_for(&seen, "busy,");
    signal(&script, "-INT");
    assert!(script.wait().unwrap().success());
    wait_for(&seen, LEFT);
    drop(keys);
}

#[test]
fn without_a_terminal_it_says_what_else_there_is() {
    assert!(berth(["top"]).refusal(2).contains("berth watch load"));
}
