//! Holds: how many came, went and were refused. How many there are is looked up: see [`super::facts`].

use berth_model::hold::{End, Hold, Mode};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// What became of holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    made: Family<Made, Counter>,
    ended: Family<Ended, Counter>,
    refused: Family<Refused, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Made {
    mode: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    why: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    reason: &'static str,
}

impl Holds {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let holds = Self::default();
        let Self { made, ended, refused } = holds.clone();
        registry.register("holds_made", "Holds that were made and written", made);
        registry.register("holds_ended", "Holds that ended, by why", ended);
        let help =
            "Requests to make, renew, adopt or release a hold that were refused, by the reason of the error";
        registry.register("hold_refusals", help, refused);
        holds
    }

    /// One was made.
    pub(crate) fn made(&self, hold: &Hold) {
        self.made.get_or_create(&Made { mode: state(hold) }).inc();
    }

    /// One ended. Returns why, in a word.
    pub(crate) fn ended(&self, why: End) -> &'static str {
        let why = word(why);
        self.ended.get_or_create(&Ended { why }).inc();
        why
    }

    /// A request about one was refused for this reason.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&Refused { reason }).inc();
    }
}

/// What a hold is, in a word.
pub(crate) fn state(hold: &Hold) -> &'static str {
    match hold.mode {
        _ if hold.is_claim() => "claim",
        Mode::Shared => "shared",
        Mode::Exclusive => "exclusive",
    }
}

fn word(why: End) -> &'static str {
    match why {
        End::Released => "released",
        End::ProcessDied => "process_died",
        End::CgroupEmpty => "cgroup_empty",
        End::Expired => "expired",
        End::TasksSeen => "tasks_seen",
        End::ClaimEnded => "claim_ended",
        End::Rebooted => "rebooted",
    }
}
