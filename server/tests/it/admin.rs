//! The admin listener: metrics, probes, what is logged.

use crate::{
    authorisation::own_address,
    health::slow_reader,
    support::{Served, placement, release, small_host},
};
use berth_proto::v1;
use std::{fs, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(crate) const ADMIN: [&str; 2] = ["--admin", "127.0.0.1:0"];

/// Status and body of an HTTP request.
pub(crate) async fn http(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: berth\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// The value of a metric with all its labels.
pub(crate) fn value(metrics: &str, name: &str) -> Option<f64> {
    let line = metrics.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    line?.rsplit(' ').next()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_off_unless_asked_for() {
    assert_eq!(Served::start(&[]).await.daemon.admin(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted() {
    let described = ["--topology-synthetic", "pack:1 [numa] core:4 pu:1", "--kernel", "6.12.95"];
    let served = Served::start(&[&ADMIN[..], &described].concat()).await;
    let [(_, channel), (_, over_unix)] = served.channels().await;
    let mut client = placement(&channel);
    for tasks in [1, 2] {
        client.predict(v1::PredictRequest { tasks, ..Default::default() }).await.unwrap();
    }
    client.predict(v1::PredictRequest { tasks: 0, ..Default::default() }).await.unwrap_err();
    let advised = v1::AdviseRequest { tasks: 2, ..Default::default() };
    let advised = placement(&over_unix).advise(advised).await.unwrap().into_inner();
    let advice = advised.advice.unwrap();
    // What is known to pile up on a kernel before the fix: more tasks than CPUs that the kernel looks at.
    let pile_up = v1::PredictRequest {
        tasks: 176,
        allowed: "0-175".to_owned(),
        host: crate::support::host_of(crate::support::xml("seeds/turin-2s-l3-as-numa.xml")),
        kernel: release("6.12.95"),
        origin: Some(0),
        ..Default::default()
    };
    assert_eq!(client.predict(pile_up).await.unwrap().into_inner().verdict(), v1::verdict::Value::PileUp);

    let (status, metrics) = http(served.daemon.admin().unwrap(), "GET", "/metrics", "").await;
    assert_eq!((status, metrics.ends_with("# EOF\n")), (200, true), "{metrics}");
    let counted = |method: &str, code: &str| {
        let labels = format!("method=\"berth.v1.PlacementService/{method}\",code=\"{code}\"");
        value(&metrics, &format!("berth_request_duration_seconds_count{{{labels}}}"))
    };
    assert_eq!(counted("Predict", "OK"), Some(3.0), "{metrics}");
    assert_eq!(counted("Predict", "INVALID_ARGUMENT"), Some(1.0), "{metrics}");
    assert_eq!(counted("Advise", "OK"), Some(1.0), "{metrics}");
    let form = advice.form().as_str_name();
    let advised = format!("berth_advice_total{{form=\"{form}\",outcome=\"SAFE\"}}");
    assert_eq!(value(&metrics, &advised), Some(1.0), "{metrics}");
    assert_eq!(value(&metrics, "berth_predictions_total{verdict=\"PILE_UP\"}"), Some(1.0), "{metrics}");
    let pile_ups = metrics.lines().find(|line| line.starts_with("berth_predicted_pile_ups_total{profile="));
    assert!(pile_ups.is_some_and(|line| line.ends_with(" 1")), "{metrics}");
    let build = format!("berth_build_info{{version=\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(metrics.lines().any(|line| line.starts_with(&build)), "{metrics}");
    assert_eq!(value(&metrics, "berth_generation{of=\"topology\"}"), Some(1.0), "{metrics}");
    assert_eq!(value(&metrics, "berth_degraded{reason=\"LOAD_UNKNOWN\"}"), Some(1.0), "{metrics}");
    assert_eq!(value(&metrics, "berth_requests_in_flight"), Some(0.0), "{metrics}");
    let mut sheds = metrics.lines().filter(|line| line.starts_with("berth_sheds_total"));
    assert!(sheds.all(|line| line.ends_with(" 0")), "nothing was refused: {metrics}");
}

/// A name that somebody invents makes no metric of its own.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_make_no_labels() {
    let served = Served::start(&ADMIN).await;
    let [(_, channel), _] = served.channels().await;
    for n in 0..3 {
        let path = format!("/berth.v1.PlacementService/Invented{n}").parse().unwrap();
        let mut client = tonic::client::Grpc::new(channel.clone());
        client.ready().await.unwrap();
        let request = tonic::Request::new(v1::GetInfoRequest::default());
        let codec = tonic_prost::ProstCodec::<v1::GetInfoRequest, v1::GetInfoResponse>::default();
        assert_eq!(client.unary(request, path, codec).await.unwrap_err().code(), tonic::Code::Unimplemented);
    }
    let (_, metrics) = http(served.daemon.admin().unwrap(), "GET", "/metrics", "").await;
    assert!(!metrics.contains("Invented"), "{metrics}");
    let other = "berth_request_duration_seconds_count{method=\"other\",code=\"UNIMPLEMENTED\"}";
    assert_eq!(value(&metrics, other), Some(3.0), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_measured_load_has_an_age() {
    let served = Served::start(&[&ADMIN[..], &["--sample-interval", "100ms"]].concat()).await;
    let admin = served.daemon.admin().unwrap();
    let metrics = loop {
        let (_, metrics) = http(admin, "GET", "/metrics", "").await;
        if value(&metrics, "berth_generation{of=\"load\"}").is_some_and(|generation| generation > 0.0) {
            break metrics;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(value(&metrics, "berth_load_age_seconds").is_some_and(|age| age < 60.0), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let program = slow_reader(folder.path());
    let flags = [&ADMIN[..], &["--max-requests", "1"]].concat();
    let served = Served::begin(&flags, |config| config.program = program).await;
    let [(_, channel), (_, second)] = served.channels().await;
    // It waits for its host's description to be read, and has the only place meanwhile: once it has, since it too may be
    // refused.
    let waiting = tokio::spawn(async move {
        let mut refused = 0;
        loop {
            let request = v1::PredictRequest { tasks: 1, host: small_host(), ..Default::default() };
            match placement(&channel).predict(request).await {
                Err(status) if status.code() == tonic::Code::Unavailable => refused += 1,
                answered => return answered.map(|_| refused),
            }
        }
    });
    let admin = served.daemon.admin().unwrap();
    // As soon as it has it, others are refused.
    let mut info = crate::support::info(&second);
    let refused = loop {
        if let Err(refused) = info.get_info(v1::GetInfoRequest {}).await {
            break refused;
        }
    };
    assert_eq!(refused.code(), tonic::Code::Unavailable);
    let (_, metrics) = http(admin, "GET", "/metrics", "").await;
    fs::write(folder.path().join("go"), "").unwrap();
    let others = f64::from(waiting.await.unwrap().unwrap());
    let shed = metrics.lines().filter(|line| line.starts_with("berth_sheds_total{limit=\"requests"));
    let shed: f64 = shed.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum();
    assert_eq!(shed, others + 1.0, "{metrics}");
    let refused =
        "berth_request_duration_seconds_count{method=\"berth.v1.InfoService/GetInfo\",code=\"UNAVAILABLE\"}";
    assert_eq!(
        value(&metrics, refused),
        Some(1.0),
        "the layer that counts is outside of the one that refuses"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn probes() {
    let folder = tempfile::tempdir().unwrap();
    let program = slow_reader(folder.path());
    let mut served = Served::begin(&ADMIN, |config| config.program = program).await;
    let admin = served.daemon.admin().unwrap();
    assert_eq!(http(admin, "GET", "/livez", "").await.0, 200);
    assert_eq!(http(admin, "GET", "/readyz", "").await.0, 503);
    let (_, metrics) = http(admin, "GET", "/metrics", "").await;
    assert_eq!(value(&metrics, "berth_degraded{reason=\"NO_SNAPSHOT\"}"), Some(1.0), "{metrics}");
    fs::write(folder.path().join("go"), "").unwrap();
    served.daemon.ready().await.unwrap();
    assert_eq!(http(admin, "GET", "/readyz", "").await, (200, "ok\n".to_owned()));
    assert_eq!(http(admin, "GET", "/nothing", "").await.0, 404);
    assert_eq!(http(admin, "POST", "/metrics", "").await.0, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_logged_is_changed_only_where_that_is_allowed() {
    let served = Served::start(&ADMIN).await;
    let (status, said) = http(served.daemon.admin().unwrap(), "PUT", "/log", "debug").await;
    assert_eq!((status, said.contains("admin.change_log")), (403, true), "{said}");
    let allowed = Served::start(&[&ADMIN[..], &["--admin-change-log"]].concat()).await;
    let admin = allowed.daemon.admin().unwrap();
    let (status, said) = http(admin, "PUT", "/log", "a=b=c").await;
    assert_eq!((status, said.contains("expected a level")), (400, true), "{said}");
    assert_eq!(http(admin, "PUT", "/log", &"x".repeat(5000)).await.0, 413);
}

/// Connects so many times, says nothing, and gives back what was not closed at once.
async fn silent(admin: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(TcpStream::connect(admin).await.unwrap());
    }
    // Once all of them are taken, each has a place or was closed at once.
    let mut open = Vec::new();
    for mut connection in all {
        let read = tokio::time::timeout(Duration::from_millis(5), connection.read_u8()).await;
        open.extend(read.is_err().then_some(connection));
    }
    open
}

/// Those who connect and say nothing keep nobody else away for long.
#[tokio::test(flavor = "multi_thread")]
async fn silent_connections() {
    let served = Served::start(&ADMIN).await;
    let admin = served.daemon.admin().unwrap();
    let open = silent(admin, 70).await;
    assert_eq!(open.len(), 32, "an address has half of the places");
    // While they stay, they are let go of, so that who asks gets in.
    let again = async {
        loop {
            let mut connection = TcpStream::connect(admin).await.unwrap();
            let _ = connection.write_all(b"GET /livez HTTP/1.0\r\n\r\n").await;
            let mut answer = String::new();
            if connection.read_to_string(&mut answer).await.is_ok() && answer.ends_with("ok\n") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.unwrap();
    drop(open);
}

/// Who has said nothing yet is let go of before one whose request is on its way, although that one came first.
#[tokio::test(flavor = "multi_thread")]
async fn those_who_say_nothing_go_first() {
    let served = Served::start(&[&ADMIN[..], &["--admin-change-log"]].concat()).await;
    let admin = served.daemon.admin().unwrap();
    let mut slow = TcpStream::connect(admin).await.unwrap();
    slow.write_all(b"PUT /log HTTP/1.1\r\nHost: berth\r\nContent-Length: 5\r\n\r\na=").await.unwrap();
    let mut says_nothing = TcpStream::connect(admin).await.unwrap();
    let mut begins = TcpStream::connect(admin).await.unwrap();
    begins.write_all(b"GET /livez HTTP/1.1\r\nHost:").await.unwrap();
    let (mut first, mut second, mut third) = (Vec::new(), Vec::new(), Vec::new());
    tokio::select! {
        biased;
        _ = slow.read_to_end(&mut first) => panic!("it was let go of first: {first:?}"),
        ended = async { tokio::join!(says_nothing.read_to_end(&mut second), begins.read_to_end(&mut third)) } => {
            assert!(ended.0.is_ok() && ended.1.is_ok(), "{ended:?}");
        }
    }
    slow.write_all(b"b=c").await.unwrap();
    slow.read_to_end(&mut first).await.unwrap();
    assert!(first.starts_with(b"HTTP/1.1 400 "), "{first:?}");
}

/// One address leaves places for others.
#[tokio::test(flavor = "multi_thread")]
async fn another_address_is_answered_meanwhile() {
    let Some(address) = own_address() else {
        return eprintln!("skipped: this host has no address but loopback ones");
    };
    let served = Served::start(&["--admin", "0.0.0.0:0"]).await;
    let port = served.daemon.admin().unwrap().port();
    let open = silent(SocketAddr::from(([127, 0, 0, 1], port)), 70).await;
    assert_eq!(http(SocketAddr::new(address, port), "GET", "/livez", "").await, (200, "ok\n".to_owned()));
    drop(open);
}
