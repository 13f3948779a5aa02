//! Profiles and their rules, to the wire.

use berth_model::profile::{Knowledge, Profile, Rule, Status};
use berth_proto::v1;

/// Whether some kernel that people run follows the profile.
pub(crate) fn is_of_a_kernel(profile: &Profile) -> bool {
    matches!(profile.provenance.status, Status::Released | Status::Vendor)
}

pub(crate) fn to_wire(profile: &Profile) -> v1::Profile {
    let provenance = &profile.provenance;
    let known = match provenance.knowledge {
        Knowledge::SourceRead => "Its rules were read in the source",
        Knowledge::PatchMail => "Its rules were read in patch mails and test reports",
        Knowledge::Inferred => {
            "Its rules are put together from releases before and after it and a list of changes"
        }
        Knowledge::Unconfirmed => "Its rules are assumed, since no change was found; the source was not read",
    };
    let note = if provenance.note.is_empty() { String::new() } else { format!("; {}", provenance.note) };
    v1::Profile {
        name: profile.name.to_owned(),
        title: provenance.releases.to_owned(),
        released: provenance.status == Status::Released,
        rules: rules(profile),
        basis: format!("{known}{note}."),
        since: since(profile).into_iter().collect(),
    }
}

/// The first release of a profile that is named after it, such as `v6.12` or `6.12.97+`.
fn since(profile: &Profile) -> Option<String> {
    let name = profile.name.trim_start_matches('v').trim_end_matches('+');
    let is_release = name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    (is_release && profile.provenance.status == Status::Released).then(|| name.to_owned())
}

/// The rules by name.
pub(crate) fn rules(profile: &Profile) -> Vec<v1::Rule> {
    let to_wire = |rule: Rule| v1::Rule {
        name: rule.name.to_owned(),
        value: rule.value,
        meaning: rule.meaning.to_owned(),
        since: rule.since.to_owned(),
        commit: rule.commit.to_owned(),
    };
    profile.rules().into_iter().map(to_wire).collect()
}
