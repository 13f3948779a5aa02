//! Clients one version older or newer: what they do not know of each other is left out, and never misread.

use crate::support::{Served, placement};
use berth_proto::v1::{self, policy, verdict};
use tonic::{Code, Request, Status, transport::Channel};
use tonic_types::StatusExt;

/// `PredictRequest` of a newer client.
#[derive(Clone, PartialEq, prost::Message)]
struct NewerRequest {
    #[prost(uint32, tag = "1")]
    tasks: u32,
    #[prost(message, optional, tag = "5")]
    host: Option<NewerHost>,
    #[prost(string, tag = "4000")]
    added: String,
    #[prost(message, repeated, tag = "4001")]
    added_too: Vec<NewerHost>,
}

/// `Host` of a newer client.
#[derive(Clone, PartialEq, prost::Message)]
struct NewerHost {
    #[prost(string, tag = "2")]
    synthetic: String,
    #[prost(bytes, tag = "4000")]
    added: Vec<u8>,
}

/// `PredictResponse` of an older client, which knows two of its fields.
#[derive(Clone, PartialEq, prost::Message)]
struct OlderResponse {
    #[prost(enumeration = "verdict::Value", tag = "1")]
    verdict: i32,
    #[prost(string, tag = "5")]
    allowed: String,
}

/// Calls a method with messages of another contract.
async fn call<Q, A>(channel: &Channel, method: &'static str, request: Q) -> Result<A, Status>
where
    Q: prost::Message + Default + 'static,
    A: prost::Message + Default + 'static,
{
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<Q, A>::default();
    Ok(client.unary(Request::new(request), method.parse().unwrap(), codec).await?.into_inner())
}

const PREDICT: &str = "/berth.v1.PlacementService/Predict";
const DESCRIBED: [&str; 4] = ["--topology-synthetic", "pack:1 [numa] core:4 pu:1", "--kernel", "6.12.95"];

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_client() {
    let served = Served::start(&DESCRIBED).await;
    for (_, channel) in served.channels().await {
        let request = NewerRequest {
            tasks: 2,
            host: Some(NewerHost { added: vec![7; 10], ..Default::default() }),
            added: "what this server has never heard of".to_owned(),
            added_too: vec![NewerHost::default(); 3],
        };
        let newer: v1::PredictResponse = call(&channel, PREDICT, request).await.unwrap();
        let plain = v1::PredictRequest { tasks: 2, ..Default::default() };
        assert_eq!(newer, placement(&channel).predict(plain).await.unwrap().into_inner());

        // A method and a value of a list are not left out in silence: the answer would be another one.
        let unknown = call::<v1::PredictRequest, v1::PredictResponse>;
        let refused = unknown(&channel, "/berth.v1.PlacementService/Rehearse", Default::default()).await;
        assert_eq!(refused.unwrap_err().code(), Code::Unimplemented);
        let policy = v1::AdviseRequest { tasks: 2, policy: 4000, ..Default::default() };
        assert!(policy::Value::try_from(policy.policy).is_err());
        let refused = placement(&channel).advise(policy).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        let details = refused.get_error_details();
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, "policy");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_client() {
    let served = Served::start(&DESCRIBED).await;
    for (_, channel) in served.channels().await {
        // It sends what it knows, and finds what it knows.
        let request = NewerRequest { tasks: 2, ..Default::default() };
        let answer: OlderResponse = call(&channel, PREDICT, request).await.unwrap();
        assert_eq!((answer.verdict(), answer.allowed.as_str()), (verdict::Value::NoPileUp, "0-3"));
        // What it does not send and is needed is named.
        let refused: Result<OlderResponse, _> = call(&channel, PREDICT, NewerRequest::default()).await;
        let refused = refused.unwrap_err();
        let details = refused.get_error_details();
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, "tasks", "{refused:?}");
    }
}
