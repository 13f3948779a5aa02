//! What containers are given, and what becomes of it.

use std::collections::BTreeSet;

use berth_model::CpuSet;
use serde_json::Value;

use super::{
    CPU, berthd, held,
    kubelet::{Container, Kubelet, wait},
    plugin::Plugin,
};
use crate::{
    berthd::Berthd,
    front::{Front, Manner},
};

/// A node on which the plugin is registered.
fn node(flags: &[&str]) -> (Berthd, Kubelet, Plugin) {
    let (server, kubelet) = (berthd(), Kubelet::start());
    let plugin = Plugin::start(&kubelet, &server.address(), flags);
    kubelet.wait_for(CPU, |devices| devices.len() == 16);
    (server, kubelet, plugin)
}

/// The CPUs of cores, on the host of these tests.
fn cpus(container: &Container) -> CpuSet {
    let first = |id: &String| -> u32 { id.strip_prefix("core-").expect("a core").parse().expect("a number") };
    let threads = container.devices.iter().map(first).flat_map(|first| [first, first + 16]);
    threads.filter_map(berth_model::Cpu::try_new).collect()
}

fn is_held(server: &Berthd, container: &Container) -> bool {
    let id = container.told.envs.get("BERTH_HOLD").expect("it is told its hold");
    assert_eq!(container.told.annotations.get("berth.dev/hold"), Some(id));
    let found = held(server).into_iter().find(|hold| hold["id"] == **id);
    found.is_some_and(|hold| hold["cpus"] == cpus(container).to_string())
}

fn wait_for(server: &Berthd, count: usize) -> Vec<Value> {
    wait(|| Some(held(server)).filter(|holds| holds.len() == count))
}

#[test]
fn a_container_gets_what_berthd_advises_and_it_is_held() {
    let (server, kubelet, plugin) = node(&["--policy", "compact"]);
    // Somebody is on the whole first node, and on a core of the second.
    server.berth(["hold", "--cpus", "0-3,16-19,4", "--ttl", "1h"]).answer();
    kubelet.forget_calls();
    let pod = kubelet.admit("pod", "main", (CPU, 4), &[]).expect("there is room");
    assert_eq!(kubelet.calls(), ["GetPreferredAllocation", "Allocate"]);
    assert!(!plugin.log().iter().any(|line| line.contains("topology alone")), "{:?}", plugin.log());
    // Close together, and where nobody is: by the topology alone it would be the first node.
    assert_eq!(cpus(&pod).to_string(), "8-11,24-27");
    assert!(is_held(&server, &pod), "{:?}", held(&server));
    // Without CPU numbers: nobody binds it.
    assert_eq!(pod.told.envs.len(), 1, "{:?}", pod.told.envs);

    kubelet.forget_calls();
    let rest = kubelet.admit("rest", "main", (CPU, 12), &[]).expect("there is room");
    assert_eq!(kubelet.calls(), ["Allocate"], "no choice was left");
    assert!(is_held(&server, &rest));
    assert!(kubelet.admit("more", "main", (CPU, 1), &[]).is_err(), "all are taken");
}

#[test]
fn policies_differ() {
    let nodes = |policy| {
        let (_server, kubelet, _plugin) = node(&["--policy", policy]);
        let pod = kubelet.admit("pod", "main", (CPU, 4), &[]).expect("there is room");
        cpus(&pod).iter().map(|cpu| cpu.number() % 16 / 4).collect::<BTreeSet<u32>>().len()
    };
    assert_eq!((nodes("spread"), nodes("compact")), (4, 1));
}

#[test]
fn what_no_pod_has_any_more_is_let_go() {
    let (server, kubelet, plugin) = node(&[]);
    let (one, two) =
        (kubelet.admit("one", "main", (CPU, 2), &[]), kubelet.admit("two", "main", (CPU, 3), &[]));
    let (one, two) = (one.expect("there is room"), two.expect("there is room"));
    assert!(is_held(&server, &one) && is_held(&server, &two));
    kubelet.remove("one");
    assert_eq!(wait_for(&server, 1)[0]["id"], *two.told.envs["BERTH_HOLD"]);
    plugin.says(0, &format!("CPUs {} are let go", cpus(&one)));
    // As long as nobody can be asked, nothing is.
    let mut kubelet = kubelet;
    kubelet.stop();
    kubelet.remove("two");
    plugin.says(0, "what pods have is not known, and nothing is let go");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(held(&server).len(), 1);
    kubelet.begin();
    wait_for(&server, 0);
}

