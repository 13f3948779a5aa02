//! Tests of the module as a whole.

mod hosts;
mod table;
mod texts;

use super::{Candidates, KernelIdentity, candidates};

fn told(release: &str, version: &str, signature: &str) -> Candidates {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let identity = KernelIdentity {
        release: release.to_owned(),
        version: given(version),
        version_signature: given(signature),
    };
    candidates(&identity).unwrap()
}

/// `Exact v6.12`, `Ambiguous v6.1 6.1.178+`.
fn summary(candidates: &Candidates) -> String {
    let names: Vec<_> = candidates.profiles.iter().map(|profile| profile.name).collect();
    format!("{:?} {}", candidates.confidence, names.join(" "))
}
