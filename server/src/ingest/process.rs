//! What `/proc/PID/stat` says of a process.

use std::{fs, path::Path};

/// What is needed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its state, such as `S`.
    pub state: char,
    /// How many threads it has.
    pub threads: u32,
    /// When it was started, in clock ticks after boot: tells it from a later process with its pid.
    pub start_time: u64,
}

impl Stat {
    /// Reads it below `root`, which is `/` but in tests. Nothing if there is no such process.
    pub fn read(root: &Path, pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(root.join(format!("proc/{pid}/stat"))).ok()?)
    }

    /// The second field, the name, may itself hold spaces and parentheses.
    fn parse(stat: &str) -> Option<Self> {
        let (_, after_name) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            state: field(3)?.chars().next()?,
            threads: field(20)?.parse().ok()?,
            start_time: field(22)?.parse().ok()?,
        })
    }

    /// Whether any thread of it is left to run: one that has died stays until its parent asks how.
    pub fn is_alive(&self) -> bool {
        !(matches!(self.state, 'Z' | 'X') && self.threads <= 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_mislead() {
        let stat =
            |state| format!("12 (a) 7 (b c) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 18 4711 20");
        let expected = Stat { state: 'S', threads: 1, start_time: 4711 };
        assert_eq!(Stat::parse(&stat("S")), Some(expected));
        assert!(expected.is_alive() && !Stat::parse(&stat("Z")).unwrap().is_alive());
        assert_eq!(Stat::parse("12 (cut"), None);
    }
}
