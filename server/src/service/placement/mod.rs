//! `PlacementService`: where the kernel puts tasks, and where they should go.

mod advise;
mod origins;
mod predict;
mod search;

use super::Berth;
use crate::convert::Failure;
use berth_proto::v1::{self, placement_service_server::PlacementService};
use tonic::{Request, Response, Status};

/// Up to this many tasks on this host as it is are answered at once; more on a thread of their own.
const SHORT: u32 = 64;

#[tonic::async_trait]
impl PlacementService for Berth {
    async fn predict(
        &self,
        request: Request<v1::PredictRequest>,
    ) -> Result<Response<v1::PredictResponse>, Status> {
        Ok(Response::new(self.0.predict(request.into_inner()).await?))
    }

    async fn advise(
        &self,
        request: Request<v1::AdviseRequest>,
    ) -> Result<Response<v1::AdviseResponse>, Status> {
        Ok(Response::new(self.0.advise(request.into_inner()).await?))
    }

    async fn explain(&self, _: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        Err(Failure::MethodNotServed("Explain").into())
    }

    async fn verify(&self, _: Request<v1::VerifyRequest>) -> Result<Response<v1::VerifyResponse>, Status> {
        Err(Failure::MethodNotServed("Verify").into())
    }
}
