//! `Predict`.

use crate::support::{Served, host_of, placement, release, small_host, xml};
use berth_proto::v1::{
    self, CountRange, confidence::Value as Confidence, host::Source, verdict::Value as Verdict,
};
use prost::Message;

fn turin(kernel: &str) -> v1::PredictRequest {
    v1::PredictRequest {
        tasks: 176,
        allowed: "0-175".to_owned(),
        origin: Some(0),
        host: host_of(xml("seeds/turin-2s-l3-as-numa.xml")),
        kernel: release(kernel),
        ..v1::PredictRequest::default()
    }
}

fn per_package(prediction: &v1::Prediction) -> Vec<(u32, u32)> {
    prediction.packages.iter().map(|package| (package.tasks, package.allowed)).collect()
}

fn warned(response: &v1::PredictResponse, reason: &str) -> bool {
    response.warnings.iter().any(|warning| warning.reason == reason)
}

/// The report that Berth began with: the mask forbids most of the second package, and the kernel counts its idle CPUs.
#[tokio::test(flavor = "multi_thread")]
async fn the_kernels_without_the_fix_pile_176_tasks_up_on_16_cpus() {
    let served = Served::start(&[]).await;
    for (transport, channel) in served.channels().await {
        for kernel in ["6.12.95", "6.18.38"] {
            let response = placement(&channel).predict(turin(kernel)).await.unwrap().into_inner();
            let prediction = response.prediction.clone().unwrap();
            assert_eq!(response.verdict(), Verdict::PileUp, "{transport} {kernel}");
            assert_eq!(per_package(&prediction), [(16, 160), (160, 16)], "{transport} {kernel}");
            assert_eq!(prediction.cpus_used, 32);
            let tasks: u32 = prediction.cpus.iter().map(|cpu| cpu.tasks).sum();
            assert_eq!((tasks, prediction.cpus.len(), prediction.tasks.len()), (176, 32, 176));
            let cpu_use = prediction.cpu_use.unwrap();
            assert!((cpu_use.expected - 0.1818).abs() < 0.0001, "{cpu_use:?}");
            assert_eq!((prediction.most_on_one_cpu, prediction.best_possible), (10, 1));
            assert_eq!((prediction.idle_allowed_count, prediction.nodes.len()), (144, 11));
            assert!(prediction.verdict_determined, "no imbalance mark comes before the first pile-up");
            assert!((cpu_use.frozen_clock - 0.1818).abs() < 0.0001, "{cpu_use:?}");
            // Measured: 24.87 %.
            assert!(cpu_use.least < 0.2487 && 0.2487 < cpu_use.most, "{cpu_use:?}");
            let mark = prediction.mark.unwrap();
            assert_eq!(mark.group, "160-319,480-639", "where affinity stops load balancing");
            assert!(mark.expected_share > 0.0 && mark.expected_share < 0.5, "{mark:?}");
            let undetermined = prediction.undetermined.unwrap();
            assert_eq!(undetermined.package, 0);
            assert!(undetermined.cpu > 0 && !undetermined.because.is_empty());
            let profile = response.profile.clone().unwrap();
            assert_eq!((profile.confidence(), profile.release.as_str()), (Confidence::Stated, kernel));
            assert!(response.others.is_empty() && profile.others.is_empty());
            assert!(!warned(&response, "CPU_VENDOR_ASSUMED"), "the file tells it");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernels_with_the_fix_place_one_task_on_each_cpu() {
    let served = Served::start(&[]).await;
    for (transport, channel) in served.channels().await {
        for kernel in ["6.18.39", "6.12.97", "6.1.178", "6.19"] {
            let response = placement(&channel).predict(turin(kernel)).await.unwrap().into_inner();
            let prediction = response.prediction.clone().unwrap();
            assert_eq!(response.verdict(), Verdict::NoPileUp, "{transport} {kernel}");
            assert_eq!(per_package(&prediction), [(160, 160), (16, 16)]);
            assert_eq!(prediction.most_on_one_cpu_range, Some(CountRange { least: 1, most: 1 }));
            assert_eq!((prediction.cpu_use.unwrap().least, prediction.cpus_used), (1.0, 176));
            assert!(prediction.verdict_determined && prediction.idle_allowed.is_empty());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_origin_the_worst_is_told_and_the_full_view_tells_all() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut request = v1::PredictRequest { origin: None, ..turin("6.12.95") };
        request.set_view(v1::view::Value::Full);
        let response = placement(&channel).predict(request).await.unwrap().into_inner();
        let classes: Vec<&str> = response.origins.iter().map(|origin| origin.cpus.as_str()).collect();
        assert_eq!(classes, ["160-175", "0-159"], "worst first");
        assert_eq!(response.origins[0].most_on_one_cpu, response.prediction.unwrap().most_on_one_cpu);
        assert_eq!(response.verdict, i32::from(Verdict::PileUp));
    }
}

/// One kernel that would pile up is enough: which it is, nobody told.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_kernel_is_answered_for_every_released_one() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest { kernel: None, ..turin("") };
        let response = placement(&channel).predict(request).await.unwrap().into_inner();
        let profile = response.profile.clone().unwrap();
        assert_eq!((profile.name.as_str(), profile.confidence()), ("v6.19", Confidence::Unknown));
        assert_eq!(response.prediction.as_ref().unwrap().verdict(), Verdict::NoPileUp);
        assert_eq!(response.others.len(), profile.others.len());
        assert!(profile.others.iter().any(|name| name == "v6.18"), "{profile:?}");
        assert!(response.others.iter().any(|other| other.verdict() == Verdict::PileUp));
        assert_eq!(response.verdict(), Verdict::PileUp);
    }
}

/// Debian's `uname -r` does not tell the stable level.
#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_is_told_by_all_of_its_texts() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut kernel = release("6.1.0-57-cloud-amd64").unwrap();
        let ask = |kernel: v1::Kernel| v1::PredictRequest { kernel: Some(kernel), ..turin("") };
        let hidden = placement(&channel).predict(ask(kernel.clone())).await.unwrap().into_inner();
        assert_eq!(hidden.profile.unwrap().others.len(), 1, "with the fix and without it");
        kernel.version = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-11-26)".to_owned();
        let told = placement(&channel).predict(ask(kernel)).await.unwrap().into_inner().profile.unwrap();
        assert_eq!((told.release.as_str(), told.others.len()), ("6.1.192", 0));
        let profile = v1::Kernel { profile: "mel-v5".to_owned(), ..v1::Kernel::default() };
        let named = placement(&channel).predict(ask(profile)).await.unwrap().into_inner().profile.unwrap();
        assert_eq!((named.name.as_str(), named.confidence()), ("mel-v5", Confidence::Stated));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_question_gets_the_same_bytes() {
    let served = Served::start(&[]).await;
    let mut answers = Vec::new();
    for (_, channel) in served.channels().await {
        for _ in 0..2 {
            let request = v1::PredictRequest { kernel: None, ..turin("") };
            answers.push(placement(&channel).predict(request).await.unwrap().into_inner().encode_to_vec());
        }
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}

/// Case 32 of the collected reports: busy CPUs inside the mask, and a kernel that has the fix.
#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_kernel_still_piles_up_where_other_tasks_run() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let host = v1::Host {
            source: Some(Source::Synthetic("pack:2 group:2 [numa] l3:1 core:8 pu:1".to_owned())),
            load: vec![v1::CpuLoad { cpus: "1-2".to_owned(), runnable: Some(1), ..v1::CpuLoad::default() }],
            distances: vec![10, 12, 32, 32, 12, 10, 32, 32, 32, 32, 10, 12, 32, 32, 12, 10],
            cpu_vendor: "GenuineIntel".to_owned(),
            cpu_family: 6,
            ..v1::Host::default()
        };
        let request = v1::PredictRequest {
            tasks: 6,
            allowed: "1,2,6,15".to_owned(),
            origin: Some(15),
            host: Some(host.clone()),
            kernel: release("6.12.117"),
            ..v1::PredictRequest::default()
        };
        let response = placement(&channel).predict(request.clone()).await.unwrap().into_inner();
        let prediction = response.prediction.unwrap();
        assert_eq!(response.verdict, i32::from(Verdict::PileUp), "{:?}", prediction.cpus);
        let before: u32 = prediction.packages.iter().map(|package| package.before).sum();
        assert_eq!(before, 2);

        // The same without load is the same question about an idle host.
        let idle = |host| v1::PredictRequest { host: Some(host), ..request.clone() };
        let none = placement(&channel).predict(idle(v1::Host { load: Vec::new(), ..host.clone() })).await;
        let said = placement(&channel)
            .predict(idle(v1::Host { load: Vec::new(), idle: true, ..host.clone() }))
            .await;
        let (none, said) = (none.unwrap().into_inner(), said.unwrap().into_inner());
        assert_eq!(none, said);
        assert!(none.prediction.unwrap().packages.iter().all(|package| package.before == 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn offline_cpus_are_dropped_with_a_warning_and_isolated_ones_are_named() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut host = small_host().unwrap();
        host.offline = "2-3".to_owned();
        host.isolated = "7".to_owned();
        let request = v1::PredictRequest {
            tasks: 2,
            allowed: "0xf".to_owned(),
            host: Some(host),
            kernel: release("6.12.97"),
            ..v1::PredictRequest::default()
        };
        let response = placement(&channel).predict(request).await.unwrap().into_inner();
        assert_eq!(response.allowed, "0-1");
        let offline = response.warnings.iter().find(|warning| warning.reason == "CPUS_OFFLINE").unwrap();
        assert_eq!(offline.cpus, "2-3");
        let isolated = response.warnings.iter().find(|warning| warning.reason == "CPUS_ISOLATED").unwrap();
        assert_eq!(isolated.cpus, "7");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_is_a_task_stays_where_it_is() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest {
            tasks: 8,
            origin: Some(5),
            origin_is_task: true,
            host: small_host(),
            kernel: release("6.19"),
            ..v1::PredictRequest::default()
        };
        let prediction = placement(&channel).predict(request).await.unwrap().into_inner().prediction.unwrap();
        assert_eq!((prediction.tasks.len(), prediction.tasks[0].cpu), (8, 5));
        assert!(prediction.tasks[0].determined.unwrap().cpu);
    }
}

/// The order in which CPUs went idle decides among equally idle ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_tells_which_cpus_are_preferred() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let ask = |scenario: v1::Scenario| v1::PredictRequest {
            tasks: 1,
            allowed: "4-7".to_owned(),
            origin: Some(0),
            host: small_host(),
            kernel: release("6.19"),
            scenario: Some(scenario),
            ..v1::PredictRequest::default()
        };
        let recent = v1::Scenario { idle_order: vec![6, 5], ..v1::Scenario::default() };
        let answer = placement(&channel).predict(ask(recent)).await.unwrap().into_inner();
        assert_eq!(answer.prediction.unwrap().tasks[0].cpu, 6);
        let latency = |cpus: &str, nanos| v1::ExitLatency {
            cpus: cpus.to_owned(),
            latency: Some(prost_types::Duration { seconds: 0, nanos }),
        };
        let deep = v1::Scenario {
            exit_latencies: vec![latency("4-6", 200_000), latency("7", 1000)],
            ..v1::Scenario::default()
        };
        let answer = placement(&channel).predict(ask(deep)).await.unwrap().into_inner();
        assert_eq!(answer.prediction.unwrap().tasks[0].cpu, 7);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hybrid_host_gets_no_verdict() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest {
            tasks: 20,
            host: host_of(xml("intel-raptorlake-hybrid-p6e8.xml")),
            kernel: release("6.12.95"),
            ..v1::PredictRequest::default()
        };
        let response = placement(&channel).predict(request).await.unwrap().into_inner();
        assert_eq!(response.verdict(), Verdict::Unknown);
        assert!(warned(&response, "ASYMMETRIC_CAPACITY"));
    }
}

