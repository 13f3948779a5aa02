//! Flags for circumstances of a launch that Berth cannot see.

use std::time::Duration;

use berth_proto::v1::{ExitLatency, Scenario, scenario};
use clap::{Args, ValueEnum};

use super::{entries, time};

/// Circumstances of a launch.
#[derive(Debug, Args)]
#[command(next_help_heading = "Circumstances that Berth cannot see (default: the likely ones)")]
pub struct ScenarioArgs {
    /// Pause between two forks, such as 50us; 0 stops the clock for the launch. Default: 100us
    #[arg(long, value_name = "TIME", value_parser = time::any)]
    pub gap: Option<Duration>,
    /// Each new task sleeps at once, so that later forks do not see it
    #[arg(long)]
    pub children_sleep: bool,
    /// The parent goes on running beside its children. Default: it waits
    #[arg(long)]
    pub parent_keeps_running: bool,
    /// The NUMA node that the tasks prefer already, as threads of a process under NUMA balancing do
    #[arg(long, value_name = "NODE")]
    pub preferred_node: Option<u32>,
    /// What to assume of the mark that load balancing leaves on a group where affinity stopped it
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub mark: Mark,
    /// A group that load balancing has marked by now, by all its CPUs, such as a NUMA node's; can be given several times
    #[arg(long, value_name = "CPUS")]
    pub marked: Vec<String>,
    /// Idle CPUs in the order they went idle, the latest first: 3,1,2
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub idle_order: Vec<u32>,
    /// Exit latency of the state that idle CPUs are in: CPUS:TIME, several with commas: 0-3:2us,4-7:100us
    #[arg(long, value_name = "LATENCIES", value_parser = latencies)]
    pub exit_latency: Option<Latencies>,
    /// What to assume of tasks that hold CPUs and were not measured to run there
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub holders: Holders,
}

/// What to assume of the imbalance mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Mark {
    /// Clear as the central value; from never to always set as the range
    #[default]
    Both,
    /// Never set
    Clear,
    /// Set from the moment there is a reason
    Set,
}

/// What to assume of holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Holders {
    /// Both of the following; the worse is shown
    #[default]
    Worse,
    /// They run
    Running,
    /// They sleep, and the kernel does not see them
    Asleep,
}

/// Exit latencies in the order they were typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies(Vec<ExitLatency>);

fn latencies(text: &str) -> Result<Latencies, String> {
    let latency = |(cpus, typed): (String, &str)| {
        let latency = time::any(typed)?;
        Ok(ExitLatency { cpus, latency: latency.try_into().ok() })
    };
    entries::read(text, "time", "CPUS:TIME, such as 0-3:2us,4-7:100us")?
        .into_iter()
        .map(latency)
        .collect::<Result<_, _>>()
        .map(Latencies)
}

impl ScenarioArgs {
    /// As the contract has it. `None`: nothing was given.
    pub fn message(&self) -> Option<Scenario> {
        let scenario = Scenario {
            gap: self.gap.and_then(|gap| gap.try_into().ok()),
            children_sleep: self.children_sleep,
            parent_keeps_running: self.parent_keeps_running,
            preferred_node: self.preferred_node,
            mark: scenario::Mark::from(self.mark).into(),
            marked: self.marked.clone(),
            idle_order: self.idle_order.clone(),
            exit_latencies: self.exit_latency.as_ref().map(|given| given.0.clone()).unwrap_or_default(),
            holders: scenario::Holders::from(self.holders).into(),
        };
        (scenario != Scenario::default()).then_some(scenario)
    }

    /// What was given, in words; empty if nothing was.
    pub(crate) fn label(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.gap.map(|gap| match gap {
            Duration::ZERO => "no time passes".to_owned(),
            gap => format!("{gap:?} between forks"),
        }));
        parts.extend(self.children_sleep.then(|| "children sleep at once".to_owned()));
        parts.extend(self.parent_keeps_running.then(|| "the parent keeps running".to_owned()));
        parts.extend(self.preferred_node.map(|node| format!("node {node} is preferred")));
        match self.mark {
            Mark::Both => {}
            Mark::Clear => parts.push("no group is marked".to_owned()),
            Mark::Set => parts.push("groups are marked as soon as there is a reason".to_owned()),
        }
        parts.extend(self.marked.iter().map(|cpus| format!("the group of CPUs {cpus} is marked")));
        let order: Vec<String> = self.idle_order.iter().map(u32::to_string).collect();
        parts.extend((!order.is_empty()).then(|| format!("CPUs went idle in the order {}", order.join(","))));
        parts.extend(self.exit_latency.is_some().then(|| "exit latencies as given".to_owned()));
        match self.holders {
            Holders::Worse => {}
            Holders::Running => parts.push("holders run".to_owned()),
            Holders::Asleep => parts.push("holders sleep".to_owned()),
        }
        parts.join("; ")
    }
}

impl From<Mark> for scenario::Mark {
    fn from(mark: Mark) -> Self {
        match mark {
            Mark::Both => Self::Both,
            Mark::Clear => Self::Clear,
            Mark::Set => Self::Set,
        }
    }
}

impl From<Holders> for scenario::Holders {
    fn from(holders: Holders) -> Self {
        match holders {
            Holders::Worse => Self::Worse,
            Holders::Running => Self::Running,
            Holders::Asleep => Self::Asleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn typed(line: &str) -> ScenarioArgs {
        let words = ["berth", "predict", "-n", "2"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Predict(args) => args.scenario,
            _ => unreachable!("it says predict"),
        }
    }

    #[test]
    fn nothing_given_is_no_scenario() {
        assert_eq!(typed("").message(), None);
        assert_eq!(typed("").label(), "");
    }

    #[test]
    fn every_circumstance_is_asked_about() {
        let args = typed(
            "--gap 0 --children-sleep --parent-keeps-running --preferred-node 0 --mark set --marked 0-7 --idle-order 3,1,0 \
             --exit-latency 0-3,8:2us,4-7:0 --holders asleep",
        );
        let micros = |n: i32| Some(prost_types::Duration { seconds: 0, nanos: n * 1000 });
        let latency = |cpus: &str, n| ExitLatency { cpus: cpus.to_owned(), latency: micros(n) };
        let expected = Scenario {
            gap: micros(0),
            children_sleep: true,
            parent_keeps_running: true,
            preferred_node: Some(0),
            mark: scenario::Mark::Set.into(),
            marked: vec!["0-7".to_owned()],
            idle_order: vec![3, 1, 0],
            exit_latencies: vec![latency("0-3,8", 2), latency("4-7", 0)],
            holders: scenario::Holders::Asleep.into(),
        };
        assert_eq!(args.message(), Some(expected));
        assert_eq!(
            args.label(),
            "no time passes; children sleep at once; the parent keeps running; node 0 is preferred; groups are marked \
             as soon as there is a reason; the group of CPUs 0-7 is marked; CPUs went idle in the order 3,1,0; exit latencies as given; holders sleep"
        );
    }
}
