//! What sampling may cost, and what it does cost: CPU time of the thread that samples, kernel time included.

use rustix::time::{ClockId, clock_gettime};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The time that the cost is told of: so long that a look at all threads of a large host recurs within it.
const WINDOW: Duration = Duration::from_secs(120);

/// An account of CPU time. What costs much is done when as much has come in as it is likely to cost, so that no more than
/// the limit is spent in any time but the first.
#[derive(Debug)]
pub(super) struct Budget {
    /// Seconds of CPU time; below zero they are owed.
    balance: f64,
    /// The time and the thread's CPU time at earlier moments, the oldest first.
    past: VecDeque<(Instant, Duration)>,
}

impl Budget {
    /// Of the calling thread, which is the one to call the rest.
    pub(super) fn new() -> Self {
        Self { balance: 0.0, past: VecDeque::from([(Instant::now(), cpu_time())]) }
    }

    /// Takes note of what was used and what has come in since the call before, `limit` being the share of
    /// one CPU that may be used.
    pub(super) fn settle(&mut self, limit: f64) {
        let (now, used) = (Instant::now(), cpu_time());
        if let Some(&(before, used_before)) = self.past.back() {
            let came_in = now.duration_since(before).as_secs_f64() * limit;
            let spent = used.saturating_sub(used_before).as_secs_f64();
            self.balance += came_in - spent;
        }
        self.past.push_back((now, used));
        while self.past.get(1).is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW) {
            self.past.pop_front();
        }
    }

    /// Whether what was used is paid off and there is enough for this besides. What there is more is lost: an idle hour is no
    /// reason for a burst.
    pub(super) fn affords(&mut self, cost: Duration) -> bool {
        self.balance = self.balance.min(cost.as_secs_f64());
        self.balance >= cost.as_secs_f64()
    }

    /// So much was spent that is paid for in another way.
    pub(super) fn excuse(&mut self, cost: Duration) {
        self.balance += cost.as_secs_f64();
    }

    /// What was used lately, as a share of one CPU.
    pub(super) fn cost(&self) -> Option<f64> {
        let (&(from, used_before), &(to, used)) = (self.past.front()?, self.past.back()?);
        let time = to.duration_since(from).as_secs_f64();
        (time > 0.0).then(|| used.saturating_sub(used_before).as_secs_f64() / time)
    }
}

/// CPU time of the calling thread so far.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(time: Duration) {
        let begun = cpu_time();
        while cpu_time() - begun < time {}
    }

    #[test]
    fn what_is_owed_is_paid_off_before_more_is_spent() {
        // A limit so small that one busy loop is owed for hours.
        let mut budget = Budget::new();
        assert!(budget.affords(Duration::ZERO));
        spend(Duration::from_millis(5));
        budget.settle(1e-9);
        assert!(!budget.affords(Duration::ZERO) && budget.cost().unwrap() > 0.0);
        budget.settle(1e-9);
        assert!(!budget.affords(Duration::ZERO));
        // Unless somebody else pays.
        budget.excuse(Duration::from_secs(60));
        assert!(budget.affords(Duration::ZERO));
        // One that is larger than what can be spent is always paid off.
        let mut budget = Budget::new();
        spend(Duration::from_millis(5));
        budget.settle(1e9);
        assert!(budget.affords(Duration::ZERO));
    }

    #[test]
    fn what_will_be_spent_is_saved_up_first_and_no_more() {
        let (look, limit) = (Duration::from_millis(40), 1e9);
        let mut budget = Budget::new();
        assert!(!budget.affords(look));
        budget.settle(limit);
        assert!(budget.affords(look) && !budget.affords(look * 2), "the rest is lost");
        // One that costs more than the one before does not have to wait for that.
        budget.settle(limit);
        assert!(budget.affords(look * 2));
    }
}
