//! `LoadService`: what runs on this host.

use super::{Berth, Context, is_full};
use crate::convert::{Failure, Faults, Warnings, cpus, load, predict::known_enum, snapshot};
use berth_proto::v1::{self, load_service_server::LoadService, view};
use tokio_stream::Empty;
use tonic::{Request, Response, Status, Streaming};

#[tonic::async_trait]
impl LoadService for Berth {
    type WatchLoadStream = Empty<Result<v1::WatchLoadResponse, Status>>;

    async fn get_load(
        &self,
        request: Request<v1::GetLoadRequest>,
    ) -> Result<Response<v1::GetLoadResponse>, Status> {
        Ok(Response::new(self.0.load(&request.into_inner())?))
    }

    async fn watch_load(
        &self,
        _: Request<v1::WatchLoadRequest>,
    ) -> Result<Response<Self::WatchLoadStream>, Status> {
        Err(Failure::MethodNotServed("WatchLoad").into())
    }

    async fn report_load(
        &self,
        _: Request<Streaming<v1::ReportLoadRequest>>,
    ) -> Result<Response<v1::ReportLoadResponse>, Status> {
        Err(Failure::MethodNotServed("ReportLoad").into())
    }
}

impl Context {
    fn load(&self, request: &v1::GetLoadRequest) -> Result<v1::GetLoadResponse, Failure> {
        let (mut faults, mut warnings) = (Faults::default(), Warnings::default());
        known_enum("view", request.view, view::Value::try_from(request.view).is_ok(), &mut faults);
        let asked = cpus::set("cpus", &request.cpus, &mut faults);
        let snapshot = self.snapshot()?;
        let topology = &snapshot.machine.topology;
        let exist = asked.as_ref().is_none_or(|asked| cpus::exist("cpus", asked, topology, &mut faults));
        let online = match asked {
            Some(asked) if exist => cpus::online("cpus", &asked, topology, &mut warnings),
            _ => Ok(topology.online().clone()),
        };
        faults.none()?;
        let online = online?;
        snapshot::warn_of_load(&snapshot, &mut warnings);
        if is_full(request.view()) {
            let said =
                "This version reads neither the kernel's averages nor pinned tasks: the answer has neither.";
            warnings.add("AVERAGES_NOT_READ", said);
        }
        Ok(v1::GetLoadResponse {
            load: Some(load::to_wire(&snapshot, &online)),
            snapshot: Some(snapshot::to_wire(&snapshot)),
            warnings: warnings.into_wire(),
        })
    }
}
