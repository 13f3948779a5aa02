//! Between the wire and the model: plain functions in both directions, and the one table ([`status`]) that turns
//! what went wrong into a gRPC status.

pub(crate) mod advice;
pub(crate) mod advise;
mod assumed;
pub(crate) mod balancing;
pub(crate) mod cpus;
pub(crate) mod explain;
pub(crate) mod faults;
pub(crate) mod format;
pub(crate) mod hold;
pub(crate) mod hold_failure;
pub(crate) mod hold_spec;
pub(crate) mod host;
pub(crate) mod info;
pub(crate) mod kernel;
pub(crate) mod load;
pub(crate) mod predict;
pub(crate) mod prediction;
pub(crate) mod profiles;
pub(crate) mod report;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod time;
pub(crate) mod topology;
pub(crate) mod trace;
pub(crate) mod unserved;
pub(crate) mod verify;
pub(crate) mod warnings;
pub(crate) mod wishes;

pub(crate) use faults::Faults;
pub(crate) use hold_failure::HoldFailure;
pub(crate) use status::Failure;
pub(crate) use warnings::Warnings;

/// The most tasks in one request.
pub(crate) const MAX_TASKS: u32 = 65_536;

/// The most bytes of one request message: the longest XML and everything else.
pub(crate) const MAX_REQUEST_BYTES: usize = 17 << 20;

/// A count as the wire has it.
pub(crate) fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
