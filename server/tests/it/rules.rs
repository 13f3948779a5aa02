//! Single rules of a kernel set otherwise, and circumstances of a host or launch that change its outcome.

use crate::support::{Served, host_of, info, placement, release, xml};
use berth_proto::v1::{self, host::Source, verdict::Value as Verdict};
use std::collections::BTreeMap;

fn turin(kernel: v1::Kernel) -> v1::PredictRequest {
    v1::PredictRequest {
        tasks: 176,
        allowed: "0-175".to_owned(),
        origin: Some(0),
        host: host_of(xml("seeds/turin-2s-l3-as-numa.xml")),
        kernel: Some(kernel),
        ..v1::PredictRequest::default()
    }
}

/// One kernel with every rule of another places as the other does, and says which rules were set.
#[tokio::test(flavor = "multi_thread")]
async fn every_rule_can_be_set() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let every = v1::ListProfilesRequest { all: true, kernel: None };
        let profiles = info(&channel).list_profiles(every).await.unwrap().into_inner().profiles;
        let rules_of = |name: &str| -> BTreeMap<String, String> {
            let profile = profiles.iter().find(|profile| profile.name == name).unwrap();
            profile.rules.iter().map(|rule| (rule.name.clone(), rule.value.clone())).collect()
        };
        let ask =
            async |kernel: v1::Kernel| placement(&channel).predict(turin(kernel)).await.unwrap().into_inner();
        for other in ["v5.3", "v5.12", "mel-v3", "mel-v6-prateek-v2", "v6.19"] {
            let named = v1::Kernel { profile: other.to_owned(), ..v1::Kernel::default() };
            let rules = rules_of(other);
            let set = v1::Kernel { rules: rules.clone(), ..release("6.12.95").unwrap() };
            let (by_name, by_rules) = (ask(named).await, ask(set).await);
            assert_eq!(by_name.verdict, by_rules.verdict, "{other}");
            let tasks = |answer: &v1::PredictResponse| answer.prediction.clone().unwrap().tasks;
            assert_eq!(tasks(&by_name), tasks(&by_rules), "{other}");
            let choice = by_rules.profile.unwrap();
            assert_eq!((choice.name.as_str(), &choice.overridden), ("v6.12", &rules), "{other}");
            assert!(by_name.profile.unwrap().overridden.is_empty());
        }
        let fixed = v1::Kernel {
            rules: [("stats".to_owned(), " allowed".to_owned())].into(),
            ..release("6.12.95").unwrap()
        };
        let answer = ask(fixed).await;
        assert_eq!(answer.verdict(), Verdict::NoPileUp);
        let evidence = answer.profile.unwrap().evidence;
        assert!(evidence.iter().any(|said| said == "The rule stats was set to allowed."), "{evidence:?}");
    }
}

/// Without a name the rules are set in the host's own kernel; those that come out the same are one.
#[tokio::test(flavor = "multi_thread")]
async fn rules_of_an_unknown_kernel() {
    let served = Served::start(&[]).await;
    let (_, channel) = &served.channels().await[0];
    let rules = [("stats".to_owned(), "allowed".to_owned())].into();
    let kernel = v1::Kernel { rules, ..v1::Kernel::default() };
    let answer = placement(channel).predict(turin(kernel)).await.unwrap().into_inner();
    let choice = answer.profile.unwrap();
    let mut names = choice.others.clone();
    names.insert(0, choice.name);
    assert!(names.contains(&"v6.19".to_owned()) && !names.contains(&"v6.18".to_owned()), "{names:?}");
}

/// Threads that prefer their node stay on it while it has idle CPUs, whatever the level tolerates.
#[tokio::test(flavor = "multi_thread")]
async fn threads_stay_on_the_node_that_they_prefer() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let per_node = async |preferred_node: Option<u32>| {
            let text = "pack:2 [numa] l3:1 core:8 pu:1".to_owned();
            let request = v1::PredictRequest {
                tasks: 8,
                origin: Some(0),
                origin_is_task: true,
                host: Some(v1::Host { source: Some(Source::Synthetic(text)), ..v1::Host::default() }),
                kernel: release("6.19"),
                scenario: Some(v1::Scenario { preferred_node, ..v1::Scenario::default() }),
                ..v1::PredictRequest::default()
            };
            let answer = placement(&channel).predict(request).await.unwrap().into_inner();
            answer.prediction.unwrap().nodes.iter().map(|node| node.tasks).collect::<Vec<_>>()
        };
        assert_eq!(per_node(None).await, [4, 4]);
        assert_eq!(per_node(Some(0)).await, [8, 0]);
        assert_eq!(per_node(Some(1)).await, [1, 7]);
    }
}

/// A partition has domains of its own: what forks outside it is not spread into it.
#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_kept_apart() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let text = "pack:2 [numa] l3:1 core:4 pu:1".to_owned();
        let host = v1::Host {
            source: Some(Source::Synthetic(text)),
            partitions: vec!["2-5".to_owned()],
            ..v1::Host::default()
        };
        let cpus_from = async |origin: u32| {
            let request = v1::PredictRequest {
                tasks: 4,
                allowed: "0-7".to_owned(),
                origin: Some(origin),
                host: Some(host.clone()),
                kernel: release("6.19"),
                ..v1::PredictRequest::default()
            };
            let answer = placement(&channel).predict(request).await.unwrap().into_inner();
            let mut cpus: Vec<u32> = answer.prediction.unwrap().tasks.iter().map(|task| task.cpu).collect();
            cpus.sort_unstable();
            cpus.dedup();
            cpus
        };
        assert!(cpus_from(0).await.iter().all(|cpu| ![2, 3, 4, 5].contains(cpu)));
        assert!(cpus_from(2).await.iter().all(|cpu| [2, 3, 4, 5].contains(cpu)));
        let request = v1::GetTopologyRequest { host: Some(host), ..v1::GetTopologyRequest::default() };
        let answer = crate::support::topology(&channel).get_topology(request).await.unwrap().into_inner();
        assert_eq!(answer.topology.unwrap().partitions[0].cpus, "2-5");
    }
}
