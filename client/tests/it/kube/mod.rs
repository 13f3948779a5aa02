//! The device plugin, with a kubelet of ours and a real berthd.

mod affinity;
mod containers;
mod hosts;
mod kubelet;
mod plugin;
mod registration;
mod status;

use serde_json::Value;

use crate::berthd::Berthd;

/// The usual resource.
const CPU: &str = "berth.dev/cpu";
/// Two packages of two nodes, each a cache of four cores of two threads: CPUs 0-15, and 16-31 beside them.
const HOST: &str = "pack:2 group:2 [numa] l3:1 core:4 pu:2(indexes=2*16:16*1)";

/// A berthd that takes this host for that one.
fn berthd() -> Berthd {
    Berthd::start_with(["--no-tcp", "--kernel", "6.12.95", "--topology-synthetic", HOST])
}

/// What is held, oldest first.
fn held(server: &Berthd) -> Vec<Value> {
    let json = server.berth(["holds", "--all", "-o", "json"]).json();
    json["holds"].as_array().expect("a list").clone()
}
