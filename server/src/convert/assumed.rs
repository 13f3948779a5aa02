//! What a proof takes for granted, to the wire.

use super::{
    predict::Launch,
    snapshot::{Ground, LoadTaken},
};
use berth_model::advise::Proof;
use berth_proto::v1;

/// What is so only if somebody's word for it is right: the request's, or that of how busy CPUs were.
pub(crate) fn by(ground: Ground, launch: &Launch, proof: &Proof) -> Vec<v1::Reason> {
    let follows_runs = proof.runs > 0;
    let load = match ground.load_taken {
        LoadTaken::Counted => None,
        LoadTaken::Estimated => Some((
            "LOAD_ESTIMATED",
            "Runnable tasks are estimated: at most one on each CPU that was busy half of the time or more, and none elsewhere.",
        )),
        LoadTaken::Idle => {
            Some(("LOAD_UNKNOWN", "What runs on the described host is not told: nothing does."))
        }
    };
    let clock = (follows_runs && launch.gap == 0).then_some((
        "CLOCK_FROZEN",
        "No time passes during the launch, as the request says: of the parent and its tasks it is known how much the kernel thinks they run.",
    ));
    let marks = (follows_runs && !launch.marks_open)
        .then_some(("MARKS_TOLD", "No group is marked as imbalanced but as the request says."));
    let told = |(reason, message): (&str, &str)| v1::Reason {
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    [load, clock, marks].into_iter().flatten().map(told).collect()
}
