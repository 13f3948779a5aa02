//! The model held against every record in the repository, with what it reaches as floors.

#![allow(clippy::unwrap_used)]

use berth_fidelity::{
    record::Record,
    report::{Report, Share, Tale},
    steps::Step,
};
use std::path::Path;

/// The report of all records, and the misses that are told.
fn all() -> (Report, Vec<String>) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/ground-truth");
    let (mut total, mut wrong) = (Report::default(), Vec::new());
    for record in &Record::read_all(Path::new(folder)).unwrap() {
        let report = Report::of(record, &mut |tale| {
            if matches!(tale, Tale::Proof { .. }) {
                wrong.push(tale.to_string());
            }
        });
        total += &report.unwrap();
    }
    (total, wrong)
}

#[test]
fn the_model_does_what_real_kernels_did() {
    let (total, wrong) = all();
    assert_eq!((total.cases, total.domains.of, total.domains.all), (3277, 736, 736));

    // The kernel's next choice is one that the model allows.
    let floor = |step: Step, percent: f64| {
        let share = total.steps_up_to(step);
        assert!(share.percent() >= percent, "{step:?}: {share}");
    };
    floor(Step::Allowed, 92.3);
    floor(Step::AnyMark, 97.7);
    floor(Step::MarkLeft, 98.9);
    floor(Step::ShortThread, 99.8);

    // Whole bursts, the parent's CPU being known and not.
    for (free, [node, near]) in total.free.iter().zip([[89.0, 98.5], [71.0, 98.7]]) {
        assert!(free.within[1][0].percent() >= node, "per node: {}", free.within[1][0]);
        assert!(free.inside[1].percent() >= near, "within 1 of the range: {}", free.inside[1]);
        assert!(free.missed[0].percent() <= 2.5, "missed by the central run: {}", free.missed[0]);
        assert!(free.missed[1].percent() <= 2.0, "missed by the range: {}", free.missed[1]);
    }
    assert!(total.free[0].false_alarms[0].percent() <= 1.0, "{}", total.free[0].false_alarms[0]);

    // Nothing that is called safe piles up, unless the parent was held up for a tick: docs/fidelity.md tells why.
    assert!(total.proofs.iter().all(|proofs| proofs.wrong.all > 900), "nothing would be called safe");
    assert!(total.proofs.iter().all(|proofs| proofs.wrong.of == 0), "{wrong:#?}");
    assert!(total.proofs.iter().all(|proofs| proofs.stalled.of <= 1), "{wrong:#?}");
    let settled = &total.settled;
    let [all, piled_up] = settled.agree.map(Share::percent);
    assert!(all >= 96.0 && piled_up >= 87.0, "load balancing as said: {all} %, of pile-ups {piled_up} %");
    assert!(settled.inside[1].percent() >= 95.0, "fullest CPU within 1 of its range: {}", settled.inside[1]);
    assert!(total.stand_one_more.percent() >= 48.0, "{}", total.stand_one_more);
    assert_eq!(total.stood_and_piled_up.of, 0, "{}", total.stood_and_piled_up);
    // The mark is met about as often as its rates say, however long there has been a reason.
    for (seen, to_be) in total.marked.iter().zip(total.to_be_marked) {
        let rates = to_be as f64 / 10.0 / f64::from(seen.all);
        assert!((seen.percent() - rates).abs() < 10.0, "marked: {seen}, by the rates {rates} %");
    }
    assert_told(&total);
    let [before, after] = total.strays.map(Share::percent);
    assert!(before <= 0.3 && after >= 4.0 * before, "a stall tells nothing: {before} % and {after} %");
}

/// What `docs/fidelity.md` shows is what `make fidelity` prints.
fn assert_told(total: &Report) {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/fidelity.md")).unwrap();
    let shown = text.split("```\n").nth(1).unwrap();
    assert_eq!(shown, format!("all, {} cases\n{total}", total.cases), "docs/fidelity.md is out of date");
}

#[test]
fn what_is_no_record_is_told() {
    let folder = std::env::temp_dir();
    let missing = Record::read(&folder.join("berth-no-such-record.jsonl.gz")).unwrap_err();
    assert!(missing.to_string().contains("cannot be opened"), "{missing}");
    let here = Record::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))).unwrap_err();
    assert!(here.to_string().contains("no gzipped text"), "{here}");
}
