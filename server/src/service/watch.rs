//! Streams of snapshots. A reader that is slow misses some, which are counted; it never makes them queue.

use super::Context;
use crate::snapshot::Snapshot;
use std::{pin::Pin, sync::Arc};
use tokio_stream::{Stream, StreamExt, wrappers::WatchStream};
use tonic::Status;

/// What a watcher reads.
pub(crate) type Watched<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Context {
    /// What `tell` makes of the newest snapshot and of each one after it. It may be nothing.
    pub(super) fn watch<T: Send + 'static>(
        &self,
        mut tell: impl FnMut(&Snapshot) -> Option<T> + Send + 'static,
    ) -> Watched<T> {
        let each = WatchStream::new(self.current.each());
        Box::pin(each.filter_map(move |snapshot: Option<Arc<Snapshot>>| tell(&*snapshot?).map(Ok)))
    }
}

/// Counts the generations that a reader missed.
#[derive(Debug, Default)]
pub(super) struct Missed {
    seen: Option<u64>,
    missed: u64,
}

impl Missed {
    /// Takes note of a generation that was seen. Says whether it is a new one.
    pub(super) fn see(&mut self, generation: u64) -> bool {
        let before = self.seen.replace(generation);
        if let Some(before) = before {
            self.missed += generation.saturating_sub(before).saturating_sub(1);
        }
        before != Some(generation)
    }

    /// Those missed since this was asked before.
    pub(super) fn take(&mut self) -> u64 {
        std::mem::take(&mut self.missed)
    }
}

#[cfg(test)]
mod tests {
    use super::Missed;

    #[test]
    fn generations_between_two_that_were_seen() {
        let mut missed = Missed::default();
        assert!(missed.see(7) && !missed.see(7));
        assert_eq!(missed.take(), 0);
        assert!(missed.see(8) && missed.see(11) && missed.see(13));
        assert_eq!((missed.take(), missed.take()), (3, 0));
    }
}
