//! Making holds, once for each request.

use super::{Context, caller::Caller};
use crate::{
    auth::Quotas,
    convert::{
        Failure, HoldFailure, Warnings, count,
        cpus::shorten,
        hold,
        hold_spec::{Spec, Ttl},
    },
    ledger::{Desk, now},
    snapshot::Snapshot,
};
use berth_model::{
    cpuset::CpuSet,
    hold::{Book, Error, Hold, Id, MAX_HOLDS, Mode, Moment, Part, Uid, running_on},
};
use prost::Message;
use ring::digest::{Digest, SHA256, digest};
use std::{collections::BTreeMap, sync::Arc};

impl Context {
    /// How long holds last.
    pub(super) fn ttl(&self) -> Ttl {
        let settings = self.live.now();
        Ttl { default: settings.holds.hold_ttl, most: settings.holds.max_hold_ttl }
    }

    /// How much one user may hold.
    pub(super) fn quotas(&self) -> Quotas {
        self.live.now().holds.quotas()
    }
}

/// A hold that a request has made before.
pub(super) struct Before {
    pub(super) hold: Arc<Hold>,
    /// What was answered then.
    pub(super) answer: Vec<u8>,
}

/// What makes a request the same one if it comes again. However long it is, little of it is kept.
#[derive(Debug)]
pub(super) struct Content(Digest);

impl Content {
    pub(super) fn of(request: &impl Message) -> Self {
        Self(digest(&SHA256, &request.encode_to_vec()))
    }
}

/// The hold that this request made before.
///
/// # Errors
///
/// If its id stands for a request of other content.
pub(super) fn made_before(
    desk: &Desk<'_>,
    spec: &Spec,
    content: &Content,
) -> Result<Option<Before>, Failure> {
    let Some(hold) = desk.book().requested(spec.uid, &spec.request_id) else { return Ok(None) };
    let hold = Arc::clone(hold);
    match desk.answer(hold.id)?.as_deref().and_then(unpack) {
        Some((same, answer)) if same == content.0.as_ref() => {
            Ok(Some(Before { hold, answer: answer.to_owned() }))
        }
        _ => Err(Failure::Hold(HoldFailure::RequestIdUsed {
            request_id: spec.request_id.clone(),
            id: hold.id.to_string(),
        })),
    }
}

/// Makes a hold. `request` is what was asked and what is answered, for the day that the request comes again.
pub(super) fn make(
    desk: &mut Desk<'_>,
    spec: &Spec,
    parts: Vec<Part>,
    foreign: bool,
    (caller, quotas): (&Caller, Quotas),
    request: (&Content, &[u8]),
) -> Result<Arc<Hold>, Failure> {
    let claim = match spec.claim.as_str() {
        "" => None,
        key => Some(claim(desk, spec.uid, key)?),
    };
    let before = running_on(&desk.snapshot()?.load.of_model(), &parts);
    let asked = parts.iter().fold(CpuSet::new(), |all, part| all.union(part.cpus()));
    caller.check_quota(quotas, spec.uid, spec.mode, &asked, &desk.snapshot()?)?;
    let answer = (!spec.request_id.is_empty()).then(|| pack(request));
    let (now, new) = (desk.now, spec.with(parts, claim, before, foreign));
    desk.has_room(&new, answer.as_ref().map_or(0, Vec::len))?;
    let made = desk.change()?.make(new, now);
    let hold = made.map_err(|error| failure(desk, error, spec, &asked, caller))?;
    if let Some(answer) = answer {
        desk.remember(hold.id, answer);
    }
    Ok(hold)
}

/// A claim in force, by id or name.
fn claim(desk: &Desk<'_>, uid: Uid, key: &str) -> Result<Id, Failure> {
    let found = match key.parse::<Id>() {
        Ok(id) => desk.book().get(id).filter(|hold| hold.uid == uid),
        Err(()) => desk.book().named(uid, key),
    };
    let not_found = || HoldFailure::NotFound { what: "hold.claim", key: key.to_owned() };
    let claim = found.ok_or_else(not_found).map_err(Failure::Hold)?;
    match claim.ended {
        None => Ok(claim.id),
        Some(ended) => {
            Err(Failure::Hold(HoldFailure::Ended { id: claim.id.to_string(), why: hold::why(ended.why) }))
        }
    }
}