/// The largest question that is accepted.
#[tokio::test(flavor = "multi_thread")]
async fn as_many_tasks_as_are_accepted() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest { tasks: 65_536, allowed: String::new(), ..turin("6.12.95") };
        let response = placement(&channel).predict(request).await.unwrap().into_inner();
        assert_eq!(response.prediction.unwrap().tasks.len(), 65_536);
    }
}

/// What becomes of a pile-up later: it stands, is repaired, or is made worse.
#[tokio::test(flavor = "multi_thread")]
async fn load_balancing_is_told() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let crowd = placement(&channel).predict(turin("6.12.95")).await.unwrap().into_inner();
        let prediction = crowd.prediction.unwrap();
        let balancing = prediction.balancing.clone().unwrap();
        assert_eq!(balancing.effect(), v1::balancing::Effect::LetsStand, "{balancing:?}");
        let after = balancing.most_on_one_cpu.unwrap();
        assert!(after.most > prediction.best_possible && balancing.takes.is_none());
        assert!(prediction.cpu_use.unwrap().settled.unwrap() < 0.9);
        assert!(balancing.because.ends_with('.'), "{}", balancing.because);

        let fixed = placement(&channel).predict(turin("6.12.97")).await.unwrap().into_inner();
        let fixed = fixed.prediction.unwrap();
        assert_eq!(fixed.balancing.unwrap().effect(), v1::balancing::Effect::NothingToDo);
        assert_eq!(fixed.cpu_use.unwrap().settled, Some(1.0));
    }
}

