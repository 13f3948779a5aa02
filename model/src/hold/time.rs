//! The clock of holds.

use std::time::Duration;

/// A moment, as the time since the host was booted, the time that it slept included. Nobody sets that clock, so no
/// jump of the wall clock ends a hold or keeps one.
#[doc(alias = "CLOCK_BOOTTIME")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(Duration);

impl Moment {
    /// So long after the boot.
    pub fn since_boot(time: Duration) -> Self {
        Self(time)
    }

    /// The time since the boot.
    pub fn after_boot(self) -> Duration {
        self.0
    }

    /// So much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// The time from `earlier` to this; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
