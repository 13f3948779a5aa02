//! All that is held at one moment.

use super::{End, Ended, Expiry, Hold, Id, Mode, Moment, Owner, Part, Uid};
use crate::cpuset::{Cpu, CpuSet};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// The most holds that are in force at a time.
pub const MAX_HOLDS: usize = 16_384;

/// What a new hold should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    /// The user that it will belong to.
    pub uid: Uid,
    /// The user's name for it; empty for none.
    pub name: String,
    /// Who it ends with.
    pub owner: Owner,
    /// Its masks; empty for a claim.
    pub parts: Vec<Part>,
    /// Shared or exclusive.
    pub mode: Mode,
    /// The claim that it belongs to.
    pub claim: Option<Id>,
    /// Another manager gave the CPUs out: it is made even where it overlaps others.
    pub foreign: bool,
    /// It outlasts the sight of its tasks.
    pub keep: bool,
    /// How long it lasts; `None` for no expiry.
    pub ttl: Option<Duration>,
    /// Tasks that are measured on its CPUs now.
    pub before: u32,
    /// Id of the request; empty for none.
    pub request_id: String,
    /// Facts for people.
    pub labels: BTreeMap<String, String>,
}

impl New {
    fn cpus(&self) -> CpuSet {
        self.parts.iter().fold(CpuSet::new(), |all, part| all.union(part.cpus()))
    }
}

/// Why an operation was not done. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Others hold CPUs in a way that leaves no room.
    #[error("CPUs {cpus} are held by others")]
    Taken {
        /// Those of the asked CPUs that cannot be had.
        cpus: CpuSet,
        /// Whose they are.
        by: Vec<Id>,
    },
    /// As many holds are in force as can be.
    #[error("{MAX_HOLDS} holds are in force, and no more are kept")]
    Full,
    /// A living hold of the user has the name.
    #[error("the hold {id} has this name already")]
    NameTaken {
        /// That hold.
        id: Id,
    },
    /// There is no such hold in force.
    #[error("there is no such hold in force")]
    NotFound,
    /// What should be a claim holds CPUs.
    #[error("the hold {id} has CPUs, so none can belong to it")]
    NotAClaim {
        /// That hold.
        id: Id,
    },
    /// A lease needs an expiry.
    #[error("the hold has no owner and no expiry, so it would never end")]
    Endless,
    /// It has no expiry to be set anew.
    #[error("the hold has no expiry")]
    NoExpiry,
}

/// Why what was written down cannot be a book.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("hold {id}: {what}")]
pub struct Broken {
    /// The hold that cannot be.
    pub id: Id,
    /// Why.
    pub what: &'static str,
}

/// What was released.
#[derive(Debug, Clone)]
pub struct Released {
    /// The hold as it ended.
    pub hold: Arc<Hold>,
    /// How many ended with it because they belonged to it.
    pub also: u32,
}

/// What is held on one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) tasks: u32,
    holds: u32,
    exclusive: u32,
}

/// All that is held at one moment. A copy shares its holds.
#[derive(Debug, Clone, Default)]
pub struct Book {
    pub(super) last_id: u64,
    pub(super) generation: u64,
    pub(super) living: BTreeMap<Id, Arc<Hold>>,
    /// The last ones that ended, so that it can be told how.
    pub(super) ended: BTreeMap<Id, Arc<Hold>>,
    counts: Vec<Count>,
}

impl Book {
    /// A book as it was written down: its last id, its generation, and all holds that are not forgotten.
    ///
    /// # Errors
    ///
    /// If no operations can have led to this.
    pub fn restore(
        last_id: u64,
        generation: u64,
        holds: impl IntoIterator<Item = Hold>,
    ) -> Result<Self, Broken> {
        let mut book = Self { last_id, generation, ..Self::default() };
        for hold in holds {
            let id = hold.id;
            let broken = |what| Err(Broken { id, what });
            if id.number() == 0 || id.number() > last_id {
                return broken("it has an id that was never given");
            }
            if hold.generation > generation {
                return broken("it has a generation that is yet to come");
            }
            if hold.ended.is_none() {
                book.count(&hold, 1);
            }
            let into = if hold.ended.is_none() { &mut book.living } else { &mut book.ended };
            if into.insert(id, Arc::new(hold)).is_some() {
                return broken("it is there twice");
            }
        }
        for hold in book.living.values() {
            let is_claim = |claim: &Id| book.living.get(claim).is_some_and(|claim| claim.is_claim());
            if hold.claim.as_ref().is_some_and(|claim| *claim >= hold.id || !is_claim(claim)) {
                return Err(Broken { id: hold.id, what: "it belongs to a claim that is not there" });
            }
        }
        Ok(book)
    }

