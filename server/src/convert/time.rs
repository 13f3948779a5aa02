//! Moments and durations.

use prost_types::{Duration as WireDuration, Timestamp};
use std::time::{Duration, SystemTime};

pub(crate) fn duration_to_wire(duration: Duration) -> WireDuration {
    WireDuration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}

/// # Errors
///
/// A sentence, if it is negative or none at all.
pub(crate) fn duration_from_wire(duration: WireDuration) -> Result<Duration, String> {
    Duration::try_from(duration).map_err(|_| {
        format!("{}.{:09} s is not a duration from 0 on", duration.seconds, duration.nanos.unsigned_abs())
    })
}

pub(crate) fn moment_to_wire(moment: SystemTime) -> Timestamp {
    Timestamp::from(moment)
}
