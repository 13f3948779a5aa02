//! `InfoService`: what the server is, and which kernels it knows.

use super::{Berth, Context};
use crate::{
    auth::{Peer, Role},
    convert::{Failure, Faults, info, kernel, profiles, snapshot, time},
    snapshot::Choice,
};
use berth_model::profile::{Profile, all};
use berth_proto::v1::{self, info_service_server::InfoService};
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl InfoService for Berth {
    async fn get_info(
        &self,
        request: Request<v1::GetInfoRequest>,
    ) -> Result<Response<v1::GetInfoResponse>, Status> {
        Ok(Response::new(self.0.info(Peer::of(&request).role())?))
    }

    async fn list_profiles(
        &self,
        request: Request<v1::ListProfilesRequest>,
    ) -> Result<Response<v1::ListProfilesResponse>, Status> {
        Ok(Response::new(list(request.into_inner())?))
    }
}

impl Context {
    /// Answers before the first snapshot too, with what is known by then.
    fn info(&self, role: Role) -> Result<v1::GetInfoResponse, Failure> {
        let snapshot = self.current.snapshot();
        let here = snapshot.as_ref().and_then(|snapshot| snapshot.here.as_ref());
        let machine = snapshot.as_ref().map(|snapshot| &snapshot.machine);
        Ok(v1::GetInfoResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("BERTH_COMMIT").unwrap_or_default().to_owned(),
            hwloc_version: self.reader.hwloc_version().to_owned(),
            started_at: Some(time::moment_to_wire(self.started_at)),
            kernel: here.zip(machine).map(|(here, machine)| info::kernel_to_wire(here, machine)),
            profile: machine.map(|machine| kernel::to_wire(&machine.choice)),
            settings: here.map(|here| info::settings_to_wire(&here.settings)),
            limits: Some(info::limits(
                &self.live.now(),
                machine.map_or(0, |machine| machine.topology.online().len()),
            )),
            degraded: self.degraded(snapshot.as_deref()),
            snapshot: snapshot.as_ref().map(|snapshot| snapshot::to_wire(snapshot)),
            role: role.to_wire().into(),
            host_name: here.map(|here| here.kernel.host_name.clone()).unwrap_or_default(),
        })
    }
}

fn list(request: v1::ListProfilesRequest) -> Result<v1::ListProfilesResponse, Failure> {
    let mut faults = Faults::default();
    let is_asked = request.kernel.is_some();
    let asked = kernel::from_wire(request.kernel, &mut faults);
    faults.none()?;
    let any = || Choice::nothing_told("No kernel was named: every released one is possible.".to_owned());
    let choice = if is_asked { Some(asked.on(any)?) } else { None };
    let listed: Vec<&Profile> = match &choice {
        Some(choice) => choice.profiles.iter().collect(),
        None => all().iter().filter(|profile| request.all || profiles::is_of_a_kernel(profile)).collect(),
    };
    Ok(v1::ListProfilesResponse {
        profiles: listed.into_iter().map(profiles::to_wire).collect(),
        choice: choice.as_ref().map(kernel::to_wire),
    })
}
