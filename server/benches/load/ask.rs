//! What is asked.

use berth_proto::v1::{
    self, hold_service_client::HoldServiceClient, placement_service_client::PlacementServiceClient,
};
use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};
use tonic::{Status, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// Holds that were asked for so far, over all rounds.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// `Health/Check`: what any request costs.
    Health,
    /// `Advise` for 8 tasks, each time under another mask.
    Advise,
    /// `Predict` for 176 tasks on CPUs 0-175.
    Predict,
    /// `Advise` as above with `hold`, and `ReleaseHold`: two requests.
    Hold,
    /// Each of the others in turn, of eight five times `Health/Check`.
    Mixed,
}

impl Ask {
    /// Requests of one asking.
    pub(crate) fn requests(self) -> u32 {
        if self == Self::Hold { 2 } else { 1 }
    }

    /// Callers on one connection that ask at a time. Of long questions few are taken; the others would be refused, and
    /// the refusals measured.
    pub(crate) fn callers(self) -> usize {
        if self == Self::Predict { 2 } else { 8 }
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Health => "Health/Check",
            Self::Advise => "Advise",
            Self::Predict => "Predict",
            Self::Hold => "hold+release",
            Self::Mixed => "mixed",
        })
    }
}

/// Clients on one connection.
#[derive(Clone)]
pub(crate) struct Clients {
    health: HealthClient<Channel>,
    placement: PlacementServiceClient<Channel>,
    holds: HoldServiceClient<Channel>,
}

impl Clients {
    pub(crate) fn new(channel: Channel) -> Self {
        Self {
            health: HealthClient::new(channel.clone()),
            placement: PlacementServiceClient::new(channel.clone()),
            holds: HoldServiceClient::new(channel),
        }
    }

    /// Asks once; `n` makes requests differ.
    pub(crate) async fn ask(&mut self, ask: Ask, n: u64) -> Result<(), Status> {
        let ask = match ask {
            Ask::Mixed => match n % 8 {
                0 => Ask::Predict,
                1 => Ask::Advise,
                2 => Ask::Hold,
                _ => Ask::Health,
            },
            other => other,
        };
        match ask {
            Ask::Health | Ask::Mixed => self.health.check(HealthCheckRequest::default()).await.map(drop),
            Ask::Advise => {
                let request = v1::AdviseRequest { tasks: 8, allowed: mask(n), ..Default::default() };
                self.placement.advise(request).await.map(drop)
            }
            Ask::Hold => {
                // An id that comes again would be answered from what is stored.
                let request_id = format!("load-{}", ASKED.fetch_add(1, Ordering::Relaxed));
                let hold = Some(v1::HoldSpec { request_id, ..Default::default() });
                let request = v1::AdviseRequest { tasks: 8, allowed: mask(n), hold, ..Default::default() };
                let held = self.placement.advise(request).await?.into_inner().hold.unwrap_or_default();
                let request = v1::ReleaseHoldRequest { id: held.id, ..Default::default() };
                self.holds.release_hold(request).await.map(drop)
            }
            Ask::Predict => {
                let allowed = "0-175".to_owned();
                let request =
                    v1::PredictRequest { tasks: 176, allowed, origin: Some(0), ..Default::default() };
                self.placement.predict(request).await.map(drop)
            }
        }
    }
}

/// One of 5016 masks of 16 to 62 of 256 CPUs, at two places. Small and large ones come in no order, so that any stretch
/// of them costs the same.
fn mask(n: u64) -> String {
    const PLACES: u64 = 209;
    const LENGTHS: u64 = 24;
    // A stride without a common factor visits each once.
    let n = n * 1009 % (PLACES * LENGTHS);
    let (first, length) = (n % PLACES, 8 + n / PLACES);
    let second = (first + 101) % PLACES;
    format!("{first}-{},{second}-{}", first + length - 1, second + length - 1)
}
