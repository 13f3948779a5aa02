//! A form of binding: its masks, or the CPUs of each task.

use berth_model::CpuSet;
use berth_proto::v1::{Advice, Part, TaskEntry};

use crate::text::{Column, Table, Text, cpus, numbers};

/// Rows that are listed before they are only counted.
const ROWS: usize = 24;

/// The masks of the advice, and the entries of single tasks where it has them.
pub(super) fn table(text: &mut Text, advice: &Advice) {
    let whole = text.page().verbose;
    let mut table = Table::new([
        Column::numbers("TASKS"),
        Column::words("WHICH"),
        Column::words("MEMORY NODES"),
        Column::lists("CPUS"),
    ]);
    for part in &advice.parts {
        table.row([
            part.tasks.to_string(),
            tasks(part.first_task, part.tasks),
            part.memory_nodes.clone(),
            cpus::counted(&part.cpus, whole),
        ]);
    }
    text.table(&table);
    // With masks the entries, in the full view, only repeat them.
    if advice.parts.is_empty() {
        entries(text, &advice.tasks);
    }
}

/// Some masks in a few words: `160 tasks to CPUs 0-159, 16 tasks to CPUs 160-175`.
pub(super) fn in_words(parts: &[Part]) -> String {
    const NAMED: usize = 3;
    let word =
        |part: &Part| format!("{} to {}", numbers::count(part.tasks, "task"), cpus::named(&part.cpus, false));
    let all_single = parts.len() > NAMED && parts.iter().all(|part| cpus::len(&part.cpus) == 1);
    if all_single {
        return format!(
            "one CPU each of {}",
            cpus::short(&cpus::union(parts.iter().map(|p| p.cpus.as_str())), false)
        );
    }
    let mut words: Vec<String> = parts.iter().take(NAMED).map(word).collect();
    if parts.len() > NAMED {
        words.push(format!("… ({} masks)", parts.len()));
    }
    words.join(", ")
}

fn tasks(first: u32, count: u32) -> String {
    match count {
        0 => String::new(),
        1 => first.to_string(),
        _ => format!("{first}-{}", first.saturating_add(count - 1)),
    }
}

/// Tasks that follow each other, and the CPUs they get.
struct Run<'a> {
    first: u32,
    count: u32,
    /// The single CPUs of the tasks in ascending order, or the CPUs that each of them has.
    cpus: CpuSet,
    single: bool,
    last: &'a TaskEntry,
}

/// One row for tasks with ascending single CPUs, and for tasks with the same CPUs.
fn entries(text: &mut Text, tasks_: &[TaskEntry]) {
    let whole = text.page().verbose;
    let mut table = Table::new([
        Column::words("TASKS"),
        Column::words("EACH GETS"),
        Column::words("MEMORY NODES"),
        Column::lists("CPUS"),
    ]);
    let rows = runs(tasks_);
    let shown = if whole { rows.len() } else { ROWS };
    for run in rows.iter().take(shown) {
        let each = match (run.single, run.count) {
            (_, 1) => "",
            (true, _) => "one, in this order",
            (false, _) => "all of these",
        };
        table.row([
            tasks(run.first, run.count),
            each.to_owned(),
            run.last.memory_nodes.clone(),
            cpus::short(&run.cpus.to_string(), whole),
        ]);
    }
    text.table(&table);
    if rows.len() > shown {
        text.sentence(&format!(
            "{} more rows with --verbose; --output json has every task.",
            rows.len() - shown
        ));
    }
}

fn runs(entries: &[TaskEntry]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for entry in entries {
        let set = CpuSet::parse(&entry.cpus).unwrap_or_default();
        let single = set.len() == 1;
        if let Some(run) = runs.last_mut() {
            let follows = run.last.task.checked_add(1) == Some(entry.task)
                && run.last.memory_nodes == entry.memory_nodes;
            let ascends = run.single && single && run.cpus.last() < set.first();
            if follows && (ascends || (run.cpus == set && !single)) {
                run.cpus.extend_from(&set);
                run.count += 1;
                run.last = entry;
                continue;
            }
        }
        runs.push(Run { first: entry.task, count: 1, cpus: set, single, last: entry });
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Page;

    fn rows(entries_: &[(&str, &str)]) -> String {
        let entry = |(task, (cpus, nodes)): (usize, &(&str, &str))| TaskEntry {
            task: u32::try_from(task).unwrap(),
            cpus: (*cpus).to_owned(),
            memory_nodes: (*nodes).to_owned(),
            ..TaskEntry::default()
        };
        let list: Vec<TaskEntry> = entries_.iter().enumerate().map(entry).collect();
        let mut text = Text::new(Page { width: 80, colour: false, verbose: false });
        entries(&mut text, &list);
        text.finish()
    }

    #[test]
    fn ascending_single_cpus_are_one_row() {
        let text = rows(&[("0", ""), ("16", ""), ("32", ""), ("8", ""), ("9", "")]);
        let expected = "  TASKS  EACH GETS           CPUS
  0-2    one, in this order  0,16,32
  3-4    one, in this order  8-9
";
        assert_eq!(text, expected);
    }

    #[test]
    fn tasks_with_the_same_cpus_are_one_row() {
        let text = rows(&[("0-15", "0"), ("0-15", "0"), ("16-31", "1"), ("5", "0"), ("5", "0")]);
        let expected = "  TASKS  EACH GETS     MEMORY NODES  CPUS
  0-1    all of these  0             0-15
  2                    1             16-31
  3                    0             5
  4                    0             5
";
        assert_eq!(text, expected);
    }

    #[test]
    fn very_many_rows_are_counted() {
        let list: Vec<String> = (0..100).rev().map(|cpu: u32| cpu.to_string()).collect();
        let entries_: Vec<(&str, &str)> = list.iter().map(|cpu| (cpu.as_str(), "")).collect();
        let text = rows(&entries_);
        assert!(text.ends_with("76 more rows with --verbose; --output json has every task.\n"), "{text}");
    }
}
