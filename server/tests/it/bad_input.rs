//! Requests that cannot be answered: each gets its status code and details, and the server keeps serving.

use crate::support::{Served, host_of, info, load, placement, release, small_host, topology, xml};
use berth_proto::v1::{self, host::Source};
use std::collections::BTreeMap;
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

fn small(request: v1::PredictRequest) -> v1::PredictRequest {
    v1::PredictRequest { host: small_host(), kernel: release("6.12.95"), ..request }
}

fn mask(tasks: u32, allowed: &str) -> v1::PredictRequest {
    small(v1::PredictRequest { tasks, allowed: allowed.to_owned(), ..v1::PredictRequest::default() })
}

fn about(host: v1::Host) -> v1::PredictRequest {
    v1::PredictRequest { tasks: 1, host: Some(host), ..v1::PredictRequest::default() }
}

fn synthetic(text: &str) -> v1::Host {
    v1::Host { source: Some(Source::Synthetic(text.to_owned())), ..v1::Host::default() }
}

fn xml_host(text: impl Into<String>) -> v1::PredictRequest {
    about(host_of(text.into()).unwrap())
}

fn kernel(kernel: v1::Kernel) -> v1::PredictRequest {
    v1::PredictRequest {
        kernel: Some(kernel),
        ..small(v1::PredictRequest { tasks: 1, ..v1::PredictRequest::default() })
    }
}

/// What each violation says, by its field.
fn violations(status: &Status) -> BTreeMap<String, String> {
    let details = status.get_error_details();
    let info = details.error_info().expect("every error tells its reason");
    assert_eq!(info.domain, "berth");
    let bad_request = details.bad_request().map(|bad| bad.field_violations.clone()).unwrap_or_default();
    bad_request.into_iter().map(|violation| (violation.field, violation.description)).collect()
}

async fn refused(channel: &Channel, request: v1::PredictRequest) -> Status {
    placement(channel).predict(request).await.expect_err("it is to be refused")
}

async fn still_serves(channel: &Channel) {
    info(channel).get_info(v1::GetInfoRequest {}).await.unwrap();
}

