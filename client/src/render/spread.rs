//! How the tasks are spread over single CPUs: one row for all CPUs with equal numbers.

use std::{cmp::Reverse, collections::BTreeMap};

use berth_proto::v1::Prediction;

use crate::text::{Column, Table, Text, cpus, numbers};

/// The table, the fullest CPUs first; CPUs that got none last.
pub(super) fn table(text: &mut Text, prediction: &Prediction, allowed: &str) {
    let mut alike: BTreeMap<(Reverse<u32>, Reverse<u32>, String), Vec<u32>> = BTreeMap::new();
    for count in &prediction.cpus {
        let range = count.range.filter(|range| range.least != range.most).map(numbers::range);
        let key = (Reverse(count.tasks), Reverse(count.before), range.unwrap_or_default());
        alike.entry(key).or_default().push(count.cpu);
    }
    let before = prediction.cpus.iter().any(|count| count.before > 0);
    let taken = cpus::of_numbers(prediction.cpus.iter().map(|count| count.cpu));
    let busy = cpus::difference(allowed, [taken.as_str(), prediction.idle_allowed.as_str()]);

    let mut table = Table::new([
        Column::numbers("TASKS EACH"),
        Column::numbers("RANGE"),
        Column::numbers("BEFORE"),
        Column::numbers("HOW MANY"),
        Column::lists("CPUS"),
    ]);
    let whole = text.page().verbose;
    let mut row = |tasks: String, range: String, before: String, list: &str| {
        table.row([tasks, range, before, cpus::len(list).to_string(), cpus::short(list, whole)]);
    };
    for ((Reverse(tasks), Reverse(there), range), list) in alike {
        let there = if before { there.to_string() } else { String::new() };
        row(tasks.to_string(), range, there, &cpus::of_numbers(list));
    }
    if !busy.is_empty() {
        row("0".to_owned(), String::new(), "busy".to_owned(), &busy);
    }
    if !prediction.idle_allowed.is_empty() {
        let idle = if before || !busy.is_empty() { "idle" } else { "" };
        row("0".to_owned(), String::new(), idle.to_owned(), &prediction.idle_allowed);
    }
    text.table(&table);
}
