//! Whether a connection is used: which calls are open on it, and since when there is none.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// The calls that are open on one connection.
#[derive(Debug, Clone)]
pub(crate) struct Presence(Arc<Mutex<Calls>>);

#[derive(Debug)]
struct Calls {
    next: u64,
    /// When each has to be over, its answer taken by the caller. None: whenever it likes.
    open: BTreeMap<u64, Option<Instant>>,
    /// Since when none is open.
    idle_since: Instant,
    has_asked: bool,
}

/// What is the matter with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// A call is open.
    Used,
    /// None is, since then; or none ever was.
    Idle { since: Instant, has_asked: bool },
    /// A call ought to be over: its caller does not take the answer.
    Overdue,
}

/// An open call.
#[derive(Debug)]
pub(crate) struct Call {
    presence: Presence,
    number: u64,
}

impl Presence {
    pub(crate) fn new(now: Instant) -> Self {
        let calls = Calls { next: 0, open: BTreeMap::new(), idle_since: now, has_asked: false };
        Self(Arc::new(Mutex::new(calls)))
    }

    /// A call begins.
    pub(crate) fn begin(&self, due: Option<Instant>) -> Call {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = calls.next;
        calls.next += 1;
        calls.has_asked = true;
        calls.open.insert(number, due);
        Call { presence: self.clone(), number }
    }

    pub(super) fn standing(&self, now: Instant) -> Standing {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.open.values().flatten().any(|due| *due < now) {
            Standing::Overdue
        } else if calls.open.is_empty() {
            Standing::Idle { since: calls.idle_since, has_asked: calls.has_asked }
        } else {
            Standing::Used
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut calls = self.presence.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.open.remove(&self.number);
        if calls.open.is_empty() {
            calls.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_connection_is_used_while_a_call_is_open() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let presence = Presence::new(start);
        assert_eq!(presence.standing(later(5)), Standing::Idle { since: start, has_asked: false });
        let watch = presence.begin(None);
        let answer = presence.begin(Some(later(30)));
        assert_eq!(presence.standing(later(29)), Standing::Used);
        assert_eq!(presence.standing(later(31)), Standing::Overdue);
        drop(answer);
        assert_eq!(presence.standing(later(1000)), Standing::Used);
        drop(watch);
        assert!(matches!(presence.standing(later(1000)), Standing::Idle { has_asked: true, .. }));
    }
}
