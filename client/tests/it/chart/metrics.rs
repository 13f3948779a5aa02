//! Alerts and the dashboard ask for metrics that berthd and the NRI plugin have, and alerts fire when they should.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::Value;

use super::{file, folder, list};
use crate::{
    berthd::Berthd,
    tools::{said, tool},
};

/// Labels that Prometheus' targets bring, and the alerts' own.
const OF_TARGETS: [&str; 3] = ["namespace", "pod", "node"];

/// The metrics of a real berthd after all was done that makes some appear, with their labels.
fn scraped() -> BTreeMap<String, BTreeSet<String>> {
    page(&after_all())
}

/// A real berthd after all was done that makes some metrics appear.
pub(super) fn after_all() -> Berthd {
    let server = Berthd::start_with(["--no-tcp", "--admin", "127.0.0.1:0", "--sample-interval", "100ms"]);
    let piles_up = ["predict", "-n", "6", "--cpus", "1,2,6,15", "--host-load", "1-2:1", "--from", "1"];
    let elsewhere = ["--host-synthetic", "pack:2 [numa] l3:2 core:4 pu:1", "--kernel", "6.12.95"];
    let asked: [&[&str]; 6] = [
        &[&piles_up[..], &elsewhere].concat(),
        &["advise", "-n", "2"],
        &["hold", "-n", "1", "--ttl", "1m", "--name", "a"],
        &["release", "a"],
        &["release", "nobody"],
        &["predict", "-n", "0"],
    ];
    asked.iter().for_each(|words| _ = server.berth(*words));
    while server.berth(["load", "-o", "json"]).json()["load"]["known"] != true {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    server
}

/// The metrics of a berthd that has nowhere to keep holds: what is degraded is told by what is.
fn degraded() -> BTreeMap<String, BTreeSet<String>> {
    page(&Berthd::start_with(["--no-tcp", "--admin", "127.0.0.1:0", "--state-dir", "/proc/nowhere"]))
}

fn page(server: &Berthd) -> BTreeMap<String, BTreeSet<String>> {
    let mut connection = TcpStream::connect(server.admin()).expect("it listens");
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: berth\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("it answers");
    named(&answer)
}

/// The metrics of a page, with their labels.
fn named(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("berth_")) {
        let name: String = line.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        let braces = line.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        let labels = braces.map_or("", |(labels, _)| labels).split("\",");
        let names = labels.filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
        found.entry(name).or_default().extend(names);
    }
    found
}

/// Each metric of ours in a PromQL expression, with the labels that it is asked by.
pub(super) fn asked(expression: &str) -> Vec<(String, Vec<String>)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (start, _) in expression.match_indices("berth_") {
        if expression[..start].ends_with(is_name) {
            continue;
        }
        let rest = &expression[start..];
        let name: String = rest.chars().take_while(|c| is_name(*c)).collect();
        let matchers = rest[name.len()..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let labels = matchers.map_or("", |(matchers, _)| matchers).split("\",");
        let labels = labels.filter_map(|label| Some(label.split(['=', '!']).next()?.trim().to_owned()));
        found.push((name, labels.filter(|label| !label.is_empty()).collect()));
    }
    found
}

/// The expressions of the dashboard, those of its variables too.
pub(super) fn of_dashboard() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&file("files/dashboard.json")).expect("it is JSON");
    let panels = list(&dashboard, "/panels").iter().flat_map(|panel| list(panel, "/targets"));
    let panels = panels.map(|target| super::text(target, "/expr").to_owned());
    let variables = list(&dashboard, "/templating/list").iter();
    let variables =
        variables.filter_map(|variable| Some(variable.pointer("/query/query")?.as_str()?.to_owned()));
    panels.chain(variables).collect()
}

#[test]
fn alerts_and_dashboard_ask_for_what_there_is() {
    let mut has = scraped();
    has.extend(named(&crate::nri::metrics_of_a_container()));
    has.extend(degraded().into_iter().filter(|(name, _)| name == "berth_degraded"));
    let expressions: Vec<String> = of_dashboard().into_iter().chain([file("files/alerts.yaml")]).collect();
    let mut used = BTreeSet::new();
    for expression in &expressions {
        for (metric, labels) in asked(expression) {
            let own = has.get(&metric).unwrap_or_else(|| panic!("there is no {metric}: {has:?}"));
            for label in labels {
                let known = own.contains(&label) || OF_TARGETS.contains(&label.as_str());
                assert!(known, "{metric} has no {label}: {own:?}");
            }
            used.insert(metric);
        }
    }
    // And the other way round: a metric that nobody looks at is one too many, or a panel is missing.
    for metric in has.keys().filter(|metric| !metric.ends_with("_sum")) {
        assert!(used.contains(metric), "{metric} is neither in the dashboard nor in an alert");
    }
}

#[test]
fn metrics_are_found_in_expressions() {
    let one = "sum by (x) (rate(berth_a_total{code=~\"A|B\", node!=\"n\"}[5m])) / my_berth_b > berth_c";
    let found = asked(one);
    assert_eq!(found[0], ("berth_a_total".to_owned(), vec!["code".to_owned(), "node".to_owned()]));
    assert_eq!(found[1..], [("berth_c".to_owned(), vec![])]);
}

/// By Prometheus' own tool, which also plays through when each alert fires.
#[test]
fn prometheus_takes_the_alerts_and_fires_them() {
    let Some(mut promtool) = tool("promtool") else { return };
    println!("{}", said(promtool.args(["check", "rules"]).arg(folder().join("files/alerts.yaml"))));
    let mut promtool = tool("promtool").expect("it is there");
    println!("{}", said(promtool.args(["test", "rules"]).arg(folder().join("ci/alerts-test.yaml"))));
    let alerts = file("files/alerts.yaml");
    let tests = file("ci/alerts-test.yaml");
    for name in alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname: {name}\n")), "{name} is not tried");
    }
}

/// Grafana's expressions once their variables stand for something.
#[test]
fn prometheus_takes_the_dashboards_expressions() {
    let Some(mut promtool) = tool("promtool") else { return };
    let expressions = of_dashboard();
    let rules: Vec<Value> = expressions
        .iter()
        .filter(|expression| !expression.starts_with("label_values("))
        .enumerate()
        .map(|(nth, expression)| {
            let expression = expression
                .replace("$__rate_interval", "5m")
                .replace("$namespace", ".*")
                .replace("$node", ".*");
            serde_json::json!({"record": format!("panel_{nth}"), "expr": expression})
        })
        .collect();
    assert!(rules.len() > 15, "{expressions:?}");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let groups = serde_json::json!({"groups": [{"name": "dashboard", "rules": rules}]});
    std::fs::write(file.path(), groups.to_string()).expect("it is written");
    said(promtool.args(["check", "rules"]).arg(file.path()));
}
