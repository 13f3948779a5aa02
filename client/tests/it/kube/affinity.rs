//! What a container is told is used by a process that looks where it is.

use std::process::Command;

use berth_model::CpuSet;

use super::{CPU, kubelet::Kubelet, plugin::Plugin};
use crate::berthd::Berthd;

/// On this host, without pretence: a runtime that binds a container to the CPUs of the hold in its annotation, and a process in it
/// that compares its own affinity with its environment.
#[test]
fn a_process_is_where_its_environment_says() {
    let (server, kubelet) = (Berthd::start(), Kubelet::start());
    let plugin = Plugin::start(&kubelet, &server.address(), ["--enforced"]);
    kubelet.wait_for(CPU, |devices| devices.iter().any(|device| device.health == "Healthy"));
    let pod = kubelet.admit("pod", "main", (CPU, 1), &[]).expect("there is a core");
    plugin.says(0, "are held (h");
    let id = &pod.told.annotations["berth.dev/hold"];
    let hold = server.berth(["holds", id, "-o", "json"]).json();
    let cpus = hold["hold"]["cpus"].as_str().expect("it has CPUs").to_owned();
    let set = CpuSet::parse(&cpus).expect("a list");
    let allowed = CpuSet::parse(&own_cpus()).expect("a list");
    if !set.is_subset(&allowed) {
        eprintln!("skipped: the core has CPUs {cpus}, and this process may use {allowed}");
        return;
    }
    let script = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status; echo \"$BERTH_CPUS|$BERTH_HOLD|$OMP_PLACES\"";
    let process = Command::new("taskset")
        .args(["-c", &cpus, "/bin/sh", "-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .envs(&pod.told.envs)
        .output()
        .expect("taskset runs");
    let said = String::from_utf8(process.stdout).expect("text");
    let places = if set.len() == 1 { format!("{{{cpus}}}") } else { String::new() };
    assert_eq!(said, format!("{cpus}\n{cpus}|{id}|{places}\n"));
}

fn own_cpus() -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says what is allowed");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.expect("in a line of its own").trim().to_owned()
}
