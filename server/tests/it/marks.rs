//! Marks that load balancing may have left on groups of CPUs when pinned tasks waited.

use crate::{
    holds_on_host::Root,
    support::{load, placement, spin},
};
use berth_proto::v1::{self, proof, verdict};
use std::time::Duration;
use tonic::transport::Channel;

/// What is said of a job that fills half of the host: the verdict, whether its mask is proven, whether marks may be left.
async fn told(channel: &Channel) -> (verdict::Value, proof::Result, bool) {
    let ask = v1::PredictRequest { tasks: 8, allowed: "0-15".to_owned(), ..Default::default() };
    let predicted = placement(channel).predict(ask).await.unwrap().into_inner();
    let ask = v1::AdviseRequest { tasks: 8, allowed: "0-15".to_owned(), ..Default::default() };
    let advised = placement(channel).advise(ask).await.unwrap().into_inner();
    let warns = |warnings: &[v1::Warning]| warnings.iter().any(|warning| warning.reason == "MARKS_LEFT");
    (predicted.verdict(), advised.asked.unwrap().result(), warns(&predicted.warnings))
}

/// Real tasks that never sleep, bound to one CPU, seen by a daemon that sees no others: on this machine some run elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_pinned_tasks_leaves_marks_for_a_while() {
    let cpu = spin::allowed().iter().next().unwrap();
    if cpu.index() > 15 {
        println!("skipped: CPUs 0-15 may not be used");
        return;
    }
    let root = Root::new();
    let served = root.served_by("threads").await;
    let [(_, channel), _] = served.channels().await;
    let until = async |wanted: bool| {
        let wait = async {
            loop {
                let now = told(&channel).await;
                if now.2 == wanted {
                    return now;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(40), wait).await.expect("the crowd is seen, or forgotten")
    };
    let get =
        async || load(&channel).get_load(v1::GetLoadRequest::default()).await.unwrap().into_inner().load;
    // Before that nothing is called safe.
    while !get().await.is_some_and(|load| load.known) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let safe = (verdict::Value::NoPileUp, proof::Result::Safe, false);
    assert_eq!(told(&channel).await, safe);

    let crowd: Vec<_> = (0..2).map(|_| spin::Process::start(cpu)).collect();
    crowd.iter().for_each(|process| root.show(process.pid()));
    until(true).await;
    drop(crowd);
    // Nothing runs any more, and a group may be marked all the same.
    let idle = async || get().await.unwrap().cpus.iter().all(|entry| entry.runnable() == 0);
    while !idle().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(told(&channel).await, (verdict::Value::PileUp, proof::Result::Unsafe, true));
    assert_eq!(until(false).await, safe);
}
