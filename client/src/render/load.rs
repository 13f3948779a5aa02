//! `berth load`.

use std::collections::BTreeMap;

use berth_proto::v1::{CpuLoad, GetLoadResponse, Load, cpu_load};

use crate::text::{Column, Page, Table, Text, Tone, cpus, numbers, words};

/// CPUs that have a row of their own before those about equally busy share one.
const ROWS: usize = 16;

/// The whole answer; `full` gives each entry a row.
pub(crate) fn load(response: &GetLoadResponse, full: bool, page: Page) -> String {
    let none = Load::default();
    let load = response.load.as_ref().unwrap_or(&none);
    let mut text = Text::new(page);
    text.heading("Load of this host");
    text.fields(head(response, load).map(|(label, words)| (label, Tone::Plain, words)));
    if !load.cpus.is_empty() {
        text.gap();
        if full || page.verbose || load.cpus.len() <= ROWS {
            each(&mut text, load)
        } else {
            folded(&mut text, load)
        }
    }
    pinned(&mut text, load);
    text.finish()
}

fn head(response: &GetLoadResponse, load: &Load) -> [(&'static str, String); 5] {
    let age = response.snapshot.as_ref().map(|s| numbers::wire_time(s.load_age)).unwrap_or_default();
    let taken = match numbers::moment(load.taken_at) {
        at if at.is_empty() => "not known yet: two samples are needed".to_owned(),
        at if age.is_empty() => at,
        at => format!("{at} ({age} old when published)"),
    };
    let over = numbers::wire_time(load.interval);
    [
        ("taken at", taken),
        ("over", over),
        ("busy", busy_cpus(load).map(|(busy, all)| format!("{busy:.1} of {all} CPUs")).unwrap_or_default()),
        ("runnable tasks", runnable(load)),
        (
            "sampling costs",
            load.cost.map(|cost| format!("{} of one CPU", numbers::percent(cost))).unwrap_or_default(),
        ),
    ]
}

/// Where the counts come from, and when they were taken if that was not with the rest.
fn runnable(load: &Load) -> String {
    let source = words::load_source(load.runnable_source());
    match load.runnable_taken_at {
        Some(at) if load.runnable_taken_at != load.taken_at && !source.is_empty() => {
            format!("{source}, at {}", numbers::moment(Some(at)))
        }
        _ => source.to_owned(),
    }
}

/// How many CPUs' time is used, and of how many. `None`: not known of any.
fn busy_cpus(load: &Load) -> Option<(f64, usize)> {
    let all = load.cpus.iter().map(|entry| cpus::len(&entry.cpus)).sum();
    let busy = |e: &CpuLoad| e.utilisation.map(|share| share * whole_number(cpus::len(&e.cpus)));
    let known = load.cpus.iter().any(|entry| entry.utilisation.is_some());
    known.then(|| (load.cpus.iter().filter_map(busy).sum(), all))
}

/// The same in words.
pub(super) fn busy(load: &Load) -> String {
    busy_cpus(load).map_or_else(
        || "how busy is not known".to_owned(),
        |(busy, all)| format!("{busy:.1} of {all} CPUs busy"),
    )
}

fn whole_number(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::MAX, f64::from)
}

fn share(part: Option<f64>) -> String {
    part.map(|part| format!("{:.0} %", part * 100.0)).unwrap_or_default()
}

/// A row for each entry.
fn each(text: &mut Text, load: &Load) {
    let mut table = Table::new([
        Column::words("CPUS"),
        Column::numbers("BUSY"),
        Column::numbers("RUNNABLE"),
        Column::numbers("STEAL"),
        Column::numbers("IRQ"),
        Column::numbers("REAL-TIME"),
        Column::numbers("LOAD_AVG"),
        Column::numbers("UTIL_AVG"),
        Column::numbers("RUNNABLE_AVG"),
        Column::words("SOURCE"),
    ]);
    let whole = text.page().verbose;
    let number = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
    // A share that is 0 everywhere is not worth a column.
    let some = |f: fn(&CpuLoad) -> Option<f64>| {
        load.cpus.iter().any(|entry| f(entry).is_some_and(|part| part >= 0.005))
    };
    let (steal, irq, rt) = (some(|e| e.steal), some(|e| e.irq), some(|e| e.rt));
    let worth = |shown: bool, part| if shown { share(part) } else { String::new() };
    for entry in &load.cpus {
        table.row([
            cpus::short(&entry.cpus, whole),
            share(entry.utilisation),
            number(entry.runnable),
            worth(steal, entry.steal),
            worth(irq, entry.irq),
            worth(rt, entry.rt),
            number(entry.load_avg),
            number(entry.util_avg),
            number(entry.runnable_avg),
            source(load, entry),
        ]);
    }
    text.table(&table);
}

