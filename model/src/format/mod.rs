//! Affinity masks in the words of launchers: text to paste, from CPU sets alone.

mod openmp;
mod ranks;
mod wrapper;

use crate::cpuset::{Cpu, CpuSet};

/// A launcher's way to write CPUs down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `taskset -c` and its cpulist.
    TasksetList,
    /// `taskset` and its hex mask.
    TasksetHex,
    /// `numactl` with CPUs and memory nodes.
    Numactl,
    /// `OMP_PLACES` and `OMP_PROC_BIND`.
    Omp,
    /// `GOMP_CPU_AFFINITY`.
    Gomp,
    /// `srun --cpu-bind=mask_cpu:`, in Slurm's own numbering.
    SlurmCpuBind,
    /// An Open MPI rankfile.
    OpenmpiRankfile,
    /// systemd's `CPUAffinity=`, `AllowedCPUs=` and `NUMAMask=`.
    Systemd,
    /// cgroup v2's `cpuset.cpus` and `cpuset.mems`.
    Cgroup,
    /// `docker run --cpuset-cpus` and `--cpuset-mems`.
    Docker,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 10] = [
        Self::TasksetList,
        Self::TasksetHex,
        Self::Numactl,
        Self::Omp,
        Self::Gomp,
        Self::SlurmCpuBind,
        Self::OpenmpiRankfile,
        Self::Systemd,
        Self::Cgroup,
        Self::Docker,
    ];
}

/// A mask and the tasks under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// The CPUs; never empty.
    pub cpus: CpuSet,
    /// NUMA nodes to take memory from, by OS index; empty to bind none.
    pub memory_nodes: CpuSet,
    /// How many tasks, which follow those of the mask before; at least one.
    pub tasks: u32,
}

/// What the texts are for.
#[derive(Debug, Clone, Copy)]
pub enum Scope {
    /// All tasks together.
    All,
    /// The tasks of one mask, by its index.
    Mask(usize),
}

/// A text to paste.
#[derive(Debug, Clone)]
pub struct Text {
    /// The text, without a line break at its end.
    pub text: String,
    /// What it is for.
    pub scope: Scope,
}

/// Why masks cannot be written in a dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing to bind.
    #[error("the advice is not to bind")]
    Unbound,
    /// OpenMP divides threads over places evenly.
    #[error(
        "OpenMP divides its threads over places evenly, and here masks have unlike numbers of tasks: ask for PER_TASK"
    )]
    Uneven,
    /// The dialect has single CPUs only.
    #[error("GOMP_CPU_AFFINITY binds each thread to one CPU, and here tasks share masks: ask for PER_TASK")]
    Shared,
    /// Slurm's numbers for the CPUs are not known.
    #[error("Slurm has a numbering of its own, which is not known here: give slurm_cpus")]
    NoNumbering,
    /// Slurm has no number for a CPU.
    #[error("slurm_cpus has no number for CPU {0}")]
    NotSlurms(Cpu),
}

/// Writes masks in a dialect: one text for all, or one for each mask. `slurm_cpus` is Slurm's numbering: element i is the
/// OS index of Slurm's CPU i; empty if it is not known.
///
/// # Errors
///
/// Why it cannot be written so.
pub fn write(dialect: Dialect, masks: &[Mask], slurm_cpus: &[Cpu]) -> Result<Vec<Text>, Error> {
    if masks.is_empty() {
        return Err(Error::Unbound);
    }
    let whole = |text: String| vec![Text { text, scope: Scope::All }];
    let each = |write: fn(&Mask) -> String| {
        let texts = masks.iter().enumerate();
        texts.map(|(index, mask)| Text { text: write(mask), scope: Scope::Mask(index) }).collect()
    };
    Ok(match dialect {
        Dialect::TasksetList => each(wrapper::taskset_list),
        Dialect::TasksetHex => each(wrapper::taskset_hex),
        Dialect::Numactl => each(wrapper::numactl),
        Dialect::Systemd => each(wrapper::systemd),
        Dialect::Cgroup => each(wrapper::cgroup),
        Dialect::Docker => each(wrapper::docker),
        Dialect::Omp => whole(openmp::places(masks)?),
        Dialect::Gomp => whole(openmp::gomp(masks)?),
        Dialect::SlurmCpuBind => whole(ranks::cpu_bind(masks, slurm_cpus)?),
        Dialect::OpenmpiRankfile => whole(ranks::rankfile(masks)),
    })
}
