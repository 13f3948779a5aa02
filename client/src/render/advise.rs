//! `berth advise`.

use berth_proto::v1::{Advice, AdviseResponse, Attempt, Prediction, Proof, Reason};

use super::{advice, compare, proof, question::Question, trace, why};
use crate::text::{Column, Page, Table, Text, Tone, words};

/// The whole answer.
pub(crate) fn advise(question: &Question, response: &AdviseResponse, page: Page) -> String {
    let mut text = Text::new(page);
    question.head(&mut text, &response.allowed, response.profile.as_ref(), response.snapshot.as_ref());
    let none = Advice::default();
    let advised = response.advice.as_ref().unwrap_or(&none);
    text.heading("Advice");
    head(&mut text, advised, response);
    if !advised.parts.is_empty() || !advised.tasks.is_empty() {
        text.gap();
        advice::table(&mut text, advised);
    }
    attempts(&mut text, &response.attempts);
    reasons(&mut text, response);
    text.heading("Without and with the advice");
    let none = Prediction::default();
    let (without, with) = (response.without.as_ref(), response.with.as_ref());
    compare::tables(&mut text, without.unwrap_or(&none), with.unwrap_or(&none));
    why::objective(&mut text, advised.objective.as_ref());
    why::runners_up(&mut text, &response.runners_up);
    traces(&mut text, response);
    text.finish()
}

/// The decisions of the launch without the advice, and of the runs that refute a mask.
fn traces(text: &mut Text, response: &AdviseResponse) {
    let proof = |proof: Option<&Proof>| proof.and_then(|proof| proof.failing_run.clone());
    let advised = response.advice.as_ref().and_then(|advice| advice.proof.as_ref());
    let mut told: Vec<Prediction> = Vec::new();
    let runs = [
        ("The mask alone: a run that piles up", proof(response.asked.as_ref())),
        ("The advice: a run that piles up", proof(advised)),
        ("Without the advice: the likeliest run", response.without.clone()),
    ];
    let attempts = response
        .attempts
        .iter()
        .map(|attempt| ("A wider form: a run that piles up", proof(attempt.proof.as_ref())));
    for (title, run) in runs.into_iter().chain(attempts) {
        // The same run may refute several forms.
        let Some(run) =
            run.filter(|run| !run.trace.is_empty() && told.iter().all(|known| known.trace != run.trace))
        else {
            continue;
        };
        text.heading(&format!("{title}, from CPU {} under {}", run.origin, run.profile));
        trace::blocks(text, &run);
        told.push(run);
    }
}

fn head(text: &mut Text, advised: &Advice, response: &AdviseResponse) {
    let (form, meaning) = words::form(advised.form());
    let mut fields = vec![("form", Tone::Plain, format!("{form}: {meaning}"))];
    match &advised.proof {
        Some(proof) => fields.extend(proof::fields(proof, text.page().verbose)),
        None => fields.push(("proof", Tone::Doubtful, "none".to_owned())),
    }
    if let Some(asked) = &response.asked {
        let (tone, words) = proof::result(asked);
        fields.push(("mask alone", tone, words));
    }
    text.fields(fields);
}

/// Wider forms and why each was not taken.
fn attempts(text: &mut Text, attempts: &[Attempt]) {
    if attempts.is_empty() {
        return;
    }
    text.heading("Wider forms, not taken");
    let mut table = Table::new([
        Column::words("FORM"),
        Column::words("PROOF"),
        Column::numbers("RUNS"),
        Column::lists("WHICH, AND WHY NOT"),
    ]);
    for attempt in attempts {
        let none = berth_proto::v1::Proof::default();
        let tried = attempt.proof.as_ref().unwrap_or(&none);
        let (tone, result) = words::proof(tried.result());
        let why =
            [sentence(advice::in_words(&attempt.parts)), attempt.because.clone(), proof::failing(tried)];
        let why: Vec<String> = why.into_iter().filter(|part| !part.is_empty()).collect();
        table.toned_row([
            (Tone::Plain, words::form(attempt.form()).0.to_owned()),
            (tone, result.to_owned()),
            (Tone::Plain, tried.runs.to_string()),
            (Tone::Plain, why.join(" ")),
        ]);
    }
    text.table(&table);
}

fn sentence(mut words: String) -> String {
    if !words.is_empty() {
        words.push('.');
    }
    words
}

/// Reasons that do not stand above already, as those of a proof or of a form that was not taken.
fn reasons(text: &mut Text, response: &AdviseResponse) {
    let proofs = response.advice.iter().filter_map(|advice| advice.proof.as_ref()).chain(&response.asked);
    let told: Vec<&str> = proofs
        .map(|proof| proof.because.as_str())
        .chain(response.attempts.iter().map(|attempt| attempt.because.as_str()))
        .filter(|because| !because.is_empty())
        .collect();
    let new = |reason: &&Reason| !told.iter().any(|because| reason.message.contains(because));
    let new: Vec<&Reason> = response.reasons.iter().filter(new).collect();
    if !new.is_empty() {
        text.heading("Why");
        new.iter().for_each(|reason| text.item(&reason.message));
    }
}

