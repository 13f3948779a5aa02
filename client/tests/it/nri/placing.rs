//! Where containers are put, seen from their own processes.

use std::{collections::BTreeSet, fs, process::Command};

use berth_model::CpuSet;
use berth_proto::nri::{ContainerAdjustment, LinuxCpu, OptionalInt64, OptionalUInt64};

use super::{
    node::{Node, Wanted},
    plugin::{Place, Plugin, wait_until},
};
use crate::{
    berthd::Berthd,
    slurm::{two_cpus, unsafe_host},
};

const ASKS: (&str, &str) = ("berth.dev/policy", "spread");

/// A node whose kubelet gives out no CPUs, with a plugin that the runtime has taken in.
fn node_with(server: &Berthd) -> (Place, Node, Plugin) {
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let plugin = Plugin::start(&place, &server.address());
    node.take_in();
    (place, node, plugin)
}

fn cpus_of(adjust: Option<&ContainerAdjustment>) -> &str {
    let resources = adjust.and_then(|adjust| adjust.linux.as_ref()?.resources.as_ref());
    resources.and_then(|resources| resources.cpu.as_ref()).map_or("", |cpu| &cpu.cpus)
}

fn set(list: &str) -> CpuSet {
    CpuSet::parse(list).expect("a list")
}

/// The living holds, as `CPUs for name`.
fn held(server: &Berthd) -> Vec<String> {
    let holds = server.berth(["holds", "--all", "-o", "json"]).json();
    let holds = holds["holds"].as_array().expect("a list").iter();
    let said = |hold: &serde_json::Value| {
        format!(
            "{} {}",
            hold["cpus"].as_str().unwrap_or(""),
            hold["labels"]["kube.container"].as_str().unwrap_or("")
        )
    };
    holds.map(said).collect()
}

#[test]
fn a_container_that_asks_runs_where_it_was_put() {
    if !two_cpus() {
        return;
    }
    let server = Berthd::start();
    let (_place, mut node, plugin) = node_with(&server);
    let mut taken = BTreeSet::new();
    for pod in ["one", "two"] {
        let (id, adjust) = node.create(Wanted::new(pod, &[ASKS]).limit(600));
        let cpus = cpus_of(adjust.as_ref()).to_owned();
        assert_eq!(set(&cpus).len(), 1, "one task, one CPU: {}", plugin.said());
        let itself = node.start(&id);
        assert_eq!((itself.affinity.to_string(), itself.berth_cpus), (cpus.clone(), cpus.clone()));
        assert!(held(&server).contains(&format!("{cpus} default/{pod}/main")), "{:?}", held(&server));
        taken.insert(cpus);
    }
    assert_eq!(taken.len(), 2, "each has a CPU of its own");
    assert!((plugin.metric("berth_nri_placed_containers") - 2.0).abs() < 0.1, "{}", plugin.page("/metrics"));
    plugin.wait_for_metric("berth_nri_containers_found_total{found=\"as_placed\"}", 2.0);
    // Each hold ends with its container, whatever the plugin does.
    let holds = server.berth(["holds", "--all", "-o", "json"]).json();
    let ends_with_it = |hold: &serde_json::Value| {
        hold["owner"]["process"]["pid"].as_u64() > Some(1) || hold["owner"]["cgroup"].is_string()
    };
    assert!(holds["holds"].as_array().expect("a list").iter().all(ends_with_it), "{holds}");
    let ids: Vec<String> = (1..=2).map(|id| format!("{id:064x}")).collect();
    for id in &ids {
        node.stop(id);
        node.remove(id);
    }
    assert_eq!(held(&server), [""; 0]);
    println!("the slowest answer took {:?}", node.slowest);
}

/// What becomes of a container's tasks after its start is seen too.
#[test]
fn tasks_that_have_left_their_cpus_are_told() {
    if !two_cpus() {
        return;
    }
    let server = Berthd::start();
    let (_place, mut node, plugin) = node_with(&server);
    let (id, adjust) = node.create(Wanted::new("one", &[ASKS]).limit(600));
    let cpus = set(cpus_of(adjust.as_ref()));
    node.start(&id);
    let elsewhere = own_cpus().difference(&cpus).first().expect("there are two").to_string();
    let moved = Command::new("taskset").args(["-cp", &elsewhere, &node.pid(&id).to_string()]).output();
    assert!(moved.expect("taskset is there").status.success());
    let told = format!("default/one/main: OUTSIDE_EXPECTED: 1 thread may use other CPUs than {cpus}.");
    plugin.wait_for(&told);
}

fn own_cpus() -> CpuSet {
    let status = fs::read_to_string("/proc/self/status").expect("this process has one");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    set(list.expect("it has a mask").trim())
}

