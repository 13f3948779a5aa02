//! `berth predict`.

use berth_proto::v1::{OriginOutcome, PredictResponse, Prediction, verdict};

use super::{
    kernel::some,
    outcome::{self, Field},
    places,
    question::Question,
    spread, trace, wakes,
};
use crate::text::{Column, Page, Table, Text, Tone, cpus, numbers, words};

/// Classes of origins that are listed before they are only counted.
const ORIGINS: usize = 12;

/// The whole answer.
pub(crate) fn predict(question: &Question, response: &PredictResponse, page: Page) -> String {
    let mut text = Text::new(page);
    question.head(&mut text, &response.allowed, response.profile.as_ref(), response.snapshot.as_ref());
    let none = Prediction::default();
    let prediction = response.prediction.as_ref().unwrap_or(&none);
    text.heading("Answer");
    let mut fields = vec![verdict(response, prediction), worst_origin(prediction)];
    fields.extend(outcome::fields(prediction, question.tasks, cpus::len(&response.allowed), page.verbose));
    fields.push(mark(prediction, page));
    text.fields(fields);

    text.heading("Where the tasks land");
    places::table(&mut text, prediction);
    text.gap();
    spread::table(&mut text, prediction, &response.allowed);
    wakes::table(&mut text, prediction);
    others(&mut text, &response.others);
    origins(&mut text, &response.origins);
    trace::blocks(&mut text, prediction);
    text.finish()
}

/// The verdict over every profile. Where the likeliest profile does not pile up and another does, that is said.
fn verdict(response: &PredictResponse, likeliest: &Prediction) -> Field {
    let (tone, mut words) =
        outcome::verdict(&Prediction { verdict: response.verdict, ..Prediction::default() });
    if response.verdict() != likeliest.verdict() {
        let guilty = response.others.iter().filter(|other| other.verdict == response.verdict);
        let guilty: Vec<String> = guilty.map(|other| other.profile.clone()).collect();
        words += &format!(
            ", if the kernel follows {}; what follows is for {}",
            some(&guilty, false),
            likeliest.profile
        );
    }
    ("verdict", tone, words)
}

fn worst_origin(prediction: &Prediction) -> Field {
    ("parent on", Tone::Plain, format!("CPU {}", prediction.origin))
}

fn mark(prediction: &Prediction, page: Page) -> Field {
    let words = prediction.mark.as_ref().map(|mark| {
        format!(
            "load balancing can mark CPUs {} as imbalanced while the tasks start, from task {} on (expected to sway {})",
            cpus::short(&mark.group, page.verbose),
            mark.from_task,
            numbers::percent(mark.expected_share)
        )
    });
    ("mark", Tone::Plain, words.unwrap_or_default())
}

/// What the other profiles would do, one row for all that agree.
fn others(text: &mut Text, others: &[Prediction]) {
    let mut rows: Vec<(Vec<String>, &Prediction)> = Vec::new();
    for other in others {
        let same = |p: &Prediction| {
            let used = p.cpu_use.as_ref().map(|used| numbers::percent(used.expected));
            (p.verdict, p.most_on_one_cpu, p.cpus_used, p.idle_allowed_count, used)
        };
        match rows.iter_mut().find(|(_, p)| same(p) == same(other)) {
            Some((names, _)) => names.push(other.profile.clone()),
            None => rows.push((vec![other.profile.clone()], other)),
        }
    }
    if rows.is_empty() {
        return;
    }
    text.heading("Other rules that this kernel may follow");
    let mut table = Table::new([
        Column::words("VERDICT"),
        Column::numbers("FULLEST"),
        Column::numbers("CPUS USED"),
        Column::numbers("IDLE"),
        Column::numbers("CPU USE"),
        Column::lists("PROFILES"),
    ]);
    for (names, p) in rows {
        let (tone, name) = words::verdict(p.verdict());
        let plain = |text: String| (Tone::Plain, text);
        table.toned_row([
            (tone, name.to_owned()),
            plain(p.most_on_one_cpu.to_string()),
            plain(p.cpus_used.to_string()),
            plain(p.idle_allowed_count.to_string()),
            plain(p.cpu_use.as_ref().map(|used| numbers::percent(used.expected)).unwrap_or_default()),
            plain(names.join(", ")),
        ]);
    }
    text.table(&table);
}

