//! `berth kube …`: what runs on each node of a Kubernetes cluster.
//!
//! [`status`] says how all parts on a node stand to each other. [`kubelet`] is what they know of the kubelet.
//!
//! Whatever fails, pods start as they would have without us: what went wrong is said on stderr, and nothing is waited for long.

mod kubelet;
mod status;

use crate::{
    Error,
    cli::Kube,
    command::{Answer, Asker},
};

/// Carries out a command.
pub(crate) async fn answer(what: &Kube, asker: &Asker) -> Result<Answer, Error> {
    match what {
        Kube::Status(args) => status::answer(args, asker).await,
    }
}
