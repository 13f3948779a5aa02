//! `berth slurm …`: what Slurm runs before and after jobs and tasks.
//!
//! [`claim`] opens a claim for a job and closes it, [`task`] is run once for each task and puts it on its CPUs. What Slurm says
//! is read by [`environment`] and [`masks`]; [`decision`] asks for all tasks that share a mask and takes one's own part of the
//! answer; [`lines`] is what Slurm is told. [`install`] writes down how Slurm is set up.
//!
//! Slurm drains a node whose Prolog or Epilog fails, ends a step whose TaskProlog fails, and waits for ever for one that hangs.
//! So [`hook`] ends them all in time, and well.

mod claim;
mod decision;
mod environment;
mod hook;
mod host;
mod install;
mod lines;
mod masks;
mod server;
mod task;

pub use hook::{is_hook, run};

use crate::{
    Error,
    cli::Slurm,
    command::{Answer, Asker},
};

/// Carries out a command. Hooks have no errors: what went wrong is said, and Slurm goes on.
pub(crate) async fn answer(what: &Slurm, asker: &Asker) -> Result<Answer, Error> {
    let document = match what {
        Slurm::Prolog => claim::open(asker).await,
        Slurm::Epilog => claim::close(asker).await,
        Slurm::TaskProlog(args) => task::run(args, asker).await,
        Slurm::Install(args) => install::run(args, asker)?,
    };
    Ok(Answer::of_this_command(document))
}
