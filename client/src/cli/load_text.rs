//! The load of a host as it is typed: `0-3:1,8:2`.

use std::str::FromStr;

use berth_proto::v1::CpuLoad;

/// What runs on a host: entries of CPUs and the number of tasks on each.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadText(Vec<CpuLoad>);

/// Why a text is no load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// CPUs without a number of tasks.
    #[error("`{0}` has no number of tasks; write CPUS:TASKS, such as 0-3:1,8:2")]
    NoTasks(String),
    /// A number of tasks without CPUs.
    #[error("`{0}` has no CPUs; write CPUS:TASKS, such as 0-3:1,8:2")]
    NoCpus(String),
    /// What stands after the colon is no number.
    #[error("`{0}` is not a number of tasks; write CPUS:TASKS, such as 0-3:1,8:2")]
    NotANumber(String),
}

impl LoadText {
    /// The entries in the order they were typed.
    pub fn entries(&self) -> &[CpuLoad] {
        &self.0
    }
}

impl FromStr for LoadText {
    type Err = ParseError;

    /// CPUs without a number belong to the next number: `0,4,8:1` is one entry. The number stands after the last colon,
    /// so an entry with a stride is `0-30:2:1`. Whether the CPUs can be read is for the server to say.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut entries = Vec::new();
        let mut waiting: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let Some((cpus, tasks)) = part.rsplit_once(':') else {
                waiting.push(part);
                continue;
            };
            if cpus.is_empty() {
                return Err(ParseError::NoCpus(part.to_owned()));
            }
            let runnable = tasks.parse().map_err(|_| ParseError::NotANumber(tasks.to_owned()))?;
            waiting.push(cpus);
            let cpus = std::mem::take(&mut waiting).join(",");
            entries.push(CpuLoad { cpus, runnable: Some(runnable), ..CpuLoad::default() });
        }
        if waiting.is_empty() { Ok(Self(entries)) } else { Err(ParseError::NoTasks(waiting.join(","))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, u32)>, ParseError> {
        let load: LoadText = text.parse()?;
        Ok(load.entries().iter().map(|e| (e.cpus.clone(), e.runnable.unwrap())).collect())
    }

    #[test]
    fn entries_are_cpus_and_tasks() {
        let entry = |cpus: &str, tasks| (cpus.to_owned(), tasks);
        assert_eq!(read("0-3:1,8:2"), Ok(vec![entry("0-3", 1), entry("8", 2)]));
        assert_eq!(read("0,4,8:1, 9:0"), Ok(vec![entry("0,4,8", 1), entry("9", 0)]));
        assert_eq!(read("0-30:2:1"), Ok(vec![entry("0-30:2", 1)]));
        assert_eq!(read("0xff:3"), Ok(vec![entry("0xff", 3)]));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(read("0-3"), Err(ParseError::NoTasks("0-3".into())));
        assert_eq!(read("0-3:1,8"), Err(ParseError::NoTasks("8".into())));
        assert_eq!(read(""), Err(ParseError::NoTasks("".into())));
        assert_eq!(read(":3"), Err(ParseError::NoCpus(":3".into())));
        assert_eq!(read("3:x"), Err(ParseError::NotANumber("x".into())));
        assert_eq!(read("3:-1"), Err(ParseError::NotANumber("-1".into())));
    }
}
