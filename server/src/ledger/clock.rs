//! The clock of holds.

use berth_model::hold::Moment;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime},
};

/// Now, as the time since the host was booted.
pub(crate) fn now() -> Moment {
    Moment::since_boot(since_zero(clock_gettime(ClockId::Boottime)))
}

fn since_zero(time: Timespec) -> Duration {
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The two clocks are read one after the other: a smaller change between them is that, and none of the wall clock.
const JITTER: Duration = Duration::from_millis(100);

/// The moment of the boot by the wall clock, in nanoseconds after 1970, as it was last told.
static BOOT: AtomicI64 = AtomicI64::new(0);

/// A moment by the wall clock as it stands now: the same again and again, until the wall clock is set.
pub(crate) fn by_wall_clock(moment: Moment) -> SystemTime {
    let wall = since_zero(clock_gettime(ClockId::Realtime));
    let boot = i64::try_from(wall.saturating_sub(now().after_boot()).as_nanos()).unwrap_or(i64::MAX);
    let told = BOOT.load(Ordering::Relaxed);
    let boot = if Duration::from_nanos(told.abs_diff(boot)) < JITTER {
        told
    } else {
        BOOT.store(boot, Ordering::Relaxed);
        boot
    };
    SystemTime::UNIX_EPOCH + Duration::from_nanos(boot.unsigned_abs()) + moment.after_boot()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_the_same_each_time() {
        let moment = now();
        let told = by_wall_clock(moment);
        assert!((0..1000).all(|_| by_wall_clock(moment) == told));
        let off = told.duration_since(SystemTime::now()).or_else(|e| Ok::<_, ()>(e.duration())).unwrap();
        assert!(off < Duration::from_secs(60), "{off:?}");
        assert!(by_wall_clock(moment.after(Duration::from_secs(5))) == told + Duration::from_secs(5));
    }
}
