//! What a real runtime was recorded to say, said again to the plugin; and what it said, understood as it was then.

use berth_proto::nri::{
    ConfigureResponse, CreateContainerRequest, CreateContainerResponse, PodSandbox, SynchronizeResponse,
    ttrpc::{Request, Response},
};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MapKey, ReflectMessage as _, Value as Field};
use serde_json::Value;

use super::{
    node::Node,
    plugin::{Place, Plugin},
    recorded::{Chunk, Recorded, Recording, messages},
    wire::{FROM_PLUGIN, TO_PLUGIN, framed, message},
};
use crate::berthd::Berthd;

/// The calls that the plugin wants or must answer.
const SERVED: [&str; 7] = [
    "Configure",
    "Synchronize",
    "CreateContainer",
    "PostStartContainer",
    "UpdateContainer",
    "StopContainer",
    "RemoveContainer",
];

/// The descriptors of the interface, as this repository has them.
fn interface() -> DescriptorPool {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto");
    let mut compiler = protox::Compiler::new([folder]).expect("it is there");
    compiler.open_files(["nri/nri.proto", "nri/ttrpc.proto"]).expect("it compiles");
    DescriptorPool::from_file_descriptor_set(compiler.file_descriptor_set()).expect("it is complete")
}

/// The name of the message that is a method's request or response.
fn name_of(method: &str, is_request: bool) -> Option<String> {
    let events = [
        "PostCreateContainer",
        "StartContainer",
        "PostStartContainer",
        "PostUpdateContainer",
        "RemoveContainer",
    ];
    let name = match (method, is_request) {
        (method, true) if events.contains(&method) => "ContainerEvent".to_owned(),
        (method, false) if events.contains(&method) => return None,
        (method, true) => format!("{method}Request"),
        (method, false) => format!("{method}Response"),
    };
    Some(format!("nri.pkg.api.v1alpha1.{name}"))
}

/// Every recorded message means today what it meant when it was recorded, wherever the interface has a field for it.
#[test]
fn recorded_messages_mean_what_they_meant() {
    let interface = interface();
    let (mut compared, mut fields) = (0, 0);
    for recording in Recording::all() {
        for connection in recording.connections() {
            let (all, understood) =
                (messages(&recording.chunks(connection)), recording.understood(connection));
            for (recorded, understood) in all.iter().zip(understood) {
                let what = format!("{} {connection}: {understood:.300}", recording.name);
                assert_eq!(recorded.stream, understood["stream"], "{what}");
                assert_eq!(recorded.of_runtime, understood["dir"] == "runtime->plugin", "{what}");
                assert_eq!(recorded.connection, understood["mux_conn"], "{what}");
                assert_eq!(recorded.body.len(), understood["length"], "{what}");
                let Some(payload) = payload_of(recorded, understood) else { continue };
                let method = understood["method"].as_str().unwrap_or("");
                let name = name_of(method, recorded.kind == 1);
                let Some(descriptor) = name.and_then(|name| interface.get_message_by_name(&name)) else {
                    continue;
                };
                if understood["payload"].as_object().is_some_and(|fields| fields.contains_key("?#1")) {
                    continue;
                }
                let decoded = DynamicMessage::decode(descriptor, &*payload).expect(&what);
                compare(
                    &decoded,
                    &understood["payload"],
                    &what,
                    &mut Seen { fields: &mut fields, is_whole: true },
                );
                compared += 1;
            }
        }
    }
    println!("{compared} messages with {fields} fields mean the same");
    assert!(compared > 200 && fields > 2000, "{compared} messages, {fields} fields");
}

/// The payload, if it is one and was understood.
fn payload_of(recorded: &Recorded, understood: &Value) -> Option<Vec<u8>> {
    let payload = match recorded.kind {
        1 => {
            let request = Request::decode(&*recorded.body).ok()?;
            assert_eq!(request.method, understood["method"]);
            if let Some(nanos) = understood["timeout_nano"].as_i64() {
                assert_eq!(request.timeout_nano, nanos);
            }
            request.payload
        }
        _ => {
            let response = Response::decode(&*recorded.body).ok()?;
            if let Some(status) = response.status {
                assert_eq!(understood["status"]["code"], status.code, "{understood}");
                return None;
            }
            response.payload
        }
    };
    understood["payload"].is_object().then_some(payload)
}

/// What was compared.
struct Seen<'a> {
    fields: &'a mut usize,
    /// Nothing was left out when it was recorded.
    is_whole: bool,
}

