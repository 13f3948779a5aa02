//! Flags of what Slurm runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::examples;

/// `berth slurm`.
#[derive(Debug, Subcommand)]
pub enum Slurm {
    /// Print what has Slurm run the hooks: scripts, and lines for slurm.conf
    #[command(after_help = examples::SLURM_INSTALL)]
    Install(SlurmInstall),
    /// Open a claim for a job (slurm.conf: Prolog)
    ///
    /// The claim has no CPUs yet; the holds of the job's steps are made under it and end with it. It is known by cluster, node,
    /// job id and restart count, so running this twice opens one.
    Prolog,
    /// Put a task on its CPUs (slurm.conf: TaskProlog)
    ///
    /// One decision is made for all tasks of the step on this node that share a mask; each task is bound to its own part, within
    /// the CPUs that Slurm gave it. A lone task, a batch script, masks that a user typed and tasks with CPUs of their own are
    /// left alone. Writes `export` lines for Slurm: BERTH_STATUS says what was done and why, BERTH_CPUS and BERTH_MEMS where the
    /// task is; OMP_PLACES and OMP_PROC_BIND too where the CPUs are its own. A variable that the job has set is not touched.
    ///
    /// BERTH=off in the job's environment turns it off, BERTH=verbose also says on stdout what was done.
    TaskProlog(TaskProlog),
    /// Close the claim of a job, and the holds under it (slurm.conf: Epilog)
    Epilog,
}

/// `berth slurm task-prolog`.
#[derive(Debug, Args)]
pub struct TaskProlog {
    /// Leave jobs alone that do not have BERTH=on (or verbose) in their environment
    #[arg(long)]
    pub opt_in: bool,
}

/// `berth slurm install`.
#[derive(Debug, Args)]
pub struct SlurmInstall {
    /// Write the scripts to this folder, and print only the lines for slurm.conf
    #[arg(long, value_name = "DIR")]
    pub write: Option<PathBuf>,
    /// Where berth lies on the nodes. Default: where this one does
    #[arg(long, value_name = "FILE")]
    pub berth: Option<PathBuf>,
    /// Leave jobs alone that do not have BERTH=on (or verbose) in their environment
    #[arg(long)]
    pub opt_in: bool,
}
