//! `HoldService`: not served yet.

use super::Berth;
use crate::convert::Failure;
use berth_proto::v1::{self, hold_service_server::HoldService};
use tokio_stream::Empty;
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl HoldService for Berth {
    type WatchHoldsStream = Empty<Result<v1::WatchHoldsResponse, Status>>;

    async fn create_hold(
        &self,
        _: Request<v1::CreateHoldRequest>,
    ) -> Result<Response<v1::CreateHoldResponse>, Status> {
        Err(Failure::MethodNotServed("CreateHold").into())
    }

    async fn list_holds(
        &self,
        _: Request<v1::ListHoldsRequest>,
    ) -> Result<Response<v1::ListHoldsResponse>, Status> {
        Err(Failure::MethodNotServed("ListHolds").into())
    }

    async fn get_hold(
        &self,
        _: Request<v1::GetHoldRequest>,
    ) -> Result<Response<v1::GetHoldResponse>, Status> {
        Err(Failure::MethodNotServed("GetHold").into())
    }

    async fn renew_hold(
        &self,
        _: Request<v1::RenewHoldRequest>,
    ) -> Result<Response<v1::RenewHoldResponse>, Status> {
        Err(Failure::MethodNotServed("RenewHold").into())
    }

    async fn release_hold(
        &self,
        _: Request<v1::ReleaseHoldRequest>,
    ) -> Result<Response<v1::ReleaseHoldResponse>, Status> {
        Err(Failure::MethodNotServed("ReleaseHold").into())
    }

    async fn adopt_hold(
        &self,
        _: Request<v1::AdoptHoldRequest>,
    ) -> Result<Response<v1::AdoptHoldResponse>, Status> {
        Err(Failure::MethodNotServed("AdoptHold").into())
    }

    async fn watch_holds(
        &self,
        _: Request<v1::WatchHoldsRequest>,
    ) -> Result<Response<Self::WatchHoldsStream>, Status> {
        Err(Failure::MethodNotServed("WatchHolds").into())
    }
}
