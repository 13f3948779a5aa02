//! `Explain`: the domains, rules and settings that answers come from.

use super::super::{Context, pool::Stop};
use crate::{
    convert::{
        Failure, Faults, Warnings,
        explain::{self, Question},
        host, info, kernel, profiles, snapshot,
    },
    snapshot::Snapshot,
};
use berth_model::domains::chains;
use berth_proto::v1;

impl Context {
    pub(in crate::service) async fn explain(
        &self,
        mut request: v1::ExplainRequest,
    ) -> Result<v1::ExplainResponse, Failure> {
        explain::unserved(&request)?;
        let (mut faults, mut warnings) = (Faults::default(), Warnings::default());
        let asked_host = host::from_wire(request.host.take(), &mut faults, &mut warnings);
        let asked_kernel = kernel::from_wire(request.kernel.take(), &mut faults);
        let asked = explain::from_wire(&request, &mut faults);
        let Some(subject) = self.subject(asked_host, asked_kernel, &mut faults, &mut warnings).await? else {
            return Err(faults.none().err().unwrap_or_else(|| Failure::internal("no host, and no fault")));
        };
        let question = asked.about(&subject.snapshot, &mut faults, &mut warnings);
        faults.none()?;
        let question = question?;
        subject.modelled()?;
        snapshot::warn_of_hardware(&subject.snapshot, &mut warnings);
        snapshot::warn_of_cover(&subject.snapshot, &mut warnings);

        // The chains of the whole host are built anew: milliseconds on a large one.
        let compute = move |snapshot: &Snapshot, _: &Stop| answer(snapshot, &question);
        let answered = self.computed(&subject, false, compute).await?;
        let mut response = answered.ok_or_else(|| Failure::internal("no kernel"))?;
        let mut all = warnings.into_wire();
        all.append(&mut response.warnings);
        Ok(v1::ExplainResponse { warnings: all, ..response })
    }
}

/// The answer under the likeliest kernel, but for what is to be said of the host.
fn answer(snapshot: &Snapshot, question: &Question) -> Option<v1::ExplainResponse> {
    let machine = &*snapshot.machine;
    let profile = &machine.kernels.first()?.profile;
    let chains = chains(&machine.topology, profile, &question.cpus);
    let mut warnings = Warnings::default();
    let asked = question.cpus.len();
    let cpus = explain::to_wire(chains, asked, &machine.topology, profile, &question.allowed, &mut warnings);
    Some(v1::ExplainResponse {
        cpus,
        profile: Some(kernel::to_wire(&machine.choice)),
        rules: profiles::rules(profile),
        settings: snapshot.here.as_ref().map(|here| info::settings_to_wire(&here.settings)),
        snapshot: Some(snapshot::to_wire(snapshot)),
        warnings: warnings.into_wire(),
    })
}
