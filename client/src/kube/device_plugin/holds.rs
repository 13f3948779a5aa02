//! What containers are given is held in berthd, and let go when no pod has it any more.
//!
//! berthd alone keeps what is held, for how long, and under which label: this program may be started anew at any time and finds
//! it there. A hold is told by its CPUs: those of the devices of one container.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use berth_model::CpuSet;
use berth_proto::v1::{
    CreateHoldRequest, GetInfoRequest, Hold, HoldSpec, ListHoldsRequest, Owner, ReleaseHoldRequest,
    RenewHoldRequest, hold_service_client::HoldServiceClient, info_service_client::InfoServiceClient,
};
use tonic::{Request, Response, Status, transport::Channel};

use crate::{
    Error,
    address::Address,
    cli::Resource,
    connection::{Connection, MAX_ANSWER},
};

/// The label that says of which resource a hold is.
pub(super) const RESOURCE: &str = "kube.resource";
/// Further labels, for people.
const DEVICES: &str = "kube.devices";
const CONTAINER: &str = "kube.container";
/// The longest label that berthd takes, in bytes.
const LONGEST: usize = 256;
/// Holds in a page, the most that berthd gives.
const PAGE: u32 = 1000;

/// The holds of one resource.
#[derive(Debug)]
pub(super) struct Holds {
    connection: Connection,
    resource: Resource,
    /// How long a hold stays if it is not renewed.
    lease: Mutex<Duration>,
    /// When each was last known to be some container's, and when it was last renewed.
    seen: Mutex<HashMap<String, Seen>>,
    /// Held while one is looked for, made, or let go.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    in_use: Instant,
    renewed: Instant,
}

/// What one container has.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// Ids of its devices.
    pub(super) devices: Vec<String>,
    pub(super) cpus: CpuSet,
    /// Namespace, pod and container, where known.
    pub(super) container: String,
}

/// What has become of all holds.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// What was done, a sentence each.
    pub(super) done: Vec<String>,
    /// Why something could not be done.
    pub(super) failed: Option<Error>,
}

impl Settled {
    /// One that fails keeps no other from being settled.
    fn take(&mut self, one: Result<Option<String>, Error>) {
        match one {
            Ok(done) => self.done.extend(done),
            Err(error) => self.failed = Some(error),
        }
    }
}

