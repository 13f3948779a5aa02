//! `Explain`.

use crate::support::{Served, host_of, placement, release, small_host, xml};
use berth_proto::v1::{self, host::Source};
use tonic::Code;

fn turin() -> v1::ExplainRequest {
    let host = host_of(xml("seeds/turin-2s-l3-as-numa.xml"));
    let host = host.map(|host| v1::Host { cpu_vendor: "AuthenticAMD".to_owned(), cpu_family: 26, ..host });
    v1::ExplainRequest { host, kernel: release("6.12.95"), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_levels_of_a_host_that_is_not_here() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::ExplainRequest { cpus: "160".to_owned(), allowed: "0-175".to_owned(), ..turin() };
        let response = placement(&channel).explain(request).await.unwrap().into_inner();
        assert_eq!(response.cpus.len(), 1);
        let cpu = &response.cpus[0];
        assert_eq!((cpu.cpu, cpu.partition.as_str()), (160, "0-639"));
        let levels: Vec<(&str, u32, bool)> =
            cpu.domains.iter().map(|domain| (domain.name.as_str(), domain.weight, domain.vanished)).collect();
        assert_eq!(
            levels,
            [
                ("SMT", 2, false),
                ("MC", 32, false),
                ("NODE", 32, true),
                ("NUMA", 320, false),
                ("NUMA", 640, false)
            ]
        );
        for domain in &cpu.domains {
            assert_eq!(domain.vanished, !domain.because.is_empty());
            assert_eq!(domain.vanished, domain.thresholds.is_empty());
            assert!(domain.flags.iter().any(|flag| flag == "BALANCE_FORK"));
            assert_eq!(domain.imb_numa_nr.is_some(), domain.name == "NUMA");
        }
        let top = cpu.domains.last().unwrap();
        assert_eq!((top.distance, top.imb_numa_nr), (32, Some(8)));
        let groups: Vec<(u32, u32, &str)> = top
            .groups
            .iter()
            .map(|group| (group.weight, group.allowed, group.balance_cpus.as_str()))
            .collect();
        // The CPU's own package first, of which the mask allows sixteen CPUs.
        assert_eq!(groups, [(320, 16, ""), (320, 160, "")]);
        let threshold = |name: &str| top.thresholds.iter().find(|t| t.name == name).unwrap().value;
        assert_eq!((threshold("spare_below"), threshold("fork_tolerates_below")), (320, 8));

        let profile = response.profile.unwrap();
        assert_eq!(profile.name, "v6.12");
        assert!(!profile.evidence.is_empty());
        let fork = response.rules.iter().find(|rule| rule.name == "numa_fork").unwrap();
        assert_eq!((fork.since.as_str(), fork.commit.as_str()), ("v6.0", "f5b2eeb49991"));
        assert_eq!(response.settings, None, "this machine's settings are not that host's");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn this_host_with_its_settings() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let response = placement(&channel).explain(v1::ExplainRequest::default()).await.unwrap().into_inner();
        assert_eq!(response.cpus.len(), 1, "the first online CPU");
        assert!(response.snapshot.unwrap().topology_generation > 0);
        assert!(response.settings.is_some());
        assert!(response.rules.iter().all(|rule| !rule.value.is_empty() && rule.meaning.ends_with('.')));
    }
}

/// Before v5.18 there is no imb_numa_nr, and the levels have other thresholds.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_kernel_has_other_numbers() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::ExplainRequest { kernel: release("5.13"), ..turin() };
        let response = placement(&channel).explain(request).await.unwrap().into_inner();
        let top = response.cpus[0].domains.last().unwrap();
        assert_eq!(top.imb_numa_nr, None);
        let below = top.thresholds.iter().find(|t| t.name == "fork_stays_below").unwrap();
        assert_eq!(below.value, 160, "a quarter of 640 CPUs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_and_offline_cpus() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut host = small_host().unwrap();
        host.isolated = "7".to_owned();
        host.offline = "1".to_owned();
        let request = v1::ExplainRequest {
            cpus: "1,6-7".to_owned(),
            host: Some(host),
            kernel: release("6.19"),
            ..Default::default()
        };
        let response = placement(&channel).explain(request.clone()).await.unwrap().into_inner();
        let shown: Vec<(u32, &str, usize)> =
            response.cpus.iter().map(|cpu| (cpu.cpu, cpu.partition.as_str(), cpu.domains.len())).collect();
        assert_eq!(shown, [(6, "0,2-6", 3), (7, "", 0)]);
        assert!(response.warnings.iter().any(|warning| warning.reason == "CPUS_OFFLINE"));

        let absent = v1::ExplainRequest { cpus: "6,900".to_owned(), ..request };
        let status = placement(&channel).explain(absent).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains("900"), "{}", status.message());
    }
}

/// Every CPU of a large host, each with a group for each CPU: cut, and said so.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_is_cut() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let text = "pack:1 [numa] l3:1 core:1024 pu:1".to_owned();
        let host = v1::Host { source: Some(Source::Synthetic(text)), ..Default::default() };
        let request = v1::ExplainRequest {
            cpus: "0-1023".to_owned(),
            host: Some(host),
            kernel: release("6.19"),
            ..Default::default()
        };
        let response = placement(&channel).explain(request).await.unwrap().into_inner();
        assert!((1..1024).contains(&response.cpus.len()), "{}", response.cpus.len());
        assert!(response.warnings.iter().any(|warning| warning.reason == "CPUS_LEFT_OUT"));
    }
}
