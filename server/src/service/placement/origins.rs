//! The classes of origins over all profiles, to the wire.

use super::search::{Found, OfClass};
use crate::convert::prediction;
use berth_proto::v1;
use std::cmp::Reverse;

/// Every class with the profile under which it is worst, worst first. Profiles may tell other classes apart.
pub(super) fn to_wire(found: &[Found]) -> Vec<v1::OriginOutcome> {
    let severity = |of_class: &OfClass| (of_class.rank(), of_class.outlook.central.tally.severity());
    let mut worst: Vec<(&'static str, &OfClass)> = Vec::new();
    for (profile, of_class) in found.iter().flat_map(|found| found.classes.iter().map(|c| (found.profile, c)))
    {
        let class = &of_class.outlook.origin.class;
        match worst.iter_mut().find(|(_, known)| known.outlook.origin.class == *class) {
            Some(known) if severity(of_class) > severity(known.1) => *known = (profile, of_class),
            Some(_) => {}
            None => worst.push((profile, of_class)),
        }
    }
    worst.sort_by_key(|(_, of_class)| Reverse(severity(of_class)));
    let entries = worst.into_iter().map(|(profile, of_class)| v1::OriginOutcome {
        cpus: of_class.outlook.origin.class.to_string(),
        verdict: of_class.verdict.into(),
        most_on_one_cpu: of_class.outlook.central.tally.fullest,
        cpu_use: Some(prediction::cpu_use(
            of_class.runs().map(|run| &run.tally),
            Some(of_class.outlook.frozen().tally.cpu_use),
        )),
        profile: profile.to_owned(),
    });
    entries.collect()
}
