//! Requests that come many times at once: one of them is decided, the others wait for what it decides.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

/// A user and the id of its request.
type Key = (u32, String);

/// The requests that are being decided.
#[derive(Debug, Default)]
pub(crate) struct Repeats(Mutex<HashMap<Key, Weak<Turns<()>>>>);

/// The right to decide a request, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn(#[expect(dead_code, reason = "it is held")] OwnedMutexGuard<()>);

impl Repeats {
    /// Waits until nobody else decides this request. What the one before decided is known then, if it did.
    pub(super) async fn turn(&self, uid: u32, request_id: &str) -> Turn {
        let turns = {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.retain(|_, turns| turns.strong_count() > 0);
            let known = waiting.entry((uid, request_id.to_owned())).or_default();
            known.upgrade().unwrap_or_else(|| {
                let turns = Arc::default();
                *known = Arc::downgrade(&turns);
                turns
            })
        };
        Turn(turns.lock_owned().await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_decides_the_same_request_and_others_do_not_wait() {
        let repeats = Repeats::default();
        let first = repeats.turn(1, "a").await;
        let (other_id, other_user) = (repeats.turn(1, "b").await, repeats.turn(2, "a").await);
        let mut second = Box::pin(repeats.turn(1, "a"));
        let waits = tokio::time::timeout(std::time::Duration::from_millis(20), &mut second).await;
        assert!(waits.is_err());
        drop((first, other_id, other_user));
        drop(second.await);
        // Nothing is kept of those who are done.
        let _last = repeats.turn(3, "c").await;
        assert_eq!(repeats.0.lock().unwrap().len(), 1);
    }
}
