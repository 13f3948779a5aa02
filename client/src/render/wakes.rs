//! Where tasks can be drawn to when they sleep and wake: one row for all tasks with the same CPUs.

use std::collections::BTreeMap;

use berth_proto::v1::Prediction;

use crate::text::{Column, Table, Text, cpus};

/// The table, if that was computed.
pub(super) fn table(text: &mut Text, prediction: &Prediction) {
    let mut alike: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for task in prediction.tasks.iter().filter(|task| !task.wakes_on.is_empty()) {
        alike.entry(&task.wakes_on).or_default().push(task.task);
    }
    if alike.is_empty() {
        return;
    }
    // By the lowest task, not by how a list happens to be spelt.
    let mut rows: Vec<_> = alike.into_iter().collect();
    rows.sort_by_key(|(_, tasks)| tasks.first().copied());
    text.heading("When they sleep and wake");
    let mut table = Table::new([
        Column::words("TASKS"),
        Column::numbers("HOW MANY"),
        Column::lists("CAN BE DRAWN TO CPUS"),
    ]);
    let whole = text.page().verbose;
    for (wakes_on, tasks) in rows {
        let count = tasks.len().to_string();
        table.row([cpus::short(&cpus::of_numbers(tasks), whole), count, cpus::counted(wakes_on, whole)]);
    }
    text.table(&table);
}
