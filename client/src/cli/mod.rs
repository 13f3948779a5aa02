//! What can be typed: commands and flags, with the help that is also their documentation.

mod choices;
mod entries;
mod examples;
mod explain;
mod help;
mod hold;
mod host;
mod kernel;
mod kube;
mod kube_nri;
mod launch;
mod load_text;
mod map;
mod run;
mod scenario;
mod slurm;
mod time;
mod tls;
mod top;
mod verify;
mod watch;

use std::{ffi::OsString, time::Duration};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

pub use choices::{Form, Format, Launch, Level, Policy, Smt};
pub use explain::Explain;
pub use hold::{Hold, Holds, Release, Renew};
pub use host::{HostArgs, HostLoadArgs};
pub use kernel::KernelArgs;
pub use kube::{DeviceKind, DevicePlugin, DeviceTopology, Kube, KubeStatus, KubeletArgs, Resource};
pub use kube_nri::{KubeNri, NriNode};
pub use launch::LaunchArgs;
pub use load_text::LoadText;
pub use map::Map;
pub use run::Run;
pub use scenario::{Holders, Mark, ScenarioArgs};
pub use slurm::{Slurm, SlurmInstall, TaskProlog};
pub use tls::TlsArgs;
pub use top::Top;
pub use verify::Verify;
pub use watch::{Until, Watch, WatchHolds, WatchLoad, WatchTopology, Watched};

use crate::{address::Address, text::Colour};

/// Heading of flags that say how much an answer tells.
const ANSWER: &str = "The answer";
/// Heading of flags that say what is wished for.
const WISHES: &str = "What is wished for";

