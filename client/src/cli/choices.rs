//! Values that are chosen from a list, and the contract's values they stand for.

use berth_proto::v1;
use clap::ValueEnum;

/// How the tasks lie towards each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Policy {
    /// As the newest kernel would if it counted only allowed CPUs and the true load, without its pile-ups
    #[default]
    Auto,
    /// As far apart as possible: for memory bandwidth
    Spread,
    /// As close together as possible: for tasks that talk
    Compact,
}

impl Policy {
    /// Its name in the contract.
    pub fn name(self) -> &'static str {
        v1::policy::Value::from(self).as_str_name()
    }
}

impl From<Policy> for v1::policy::Value {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Auto => Self::Auto,
            Policy::Spread => Self::Spread,
            Policy::Compact => Self::Compact,
        }
    }
}

/// What to do with the hardware threads of one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Smt {
    /// Use a second thread of a core only when no core is free
    #[default]
    Avoid,
    /// Fill all threads of a core before the next core
    Share,
    /// Never share a core with another job
    FullCores,
}

impl From<Smt> for v1::smt::Value {
    fn from(smt: Smt) -> Self {
        match smt {
            Smt::Avoid => Self::Avoid,
            Smt::Share => Self::Share,
            Smt::FullCores => Self::FullCores,
        }
    }
}

/// A level of the hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// One hardware thread
    Pu,
    /// One core with all its threads
    Core,
    /// One last-level cache and the CPUs that share it
    Llc,
    /// One NUMA node
    Node,
    /// One package (socket)
    Package,
    /// The whole host
    Machine,
}

impl From<Level> for v1::level::Value {
    fn from(level: Level) -> Self {
        match level {
            Level::Pu => Self::Pu,
            Level::Core => Self::Core,
            Level::Llc => Self::Llc,
            Level::Node => Self::Node,
            Level::Package => Self::Package,
            Level::Machine => Self::Machine,
        }
    }
}

/// A form of binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// One affinity mask for all tasks
    Mask,
    /// A few masks, a stated number of tasks to each
    Split,
    /// An entry for each task
    PerTask,
    /// No binding at all
    None,
}

impl From<Form> for v1::form::Value {
    fn from(form: Form) -> Self {
        match form {
            Form::Mask => Self::Mask,
            Form::Split => Self::Split,
            Form::PerTask => Self::PerTask,
            Form::None => Self::None,
        }
    }
}

/// How the tasks come into being.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Launch {
    /// Forked from the parent, or created as its threads
    #[default]
    Fork,
    /// Running on the origin already, and placed by their exec
    Exec,
    /// Forked, then replaced by an exec at once, as launchers do: placed twice
    ForkExec,
}

impl From<Launch> for v1::launch::Value {
    fn from(launch: Launch) -> Self {
        match launch {
            Launch::Fork => Self::Fork,
            Launch::Exec => Self::Exec,
            Launch::ForkExec => Self::ForkExec,
        }
    }
}

/// A launcher's way to write CPUs down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// OMP_PLACES and OMP_PROC_BIND
    Omp,
    /// GOMP_CPU_AFFINITY
    Gomp,
    /// taskset and a cpulist
    Taskset,
    /// taskset and a hex mask
    TasksetHex,
    /// numactl with CPUs and memory nodes
    Numactl,
    /// srun's --cpu-bind, in Slurm's own numbering (--slurm-cpus)
    Slurm,
    /// A rankfile of Open MPI
    OpenmpiRankfile,
    /// Settings of a systemd service
    Systemd,
    /// Files of a cgroup
    Cpuset,
    /// Options of docker run
    Docker,
}

impl Format {
    /// The forms that such a launcher can apply, and whether entries of it are single CPUs.
    pub(crate) fn applies(self) -> (&'static [Form], bool) {
        match self {
            Self::Omp | Self::Gomp => (&[Form::PerTask], true),
            Self::Slurm | Self::OpenmpiRankfile => (&[], false),
            _ => (&[Form::Mask], false),
        }
    }
}

impl From<Format> for v1::format::Value {
    fn from(format: Format) -> Self {
        match format {
            Format::Omp => Self::Omp,
            Format::Gomp => Self::Gomp,
            Format::Taskset => Self::TasksetList,
            Format::TasksetHex => Self::TasksetHex,
            Format::Numactl => Self::Numactl,
            Format::Slurm => Self::SlurmCpuBind,
            Format::OpenmpiRankfile => Self::OpenmpiRankfile,
            Format::Systemd => Self::Systemd,
            Format::Cpuset => Self::Cgroup,
            Format::Docker => Self::Docker,
        }
    }
}
