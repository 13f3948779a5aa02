//! The process that reads a foreign description has no rights.

use crate::support::PROGRAM;
use std::{
    collections::HashMap,
    fs,
    io::Write,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The process while it waits for its description, which it does once it has given up its rights.
fn waiting(command: &mut Command) -> Child {
    let command = command.args(["read-topology", "xml"]).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What the kernel says of it once it is confined.
fn status(child: &mut Child) -> HashMap<String, String> {
    let begun = Instant::now();
    loop {
        // First: what is read after it is of a confined process.
        let is_confined = limits(child).get("Max file size").is_some_and(|most| most == "0");
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        if is_confined {
            let fields = text.lines().filter_map(|line| line.split_once(':'));
            return fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        assert!(begun.elapsed() < Duration::from_secs(20), "it is not confined: {text}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The hard limits.
fn limits(child: &Child) -> HashMap<String, String> {
    let text = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let columns = text.lines().map(|line| line.split("  ").map(str::trim).filter(|text| !text.is_empty()));
    columns.filter_map(|mut columns| Some((columns.next()?.to_owned(), columns.nth(1)?.to_owned()))).collect()
}

fn assert_without_rights(child: &mut Child) {
    let status = status(child);
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
    assert_eq!(status["NoNewPrivs"], "1");
    let limits = limits(child);
    for (name, most) in [
        ("Max open files", "3"),
        ("Max processes", "0"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max cpu time", "20"),
        ("Max address space", "268435456"),
    ] {
        assert_eq!(limits[name], most, "{name}");
    }
}

/// It still does its work.
fn assert_reads(mut child: Child) {
    let xml = crate::support::xml("seeds/xeon-2s-80cpu.xml");
    child.stdin.take().unwrap().write_all(xml.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!output.stdout.is_empty());
}

#[test]
fn it_has_no_rights_and_reads_all_the_same() {
    let mut child = waiting(&mut Command::new(PROGRAM));
    assert_without_rights(&mut child);
    let status = status(&mut child);
    if rustix::process::geteuid().is_root() {
        let nobody = ["65534"; 4].join("\t");
        assert_eq!((&status["Uid"], &status["Gid"], status["Groups"].as_str()), (&nobody, &nobody, ""));
    }
    assert_reads(child);
}

/// A berthd that is not root and has capabilities of its own does not pass them on.
#[test]
fn ambient_capabilities_are_not_passed_on() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can give capabilities");
    }
    let folder = crate::support::process::shared_folder();
    let program = folder.path().join("berthd");
    fs::copy(PROGRAM, &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=61001", "--regid=61001", "--clear-groups"]);
    command.args(["--inh-caps=+sys_nice", "--ambient-caps=+sys_nice"]).arg(&program);
    let mut child = waiting(&mut command);
    assert_without_rights(&mut child);
    assert_reads(child);
}
