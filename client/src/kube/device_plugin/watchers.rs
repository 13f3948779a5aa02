//! How many kubelets watch the devices.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The number of streams that are open.
#[derive(Debug, Default)]
pub(super) struct Watchers(Arc<AtomicUsize>);

/// An open stream. It ends with its owner.
#[derive(Debug)]
pub(super) struct Watching(Arc<AtomicUsize>);

impl Watchers {
    pub(super) fn one_more(&self) -> Watching {
        self.0.fetch_add(1, Ordering::Relaxed);
        Watching(Arc::clone(&self.0))
    }

    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
