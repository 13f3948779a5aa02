//! The audit log: a line for each change of a hold, under the target `audit`, whatever else is logged.
//!
//! ```text
//! tracing::info!(target: audit::TARGET, what = "granted", hold = %id, uid, owner = %owner, cpus = %cpus, "hold");
//! ```
//!
//! The span around it says which request that was.

/// The target that a filter names to have or not to have these lines.
pub(crate) const TARGET: &str = "audit";
