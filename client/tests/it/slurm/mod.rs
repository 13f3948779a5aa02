//! Slurm's hooks: by themselves, and in a real Slurm of one node on loopback.

mod alone;
mod cluster;
mod jobs;

pub(crate) use cluster::open_to_all;

use crate::{berth::machine, berthd::Berthd};

/// A berthd that takes this host for one of 640 CPUs with a kernel under which four tasks that may use CPUs 0 and 1 pile up. It
/// knows no load, so that what it decides is always the same.
pub(crate) fn unsafe_host() -> Berthd {
    let xml = machine("seeds/turin-2s-l3-as-numa.xml");
    let flags = ["--no-tcp", "--kernel", "6.12.95", "--topology-xml", cluster::text(&xml)];
    let server = Berthd::start_with(flags);
    // Ordinary users ask it too.
    open_to_all(server.socket().parent().expect("it has a folder"));
    server
}

/// Whether there are CPUs 0 and 1, on which these tests run tasks.
pub(crate) fn two_cpus() -> bool {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let are_there = online.starts_with("0-");
    if !are_there {
        eprintln!("skipped: CPUs 0 and 1 are needed, and {} are online", online.trim());
    }
    are_there
}
