//! Long computations, a few at a time, off the threads that serve requests.

use crate::{auth::caller, convert::Failure, shares::Shares};
use prometheus_client::metrics::counter::Counter;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Semaphore;

/// How many may wait for each that computes. One caller has at most half of the places.
const WAITING: usize = 8;

/// A bounded number of threads for one kind of question.
#[derive(Debug)]
pub(crate) struct Pool {
    limit: usize,
    of: &'static str,
    computing: Arc<Semaphore>,
    present: Shares,
    sheds: Counter,
}

/// Says whether the caller has gone away, so that a computation need not be finished.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_called(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Calls it when what is returned is dropped, with the future that waits for the answer.
    pub(super) fn with_caller(&self) -> CallOnDrop {
        CallOnDrop(self.clone())
    }
}

/// See [`Stop::with_caller`].
pub(super) struct CallOnDrop(Stop);

impl Drop for CallOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Pool {
    /// `of` names what it computes, in messages; `sheds` counts what is refused.
    pub(crate) fn new(limit: usize, of: &'static str, sheds: Counter) -> Self {
        Self { limit, of, computing: Arc::new(Semaphore::new(limit)), present: Shares::default(), sheds }
    }

    /// Computes on a thread of its own. The place is given back when the computation ends, not when its caller goes.
    ///
    /// # Errors
    ///
    /// If too many wait already, or the computation panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        compute: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let limit = self.limit * (1 + WAITING);
        let Ok(present) = self.present.take(caller::current(), limit, limit.div_ceil(2)) else {
            self.sheds.inc();
            return Err(Failure::Overloaded { limit, of: self.of });
        };
        let permit = Arc::clone(&self.computing).acquire_owned().await.map_err(Failure::internal)?;
        let stop = Stop::default();
        let _call = stop.with_caller();
        // A named request stays named on the other thread.
        let span = tracing::Span::current();
        let computed = tokio::task::spawn_blocking(move || {
            let _places = (permit, present);
            span.in_scope(|| compute(&stop))
        });
        computed.await.map_err(Failure::internal)
    }
}
