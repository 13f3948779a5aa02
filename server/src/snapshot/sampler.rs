//! The task that takes a sample of the load at each interval.

use super::publisher::{Handle, Sample};
use crate::{
    config::Live,
    ingest::load::{self, Reading},
};
use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};
use tokio::time::{Interval, MissedTickBehavior, interval};

struct Taken {
    reading: Reading,
    at: Instant,
}

/// Samples the load of the host whose `proc` lies below `root`, for as long as the daemon runs.
pub(crate) async fn sample(root: PathBuf, mut live: Live, publisher: Handle) {
    let mut every = live.now().load.sample_interval;
    let mut ticks = ticks(every);
    let mut before: Option<Taken> = None;
    let mut failing = false;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = live.changed() => {
                let now = live.now().load.sample_interval;
                if now != every {
                    (every, ticks) = (now, self::ticks(now));
                }
                continue;
            }
        }
        match take(root.clone()).await {
            Ok(now) => {
                if let Some(before) = &before {
                    publisher.sample(between(before, &now)).await;
                }
                before = Some(now);
                failing = false;
            }
            Err(error) => {
                // Said once, not each second.
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "the load cannot be read");
                }
                publisher.no_sample(every).await;
            }
        }
    }
}

fn ticks(every: Duration) -> Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn take(root: PathBuf) -> io::Result<Taken> {
    let read = move || Ok(Taken { reading: load::read(&root)?, at: Instant::now() });
    tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
}

fn between(before: &Taken, now: &Taken) -> Sample {
    Sample {
        busy: load::between(&before.reading, &now.reading),
        interval: now.at.duration_since(before.at),
        taken_at: SystemTime::now(),
        at: now.at,
    }
}
