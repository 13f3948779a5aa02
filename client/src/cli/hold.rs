//! Flags of the commands that keep CPUs, and let them go.

use std::{ffi::OsString, time::Duration};

use clap::{ArgGroup, Args};

use super::{ANSWER, Form, Policy, Smt, WISHES, kernel::pair, time};

/// Heading of flags that say whose CPUs they become.
const HOLD: &str = "The hold";

/// `berth hold`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(["tasks", "cpus", "claim"]))]
pub struct Hold {
    /// Find CPUs for this many tasks, as `berth advise` does
    #[arg(short = 'n', long, value_name = "COUNT", help_heading = "What to hold")]
    pub tasks: Option<u32>,
    /// With --tasks: the CPUs to choose from. Alone: hold exactly these
    #[arg(short, long, value_name = "CPUS", visible_alias = "allowed", help_heading = "What to hold")]
    pub cpus: Option<String>,
    /// Hold no CPUs yet: a claim, which later holds can belong to (--under) and end with
    #[arg(long, conflicts_with_all = ["tasks", "cpus"], help_heading = "What to hold")]
    pub claim: bool,
    /// How the tasks should lie towards each other
    #[arg(long, value_enum, ignore_case = true, requires = "tasks", help_heading = WISHES)]
    pub policy: Option<Policy>,
    /// What to do with the hardware threads of one core
    #[arg(long, value_enum, ignore_case = true, requires = "tasks", help_heading = WISHES)]
    pub smt: Option<Smt>,
    /// The forms that the launcher can apply; several with commas. Default: all, with --bind one mask
    #[arg(long, value_enum, value_delimiter = ',', requires = "tasks", conflicts_with = "bind", help_heading = WISHES)]
    pub form: Vec<Form>,
    /// Nobody else is given the CPUs. Default: others may be where there is no better choice
    #[arg(long, help_heading = HOLD)]
    pub exclusive: bool,
    /// How long, such as 30s, 10m or 8h. Default: 30s, or without an end where a process or cgroup owns it
    #[arg(long, value_name = "TIME", value_parser = time::hold, help_heading = HOLD)]
    pub ttl: Option<Duration>,
    /// It ends with this process. In a shell script, --pid $$ is the script
    #[arg(long, value_name = "PID", conflicts_with_all = ["cgroup", "command"], help_heading = HOLD)]
    pub pid: Option<u32>,
    /// It ends when no process is left in this cgroup, named by its path below the cgroup mount
    #[arg(long, value_name = "PATH", conflicts_with = "command", help_heading = HOLD)]
    pub cgroup: Option<String>,
    /// A name for it, which will do wherever its id is asked for
    #[arg(long, value_name = "NAME", help_heading = HOLD)]
    pub name: Option<String>,
    /// The claim it belongs to and ends with, by id or name
    #[arg(long, value_name = "CLAIM", conflicts_with = "claim", help_heading = HOLD)]
    pub under: Option<String>,
    /// A further fact for people; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, help_heading = HOLD)]
    pub label: Vec<(String, String)>,
    /// Makes the call safe to repeat: the same id gives the same hold again. Default: a new one for each call
    #[arg(long, value_name = "ID", help_heading = HOLD)]
    pub request_id: Option<String>,
    /// Run the command on the CPUs held, and no others
    #[arg(long, requires = "command", conflicts_with = "claim", help_heading = "The command")]
    pub bind: bool,
    /// Run the command without a hold where none can be had, and say so on stderr
    #[arg(long, requires = "command", help_heading = "The command")]
    pub or_run: bool,
    /// Keep the CPUs while this command runs, and let them go when it ends, however it does
    ///
    /// It finds its CPUs in BERTH_CPUS (and the hold in BERTH_HOLD, NUMA nodes for its memory in BERTH_MEMORY_NODES).
    /// Signals are passed on to it, and `berth` ends with its status, or with 128 and the signal's number. 125 says
    /// that the CPUs could not be held and the command was not run, 126 and 127 that it could not be started.
    #[arg(last = true, value_name = "COMMAND", help_heading = "The command")]
    pub command: Vec<OsString>,
}

/// `berth renew`.
#[derive(Debug, Args)]
pub struct Renew {
    /// The hold, by id or name
    pub id: String,
    /// How long from now on. Default: as long as it was given last
    #[arg(long, value_name = "TIME", value_parser = time::hold)]
    pub ttl: Option<Duration>,
    /// The user whose hold it is, by number; for the admin role, where a name is given
    #[arg(long, value_name = "UID")]
    pub uid: Option<u32>,
}

/// `berth release`.
#[derive(Debug, Args)]
pub struct Release {
    /// The holds, by id or name
    #[arg(required_unless_present = "all_mine", value_name = "ID")]
    pub ids: Vec<String>,
    /// All that this user has
    #[arg(long, conflicts_with_all = ["ids", "uid"])]
    pub all_mine: bool,
    /// The user whose holds they are, by number; for the admin role, where names are given
    #[arg(long, value_name = "UID")]
    pub uid: Option<u32>,
}

/// `berth holds`.
#[derive(Debug, Args)]
pub struct Holds {
    /// Only these, by id or name, with all that is known of each
    #[arg(value_name = "ID", conflicts_with_all = ["all", "cpus", "under"])]
    pub ids: Vec<String>,
    /// Those of all users, as far as the server shows them. Default: of this user
    #[arg(short, long, conflicts_with = "uid", help_heading = ANSWER)]
    pub all: bool,
    /// Those of this user, by number
    #[arg(long, value_name = "UID", help_heading = ANSWER)]
    pub uid: Option<u32>,
    /// Those with at least one of these CPUs
    #[arg(short, long, value_name = "CPUS", help_heading = ANSWER)]
    pub cpus: Option<String>,
    /// Those that belong to this claim, by id or name
    #[arg(long, value_name = "CLAIM", help_heading = ANSWER)]
    pub under: Option<String>,
}
