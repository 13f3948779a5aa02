//! What every request passes before it reaches its service, outermost first:
//!
//! 1. [`presence`]: its connection is used until the answer has been taken;
//! 2. [`request_id`]: a name and a span for it;
//! 3. [`metrics`]: counted, whatever becomes of it;
//! 4. [`authentication`]: who asks, and whether that one may: strangers take no place;
//! 5. [`admission`]: refused at once if too many are being answered (load shed and concurrency limit in
//!    one), or if their messages take too much memory;
//! 6. [`deadline`]: given up when its time has passed.
//!
//! A request that is admitted lets those behind it come this far before it goes on, so that its limit and its deadline
//! count whoever waits for a thread.
//!
//! Health and reflection have to answer when the rest does not: anybody may ask them, and their places are their own.

pub(crate) mod admission;
pub(crate) mod authentication;
pub(crate) mod deadline;
mod kept;
mod meter;
pub(crate) mod metrics;
pub(crate) mod presence;
mod refusal;
pub(crate) mod request_id;

use tower::Layer;

/// All of them.
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    pub(crate) presences: presence::Presences,
    pub(crate) ids: request_id::RequestIds,
    pub(crate) counting: metrics::Counting,
    pub(crate) authentication: authentication::Authentication,
    pub(crate) admission: admission::Admission,
    pub(crate) deadline: deadline::Deadline,
}

type Guarded<S> = authentication::Authenticated<admission::Admitted<deadline::Timed<S>>>;

impl<S> Layer<S> for Layers {
    type Service = presence::Present<request_id::Named<metrics::Counted<Guarded<S>>>>;

    fn layer(&self, inner: S) -> Self::Service {
        let guarded = self.authentication.layer(self.admission.layer(self.deadline.layer(inner)));
        self.presences.layer(self.ids.layer(self.counting.layer(guarded)))
    }
}

/// Whether a request is for a service of ours, and not for health or reflection.
fn is_ours(path: &str) -> bool {
    path.starts_with("/berth.")
}