fn failure(desk: &Desk<'_>, error: Error, spec: &Spec, asked: &CpuSet, caller: &Caller) -> Failure {
    Failure::Hold(match error {
        Error::Taken { cpus, by } => {
            return taken(desk.book(), desk.now, asked, &cpus, &by, |uid| caller.may_see(uid));
        }
        Error::Full => HoldFailure::Full { limit: MAX_HOLDS },
        Error::NameTaken { id } => HoldFailure::NameUsed { name: spec.name.clone(), id: id.to_string() },
        Error::NotAClaim { id } => HoldFailure::NotAClaim { id: id.to_string() },
        Error::NotFound => HoldFailure::NotFound { what: "hold.claim", key: spec.claim.clone() },
        Error::Endless | Error::NoExpiry => return Failure::internal(error),
    })
}

/// The CPUs of `allowed` that tasks may be given now: not those that others hold alone, and for a hold of its own not
/// those that others hold at all.
///
/// # Errors
///
/// If too few are left.
pub(super) fn open_to(
    mode: Mode,
    allowed: &CpuSet,
    tasks: u32,
    snapshot: &Snapshot,
    may_see: impl Fn(u32) -> bool,
    warnings: &mut Warnings,
) -> Result<CpuSet, Failure> {
    let book = &snapshot.holds;
    if book.is_empty() || snapshot.load.is_given() {
        return Ok(allowed.clone());
    }
    let closed = book.closed_to(mode, allowed);
    let open = allowed.difference(&closed);
    let needed = match mode {
        Mode::Shared => 1,
        Mode::Exclusive => allowed.len().min(usize::try_from(tasks).unwrap_or(usize::MAX)),
    };
    if open.len() < needed {
        let by: Vec<Id> = book.holders_of(&closed).map(|hold| hold.id).collect();
        return Err(taken(book, now(), allowed, &closed, &by, may_see));
    }
    if !closed.is_empty() {
        let said = format!("CPUs {} are held by others and were left out.", shorten(&closed));
        warnings.add_about("CPUS_HELD", said, &closed);
    }
    Ok(open)
}

/// CPUs that are asked for are held: how many, by whom as far as the caller may know, and for how long.
fn taken(
    book: &Book,
    now: Moment,
    asked: &CpuSet,
    closed: &CpuSet,
    by: &[Id],
    may_see: impl Fn(u32) -> bool,
) -> Failure {
    let retry = book.next_expiry(by).map(|at| at.since(now));
    let holders = holders(by.iter().filter_map(|id| book.get(*id)), may_see);
    Failure::Hold(HoldFailure::Taken {
        asked: count(asked.len()),
        free: count(asked.difference(closed).len()),
        cpus: shorten(closed),
        holders,
        retry,
    })
}

/// Whose holds these are, in words.
fn holders<'a>(holds: impl Iterator<Item = &'a Arc<Hold>>, may_see: impl Fn(u32) -> bool) -> String {
    const TOLD: usize = 8;
    let (mut seen, mut hidden): (BTreeMap<u32, Vec<String>>, usize) = (BTreeMap::new(), 0);
    for hold in holds {
        if may_see(hold.uid.0) {
            let name = if hold.name.is_empty() { hold.id.to_string() } else { hold.name.clone() };
            seen.entry(hold.uid.0).or_default().push(name);
        } else {
            hidden += 1;
        }
    }
    let mut words: Vec<String> = Vec::new();
    for (uid, names) in seen {
        let more =
            if names.len() > TOLD { format!(" and {} more", names.len() - TOLD) } else { String::new() };
        let names: Vec<String> = names.into_iter().take(TOLD).collect();
        words.push(format!("{}{more} of uid {uid}", names.join(", ")));
    }
    match hidden {
        0 => {}
        1 => words.push("a hold of another user".to_owned()),
        _ => words.push(format!("{hidden} holds of other users")),
    }
    words.join("; ")
}

/// What was asked and what was answered, in one piece: the length of the first, then both.
fn pack((content, answer): (&Content, &[u8])) -> Vec<u8> {
    let content = content.0.as_ref();
    let mut packed = (content.len() as u64).to_le_bytes().to_vec();
    packed.extend_from_slice(content);
    packed.extend_from_slice(answer);
    packed
}

fn unpack(packed: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = packed.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}
