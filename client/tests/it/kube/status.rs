//! `berth kube status` of a node on which all works, and of one on which nothing does.

use serde_json::Value;

use super::{CPU, berthd, kubelet::Kubelet, plugin::Plugin};
use crate::berth::{Said, berth};

fn status(kubelet: &Kubelet, server: &str, more: &[&str]) -> Said {
    let (dir, pods) =
        (kubelet.plugin_dir().display().to_string(), kubelet.pod_resources().display().to_string());
    let flags = ["--server", server, "kube", "status", "--plugin-dir", &dir, "--pod-resources", &pods];
    berth(flags.iter().chain(more))
}

fn said(facts: &Value, about: &str) -> (bool, String) {
    let fact = facts["facts"].as_array().expect("a list").iter().find(|fact| fact["about"] == about);
    let fact = fact.unwrap_or_else(|| panic!("{about}: {facts}"));
    (fact["ok"].as_bool().expect("yes or no"), fact["said"].as_str().expect("a sentence").to_owned())
}

#[test]
fn all_parts_are_looked_at() {
    let (server, kubelet) = (berthd(), Kubelet::start());
    kubelet.gives((1..16).chain(17..32));
    let plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
    kubelet.wait_for(CPU, |devices| devices.len() == 15);
    kubelet.admit("pod", "main", (CPU, 3), &[]).expect("there is room");
    plugin.says(0, "are held (h");
    let facts = status(&kubelet, &server.address(), &["-o", "json"]).json();
    assert!(said(&facts, "berthd").1.starts_with("serving: version "), "{facts}");
    assert_eq!(said(&facts, "kubelet"), (true, "answers: 1 pods".to_owned()));
    assert_eq!(said(&facts, "its CPUs"), (true, "1-15,17-31 may be given to pods".to_owned()));
    let (ok, device_plugin) = said(&facts, "device plugin");
    assert!(ok && device_plugin.starts_with("serves berth.dev/cpu at "), "{device_plugin}");
    assert!(device_plugin.ends_with(": 15 of 15 devices are healthy"), "{device_plugin}");
    assert_eq!(said(&facts, "its devices").1, "known to the kubelet: 15, 3 of them some pod's");
    assert_eq!(said(&facts, "its holds").1, "kept by berthd: 1");
    assert!(said(&facts, "plugins").1.ends_with("kubelet.sock; berth.dev/cpu: 15"), "{facts}");
    let table = status(&kubelet, &server.address(), &[]).answer();
    assert!(table.starts_with("Node\n  berthd "), "{table}");
    print!("{table}");
}

#[test]
fn what_is_not_there_is_an_answer_too() {
    let mut kubelet = Kubelet::start();
    kubelet.stop();
    kubelet.empty_the_folder();
    let facts = status(&kubelet, "unix:/nowhere/berthd.sock", &["-o", "json"]).json();
    let (ok, berthd) = said(&facts, "berthd");
    assert!(!ok && berthd.starts_with("no berthd answers at unix:/nowhere"), "{berthd}");
    let (ok, lister) = said(&facts, "kubelet");
    assert!(!ok && lister.starts_with("no kubelet answers at unix:/"), "{lister}");
    assert!(said(&facts, "device plugin").1.starts_with("none: no socket of one in "));
    assert!(!said(&facts, "plugins").0);
    // Nobody has it, but its socket is there.
    let dead = kubelet.plugin_dir().join("berth.dev_cpu-1-1.sock");
    drop(std::os::unix::net::UnixListener::bind(dead).expect("it can be made"));
    let facts = status(&kubelet, "unix:/nowhere/berthd.sock", &["-o", "json"]).json();
    assert!(!said(&facts, "device plugin").0, "{facts}");
    status(&kubelet, "unix:/nowhere/berthd.sock", &["-o", "list"]).refusal(2);
}
