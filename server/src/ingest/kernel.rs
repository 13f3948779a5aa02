//! What the running kernel says of itself.

use super::sysfs::text;
use berth_model::profile::KernelIdentity;
use std::path::Path;

/// The running kernel and the machine it runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kernel {
    /// What tells its release.
    pub identity: KernelIdentity,
    /// `uname -m`.
    pub machine: String,
    /// The host's name.
    pub host_name: String,
    /// Names one boot of the host. Empty if it cannot be read.
    pub boot_id: String,
    /// The CPUs' vendor; empty if it cannot be read.
    pub cpu_vendor: String,
    /// The CPUs' family.
    pub cpu_family: Option<u32>,
    /// The CPUs' model name; empty if it cannot be read.
    pub cpu_model: String,
}

impl Kernel {
    /// Reads it below `root`, which is `/` but in tests.
    pub fn read(root: &Path) -> Self {
        let kernel =
            |name: &str| text(&root.join("proc/sys/kernel").join(name)).filter(|text| !text.is_empty());
        let processor = Processor::parse(&text(&root.join("proc/cpuinfo")).unwrap_or_default());
        Self {
            identity: KernelIdentity {
                release: kernel("osrelease").unwrap_or_default(),
                version: kernel("version"),
                version_signature: text(&root.join("proc/version_signature")).filter(|text| !text.is_empty()),
            },
            machine: kernel("arch").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            host_name: kernel("hostname").unwrap_or_default(),
            boot_id: boot_id(root),
            cpu_vendor: processor.vendor,
            cpu_family: processor.family,
            cpu_model: processor.model,
        }
    }
}

/// Names one boot of the host; empty if it cannot be read.
pub(crate) fn boot_id(root: &Path) -> String {
    text(&root.join("proc/sys/kernel/random/boot_id")).unwrap_or_default()
}

/// The first processor of `/proc/cpuinfo`. Other architectures than x86 have none of these lines.
#[derive(Debug, PartialEq, Eq, Default)]
struct Processor {
    vendor: String,
    family: Option<u32>,
    model: String,
}

impl Processor {
    fn parse(cpuinfo: &str) -> Self {
        let first = cpuinfo.split("\n\n").next().unwrap_or_default();
        let value = |wanted: &str| {
            let mut fields = first.lines().filter_map(|line| line.split_once(':'));
            fields.find(|(name, _)| name.trim() == wanted).map(|(_, value)| value.trim().to_owned())
        };
        Self {
            vendor: value("vendor_id").unwrap_or_default(),
            family: value("cpu family").and_then(|family| family.parse().ok()),
            model: value("model name").unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Processor;

    #[test]
    fn the_processor() {
        let text = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9845: 160-Core\n\nprocessor\t: 1\nvendor_id\t: Other\n";
        let processor = Processor::parse(text);
        assert_eq!((processor.vendor.as_str(), processor.family), ("AuthenticAMD", Some(26)));
        assert_eq!(processor.model, "AMD EPYC 9845: 160-Core");
        assert_eq!(Processor::parse("processor : 0\nCPU implementer : 0x48\n"), Processor::default());
        assert_eq!(Processor::parse(""), Processor::default());
    }
}
