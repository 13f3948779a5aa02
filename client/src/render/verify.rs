//! `berth verify`.

use berth_proto::v1::{Finding, ThreadState, VerifyResponse, Workload, verdict};

use crate::text::{Column, Page, Table, Text, Tone, cpus, numbers, words};

/// Steps of one finding that are shown before the rest is counted.
const STEPS: usize = 6;
/// Threads that are shown before the rest is counted.
const THREADS: usize = 32;

/// The whole answer.
pub(crate) fn verify(response: &VerifyResponse, page: Page) -> String {
    let mut text = Text::new(page);
    text.heading("Running tasks");
    text.fields([
        ("looked at", Tone::Plain, seen(response)),
        ("taken at", Tone::Plain, numbers::moment(response.taken_at)),
    ]);
    let wrong = response.workloads.iter().filter(|workload| !workload.findings.is_empty()).count();
    text.gap();
    text.sentence(match (response.workloads.len(), wrong) {
        (0, _) => "No task that waits although it need not.",
        (_, 0) => "Nothing is wrong.",
        _ => "Each step of `mends it` is a command to type; --fix does them.",
    });
    for workload in &response.workloads {
        one(&mut text, workload);
    }
    text.finish()
}

fn seen(response: &VerifyResponse) -> String {
    let seen = count(response.threads_seen as usize, "thread");
    match response.threads_hidden {
        0 => seen,
        hidden => format!("{seen}; {hidden} of others are not shown"),
    }
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn one(text: &mut Text, workload: &Workload) {
    let pids: Vec<String> = workload.pids.iter().take(8).map(u32::to_string).collect();
    let more = workload.pids.len().saturating_sub(8);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    text.heading(&workload.name);
    let crowded = workload.findings.iter().any(|finding| finding.reason == "CROWDED_BY_MASK");
    let (tone, verdict) = match workload.verdict() {
        verdict::Value::NoPileUp if crowded => (Tone::Doubtful, "NO_PILE_UP under its masks, which crowd it"),
        // None of its threads ran.
        verdict::Value::Unknown => (Tone::Plain, "nothing of it runs now"),
        known => words::verdict(known),
    };
    let rate = |rate: Option<f64>| rate.map(|rate| format!("{rate:.1} a second")).unwrap_or_default();
    text.fields([
        ("processes", Tone::Plain, format!("{}{more}", pids.join(", "))),
        ("uid", Tone::Plain, workload.uid.to_string()),
        ("hold", Tone::Plain, workload.hold.clone()),
        ("now", tone, verdict.to_owned()),
        ("CPU time", Tone::Plain, workload.cpu_use.map(numbers::percent).unwrap_or_default()),
        ("migrations", Tone::Plain, rate(workload.migrations_per_second)),
        ("memory", Tone::Plain, memory(workload)),
    ]);
    for finding in &workload.findings {
        found(text, finding);
    }
    threads(text, workload);
}

fn memory(workload: &Workload) -> String {
    let each = workload.memory.iter().map(|node| {
        let wrong = if node.wrong { " (elsewhere)" } else { "" };
        format!("{} MiB on node {}{wrong}", node.bytes >> 20, node.node)
    });
    each.collect::<Vec<_>>().join(", ")
}

fn found(text: &mut Text, finding: &Finding) {
    text.gap();
    let steps = finding.fixes.iter().map(|fix| fix.command.as_str());
    let mut shown: Vec<String> = steps.map(str::to_owned).collect();
    if !text.page().verbose && shown.len() > STEPS {
        let left = shown.split_off(STEPS).len();
        shown.push(format!("and {} (--verbose)", count(left, "step")));
    }
    let mut fields =
        vec![("finding", Tone::Bad, finding.reason.clone()), ("", Tone::Plain, finding.message.clone())];
    for (index, step) in shown.into_iter().enumerate() {
        fields.push((if index == 0 { "mends it" } else { "" }, Tone::Plain, step));
    }
    text.fields(fields);
}

fn threads(text: &mut Text, workload: &Workload) {
    if workload.threads.is_empty() {
        return;
    }
    let whole = text.page().verbose;
    let mut table = Table::new([
        Column::numbers("TID"),
        Column::words("NAME"),
        Column::words("STATE"),
        Column::numbers("CPU"),
        Column::numbers("USE"),
        Column::numbers("MIGRATIONS/S"),
        Column::lists("MASK"),
        Column::words("CPUSET"),
    ]);
    let share = |thread: &ThreadState| thread.cpu_use.map(|part| format!("{:.0} %", part * 100.0));
    let rate = |thread: &ThreadState| thread.migrations_per_second.map(|rate| format!("{rate:.1}"));
    let most = if whole { usize::MAX } else { THREADS };
    for thread in workload.threads.iter().take(most) {
        table.row([
            thread.tid.to_string(),
            thread.command.clone(),
            thread.state.clone(),
            thread.cpu.to_string(),
            share(thread).unwrap_or_default(),
            rate(thread).unwrap_or_default(),
            cpus::short(&thread.allowed, whole),
            cpus::short(&thread.cpuset, whole),
        ]);
    }
    text.gap();
    text.table(&table);
    let left = workload.threads.len().saturating_sub(most);
    if left > 0 {
        text.sentence(&format!("And {}: --verbose.", count(left, "thread")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::v1::{Fix, NodeMemory};

    fn thread(tid: u32, cpu: u32) -> ThreadState {
        ThreadState {
            pid: 4100,
            tid,
            command: "stream".to_owned(),
            cpu,
            allowed: "0-3".to_owned(),
            cpuset: "0-15".to_owned(),
            state: "R".to_owned(),
            migrations_per_second: Some(0.0),
            cpu_use: Some(0.5),
            start_time: 7,
        }
    }

    fn shown(response: &VerifyResponse) -> String {
        verify(response, Page { width: 100, colour: false, verbose: false })
    }

    #[test]
    fn a_pile_up_with_what_mends_it() {
        let fix = |command: &str| Fix { command: command.to_owned(), ..Fix::default() };
        let finding = Finding {
            reason: "PILED_UP".to_owned(),
            message: "2 threads share CPU 0 while CPUs 2-3 that they may use are idle.".to_owned(),
            cpus: "0".to_owned(),
            tids: vec![4100, 4101],
            fixes: vec![fix("taskset -cp 2 4101"), fix("taskset -cp 0-3 4101")],
        };
        let workload = Workload {
            name: "stream".to_owned(),
            pids: vec![4100],
            uid: 1000,
            verdict: verdict::Value::PileUp.into(),
            findings: vec![finding],
            threads: vec![thread(4100, 0), thread(4101, 0)],
            migrations_per_second: Some(0.25),
            cpu_use: Some(0.5),
            memory: vec![
                NodeMemory { node: 0, bytes: 300 << 20, wrong: false },
                NodeMemory { node: 1, bytes: 20 << 20, wrong: true },
            ],
            ..Workload::default()
        };
        let response = VerifyResponse {
            workloads: vec![workload],
            threads_seen: 2,
            threads_hidden: 3,
            ..VerifyResponse::default()
        };
        insta::assert_snapshot!(shown(&response));
    }

    #[test]
    fn nothing_to_tell() {
        let response = VerifyResponse { threads_seen: 12, ..VerifyResponse::default() };
        insta::assert_snapshot!(shown(&response), @r"
        Running tasks
          looked at  12 threads

          No task that waits although it need not.
        ");
    }
}
