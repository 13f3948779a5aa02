//! Streams of this host's load and topology.

use serde_json::Value;

use crate::berthd::Berthd;

#[test]
fn the_load_is_followed() {
    let server = Berthd::start();
    let said = server.berth(["watch", "load", "--count", "2", "-o", "json"]).answer();
    let messages: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("JSON on each line")).collect();
    let generation = |message: &Value| message["snapshot"]["loadGeneration"].as_str()?.parse::<u64>().ok();
    assert_eq!(messages.len(), 2, "{said}");
    assert!(generation(&messages[0]) < generation(&messages[1]), "{said}");
    let said = server.berth(["watch", "load", "--count", "2", "--cpus", "0"]).answer();
    assert!(
        said.lines().all(|line| line.contains(" of 1 CPUs busy") || line.starts_with("not known yet")),
        "{said}"
    );
    let said = server.berth(["watch", "load", "--cpus", "zero"]).refusal(1);
    assert!(said.contains("\n  --cpus: "), "{said}");
}

#[test]
fn the_topology_is_followed() {
    let server = Berthd::start();
    let said = server.berth(["watch", "topology", "--count", "1"]).answer();
    let online = server.berth(["topology", "-o", "list"]).answer();
    assert!(said.starts_with(&format!("generation 1: online {}", online.trim())), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_stream_ends_with_its_server_and_says_so() {
    let server = Berthd::start();
    let address = server.address();
    let watch = std::thread::spawn(move || {
        crate::berth::berth(["--server", &address, "watch", "topology", "--timeout", "20s"])
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(server);
    let said = watch.join().expect("it ends");
    assert_eq!(said.status, 3, "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.starts_with("berth: "), "{}", said.stderr);
}
