//! `berth run`: what to start, and where.

use std::{ffi::OsString, time::Duration};

use clap::Args;

use super::{ANSWER, Policy, Smt, WISHES, examples, time};

/// Heading of flags about the command.
const COMMAND: &str = "The command";

/// `berth run`.
#[derive(Debug, Args)]
#[command(after_help = examples::RUN)]
pub struct Run {
    /// How many tasks (processes or threads) the command will run at a time
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub tasks: u32,
    /// The CPUs to keep to, as with `taskset -c` and `numactl -C`. Default: all that this process may use
    #[arg(short, long, value_name = "CPUS", visible_alias = "allowed")]
    pub cpus: Option<String>,
    /// How the tasks should lie towards each other
    #[arg(long, value_enum, ignore_case = true, default_value_t, help_heading = WISHES)]
    pub policy: Policy,
    /// What to do with the hardware threads of one core
    #[arg(long, value_enum, ignore_case = true, default_value_t, help_heading = WISHES)]
    pub smt: Smt,
    /// Put what the command starts onto its CPUs, task by task, for this long: for programs that fork their own workers
    ///
    /// Without it the command is bound as a whole, where one mask is safe. Where none is, each of its tasks has to be put on CPUs of
    /// its own: OpenMP programs do that by OMP_PLACES, others by this flag. A task whose mask the program sets itself is left alone.
    #[arg(long, value_name = "TIME", value_parser = time::parse, help_heading = COMMAND)]
    pub follow: Option<Duration>,
    /// How long to wait for berthd's advice
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = time::parse, help_heading = COMMAND)]
    pub within: Duration,
    /// Do not run the command without advice that is safe, or where its CPUs cannot be held; ends with 125 then
    #[arg(long, help_heading = COMMAND)]
    pub require: bool,
    /// Show what would be done, and do nothing
    #[arg(long, help_heading = ANSWER)]
    pub dry_run: bool,
    /// What to run
    ///
    /// It replaces this process, and finds its CPUs in BERTH_CPUS and, if they are held for it, the hold in BERTH_HOLD. Of
    /// OMP_NUM_THREADS, OMP_PLACES and OMP_PROC_BIND none is set that is set already. With --follow this process stays, passes
    /// signals on, and ends as the command does.
    #[arg(last = true, required = true, value_name = "COMMAND", help_heading = COMMAND)]
    pub command: Vec<OsString>,
}
