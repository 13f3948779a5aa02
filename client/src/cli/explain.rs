//! `berth explain`.

use clap::Args;

use super::{HostArgs, KernelArgs};

/// `berth explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The CPUs whose domains are shown. Default: the first that is online
    #[arg(short, long, value_name = "CPUS")]
    pub cpus: Option<String>,
    /// An affinity mask, whose effect on groups and thresholds is shown. Default: every online CPU
    #[arg(long, value_name = "CPUS")]
    pub allowed: Option<String>,
    /// The kernel.
    #[command(flatten)]
    pub kernel: KernelArgs,
    /// The host.
    #[command(flatten)]
    pub host: HostArgs,
}
