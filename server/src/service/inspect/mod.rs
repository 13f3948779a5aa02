//! `Verify`: where running tasks really are, and what mends what is wrong with them.

mod judge;
mod look;
mod watch;

use super::{Context, caller::Caller, holds::Key};
use crate::{
    convert::{
        Failure, Faults, Warnings, count,
        status::Precondition,
        time,
        verify::{self, Asked, Target},
    },
    snapshot::Snapshot,
};
use berth_model::{cpuset::CpuSet, hold::Owner};
use berth_proto::v1;
use judge::Ground;
use look::{Looker, Subject};
use std::{sync::Arc, time::SystemTime};
use watch::Watch;

impl Context {
    pub(in crate::service) async fn verify(
        &self,
        request: v1::VerifyRequest,
        caller: Caller,
    ) -> Result<v1::VerifyResponse, Failure> {
        let snapshot = self.snapshot()?;
        let (mut faults, mut warnings) = (Faults::default(), Warnings::default());
        let asked = verify::from_wire(request, &snapshot.machine.topology, &mut faults);
        faults.none()?;
        let asked = asked.ok_or_else(|| Failure::internal("nothing is asked, and no fault"))?;
        if !snapshot.sampled {
            return Err(Failure::Precondition(Precondition::HostDescribed));
        }
        let Sought { subject, hold, expected } = Sought::new(&asked, &snapshot, &caller, &mut warnings)?;
        let root = self.owners.root().to_owned();
        let looker = Looker { root, subject, may_see: move |uid| caller.may_see(uid) };
        let watch = self.watched(looker, &snapshot, expected.clone(), &asked).await?;

        watch.warn(&mut warnings);
        let is_all = asked.target == Target::All;
        let (seen, hidden) = (count(watch.last.seen), count(watch.last.hidden));
        let machine = Arc::clone(&snapshot.machine);
        let told = move || watch.told(&machine.topology, expected.as_ref(), &asked);
        let mut looked = self.looks.run(move |_| told()).await?;
        for workload in &mut looked {
            workload.hold.clone_from(&hold);
        }
        if is_all {
            looked.retain(|workload| !workload.findings.is_empty());
        }
        Ok(v1::VerifyResponse {
            workloads: looked,
            threads_seen: seen,
            threads_hidden: hidden,
            taken_at: Some(time::moment_to_wire(SystemTime::now())),
            snapshot: Some(crate::convert::snapshot::to_wire(&snapshot)),
            warnings: warnings.into_wire(),
        })
    }

    /// Looks once, or several times over the time that is asked for.
    async fn watched<F: Fn(u32) -> bool + Send + Sync + 'static>(
        &self,
        looker: Looker<F>,
        snapshot: &Arc<Snapshot>,
        expected: Option<CpuSet>,
        asked: &Asked,
    ) -> Result<Watch, Failure> {
        let (looker, expected) = (Arc::new(looker), Arc::new(expected));
        let mut pauses = watch::pauses(asked.watch).into_iter();
        let mut watch: Option<Watch> = None;
        loop {
            let (looker, snapshot, expected) =
                (Arc::clone(&looker), Arc::clone(snapshot), Arc::clone(&expected));
            let (before, wants) = (watch.take(), (asked.watch.is_some(), asked.memory));
            let look = move || {
                let look = looker.look()?;
                let topology = &snapshot.machine.topology;
                let judge = |workload: &look::Workload| {
                    let ground = Ground { topology, expected: (*expected).as_ref(), counts: &look.counts };
                    workload.crowds(ground)
                };
                let crowds = look.workloads.iter().map(judge).collect();
                Ok(Watch::next(before, look, crowds, &looker.root, wants))
            };
            let looked = self.looks.run(move |_| look()).await??;
            match pauses.next() {
                // Nobody wants to watch: once more only where something has to be sure.
                None if asked.watch.is_none() && looked.looks() == 1 && looked.finds_crowds() => {
                    tokio::time::sleep(watch::SURE).await;
                }
                None => return Ok(looked),
                Some(pause) => tokio::time::sleep(pause).await,
            }
            watch = Some(looked);
        }
    }
}

/// What is looked at, and what it is held against.
struct Sought {
    subject: Subject,
    /// The hold whose tasks they are, by id; empty if that was not asked.
    hold: String,
    /// The CPUs that they should be on, if that is known.
    expected: Option<CpuSet>,
}

impl Sought {
    fn new(
        asked: &Asked,
        snapshot: &Snapshot,
        caller: &Caller,
        warnings: &mut Warnings,
    ) -> Result<Self, Failure> {
        let (expected, hold) = (asked.expected.clone(), String::new());
        Ok(match &asked.target {
            Target::Pids(pids) => Self { subject: Subject::Pids(pids.clone()), hold, expected },
            Target::Cgroup(path) => Self { subject: Subject::Cgroup(path.clone()), hold, expected },
            Target::All => {
                Self { subject: Subject::All(snapshot.machine.topology.online().clone()), hold, expected }
            }
            Target::Hold(id) => {
                let key = Key { id: id.clone(), uid: caller.whose("hold", None)? };
                let hold = Arc::clone(key.find(&snapshot.holds, caller)?);
                if hold.owner == Owner::Lease {
                    let said = "The hold is a lease: no process or cgroup owns it, so nothing tells which tasks are its own.";
                    warnings.add("HOLD_WITHOUT_OWNER", said);
                }
                if hold.ended.is_some() {
                    warnings.add("HOLD_ENDED", "The hold has ended: its CPUs are expected no more.");
                }
                let held = Some(hold.cpus()).filter(|cpus| !cpus.is_empty() && hold.ended.is_none());
                let expected = expected.or(held);
                Self { hold: hold.id.to_string(), subject: Subject::Hold(hold), expected }
            }
        })
    }
}