/// Where an entry's count comes from, if not from where the others' do.
fn source(load: &Load, entry: &CpuLoad) -> String {
    let own = entry.source();
    let differs = own != load.runnable_source() && own != cpu_load::Source::Unknown;
    if differs { words::load_source(own).to_owned() } else { String::new() }
}

/// A row for all CPUs that are about equally busy, in steps of ten percent, and have equally many runnable tasks.
fn folded(text: &mut Text, load: &Load) {
    let step = |entry: &CpuLoad| {
        (0..10_u8).rev().find(|&tenth| entry.utilisation.is_some_and(|u| u >= f64::from(tenth) / 10.0))
    };
    let mut rows: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for entry in &load.cpus {
        rows.entry((step(entry), entry.runnable)).or_default().push(&entry.cpus);
    }
    let mut table = Table::new([
        Column::numbers("BUSY"),
        Column::numbers("RUNNABLE"),
        Column::numbers("HOW MANY"),
        Column::lists("CPUS"),
    ]);
    for ((tenth, runnable), lists) in rows.into_iter().rev() {
        let list = cpus::union(lists);
        table.row([
            tenth.map(|tenth| format!("{}-{} %", tenth * 10, tenth * 10 + 10)).unwrap_or_default(),
            runnable.map(|n| n.to_string()).unwrap_or_default(),
            cpus::len(&list).to_string(),
            cpus::short(&list, text.page().verbose),
        ]);
    }
    text.table(&table);
    text.sentence("A row for each CPU: --full.");
}

fn pinned(text: &mut Text, load: &Load) {
    if load.pinned.is_empty() {
        return;
    }
    text.heading("Tasks bound to a part of the host");
    text.fields([("taken at", Tone::Plain, numbers::moment(load.pinned_taken_at))]);
    let mut table = Table::new([
        Column::numbers("TASKS"),
        Column::numbers("RUNNABLE"),
        Column::words("ON"),
        Column::lists("MASK"),
    ]);
    for tasks in &load.pinned {
        table.row([
            tasks.tasks.to_string(),
            tasks.runnable.to_string(),
            cpus::short(&tasks.running_on, text.page().verbose),
            cpus::counted(&tasks.allowed, text.page().verbose),
        ]);
    }
    text.table(&table);
}

#[cfg(test)]
mod tests {
    use berth_proto::v1::PinnedTasks;

    use super::*;

    fn entry(cpu: u32, busy: f64) -> CpuLoad {
        CpuLoad {
            cpus: cpu.to_string(),
            runnable: Some(u32::from(busy > 0.5)),
            utilisation: Some(busy),
            ..CpuLoad::default()
        }
    }

    fn shown(busy: impl IntoIterator<Item = f64>) -> String {
        let cpus = (0..).zip(busy).map(|(cpu, busy)| entry(cpu, busy)).collect();
        let response = GetLoadResponse {
            load: Some(Load { known: true, cpus, ..Load::default() }),
            ..Default::default()
        };
        load(&response, false, Page { width: 80, colour: false, verbose: false })
    }

    #[test]
    fn few_cpus_have_a_row_each() {
        insta::assert_snapshot!(shown([0.031, 1.0]), @r"
        Load of this host
          taken at  not known yet: two samples are needed
          busy      1.0 of 2 CPUs

          CPUS   BUSY  RUNNABLE
          0       3 %         0
          1     100 %         1
        ");
    }

    #[test]
    fn what_was_counted_elsewhere_or_at_another_time_is_told() {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let reported =
            CpuLoad { source: cpu_load::Source::Reported.into(), steal: Some(0.25), ..entry(1, 1.0) };
        let pinned =
            PinnedTasks { allowed: "0-1".to_owned(), tasks: 9, runnable: 2, running_on: "1".to_owned() };
        let sample = Load {
            known: true,
            cpus: vec![entry(0, 0.0), reported],
            pinned: vec![pinned],
            taken_at: at(1_780_000_010),
            runnable_source: cpu_load::Source::TaskStates.into(),
            runnable_taken_at: at(1_780_000_000),
            pinned_taken_at: at(1_779_999_990),
            cost: Some(0.0031),
            ..Load::default()
        };
        let response = GetLoadResponse { load: Some(sample), ..GetLoadResponse::default() };
        insta::assert_snapshot!(load(&response, true, Page { width: 100, colour: false, verbose: false }));
    }

    #[test]
    fn many_cpus_are_folded_by_how_busy_they_are() {
        insta::assert_snapshot!(shown((0..640_u16).map(|cpu| f64::from(cpu % 4) / 3.0)));
    }
}