/// One allowed CPU in each LLC: waking leads back to it. Which CPUs a task can wake on is told in full.
#[tokio::test(flavor = "multi_thread")]
async fn wake_ups_are_told() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest {
            tasks: 4,
            allowed: "0,4".to_owned(),
            origin: Some(0),
            host: small_host(),
            kernel: release("6.12.95"),
            ..v1::PredictRequest::default()
        };
        let brief = placement(&channel).predict(request.clone()).await.unwrap().into_inner();
        assert!(brief.prediction.unwrap().tasks.iter().all(|task| task.wakes_on.is_empty()));
        let full = v1::PredictRequest { view: v1::view::Value::Full.into(), ..request.clone() };
        let full = placement(&channel).predict(full).await.unwrap().into_inner();
        assert!(full.prediction.unwrap().tasks.iter().all(|task| task.wakes_on == "0,4"));
        let crowded = v1::PredictRequest { tasks: 5, ..request };
        let crowded = placement(&channel).predict(crowded).await.unwrap().into_inner();
        let alone = crowded.warnings.iter().find(|warning| warning.reason == "WAKES_ALONE");
        let piles_up = crowded.verdict == i32::from(Verdict::PileUp);
        assert_eq!(alone.map(|warning| warning.cpus.as_str()), piles_up.then_some("0,4"));
    }
}