#[test]
fn a_container_stays_on_what_its_pod_may_use() {
    if !two_cpus() {
        return;
    }
    let server = Berthd::start();
    let (_place, mut node, plugin) = node_with(&server);
    let mut pod = Command::new("taskset").args(["-c", "1", "sleep", "600"]).spawn().expect("taskset runs");
    let affinity = || fs::read_to_string(format!("/proc/{}/status", pod.id())).unwrap_or_default();
    wait_until("it is bound", || affinity().contains("Cpus_allowed_list:\t1\n"), affinity);
    // The limit is more than that.
    let (_, adjust) = node.create(Wanted::new("bound", &[ASKS]).limit(2000).pod_pid(pod.id()));
    pod.kill().expect("it runs");
    pod.wait().expect("it ends");
    assert_eq!(cpus_of(adjust.as_ref()), "1", "{}", plugin.said());
}

#[test]
fn a_mask_is_as_large_as_the_limit_whatever_runs_in_it() {
    if !two_cpus() {
        return;
    }
    let server = Berthd::start();
    let (_place, mut node, plugin) = node_with(&server);
    let (_, adjust) = node.create(Wanted::new("few", &[ASKS, ("berth.dev/tasks", "1")]).limit(2000));
    assert_eq!(cpus_of(adjust.as_ref()), "0-1", "{}", plugin.said());
}

#[test]
fn who_does_not_ask_is_left_alone() {
    let server = Berthd::start();
    let (_place, mut node, plugin) = node_with(&server);
    let (id, adjust) = node.create(Wanted::new("silent", &[]).limit(1000));
    assert_eq!(adjust, None);
    let itself = node.start(&id);
    assert_eq!(itself.berth_cpus, "");
    assert_eq!(node.create(Wanted::new("off", &[("berth.dev/policy", "off")]).limit(1000)).1, None);
    // Two plugins that set the same would fail its creation.
    assert_eq!(node.create(Wanted::new("set", &[ASKS]).limit(1000).cpus("0")).1, None);
    assert_eq!(node.create(Wanted::new("wrong", &[("berth.dev/policy", "sideways")]).limit(1000)).1, None);
    assert_eq!(node.create(Wanted::new("unlimited", &[ASKS])).1, None);
    assert_eq!(held(&server), [""; 0]);
    let said = plugin.said();
    for what in [
        "default/set/main is left as it is: its CPUs are set already, to 0",
        "default/wrong/main is left as it is: berth.dev/policy: `sideways`; expected auto, spread, compact or off",
        "default/unlimited/main is left as it is: main has no CPU limit",
    ] {
        assert!(said.contains(what), "{said}");
    }
    assert!((plugin.metric("berth_nri_containers_total{outcome=\"left\"}") - 3.0).abs() < 0.1);
}

#[test]
fn a_users_own_variables_stay() {
    let server = Berthd::start();
    let (_place, mut node, _plugin) = node_with(&server);
    let (id, adjust) = node.create(Wanted::new("own", &[ASKS]).limit(1000).env("BERTH_CPUS=mine"));
    assert!(!cpus_of(adjust.as_ref()).is_empty());
    assert_eq!(node.start(&id).berth_cpus, "mine");
}

#[test]
fn the_device_plugins_cpus_are_taken() {
    if !two_cpus() {
        return;
    }
    let server = Berthd::start();
    let (_place, mut node, plugin) = node_with(&server);
    let hold = server.berth(["hold", "--cpus", "1", "--ttl", "1h", "-o", "json"]).json();
    let hold = hold["hold"]["id"].as_str().expect("an id").to_owned();
    let (id, adjust) =
        node.create(Wanted::new("device", &[]).limit(1000).annotation("berth.dev/hold", &hold));
    assert_eq!(cpus_of(adjust.as_ref()), "1", "{}", plugin.said());
    assert_eq!(node.start(&id).affinity, set("1"));
    // It would have fewer CPUs than its limit.
    let (_, adjust) = node.create(Wanted::new("large", &[]).limit(2000).annotation("berth.dev/hold", &hold));
    assert_eq!(adjust, None);
    plugin.wait_for("CPUs 1 are fewer than its limit of 2");
    let (_, adjust) = node.create(Wanted::new("gone", &[]).limit(1000).annotation("berth.dev/hold", "h-0"));
    assert_eq!(adjust, None);
    node.stop(&id);
    assert_eq!(held(&server).len(), 1, "it is the device plugin's to let go");
}

#[test]
fn where_no_mask_is_proven_the_best_is_taken_and_said() {
    let Some(server) = two_cpus().then(unsafe_host) else { return };
    let (_place, mut node, plugin) = node_with(&server);
    let (_, adjust) = node.create(Wanted::new("crowd", &[ASKS, ("berth.dev/tasks", "4")]).limit(2000));
    assert_eq!(cpus_of(adjust.as_ref()), "0-1", "{}", plugin.said());
    let annotations = adjust.expect("it is placed").annotations;
    assert_eq!(annotations["berth.dev/status"], "unproven", "{}", plugin.said());
    plugin.wait_for("warning: default/crowd/main: no mask for 4 tasks is proven");
    plugin.wait_for_metric("berth_nri_containers_total{outcome=\"unproven\"}", 1.0);
}

