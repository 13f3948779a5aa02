//! Reflection v1 and v1alpha, with the types of error details.

use crate::support::Served;
use tonic_reflection::pb::{v1, v1alpha};

const SERVICES: [&str; 8] = [
    "berth.v1.HoldService",
    "berth.v1.InfoService",
    "berth.v1.LoadService",
    "berth.v1.PlacementService",
    "berth.v1.TopologyService",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// Types that a client needs to show what an error says.
const DETAILS: [&str; 5] = [
    "google.rpc.BadRequest",
    "google.rpc.ErrorInfo",
    "google.rpc.PreconditionFailure",
    "google.rpc.RetryInfo",
    "google.protobuf.Any",
];

macro_rules! asked {
    ($version:ident, $channel:expr, $request:expr) => {{
        let mut client = $version::server_reflection_client::ServerReflectionClient::new($channel.clone());
        let request =
            $version::ServerReflectionRequest { host: String::new(), message_request: Some($request) };
        let answers = client.server_reflection_info(tokio_stream::once(request)).await.unwrap();
        answers.into_inner().message().await.unwrap().unwrap().message_response.unwrap()
    }};
}

macro_rules! reflects {
    ($version:ident, $channel:expr) => {{
        use $version::{
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        };
        let list = asked!($version, $channel, MessageRequest::ListServices(String::new()));
        let MessageResponse::ListServicesResponse(list) = list else { panic!("{list:?}") };
        let names: Vec<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
        let version = concat!("grpc.reflection.", stringify!($version), ".ServerReflection");
        for name in SERVICES.iter().filter(|name| !name.starts_with("grpc.reflection") || **name == version) {
            assert!(names.contains(name), "{name} is not among {names:?}");
        }
        for name in DETAILS.iter().chain(&SERVICES[..5]) {
            let file = asked!($version, $channel, MessageRequest::FileContainingSymbol((*name).to_owned()));
            assert!(matches!(file, MessageResponse::FileDescriptorResponse(_)), "{name}: {file:?}");
        }
    }};
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_list_the_services_and_know_the_details() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        reflects!(v1, channel);
        reflects!(v1alpha, channel);
    }
}
