//! Every command, in both forms, about the host that the tests run on.

use crate::{
    berth::{berth, berth_with},
    berthd::Berthd,
};

/// Every command that asks the server, with the heading its table starts with.
const COMMANDS: [(&[&str], &str); 14] = [
    (&["topology"], "Host\n"),
    (&["topology", "--full"], "Host\n"),
    (&["load"], "Load of this host\n"),
    (&["load", "--full"], "Load of this host\n"),
    (&["predict", "-n", "2"], "Question\n"),
    (&["predict", "-n", "2", "--cpus", "0", "--explain"], "Question\n"),
    (&["advise", "-n", "2"], "Question\n"),
    (&["advise", "-n", "2", "--policy", "spread", "--explain"], "Question\n"),
    (&["explain"], "Host\n"),
    (&["explain", "--cpus", "0", "--allowed", "0"], "Host\n"),
    (&["verify", "--all"], "Running tasks\n"),
    (&["health"], "SERVING: berthd at unix:/"),
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
fn an_explanation_names_levels_and_where_rules_come_from() {
    let server = Berthd::start();
    let synthetic =
        ["--host-synthetic", "pack:2 [numa] l3:2 core:4 pu:2(indexes=2*16:16*1)", "--kernel", "6.12.95"];
    let json = server.berth(["explain", "-o", "json", "--allowed", "0-8"].iter().chain(&synthetic)).json();
    let levels = json["cpus"][0]["domains"].as_array().expect("a list");
    let names: Vec<&str> = levels.iter().filter_map(|level| level["name"].as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"SMT"), Some(&"NUMA")), "{names:?}");
    let allowed = |group: &serde_json::Value| group["allowed"].as_u64();
    let groups = levels.last().expect("the widest level")["groups"].as_array().expect("a list");
    assert_eq!(groups.iter().map(allowed).collect::<Vec<_>>(), [Some(8), Some(1)]);
    let said = server.berth(["explain", "--cpus", "0", "--allowed", "0-8"].iter().chain(&synthetic)).answer();
    assert!(said.contains("\nNUMA up to distance 20 of CPU 0\n"), "{said}");
    assert!(said.contains("  imb_numa        llc12"), "{said}");
    let said = server.berth(["explain", "--allowed", "zero"]).refusal(1);
    assert!(said.contains("\n  --allowed: `zero`"), "{said}");
}

#[test]
fn lists_are_cpus_alone() {
    let server = Berthd::start();
    let online = server.berth(["topology", "-o", "list"]).answer();
    assert_eq!(
        online.trim_end().parse::<berth_model::CpuSet>().map(|set| set.is_empty()),
        Ok(false),
        "{online}"
    );
    let one = server.berth(["advise", "-n", "1", "--cpus", "0", "--form", "mask", "-o", "list"]).answer();
    assert_eq!(one, "0\n");
    let each =
        server.berth(["advise", "-n", "3", "--cpus", "0", "--form", "per-task", "-o", "list"]).answer();
    assert_eq!(each, "0\n0\n0\n");
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
