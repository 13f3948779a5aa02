//! `berth watch`: what can be followed.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::{examples, time};

/// `berth watch`.
#[derive(Debug, Args)]
#[command(after_help = examples::WATCH)]
pub struct Watch {
    /// What to follow.
    #[command(subcommand)]
    pub what: Watched,
}

/// What can be followed.
#[derive(Debug, Subcommand)]
pub enum Watched {
    /// Holds: those there are, then each that is made, changes or ends
    Holds(WatchHolds),
    /// The load: a line for each sample
    Load(WatchLoad),
    /// The topology: a line for each change of what is online, isolated or partitioned
    Topology(WatchTopology),
}

/// When to stop.
#[derive(Debug, Args)]
pub struct Until {
    /// Stop after this many messages of the server. Default: go on until interrupted
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

/// `berth watch holds`.
#[derive(Debug, Args)]
pub struct WatchHolds {
    /// When to stop.
    #[command(flatten)]
    pub until: Until,
    /// Those of all users, as far as the server shows them. Default: of this user
    #[arg(short, long, conflicts_with = "uid")]
    pub all: bool,
    /// Those of this user, by number
    #[arg(long, value_name = "UID")]
    pub uid: Option<u32>,
}

/// `berth watch load`.
#[derive(Debug, Args)]
pub struct WatchLoad {
    /// When to stop.
    #[command(flatten)]
    pub until: Until,
    /// Only these CPUs
    #[arg(short, long, value_name = "CPUS", visible_alias = "allowed")]
    pub cpus: Option<String>,
    /// Tell at most this often, such as 10s. Default: of each sample
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    pub every: Option<Duration>,
    /// With --output json: the kernel's averages and bound tasks too
    #[arg(long)]
    pub full: bool,
}

/// `berth watch topology`.
#[derive(Debug, Args)]
pub struct WatchTopology {
    /// When to stop.
    #[command(flatten)]
    pub until: Until,
    /// With --output json: cores and PCI devices too
    #[arg(long)]
    pub full: bool,
}
