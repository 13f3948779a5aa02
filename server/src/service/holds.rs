//! `HoldService`: CPUs kept for owners.

use super::{
    Berth, Context,
    caller::Caller,
    kept::{self, Content},
};
use crate::{
    auth::Role,
    convert::{
        Failure, Faults, HoldFailure, Warnings, count, cpus, hold,
        hold_spec::{Spec, owner_from_wire, ttl_from_wire},
        snapshot,
    },
    ledger::Published,
    snapshot::Snapshot,
};
use berth_model::{
    cpuset::CpuSet,
    hold::{Book, Hold, Id, Owner, Part, Uid},
};
use berth_proto::v1::{self, hold_service_server::HoldService};
use std::{pin::Pin, sync::Arc};
use tokio_stream::{Stream, StreamExt, wrappers::WatchStream};
use tonic::{Request, Response, Status};

/// Holds in a page.
const PAGE: u32 = 100;
const MAX_PAGE: u32 = 1000;

#[tonic::async_trait]
impl HoldService for Berth {
    type WatchHoldsStream = Pin<Box<dyn Stream<Item = Result<v1::WatchHoldsResponse, Status>> + Send>>;

    async fn create_hold(
        &self,
        request: Request<v1::CreateHoldRequest>,
    ) -> Result<Response<v1::CreateHoldResponse>, Status> {
        let caller = self.0.caller(&request);
        let created = self.0.create_hold(request.into_inner(), caller).await;
        Ok(Response::new(self.0.count_refusal(created)?))
    }

    async fn list_holds(
        &self,
        request: Request<v1::ListHoldsRequest>,
    ) -> Result<Response<v1::ListHoldsResponse>, Status> {
        let caller = self.0.caller(&request);
        Ok(Response::new(self.0.list_holds(&request.into_inner(), &caller)?))
    }

    async fn get_hold(
        &self,
        request: Request<v1::GetHoldRequest>,
    ) -> Result<Response<v1::GetHoldResponse>, Status> {
        let caller = self.0.caller(&request);
        let request = request.into_inner();
        let key = Key { id: request.id, uid: caller.whose("uid", request.uid)? };
        let snapshot = self.0.snapshot()?;
        let hold = key.find(&snapshot.holds, &caller)?;
        Ok(Response::new(v1::GetHoldResponse { hold: Some(hold::to_wire(hold, &snapshot)) }))
    }

    async fn renew_hold(
        &self,
        request: Request<v1::RenewHoldRequest>,
    ) -> Result<Response<v1::RenewHoldResponse>, Status> {
        let caller = self.0.caller(&request);
        let renewed = self.0.renew_hold(request.into_inner(), caller).await;
        Ok(Response::new(self.0.count_refusal(renewed)?))
    }

    async fn release_hold(
        &self,
        request: Request<v1::ReleaseHoldRequest>,
    ) -> Result<Response<v1::ReleaseHoldResponse>, Status> {
        let caller = self.0.caller(&request);
        let released = self.0.release_hold(request.into_inner(), caller).await;
        Ok(Response::new(self.0.count_refusal(released)?))
    }

    async fn adopt_hold(
        &self,
        request: Request<v1::AdoptHoldRequest>,
    ) -> Result<Response<v1::AdoptHoldResponse>, Status> {
        let caller = self.0.caller(&request);
        let adopted = self.0.adopt_hold(request.into_inner(), caller).await;
        Ok(Response::new(self.0.count_refusal(adopted)?))
    }

