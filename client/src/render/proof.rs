//! A proof in words.

use berth_proto::v1::{Proof, proof};

use super::{kernel::some, outcome::Field};
use crate::text::{Tone, cpus, numbers, words};

/// The outcome, and why.
pub(super) fn result(proof: &Proof) -> (Tone, String) {
    let (tone, name) = words::proof(proof.result());
    let because = match (proof.because.as_str(), proof.result()) {
        ("", proof::Result::Safe) => "no run piles up",
        ("", proof::Result::Unsafe) => "a run piles up",
        ("", proof::Result::Cut) => "a proof needs more runs than are allowed",
        ("", proof::Result::NotProven) => "not tried, or not covered by the model",
        (because, _) => because,
    };
    (tone, format!("{name}: {because}"))
}

/// The run that piles up, if there is one and the proof has no words for it.
pub(super) fn failing(proof: &Proof) -> String {
    let run = proof.failing_run.as_ref().filter(|_| proof.because.is_empty());
    run.map_or_else(String::new, |run| {
        format!(
            "From CPU {} under {}: {} on one CPU, where {} is possible.",
            run.origin,
            run.profile,
            numbers::count(run.most_on_one_cpu, "task"),
            run.best_possible
        )
    })
}

/// What the proof of the advice rests on.
pub(super) fn fields(proof: &Proof, whole: bool) -> Vec<Field> {
    let plain = |label, text| (label, Tone::Plain, text);
    let (tone, result) = result(proof);
    let runs = match (proof.runs, proof.runs_needed) {
        (0, 0) => "none needed".to_owned(),
        (runs, needed) if runs == needed => format!("{runs}, all that a proof needs"),
        (runs, 0) => format!("{runs}, where it ended"),
        (runs, needed) => format!("{runs} of {needed} that a proof needs"),
    };
    let margin = proof.margin.map(|margin| match (margin, proof.margin_at_least) {
        (0, false) => "none: one more busy CPU can break it".to_owned(),
        (0, true) => "not known: the search for it was cut".to_owned(),
        (n, least) => {
            let least = if least { "at least " } else { "" };
            format!("it stands {least}{}, wherever they are", numbers::count(n, "more busy CPU"))
        }
    });
    let origins = if proof.origins.is_empty() { String::new() } else { cpus::named(&proof.origins, whole) };
    vec![
        ("proof", tone, result),
        plain("runs", runs),
        plain("failing run", failing(proof)),
        plain("origins", origins),
        plain("rules", some(&proof.profiles, whole)),
        plain("margin", margin.unwrap_or_default()),
    ]
}
