//! Debian's Prometheus scrapes a real berthd and what a real NRI plugin tells: it finds every metric that the dashboard and the
//! alerts ask for, and evaluates each alert.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    file, folder,
    metrics::{after_all, asked, of_dashboard},
};
use crate::tools::tool;

/// Killed when it is dropped.
struct Prometheus(Child, SocketAddr);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Prometheus {
    /// What it answers; nothing while it does not.
    fn get(&self, path: &str) -> Option<Value> {
        let mut connection = TcpStream::connect(self.1).ok()?;
        // Of this version an answer comes in one piece.
        write!(connection, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }

    fn until(&self, path: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let answer = self.get(path).unwrap_or_default();
            if is_so(&answer) {
                return answer;
            }
            assert!(start.elapsed() < Duration::from_secs(90), "not yet: {what}: {answer}");
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Whether it has a sample of the metric.
    fn knows(&self, metric: &str) -> bool {
        let answer = self.get(&format!("/api/v1/query?query={metric}")).unwrap_or_default();
        answer.pointer("/data/result").and_then(Value::as_array).is_some_and(|found| !found.is_empty())
    }
}

/// Serves a page of metrics for as long as the tests run.
fn served(page: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it has one");
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let (mut connection, mut request) = (connection, [0; 2048]);
            let _ = connection.read(&mut request);
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            let head =
                format!("HTTP/1.0 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", page.len());
            let _ = connection.write_all(format!("{head}{page}").as_bytes());
        }
    });
    address
}

#[test]
fn prometheus_finds_what_is_asked_for() {
    let Some(mut program) = tool("prometheus") else { return };
    let (server, page) = (after_all(), crate::nri::metrics_of_a_container());
    let body = page.split_once("\r\n\r\n").map_or(page.as_str(), |(_, body)| body).to_owned();
    let nri = served(body);
    let data = tempfile::tempdir().expect("there is room");
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("there is a free port");
    let config = data.path().join("prometheus.yml");
    // Labels of targets as the chart's ServiceMonitor gives them.
    let text = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\nscrape_configs:\n- job_name: berth\n  static_configs:\n  - {{targets: ['{}', '{nri}'], labels: {{namespace: b, pod: p, node: n}}}}\n",
        folder().join("files/alerts.yaml").display(),
        server.admin(),
    );
    fs::write(&config, text).expect("there is room");
    program.arg(format!("--config.file={}", config.display()));
    program.arg(format!("--storage.tsdb.path={}", data.path().join("data").display()));
    program.arg(format!("--web.listen-address={port}")).stdout(Stdio::null()).stderr(Stdio::null());
    let prometheus = Prometheus(program.spawn().expect("it starts"), port);

    let up = |answer: &Value| {
        let targets = answer.pointer("/data/activeTargets").and_then(Value::as_array);
        targets.is_some_and(|all| all.len() == 2 && all.iter().all(|target| target["health"] == "up"))
    };
    prometheus.until("/api/v1/targets", "both are scraped", up);
    let expressions = of_dashboard().into_iter().chain([file("files/alerts.yaml")]);
    let metrics: BTreeSet<String> = expressions
        .flat_map(|text| asked(&text).into_iter().map(|(metric, _)| metric).collect::<Vec<_>>())
        .collect();
    assert!(metrics.len() > 20, "{metrics:?}");
    // Told only while something is degraded, which is nothing here.
    let absent = |metric: &&String| *metric != "berth_degraded" && !prometheus.knows(metric);
    let missing: Vec<&String> = metrics.iter().filter(absent).collect();
    assert!(missing.is_empty(), "{missing:?}");

    let rules = |answer: &Value| -> Vec<Value> {
        let groups = answer.pointer("/data/groups").and_then(Value::as_array).cloned().unwrap_or_default();
        groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect()
    };
    let evaluated = |answer: &Value| {
        let all = rules(answer);
        !all.is_empty() && all.iter().all(|rule| rule["health"] != "unknown")
    };
    let all = rules(&prometheus.until("/api/v1/rules", "the alerts are evaluated", evaluated));
    assert!(all.len() > 8 && all.iter().all(|rule| rule["health"] == "ok"), "{all:?}");
    println!("{} metrics and {} alerts", metrics.len(), all.len());
}
