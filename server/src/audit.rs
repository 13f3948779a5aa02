//! The audit log: a line for each hold that is made, changed or ended, under the target `audit`, whatever else is logged.
//!
//! Lines are told when the change has been written, each with the request that asked for it and its caller; what the
//! daemon does by itself has none.

use crate::{
    auth::{Key, caller},
    layers::request_id,
    metrics,
};
use berth_model::hold::{Book, Hold, Owner};
use std::fmt;

/// The target that a filter names to have or not to have these lines.
pub(crate) const TARGET: &str = "audit";

/// On whose behalf something is decided.
#[derive(Debug, Clone)]
pub(crate) struct By {
    request: String,
    caller: Key,
}

impl By {
    /// The request that is being answered, if one is.
    pub(crate) fn current() -> Option<Self> {
        request_id::current().map(|request| Self { request, caller: caller::current() })
    }
}

/// What has been decided, and is not written yet: on whose behalf.
#[derive(Debug, Default)]
pub(crate) struct Causes(Vec<Cause>);

#[derive(Debug)]
struct Cause {
    by: Option<By>,
    /// Generation of the book, and its youngest hold, once it was decided.
    generation: u64,
    last_id: u64,
}

impl Causes {
    /// Whatever has changed in the book since the note before was decided on this behalf.
    pub(crate) fn note(&mut self, book: &Book, by: Option<By>) {
        if self.0.last().is_none_or(|last| last.generation != book.generation()) {
            let (generation, last_id) = (book.generation(), book.last_id());
            self.0.push(Cause { by, generation, last_id });
        }
    }

    /// Tells, and counts, what became of holds from one book to the next.
    pub(crate) fn tell(&self, before: &Book, now: &Book, metrics: &metrics::Holds) {
        for hold in now.changed_since(before.generation()) {
            let known = before.get(hold.id);
            if known.is_none() {
                metrics.made(hold);
                self.tell_one("made", None, hold, |cause| cause.last_id >= hold.id.number());
            }
            let by = |cause: &Cause| cause.generation >= hold.generation;
            match (known, hold.ended) {
                (_, Some(ended)) if known.is_none_or(|known| known.ended.is_none()) => {
                    let why = metrics.ended(ended.why);
                    self.tell_one("ended", Some(why), hold, by);
                }
                (Some(known), None) => {
                    let what = changes(known, hold);
                    what.into_iter().for_each(|what| self.tell_one(what, None, hold, by));
                }
                _ => {}
            }
        }
    }

    fn tell_one(&self, what: &str, why: Option<&str>, hold: &Hold, is_it: impl Fn(&Cause) -> bool) {
        let by = self.0.iter().find(|cause| is_it(cause)).and_then(|cause| cause.by.as_ref());
        tracing::info!(
            target: TARGET,
            what,
            why,
            hold = %hold.id,
            name = Some(hold.name.as_str()).filter(|name| !name.is_empty()),
            uid = hold.uid.0,
            owner = %Of(&hold.owner),
            cpus = %hold.cpus(),
            tasks = hold.tasks(),
            mode = metrics::state(hold),
            claim = hold.claim.map(display),
            missing = Some(&hold.missing).filter(|missing| !missing.is_empty()).map(display),
            request = by.map(|by| by.request.as_str()),
            caller = by.map(|by| display(&by.caller)),
            "hold"
        );
    }
}

/// What has changed of a hold that goes on.
fn changes(before: &Hold, now: &Hold) -> Vec<&'static str> {
    let changes = [
        ("adopted", before.owner != now.owner),
        ("renewed", before.expiry != now.expiry && before.owner == now.owner),
        ("violated", before.missing != now.missing && !now.missing.is_empty()),
        ("whole again", before.missing != now.missing && now.missing.is_empty()),
    ];
    changes.into_iter().filter_map(|(what, is_so)| is_so.then_some(what)).collect()
}

struct Of<'a>(&'a Owner);

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Owner::Lease => f.write_str("lease"),
            Owner::Process(process) => write!(f, "process {}", process.pid),
            Owner::Cgroup(path) => write!(f, "cgroup {path}"),
        }
    }
}