/// Each class of CPUs that the parent may be on, worst first.
fn origins(text: &mut Text, origins: &[OriginOutcome]) {
    if origins.is_empty() {
        return;
    }
    text.heading("By the CPU that the parent is on");
    let mut table = Table::new([
        Column::words("VERDICT"),
        Column::numbers("FULLEST"),
        Column::numbers("CPU USE"),
        Column::words("RULES"),
        Column::lists("CPUS"),
    ]);
    let page = text.page();
    let shown = if page.verbose { origins.len() } else { ORIGINS };
    for origin in origins.iter().take(shown) {
        let (tone, name) = words::verdict(verdict::Value::try_from(origin.verdict).unwrap_or_default());
        let plain = |text: String| (Tone::Plain, text);
        table.toned_row([
            (tone, name.to_owned()),
            plain(origin.most_on_one_cpu.to_string()),
            plain(origin.cpu_use.as_ref().map(|used| numbers::percent(used.expected)).unwrap_or_default()),
            plain(origin.profile.clone()),
            plain(cpus::short(&origin.cpus, page.verbose)),
        ]);
    }
    text.table(&table);
    if origins.len() > shown {
        text.sentence(&format!("{} more with --verbose.", origins.len() - shown));
    }
}

#[cfg(test)]
mod tests {
    use berth_proto::v1::{
        Balancing, CountRange, CpuUse, MarkOutlook, Snapshot, Split, TaskPlacement, TimeRange, balancing,
        level,
    };

    use super::*;
    use crate::render::samples;

    const PAGE: Page = Page { width: 100, colour: false, verbose: false };

    fn response() -> PredictResponse {
        PredictResponse {
            verdict: verdict::Value::PileUp.into(),
            prediction: Some(samples::turin_piled()),
            allowed: "0-175".to_owned(),
            profile: Some(samples::profile()),
            snapshot: Some(Snapshot::default()),
            ..PredictResponse::default()
        }
    }

    #[test]
    fn a_pile_up_on_twenty_nodes_fits_on_a_page() {
        insta::assert_snapshot!(predict(&samples::turin_question(), &response(), PAGE));
    }

    #[test]
    fn what_is_not_sure_is_said() {
        let spread = samples::turin_spread();
        let other = |name: &str| Prediction { profile: name.to_owned(), ..samples::turin_piled() };
        let mut mine = Prediction { verdict_determined: false, ..spread };
        mine.most_on_one_cpu_range = Some(CountRange { least: 1, most: 2 });
        let answer = PredictResponse {
            prediction: Some(mine),
            others: vec![other("v6.6"), other("v6.1"), samples::turin_spread()],
            origins: vec![OriginOutcome { cpus: "0-159".to_owned(), ..OriginOutcome::default() }],
            ..response()
        };
        insta::assert_snapshot!(predict(&samples::turin_question(), &answer, PAGE));
    }

    #[test]
    fn ranges_balancing_marks_and_wake_ups_are_told() {
        let time = |seconds, nanos| Some(prost_types::Duration { seconds, nanos });
        let wakes = |task: u32| TaskPlacement {
            task,
            cpu: task,
            wakes_on: if task < 16 { "0-15" } else { "160-175" }.to_owned(),
            ..TaskPlacement::default()
        };
        let mut mine = Prediction {
            cpu_use: Some(CpuUse {
                expected: 0.2487,
                least: 0.1818,
                most: 0.3364,
                frozen_clock: 0.1818,
                settled: Some(0.2557),
            }),
            balancing: Some(Balancing {
                effect: balancing::Effect::PingPongs.into(),
                takes: Some(TimeRange { least: time(0, 120_000_000), most: time(2, 0) }),
                most_on_one_cpu: Some(CountRange { least: 4, most: 10 }),
                lets_stand: vec![Split { level: level::Value::Package.into(), tasks: vec![120, 56] }],
                because: "Each balancing pass finds the other package busier.".to_owned(),
            }),
            mark: Some(MarkOutlook { from_task: 33, group: "160-319".to_owned(), expected_share: 0.75 }),
            tasks: (0..176).map(wakes).collect(),
            idle_allowed_range: Some(CountRange { least: 118, most: 144 }),
            ..samples::turin_piled()
        };
        for (i, count) in mine.cpus.iter_mut().enumerate() {
            let least = if i < 16 { 1 } else { 4 };
            count.range = Some(CountRange { least, most: count.tasks });
        }
        mine.packages[1].range = Some(CountRange { least: 120, most: 160 });
        let answer = PredictResponse { prediction: Some(mine), ..response() };
        insta::assert_snapshot!(predict(&samples::turin_question(), &answer, PAGE));
    }

    #[test]
    fn an_empty_answer_is_never_safe() {
        let text = predict(&samples::turin_question(), &PredictResponse::default(), PAGE);
        assert!(text.contains("verdict       UNKNOWN: not computed, and not to be taken for safe"), "{text}");
    }
}
