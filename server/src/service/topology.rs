//! `TopologyService`: the hardware as the scheduler sees it.

use super::{
    Berth, Context, is_full,
    watch::{Missed, Watched},
};
use crate::{
    convert::{
        Failure, Faults, Warnings, host, kernel::KernelAsked, predict::known_enum, snapshot, topology,
        unserved::Unserved,
    },
    snapshot::Snapshot,
};
use berth_proto::v1::{self, topology_service_server::TopologyService, view};
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl TopologyService for Berth {
    type WatchTopologyStream = Watched<v1::WatchTopologyResponse>;

    async fn get_topology(
        &self,
        request: Request<v1::GetTopologyRequest>,
    ) -> Result<Response<v1::GetTopologyResponse>, Status> {
        Ok(Response::new(self.0.topology(request.into_inner()).await?))
    }

    async fn watch_topology(
        &self,
        request: Request<v1::WatchTopologyRequest>,
    ) -> Result<Response<Self::WatchTopologyStream>, Status> {
        Ok(Response::new(self.0.watch_topology(request.into_inner())?))
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
        let subject = self.subject(asked, KernelAsked::default(), &mut faults, &mut warnings).await?;
        faults.none()?;
        let subject = subject.ok_or_else(|| Failure::internal("no host, and no fault"))?;
        let full = is_full(request.view());
        warn(&subject.snapshot, full, &mut warnings);
        Ok(v1::GetTopologyResponse {
            topology: Some(topology::to_wire(&subject.snapshot, full)),
            snapshot: Some(snapshot::to_wire(&subject.snapshot)),
            warnings: warnings.into_wire(),
        })
    }

    fn watch_topology(
        &self,
        request: v1::WatchTopologyRequest,
    ) -> Result<Watched<v1::WatchTopologyResponse>, Failure> {
        let mut faults = Faults::default();
        known_enum("view", request.view, view::Value::try_from(request.view).is_ok(), &mut faults);
        faults.none()?;
        let full = is_full(request.view());
        let (mut missed, mut is_first) = (Missed::default(), true);
        Ok(self.watch(move |snapshot| {
            if !missed.see(snapshot.topology_generation) {
                return None;
            }
            let mut warnings = Warnings::default();
            warn(snapshot, full, &mut warnings);
            let changes = if std::mem::take(&mut is_first) { Vec::new() } else { snapshot.changes.to_vec() };
            Some(v1::WatchTopologyResponse {
                topology: Some(topology::to_wire(snapshot, full)),
                generation: snapshot.topology_generation,
                changes,
                dropped: missed.take(),
                warnings: warnings.into_wire(),
            })
        }))
    }
}

fn warn(snapshot: &Snapshot, full: bool, warnings: &mut Warnings) {
    snapshot::warn_of_hardware(snapshot, warnings);
    if full {
        warnings.add("DEVICES_NOT_READ", "This version does not read devices: `devices` says nothing.");
    }
}
