//! `berth map`: which host to draw, and what on it.

use std::path::PathBuf;

use clap::{Args, builder::NonEmptyStringValueParser};

use super::{ANSWER, HostArgs, HostLoadArgs, KernelArgs, Policy, examples};

/// `berth map`.
#[derive(Debug, Args)]
#[command(after_help = examples::MAP)]
pub struct Map {
    /// Draw where so many new tasks go: as the kernel has it, and as Berth advises
    #[arg(short = 'n', long, value_name = "COUNT", help_heading = TASKS)]
    pub tasks: Option<u32>,
    /// The affinity mask they run under. Default: every online CPU
    #[arg(short, long, value_name = "CPUS", visible_alias = "allowed", value_parser = NonEmptyStringValueParser::new(), requires = "tasks", help_heading = TASKS)]
    pub cpus: Option<String>,
    /// The CPU that their parent runs on while it forks them. Default: the worst
    #[arg(long, value_name = "CPU", requires = "tasks", help_heading = TASKS)]
    pub from: Option<u32>,
    /// How the tasks should lie towards each other
    #[arg(long, value_enum, ignore_case = true, default_value_t, help_heading = TASKS)]
    pub policy: Policy,
    /// The kernel.
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// The host.
    #[command(flatten)]
    pub host: HostArgs,
    /// What runs there.
    #[command(flatten)]
    pub load: HostLoadArgs,
    /// Write an SVG picture to this file instead; `-` is stdout
    #[arg(long, value_name = "FILE", help_heading = ANSWER)]
    pub svg: Option<PathBuf>,
    /// Letters of ASCII alone. Default where the locale is not UTF-8
    #[arg(long, help_heading = ANSWER)]
    pub ascii: bool,
}

/// Heading of flags that say which tasks are drawn.
const TASKS: &str = "The tasks";