    async fn watch_holds(
        &self,
        request: Request<v1::WatchHoldsRequest>,
    ) -> Result<Response<Self::WatchHoldsStream>, Status> {
        let caller = self.0.caller(&request);
        let only = request.into_inner().uid.map(|uid| caller.whose("uid", Some(uid))).transpose()?.flatten();
        let snapshot = self.0.snapshot()?;
        let context = Arc::clone(&self.0);
        let mut seen: Option<u64> = None;
        let changes = WatchStream::new(self.0.holds.published()).filter_map(move |published| {
            // The hardware of now with the book of then.
            let newest = context.current.snapshot().unwrap_or_else(|| Arc::clone(&snapshot));
            let snapshot = Snapshot { holds: Arc::clone(&published.book), ..(*newest).clone() };
            let told = change(&published, &snapshot, seen, |hold| {
                caller.may_see(hold.uid.0) && only.is_none_or(|uid| uid == hold.uid)
            });
            seen = Some(published.book.generation());
            told.map(Ok)
        });
        Ok(Response::new(Box::pin(changes)))
    }
}

/// What a watcher is told of a newer book, who has seen an older one. Nothing if nothing of it concerns the watcher.
fn change(
    published: &Published,
    snapshot: &Snapshot,
    seen: Option<u64>,
    concerns: impl Fn(&Hold) -> bool,
) -> Option<v1::WatchHoldsResponse> {
    let book = &published.book;
    let generation = book.generation();
    let follows = seen.is_some() && published.before == seen;
    let tell = |hold: &Arc<Hold>| hold::to_wire(hold, snapshot);
    if follows {
        let changed = book.changed_since(seen.unwrap_or(0)).filter(|hold| concerns(hold));
        let holds: Vec<v1::Hold> = changed.map(tell).collect();
        let response =
            v1::WatchHoldsResponse { holds, holds_generation: generation, complete: false, dropped: 0 };
        return (!response.holds.is_empty()).then_some(response);
    }
    if seen == Some(generation) {
        return None;
    }
    let dropped = seen.map_or(0, |seen| published.before.unwrap_or(generation).saturating_sub(seen).max(1));
    Some(v1::WatchHoldsResponse {
        holds: book.living().filter(|hold| concerns(hold)).map(tell).collect(),
        holds_generation: generation,
        complete: true,
        dropped,
    })
}

/// A hold as a request names it: by its id, or by the name that a user gave it.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) uid: Option<Uid>,
}

impl Key {
    /// The hold, in force or ended lately, if the caller may see it.
    pub(super) fn find<'a>(&self, book: &'a Book, caller: &Caller) -> Result<&'a Arc<Hold>, Failure> {
        let found = match self.id.parse::<Id>() {
            Ok(id) => book.get(id).filter(|hold| caller.may_see(hold.uid.0)),
            Err(()) => self.uid.and_then(|uid| book.named(uid, &self.id)),
        };
        found.ok_or_else(|| {
            let key = self.id.chars().take(80).collect();
            Failure::Hold(HoldFailure::NotFound { what: "id", key })
        })
    }

    /// The same, if it is in force.
    fn in_force(&self, book: &Book, caller: &Caller) -> Result<Id, Failure> {
        let hold = self.find(book, caller)?;
        match hold.ended {
            None => Ok(hold.id),
            Some(ended) => {
                let (id, why) = (hold.id.to_string(), hold::why(ended.why));
                Err(Failure::Hold(HoldFailure::Ended { id, why }))
            }
        }
    }

    /// Whether it names a hold of which nothing is known any more.
    fn is_forgotten(&self, book: &Book) -> bool {
        self.id.parse::<Id>().is_ok_and(|id| book.was_made(id) && book.get(id).is_none())
    }
}

impl Context {
    pub(super) fn caller<T>(&self, request: &Request<T>) -> Caller {
        Caller::of(request, &self.owners)
    }

    async fn renew_hold(
        &self,
        request: v1::RenewHoldRequest,
        caller: Caller,
    ) -> Result<v1::RenewHoldResponse, Failure> {
        let mut faults = Faults::default();
        let most = self.live.now().holds.max_hold_ttl;
        let ttl = request.ttl.and_then(|ttl| ttl_from_wire("ttl", ttl, most, &mut faults));
        faults.none()?;
        let key = Key { id: request.id, uid: caller.whose("uid", request.uid)? };
        let renewed = self.holds.act(move |desk| {
            let id = key.in_force(desk.book(), &caller)?;
            let now = desk.now;
            let renewed = desk.change()?.renew(id, ttl, now);
            let hold = renewed.map_err(|_| Failure::Hold(HoldFailure::NoExpiry { id: id.to_string() }))?;
            Ok(hold::to_wire(&hold, &desk.snapshot()?))
        });
        Ok(v1::RenewHoldResponse { hold: Some(renewed.await?) })
    }