/// Fields are named `name#number`. Where some were left out when it was recorded, it says so with `...`.
fn compare(decoded: &DynamicMessage, understood: &Value, what: &str, seen: &mut Seen<'_>) {
    let Some(understood) = understood.as_object() else {
        assert!(understood.is_null(), "{what}: {understood}");
        return;
    };
    let is_whole = seen.is_whole && !understood.contains_key("...");
    let seen = &mut Seen { fields: seen.fields, is_whole };
    for (key, value) in understood {
        let Some((name, number)) = key.split_once('#') else { continue };
        let Some(field) = number.parse().ok().and_then(|number| decoded.descriptor().get_field(number))
        else {
            continue;
        };
        assert_eq!(field.name(), name, "{what}");
        same(&decoded.get_field(&field), value, &format!("{what}: {key}"), seen);
    }
    // Nothing more than was understood.
    if is_whole {
        for (field, _) in decoded.fields() {
            assert!(
                understood.contains_key(&format!("{}#{}", field.name(), field.number())),
                "{what}: {}",
                field.name()
            );
        }
    }
}

fn same(decoded: &Field, value: &Value, what: &str, seen: &mut Seen<'_>) {
    *seen.fields += 1;
    match decoded {
        Field::Message(message) => compare(message, value, what, seen),
        Field::List(list) => {
            // One message of a list is written without the list.
            let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
            assert_eq!(list.len(), values.len(), "{what}");
            list.iter().zip(&values).for_each(|(one, value)| same(one, value, what, seen));
        }
        Field::Map(map) => {
            let values = value.as_object().expect(what);
            assert_eq!(map.len(), values.len(), "{what}");
            for (key, value) in values {
                same(&map[&MapKey::String(key.clone())], value, what, seen);
            }
        }
        Field::String(text) => assert_eq!(text, value, "{what}"),
        Field::Bool(is) => assert_eq!(*is, value.as_bool().unwrap_or_else(|| value == 1), "{what}"),
        Field::I32(number) | Field::EnumNumber(number) => {
            assert_eq!(i64::from(*number), value.as_i64().expect(what), "{what}")
        }
        Field::U32(number) => assert_eq!(u64::from(*number), value.as_u64().expect(what), "{what}"),
        Field::I64(number) => assert_eq!(*number, value.as_i64().expect(what), "{what}"),
        Field::U64(number) => assert_eq!(*number, value.as_u64().expect(what), "{what}"),
        other => panic!("{what}: {other:?}"),
    }
}

/// What the runtime said on each recorded connection is said again, in the pieces in which it came; the plugin answers each call.
#[test]
fn recorded_conversations_are_answered() {
    let server = Berthd::start();
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let mut plugin = Plugin::start(&place, &server.address());
    let mut answered = 0;
    for recording in Recording::all() {
        for connection in recording.connections() {
            let chunks = recording.chunks(connection);
            // A runtime that refused the recorded plugin, or never heard of it, says nothing that this one could answer.
            if !messages(&chunks).iter().any(|message| message.of_runtime && message.connection == TO_PLUGIN)
            {
                continue;
            }
            node.accept();
            node.heard();
            answered += say_again(&mut node, &chunks, &format!("{} {connection}", recording.name));
            node.hang_up();
            assert!(plugin.lives(), "{}: {}", recording.name, plugin.said());
        }
    }
    println!("{answered} recorded calls were answered");
    assert!(answered > 140, "{answered}");
    assert!(!plugin.said().contains("panic"), "{}", plugin.said());
}

/// How many calls were answered.
fn say_again(node: &mut Node, chunks: &[Chunk], what: &str) -> usize {
    let mut answered = 0;
    let mut said: Vec<Chunk> = Vec::new();
    for chunk in chunks.iter().filter(|chunk| chunk.of_runtime) {
        node.wire().send(&chunk.bytes);
        said.push(Chunk { of_runtime: true, bytes: chunk.bytes.clone() });
        let calls = messages(&said);
        let calls: Vec<&Recorded> = calls.iter().filter(|message| message.kind == 1).collect();
        // One call at a time, as the runtime makes them.
        for call in &calls[answered..] {
            let request = Request::decode(&*call.body).expect(what);
            let packet =
                node.wire().receive().unwrap_or_else(|| panic!("{what}: no answer to {}", request.method));
            assert_eq!((packet.connection, packet.stream), (TO_PLUGIN, call.stream), "{what}");
            match packet.answer() {
                Ok(payload) => understand(&request.method, &payload, what),
                Err(status) => {
                    assert!(!SERVED.contains(&&*request.method), "{what}: {}: {status:?}", request.method);
                    assert_eq!(status.code, 12, "{what}: {status:?}");
                }
            }
        }
        answered = calls.len();
    }
    answered
}

