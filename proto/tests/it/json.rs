//! Canonical JSON through the descriptor set, as the command line prints it and as people type it.

use berth_proto::v1::{
    AdviseRequest, Host, Kernel, Near, PredictRequest, Prediction, Snapshot, Warning, host, level, near,
    policy, verdict,
};
use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage as _};
use prost_types::Duration;
use serde_json::json;

use crate::pool;

#[test]
fn requests_are_short_to_type() {
    let request: AdviseRequest = typed("AdviseRequest", &json!({"tasks": 8, "policy": "SPREAD"}));
    let expected = AdviseRequest { tasks: 8, policy: policy::Value::Spread.into(), ..Default::default() };
    assert_eq!(request, expected);

    let request: AdviseRequest =
        typed("AdviseRequest", &json!({"tasks": 2, "near": {"pci": "0000:41:00.0"}, "exclusive": "CORE"}));
    let expected = AdviseRequest {
        tasks: 2,
        near: Some(Near { place: Some(near::Place::Pci("0000:41:00.0".into())) }),
        exclusive: level::Value::Core.into(),
        ..Default::default()
    };
    assert_eq!(request, expected);
}

#[test]
fn another_host_and_kernel_fit_in_one_line() {
    let request: PredictRequest = typed(
        "PredictRequest",
        &json!({
            "tasks": 176, "allowed": "0-175", "origin": 0,
            "kernel": {"release": "6.12.95"},
            "host": {"synthetic": "pack:2 [numa] l3:8 core:8 pu:2"},
        }),
    );
    let expected = PredictRequest {
        tasks: 176,
        allowed: "0-175".into(),
        origin: Some(0),
        kernel: Some(Kernel { release: "6.12.95".into(), ..Default::default() }),
        host: Some(Host {
            source: Some(host::Source::Synthetic("pack:2 [numa] l3:8 core:8 pu:2".into())),
            ..Default::default()
        }),
        ..Default::default()
    };
    assert_eq!(request, expected);
}

#[test]
fn answers_print_as_canonical_json() {
    let prediction =
        Prediction { verdict: verdict::Value::PileUp.into(), most_on_one_cpu: 10, ..Default::default() };
    assert_eq!(printed("Prediction", &prediction), json!({"verdict": "PILE_UP", "mostOnOneCpu": 10}));

    let snapshot = Snapshot {
        topology_generation: 3,
        load_age: Some(Duration { seconds: 0, nanos: 250_000_000 }),
        ..Default::default()
    };
    assert_eq!(printed("Snapshot", &snapshot), json!({"topologyGeneration": "3", "loadAge": "0.250s"}));
}

#[test]
fn a_field_left_out_is_not_one_set_to_zero() {
    let absent: PredictRequest = typed("PredictRequest", &json!({"tasks": 1}));
    let zero: PredictRequest = typed("PredictRequest", &json!({"tasks": 1, "origin": 0}));
    assert_eq!((absent.origin, zero.origin), (None, Some(0)));
}

#[test]
fn an_outcome_left_out_is_never_safe() {
    assert_eq!(Prediction::default().verdict(), verdict::Value::Unknown);
    assert_ne!(berth_proto::v1::Proof::default().result(), berth_proto::v1::proof::Result::Safe);
}

#[test]
fn equal_answers_have_equal_bytes() {
    let keys = ["asked", "free", "held", "node", "package", "llc", "core", "pu"];
    let warning = |keys: &mut dyn Iterator<Item = &&str>| Warning {
        metadata: keys.map(|key| ((*key).to_owned(), String::new())).collect(),
        ..Default::default()
    };
    let (forth, back) = (warning(&mut keys.iter()), warning(&mut keys.iter().rev()));
    assert_eq!(forth.encode_to_vec(), back.encode_to_vec());
}

/// What a request typed as JSON becomes.
fn typed<M: Message + Default>(name: &str, text: &serde_json::Value) -> M {
    let descriptor = pool().get_message_by_name(&format!("berth.v1.{name}")).expect("it is described");
    let message = DynamicMessage::deserialize(descriptor, text).expect("it is canonical JSON");
    message.transcode_to().expect("both are the same message")
}

/// How a message prints as JSON.
fn printed<M: Message>(name: &str, message: &M) -> serde_json::Value {
    let descriptor = pool().get_message_by_name(&format!("berth.v1.{name}")).expect("it is described");
    let message = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).expect("it decodes");
    assert_eq!(message.descriptor().name(), name);
    serde_json::to_value(&message).expect("it serialises")
}
