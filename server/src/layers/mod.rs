//! What every request passes before it reaches its service, outermost first:
//!
//! 1. [`request_id`]: a name and a span for it;
//! 2. [`admission`]: refused at once if too many are being answered (load shed and concurrency limit in one);
//! 3. [`deadline`]: given up when its time has passed.
//!
//! Health and reflection pass the first alone: they have to answer when the rest does not.

pub(crate) mod admission;
pub(crate) mod deadline;
pub(crate) mod request_id;
