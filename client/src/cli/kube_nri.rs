//! Flags of `berth kube nri`.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::time;

/// What the plugin of the runtime goes by.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The node")]
pub struct NriNode {
    /// The socket on which the runtime takes plugins in
    #[arg(long, value_name = "FILE", default_value = "/var/run/nri/nri.sock")]
    pub nri_socket: PathBuf,
    /// Where the kubelet writes down what its CPU manager does
    #[arg(long, value_name = "FILE", default_value = "/var/lib/kubelet/cpu_manager_state")]
    pub cpu_manager_state: PathBuf,
}

/// `berth kube nri`.
#[derive(Debug, Args)]
pub struct KubeNri {
    /// The node.
    #[command(flatten)]
    pub node: NriNode,
    /// The socket on which the kubelet tells what pods have
    #[arg(long, value_name = "FILE", default_value = "/var/lib/kubelet/pod-resources/kubelet.sock")]
    pub pod_resources: PathBuf,
    /// The plugin's name
    #[arg(long, default_value = "berth", value_parser = plugin_name)]
    pub name: String,
    /// Its place among the runtime's plugins, two digits
    ///
    /// Plugins are called in this order. A late one sees whether another has set a container's CPUs, and leaves them: set twice, they
    /// would fail its creation.
    #[arg(long, value_name = "NN", default_value = "90", value_parser = plugin_index)]
    pub index: String,
    /// How long the runtime waits at most while a container is placed, never more than half of what it says it would
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = time::parse)]
    pub within: Duration,
    /// Listen there, such as 127.0.0.1:9117, for GET /metrics, /livez and /readyz. Default: nowhere
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,
}

fn plugin_name(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    fits.then(|| text.to_owned()).ok_or_else(|| "expected letters, digits, `.`, `_` and `-`".to_owned())
}

fn plugin_index(text: &str) -> Result<String, String> {
    let fits = text.len() == 2 && text.chars().all(|c| c.is_ascii_digit());
    fits.then(|| text.to_owned()).ok_or_else(|| "expected two digits, such as 90".to_owned())
}
