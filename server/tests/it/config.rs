//! The configuration: all that is wrong is told at once.

use berth_server::config::{Config, Stop};
use std::time::Duration;

fn problems(flags: &[&str]) -> Vec<String> {
    match Config::try_from_args(["berthd"].iter().chain(flags)) {
        Err(Stop::Invalid(invalid)) => invalid.0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_problems_at_once() {
    let problems = problems(&[
        "--tcp",
        "0.0.0.0:7117",
        "--kernel",
        "six",
        "--cpu-family",
        "old",
        "--log-format",
        "xml",
        "--deadline",
        "1h",
        "--sample-interval",
        "1ms",
        "--max-requests",
        "0",
        "--topology-xml",
        "/nonexistent/host.xml",
        "--uds",
        "/tmp/x",
        "--no-uds",
    ]);
    for flag in [
        "--tcp 0.0.0.0:7117",
        "--kernel",
        "--cpu-family old",
        "--log-format xml",
        "--deadline 1h",
        "--sample-interval 1ms",
        "--max-requests 0",
        "--topology-xml /nonexistent/host.xml",
        "--no-uds",
    ] {
        assert!(problems.iter().any(|problem| problem.starts_with(flag)), "{flag}: {problems:#?}");
    }
    assert_eq!(problems.len(), 9, "{problems:#?}");
    assert!(problems[0].contains("neither TLS nor authentication"), "{}", problems[0]);
}

#[test]
fn something_has_to_be_listened_on() {
    assert!(problems(&["--no-tcp", "--no-uds"])[0].contains("nothing to listen on"));
    let both = problems(&["--topology-synthetic", "pu:2", "--topology-xml", "/nonexistent"]);
    assert!(both[0].contains("contradicts"), "{both:?}");
}

#[test]
fn defaults() {
    let config = Config::try_from_args(["berthd", "--uds", "/tmp/berthd.sock"]).unwrap();
    assert_eq!(config.tcp.unwrap().to_string(), "127.0.0.1:7117");
    assert_eq!((config.sample_interval, config.max_requests), (Duration::from_secs(1), 256));
    assert!(!config.log.json && config.kernel.is_none());
}

#[test]
fn the_help_teaches() {
    let help = Config::help();
    for word in ["grpcurl", "127.0.0.1:7117", "/run/berth/berthd.sock", "BERTH_LOG", "Exit status", "HWLOC_"]
    {
        assert!(help.contains(word), "{word} is not in the help:\n{help}");
    }
}
