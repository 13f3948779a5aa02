//! What is counted, for `/metrics` of the [admin listener](crate::admin).
//!
//! A part that counts has a file here: a struct of metrics whose `new` registers them, as a field of [`Metrics`]. What
//! can be looked up when it is asked for (generations, ages, what is degraded) is not counted: [`facts`] does that.
//! Names are `<noun>_<unit>`, `berth_` is put before; labels have few values: never a CPU, a process or a user.

mod computing;
mod facts;
mod holds;
mod placement;
mod requests;
mod sheds;

pub(crate) use computing::Computing;
pub(crate) use facts::Facts;
pub(crate) use holds::{Holds, state};
pub(crate) use placement::Placement;
pub(crate) use requests::{Requests, Ticket};
pub(crate) use sheds::Sheds;

use prometheus_client::registry::Registry;

/// Everything that is counted. The parts are cheap to clone.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) requests: Requests,
    pub(crate) placement: Placement,
    pub(crate) computing: Computing,
    pub(crate) sheds: Sheds,
    pub(crate) holds: Holds,
}

impl Metrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        Self {
            requests: Requests::new(registry),
            placement: Placement::new(registry),
            computing: Computing::new(registry),
            sheds: Sheds::new(registry),
            holds: Holds::new(registry),
        }
    }
}

/// The registry that every name of ours goes to.
pub(crate) fn registry() -> Registry {
    Registry::with_prefix("berth")
}
