//! `Advise` with `hold`: decided and kept in one step.

use super::{
    super::{
        Context,
        caller::Caller,
        kept::{self, Before, Content},
        pool::Stop,
    },
    SHORT,
    advise::{Answered, answer_all},
};
use crate::{
    auth::Quotas,
    convert::{
        Failure, Faults, Warnings, advice,
        advise::{self, Asked},
        hold,
        hold_spec::Spec,
        host, kernel, snapshot,
    },
    ledger::Desk,
    snapshot::{Machine, Snapshot},
};
use berth_model::{cpuset::CpuSet, hold::Mode};
use berth_proto::v1::{self, view};
use prost::Message;
use std::sync::Arc;

/// How often what takes long is computed. It never is where the ledger waits for it: others' holds would wait too.
const ATTEMPTS: u32 = 8;

/// All that decides, but for the snapshot.
#[derive(Debug)]
struct Decision {
    asked: Asked,
    expected: snapshot::Expected,
    spec: Spec,
    caller: Caller,
    /// The CPUs that the caller may hold, if these are not all.
    own: Option<CpuSet>,
    quotas: Quotas,
    content: Content,
    /// This host under another kernel, if one was named.
    machine: Option<Arc<Machine>>,
    warnings: Vec<v1::Warning>,
}

impl Context {
    pub(in crate::service) async fn advise_and_keep(
        &self,
        mut request: v1::AdviseRequest,
        caller: Caller,
    ) -> Result<v1::AdviseResponse, Failure> {
        advise::unserved(&request)?;
        let content = content(&request);
        let (mut faults, mut warnings) = (Faults::default(), Warnings::default());
        if request.host.as_ref().is_some_and(|host| *host != v1::Host::default()) {
            faults.add("hold", "CPUs can be kept on this host only, and as it is; leave `host` out");
        }
        let spec = self.spec(request.hold.take().unwrap_or_default(), &caller, &mut faults)?;
        let asked_host = host::from_wire(None, &mut faults, &mut warnings);
        let asked_kernel = kernel::from_wire(request.kernel.take(), &mut faults);
        let expected = snapshot::Expected::from_wire(request.expect, &mut faults);
        let asked = advise::from_wire(&request, &mut faults);
        let subject = self.subject(asked_host, asked_kernel, &mut faults, &mut warnings).await?;
        if let Some(subject) = &subject {
            // All that is wrong is told at once.
            let _ = asked.clone().about(&subject.snapshot, &mut faults, &mut Warnings::default());
        }
        faults.none()?;
        let subject = subject.ok_or_else(|| Failure::internal("no host, and no fault"))?;
        subject.modelled()?;
        let is_short =
            asked.is_short(SHORT) && !subject.is_transient && subject.snapshot.machine.kernels.len() == 1;
        let decision = Arc::new(Decision {
            asked,
            expected,
            spec,
            own: caller.own_cpus()?,
            caller,
            quotas: self.quotas(),
            content,
            machine: subject.is_transient.then(|| Arc::clone(&subject.snapshot.machine)),
            warnings: warnings.into_wire(),
        });
        // A herd that asks the same costs one decision: the others wait for it.
        let is_known = || self.is_known(&decision.spec);
        let _turn = if is_short || decision.spec.request_id.is_empty() || is_known() {
            None
        } else {
            let turn = self.repeats.turn(decision.spec.uid.0, &decision.spec.request_id).await;
            Some(turn).filter(|_| !is_known())
        };
        // One at a time: each that is kept would make the others begin anew.
        let _alone = if is_short { None } else { Some(self.deciding.lock().await) };
        let stop = Stop::default();
        let _call = stop.with_caller();
        for attempt in 1.. {
            // What takes long is computed before it is its turn. If the holds have not changed when it is, it stands.
            let early = if is_short || is_known() {
                None
            } else {
                let snapshot = Arc::new(decision.about((*self.snapshot()?).clone()));
                let decision = Arc::clone(&decision);
                let computing = self.metrics.computing.clone();
                let compute = move |stop: &Stop| {
                    let answered = computing.timed(|| decision.answer(&snapshot, stop));
                    (snapshot, answered)
                };
                Some(self.long.run(compute).await?)
            };
            let (decision, computing, stop) =
                (Arc::clone(&decision), self.metrics.computing.clone(), stop.clone());
            let is_last = attempt == ATTEMPTS;
            let act =
                move |desk: &mut Desk<'_>| computing.timed(|| decision.keep(desk, early, is_last, &stop));
            if let Some(kept) = self.holds.act(act).await? {
                return Ok(kept);
            }
        }
        Err(Failure::internal("no attempt was the last"))
    }

