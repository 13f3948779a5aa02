//! What operators are told of holds: a line for each change, and metrics.

use crate::{
    admin::{ADMIN, http, value},
    holds::{HOST, advise, create, lease, process, seconds},
    program::{berthd, ready, signal},
    support::{holds, over_tcp_at, over_unix},
};
use berth_proto::v1;
use serde_json::Value;
use std::{path::Path, process::Command, time::Duration};
use tonic::{Code, Request};

#[tokio::test(flavor = "multi_thread")]
async fn every_hold_leaves_its_lines_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = berthd(folder.path());
    // Whatever else is logged.
    command.args(HOST).args(ADMIN).args(["--log-format", "json", "--log", "error"]);
    let mut program = command.spawn().unwrap();
    let told = ready(folder.path(), &mut program);
    let admin = told["admin"].as_str().unwrap().parse().unwrap();
    let channel = over_unix(Path::new(told["uds"].as_str().unwrap())).await;
    let tcp = over_tcp_at(told["tcp"].as_str().unwrap().parse().unwrap()).await;

    // One by a request with a name, which is released.
    let spec = v1::HoldSpec { name: "build".to_owned(), ..lease(3600) };
    let request = v1::CreateHoldRequest { hold: Some(spec), cpus: "0-3".to_owned(), ..Default::default() };
    let mut request = Request::new(request);
    request.metadata_mut().insert("x-request-id", "of-the-build".parse().unwrap());
    let made = holds(&channel).create_hold(request).await.unwrap().into_inner().hold.unwrap();
    let renew = v1::RenewHoldRequest { id: made.id.clone(), ttl: seconds(7200), ..Default::default() };
    holds(&channel).renew_hold(renew).await.unwrap();
    // One with advice, exclusive, whose process dies.
    let mut owner = Command::new("sleep").arg("1000").spawn().unwrap();
    let spec = v1::HoldSpec {
        owner: process(owner.id()),
        mode: v1::hold::Mode::Exclusive.into(),
        ..Default::default()
    };
    let owned = advise(&channel, 2, spec).await.unwrap().hold.unwrap();
    // A claim, which stays, and what is refused.
    create(&channel, v1::HoldSpec { name: "job".to_owned(), ..lease(3600) }, "").await.unwrap();
    assert_eq!(create(&tcp, lease(1), "0").await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(create(&channel, lease(1), "0-99").await.unwrap_err().code(), Code::InvalidArgument);
    let unknown = v1::ReleaseHoldRequest { id: "h99".to_owned(), uid: None };
    assert_eq!(holds(&channel).release_hold(unknown).await.unwrap_err().code(), Code::NotFound);

    let metrics = http(admin, "GET", "/metrics", "").await.1;
    let is = |metrics: &str, name: &str, expected: f64| {
        assert_eq!(value(metrics, name), Some(expected), "{name}\n{metrics}");
    };
    is(&metrics, "berth_holds{state=\"shared\"}", 1.0);
    is(&metrics, "berth_holds{state=\"exclusive\"}", 1.0);
    is(&metrics, "berth_holds{state=\"claim\"}", 1.0);
    is(&metrics, "berth_holds{state=\"violated\"}", 0.0);
    is(&metrics, "berth_held_cpus{state=\"shared\"}", 4.0);
    is(&metrics, "berth_held_cpus{state=\"exclusive\"}", 2.0);
    is(&metrics, "berth_hold_refusals_total{reason=\"FIELDS_NOT_VALID\"}", 1.0);
    is(&metrics, "berth_hold_refusals_total{reason=\"HOLD_NOT_FOUND\"}", 1.0);

    let release = v1::ReleaseHoldRequest { id: made.id.clone(), uid: None };
    holds(&channel).release_hold(release).await.unwrap();
    owner.kill().unwrap();
    owner.wait().unwrap();
    let ended = "berth_holds_ended_total{why=\"process_died\"}";
    let seen = async {
        while value(&http(admin, "GET", "/metrics", "").await.1, ended) != Some(1.0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), seen).await.expect("the owner's end is seen");
    let metrics = http(admin, "GET", "/metrics", "").await.1;
    is(&metrics, "berth_holds_ended_total{why=\"released\"}", 1.0);
    is(&metrics, "berth_holds_made_total{mode=\"shared\"}", 1.0);
    is(&metrics, "berth_holds_made_total{mode=\"exclusive\"}", 1.0);
    is(&metrics, "berth_holds_made_total{mode=\"claim\"}", 1.0);
    is(&metrics, "berth_holds{state=\"shared\"}", 0.0);
    is(&metrics, "berth_held_cpus{state=\"exclusive\"}", 0.0);

    signal(&program, "TERM");
    let output = program.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let audit: Vec<&Value> = lines.iter().filter(|line| line["target"] == "audit").collect();
    let told = |id: &str| -> Vec<&str> {
        let of = audit.iter().filter(|line| line["hold"] == id);
        of.map(|line| line["what"].as_str().unwrap()).collect()
    };
    assert_eq!(told(&made.id), ["made", "renewed", "ended"], "{lines:?}");
    assert_eq!(told(&owned.id), ["made", "ended"], "{lines:?}");
    let find =
        |id: &str, what: &str| *audit.iter().find(|line| line["hold"] == id && line["what"] == what).unwrap();
    let line = find(&made.id, "made");
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(
        (&line["name"], &line["cpus"], &line["owner"]),
        (&"build".into(), &"0-3".into(), &"lease".into())
    );
    assert_eq!((&line["uid"], &line["request"]), (&uid.into(), &"of-the-build".into()), "{line}");
    assert_eq!(line["caller"], format!("uid {uid}"));
    assert_eq!(find(&made.id, "ended")["why"], "released");
    let line = find(&owned.id, "ended");
    assert_eq!(line["why"], "process_died");
    assert!(line.get("request").is_none(), "nobody asked for it: {line}");
}