/// No recorded pod has asked for anything.
fn understand(method: &str, payload: &[u8], what: &str) {
    match method {
        "Configure" => assert_eq!(ConfigureResponse::decode(payload).expect(what).events, 0b110_1100_1000),
        "Synchronize" => assert_eq!(SynchronizeResponse::decode(payload).expect(what).update, [], "{what}"),
        _ => assert!(payload.is_empty(), "{what}: {method}: {payload:02x?}"),
    }
}

/// The conversation with a real kubelet whose CPU manager gives out nothing, with pods that ask: the answers are as those that were
/// recorded, and took effect then.
#[test]
fn a_recorded_pod_that_asks_is_answered_as_the_recorded_plugin_did() {
    let server = Berthd::start();
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let plugin = Plugin::start(&place, &server.address());
    node.take_in();
    let recording = Recording::named("22-kubelet-none.json.gz");
    let all = messages(&recording.chunks(1));
    let creates = all
        .iter()
        .filter(|message| message.of_runtime && message.kind == 1 && message.connection == TO_PLUGIN);
    let mut placed = Vec::new();
    for recorded in creates {
        let request = Request::decode(&*recorded.body).expect("a request");
        if request.method != "CreateContainer" {
            continue;
        }
        // What is appended to a message is merged into it.
        let annotations = [("berth.dev/policy".to_owned(), "auto".to_owned())].into();
        let asks = CreateContainerRequest {
            pod: Some(PodSandbox { annotations, ..PodSandbox::default() }),
            container: None,
        };
        let payload = [request.payload, asks.encode_to_vec()].concat();
        let answer = node.call_raw("CreateContainer", payload).expect("it may be created");
        let response = all.iter().find(|message| {
            !message.of_runtime
                && message.kind == 2
                && message.connection == TO_PLUGIN
                && message.stream == recorded.stream
        });
        let then = Response::decode(&*response.expect("it was answered").body).expect("a response").payload;
        placed.push((shape(&then), shape(&answer)));
    }
    // The burstable pod has no limit, and says nothing of tasks.
    let [(burstable_then, burstable), (guaranteed_then, guaranteed)] = &placed[..] else {
        panic!("{placed:?}")
    };
    assert_eq!(burstable_then, guaranteed_then);
    assert_eq!(burstable, &None, "{}", plugin.said());
    assert_eq!(guaranteed, guaranteed_then, "{}", plugin.said());
    assert!(
        plugin.said().contains("burst-localhost/c is left as it is: c has no CPU limit"),
        "{}",
        plugin.said()
    );
}

/// The fields that an answer to CreateContainer has, without what is in them. `None`: it changes nothing.
fn shape(payload: &[u8]) -> Option<Vec<&'static str>> {
    let response = CreateContainerResponse::decode(payload).expect("an answer");
    let adjust = response.adjust?;
    let cpu = adjust.linux.and_then(|linux| linux.resources).and_then(|resources| resources.cpu);
    let mut shape = Vec::new();
    shape.extend((!adjust.annotations.is_empty()).then_some("annotations"));
    shape.extend((!adjust.env.is_empty()).then_some("env"));
    shape.extend(cpu.is_some_and(|cpu| !cpu.cpus.is_empty() && cpu.shares.is_none()).then_some("cpus"));
    Some(shape)
}

/// Answers to a registration that this plugin did not send, and calls out of turn.
#[test]
fn what_was_said_to_another_plugin_is_nothing_to_this_one() {
    let place = Place::with_policy("none");
    let mut node = Node::listen(&place);
    let mut plugin = Plugin::start(&place, "unix:/nowhere/berthd.sock");
    node.take_in();
    for stream in [3, 5, 0, u32::MAX] {
        node.wire().send(&framed(FROM_PLUGIN, &message(stream, 2, &[])));
        node.wire().send(&framed(TO_PLUGIN, &message(stream, 2, &[])));
    }
    assert_eq!(node.call_raw("Shutdown", Vec::new()), Ok(Vec::new()));
    assert!(plugin.lives());
}
