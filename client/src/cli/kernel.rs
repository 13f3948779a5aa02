//! Flags that say which kernel a question is about.

use berth_proto::v1::Kernel;
use clap::Args;

/// Which kernel a question is about.
#[derive(Debug, Args)]
#[command(next_help_heading = "The kernel (default: the running one on this host, any on another)")]
pub struct KernelArgs {
    /// Its release: 6.12.95, or all of `uname -r`
    #[arg(long, value_name = "RELEASE")]
    pub kernel: Option<String>,
    /// All of its `uname -v`: Debian's real version stands only here
    #[arg(long, value_name = "TEXT")]
    pub kernel_version: Option<String>,
    /// Its /proc/version_signature, where Ubuntu's real version stands
    #[arg(long, value_name = "TEXT")]
    pub kernel_signature: Option<String>,
    /// A set of rules by name, as `berth profiles` lists them, whatever the kernel
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
}

impl KernelArgs {
    /// As the contract has it. `None`: nothing was given.
    pub fn message(&self) -> Option<Kernel> {
        let text = |flag: &Option<String>| flag.clone().unwrap_or_default();
        let kernel = Kernel {
            release: text(&self.kernel),
            version: text(&self.kernel_version),
            version_signature: text(&self.kernel_signature),
            profile: text(&self.profile),
            ..Kernel::default()
        };
        (kernel != Kernel::default()).then_some(kernel)
    }
}
