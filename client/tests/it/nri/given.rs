//! CPUs that a kubelet gives out itself.

use super::{
    kubelet::Kubelet,
    plugin::{Place, Plugin, wait_until},
};
use crate::{berthd::Berthd, slurm::two_cpus};

/// The living holds of the kubelet's CPUs, as `CPUs for container`.
fn foreign(server: &Berthd) -> Vec<String> {
    let holds = server.berth(["holds", "--all", "-o", "json"]).json();
    let holds = holds["holds"].as_array().expect("a list").iter().filter(|hold| hold["foreign"] == true);
    let said = |hold: &serde_json::Value| {
        format!("{} {}", hold["cpus"], hold["labels"]["kube.given"]).replace('"', "")
    };
    holds.map(said).collect()
}

#[test]
fn berthd_knows_what_the_kubelet_has_given_out() {
    if !two_cpus() {
        return;
    }
    let server = Berthd::start();
    let place = Place::with_policy("static");
    let kubelet = Kubelet::start(place.file("kubelet.sock"));
    kubelet.gives(&[("web", &[1]), ("shares", &[])]);
    let plugin = Plugin::start(&place, &server.address());
    plugin.wait_for_metric("berth_nri_foreign_cpus", 1.0);
    assert_eq!(foreign(&server), ["1 default/web/main"]);
    let free = || server.berth(["advise", "-n", "1", "--form", "mask", "-o", "list"]).answer();
    assert_eq!(free(), "0\n", "nobody else is given it");

    // A plugin that was killed has nothing to tell anew.
    plugin.kill();
    let plugin = Plugin::start(&place, &server.address());
    plugin.wait_for_metric("berth_nri_foreign_cpus", 1.0);
    assert_eq!(foreign(&server), ["1 default/web/main"]);

    kubelet.gives(&[("other", &[0])]);
    wait_until("it is told", || foreign(&server) == ["0 default/other/main"], || plugin.said());
    drop(kubelet);
    plugin.wait_for("berthd is not told which CPUs the kubelet gives out: no kubelet answers");
    assert_eq!(foreign(&server), ["0 default/other/main"], "what was given out stays so until more is known");

    // From now on it gives out none.
    place.set_policy("none");
    wait_until("they are let go", || foreign(&server).is_empty(), || plugin.said());
}

#[test]
fn status_says_who_writes_cpusets() {
    let server = Berthd::start();
    let place = Place::with_policy("static");
    let status = || {
        let state = place.file("cpu_manager_state");
        let (state, socket) = (state.to_str().expect("UTF-8"), place.socket());
        let nri = ["--nri-socket", socket.to_str().expect("UTF-8"), "--cpu-manager-state", state];
        server.berth(["kube", "status"].iter().chain(&nri)).answer()
    };
    assert!(status().contains("policy static: the kubelet gives out CPUs itself"), "{}", status());
    assert!(status().contains("the runtime does not run, or takes no plugins"), "{}", status());
    place.set_policy("none");
    let node = super::node::Node::listen(&place);
    assert!(status().contains("policy none: the kubelet gives out no CPUs"), "{}", status());
    assert!(status().contains("the runtime takes plugins at"), "{}", status());
    assert!(status().contains("0 are placed by Berth"), "{}", status());
    drop(node);
}
