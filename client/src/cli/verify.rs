//! `berth verify`: which tasks to look at.

use std::time::Duration;

use clap::{ArgGroup, Args};

use super::{ANSWER, examples, time};

/// `berth verify`.
#[derive(Debug, Args)]
#[command(
    after_help = examples::VERIFY,
    group = ArgGroup::new("whose").required(true).args(["pids", "cgroup", "hold", "all"])
)]
pub struct Verify {
    /// Processes, with all their threads; several with commas
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub pids: Vec<u32>,
    /// A cgroup with all below it, by its path below /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// What runs for a hold, by the hold's id or name, beside what is held
    #[arg(long, value_name = "HOLD")]
    pub hold: Option<String>,
    /// Every process with pinned threads on this host; tells only those that wait although they need not
    #[arg(short, long)]
    pub all: bool,
    /// CPUs that the tasks should be on
    ///
    /// Default: with `--hold` the CPUs held; else where each may run by its mask.
    #[arg(long, value_name = "CPUS", conflicts_with = "all")]
    pub expected: Option<String>,
    /// For how long to look, at most 10s; what does not last that long is not told, and migrations are counted
    ///
    /// Default: a look, and 20 ms later another one where something is found.
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    pub watch_for: Option<Duration>,
    /// Look for memory on other NUMA nodes too, which takes longer
    #[arg(long)]
    pub memory: bool,
    /// Every thread, not only those with something wrong
    #[arg(long, help_heading = ANSWER)]
    pub full: bool,
    /// End with 10 if something waits although it need not, or has drifted
    #[arg(long, help_heading = ANSWER)]
    pub check: bool,
    /// Do what mends it, with your own rights, and look again. Asks first
    #[arg(long, help_heading = MENDING)]
    pub fix: bool,
    /// Do not ask
    #[arg(short, long, requires = "fix", help_heading = MENDING)]
    pub yes: bool,
}

/// Heading of flags that change something.
const MENDING: &str = "Mending";