#[test]
fn cpus_are_ones_own_when_everybody_else_is_off_them() {
    if !two_cpus() {
        return;
    }
    let server = Berthd::start();
    let (_place, mut node, plugin) = node_with(&server);
    let (before, adjust) = node.create(Wanted::new("before", &[]));
    assert_eq!(adjust, None);
    node.start(&before);
    assert_eq!(node.affinity(&before), "0-1");
    let (mine, adjust) =
        node.create(Wanted::new("mine", &[ASKS, ("berth.dev/exclusive", "true")]).limit(1000));
    let own = set(cpus_of(adjust.as_ref()));
    assert_eq!(own.len(), 1, "{}", plugin.said());
    let rest = set("0-1").difference(&own).to_string();
    assert_eq!(node.affinity(&before), rest, "it was narrowed while it ran");
    assert_eq!(node.start(&mine).affinity, own);
    let (after, adjust) = node.create(Wanted::new("after", &[]));
    assert_eq!(cpus_of(adjust.as_ref()), rest, "who comes later is narrowed too");
    assert_eq!(node.start(&after).affinity, set(&rest));
    // There is nothing left that could be another's alone.
    let (other, adjust) =
        node.create(Wanted::new("other", &[ASKS, ("berth.dev/exclusive", "true")]).limit(1000));
    assert_eq!(cpus_of(adjust.as_ref()), rest);
    plugin.wait_for("warning: default/other/main: its CPUs cannot be its own alone");
    plugin.wait_for_metric("berth_nri_exclusive_refused_total", 1.0);
    node.stop(&mine);
    assert_eq!(
        (node.affinity(&before), node.affinity(&after)),
        ("0-1".to_owned(), "0-1".to_owned()),
        "widened again"
    );
    node.stop(&other);
    assert_eq!(held(&server), [""; 0]);
}

#[test]
fn nobody_is_narrowed_below_its_limit() {
    if !two_cpus() {
        return;
    }
    let server = Berthd::start();
    let (_place, mut node, plugin) = node_with(&server);
    let (wide, _) = node.create(Wanted::new("wide", &[]).limit(1500));
    node.start(&wide);
    let (_, adjust) = node.create(Wanted::new("mine", &[ASKS, ("berth.dev/exclusive", "true")]).limit(1000));
    assert_eq!(set(cpus_of(adjust.as_ref())).len(), 1, "it is placed all the same");
    assert_eq!(node.affinity(&wide), "0-1");
    plugin.wait_for("default/wide/main would be left with 1 CPUs, and its limit is 2");
    assert_eq!(server.berth(["holds", "--all", "-o", "json"]).json()["holds"][0]["mode"], "SHARED");
}

#[test]
fn a_limit_that_grows_gets_its_cpus() {
    if !two_cpus() {
        return;
    }
    let server = Berthd::start();
    let (_place, mut node, plugin) = node_with(&server);
    let (id, adjust) = node.create(Wanted::new("grows", &[ASKS]).limit(1000));
    assert_eq!(set(cpus_of(adjust.as_ref())).len(), 1);
    node.start(&id);
    let quota = |value| Some(OptionalInt64 { value });
    let period = Some(OptionalUInt64 { value: 100_000 });
    // As a kubelet says it that changes nothing but the shares.
    node.update(&id, LinuxCpu { quota: quota(0), period, ..LinuxCpu::default() });
    assert_eq!(set(&node.cpus(&id)).len(), 1);
    node.update(&id, LinuxCpu { quota: quota(200_000), period, ..LinuxCpu::default() });
    assert_eq!((node.cpus(&id).as_str(), node.affinity(&id).as_str()), ("0-1", "0-1"), "{}", plugin.said());
    assert_eq!(held(&server), ["0-1 default/grows/main"]);
    // Who says so knows what for.
    node.update(&id, LinuxCpu { cpus: "1".to_owned(), ..LinuxCpu::default() });
    assert_eq!(node.affinity(&id), "1");
    assert_eq!(held(&server), [""; 0]);
    plugin.wait_for("is put on 1 by somebody else");
}

#[test]
fn beside_the_kubelets_cpu_manager_nothing_is_written() {
    let server = Berthd::start();
    let place = Place::with_policy("static");
    let mut node = Node::listen(&place);
    let plugin = Plugin::start(&place, &server.address());
    plugin.wait_for("CPU manager policy static: the kubelet gives out CPUs itself");
    node.take_in();
    let (id, adjust) = node.create(Wanted::new("asks", &[ASKS]).limit(1000).cpus("0"));
    assert_eq!(adjust, None);
    node.start(&id);
    assert_eq!(held(&server), [""; 0]);
    plugin.wait_for_metric("berth_nri_containers_total{outcome=\"observed\"}", 1.0);
    plugin.wait_for_metric("berth_nri_cpu_manager_policy{policy=\"static\"}", 1.0);
    assert!(plugin.page("/readyz").contains("CPU manager policy static"), "{}", plugin.page("/readyz"));
    // What is not known may be anything.
    place.set_policy("of a later kubelet");
    assert_eq!(node.create(Wanted::new("asks", &[ASKS]).limit(1000)).1, None);
    plugin.wait_for_metric("berth_nri_cpu_manager_policy{policy=\"unknown\"}", 1.0);
    place.set_policy("none");
    assert!(node.create(Wanted::new("asks", &[ASKS]).limit(1000)).1.is_some(), "{}", plugin.said());
}