    /// Whether this request was decided before.
    fn is_known(&self, spec: &Spec) -> bool {
        self.holds.published().borrow().book.requested(spec.uid, &spec.request_id).is_some()
    }
}

impl Decision {
    fn answer(&self, snapshot: &Snapshot, stop: &Stop) -> Result<Answered, Failure> {
        let may_see = |uid| self.caller.may_see(uid);
        let keeping = Keeping {
            mode: self.spec.mode,
            own: self.own.as_ref(),
            repeatable: !self.spec.request_id.is_empty(),
        };
        answer_all(&self.asked, self.expected, Some(keeping), snapshot, may_see, stop)
    }

    /// The snapshot with the machine that is asked about.
    fn about(&self, newest: Snapshot) -> Snapshot {
        let machine = self.machine.clone().unwrap_or_else(|| Arc::clone(&newest.machine));
        Snapshot { machine, ..newest }
    }

    /// Nothing if it was answered early, the holds have changed since, and it may be answered early once more.
    fn keep(
        &self,
        desk: &mut Desk<'_>,
        early: Option<(Arc<Snapshot>, Result<Answered, Failure>)>,
        is_last: bool,
        stop: &Stop,
    ) -> Result<Option<v1::AdviseResponse>, Failure> {
        if let Some(Before { hold, answer }) = kept::made_before(desk, &self.spec, &self.content)? {
            let plain = v1::AdviseResponse::decode(answer.as_slice()).map_err(Failure::internal)?;
            let (only_task, full) = self.asked.wishes();
            let response = advice::again(plain, only_task, full);
            let hold = Some(hold::to_wire(&hold, &desk.snapshot()?));
            return Ok(Some(v1::AdviseResponse { hold, ..response }));
        }
        let snapshot = self.about(desk.snapshot()?);
        let answered = match early {
            None => self.answer(&snapshot, stop)?,
            Some((before, answered)) if before.decides_as(&snapshot) => answered?,
            Some((before, _)) if is_last => {
                let (expected, now) = (before.holds.generation(), snapshot.holds.generation());
                return Err(Failure::Moved { what: "holds", expected, now });
            }
            Some(_) => return Ok(None),
        };
        let Answered { mut response, parts, plain } = answered;
        let mut warnings = self.warnings.clone();
        warnings.append(&mut response.warnings);
        let plain =
            plain.map(|plain| v1::AdviseResponse { warnings: warnings.clone(), ..plain }.encode_to_vec());
        let plain = plain.unwrap_or_default();
        let request = (&self.content, plain.as_slice());
        let hold = kept::make(desk, &self.spec, parts, false, (&self.caller, self.quotas), request)?;
        let hold = hold::to_wire(&hold, &desk.snapshot()?);
        Ok(Some(v1::AdviseResponse { hold: Some(hold), warnings, ..response }))
    }
}

/// Two requests with the same id are the same one if they are equal but for how much is to be told.
fn content(request: &v1::AdviseRequest) -> Content {
    let same = v1::AdviseRequest {
        only_task: None,
        view: view::Value::default().into(),
        trace: false,
        formats: Vec::new(),
        slurm_cpus: Vec::new(),
        expect: None,
        ..request.clone()
    };
    Content::of(&same)
}

/// How a hold bears on an advice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keeping<'a> {
    pub(super) mode: Mode,
    /// The CPUs that the caller may hold, if these are not all.
    pub(super) own: Option<&'a CpuSet>,
    /// The request may come again.
    pub(super) repeatable: bool,
}
