//! Who gives out CPUs on this node: the kubelet's CPU manager, or nobody.

use std::{fmt, fs, path::Path};

use serde_json::Value;

/// What the kubelet's CPU manager does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Manager {
    /// It gives out no CPUs: the only case in which cpusets may be written.
    None,
    /// It gives out CPUs itself, and would take what is written for its own.
    Static,
    /// What it does cannot be read, or is not known here.
    Unknown,
}

impl Manager {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::None, Self::Static, Self::Unknown];

    /// As the kubelet has written it down. Where there is no such file, or it says something else, nothing is known.
    #[doc(alias = "cpu_manager_state")]
    pub(crate) fn read(file: &Path) -> Self {
        Self::of(&fs::read_to_string(file).unwrap_or_default())
    }

    fn of(text: &str) -> Self {
        let state: Value = serde_json::from_str(text).unwrap_or_default();
        match state.get("policyName").and_then(Value::as_str) {
            Some("none") => Self::None,
            Some("static") => Self::Static,
            _ => Self::Unknown,
        }
    }

    /// Whether cpusets may be written.
    pub(crate) fn lets_act(self) -> bool {
        self == Self::None
    }

    /// What it means for the plugin, in a sentence.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::None => "the kubelet gives out no CPUs: containers that ask are placed",
            Self::Static => "the kubelet gives out CPUs itself: cpusets are watched and never written",
            Self::Unknown => {
                "what the kubelet's CPU manager does is not known: cpusets are watched and never written"
            }
        }
    }
}

impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Static => "static",
            Self::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_policy_that_is_known_lets_act() {
        for (text, expected) in [
            (r#"{"policyName":"none","defaultCpuSet":"","checksum":1353318690}"#, Manager::None),
            (
                r#"{"policyName":"static","defaultCpuSet":"0,2-7","entries":{"u":{"c":"1"}},"checksum":1}"#,
                Manager::Static,
            ),
            (r#"{"policyName":"dynamic"}"#, Manager::Unknown),
            (r#"{"policyName":1}"#, Manager::Unknown),
            (r#"{"policyName":"none""#, Manager::Unknown),
            ("[]", Manager::Unknown),
            ("", Manager::Unknown),
        ] {
            assert_eq!(Manager::of(text), expected, "{text}");
        }
        assert_eq!(Manager::read(Path::new("/nowhere/cpu_manager_state")), Manager::Unknown);
        assert_eq!(Manager::ALL.map(Manager::lets_act), [true, false, false]);
    }
}
