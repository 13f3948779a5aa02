//! One prediction in words: verdict, fullest CPU, CPU use, what is undetermined.

use berth_proto::v1::{Balancing, CountRange, CpuUse, Prediction, Split, Undetermined, verdict};

use crate::text::{Tone, cpus, numbers, words};

/// A label, the tone of its text's first word, and the text.
pub(super) type Field = (&'static str, Tone, String);

/// The verdict and what it says.
pub(super) fn verdict(prediction: &Prediction) -> (Tone, String) {
    let (tone, name) = words::verdict(prediction.verdict());
    let meaning = match prediction.verdict() {
        verdict::Value::NoPileUp => "no CPU holds more tasks than it must",
        verdict::Value::PileUp => "tasks crowd while better places are free",
        verdict::Value::Unknown => "not computed, and not to be taken for safe",
    };
    (tone, format!("{name}: {meaning}"))
}

/// Everything but the verdict and where the tasks land.
pub(super) fn fields(prediction: &Prediction, tasks: u32, allowed: usize, whole: bool) -> Vec<Field> {
    let plain = |label, text| (label, Tone::Plain, text);
    vec![
        plain("fullest CPU", fullest(prediction)),
        plain("CPU use", prediction.cpu_use.as_ref().map(cpu_use).unwrap_or_default()),
        plain("CPUs used", format!("{} of {allowed}", prediction.cpus_used)),
        plain("idle CPUs", idle(prediction, whole)),
        plain("afterwards", prediction.balancing.as_ref().map(afterwards).unwrap_or_default()),
        plain("lets stand", prediction.balancing.as_ref().map(lets_stand).unwrap_or_default()),
        plain("undetermined", undetermined(prediction, tasks)),
    ]
}

/// `10 tasks, where 1 is possible`.
pub(super) fn fullest(prediction: &Prediction) -> String {
    let most = numbers::count(prediction.most_on_one_cpu, "task");
    format!(
        "{most}{}; the best possible is {}",
        apart(prediction.most_on_one_cpu_range),
        prediction.best_possible
    )
}

fn idle(prediction: &Prediction, whole: bool) -> String {
    let n = prediction.idle_allowed_count;
    let which =
        if n == 0 { String::new() } else { format!(": {}", cpus::short(&prediction.idle_allowed, whole)) };
    format!("{n}{}{which}", apart(prediction.idle_allowed_range))
}

/// A range in brackets, if it is one.
fn apart(range: Option<CountRange>) -> String {
    match range {
        Some(range) if range.least != range.most => format!(" ({})", numbers::range(range)),
        _ => String::new(),
    }
}

/// CPU use with its range.
pub(super) fn cpu_use(used: &CpuUse) -> String {
    let mut text = numbers::percent(used.expected);
    let range = numbers::percent_range(used.least, used.most);
    if range != text {
        text += &format!(" (range {range})");
    }
    let frozen = numbers::percent(used.frozen_clock);
    if frozen != numbers::percent(used.expected) {
        text += &format!(", {frozen} if all were forked in the same instant");
    }
    if let Some(settled) = used.settled {
        text += &format!(", {} once load balancing is done", numbers::percent(settled));
    }
    text
}

fn afterwards(balancing: &Balancing) -> String {
    let mut text = words::balancing(balancing.effect()).to_owned();
    if text.is_empty() {
        return text;
    }
    if let Some(takes) = &balancing.takes {
        let times: Vec<String> =
            [takes.least, takes.most].map(numbers::wire_time).into_iter().filter(|t| !t.is_empty()).collect();
        if !times.is_empty() {
            text += &format!(", in about {}", times.join(" to "));
        }
    }
    if let Some(range) = balancing.most_on_one_cpu {
        text += &format!("; then {} on the fullest CPU", numbers::range(range));
    }
    if !balancing.because.is_empty() {
        text += &format!(": {}", balancing.because);
    }
    text
}

/// The lopsided splits that load balancing would leave as they are: `56/8 by package`.
fn lets_stand(balancing: &Balancing) -> String {
    let split = |split: &Split| {
        let tasks: Vec<String> = split.tasks.iter().map(u32::to_string).collect();
        format!("{} by {}", tasks.join("/"), words::level(split.level()).0)
    };
    balancing.lets_stand.iter().map(split).collect::<Vec<_>>().join("; ")
}

/// What is not determined, in words; "nothing" if all is.
fn undetermined(prediction: &Prediction, tasks: u32) -> String {
    let mut what = Vec::new();
    if !prediction.verdict_determined && prediction.verdict() != verdict::Value::Unknown {
        what.push("whether every run ends so".to_owned());
    }
    let none = Undetermined::default();
    let open = prediction.undetermined.as_ref().unwrap_or(&none);
    for (level, n) in
        [("package", open.package), ("NUMA node", open.node), ("LLC", open.llc), ("CPU", open.cpu)]
    {
        match n {
            0 => {}
            n if n == tasks => what.push(format!("the {level} of each task")),
            n => what.push(format!("the {level} of {}", numbers::count(n, "task"))),
        }
    }
    if what.is_empty() {
        return "nothing".to_owned();
    }
    let because =
        if open.because.is_empty() { String::new() } else { format!(". {}", open.because.join(" ")) };
    format!("{}{because}", what.join(", "))
}