/// One bad field, and words that its violation has to have.
fn cases() -> Vec<(&'static str, v1::PredictRequest, &'static str, &'static [&'static str])> {
    let open =
        |text: &str| xml("intel-1s-cxl-memory-dax.xml").replacen("<topology version=\"2.0\">", text, 1);
    let cut = xml("seeds/xeon-2s-80cpu.xml")[..9000].to_owned();
    // Two objects with one number: hwloc's own check ends its process.
    let contradicts =
        xml("intel-haswell-2s-offline-cpu0-node0.xml").replacen("gp_index=\"2\"", "gp_index=\"1\"", 1);
    let cpus =
        xml("seeds/xeon-2s-80cpu.xml").replacen("complete_cpuset=\"0x", "complete_cpuset=\"0xf...f,0x", 1);
    let huge = format!("{}{}", open("<topology version=\"2.0\">"), " ".repeat(16 << 20));
    let load = |cpus: &str, runnable, utilisation| v1::CpuLoad {
        cpus: cpus.to_owned(),
        runnable,
        utilisation,
        ..v1::CpuLoad::default()
    };
    let loaded = |load: Vec<v1::CpuLoad>| v1::PredictRequest {
        tasks: 1,
        host: Some(v1::Host { load, ..small_host().unwrap() }),
        ..v1::PredictRequest::default()
    };
    let changed = |change: fn(&mut v1::Host)| {
        let mut host = small_host().unwrap();
        change(&mut host);
        about(host)
    };
    let named = |text: &str| v1::Kernel { release: text.to_owned(), ..v1::Kernel::default() };
    let rule = |name: &str, value: &str| v1::Kernel {
        rules: [(name.to_owned(), value.to_owned())].into(),
        ..named("6.12.95")
    };
    vec![
        ("no tasks", mask(0, "0-3"), "tasks", &["no tasks", "1 to 65536"]),
        ("a million tasks", mask(1_000_000, "0-3"), "tasks", &["1000000", "65536"]),
        ("CPUs that do not exist", mask(1, "0,4000"), "allowed", &["4000", "0-7"]),
        ("a mask of 100,000 CPUs", mask(1, "0-99999"), "allowed", &["0-99999", "65535"]),
        ("an empty hex mask", mask(1, "0x0"), "allowed", &["0x0", "names no CPU"]),
        ("an empty list", mask(1, ","), "allowed", &["`,`", "names no CPU"]),
        ("a mask that is none", mask(1, "zero"), "allowed", &["zero", "0-15"]),
        ("a backward range", mask(1, "7-3"), "allowed", &["7-3"]),
        ("a mistyped kernel", kernel(named("six.twelve")), "kernel.release", &["six.twelve", "6.12.95"]),
        ("a kernel before the model", kernel(named("4.19.0")), "kernel.release", &["4.19", "5.3"]),
        (
            "a profile that is none",
            kernel(v1::Kernel { profile: "v9".to_owned(), ..v1::Kernel::default() }),
            "kernel.profile",
            &["v9", "v6.12"],
        ),
        (
            "a version alone",
            kernel(v1::Kernel { version: "#1 SMP".to_owned(), ..v1::Kernel::default() }),
            "kernel.release",
            &["uname -r"],
        ),
        (
            "partitions that overlap",
            changed(|host| host.partitions = vec!["0-3".to_owned(), "3-7".to_owned()]),
            "host.partitions[1]",
            &["CPUs 3", "each in one"],
        ),
        (
            "a partition of CPUs that are not there",
            changed(|host| host.partitions = vec!["4-9".to_owned()]),
            "host.partitions[0]",
            &["8-9", "0-7"],
        ),
        ("a rule that is none", kernel(rule("statz", "all")), "kernel.rules[statz]", &["statz", "numa_fork"]),
        (
            "a value that a rule does not take",
            kernel(rule("stats", "some")),
            "kernel.rules[stats]",
            &["`some`", "allowed-whole"],
        ),
        (
            "a percentage too large",
            kernel(rule("imbalance_pct", "900")),
            "kernel.rules[imbalance_pct]",
            &["200"],
        ),
        (
            "a node that is none",
            v1::PredictRequest {
                tasks: 1,
                host: small_host(),
                scenario: Some(v1::Scenario { preferred_node: Some(7), ..v1::Scenario::default() }),
                ..v1::PredictRequest::default()
            },
            "scenario.preferred_node",
            &["node 7", "expected one of 0"],
        ),
        ("no XML", xml_host("hello"), "host.xml", &["<topology>"]),
        ("an empty XML", xml_host(""), "host.xml", &["<topology>"]),
        ("XML that is cut off", xml_host(cut), "host.xml", &["hwloc cannot read it", "lstopo"]),
        ("XML that contradicts itself", xml_host(contradicts), "host.xml", &["hwloc"]),
        ("XML with a CPU set without end", xml_host(cpus), "host.xml", &["65536"]),
        (
            "XML of format 3",
            xml_host(xml("xml-v3-format-nvidia-dgx2.xml")),
            "host.xml",
            &["3.0", "--export-xml-flags v2"],
        ),
        (
            "XML with declarations",
            xml_host("<!DOCTYPE topology [<!ENTITY a \"b\">]><topology version=\"2.0\"/>"),
            "host.xml",
            &["declarations"],
        ),
        ("XML with a NUL", xml_host("<topology version=\"2.0\">\0"), "host.xml", &["NUL"]),
        ("huge XML", xml_host(huge), "host.xml", &["16777216"]),
        (
            "a synthetic host that is none",
            about(synthetic("pack:2 nonsense:4")),
            "host.synthetic",
            &["pack:2 [numa]"],
        ),
        ("a synthetic host without counts", about(synthetic("pack")), "host.synthetic", &["pack", "core:8"]),
        (
            "a synthetic host of too many CPUs",
            about(synthetic("pack:1000 core:1000")),
            "host.synthetic",
            &["65536"],
        ),
        ("a load on no CPU", loaded(vec![load("", Some(1), None)]), "host.load[0].cpus", &["no CPU"]),
        (
            "a load on a CPU that does not exist",
            loaded(vec![load("9", Some(1), None)]),
            "host.load[0].cpus",
            &["9", "0-7"],
        ),
        (
            "a load told twice",
            loaded(vec![load("0-3", Some(1), None), load("3", Some(2), None)]),
            "host.load[1].cpus",
            &["3"],
        ),
        (
            "a share above 1",
            loaded(vec![load("0", None, Some(1.5))]),
            "host.load[0].utilisation",
            &["1.5", "0 to 1"],
        ),
        (
            "a share that is no number",
            loaded(vec![load("0", None, Some(f64::NAN))]),
            "host.load[0].utilisation",
            &["NaN"],
        ),
        ("too much load", loaded(vec![load("0", Some(1 << 20), None)]), "host.load[0].runnable", &["65536"]),
        ("no CPU left online", changed(|host| host.offline = "0-7".to_owned()), "host.offline", &["0-7"]),
        (
            "isolated CPUs that do not exist",
            changed(|host| host.isolated = "8".to_owned()),
            "host.isolated",
            &["8", "0-7"],
        ),
        (
            "too few distances",
            changed(|host| host.distances = vec![10, 20]),
            "host.distances",
            &["2", "expected 1"],
        ),
        (
            "a distance that is none",
            changed(|host| host.distances = vec![9]),
            "host.distances[0]",
            &["9", "10 to 255"],
        ),
        (
            "a vendor that is too long",
            changed(|host| host.cpu_vendor = "x".repeat(65)),
            "host.cpu_vendor",
            &["64"],
        ),
        (
            "a parent nowhere",
            small(v1::PredictRequest { tasks: 1, origin: Some(70_000), ..Default::default() }),
            "origin",
            &["70000", "65536"],
        ),
        (
            "a parent that is not here",
            small(v1::PredictRequest { tasks: 1, origin: Some(8), ..Default::default() }),
            "origin",
            &["8", "0-7"],
        ),
        (
            "a value of no enumeration",
            small(v1::PredictRequest { tasks: 1, launch: 9, ..Default::default() }),
            "launch",
            &["9"],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_bad_field_is_named_with_what_would_be_accepted() {
    let served = Served::start(&[]).await;
    for (transport, channel) in served.channels().await {
        for (case, request, field, words) in cases() {
            let status = refused(&channel, request).await;
            assert_eq!(status.code(), Code::InvalidArgument, "{transport} {case}: {status:?}");
            let violations = violations(&status);
            assert_eq!(
                violations.keys().collect::<Vec<_>>(),
                [field],
                "{transport} {case}: {}",
                status.message()
            );
            for word in words {
                assert!(
                    violations[field].contains(word),
                    "{transport} {case}: {word} in {}",
                    violations[field]
                );
            }
            still_serves(&channel).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_faults_of_a_request_are_told_at_once() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest {
            tasks: 0,
            allowed: "0-3,x".to_owned(),
            origin: Some(99),
            host: Some(v1::Host {
                load: vec![v1::CpuLoad {
                    cpus: "99".to_owned(),
                    utilisation: Some(-1.0),
                    ..Default::default()
                }],
                idle: true,
                isolated: "1-".to_owned(),
                ..small_host().unwrap()
            }),
            kernel: release("x"),
            ..v1::PredictRequest::default()
        };
        let status = refused(&channel, request).await;
        assert_eq!(status.code(), Code::InvalidArgument);
        let fields: Vec<String> = violations(&status).into_keys().collect();
        let expected = [
            "allowed",
            "host.idle",
            "host.isolated",
            "host.load[0].cpus",
            "host.load[0].utilisation",
            "kernel.release",
            "origin",
            "tasks",
        ];
        assert_eq!(fields, expected);
        assert!(expected.iter().all(|field| status.message().contains(field)), "{}", status.message());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_description_is_told_with_the_other_faults() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest { tasks: 0, ..xml_host("broken") };
        let fields: Vec<String> = violations(&refused(&channel, request).await).into_keys().collect();
        assert_eq!(fields, ["host.xml", "tasks"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cpus_that_are_all_offline_are_a_precondition() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let mut host = small_host().unwrap();
        host.offline = "2-3".to_owned();
        let masked = v1::PredictRequest { allowed: "2-3".to_owned(), ..about(host.clone()) };
        let parent = v1::PredictRequest { origin: Some(2), ..about(host) };
        for (request, field, cpus) in [(masked, "allowed", "2-3"), (parent, "origin", "2")] {
            let status = refused(&channel, request).await;
            assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
            let details = status.get_error_details();
            assert_eq!(details.error_info().unwrap().reason, "CPUS_OFFLINE");
            let violation = &details.precondition_failure().unwrap().violations[0];
            assert_eq!(
                (violation.r#type.as_str(), violation.subject.as_str()),
                ("CPUS_ONLINE", format!("{field}={cpus}").as_str())
            );
            assert!(details.bad_request().is_none());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_beyond_the_limit_is_refused_in_our_words() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let status = refused(&channel, xml_host(" ".repeat(18 << 20))).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(violations(&status)[""].contains("17825792"), "{status:?}");
        still_serves(&channel).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_services_refuse_likewise() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let status = load(&channel)
            .get_load(v1::GetLoadRequest { cpus: "65000".to_owned(), view: 0 })
            .await
            .unwrap_err();
        assert_eq!(
            (status.code(), violations(&status).into_keys().collect::<Vec<_>>()),
            (Code::InvalidArgument, vec!["cpus".to_owned()])
        );
        let request = v1::GetTopologyRequest { host: host_of("x".to_owned()), view: 7 };
        let status = topology(&channel).get_topology(request).await.unwrap_err();
        assert_eq!(violations(&status).into_keys().collect::<Vec<_>>(), ["host.xml", "view"]);
        let request = v1::ListProfilesRequest { all: false, kernel: release("?") };
        let status = info(&channel).list_profiles(request).await.unwrap_err();
        assert_eq!(violations(&status).into_keys().collect::<Vec<_>>(), ["kernel.release"]);
    }
}

/// A generation that the caller has not seen, and a load that cannot be had.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_demanded_of_the_snapshot_is_held_against_it() {
    let served = Served::start(&["--topology-synthetic", "pack:1 [numa] l3:2 core:4 pu:1"]).await;
    for (_, channel) in served.channels().await {
        let ask =
            |expect: v1::Expect| v1::PredictRequest { tasks: 1, expect: Some(expect), ..Default::default() };
        let seen = v1::Expect { topology_generation: 1, ..v1::Expect::default() };
        placement(&channel).predict(ask(seen)).await.unwrap();
        let negative = Some(prost_types::Duration { seconds: -1, nanos: 0 });
        let negative = v1::Expect { max_load_age: negative, ..v1::Expect::default() };
        let status = refused(&channel, ask(negative)).await;
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains("expect.max_load_age"), "{}", status.message());
        let other = v1::Expect { topology_generation: 7, ..v1::Expect::default() };
        let status = refused(&channel, ask(other)).await;
        assert_eq!(status.code(), Code::Aborted);
        let info = status.get_error_details().error_info().unwrap().clone();
        assert_eq!((info.metadata["expected"].as_str(), info.metadata["now"].as_str()), ("7", "1"));
        let fresh = v1::Expect {
            max_load_age: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
            ..v1::Expect::default()
        };
        let status = refused(&channel, ask(fresh)).await;
        assert_eq!(status.code(), Code::Unavailable);
        assert!(status.get_error_details().retry_info().is_some());
    }
}

/// Long lists of bad entries are not looked at to their end, and the error still fits into a client's headers.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_faults_is_cut() {
    let served = Served::start(&[]).await;
    let load = v1::CpuLoad { cpus: "0-65535".to_owned(), ..v1::CpuLoad::default() };
    let floods = [
        about(v1::Host { load: vec![load; 100_000], ..small_host().unwrap() }),
        about(v1::Host { load: vec![v1::CpuLoad::default(); 100_000], ..small_host().unwrap() }),
        about(v1::Host { distances: vec![0; 1_000_000], ..small_host().unwrap() }),
        small(v1::PredictRequest {
            tasks: 1,
            scenario: Some(v1::Scenario { idle_order: vec![0; 1_000_000], ..v1::Scenario::default() }),
            ..v1::PredictRequest::default()
        }),
    ];
    for (_, channel) in served.channels().await {
        for flood in floods.clone() {
            let status = refused(&channel, flood).await;
            assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
            let told = violations(&status).len();
            assert!((1..=24).contains(&told), "{told} fields");
            assert!(status.message().len() + status.details().len() < 8192, "{}", status.details().len());
            still_serves(&channel).await;
        }
    }
}
