//! The decision traces of `Predict` and `Advise`, and what a caller may take for given.

use crate::support::{Served, host_of, placement, release, xml};
use berth_proto::v1::{self, group_stats::Type, trace_step::Decision};
use std::time::Duration;
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
            let at = Duration::try_from(task.at.unwrap()).unwrap();
            assert_eq!(at, Duration::from_micros(100) * task.task, "the default gap");
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

fn advise(scenario: v1::Scenario, trace: bool) -> v1::AdviseRequest {
    let v1::PredictRequest { tasks, allowed, origin, host, kernel, .. } = turin();
    v1::AdviseRequest {
        tasks,
        allowed,
        origin,
        host,
        kernel,
        scenario: Some(scenario),
        trace,
        ..Default::default()
    }
}

/// The run that refutes the whole mask is told task by task, and so is the launch without the advice.
#[tokio::test(flavor = "multi_thread")]
async fn an_advice_shows_what_refutes_the_mask() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let gap = Some(prost_types::Duration { seconds: 0, nanos: 20_000 });
        let request = advise(v1::Scenario { gap, ..Default::default() }, true);
        let mut full = request.clone();
        full.set_view(v1::view::Value::Full);
        for request in [request, full] {
            let answer = placement(&channel).advise(request).await.unwrap().into_inner();
            let asked = answer.asked.unwrap();
            assert_eq!(asked.result(), v1::proof::Result::Unsafe);
            let run = asked.failing_run.unwrap();
            assert!(!run.trace_cut && run.trace.len() == 176, "{}", run.trace.len());
            let last = run.trace.last().unwrap();
            assert_eq!(Duration::try_from(last.at.unwrap()).unwrap(), Duration::from_micros(20 * 175));
            let mut on = std::collections::HashMap::<u32, u32>::new();
            run.trace.iter().for_each(|task| *on.entry(task.cpu).or_default() += 1);
            assert_eq!(on.values().max(), Some(&run.most_on_one_cpu));
            assert!(answer.without.unwrap().trace.len() > 100);
        }
        let one = v1::AdviseRequest { only_task: Some(17), ..advise(v1::Scenario::default(), true) };
        let answer = placement(&channel).advise(one).await.unwrap().into_inner();
        let traced: Vec<u32> = answer.without.unwrap().trace.iter().map(|task| task.task).collect();
        assert_eq!(traced, [17]);
        let plain = placement(&channel).advise(advise(v1::Scenario::default(), false)).await.unwrap();
        let plain = plain.into_inner();
        assert!(plain.asked.unwrap().failing_run.unwrap().trace.is_empty());
        assert!(plain.without.unwrap().trace.is_empty());
    }
}

/// A mark that somebody knows of bears on predictions and proofs alike, and has to be a group's.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_is_marked() {
    let served = Served::start(&[]).await;
    let marked = |cpus: &str, mark: v1::scenario::Mark| v1::Scenario {
        marked: vec![cpus.to_owned()],
        mark: mark.into(),
        ..Default::default()
    };
    use v1::scenario::Mark;
    for (_, channel) in served.channels().await {
        // Package 1 keeps its sixteen CPUs free of tasks: all crowd on package 0.
        let far = "160-319,480-639";
        let request =
            v1::PredictRequest { scenario: Some(marked(far, Mark::Clear)), trace: false, ..turin() };
        let told = placement(&channel).predict(request).await.unwrap().into_inner().prediction.unwrap();
        let packages: Vec<u32> = told.packages.iter().map(|package| package.tasks).collect();
        assert_eq!(packages, [176, 0]);
        let fixed = |scenario| v1::AdviseRequest { kernel: release("6.12.97"), ..advise(scenario, false) };
        let result = |answer: v1::AdviseResponse| answer.asked.unwrap().result();
        let free = placement(&channel).advise(fixed(v1::Scenario::default())).await.unwrap().into_inner();
        assert_eq!(result(free), v1::proof::Result::Safe);
        for mark in [Mark::Both, Mark::Clear] {
            let answer = placement(&channel).advise(fixed(marked(far, mark))).await.unwrap().into_inner();
            assert_eq!(result(answer), v1::proof::Result::Unsafe, "{mark:?}");
        }
        for (wrong, said) in [("0-5", "no group"), ("", "no CPU is named"), ("x", "marked[0]")] {
            let scenario = marked(wrong, Mark::Both);
            let request = v1::PredictRequest { scenario: Some(scenario.clone()), ..turin() };
            let of_predict = placement(&channel).predict(request).await.unwrap_err();
            let of_advise = placement(&channel).advise(advise(scenario, false)).await.unwrap_err();
            for status in [of_predict, of_advise] {
                assert_eq!(status.code(), Code::InvalidArgument);
                let message = status.message();
                assert!(message.contains("scenario.marked[0]") && message.contains(said), "{message}");
            }
        }
        let many = v1::Scenario { marked: vec!["0-15,320-335".to_owned(); 33], ..Default::default() };
        let status = placement(&channel).advise(advise(many, false)).await.unwrap_err();
        assert!(status.message().contains("at most 32"), "{status:?}");
    }
}
