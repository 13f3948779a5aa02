//! `PlacementService`: where the kernel puts tasks, and where they should go.

mod advise;
mod explain;
mod keep;
mod origins;
mod predict;
mod search;
mod traced;

use super::{Berth, Context, pool::Stop, subject::Subject};
use crate::{auth::Role, convert::Failure, snapshot::Snapshot};
use berth_proto::v1::{self, placement_service_server::PlacementService};
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// Up to this many tasks make a small question.
const SHORT: u32 = 64;

impl Context {
    /// Computes an answer from the snapshot that it is about: a small one about this host as it is, of which one kernel
    /// is known, at once; any other on a thread of its own.
    async fn computed<T: Send + 'static>(
        &self,
        subject: &Subject,
        is_small: bool,
        compute: impl FnOnce(&Snapshot, &Stop) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let snapshot = Arc::clone(&subject.snapshot);
        let computing = self.metrics.computing.clone();
        let compute = move |snapshot: &Snapshot, stop: &Stop| computing.timed(|| compute(snapshot, stop));
        if is_small && !subject.is_transient && snapshot.machine.kernels.len() == 1 {
            return Ok(compute(&snapshot, &Stop::default()));
        }
        let pool = if subject.is_transient { &self.foreign } else { &self.long };
        pool.run(move |stop| compute(&snapshot, stop)).await
    }
}

#[tonic::async_trait]
impl PlacementService for Berth {
    async fn predict(
        &self,
        request: Request<v1::PredictRequest>,
    ) -> Result<Response<v1::PredictResponse>, Status> {
        let response = self.0.predict(request.into_inner()).await?;
        self.0.metrics.placement.predicted(&response);
        Ok(Response::new(response))
    }

    async fn advise(
        &self,
        request: Request<v1::AdviseRequest>,
    ) -> Result<Response<v1::AdviseResponse>, Status> {
        let caller = self.0.caller(&request);
        let request = request.into_inner();
        let answer = match request.hold {
            Some(_) => {
                let answer = match caller.peer().require(Role::Hold, "Advise with `hold`") {
                    Ok(()) => self.0.advise_and_keep(request, caller).await,
                    Err(refused) => Err(refused),
                };
                self.0.count_refusal(answer)?
            }
            None => self.0.advise(request, caller).await?,
        };
        self.0.metrics.placement.advised(&answer);
        Ok(Response::new(answer))
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        Ok(Response::new(self.0.explain(request.into_inner()).await?))
    }

    async fn verify(
        &self,
        request: Request<v1::VerifyRequest>,
    ) -> Result<Response<v1::VerifyResponse>, Status> {
        let caller = self.0.caller(&request);
        Ok(Response::new(self.0.verify(request.into_inner(), caller).await?))
    }
}
