//! Places that callers share: so many in all, and fewer for one of them, so that one alone cannot take them all.

use crate::auth::Key;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The places of one kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shares(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    by_caller: HashMap<Key, usize>,
}

/// One place, given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Shares,
    key: Key,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// All are taken.
    All,
    /// The caller has as many as one may.
    OfOne,
}

impl Shares {
    /// A place for this caller.
    ///
    /// # Errors
    ///
    /// If `total` are taken, or the caller has `of_one`.
    pub(crate) fn take(&self, key: Key, total: usize, of_one: usize) -> Result<Share, Full> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has = taken.by_caller.get(&key).copied().unwrap_or(0);
        if has >= of_one {
            return Err(Full::OfOne);
        }
        if taken.total >= total {
            return Err(Full::All);
        }
        taken.total += 1;
        taken.by_caller.insert(key.clone(), has + 1);
        Ok(Share { shares: self.clone(), key })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.total = taken.total.saturating_sub(1);
        match taken.by_caller.get_mut(&self.key) {
            Some(more) if *more > 1 => *more -= 1,
            _ => {
                taken.by_caller.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_leaves_places_for_others() {
        let shares = Shares::default();
        let take = |uid| shares.take(Key::Uid(uid), 3, 2);
        let first = take(1).unwrap();
        let second = take(1).unwrap();
        assert_eq!(take(1).unwrap_err(), Full::OfOne);
        let third = take(2).unwrap();
        assert_eq!(take(2).unwrap_err(), Full::All);
        drop(first);
        let fourth = take(2).unwrap();
        drop((second, third, fourth));
        let taken = shares.0.lock().unwrap();
        assert!(taken.total == 0 && taken.by_caller.is_empty());
    }
}
