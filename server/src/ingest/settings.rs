//! Kernel settings that bear on placement. What cannot be read is absent, never guessed.

use super::{kconfig, sysfs::text};
use std::path::Path;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// `kernel.numa_balancing` is on, in whichever mode.
    pub numa_balancing: Option<bool>,
    /// `kernel.sched_autogroup_enabled` is on.
    pub autogroup: Option<bool>,
    /// `isolcpus=` of the command line; empty if it is not there.
    pub isolcpus: Option<String>,
    /// `nohz_full=` of the command line; empty if it is not there.
    pub nohz_full: Option<String>,
    /// The sched_ext scheduler in charge; empty if there is none.
    pub sched_ext: Option<String>,
    /// 1 or 2.
    pub cpuset_version: Option<u32>,
    /// Whether hardware threads are in use: `on`, `off`, `notsupported`, ...
    pub smt_control: Option<String>,
    /// Scheduler features, as the debug file has them. Empty if it cannot be read.
    pub features: Vec<String>,
    /// Core scheduling is in use. Known to be off where the kernel was built without it; else not known.
    #[doc(alias = "CONFIG_SCHED_CORE")]
    pub core_scheduling: Option<bool>,
    /// Ticks per second.
    #[doc(alias = "CONFIG_HZ")]
    pub hz: Option<u32>,
}

impl Settings {
    /// Reads them below `root`, which is `/` but in tests.
    pub fn read(root: &Path) -> Self {
        let switch = |name: &str| text(&root.join("proc/sys/kernel").join(name)).map(|value| value != "0");
        let command_line = text(&root.join("proc/cmdline"));
        let options = kconfig::read(root);
        let option = |name: &str| options.as_deref().map(|options| kconfig::option(options, name));
        let argument = |name: &str| command_line.as_ref().map(|line| argument(line, name));
        Self {
            numa_balancing: switch("numa_balancing"),
            autogroup: switch("sched_autogroup_enabled"),
            isolcpus: argument("isolcpus="),
            nohz_full: argument("nohz_full="),
            sched_ext: sched_ext(root),
            cpuset_version: cpuset_version(&root.join("sys/fs/cgroup")),
            features: features(root),
            // A kernel that can does not tell whether anybody uses it.
            core_scheduling: option("CONFIG_SCHED_CORE").filter(Option::is_none).map(|_| false),
            hz: option("CONFIG_HZ").flatten().and_then(|hz| hz.parse().ok()),
            smt_control: text(&root.join("sys/devices/system/cpu/smt/control")),
        }
    }

    /// Another scheduler than the one that is modelled is in charge.
    pub fn is_foreign_scheduler(&self) -> bool {
        self.sched_ext.as_ref().is_some_and(|name| !name.is_empty())
    }
}

/// Since v5.13, and before.
fn features(root: &Path) -> Vec<String> {
    let debug = root.join("sys/kernel/debug");
    let features = ["sched/features", "sched_features"].iter().find_map(|file| text(&debug.join(file)));
    features.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn argument(line: &str, name: &str) -> String {
    // The kernel takes the last of several.
    line.split_whitespace()
        .filter_map(|word| word.strip_prefix(name))
        .next_back()
        .unwrap_or_default()
        .to_owned()
}

fn sched_ext(root: &Path) -> Option<String> {
    let folder = root.join("sys/kernel/sched_ext");
    match text(&folder.join("state")) {
        Some(state) if state == "disabled" => Some(String::new()),
        Some(_) => Some(
            text(&folder.join("root/ops"))
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "unnamed".to_owned()),
        ),
        // A kernel without it has no such folder; without sysfs nothing is known.
        None => root.join("sys/kernel").is_dir().then(String::new),
    }
}

fn cpuset_version(folder: &Path) -> Option<u32> {
    if folder.join("cgroup.controllers").is_file() {
        Some(2)
    } else if folder.join("cpuset").is_dir() {
        Some(1)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_the_kernel_was_built_with_and_its_features() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let read = || {
            let Settings { features, core_scheduling, hz, .. } = Settings::read(root.path());
            (features.join(" "), core_scheduling, hz)
        };
        assert_eq!(read(), (String::new(), None, None));
        write("proc/sys/kernel/osrelease", "6.1.0-47-amd64\n");
        write("boot/config-6.1.0-47-amd64", "CONFIG_HZ=250\n# CONFIG_SCHED_CORE is not set\n");
        write("sys/kernel/debug/sched_features", "PLACE_LAG NO_NEXT_BUDDY \n");
        assert_eq!(read(), ("PLACE_LAG NO_NEXT_BUDDY".to_owned(), Some(false), Some(250)));
        write("boot/config-6.1.0-47-amd64", "CONFIG_HZ=HZ\nCONFIG_SCHED_CORE=y\n");
        write("sys/kernel/debug/sched/features", "NO_PLACE_LAG HRTICK\n");
        assert_eq!(read(), ("NO_PLACE_LAG HRTICK".to_owned(), None, None));
    }

    #[test]
    fn the_command_line() {
        let line = "root=/dev/vda1 isolcpus=1 quiet isolcpus=domain,2-3 xnohz_full=9";
        assert_eq!(argument(line, "isolcpus="), "domain,2-3");
        assert_eq!(argument(line, "nohz_full="), "");
    }
}
