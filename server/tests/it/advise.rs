//! `Advise`.

use crate::support::{Served, host_of, placement, release, small_host, topologies, xml};
use berth_proto::v1::{
    self, form::Value as Form, policy::Value as Policy, proof::Result as Proven, verdict::Value as Verdict,
    view::Value as View,
};
use prost::Message;
use std::collections::BTreeSet;
use tonic::{Code, transport::Channel};
use tonic_types::StatusExt;

fn turin(kernel: &str) -> v1::AdviseRequest {
    v1::AdviseRequest {
        tasks: 176,
        allowed: "0-175".to_owned(),
        origin: Some(0),
        host: host_of(xml("seeds/turin-2s-l3-as-numa.xml")),
        kernel: release(kernel),
        ..v1::AdviseRequest::default()
    }
}

fn small(tasks: u32) -> v1::AdviseRequest {
    v1::AdviseRequest {
        tasks,
        host: small_host(),
        kernel: release("6.12.97"),
        ..v1::AdviseRequest::default()
    }
}

async fn ask(channel: &Channel, request: v1::AdviseRequest) -> v1::AdviseResponse {
    placement(channel).advise(request).await.unwrap().into_inner()
}

fn parts(advice: &v1::Advice) -> Vec<(u32, &str)> {
    advice.parts.iter().map(|part| (part.tasks, part.cpus.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_mask_piles_up_the_tasks_are_split() {
    let served = Served::start(&[]).await;
    for (transport, channel) in served.channels().await {
        for kernel in ["6.12.95", "6.18.38"] {
            for origin in [Some(0), None] {
                let response = ask(&channel, v1::AdviseRequest { origin, ..turin(kernel) }).await;
                let advice = response.advice.unwrap();
                assert_eq!(advice.form(), Form::Split, "{transport} {kernel}");
                assert_eq!(parts(&advice), [(160, "0-159"), (16, "160-175")]);
                assert_eq!((advice.parts[1].first_task, advice.parts[0].memory_nodes.as_str()), (160, "0-9"));
                let proof = advice.proof.unwrap();
                assert_eq!(proof.result(), Proven::Safe);
                assert!(proof.runs > 0 && proof.failing_run.is_none() && proof.valid_for.is_some());
                let (without, with) = (response.without.unwrap(), response.with.unwrap());
                assert_eq!((without.verdict(), with.verdict()), (Verdict::PileUp, Verdict::NoPileUp));
                assert_eq!((with.most_on_one_cpu, with.cpu_use.unwrap().expected), (1, 1.0));
                assert!((without.cpu_use.unwrap().expected - 0.1818).abs() < 0.0001);
                let asked = response.asked.unwrap();
                assert_eq!(asked.result(), Proven::Unsafe);
                assert_eq!(asked.failing_run.unwrap().verdict(), Verdict::PileUp);
                assert_eq!(response.reasons[0].reason, "ASKED_UNSAFE");
                assert!(without.tasks.is_empty() && advice.tasks.is_empty(), "they are for the full view");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_mask_is_safe_it_stays() {
    let served = Served::start(&[]).await;
    for (transport, channel) in served.channels().await {
        for kernel in ["6.18.39", "6.12.97", "6.1.178", "6.19"] {
            let response = ask(&channel, turin(kernel)).await;
            let advice = response.advice.unwrap();
            assert_eq!(
                (advice.form(), parts(&advice)),
                (Form::Mask, vec![(176, "0-175")]),
                "{transport} {kernel}"
            );
            assert_eq!(response.asked.unwrap().result(), Proven::Safe);
            assert_eq!(response.reasons[0].reason, "ASKED_SAFE");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn single_cpus_are_given_once_each() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut request = v1::AdviseRequest { single_cpus: true, ..turin("6.12.95") };
        request.push_can_apply(Form::PerTask);
        let advice = ask(&channel, request).await.advice.unwrap();
        assert_eq!((advice.form(), advice.parts.len(), advice.tasks.len()), (Form::PerTask, 0, 176));
        let cpus: BTreeSet<u32> = advice.tasks.iter().map(|entry| entry.cpus.parse().unwrap()).collect();
        assert_eq!(cpus, (0..176).collect());
        assert_eq!(advice.proof.unwrap().result(), Proven::Safe);
    }
}

/// What `hwloc-distrib --single 8` gives on these hosts.
#[tokio::test(flavor = "multi_thread")]
async fn spread_over_every_second_llc() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        for name in ["zen3-2s-nps1", "zen3-2s-nps2", "zen3-2s-nps4"] {
            let mut request = v1::AdviseRequest {
                tasks: 8,
                host: host_of(xml(&format!("seeds/{name}.xml"))),
                kernel: release("6.12.95"),
                single_cpus: true,
                ..v1::AdviseRequest::default()
            };
            request.set_policy(Policy::Spread);
            request.push_can_apply(Form::PerTask);
            let advice = ask(&channel, request).await.advice.unwrap();
            let cpus: Vec<&str> = advice.tasks.iter().map(|entry| entry.cpus.as_str()).collect();
            assert_eq!(cpus, ["0", "16", "32", "48", "64", "80", "96", "112"], "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_full_view_tells_how_good_it_is_and_what_lost() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut request = small(4);
        request.set_view(View::Full);
        request.set_policy(Policy::Compact);
        let response = ask(&channel, request).await;
        let advice = response.advice.unwrap();
        assert_eq!(advice.tasks.len(), 4);
        assert!(advice.tasks.iter().all(|entry| !entry.placed.is_empty()));
        let objective = advice.objective.unwrap();
        assert!(objective.optimal && objective.components[0].name == "tasks per CPU");
        // A CPU for each task leaves no mask safe, and single CPUs have no margin: the mask below has room.
        assert!(advice.proof.unwrap().margin.is_none());
        let mut roomy = v1::AdviseRequest { allowed: "0-3".to_owned(), ..small(3) };
        roomy.set_view(View::Full);
        let proof = ask(&channel, roomy).await.advice.unwrap().proof.unwrap();
        assert!(proof.result() == Proven::Safe && proof.margin.is_some());
        let spread = response.runners_up.iter().find(|runner| runner.policy() == Policy::Spread).unwrap();
        assert!(spread.loses_at.is_some() && !spread.because.is_empty());
        assert_eq!((response.with.unwrap().tasks.len(), response.without.unwrap().tasks.len()), (4, 4));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn not_to_bind_is_an_advice_too() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let response = ask(&channel, small(6)).await;
        let advice = response.advice.unwrap();
        assert_eq!((advice.form(), advice.parts.len()), (Form::None, 0));
        assert_eq!(response.reasons[0].reason, "KERNEL_DOES_AS_WELL");
        assert_eq!(advice.proof.unwrap().result(), Proven::Safe);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_task_of_a_step() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::AdviseRequest { only_task: Some(165), ..turin("6.12.95") };
        let response = ask(&channel, request.clone()).await;
        let advice = response.advice.unwrap();
        assert!(advice.parts.is_empty());
        let [entry] = advice.tasks.as_slice() else { panic!("{:?}", advice.tasks) };
        assert_eq!((entry.task, entry.cpus.as_str(), entry.memory_nodes.as_str()), (165, "160-175", "10"));
        assert!(response.with.unwrap().packages.is_empty());
        let status = placement(&channel)
            .advise(v1::AdviseRequest { only_task: Some(176), ..request })
            .await
            .unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }
}

/// A container runtime can apply a mask only, and none is proven.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_proven_is_not_called_safe() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut request = turin("6.12.95");
        request.push_can_apply(Form::Mask);
        let response = ask(&channel, request).await;
        let proof = response.advice.unwrap().proof.unwrap();
        assert_eq!(proof.result(), Proven::Unsafe);
        assert!(proof.failing_run.is_some());
        assert!(response.warnings.iter().any(|warning| warning.reason == "NOT_PROVEN"));
        assert_eq!(response.with.unwrap().verdict(), Verdict::PileUp);
    }
}

/// The model does not cover it; a task with one CPU goes there all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_hybrid_host_gets_single_cpus() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::AdviseRequest {
            tasks: 6,
            host: host_of(xml("intel-raptorlake-hybrid-p6e8.xml")),
            kernel: release("6.12.95"),
            ..v1::AdviseRequest::default()
        };
        let response = ask(&channel, request).await;
        let advice = response.advice.unwrap();
        assert_eq!(advice.form(), Form::PerTask);
        assert_eq!(advice.proof.unwrap().result(), Proven::Safe);
        assert_eq!(response.asked.unwrap().result(), Proven::NotProven);
        assert_eq!(response.without.unwrap().verdict(), Verdict::Unknown);
        assert!(response.warnings.iter().any(|warning| warning.reason == "ASYMMETRIC_CAPACITY"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cores_that_are_all_taken_are_exhausted() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut request = small(1);
        let host = request.host.as_mut().unwrap();
        host.load = vec![v1::CpuLoad { cpus: "0-7".to_owned(), runnable: Some(1), ..Default::default() }];
        request.set_smt(v1::smt::Value::FullCores);
        let status = placement(&channel).advise(request).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().metadata["cores"], "8");
        assert!(details.quota_failure().is_some() && details.retry_info().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_tasks_than_cpus_is_said() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let response = ask(&channel, v1::AdviseRequest { allowed: "2".to_owned(), ..small(16) }).await;
        assert!(response.warnings.iter().any(|warning| warning.reason == "FEWER_CPUS_THAN_TASKS"));
        assert_eq!(response.with.unwrap().most_on_one_cpu, 16);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_question_gets_the_same_bytes() {
    let file = topologies().join("seeds/zen3-2s-nps4.xml");
    let served = Served::start(&["--topology-xml", file.to_str().unwrap()]).await;
    let mut answers = Vec::new();
    for (_, channel) in served.channels().await {
        for _ in 0..2 {
            let mut request =
                v1::AdviseRequest { tasks: 40, allowed: "0-15,64-95".to_owned(), ..Default::default() };
            request.set_view(View::Full);
            answers.push(ask(&channel, request).await.encode_to_vec());
        }
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn this_host_answers() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let response = ask(&channel, v1::AdviseRequest { tasks: 1, ..Default::default() }).await;
        assert_ne!(response.advice.unwrap().form(), Form::Unspecified);
        assert!(response.without.is_some() && response.with.is_some());
    }
}

/// A host of two nodes with eight CPUs each.
fn two_nodes(tasks: u32) -> v1::AdviseRequest {
    let source = v1::host::Source::Synthetic("pack:2 [numa] l3:1 core:8 pu:1".to_owned());
    v1::AdviseRequest {
        tasks,
        host: Some(v1::Host { source: Some(source), ..v1::Host::default() }),
        kernel: release("6.12.97"),
        ..v1::AdviseRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_cpus_for_each_task() {
    let served = Served::start(&[]).await;
    let [(_, channel), _] = served.channels().await;
    let request = v1::AdviseRequest { cpus_per_task: 4, ..two_nodes(3) };
    let advice = ask(&channel, request.clone()).await.advice.unwrap();
    assert_eq!(advice.form(), Form::PerTask);
    let entries: Vec<&str> = advice.tasks.iter().map(|entry| entry.cpus.as_str()).collect();
    assert_eq!(entries, ["0-3", "4-7", "8-11"]);
    assert_eq!(advice.proof.unwrap().result(), Proven::Safe);
    let only = ask(&channel, v1::AdviseRequest { only_task: Some(1), ..request }).await.advice.unwrap();
    assert_eq!((only.tasks.len(), only.tasks[0].task, only.tasks[0].cpus.as_str()), (1, 1, "4-7"));
    let far_too_many = v1::AdviseRequest { cpus_per_task: 40_000, ..two_nodes(2) };
    let status = placement(&channel).advise(far_too_many).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("cpus_per_task"), "{}", status.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_words_of_launchers() {
    let served = Served::start(&[]).await;
    let [(_, channel), _] = served.channels().await;
    let request = v1::AdviseRequest {
        can_apply: vec![Form::PerTask.into()],
        single_cpus: true,
        formats: vec![v1::format::Value::Omp.into(), v1::format::Value::All.into()],
        slurm_cpus: (0..16).collect(),
        allowed: "0-1".to_owned(),
        ..two_nodes(2)
    };
    let response = ask(&channel, request).await;
    let text = |format: v1::format::Value| {
        let of = response.formatted.iter().filter(|formatted| formatted.format() == format);
        of.map(|formatted| formatted.text.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(text(v1::format::Value::Omp), ["export OMP_PLACES=\"{0},{1}\"\nexport OMP_PROC_BIND=close"]);
    assert_eq!(text(v1::format::Value::TasksetList), ["taskset -c 0", "taskset -c 1"]);
    assert_eq!(text(v1::format::Value::SlurmCpuBind), ["--cpu-bind=mask_cpu:0x1,0x2"]);
    assert!(response.formatted.iter().all(|formatted| formatted.because.is_empty()));
    // Where it is best not to bind, there is nothing to write.
    let unbound = v1::AdviseRequest { formats: vec![v1::format::Value::Docker.into()], ..two_nodes(2) };
    let formatted = ask(&channel, unbound).await.formatted.remove(0);
    assert_eq!((formatted.text.as_str(), formatted.because.as_str()), ("", "the advice is not to bind."));
    // Without Slurm's numbering that format says why it is empty.
    let unknown = v1::AdviseRequest {
        formats: vec![v1::format::Value::SlurmCpuBind.into()],
        allowed: "0-1".to_owned(),
        ..two_nodes(2)
    };
    let formatted = ask(&channel, unknown).await.formatted.remove(0);
    assert!(formatted.text.is_empty() && !formatted.because.is_empty(), "{formatted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_in_the_host() {
    use v1::{level::Value as Level, near::Place};
    let served = Served::start(&[]).await;
    let [(_, channel), _] = served.channels().await;
    let within = |required| Some(v1::Within { level: Level::Node.into(), required });
    let near = |place| Some(v1::Near { place: Some(place) });
    let reasons = |response: &v1::AdviseResponse| {
        response.warnings.iter().map(|warning| warning.reason.clone()).collect::<Vec<_>>()
    };

    let response = ask(&channel, v1::AdviseRequest { near: near(Place::Node(1)), ..two_nodes(4) }).await;
    assert_eq!(parts(response.advice.as_ref().unwrap()), [(4, "8-15")]);
    assert_eq!(response.advice.unwrap().parts[0].memory_nodes, "1");
    let elsewhere =
        v1::AdviseRequest { near: near(Place::Cpu(12)), allowed: "0-7".to_owned(), ..two_nodes(4) };
    assert!(reasons(&ask(&channel, elsewhere).await).contains(&"NEAR_NOT_MET".to_owned()));

    let preferred = ask(&channel, v1::AdviseRequest { within: within(false), ..two_nodes(10) }).await;
    assert!(reasons(&preferred).contains(&"WITHIN_NOT_MET".to_owned()));
    let never = v1::AdviseRequest { within: within(true), ..two_nodes(10) };
    let status = placement(&channel).advise(never).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "{}", status.message());
    let mut now = v1::AdviseRequest { within: within(true), ..two_nodes(8) };
    let busy = |cpus: &str| v1::CpuLoad { cpus: cpus.to_owned(), runnable: Some(1), ..Default::default() };
    now.host.as_mut().unwrap().load = vec![busy("0,8")];
    let status = placement(&channel).advise(now.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{}", status.message());
    let info = status.get_error_details().error_info().unwrap().clone();
    assert_eq!(info.reason, "NOT_WITHIN");
    assert_eq!(["asked", "free", "allowed"].map(|key| info.metadata[key].as_str()), ["8", "7", "8"]);

    now.within = None;
    now.set_exclusive(Level::Node);
    let status = placement(&channel).advise(now).await.unwrap_err();
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "NOT_ALONE");
    for wrong in [
        v1::AdviseRequest { near: near(Place::Node(7)), ..two_nodes(1) },
        v1::AdviseRequest { near: near(Place::Cpu(99)), ..two_nodes(1) },
        v1::AdviseRequest {
            within: Some(v1::Within { level: Level::Pu.into(), required: false }),
            ..two_nodes(1)
        },
        v1::AdviseRequest { exclusive: 77, ..two_nodes(1) },
    ] {
        let status = placement(&channel).advise(wrong).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{}", status.message());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_fields_are_named() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::AdviseRequest {
            tasks: 0,
            allowed: "0x0".to_owned(),
            policy: 9,
            can_apply: vec![0, 2],
            kernel: release("six"),
            host: small_host(),
            ..v1::AdviseRequest::default()
        };
        let status = placement(&channel).advise(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let details = status.get_error_details();
        let mut fields: Vec<&str> =
            details.bad_request().unwrap().field_violations.iter().map(|v| v.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["allowed", "can_apply[0]", "kernel.release", "policy", "tasks"]);
    }
}