    /// One more after each change.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Sees to it that the generation is one after this: the book follows on others that it does not know.
    pub fn begin_after(&mut self, generation: u64) {
        self.generation = self.generation.max(generation + 1);
    }

    /// The number of the last hold that was made.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Whether nothing is in force.
    pub fn is_empty(&self) -> bool {
        self.living.is_empty()
    }

    /// How many are in force.
    pub fn len(&self) -> usize {
        self.living.len()
    }

    /// The holds in force, oldest first.
    pub fn living(&self) -> impl DoubleEndedIterator<Item = &Arc<Hold>> {
        self.living.values()
    }

    /// The holds in force that are younger than this one, oldest first.
    pub fn living_after(&self, id: Id) -> impl Iterator<Item = &Arc<Hold>> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.living.range((Excluded(id), Unbounded)).map(|(_, hold)| hold)
    }

    /// The holds that ended lately.
    pub fn ended(&self) -> impl Iterator<Item = &Arc<Hold>> {
        self.ended.values()
    }

    /// Holds, in force or ended, that changed after this generation.
    pub fn changed_since(&self, generation: u64) -> impl Iterator<Item = &Arc<Hold>> {
        self.ended.values().chain(self.living.values()).filter(move |hold| hold.generation > generation)
    }

    /// The hold with this id, in force or ended lately.
    pub fn get(&self, id: Id) -> Option<&Arc<Hold>> {
        self.living.get(&id).or_else(|| self.ended.get(&id))
    }

    /// Whether a hold with this id has ever been made.
    pub fn was_made(&self, id: Id) -> bool {
        (1..=self.last_id).contains(&id.number())
    }

    /// The user's hold of this name: one in force, else the last that ended.
    pub fn named(&self, uid: Uid, name: &str) -> Option<&Arc<Hold>> {
        let is = |hold: &&Arc<Hold>| hold.uid == uid && hold.name == name && !name.is_empty();
        self.living.values().find(is).or_else(|| self.ended.values().rev().find(is))
    }

    /// The hold that this request of the user made, in force or ended lately.
    pub fn requested(&self, uid: Uid, request_id: &str) -> Option<&Arc<Hold>> {
        let is =
            |hold: &&Arc<Hold>| hold.uid == uid && hold.request_id == request_id && !request_id.is_empty();
        self.living.values().rev().find(is).or_else(|| self.ended.values().rev().find(is))
    }

    /// The holds of a user that are in force: how many, and the CPUs of those that are exclusive.
    pub fn of_user(&self, uid: Uid) -> (usize, CpuSet) {
        let own = || self.living.values().filter(move |hold| hold.uid == uid);
        let exclusive = own().filter(|hold| hold.mode == Mode::Exclusive && !hold.foreign);
        (own().count(), exclusive.fold(CpuSet::new(), |all, hold| all.union(&hold.cpus())))
    }

    /// The CPUs of `within` that a new hold of this mode cannot have.
    pub fn closed_to(&self, mode: Mode, within: &CpuSet) -> CpuSet {
        let closed = |count: Count| match mode {
            Mode::Shared => count.exclusive > 0,
            Mode::Exclusive => count.holds > 0,
        };
        self.on_each()
            .filter(|&(cpu, count)| closed(count) && within.contains(cpu))
            .map(|(cpu, _)| cpu)
            .collect()
    }

    /// The holds in force that have any of these CPUs, oldest first.
    pub fn holders_of<'a>(&'a self, cpus: &'a CpuSet) -> impl Iterator<Item = &'a Arc<Hold>> {
        self.living.values().filter(|hold| hold.overlaps(cpus))
    }

    /// When the first of these holds expires; `None` if none has an expiry.
    pub fn next_expiry<'a>(&self, ids: impl IntoIterator<Item = &'a Id>) -> Option<Moment> {
        let expiries = ids.into_iter().filter_map(|id| self.living.get(id)?.expiry);
        expiries.map(|expiry| expiry.at).min()
    }

    /// Other holds that are on CPUs which are this one's alone.
    pub fn intruders_of<'a>(&'a self, hold: &'a Hold) -> impl Iterator<Item = &'a Arc<Hold>> {
        let shares = |&(cpu, _): &(Cpu, u32)| self.on(cpu).holds > 1;
        let is_shared = hold.mode == Mode::Exclusive
            && hold.ended.is_none()
            && hold.parts.iter().flat_map(Part::counts).any(shares);
        let cpus = if is_shared { hold.cpus() } else { CpuSet::new() };
        let others = self.living.values().filter(move |_| is_shared);
        others.filter(move |other| other.id != hold.id && other.overlaps(&cpus))
    }

    /// Makes a hold.
    ///
    /// # Errors
    ///
    /// If it cannot be.
    pub fn make(&mut self, new: New, now: Moment) -> Result<Arc<Hold>, Error> {
        if self.living.len() >= MAX_HOLDS {
            return Err(Error::Full);
        }
        if new.owner == Owner::Lease && new.ttl.is_none() && new.claim.is_none() {
            return Err(Error::Endless);
        }
        if let Some(claim) = new.claim {
            let claim =
                self.living.get(&claim).filter(|claim| claim.uid == new.uid).ok_or(Error::NotFound)?;
            if !claim.is_claim() {
                return Err(Error::NotAClaim { id: claim.id });
            }
        }
        let named = self.named(new.uid, &new.name).filter(|hold| hold.ended.is_none());
        if let Some(hold) = named {
            return Err(Error::NameTaken { id: hold.id });
        }
        let cpus = new.cpus();
        let closed = self.closed_to(new.mode, &cpus);
        if !closed.is_empty() && !new.foreign {
            let by = self.holders_of(&closed).map(|hold| hold.id).collect();
            return Err(Error::Taken { cpus: closed, by });
        }
        self.last_id += 1;
        self.generation += 1;
        let hold = Arc::new(Hold {
            id: Id::new(self.last_id),
            uid: new.uid,
            name: new.name,
            owner: new.owner,
            parts: new.parts,
            mode: new.mode,
            claim: new.claim,
            foreign: new.foreign,
            keep: new.keep,
            tasks_seen: false,
            before: new.before,
            created_at: now,
            expiry: new.ttl.map(|ttl| Expiry { ttl, at: now.after(ttl) }),
            request_id: new.request_id,
            labels: new.labels,
            missing: CpuSet::new(),
            generation: self.generation,
            ended: None,
        });
        self.touch_intruded(&cpus);
        self.count(&hold, 1);
        self.living.insert(hold.id, Arc::clone(&hold));
        Ok(hold)
    }

    /// Sets the expiry of a hold anew: so long from now, or as long as it was given last.
    ///
    /// # Errors
    ///
    /// If it is not in force, or has no expiry and is given none.
    pub fn renew(&mut self, id: Id, ttl: Option<Duration>, now: Moment) -> Result<Arc<Hold>, Error> {
        let hold = self.living.get(&id).ok_or(Error::NotFound)?;
        let ttl = ttl.or_else(|| hold.expiry.map(|expiry| expiry.ttl)).ok_or(Error::NoExpiry)?;
        self.change(id, |hold| hold.expiry = Some(Expiry { ttl, at: now.after(ttl) }))
    }

    /// Ends a hold, and all that belong to it.
    ///
    /// # Errors
    ///
    /// If it is not in force.
    pub fn release(&mut self, id: Id, now: Moment) -> Result<Released, Error> {
        if !self.living.contains_key(&id) {
            return Err(Error::NotFound);
        }
        self.generation += 1;
        let (hold, also) = self.end(id, End::Released, now).ok_or(Error::NotFound)?;
        Ok(Released { hold, also })
    }

    /// Gives a hold another owner, which it then ends with; it outlasts the sight of its tasks from then on.
    ///
    /// # Errors
    ///
    /// If it is not in force, or would never end.
    pub fn adopt(&mut self, id: Id, owner: Owner, keep_expiry: bool) -> Result<Arc<Hold>, Error> {
        let hold = self.living.get(&id).ok_or(Error::NotFound)?;
        if owner == Owner::Lease && (!keep_expiry || hold.expiry.is_none()) {
            return Err(Error::Endless);
        }
        self.change(id, |hold| {
            hold.owner = owner;
            hold.keep = true;
            if !keep_expiry {
                hold.expiry = None;
            }
        })
    }

    /// Changes a hold in force.
    pub(super) fn change(&mut self, id: Id, change: impl FnOnce(&mut Hold)) -> Result<Arc<Hold>, Error> {
        let hold = self.living.get_mut(&id).ok_or(Error::NotFound)?;
        self.generation += 1;
        let changed = Arc::make_mut(hold);
        change(changed);
        changed.generation = self.generation;
        Ok(Arc::clone(hold))
    }

    /// Ends a hold in this generation, and all that belong to it; says how many these were.
    pub(super) fn end(&mut self, id: Id, why: End, now: Moment) -> Option<(Arc<Hold>, u32)> {
        let mut hold = self.living.remove(&id)?;
        self.count(&hold, -1);
        let ended = Arc::make_mut(&mut hold);
        ended.ended = Some(Ended { why, at: now });
        ended.generation = self.generation;
        self.ended.insert(id, Arc::clone(&hold));
        self.touch_intruded(&hold.cpus());
        let mut also = 0;
        if hold.is_claim() {
            let belonging: Vec<Id> =
                self.living.values().filter(|other| other.claim == Some(id)).map(|other| other.id).collect();
            for other in belonging {
                also += self.end(other, End::ClaimEnded, now).map_or(0, |(_, also)| also + 1);
            }
        }
        Some((hold, also))
    }

    /// What is violated of exclusive holds on these CPUs changes with another one, which is not counted now.
    fn touch_intruded(&mut self, cpus: &CpuSet) {
        if cpus.iter().all(|cpu| self.on(cpu).exclusive == 0) {
            return;
        }
        let generation = self.generation;
        for hold in self.living.values_mut() {
            if hold.mode == Mode::Exclusive && hold.overlaps(cpus) {
                Arc::make_mut(hold).generation = generation;
            }
        }
    }

    fn on(&self, cpu: Cpu) -> Count {
        self.counts.get(cpu.index()).copied().unwrap_or_default()
    }

    pub(super) fn on_each(&self) -> impl Iterator<Item = (Cpu, Count)> {
        let each = (0..=u16::MAX).map(Cpu::from).zip(self.counts.iter().copied());
        each.filter(|(_, count)| count.holds > 0)
    }

    /// Counts a hold in, or out.
    fn count(&mut self, hold: &Hold, by: i32) {
        let add = |to: &mut u32, amount: u32| {
            *to = if by > 0 { to.saturating_add(amount) } else { to.saturating_sub(amount) };
        };
        // A CPU in several parts of one hold has that one holder.
        let mut met: BTreeSet<Cpu> = BTreeSet::new();
        for &(cpu, tasks) in hold.parts.iter().flat_map(Part::counts) {
            if self.counts.len() <= cpu.index() {
                self.counts.resize(cpu.index() + 1, Count::default());
            }
            let count = &mut self.counts[cpu.index()];
            add(&mut count.tasks, tasks);
            if met.insert(cpu) {
                add(&mut count.holds, 1);
                add(&mut count.exclusive, u32::from(hold.mode == Mode::Exclusive));
            }
        }
    }
}