impl Holds {
    pub(super) fn new(connection: Connection, resource: Resource, lease: Duration) -> Self {
        Self {
            connection,
            resource,
            lease: Mutex::new(lease),
            seen: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Keeps leases as short as this server wants them.
    pub(super) async fn keep_to_limits(&self) -> Result<(), Error> {
        let info = self
            .connection
            .ask(GetInfoRequest {}, async |channel, request| {
                InfoServiceClient::new(channel).get_info(request).await
            })
            .await?;
        let most = info.limits.and_then(|limits| limits.hold_ttl?.try_into().ok());
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        *lease = most.map_or(*lease, |most| lease.min(most));
        Ok(())
    }

    /// Holds what a container is given; the hold that there is already of the very same CPUs will do.
    pub(super) async fn hold(&self, given: &Given) -> Result<Hold, Error> {
        let _turn = self.turn.lock().await;
        let cpus = given.cpus.to_string();
        for held in self.list(&cpus).await? {
            if held.cpus == cpus && self.renew(&held.id).await.is_ok() {
                self.saw(&held.id);
                return Ok(held);
            }
        }
        self.make(given, cpus).await
    }

    async fn make(&self, given: &Given, cpus: String) -> Result<Hold, Error> {
        let devices = given.devices.join(",");
        let labels = [(RESOURCE, self.resource.as_str()), (DEVICES, &devices), (CONTAINER, &given.container)];
        let fits = |(_, value): &(&str, &str)| !value.is_empty() && value.len() <= LONGEST;
        let labels = labels.into_iter().filter(fits).map(|(key, value)| (key.to_owned(), value.to_owned()));
        let hold = HoldSpec {
            owner: Some(Owner { owner: None }),
            ttl: self.lease().try_into().ok(),
            labels: labels.collect::<BTreeMap<_, _>>(),
            ..HoldSpec::default()
        };
        let request = CreateHoldRequest { hold: Some(hold), cpus, ..CreateHoldRequest::default() };
        let made = self.ask(request, async |mut holds, request| holds.create_hold(request).await).await?;
        let hold =
            made.hold.ok_or_else(|| Error::NothingHeld { address: self.connection.address().clone() })?;
        self.saw(&hold.id);
        Ok(hold)
    }

    /// Renews what these containers have, holds what of it is not held, and lets go what none of them has had for a while. Where
    /// it is not known what containers have, all is renewed.
    pub(super) async fn settle(&self, containers: Option<&[Given]>, grace: Duration) -> Settled {
        let mut settled = Settled::default();
        let mut holds = match self.list("").await {
            Ok(holds) => holds,
            Err(error) => return Settled { failed: Some(error), ..settled },
        };
        let is_there = |id: &String, _: &mut Seen| holds.iter().any(|hold| hold.id == *id);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).retain(is_there);
        let all = containers
            .map(|containers| containers.iter().fold(CpuSet::new(), |all, given| all.union(&given.cpus)));
        let mut covered = CpuSet::new();
        // A device is its last container's.
        holds.reverse();
        for hold in holds {
            let own = all.as_ref().map(|all| {
                CpuSet::parse(&hold.cpus).unwrap_or_default().intersection(all).difference(&covered)
            });
            let is_used = own.as_ref().is_none_or(|own| !own.is_empty());
            covered.extend_from(&own.unwrap_or_default());
            settled.take(self.settle_one(&hold, is_used, grace).await);
        }
        for given in containers.unwrap_or_default() {
            let cpus = given.cpus.difference(&covered);
            if !cpus.is_empty() {
                let _turn = self.turn.lock().await;
                let made = self.make(&Given { cpus: cpus.clone(), ..given.clone() }, cpus.to_string()).await;
                let said =
                    |hold: Hold| Some(format!("CPUs {cpus} are held ({}): {}", hold.id, given.container));
                settled.take(made.map(said));
            }
        }
        settled
    }

    /// Renews a hold, or lets it go.
    async fn settle_one(&self, hold: &Hold, is_used: bool, grace: Duration) -> Result<Option<String>, Error> {
        let _turn = self.turn.lock().await;
        let seen = self.seen(&hold.id);
        if is_used {
            self.saw(&hold.id);
            if seen.renewed.elapsed() >= self.lease() / 3 {
                self.renew(&hold.id).await?;
            }
            return Ok(None);
        }
        if seen.in_use.elapsed() < grace {
            return Ok(None);
        }
        let request = ReleaseHoldRequest { id: hold.id.clone(), uid: None };
        self.ask(request, async |mut holds, request| holds.release_hold(request).await).await?;
        Ok(Some(format!("CPUs {} are let go ({}): no pod has them", hold.cpus, hold.id)))
    }

    /// The holds of this resource that are in force, oldest first; with at least one of these CPUs, if any are named.
    pub(super) async fn list(&self, cpus: &str) -> Result<Vec<Hold>, Error> {
        // As an admin it would be shown those of others too.
        let is_local = matches!(self.connection.address(), Address::Unix(_));
        let uid = is_local.then(|| rustix::process::geteuid().as_raw());
        let (mut found, mut page_token) = (Vec::new(), String::new());
        loop {
            let request = ListHoldsRequest {
                page_size: PAGE,
                page_token,
                cpus: cpus.to_owned(),
                uid,
                ..ListHoldsRequest::default()
            };
            let page = self.ask(request, async |mut holds, request| holds.list_holds(request).await).await?;
            let is_ours =
                |hold: &Hold| hold.labels.get(RESOURCE).is_some_and(|name| name == self.resource.as_str());
            found.extend(page.holds.into_iter().filter(is_ours));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(found);
            }
        }
    }

    async fn renew(&self, id: &str) -> Result<(), Error> {
        let request = RenewHoldRequest { id: id.to_owned(), ttl: self.lease().try_into().ok(), uid: None };
        self.ask(request, async |mut holds, request| holds.renew_hold(request).await).await?;
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(id.to_owned()).or_insert(Seen { in_use: now, renewed: now }).renewed = now;
        Ok(())
    }

    fn lease(&self) -> Duration {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A container has it.
    fn saw(&self, id: &str) {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(id.to_owned()).or_insert(Seen { in_use: now, renewed: now }).in_use = now;
    }

    /// One that was made before this program was started counts as seen now, and as to be renewed.
    fn seen(&self, id: &str) -> Seen {
        let now = Instant::now();
        let long_ago = now.checked_sub(self.lease()).unwrap_or(now);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.entry(id.to_owned()).or_insert(Seen { in_use: now, renewed: long_ago })
    }

    async fn ask<Q, A>(
        &self,
        question: Q,
        call: impl AsyncFnOnce(HoldServiceClient<Channel>, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Error> {
        let call = async |channel, request| {
            call(HoldServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER), request).await
        };
        self.connection.ask(question, call).await
    }
}
