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
    /// One of its rules set otherwise, as `berth profiles --verbose` lists them: stats=allowed; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub rule: Vec<(String, String)>,
}

/// Reads `NAME=VALUE`.
///
/// # Errors
///
/// A sentence that says what is accepted.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
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
            rules: self.rule.iter().cloned().collect(),
        };
        (kernel != Kernel::default()).then_some(kernel)
    }
}
