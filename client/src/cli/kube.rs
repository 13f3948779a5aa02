//! Flags of what Kubernetes' nodes run.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::examples;

/// Heading of flags that say where the kubelet is.
const KUBELET: &str = "The kubelet";

/// `berth kube`.
#[derive(Debug, Subcommand)]
pub enum Kube {
    /// Show how the kubelet and berthd of this node do
    #[command(after_help = examples::KUBE_STATUS)]
    Status(KubeStatus),
}

/// Where the kubelet is.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = KUBELET)]
pub struct KubeletArgs {
    /// The folder of kubelet.sock and of the plugins' sockets
    #[arg(long, value_name = "DIR", default_value = "/var/lib/kubelet/device-plugins")]
    pub plugin_dir: PathBuf,
    /// The socket on which the kubelet tells what pods have
    #[arg(long, value_name = "FILE", default_value = "/var/lib/kubelet/pod-resources/kubelet.sock")]
    pub pod_resources: PathBuf,
}

/// `berth kube status`.
#[derive(Debug, Args)]
pub struct KubeStatus {
    /// Where the kubelet is.
    #[command(flatten)]
    pub kubelet: KubeletArgs,
}
