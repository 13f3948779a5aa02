//! What reflection needs: sets that are complete together, with the types of error details in them.

use std::collections::BTreeSet;

use berth_proto::FILE_DESCRIPTOR_SETS;
use prost::Message as _;
use prost_types::FileDescriptorSet;

use crate::pool;

/// The services that clients can call.
const SERVICES: [&str; 5] = [
    "berth.v1.HoldService",
    "berth.v1.InfoService",
    "berth.v1.LoadService",
    "berth.v1.PlacementService",
    "berth.v1.TopologyService",
];

/// The error details that the server sends.
const DETAILS: [&str; 6] =
    ["BadRequest", "ErrorInfo", "PreconditionFailure", "QuotaFailure", "ResourceInfo", "RetryInfo"];

#[test]
fn every_service_is_described() {
    let services: BTreeSet<_> = pool().services().map(|service| service.full_name().to_owned()).collect();
    assert_eq!(services, SERVICES.map(String::from).into());
}

#[test]
fn every_import_is_in_the_sets() {
    let files: Vec<_> = sets().into_iter().flat_map(|set| set.file).collect();
    let names: BTreeSet<_> = files.iter().map(|file| file.name()).collect();
    let missing: Vec<_> = files
        .iter()
        .flat_map(|file| &file.dependency)
        .filter(|import| !names.contains(import.as_str()))
        .collect();
    assert!(missing.is_empty(), "a client cannot resolve {missing:?}");
}

#[test]
fn error_details_are_in_the_sets() {
    let messages: BTreeSet<_> = sets()
        .iter()
        .flat_map(|set| &set.file)
        .filter(|file| file.package() == "google.rpc")
        .flat_map(|file| &file.message_type)
        .map(|message| message.name().to_owned())
        .collect();
    for detail in DETAILS.into_iter().chain(["Status"]) {
        assert!(messages.contains(detail), "google.rpc.{detail} in {messages:?}");
    }
}

#[test]
fn comments_are_described_too() {
    let set = FileDescriptorSet::decode(berth_proto::FILE_DESCRIPTOR_SET).expect("it decodes");
    let bare: Vec<_> = set
        .file
        .iter()
        .filter(|file| file.package() == "berth.v1" && file.source_code_info.is_none())
        .map(|file| file.name())
        .collect();
    assert!(bare.is_empty(), "`grpcurl describe` shows no comments of {bare:?}");
}

fn sets() -> Vec<FileDescriptorSet> {
    FILE_DESCRIPTOR_SETS.map(|set| FileDescriptorSet::decode(set).expect("it decodes")).into()
}
