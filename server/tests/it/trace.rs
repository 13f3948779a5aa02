//! The decision trace of `Predict`.

use crate::support::{Served, host_of, placement, release, xml};
use berth_proto::v1::{self, group_stats::Type, trace_step::Decision};
use tonic::Code;

fn turin() -> v1::PredictRequest {
    v1::PredictRequest {
        tasks: 176,
        allowed: "0-175".to_owned(),
        origin: Some(0),
        host: host_of(xml("seeds/turin-2s-l3-as-numa.xml")),
        kernel: release("6.12.95"),
        trace: true,
        ..v1::PredictRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decision_that_crowds_sixteen_cpus() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest { trace_tasks: "3,170-175".to_owned(), ..turin() };
        let prediction = placement(&channel).predict(request).await.unwrap().into_inner().prediction.unwrap();
        let traced: Vec<u32> = prediction.trace.iter().map(|task| task.task).collect();
        assert_eq!((traced, prediction.trace_cut), (vec![3, 170, 171, 172, 173, 174, 175], false));
        for task in &prediction.trace {
            assert_eq!(task.cpu, prediction.tasks[task.task as usize].cpu);
        }
        let top = &prediction.trace[6].steps[0];
        assert_eq!((top.domain.as_str(), top.imb_numa_nr, top.decision()), ("NUMA", Some(8), Decision::Go));
        assert_eq!(top.because, "17 + 1 > min(160, 8), so no difference is tolerated; idle 303 < 304: go");
        assert_eq!((top.local, top.idlest, top.groups.len()), (Some(0), Some(1), 2));
        let (local, other) = (&top.groups[0], &top.groups[1]);
        assert_eq!((local.allowed, local.weight, local.running, local.idle), (160, 320, 17, 303));
        assert_eq!((other.allowed, other.capacity, other.r#type()), (16, 320 * 1024, Type::HasSpare));
        assert!(top.chosen.is_some_and(|cpu| (160..176).contains(&cpu)));
    }
}

/// A trace that would not fit into a message is cut, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_trace_is_cut() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let request = v1::PredictRequest { tasks: 4000, ..turin() };
        let prediction = placement(&channel).predict(request).await.unwrap().into_inner().prediction.unwrap();
        assert!(prediction.trace_cut && !prediction.trace.is_empty());
        let wrong = [("0-9", false, "without `trace`"), ("x", true, "0-3,17"), ("176", true, "0 to 175")];
        for (trace_tasks, trace, said) in wrong {
            let request = v1::PredictRequest { trace_tasks: trace_tasks.to_owned(), trace, ..turin() };
            let status = placement(&channel).predict(request).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument);
            assert!(
                status.message().contains("trace_tasks") && status.message().contains(said),
                "{status:?}"
            );
        }
    }
}