#[test]
fn the_same_devices_are_the_same_hold_and_others_another() {
    let (server, kubelet, _plugin) = node(&["--grace", "3s"]);
    let init = kubelet.admit("pod", "init", (CPU, 4), &[]).expect("there is room");
    let main = kubelet.admit("pod", "main", (CPU, 4), &init.devices).expect("they are its own");
    assert_eq!(init.told, main.told);
    assert_eq!(held(&server).len(), 1);
    // One that wants more, and one that wants less, of what the pod had.
    let more = kubelet.admit("pod", "more", (CPU, 5), &init.devices).expect("there is room");
    assert!(init.devices.iter().all(|id| more.devices.contains(id)), "{:?}", more.devices);
    assert!(is_held(&server, &more));
    let less = kubelet.admit("pod", "less", (CPU, 2), &init.devices).expect("they are its own");
    assert!(is_held(&server, &less));
    // Each device is its last container's: the holds before have none left, or still some.
    kubelet.remove("pod");
    wait_for(&server, 0);
}

#[test]
fn a_plugin_that_starts_anew_finds_what_is_held() {
    let (server, kubelet, mut plugin) = node(&[]);
    let pod = kubelet.admit("pod", "main", (CPU, 2), &[]).expect("there is room");
    let gone = kubelet.admit("gone", "main", (CPU, 2), &[]).expect("there is room");
    plugin.signal("KILL");
    plugin.ended();
    kubelet.remove("gone");
    assert!(is_held(&server, &gone));
    let _successor = Plugin::start(&kubelet, &server.address(), [""; 0]);
    assert_eq!(wait_for(&server, 1)[0]["id"], *pod.told.envs["BERTH_HOLD"]);
}

#[test]
fn leases_are_renewed() {
    let (server, kubelet, _plugin) = node(&["--lease", "2s"]);
    let pod = kubelet.admit("pod", "main", (CPU, 2), &[]).expect("there is room");
    let expiry = || held(&server).first().map(|hold| hold["expiresAt"].as_str().expect("a lease").to_owned());
    let first = expiry();
    wait(|| (expiry() > first).then_some(()));
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(is_held(&server, &pod));
}

#[test]
fn without_berthd_containers_get_neighbours() {
    let (mut server, kubelet, plugin) = node(&[]);
    server.stop();
    let pod = kubelet.admit("pod", "main", (CPU, 3), &[]).expect("whatever berthd does");
    assert_eq!(cpus(&pod).to_string(), "0-2,16-18", "neighbours");
    assert_eq!((pod.told.envs.len(), pod.told.annotations.len()), (0, 0));
    plugin.says(0, "devices are chosen by the topology alone: no berthd answers");
    plugin.says(0, "given: core-0 core-1 core-2, and not held yet: no berthd answers");
    plugin.says(0, "the devices stay as they are: ");
    assert_eq!(kubelet.devices(CPU).len(), 16);
    // It is held as soon as it can be.
    server.begin(["--no-tcp", "--kernel", "6.12.95", "--topology-synthetic", super::HOST]);
    server.wait();
    assert_eq!(wait_for(&server, 1)[0]["cpus"], "0-2,16-18");
    plugin.says(0, "are held (h");
    plugin.says(0, "berthd answers again");
}

#[test]
fn a_berthd_that_misbehaves_holds_nobody_up() {
    let (server, kubelet) = (berthd(), Kubelet::start());
    let front = Front::before(&server);
    let mut plugin = Plugin::start(&kubelet, &front.address(), ["--deadline", "500ms"]);
    kubelet.wait_for(CPU, |devices| devices.len() == 16);
    for (manner, i) in Manner::BAD.into_iter().zip(0..) {
        front.behave(manner);
        let pod = kubelet.admit(&format!("pod-{i}"), "main", (CPU, 2), &[]);
        let pod = pod.unwrap_or_else(|error| panic!("{manner:?}: {error}"));
        assert_eq!(pod.devices.len(), 2, "{manner:?}");
    }
    assert!(plugin.is_alive());
    front.behave(Manner::Good);
    wait(|| {
        let of = |hold: &Value| CpuSet::parse(hold["cpus"].as_str().expect("a list")).expect("a list");
        let all = held(&server).iter().fold(CpuSet::new(), |all, hold| all.union(&of(hold)));
        (all.len() == 20).then_some(())
    });
}

#[test]
fn devices_that_are_not_there_are_refused() {
    let (_server, kubelet, _plugin) = node(&[]);
    let odd = ["core-99".to_owned()];
    let refused = kubelet.admit("odd", "main", (CPU, 1), &odd).expect_err("there is none");
    assert!(refused.contains("there is no device core-99; expected one of ListAndWatch"), "{refused}");
    // One that must be in it and is not there does not keep others from being chosen.
    assert!(kubelet.admit("good", "main", (CPU, 1), &[]).is_ok());
}
