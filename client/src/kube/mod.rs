//! `berth kube …`: what runs on each node of a Kubernetes cluster.
//!
//! [`device_plugin`] offers cores or caches to the kubelet, and holds those that containers are given. [`nri`] puts containers on
//! their CPUs, and [`metrics`] tells what became of them. [`status`] says how all parts on a node stand to each other. [`kubelet`]
//! is what they know of the kubelet.
//!
//! Whatever fails, pods start as they would have without us: what went wrong is said on stderr, and nothing is waited for long.

mod device_plugin;
mod kubelet;
mod metrics;
mod nri;
mod status;

use crate::{
    Error,
    cli::Kube,
    command::{Answer, Asker},
};

/// The annotation by which a container's runtime is told of its hold.
pub(crate) const HOLD_ANNOTATION: &str = "berth.dev/hold";

/// Carries out a command.
pub(crate) async fn answer(what: &Kube, asker: &Asker) -> Result<Answer, Error> {
    match what {
        Kube::DevicePlugin(args) => device_plugin::run(args, asker).await,
        Kube::Nri(args) => nri::run(args, asker).await,
        Kube::Status(args) => status::answer(args, asker).await,
    }
}
