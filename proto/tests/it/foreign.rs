//! What others speak is on the wire as they have it.

use std::path::Path;

use berth_proto::kubelet::{
    device_plugin::{
        ContainerAllocateResponse, ContainerPreferredAllocationRequest, Device, NumaNode, RegisterRequest,
        TopologyInfo, device_plugin_server, registration_server,
    },
    pod_resources::{AllocatableResourcesResponse, ContainerResources, pod_resources_lister_server},
};
use prost::Message as _;
use prost_reflect::DescriptorPool;

/// Files of others' packages, and the packages.
pub(crate) const FILES: [(&str, &str); 4] = [
    ("kubelet/device_plugin.proto", "v1beta1"),
    ("kubelet/pod_resources.proto", "v1"),
    ("nri/nri.proto", "nri.pkg.api.v1alpha1"),
    ("nri/ttrpc.proto", "ttrpc"),
];

/// The descriptors of one of the files.
pub(crate) fn pool(file: &str) -> DescriptorPool {
    let mut compiler = protox::Compiler::new([Path::new(env!("CARGO_MANIFEST_DIR"))]).expect("it is there");
    compiler.include_imports(true).include_source_info(true).open_file(file).expect("it compiles");
    DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice()).expect("it is complete")
}

#[test]
fn services_have_the_kubelets_names() {
    assert_eq!(device_plugin_server::SERVICE_NAME, "v1beta1.DevicePlugin");
    assert_eq!(pod_resources_lister_server::SERVICE_NAME, "v1.PodResourcesLister");
    assert_eq!(registration_server::SERVICE_NAME, "v1beta1.Registration");
    let names: Vec<_> = FILES
        .iter()
        .flat_map(|(file, _)| pool(file).services().map(|s| s.full_name().to_owned()).collect::<Vec<_>>())
        .collect();
    assert_eq!(names, ["v1beta1.Registration", "v1beta1.DevicePlugin", "v1.PodResourcesLister"]);
}

/// Bytes as a kubelet's own library writes them, put together by hand.
#[test]
fn fields_have_the_kubelets_numbers() {
    let device = Device {
        id: "core-1".to_owned(),
        health: "Healthy".to_owned(),
        topology: Some(TopologyInfo { nodes: vec![NumaNode { id: 3 }] }),
    };
    assert_eq!(device.encode_to_vec(), b"\x0a\x06core-1\x12\x07Healthy\x1a\x04\x0a\x02\x08\x03");
    let register = RegisterRequest::decode(&b"\x0a\x07v1beta1\x12\x01s\x1a\x03a/b\x22\x02\x10\x01"[..]);
    let register = register.expect("it is one");
    assert_eq!((&*register.version, &*register.endpoint, &*register.resource_name), ("v1beta1", "s", "a/b"));
    assert!(register.options.is_some_and(|options| options.get_preferred_allocation_available));
    let asked = ContainerPreferredAllocationRequest::decode(&b"\x0a\x01a\x0a\x01b\x12\x01a\x18\x02"[..]);
    let asked = asked.expect("it is one");
    assert_eq!((asked.available_device_i_ds.len(), asked.must_include_device_i_ds.len()), (2, 1));
    assert_eq!(asked.allocation_size, 2);
    let mut given = ContainerAllocateResponse::default();
    given.envs.insert("E".to_owned(), "1".to_owned());
    given.annotations.insert("a".to_owned(), "2".to_owned());
    assert_eq!(given.encode_to_vec(), b"\x0a\x06\x0a\x01E\x12\x011\x22\x06\x0a\x01a\x12\x012");

    // Numbers come packed from some and one by one from others; fields of newer kubelets are skipped.
    for cpus in [&b"\x1a\x02\x05\x04"[..], b"\x18\x05\x18\x04", b"\x18\x05\x18\x04\x7a\x01x"] {
        let bytes = [b"\x0a\x01c\x12\x0b\x0a\x03a/b\x12\x01x\x12\x01y", cpus].concat();
        let container = ContainerResources::decode(&*bytes).expect("it is one");
        assert_eq!((&*container.name, container.devices[0].device_ids.len()), ("c", 2));
        assert_eq!(container.cpu_ids, [5, 4]);
    }
    let told = AllocatableResourcesResponse::decode(&b"\x12\x02\x01\x02"[..]).expect("it is one");
    assert_eq!(told.cpu_ids, [1, 2]);
}
