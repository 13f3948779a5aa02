//! Answers made by hand, for the tests of what lays them out.

use berth_proto::v1::{
    CountRange, CpuCount, CpuUse, PlaceCount, Prediction, ProfileChoice, Undetermined, confidence, verdict,
};
use clap::Parser as _;

use super::Question;
use crate::cli::{Cli, Command};

/// CPUs of one node of the host with 20 nodes, one thread of each core allowed.
const NODE: u32 = 16;

/// 176 tasks on CPUs 0-175: 16 on node 0, 160 on node 10.
pub(super) fn turin_piled() -> Prediction {
    let node = |id: u32| {
        let (tasks, idle) = match id {
            0 => (16, 0),
            10 => (160, 0),
            _ => (0, 16),
        };
        place(id, id * NODE, NODE, tasks, idle)
    };
    let cpu = |cpu: u32| CpuCount { cpu, tasks: if cpu < NODE { 1 } else { 10 }, ..CpuCount::default() };
    let nodes: Vec<PlaceCount> = (0..11).map(node).collect();
    Prediction {
        profile: "v6.12".to_owned(),
        verdict: verdict::Value::PileUp.into(),
        verdict_determined: true,
        most_on_one_cpu: 10,
        most_on_one_cpu_range: Some(CountRange { least: 10, most: 10 }),
        best_possible: 1,
        idle_allowed: "16-159".to_owned(),
        idle_allowed_count: 144,
        cpus_used: 32,
        cpu_use: Some(used(32.0 / 176.0)),
        cpus: (0..NODE).chain(160..176).map(cpu).collect(),
        llcs: nodes.clone(),
        nodes,
        packages: vec![place(0, 0, 160, 16, 144), place(1, 160, 16, 160, 0)],
        undetermined: Some(Undetermined {
            cpu: 12,
            because: vec!["how long CPUs 0-15 have been idle".to_owned()],
            ..Default::default()
        }),
        ..Prediction::default()
    }
}

/// The same tasks, one to each CPU.
pub(super) fn turin_spread() -> Prediction {
    let nodes: Vec<PlaceCount> = (0..11).map(|id| place(id, id * NODE, NODE, NODE, 0)).collect();
    Prediction {
        profile: "v6.12".to_owned(),
        verdict: verdict::Value::NoPileUp.into(),
        verdict_determined: true,
        most_on_one_cpu: 1,
        best_possible: 1,
        cpus_used: 176,
        cpu_use: Some(used(1.0)),
        cpus: (0..176).map(|cpu| CpuCount { cpu, tasks: 1, ..CpuCount::default() }).collect(),
        llcs: nodes.clone(),
        nodes,
        packages: vec![place(0, 0, 160, 160, 0), place(1, 160, 16, 16, 0)],
        ..Prediction::default()
    }
}

/// The same CPU use at every end.
fn used(share: f64) -> CpuUse {
    CpuUse { expected: share, least: share, most: share, frozen_clock: share, settled: None }
}

fn place(id: u32, first: u32, allowed: u32, tasks: u32, idle: u32) -> PlaceCount {
    let cpus = format!("{first}-{}", first + allowed - 1);
    PlaceCount { id, cpus, allowed, tasks, idle, ..PlaceCount::default() }
}

/// The question both answers are for, as the command line makes it.
pub(super) fn turin_question() -> Question {
    let typed = ["berth", "predict", "-n", "176", "--cpus", "0-175", "--from", "0", "--kernel", "6.12.95"];
    let host = ["--host-xml", "turin.xml", "--cpu-vendor", "AuthenticAMD", "--cpu-family", "26"];
    let cli = Cli::try_parse_from(typed.into_iter().chain(host)).unwrap();
    match cli.command {
        Command::Predict(args) => Question::new(&args.launch, &args.kernel, &args.host, &args.load),
        _ => unreachable!("it says predict"),
    }
}

/// What was taken for its kernel.
pub(super) fn profile() -> ProfileChoice {
    ProfileChoice {
        name: "v6.12".to_owned(),
        confidence: confidence::Value::Known.into(),
        release: "6.12.95".to_owned(),
        ..ProfileChoice::default()
    }
}
