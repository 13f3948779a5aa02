//! This host: topology, load, prediction and what the server says of itself.

use crate::support::{Served, info, load, placement, topology};
use berth_proto::v1::{self, confidence::Value as Confidence};
use std::{fs, time::Duration};

#[tokio::test(flavor = "multi_thread")]
async fn topology_as_the_kernel_has_it() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let answer =
            topology(&channel).get_topology(v1::GetTopologyRequest::default()).await.unwrap().into_inner();
        let (here, snapshot) = (answer.topology.unwrap(), answer.snapshot.unwrap());
        assert_eq!(here.source(), v1::topology::Source::Live);
        assert_eq!(here.online, fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim());
        assert!(!here.packages.is_empty() && !here.nodes.is_empty() && !here.llcs.is_empty());
        assert!(here.cores.is_empty(), "cores are for the full view");
        assert_eq!(snapshot.topology_generation, 1);
        assert_eq!(snapshot.boot_id, fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prediction_and_load() {
    let served = Served::start(&["--sample-interval", "100ms"]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest { tasks: 2, ..Default::default() };
        let answer = placement(&channel).predict(request).await.unwrap().into_inner();
        assert_eq!(answer.prediction.unwrap().tasks.len(), 2);
        assert_eq!(answer.allowed, fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim());
        let known = async {
            loop {
                let answer =
                    load(&channel).get_load(v1::GetLoadRequest::default()).await.unwrap().into_inner();
                if answer.load.as_ref().unwrap().known {
                    return answer;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let answer = tokio::time::timeout(Duration::from_secs(5), known).await.unwrap();
        // Counted, or estimated and said so: in a PID namespace not all tasks can be seen.
        let estimated = answer.warnings.iter().any(|warning| warning.reason == "LOAD_ESTIMATED");
        let source = answer.load.as_ref().unwrap().runnable_source();
        let counted = [v1::cpu_load::Source::TaskStates, v1::cpu_load::Source::SchedDebug].contains(&source);
        assert!(counted || estimated, "{source:?}");
        assert!(answer.snapshot.unwrap().load_generation > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_as_it_says_of_itself() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let told = info(&channel).get_info(v1::GetInfoRequest {}).await.unwrap().into_inner();
        let kernel = told.kernel.unwrap();
        assert_eq!(kernel.release, fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim());
        assert_eq!(kernel.version, fs::read_to_string("/proc/sys/kernel/version").unwrap().trim());
        assert!(told.hwloc_version.starts_with("2."), "{}", told.hwloc_version);
        assert!(!told.profile.unwrap().evidence.is_empty());
        let limits = told.limits.unwrap();
        assert_eq!((limits.tasks, limits.cpus, limits.xml_bytes), (65_536, 65_536, 16 << 20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_word_counts_before_the_kernels() {
    let flags = ["--kernel", "6.12.95", "--cpu-vendor", "AuthenticAMD", "--cpu-family", "26"];
    let served = Served::start(&flags).await;
    for (_, channel) in served.channels().await {
        let told = info(&channel).get_info(v1::GetInfoRequest {}).await.unwrap().into_inner();
        let profile = told.profile.unwrap();
        assert_eq!((profile.release.as_str(), profile.confidence()), ("6.12.95", Confidence::Stated));
        let kernel = told.kernel.unwrap();
        assert_eq!((kernel.cpu_vendor.as_str(), kernel.cpu_family), ("AuthenticAMD", 26));
    }
}

/// What a request replaces of this host holds for that request alone.
#[tokio::test(flavor = "multi_thread")]
async fn what_if_about_this_host() {
    let served =
        Served::start(&["--topology-synthetic", "pack:1 [numa] l3:2 core:4 pu:1", "--kernel", "6.12.95"])
            .await;
    for (_, channel) in served.channels().await {
        let ask = |host: Option<v1::Host>, kernel: Option<v1::Kernel>| v1::PredictRequest {
            tasks: 4,
            host,
            kernel,
            ..Default::default()
        };
        let changed =
            v1::Host { isolated: "1".to_owned(), offline: "7".to_owned(), idle: true, ..Default::default() };
        let other = crate::support::release("6.19");
        let answer = placement(&channel).predict(ask(Some(changed), other)).await.unwrap().into_inner();
        assert_eq!((answer.allowed.as_str(), answer.profile.unwrap().name.as_str()), ("0,2-6", "v6.19"));
        let plain = placement(&channel).predict(ask(None, None)).await.unwrap().into_inner();
        assert_eq!((plain.allowed.as_str(), plain.profile.unwrap().name.as_str()), ("0-7", "v6.12"));
        assert!(plain.warnings.iter().any(|warning| warning.reason == "LOAD_UNKNOWN"));
    }
}
