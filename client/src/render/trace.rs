//! The decisions for each task, level by level, with every number that a rule compares.

use std::time::Duration;

use berth_proto::v1::{GroupStats, Prediction, TaskTrace, TraceStep, group_stats, trace_step};

use crate::text::{Column, Table, Text, cpus, numbers};

/// The trace, if there is one.
pub(super) fn blocks(text: &mut Text, prediction: &Prediction) {
    prediction.trace.iter().for_each(|task| block(text, task));
    if prediction.trace_cut {
        text.gap();
        text.sentence(
            "The trace was too long for one answer, and is cut here: berth predict --trace-tasks chooses others.",
        );
    }
}

fn block(text: &mut Text, task: &TaskTrace) {
    let at = match task.at.and_then(|at| Duration::try_from(at).ok()) {
        Some(at) if !at.is_zero() => format!(" at {}", numbers::time(at)),
        _ => String::new(),
    };
    text.heading(&format!("Task {}{at}: from CPU {} to CPU {}", task.task, task.from, task.cpu));
    for (i, one) in task.steps.iter().enumerate() {
        if i > 0 {
            text.gap();
        }
        step(text, one);
    }
    if task.fell_back {
        text.sentence(&format!("The CPU that came out was not allowed: the fallback took CPU {}.", task.cpu));
    }
    if !task.because.is_empty() {
        text.sentence(&task.because);
    }
}

fn step(text: &mut Text, step: &TraceStep) {
    let whole = text.page().verbose;
    let imbalance = step.imb_numa_nr.map(|n| format!(", imb_numa_nr {n}")).unwrap_or_default();
    let span = cpus::short(&step.span, whole);
    text.sentence(&format!("{} of CPU {} ({span}){imbalance}", step.domain, step.cpu));
    groups(text, step);
    let rule = if step.rule.is_empty() { String::new() } else { format!("{}: ", step.rule) };
    let because = if step.because.is_empty() { String::new() } else { format!("{}; ", step.because) };
    text.item(&format!("{rule}{because}{}", choice(step, whole)));
}

/// What was decided, in the end.
fn choice(step: &TraceStep, whole: bool) -> String {
    let group = |index: Option<u32>| {
        index
            .and_then(|index| step.groups.get(usize::try_from(index).ok()?))
            .map(|group| format!(" {}", cpus::short(&group.cpus, whole)))
            .unwrap_or_default()
    };
    let name = step.decision().as_str_name();
    match step.decision() {
        trace_step::Decision::Go => {
            let cpu = step.chosen.map(|cpu| format!(", there to CPU {cpu}")).unwrap_or_default();
            let tied = match step.tied_cpus.as_str() {
                "" => String::new(),
                tied => format!(" (any of {} is as good)", cpus::short(tied, whole)),
            };
            format!("{name} to{}{cpu}{tied}", group(step.idlest))
        }
        trace_step::Decision::Stay => format!("{name} in{}", group(step.local)),
        trace_step::Decision::Pass => format!("{name}: the level takes no part"),
        trace_step::Decision::Unknown => name.to_owned(),
    }
}

/// The groups as the kernel sees them, in ring order.
fn groups(text: &mut Text, step: &TraceStep) {
    let whole = text.page().verbose;
    let mut table = Table::new([
        Column::words(""),
        Column::words("TYPE"),
        Column::numbers("ALLOWED"),
        Column::numbers("WEIGHT"),
        Column::numbers("RUNNING"),
        Column::numbers("IDLE"),
        Column::numbers("UTIL"),
        Column::numbers("RUNNABLE"),
        Column::numbers("LOAD"),
        Column::numbers("CAPACITY"),
        Column::numbers("AVG_LOAD"),
        Column::lists("GROUP"),
    ]);
    for (index, group) in (0..).zip(&step.groups) {
        let seen = |n: u64| if group.skipped { String::new() } else { n.to_string() };
        table.row([
            role(step, index, group).to_owned(),
            kind(group).to_owned(),
            group.allowed.to_string(),
            group.weight.to_string(),
            seen(group.running.into()),
            seen(group.idle.into()),
            seen(group.util),
            seen(group.runnable),
            seen(group.load),
            seen(group.capacity),
            group.avg_load.map(seen).unwrap_or_default(),
            cpus::short(&group.cpus, whole),
        ]);
    }
    text.table(&table);
}

fn role(step: &TraceStep, index: u32, group: &GroupStats) -> &'static str {
    match () {
        () if step.local == Some(index) => "local",
        () if step.idlest == Some(index) => "idlest",
        () if step.tied.contains(&index) => "tied",
        () if group.skipped => "not allowed",
        () => "",
    }
}

/// The kernel's own names.
fn kind(group: &GroupStats) -> &'static str {
    match group.r#type() {
        group_stats::Type::Unknown => "",
        group_stats::Type::HasSpare => "has_spare",
        group_stats::Type::FullyBusy => "fully_busy",
        group_stats::Type::Misfit => "misfit_task",
        group_stats::Type::SmtBalance => "smt_balance",
        group_stats::Type::AsymPacking => "asym_packing",
        group_stats::Type::Imbalanced => "imbalanced",
        group_stats::Type::Overloaded => "overloaded",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Page;

    fn group(cpus: &str, allowed: u32, running: u32, r#type: group_stats::Type) -> GroupStats {
        let weight = 320;
        GroupStats {
            cpus: cpus.to_owned(),
            allowed,
            weight,
            running,
            idle: weight - running,
            load: u64::from(running) * 1024,
            capacity: u64::from(weight) * 1024,
            r#type: r#type.into(),
            ..GroupStats::default()
        }
    }

    fn shown(trace: Vec<TaskTrace>, trace_cut: bool) -> String {
        let mut text = Text::new(Page { width: 100, colour: false, verbose: false });
        blocks(&mut text, &Prediction { trace, trace_cut, ..Prediction::default() });
        text.finish()
    }

    #[test]
    fn each_step_has_its_groups_its_rule_and_its_choice() {
        let skipped = GroupStats { skipped: true, ..group("640-799", 0, 0, group_stats::Type::Unknown) };
        let top = TraceStep {
            domain: "NUMA".to_owned(),
            span: "0-639".to_owned(),
            cpu: 0,
            imb_numa_nr: Some(4),
            groups: vec![
                group("0-319", 160, 8, group_stats::Type::HasSpare),
                group("320-639", 16, 0, group_stats::Type::HasSpare),
                skipped,
            ],
            local: Some(0),
            idlest: Some(1),
            decision: trace_step::Decision::Go.into(),
            rule: "R-llc12".to_owned(),
            because: "8 + 1 > min(16, 8), idle 312 < 320: go".to_owned(),
            chosen: Some(320),
            tied_cpus: "320-335".to_owned(),
            ..TraceStep::default()
        };
        let below = TraceStep {
            domain: "MC".to_owned(),
            span: "320-335".to_owned(),
            cpu: 320,
            decision: trace_step::Decision::Pass.into(),
            ..TraceStep::default()
        };
        let at = Some(prost_types::Duration { seconds: 0, nanos: 800_000 });
        let first = TaskTrace { task: 8, cpu: 320, steps: vec![top, below], at, ..TaskTrace::default() };
        let second = TaskTrace {
            task: 9,
            cpu: 2,
            fell_back: true,
            because: "CPU 0 has no domains.".to_owned(),
            ..TaskTrace::default()
        };
        insta::assert_snapshot!(shown(vec![first, second], true));
    }

    #[test]
    fn no_trace_is_no_text() {
        assert_eq!(shown(Vec::new(), false), "");
    }
}
