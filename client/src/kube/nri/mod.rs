//! `berth kube nri`: the plugin that writes the cpusets of containers, by the Node Resource Interface of container runtimes.
//!
//! [`session`] is one connection to the runtime, whose bytes [`mux`] and [`ttrpc`] understand. [`plugin`] answers the runtime's
//! calls: what a pod asks for is read by [`wish`], [`decide`] asks berthd through [`keeper`], and [`adjust`] writes what the
//! runtime is told. [`containers`] knows who is on which CPUs and [`repair`] makes good what happened while nobody looked.
//! [`manager`] says whether cpusets may be written at all; where the kubelet gives out CPUs itself, berthd is told of them.
//!
//! The runtime makes one call at a time, and every pod of the node waits for the answer. So each has 200 ms, and whatever fails, the
//! container is created as it would have been without us.

mod adjust;
mod containers;
mod counts;
mod decide;
mod facts;
mod given;
mod keeper;
mod manager;
mod mux;
mod plugin;
mod reach;
mod repair;
mod run;
mod session;
mod ttrpc;
mod wish;

pub(super) use facts::facts;

use crate::{
    Error,
    cli::KubeNri,
    command::{Answer, Asker},
};

/// Runs until a signal ends it.
pub(super) async fn run(args: &KubeNri, asker: &Asker) -> Result<Answer, Error> {
    run::run(args, asker).await?;
    Ok(Answer::of_this_command(String::new()))
}

/// Says a line on standard error, which is the plugin's log.
macro_rules! say {
    ($($what:tt)*) => { crate::out::say(&format!("berth nri: {}", format_args!($($what)*))) };
}
use say;
