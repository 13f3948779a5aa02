//! The task that looks after what is held: at each sample, when the host changes, and when something expires.

use super::{
    Handle, Owners, clock,
    keeper::{Message, Seen},
};
use crate::{
    config::Live,
    snapshot::{Snapshot, publisher::Current},
};
use berth_model::hold::{Book, Moment};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

/// The snapshots as they are published.
type Each = watch::Receiver<Option<Arc<Snapshot>>>;

/// What was brought to the keeper is done by then, or nothing came of it.
const DONE: Duration = Duration::from_millis(50);

/// Looks after what is held until the keeper ends.
pub(super) async fn take_care(handle: Handle, owners: Arc<Owners>, current: Current, live: Live) {
    let mut published = handle.published();
    let mut each = current.each();
    let mut topology = 0;
    let mut eyes = Eyes { owners, current, topology: 0, load: 0, looked_at: clock::now() };
    let mut next_look = Instant::now();
    loop {
        let next_end = published.borrow_and_update().book.next_end();
        let expiry = next_end.map(|end| Instant::now() + end.since(clock::now()));
        tokio::select! {
            () = sleep_until(expiry.map_or(next_look, |expiry| expiry.min(next_look))) => {}
            // What no longer fits is said at once.
            Some(generation) = another(&mut each, topology) => {
                (topology, next_look) = (generation, Instant::now());
            }
            changed = published.changed() => match changed {
                // Something may expire earlier now.
                Ok(()) => continue,
                Err(_) => return,
            },
        }
        let seen = if Instant::now() >= next_look {
            let interval = live.now().load.sample_interval;
            next_look = Instant::now() + interval;
            let book = Arc::clone(&published.borrow().book);
            let seen = eyes.look(book, interval).await;
            // A file that fails is tried again even if there is nothing to see.
            if seen.is_none() && handle.usable.borrow().is_ok() {
                continue;
            }
            seen.unwrap_or_default()
        } else {
            Seen::default()
        };
        if handle.inbox.send(Message::Seen(seen)).await.is_err() {
            return;
        }
        // Until it is done, or cannot be.
        let _ = timeout(DONE, published.changed()).await;
    }
}

/// Returns the topology's generation once it is another than this. Nothing if there will be none.
async fn another(each: &mut Each, generation: u64) -> Option<u64> {
    let is_other = |snapshot: &Option<Arc<Snapshot>>| {
        snapshot.as_ref().is_some_and(|snapshot| snapshot.topology_generation != generation)
    };
    let newest = each.wait_for(is_other).await.ok()?;
    newest.as_ref().map(|snapshot| snapshot.topology_generation)
}

/// What was seen so far.
struct Eyes {
    owners: Arc<Owners>,
    current: Current,
    /// Generations that the keeper has heard of.
    topology: u64,
    load: u64,
    looked_at: Moment,
}

impl Eyes {
    /// What there is to see. Nothing if nothing is held.
    async fn look(&mut self, book: Arc<Book>, interval: Duration) -> Option<Seen> {
        let before = std::mem::replace(&mut self.looked_at, clock::now());
        let snapshot = self.current.snapshot()?;
        if book.is_empty() {
            // Whatever is new now is as old as any hold that is yet to be made.
            self.load = snapshot.load.measured().map_or(0, |measured| measured.generation);
            self.topology = 0;
            return None;
        }
        let measured = snapshot.load.measured().filter(|measured| measured.generation != self.load);
        // It was taken since the last look, and began an interval earlier.
        let began = Moment::since_boot(before.after_boot().saturating_sub(interval));
        let is_new = snapshot.topology_generation != self.topology;
        self.topology = snapshot.topology_generation;
        self.load = measured.map_or(self.load, |measured| measured.generation);
        let owners = Arc::clone(&self.owners);
        let looking = tokio::task::spawn_blocking(move || owners.gone(&book));
        Some(Seen {
            // If it panicked, the log says so; the owners are looked for again.
            gone: looking.await.unwrap_or_default(),
            measured: measured.map(|measured| (Arc::clone(&measured.load), began)),
            online: is_new.then(|| snapshot.machine.topology.online().clone()),
        })
    }
}
