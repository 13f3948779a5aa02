//! What fails: the runtime, the plugin, berthd, and the bytes between them.

use std::{os::unix::net::UnixListener, time::Instant};

use berth_proto::nri::{SynchronizeRequest, SynchronizeResponse};
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, TestRunner},
};
use prost::Message as _;

use super::{
    node::{Node, Wanted},
    plugin::{Place, Plugin, wait_until},
    wire::{TO_PLUGIN, frame, framed, message},
};
use crate::berthd::Berthd;

const ASKS: (&str, &str) = ("berth.dev/policy", "auto");
const NOBODY: &str = "unix:/nowhere/berthd.sock";

fn asks(pod: &str) -> Wanted {
    Wanted::new(pod, &[ASKS]).limit(1000)
}

#[test]
fn without_berthd_containers_are_created_as_they_would_have_been() {
    let mut server = Berthd::start();
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let plugin = Plugin::start_with(&place, &server.address(), &[]);
    node.take_in();
    server.halt();
    let (id, adjust) = node.create(asks("slow"));
    assert_eq!(adjust, None);
    plugin.wait_for("default/slow/main is left as it is: no answer from berthd within");
    node.start(&id);
    node.stop(&id);
    println!("with a berthd that does not answer, the slowest answer took {:?}", node.slowest);
    drop(plugin);
    server.start_anew();
    wait_until(
        "it serves",
        || server.berth(["info"]).status == 0,
        || format!("{:?}", server.berth(["info"])),
    );
    let plugin = Plugin::start(&place, &server.address());
    node.take_in();
    assert!(node.create(asks("again")).1.is_some(), "{}", plugin.said());
    drop(plugin);

    let nobody = Plugin::start(&place, NOBODY);
    node.take_in();
    assert_eq!(node.create(asks("nobody")).1, None);
    nobody.wait_for("no berthd answers at unix:/nowhere/berthd.sock");
}

#[test]
fn a_runtime_that_comes_and_goes_is_found_again() {
    let server = Berthd::start();
    let place = Place::with_policy("none");
    // It is not there yet.
    let plugin = Plugin::start(&place, &server.address());
    plugin.wait_for("no runtime listens");
    assert!(plugin.page("/readyz").starts_with("HTTP/1.1 503 "), "{}", plugin.page("/readyz"));
    let mut node = Node::listen(&place);
    node.take_in();
    assert!(plugin.page("/readyz").starts_with("HTTP/1.1 200 "), "{}", plugin.page("/readyz"));
    let (first, adjust) = node.create(asks("first"));
    assert!(adjust.is_some());
    let cpus = node.start(&first).affinity.to_string();

    node.hang_up();
    let (missed, adjust) = node.create(asks("missed"));
    assert_eq!(adjust, None, "nobody is there");
    node.start(&missed);
    node.take_in();
    assert!(!node.cpus(&missed).is_empty(), "it is made good: {}", plugin.said());
    assert_eq!(node.affinity(&missed), node.cpus(&missed));
    assert_eq!(node.affinity(&first), cpus, "it stays where it is");

    let mut node = node.restart(&place);
    node.take_in();
    assert_eq!(node.affinity(&first), cpus);
    plugin.wait_for("2 containers are here, 2 of them are placed; 0 change");
    plugin.wait_for_metric("berth_nri_connections_total", 3.0);
    assert_eq!(plugin.stop(), 0, "told to stop, it ends well");
}

#[test]
fn a_plugin_that_was_killed_knows_its_containers_again() {
    let server = Berthd::start();
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let plugin = Plugin::start(&place, &server.address());
    node.take_in();
    let (kept, adjust) = node.create(asks("kept"));
    assert!(adjust.is_some());
    let cpus = node.start(&kept).affinity.to_string();
    let (gone, _) = node.create(asks("gone"));
    plugin.kill();
    node.hang_up();
    node.stop(&gone);
    node.remove(&gone);
    let (missed, _) = node.create(asks("missed"));
    node.start(&missed);

    let plugin = Plugin::start(&place, &server.address());
    node.take_in();
    assert_eq!(node.affinity(&kept), cpus);
    assert_eq!(node.affinity(&missed), node.cpus(&missed), "{}", plugin.said());
    let names = server.berth(["holds", "--all", "-o", "json"]).json();
    let names: Vec<&str> =
        names["holds"].as_array().expect("a list").iter().filter_map(|hold| hold["name"].as_str()).collect();
    assert_eq!(
        names,
        [format!("kube/{kept}"), format!("kube/{missed}")],
        "what is gone is let go: {}",
        plugin.said()
    );
}

#[test]
fn a_plugin_that_is_refused_dials_anew() {
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let plugin = Plugin::start(&place, NOBODY);
    node.accept();
    let name = node.heard();
    assert_eq!((&*name.plugin_name, &*name.plugin_idx), ("berth", "90"));
    // The runtime says so, keeps the connection, and never says another word.
    node.refuse("invalid plugin index");
    plugin.wait_for("the runtime refuses the plugin: invalid plugin index");
    assert_eq!(node.wire().receive(), None, "the plugin closes it");
    node.take_in();
}

