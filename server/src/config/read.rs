//! From flags to a configuration, with everything that is wrong.

use super::{Config, Log, Topology, args::Args};
use crate::ingest::MAX_XML_BYTES;
use berth_model::profile;
use std::{
    fmt,
    fs::{self, File},
    io::Read,
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    time::Duration,
};
use tracing_subscriber::EnvFilter;

/// Where the socket is by default.
const DEFAULT_FOLDER: &str = "/run/berth";
const SOCKET: &str = "berthd.sock";

/// Everything that is wrong with a configuration, a sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub Vec<String>);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

/// The sentences so far.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    /// A value that is needed even though it is wrong, so that the rest can be looked at.
    fn or<T>(&mut self, result: Result<T, String>, otherwise: T) -> T {
        result.unwrap_or_else(|problem| {
            self.add(problem);
            otherwise
        })
    }
}

pub(super) fn config(args: Args) -> Result<Config, Invalid> {
    let mut problems = Problems::default();
    let tcp = (!args.no_tcp).then(|| tcp(&args.tcp)).transpose();
    let tcp = problems.or(tcp, None);
    if args.no_uds && args.uds.is_some() {
        problems.add("--no-uds contradicts --uds; give one of the two");
    }
    let uds = if args.no_uds { None } else { args.uds.or_else(default_socket) };
    if args.no_tcp && args.no_uds {
        problems.add("--no-tcp and --no-uds leave nothing to listen on; leave one out");
    } else if tcp.is_none() && uds.is_none() && args.no_tcp {
        problems.add(
            "--no-tcp leaves nothing to listen on, since no folder for a unix socket is writable; give --uds",
        );
    }
    if let Some(kernel) = &args.kernel
        && let Err(error) = profile::from_text(kernel)
    {
        problems.add(format!("--kernel: {error}"));
    }
    let cpu_family = args.cpu_family.map(|family| number("--cpu-family", &family, 1, 0xffff)).transpose();
    let topology = topology(args.topology_xml, args.topology_synthetic);
    let topology = problems.or(topology, Topology::Live);
    let config = Config {
        tcp,
        uds,
        measure_load: topology == Topology::Live,
        topology,
        kernel: args.kernel,
        cpu_vendor: args.cpu_vendor.filter(|vendor| !vendor.is_empty()),
        cpu_family: problems.or(cpu_family, None),
        log: problems.or(log(args.log, &args.log_format), Log { filter: String::new(), json: false }),
        ready_file: args.ready_file,
        sample_interval: problems.or(
            time(
                "--sample-interval",
                &args.sample_interval,
                Duration::from_millis(100),
                Duration::from_secs(60),
            ),
            Duration::ZERO,
        ),
        deadline: problems.or(
            time("--deadline", &args.deadline, Duration::from_millis(1), Duration::from_secs(3600)),
            Duration::ZERO,
        ),
        max_requests: usize::try_from(
            problems.or(number("--max-requests", &args.max_requests, 1, 100_000), 1),
        )
        .unwrap_or(1),
        shutdown_timeout: problems.or(
            time("--shutdown-timeout", &args.shutdown_timeout, Duration::ZERO, Duration::from_secs(3600)),
            Duration::ZERO,
        ),
        // Not the path that it was started by: the file there may have been replaced since.
        program: PathBuf::from("/proc/self/exe"),
        root: PathBuf::from("/"),
    };
    if problems.0.is_empty() { Ok(config) } else { Err(Invalid(problems.0)) }
}

fn tcp(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected a loopback address and a port, such as 127.0.0.1:7117 or [::1]:7117";
    let addresses = text.to_socket_addrs().map_err(|_| format!("--tcp {text}: {expected}"))?;
    let found: Vec<SocketAddr> = addresses.collect();
    match found.first() {
        None => Err(format!("--tcp {text}: {expected}")),
        Some(address) if address.ip().is_loopback() => Ok(*address),
        Some(_) => Err(format!(
            "--tcp {text}: it can be reached from other hosts, and this version has neither TLS nor authentication; {expected}"
        )),
    }
}

/// The first folder that can be written to.
fn default_socket() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let folders =
        [Some(PathBuf::from(DEFAULT_FOLDER)), runtime.map(|folder| PathBuf::from(folder).join("berth"))];
    folders.into_iter().flatten().find(|folder| is_writable(folder)).map(|folder| folder.join(SOCKET))
}

fn is_writable(folder: &Path) -> bool {
    let exists = folder.is_dir() || fs::create_dir(folder).is_ok();
    exists && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

fn topology(xml: Option<PathBuf>, synthetic: Option<String>) -> Result<Topology, String> {
    match (xml, synthetic) {
        (None, None) => Ok(Topology::Live),
        (None, Some(text)) => Ok(Topology::Synthetic(text)),
        (Some(_), Some(_)) => {
            Err("--topology-xml contradicts --topology-synthetic; give one of the two".to_owned())
        }
        (Some(path), None) => {
            let named = |problem: String| format!("--topology-xml {}: {problem}", path.display());
            let text = read_text(&path).map_err(named)?;
            Ok(Topology::Xml { path, text })
        }
    }
}

/// A file's text, up to one byte more than is accepted: whoever reads it tells that it is too long.
fn read_text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_XML_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

fn log(filter: String, format: &str) -> Result<Log, String> {
    let json = match format {
        "text" => false,
        "json" => true,
        _ => return Err(format!("--log-format {format}: expected text or json")),
    };
    match EnvFilter::try_new(&filter) {
        Ok(_) => Ok(Log { filter, json }),
        Err(error) => {
            Err(format!("--log {filter}: {error}; expected a level such as info, or berthd=debug,info"))
        }
    }
}

fn number(flag: &str, text: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("{flag} {text}: expected a number from {least} to {most}"))
}

fn time(flag: &str, text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    parse_time(text).filter(|time| (least..=most).contains(time)).ok_or_else(|| {
        format!("{flag} {text}: expected a time from {least:?} to {most:?}, written 500ms, 2s or 1m")
    })
}

fn parse_time(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let amount: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "ms" => Some(Duration::from_millis(amount)),
        "s" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_secs(amount.checked_mul(60)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(parse_time("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_time("2m"), Some(Duration::from_secs(120)));
        for bad in ["", "5", "s", "1h", "-1s", "1.5s", "99999999999999999999s"] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_loopback() {
        assert!(tcp("127.0.0.1:0").is_ok() && tcp("[::1]:7117").is_ok() && tcp("127.9.9.9:1").is_ok());
        for bad in ["0.0.0.0:7117", "[::]:1", "192.0.2.1:7117", "7117", "127.0.0.1", ""] {
            assert!(tcp(bad).is_err(), "{bad}");
        }
    }
}