    async fn release_hold(
        &self,
        request: v1::ReleaseHoldRequest,
        caller: Caller,
    ) -> Result<v1::ReleaseHoldResponse, Failure> {
        let key = Key { id: request.id, uid: caller.whose("uid", request.uid)? };
        let released = self.holds.act(move |desk| {
            let ended = v1::ReleaseHoldResponse { hold: None, also_released: 0 };
            let hold = match key.find(desk.book(), &caller) {
                Ok(hold) if hold.ended.is_none() => hold.id,
                Ok(_) => return Ok(ended),
                // It was made once, and how it ended is forgotten.
                Err(_) if key.is_forgotten(desk.book()) => return Ok(ended),
                Err(failure) => return Err(failure),
            };
            let now = desk.now;
            let Ok(released) = desk.change()?.release(hold, now) else { return Ok(ended) };
            let hold = hold::to_wire(&released.hold, &desk.snapshot()?);
            Ok(v1::ReleaseHoldResponse { hold: Some(hold), also_released: released.also })
        });
        released.await
    }

    async fn adopt_hold(
        &self,
        request: v1::AdoptHoldRequest,
        caller: Caller,
    ) -> Result<v1::AdoptHoldResponse, Failure> {
        let mut faults = Faults::default();
        let own = || v1::Owner { owner: Some(v1::owner::Owner::Process(v1::Process::default())) };
        let owner = owner_from_wire("owner", request.owner.unwrap_or_else(own), &caller, &mut faults);
        if owner == Some(Owner::Lease) {
            faults.add("owner", "it names nobody; expected a process or a cgroup");
        }
        faults.none()?;
        let owner = owner.ok_or_else(|| Failure::internal("no owner, and no fault"))?;
        let key = Key { id: request.id, uid: caller.whose("uid", request.uid)? };
        let keep_expiry = request.keep_expiry;
        let adopted = self.holds.act(move |desk| {
            let id = key.in_force(desk.book(), &caller)?;
            let hold = desk.change()?.adopt(id, owner, keep_expiry).map_err(Failure::internal)?;
            Ok(hold::to_wire(&hold, &desk.snapshot()?))
        });
        Ok(v1::AdoptHoldResponse { hold: Some(adopted.await?) })
    }

    async fn create_hold(
        &self,
        mut request: v1::CreateHoldRequest,
        caller: Caller,
    ) -> Result<v1::CreateHoldResponse, Failure> {
        let expect = request.expect.take();
        let content = Content::of(&request);
        let mut faults = Faults::default();
        let expected = snapshot::Expected::from_wire(expect, &mut faults);
        let spec = self.spec(request.hold.unwrap_or_default(), &caller, &mut faults)?;
        let wanted = cpus::set("cpus", &request.cpus, &mut faults);
        if request.tasks > 0 {
            cpus::tasks(request.tasks, &mut faults);
        }
        if wanted.is_none() && request.tasks > 0 {
            faults.add("tasks", "a claim has no CPUs, and so no tasks on them; expected 0");
        }
        if request.foreign {
            caller.peer().require(Role::Admin, "`foreign`")?;
        }
        faults.none()?;
        let (tasks, foreign) = (request.tasks, request.foreign);
        let (own, quotas) = (caller.own_cpus()?, self.quotas());
        self.holds
            .act(move |desk| {
                if let Some(before) = kept::made_before(desk, &spec, &content)? {
                    let hold = hold::to_wire(&before.hold, &desk.snapshot()?);
                    return Ok(v1::CreateHoldResponse { hold: Some(hold), warnings: Vec::new() });
                }
                let snapshot = desk.snapshot()?;
                expected.is_met(&snapshot)?;
                let (parts, warnings) = parts(wanted, tasks, own.as_ref(), &snapshot)?;
                let by = (&caller, quotas);
                let hold = kept::make(desk, &spec, parts, foreign, by, (&content, &[]))?;
                let hold = hold::to_wire(&hold, &desk.snapshot()?);
                Ok(v1::CreateHoldResponse { hold: Some(hold), warnings: warnings.into_wire() })
            })
            .await
    }