#[test]
fn configure_may_come_before_the_registration_is_answered() {
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let _plugin = Plugin::start(&place, NOBODY);
    node.accept();
    node.heard();
    // Create, post-start, update, stop and remove of containers.
    assert_eq!(node.configure(), 0b110_1100_1000);
    node.welcome();
    node.synchronize();
    assert_eq!(node.call_raw("Shutdown", Vec::new()), Ok(Vec::new()));
    let status = node.call_raw("ValidateContainerAdjustment", Vec::new()).expect_err("it is not served");
    assert_eq!(status.code, 12, "{status:?}");
    let status = node.call_raw("CreateContainer", vec![0xff; 9]).expect_err("it is no protobuf");
    assert_eq!(status.code, 3, "{status:?}");
    assert_eq!(node.call_raw("CreateContainer", Vec::new()), Ok(Vec::new()), "nothing is asked");
}

#[test]
fn a_node_of_many_containers_is_told_in_parts() {
    let server = Berthd::start();
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let plugin = Plugin::start(&place, &server.address());
    node.accept();
    node.heard();
    node.welcome();
    node.configure();
    let part = |from: u32, more| {
        let container = |number: u32| berth_proto::nri::Container {
            id: format!("{number:064x}"),
            name: "main".to_owned(),
            annotations: [("long".to_owned(), "x".repeat(8000))].into(),
            ..berth_proto::nri::Container::default()
        };
        let containers = (from..from + 500).map(container).collect();
        SynchronizeRequest { pods: Vec::new(), containers, more }
    };
    for (from, more) in [(0, true), (500, true), (1000, false)] {
        let request = part(from, more);
        assert!(request.encoded_len() < 4 << 20 && request.encoded_len() > 3 << 20);
        let response: SynchronizeResponse = node.call("Synchronize", &request).expect("it is taken");
        assert_eq!(
            (response.more, response.update.len()),
            (more, 0),
            "a part is answered with `more` and no changes"
        );
    }
    plugin.wait_for("1500 containers are here");
}

#[test]
fn calls_may_come_in_any_pieces() {
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let _plugin = Plugin::start(&place, NOBODY);
    node.take_in();
    let request = berth_proto::nri::ttrpc::Request {
        service: "nri.pkg.api.v1alpha1.Plugin".to_owned(),
        method: "Shutdown".to_owned(),
        payload: vec![0; 6000],
        timeout_nano: 0,
    };
    for (number, size) in [(101, 1), (103, 7), (105, 4095), (107, 100_000)] {
        let bytes = message(number, 1, &request.encode_to_vec());
        for part in bytes.chunks(size) {
            let framed = frame(TO_PLUGIN, part);
            // The header alone, then the rest.
            node.wire().send(&framed[..3]);
            node.wire().send(&framed[3..]);
        }
        assert_eq!(node.wire().receive().expect("an answer").stream, number);
    }
}

/// What is no frame or message costs the connection, and nothing else.
#[test]
fn whatever_comes_the_plugin_lives() {
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let mut plugin = Plugin::start(&place, NOBODY);
    let shutdown = berth_proto::nri::ttrpc::Request { method: "Shutdown".to_owned(), ..Default::default() };
    let call = framed(TO_PLUGIN, &message(1, 1, &shutdown.encode_to_vec()));
    let mut nonsense: Vec<Vec<u8>> = vec![
        vec![0xff; 8],
        frame(3, b"x"),
        [1_u32.to_be_bytes(), u32::MAX.to_be_bytes()].concat(),
        framed(TO_PLUGIN, &[0xff; 10]),
        framed(TO_PLUGIN, &message(1, 9, b"")),
        framed(TO_PLUGIN, &message(1, 1, &[0xff; 20])),
        framed(TO_PLUGIN, &message(1, 2, &[])),
        framed(2, &message(77, 1, &[])),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ];
    // Every half of a call, and calls with a byte that is wrong.
    nonsense.extend((0..call.len()).step_by(5).map(|length| call[..length].to_vec()));
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    for _ in 0..12 {
        let (at, byte) = (0..call.len(), any::<u8>()).new_tree(&mut runner).expect("values").current();
        let mut wrong = call.clone();
        wrong[at] = byte;
        nonsense.push(wrong);
        nonsense.push(
            proptest::collection::vec(any::<u8>(), 0..300).new_tree(&mut runner).expect("bytes").current(),
        );
    }
    for bytes in nonsense {
        node.take_in();
        node.wire().send(&bytes);
        node.hang_up();
        assert!(plugin.lives(), "{bytes:02x?}: {}", plugin.said());
    }
    node.take_in();
    assert!(plugin.lives());
}

#[test]
fn a_silent_runtime_is_left_in_the_end() {
    let place = Place::with_policy("none");
    let listener = UnixListener::bind(place.socket()).expect("nobody has it");
    let plugin = Plugin::start(&place, NOBODY);
    let (first, _) = listener.accept().expect("it dials");
    let start = Instant::now();
    // It is let wait for as long as a runtime may take over other plugins.
    let (_second, _) = listener.accept().expect("it dials anew");
    println!("it dials anew after {:?}", start.elapsed());
    plugin.wait_for("the runtime has not taken the plugin in");
    drop(first);
}
