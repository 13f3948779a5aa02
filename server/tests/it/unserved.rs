//! What the contract has and this version does not serve is named, never ignored.

use crate::support::{Served, placement, small_host};
use berth_proto::v1;
use tonic::Code;
use tonic_types::StatusExt;

/// Sets one field of a request.
type Change<R> = fn(&mut R);

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_predict() {
    let served = Served::start(&[]).await;
    let set: [(&str, Change<v1::PredictRequest>); 3] = [
        ("groups", |r| r.groups.push(v1::TaskGroup::default())),
        ("launch FORK_EXEC", |r| r.set_launch(v1::launch::Value::ForkExec)),
        ("host.load[0].irq", |r| {
            r.host.as_mut().unwrap().load.push(v1::CpuLoad { irq: Some(0.1), ..Default::default() })
        }),
    ];
    for (transport, channel) in served.channels().await {
        for (field, change) in set {
            let mut request = v1::PredictRequest { tasks: 1, host: small_host(), ..Default::default() };
            placement(&channel).predict(request.clone()).await.unwrap();
            change(&mut request);
            let status = placement(&channel).predict(request).await.unwrap_err();
            assert_eq!(status.code(), Code::Unimplemented, "{transport} {field}");
            let info = status.get_error_details().error_info().unwrap().clone();
            assert_eq!(
                (info.reason.as_str(), info.metadata["fields"].as_str()),
                ("FIELDS_NOT_SERVED", field)
            );
            assert!(status.message().contains(field), "{}", status.message());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_advise() {
    let served = Served::start(&[]).await;
    let set: [(&str, Change<v1::AdviseRequest>); 10] = [
        ("near.pci", |r| {
            r.near = Some(v1::Near { place: Some(v1::near::Place::Pci("0000:41:00.0".to_owned())) })
        }),
        ("memory", |r| r.memory = Some(v1::Memory::default())),
        ("min_cpus", |r| r.min_cpus = 1),
        ("core_kinds", |r| r.core_kinds.push("IntelAtom".to_owned())),
        ("cpu_quota", |r| r.cpu_quota = 2.5),
        ("must_include", |r| r.must_include = "0".to_owned()),
        ("groups", |r| r.groups.push(v1::TaskGroup::default())),
        ("launch FORK_EXEC", |r| r.set_launch(v1::launch::Value::ForkExec)),
        ("scenario.preferred_node", |r| {
            r.scenario = Some(v1::Scenario { preferred_node: Some(0), ..Default::default() })
        }),
        ("scenario.children_sleep", |r| {
            r.scenario = Some(v1::Scenario { children_sleep: true, ..Default::default() })
        }),
    ];
    for (transport, channel) in served.channels().await {
        for (field, change) in set {
            let mut request =
                v1::AdviseRequest { tasks: 1, cpus_per_task: 1, host: small_host(), ..Default::default() };
            change(&mut request);
            let status = placement(&channel).advise(request).await.unwrap_err();
            assert_eq!(status.code(), Code::Unimplemented, "{transport} {field}");
            let info = status.get_error_details().error_info().unwrap().clone();
            assert_eq!(info.metadata["fields"].as_str(), field);
        }
    }
}