    /// What a new hold should be, of whom the caller may ask it for.
    pub(super) fn spec(
        &self,
        spec: v1::HoldSpec,
        caller: &Caller,
        faults: &mut Faults,
    ) -> Result<Spec, Failure> {
        let uid = caller.holder("hold.uid", spec.uid)?;
        Ok(Spec::from_wire(spec, uid.0, self.ttl(), caller, faults))
    }

    fn list_holds(
        &self,
        request: &v1::ListHoldsRequest,
        caller: &Caller,
    ) -> Result<v1::ListHoldsResponse, Failure> {
        let mut faults = Faults::default();
        if request.page_size > MAX_PAGE {
            faults.add("page_size", format!("{}; expected at most {MAX_PAGE}", request.page_size));
        }
        let after = match request.page_token.as_str() {
            "" => Id::new(0),
            token => token.parse().unwrap_or_else(|()| {
                let said = "it is none that was given; expected `next_page_token` of the page before";
                faults.add("page_token", said);
                Id::new(0)
            }),
        };
        let cpus = cpus::set("cpus", &request.cpus, &mut faults);
        faults.none()?;
        let snapshot = self.snapshot()?;
        let uid = caller.whose("uid", request.uid)?;
        let claim = match request.claim.as_str() {
            "" => None,
            key => Some(Key { id: key.to_owned(), uid }.find(&snapshot.holds, caller)?.id),
        };
        let only = request.uid.and(uid);
        let is_asked = |hold: &&Arc<Hold>| {
            caller.may_see(hold.uid.0)
                && only.is_none_or(|uid| hold.uid == uid)
                && cpus.as_ref().is_none_or(|cpus| hold.overlaps(cpus))
                && claim.is_none_or(|claim| hold.claim == Some(claim))
        };
        let size = match request.page_size {
            0 => PAGE,
            size => size,
        };
        let mut found = snapshot.holds.living_after(after).filter(is_asked).peekable();
        let mut holds: Vec<v1::Hold> = Vec::new();
        while count(holds.len()) < size
            && let Some(hold) = found.next()
        {
            holds.push(hold::to_wire(hold, &snapshot));
        }
        let last = holds.last().map(|hold| hold.id.clone()).unwrap_or_default();
        let next_page_token = if found.peek().is_some() { last } else { String::new() };
        Ok(v1::ListHoldsResponse { holds, next_page_token, holds_generation: snapshot.holds.generation() })
    }
}

/// The masks of a hold on these CPUs; none for a claim.
fn parts(
    wanted: Option<CpuSet>,
    tasks: u32,
    own: Option<&CpuSet>,
    snapshot: &Snapshot,
) -> Result<(Vec<Part>, Warnings), Failure> {
    let mut warnings = Warnings::default();
    let Some(wanted) = wanted else { return Ok((Vec::new(), warnings)) };
    let mut faults = Faults::default();
    let topology = &snapshot.machine.topology;
    cpus::exist("cpus", &wanted, topology, &mut faults);
    faults.none()?;
    Caller::check_cpus("cpus", &wanted, own)?;
    let online = cpus::online("cpus", &wanted, topology, &mut warnings)?;
    let tasks = if tasks == 0 { count(online.len()) } else { tasks };
    Ok((vec![Part::spread(&online, tasks)], warnings))
}