#[cfg(test)]
mod tests {
    use berth_proto::v1::{
        Objective, ObjectiveComponent, Part, Proof, RunnerUp, Snapshot, TaskEntry, TaskTrace, form, policy,
        proof,
    };

    use super::*;
    use crate::render::samples;

    const PAGE: Page = Page { width: 100, colour: false, verbose: false };

    fn part(cpus: &str, tasks: u32, first_task: u32) -> Part {
        Part { cpus: cpus.to_owned(), tasks, first_task, ..Part::default() }
    }

    fn reason(message: &str) -> Reason {
        Reason { message: message.to_owned(), ..Reason::default() }
    }

    fn proof_of(result: proof::Result, runs: u32) -> Proof {
        Proof {
            result: result.into(),
            runs,
            runs_needed: 4,
            origins: "0".to_owned(),
            profiles: vec!["v6.12".to_owned()],
            ..Proof::default()
        }
    }

    fn response() -> AdviseResponse {
        let failed =
            Proof { failing_run: Some(samples::turin_piled()), ..proof_of(proof::Result::Unsafe, 1) };
        AdviseResponse {
            advice: Some(Advice {
                form: form::Value::Split.into(),
                parts: vec![part("0-159", 160, 0), part("160-175", 16, 160)],
                proof: Some(Proof { margin: Some(0), ..proof_of(proof::Result::Safe, 4) }),
                ..Advice::default()
            }),
            without: Some(samples::turin_piled()),
            with: Some(samples::turin_spread()),
            asked: Some(failed.clone()),
            attempts: vec![Attempt {
                form: form::Value::Mask.into(),
                parts: vec![part("0-175", 176, 0)],
                proof: Some(failed),
                because: "It is the mask that was asked about.".to_owned(),
            }],
            reasons: vec![
                reason("Mask: It is the mask that was asked about."),
                reason("Masks only are applied."),
            ],
            allowed: "0-175".to_owned(),
            profile: Some(samples::profile()),
            snapshot: Some(Snapshot::default()),
            ..AdviseResponse::default()
        }
    }

    #[test]
    fn a_split_stands_beside_what_it_mends() {
        insta::assert_snapshot!(advise(&samples::turin_question(), &response(), PAGE));
    }

    #[test]
    fn single_cpus_and_the_full_view() {
        let entry = |task: u32| TaskEntry { task, cpus: task.to_string(), ..TaskEntry::default() };
        let component = |name: &str, values: Vec<u64>| ObjectiveComponent { name: name.to_owned(), values };
        let vector = Objective {
            components: vec![component("tasks per CPU", vec![1; 176]), component("cores shared", vec![0])],
            optimal: true,
            ..Objective::default()
        };
        let mut answer = response();
        answer.advice = Some(Advice {
            form: form::Value::PerTask.into(),
            tasks: (0..176).map(entry).collect(),
            objective: Some(vector),
            ..Advice::default()
        });
        answer.runners_up = vec![RunnerUp {
            policy: policy::Value::Compact.into(),
            form: form::Value::PerTask.into(),
            parts: (0..176).map(|task| part(&task.to_string(), 1, task)).collect(),
            because: "it uses one package more".to_owned(),
            ..RunnerUp::default()
        }];
        insta::assert_snapshot!(advise(&samples::turin_question(), &answer, PAGE));
    }

    #[test]
    fn a_run_that_refutes_several_forms_is_traced_once() {
        let task =
            |task, because: &str| TaskTrace { task, because: because.to_owned(), ..TaskTrace::default() };
        let traced = |run: &mut Prediction, because: &str| {
            run.trace = vec![task(0, because), task(1, because)];
        };
        let mut answer = response();
        let failing = |proof: &mut Option<Proof>| {
            traced(proof.as_mut().unwrap().failing_run.as_mut().unwrap(), "It is refuted here.");
        };
        failing(&mut answer.asked);
        failing(&mut answer.attempts[0].proof);
        traced(answer.without.as_mut().unwrap(), "It is likeliest here.");
        let text = advise(&samples::turin_question(), &answer, PAGE);
        assert_eq!(text.matches("It is refuted here.").count(), 2, "{text}");
        assert_eq!(text.matches("It is likeliest here.").count(), 2, "{text}");
        assert!(text.contains("The mask alone: a run that piles up, from CPU 0 under"), "{text}");
        assert!(!text.contains("A wider form: a run"), "{text}");
    }

    #[test]
    fn an_empty_answer_claims_nothing() {
        let text = advise(&samples::turin_question(), &AdviseResponse::default(), PAGE);
        assert!(text.contains("proof  none"), "{text}");
        assert!(!text.contains("SAFE"), "{text}");
    }
}
