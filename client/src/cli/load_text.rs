//! The load of a host as it is typed: `0-3:1,8:2/busy=0.5`.

use std::str::FromStr;

use berth_proto::v1::CpuLoad;

use super::entries;

/// What is accepted, for who typed something else.
const FORM: &str =
    "CPUS:TASKS, such as 0-3:1,8:2, with more as in 0-3:1/busy=0.5/load=512/util=300/runnable=900";

/// What runs on a host: entries of CPUs, the number of tasks on each, and what else is known.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadText(Vec<CpuLoad>);

impl LoadText {
    /// The entries in the order they were typed.
    pub fn entries(&self) -> &[CpuLoad] {
        &self.0
    }
}

impl FromStr for LoadText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        entries::read(text, "number of tasks", FORM)?
            .into_iter()
            .map(|(cpus, said)| entry(cpus, said))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// The number of tasks first, then the numbers that have names.
fn entry(cpus: String, said: &str) -> Result<CpuLoad, String> {
    let mut parts = said.split('/');
    let tasks = parts.next().unwrap_or_default();
    let mut entry =
        CpuLoad { cpus, runnable: Some(number(tasks, "a number of tasks")?), ..CpuLoad::default() };
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name {
            "busy" => entry.utilisation = Some(share(value)?),
            "load" => entry.load_avg = Some(number(value, "a load_avg")?),
            "util" => entry.util_avg = Some(number(value, "a util_avg")?),
            "runnable" => entry.runnable_avg = Some(number(value, "a runnable_avg")?),
            _ => return Err(format!("`{name}` is none of busy, load, util and runnable; write {FORM}")),
        }
    }
    Ok(entry)
}

fn number(text: &str, what: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is not {what}; write {FORM}"))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("`{text}` is not a share of 0 to 1; write {FORM}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_cpus_and_tasks() {
        let entry = |cpus: &str, tasks| CpuLoad {
            cpus: cpus.to_owned(),
            runnable: Some(tasks),
            ..CpuLoad::default()
        };
        let read = |text: &str| text.parse::<LoadText>().unwrap().0;
        assert_eq!(read("0-3:1,0x100:2"), [entry("0-3", 1), entry("0x100", 2)]);
        let more = CpuLoad {
            utilisation: Some(0.25),
            load_avg: Some(0),
            util_avg: Some(300),
            runnable_avg: Some(900),
            ..entry("8", 0)
        };
        assert_eq!(read("8:0/busy=0.25/load=0/util=300/runnable=900"), [more]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, wrong) in [
            ("0-3", "`0-3` has no number of tasks"),
            ("3:x", "`x` is not a number of tasks"),
            ("3:-1", "`-1` is not a number of tasks"),
            ("3:1/busy=2", "`2` is not a share of 0 to 1"),
            ("3:1/busy=nan", "`nan` is not a share of 0 to 1"),
            ("3:1/load", "`` is not a load_avg"),
            ("3:1/idle=1", "`idle` is none of busy, load, util and runnable"),
        ] {
            let said = text.parse::<LoadText>().unwrap_err();
            assert!(said.starts_with(wrong), "{text}: {said}");
        }
    }
}
