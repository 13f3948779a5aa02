//! What every request passes before it reaches its service, outermost first:
//!
//! 1. [`presence`]: its connection is used until the answer has been taken;
//! 2. [`request_id`]: a name and a span for it;
//! 3. [`authentication`]: who asks, and whether that one may: strangers take no place;
//! 4. [`admission`]: refused at once if too many are being answered (load shed and concurrency limit in
//!    one), or if their messages take too much memory;
//! 5. [`deadline`]: given up when its time has passed.
//!
//! Health and reflection pass the first two alone: they have to answer when the rest does not.

pub(crate) mod admission;
pub(crate) mod authentication;
pub(crate) mod deadline;
mod kept;
mod meter;
pub(crate) mod presence;
mod refusal;
pub(crate) mod request_id;
