//! What containers run: the real programs take their arguments, and probes tell a server that serves from one that does not.

use std::process::Command;

use serde_json::Value;

use super::{Helm, all_values, containers, list, pod, text};
use crate::{
    berth::berth,
    berthd::{self, Berthd},
};

fn words(value: &Value, pointer: &str) -> Vec<String> {
    list(value, pointer).iter().map(|word| word.as_str().expect("a text").to_owned()).collect()
}

/// The container of that name in the DaemonSet's pod, for each file of values.
fn each(helm: &Helm, name: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for (_, values) in all_values() {
        let manifests = helm.manifests(&values);
        let daemon =
            manifests.iter().find(|manifest| text(manifest, "/kind") == "DaemonSet").expect("it is there");
        found.extend(
            containers(pod(daemon).expect("it has one")).filter(|one| text(one, "/name") == name).cloned(),
        );
    }
    found
}

#[test]
fn berthd_takes_its_arguments_and_variables() {
    let Some(helm) = Helm::try_new() else { return };
    let all = each(&helm, "berthd");
    assert_eq!(all.len(), all_values().len());
    for container in all {
        let mut command = Command::new(berthd::program());
        command.args(words(&container, "/args")).arg("--check-config");
        for variable in list(&container, "/env") {
            command.env(text(variable, "/name"), text(variable, "/value"));
        }
        crate::tools::said(&mut command);
    }
}

/// Each of them is a command that there is, with flags that it has.
#[test]
fn berth_takes_its_arguments() {
    let Some(helm) = Helm::try_new() else { return };
    let mut count = 0;
    for (name, values) in all_values() {
        for manifest in &helm.manifests(&values) {
            for container in pod(manifest).into_iter().flat_map(containers) {
                let words = words(container, "/command");
                if words.first().is_some_and(|program| program == "berth") {
                    let words = words.into_iter().map(Into::into);
                    let taken = berth_client::cli::Cli::of(words);
                    taken.unwrap_or_else(|error| panic!("{name}, {}: {error}", text(container, "/name")));
                    count += 1;
                }
            }
        }
    }
    assert!(count >= 2 * all_values().len(), "{count}");
}

#[test]
fn probes_tell_whether_berthd_serves() {
    let Some(helm) = Helm::try_new() else { return };
    let mut server = Berthd::start();
    for container in each(&helm, "berthd") {
        let socket = words(&container, "/args")
            .into_iter()
            .find_map(|arg| Some(arg.strip_prefix("--uds=")?.to_owned()));
        let there = format!("unix:{}", socket.expect("it listens there"));
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
            let words = words(&container, &format!("/{probe}/exec/command"));
            assert_eq!(words[..3], ["berth", "--server", &there], "{probe}");
            let asks = |address: &str| {
                berth(["--server", address].into_iter().chain(words[3..].iter().map(String::as_str)))
            };
            assert_eq!(asks(&server.address()).status, 0, "{probe}");
            assert_eq!(asks("unix:/nowhere/berthd.sock").status, 3, "{probe}");
        }
    }
    // Its socket is there before it serves.
    server.start_anew();
    assert!([0, 3].contains(&server.berth(["health"]).status));
}
