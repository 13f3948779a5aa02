//! What systemd is told: that the daemon serves, is read anew, stops, and lives. Without systemd nothing happens.

use sd_notify::{NotifyState, watchdog_enabled};
use std::time::Duration;

/// It serves.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is read again, from now until it serves again.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "no clock"),
    }
}

/// It stops, which may take so long.
pub(crate) fn stopping(limit: Duration) {
    let limit = u32::try_from(limit.as_micros()).unwrap_or(u32::MAX);
    tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(limit)]);
}

/// Says that the daemon lives, as often as systemd wants to hear it. Its threads being stuck, it says nothing, and
/// systemd starts it anew.
pub(crate) async fn watchdog() {
    let Some(limit) = watchdog_enabled().filter(|limit| !limit.is_zero()) else { return };
    let mut ticks = tokio::time::interval(limit / 2);
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "systemd does not hear");
    }
}