/// Asks berthd where this host's kernel would put tasks, and where they should go instead
///
/// The kernel fills an affinity mask by rules of its own, and often crowds tasks on a few of its CPUs. berthd knows
/// the host's topology, its load and its kernel's rules: `berth predict` says where N tasks would land, `berth advise`
/// where to put them instead, and with what proof. `berth hold` keeps CPUs for a job. `berth verify` says where tasks that run
/// really are; nothing but its `--fix` moves one.
///
/// Answers go to stdout, everything else to stderr.
#[derive(Debug, Parser)]
#[command(name = "berth", version, max_term_width = 100, after_help = examples::berth())]
pub struct Cli {
    /// Flags that every command takes.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What was typed; ends the process with a message where that is no command, or a question for help.
    pub fn of_this_process() -> Self {
        Self::of(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Every command with its help as it is shown.
    pub(crate) fn explained() -> clap::Command {
        help::with_pointers(Self::command())
    }

    /// What was typed, the program's name first.
    ///
    /// # Errors
    ///
    /// A message where that is no command, or a help text that was asked for.
    pub fn of(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let matches = Self::explained().try_get_matches_from(args)?;
        Self::from_arg_matches(&matches)
    }
}

/// Flags that every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "For every command")]
pub struct Global {
    /// Where berthd listens: unix:/path, host:port, http://host:port or https://host:port
    ///
    /// Default: the first that exists of /run/berth/berthd.sock and $XDG_RUNTIME_DIR/berth/berthd.sock, else
    /// http://127.0.0.1:7117.
    #[arg(long, value_name = "ADDRESS", env = "BERTH_SERVER", hide_env_values = true, global = true)]
    pub server: Option<Address>,
    /// How to write the answer
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t, global = true)]
    pub output: Output,
    /// How long to wait for the answer, such as 500ms, 5s or 1m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time::parse, global = true)]
    pub timeout: Duration,
    /// When to use colours
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        global = true
    )]
    pub color: Colour,
    /// Tell more, and cut no list short; on stderr, which server was asked and how long it took
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Flags of encrypted connections.
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// How to write the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    /// For people
    #[default]
    Table,
    /// The server's response as one document of proto3's JSON, zeros and empty lists included; of `watch` a line for
    /// each message
    Json,
    /// CPUs alone, as taskset -c takes them: one line if all tasks share them, else a line for each task (`advise`, `hold`),
    /// hold (`holds`) or host (`topology`)
    List,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show packages, NUMA nodes, last-level caches and distances of a host
    Topology(Topology),
    /// Show what runs on this host's CPUs
    Load(Load),
    /// Draw a host: what runs on each CPU, or where new tasks go as the kernel has it and as Berth advises
    ///
    /// A line for each last-level cache, a letter for each CPU: first the first hardware threads of its cores, then the second
    /// ones. `--svg` writes the same as a picture for a page.
    Map(Map),
    /// Watch this host: load, pile-ups and holds, live in the terminal
    ///
    /// A letter for each CPU, as `berth map` has them, drawn anew with each sample. `?` tells the keys, `q` quits.
    Top(Top),
    /// Show where the kernel would put new tasks under an affinity mask
    ///
    /// Runs the rules of the host's kernel for each task in turn and shows how many land on each package, NUMA node,
    /// last-level cache (LLC) and CPU. PILE_UP means that the fullest allowed CPU holds more tasks than the best possible
    /// placement would give it; the parent counts while it forks, and not in the outcome. What depends on state that user space cannot see is called undetermined.
    #[command(after_help = examples::PREDICT)]
    Predict(Predict),
    /// Show where to put new tasks, and the proof
    ///
    /// Gives the widest form of binding that is proven: no binding (NONE), one mask (MASK), a few masks with a number of
    /// tasks each (SPLIT), or an entry for each task (PER_TASK). Proven means that the kernel's rules were run with it,
    /// from every CPU the tasks may be forked from, for every kernel the host may have, and no run piled up.
    #[command(after_help = examples::ADVISE)]
    Advise(Advise),
    /// Show the facts behind an answer: domains of a CPU, groups, thresholds, the kernel's rules and where they come from
    #[command(after_help = examples::EXPLAIN)]
    Explain(Explain),
    /// Run a command where its tasks do not pile up
    ///
    /// Asks berthd where so many tasks should be, keeps the CPUs until the tasks are seen to run, binds the command in the form that
    /// is proven and becomes it: `berth run -n 8 --cpus 0-63 -- CMD` for `taskset -c 0-63 CMD`. Where berthd is away or slow the command
    /// is run all the same, after 200 ms at most, and stderr says so. With BERTH=off in the environment nothing is asked.
    Run(Run),
    /// Keep CPUs for a job: for a time, for a process, or while a command runs
    ///
    /// Others who ask berthd are then given other CPUs. A hold does not bind its tasks, nor keep others' tasks away who do
    /// not ask. It ends when it is released, when its time is over, or when its owner is gone, even if it was killed.
    #[command(after_help = examples::HOLD)]
    Hold(Hold),
    /// Set the time anew after which a hold ends
    #[command(after_help = examples::RENEW)]
    Renew(Renew),
    /// Let held CPUs go; with a claim, all holds under it
    #[command(after_help = examples::RELEASE)]
    Release(Release),
    /// List the CPUs that are held, and for whom
    #[command(after_help = examples::HOLDS)]
    Holds(Holds),
    /// Show where running tasks really are, which of them wait although they need not, and what mends it
    ///
    /// With `--all` the first thing to type on a slow machine: it finds every process with pinned threads that share CPUs
    /// while others are idle that they may use, or that their masks keep them from. With `--pid`, `--cgroup` or `--hold`
    /// also what has drifted from where it should be. Of other users' tasks only their number is shown, but to root.
    Verify(Verify),
    /// Follow holds, load or topology: one line for each event
    Watch(Watch),
    /// Show whether the server serves; ends with 0 only if it does, for probes and scripts
    ///
    /// Everyone who can connect is answered, however busy the server is.
    #[command(after_help = examples::HEALTH)]
    Health {
        /// One of its services, such as berth.v1.HoldService, which serves if holds are kept
        service: Option<String>,
    },
    /// Show versions, kernel and limits of the server; ends with 0 only if it can answer questions
    #[command(after_help = examples::INFO)]
    Info,
    /// List the kernels whose rules are known
    #[command(after_help = examples::PROFILES)]
    Profiles(Profiles),
    /// Have Slurm's tasks placed: what Slurm runs before and after jobs and tasks
    ///
    /// `berth slurm install` prints how Slurm is set up; Slurm runs the rest. Whatever happens, they end with 0 within two seconds
    /// of their start and leave a job as Slurm has made it.
    #[command(subcommand, after_help = examples::SLURM)]
    Slurm(Slurm),
    /// What runs on each node of a Kubernetes cluster
    #[command(subcommand, after_help = examples::KUBE)]
    Kube(Kube),
    /// Write a completion script for a shell to stdout
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command, into a folder
    #[command(after_help = examples::MAN)]
    Man {
        /// The folder. Default: the page of `berth` itself, to stdout
        folder: Option<std::path::PathBuf>,
    },
}

/// `berth topology`.
#[derive(Debug, Args)]
#[command(after_help = examples::TOPOLOGY)]
pub struct Topology {
    /// The host.
    #[command(flatten)]
    pub host: HostArgs,
    /// Cores, PCI devices and the whole distance matrix too
    #[arg(long, help_heading = ANSWER)]
    pub full: bool,
}

/// `berth load`.
#[derive(Debug, Args)]
#[command(after_help = examples::LOAD)]
pub struct Load {
    /// Only these CPUs, as for `berth predict`
    #[arg(short, long, value_name = "CPUS", visible_alias = "allowed")]
    pub cpus: Option<String>,
    /// A row for each CPU, and the tasks that are bound to a part of the host
    #[arg(long)]
    pub full: bool,
}

