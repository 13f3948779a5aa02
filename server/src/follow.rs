//! Follows the host: reads its hardware again when something that is watched has changed.

use crate::{
    config::Config,
    daemon,
    ingest::Reader,
    snapshot::{Here, Machine, publisher::Handle},
};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// A reading that failed is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Reads the host each time that it `changed`, and publishes it if it is another one than before. Ends when nobody
/// watches it any more.
pub(crate) async fn follow(
    config: Config,
    reader: Reader,
    mut known: (Arc<Machine>, Arc<Here>),
    mut changed: watch::Receiver<()>,
    publisher: Handle,
) {
    while changed.changed().await.is_ok() {
        let (machine, here) = loop {
            match daemon::read(config.clone(), &reader, None).await {
                Ok(read) => break read,
                Err(error) => {
                    tracing::warn!(%error, "the host has changed and cannot be read again");
                    tokio::time::sleep(TRY_AGAIN).await;
                }
            }
        };
        if machine.hardware() != known.0.hardware() || here != *known.1 {
            known = publisher.machine(machine, here).await;
        }
    }
}
