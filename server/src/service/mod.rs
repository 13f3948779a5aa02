//! The gRPC services: each method validates, takes the snapshot, asks the model, converts.

mod caller;
mod holds;
mod info;
mod inspect;
mod kept;
mod load;
mod placement;
mod pool;
mod repeats;
mod subject;
mod topology;
mod watch;

pub(crate) use caller::Caller;
pub(crate) use pool::Pool;
pub(crate) use repeats::Repeats;

use crate::{
    config::Live,
    convert::{self, Failure, Warnings},
    ingest::Reader,
    ledger::{self, Owners},
    metrics::Metrics,
    snapshot::{
        Choice, Snapshot,
        publisher::{Current, Handle},
    },
};
use berth_proto::v1;
use std::{sync::Arc, time::SystemTime};

/// What the services share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) current: Current,
    pub(crate) publisher: Handle,
    /// The way to the keeper of holds.
    pub(crate) holds: ledger::Handle,
    /// Requests for holds that come many times at once.
    pub(crate) repeats: Repeats,
    /// Held by the one that decides on a hold for long.
    pub(crate) deciding: tokio::sync::Mutex<()>,
    pub(crate) owners: Arc<Owners>,
    pub(crate) reader: Reader,
    /// Questions about hosts that are not here, or under kernels that this one does not run.
    pub(crate) foreign: Pool,
    /// Questions about this host that take long.
    pub(crate) long: Pool,
    /// Looks at processes.
    pub(crate) looks: Pool,
    /// The settings in effect.
    pub(crate) live: Live,
    pub(crate) started_at: SystemTime,
    pub(crate) metrics: Metrics,
}

impl Context {
    /// The newest snapshot.
    pub(crate) fn snapshot(&self) -> Result<Arc<Snapshot>, Failure> {
        self.current.snapshot().ok_or(Failure::NoSnapshot)
    }

    /// Counts a request about a hold that was refused.
    fn count_refusal<T>(&self, answer: Result<T, Failure>) -> Result<T, Failure> {
        answer.inspect_err(|failure| self.metrics.holds.refused(failure.reason()))
    }

    /// What answers do without.
    pub(crate) fn degraded(&self, snapshot: Option<&Snapshot>) -> Vec<v1::Warning> {
        let mut degraded = Warnings::default();
        match snapshot {
            Some(snapshot) => {
                convert::snapshot::warn(snapshot, snapshot.machine.topology.online(), &mut degraded);
            }
            None => degraded.add("NO_SNAPSHOT", "The host has not been read yet."),
        }
        if let Err(unusable) = &*self.holds.usable().borrow() {
            degraded.add("HOLDS_NOT_KEPT", format!("Holds are not kept: {unusable}."));
        }
        degraded.into_wire()
    }
}

/// The services of `berth.v1`.
#[derive(Debug, Clone)]
pub(crate) struct Berth(pub(crate) Arc<Context>);

/// The profiles of a choice have to be some.
fn modelled(choice: &Choice) -> Result<(), Failure> {
    if choice.profiles.is_empty() {
        let evidence = choice.evidence.join(" ");
        return Err(Failure::Precondition(crate::convert::status::Precondition::KernelNotModelled {
            evidence,
        }));
    }
    Ok(())
}

/// Whether a request wants all that is known.
fn is_full(view: v1::view::Value) -> bool {
    view == v1::view::Value::Full
}