/// `berth predict`.
#[derive(Debug, Args)]
pub struct Predict {
    /// The tasks.
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// The kernel.
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// The host.
    #[command(flatten)]
    pub host: HostArgs,
    /// What runs there.
    #[command(flatten)]
    pub load: HostLoadArgs,
    /// Circumstances.
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// Show every class of CPUs that the parent may be on, all ranges, and where each task lands and may wake up
    #[arg(long, help_heading = ANSWER)]
    pub explain: bool,
    /// Show how each task came to its CPU: at each level the groups as the kernel sees them, the rule with its numbers, the choice
    #[arg(long, help_heading = ANSWER)]
    pub trace: bool,
    /// Only the way of these tasks, counted from 0: 0-3,17
    #[arg(long, value_name = "TASKS", requires = "trace", help_heading = ANSWER)]
    pub trace_tasks: Option<String>,
    /// End with 10 if the tasks pile up, with 11 if that is not known
    #[arg(long, help_heading = ANSWER)]
    pub check: bool,
}

/// `berth advise`.
#[derive(Debug, Args)]
pub struct Advise {
    /// The tasks.
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// How the tasks should lie towards each other
    #[arg(long, value_enum, ignore_case = true, default_value_t, help_heading = WISHES)]
    pub policy: Policy,
    /// What to do with the hardware threads of one core
    #[arg(long, value_enum, ignore_case = true, default_value_t, help_heading = WISHES)]
    pub smt: Smt,
    /// CPUs for each task, in one LLC if one can hold them, else in one NUMA node, else in one package
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = WISHES)]
    pub cpus_per_task: u32,
    /// The smallest part of the host that all tasks should fit into, each on an idle CPU
    #[arg(long, value_name = "LEVEL", value_enum, ignore_case = true, help_heading = WISHES)]
    pub within: Option<Level>,
    /// With `--within`: rather no answer than tasks on several such parts
    #[arg(long, requires = "within", help_heading = WISHES)]
    pub within_required: bool,
    /// A CPU to be near to
    #[arg(long, value_name = "CPU", conflicts_with = "near_node", help_heading = WISHES)]
    pub near_cpu: Option<u32>,
    /// A NUMA node to be near to
    #[arg(long, value_name = "NODE", help_heading = WISHES)]
    pub near_node: Option<u32>,
    /// What is for these tasks alone: whole units of this level, with nobody else's tasks or holds on them
    #[arg(long, value_name = "LEVEL", value_enum, ignore_case = true, help_heading = WISHES)]
    pub exclusive: Option<Level>,
    /// The forms that the launcher can apply; several with commas. Default: all
    ///
    /// With `per-task` alone each task gets a single CPU, even where a wider entry is proven.
    #[arg(long, value_enum, value_delimiter = ',', help_heading = WISHES)]
    pub form: Vec<Form>,
    /// Print the advice as a launcher takes it, and nothing else
    ///
    /// Unless `--form` says otherwise, it is for the forms that the launcher can apply: single CPUs with omp and gomp, one
    /// mask with the others; ranks of slurm and openmpi-rankfile may have any. Prints nothing where it is best not to bind.
    #[arg(long, value_enum, conflicts_with_all = ["explain", "trace"], help_heading = ANSWER)]
    pub format: Option<Format>,
    /// With `--format slurm`: this host's CPUs in the order in which Slurm numbers them, such as 0,4,1,5
    #[arg(long, value_name = "CPUS", value_delimiter = ',', requires = "format", help_heading = ANSWER)]
    pub slurm_cpus: Vec<u32>,
    /// The kernel.
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// The host.
    #[command(flatten)]
    pub host: HostArgs,
    /// What runs there.
    #[command(flatten)]
    pub load: HostLoadArgs,
    /// Circumstances.
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// Show the placement behind the advice, its objective, and the runners-up with the reason each lost
    #[arg(long, help_heading = ANSWER)]
    pub explain: bool,
    /// Show how each task comes to its CPU: without the advice, and in each run that refutes a wider form
    #[arg(long, help_heading = ANSWER)]
    pub trace: bool,
    /// End with 10 if what is advised is not safe, with 11 if that is not known
    #[arg(long, help_heading = ANSWER)]
    pub check: bool,
}

/// `berth profiles`.
#[derive(Debug, Args)]
pub struct Profiles {
    /// Also those of kernels that were never released, such as patch series from mailing lists
    #[arg(long)]
    pub all: bool,
    /// The kernel.
    #[command(flatten)]
    pub kernel: KernelArgs,
}
