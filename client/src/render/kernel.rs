//! Which profile was taken for a kernel, in words, and the settings that bear on placement.

use berth_proto::v1::{KernelSettings, ProfileChoice};

use crate::text::{Text, Tone, words};

/// Other profiles that are named before they are only counted.
const NAMED: usize = 4;

/// The kernel, its profile, and how sure that is. `asked` is the release as typed.
pub(super) fn chosen(choice: &ProfileChoice, asked: &str, whole: bool) -> String {
    let release = match (choice.release.as_str(), asked) {
        ("", "") => "not given",
        ("", asked) => asked,
        (release, _) => release,
    };
    let name = &choice.name;
    let sure = words::confidence(choice.confidence());
    let mut text = format!("{release}; rules of {name} ({sure})");
    if !choice.overridden.is_empty() {
        let set: Vec<String> =
            choice.overridden.iter().map(|(rule, value)| format!("{rule}={value}")).collect();
        text += &format!(" with {}", set.join(", "));
    }
    if !choice.others.is_empty() {
        text += &format!(", or of {}", some(&choice.others, whole));
    }
    text
}

/// The first few names, and how many more there are.
pub(super) fn some(names: &[String], whole: bool) -> String {
    // One more fits where "1 more" would stand.
    if whole || names.len() <= NAMED + 1 {
        return names.join(", ");
    }
    format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED)
}

/// Settings that could be read and say something; the rest is left out.
pub(super) fn settings(text: &mut Text, settings: &KernelSettings) {
    let switch = |on: Option<bool>| on.map(|on| if on { "on" } else { "off" }.to_owned()).unwrap_or_default();
    let word = |word: &Option<String>| word.clone().unwrap_or_default();
    let number = |n: Option<u32>| n.map(|n| n.to_string()).unwrap_or_default();
    let fields = [
        ("NUMA balancing", switch(settings.numa_balancing)),
        ("autogroup", switch(settings.autogroup)),
        ("features", settings.features.join(" ")),
        ("isolcpus", word(&settings.isolcpus)),
        ("nohz_full", word(&settings.nohz_full)),
        ("sched_ext", word(&settings.sched_ext)),
        ("core scheduling", switch(settings.core_scheduling)),
        ("cpuset version", number(settings.cpuset_version)),
        ("SMT control", word(&settings.smt_control)),
        ("ticks a second", number(settings.hz)),
    ];
    if fields.iter().any(|(_, words)| !words.is_empty()) {
        text.heading("Kernel settings");
        text.fields(fields.map(|(label, words)| (label, Tone::Plain, words)));
    }
}
