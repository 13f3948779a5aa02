//! `LoadService`: what runs on this host.

use super::{
    Berth, Context, is_full,
    watch::{Missed, Watched},
};
use crate::{
    convert::{Failure, Faults, Warnings, cpus, load, predict::known_enum, report, snapshot, time},
    snapshot::Snapshot,
};
use berth_model::cpuset::CpuSet;
use berth_proto::v1::{self, load_service_server::LoadService, view};
use std::time::{Duration, Instant};
use tonic::{Request, Response, Status, Streaming};

#[tonic::async_trait]
impl LoadService for Berth {
    type WatchLoadStream = Watched<v1::WatchLoadResponse>;

    async fn get_load(
        &self,
        request: Request<v1::GetLoadRequest>,
    ) -> Result<Response<v1::GetLoadResponse>, Status> {
        Ok(Response::new(self.0.load(&request.into_inner())?))
    }

    async fn watch_load(
        &self,
        request: Request<v1::WatchLoadRequest>,
    ) -> Result<Response<Self::WatchLoadStream>, Status> {
        Ok(Response::new(self.0.watch_load(request.into_inner())?))
    }

    async fn report_load(
        &self,
        request: Request<Streaming<v1::ReportLoadRequest>>,
    ) -> Result<Response<v1::ReportLoadResponse>, Status> {
        let (mut stream, mut told) = (request.into_inner(), v1::ReportLoadResponse::default());
        let mut agent = String::new();
        while let Some(message) = stream.message().await? {
            match report::from_wire(message, &mut agent, &*self.0.snapshot()?)? {
                Some(report) => {
                    self.0.publisher.report(report).await;
                    told.accepted += 1;
                }
                None => told.too_old += 1,
            }
        }
        Ok(Response::new(told))
    }
}

/// The CPUs that a request is about, and how much it wants to know of them.
struct Asked {
    /// Nothing: every CPU that is online.
    cpus: Option<CpuSet>,
    full: bool,
}

impl Asked {
    fn from_wire(cpus: &str, view: i32, faults: &mut Faults) -> Self {
        known_enum("view", view, view::Value::try_from(view).is_ok(), faults);
        let full = view::Value::try_from(view).is_ok_and(is_full);
        Self { cpus: cpus::set("cpus", cpus, faults), full }
    }

    /// Those of its CPUs that are online.
    ///
    /// # Errors
    ///
    /// If none is.
    fn online(
        &self,
        snapshot: &Snapshot,
        faults: &mut Faults,
        warnings: &mut Warnings,
    ) -> Result<CpuSet, Failure> {
        let topology = &snapshot.machine.topology;
        match &self.cpus {
            Some(asked) if cpus::exist("cpus", asked, topology, faults) => {
                cpus::online("cpus", asked, topology, warnings)
            }
            _ => Ok(topology.online().clone()),
        }
    }

    fn warn(&self, snapshot: &Snapshot, online: &CpuSet, warnings: &mut Warnings) {
        load::warn(snapshot, online, warnings);
        if self.full {
            let said = "This version does not read the kernel's averages: the answer has none.";
            warnings.add("AVERAGES_NOT_READ", said);
        }
    }
}

impl Context {
    fn load(&self, request: &v1::GetLoadRequest) -> Result<v1::GetLoadResponse, Failure> {
        let (mut faults, mut warnings) = (Faults::default(), Warnings::default());
        let asked = Asked::from_wire(&request.cpus, request.view, &mut faults);
        let snapshot = self.snapshot()?;
        let online = asked.online(&snapshot, &mut faults, &mut warnings);
        faults.none()?;
        let online = online?;
        asked.warn(&snapshot, &online, &mut warnings);
        Ok(v1::GetLoadResponse {
            load: Some(load::to_wire(&snapshot, &online, asked.full)),
            snapshot: Some(snapshot::to_wire(&snapshot)),
            warnings: warnings.into_wire(),
        })
    }

    fn watch_load(&self, request: v1::WatchLoadRequest) -> Result<Watched<v1::WatchLoadResponse>, Failure> {
        let mut faults = Faults::default();
        let asked = Asked::from_wire(&request.cpus, request.view, &mut faults);
        let every = request.every.and_then(|every| faults.take("every", time::duration_from_wire(every)));
        let online = asked.online(&*self.snapshot()?, &mut faults, &mut Warnings::default());
        faults.none()?;
        online?;
        let mut pace = Pace { every: every.unwrap_or_default(), ..Pace::default() };
        Ok(self.watch(move |snapshot| {
            let dropped = pace.tell(snapshot)?;
            let mut warnings = Warnings::default();
            // All may be offline by now: then there is nothing to tell of them.
            let online = asked.online(snapshot, &mut Faults::default(), &mut warnings).unwrap_or_default();
            asked.warn(snapshot, &online, &mut warnings);
            Some(v1::WatchLoadResponse {
                load: Some(load::to_wire(snapshot, &online, asked.full)),
                snapshot: Some(snapshot::to_wire(snapshot)),
                dropped,
                warnings: warnings.into_wire(),
            })
        }))
    }
}

/// Which snapshots a watcher of the load is told of: those with another sample, or whose sample has grown too old.
#[derive(Default)]
struct Pace {
    every: Duration,
    missed: Missed,
    told_at: Option<Instant>,
    was_stale: bool,
}

impl Pace {
    /// Whether the watcher is told of this one, and how many it missed before.
    fn tell(&mut self, snapshot: &Snapshot) -> Option<u64> {
        let (generation, stale) =
            snapshot.load.measured().map_or((0, false), |load| (load.generation, load.stale));
        let is_new = self.missed.see(generation) || stale != self.was_stale;
        let now = Instant::now();
        let is_due = self.told_at.is_none_or(|at| now.duration_since(at) >= self.every);
        if !is_new || !is_due {
            return None;
        }
        (self.told_at, self.was_stale) = (Some(now), stale);
        Some(self.missed.take())
    }
}
