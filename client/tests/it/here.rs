//! Every command, in both forms, about the host that the tests run on.

use crate::{
    berth::{berth, berth_with},
    berthd::Berthd,
};

/// Every command that asks the server, with the heading its table starts with.
const COMMANDS: [(&[&str], &str); 10] = [
    (&["topology"], "Host\n"),
    (&["topology", "--full"], "Host\n"),
    (&["load"], "Load of this host\n"),
    (&["load", "--full"], "Load of this host\n"),
    (&["predict", "-n", "2"], "Question\n"),
    (&["predict", "-n", "2", "--cpus", "0", "--explain"], "Question\n"),
    (&["advise", "-n", "2"], "Question\n"),
    (&["advise", "-n", "2", "--policy", "spread", "--explain"], "Question\n"),
    (&["info"], "Server\n"),
    (&["profiles", "--all"], "Profiles\n"),
];

#[test]
fn every_command_has_a_table() {
    let server = Berthd::start();
    for (command, heading) in COMMANDS {
        let said = server.berth(command).answer();
        assert!(said.starts_with(heading), "{command:?}: {said}");
        assert!(!said.contains('\u{1b}'), "{command:?}: no colours in a pipe: {said}");
        let widest = said.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{command:?} fits its page: {said}");
    }
}

#[test]
fn every_command_has_one_json_document() {
    let server = Berthd::start();
    for (command, _) in COMMANDS {
        let said = server.berth(command.iter().chain(&["-o", "json"]));
        assert_eq!(said.stderr, "", "{command:?}: warnings are in the document");
        assert!(said.json().is_object(), "{command:?}");
    }
}

#[test]
fn the_topology_is_this_hosts() {
    let server = Berthd::start();
    let json = server.berth(["topology", "-o", "json"]).json();
    let online =
        std::fs::read_to_string("/sys/devices/system/cpu/online").expect("Linux says what is online");
    let online: berth_model::CpuSet = online.trim().parse().expect("in a list");
    assert_eq!(json["topology"]["online"], online.to_string());
    assert_eq!(json["topology"]["source"], "LIVE");
}

#[test]
fn one_task_on_one_cpu_is_safe_and_two_share_it() {
    let server = Berthd::start();
    let one = ["predict", "-n", "1", "--cpus", "0", "--host-idle", "--check", "-o", "json"];
    assert_eq!(server.berth(one).json()["verdict"], "NO_PILE_UP");
    let two = ["predict", "-n", "2", "--cpus", "0", "--host-idle", "--check", "-o", "json"];
    let json = server.berth(two).json();
    assert_eq!(json["verdict"], "NO_PILE_UP", "no placement has fewer than two on the only CPU");
    assert_eq!(json["prediction"]["mostOnOneCpu"], 2);
}

#[test]
fn tcp_answers_as_the_socket_does() {
    let server = Berthd::start_with(["--tcp", "127.0.0.1:0"]);
    let address = server.tcp();
    let topology = server.berth(["topology"]).answer();
    for typed in [address.clone(), format!("http://{address}")] {
        let said = berth_with(["topology"], |command| _ = command.env("BERTH_SERVER", &typed), "");
        assert_eq!(said.answer(), topology, "{typed}");
    }
}

#[test]
fn a_users_own_server_is_found_without_a_word() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("berth")).expect("a folder in it");
    let server = Berthd::start();
    std::os::unix::fs::symlink(server.socket(), folder.path().join("berth/berthd.sock")).expect("a link");
    // A server that the system runs comes first.
    if !std::path::Path::new("/run/berth/berthd.sock").exists() {
        berth_with(["info"], |command| _ = command.env("XDG_RUNTIME_DIR", folder.path()), "").answer();
    }
}

#[test]
fn colours_and_talk_come_when_asked_for() {
    let server = Berthd::start();
    let said = server.berth(["predict", "-n", "1", "--color", "always", "-v"]);
    assert!(said.stdout.contains("\u{1b}[1mQuestion\u{1b}[0m"), "{}", said.stdout);
    let talk = format!("berth: {} answered in ", server.address());
    assert!(said.stderr.contains(&talk), "{}", said.stderr);
}

#[test]
fn a_server_that_has_ended_is_away() {
    let server = Berthd::start();
    let address = server.address();
    drop(server);
    berth(["--server", &address, "info"]).refusal(3);
}
