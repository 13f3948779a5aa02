//! Flags that say which host a question is about.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use berth_proto::v1::{Host, host::Source};
use clap::Args;

use super::LoadText;
use crate::Error;

/// The most that a server reads as XML, in bytes.
const MAX_XML: u64 = 16 << 20;
const SYNTHETIC: &str = "Another host, as hwloc's synthetic description: \"pack:2 [numa] l3:8 core:8 pu:2\"";
/// Stands for standard input.
const STDIN: &str = "-";

/// Which host a question is about.
#[derive(Debug, Args)]
#[command(next_help_heading = "The host (default: the one that berthd runs on)")]
pub struct HostArgs {
    /// Another host, as hwloc's XML of format 2: made there with `lstopo --of xml FILE`. `-` reads stdin
    #[arg(long, value_name = "FILE", conflicts_with = "host_synthetic")]
    pub host_xml: Option<PathBuf>,
    /// Another host, as hwloc's synthetic description.
    // Not from the comment above: rustdoc takes what stands in brackets for a link.
    #[arg(long, value_name = "TEXT", help = SYNTHETIC)]
    pub host_synthetic: Option<String>,
    /// Its CPU vendor as in /proc/cpuinfo: AuthenticAMD. The kernel's distance limit for spreading forks depends on it
    #[arg(long, value_name = "NAME")]
    pub cpu_vendor: Option<String>,
    /// Its CPU family in decimal as in /proc/cpuinfo: 26
    #[arg(long, value_name = "NUMBER")]
    pub cpu_family: Option<u32>,
    /// CPUs that are cut off from load balancing there, as isolcpus= does
    #[arg(long, value_name = "CPUS")]
    pub host_isolated: Option<String>,
    /// CPUs that are offline there, beyond those that the description has offline
    #[arg(long, value_name = "CPUS")]
    pub host_offline: Option<String>,
    /// A cpuset partition with scheduling domains of its own there; may be repeated
    #[arg(long, value_name = "CPUS")]
    pub host_partition: Vec<String>,
    /// NUMA distances, row by row with commas, where the description has none: 10,20,20,10
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub host_distances: Vec<u32>,
}

/// What runs on the host of the question.
#[derive(Debug, Args)]
#[command(next_help_heading = "Its load (default: as measured on this host, none on another)")]
pub struct HostLoadArgs {
    /// What runs there: CPUS:TASKS, several with commas. 0-3:1,8:2 is one task on each of 0-3 and two on 8
    ///
    /// More may be said of an entry: 0-3:1/busy=0.5/load=512/util=300/runnable=900, which is the share of time that each CPU is
    /// busy, and the run queue's load_avg, util_avg and runnable_avg.
    #[arg(long, value_name = "LOAD", conflicts_with = "host_idle")]
    pub host_load: Option<LoadText>,
    /// As if nothing ran there
    #[arg(long)]
    pub host_idle: bool,
}

impl HostArgs {
    /// As the contract has it, the XML read. `None`: nothing was given, so it is this host.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is too long, or is no text.
    pub fn read(&self, load: Option<&HostLoadArgs>) -> Result<Option<Host>, Error> {
        let source = match (&self.host_xml, &self.host_synthetic) {
            (Some(path), _) => Some(Source::Xml(read_xml(path)?)),
            (None, Some(text)) => Some(Source::Synthetic(text.clone())),
            (None, None) => None,
        };
        let given = load.and_then(|load| load.host_load.as_ref());
        let host = Host {
            source,
            load: given.map(|load| load.entries().to_vec()).unwrap_or_default(),
            idle: load.is_some_and(|load| load.host_idle),
            cpu_vendor: self.cpu_vendor.clone().unwrap_or_default(),
            cpu_family: self.cpu_family.unwrap_or_default(),
            isolated: self.host_isolated.clone().unwrap_or_default(),
            offline: self.host_offline.clone().unwrap_or_default(),
            partitions: self.host_partition.clone(),
            distances: self.host_distances.clone(),
        };
        Ok((host != Host::default()).then_some(host))
    }

    /// The host in words, for the answer's head.
    pub(crate) fn label(&self) -> String {
        let mut parts = vec![match (&self.host_xml, &self.host_synthetic) {
            (Some(path), _) if path.as_os_str() == STDIN => "the one described on stdin".to_owned(),
            (Some(path), _) => {
                path.file_name().map_or(path.as_os_str(), |name| name).to_string_lossy().into_owned()
            }
            (None, Some(text)) => format!("synthetic \"{text}\""),
            (None, None) => "this one".to_owned(),
        }];
        match (&self.cpu_vendor, self.cpu_family) {
            (Some(vendor), Some(family)) => parts.push(format!("{vendor} family {family}")),
            (Some(vendor), None) => parts.push(vendor.clone()),
            (None, Some(family)) => parts.push(format!("CPU family {family}")),
            (None, None) => {}
        }
        parts.extend(self.host_isolated.as_ref().map(|cpus| format!("with {cpus} isolated")));
        parts.extend(self.host_offline.as_ref().map(|cpus| format!("with {cpus} offline")));
        parts.extend(self.host_partition.iter().map(|cpus| format!("with {cpus} as a partition")));
        parts.extend((!self.host_distances.is_empty()).then(|| "with distances as given".to_owned()));
        parts.join(", ")
    }
}

fn read_xml(path: &Path) -> Result<String, Error> {
    let failed = |source| Error::HostFile { path: path.to_owned(), source };
    let bytes = if path.as_os_str() == STDIN {
        read_limited(io::stdin().lock())
    } else {
        File::open(path).and_then(read_limited)
    }
    .map_err(failed)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > MAX_XML) {
        return Err(Error::HostFileTooLong { path: path.to_owned(), limit: MAX_XML });
    }
    String::from_utf8(bytes).map_err(|_| Error::HostFileNotText { path: path.to_owned() })
}

/// One byte more than is allowed is enough to see that there are too many.
fn read_limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_XML + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
