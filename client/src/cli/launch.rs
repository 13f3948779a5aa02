//! Flags that say which tasks a question is about.

use clap::{Args, builder::NonEmptyStringValueParser};

use super::Launch;

/// Which tasks a question is about.
#[derive(Debug, Args)]
#[command(next_help_heading = "The tasks")]
pub struct LaunchArgs {
    /// How many new tasks (processes or threads)
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub tasks: u32,
    /// The affinity mask they run under. Default: every online CPU
    ///
    /// By Linux's CPU numbers, in any form that Linux tools print: 0-15,320-335; with strides 0-30:2; a hex mask 0xff;
    /// groups of 32 bits ffffffff,00000000.
    #[arg(short, long, value_name = "CPUS", visible_alias = "allowed", value_parser = NonEmptyStringValueParser::new())]
    pub cpus: Option<String>,
    /// The CPU that their parent runs on while it forks them. Default: each one it may be on, the worst is shown
    #[arg(long, value_name = "CPU")]
    pub from: Option<u32>,
    /// The parent is the first of the tasks, and not a launcher beside them
    #[arg(long)]
    pub origin_is_task: bool,
    /// How they come into being
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub launch: Launch,
}
