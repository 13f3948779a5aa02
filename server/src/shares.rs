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

/// Some places of one caller, given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Shares,
    key: Key,
    amount: usize,
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
        let mut share = Share { shares: self.clone(), key, amount: 0 };
        share.grow(1, total, of_one)?;
        Ok(share)
    }
}

impl Share {
    /// None yet, of a caller that may need some.
    pub(crate) fn none(shares: Shares, key: Key) -> Self {
        Self { shares, key, amount: 0 }
    }

    /// So many more.
    ///
    /// # Errors
    ///
    /// If more than `total` would be taken, or the caller would have more than `of_one`.
    pub(crate) fn grow(&mut self, amount: usize, total: usize, of_one: usize) -> Result<(), Full> {
        let mut taken = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has = taken.by_caller.get(&self.key).copied().unwrap_or(0);
        if has.saturating_add(amount) > of_one {
            return Err(Full::OfOne);
        }
        if taken.total.saturating_add(amount) > total {
            return Err(Full::All);
        }
        taken.total += amount;
        taken.by_caller.insert(self.key.clone(), has + amount);
        self.amount += amount;
        Ok(())
    }

    /// Gives so many back; says how many it had of these.
    pub(crate) fn shrink(&mut self, amount: usize) -> usize {
        let amount = amount.min(self.amount);
        drop(Self { shares: self.shares.clone(), key: self.key.clone(), amount });
        self.amount -= amount;
        amount
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut taken = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.total = taken.total.saturating_sub(self.amount);
        match taken.by_caller.get_mut(&self.key) {
            Some(more) if *more > self.amount => *more -= self.amount,
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
