//! `TopologyService`: the hardware as the scheduler sees it.

use super::{Berth, Context, is_full};
use crate::convert::{
    Failure, Faults, Warnings, host, predict::known_enum, snapshot, topology, unserved::Unserved,
};
use berth_proto::v1::{self, topology_service_server::TopologyService, view};
use tokio_stream::Empty;
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl TopologyService for Berth {
    type WatchTopologyStream = Empty<Result<v1::WatchTopologyResponse, Status>>;

    async fn get_topology(
        &self,
        request: Request<v1::GetTopologyRequest>,
    ) -> Result<Response<v1::GetTopologyResponse>, Status> {
        Ok(Response::new(self.0.topology(request.into_inner()).await?))
    }

    async fn watch_topology(
        &self,
        _: Request<v1::WatchTopologyRequest>,
    ) -> Result<Response<Self::WatchTopologyStream>, Status> {
        Err(Failure::MethodNotServed("WatchTopology").into())
    }
}

impl Context {
    async fn topology(
        &self,
        mut request: v1::GetTopologyRequest,
    ) -> Result<v1::GetTopologyResponse, Failure> {
        let mut unserved = Unserved::default();
        host::unserved(request.host.as_ref(), &mut unserved);
        unserved.none()?;
        let (mut faults, mut warnings) = (Faults::default(), Warnings::default());
        known_enum("view", request.view, view::Value::try_from(request.view).is_ok(), &mut faults);
        let asked = host::from_wire(request.host.take(), &mut faults, &mut warnings);
        let subject = self.subject(asked, None, &mut faults, &mut warnings).await?;
        faults.none()?;
        let subject = subject.ok_or_else(|| Failure::internal("no host, and no fault"))?;
        let full = is_full(request.view());
        snapshot::warn_of_hardware(&subject.snapshot, &mut warnings);
        if full {
            warnings.add("DEVICES_NOT_READ", "This version does not read devices: `devices` says nothing.");
        }
        Ok(v1::GetTopologyResponse {
            topology: Some(topology::to_wire(&subject.snapshot, full)),
            snapshot: Some(snapshot::to_wire(&subject.snapshot)),
            warnings: warnings.into_wire(),
        })
    }
}
