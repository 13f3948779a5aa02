//! The report that Berth began with: 176 tasks on CPUs 0-175 of a host with 640 CPUs and 20 NUMA nodes.

use std::{collections::BTreeSet, fs};

use berth_model::CpuSet;

use crate::{
    berth::{Said, berth_with, machine},
    berthd::Berthd,
};

/// What a command says about the host, with further arguments.
fn ask(server: &Berthd, command: &str, more: &[&str]) -> Said {
    let xml = machine("seeds/turin-2s-l3-as-numa.xml");
    let question =
        ["-n", "176", "--cpus", "0-175", "--from", "0", "--cpu-vendor", "AuthenticAMD", "--cpu-family", "26"];
    let host = ["--host-xml", xml.to_str().expect("a path in UTF-8")];
    server.berth([command].iter().chain(&question).chain(&host).chain(more))
}

/// The place with an id in a list of places.
fn tasks_on(places: &serde_json::Value, id: u64) -> u64 {
    let of = |place: &&serde_json::Value| place["id"].as_u64().unwrap_or(0) == id;
    places
        .as_array()
        .and_then(|places| places.iter().find(of))
        .map_or(0, |place| place["tasks"].as_u64().unwrap_or(0))
}

#[test]
fn kernels_without_the_fix_pile_up() {
    let server = Berthd::start();
    insta::assert_snapshot!("predict_6_12_95", ask(&server, "predict", &["--kernel", "6.12.95"]).answer());
    for kernel in ["6.12.95", "6.18.38"] {
        let json = ask(&server, "predict", &["--kernel", kernel, "-o", "json"]).json();
        let prediction = &json["prediction"];
        assert_eq!(json["verdict"], "PILE_UP", "{kernel}");
        assert_eq!(tasks_on(&prediction["packages"], 0), 16, "{kernel}");
        assert_eq!(tasks_on(&prediction["packages"], 1), 160, "{kernel}");
        assert_eq!(prediction["cpusUsed"], 32, "{kernel}");
        let used = prediction["cpuUse"]["expected"].as_f64().expect("a share");
        assert_eq!(format!("{used:.6}"), "0.181818", "{kernel}");
    }
}

#[test]
fn kernels_with_the_fix_do_not() {
    let server = Berthd::start();
    insta::assert_snapshot!("predict_6_18_39", ask(&server, "predict", &["--kernel", "6.18.39"]).answer());
    for kernel in ["6.18.39", "6.12.97", "6.1.178", "6.19"] {
        let json = ask(&server, "predict", &["--kernel", kernel, "-o", "json"]).json();
        assert_eq!(json["verdict"], "NO_PILE_UP", "{kernel}");
        assert_eq!(json["prediction"]["cpusUsed"], 176, "{kernel}");
        assert_eq!(json["prediction"]["cpuUse"]["expected"], 1.0, "{kernel}");
    }
}

#[test]
fn check_turns_the_verdict_into_a_status() {
    let server = Berthd::start();
    let piled = ask(&server, "predict", &["--kernel", "6.12.95", "--check"]);
    assert_eq!(piled.status, 10);
    assert_eq!(
        piled.stdout,
        ask(&server, "predict", &["--kernel", "6.12.95"]).answer(),
        "the answer is the same"
    );
    ask(&server, "predict", &["--kernel", "6.18.39", "--check"]).answer();
}

#[test]
fn the_advice_is_a_split() {
    let server = Berthd::start();
    insta::assert_snapshot!("advise_6_12_95", ask(&server, "advise", &["--kernel", "6.12.95"]).answer());
    let advice = &ask(&server, "advise", &["--kernel", "6.12.95", "-o", "json"]).json()["advice"];
    assert_eq!(advice["form"], "SPLIT");
    assert_eq!(advice["proof"]["result"], "SAFE");
    let parts: Vec<_> =
        advice["parts"].as_array().expect("a list").iter().map(|p| (&p["tasks"], &p["cpus"])).collect();
    assert_eq!(format!("{parts:?}"), r#"[(Number(160), String("0-159")), (Number(16), String("160-175"))]"#);
}

#[test]
fn with_the_fix_the_mask_is_safe() {
    let server = Berthd::start();
    insta::assert_snapshot!("advise_6_18_39", ask(&server, "advise", &["--kernel", "6.18.39"]).answer());
    let json = ask(&server, "advise", &["--kernel", "6.18.39", "-o", "json"]).json();
    assert_eq!(json["asked"]["result"], "SAFE");
}

#[test]
fn per_task_gives_each_a_cpu_of_its_own() {
    let server = Berthd::start();
    let per_task = ["--kernel", "6.12.95", "--form", "per-task"];
    insta::assert_snapshot!("advise_per_task", ask(&server, "advise", &per_task).answer());
    let json = ask(&server, "advise", &[&per_task[..], &["-o", "json"]].concat()).json();
    let tasks = json["advice"]["tasks"].as_array().expect("a list");
    let cpus: BTreeSet<u32> =
        tasks.iter().map(|task| single(task["cpus"].as_str().expect("a set"))).collect();
    assert_eq!(tasks.len(), 176);
    assert_eq!(cpus, (0..176).collect(), "none doubled");
}

fn single(list: &str) -> u32 {
    let set: CpuSet = list.parse().expect("a set of CPUs");
    assert_eq!(set.len(), 1, "{list}");
    set.first().expect("it has one").number()
}

#[test]
fn the_host_may_come_on_stdin() {
    let server = Berthd::start();
    let xml = fs::read_to_string(machine("seeds/turin-2s-l3-as-numa.xml")).expect("the machine is there");
    let address = server.address();
    let args = ["--server", &address, "topology", "--host-xml", "-", "-o", "json"];
    let json: serde_json::Value = berth_with(args, |_| {}, &xml).json();
    assert_eq!(json["topology"]["onlineCount"], 640);
    assert_eq!(json["topology"]["nodes"].as_array().map(Vec::len), Some(20));
}

#[test]
fn a_load_makes_the_fixed_kernel_pile_up_again() {
    let server = Berthd::start();
    let synthetic = "pack:2 [numa] l3:2 core:4 pu:2(indexes=2*16:16*1)";
    let question = [
        "predict",
        "-n",
        "6",
        "--cpus",
        "1,2,6,15",
        "--from",
        "15",
        "--host-load",
        "1-2:1",
        "--kernel",
        "6.12.117",
    ];
    let json = server.berth(question.iter().chain(&["--host-synthetic", synthetic, "-o", "json"])).json();
    assert_eq!(json["allowed"], "1-2,6,15");
    assert_eq!(json["prediction"]["bestPossible"], 2);
}
