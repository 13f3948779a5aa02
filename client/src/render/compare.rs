//! Two predictions side by side: without the advice, and with it.

use berth_proto::v1::{Balancing, CountRange, CpuUse, PlaceCount, Prediction, balancing};

use super::places::{self, Distinct};
use crate::text::{Column, Table, Text, Tone, numbers, words};

/// Two tables: the numbers of each outcome, then its tasks per place.
pub(super) fn tables(text: &mut Text, without: &Prediction, with: &Prediction) {
    let both = |f: &dyn Fn(&Prediction) -> (Tone, String)| [f(without), f(with)];
    let plain = |f: &dyn Fn(&Prediction) -> String| both(&|p| (Tone::Plain, f(p)));
    let rows: [(&str, [(Tone, String); 2]); 9] = [
        (
            "verdict",
            both(&|p| {
                let (tone, name) = words::verdict(p.verdict());
                (tone, name.to_owned())
            }),
        ),
        ("tasks on the fullest CPU", plain(&|p| ranged(p.most_on_one_cpu, p.most_on_one_cpu_range))),
        ("best possible", plain(&|p| p.best_possible.to_string())),
        ("CPUs used", plain(&|p| p.cpus_used.to_string())),
        ("idle allowed CPUs", plain(&|p| ranged(p.idle_allowed_count, p.idle_allowed_range))),
        (
            "CPU use",
            plain(&|p| p.cpu_use.as_ref().map(|used| numbers::percent(used.expected)).unwrap_or_default()),
        ),
        (
            "its range",
            plain(&|p| {
                let range = |used: &CpuUse| numbers::percent_range(used.least, used.most);
                p.cpu_use
                    .as_ref()
                    .filter(|used| range(used) != numbers::percent(used.expected))
                    .map(range)
                    .unwrap_or_default()
            }),
        ),
        ("load balancing", plain(&|p| p.balancing.as_ref().map(effect).unwrap_or_default())),
        ("parent on CPU", plain(&|p| p.origin.to_string())),
    ];
    let mut table = Table::new([Column::words(""), Column::numbers("WITHOUT"), Column::numbers("WITH")]);
    for (name, [without, with]) in rows {
        if without.1.is_empty() && with.1.is_empty() {
            continue;
        }
        table.toned_row([(Tone::Plain, name.to_owned()), without, with]);
    }
    text.table(&table);
    text.gap();
    by_place(text, without, with);
}

/// A count with its range, if it has one.
fn ranged(count: u32, range: Option<CountRange>) -> String {
    match range {
        Some(range) if range.least != range.most => format!("{count} ({})", numbers::range(range)),
        _ => count.to_string(),
    }
}

fn effect(balancing: &Balancing) -> String {
    match balancing.effect() {
        balancing::Effect::Unknown => String::new(),
        effect => effect.as_str_name().to_owned(),
    }
}

/// Tasks per place, one row for all places with equal numbers.
fn by_place(text: &mut Text, without: &Prediction, with: &Prediction) {
    let page = text.page();
    let distinct = Distinct::of(without);
    let mut table = Table::new([
        Column::words("TASKS ON"),
        Column::numbers("ALLOWED CPUS"),
        Column::numbers("WITHOUT"),
        Column::numbers("WITH"),
    ]);
    for &(level, those) in &distinct.levels {
        let other =
            places::levels(with).into_iter().find(|(l, _)| *l == level).map_or(&[][..], |(_, places)| places);
        for (ids, [allowed, before, after]) in fold(those, other) {
            table.row([
                places::label(level, ids, page),
                allowed.to_string(),
                before.to_string(),
                after.to_string(),
            ]);
        }
    }
    text.table(&table);
    distinct.note(text);
}

/// Places by their three numbers: allowed CPUs, tasks without, tasks with the advice.
fn fold(without: &[PlaceCount], with: &[PlaceCount]) -> Vec<(Vec<u32>, [u32; 3])> {
    let mut rows: Vec<(Vec<u32>, [u32; 3])> = Vec::new();
    for place in without {
        let after = with.iter().find(|other| other.id == place.id).map_or(0, |other| other.tasks);
        let numbers = [place.allowed, place.tasks, after];
        match rows.iter_mut().find(|(_, same)| *same == numbers) {
            Some((ids, _)) => ids.push(place.id),
            None => rows.push((vec![place.id], numbers)),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{render::samples, text::Page};

    #[test]
    fn both_outcomes_stand_beside_each_other() {
        let (without, with) = (samples::turin_piled(), samples::turin_spread());
        let mut text = Text::new(Page { width: 100, colour: false, verbose: false });
        tables(&mut text, &without, &with);
        insta::assert_snapshot!(text.finish());
    }

    #[test]
    fn a_level_without_places_takes_no_row() {
        assert!(fold(&[], &[]).is_empty());
    }
}
